/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "sim/run.h"
#include "sim/step/diff.h"
#include "sim/view/source.h"
#include "sim/world/world.h"

typedef struct stretch {
    uint64_t from, to;
} stretch;

static void emit(void *user, const fb_sim_world *world, uint32_t node, const fb_event *event,
                 const fb_effects *effects, fb_hash128 digest)
{
    const stretch *s = user;
    if (world->steps < s->from || world->steps > s->to) return;
    uint64_t words[FB_SIM_DIFF_WORDS] = {
        [FB_SIM_DIFF_STEP] = world->steps,
        [FB_SIM_DIFF_NODE] = node,
        [FB_SIM_DIFF_KIND] = event->kind,
        [FB_SIM_DIFF_MONO] = event->mono_ns,
        [FB_SIM_DIFF_WALL] = (uint64_t)event->wall_us,
        [FB_SIM_DIFF_A] = event->a,
        [FB_SIM_DIFF_B] = event->b,
        [FB_SIM_DIFF_C] = event->c,
        [FB_SIM_DIFF_EVENT_BYTES] = event->len,
        [FB_SIM_DIFF_DIGEST_LO] = digest.lo,
        [FB_SIM_DIFF_DIGEST_HI] = digest.hi,
    };
    const fb_effect *fx = NULL;
    while ((fx = fb_effects_next(effects, fx)) != NULL) {
        if (fx->kind != FB_FX_LOG) words[FB_SIM_DIFF_EFFECT_BYTES] += sizeof *fx + fx->len;
    }
    fwrite(words, sizeof words[0], FB_SIM_DIFF_WORDS, stdout);
    if (event->len != 0) fwrite(event->bytes, 1, event->len, stdout);
    while ((fx = fb_effects_next(effects, fx)) != NULL) {
        if (fx->kind != FB_FX_LOG) fwrite(fx, 1, sizeof *fx + fx->len, stdout);
    }
}

static void checkpoint(const fb_sim_world *world, char kind)
{
    char hash[33];
    fb_sim_trace_text(fb_sim_trace_hash(&world->trace), hash);
    printf("%c %llu %s %s %s\n", kind, (unsigned long long)world->steps, hash,
           fb_sim_result_name(world->result), world->check == NULL ? "none" : world->check);
    fflush(stdout);
}

int fb_sim_diff_side(int argc, char **argv, int at, bool checkpoints, uint64_t from, uint64_t to)
{
    fb_sim_source source;
    fb_sim_source_init(&source);
    for (int i = at; i < argc; i++) {
        fb_sim_flag read = fb_sim_source_read(&source, argc, argv, &i);
        if (read == FB_SIM_FLAG_UNKNOWN) return fb_sim_refuse("no flag of this name", argv[i]);
        if (read == FB_SIM_FLAG_REFUSED) return FB_SIM_EXIT_USAGE;
    }
    if (source.mutant != NULL) {
        int code = fb_sim_mutant_switch(argc, argv, source.mutant);
        if (code >= 0) return code;
    }
    fb_sim_world *world = fb_sim_source_open(&source, 1024);
    stretch s = {from, to};
    if (checkpoints) {
        uint64_t next = FB_SIM_CHECKPOINT_STEPS;
        while (fb_sim_world_next(world)) {
            if (world->steps < next) continue;
            checkpoint(world, 'c');
            next = world->steps / FB_SIM_CHECKPOINT_STEPS * FB_SIM_CHECKPOINT_STEPS +
                   FB_SIM_CHECKPOINT_STEPS;
        }
        checkpoint(world, 'e');
    } else {
        world->record->heard = emit;
        world->record->user = &s;
        while (world->steps < to && fb_sim_world_next(world)) {
        }
        fflush(stdout);
    }
    fb_sim_source_close(world);
    fb_sim_source_free(&source);
    return 0;
}
