/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/explore/seen.h"

#include "sim/world.h"

static uint64_t mixed(uint64_t bits, uint64_t part)
{
    bits = (bits ^ part) * UINT64_C(0xff51afd7ed558ccd);
    return bits ^ bits >> 32;
}

static void see(fb_sim_seen *seen, uint64_t bits)
{
    seen->bits[bits % FB_SIM_SEEN_BITS / 64] |= UINT64_C(1) << (bits % 64);
}

void fb_sim_seen_step(fb_sim_world *world, uint32_t index, const fb_event *event)
{
    fb_sim_node *node = &world->nodes[index];
    if (world->config.seen == NULL || node->core == NULL) return;
    uint64_t effects = 0, facts = 0;
    for (const fb_effect *fx = fb_effects_next(&world->effects, NULL); fx != NULL;
         fx = fb_effects_next(&world->effects, fx)) {
        effects |= UINT64_C(1) << (fx->kind & 63);
        if (fx->kind != FB_FX_OBSERVE) continue;
        facts |= UINT64_C(1) << (fx->a & 63);
        bool refuses = fx->a == FB_FACT_REFUSED || fx->a == FB_FACT_LINK_REFUSED ||
                       fx->a == FB_FACT_BATCH_REFUSED || fx->a == FB_FACT_LINK_ENDED;
        if (refuses) facts ^= fx->c * UINT64_C(0x9e3779b97f4a7c15);
    }
    uint64_t now = fb_sim_abstract(node->core);
    uint64_t step = mixed(mixed(mixed(1, event->kind), effects), facts);
    /* The step where it was made, and the edge between the states before and after. */
    see(world->config.seen, mixed(step, now));
    see(world->config.seen, mixed(mixed(2, node->seen_before), now));
    node->seen_before = now;
}

static uint32_t ones(uint64_t word)
{
    uint32_t count = 0;
    for (; word != 0; word &= word - 1) count++;
    return count;
}

uint32_t fb_sim_seen_add(fb_sim_seen *to, const fb_sim_seen *more)
{
    uint32_t news = 0;
    for (uint32_t i = 0; i < FB_SIM_SEEN_BITS / 64; i++) {
        news += ones(more->bits[i] & ~to->bits[i]);
        to->bits[i] |= more->bits[i];
    }
    return news;
}

uint32_t fb_sim_seen_count(const fb_sim_seen *seen)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FB_SIM_SEEN_BITS / 64; i++) count += ones(seen->bits[i]);
    return count;
}
