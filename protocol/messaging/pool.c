/* SPDX-License-Identifier: Apache-2.0 */
/* The pool of own envelopes: built once, counted by those that name them. What this node sends is
 * small by construction, so a place has a fixed size and nothing is ever moved. */
#include "protocol/messaging/state.h"

uint32_t fb_signal_take(fb_node *node)
{
    struct fb_messaging *m = node->messaging;
    if (m->signal_free == FB_NONE) fb_announce_unshare(node);
    if (m->signal_free == FB_NONE) fb_redeliver_evict(node);
    if (m->signal_free == FB_NONE) {
        m->hungry = true;
        return FB_NONE;
    }
    uint32_t index = m->signal_free;
    fb_signal *signal = &m->signal[index];
    m->signal_free = signal->next_free;
    signal->refs = 1;
    signal->len = 0;
    fb_digest_touch(node, FB_DIGEST_ENVELOPE, index);
    return index;
}

void fb_signal_hold(struct fb_messaging *m, uint32_t signal)
{
    FB_ASSERT(m->signal[signal].refs > 0);
    m->signal[signal].refs++;
}

void fb_signal_release(fb_node *node, uint32_t index)
{
    struct fb_messaging *m = node->messaging;
    fb_signal *signal = &m->signal[index];
    FB_ASSERT(signal->refs > 0);
    if (--signal->refs > 0) return;
    signal->next_free = m->signal_free;
    m->signal_free = index;
    fb_digest_touch(node, FB_DIGEST_ENVELOPE, index);
    if (!m->hungry) return;
    m->hungry = false;
    for (uint32_t i = 0; i < m->up_count; i++) {
        fb_link_has_output(node, m->up_links[i], FB_CHANNEL_MESSAGING);
    }
}
