/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

/* What an external carrier does not get acknowledged is sent again from the first one on, after a
 * pause that doubles each time and begins anew only when something was acknowledged. Without that
 * the answer to a full queue is to fill it once more: retries that keep alive the trouble that they
 * come from, for ever. Looked at as each of them is sent, by the clock of its node. */

typedef struct link_state {
    uint64_t link;
    uint64_t last;      /* number that was sent last: one that is not above it is a retry */
    uint64_t first;     /* number with which the last pass began */
    uint64_t began_ns;  /* and when */
    uint64_t paused_ns; /* that it had to wait at least; 0: it was no retry */
} link_state;

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    link_state *l = &((link_state *)own)[fb_sim_link_end(world, fx->b)];
    uint64_t now_ns = world->nodes[node].last_mono_ns;
    if (l->link != fx->b || fx->a == FB_FACT_LINK_BOUND) *l = (link_state){.link = fx->b};
    if (fx->a == FB_FACT_LINK_BOUND) return;
    bool retry = fx->c <= l->last;
    bool begins = retry || l->last == 0;
    l->last = fx->c;
    if (!begins) return;
    const fb_timing *timing = &world->config.timing;
    uint64_t least_ns = 0;
    if (retry) {
        /* The same first one: nothing was acknowledged meanwhile. */
        bool more = fx->c == l->first && l->paused_ns != 0;
        least_ns =
            more ? fb_min_u64(2 * l->paused_ns, timing->resend_max_ns) : timing->resend_min_ns;
        if (ORACLE(PAUSES_UNCOMPARED, now_ns - l->began_ns < least_ns, false)) {
            fb_sim_violated(world, FB_SIM_LIVENESS, fb_sim_check_retries_paused.id,
                            "%s sends message %llu again after %llu ms, not after %llu ms",
                            fb_sim_name(node), (unsigned long long)fx->c,
                            (unsigned long long)((now_ns - l->began_ns) / 1000000),
                            (unsigned long long)(least_ns / 1000000));
            return;
        }
    }
    *l = (link_state){fx->b, fx->c, fx->c, now_ns, least_ns};
}

const fb_sim_check fb_sim_check_retries_paused = {
    .id = "retries-paused",
    .musts = "MP-7-26, P-7",
    .cost = "O(1) a message",
    .text = "what is sent again on a carrier waits its pause, which doubles",
    .of_end_bytes = sizeof(link_state),
    .facts =
        FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_RESENT) | FB_SIM_FACT(FB_FACT_LINK_BOUND),
    .fact = fact,
};
