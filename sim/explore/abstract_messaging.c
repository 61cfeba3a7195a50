/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/internal.h"
#include "protocol/messaging/state.h"
#include "sim/explore/abstract.h"

void fb_sim_abstract_messaging(fb_sim_digits *d, const fb_node *core)
{
    const struct fb_messaging *m = core->messaging;
    uint32_t fullest = 0, again = 0, held = 0, orphans = 0;
    for (uint32_t i = 0; i < m->links; i++) {
        const fb_message_channel *c = &m->channel[i];
        if (m->orphans[i].member != FB_NONE) orphans += m->orphans[i].count != 0;
        if (!c->up) continue;
        if (c->count > fullest) fullest = c->count;
        again += c->redo_count != 0;
        held += c->hold_count != 0;
    }
    fb_sim_digit(d, fullest == 0 ? 0 : fullest < 4 ? 1 : fullest < FB_SEND_WINDOW_MESSAGES ? 2 : 3);
    fb_sim_digit(d, fb_sim_class_of(again));
    fb_sim_digit(d, fb_sim_class_of(held));
    fb_sim_digit(d, fb_sim_class_of(orphans));
    uint32_t ids = 0;
    for (uint32_t i = 0; i < m->links; i++) {
        if (m->record[i].count > ids) ids = m->record[i].count;
    }
    fb_sim_digit(d, fb_sim_class_full(ids, m->seen));
}
