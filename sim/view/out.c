/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/view/out.h"

#include <stdlib.h>
#include <string.h>

fb_sim_out *fb_sim_out_open(const char *path)
{
    fb_sim_out *out = malloc(sizeof *out);
    if (out == NULL) return NULL;
    out->file = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    out->used = 0;
    out->written = 0;
    out->failed = false;
    if (out->file == NULL) {
        free(out);
        return NULL;
    }
    return out;
}

static void flush(fb_sim_out *out)
{
    if (fwrite(out->buffer, 1, out->used, out->file) != out->used) out->failed = true;
    out->written += out->used;
    out->used = 0;
}

bool fb_sim_out_close(fb_sim_out *out)
{
    flush(out);
    if (fflush(out->file) != 0) out->failed = true;
    if (out->file != stdout && fclose(out->file) != 0) out->failed = true;
    bool whole = !out->failed;
    free(out);
    return whole;
}

void fb_sim_out_flush(fb_sim_out *out)
{
    flush(out);
    if (fflush(out->file) != 0) out->failed = true;
}

void fb_sim_out_bytes(fb_sim_out *out, const void *bytes, size_t len)
{
    const char *p = bytes;
    while (len != 0) {
        if (out->used == sizeof out->buffer) flush(out);
        size_t room = sizeof out->buffer - out->used;
        size_t piece = len < room ? len : room;
        memcpy(out->buffer + out->used, p, piece);
        out->used += piece;
        p += piece;
        len -= piece;
    }
}

void fb_sim_out_text(fb_sim_out *out, const char *text)
{
    fb_sim_out_bytes(out, text, strlen(text));
}

void fb_sim_out_u64(fb_sim_out *out, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    fb_sim_out_bytes(out, digits + at, sizeof digits - at);
}

void fb_sim_out_i64(fb_sim_out *out, int64_t value)
{
    if (value < 0) fb_sim_out_text(out, "-");
    fb_sim_out_u64(out, value < 0 ? ~(uint64_t)value + 1 : (uint64_t)value);
}

void fb_sim_out_us(fb_sim_out *out, uint64_t ns)
{
    fb_sim_out_u64(out, ns / 1000);
    char part[4] = {'.', (char)('0' + ns / 100 % 10), (char)('0' + ns / 10 % 10),
                    (char)('0' + ns % 10)};
    fb_sim_out_bytes(out, part, sizeof part);
}

void fb_sim_out_string(fb_sim_out *out, const char *text)
{
    static const char digits[] = "0123456789abcdef";
    fb_sim_out_text(out, "\"");
    for (; *text != 0; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == '"' || c == '\\' || c == '<' || c == 0x7f) {
            char escape[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
            fb_sim_out_bytes(out, escape, sizeof escape);
        } else {
            fb_sim_out_bytes(out, text, 1);
        }
    }
    fb_sim_out_text(out, "\"");
}
