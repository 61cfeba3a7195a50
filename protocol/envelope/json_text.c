/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and white space of JSON texts that a scan accepted. */
#include "protocol/base/hex.h"
#include "protocol/base/word.h"
#include "protocol/envelope/json_names.h"

/* The value of four hex digits of either case that a scan accepted: letters have bit 6 set. */
static inline uint32_t digit(uint8_t c)
{
    return (c & 0x0fu) + (c >> 6) * 9u;
}

static inline uint32_t unit(const uint8_t *p)
{
    return digit(p[0]) << 12 | digit(p[1]) << 8 | digit(p[2]) << 4 | digit(p[3]);
}

/* What the escapes of one letter stand for. */
static const uint8_t letters[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

size_t fb_json_unescape(const uint8_t **p, uint8_t out[4])
{
    const uint8_t *at = *p;
    if (at[1] != 'u') {
        out[0] = letters[at[1]];
        *p = at + 2;
        return 1;
    }
    uint32_t c = unit(at + 2);
    at += 6;
    if (c >= 0xd800 && c <= 0xdbff) {
        c = 0x10000 + ((c - 0xd800) << 10) + (unit(at + 2) - 0xdc00);
        at += 6;
    }
    *p = at;
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xc0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xe0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
        out[2] = (uint8_t)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (uint8_t)(0xf0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
    out[3] = (uint8_t)(0x80 | (c & 0x3f));
    return 4;
}

int fb_json_bytes_next(fb_json_bytes *bytes)
{
    if (bytes->held_at < bytes->held_count) return bytes->held[bytes->held_at++];
    if (*bytes->p == '"') return -1;
    if (*bytes->p != '\\') return *bytes->p++;
    bytes->held_count = (uint8_t)fb_json_unescape(&bytes->p, bytes->held);
    bytes->held_at = 1;
    return bytes->held[0];
}

/* The rest of fb_json_unquote, where a whole word may not fit any more: one byte, or one escape. */
static bool unquote_one(const uint8_t **p, uint8_t *room, size_t cap, size_t *len)
{
    uint8_t bytes[4] = {**p};
    size_t n = 1;
    if (**p == '\\') {
        n = fb_json_unescape(p, bytes);
    } else {
        ++*p;
    }
    if (n > cap - *len) return false;
    for (size_t i = 0; i < n; i++) room[*len + i] = bytes[i];
    *len += n;
    return true;
}

bool fb_json_unquote(const fb_json_watch *member, uint8_t *room, size_t cap, fb_span *out)
{
    fb_span in = fb_json_inner(member->value);
    if (!member->escaped) {
        *out = in;
        return in.len <= cap;
    }
    const uint8_t *p = in.p, *end = in.p + in.len;
    size_t len = 0;
    while (p < end) {
        if (*p == '\\' && p[1] != 'u' && len < cap) {
            room[len++] = letters[p[1]];
            p += 2;
        } else if (*p != '\\' && end - p >= 8 && cap - len >= 8) {
            /* A word is copied whole; what follows a backslash in it is written over. */
            uint64_t w = fb_word_load(p) ^ FB_WORD('\\');
            uint64_t hits = (w - FB_WORD(1)) & ~w & FB_WORD(0x80);
            size_t plain = hits == 0 ? 8 : fb_word_first(hits);
            memcpy(room + len, p, 8);
            len += plain;
            p += plain;
        } else if (!unquote_one(&p, room, cap, &len)) {
            return false;
        }
    }
    *out = fb_span_of(room, len);
    return true;
}

static bool is_quotable(uint8_t c)
{
    return c >= 0x20 && c != '"' && c != '\\';
}

/* The escape of a byte that is not quotable as it is. */
static size_t escape_of(uint8_t c, uint8_t out[6])
{
    static const char controls[33] = "........btn.fr..................";
    out[0] = '\\';
    out[1] = c < 0x20 ? (uint8_t)controls[c] : c;
    if (out[1] != '.') return 2;
    char digits[2];
    fb_hex_format(&c, 1, digits);
    memcpy(out + 1, "u00", 3);
    memcpy(out + 4, digits, 2);
    return 6;
}

bool fb_json_quote(fb_span text, uint8_t *out, size_t cap, size_t *len)
{
    if (cap < 2) return false;
    size_t room = cap - 1; /* the closing quote takes the last one */
    size_t n = 0;
    out[n++] = '"';
    for (size_t i = 0; i < text.len;) {
        size_t run = 0;
        while (i + run < text.len && is_quotable(text.p[i + run])) run++;
        if (run > room - n) return false;
        if (run != 0) memcpy(out + n, text.p + i, run);
        n += run;
        i += run;
        if (i == text.len) break;
        uint8_t escape[6];
        size_t width = escape_of(text.p[i++], escape);
        if (width > room - n) return false;
        memcpy(out + n, escape, width);
        n += width;
    }
    out[n++] = '"';
    *len = n;
    return true;
}

fb_status fb_json_compact(fb_span text, uint8_t *out, size_t cap, size_t *len)
{
    size_t n = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.p[i];
        if (!in_string && (c == ' ' || c == '\n' || c == '\r' || c == '\t')) continue;
        size_t width = in_string && c == '\\' ? 2 : 1;
        if (width > text.len - i || width > cap - n) return FB_ERR_NO_SPACE;
        memcpy(out + n, text.p + i, width);
        n += width;
        i += width - 1;
        if (c == '"') in_string = !in_string;
    }
    *len = n;
    return FB_OK;
}
