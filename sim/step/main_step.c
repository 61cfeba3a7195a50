/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim/main_sim.h"
#include "sim/run.h"
#include "sim/step/ahead.h"
#include "sim/step/answer.h"
#include "sim/step/session.h"
#include "sim/step/state.h"
#include "sim/usage.h"
#include "sim/view/note.h"
#include "sim/view/source.h"
#include "sim/view/view.h"
#include "sim/world/world.h"

#define RECORD_STEPS  (UINT64_C(1) << 17)
#define WORDS_MAX     8
#define COMMAND_BYTES 1024
#define CHAIN_MAX     40u
#define AHEAD_MAX     200u

static const char help[] =
    "  forward [N]               N steps on (1)\n"
    "  back [N]                  N steps back (1)\n"
    "  to STEP                   to that step, in either direction\n"
    "  time T                    to that time: 12.5 is not one, 12500ms is\n"
    "  bad, continue             to the violation, or the end of the run\n"
    "  until KIND [NODE]         to the next note of a kind: delivered, applied, crash, ...\n"
    "  until NODE FIELD = VALUE  to where a field of a node is so; also != < >\n"
    "  show [N]                  the diagram of the last N steps (20)\n"
    "  moment [STEP]             one step and what happened in it\n"
    "  cause [STEP]              what led to it, back to where it began\n"
    "  state NODE [FIELD]        what the node holds; FIELD is the beginning of a name\n"
    "  why NODE FIELD            the step that last changed it, and what led there\n"
    "  next [N]                  what would happen next (5)\n"
    "  queue                     all that would happen, and what is on its way\n"
    "  branch drop [NODE]        what arrives next, at NODE, is lost; a stream breaks there\n"
    "  branch delay T [NODE]     it arrives by T later\n"
    "  branch duplicate [NODE]   the frame that arrives next arrives twice\n"
    "  branch crash NODE [T]     its process ends, and boots again after T (1s)\n"
    "  branch pause NODE T       it does nothing for T\n"
    "  undo                      without the last change, from where it was made\n"
    "  where, help, quit\n";

typedef struct stepper {
    fb_sim_source source;
    fb_sim_session session;
    fb_sim_world *world;
    fb_sim_answer answer;
    int words;
    char *word[WORDS_MAX];
    bool quit;
} stepper;

static void wrong(stepper *s, const char *what)
{
    fb_sim_answer_string(&s->answer, "error", what);
    fb_sim_answer_line(&s->answer, "%s", what);
}

static bool node_of(const stepper *s, const char *name, uint32_t *node)
{
    for (uint32_t i = 0; i < s->world->config.nodes; i++) {
        if (strcmp(fb_sim_name(i), name) != 0) continue;
        *node = i;
        return true;
    }
    return false;
}

/* The word at a place as a number, or what stands for it. False: it is none, and that was said. */
static bool number_at(stepper *s, int place, uint64_t otherwise, uint64_t *out)
{
    *out = otherwise;
    if (place >= s->words || fb_sim_parse_number(s->word[place], out)) return true;
    wrong(s, "not a number");
    return false;
}

/* Moving. */

static void arrived(stepper *s)
{
    if (!s->answer.json && s->world->steps != 0) {
        fb_sim_answer_moment(&s->answer, s->world, s->world->steps);
    }
    fb_sim_answer_where(&s->answer, &s->session);
}

static void do_forward(stepper *s)
{
    uint64_t n;
    if (!number_at(s, 1, 1, &n)) return;
    fb_sim_session_forward(&s->session, fb_add_sat_u64(s->world->steps, n));
    arrived(s);
}

static void do_back(stepper *s)
{
    uint64_t n;
    if (!number_at(s, 1, 1, &n)) return;
    fb_sim_session_to(&s->session, s->world->steps > n ? s->world->steps - n : 0);
    arrived(s);
}

static void do_to(stepper *s)
{
    uint64_t step;
    if (s->words < 2) {
        wrong(s, "to which step?");
    } else if (number_at(s, 1, 0, &step)) {
        fb_sim_session_to(&s->session, step);
        arrived(s);
    }
}

static void do_time(stepper *s)
{
    uint64_t ns;
    if (s->words < 2 || !fb_sim_parse_time(s->word[1], &ns)) {
        wrong(s, "not a time: 12s, 12500ms, 90000000us");
        return;
    }
    fb_sim_session_to_time(&s->session, ns);
    arrived(s);
}

static void do_continue(stepper *s)
{
    fb_sim_session_forward(&s->session, UINT64_MAX);
    arrived(s);
}

/* Predicates. */

typedef struct predicate {
    const char *kind; /* of a note; NULL: about a field */
    uint32_t node;    /* UINT32_MAX: any */
    uint64_t notes;   /* seen before */
    const char *field;
    const char *value;
    char op;
    bool found;
} predicate;

/* Numbers by their size, anything else by its letters. */
static int compare(const char *a, const char *b)
{
    uint64_t x, y;
    if (fb_sim_parse_number(a, &x) && fb_sim_parse_number(b, &y)) return x < y ? -1 : x > y;
    return strcmp(a, b);
}

static void field_is(void *user, const char *name, const char *value)
{
    predicate *p = user;
    if (strcmp(name, p->field) != 0) return;
    int order = compare(value, p->value);
    p->found = p->found || (p->op == '=' && order == 0) || (p->op == '!' && order != 0) ||
               (p->op == '<' && order < 0) || (p->op == '>' && order > 0);
}

static bool holds(void *user, fb_sim_world *world)
{
    predicate *p = user;
    p->found = false;
    if (p->kind == NULL) {
        fb_sim_fields fields = {
            .wanted = p->field, .at = field_is, .user = p, .world = world, .node = p->node};
        fb_sim_state(&fields);
        return p->found;
    }
    for (; p->notes <= world->record->live->notes; p->notes++) {
        const fb_sim_note *note = fb_sim_record_note(world->record, p->notes);
        if (note == NULL || (p->node != UINT32_MAX && note->node != p->node)) continue;
        p->found = p->found || strcmp(fb_sim_note_name(note->kind), p->kind) == 0;
    }
    return p->found;
}

static bool kind_exists(const char *name)
{
    for (uint32_t i = 0; i < 128; i++) {
        if (strcmp(fb_sim_note_name((uint8_t)i), name) == 0) return true;
    }
    return false;
}

static void do_until(stepper *s)
{
    predicate p = {.node = UINT32_MAX, .notes = s->world->record->live->notes + 1};
    bool about_field =
        s->words == 5 && node_of(s, s->word[1], &p.node) && strchr("=!<>", s->word[3][0]) != NULL;
    if (about_field) {
        p.field = s->word[2];
        p.op = s->word[3][0];
        p.value = s->word[4];
    } else if (s->words >= 2 && s->words <= 3 && kind_exists(s->word[1])) {
        p.kind = s->word[1];
        if (s->words == 3 && !node_of(s, s->word[2], &p.node)) {
            wrong(s, "no node of this name");
            return;
        }
    } else {
        wrong(s, "until KIND [NODE], or until NODE FIELD = VALUE (!= < >)");
        return;
    }
    bool found = fb_sim_session_until(&s->session, holds, &p);
    fb_sim_answer_bool(&s->answer, "found", found);
    if (!found) fb_sim_answer_line(&s->answer, "it did not come to that");
    arrived(s);
}

/* Looking. */

static void do_show(stepper *s)
{
    uint64_t n;
    if (!number_at(s, 1, 20, &n)) return;
    uint64_t to = s->world->steps;
    uint64_t from = fb_sim_record_from(s->world->record, to);
    if (to > n) from = fb_max_u64(from, to - n + 1);
    if (!s->answer.json) {
        fb_sim_span span = {.from = from, .to = to, .steps = true, .nodes = UINT64_MAX};
        fb_sim_view_text(s->world, &span, s->answer.out);
        return;
    }
    fb_sim_answer_open(&s->answer, "steps");
    for (uint64_t step = from; step <= to; step++) {
        fb_sim_answer_item(&s->answer, step == from);
        fb_sim_answer_moment(&s->answer, s->world, step);
        fb_sim_answer_item_end(&s->answer);
    }
    fb_sim_answer_close(&s->answer);
}

static void do_moment(stepper *s)
{
    uint64_t step;
    if (!number_at(s, 1, s->world->steps, &step)) return;
    fb_sim_answer_moment(&s->answer, s->world, step);
}

static void chain(stepper *s, uint64_t step)
{
    fb_sim_answer_open(&s->answer, "chain");
    for (uint32_t i = 0; step != 0 && i < CHAIN_MAX; i++) {
        fb_sim_answer_item(&s->answer, i == 0);
        fb_sim_answer_moment(&s->answer, s->world, step);
        fb_sim_answer_item_end(&s->answer);
        const fb_sim_moment *m = fb_sim_record_moment(s->world->record, step);
        step = m == NULL ? 0 : m->cause;
    }
    fb_sim_answer_close(&s->answer);
}

static void do_cause(stepper *s)
{
    uint64_t step;
    if (number_at(s, 1, s->world->steps, &step)) chain(s, step);
}

typedef struct shown_fields {
    fb_sim_answer *answer;
    uint32_t count;
} shown_fields;

static void field_show(void *user, const char *name, const char *value)
{
    shown_fields *shown = user;
    fb_sim_answer_item(shown->answer, shown->count++ == 0);
    fb_sim_answer_string(shown->answer, "name", name);
    fb_sim_answer_string(shown->answer, "value", value);
    fb_sim_answer_item_end(shown->answer);
    fb_sim_answer_line(shown->answer, "  %-44s %s", name, value);
}

static void do_state(stepper *s)
{
    uint32_t node;
    if (s->words < 2 || !node_of(s, s->word[1], &node)) {
        wrong(s, "state NODE [FIELD]");
        return;
    }
    shown_fields shown = {&s->answer, 0};
    fb_sim_fields fields = {.wanted = s->words > 2 ? s->word[2] : "",
                            .at = field_show,
                            .user = &shown,
                            .world = s->world,
                            .node = node};
    fb_sim_answer_open(&s->answer, "fields");
    fb_sim_state(&fields);
    fb_sim_answer_close(&s->answer);
    if (shown.count == 0) wrong(s, "no field of this name now");
}

typedef struct hashed_fields {
    const char *wanted;
    uint32_t node;
    uint64_t hash;
    char last[FB_SIM_FIELD_VALUE_MAX];
    uint32_t count;
    bool exact; /* a field has this very name: those that go on after it do not count */
} hashed_fields;

static void field_hash(void *user, const char *name, const char *value)
{
    hashed_fields *h = user;
    bool same = strcmp(name, h->wanted) == 0;
    if (h->exact && !same) return;
    if (same && !h->exact) {
        h->exact = true;
        h->hash = 0;
        h->count = 0;
    }
    h->hash = fb_xxh64(name, strlen(name), h->hash);
    h->hash = fb_xxh64(value, strlen(value), h->hash);
    snprintf(h->last, sizeof h->last, "%s", value);
    h->count++;
}

static uint64_t hash_of(void *user, fb_sim_world *world)
{
    hashed_fields *h = user;
    h->hash = 0;
    h->count = 0;
    fb_sim_fields fields = {
        .wanted = h->wanted, .at = field_hash, .user = h, .world = world, .node = h->node};
    fb_sim_state(&fields);
    return h->hash;
}

static void do_why(stepper *s)
{
    hashed_fields h = {0};
    if (s->words < 3 || !node_of(s, s->word[1], &h.node)) {
        wrong(s, "why NODE FIELD");
        return;
    }
    h.wanted = s->word[2];
    hash_of(&h, s->world);
    if (h.count == 0) {
        wrong(s, "no field of this name now");
        return;
    }
    char value[FB_SIM_FIELD_VALUE_MAX];
    memcpy(value, h.last, sizeof value);
    bool one = h.count == 1;
    uint64_t step = fb_sim_session_changed(&s->session, h.node, hash_of, &h);
    if (one) {
        fb_sim_answer_string(&s->answer, "value", value);
        fb_sim_answer_line(&s->answer, "  %s = %s, since", h.wanted, value);
    }
    fb_sim_answer_number(&s->answer, "changed", step);
    if (step == 0) {
        fb_sim_answer_line(&s->answer, "no step changed it");
        return;
    }
    chain(s, step);
}

static void ahead(stepper *s, uint32_t room)
{
    fb_sim_ahead *list = calloc(room, sizeof *list);
    if (list == NULL) fb_sim_fail_resource("memory of this machine");
    uint32_t count = fb_sim_look_ahead(s->world, list, room);
    fb_sim_answer_open(&s->answer, "next");
    for (uint32_t i = 0; i < count; i++) {
        char time[32], ns[24], because[48] = "";
        fb_sim_time_text(list[i].time_ns, time);
        snprintf(ns, sizeof ns, "%llu", (unsigned long long)list[i].time_ns);
        const char *node = list[i].node == UINT32_MAX ? "~" : fb_sim_name(list[i].node);
        if (list[i].cause != 0) {
            snprintf(because, sizeof because, "  (of %llu)", (unsigned long long)list[i].cause);
        }
        fb_sim_answer_line(&s->answer, "  %15s  %-3s %s%s", time, node, list[i].text, because);
        fb_sim_answer_item(&s->answer, i == 0);
        fb_sim_answer_string(&s->answer, "time_ns", ns);
        fb_sim_answer_string(&s->answer, "node", list[i].node == UINT32_MAX ? NULL : node);
        fb_sim_answer_string(&s->answer, "text", list[i].text);
        if (list[i].cause != 0) fb_sim_answer_number(&s->answer, "cause", list[i].cause);
        fb_sim_answer_item_end(&s->answer);
    }
    fb_sim_answer_close(&s->answer);
    free(list);
}

static void do_next(stepper *s)
{
    uint64_t n;
    if (!number_at(s, 1, 5, &n)) return;
    ahead(s, n < AHEAD_MAX ? (uint32_t)n : AHEAD_MAX);
}

static void do_queue(stepper *s)
{
    const fb_sim_record *record = s->world->record;
    bool first = true;
    ahead(s, AHEAD_MAX);
    fb_sim_answer_open(&s->answer, "on_the_way");
    for (uint64_t i = fb_sim_record_messages_from(record); i <= record->live->messages; i++) {
        const fb_sim_message_note *m = fb_sim_record_message(record, i);
        if (m == NULL || m->fate != FB_SIM_ON_WAY || m->from == FB_SIM_NOBODY) continue;
        fb_sim_answer_line(&s->answer, "  on the way: %u bytes %s to %s, sent in step %llu%s",
                           (unsigned)m->len, fb_sim_name(m->from), fb_sim_name(m->to),
                           (unsigned long long)m->sent_step, m->harmed ? ", damaged" : "");
        fb_sim_answer_item(&s->answer, first);
        first = false;
        fb_sim_answer_string(&s->answer, "from", fb_sim_name(m->from));
        fb_sim_answer_string(&s->answer, "to", fb_sim_name(m->to));
        fb_sim_answer_number(&s->answer, "bytes", m->len);
        fb_sim_answer_number(&s->answer, "sent_step", m->sent_step);
        fb_sim_answer_bool(&s->answer, "carrier", m->carrier != 0);
        fb_sim_answer_item_end(&s->answer);
    }
    fb_sim_answer_close(&s->answer);
}

/* Changing. */

static void do_branch(stepper *s)
{
    fb_sim_decision d = {.node = UINT32_MAX, .ns = 0, .kind = FB_SIM_DECISIONS};
    const char *usage =
        "branch drop|duplicate [NODE], delay T [NODE], crash NODE [T], pause NODE T";
    for (uint8_t k = 0; k < FB_SIM_DECISIONS && s->words > 1; k++) {
        if (strcmp(s->word[1], fb_sim_decision_name(k)) == 0) d.kind = k;
    }
    bool process = d.kind == FB_SIM_DECISION_CRASH || d.kind == FB_SIM_DECISION_PAUSE;
    bool timed = process || d.kind == FB_SIM_DECISION_DELAY;
    int node_at = d.kind == FB_SIM_DECISION_DELAY ? 3 : 2;
    int time_at = process ? 3 : 2;
    if (d.kind == FB_SIM_DECISION_CRASH) d.ns = UINT64_C(1000000000);
    if (d.kind == FB_SIM_DECISION_DUPLICATE) d.ns = 1000;
    bool has_time = timed && s->words > time_at;
    bool needs_time = d.kind == FB_SIM_DECISION_DELAY || d.kind == FB_SIM_DECISION_PAUSE;
    if (d.kind == FB_SIM_DECISIONS || (process && s->words <= node_at) ||
        (needs_time && !has_time) || (has_time && !fb_sim_parse_time(s->word[time_at], &d.ns)) ||
        (s->words > node_at && !node_of(s, s->word[node_at], &d.node))) {
        wrong(s, usage);
        return;
    }
    const char *why = fb_sim_session_decide(&s->session, d);
    if (why != NULL) {
        wrong(s, why);
        return;
    }
    fb_sim_answer_line(&s->answer, "from here on another run: %s", fb_sim_decision_name(d.kind));
    fb_sim_answer_where(&s->answer, &s->session);
}

static void do_undo(stepper *s)
{
    if (!fb_sim_session_undo(&s->session)) {
        wrong(s, "nothing was changed by hand");
        return;
    }
    arrived(s);
}

static void do_where(stepper *s)
{
    fb_sim_answer_where(&s->answer, &s->session);
}

static void do_help(stepper *s)
{
    fb_sim_answer_string(&s->answer, "text", help);
    if (!s->answer.json) fb_sim_out_text(s->answer.out, help);
}

static void do_quit(stepper *s)
{
    s->quit = true;
}

static const struct {
    const char *name;
    void (*run)(stepper *s);
} commands[] = {
    {"forward", do_forward}, {"f", do_forward},   {"back", do_back},     {"b", do_back},
    {"to", do_to},           {"time", do_time},   {"bad", do_continue},  {"continue", do_continue},
    {"c", do_continue},      {"until", do_until}, {"show", do_show},     {"moment", do_moment},
    {"cause", do_cause},     {"state", do_state}, {"why", do_why},       {"next", do_next},
    {"n", do_next},          {"queue", do_queue}, {"branch", do_branch}, {"undo", do_undo},
    {"where", do_where},     {"help", do_help},   {"quit", do_quit},     {"q", do_quit},
};

static void command(stepper *s, char *line)
{
    s->words = 0;
    for (char *at = line; *at != 0 && s->words < WORDS_MAX;) {
        while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') *at++ = 0;
        if (*at == 0) break;
        s->word[s->words++] = at;
        while (*at != 0 && *at != ' ' && *at != '\t' && *at != '\n' && *at != '\r') at++;
    }
    if (s->words == 0) return;
    size_t count = sizeof commands / sizeof commands[0];
    size_t i = 0;
    while (i < count && strcmp(commands[i].name, s->word[0]) != 0) i++;
    fb_sim_answer_begin(&s->answer, i < count ? commands[i].name : s->word[0]);
    if (i < count) {
        commands[i].run(s);
    } else {
        wrong(s, "no command of this name; help lists them");
    }
    fb_sim_answer_end(&s->answer);
}

int fb_sim_step_main(int argc, char **argv)
{
    stepper s = {0};
    fb_sim_source_init(&s.source);
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            s.answer.json = true;
            continue;
        }
        fb_sim_flag read = fb_sim_source_read(&s.source, argc, argv, &i);
        if (read == FB_SIM_FLAG_UNKNOWN)
            return fb_sim_misused("step", "no flag of this name", argv[i]);
        if (read == FB_SIM_FLAG_REFUSED) return FB_SIM_EXIT_USAGE;
    }
    if (s.source.mutant != NULL) {
        int code = fb_sim_mutant_switch(argc, argv, s.source.mutant);
        if (code >= 0) return code;
    }
    s.answer.out = fb_sim_out_open("-");
    s.world = fb_sim_source_open(&s.source, RECORD_STEPS);
    if (s.answer.out == NULL || !fb_sim_session_init(&s.session, s.world)) {
        fb_sim_fail_resource("memory of this machine");
    }
    bool terminal = isatty(STDIN_FILENO) != 0 && !s.answer.json;
    if (terminal) fb_sim_answer_line(&s.answer, "help lists the commands");
    char line[COMMAND_BYTES];
    while (!s.quit) {
        if (terminal) fb_sim_out_text(s.answer.out, "(step) ");
        fb_sim_out_flush(s.answer.out);
        if (fgets(line, sizeof line, stdin) == NULL) break;
        command(&s, line);
    }
    bool whole = fb_sim_out_close(s.answer.out);
    fb_sim_source_verdict(s.world, &s.source);
    fb_sim_session_free(&s.session);
    fb_sim_source_close(s.world);
    fb_sim_source_free(&s.source);
    return whole ? 0 : 1;
}
