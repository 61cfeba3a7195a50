/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/internal.h"
#include "protocol/database/state.h"
#include "sim/explore/abstract.h"

void fb_sim_abstract_database(fb_sim_digits *d, const fb_node *core)
{
    const struct fb_database *all = core->database;
    uint32_t fetches = 0, wanted = 0;
    for (uint32_t i = 0; i < all->fetch_count; i++) fetches += all->fetches[i].used;
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        wanted += all->areas[i].used && all->areas[i].wants != 0;
    }
    fb_sim_digit(d, fb_sim_class_of(fetches));
    fb_sim_digit(d, fb_sim_class_of(wanted));
}
