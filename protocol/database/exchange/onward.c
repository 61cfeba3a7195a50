/* SPDX-License-Identifier: Apache-2.0 */
/* Telling on: a node that fetched changes announces the area after a pause, and only to peers whose
 * digest has differed since (DESIGN 3.1); and `conflict` where a value of this node's own got a
 * sibling (profile 6). */
#include "protocol/database/state.h"

void fb_onward_applied(fb_node *node, uint32_t index, bool conflict)
{
    fb_area *area = fb_area_get(node, index);
    uint64_t pause = node->options.timing.onward_ns;
    area->applied_ns = node->mono_ns;
    area->applied_w = fb_w_building(node);
    if (!fb_timer_is_set(&area->onward)) {
        uint64_t jitter = fb_draw_below(node->seed, FB_STREAM_ONWARD, area->local,
                                        ++area->announcements, pause / 2 + 1);
        fb_timer_set(node, &area->onward,
                     fb_add_sat_u64(node->mono_ns, fb_add_sat_u64(pause, jitter)));
    }
    /* FM-5.2-4, MP-6-18 */
    if (conflict && !fb_timer_is_set(&area->conflict)) {
        fb_message_conflict_all(node, area->space, area->id, area->applied_w);
        fb_timer_set(node, &area->conflict, fb_add_sat_u64(node->mono_ns, pause));
    }
}

static void on_onward(fb_node *node, uint32_t index)
{
    const fb_area *area = fb_area_get(node, index);
    if (!area->used) return;
    for (uint32_t link = 0; link < fb_link_capacity(node); link++) {
        const fb_link_vectors *lv = &node->database->links[link];
        if (!lv->up || lv->differs_ns < area->applied_ns) continue;
        const fb_link_info *info = fb_link_at(node, link);
        if (info->space != area->space || info->member == FB_NONE) continue;
        if (!fb_space_may_hold(node, info->space, info->member, area->id)) continue;
        fb_message_changed(node, info->space, info->member, area->id, 0, 0, area->applied_w);
    }
}

/* The pause between two `conflict` about an area is over. */
static void on_conflict(fb_node *node, uint32_t index)
{
    (void)node;
    (void)index;
}

void fb_onward_layout(fb_node *node)
{
    fb_timer_register(node, FB_TIMER_ONWARD, on_onward, node->options.sizes.areas);
    fb_timer_register(node, FB_TIMER_CONFLICT, on_conflict, node->options.sizes.areas);
}
