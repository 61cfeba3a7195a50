/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications before they are messages: at most one for each (peer, area, type), so a link that
 * takes nothing costs nothing more however much changes (profile 6). What is newer replaces what
 * waits; the envelope is built when the first link takes it and shared with those that take it
 * soon after. */
#include "protocol/messaging/state.h"
#include "protocol/store/ops.h"

static uint64_t *pending_row(const struct fb_messaging *m, uint32_t link)
{
    return m->pending + (size_t)link * m->announcement_words;
}

static uint64_t *target_row(const struct fb_messaging *m, uint32_t index, uint32_t stage)
{
    return m->targets + ((size_t)index * 2 + stage) * m->link_words;
}

static uint32_t *bucket_of(const struct fb_messaging *m, uint32_t space, uint8_t type, fb_id area)
{
    uint64_t hash = fb_xxh64(area.b, sizeof area.b, (uint64_t)space << 8 | type);
    return &m->bucket[hash & (m->buckets - 1)];
}

static void touch(fb_node *node, uint32_t index)
{
    fb_digest_touch(node, FB_DIGEST_ANNOUNCEMENT, index);
}

static uint32_t find(const struct fb_messaging *m, uint32_t space, uint8_t type, fb_id area)
{
    uint32_t index = *bucket_of(m, space, type, area);
    while (index != FB_NONE) {
        const fb_announcement *a = &m->announcement[index];
        if (a->space == space && a->type == type && fb_id_equal(a->area, area)) break;
        index = a->bucket_next;
    }
    return index;
}

/* MP-6-21 */
static uint32_t find_or_take(fb_node *node, uint32_t space, uint8_t type, fb_id area)
{
    struct fb_messaging *m = node->messaging;
    uint32_t index = find(m, space, type, area);
    if (index != FB_NONE || m->announcement_free == FB_NONE) return index;
    index = m->announcement_free;
    fb_announcement *a = &m->announcement[index];
    m->announcement_free = a->next;
    uint32_t *bucket = bucket_of(m, space, type, area);
    bool state = fb_id_equal(area, fb_message_state_area(node, space));
    *a = (fb_announcement){
        .used = true,
        .type = type,
        .topic = state ? FB_TOPIC_STATE : FB_TOPIC_DATABASE,
        .space = space,
        .area = area,
        .signal = FB_NONE,
        .next = FB_NONE,
        .previous = FB_NONE,
        .bucket_next = *bucket,
        .digest = a->digest,
    };
    *bucket = index;
    return index;
}

static void unshare(fb_node *node, fb_announcement *a)
{
    if (a->signal == FB_NONE) return;
    fb_signal_release(node, a->signal);
    a->signal = FB_NONE;
}

static void unlist(struct fb_messaging *m, uint32_t index)
{
    fb_announcement *a = &m->announcement[index];
    if (!a->waiting) return;
    a->waiting = false;
    if (a->previous != FB_NONE) {
        m->announcement[a->previous].next = a->next;
    } else {
        m->waiting_first = a->next;
    }
    if (a->next != FB_NONE) m->announcement[a->next].previous = a->previous;
    a->next = a->previous = FB_NONE;
}

static void list_waiting(struct fb_messaging *m, uint32_t index)
{
    fb_announcement *a = &m->announcement[index];
    if (a->waiting) return;
    a->waiting = true;
    a->previous = FB_NONE;
    a->next = m->waiting_first;
    if (a->next != FB_NONE) m->announcement[a->next].previous = index;
    m->waiting_first = index;
}

static void free_if_done(fb_node *node, uint32_t index)
{
    struct fb_messaging *m = node->messaging;
    fb_announcement *a = &m->announcement[index];
    touch(node, index);
    if (a->pending > 0 || a->stages[0].used) return;
    unshare(node, a);
    unlist(m, index);
    uint32_t *at = bucket_of(m, a->space, a->type, a->area);
    while (*at != index) at = &m->announcement[*at].bucket_next;
    *at = a->bucket_next;
    a->used = false;
    a->next = m->announcement_free;
    m->announcement_free = index;
}

/* Own batches (incarnation, batch): the newest covers the older ones. Anything else says less: that
 * the area changed. */
static void merge_batch(uint64_t *incarnation, uint64_t *batch, uint64_t other_incarnation,
                        uint64_t other_batch)
{
    if (*incarnation != other_incarnation) {
        *incarnation = *batch = 0;
    } else if (other_batch > *batch) {
        *batch = other_batch;
    }
}

/* What is pending says this from now on. A link that got the envelope built before is to get
 * another, so that one is shared no longer. */
static void renew(fb_node *node, fb_announcement *a, uint64_t incarnation, uint64_t batch)
{
    unshare(node, a);
    if (a->pending == 0) {
        a->incarnation = incarnation;
        a->batch = batch;
    } else {
        merge_batch(&a->incarnation, &a->batch, incarnation, batch);
    }
}

static void set_pending(fb_node *node, uint32_t index, uint32_t link)
{
    struct fb_messaging *m = node->messaging;
    fb_announcement *a = &m->announcement[index];
    fb_message_channel *channel = &m->channel[link];
    /* MP-6-17 */
    if ((channel->interest & FB_TOPIC_BIT(a->topic)) == 0) return;
    if (!fb_message_may_send(node, channel, true, a->area)) return;
    uint64_t *word = &pending_row(m, link)[index / 64];
    uint64_t bit = UINT64_C(1) << index % 64;
    if ((*word & bit) != 0) return;
    *word |= bit;
    a->pending++;
    channel->pending++;
    fb_link_touch(node, link);
    fb_link_has_output(node, link, FB_CHANNEL_MESSAGING);
}

/* FM-6.2-1, FM-7.3-2, MP-6-16 */
static void set_pending_all(fb_node *node, uint32_t index, uint32_t except)
{
    const struct fb_messaging *m = node->messaging;
    uint32_t space = m->announcement[index].space;
    for (uint32_t i = 0; i < m->up_count; i++) {
        const fb_message_channel *channel = &m->channel[m->up_links[i]];
        if (channel->space != space || channel->member == except) continue;
        /* Two links to one member, while one replaces the other: the one that stays is named. */
        if (fb_link_to(node, space, channel->member) != m->up_links[i]) continue;
        set_pending(node, index, m->up_links[i]);
    }
}

/* Waits for a write set. The first stage is never put off: what comes later goes to the second. */
static void stage(struct fb_messaging *m, uint32_t index, fb_stage what, uint32_t link)
{
    fb_announcement *a = &m->announcement[index];
    uint32_t i = a->stages[0].used && a->stages[0].w != what.w ? 1 : 0;
    fb_stage *s = &a->stages[i];
    uint64_t *targets = target_row(m, index, i);
    if (!s->used) {
        *s = what;
        memset(targets, 0, m->link_words * sizeof *targets);
    } else {
        merge_batch(&s->incarnation, &s->batch, what.incarnation, what.batch);
        if (what.w > s->w) s->w = what.w;
        if (what.all) {
            s->except = !s->all || s->except == what.except ? what.except : FB_NONE;
            s->all = true;
        }
    }
    if (link != FB_NONE) targets[link / 64] |= UINT64_C(1) << link % 64;
    list_waiting(m, index);
}

static fb_status announce(fb_node *node, uint32_t space, uint8_t type, fb_id area, fb_stage what,
                          uint32_t link)
{
    struct fb_messaging *m = node->messaging;
    if (m->up_count == 0 && what.w <= fb_w_durable(node)) return FB_OK;
    uint32_t index = find_or_take(node, space, type, area);
    if (index == FB_NONE) {
        fb_count(node, FB_COUNTER_MESSAGES_DROPPED, 1);
        return FB_ERR_BUSY;
    }
    /* FM-4.1-7 */
    if (MUTANT(TOLD_BEFORE_DURABLE, what.w > fb_w_durable(node), false)) {
        stage(m, index, what, link);
    } else {
        renew(node, &m->announcement[index], what.incarnation, what.batch);
        if (what.all) {
            set_pending_all(node, index, what.except);
        } else {
            set_pending(node, index, link);
        }
    }
    free_if_done(node, index);
    return FB_OK;
}

fb_status fb_announce_all(fb_node *node, uint32_t space, uint32_t except, fb_message_type type,
                          fb_id area, uint64_t incarnation, uint64_t batch, uint64_t after_w)
{
    fb_stage what = {true, true, except, after_w, incarnation, batch};
    return announce(node, space, (uint8_t)type, area, what, FB_NONE);
}

void fb_message_changed_all(fb_node *node, uint32_t space, uint32_t except, fb_id area,
                            uint64_t incarnation, uint64_t batch, uint64_t after_w)
{
    (void)fb_announce_all(node, space, except, FB_TYPE_CHANGED, area, incarnation, batch, after_w);
}

void fb_message_conflict_all(fb_node *node, uint32_t space, fb_id area, uint64_t after_w)
{
    (void)fb_announce_all(node, space, FB_NONE, FB_TYPE_CONFLICT, area, 0, 0, after_w);
}

void fb_message_changed(fb_node *node, uint32_t space, uint32_t member, fb_id area,
                        uint64_t incarnation, uint64_t batch, uint64_t after_w)
{
    uint32_t link = fb_link_to(node, space, member);
    /* FM-8.3-1, FM-8.3-2, MP-6-2 */
    if (link == FB_NONE || !node->messaging->channel[link].up) {
        fb_message_dropped(node, member, FB_ERR_UNREACHABLE, FB_NONE);
        return;
    }
    fb_stage what = {true, false, FB_NONE, after_w, incarnation, batch};
    (void)announce(node, space, FB_TYPE_CHANGED, area, what, link);
}

/* The first stage of an announcement came true. */
static void promote(fb_node *node, uint32_t index)
{
    struct fb_messaging *m = node->messaging;
    fb_announcement *a = &m->announcement[index];
    fb_stage ready = a->stages[0];
    uint64_t *targets = target_row(m, index, 0);
    renew(node, a, ready.incarnation, ready.batch);
    if (ready.all) set_pending_all(node, index, ready.except);
    for (uint32_t word = 0; word < m->link_words; word++) {
        while (targets[word] != 0) {
            uint32_t link = word * 64 + (uint32_t)__builtin_ctzll(targets[word]);
            targets[word] &= targets[word] - 1;
            set_pending(node, index, link);
        }
    }
    a->stages[0] = a->stages[1];
    memcpy(targets, target_row(m, index, 1), m->link_words * sizeof *targets);
    a->stages[1] = (fb_stage){.used = false};
    if (!a->stages[0].used) unlist(m, index);
}

void fb_announce_durable(fb_node *node)
{
    struct fb_messaging *m = node->messaging;
    uint64_t durable = fb_w_durable(node);
    for (uint32_t index = m->waiting_first; index != FB_NONE;) {
        fb_announcement *a = &m->announcement[index];
        uint32_t next = a->next;
        bool promoted = false;
        while (a->stages[0].used && a->stages[0].w <= durable) {
            promote(node, index);
            promoted = true;
        }
        if (promoted) free_if_done(node, index);
        index = next;
    }
}

static void clear_pending(fb_node *node, uint32_t link, uint32_t index)
{
    struct fb_messaging *m = node->messaging;
    pending_row(m, link)[index / 64] &= ~(UINT64_C(1) << index % 64);
    m->announcement[index].pending--;
    m->channel[link].pending--;
    fb_link_touch(node, link);
    free_if_done(node, index);
}

void fb_announce_link_down(fb_node *node, uint32_t link)
{
    struct fb_messaging *m = node->messaging;
    const uint64_t *row = pending_row(m, link);
    for (uint32_t word = 0; word < m->announcement_words; word++) {
        while (row[word] != 0) {
            uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(row[word]);
            clear_pending(node, link, index);
            fb_message_dropped(node, m->channel[link].member, FB_ERR_UNREACHABLE, FB_NONE);
        }
    }
    for (uint32_t i = m->waiting_first; i != FB_NONE; i = m->announcement[i].next) {
        for (uint32_t s = 0; s < 2; s++) {
            target_row(m, i, s)[link / 64] &= ~(UINT64_C(1) << link % 64);
        }
    }
}

/* The next bit of the link's row from where the last one was, round and round: every area has its
 * turn. */
static uint32_t next_pending(struct fb_messaging *m, uint32_t link)
{
    fb_message_channel *channel = &m->channel[link];
    const uint64_t *row = pending_row(m, link);
    uint32_t word = channel->scan / 64;
    uint64_t bits = row[word] & (UINT64_MAX << channel->scan % 64);
    for (uint32_t i = 0; bits == 0 && i <= m->announcement_words; i++) {
        word = word + 1 < m->announcement_words ? word + 1 : 0;
        bits = row[word];
    }
    if (bits == 0) return FB_NONE;
    uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(bits);
    channel->scan = index + 1 < m->announcements ? index + 1 : 0;
    return index;
}

bool fb_announce_next(fb_node *node, uint32_t link, uint32_t *signal)
{
    struct fb_messaging *m = node->messaging;
    fb_message_channel *channel = &m->channel[link];
    while (channel->pending > 0) {
        uint32_t index = next_pending(m, link);
        FB_ASSERT(index != FB_NONE);
        fb_announcement *a = &m->announcement[index];
        if (!fb_message_may_send(node, channel, true, a->area)) {
            fb_message_dropped(node, channel->member, FB_ERR_NOT_AUTHORISED, FB_NONE);
            clear_pending(node, link, index);
            continue;
        }
        if (a->signal != FB_NONE && node->mono_ns - a->built_ns > FB_SIGNAL_SHARE_NS) {
            unshare(node, a);
        }
        if (a->signal == FB_NONE) {
            fb_compose what = {
                .type = a->type,
                .topic = (fb_topic)a->topic,
                .space = a->space,
                .has_area = true,
                .area = a->area,
                .incarnation = a->incarnation,
                .batch = a->batch,
            };
            fb_status status = fb_signal_compose(node, &what, &a->signal);
            if (status == FB_ERR_BUSY || status == FB_ERR_AGAIN) {
                m->hungry = true;
                channel->scan = index;
                return false;
            }
            if (status != FB_OK) {
                fb_message_dropped(node, channel->member, status, FB_NONE);
                clear_pending(node, link, index);
                continue;
            }
            a->built_ns = node->mono_ns;
        }
        *signal = a->signal;
        fb_signal_hold(m, *signal);
        clear_pending(node, link, index);
        return true;
    }
    return false;
}

void fb_announce_unshare(fb_node *node)
{
    struct fb_messaging *m = node->messaging;
    for (uint32_t i = 0; i < m->announcements; i++) {
        fb_announcement *a = &m->announcement[i];
        if (a->used && a->signal != FB_NONE) unshare(node, a);
    }
}
