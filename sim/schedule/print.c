/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical text of a schedule. docs/SCHEDULES.md has the grammar. */
#include <stdarg.h>

#include "sim/schedule/schedule.h"
#include "sim/workload/feeds.h"

#define SECOND UINT64_C(1000000000)
#define MS     UINT64_C(1000000)

/* Words of one line; it is broken before the column limit. */
typedef struct words {
    char text[2048];
    uint32_t used;
} words;

static void word(words *w, const char *format, ...)
{
    if (w->used + 1 >= sizeof w->text) return;
    if (w->used != 0 && w->text[w->used - 1] != '\n' && w->text[w->used - 1] != ' ') {
        w->text[w->used++] = ' ';
    }
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(w->text + w->used, sizeof w->text - w->used, format, arguments);
    va_end(arguments);
    if (n > 0) w->used += (uint32_t)n;
    if (w->used >= sizeof w->text) w->used = sizeof w->text - 1;
}

static const char *name(uint32_t node)
{
    return fb_sim_name(node);
}

typedef struct time_text {
    char text[40];
} time_text;

static time_text time_of(uint64_t ns)
{
    time_text out;
    if (ns != 0 && ns < SECOND && ns % MS == 0) {
        snprintf(out.text, sizeof out.text, "%llums", (unsigned long long)(ns / MS));
        return out;
    }
    int n = snprintf(out.text, sizeof out.text, "%llu", (unsigned long long)(ns / SECOND));
    if (ns % SECOND != 0) {
        n += snprintf(out.text + n, sizeof out.text - (size_t)n, ".%09llu",
                      (unsigned long long)(ns % SECOND));
        while (out.text[n - 1] == '0') n--;
    }
    out.text[n] = 's';
    out.text[n + 1] = 0;
    return out;
}

static void value(words *w, fb_sim_shape_type type, uint64_t v, bool negative)
{
    const char *sign = negative ? "-" : "+";
    switch (type) {
    case FB_SIM_SHAPE_NONE:
        return;
    case FB_SIM_SHAPE_TIME:
        word(w, "%s", time_of(v).text);
        return;
    case FB_SIM_SHAPE_RATIO:
        word(w, "1/%llu", (unsigned long long)v);
        return;
    case FB_SIM_SHAPE_OF_16:
        word(w, "%llu/16", (unsigned long long)v);
        return;
    case FB_SIM_SHAPE_NUMBER:
        word(w, "%llu", (unsigned long long)v);
        return;
    case FB_SIM_SHAPE_SECONDS:
        word(w, "%llus", (unsigned long long)v);
        return;
    case FB_SIM_SHAPE_CRASH_AT:
        word(w, "%s", fb_sim_crash_at_names[v]);
        return;
    case FB_SIM_SHAPE_BY_SECONDS:
        word(w, "%s%llus", sign, (unsigned long long)v);
        return;
    case FB_SIM_SHAPE_BY_NUMBER:
        word(w, "%s%llu", sign, (unsigned long long)v);
        return;
    }
}

static void groups(const fb_sim_plan *schedule, const fb_sim_line *line, words *w)
{
    fb_sim_window window = {.q = line->q, .mask = line->mask};
    if (fb_sim_shape_of(line->fault)->who == FB_SIM_WHO_BRIDGE) word(w, "%s of", name(line->a));
    for (uint32_t group = 0; group < 4; group++) {
        bool any = false;
        for (uint32_t i = 0; i < schedule->nodes; i++) {
            if (fb_sim_window_group(&window, i) != group) continue;
            if (!any && group != 0) word(w, "|");
            word(w, "%s", name(i));
            any = true;
        }
    }
}

static void window(const fb_sim_plan *schedule, const fb_sim_line *line, words *w)
{
    const fb_sim_shape *shape = fb_sim_shape_of(line->fault);
    word(w, "%s..%s %s", time_of(line->at_ns).text, time_of(line->until_ns).text,
         fb_sim_fault_rows[line->fault].name);
    switch (shape->who) {
    case FB_SIM_WHO_ANY:
        word(w, "%s %s p %llu q %llu mask %llu", name(line->a), name(line->b),
             (unsigned long long)line->p, (unsigned long long)line->q,
             (unsigned long long)line->mask);
        break;
    case FB_SIM_WHO_NONE:
        break;
    case FB_SIM_WHO_NODE:
        word(w, "%s", name(line->a));
        break;
    case FB_SIM_WHO_PATHS:
        if (line->a == line->b) {
            word(w, "%s", name(line->a));
        } else {
            word(w, "%s-%s", name(line->a), name(line->b));
        }
        break;
    case FB_SIM_WHO_PAIR:
        word(w, "%s-%s", name(line->a), name(line->b));
        break;
    case FB_SIM_WHO_ARROW:
        word(w, "%s->%s", name(line->a), name(line->b));
        break;
    case FB_SIM_WHO_GROUPS:
    case FB_SIM_WHO_BRIDGE:
        groups(schedule, line, w);
        break;
    }
    if (shape->p_word != NULL) word(w, "%s", shape->p_word);
    value(w, shape->p_type, line->p, line->mask != 0);
    if (shape->q_word != NULL && (shape->q_default == 0 || line->q != shape->q_default)) {
        word(w, "%s", shape->q_word);
        value(w, shape->q_type, line->q, line->mask != 0);
    }
    if (line->key != 1) word(w, "#%u", (unsigned)line->key);
}

static void operation_alone(const fb_sim_line *line, words *w)
{
    const fb_sim_op *op = &line->op;
    word(w, "%s", time_of(line->at_ns).text);
    if (line->within_ns != FB_SIM_SCHEDULE_WITHIN_NS) {
        word(w, "within %s", time_of(line->within_ns).text);
    }
    if (line->client == 0) {
        word(w, "%s", name(line->a));
    } else {
        word(w, "%s/%u", name(line->a), (unsigned)line->client + 1);
    }
    word(w, "%s", fb_sim_operation_names[op->operation]);
    if (op->operation == FB_SIM_OP_LIST) {
        word(w, "%u", (unsigned)op->items);
        if (op->record != 0) word(w, "after r%u", (unsigned)op->record - 1);
        return;
    }
    if (op->operation == FB_SIM_OP_WATCH) {
        word(w, "%s", fb_sim_feed_names[op->items % FB_SIM_FEED_SLOW % FB_SIM_FEED_FROMS]);
        if ((op->items & FB_SIM_FEED_SLOW) != 0) word(w, "slow");
        return;
    }
    if (op->operation >= FB_SIM_OP_VERIFY) {
        word(w, "%s", name(op->items));
        return;
    }
    word(w, "r%u", (unsigned)op->record);
    if (op->operation == FB_SIM_OP_GET || op->operation == FB_SIM_OP_DELETE ||
        op->operation == FB_SIM_OP_MEMBERS) {
        return;
    }
    if (op->operation >= FB_SIM_OP_ADD) {
        word(w, "%u", (unsigned)op->items);
        return;
    }
    for (uint32_t f = 0; f < FB_SIM_FIELDS; f++) {
        if ((op->fields >> f & 1) == 0) continue;
        bool unset = (op->unset >> f & 1) != 0;
        bool empty = (op->empty >> f & 1) != 0;
        if (op->pad[f] != 0) {
            word(w, "f%u+%u", (unsigned)f, (unsigned)op->pad[f]);
        } else {
            word(w, "%sf%u%s", unset ? "-" : "", (unsigned)f, empty ? "=\"\"" : "");
        }
    }
    word(w, "#%u", (unsigned)op->number);
}

static void operation(const fb_sim_line *line, words *w)
{
    operation_alone(line, w);
    if (line->more == 0) return;
    word(w, "times %u every %s", (unsigned)line->more + 1, time_of(line->every_ns).text);
    if (line->over != 0) word(w, "over %u", (unsigned)line->over);
}

static void addressed(const fb_sim_line *line, words *w)
{
    if (line->kind == FB_SIM_LINE_CRASH) {
        word(w, "crash %s at %s %u", name(line->a), fb_sim_effect_name(line->what),
             (unsigned)line->nth);
    } else {
        word(w, "%s %s->%s %s %u", fb_sim_message_act_names[line->act], name(line->a),
             name(line->b), fb_sim_message_kind_names[line->what], (unsigned)line->nth);
    }
    if (line->life != 0) word(w, "life %u", (unsigned)line->life);
    if (line->kind == FB_SIM_LINE_CRASH) word(w, "down %s", time_of(line->span_ns).text);
    if (line->kind == FB_SIM_LINE_MESSAGE && line->act == FB_SIM_MESSAGE_DELAY) {
        word(w, "by %s", time_of(line->span_ns).text);
    }
}

static void line_words(const fb_sim_plan *schedule, const fb_sim_line *line, words *w)
{
    switch (line->kind) {
    case FB_SIM_LINE_OP:
        operation(line, w);
        return;
    case FB_SIM_LINE_WINDOW:
        window(schedule, line, w);
        return;
    case FB_SIM_LINE_MESSAGE:
    case FB_SIM_LINE_CRASH:
        addressed(line, w);
        return;
    }
}

/* One line; what would pass the last column goes on after a backslash. */
static void put(FILE *out, const char *indent, const words *w)
{
    const char *text = w->text;
    size_t left = w->used;
    size_t room = FB_SIM_SCHEDULE_COLUMNS - strlen(indent);
    fputs(indent, out);
    while (left > room) {
        size_t end = room - 2;
        while (end > 0 && text[end] != ' ') end--;
        if (end == 0) break;
        fprintf(out, "%.*s \\\n%s    ", (int)end, text, indent);
        text += end + 1;
        left -= end + 1;
        room = FB_SIM_SCHEDULE_COLUMNS - strlen(indent) - 4;
    }
    fprintf(out, "%.*s\n", (int)left, text);
}

static void nodes_words(const fb_sim_plan *schedule, uint64_t nodes, words *w)
{
    for (uint32_t node = 0; node < schedule->nodes; node++) {
        if ((nodes >> (node % 64) & 1) != 0) word(w, "%s", name(node));
    }
}

static void header(const fb_sim_plan *schedule, FILE *out)
{
    fprintf(out, "schedule %u\nseed %s\nnodes %u\n", FB_SIM_SCHEDULE_VERSION, schedule->seed_text,
            (unsigned)schedule->nodes);
    if (schedule->second != 0) {
        words w = {.used = 0};
        word(&w, "second");
        nodes_words(schedule, schedule->second, &w);
        put(out, "", &w);
    }
    if (schedule->documents != 0) {
        words w = {.used = 0};
        word(&w, "documents");
        nodes_words(schedule, schedule->documents, &w);
        put(out, "", &w);
    }
    if (schedule->bug[0] != 0) fprintf(out, "bug %s\n", schedule->bug);
    if (schedule->expect == FB_SIM_EXPECT_PASS) fprintf(out, "expect pass\n");
    if (schedule->expect == FB_SIM_EXPECT_VIOLATES) {
        fprintf(out, "expect violates %s\n", schedule->check);
    }
    if (schedule->has_hash) {
        char text[33];
        fb_sim_trace_text(schedule->hash, text);
        fprintf(out, "hash %s\n", text);
    }
    if (schedule->steps != 0) fprintf(out, "steps %llu\n", (unsigned long long)schedule->steps);
    if (schedule->calm) fprintf(out, "calm\n");
    if (schedule->setup_ns != 0) fprintf(out, "setup %s\n", time_of(schedule->setup_ns).text);
    if (schedule->settle_ns != 0) fprintf(out, "settle %s\n", time_of(schedule->settle_ns).text);
    for (uint32_t i = 0; i < schedule->setting_count; i++) {
        const fb_sim_setting *setting = &schedule->settings[i];
        const fb_sim_setting_row *row = &fb_sim_setting_rows[setting->row];
        if (row->is_time) {
            fprintf(out, "set %s %s\n", row->name, time_of(setting->value).text);
        } else {
            fprintf(out, "set %s %llu\n", row->name, (unsigned long long)setting->value);
        }
    }
}

void fb_sim_plan_print(const fb_sim_plan *schedule, FILE *out)
{
    header(schedule, out);
    uint32_t at = 0;
    for (uint32_t i = 0; i < schedule->round_count; i++) {
        const fb_sim_plan_round *round = &schedule->rounds[i];
        words w = {.used = 0};
        word(&w, "round %llu for %s", (unsigned long long)round->number,
             time_of(round->length_ns).text);
        if (round->core != 0) {
            word(&w, "core");
            nodes_words(schedule, round->core, &w);
        }
        put(out, "", &w);
        for (; at < schedule->line_count && schedule->lines[at].round == i; at++) {
            w.used = 0;
            line_words(schedule, &schedule->lines[at], &w);
            put(out, "  ", &w);
        }
    }
}

void fb_sim_plan_line_text(const fb_sim_plan *schedule, const fb_sim_line *line, char *out,
                           size_t cap)
{
    words w = {.used = 0};
    line_words(schedule, line, &w);
    snprintf(out, cap, "%.*s", (int)w.used, w.text);
}

uint32_t fb_sim_plan_size(const fb_sim_plan *schedule)
{
    return 3 + (schedule->bug[0] != 0) + (schedule->expect != FB_SIM_EXPECT_NOTHING) +
           schedule->has_hash + schedule->calm + (schedule->setup_ns != 0) +
           (schedule->settle_ns != 0) + schedule->setting_count + schedule->round_count +
           schedule->line_count;
}
