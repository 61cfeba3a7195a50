/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the text of a schedule. One pass, every byte looked at a bounded number of times; nothing
 * of what is not understood is skipped. docs/SCHEDULES.md has the grammar. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "sim/main_sim.h"
#include "sim/mutants.h"
#include "sim/schedule/schedule.h"
#include "sim/workload/feeds.h"

typedef struct word {
    const char *p;
    uint32_t len;
    uint32_t line, column;
} word;

typedef struct parser {
    const char *p, *end;
    uint32_t line;
    const char *line_start;
    fb_sim_plan *out;
    fb_sim_plan_error *error;
    bool failed;
    word words[FB_SIM_SCHEDULE_WORDS_MAX];
    uint32_t count;   /* of words on this line */
    uint32_t at;      /* the next one */
    uint32_t windows; /* of this round */
    uint32_t seen;    /* header lines, as a bit set */
} parser;

/* Errors. */

static void refuse_at(parser *s, uint32_t line, uint32_t column, const char *format, ...)
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

/* The word as it may be shown: bytes of the file must not reach a terminal. */
static void refuse(parser *s, const word *w, const char *what)
{
    char shown[41];
    uint32_t used = 0;
    for (uint32_t i = 0; i < w->len && used < sizeof shown - 1; i++) {
        unsigned char byte = (unsigned char)w->p[i];
        shown[used++] = byte < 0x21 || byte > 0x7e ? '?' : (char)byte;
    }
    shown[used] = 0;
    refuse_at(s, w->line, w->column, "%s: \"%s\"", what, shown);
}

/* Words. */

static void line_next(parser *s)
{
    s->line++;
    s->line_start = s->p;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void column_check(parser *s, const char *at)
{
    if (at - s->line_start > (ptrdiff_t)FB_SIM_SCHEDULE_COLUMNS) {
        refuse_at(s, s->line, FB_SIM_SCHEDULE_COLUMNS + 1, "a line has at most %u columns",
                  FB_SIM_SCHEDULE_COLUMNS);
    }
}

/* Splits the next line, continuations included. False at the end of the text. */
static bool words_read(parser *s)
{
    s->count = s->at = 0;
    if (s->p == s->end) return false;
    line_next(s);
    while (s->p < s->end && !s->failed) {
        char c = *s->p;
        bool comment = c == '#' && (s->p + 1 == s->end || !is_digit(s->p[1]));
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
            refuse_at(s, s->line, column, "too many words");
            return true;
        }
        s->words[s->count++] = (word){from, (uint32_t)(s->p - from), s->line, column};
    }
    column_check(s, s->p);
    return true;
}

static bool is(const word *w, const char *text)
{
    return w->len == strlen(text) && memcmp(w->p, text, w->len) == 0;
}

/* The next word; an error and an empty one when the line is over. */
static const word *take(parser *s, const char *what)
{
    static const word none = {"", 0, 0, 0};
    if (s->at < s->count) return &s->words[s->at++];
    const word *last = &s->words[s->count - 1];
    refuse_at(s, last->line, last->column + last->len, "%s is missing", what);
    return &none;
}

/* Takes the next word when it is this one. */
static bool take_if(parser *s, const char *text)
{
    if (s->at == s->count || !is(&s->words[s->at], text)) return false;
    s->at++;
    return true;
}

static void take_word(parser *s, const char *text)
{
    const word *w = take(s, text);
    if (!s->failed && !is(w, text)) {
        char what[48];
        snprintf(what, sizeof what, "expected \"%s\"", text);
        refuse(s, w, what);
    }
}

static void line_end(parser *s)
{
    if (!s->failed && s->at < s->count) refuse(s, &s->words[s->at], "one word too many");
}

/* Numbers. */

static bool digits(const char **p, const char *end, uint64_t *out)
{
    uint64_t value = 0;
    const char *from = *p;
    for (; *p < end && is_digit(**p); (*p)++) {
        uint64_t digit = (uint64_t)(**p - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    *out = value;
    return *p != from;
}

/* The bytes from p to end as one decimal number in low..high. */
static uint64_t number_in(parser *s, const word *w, const char *p, const char *end, uint64_t low,
                          uint64_t high, const char *what)
{
    uint64_t value;
    if (s->failed) return low;
    if (!digits(&p, end, &value) || p != end || value < low || value > high) {
        refuse(s, w, what);
        return low;
    }
    return value;
}

static uint64_t number(parser *s, const word *w, uint64_t low, uint64_t high, const char *what)
{
    return number_in(s, w, w->p, w->p + w->len, low, high, what);
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
    if (!digits(&p, end, &whole)) return false;
    if (p < end && *p == '.') {
        const char *from = ++p;
        if (end - p > 9 + 2 || !digits(&p, end, &part)) return false;
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

static uint64_t time_in(parser *s, const word *w, const char *p, const char *end)
{
    uint64_t value = 0;
    if (!s->failed && !time_read(p, end, &value)) refuse(s, w, "not a time");
    return value;
}

static uint64_t time_take(parser *s)
{
    const word *w = take(s, "a time");
    return time_in(s, w, w->p, w->p + w->len);
}

/* Names. */

static uint32_t node_in(parser *s, const word *w, const char *p, const char *end)
{
    uint64_t node = UINT32_MAX;
    if (s->failed) return 0;
    if (end - p == 1 && *p >= 'A' && *p <= 'Z') {
        node = (uint64_t)(*p - 'A');
    } else if (end - p > 1 && *p == 'n') {
        p++;
        if (!digits(&p, end, &node) || p != end || node < 26) node = UINT32_MAX;
    }
    if (node >= s->out->nodes) {
        refuse(s, w, "no node of this schedule");
        return 0;
    }
    return (uint32_t)node;
}

static uint32_t node_take(parser *s)
{
    const word *w = take(s, "a node");
    return node_in(s, w, w->p, w->p + w->len);
}

/* A-B or A->B. */
static void pair_take(parser *s, const char *between, bool alone_too, fb_sim_line *line)
{
    const word *w = take(s, "two nodes");
    const char *end = w->p + w->len;
    const char *at = w->p;
    while (at < end && *at != '-') at++;
    if (alone_too && at == end) {
        line->a = line->b = node_in(s, w, w->p, end);
        return;
    }
    size_t len = strlen(between);
    if (!s->failed && ((size_t)(end - at) < len || memcmp(at, between, len) != 0)) {
        refuse(s, w, "not two nodes");
        return;
    }
    if (s->failed) return;
    line->a = node_in(s, w, w->p, at);
    line->b = node_in(s, w, at + len, end);
    if (!s->failed && line->a == line->b) refuse(s, w, "one node twice");
}

static uint32_t name_of(const word *w, const char *const *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (names[i] != NULL && is(w, names[i])) return i;
    }
    return count;
}

/* The header. */

enum {
    SEEN_SEED,
    SEEN_NODES,
    SEEN_BUG,
    SEEN_EXPECT,
    SEEN_HASH,
    SEEN_CALM,
    SEEN_SETUP,
    SEEN_SETTLE,
    SEEN_SECOND,
    SEEN_STEPS,
    SEEN_DOCUMENTS,
};

static void text_take(parser *s, const char *what, char *out, size_t cap)
{
    const word *w = take(s, what);
    if (s->failed) return;
    if (w->len >= cap) {
        refuse(s, w, "too long");
        return;
    }
    for (uint32_t i = 0; i < w->len; i++) {
        char c = w->p[i];
        if ((c < 'a' || c > 'z') && !is_digit(c) && c != '-') {
            refuse(s, w, "not a name");
            return;
        }
    }
    memcpy(out, w->p, w->len);
    out[w->len] = 0;
}

static void seed_line(parser *s)
{
    const word *w = take(s, "a seed");
    fb_sim_config config = fb_sim_config_default();
    char text[sizeof s->out->seed_text];
    if (s->failed) return;
    if (w->len >= sizeof text || memchr(w->p, 0, w->len) != NULL) {
        refuse(s, w, "not a seed");
        return;
    }
    memcpy(text, w->p, w->len);
    text[w->len] = 0;
    if (!fb_sim_parse_seed(text, &config)) {
        refuse(s, w, "not a seed");
        return;
    }
    memcpy(s->out->seed_text, text, sizeof text);
}

static void expect_line(parser *s)
{
    const word *w = take(s, "pass or violates");
    if (is(w, "pass")) {
        s->out->expect = FB_SIM_EXPECT_PASS;
    } else if (is(w, "violates")) {
        s->out->expect = FB_SIM_EXPECT_VIOLATES;
        text_take(s, "a check", s->out->check, sizeof s->out->check);
    } else if (!s->failed) {
        refuse(s, w, "neither pass nor violates");
    }
}

static void hash_line(parser *s)
{
    const word *w = take(s, "a hash");
    if (s->failed) return;
    if (w->len != 32) {
        refuse(s, w, "not 32 hex digits");
        return;
    }
    uint64_t half[2] = {0, 0};
    for (uint32_t i = 0; i < 32; i++) {
        char c = w->p[i];
        uint64_t digit = is_digit(c) ? (uint64_t)(c - '0') : (uint64_t)(c - 'a') + 10;
        if (!is_digit(c) && (c < 'a' || c > 'f')) {
            refuse(s, w, "not 32 hex digits");
            return;
        }
        half[i / 16] = half[i / 16] << 4 | digit;
    }
    s->out->has_hash = true;
    s->out->hash = (fb_hash128){.lo = half[1], .hi = half[0]};
}

static void set_line(parser *s)
{
    const word *w = take(s, "a setting");
    for (uint32_t i = 0; i < fb_sim_setting_count && !s->failed; i++) {
        const fb_sim_setting_row *row = &fb_sim_setting_rows[i];
        if (!is(w, row->name)) continue;
        for (uint32_t k = 0; k < s->out->setting_count; k++) {
            if (s->out->settings[k].row == i) refuse(s, w, "set twice");
        }
        const word *v = take(s, "a value");
        uint64_t value = row->is_time ? time_in(s, v, v->p, v->p + v->len)
                                      : number(s, v, 0, UINT32_MAX, "not a number");
        if (!s->failed && (value < row->least || value > row->most)) {
            refuse(s, v, "beyond what this setting may be");
        }
        if (!s->failed) {
            s->out->settings[s->out->setting_count++] = (fb_sim_setting){i, value};
        }
        return;
    }
    if (!s->failed) refuse(s, w, "no setting of this name");
}

/* The rest of the line, as a bit set. */
static uint64_t nodes_take(parser *s)
{
    uint64_t nodes = 0;
    do {
        uint64_t bit = UINT64_C(1) << node_take(s);
        if (!s->failed && (nodes & bit) != 0) {
            refuse(s, &s->words[s->at - 1], "one node twice");
        }
        nodes |= bit;
    } while (!s->failed && s->at < s->count);
    return nodes;
}

static bool header_line(parser *s, const word *verb)
{
    static const char *const verbs[] = {"seed",  "nodes",  "bug",    "expect", "hash",     "calm",
                                        "setup", "settle", "second", "steps",  "documents"};
    if (is(verb, "set")) {
        if (s->out->round_count != 0) refuse(s, verb, "this comes before the first round");
        set_line(s);
        return true;
    }
    uint32_t which = name_of(verb, verbs, sizeof verbs / sizeof verbs[0]);
    if (which == sizeof verbs / sizeof verbs[0]) return false;
    if (s->out->round_count != 0) refuse(s, verb, "this comes before the first round");
    if ((s->seen >> which & 1) != 0) refuse(s, verb, "said twice");
    s->seen |= 1u << which;
    switch (which) {
    case SEEN_SEED:
        seed_line(s);
        break;
    case SEEN_NODES:
        s->out->nodes = (uint32_t)number(s, take(s, "a number"), 2, FB_SIM_SCHEDULE_NODES_MAX,
                                         "not 2 to 64 nodes");
        break;
    case SEEN_BUG: {
        const word *w = take(s, "a planted bug");
        s->at -= !s->failed;
        text_take(s, "a planted bug", s->out->bug, sizeof s->out->bug);
        if (!s->failed && fb_sim_mutant_of(s->out->bug) == 0) {
            refuse(s, w, "no planted bug of this name");
        }
        break;
    }
    case SEEN_EXPECT:
        expect_line(s);
        break;
    case SEEN_HASH:
        hash_line(s);
        break;
    case SEEN_CALM:
        s->out->calm = true;
        break;
    case SEEN_SETUP:
        s->out->setup_ns = time_take(s);
        break;
    case SEEN_STEPS:
        s->out->steps =
            number(s, take(s, "a number"), 1, UINT64_MAX / 2, "not a number of steps from 1");
        break;
    case SEEN_SECOND:
        s->out->second = nodes_take(s);
        break;
    case SEEN_DOCUMENTS:
        s->out->documents = nodes_take(s);
        break;
    default:
        s->out->settle_ns = time_take(s);
        break;
    }
    return true;
}

/* Rounds. */

static void round_line(parser *s, const word *verb)
{
    uint64_t number_of = number(s, take(s, "the round's number"), 1, UINT32_MAX, "not a number");
    take_word(s, "for");
    uint64_t length = time_take(s);
    uint64_t core = 0;
    if (take_if(s, "core")) {
        core = nodes_take(s);
    }
    if (s->failed) return;
    uint32_t count = s->out->round_count;
    if (count != 0 && s->out->rounds[count - 1].number >= number_of) {
        refuse(s, verb, "numbers of rounds rise");
        return;
    }
    fb_sim_plan_round *round = fb_sim_plan_round_add(s->out);
    if (round == NULL) {
        refuse(s, verb, "too many rounds");
        return;
    }
    *round = (fb_sim_plan_round){number_of, length, core, verb->line};
    s->windows = 0;
}

/* Windows. */

static void groups_take(parser *s, fb_sim_line *line)
{
    uint32_t group = 1;
    uint64_t named = 0;
    while (!s->failed && s->at < s->count && s->words[s->at].p[0] != '#') {
        const word *w = &s->words[s->at];
        if (take_if(s, "|")) {
            /* The fourth is with whoever is not named. */
            if (++group == 5) refuse(s, w, "at most four groups");
            continue;
        }
        uint32_t node = node_take(s);
        uint64_t bit = UINT64_C(1) << (node % 64);
        if (!s->failed && (named & bit) != 0) refuse(s, w, "one node twice");
        named |= bit;
        if ((group & 1) != 0) line->q |= bit;
        if ((group & 2) != 0) line->mask |= bit;
    }
    fb_sim_groups_normalise(s->out->nodes, &line->q, &line->mask);
}

static void who_take(parser *s, const fb_sim_shape *shape, fb_sim_line *line)
{
    switch (shape->who) {
    case FB_SIM_WHO_NONE:
        return;
    case FB_SIM_WHO_NODE:
        line->a = line->b = node_take(s);
        return;
    case FB_SIM_WHO_PATHS:
        pair_take(s, "-", true, line);
        return;
    case FB_SIM_WHO_PAIR:
        pair_take(s, "-", false, line);
        return;
    case FB_SIM_WHO_ARROW:
        pair_take(s, "->", false, line);
        return;
    case FB_SIM_WHO_BRIDGE:
        line->a = line->b = node_take(s);
        take_word(s, "of");
        groups_take(s, line);
        return;
    case FB_SIM_WHO_GROUPS:
        groups_take(s, line);
        return;
    case FB_SIM_WHO_ANY:
        break;
    }
    line->a = node_take(s);
    line->b = node_take(s);
    take_word(s, "p");
    line->p = number(s, take(s, "a number"), 0, UINT64_MAX, "not a number");
    take_word(s, "q");
    line->q = number(s, take(s, "a number"), 0, UINT64_MAX, "not a number");
    take_word(s, "mask");
    line->mask = number(s, take(s, "a number"), 0, UINT64_MAX, "not a number");
}

static uint64_t value_take(parser *s, fb_sim_shape_type type, uint64_t most, fb_sim_line *line)
{
    if (type == FB_SIM_SHAPE_NONE) return 0;
    const word *w = take(s, "a value");
    const char *p = w->p, *end = w->p + w->len;
    if (s->failed) return 0;
    if (type == FB_SIM_SHAPE_BY_SECONDS || type == FB_SIM_SHAPE_BY_NUMBER) {
        if (*p != '+' && *p != '-') {
            refuse(s, w, "a value with its sign");
            return 0;
        }
        line->mask = *p++ == '-';
    }
    switch (type) {
    case FB_SIM_SHAPE_TIME: {
        uint64_t ns = time_in(s, w, p, end);
        if (!s->failed && (ns == 0 || ns > most)) refuse(s, w, "a time out of range");
        return ns;
    }
    case FB_SIM_SHAPE_SECONDS:
    case FB_SIM_SHAPE_BY_SECONDS: {
        /* Beyond the times of a schedule: clocks may be off by decades. */
        static const struct {
            char unit;
            uint64_t seconds;
        } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
        uint64_t value;
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
            if (end == p || end[-1] != units[i].unit) continue;
            const char *q = p;
            if (!digits(&q, end - 1, &value) || q != end - 1 || value == 0 ||
                value > most / units[i].seconds) {
                break;
            }
            return value * units[i].seconds;
        }
        refuse(s, w, "not whole seconds in range");
        return 0;
    }
    case FB_SIM_SHAPE_CRASH_AT: {
        uint32_t kind = name_of(w, fb_sim_crash_at_names, FB_SIM_CRASH_AT_KINDS + 1);
        if (kind > FB_SIM_CRASH_AT_KINDS) {
            refuse(s, w, "not io, send or timer");
            return 0;
        }
        return kind;
    }
    case FB_SIM_SHAPE_RATIO:
        if (end - p < 3 || p[0] != '1' || p[1] != '/') {
            refuse(s, w, "not 1/N");
            return 0;
        }
        return number_in(s, w, p + 2, end, 1, most, "not 1/N");
    case FB_SIM_SHAPE_OF_16:
        if (end - p < 4 || memcmp(end - 3, "/16", 3) != 0) {
            refuse(s, w, "not N/16");
            return 0;
        }
        return number_in(s, w, p, end - 3, 1, 16, "not N/16");
    default:
        return number_in(s, w, p, end, 1, most, "not a number in range");
    }
}

static void window_line(parser *s, const word *times, const char *dots)
{
    fb_sim_line line = {.kind = FB_SIM_LINE_WINDOW, .key = 1, .source = times->line};
    line.at_ns = time_in(s, times, times->p, dots);
    line.until_ns = time_in(s, times, dots + 2, times->p + times->len);
    if (!s->failed && line.until_ns < line.at_ns) refuse(s, times, "it ends before it begins");
    const word *fault = take(s, "a fault");
    while (line.fault < FB_SIM_FAULTS && !is(fault, fb_sim_fault_rows[line.fault].name)) {
        line.fault++;
    }
    if (!s->failed && line.fault == FB_SIM_FAULTS) refuse(s, fault, "no fault of this name");
    if (s->failed) return;
    if (s->out->calm) {
        refuse(s, fault, "a calm run has no weather");
        return;
    }
    const fb_sim_shape *shape = fb_sim_shape_of(line.fault);
    who_take(s, shape, &line);
    if (shape->p_word != NULL) take_word(s, shape->p_word);
    if (shape->who != FB_SIM_WHO_ANY) {
        line.p = value_take(s, shape->p_type, shape->p_most, &line);
    }
    bool said = shape->q_default == 0 || (s->at < s->count && is(&s->words[s->at], shape->q_word));
    if (shape->q_word != NULL && !said) line.q = shape->q_default;
    if (shape->q_word != NULL && said) {
        take_word(s, shape->q_word);
        uint64_t most = shape->q_type == FB_SIM_SHAPE_TIME ? FB_SIM_SCHEDULE_TIME_MAX
                                                           : FB_SIM_SCHEDULE_COUNT_MAX;
        line.q = value_take(s, shape->q_type, most, &line);
    }
    if (!s->failed && s->at < s->count && s->words[s->at].p[0] == '#') {
        const word *key = take(s, "a key");
        line.key =
            (uint32_t)number_in(s, key, key->p + 1, key->p + key->len, 1, 65535, "not a key");
    }
    if (s->failed) return;
    if (++s->windows > FB_SIM_WINDOWS_MAX) {
        refuse(s, times, "too many windows in one round");
        return;
    }
    fb_sim_line *added = fb_sim_plan_line_add(s->out);
    if (added == NULL) {
        refuse(s, times, "too many lines");
        return;
    }
    line.round = added->round;
    *added = line;
}

/* Operations. */

static void fields_take(parser *s, fb_sim_op *op)
{
    while (!s->failed && s->at < s->count && s->words[s->at].p[0] != '#') {
        const word *w = &s->words[s->at++];
        const char *p = w->p, *end = w->p + w->len;
        bool unset = *p == '-';
        if (unset) p++;
        if (end - p < 2 || *p != 'f' || !is_digit(p[1]) || p[1] - '0' >= (int)FB_SIM_FIELDS) {
            refuse(s, w, "not a field");
            return;
        }
        uint32_t f = (uint32_t)(p[1] - '0');
        uint8_t bit = (uint8_t)(1u << f);
        p += 2;
        if ((op->fields & bit) != 0) refuse(s, w, "one field twice");
        op->fields |= bit;
        if (unset) {
            if (op->operation != FB_SIM_OP_CHANGE) refuse(s, w, "only a change takes fields away");
            op->unset |= bit;
        } else if (end - p == 3 && memcmp(p, "=\"\"", 3) == 0) {
            op->empty |= bit;
            p = end;
        } else if (p < end && *p == '+') {
            op->pad[f] = (uint16_t)number_in(s, w, p + 1, end, 1, FB_SIM_PAD_MAX, "not a length");
            p = end;
        }
        if (!s->failed && p != end) refuse(s, w, "not a field");
    }
}

static uint8_t record_take(parser *s)
{
    const word *record = take(s, "a record");
    if (s->failed) return 0;
    if (record->len < 2 || record->p[0] != 'r') {
        refuse(s, record, "not a record");
        return 0;
    }
    return (uint8_t)number_in(s, record, record->p + 1, record->p + record->len, 0,
                              FB_SIM_RECORDS - 1, "not a record");
}

static void op_line(parser *s, const word *time)
{
    fb_sim_line line = {
        .kind = FB_SIM_LINE_OP, .source = time->line, .within_ns = FB_SIM_SCHEDULE_WITHIN_NS};
    line.at_ns = time_in(s, time, time->p, time->p + time->len);
    if (take_if(s, "within")) line.within_ns = time_take(s);
    const word *who = take(s, "a node");
    const char *slash = who->len > 2 && who->p[who->len - 2] == '/' ? who->p + who->len - 2 : NULL;
    const char *end = who->p + who->len;
    line.a = line.b = node_in(s, who, who->p, slash != NULL ? slash : end);
    if (slash != NULL) {
        line.client = (uint32_t)number_in(s, who, slash + 1, end, 1, FB_SIM_CLIENTS,
                                          "no client of this number") -
                      1;
    }
    const word *verb = take(s, "an operation");
    uint32_t operation = name_of(verb, fb_sim_operation_names, FB_SIM_OPS);
    if (!s->failed && operation == FB_SIM_OPS) refuse(s, verb, "no operation of this name");
    line.op.operation = (uint8_t)operation;
    if (!s->failed && operation == FB_SIM_OP_LIST) {
        line.op.items = (uint8_t)number(s, take(s, "a number"), 1, 255, "not 1 to 255 records");
        if (take_if(s, "after")) line.op.record = (uint8_t)(record_take(s) + 1);
    } else if (!s->failed && operation == FB_SIM_OP_WATCH) {
        const word *from = take(s, "where it begins");
        uint32_t at = name_of(from, fb_sim_feed_names, FB_SIM_FEED_FROMS);
        if (!s->failed && at == FB_SIM_FEED_FROMS) refuse(s, from, "no beginning of a feed");
        line.op.items = (uint8_t)(at + (take_if(s, "slow") ? FB_SIM_FEED_SLOW : 0));
    } else if (!s->failed) {
        line.op.record = record_take(s);
        if (operation == FB_SIM_OP_ADD) {
            line.op.items = (uint8_t)number(s, take(s, "a number"), 1, 255, "not 1 to 255");
        } else if (operation >= FB_SIM_OP_INSERT) {
            line.op.items = (uint8_t)number(s, take(s, "an element"), 0, FB_SIM_ELEMENTS - 1,
                                            "no element of this number");
        } else if (operation != FB_SIM_OP_GET && operation != FB_SIM_OP_DELETE) {
            fields_take(s, &line.op);
            /* Without a name of its own: that of its place. Nothing must be taken away before it.
             */
            line.op.number = s->out->line_count + 1000000;
            if (!s->failed && s->at < s->count) {
                const word *key = take(s, "a number");
                line.op.number = (uint32_t)number_in(s, key, key->p + 1, key->p + key->len, 0,
                                                     UINT32_MAX, "not a number");
            }
        }
    }
    if (s->failed) return;
    fb_sim_line *added = fb_sim_plan_line_add(s->out);
    if (added == NULL) {
        refuse(s, time, "too many lines");
        return;
    }
    line.round = added->round;
    *added = line;
}

/* Messages and effects. */

static void addressed_line(parser *s, const word *verb, uint32_t act)
{
    fb_sim_line line = {.source = verb->line, .act = act, .nth = 1};
    if (act == FB_SIM_MESSAGE_ACTS) {
        line.kind = FB_SIM_LINE_CRASH;
        line.a = line.b = node_take(s);
        take_word(s, "at");
        const word *kind = take(s, "an effect");
        line.act = 0;
        line.what = 0;
        while (line.what <= FB_FX_NEED_START && (fb_sim_effect_name(line.what) == NULL ||
                                                 !is(kind, fb_sim_effect_name(line.what)))) {
            line.what++;
        }
        if (!s->failed && line.what > FB_FX_NEED_START) refuse(s, kind, "no effect of this name");
    } else {
        line.kind = FB_SIM_LINE_MESSAGE;
        pair_take(s, "->", false, &line);
        const word *kind = take(s, "a kind of message");
        line.what = name_of(kind, fb_sim_message_kind_names, FB_SIM_MESSAGE_KINDS);
        if (!s->failed && line.what == FB_SIM_MESSAGE_KINDS) {
            refuse(s, kind, "no message of this kind");
        }
    }
    line.nth = (uint32_t)number(s, take(s, "which one"), 1, UINT32_MAX, "not a number");
    if (take_if(s, "life")) {
        line.life = (uint32_t)number(s, take(s, "a number"), 1, UINT32_MAX, "not a number");
    }
    if (line.kind == FB_SIM_LINE_CRASH) {
        line.span_ns = UINT64_C(1000000000);
        if (take_if(s, "down")) line.span_ns = time_take(s);
    } else if (act == FB_SIM_MESSAGE_DELAY) {
        take_word(s, "by");
        line.span_ns = time_take(s);
    }
    if (s->failed) return;
    fb_sim_line *added = fb_sim_plan_line_add(s->out);
    if (added == NULL) {
        refuse(s, verb, "too many lines");
        return;
    }
    line.round = added->round;
    *added = line;
}

static const char *dots_in(const word *w)
{
    for (uint32_t i = 0; i + 1 < w->len; i++) {
        if (w->p[i] == '.' && w->p[i + 1] == '.') return w->p + i;
    }
    return NULL;
}

static void line_read(parser *s)
{
    const word *verb = take(s, "a verb");
    if (header_line(s, verb)) return;
    if (is(verb, "round")) {
        round_line(s, verb);
        return;
    }
    uint32_t act = name_of(verb, fb_sim_message_act_names, FB_SIM_MESSAGE_ACTS);
    bool addressed = act != FB_SIM_MESSAGE_ACTS || is(verb, "crash");
    if (!addressed && !is_digit(verb->p[0])) {
        refuse(s, verb, "no verb of this name");
        return;
    }
    if (s->out->round_count == 0) {
        refuse(s, verb, "this belongs to a round");
        return;
    }
    if (addressed) {
        addressed_line(s, verb, act);
    } else if (dots_in(verb) != NULL) {
        window_line(s, verb, dots_in(verb));
    } else {
        op_line(s, verb);
    }
}

bool fb_sim_plan_parse(const char *text, size_t len, fb_sim_plan *out, fb_sim_plan_error *error)
{
    fb_sim_plan_init(out);
    *error = (fb_sim_plan_error){0};
    parser *s = calloc(1, sizeof *s);
    if (s == NULL || len > FB_SIM_SCHEDULE_BYTES_MAX) {
        snprintf(error->text, sizeof error->text, "the text is too long");
        free(s);
        return false;
    }
    *s = (parser){.p = text, .end = text + len, .out = out, .error = error};
    bool first = true;
    while (!s->failed && words_read(s)) {
        if (s->count == 0 || s->failed) continue;
        if (first) {
            take_word(s, "schedule");
            number(s, take(s, "a version"), FB_SIM_SCHEDULE_VERSION, FB_SIM_SCHEDULE_VERSION,
                   "not a version that this program knows");
            first = false;
        } else {
            line_read(s);
        }
        line_end(s);
    }
    if (first)
        refuse_at(s, 1, 1, "a schedule begins with \"schedule %u\"", FB_SIM_SCHEDULE_VERSION);
    bool good = !s->failed;
    free(s);
    if (!good) fb_sim_plan_free(out);
    return good;
}

bool fb_sim_plan_read(const char *path, fb_sim_plan *out, fb_sim_plan_error *error)
{
    fb_sim_plan_init(out);
    *error = (fb_sim_plan_error){0};
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        snprintf(error->text, sizeof error->text, "%s", strerror(errno));
        return false;
    }
    size_t cap = 65536, len = 0;
    char *text = malloc(cap);
    while (text != NULL) {
        len += fread(text + len, 1, cap - len, file);
        if (len < cap || cap > FB_SIM_SCHEDULE_BYTES_MAX) break;
        char *larger = realloc(text, cap * 2);
        if (larger == NULL) break;
        text = larger;
        cap *= 2;
    }
    bool broken = ferror(file) != 0 || text == NULL;
    fclose(file);
    bool good = !broken && fb_sim_plan_parse(text, len, out, error);
    if (broken) snprintf(error->text, sizeof error->text, "cannot be read");
    free(text);
    return good;
}
