/* SPDX-License-Identifier: Apache-2.0 */
/* The messaging channel of one link: numbers, window, acknowledgement (profile 6).
 *
 * Frames: u8 1, u64 number, envelope; u8 2, u64 number up to which every outcome is final. A number
 * is given when an envelope enters the window. An acknowledgement is cumulative state, so it never
 * queues: what is true when the carrier has room goes out.
 *
 * On an external carrier, frames beyond the next expected number are dropped by the receiver, and
 * the sender repeats from the first unacknowledged one: no frame is buffered to be put in order. */
#include "protocol/base/mutant.h"
#include "protocol/messaging/state.h"
#include "protocol/store/ops.h"

static fb_window_entry *entry_at(fb_message_channel *channel, uint32_t i)
{
    return &channel->entries[(channel->first + i) % FB_SEND_WINDOW_MESSAGES];
}

/* Stands for (number, message) in the digest of the window. */
static uint64_t mix_of(const struct fb_messaging *m, uint64_t number, uint32_t signal)
{
    uint64_t low = 0;
    for (uint32_t i = 8; i < 16; i++) low = low << 8 | m->signal[signal].id.b[i];
    return (number * UINT64_C(0x9e3779b97f4a7c15)) ^ low;
}

bool fb_window_has_room(const struct fb_messaging *m, const fb_message_channel *channel)
{
    uint32_t held = channel->count + channel->redo_count;
    return held < FB_SEND_WINDOW_MESSAGES && (held < m->share || m->slack_used < m->slack);
}

/* After one was added. */
void fb_window_held(struct fb_messaging *m, const fb_message_channel *channel)
{
    if (channel->count + channel->redo_count > m->share) m->slack_used++;
}

/* After one was taken away. */
void fb_window_let_go(struct fb_messaging *m, const fb_message_channel *channel)
{
    if (channel->count + channel->redo_count >= m->share) m->slack_used--;
}

/* FM-8.2-2, MP-6-1, MP-6-4 */
static void push(fb_node *node, uint32_t link, uint32_t signal, bool redelivered)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    FB_ASSERT(channel->count < FB_SEND_WINDOW_MESSAGES);
    *entry_at(channel, channel->count) = (fb_window_entry){signal, false, redelivered};
    channel->mix += mix_of(m, channel->base + channel->count, signal);
    channel->count++;
    fb_window_held(m, channel);
    channel->bytes += m->signal[signal].len;
    fb_link_touch(node, link);
}

static void pop(fb_node *node, uint32_t link)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    uint32_t signal = entry_at(channel, 0)->signal;
    channel->mix -= mix_of(m, channel->base, signal);
    channel->bytes -= m->signal[signal].len;
    channel->base++;
    channel->first = (channel->first + 1) % FB_SEND_WINDOW_MESSAGES;
    channel->count--;
    fb_window_let_go(m, channel);
    if (channel->given > 0) channel->given--;
    fb_signal_release(node, signal);
    fb_link_touch(node, link);
}

bool fb_unicast_add(fb_node *node, uint32_t link, const fb_unicast *unicast)
{
    fb_message_channel *channel = &node->messaging->channel[link];
    if (channel->unicasts == FB_UNICASTS_MAX) {
        fb_message_dropped(node, channel->member, FB_ERR_BUSY, FB_NONE);
        return false;
    }
    channel->unicast[channel->unicasts++] = *unicast;
    fb_link_touch(node, link);
    fb_link_has_output(node, link, FB_CHANNEL_MESSAGING);
    return true;
}

static bool next_unicast(fb_node *node, uint32_t link, uint32_t *signal)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    for (uint32_t i = 0; i < channel->unicasts; i++) {
        fb_unicast unicast = channel->unicast[i];
        if (unicast.w > fb_w_durable(node)) continue;
        fb_status status = FB_ERR_NOT_AUTHORISED;
        if (fb_message_may_send(node, channel, !unicast.scope_all, unicast.area)) {
            fb_compose what = {
                .type = unicast.type,
                .space = channel->space,
                .target = channel->peer,
                .has_area = !unicast.scope_all,
                .area = unicast.area,
                .correlation = unicast.correlated ? &unicast.correlation : NULL,
            };
            status = fb_signal_compose(node, &what, signal);
        }
        if (status == FB_ERR_BUSY || status == FB_ERR_AGAIN) {
            m->hungry = true;
            return false;
        }
        channel->unicasts--;
        memmove(&channel->unicast[i], &channel->unicast[i + 1],
                (channel->unicasts - i) * sizeof channel->unicast[0]);
        fb_link_touch(node, link);
        if (status == FB_OK) return true;
        fb_message_dropped(node, channel->member, status, FB_NONE);
        i--;
    }
    return false;
}

/* Takes the next message into the window: first what an earlier link left unacknowledged. */
static bool fill(fb_node *node, uint32_t link)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    /* MP-6-5 */
    if (channel->count >= FB_SEND_WINDOW_MESSAGES ||
        channel->bytes + FB_SIGNAL_BYTES_MAX > FB_SEND_WINDOW_BYTES) {
        return false;
    }
    /* MP-6-7 */
    while (channel->redo_count > 0) {
        uint32_t signal = channel->redo[channel->redo_first];
        bool late = channel->redo_until_ns[channel->redo_first] <= node->mono_ns;
        channel->redo_first = (channel->redo_first + 1) % FB_SEND_WINDOW_MESSAGES;
        channel->redo_count--;
        fb_window_let_go(m, channel);
        const fb_signal *s = &m->signal[signal];
        fb_status why = late ? FB_ERR_DEADLINE : FB_ERR_NOT_AUTHORISED;
        if (!late && fb_message_may_send(node, channel, s->has_area, s->area)) {
            push(node, link, signal, true);
            return true;
        }
        fb_message_dropped(node, channel->member, why, signal);
        fb_signal_release(node, signal);
    }
    if (!fb_window_has_room(m, channel)) return false;
    uint32_t signal;
    if (!next_unicast(node, link, &signal) && !fb_announce_next(node, link, &signal)) return false;
    push(node, link, signal, false);
    return true;
}

/* MP-6-6 */
uint64_t fb_ack_value(const fb_node *node, const fb_message_channel *channel)
{
    uint64_t durable = MUTANT(ACKED_WHEN_EXECUTED, fb_w_durable(node), fb_w_building(node));
    for (uint32_t i = 0; i < channel->hold_count; i++) {
        if (channel->holds[i].w <= durable) continue;
        return channel->holds[i].number - MUTANT(ACKED_ONE_TOO_MANY, 1u, 0u);
    }
    return channel->received;
}

void fb_ack_hold(fb_message_channel *channel, uint64_t number, uint64_t w)
{
    if (channel->hold_count > 0 && channel->holds[channel->hold_count - 1].w >= w) return;
    if (channel->hold_count == FB_HOLDS_MAX) {
        channel->holds[FB_HOLDS_MAX - 1].w = w; /* acknowledges later than it might */
        return;
    }
    channel->holds[channel->hold_count++] = (fb_hold){w, number};
}

void fb_ack_wake(fb_node *node, uint32_t link)
{
    fb_message_channel *channel = &node->messaging->channel[link];
    uint64_t durable = fb_w_durable(node);
    uint32_t done = 0;
    while (done < channel->hold_count && channel->holds[done].w <= durable) done++;
    if (done > 0) {
        channel->hold_count -= done;
        memmove(channel->holds, channel->holds + done, channel->hold_count * sizeof(fb_hold));
        fb_link_touch(node, link);
    }
    if (channel->ack_again || fb_ack_value(node, channel) > channel->ack_sent) {
        fb_link_has_output(node, link, FB_CHANNEL_MESSAGING);
    }
}

bool fb_window_peek(fb_node *node, uint32_t link, fb_frame_out *out)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    if (!channel->up) return false;
    if (channel->out == FB_OUT_NONE) {
        uint64_t ack = fb_ack_value(node, channel);
        if (ack > channel->ack_sent || (channel->ack_again && ack > 0)) {
            channel->out = FB_OUT_ACK;
            channel->ack_peeked = ack;
        } else if (channel->given < channel->count || fill(node, link)) {
            channel->out = FB_OUT_MESSAGE;
        } else {
            return false;
        }
        fb_link_touch(node, link);
    }
    out->head_len = 9;
    if (channel->out == FB_OUT_ACK) {
        out->head[0] = FB_FRAME_ACK;
        fb_store_be(out->head + 1, channel->ack_peeked, 8);
        out->body = (fb_span){NULL, 0};
        return true;
    }
    const fb_signal *signal = &m->signal[entry_at(channel, channel->given)->signal];
    out->head[0] = FB_FRAME_MESSAGE;
    fb_store_be(out->head + 1, channel->base + channel->given, 8);
    out->body = fb_span_of(signal->bytes, signal->len);
    return true;
}

static void observe_sent(fb_node *node, uint32_t link, fb_fact fact, uint64_t number,
                         const fb_signal *signal)
{
    const fb_message_channel *channel = &node->messaging->channel[link];
    uint8_t bytes[56];
    memcpy(bytes, fb_space_id(node, channel->space).b, 16);
    memcpy(bytes + 16, channel->peer.b, 16);
    memcpy(bytes + 32, signal->id.b, 16);
    fb_store_be(bytes + 48, signal->time_ms, 8);
    fb_observe(node, fact, fb_link_at(node, link)->number, number, fb_span_of(bytes, sizeof bytes));
}

void fb_window_sent(fb_node *node, uint32_t link)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    uint8_t kind = channel->out;
    channel->out = FB_OUT_NONE;
    fb_link_touch(node, link);
    if (kind == FB_OUT_ACK) {
        channel->ack_sent = channel->ack_peeked;
        channel->ack_again = false;
        fb_observe(node, FB_FACT_ACKED, fb_link_at(node, link)->number, channel->ack_sent,
                   (fb_span){NULL, 0});
        return;
    }
    if (kind != FB_OUT_MESSAGE) return;
    fb_window_entry *entry = entry_at(channel, channel->given);
    const fb_signal *signal = &m->signal[entry->signal];
    uint64_t number = channel->base + channel->given;
    bool again = MUTANT(REPEATED_AS_NEW, entry->given, false) || entry->redelivered;
    observe_sent(node, link, again ? FB_FACT_RESENT : FB_FACT_SENT, number, signal);
    fb_count(node, again ? FB_COUNTER_MESSAGES_RESENT : FB_COUNTER_MESSAGES_SENT, 1);
    if (!again && signal->type == FB_TYPE_CHANGED && signal->has_area) {
        fb_observe(node, FB_FACT_ANNOUNCED, fb_link_at(node, link)->number, 0,
                   fb_span_of(signal->area.b, sizeof signal->area.b));
    }
    entry->given = true;
    channel->given++;
    if (channel->external && !fb_timer_is_set(&channel->resend)) {
        fb_timer_set(node, &channel->resend, fb_add_sat_u64(node->mono_ns, channel->backoff_ns));
    }
}

fb_status fb_window_ack(fb_node *node, uint32_t link, uint64_t number)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    if (number < channel->base) return FB_OK; /* nothing new */
    uint64_t last = number - channel->base;
    if (last >= channel->count || !entry_at(channel, (uint32_t)last)->given) {
        return FB_ERR_MALFORMED; /* of what was never sent */
    }
    /* An entry that was peeked and not given keeps its place: it lies beyond `number`. */
    while (channel->base < number + MUTANT(LAST_ACKED_KEPT, 1u, 0u)) {
        if (channel->given == 0 && channel->out == FB_OUT_MESSAGE) channel->out = FB_OUT_NONE;
        pop(node, link);
    }
    channel->backoff_ns = node->options.timing.resend_min_ns;
    fb_timer_clear(node, &channel->resend);
    if (channel->external && channel->count > 0 && entry_at(channel, 0)->given) {
        fb_timer_set(node, &channel->resend, fb_add_sat_u64(node->mono_ns, channel->backoff_ns));
    }
    if (channel->given < channel->count || channel->pending > 0 || channel->redo_count > 0 ||
        channel->unicasts > 0) {
        fb_link_has_output(node, link, FB_CHANNEL_MESSAGING);
    }
    return FB_OK;
}

/* MP-7-26 */
void fb_window_resend(fb_node *node, uint32_t link)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    if (!channel->up || channel->count == 0) return;
    channel->given = 0;
    if (channel->out == FB_OUT_MESSAGE) channel->out = FB_OUT_NONE;
    uint64_t doubled = fb_add_sat_u64(channel->backoff_ns, channel->backoff_ns);
    channel->backoff_ns =
        MUTANT(RESEND_HURRIES, fb_min_u64(doubled, node->options.timing.resend_max_ns),
               channel->backoff_ns / 2);
    fb_link_touch(node, link);
    fb_link_has_output(node, link, FB_CHANNEL_MESSAGING);
}
