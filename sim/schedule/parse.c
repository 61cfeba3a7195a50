/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the text of a schedule. One pass, every byte looked at a bounded number of times; nothing
 * of what is not understood is skipped. docs/SCHEDULES.md has the grammar. */
#include <errno.h>
#include <stdlib.h>

#include "sim/main_sim.h"
#include "sim/mutants.h"
#include "sim/schedule/parse.h"
#include "sim/workload/feeds.h"

/* Rounds. */

static void round_line(fb_parser *s, const fb_word *verb)
{
    uint64_t number_of =
        fb_parse_number(s, fb_parse_take(s, "the round's number"), 1, UINT32_MAX, "not a number");
    fb_parse_take_word(s, "for");
    uint64_t length = fb_parse_time(s);
    uint64_t core = 0;
    if (fb_parse_take_if(s, "core")) {
        core = fb_parse_nodes(s);
    }
    if (s->failed) return;
    uint32_t count = s->out->round_count;
    if (count != 0 && s->out->rounds[count - 1].number >= number_of) {
        fb_parse_refuse(s, verb, "numbers of rounds rise");
        return;
    }
    fb_sim_plan_round *round = fb_sim_plan_round_add(s->out);
    if (round == NULL) {
        fb_parse_refuse(s, verb, "too many rounds");
        return;
    }
    *round = (fb_sim_plan_round){number_of, length, core, verb->line};
    s->windows = 0;
}

static void line_add(fb_parser *s, const fb_word *w, fb_sim_line *line)
{
    fb_sim_line *added =
        ++s->alone > FB_SIM_SCHEDULE_LINES_MAX ? NULL : fb_sim_plan_line_add(s->out);
    if (added == NULL) {
        fb_parse_refuse(s, w, "too many lines");
        return;
    }
    line->round = added->round;
    *added = *line;
}

/* Windows. */

static void groups_take(fb_parser *s, fb_sim_line *line)
{
    uint32_t group = 1;
    uint64_t named = 0;
    while (!s->failed && s->at < s->count && s->words[s->at].p[0] != '#') {
        const fb_word *w = &s->words[s->at];
        if (fb_parse_take_if(s, "|")) {
            /* The fourth is with whoever is not named. */
            if (++group == 5) fb_parse_refuse(s, w, "at most four groups");
            continue;
        }
        uint32_t node = fb_parse_node(s);
        uint64_t bit = UINT64_C(1) << (node % 64);
        if (!s->failed && (named & bit) != 0) fb_parse_refuse(s, w, "one node twice");
        named |= bit;
        if ((group & 1) != 0) line->q |= bit;
        if ((group & 2) != 0) line->mask |= bit;
    }
    fb_sim_groups_normalise(s->out->nodes, &line->q, &line->mask);
}

static void who_take(fb_parser *s, const fb_sim_shape *shape, fb_sim_line *line)
{
    switch (shape->who) {
    case FB_SIM_WHO_NONE:
        return;
    case FB_SIM_WHO_NODE:
        line->a = line->b = fb_parse_node(s);
        return;
    case FB_SIM_WHO_PATHS:
        fb_parse_pair(s, "-", true, line);
        return;
    case FB_SIM_WHO_PAIR:
        fb_parse_pair(s, "-", false, line);
        return;
    case FB_SIM_WHO_ARROW:
        fb_parse_pair(s, "->", false, line);
        return;
    case FB_SIM_WHO_BRIDGE:
        line->a = line->b = fb_parse_node(s);
        fb_parse_take_word(s, "of");
        groups_take(s, line);
        return;
    case FB_SIM_WHO_GROUPS:
        groups_take(s, line);
        return;
    case FB_SIM_WHO_ANY:
        break;
    }
    line->a = fb_parse_node(s);
    line->b = fb_parse_node(s);
    fb_parse_take_word(s, "p");
    line->p = fb_parse_number(s, fb_parse_take(s, "a number"), 0, UINT64_MAX, "not a number");
    fb_parse_take_word(s, "q");
    line->q = fb_parse_number(s, fb_parse_take(s, "a number"), 0, UINT64_MAX, "not a number");
    fb_parse_take_word(s, "mask");
    line->mask = fb_parse_number(s, fb_parse_take(s, "a number"), 0, UINT64_MAX, "not a number");
}

static uint64_t value_take(fb_parser *s, fb_sim_shape_type type, uint64_t most, fb_sim_line *line)
{
    if (type == FB_SIM_SHAPE_NONE) return 0;
    const fb_word *w = fb_parse_take(s, "a value");
    const char *p = w->p, *end = w->p + w->len;
    if (s->failed) return 0;
    if (type == FB_SIM_SHAPE_BY_SECONDS || type == FB_SIM_SHAPE_BY_NUMBER) {
        if (*p != '+' && *p != '-') {
            fb_parse_refuse(s, w, "a value with its sign");
            return 0;
        }
        line->mask = *p++ == '-';
    }
    switch (type) {
    case FB_SIM_SHAPE_TIME: {
        uint64_t ns = fb_parse_time_in(s, w, p, end);
        if (!s->failed && (ns == 0 || ns > most)) fb_parse_refuse(s, w, "a time out of range");
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
            if (!fb_parse_digits(&q, end - 1, &value) || q != end - 1 || value == 0 ||
                value > most / units[i].seconds) {
                break;
            }
            return value * units[i].seconds;
        }
        fb_parse_refuse(s, w, "not whole seconds in range");
        return 0;
    }
    case FB_SIM_SHAPE_CRASH_AT: {
        uint32_t kind = fb_word_name(w, fb_sim_crash_at_names, FB_SIM_CRASH_AT_KINDS + 1);
        if (kind > FB_SIM_CRASH_AT_KINDS) {
            fb_parse_refuse(s, w, "not io, send or timer");
            return 0;
        }
        return kind;
    }
    case FB_SIM_SHAPE_RATIO:
        if (end - p < 3 || p[0] != '1' || p[1] != '/') {
            fb_parse_refuse(s, w, "not 1/N");
            return 0;
        }
        return fb_parse_number_in(s, w, p + 2, end, 1, most, "not 1/N");
    case FB_SIM_SHAPE_OF_16:
        if (end - p < 4 || memcmp(end - 3, "/16", 3) != 0) {
            fb_parse_refuse(s, w, "not N/16");
            return 0;
        }
        return fb_parse_number_in(s, w, p, end - 3, 1, 16, "not N/16");
    default:
        return fb_parse_number_in(s, w, p, end, 1, most, "not a number in range");
    }
}

static void window_line(fb_parser *s, const fb_word *times, const char *dots)
{
    fb_sim_line line = {.kind = FB_SIM_LINE_WINDOW, .key = 1, .source = times->line};
    line.at_ns = fb_parse_time_in(s, times, times->p, dots);
    line.until_ns = fb_parse_time_in(s, times, dots + 2, times->p + times->len);
    if (!s->failed && line.until_ns < line.at_ns)
        fb_parse_refuse(s, times, "it ends before it begins");
    const fb_word *fault = fb_parse_take(s, "a fault");
    while (line.fault < FB_SIM_FAULTS && !fb_word_is(fault, fb_sim_fault_rows[line.fault].name)) {
        line.fault++;
    }
    if (!s->failed && line.fault == FB_SIM_FAULTS)
        fb_parse_refuse(s, fault, "no fault of this name");
    if (s->failed) return;
    if (s->out->calm) {
        fb_parse_refuse(s, fault, "a calm run has no weather");
        return;
    }
    const fb_sim_shape *shape = fb_sim_shape_of(line.fault);
    who_take(s, shape, &line);
    if (shape->p_word != NULL) fb_parse_take_word(s, shape->p_word);
    if (shape->who != FB_SIM_WHO_ANY) {
        line.p = value_take(s, shape->p_type, shape->p_most, &line);
    }
    bool said =
        shape->q_default == 0 || (s->at < s->count && fb_word_is(&s->words[s->at], shape->q_word));
    if (shape->q_word != NULL && !said) line.q = shape->q_default;
    if (shape->q_word != NULL && said) {
        fb_parse_take_word(s, shape->q_word);
        uint64_t most = shape->q_type == FB_SIM_SHAPE_TIME ? FB_SIM_SCHEDULE_TIME_MAX
                                                           : FB_SIM_SCHEDULE_COUNT_MAX;
        line.q = value_take(s, shape->q_type, most, &line);
    }
    if (!s->failed && s->at < s->count && s->words[s->at].p[0] == '#') {
        const fb_word *key = fb_parse_take(s, "a key");
        line.key = (uint32_t)fb_parse_number_in(s, key, key->p + 1, key->p + key->len, 1, 65535,
                                                "not a key");
    }
    if (s->failed) return;
    if (++s->windows > FB_SIM_WINDOWS_MAX) {
        fb_parse_refuse(s, times, "too many windows in one round");
        return;
    }
    line_add(s, times, &line);
}

/* Operations. */

static void fields_take(fb_parser *s, fb_sim_op *op)
{
    while (!s->failed && s->at < s->count && s->words[s->at].p[0] != '#' &&
           !fb_word_is(&s->words[s->at], "times")) {
        const fb_word *w = &s->words[s->at++];
        const char *p = w->p, *end = w->p + w->len;
        bool unset = *p == '-';
        if (unset) p++;
        if (end - p < 2 || *p != 'f' || !fb_word_is_digit(p[1]) ||
            p[1] - '0' >= (int)FB_SIM_FIELDS) {
            fb_parse_refuse(s, w, "not a field");
            return;
        }
        uint32_t f = (uint32_t)(p[1] - '0');
        uint8_t bit = (uint8_t)(1u << f);
        p += 2;
        if ((op->fields & bit) != 0) fb_parse_refuse(s, w, "one field twice");
        op->fields |= bit;
        if (unset) {
            if (op->operation != FB_SIM_OP_CHANGE)
                fb_parse_refuse(s, w, "only a change takes fields away");
            op->unset |= bit;
        } else if (end - p == 3 && memcmp(p, "=\"\"", 3) == 0) {
            op->empty |= bit;
            p = end;
        } else if (p < end && *p == '+') {
            op->pad[f] =
                (uint16_t)fb_parse_number_in(s, w, p + 1, end, 1, FB_SIM_PAD_MAX, "not a length");
            p = end;
        }
        if (!s->failed && p != end) fb_parse_refuse(s, w, "not a field");
    }
}

static uint8_t record_take(fb_parser *s)
{
    const fb_word *record = fb_parse_take(s, "a record");
    if (s->failed) return 0;
    if (record->len < 2 || record->p[0] != 'r') {
        fb_parse_refuse(s, record, "not a record");
        return 0;
    }
    return (uint8_t)fb_parse_number_in(s, record, record->p + 1, record->p + record->len, 0,
                                       FB_SIM_RECORDS - 1, "not a record");
}

/* The end of an operation's line: it is done so many times, over so many records. */
static void series_take(fb_parser *s, fb_sim_line *line)
{
    if (!fb_parse_take_if(s, "times")) return;
    uint64_t times = fb_parse_number(s, fb_parse_take(s, "how often"), 2, FB_SIM_SCHEDULE_TIMES_MAX,
                                     "not 2 to 4096 times");
    fb_parse_take_word(s, "every");
    const fb_word *every = s->at < s->count ? &s->words[s->at] : NULL;
    line->every_ns = fb_parse_time(s);
    if (!s->failed && line->every_ns > FB_SIM_SCHEDULE_TIME_MAX / times) {
        fb_parse_refuse(s, every, "longer than a round may last");
    }
    line->more = (uint32_t)times - 1;
    const fb_word *over = s->at < s->count ? &s->words[s->at] : NULL;
    if (s->failed || !fb_parse_take_if(s, "over")) return;
    if (!fb_sim_op_has_record(&line->op)) {
        fb_parse_refuse(s, over, "it is about no record");
        return;
    }
    line->over = (uint32_t)fb_parse_number(s, fb_parse_take(s, "a number of records"), 2,
                                           FB_SIM_RECORDS - line->op.record,
                                           "not so many records from this one on");
}

static void op_line(fb_parser *s, const fb_word *time)
{
    fb_sim_line line = {
        .kind = FB_SIM_LINE_OP, .source = time->line, .within_ns = FB_SIM_SCHEDULE_WITHIN_NS};
    line.at_ns = fb_parse_time_in(s, time, time->p, time->p + time->len);
    if (fb_parse_take_if(s, "within")) line.within_ns = fb_parse_time(s);
    const fb_word *who = fb_parse_take(s, "a node");
    const char *slash = who->len > 2 && who->p[who->len - 2] == '/' ? who->p + who->len - 2 : NULL;
    const char *end = who->p + who->len;
    line.a = line.b = fb_parse_node_in(s, who, who->p, slash != NULL ? slash : end);
    if (slash != NULL) {
        line.client = (uint32_t)fb_parse_number_in(s, who, slash + 1, end, 1, FB_SIM_CLIENTS,
                                                   "no client of this number") -
                      1;
    }
    const fb_word *verb = fb_parse_take(s, "an operation");
    uint32_t operation = fb_word_name(verb, fb_sim_operation_names, FB_SIM_OPS);
    if (!s->failed && operation == FB_SIM_OPS)
        fb_parse_refuse(s, verb, "no operation of this name");
    line.op.operation = (uint8_t)operation;
    if (!s->failed && operation == FB_SIM_OP_LIST) {
        line.op.items = (uint8_t)fb_parse_number(s, fb_parse_take(s, "a number"), 1, 255,
                                                 "not 1 to 255 records");
        if (fb_parse_take_if(s, "after")) line.op.record = (uint8_t)(record_take(s) + 1);
    } else if (!s->failed && operation == FB_SIM_OP_WATCH) {
        const fb_word *from = fb_parse_take(s, "where it begins");
        uint32_t at = fb_word_name(from, fb_sim_feed_names, FB_SIM_FEED_FROMS);
        if (!s->failed && at == FB_SIM_FEED_FROMS)
            fb_parse_refuse(s, from, "no beginning of a feed");
        line.op.items = (uint8_t)(at + (fb_parse_take_if(s, "slow") ? FB_SIM_FEED_SLOW : 0));
    } else if (!s->failed && operation >= FB_SIM_OP_VERIFY && operation < FB_SIM_OPS) {
        const fb_word *whom = fb_parse_take(s, "a node");
        line.op.items = (uint8_t)fb_parse_node_in(s, whom, whom->p, whom->p + whom->len);
    } else if (!s->failed) {
        line.op.record = record_take(s);
        bool fields = operation != FB_SIM_OP_GET && operation != FB_SIM_OP_DELETE &&
                      operation != FB_SIM_OP_MEMBERS;
        if (operation == FB_SIM_OP_ADD) {
            line.op.items =
                (uint8_t)fb_parse_number(s, fb_parse_take(s, "a number"), 1, 255, "not 1 to 255");
        } else if (operation == FB_SIM_OP_INSERT || operation == FB_SIM_OP_REMOVE) {
            line.op.items =
                (uint8_t)fb_parse_number(s, fb_parse_take(s, "an element"), 0, FB_SIM_ELEMENTS - 1,
                                         "no element of this number");
        } else if (fields) {
            fields_take(s, &line.op);
            /* Without a name of its own: that of its place. Nothing must be taken away before it.
             */
            line.op.number = (uint32_t)s->alone + 1000000;
            if (!s->failed && s->at < s->count && s->words[s->at].p[0] == '#') {
                const fb_word *key = fb_parse_take(s, "a number");
                line.op.number = (uint32_t)fb_parse_number_in(s, key, key->p + 1, key->p + key->len,
                                                              0, UINT32_MAX, "not a number");
            }
        }
    }
    if (!s->failed) series_take(s, &line);
    if (s->failed) return;
    s->alone += line.more;
    line_add(s, time, &line);
}

/* Messages and effects. */

static void addressed_line(fb_parser *s, const fb_word *verb, uint32_t act)
{
    fb_sim_line line = {.source = verb->line, .act = act, .nth = 1};
    if (act == FB_SIM_MESSAGE_ACTS) {
        line.kind = FB_SIM_LINE_CRASH;
        line.a = line.b = fb_parse_node(s);
        fb_parse_take_word(s, "at");
        const fb_word *kind = fb_parse_take(s, "an effect");
        line.act = 0;
        line.what = 0;
        while (line.what <= FB_FX_NEED_START &&
               (fb_sim_effect_name(line.what) == NULL ||
                !fb_word_is(kind, fb_sim_effect_name(line.what)))) {
            line.what++;
        }
        if (!s->failed && line.what > FB_FX_NEED_START)
            fb_parse_refuse(s, kind, "no effect of this name");
    } else {
        line.kind = FB_SIM_LINE_MESSAGE;
        fb_parse_pair(s, "->", false, &line);
        const fb_word *kind = fb_parse_take(s, "a kind of message");
        line.what = fb_word_name(kind, fb_sim_message_kind_names, FB_SIM_MESSAGE_KINDS);
        if (!s->failed && line.what == FB_SIM_MESSAGE_KINDS) {
            fb_parse_refuse(s, kind, "no message of this kind");
        }
    }
    line.nth =
        (uint32_t)fb_parse_number(s, fb_parse_take(s, "which one"), 1, UINT32_MAX, "not a number");
    if (fb_parse_take_if(s, "life")) {
        line.life = (uint32_t)fb_parse_number(s, fb_parse_take(s, "a number"), 1, UINT32_MAX,
                                              "not a number");
    }
    if (line.kind == FB_SIM_LINE_CRASH) {
        line.span_ns = UINT64_C(1000000000);
        if (fb_parse_take_if(s, "down")) line.span_ns = fb_parse_time(s);
    } else if (act == FB_SIM_MESSAGE_DELAY) {
        fb_parse_take_word(s, "by");
        line.span_ns = fb_parse_time(s);
    }
    if (s->failed) return;
    line_add(s, verb, &line);
}

static const char *dots_in(const fb_word *w)
{
    for (uint32_t i = 0; i + 1 < w->len; i++) {
        if (w->p[i] == '.' && w->p[i + 1] == '.') return w->p + i;
    }
    return NULL;
}

static void line_read(fb_parser *s)
{
    const fb_word *verb = fb_parse_take(s, "a verb");
    if (fb_parse_header(s, verb)) return;
    if (fb_word_is(verb, "round")) {
        round_line(s, verb);
        return;
    }
    uint32_t act = fb_word_name(verb, fb_sim_message_act_names, FB_SIM_MESSAGE_ACTS);
    bool addressed = act != FB_SIM_MESSAGE_ACTS || fb_word_is(verb, "crash");
    if (!addressed && !fb_word_is_digit(verb->p[0])) {
        fb_parse_refuse(s, verb, "no verb of this name");
        return;
    }
    if (s->out->round_count == 0) {
        fb_parse_refuse(s, verb, "this belongs to a round");
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
    fb_parser *s = calloc(1, sizeof *s);
    if (s == NULL || len > FB_SIM_SCHEDULE_BYTES_MAX) {
        snprintf(error->text, sizeof error->text, "the text is too long");
        free(s);
        return false;
    }
    *s = (fb_parser){.p = text, .end = text + len, .out = out, .error = error};
    bool first = true;
    while (!s->failed && fb_parse_words(s)) {
        if (s->count == 0 || s->failed) continue;
        if (first) {
            fb_parse_take_word(s, "schedule");
            fb_parse_number(s, fb_parse_take(s, "a version"), FB_SIM_SCHEDULE_VERSION,
                            FB_SIM_SCHEDULE_VERSION, "not a version that this program knows");
            first = false;
        } else {
            line_read(s);
        }
        fb_parse_line_end(s);
    }
    if (first)
        fb_parse_refuse_at(s, 1, 1, "a schedule begins with \"schedule %u\"",
                           FB_SIM_SCHEDULE_VERSION);
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
