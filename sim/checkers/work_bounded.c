/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes do is in proportion to what was asked of them. A system that answers trouble with
 * more work (retries without a pause, a message for every message) can go on for ever when the
 * trouble is over, or stay busy with itself; so the steps of a round, the bytes that arrive and the
 * tries to dial are held against what happened in it: requests, changes applied, links bound and
 * ended, starts, and the time in which every pair says its heartbeats. The factors are about four
 * times what a sound program is seen to need; of a change with long values each byte counts. */
#include "sim/checkers/list.h"

#define SECOND UINT64_C(1000000000)
/* The factor for each change has room for so much of it, and as much again. */
#define LONG_BYTES 2048u

typedef struct state {
    uint64_t began_ns;
    uint64_t steps, applied, requests; /* before the round */
    uint64_t links, starts, dials;     /* in it */
    uint64_t bytes;                    /* that arrived, from peers and others */
    uint64_t long_bytes;               /* of the changes applied in it, beyond LONG_BYTES */
    fb_sim_memo asked;                 /* long requests: their bytes beyond that */
    fb_sim_memo written;               /* the same by the dot of the first change of each */
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    (void)world;
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->asked, arena, 1u << 9, 1);
    fb_sim_memo_init(&s->written, arena, 1u << 12, 1);
}

static uint64_t dot_of(fb_span bytes)
{
    return fb_sim_key(fb_span_of(bytes.p + 32, 32), fb_xxh64(bytes.p, 16, 0));
}

static void change(state *s, const fb_effect *fx)
{
    fb_span bytes = fb_sim_fact_bytes(fx);
    if (bytes.len < 72) return;
    if (fx->a == FB_FACT_APPLIED) {
        const uint64_t *len = fb_sim_memo_find(&s->written, dot_of(bytes));
        if (len != NULL) s->long_bytes += *len;
        return;
    }
    uint64_t *len = fx->b == 0 ? NULL : fb_sim_memo_find(&s->asked, fx->b);
    if (len == NULL || *len == 0) return;
    fb_sim_memo_put(&s->written, dot_of(bytes), *len);
    *len = 0;
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)world;
    (void)node;
    state *s = own;
    if (fx->a == FB_FACT_WRITTEN || fx->a == FB_FACT_APPLIED) {
        change(s, fx);
    } else if (fx->a == FB_FACT_STARTED) {
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
    } else if (e->kind == FB_EV_REQUEST) {
        if (e->len > LONG_BYTES) fb_sim_memo_put(&s->asked, e->a, e->len - LONG_BYTES);
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
    uint64_t most_bytes = 4096 * applied + s->long_bytes + 256 * requests + 16384 * s->links +
                          65536 * s->starts + 512 * pairs * seconds;
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
                 .requests = world->requests,
                 .asked = s->asked,
                 .written = s->written};
}

const fb_sim_check fb_sim_check_work_bounded = {
    .id = "work-bounded",
    .musts = "DESIGN 2, P-6, P-7",
    .cost = "round",
    .text = "steps, bytes and dials of a round are in proportion to what happened in it",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_WRITTEN) | FB_SIM_FACT(FB_FACT_APPLIED) |
             FB_SIM_FACT(FB_FACT_STARTED) | FB_SIM_FACT(FB_FACT_LINK_BOUND) |
             FB_SIM_FACT(FB_FACT_LINK_ENDED),
    .fact = fact,
    .events = UINT64_C(1) << FB_EV_REQUEST | UINT64_C(1) << FB_EV_DIAL_RESULT |
              UINT64_C(1) << FB_EV_LINK_BYTES | UINT64_C(1) << FB_EV_CARRIER_FRAME,
    .event = event,
    .round = round_end,
};
