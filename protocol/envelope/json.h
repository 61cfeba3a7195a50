/* SPDX-License-Identifier: Apache-2.0 */
/* One strict scanner for JSON text (RFC 8259), for envelopes, their payloads and field values.
 *
 * Beyond the grammar it refuses what receivers would read differently (profile 3 and 4): invalid
 * UTF-8, a byte-order mark at the start, lone surrogates, U+0000 even when escaped, and two members
 * of one object whose names are equal after unescaping. Numbers are checked by grammar alone.
 *
 * Nothing is copied: values are given as spans of the text. A call needs about 36 KiB of stack and
 * takes time proportional to the text (times a logarithm if names were made to collide twice). */
#ifndef FB_ENVELOPE_JSON_H
#define FB_ENVELOPE_JSON_H

#include "protocol/base/error.h"
#include "protocol/base/types.h"

/* What is wrong with a text. */
#define FB_JSON_FAULT_TABLE(X)                                                                     \
    X(NONE, "nothing")                                                                             \
    X(EMPTY, "the text is empty")                                                                  \
    X(BOM, "the text begins with a byte-order mark")                                               \
    X(END, "the text ends too early")                                                              \
    X(SYNTAX, "this is no JSON")                                                                   \
    X(TRAILING, "something follows the value")                                                     \
    X(NOT_OBJECT, "not an object")                                                                 \
    X(UTF8, "invalid UTF-8")                                                                       \
    X(CONTROL, "a control character in a string must be escaped")                                  \
    X(ESCAPE, "no such escape")                                                                    \
    X(SURROGATE, "a lone surrogate")                                                               \
    X(NUL, "U+0000 is not allowed")                                                                \
    X(DUPLICATE, "a member occurs twice")                                                          \
    X(UNKNOWN, "an unknown member")                                                                \
    X(DEPTH, "nested too deeply")                                                                  \
    X(MEMBERS, "an object has too many members")

typedef enum fb_json_fault {
#define FB_JSON_FAULT_ROW(name, text) FB_JSON_##name,
    FB_JSON_FAULT_TABLE(FB_JSON_FAULT_ROW)
#undef FB_JSON_FAULT_ROW
} fb_json_fault;

/* One sentence for people. Never NULL. */
const char *fb_json_fault_text(fb_json_fault fault);

/* The most names of objects that are open at one time: the bound of fb_json_rules.members_max and
 * of all open objects together. */
#define FB_JSON_NAMES_MAX 4096u

/* Depth that a scan can follow at all. */
#define FB_JSON_DEPTH_MAX 32u

typedef struct fb_json_rules {
    uint32_t depth_max;   /* arrays and objects inside each other, the outermost is 1 */
    uint32_t members_max; /* members of one object */
    bool object;          /* the value is an object */
    bool closed;          /* every member of the outermost object is in the watch list */
    uint64_t lengths;     /* bits 1 << length of each watched name, to look up no others; 0: all */
} fb_json_rules;

/* A member of the outermost object to look out for. `name` is set by the caller (plain ASCII that
 * needs no escape, of less than 64 bytes); the rest by the scan, also of a refused text, up to the
 * fault. */
typedef struct fb_json_watch {
    fb_span name;
    fb_span value; /* as spelled, with the quotes of a string; empty when absent */
    bool escaped;  /* the value is a string with escapes in it */
} fb_json_watch;

/* A watched member whose string is wanted without its escapes, which is done on the way. */
typedef struct fb_json_wanted {
    const fb_json_watch *member;
    uint8_t *room; /* for cap + FB_JSON_ROOM_MORE bytes */
    size_t cap;
    fb_span text; /* in the text or in the room; meaningful when the value is a string that fits */
    bool fits;    /* no longer than cap */
} fb_json_wanted;

/* Bytes behind its end that an unescaped string may overwrite. */
#define FB_JSON_ROOM_MORE 64u

/* Checks one JSON text. *at (may be NULL) is the offset of the fault, or the length of the text. */
fb_json_fault fb_json_scan(fb_span text, const fb_json_rules *rules, fb_json_watch *watch,
                           size_t watched, size_t *at);

/* What a caller knows of a text before it is scanned; it changes the time alone. */
typedef struct fb_json_hint {
    size_t behind; /* bytes that may be read behind the text, whatever they are */
    size_t known;  /* not 0: the text is an object that begins with watch[0], spelled plainly; its
                      value, which has no fault, is set in the list and ends before this offset */
    fb_json_wanted *wanted; /* may be NULL */
} fb_json_hint;

fb_json_fault fb_json_scan_hinted(fb_span text, const fb_json_hint *hint,
                                  const fb_json_rules *rules, fb_json_watch *watch, size_t watched,
                                  size_t *at);

/* One JSON text of any type, as a field's value: FB_ERR_VALUE_MALFORMED, or FB_ERR_LIMIT when it is
 * deeper than FB_JSON_DEPTH_MAX or has too many members. */
fb_status fb_json_value_check(fb_span text);

/* The same text without insignificant white space, appended to out. The text must have passed a
 * scan. FB_ERR_NO_SPACE when it does not fit (text.len bytes always do). */
fb_status fb_json_compact(fb_span text, uint8_t *out, size_t cap, size_t *len);

static inline bool fb_json_is_string(fb_span value)
{
    return value.len >= 2 && value.p[0] == '"';
}

static inline bool fb_json_is_number(fb_span value)
{
    return value.len >= 1 && (value.p[0] == '-' || (value.p[0] >= '0' && value.p[0] <= '9'));
}

/* The bytes between the quotes of a string value. */
static inline fb_span fb_json_inner(fb_span value)
{
    return (fb_span){value.p + 1, value.len - 2};
}

/* Unescapes a string value that a scan found. Without escapes the result borrows from the text and
 * `room` is not touched; else it lies in room. False when it is longer than cap. */
bool fb_json_unquote(const fb_json_watch *member, uint8_t *room, size_t cap, fb_span *out);

/* Bytes that fb_json_quote writes at most for len bytes of text. */
#define FB_JSON_QUOTED_MAX(len) (6 * (len) + 2)

/* Appends a string value: quotes, and escapes where JSON demands them. The text must be valid UTF-8
 * without U+0000 for the result to be what this scanner accepts. False: cap was too small. */
bool fb_json_quote(fb_span text, uint8_t *out, size_t cap, size_t *len);

#endif
