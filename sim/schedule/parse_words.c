/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdlib.h>

#include "sim/schedule/parse.h"

/* Errors. */

void fb_parse_refuse_at(fb_parser *s, uint32_t line, uint32_t column, const char *format, ...)
{
    if (s->failed) return;
    s->failed = true;
    s->error->line = line;
    s->error->column = column;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->error->text, sizeof s->error->text, format, arguments);
    va_end(arguments);
}

void fb_parse_refuse(fb_parser *s, const fb_word *w, const char *what)
{
    char shown[41];
    uint32_t used = 0;
    for (uint32_t i = 0; i < w->len && used < sizeof shown - 1; i++) {
        unsigned char byte = (unsigned char)w->p[i];
        shown[used++] = byte < 0x21 || byte > 0x7e ? '?' : (char)byte;
    }
    shown[used] = 0;
    fb_parse_refuse_at(s, w->line, w->column, "%s: \"%s\"", what, shown);
}

/* Words. */

static void line_next(fb_parser *s)
{
    s->line++;
    s->line_start = s->p;
}

bool fb_word_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void column_check(fb_parser *s, const char *at)
{
    if (at - s->line_start > (ptrdiff_t)FB_SIM_SCHEDULE_COLUMNS) {
        fb_parse_refuse_at(s, s->line, FB_SIM_SCHEDULE_COLUMNS + 1, "a line has at most %u columns",
                           FB_SIM_SCHEDULE_COLUMNS);
    }
}

bool fb_parse_words(fb_parser *s)
{
    s->count = s->at = 0;
    if (s->p == s->end) return false;
    line_next(s);
    while (s->p < s->end && !s->failed) {
        char c = *s->p;
        bool comment = c == '#' && (s->p + 1 == s->end || !fb_word_is_digit(s->p[1]));
        if (comment) {
            while (s->p < s->end && *s->p != '\n') s->p++;
            continue;
        }
        if (c == '\n') {
            column_check(s, s->p);
            s->p++;
            return true;
        }
        if (c == '\\' && s->p + 1 < s->end && s->p[1] == '\n') {
            column_check(s, s->p);
            s->p += 2;
            line_next(s);
            continue;
        }
        if (c == ' ' || c == '\t') {
            s->p++;
            continue;
        }
        const char *from = s->p;
        while (s->p < s->end && *s->p != ' ' && *s->p != '\t' && *s->p != '\n') s->p++;
        uint32_t column = (uint32_t)(from - s->line_start) + 1;
        if (s->count == FB_SIM_SCHEDULE_WORDS_MAX) {
            fb_parse_refuse_at(s, s->line, column, "too many words");
            return true;
        }
        s->words[s->count++] = (fb_word){from, (uint32_t)(s->p - from), s->line, column};
    }
    column_check(s, s->p);
    return true;
}

bool fb_word_is(const fb_word *w, const char *text)
{
    return w->len == strlen(text) && memcmp(w->p, text, w->len) == 0;
}

const fb_word *fb_parse_take(fb_parser *s, const char *what)
{
    static const fb_word none = {"", 0, 0, 0};
    if (s->at < s->count) return &s->words[s->at++];
    const fb_word *last = &s->words[s->count - 1];
    fb_parse_refuse_at(s, last->line, last->column + last->len, "%s is missing", what);
    return &none;
}

bool fb_parse_take_if(fb_parser *s, const char *text)
{
    if (s->at == s->count || !fb_word_is(&s->words[s->at], text)) return false;
    s->at++;
    return true;
}

void fb_parse_take_word(fb_parser *s, const char *text)
{
    const fb_word *w = fb_parse_take(s, text);
    if (!s->failed && !fb_word_is(w, text)) {
        char what[48];
        snprintf(what, sizeof what, "expected \"%s\"", text);
        fb_parse_refuse(s, w, what);
    }
}

void fb_parse_line_end(fb_parser *s)
{
    if (s->failed || s->at == s->count) return;
    fb_parse_refuse(s, &s->words[s->at], "one word too many");
}

/* Numbers. */

bool fb_parse_digits(const char **p, const char *end, uint64_t *out)
{
    uint64_t value = 0;
    const char *from = *p;
    for (; *p < end && fb_word_is_digit(**p); (*p)++) {
        uint64_t digit = (uint64_t)(**p - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *out = value;
    return *p != from;
}

/* The bytes from p to end as one decimal number in low..high. */
uint64_t fb_parse_number_in(fb_parser *s, const fb_word *w, const char *p, const char *end,
                            uint64_t low, uint64_t high, const char *what)
{
    uint64_t value;
    if (s->failed) return low;
    if (!fb_parse_digits(&p, end, &value) || p != end || value < low || value > high) {
        fb_parse_refuse(s, w, what);
        return low;
    }
    return value;
}

uint64_t fb_parse_number(fb_parser *s, const fb_word *w, uint64_t low, uint64_t high,
                         const char *what)
{
    return fb_parse_number_in(s, w, w->p, w->p + w->len, low, high, what);
}

/* 1.25s, 20ms, 7us, 1ns, 2m, 1h: exact nanoseconds. */
static bool time_read(const char *p, const char *end, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t ns;
        uint32_t places; /* decimals that are whole nanoseconds */
    } units[] = {{"ns", 1, 0},
                 {"us", 1000, 3},
                 {"ms", 1000000, 6},
                 {"s", 1000000000, 9},
                 {"m", UINT64_C(60000000000), 0},
                 {"h", UINT64_C(3600000000000), 0}};
    uint64_t whole, part = 0;
    uint32_t places = 0;
    if (!fb_parse_digits(&p, end, &whole)) return false;
    if (p < end && *p == '.') {
        const char *from = ++p;
        if (end - p > 9 + 2 || !fb_parse_digits(&p, end, &part)) return false;
        places = (uint32_t)(p - from);
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t len = strlen(units[i].name);
        if ((size_t)(end - p) != len || memcmp(p, units[i].name, len) != 0) continue;
        if (places > units[i].places || whole > FB_SIM_SCHEDULE_TIME_MAX / units[i].ns)
            return false;
        for (; places < units[i].places; places++) part *= 10;
        *out = whole * units[i].ns + part;
        return *out <= FB_SIM_SCHEDULE_TIME_MAX;
    }
    return false;
}

uint64_t fb_parse_time_in(fb_parser *s, const fb_word *w, const char *p, const char *end)
{
    uint64_t value = 0;
    if (!s->failed && !time_read(p, end, &value)) fb_parse_refuse(s, w, "not a time");
    return value;
}

uint64_t fb_parse_time(fb_parser *s)
{
    const fb_word *w = fb_parse_take(s, "a time");
    return fb_parse_time_in(s, w, w->p, w->p + w->len);
}

/* Names. */

uint32_t fb_parse_node_in(fb_parser *s, const fb_word *w, const char *p, const char *end)
{
    uint64_t node = UINT32_MAX;
    if (s->failed) return 0;
    if (end - p == 1 && *p >= 'A' && *p <= 'Z') {
        node = (uint64_t)(*p - 'A');
    } else if (end - p > 1 && *p == 'n') {
        p++;
        if (!fb_parse_digits(&p, end, &node) || p != end || node < 26) node = UINT32_MAX;
    }
    if (node >= s->out->nodes) {
        fb_parse_refuse(s, w, "no node of this schedule");
        return 0;
    }
    return (uint32_t)node;
}

uint32_t fb_parse_node(fb_parser *s)
{
    const fb_word *w = fb_parse_take(s, "a node");
    return fb_parse_node_in(s, w, w->p, w->p + w->len);
}

/* A-B or A->B. */
void fb_parse_pair(fb_parser *s, const char *between, bool alone_too, fb_sim_line *line)
{
    const fb_word *w = fb_parse_take(s, "two nodes");
    const char *end = w->p + w->len;
    const char *at = w->p;
    while (at < end && *at != '-') at++;
    if (alone_too && at == end) {
        line->a = line->b = fb_parse_node_in(s, w, w->p, end);
        return;
    }
    size_t len = strlen(between);
    if (!s->failed && ((size_t)(end - at) < len || memcmp(at, between, len) != 0)) {
        fb_parse_refuse(s, w, "not two nodes");
        return;
    }
    if (s->failed) return;
    line->a = fb_parse_node_in(s, w, w->p, at);
    line->b = fb_parse_node_in(s, w, at + len, end);
    if (!s->failed && line->a == line->b) fb_parse_refuse(s, w, "one node twice");
}

uint32_t fb_word_name(const fb_word *w, const char *const *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (names[i] != NULL && fb_word_is(w, names[i])) return i;
    }
    return count;
}

uint64_t fb_parse_nodes(fb_parser *s)
{
    uint64_t nodes = 0;
    do {
        uint64_t bit = UINT64_C(1) << fb_parse_node(s);
        if (!s->failed && (nodes & bit) != 0) {
            fb_parse_refuse(s, &s->words[s->at - 1], "one node twice");
        }
        nodes |= bit;
    } while (!s->failed && s->at < s->count);
    return nodes;
}
