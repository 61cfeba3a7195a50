/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/export_file.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/hex.h"

static const char label[] = "faberio-export-v1"; /* hashed with its zero byte */

#define SUM_TEXT (2 * FB_EXPORT_SUM_BYTES)

static void sum_add(fb_export_sum *sum, const void *bytes, size_t len)
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, sizeof sum->bytes);
    crypto_generichash_update(&state, sum->bytes, sizeof sum->bytes);
    crypto_generichash_update(&state, bytes, len);
    crypto_generichash_final(&state, sum->bytes, sizeof sum->bytes);
}

void fb_export_begin(fb_export_sum *sum)
{
    memset(sum, 0, sizeof *sum);
    sum_add(sum, label, sizeof label);
}

bool fb_export_write(FILE *out, fb_export_sum *sum, const fb_text *json)
{
    char text[SUM_TEXT + 1];
    sum_add(sum, json->p, json->len);
    fb_hex_text(sum->bytes, sizeof sum->bytes, text);
    return fprintf(out, "%s %s\n", text, json->p) > 0;
}

/* A line with its end, if it has one, up to the bound. */
static void line_read(FILE *in, fb_text *line)
{
    char part[4096];
    int c = 0;
    fb_text_clear(line);
    while (c != '\n' && c != EOF && line->len <= FB_EXPORT_LINE_BYTES_MAX) {
        size_t n = 0;
        while (n < sizeof part && c != '\n' && (c = getc_unlocked(in)) != EOF) part[n++] = (char)c;
        fb_text_bytes(line, part, n);
    }
}

fb_export_line fb_export_read(FILE *in, fb_export_sum *sum, fb_text *json)
{
    fb_text line = {0};
    errno = 0;
    line_read(in, &line);
    fb_export_line got = ferror(in)      ? FB_EXPORT_FAILED
                         : line.len == 0 ? FB_EXPORT_END
                                         : FB_EXPORT_DAMAGED;
    int error = errno;
    fb_text_clear(json);
    if (got == FB_EXPORT_DAMAGED && line.len > SUM_TEXT + 1 && line.p[SUM_TEXT] == ' ' &&
        line.p[line.len - 1] == '\n') {
        uint8_t told[FB_EXPORT_SUM_BYTES];
        const char *text = line.p + SUM_TEXT + 1;
        size_t len = line.len - SUM_TEXT - 2;
        bool read = fb_hex_parse(fb_span_of(line.p, SUM_TEXT), told, sizeof told);
        sum_add(sum, text, len);
        if (read && memcmp(told, sum->bytes, sizeof told) == 0) {
            fb_text_bytes(json, text, len);
            got = FB_EXPORT_LINE;
        }
    }
    fb_text_free(&line);
    errno = error;
    return got;
}
