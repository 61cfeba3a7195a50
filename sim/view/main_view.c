/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "sim/main_sim.h"
#include "sim/usage.h"
#include "sim/view/source.h"
#include "sim/view/view.h"
#include "sim/world/world.h"

#define STEPS_MAX (UINT64_C(1) << 23)
/* A schedule does not say how long it is. */
#define STEPS_OF_SCHEDULE (UINT64_C(1) << 19)
/* What a page shows of a run that is longer: the steps before its end. */
#define PAGE_STEPS 2500u

typedef struct view_options {
    fb_sim_source source;
    const char *form; /* "--text", "--html", "--perfetto" */
    const char *out;
    char *beside_word; /* NULL: none */
    fb_sim_source beside;
    uint64_t from, to, last;
    bool steps;
    uint64_t nodes;
    const char *kind;
} view_options;

/* With the flags of the first one, unless it is a schedule. */
static bool beside_read(view_options *o, char *word)
{
    char *words[] = {word};
    int at = 0;
    fb_sim_source_init(&o->beside);
    if (o->source.path == NULL) o->beside.config = o->source.config;
    if (fb_sim_parse_seed(word, &o->beside.config)) return true;
    return fb_sim_source_read(&o->beside, 1, words, &at) == FB_SIM_FLAG_TAKEN;
}

/* An exit code, or -1. */
static int options_read(view_options *o, int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        const char *flag = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        uint64_t *number = strcmp(flag, "--from") == 0   ? &o->from
                           : strcmp(flag, "--to") == 0   ? &o->to
                           : strcmp(flag, "--last") == 0 ? &o->last
                                                         : NULL;
        bool file = strcmp(flag, "--html") == 0 || strcmp(flag, "--perfetto") == 0;
        if (strcmp(flag, "--steps") == 0) {
            o->steps = true;
        } else if (strcmp(flag, "--text") == 0) {
            o->form = flag;
            o->out = "-";
        } else if (file || number != NULL || strcmp(flag, "--node") == 0 ||
                   strcmp(flag, "--kind") == 0 || strcmp(flag, "--beside") == 0) {
            if (value == NULL) return fb_sim_misused("view", "a flag without its value", flag);
            i++;
            if (file) {
                o->form = flag;
                o->out = value;
            } else if (number != NULL) {
                if (!fb_sim_parse_number(value, number))
                    return fb_sim_misused("view", "not a number", value);
            } else if (strcmp(flag, "--node") == 0) {
                if (!fb_sim_parse_node(value, &o->nodes))
                    return fb_sim_misused("view", "no node of this name", value);
            } else if (strcmp(flag, "--kind") == 0) {
                o->kind = value;
            } else {
                o->beside_word = argv[i];
            }
        } else {
            fb_sim_flag read = fb_sim_source_read(&o->source, argc, argv, &i);
            if (read == FB_SIM_FLAG_UNKNOWN)
                return fb_sim_misused("view", "no flag of this name", flag);
            if (read == FB_SIM_FLAG_REFUSED) return FB_SIM_EXIT_USAGE;
        }
    }
    if (o->form == NULL)
        return fb_sim_misused("view", "--text, --html OUT or --perfetto OUT is missing", NULL);
    if (o->nodes == 0) o->nodes = UINT64_MAX;
    if (o->beside_word != NULL && !beside_read(o, o->beside_word)) return FB_SIM_EXIT_USAGE;
    return -1;
}

/* Runs to its end, or to --to. */
static fb_sim_world *run(const view_options *o, const fb_sim_source *source)
{
    uint64_t wanted = source->config.events;
    if (o->to != 0 && o->to < wanted) wanted = o->to;
    if (source->path != NULL && wanted > STEPS_OF_SCHEDULE) wanted = STEPS_OF_SCHEDULE;
    if (wanted > STEPS_MAX) wanted = STEPS_MAX;
    fb_sim_world *world = fb_sim_source_open(source, wanted + wanted / 8 + 16384);
    while ((o->to == 0 || world->steps < o->to) && fb_sim_world_next(world)) {
    }
    fb_sim_record_verdict(world);
    return world;
}

static fb_sim_span span_of(const view_options *o, const fb_sim_world *world)
{
    fb_sim_span span = {.to = world->steps, .steps = o->steps, .nodes = o->nodes, .kind = o->kind};
    if (o->to != 0 && o->to < span.to) span.to = o->to;
    span.from = fb_sim_record_from(world->record, world->steps);
    uint64_t last = o->last;
    if (last == 0 && o->from == 0 && strcmp(o->form, "--html") == 0) last = PAGE_STEPS;
    if (last != 0 && last < span.to) span.from = fb_max_u64(span.from, span.to - last + 1);
    span.from = fb_max_u64(span.from, o->from);
    if (span.to + 1 < span.from) span.from = span.to + 1;
    span.memory = calloc((size_t)(span.to - span.from) + 2, sizeof *span.memory);
    if (span.memory == NULL) fb_sim_fail_resource("memory of this machine");
    return span;
}

int fb_sim_view_main(int argc, char **argv)
{
    view_options o = {0};
    fb_sim_source_init(&o.source);
    int code = options_read(&o, argc, argv);
    if (code >= 0) return code;
    if (o.source.mutant != NULL) {
        code = fb_sim_mutant_switch(argc, argv, o.source.mutant);
        if (code >= 0) return code;
    }
    fb_sim_world *world = run(&o, &o.source);
    fb_sim_world *beside = o.beside_word == NULL ? NULL : run(&o, &o.beside);
    fb_sim_span beside_span = {0};
    if (beside != NULL) beside_span = span_of(&o, beside);
    fb_sim_span span = span_of(&o, world);
    fb_sim_out *out = fb_sim_out_open(o.out);
    bool whole = out != NULL;
    if (out != NULL) {
        if (strcmp(o.form, "--text") == 0) fb_sim_view_text(world, &span, out);
        if (strcmp(o.form, "--perfetto") == 0) fb_sim_view_perfetto(world, &span, out);
        if (strcmp(o.form, "--html") == 0) {
            fb_sim_view_html(world, &span, beside, beside == NULL ? NULL : &beside_span, out);
        }
        whole = fb_sim_out_close(out);
    }
    if (whole && (strcmp(o.out, "-") != 0 || strcmp(o.form, "--text") == 0)) {
        fb_sim_source_verdict(world, &o.source);
    }
    if (!whole) fprintf(stderr, "faberio sim: cannot write %s\n", o.out);
    free(span.memory);
    free(beside_span.memory);
    if (beside != NULL) fb_sim_source_close(beside);
    fb_sim_source_close(world);
    fb_sim_source_free(&o.source);
    fb_sim_source_free(&o.beside);
    return whole ? 0 : 1;
}
