/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/explore/seen.h"

#include "sim/world/world.h"

static uint64_t mixed(uint64_t bits, uint64_t part)
{
    bits = (bits ^ part) * UINT64_C(0xff51afd7ed558ccd);
    return bits ^ bits >> 32;
}

/* True when it was not seen before. */
static bool see(fb_sim_seen *seen, uint64_t bits)
{
    uint64_t *word = &seen->bits[bits % FB_SIM_SEEN_BITS / 64], bit = UINT64_C(1) << (bits % 64);
    bool news = (*word & bit) == 0;
    *word |= bit;
    return news;
}

static void trait(fb_sim_seen *seen, uint64_t a, uint64_t b)
{
    uint64_t bits = mixed(mixed(3, a), b);
    seen->traits[bits % FB_SIM_SEEN_TRAITS / 64] |= UINT64_C(1) << (bits % 64);
}

/* Of a place that is new to the run: every pair of digits that are not zero. */
static void traits(fb_sim_seen *seen, uint64_t state, uint64_t step, uint32_t event)
{
    uint64_t digits[32];
    uint32_t count = 0;
    for (uint64_t i = 0; i < 32; i++) {
        uint64_t digit = state >> (2 * i) & 3;
        if (digit != 0) digits[count++] = i << 2 | digit;
    }
    trait(seen, 1u << 20, step);
    for (uint32_t i = 0; i < count; i++) {
        trait(seen, digits[i], 1u << 10 | event);
        for (uint32_t k = i + 1; k < count; k++) trait(seen, digits[i], digits[k]);
    }
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
        /* Of a floor: whether it went back. */
        if (refuses || fx->a == FB_FACT_FLOOR) facts ^= fx->c * UINT64_C(0x9e3779b97f4a7c15);
    }
    uint64_t now = fb_sim_abstract(node->core);
    uint64_t step = mixed(mixed(mixed(1, event->kind), effects), facts);
    /* The step where it was made, and the edge between the states before and after. */
    if (see(world->config.seen, mixed(step, now))) {
        traits(world->config.seen, now, step, event->kind);
    }
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
