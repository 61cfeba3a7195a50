/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

typedef struct state {
    int64_t past_ms, future_ms; /* profile 5, whatever the nodes of the run were told */
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    (void)world;
    (void)arena;
    fb_timing timing = fb_options_small().timing;
    if (own != NULL) {
        *(state *)own = (state){timing.window_past_us / 1000, timing.window_future_us / 1000};
    }
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)fx;
    const state *s = own;
    uint64_t sent = world->checks->told->sent_ms;
    uint32_t sender = world->checks->told->peer;
    if (sender == UINT32_MAX) return;
    /* Of an honest sender what it said when it sent; a liar's machine says what it likes, and its
     * word has to be within the window as well. */
    if (world->liars[sender]) sent = world->checks->told->message.timestamp;
    if (sent == 0) return;
    int64_t wall_us = fb_sim_clock_wall(&world->nodes[node].clock, world->now_ns);
    int64_t now_ms = wall_us >= 0 ? wall_us / 1000 : -((999 - wall_us) / 1000);
    int64_t at = (int64_t)sent;
    if (at >= now_ms - s->past_ms && at <= ORACLE(FUTURE_UNBOUNDED, now_ms + s->future_ms, at)) {
        return;
    }
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_within_window.id,
                    "%s accepts a message %lld ms from its clock", fb_sim_name(node),
                    (long long)(at - now_ms));
}

const fb_sim_check fb_sim_check_within_window = {
    .id = "within-window",
    .musts = "MP-5-8",
    .cost = "O(1) a message",
    .text = "an accepted message is at most 15 minutes old and 5 minutes early by the receiver",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_DELIVERED),
    .fact = fact,
};
