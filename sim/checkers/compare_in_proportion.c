/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/limits.h"
#include "sim/checkers/list.h"

/* What a comparison costs is bounded by what differs, not by what there is. DESIGN 3.1,
 * Anti-entropy: 512 bytes and one call when nothing does; for each of k items among n a node of
 * every level between, ⌈log16(n/k)⌉ of them. What the levels themselves take is the first call, and
 * a few for trees that are less even than the logarithm. */

static uint64_t levels_of(uint64_t items, uint64_t differ)
{
    uint64_t levels = 1, reach = differ == 0 ? 1 : differ;
    while (reach < items) {
        reach *= 16;
        levels++;
    }
    return levels;
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)own;
    if (fx->len < 32) return;
    uint64_t differ = fb_load_be64(fb_effect_bytes(fx) + 16);
    uint64_t items = fb_load_be64(fb_effect_bytes(fx) + 24);
    uint64_t most = 512 + differ * (200 + 300 * levels_of(items, differ));
    uint64_t calls = differ == 0 ? 1 : 2 + 5 + differ / FB_COMPARE_PATHS_MAX;
    /* Both sides may change while it goes on, and a difference be gone when it is reached. */
    uint64_t moved = fx->b > 1 ? 800 : 0;
    if (fx->c <= most + moved && (fx->b <= calls || moved != 0)) return;
    fb_sim_violated(world, FB_SIM_LIVENESS, fb_sim_check_compare_in_proportion.id,
                    "%s compared %llu items, of which %llu differ, with %llu bytes and %llu calls",
                    fb_sim_name(node), (unsigned long long)items, (unsigned long long)differ,
                    (unsigned long long)fx->c, (unsigned long long)fx->b);
}

const fb_sim_check fb_sim_check_compare_in_proportion = {
    .id = "compare-in-proportion",
    .musts = "DESIGN 3.1",
    .cost = "O(1) a comparison",
    .text = "bytes and calls of a comparison are bounded by what differs",
    .facts = FB_SIM_FACT(FB_FACT_COMPARED),
    .fact = fact,
};
