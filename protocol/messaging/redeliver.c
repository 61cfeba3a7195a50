/* SPDX-License-Identifier: Apache-2.0 */
/* What was unacknowledged when a link broke (profile 6): first on the next link to that peer within
 * 60 s, same bytes, after membership and authorisation are checked again; dropped after a second
 * break, when the time is up, or when the pool needs the room. */
#include "protocol/base/mutant.h"
#include "protocol/messaging/state.h"

void fb_message_dropped(fb_node *node, uint32_t member, fb_error why, uint32_t signal)
{
    struct fb_messaging *m = node->messaging;
    fb_count(node, FB_COUNTER_MESSAGES_DROPPED, 1);
    m->sender[member].counts.dropped++;
    fb_sender_touch(node, member);
    if (signal == FB_NONE) return;
    uint8_t bytes[48];
    memcpy(bytes, fb_space_id(node, m->signal[signal].space).b, 16);
    memcpy(bytes + 16, fb_member_id(node, member).b, 16);
    memcpy(bytes + 32, m->signal[signal].id.b, 16);
    fb_observe(node, FB_FACT_DROPPED, (uint64_t)why, 0, fb_span_of(bytes, sizeof bytes));
}

static void drop(fb_node *node, uint32_t member, fb_error why, uint32_t signal)
{
    fb_message_dropped(node, member, why, signal);
    fb_signal_release(node, signal);
}

static void orphans_free(fb_node *node, uint32_t index)
{
    struct fb_messaging *m = node->messaging;
    m->orphans[index].member = FB_NONE;
    m->orphans[index].count = 0;
    m->orphan_count--;
    fb_timer_clear(node, &m->orphans[index].timer);
    fb_digest_touch(node, FB_DIGEST_ORPHANS, index);
}

static void orphans_drop(fb_node *node, uint32_t index, fb_error why)
{
    fb_orphans *orphans = &node->messaging->orphans[index];
    for (uint32_t i = 0; i < orphans->count; i++) {
        drop(node, orphans->member, why, orphans->signals[i]);
    }
    orphans_free(node, index);
}

/* The time of the first is up, perhaps of others too. What an earlier break left goes earlier. */
/* MP-6-8 */
void fb_redeliver_expired(fb_node *node, uint32_t index)
{
    fb_orphans *orphans = &node->messaging->orphans[index];
    uint32_t due = 0;
    while (due < orphans->count && orphans->until_ns[due] <= node->mono_ns) {
        drop(node, orphans->member, FB_ERR_DEADLINE, orphans->signals[due++]);
    }
    orphans->count -= due;
    if (orphans->count == 0) {
        orphans_free(node, index);
        return;
    }
    memmove(orphans->signals, orphans->signals + due, orphans->count * sizeof *orphans->signals);
    memmove(orphans->until_ns, orphans->until_ns + due, orphans->count * sizeof *orphans->until_ns);
    fb_timer_set(node, &orphans->timer, orphans->until_ns[0]);
    fb_digest_touch(node, FB_DIGEST_ORPHANS, index);
}

static uint32_t oldest(const struct fb_messaging *m)
{
    uint32_t best = FB_NONE;
    for (uint32_t i = 0; i < m->links; i++) {
        if (m->orphans[i].member == FB_NONE) continue;
        if (best == FB_NONE || m->orphans[i].timer.at_ns < m->orphans[best].timer.at_ns) best = i;
    }
    return best;
}

bool fb_redeliver_evict(fb_node *node)
{
    uint32_t index = oldest(node->messaging);
    if (index == FB_NONE) return false;
    orphans_drop(node, index, FB_ERR_BUSY);
    return true;
}

static uint32_t orphans_of(const struct fb_messaging *m, uint32_t member)
{
    if (m->orphan_count == 0) return FB_NONE;
    for (uint32_t i = 0; i < m->links; i++) {
        if (m->orphans[i].member == member) return i;
    }
    return FB_NONE;
}

static uint32_t orphans_take(fb_node *node, uint32_t member)
{
    struct fb_messaging *m = node->messaging;
    uint32_t index = orphans_of(m, member);
    if (index != FB_NONE) return index;
    if (m->orphan_count == m->links) fb_redeliver_evict(node);
    for (index = 0; m->orphans[index].member != FB_NONE;) index++;
    m->orphans[index].member = member;
    m->orphan_count++;
    return index;
}

/* FM-8.1-1, FM-8.1-2, FM-8.3-5, MP-6-7 */
void fb_redeliver_down(fb_node *node, uint32_t link)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    uint32_t index = FB_NONE;
    uint64_t until_ns = fb_add_sat_u64(node->mono_ns, node->options.timing.redeliver_ns);
    for (uint32_t i = MUTANT(REDELIVERY_SKIPS_ONE, 0, 1); i < channel->count; i++) {
        const fb_window_entry *entry =
            &channel->entries[(channel->first + i) % FB_SEND_WINDOW_MESSAGES];
        /* A second break, or it never left. */
        /* MP-6-8 */
        if (MUTANT(REDELIVERED_AGAIN, entry->redelivered, false) || !entry->given) {
            drop(node, channel->member, FB_ERR_UNREACHABLE, entry->signal);
            continue;
        }
        if (index == FB_NONE) index = orphans_take(node, channel->member);
        fb_orphans *orphans = &m->orphans[index];
        if (orphans->count == FB_SEND_WINDOW_MESSAGES) {
            drop(node, channel->member, FB_ERR_BUSY, entry->signal);
            continue;
        }
        orphans->until_ns[orphans->count] = until_ns;
        orphans->signals[orphans->count++] = entry->signal;
    }
    for (; channel->redo_count > 0; fb_window_let_go(m, channel)) {
        channel->redo_count--;
        drop(node, channel->member, FB_ERR_UNREACHABLE, channel->redo[channel->redo_first]);
        channel->redo_first = (channel->redo_first + 1) % FB_SEND_WINDOW_MESSAGES;
    }
    for (; channel->count > 0; fb_window_let_go(m, channel)) channel->count--;
    if (index == FB_NONE) return;
    fb_timer_set(node, &m->orphans[index].timer, m->orphans[index].until_ns[0]);
    fb_digest_touch(node, FB_DIGEST_ORPHANS, index);
}

void fb_redeliver_up(fb_node *node, uint32_t link)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    uint32_t index = orphans_of(m, channel->member);
    if (index == FB_NONE) return;
    const fb_orphans *orphans = &m->orphans[index];
    for (uint32_t i = 0; i < orphans->count; i++) {
        uint32_t place = MUTANT(REDELIVERY_REVERSED, i, orphans->count - 1 - i);
        uint32_t signal = orphans->signals[place];
        if (!fb_window_has_room(m, channel)) {
            drop(node, channel->member, FB_ERR_BUSY, signal);
            continue;
        }
        uint32_t at = (channel->redo_first + channel->redo_count) % FB_SEND_WINDOW_MESSAGES;
        channel->redo[at] = signal;
        channel->redo_until_ns[at] = orphans->until_ns[place];
        channel->redo_count++;
        fb_window_held(m, channel);
    }
    orphans_free(node, index);
    fb_link_touch(node, link);
    if (channel->redo_count > 0) fb_link_has_output(node, link, FB_CHANNEL_MESSAGING);
}
