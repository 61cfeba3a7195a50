/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes do is in proportion to what was asked of them. A system that answers trouble with
 * more work (retries without a pause, a message for every message) can go on for ever when the
 * trouble is over, or stay busy with itself; so the steps of a round, the bytes that arrive and the
 * tries to dial are held against what happened in it: requests, changes applied, links bound and
 * ended, starts, and the time in which every pair says its heartbeats. The factors are about four
 * times what a sound program is seen to need. */
#include "sim/checkers/list.h"

#define SECOND UINT64_C(1000000000)

typedef struct state {
    uint64_t began_ns;
    uint64_t steps, applied, requests; /* before the round */
    uint64_t links, starts, dials;     /* in it */
    uint64_t bytes;                    /* that arrived, from peers and others */
} state;

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)world;
    (void)node;
    state *s = own;
    if (fx->a == FB_FACT_STARTED) {
        s->starts++;
    } else {
        s->links++;
    }
}

static void event(fb_sim_world *world, void *own, uint32_t node, const fb_event *e)
{
    (void)world;
    (void)node;
    state *s = own;
    if (e->kind == FB_EV_DIAL_RESULT) {
        s->dials++;
    } else {
        s->bytes += e->len;
    }
}

static void round_end(fb_sim_world *world, void *own)
{
    state *s = own;
    uint64_t nodes = world->config.nodes;
    uint64_t pairs = nodes * nodes * fb_sim_space_count(world); /* each has a link */
    uint64_t steps = world->steps - s->steps, applied = world->applied - s->applied;
    uint64_t requests = world->requests - s->requests;
    uint64_t seconds = (world->now_ns - s->began_ns) / SECOND + 1;
    uint64_t most =
        10 * requests + 20 * applied + 400 * s->links + 2000 * s->starts + 8 * pairs * seconds;
    if (steps > most && world->traitor == UINT32_MAX) {
        fb_sim_violated(world, FB_SIM_LIVENESS, "work-bounded",
                        "%llu steps in %llu s, for %llu requests, %llu changes applied, %llu links "
                        "that came or went and %llu starts: at most %llu were to be expected",
                        (unsigned long long)steps, (unsigned long long)seconds,
                        (unsigned long long)requests, (unsigned long long)applied,
                        (unsigned long long)s->links, (unsigned long long)s->starts,
                        (unsigned long long)most);
    }
    /* Pauses double from a quarter of a second to half a minute (profile 7): of one outage, a dozen
     * tries of each address and a few a minute. */
    uint64_t most_dials =
        6 * (s->links + nodes * fb_sim_space_count(world) * (s->starts + 1)) + pairs * seconds / 4;
    if (s->dials > most_dials) {
        fb_sim_violated(world, FB_SIM_LIVENESS, "work-bounded",
                        "%llu tries to dial in %llu s, for %llu links that came or went and %llu "
                        "starts: at most %llu were to be expected",
                        (unsigned long long)s->dials, (unsigned long long)seconds,
                        (unsigned long long)s->links, (unsigned long long)s->starts,
                        (unsigned long long)most_dials);
    }
    /* A member that lies sends what it likes. */
    uint64_t most_bytes = 4096 * applied + 256 * requests + 16384 * s->links + 65536 * s->starts +
                          512 * pairs * seconds;
    if (s->bytes > most_bytes && world->traitor == UINT32_MAX) {
        fb_sim_violated(
            world, FB_SIM_LIVENESS, "work-bounded",
            "%llu bytes arrived in %llu s, for %llu requests, %llu changes applied, %llu "
            "links that came or went and %llu starts: at most %llu were to be expected",
            (unsigned long long)s->bytes, (unsigned long long)seconds, (unsigned long long)requests,
            (unsigned long long)applied, (unsigned long long)s->links,
            (unsigned long long)s->starts, (unsigned long long)most_bytes);
    }
    *s = (state){.began_ns = world->now_ns,
                 .steps = world->steps,
                 .applied = world->applied,
                 .requests = world->requests};
}

const fb_sim_check fb_sim_check_work_bounded = {
    .id = "work-bounded",
    .musts = "DESIGN 2, P-6, P-7",
    .cost = "round",
    .text = "steps, bytes and dials of a round are in proportion to what happened in it",
    .state_bytes = sizeof(state),
    .facts = FB_SIM_FACT(FB_FACT_STARTED) | FB_SIM_FACT(FB_FACT_LINK_BOUND) |
             FB_SIM_FACT(FB_FACT_LINK_ENDED),
    .fact = fact,
    .events = UINT64_C(1) << FB_EV_DIAL_RESULT | UINT64_C(1) << FB_EV_LINK_BYTES |
              UINT64_C(1) << FB_EV_CARRIER_FRAME,
    .event = event,
    .round = round_end,
};
