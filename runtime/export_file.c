/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/export_file.h"

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
    char text[SUM_TEXT + 1] = "";
    sum_add(sum, json->p, json->len);
    fb_hex_format(sum->bytes, sizeof sum->bytes, text);
    return fprintf(out, "%s %s\n", text, json->p) > 0;
}

fb_export_line fb_export_read(FILE *in, fb_export_sum *sum, fb_text *json)
{
    char *line = NULL;
    size_t cap = 0;
    errno = 0;
    ssize_t n = getline(&line, &cap, in);
    fb_export_line got = n >= 0 ? FB_EXPORT_DAMAGED : ferror(in) ? FB_EXPORT_FAILED : FB_EXPORT_END;
    fb_text_clear(json);
    if (n > (ssize_t)SUM_TEXT + 1 && line[SUM_TEXT] == ' ' && line[n - 1] == '\n') {
        uint8_t told[FB_EXPORT_SUM_BYTES];
        const char *text = line + SUM_TEXT + 1;
        size_t len = (size_t)n - SUM_TEXT - 2;
        bool read = fb_hex_parse(fb_span_of(line, SUM_TEXT), told, sizeof told);
        sum_add(sum, text, len);
        if (read && memcmp(told, sum->bytes, sizeof told) == 0) {
            fb_text_bytes(json, text, len);
            got = FB_EXPORT_LINE;
        }
    }
    free(line);
    return got;
}
