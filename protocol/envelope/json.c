/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/envelope/json.h"

#include "protocol/base/limits.h"
#include "protocol/base/word.h"
#include "protocol/envelope/json_names.h"

/* What a byte may be inside a string. */
enum {
    IN_PLAIN = 0, /* printable ASCII */
    IN_QUOTE,
    IN_ESCAPE,
    IN_CONTROL,
    IN_TWO,   /* leads two bytes */
    IN_THREE, /* leads three */
    IN_FOUR,
    IN_BAD, /* never leads a character */
};

/* clang-format off */
#define R4(x) x, x, x, x
#define R16(x) R4(x), R4(x), R4(x), R4(x)
static const uint8_t in_string[256] = {
    R16(IN_CONTROL), R16(IN_CONTROL),
    IN_PLAIN, IN_PLAIN, IN_QUOTE, IN_PLAIN, R4(IN_PLAIN), R4(IN_PLAIN), R4(IN_PLAIN),
    R16(IN_PLAIN), R16(IN_PLAIN),
    R4(IN_PLAIN), R4(IN_PLAIN), R4(IN_PLAIN), IN_ESCAPE, IN_PLAIN, IN_PLAIN, IN_PLAIN,
    R16(IN_PLAIN), R16(IN_PLAIN),
    R16(IN_BAD), R16(IN_BAD), R16(IN_BAD), R16(IN_BAD),
    IN_BAD, IN_BAD, IN_TWO, IN_TWO, R4(IN_TWO), R4(IN_TWO), R4(IN_TWO),
    R16(IN_TWO),
    R16(IN_THREE),
    R4(IN_FOUR), IN_FOUR, IN_BAD, IN_BAD, IN_BAD, R4(IN_BAD), R4(IN_BAD),
};
/* clang-format on */

/* The letters that follow a backslash, but for u. */
static const bool is_short_escape[256] = {
    ['"'] = true, ['\\'] = true, ['/'] = true, ['b'] = true,
    ['f'] = true, ['n'] = true,  ['r'] = true, ['t'] = true,
};

/* Hex digits of an escape may have either case. 16 or more: no digit. */
/* clang-format off */
static const uint8_t digit_value[256] = {
    R16(16), R16(16), R16(16),
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 16, R4(16),
    16, 10, 11, 12, 13, 14, 15, 16, R4(16), R4(16), R16(16),
    16, 10, 11, 12, 13, 14, 15, 16, R4(16), R4(16), R16(16),
    R16(16), R16(16), R16(16), R16(16), R16(16), R16(16), R16(16), R16(16),
};
/* clang-format on */

/* The four digits after \u, or UINT32_MAX. */
static inline uint32_t unit_at(const uint8_t *p)
{
    uint32_t a = digit_value[p[0]], b = digit_value[p[1]];
    uint32_t c = digit_value[p[2]], d = digit_value[p[3]];
    if ((a | b | c | d) > 15) return UINT32_MAX;
    return a << 12 | b << 8 | c << 4 | d;
}

/* The top bit of each byte that is not plain inside a string: above 0x7f, below 0x20, a quote or a
 * backslash. Bytes behind the first such one may be marked too, none before it is. */
static inline uint64_t special_bytes(uint64_t w)
{
    uint64_t quote = w ^ FB_WORD('"');
    uint64_t slash = w ^ FB_WORD('\\');
    uint64_t hits = (w - FB_WORD(0x20)) | (quote - FB_WORD(1)) | (slash - FB_WORD(1)) | w;
    return hits & FB_WORD(0x80);
}

/* The functions below take the place p where something starts and return the place behind it, or
 * NULL after scan_stop. */
typedef struct scan {
    const uint8_t *end;
    const uint8_t *stopped; /* where the fault is */
    fb_json_fault fault;
} scan;

static const uint8_t *scan_stop(scan *s, const uint8_t *at, fb_json_fault fault)
{
    s->stopped = at;
    s->fault = fault;
    return NULL;
}

/* p is at the backslash. */
static const uint8_t *scan_escape(scan *s, const uint8_t *p)
{
    size_t left = (size_t)(s->end - p);
    if (left < 2) return scan_stop(s, s->end, FB_JSON_END);
    if (p[1] != 'u') {
        return is_short_escape[p[1]] ? p + 2 : scan_stop(s, p, FB_JSON_ESCAPE);
    }
    if (left < 6) return scan_stop(s, s->end, FB_JSON_END);
    uint32_t unit = unit_at(p + 2);
    if (unit == UINT32_MAX) return scan_stop(s, p, FB_JSON_ESCAPE);
    if (unit == 0) return scan_stop(s, p, FB_JSON_NUL);
    if (unit < 0xd800 || unit > 0xdfff) return p + 6;
    if (unit > 0xdbff || left < 12 || p[6] != '\\' || p[7] != 'u') {
        return scan_stop(s, p, FB_JSON_SURROGATE);
    }
    uint32_t low = unit_at(p + 8);
    if (low < 0xdc00 || low > 0xdfff) return scan_stop(s, p, FB_JSON_SURROGATE);
    return p + 12;
}

static inline bool is_tail(uint8_t c)
{
    return (c & 0xc0) == 0x80;
}

/* One character above U+007F by RFC 3629: shortest form, no surrogate, at most U+10FFFF. */
static inline const uint8_t *scan_utf8(scan *s, const uint8_t *p, unsigned kind)
{
    size_t left = (size_t)(s->end - p);
    switch (kind) {
    case IN_TWO:
        if (left < 2 || !is_tail(p[1])) break;
        return p + 2;
    case IN_THREE:
        if (left < 3 || !is_tail(p[1]) || !is_tail(p[2])) break;
        if (p[0] == 0xe0 && p[1] < 0xa0) break;
        if (p[0] == 0xed && p[1] > 0x9f) break;
        return p + 3;
    case IN_FOUR:
        if (left < 4 || !is_tail(p[1]) || !is_tail(p[2]) || !is_tail(p[3])) break;
        if (p[0] == 0xf0 && p[1] < 0x90) break;
        if (p[0] == 0xf4 && p[1] > 0x8f) break;
        return p + 4;
    default:
        break;
    }
    return scan_stop(s, p, FB_JSON_UTF8);
}

/* p is after the opening quote; the result is after the closing one. */
static inline const uint8_t *scan_string(scan *s, const uint8_t *p, bool *escaped)
{
    const uint8_t *end = s->end;
    *escaped = false;
    while (p != NULL) {
        if (end - p >= 8) {
            uint64_t hits = special_bytes(fb_word_load(p));
            if (hits == 0) {
                p += 8;
                continue;
            }
            p += fb_word_first(hits);
        } else {
            while (p < end && in_string[*p] == IN_PLAIN) p++;
            if (p == end) return scan_stop(s, end, FB_JSON_END);
        }
        if (*p == '"') return p + 1;
        /* Escapes and characters of other scripts come in rows. */
        switch (in_string[*p]) {
        case IN_ESCAPE:
            *escaped = true;
            do {
                p = scan_escape(s, p);
            } while (p != NULL && p < end && *p == '\\');
            break;
        case IN_CONTROL:
            return scan_stop(s, p, *p == 0 ? FB_JSON_NUL : FB_JSON_CONTROL);
        default:
            do {
                p = scan_utf8(s, p, in_string[*p]);
            } while (p != NULL && p < end && *p >= 0x80);
            break;
        }
    }
    return NULL;
}

static inline bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static const uint8_t *scan_digits(scan *s, const uint8_t *p)
{
    if (p == s->end) return scan_stop(s, p, FB_JSON_END);
    if (!is_digit(*p)) return scan_stop(s, p, FB_JSON_SYNTAX);
    while (p < s->end && is_digit(*p)) p++;
    return p;
}

static const uint8_t *scan_number(scan *s, const uint8_t *p)
{
    const uint8_t *end = s->end;
    if (*p == '-') p++;
    if (p < end && *p == '0') {
        p++;
    } else {
        p = scan_digits(s, p);
        if (p == NULL) return NULL;
    }
    if (p < end && *p == '.') {
        p = scan_digits(s, p + 1);
        if (p == NULL) return NULL;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        p = scan_digits(s, p);
    }
    return p;
}

static const uint8_t *scan_word(scan *s, const uint8_t *p, const char *word)
{
    for (; *word != '\0'; word++, p++) {
        if (p == s->end) return scan_stop(s, p, FB_JSON_END);
        if (*p != (uint8_t)*word) return scan_stop(s, p, FB_JSON_SYNTAX);
    }
    return p;
}

/* A value that is neither array nor object. */
static const uint8_t *scan_scalar(scan *s, const uint8_t *p, bool *escaped)
{
    switch (*p) {
    case '"':
        return scan_string(s, p + 1, escaped);
    case 't':
        return scan_word(s, p, "true");
    case 'f':
        return scan_word(s, p, "false");
    case 'n':
        return scan_word(s, p, "null");
    default:
        break;
    }
    if (*p == '-' || is_digit(*p)) return scan_number(s, p);
    return scan_stop(s, p, FB_JSON_SYNTAX);
}

static inline const uint8_t *skip_space(const scan *s, const uint8_t *p)
{
    while (p < s->end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) p++;
    return p;
}

/* Skips white space; there must be a byte behind it. */
static inline const uint8_t *scan_next(scan *s, const uint8_t *p)
{
    if (p<s->end && * p> ' ') return p;
    p = skip_space(s, p);
    return p < s->end ? p : scan_stop(s, p, FB_JSON_END);
}

/* Names are short: compared without a call. */
static inline bool same_name(fb_span a, fb_span b)
{
    if (a.len != b.len) return false;
    if (a.len < 8) {
        for (size_t i = 0; i < a.len; i++) {
            if (a.p[i] != b.p[i]) return false;
        }
        return true;
    }
    /* The last word overlaps the one before. */
    for (size_t i = 0; i + 8 < a.len; i += 8) {
        if (fb_word_load(a.p + i) != fb_word_load(b.p + i)) return false;
    }
    return fb_word_load(a.p + a.len - 8) == fb_word_load(b.p + b.len - 8);
}

typedef struct walk {
    scan s;
    const fb_json_rules *rules;
    fb_json_watch *watch;
    size_t watched;
    size_t next_watched;
    const uint8_t *text;
    uint32_t depth;
    bool is_object[FB_JSON_DEPTH_MAX + 1];
    uint32_t first_name[FB_JSON_DEPTH_MAX + 1]; /* where the names of that object start */
    uint32_t members[FB_JSON_DEPTH_MAX + 1];
    fb_json_watch *member; /* the watched member of the outermost object that is being read */
    fb_json_names names;
} walk;

/* The watched member of that name, or NULL. */
static fb_json_watch *watched_by(const walk *w, fb_span name, bool escaped)
{
    for (size_t i = 0; i < w->watched; i++) {
        fb_span wanted = w->watch[i].name;
        if (escaped ? fb_json_name_is(name, wanted) : same_name(name, wanted)) return &w->watch[i];
    }
    return NULL;
}

/* Members mostly come in the order of the list: the one behind the last, spelled plainly, is known
 * without a scan. NULL if it is another. */
static inline fb_json_watch *watched_next(const walk *w, const uint8_t *start)
{
    if (w->depth != 1 || w->next_watched >= w->watched) return NULL;
    fb_json_watch *next = &w->watch[w->next_watched];
    size_t len = next->name.len;
    if ((size_t)(w->s.end - start) < len + 2 || start[len + 1] != '"') return NULL;
    return same_name(fb_span_of(start + 1, len), next->name) ? next : NULL;
}

/* p is at the opening bracket. */
static const uint8_t *walk_open(walk *w, const uint8_t *p, bool object)
{
    if (w->depth == w->rules->depth_max) return scan_stop(&w->s, p, FB_JSON_DEPTH);
    w->depth++;
    w->is_object[w->depth] = object;
    w->first_name[w->depth] = w->names.count;
    w->members[w->depth] = 0;
    return p + 1;
}

/* p is at the closing bracket. */
static const uint8_t *walk_close(walk *w, const uint8_t *p)
{
    if (w->is_object[w->depth]) {
        uint32_t twice = fb_json_names_close(&w->names, w->first_name[w->depth]);
        if (twice != FB_NONE) return scan_stop(&w->s, w->text + twice, FB_JSON_DUPLICATE);
    }
    w->depth--;
    return p + 1;
}

/* A member's name and its colon; the result is at its value. */
static const uint8_t *walk_name(walk *w, const uint8_t *start)
{
    scan *s = &w->s;
    if (*start != '"') return scan_stop(s, start, FB_JSON_SYNTAX);
    if (++w->members[w->depth] > w->rules->members_max) {
        return scan_stop(s, start, FB_JSON_MEMBERS);
    }
    bool escaped = false;
    fb_json_watch *member = watched_next(w, start);
    const uint8_t *p =
        member != NULL ? start + member->name.len + 2 : scan_string(s, start + 1, &escaped);
    if (p == NULL) return NULL;
    fb_span name = {start + 1, (size_t)(p - start) - 2};
    if (w->depth == 1) {
        if (member == NULL) member = watched_by(w, name, escaped);
        /* The list itself finds a repeated watched name, so a closed object needs no other. */
        if (member != NULL && member->value.len != 0) {
            return scan_stop(s, start, FB_JSON_DUPLICATE);
        }
        if (member == NULL && w->rules->closed) return scan_stop(s, start, FB_JSON_UNKNOWN);
        if (member != NULL) w->next_watched = (size_t)(member - w->watch) + 1;
        w->member = member;
    }
    if (member == NULL && !fb_json_names_add(&w->names, w->text, name, escaped)) {
        return scan_stop(s, start, FB_JSON_MEMBERS);
    }
    p = scan_next(s, p);
    if (p == NULL) return NULL;
    if (*p != ':') return scan_stop(s, p, FB_JSON_SYNTAX);
    return scan_next(s, p + 1);
}

/* p is behind a value: what the value belongs to goes on, and the result is at its next value, or
 * ends, and so on outwards. With depth 0 the outermost value is complete. */
static const uint8_t *walk_after(walk *w, const uint8_t *p)
{
    scan *s = &w->s;
    while (w->depth != 0) {
        if (w->depth == 1 && w->member != NULL) {
            w->member->value.len = (size_t)(p - w->member->value.p);
            w->member = NULL;
        }
        bool object = w->is_object[w->depth];
        p = scan_next(s, p);
        if (p == NULL) return NULL;
        if (*p == ',') {
            p = scan_next(s, p + 1);
            return p != NULL && object ? walk_name(w, p) : p;
        }
        if (*p != (object ? '}' : ']')) return scan_stop(s, p, FB_JSON_SYNTAX);
        p = walk_close(w, p);
        if (p == NULL) return NULL;
    }
    return p;
}

/* The outermost value; p is at its first byte. */
static const uint8_t *walk_value(walk *w, const uint8_t *p)
{
    do {
        if (w->depth == 1 && w->member != NULL) w->member->value = (fb_span){p, 0};
        bool object = *p == '{';
        if (object || *p == '[') {
            p = walk_open(w, p, object);
            if (p != NULL) p = scan_next(&w->s, p);
            if (p == NULL) return NULL;
            if (*p != (object ? '}' : ']')) {
                if (object) p = walk_name(w, p);
                continue;
            }
            p = walk_close(w, p);
        } else {
            bool escaped = false;
            p = scan_scalar(&w->s, p, &escaped);
            if (w->depth == 1 && w->member != NULL) w->member->escaped = escaped;
        }
        if (p != NULL) p = walk_after(w, p);
    } while (p != NULL && w->depth != 0);
    return p;
}

static const uint8_t *walk_text(walk *w)
{
    static const uint8_t bom[3] = {0xef, 0xbb, 0xbf};
    scan *s = &w->s;
    const uint8_t *p = w->text;
    if (s->end - p >= 3 && memcmp(p, bom, 3) == 0) return scan_stop(s, p, FB_JSON_BOM);
    p = skip_space(s, p);
    if (p == s->end) return scan_stop(s, p, FB_JSON_EMPTY);
    if (w->rules->object && *p != '{') return scan_stop(s, p, FB_JSON_NOT_OBJECT);
    p = walk_value(w, p);
    if (p == NULL) return NULL;
    p = skip_space(s, p);
    return p == s->end ? p : scan_stop(s, p, FB_JSON_TRAILING);
}

fb_json_fault fb_json_scan(fb_span text, const fb_json_rules *rules, fb_json_watch *watch,
                           size_t watched, size_t *at)
{
    static const uint8_t nothing[1] = {0};
    for (size_t i = 0; i < watched; i++) {
        watch[i].value = (fb_span){NULL, 0};
        watch[i].escaped = false;
    }
    walk w; /* the table of names is not cleared: only what was added is read */
    w.text = text.len != 0 ? text.p : nothing;
    w.s = (scan){w.text + text.len, w.text + text.len, FB_JSON_NONE};
    w.rules = rules;
    w.watch = watch;
    w.watched = watched;
    w.next_watched = 0;
    w.depth = 0;
    w.member = NULL;
    w.names.count = 0;
    walk_text(&w);
    /* A watched member whose value was not finished does not count as read. */
    if (w.member != NULL) w.member->value = (fb_span){NULL, 0};
    if (at != NULL) *at = (size_t)(w.s.stopped - w.text);
    return w.s.fault;
}

fb_status fb_json_value_check(fb_span text)
{
    static const fb_json_rules rules = {FB_JSON_DEPTH_MAX, FB_JSON_NAMES_MAX, false, false};
    switch (fb_json_scan(text, &rules, NULL, 0, NULL)) {
    case FB_JSON_NONE:
        return FB_OK;
    case FB_JSON_DEPTH:
    case FB_JSON_MEMBERS:
        return FB_ERR_LIMIT;
    default:
        return FB_ERR_VALUE_MALFORMED;
    }
}

const char *fb_json_fault_text(fb_json_fault fault)
{
    switch (fault) {
#define ROW(name, text)                                                                            \
    case FB_JSON_##name:                                                                           \
        return text;
        FB_JSON_FAULT_TABLE(ROW)
#undef ROW
    }
    return "unknown";
}
