/* SPDX-License-Identifier: Apache-2.0 */
/* The messaging plane: its tables, its channel, its hooks. */
#include "protocol/core/plane.h"
#include "protocol/base/mutant.h"

#include "protocol/messaging/state.h"
#include "protocol/store/ops.h"

static uint32_t power_of_two(uint32_t at_least)
{
    uint32_t p = 1;
    while (p < at_least) p *= 2;
    return p;
}

/* ---- Digests ---- */

static uint32_t members_count(const fb_node *node)
{
    return node->options.sizes.members;
}

static uint32_t links_count(const fb_node *node)
{
    return node->options.sizes.links;
}

static uint32_t signals_count(const fb_node *node)
{
    return node->options.sizes.envelopes;
}

static uint32_t announcements_count(const fb_node *node)
{
    return node->options.sizes.areas + node->options.sizes.envelopes;
}

static fb_digest_cell *sender_cell(fb_node *node, uint32_t index)
{
    return &node->messaging->sender[index].digest;
}

/* What is counted of a sender is digested with its record while there is one. */
static void write_counts(const fb_sender *s, fb_writer *w)
{
    const fb_message_counts *c = &s->counts;
    const uint64_t words[] = {
        s->rate_ns, s->refusals, c->delivered, c->dropped, c->floor_resets << 32 ^ c->conflicts,
    };
    fb_write_words(w, words, sizeof words / sizeof words[0]);
}

static void sender_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_sender *s = &node->messaging->sender[index];
    if (s->record != FB_NONE || (s->rate_ns | s->refusals | s->counts.dropped) == 0) return;
    write_counts(s, w);
}

static fb_digest_cell *record_cell(fb_node *node, uint32_t index)
{
    return &node->messaging->record[index].digest;
}

static void record_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_record *r = &node->messaging->record[index];
    if (r->member == FB_NONE) return;
    const uint64_t words[] = {
        (uint64_t)r->state << 32 | r->member,
        (uint64_t)r->links << 32 | r->cursor,
        r->count,
        (uint64_t)r->floor_ms,
        (uint64_t)r->highest_ms,
        r->sequence,
        r->last_w,
        r->sum.lo,
        r->sum.hi,
    };
    fb_write_words(w, words, sizeof words / sizeof words[0]);
    write_counts(&node->messaging->sender[r->member], w);
}

#define CHANNEL_WORDS 8u

/* A part of the link's digest. */
static void channel_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_message_channel *c = &node->messaging->channel[index];
    if (!c->up) return;
    uint8_t *out = fb_write_room(w, 8 * (CHANNEL_WORDS + 2 * (size_t)c->hold_count));
    if (out == NULL) return;
    fb_word_store(out, (uint64_t)c->member << 32 | (uint64_t)c->interest << 16 |
                           (uint64_t)c->out << 8 | (uint64_t)c->floor_reset_used |
                           (uint64_t)c->ack_again << 1 | (uint64_t)c->interest_due << 2);
    fb_word_store(out + 8, c->base);
    fb_word_store(out + 16, (uint64_t)c->count << 32 | c->given);
    fb_word_store(out + 24, c->mix);
    fb_word_store(out + 32, (uint64_t)c->redo_count << 32 | c->pending);
    fb_word_store(out + 40, (uint64_t)c->scan << 32 | c->unicasts);
    fb_word_store(out + 48, c->received);
    fb_word_store(out + 56, c->ack_sent);
    for (uint32_t i = 0; i < c->hold_count; i++) {
        out += 16;
        fb_word_store(out + 48, c->holds[i].w);
        fb_word_store(out + 56, c->holds[i].number);
    }
}

static fb_digest_cell *signal_cell(fb_node *node, uint32_t index)
{
    return &node->messaging->signal[index].digest;
}

static void signal_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_signal *s = &node->messaging->signal[index];
    if (s->refs == 0) return;
    fb_write_id(w, s->id);
    fb_write_u64(w, s->time_ms);
    fb_write_u32(w, s->len);
}

static fb_digest_cell *announcement_cell(fb_node *node, uint32_t index)
{
    return &node->messaging->announcement[index].digest;
}

static void announcement_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_announcement *a = &node->messaging->announcement[index];
    if (!a->used) return;
    fb_write_u8(w, a->type);
    fb_write_u32(w, a->space);
    fb_write_id(w, a->area);
    fb_write_u64(w, a->incarnation);
    fb_write_u64(w, a->batch);
    fb_write_u32(w, a->pending);
    fb_write_u32(w, a->signal);
    for (uint32_t i = 0; i < 2; i++) {
        if (!a->stages[i].used) continue;
        fb_write_u64(w, a->stages[i].w);
        fb_write_u64(w, a->stages[i].incarnation);
        fb_write_u64(w, a->stages[i].batch);
        fb_write_u32(w, a->stages[i].all ? a->stages[i].except : 0);
    }
}

static fb_digest_cell *orphans_cell(fb_node *node, uint32_t index)
{
    return &node->messaging->orphans[index].digest;
}

static void orphans_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_orphans *o = &node->messaging->orphans[index];
    if (o->member == FB_NONE) return;
    fb_write_u32(w, o->member);
    fb_write_u64(w, o->timer.at_ns);
    for (uint32_t i = 0; i < o->count; i++) {
        fb_write_u32(w, o->signals[i]);
        fb_write_u64(w, o->until_ns[i]);
    }
}

/* clang-format off */
static const fb_digest_kind kinds[] = {
    {"sender", members_count, sender_cell, sender_write},
    {"seen", links_count, record_cell, record_write},
    {"envelope", signals_count, signal_cell, signal_write},
    {"announcement", announcements_count, announcement_cell, announcement_write},
    {"orphans", links_count, orphans_cell, orphans_write},
};
/* clang-format on */
static const fb_digest_tag tags[] = {
    FB_DIGEST_SENDER, FB_DIGEST_SEEN, FB_DIGEST_ENVELOPE, FB_DIGEST_ANNOUNCEMENT, FB_DIGEST_ORPHANS,
};
#define KINDS (sizeof kinds / sizeof kinds[0])

/* ---- The channel ---- */

static void up(fb_node *node, uint32_t link)
{
    struct fb_messaging *m = node->messaging;
    const fb_link_info *info = fb_link_at(node, link);
    fb_message_channel *channel = &m->channel[link];
    bool interest_due = channel->interest_due;
    memset(channel, 0, sizeof *channel);
    channel->up = true;
    channel->external = info->external;
    channel->interest_due = interest_due;
    channel->interest = FB_TOPICS_ALL;
    channel->space = info->space;
    channel->member = info->member;
    channel->peer = info->peer;
    channel->base = 1;
    channel->backoff_ns = node->options.timing.resend_min_ns;
    fb_timer_init(&channel->resend, FB_TIMER_REPEAT, link);
    channel->up_place = m->up_count;
    m->up_links[m->up_count++] = link;
    fb_link_touch(node, link);
    fb_record_attach(node, channel->space, channel->member);
    fb_redeliver_up(node, link);
}

static void down(fb_node *node, uint32_t link, fb_error why)
{
    (void)why;
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    if (!channel->up) return;
    fb_timer_clear(node, &channel->resend);
    fb_announce_link_down(node, link);
    for (uint32_t i = 0; i < channel->unicasts; i++) {
        fb_message_dropped(node, channel->member, FB_ERR_UNREACHABLE, FB_NONE);
    }
    fb_redeliver_down(node, link);
    channel->up = false;
    uint32_t last = m->up_links[--m->up_count];
    m->up_links[channel->up_place] = last;
    m->channel[last].up_place = channel->up_place;
    fb_record_detach(node, channel->member);
    fb_link_touch(node, link);
    /* One link replaced another: the one that stays takes over what was unacknowledged. */
    /* MP-7-23 */
    uint32_t other = fb_link_to(node, channel->space, channel->member);
    if (other != FB_NONE && other != link && m->channel[other].up) fb_redeliver_up(node, other);
}

static fb_status frame(fb_node *node, uint32_t link, fb_span bytes)
{
    fb_message_channel *channel = &node->messaging->channel[link];
    if (!channel->up) return FB_OK;
    fb_reader r = fb_reader_of(bytes);
    uint8_t type = fb_read_u8(&r);
    uint64_t number = fb_read_u64(&r);
    if (r.failed) return FB_ERR_MALFORMED;
    if (type == FB_FRAME_ACK) {
        return fb_reader_done(&r) ? fb_window_ack(node, link, number) : FB_ERR_MALFORMED;
    }
    if (type != FB_FRAME_MESSAGE || number == 0) return FB_ERR_MALFORMED;
    /* FM-8.2-2, MP-6-1, MP-6-4 */
    if (MUTANT(AHEAD_OF_ITS_TURN, number == channel->received + 1, number > channel->received)) {
        return fb_receive_message(node, link, number, fb_read_bytes(&r, fb_reader_left(&r)));
    }
    if (!channel->external) {
        /* A stream loses nothing: the rest of this one has no meaning. */
        /* MP-5-20 */
        fb_link_close(node, link, FB_ERR_MALFORMED);
        return FB_ERR_MALFORMED;
    }
    /* MP-7-26, MP-7-27 */
    if (number <= channel->received) {
        channel->ack_again = true;
        fb_link_touch(node, link);
        fb_ack_wake(node, link);
    }
    return FB_OK; /* ahead of its turn: the sender repeats it */
}

static const fb_channel channel_ops = {
    .up = up,
    .down = down,
    .frame = frame,
    .peek = fb_window_peek,
    .sent = fb_window_sent,
    .digest = channel_write,
};

/* ---- The plane ---- */

static void layout(fb_node *node, fb_arena *arena)
{
    const fb_sizes *sizes = &node->options.sizes;
    uint32_t announcements = announcements_count(node);
    struct fb_messaging shape = {
        .links = sizes->links,
        .members = sizes->members,
        .announcements = announcements,
        .signals = sizes->envelopes,
        .seen = sizes->seen_ids + 1,
        .link_words = (sizes->links + 63) / 64,
        .announcement_words = (announcements + 63) / 64,
        .buckets = power_of_two(announcements),
        .index_size = power_of_two(2 * (sizes->seen_ids + 1)),
        .share = sizes->envelopes / sizes->links / 2,
    };
    if (shape.share > FB_SEND_WINDOW_MESSAGES) shape.share = FB_SEND_WINDOW_MESSAGES;
    if (shape.share == 0) shape.share = 1;
    if (shape.share * shape.links < shape.signals) {
        shape.slack = shape.signals - shape.share * shape.links;
    }
    struct fb_messaging *m = fb_arena_take(arena, 1, sizeof *m);
    /* FM-4.1-1 */
    shape.signal = fb_arena_take(arena, shape.signals, sizeof *shape.signal);
    shape.announcement = fb_arena_take(arena, announcements, sizeof *shape.announcement);
    shape.bucket = fb_arena_take(arena, shape.buckets, sizeof *shape.bucket);
    shape.pending = fb_arena_take(arena, (size_t)shape.links * shape.announcement_words, 8);
    shape.targets = fb_arena_take(arena, (size_t)announcements * 2 * shape.link_words, 8);
    shape.channel = fb_arena_take(arena, shape.links, sizeof *shape.channel);
    shape.up_links = fb_arena_take(arena, shape.links, sizeof *shape.up_links);
    shape.orphans = fb_arena_take(arena, shape.links, sizeof *shape.orphans);
    shape.sender = fb_arena_take(arena, shape.members, sizeof *shape.sender);
    shape.record = fb_arena_take(arena, shape.links, sizeof *shape.record);
    shape.ids = fb_arena_take(arena, (size_t)shape.links * shape.seen, sizeof *shape.ids);
    shape.index = fb_arena_take(arena, (size_t)shape.links * shape.index_size, sizeof *shape.index);
    shape.state_area = fb_arena_take(arena, sizes->spaces, sizeof *shape.state_area);
    shape.state_space = fb_arena_take(arena, sizes->spaces, sizeof *shape.state_space);
    if (m != NULL) *m = shape;
    node->messaging = m;
    for (size_t i = 0; i < KINDS; i++) fb_digest_register(node, tags[i], &kinds[i]);
    fb_timer_register(node, FB_TIMER_REPEAT, fb_window_resend, shape.links);
    fb_timer_register(node, FB_TIMER_REDELIVER, fb_redeliver_expired, shape.links);
    fb_channel_register(node, FB_CHANNEL_MESSAGING, &channel_ops);
    fb_interest_layout(node);
    fb_verb_register(node, FB_VERB_PUBLISH, fb_publish);
    fb_verb_register(node, FB_VERB_PEER_MESSAGES, fb_counts_request);
}

/* Clears an object; its digest is subtracted at the end of the step. */
static fb_digest_cell forget(fb_node *node, fb_digest_tag tag, uint32_t index)
{
    const fb_digest_cell *cell = node->digests.kinds[tag]->cell(node, index);
    if ((cell->last.lo | cell->last.hi) != 0) fb_digest_touch(node, tag, index);
    return *cell;
}

static void reset(fb_node *node)
{
    struct fb_messaging *m = node->messaging;
    m->signal_free = m->announcement_free = m->waiting_first = FB_NONE;
    for (uint32_t i = m->signals; i-- > 0;) {
        fb_signal *s = &m->signal[i];
        s->digest = forget(node, FB_DIGEST_ENVELOPE, i);
        s->refs = 0;
        s->next_free = m->signal_free;
        m->signal_free = i;
    }
    for (uint32_t i = m->announcements; i-- > 0;) {
        fb_announcement *a = &m->announcement[i];
        *a = (fb_announcement){
            .next = m->announcement_free,
            .digest = forget(node, FB_DIGEST_ANNOUNCEMENT, i),
        };
        m->announcement_free = i;
    }
    for (uint32_t i = 0; i < m->buckets; i++) m->bucket[i] = FB_NONE;
    memset(m->pending, 0, (size_t)m->links * m->announcement_words * sizeof *m->pending);
    memset(m->targets, 0, (size_t)m->announcements * 2 * m->link_words * sizeof *m->targets);
    for (uint32_t i = 0; i < m->links; i++) {
        fb_message_channel *c = &m->channel[i];
        c->up = c->interest_due = false;
        fb_orphans *o = &m->orphans[i];
        o->digest = forget(node, FB_DIGEST_ORPHANS, i);
        o->member = FB_NONE;
        o->count = 0;
        fb_timer_init(&o->timer, FB_TIMER_REDELIVER, i);
        fb_record *r = &m->record[i];
        *r = (fb_record){.member = FB_NONE, .digest = forget(node, FB_DIGEST_SEEN, i)};
    }
    m->up_count = m->orphan_count = m->wanted = m->slack_used = 0;
    m->let_go = 0;
    m->hungry = m->untimed = false;
    for (uint32_t i = 0; i < m->members; i++) {
        fb_sender *s = &m->sender[i];
        *s = (fb_sender){.record = FB_NONE, .digest = forget(node, FB_DIGEST_SENDER, i)};
    }
    memset(m->state_space, 0, node->options.sizes.spaces * sizeof *m->state_space);
}

static void durable(fb_node *node)
{
    struct fb_messaging *m = node->messaging;
    fb_announce_durable(node);
    for (uint32_t i = 0; i < m->up_count; i++) {
        uint32_t link = m->up_links[i];
        fb_message_channel *channel = &m->channel[link];
        if (channel->hold_count > 0) fb_ack_wake(node, link);
        if (channel->unicasts > 0 || m->hungry) {
            fb_link_has_output(node, link, FB_CHANNEL_MESSAGING);
        }
    }
    m->hungry = false;
}

static void flush(fb_node *node)
{
    struct fb_messaging *m = node->messaging;
    if (m->untimed && fb_message_time_is_writable(node)) {
        m->untimed = false;
        for (uint32_t i = 0; i < m->up_count; i++) {
            fb_link_has_output(node, m->up_links[i], FB_CHANNEL_MESSAGING);
        }
    }
    for (uint32_t i = 0; m->wanted > 0 && i < m->links; i++) {
        fb_record *record = &m->record[i];
        if (record->state == FB_RECORD_WANTED && record->links > 0) fb_seen_load(node, record);
    }
}

const fb_plane fb_messaging_plane = {
    .name = "messaging",
    .layout = layout,
    .reset = reset,
    .durable = durable,
    .flush = flush,
};

const fb_message_counts *fb_message_counts_of(const fb_node *node, uint32_t member)
{
    return &node->messaging->sender[member].counts;
}

bool fb_message_record_of(const fb_node *node, uint32_t member, int64_t *floor_ms, uint32_t *ids)
{
    const struct fb_messaging *m = node->messaging;
    uint32_t index = m->sender[member].record;
    if (index == FB_NONE || m->record[index].state != FB_RECORD_READY) return false;
    *floor_ms = m->record[index].floor_ms;
    *ids = m->record[index].count;
    return true;
}

void fb_message_sync(fb_node *node, uint32_t space, uint32_t member, fb_id area, bool scope_all)
{
    uint32_t link = fb_link_to(node, space, member);
    /* FM-8.3-1, FM-8.3-2, MP-6-2 */
    if (link == FB_NONE || !node->messaging->channel[link].up) {
        fb_message_dropped(node, member, FB_ERR_UNREACHABLE, FB_NONE);
        return;
    }
    fb_message_channel *channel = &node->messaging->channel[link];
    for (uint32_t i = 0; i < channel->unicasts; i++) {
        const fb_unicast *u = &channel->unicast[i];
        if (u->type == FB_TYPE_SYNC && u->scope_all == scope_all &&
            (scope_all || fb_id_equal(u->area, area))) {
            return; /* waits already */
        }
    }
    fb_unicast ask = {.type = FB_TYPE_SYNC, .scope_all = scope_all, .area = area};
    fb_unicast_add(node, link, &ask);
}
