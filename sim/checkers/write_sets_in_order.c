/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    uint64_t *sealed = &((uint64_t *)own)[node]; /* of this incarnation */
    if (ORACLE(SETS_ASCEND, fx->b != *sealed + 1, fx->b <= *sealed)) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_write_sets_in_order.id,
                        "%s seals write set %llu after %llu", fb_sim_name(node),
                        (unsigned long long)fx->b, (unsigned long long)*sealed);
    }
    *sealed = fx->b;
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    (void)world;
    ((uint64_t *)own)[node] = 0;
}

const fb_sim_check fb_sim_check_write_sets_in_order = {
    .id = "write-sets-in-order",
    .musts = "DESIGN 2",
    .cost = "O(1) a write set",
    .text = "write sets are numbered from 1 without gaps within an incarnation",
    .of_node_bytes = sizeof(uint64_t),
    .facts = FB_SIM_FACT(FB_FACT_SEALED),
    .fact = fact,
    .over = over,
};
