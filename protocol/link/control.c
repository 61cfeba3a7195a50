/* SPDX-License-Identifier: Apache-2.0 */
/* The link's own control frames: heartbeat with clocks and digest, close, hello. Layouts:
 * docs/WIRE-FORMATS.md, "Link". */
#include "protocol/base/mutant.h"
#include "protocol/database/database.h"
#include "protocol/link/state.h"

#define HEARTBEAT_OPEN 0x01u /* the sender holds the link open */
#define DIGEST_BYTES   16u

size_t fb_control_write_heartbeat(fb_node *node, uint32_t index, uint8_t *out)
{
    const fb_link *link = fb_links_get(node, index);
    uint8_t digest[DIGEST_BYTES] = {0};
    if (link->up) fb_database_digest(node, link->info.space, link->info.member, digest);
    bool echo = link->echo_mono_ns != 0;
    fb_writer w = fb_writer_of(out, FB_HEARTBEAT_BYTES);
    fb_write_u8(&w, FB_CONTROL_HEARTBEAT);
    fb_write_u8(&w, link->local_ok ? HEARTBEAT_OPEN : 0);
    fb_write_u64(&w, (uint64_t)node->wall_us);
    fb_write_u64(&w, node->mono_ns);
    fb_write_u64(&w, link->echo_mono_ns);
    fb_write_u64(&w, echo ? node->mono_ns - link->echo_at_ns : 0);
    fb_write_bytes(&w, digest, sizeof digest);
    FB_ASSERT(!w.failed && w.at == FB_HEARTBEAT_BYTES);
    return w.at;
}

size_t fb_control_write_close(fb_node *node, uint32_t index, uint8_t *out)
{
    fb_writer w = fb_writer_of(out, FB_CLOSE_BYTES);
    fb_write_u8(&w, FB_CONTROL_CLOSE);
    fb_write_u16(&w, (uint16_t)fb_links_get(node, index)->why);
    FB_ASSERT(!w.failed && w.at == FB_CLOSE_BYTES);
    return w.at;
}

size_t fb_control_write_hello(fb_node *node, uint32_t index, uint8_t *out)
{
    const fb_link *link = fb_links_get(node, index);
    uint8_t flags = 0;
    if (link->next_own == 0) {
        flags |= FB_HELLO_CONFIRMED;
        if (link->local_ok) flags |= FB_HELLO_OPEN;
    }
    fb_writer w = fb_writer_of(out, FB_HELLO_BYTES);
    fb_write_u8(&w, FB_CONTROL_HELLO);
    fb_write_u8(&w, flags);
    fb_write_u64(&w, node->incarnation);
    FB_ASSERT(!w.failed && w.at == FB_HELLO_BYTES);
    return w.at;
}

/* a - b without overflow: clocks may show anything. */
static int64_t subtract(int64_t a, int64_t b)
{
    if (b < 0 && a > INT64_MAX + b) return INT64_MAX;
    if (b > 0 && a < INT64_MIN + b) return INT64_MIN;
    return a - b;
}

/* The peer's clock minus ours. With an echo, half the round trip is added to what the peer's clock
 * showed when it sent; without one the way is taken for no time at all. */
static void measure_offset(fb_node *node, uint32_t index, int64_t wall_us, uint64_t echo,
                           uint64_t held)
{
    fb_link *link = fb_links_get(node, index);
    int64_t half_us = 0;
    if (echo != 0) {
        if (echo > node->mono_ns || held > node->mono_ns - echo) return; /* not ours */
        half_us = (int64_t)((node->mono_ns - echo - held) / 2000);
    } else if (link->info.offset_known) {
        return;
    }
    link->info.clock_offset_us = subtract(wall_us, subtract(node->wall_us, half_us));
    link->info.offset_known = true;
}

static fb_status heartbeat(fb_node *node, uint32_t index, fb_span frame, uint64_t number)
{
    fb_reader in = fb_reader_of(frame);
    (void)fb_read_u8(&in);
    uint8_t flags = fb_read_u8(&in);
    int64_t wall_us = (int64_t)fb_read_u64(&in);
    uint64_t mono_ns = fb_read_u64(&in);
    uint64_t echo = fb_read_u64(&in);
    uint64_t held = fb_read_u64(&in);
    fb_span digest = fb_read_bytes(&in, DIGEST_BYTES);
    if (!fb_reader_done(&in) || (flags & ~HEARTBEAT_OPEN) != 0) return FB_ERR_LINK_RECORD;

    fb_link *link = fb_links_get(node, index);
    if (link->info.external) {
        if (number <= link->heartbeat_number) return FB_OK; /* repeated, or overtaken */
        link->heartbeat_number = number;
    }
    measure_offset(node, index, wall_us, echo, held);
    link->echo_mono_ns = mono_ns;
    link->echo_at_ns = node->mono_ns;
    fb_links_touch(node, index);
    if ((flags & HEARTBEAT_OPEN) != 0) fb_links_peer_ok(node, index);
    if (!link->up) return FB_OK;

    static const uint8_t unknown[DIGEST_BYTES] = {0};
    uint8_t own[DIGEST_BYTES];
    if (memcmp(digest.p, unknown, sizeof unknown) == 0) return FB_OK;
    fb_database_digest(node, link->info.space, link->info.member, own);
    if (memcmp(digest.p, own, sizeof own) != 0) {
        fb_database_differs(node, index);
    } else {
        fb_database_same(node, index);
    }
    return FB_OK;
}

static fb_status close_frame(fb_node *node, uint32_t index, fb_span frame)
{
    fb_reader in = fb_reader_of(frame);
    (void)fb_read_u8(&in);
    uint16_t code = fb_read_u16(&in);
    if (!fb_reader_done(&in)) return FB_ERR_LINK_RECORD;
    /* The peer's word is kept only where it changes what this node does next. */
    static const fb_error heeded[] = {
        FB_ERR_REVOKED,       FB_ERR_LINK_REPLACED, FB_ERR_LINK_MISBEHAVED, FB_ERR_LINK_PENDING,
        FB_ERR_LINK_TOO_MANY, FB_ERR_LINK_PEER,     FB_ERR_LINK_SILENT,
    };
    fb_error why = FB_ERR_LINK_CLOSED;
    for (size_t i = 0; i < sizeof heeded / sizeof heeded[0]; i++) {
        if (code == (uint16_t)heeded[i]) why = heeded[i];
    }
    fb_links_get(node, index)->peer_why = why;
    fb_link_close(node, index, FB_ERR_LINK_CLOSED);
    return FB_OK;
}

fb_status fb_control_frame(fb_node *node, uint32_t index, fb_span frame, uint64_t number)
{
    switch (frame.p[0]) {
    case FB_CONTROL_HEARTBEAT:
        return heartbeat(node, index, frame, number);
    case FB_CONTROL_CLOSE:
        return close_frame(node, index, frame);
    case FB_CONTROL_HELLO:
        /* carrier.c has looked at it; on a stream it has no place. */
        return fb_links_get(node, index)->info.external ? FB_OK : FB_ERR_LINK_RECORD;
    default:
        /* A type of a later version: nothing here depends on it. */
        fb_link_misbehaved(node, index, 1);
        return FB_OK;
    }
}

static bool beats(const fb_link *link)
{
    return (link->info.state == FB_LINK_OPEN || link->info.state == FB_LINK_PENDING) &&
           (link->up || link->kept || link->local_ok);
}

/* Sets the timer for the next phase in which a link beats. */
static void set_beat(fb_node *node)
{
    fb_links *links = node->links;
    uint64_t period = node->options.timing.heartbeat_ns, next = FB_NEVER;
    for (uint32_t i = 0; i < links->high; i++) {
        const fb_link *link = &links->table[i];
        if (!beats(link)) continue;
        uint32_t ahead = (link->phase + links->phases - links->phase) % links->phases;
        uint64_t at = fb_add_sat_u64(links->phase_ns, period / links->phases * ahead);
        if (at <= node->mono_ns) at = fb_add_sat_u64(at, period);
        if (at >= next) continue;
        next = at;
        links->next_phase = link->phase;
    }
    if (next == FB_NEVER) {
        fb_timer_clear(node, &links->heartbeat);
    } else {
        fb_timer_set(node, &links->heartbeat, next);
    }
}

void fb_control_beat(fb_node *node, uint32_t index)
{
    fb_links *links = node->links;
    fb_link *link = &links->table[index];
    link->phase =
        (uint8_t)fb_draw_below(node->seed, FB_STREAM_BEAT, link->info.number, 0, links->phases);
    if (!fb_timer_is_set(&links->heartbeat)) {
        links->phase = link->phase;
        links->phase_ns = node->mono_ns;
    }
    set_beat(node);
    if (fb_timer_is_set(&links->heartbeat)) return;
    /* It is still opening. */
    links->next_phase = link->phase;
    fb_timer_set(node, &links->heartbeat,
                 fb_add_sat_u64(node->mono_ns, node->options.timing.heartbeat_ns));
}

/* A frame in several records has to be complete within the bound of silence, or a peer could hold
 * its buffer for ever. */
static bool drips(const fb_node *node, const fb_link *link)
{
    for (uint32_t c = 0; c < FB_CHANNELS; c++) {
        if (link->parts[c].open &&
            node->mono_ns - link->parts_since_ns[c] > node->options.timing.silent_ns) {
            return true;
        }
    }
    return false;
}

static void tick_one(fb_node *node, uint32_t index)
{
    const fb_timing *timing = &node->options.timing;
    fb_link *link = fb_links_get(node, index);
    if (node->mono_ns - link->info.heard_ns >=
        timing->silent_ns * MUTANT(SILENCE_UNITS, 1u, 1000u)) {
        if (link->info.external) {
            /* The carrier may come back: the session ends, the hello begins anew. */
            fb_external_restart(node, index, FB_ERR_LINK_SILENT);
        } else {
            fb_link_close(node, index, FB_ERR_LINK_SILENT);
        }
        return;
    }
    if (drips(node, link)) {
        fb_link_close(node, index, FB_ERR_LINK_RECORD);
        return;
    }
    /* MP-7-20 */
    if (!link->info.external && link->address != FB_NONE && !link->dial_again &&
        node->mono_ns - link->opened_ns >= timing->link_age_ns) {
        link->dial_again = true;
        fb_dial_renew(node, link->address);
    }
    if (link->points > 0) link->points--;
    if (!link->local_ok && node->mono_ns - link->pending_since_ns >= timing->pending_ns) {
        link->pending_since_ns = node->mono_ns;
        link->pending_bytes = 0;
    }
    fb_link_take_again(node, index); /* in case nothing else says so */
    fb_links_owe(node, index, FB_OWES_HEARTBEAT);
}

void fb_control_tick(fb_node *node)
{
    fb_links *links = node->links;
    links->phase = links->next_phase;
    links->phase_ns = node->mono_ns;
    for (uint32_t i = 0; i < links->high; i++) {
        const fb_link *link = &links->table[i];
        if (beats(link) && link->phase == links->phase) tick_one(node, i);
    }
    set_beat(node);
}
