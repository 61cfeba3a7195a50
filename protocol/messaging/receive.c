/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving a message: the steps of profile 5 in their order, then the replication engine. */
#include "protocol/base/mutant.h"
#include "protocol/database/database.h"
#include "protocol/messaging/state.h"
#include "protocol/store/ops.h"

/* Points against the peer's budget (profile 5). What an honest peer's clock, duplicates or
 * membership news can cause costs nothing. */
#define POINTS_FORGED 10u
#define POINTS_FLOOD  1u

/* MP-5-21 */
static uint32_t points_of(fb_status reason)
{
    switch (reason) {
    case FB_ERR_BAD_SIGNATURE:
    case FB_ERR_NOT_ORIGIN:
    case FB_ERR_WRONG_SPACE:
        return POINTS_FORGED;
    case FB_ERR_RATE_LIMITED:
        return POINTS_FLOOD;
    case FB_ERR_UNKNOWN_SENDER:
    case FB_ERR_REVOKED:
    case FB_ERR_STALE:
    case FB_ERR_FROM_FUTURE:
    case FB_ERR_WRONG_TARGET:
    case FB_ERR_NOT_SUBSCRIBED:
    case FB_ERR_DUPLICATE:
        return 0;
    default:
        return POINTS_FORGED; /* step 1: no implementation sends these */
    }
}

static void refuse(fb_node *node, uint32_t link, const fb_envelope *e, fb_status reason)
{
    struct fb_messaging *m = node->messaging;
    const fb_message_channel *channel = &m->channel[link];
    fb_sender *sender = &m->sender[channel->member];
    uint32_t index = (uint32_t)reason - FB_ERR_TOO_LARGE;
    FB_ASSERT(index < FB_MESSAGE_REASONS);
    /* MP-5-18 */
    sender->counts.refused[index]++;
    sender->refusals += (UINT64_C(2) * index + 1) * UINT64_C(0x9e3779b97f4a7c15);
    fb_sender_touch(node, channel->member);
    fb_count(node, FB_COUNTER_MESSAGES_REFUSED, 1);
    uint8_t bytes[48] = {0};
    memcpy(bytes, fb_space_id(node, channel->space).b, 16);
    memcpy(bytes + 16, channel->peer.b, 16);
    if (fb_envelope_has(e, FB_ENVELOPE_ID)) memcpy(bytes + 32, e->id.b, 16);
    fb_observe(node, FB_FACT_REFUSED, fb_link_at(node, link)->number, (uint64_t)reason,
               fb_span_of(bytes, sizeof bytes));
    uint32_t points = points_of(reason);
    if (points > 0) fb_link_misbehaved(node, link, points);
}

/* Profile 5: when only the floor refuses and the link has shown that the two clocks agree within
 * the window, the floor goes back once a link: then it was our own clock that was ahead. */
/* MP-5-17 */
static bool reset_floor(fb_node *node, uint32_t link, fb_record *record)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    const fb_link_info *info = fb_link_at(node, link);
    const fb_timing *timing = &node->options.timing;
    if (channel->floor_reset_used || !info->offset_known) return false;
    if (info->clock_offset_us < -timing->window_past_us ||
        info->clock_offset_us > timing->window_future_us) {
        return false;
    }
    channel->floor_reset_used = MUTANT(FLOOR_RESET_AGAIN, true, false);
    m->sender[channel->member].counts.floor_resets++;
    fb_receive_window window = fb_message_window(node, record);
    record->floor_ms = fb_receive_floor_reset(&window);
    fb_link_touch(node, link);
    fb_digest_touch(node, FB_DIGEST_SEEN, fb_record_index(m, record));
    fb_observe_floor(node, record, info->number);
    return true;
}

/* Steps 2 to 5: nothing here depends on what was received before, the rate aside. */
static fb_status judge_sender(fb_node *node, uint32_t link, const fb_envelope *e)
{
    struct fb_messaging *m = node->messaging;
    const fb_message_channel *channel = &m->channel[link];
    FB_TRY(fb_receive_space(e, fb_space_id(node, channel->space)));
    FB_TRY(fb_receive_origin(e, channel->peer, node->self));
    fb_member_status status = fb_member_status_of(node, channel->member);
    FB_TRY(fb_receive_sender(status == FB_MEMBER_APPROVED, status == FB_MEMBER_REVOKED));
    fb_sender_touch(node, channel->member);
    /* MP-5-6 */
    if (!fb_rate_take(node, &m->sender[channel->member])) return FB_ERR_RATE_LIMITED;
    fb_b32 key = fb_member_key(node, channel->member);
    /* FM-5.4-3, FM-11-2, MP-1-4, MP-5-7 */
    return MUTANT(SIGNATURE_NOT_CHECKED, fb_envelope_verify(e, node->options.provider, &key),
                  FB_OK);
}

/* Steps 6 to 8. *earlier: the refusal may rest on an acceptance that is not durable yet. */
static fb_status judge_message(fb_node *node, uint32_t link, fb_record *record,
                               const fb_envelope *e, bool *earlier)
{
    bool by_floor = false;
    fb_receive_window window = fb_message_window(node, record);
    fb_status status = fb_receive_time(e, &window, &by_floor);
    if (by_floor && reset_floor(node, link, record)) {
        window = fb_message_window(node, record);
        status = fb_receive_time(e, &window, &by_floor);
    }
    *earlier = by_floor;
    FB_TRY(status);
    bool subscribed = e->mode == FB_DELIVERY_TOPIC &&
                      (FB_TOPICS_SUBSCRIBED & FB_TOPIC_BIT(fb_topic_of(e->topic))) != 0;
    FB_TRY(fb_receive_address(e, node->self, subscribed));
    *earlier = true;
    /* FM-4.1-8, FM-8.1-4, MP-5-10 */
    return fb_seen_find(node, record, e->id) ? FB_ERR_DUPLICATE : FB_OK;
}

/* `sync` (profile 6): one unicast `changed` that names it. Nothing is folded, so what the asker
 * needs is all still there as batches, and this node can always serve. */
/* FM-5.2-2, FM-5.2-6, MP-6-11 */
static void answer_sync(fb_node *node, uint32_t link, const fb_envelope *e)
{
    const fb_message_channel *channel = &node->messaging->channel[link];
    fb_unicast answer = {
        .type = FB_TYPE_CHANGED,
        .correlated = true,
        .correlation = e->id,
        .area = e->facts.has_object ? e->facts.object : fb_message_state_area(node, channel->space),
        .w = fb_w_building(node),
    };
    if (!fb_message_may_send(node, channel, true, answer.area)) return;
    fb_unicast_add(node, link, &answer);
}

static void deliver(fb_node *node, uint32_t link, uint64_t number, const fb_envelope *e)
{
    struct fb_messaging *m = node->messaging;
    const fb_message_channel *channel = &m->channel[link];
    fb_message_counts *counts = &m->sender[channel->member].counts;
    counts->delivered++;
    fb_count(node, FB_COUNTER_MESSAGES_DELIVERED, 1);
    uint8_t bytes[56];
    memcpy(bytes, e->space.b, 16);
    memcpy(bytes + 16, e->source.b, 16);
    memcpy(bytes + 32, e->id.b, 16);
    fb_store_be(bytes + 48, e->timestamp, 8);
    fb_observe(node, FB_FACT_DELIVERED, fb_link_at(node, link)->number, number,
               fb_span_of(bytes, sizeof bytes));
    /* FM-3.4-1, FM-5.2-3, FM-11-7, FI-2-12 */
    switch (e->type) {
    case FB_TYPE_CHANGED:
        fb_database_changed(node, link, channel->member, e->facts.object,
                            e->facts.has_batch ? e->facts.incarnation : 0,
                            e->facts.has_batch ? e->facts.batch : 0);
        break;
    case FB_TYPE_SYNC:
        answer_sync(node, link, e);
        break;
    case FB_TYPE_CONFLICT:
        /* FM-5.2-4, MP-6-19 */
        counts->conflicts++; /* shown with the peer; the siblings themselves arrive as data */
        break;
    }
}

fb_status fb_receive_message(fb_node *node, uint32_t link, uint64_t number, fb_span bytes)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    fb_sender *sender = &m->sender[channel->member];
    /* Not taken: the sender's record is still read, or the write set being built is full. */
    if (sender->record == FB_NONE) fb_record_attach(node, channel->space, channel->member);
    if (sender->record == FB_NONE) return FB_ERR_BUSY;
    fb_record *record = &m->record[sender->record];
    if (record->state != FB_RECORD_READY) return FB_ERR_BUSY;
    if (!fb_write_fits(node, FB_RECEIVE_WRITE_BYTES, FB_RECEIVE_WRITE_ENTRIES)) return FB_ERR_BUSY;

    fb_envelope e;
    bool earlier = false;
    /* MP-5-1 */
    fb_status status = fb_envelope_decode_protobuf(bytes, &e, NULL);
    if (status == FB_OK) status = judge_sender(node, link, &e);
    if (status == FB_OK) status = judge_message(node, link, record, &e, &earlier);
    channel->received = number;
    fb_link_touch(node, link);
    if (status == FB_OK) {
        /* MP-5-11, MP-5-12 */
        fb_seen_add(node, record, e.id, (int64_t)e.timestamp);
        fb_ack_hold(channel, number, fb_w_building(node));
        deliver(node, link, number, &e);
        return FB_OK;
    }
    /* A duplicate is final when what it repeats is durable (profile 6). */
    if (earlier && record->last_w > fb_w_durable(node)) {
        fb_ack_hold(channel, number, record->last_w);
    }
    /* MP-5-19 */
    refuse(node, link, &e, status);
    fb_ack_wake(node, link);
    return FB_OK;
}
