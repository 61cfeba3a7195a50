/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of fb_sim_abstract: a file for each plane, because planes do not know each other's tables.
 */
#ifndef FB_SIM_EXPLORE_ABSTRACT_H
#define FB_SIM_EXPLORE_ABSTRACT_H

#include "protocol/core/node.h"

/* The abstract state as a number of base four. */
typedef struct fb_sim_digits {
    uint64_t value;
} fb_sim_digits;

static inline void fb_sim_digit(fb_sim_digits *d, uint64_t value)
{
    d->value = d->value << 2 | (value & 3);
}

/* None, one, a few, many. */
static inline uint64_t fb_sim_class_of(uint64_t count)
{
    return count < 2 ? count : count < 8 ? 2 : 3;
}

/* Of something bounded: empty, less than half full, more, full to an eighth. */
static inline uint64_t fb_sim_class_full(uint64_t used, uint64_t most)
{
    return used == 0 ? 0 : 2 * used < most ? 1 : 8 * used < 7 * most ? 2 : 3;
}

void fb_sim_abstract_messaging(fb_sim_digits *d, const fb_node *core);
void fb_sim_abstract_database(fb_sim_digits *d, const fb_node *core);

#endif
