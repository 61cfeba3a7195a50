/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/view/source.h"

#include <stdlib.h>

#include "sim/run.h"
#include "sim/schedule/verbs.h"
#include "sim/workload/director.h"

void fb_sim_source_init(fb_sim_source *source)
{
    *source = (fb_sim_source){.config = fb_sim_config_default()};
}

void fb_sim_source_free(fb_sim_source *source)
{
    if (source->plan != NULL) fb_sim_plan_free(source->plan);
    free(source->plan);
    source->plan = NULL;
}

static bool plan_read(fb_sim_source *source, const char *path)
{
    fb_sim_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) fb_sim_fail_resource("memory of this machine");
    if (!fb_sim_plan_load(path, plan)) {
        free(plan);
        return false;
    }
    source->path = path;
    source->plan = plan;
    fb_sim_plan_config(plan, &source->config);
    if (plan->bug[0] != 0 && !source->sound) source->mutant = plan->bug;
    return true;
}

fb_sim_flag fb_sim_source_read(fb_sim_source *source, int argc, char **argv, int *at)
{
    fb_sim_flag read = fb_sim_flag_read(argc, argv, at, &source->config, &source->mutant);
    if (read != FB_SIM_FLAG_UNKNOWN) return read;
    if (strcmp(argv[*at], "--sound") == 0) {
        source->sound = true;
        if (source->plan != NULL && source->mutant == source->plan->bug) source->mutant = NULL;
        return FB_SIM_FLAG_TAKEN;
    }
    if (argv[*at][0] == '-' || source->path != NULL) return read;
    return plan_read(source, argv[*at]) ? FB_SIM_FLAG_TAKEN : FB_SIM_FLAG_REFUSED;
}

fb_sim_world *fb_sim_source_open(const fb_sim_source *source, uint64_t steps)
{
    fb_sim_config config = source->config;
    config.viewed = true;
    config.quiet = true;
    fb_sim_world *world = fb_sim_world_create(&config);
    if (world == NULL || fb_sim_record_create(world, steps) == NULL) {
        fb_sim_fail_resource("memory of this machine");
    }
    fb_sim_fail_set((fb_sim_current){.seed = world->config.seed_text, .steps = &world->steps});
    fb_sim_director_start(world);
    return world;
}

void fb_sim_source_close(fb_sim_world *world)
{
    fb_sim_fail_set((fb_sim_current){0});
    fb_sim_record_destroy(world->record);
    fb_sim_world_destroy(world);
}

void fb_sim_source_verdict(const fb_sim_world *world, const fb_sim_source *source)
{
    fb_sim_verdict verdict = {.result = world->result,
                              .check = world->check,
                              .events = world->steps,
                              .hash = fb_sim_trace_hash(&world->trace),
                              .schedule = source->path};
    fb_sim_print_verdict(&world->config, &verdict);
}
