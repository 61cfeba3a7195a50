/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/explore/mutate.h"

#define MS UINT64_C(1000000)

#define POINTS_MAX 3u /* at which the order changes, of a round */

/* Two ranks apart is sixteen times slower. */
#define RANKS 5u

static const uint8_t slowing[] = {FB_SIM_FAULT_DELAY, FB_SIM_FAULT_WRITE_LATE,
                                  FB_SIM_FAULT_READ_LATE, FB_SIM_FAULT_TIMER_LATE};

static bool is_slowing(const fb_sim_line *line)
{
    for (size_t i = 0; i < sizeof slowing; i++) {
        if (line->kind == FB_SIM_LINE_WINDOW && line->fault == slowing[i]) return true;
    }
    return false;
}

static bool slow_down(fb_sim_plan *plan, fb_sim_dice *d, uint32_t round, uint32_t node,
                      uint32_t rank, uint64_t from_ns, uint64_t until_ns)
{
    for (size_t i = 0; i < sizeof slowing; i++) {
        /* Not in everything: a slow disk behind a fast network is an order of its own. */
        if (fb_sim_roll(d, 3) == 0) continue;
        fb_sim_line *line = fb_sim_plan_line_add(plan);
        if (line == NULL) return plan->line_count >= FB_SIM_SCHEDULE_LINES_MAX;
        line->kind = FB_SIM_LINE_WINDOW;
        line->round = round;
        line->a = line->b = node;
        line->fault = slowing[i];
        line->key = 1000 + (uint32_t)fb_sim_roll(d, 60000);
        line->p = MS << (2 * rank);
        line->at_ns = from_ns;
        line->until_ns = until_ns;
        fb_sim_window_normalise(plan, line);
    }
    return true;
}

bool fb_sim_prioritise(fb_sim_plan *plan, fb_seed seed, uint64_t number)
{
    fb_sim_dice d = {seed, FB_SIM_STREAM_PRIORITY, number, 0};
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        if (!is_slowing(&plan->lines[i])) plan->lines[kept++] = plan->lines[i];
    }
    plan->line_count = kept;
    plan->expect = FB_SIM_EXPECT_NOTHING;
    plan->check[0] = 0;
    plan->has_hash = false;
    for (uint32_t round = 0; round < plan->round_count; round++) {
        uint64_t length = plan->rounds[round].length_ns, from = 0;
        uint32_t points = 1 + (uint32_t)fb_sim_roll(&d, POINTS_MAX);
        for (uint32_t i = 0; i <= points && from < length; i++) {
            uint64_t until = i == points ? length : from + 1 + fb_sim_roll(&d, length - from);
            /* Some stay as fast as they are. */
            for (uint32_t node = 0; node < plan->nodes; node++) {
                uint32_t rank = (uint32_t)fb_sim_roll(&d, RANKS);
                if (rank != 0 && !slow_down(plan, &d, round, node, rank, from, until)) return false;
            }
            from = until;
        }
    }
    fb_sim_plan_sort(plan);
    fb_sim_windows_limit(plan);
    return true;
}
