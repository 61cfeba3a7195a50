/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/explore/explorer.h"

#include <stdlib.h>

#include "sim/explore/mutate.h"

/* Of sixteen runs, so many are drawn anew once there is a pool: what no member has is found there
 * alone. */
#define FRESH_OF_16 8u
/* Of those, so many without swarm: what takes many faults at once is found there, and what others
 * would hide in the rest. */
#define PLAIN_OF_16 12u
/* A drawn run is as long as was asked, half or a quarter: every end of a round is another chance
 * for what shows at ends alone, and a short run costs the less when it is like all others. */
#define LENGTHS 3u
/* Of the mutations, so many have an order of speeds as well. */
#define ORDERED_OF_16 5u

static const char *const names[] = {"random", "swarm", "priority", "pool"};

bool fb_sim_explore_read(const char *text, fb_sim_explore *how)
{
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *how = (fb_sim_explore)i;
        return true;
    }
    return false;
}

bool fb_sim_explorer_open(fb_sim_explorer *e, fb_sim_explore how, const char *folder)
{
    e->how = how;
    e->seed = (fb_seed){UINT64_C(0x6578706c6f7265), 0};
    return fb_sim_pool_open(&e->pool, how <= FB_SIM_EXPLORE_SWARM ? NULL : folder);
}

void fb_sim_explorer_close(fb_sim_explorer *e)
{
    fb_sim_pool_close(&e->pool);
}

static uint64_t roll(const fb_sim_explorer *e, uint64_t number, uint64_t what, uint64_t count)
{
    return fb_draw_below(e->seed, FB_SIM_STREAM_EXPLORE, number, UINT64_MAX - 1 - what, count);
}

/* What is played is what its text says: a failure is kept as text. */
static bool canonical(fb_sim_plan *plan)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (out == NULL) return false;
    fb_sim_plan_print(plan, out);
    bool good = fclose(out) == 0;
    fb_sim_plan read;
    fb_sim_plan_error error;
    if (good && !fb_sim_plan_parse(text, len, &read, &error)) {
        fprintf(stderr, "a made-up schedule is no schedule: line %u: %s\n", (unsigned)error.line,
                error.text);
        good = false;
    }
    free(text);
    if (!good) return false;
    fb_sim_plan_free(plan);
    *plan = read;
    return true;
}

bool fb_sim_explorer_plain(const fb_sim_explorer *e, uint64_t number)
{
    return e->how == FB_SIM_EXPLORE_RANDOM ||
           (e->how == FB_SIM_EXPLORE_POOL && roll(e, number, 3, 16) < PLAIN_OF_16);
}

uint64_t fb_sim_explorer_events(const fb_sim_explorer *e, uint64_t number, uint64_t events)
{
    if (e->how <= FB_SIM_EXPLORE_SWARM) return events;
    return (events >> roll(e, number, 4, LENGTHS)) + 1;
}

bool fb_sim_explorer_next(fb_sim_explorer *e, uint64_t number, fb_sim_plan *plan, uint64_t *parent)
{
    bool ordered = e->how == FB_SIM_EXPLORE_PRIORITY;
    if (e->how <= FB_SIM_EXPLORE_SWARM || e->pool.count == 0) return false;
    if (roll(e, number, 0, 16) < (ordered ? 8 : FRESH_OF_16)) return false;
    uint32_t at = fb_sim_pool_pick(&e->pool, e->seed, number);
    uint32_t other = (uint32_t)roll(e, number, 1, e->pool.count);
    if (!fb_sim_plan_copy(plan, &e->pool.members[at].plan)) return false;
    *parent = e->pool.members[at].id;
    bool good = ordered || fb_sim_mutate(plan, &e->pool.members[other].plan, e->seed, number);
    if (good && (ordered || roll(e, number, 2, 16) < ORDERED_OF_16)) {
        good = fb_sim_prioritise(plan, e->seed, number);
    }
    good = good && canonical(plan);
    if (!good) fb_sim_plan_free(plan);
    return good;
}

uint32_t fb_sim_explorer_over(fb_sim_explorer *e, const fb_sim_seen *shown)
{
    e->states += fb_sim_seen_add(&e->seen, shown);
    uint32_t gained = fb_sim_pool_saw(&e->pool, shown);
    e->traits += gained;
    return gained;
}

bool fb_sim_explorer_wants(const fb_sim_explorer *e, uint32_t gained)
{
    if (e->how <= FB_SIM_EXPLORE_SWARM) return false;
    /* An order of speeds can be given to any run. */
    return gained != 0 || e->how == FB_SIM_EXPLORE_PRIORITY;
}
