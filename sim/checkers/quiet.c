/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"
#include "sim/workload/director.h"

/* After a core agrees, has opened its last links, given on them what earlier ones left (profile 6)
 * and had its pauses, only heartbeats are left. The director says from when. */

typedef struct state {
    uint64_t sent;
    uint64_t sealed;
    uint32_t who;
} state;

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    const fb_sim_director *d = world->director;
    if (d->phase != FB_SIM_PHASE_QUIET || world->now_ns < d->quiet_ns) {
        s->sent = s->sealed = 0;
        return;
    }
    if (world->held_apart[node]) return;
    if (fx->a == FB_FACT_SEALED) {
        s->sealed++;
    } else {
        s->sent++;
    }
    s->who = node;
}

static void round_end(fb_sim_world *world, void *own)
{
    state *s = own;
    /* What only a node out of reach has is asked for in vain, ever more seldom, and each such wish
     * is given up once (DESIGN 3.1, fetch; collections and the space's own area). */
    uint64_t wishes = 0;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        wishes += world->held_apart[i] ? 2 * fb_sim_space_count(world) : 0;
    }
    if (s->sent > ORACLE(QUIET_ENOUGH, 0u, 100u) || s->sealed > wishes) {
        fb_sim_violated(world, FB_SIM_LIVENESS, fb_sim_check_quiet.id,
                        "after agreement: %llu signals, %llu write sets, the last of %s",
                        (unsigned long long)s->sent, (unsigned long long)s->sealed,
                        fb_sim_name(s->who));
    }
    s->sent = s->sealed = 0;
}

const fb_sim_check fb_sim_check_quiet = {
    .id = "quiet-after-convergence",
    .musts = "DESIGN 3.1",
    .cost = "round",
    .text = "a core that agrees sends heartbeats and writes nothing",
    .state_bytes = sizeof(state),
    .facts = FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_RESENT) | FB_SIM_FACT(FB_FACT_SEALED),
    .fact = fact,
    .round = round_end,
};
