/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows, and JSON written into it member by member. */
#ifndef FB_RUNTIME_TEXT_H
#define FB_RUNTIME_TEXT_H

#include <stdint.h>

#include "protocol/base/types.h"

/* p is always terminated once something was written; running out of memory ends the process. */
typedef struct fb_text {
    char *p;
    size_t len;
    size_t cap;
} fb_text;

void fb_text_free(fb_text *text);
void fb_text_clear(fb_text *text);
void fb_text_bytes(fb_text *text, const void *bytes, size_t len);
void fb_text_put(fb_text *text, const char *string);
void fb_text_format(fb_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Never NULL. */
const char *fb_text_string(const fb_text *text);

/* A whole decimal number within 0..max; false when the text is anything else. */
bool fb_text_number(const char *text, unsigned long long max, unsigned long long *out);

/* Is it UTF-8 as of RFC 3629: no surrogates, no overlong forms? */
bool fb_text_is_utf8(fb_span bytes);

/* A JSON string with its quotes. Control characters and what breaks terminals are escaped; bytes
 * that are no UTF-8 become U+FFFD. */
void fb_json_string(fb_text *text, fb_span bytes);
/* JSON on one line, with what breaks terminals escaped within its strings: the same value. */
void fb_json_visible(fb_text *text, fb_span json);

/* Members: a comma before it unless it is the first of its object or array, then "name":. */
void fb_json_name(fb_text *text, const char *name);
void fb_json_member(fb_text *text, const char *name, const char *value);
void fb_json_span(fb_text *text, const char *name, fb_span value);
void fb_json_raw(fb_text *text, const char *name, fb_span json);
void fb_json_number(fb_text *text, const char *name, int64_t value);
void fb_json_u64_string(fb_text *text, const char *name, uint64_t value);
void fb_json_bool(fb_text *text, const char *name, bool value);
void fb_json_hex(fb_text *text, const char *name, const uint8_t *bytes, size_t len);
void fb_json_hex_u64(fb_text *text, const char *name, uint64_t value);
void fb_json_uuid(fb_text *text, const char *name, fb_id id);
/* NAME as RFC 3339 in UTC and NAME_ms beside it. */
void fb_json_time(fb_text *text, const char *name, int64_t wall_us);
/* Opens an object or array, named or (NULL) as an element. */
void fb_json_open(fb_text *text, const char *name, char bracket);
void fb_json_close(fb_text *text, char bracket);
/* A comma unless it is the first of its array. */
void fb_json_element(fb_text *text);

/* Peer text for one terminal or log line: as in a JSON string, without the quotes, and with quotes
 * around it when it is empty or has a blank or an equals sign in it. */
void fb_log_value(fb_text *text, fb_span bytes);

#define FB_TIME_TEXT_BYTES 40
/* 2026-01-02T03:04:05.678Z; years outside 0..9999 are clamped. */
void fb_time_format(int64_t wall_us, char out[FB_TIME_TEXT_BYTES]);

#endif
