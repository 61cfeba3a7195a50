/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"

static void reserve(fb_text *text, size_t more)
{
    if (text->cap - text->len > more) return;
    size_t cap = text->cap == 0 ? 256 : text->cap;
    while (cap - text->len <= more) cap *= 2;
    char *p = realloc(text->p, cap);
    FB_ASSERT(p != NULL);
    text->p = p;
    text->cap = cap;
}

void fb_text_free(fb_text *text)
{
    free(text->p);
    *text = (fb_text){NULL, 0, 0};
}

void fb_text_clear(fb_text *text)
{
    text->len = 0;
    if (text->p != NULL) text->p[0] = 0;
}

void fb_text_bytes(fb_text *text, const void *bytes, size_t len)
{
    reserve(text, len);
    if (len != 0) memcpy(text->p + text->len, bytes, len);
    text->len += len;
    text->p[text->len] = 0;
}

void fb_text_put(fb_text *text, const char *string)
{
    fb_text_bytes(text, string, strlen(string));
}

void fb_text_format(fb_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    FB_ASSERT(len >= 0);
    reserve(text, (size_t)len);
    vsnprintf(text->p + text->len, (size_t)len + 1, format, again);
    va_end(again);
    text->len += (size_t)len;
}

const char *fb_text_string(const fb_text *text)
{
    return text->p != NULL ? text->p : "";
}

bool fb_text_number(const char *text, unsigned long long max, unsigned long long *out)
{
    unsigned long long value = 0;
    if (*text == 0) return false;
    for (; *text != 0; text++) {
        if (*text < '0' || *text > '9') return false;
        unsigned digit = (unsigned)(*text - '0');
        if (digit > max || value > (max - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

/* The length of the UTF-8 sequence at p, or 0 when it is none; *code gets the character. */
static size_t utf8_at(const uint8_t *p, size_t left, uint32_t *code)
{
    if (p[0] < 0x80) {
        *code = p[0];
        return 1;
    }
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || len > left) return 0;
    uint32_t c = p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if ((len == 3 && c < 0x800) || (len == 4 && c < 0x10000) || c > 0x10ffff ||
        (c >= 0xd800 && c <= 0xdfff)) {
        return 0;
    }
    *code = c;
    return len;
}

bool fb_text_is_utf8(fb_span bytes)
{
    uint32_t c;
    for (size_t i = 0; i < bytes.len;) {
        size_t len = utf8_at(bytes.p + i, bytes.len - i, &c);
        if (len == 0) return false;
        i += len;
    }
    return true;
}

/* Control characters, and those that reorder or hide what a terminal shows. */
static bool is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

static void escaped(fb_text *text, fb_span bytes, bool is_json)
{
    for (size_t i = 0; i < bytes.len;) {
        uint32_t c = 0;
        size_t len = utf8_at(bytes.p + i, bytes.len - i, &c);
        if (len == 0) {
            fb_text_put(text, "\\ufffd");
            i++;
            continue;
        }
        if ((c == '"' || c == '\\') && !is_json) {
            char two[2] = {'\\', (char)c};
            fb_text_bytes(text, two, 2);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            fb_text_put(text, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else if (is_hidden(c)) {
            fb_text_format(text, "\\u%04x", (unsigned)c);
        } else {
            fb_text_bytes(text, bytes.p + i, len);
        }
        i += len;
    }
}

void fb_json_string(fb_text *text, fb_span bytes)
{
    fb_text_put(text, "\"");
    escaped(text, bytes, false);
    fb_text_put(text, "\"");
}

void fb_json_visible(fb_text *text, fb_span json)
{
    escaped(text, json, true);
}

void fb_log_value(fb_text *text, fb_span bytes)
{
    bool quoted = bytes.len == 0;
    for (size_t i = 0; i < bytes.len; i++) {
        if (bytes.p[i] <= ' ' || bytes.p[i] == '=' || bytes.p[i] == '"') quoted = true;
    }
    if (quoted) {
        fb_json_string(text, bytes);
    } else {
        escaped(text, bytes, false);
    }
}

void fb_json_element(fb_text *text)
{
    char last = text->len > 0 ? text->p[text->len - 1] : '{';
    if (last != '{' && last != '[' && last != ':' && last != '\n') fb_text_put(text, ",");
}

void fb_json_name(fb_text *text, const char *name)
{
    fb_json_element(text);
    fb_json_string(text, fb_span_text(name));
    fb_text_put(text, ":");
}

void fb_json_member(fb_text *text, const char *name, const char *value)
{
    fb_json_span(text, name, fb_span_text(value));
}

void fb_json_span(fb_text *text, const char *name, fb_span value)
{
    fb_json_name(text, name);
    fb_json_string(text, value);
}

void fb_json_raw(fb_text *text, const char *name, fb_span json)
{
    fb_json_name(text, name);
    fb_text_bytes(text, json.p, json.len);
}

void fb_json_number(fb_text *text, const char *name, int64_t value)
{
    fb_json_name(text, name);
    fb_text_format(text, "%lld", (long long)value);
}

void fb_json_u64_string(fb_text *text, const char *name, uint64_t value)
{
    fb_json_name(text, name);
    fb_text_format(text, "\"%llu\"", (unsigned long long)value);
}

void fb_json_bool(fb_text *text, const char *name, bool value)
{
    fb_json_name(text, name);
    fb_text_put(text, value ? "true" : "false");
}

void fb_json_hex(fb_text *text, const char *name, const uint8_t *bytes, size_t len)
{
    char digits[129];
    FB_ASSERT(len <= 64);
    fb_hex_text(bytes, len, digits);
    fb_json_member(text, name, digits);
}

void fb_json_hex_u64(fb_text *text, const char *name, uint64_t value)
{
    fb_json_name(text, name);
    fb_text_format(text, "\"%016llx\"", (unsigned long long)value);
}

void fb_json_uuid(fb_text *text, const char *name, fb_id id)
{
    char digits[FB_UUID_TEXT_LEN + 1];
    fb_uuid_format(id, digits);
    digits[FB_UUID_TEXT_LEN] = 0;
    fb_json_member(text, name, digits);
}

void fb_json_time(fb_text *text, const char *name, int64_t wall_us)
{
    char time[FB_TIME_TEXT_BYTES];
    fb_time_format(wall_us, time);
    fb_json_member(text, name, time);
    char twin[64];
    snprintf(twin, sizeof twin, "%s_ms", name);
    fb_json_number(text, twin, wall_us / 1000 - (wall_us % 1000 < 0));
}

void fb_json_open(fb_text *text, const char *name, char bracket)
{
    if (name != NULL) {
        fb_json_name(text, name);
    } else {
        fb_json_element(text);
    }
    fb_text_bytes(text, &bracket, 1);
}

void fb_json_close(fb_text *text, char bracket)
{
    fb_text_bytes(text, &bracket, 1);
}

/* The civil date of a day counted from 1970-01-01, proleptic Gregorian. */
static void civil(int64_t day, int64_t *year, int *month, int *mday)
{
    day += 719468; /* from 0000-03-01, so that a leap day ends its year */
    int64_t era = (day >= 0 ? day : day - 146096) / 146097;
    int64_t of_era = day - era * 146097;
    int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;
    *mday = (int)(of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = y + era * 400 + (*month <= 2);
}

void fb_time_format(int64_t wall_us, char out[FB_TIME_TEXT_BYTES])
{
    int64_t ms = wall_us / 1000 - (wall_us % 1000 < 0);
    const int64_t first = INT64_C(-62167219200000); /* year 0 */
    const int64_t last = INT64_C(253402300799999);  /* end of 9999 */
    if (ms < first) ms = first;
    if (ms > last) ms = last;
    int64_t day = ms / 86400000 - (ms % 86400000 < 0);
    int of_day = (int)(ms - day * 86400000);
    int64_t year;
    int month, mday;
    civil(day, &year, &month, &mday);
    snprintf(out, FB_TIME_TEXT_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (int)year, month, mday,
             of_day / 3600000, of_day / 60000 % 60, of_day / 1000 % 60, of_day % 1000);
}
