/* SPDX-License-Identifier: Apache-2.0 */
/* Link planes back to back: handshakes cut, corrupted and truncated at every byte, frames, pending
 * links, duplicates, redial, liveness. messaging-profile 7. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fuzz/link_world.h"

static const fb_id nobody = {{0}};

static void tick(world *w, uint32_t i)
{
    world_event(w, i, (fb_event){.kind = FB_EV_TICK});
    world_settle(w);
}

/* What another plane does within a step of node i. */
#define WITHIN(w, i, call)                                                                         \
    do {                                                                                           \
        fb_effects fx_;                                                                            \
        world_begin(w, i, &fx_);                                                                   \
        call;                                                                                      \
        world_finish(w, i, &fx_);                                                                  \
        world_settle(w);                                                                           \
    } while (0)

static uint32_t the_link(world *w, uint32_t i, fb_link_state state)
{
    uint32_t found = FB_NONE;
    for (uint32_t l = 0; l < WORLD_LINKS; l++) {
        if (fb_link_at(&w->nodes[i].node, l)->state != state) continue;
        assert_int_equal(found, FB_NONE);
        found = l;
    }
    assert_int_not_equal(found, FB_NONE);
    return found;
}

/* 0 dials 1; both hold the link open. */
static world *linked(void)
{
    world *w = world_new();
    world_book(w, 0, "n1", nobody);
    world_settle(w);
    assert_int_equal(world_count(w, 0, FB_LINK_OPEN), 1);
    assert_int_equal(world_count(w, 1, FB_LINK_OPEN), 1);
    return w;
}

static void assert_frame(const world_node *n, uint32_t at, uint8_t channel, const void *bytes,
                         size_t len)
{
    assert_true(at < n->frame_count);
    assert_int_equal(n->frames[at].channel, channel);
    assert_int_equal(n->frames[at].len, len);
    assert_memory_equal(n->frames[at].bytes, bytes, len);
}

/* MP-7-11, FI-2-6 */
static void two_nodes_meet_and_talk(void **state)
{
    (void)state;
    world *w = linked();
    const fb_link_info *a = fb_link_at(&w->nodes[0].node, the_link(w, 0, FB_LINK_OPEN));
    const fb_link_info *b = fb_link_at(&w->nodes[1].node, the_link(w, 1, FB_LINK_OPEN));
    assert_true(a->dialled && !b->dialled);
    assert_memory_equal(a->handshake_hash, b->handshake_hash, 64);
    assert_int_equal(a->peer_incarnation, 101);
    assert_int_equal(b->peer_incarnation, 100);
    assert_true(fb_id_equal(a->peer, w->nodes[1].node.self));
    assert_true(fb_b32_equal(b->peer_key, w->nodes[0].node.self_key));
    assert_int_equal(fb_link_to(&w->nodes[0].node, 0, 1), the_link(w, 0, FB_LINK_OPEN));
    assert_int_equal(w->nodes[0].ups, 1);
    assert_int_equal(w->nodes[1].facts[FB_FACT_LINK_BOUND], 1);
    /* Only the two keys of each node are left in its provider. */
    assert_int_equal(fb_sodium_keys(w->nodes[0].sodium), 2);
    assert_int_equal(fb_sodium_keys(w->nodes[1].sodium), 2);

    world_say(w, 0, the_link(w, 0, FB_LINK_OPEN), FB_CHANNEL_MESSAGING, "hello", 5);
    world_say(w, 0, the_link(w, 0, FB_LINK_OPEN), FB_CHANNEL_CALLS, "a call, longer than a head",
              26);
    tick(w, 0);
    world_say(w, 1, the_link(w, 1, FB_LINK_OPEN), FB_CHANNEL_MESSAGING, "", 0);
    tick(w, 1);
    assert_int_equal(w->nodes[1].frame_count, 2);
    assert_frame(&w->nodes[1], 0, FB_CHANNEL_MESSAGING, "hello", 5);
    assert_frame(&w->nodes[1], 1, FB_CHANNEL_CALLS, "a call, longer than a head", 26);
    assert_frame(&w->nodes[0], 0, FB_CHANNEL_MESSAGING, "", 0);
    world_free(w);
}

/* What goes over the wire in a short talk, cut into pieces of every size up to 150. */
/* MP-7-5 */
static void any_segmentation_is_the_same(void **state)
{
    (void)state;
    for (size_t segment = 1; segment <= 150; segment++) {
        world *w = world_new();
        w->segment = segment;
        world_book(w, 0, "n1", nobody);
        world_settle(w);
        uint32_t link = the_link(w, 0, FB_LINK_OPEN);
        world_say(w, 0, link, FB_CHANNEL_MESSAGING, "0123456789", 10);
        world_say(w, 0, link, FB_CHANNEL_CALLS, "call", 4);
        tick(w, 0);
        assert_int_equal(w->nodes[1].frame_count, 2);
        assert_frame(&w->nodes[1], 0, FB_CHANNEL_MESSAGING, "0123456789", 10);
        assert_frame(&w->nodes[1], 1, FB_CHANNEL_CALLS, "call", 4);
        world_free(w);
    }
}

/* Bytes that went towards an end in the talk of the tests below. */
static size_t talk(world *w, uint32_t end)
{
    world_book(w, 0, "n1", nobody);
    world_settle(w);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t link = fb_link_to(&w->nodes[i].node, 0, 1 - i);
        if (link == FB_NONE) continue;
        world_say(w, i, link, FB_CHANNEL_MESSAGING, "0123456789", 10);
        tick(w, i);
    }
    return w->conns[0].used ? w->conns[0].end[end].written : 0;
}

/* FM-11-3, MP-5-20 */
static void any_corrupted_byte_ends_the_link(void **state)
{
    (void)state;
    for (uint32_t end = 0; end < 2; end++) {
        world *clean = world_new();
        size_t total = talk(clean, end);
        world_free(clean);
        assert_in_range(total, 300, 600);
        for (size_t at = 0; at < total; at++) {
            for (uint32_t mask = 1; mask <= 0x80; mask *= 0x80) {
                world *w = world_new();
                w->corrupt = true;
                w->fault_end = end;
                w->fault_at = at;
                w->fault_mask = (uint8_t)mask;
                talk(w, end);
                if (at == 4 && end == 1) {
                    /* The dialer's lowest version: still a common one, but the prologue differs. */
                    assert_int_equal(w->nodes[1].frame_count, 0);
                }
                assert_false(w->corrupt);
                /* Either the fault ended the link, or it hit a length and the rest is awaited; in
                 * no case was anything else taken than what was sent. */
                for (uint32_t i = 0; i < 2; i++) {
                    assert_in_range(w->nodes[i].frame_count, 0, 1);
                    if (w->nodes[i].frame_count == 1) {
                        assert_frame(&w->nodes[i], 0, FB_CHANNEL_MESSAGING, "0123456789", 10);
                    }
                }
                w->cut[0][1] = true;
                world_run(w, 40 * WORLD_S);
                assert_int_equal(world_count(w, 0, FB_LINK_FREE), WORLD_LINKS);
                assert_int_equal(world_count(w, 1, FB_LINK_FREE), WORLD_LINKS);
                assert_int_equal(w->nodes[0].ups, w->nodes[0].downs);
                assert_int_equal(w->nodes[1].ups, w->nodes[1].downs);
                assert_int_equal(w->nodes[1].facts[FB_FACT_CLONE], 0);
                assert_int_equal(fb_sodium_keys(w->nodes[0].sodium), 2);
                assert_int_equal(fb_sodium_keys(w->nodes[1].sodium), 2);
                world_free(w);
            }
        }
    }
}

/* MP-7-5 */
static void any_truncation_is_survived(void **state)
{
    (void)state;
    for (uint32_t end = 0; end < 2; end++) {
        world *clean = world_new();
        size_t total = talk(clean, end);
        world_free(clean);
        for (size_t at = 0; at < total; at++) {
            world *w = world_new();
            w->truncate = true;
            w->fault_end = end;
            w->fault_at = at;
            talk(w, end);
            w->truncate = false;
            world_run(w, 2 * WORLD_S); /* dialled again */
            assert_int_equal(world_count(w, 0, FB_LINK_OPEN), 1);
            assert_int_equal(world_count(w, 1, FB_LINK_OPEN), 1);
            world_free(w);
        }
    }
}

static void large_frames_wait_for_credit(void **state)
{
    (void)state;
    static uint8_t big[FB_FRAME_BYTES_MAX];
    for (size_t i = 0; i < sizeof big; i++) big[i] = (uint8_t)(i * 7 + i / 251);
    world *w = world_new();
    w->credit = FB_RECORD_WIRE_MAX; /* the least a driver may grant: one record */
    w->segment = 1000;
    world_book(w, 0, "n1", nobody);
    world_settle(w);
    uint32_t link = the_link(w, 0, FB_LINK_OPEN);
    world_say(w, 0, link, FB_CHANNEL_CALLS, big, sizeof big);
    world_say(w, 0, link, FB_CHANNEL_MESSAGING, big, 50176);
    world_say(w, 0, link, FB_CHANNEL_MESSAGING, big, FB_RECORD_PIECE_MAX + 1);
    world_say(w, 0, link, FB_CHANNEL_MESSAGING, big, FB_RECORD_PIECE_MAX);
    tick(w, 0);
    const world_node *n = &w->nodes[1];
    assert_int_equal(n->frame_count, 4);
    assert_frame(n, 0, FB_CHANNEL_MESSAGING, big, 50176);
    assert_frame(n, 1, FB_CHANNEL_MESSAGING, big, FB_RECORD_PIECE_MAX + 1);
    assert_frame(n, 2, FB_CHANNEL_MESSAGING, big, FB_RECORD_PIECE_MAX);
    assert_frame(n, 3, FB_CHANNEL_CALLS, big, sizeof big);
    assert_int_equal(w->nodes[1].node.links->frames_free_count, 2);
    world_free(w);
}

static void a_small_arena_delays_only(void **state)
{
    (void)state;
    static uint8_t big[FB_FRAME_BYTES_MAX];
    world *w = linked();
    w->effects_cap = FB_RECORD_WIRE_MAX + 16384;
    uint32_t link = the_link(w, 0, FB_LINK_OPEN);
    for (int i = 0; i < 5; i++) world_say(w, 0, link, FB_CHANNEL_MESSAGING, big, 40000);
    tick(w, 0);
    assert_int_equal(w->nodes[1].frame_count, 5);
    assert_frame(&w->nodes[1], 4, FB_CHANNEL_MESSAGING, big, 40000);
    world_free(w);
}

/* MP-7-19 */
static void ciphers_are_rekeyed(void **state)
{
    (void)state;
    world *w = linked();
    uint32_t a = the_link(w, 0, FB_LINK_OPEN), b = the_link(w, 1, FB_LINK_OPEN);
    fb_link *from = fb_links_get(&w->nodes[0].node, a), *to = fb_links_get(&w->nodes[1].node, b);
    from->send.nonce = to->receive.nonce = FB_REKEY_EVERY - 2;
    fb_b32 before = from->send.key;
    for (int i = 0; i < 5; i++) {
        world_say(w, 0, a, FB_CHANNEL_MESSAGING, "x", 1);
        tick(w, 0);
        bool changed = !fb_b32_equal(before, from->send.key);
        assert_int_equal(changed, i >= 2);
        assert_true(fb_b32_equal(from->send.key, to->receive.key));
    }
    assert_int_equal(w->nodes[1].frame_count, 5);
    assert_int_equal(from->send.nonce, FB_REKEY_EVERY + 3);
    world_free(w);
}

/* MP-7-22, MP-7-23 */
static void one_link_per_pair_stays(void **state)
{
    (void)state;
    /* Both dial; the frames of both handshakes interleave in several ways. */
    for (size_t segment = 0; segment < 120; segment += 7) {
        world *w = world_new();
        w->segment = segment;
        w->hold = true;
        world_book(w, 0, "n1", nobody);
        world_book(w, 1, "n0", nobody);
        w->hold = false;
        world_settle(w);
        assert_int_equal(world_count(w, 0, FB_LINK_OPEN), 1);
        assert_int_equal(world_count(w, 1, FB_LINK_OPEN), 1);
        uint32_t a = the_link(w, 0, FB_LINK_OPEN), b = the_link(w, 1, FB_LINK_OPEN);
        bool first = fb_id_compare(w->nodes[0].node.self, w->nodes[1].node.self) < 0;
        assert_int_equal(fb_link_at(&w->nodes[0].node, a)->dialled, first);
        assert_int_equal(fb_link_at(&w->nodes[1].node, b)->dialled, !first);
        assert_int_equal(fb_link_to(&w->nodes[0].node, 0, 1), a);
        assert_int_equal(fb_link_to(&w->nodes[1].node, 0, 0), b);
        uint32_t dials = w->nodes[0].dials + w->nodes[1].dials;
        world_run(w, 120 * WORLD_S); /* the loser is not dialled again */
        assert_int_equal(w->nodes[0].dials + w->nodes[1].dials, dials);
        assert_int_equal(world_count(w, 0, FB_LINK_OPEN), 1);
        world_free(w);
    }
}

static void redial_backs_off(void **state)
{
    (void)state;
    world *w = world_new();
    const fb_timing *t = &w->nodes[0].node.options.timing;
    w->cut[0][1] = true;
    world_book(w, 0, "n1", nobody);
    uint64_t pause = t->redial_min_ns;
    for (int i = 0; i < 12; i++) {
        uint64_t last = w->mono_ns;
        uint32_t dials = w->nodes[0].dials;
        uint64_t due = fb_timers_next(&w->nodes[0].node);
        assert_in_range(due - last, pause / 2, pause);
        world_run(w, due - last);
        assert_int_equal(w->nodes[0].dials, dials + 1);
        pause = fb_min_u64(pause * 2, t->redial_max_ns);
    }
    assert_int_equal(pause, t->redial_max_ns);
    w->cut[0][1] = false;
    world_run(w, t->redial_max_ns);
    assert_int_equal(world_count(w, 0, FB_LINK_OPEN), 1);
    /* A link that lasted resets the pause. */
    world_run(w, 10 * WORLD_S);
    world_end_conn(w, &w->conns[0]);
    assert_int_equal(w->nodes[0].last_down, FB_ERR_LINK_CLOSED);
    assert_in_range(fb_timers_next(&w->nodes[0].node) - w->mono_ns, t->redial_min_ns / 2,
                    t->redial_min_ns);
    /* Forgotten: never again. */
    fb_link_forget(&w->nodes[0].node, 0, fb_span_text("n1"));
    uint32_t dials = w->nodes[0].dials;
    world_run(w, 100 * WORLD_S);
    assert_int_equal(w->nodes[0].dials, dials);
    world_free(w);
}

static void silence_ends_a_link(void **state)
{
    (void)state;
    world *w = linked();
    world_run(w, 60 * WORLD_S);
    assert_int_equal(w->nodes[0].downs, 0);
    w->conns[0].silent = true;
    w->cut[0][1] = true;
    const fb_timing *t = &w->nodes[0].node.options.timing;
    world_run(w, t->silent_ns - t->heartbeat_ns - 1);
    assert_int_equal(w->nodes[0].downs + w->nodes[1].downs, 0);
    world_run(w, 2 * t->heartbeat_ns);
    assert_int_equal(w->nodes[0].downs, 1);
    assert_int_equal(w->nodes[1].downs, 1);
    assert_int_equal(w->nodes[0].last_close, FB_ERR_LINK_SILENT);
    world_free(w);
}

static void clocks_are_compared(void **state)
{
    (void)state;
    world *w = world_new();
    w->nodes[1].wall_offset_us = 5000000;
    w->nodes[2].wall_offset_us = INT64_MIN / 2;
    for (uint32_t i = 0; i < WORLD_NODES; i++) w->nodes[i].digest = 1;
    world_book(w, 0, "n1", nobody);
    world_book(w, 0, "n2", nobody);
    world_settle(w);
    world_run(w, 5 * WORLD_S);
    for (uint32_t l = 0; l < WORLD_LINKS; l++) {
        const fb_link_info *info = fb_link_at(&w->nodes[0].node, l);
        if (info->state != FB_LINK_OPEN) continue;
        assert_true(info->offset_known);
        int64_t want = info->member == 1 ? 5000000 : INT64_MIN / 2;
        assert_true(info->clock_offset_us == want);
    }
    assert_int_equal(w->nodes[0].differs + w->nodes[1].differs, 0);
    w->nodes[0].digest = 2;
    world_run(w, 5 * WORLD_S);
    assert_true(w->nodes[0].differs > 0 && w->nodes[1].differs > 0);
    world_free(w);
}

/* MP-7-10 */
static void another_peer_is_a_stale_address(void **state)
{
    (void)state;
    world *w = world_new();
    world_book(w, 0, "n1", w->nodes[2].node.self);
    world_settle(w);
    assert_int_equal(w->nodes[0].last_close, FB_ERR_LINK_PEER);
    assert_int_equal(w->nodes[0].ups + w->nodes[1].ups, 0);
    assert_int_equal(w->nodes[0].facts[FB_FACT_LINK_REFUSED], 0); /* no attack */
    /* And not soon again. */
    world_run(w, w->nodes[0].node.options.timing.redial_max_ns / 2 - 1);
    assert_int_equal(w->nodes[0].dials, 1);
    world_free(w);
}

/* MP-7-12, MP-7-13 */
static void strangers_stay_outside(void **state)
{
    (void)state;
    world *w = world_new();
    w->nodes[1].judge[0] = FB_MEMBER_PENDING;
    world_book(w, 0, "n1", nobody);
    world_settle(w);
    uint32_t link = the_link(w, 1, FB_LINK_PENDING);
    /* The acceptor stays nameless, and nothing of the space goes out. */
    uint32_t at_dialer = the_link(w, 0, FB_LINK_OPENING);
    assert_true(fb_id_is_zero(fb_link_at(&w->nodes[0].node, at_dialer)->peer));
    assert_int_equal(w->nodes[0].shows, 1);
    assert_int_equal(w->nodes[1].shows, 0);
    size_t written = w->conns[0].end[0].written;
    world_say(w, 1, link, FB_CHANNEL_MESSAGING, "secret", 6);
    tick(w, 1);
    assert_int_equal(w->conns[0].end[0].written, written);
    /* 30 s, then not again from this host for a minute. */
    const fb_timing *t = &w->nodes[0].node.options.timing;
    world_run(w, t->pending_ns);
    assert_int_equal(world_count(w, 1, FB_LINK_PENDING), 0);
    uint32_t dials = w->nodes[0].dials;
    uint64_t shut = w->mono_ns;
    while (world_count(w, 1, FB_LINK_PENDING) == 0) {
        world_run(w, WORLD_S / 4);
        assert_true(w->mono_ns - shut < 60 * WORLD_S + t->redial_max_ns);
        if (w->nodes[0].dials == dials + 1) {
            assert_int_equal(w->nodes[1].last_close, FB_ERR_LINK_PENDING);
        }
    }
    assert_true(w->nodes[0].dials > dials + 1);
    assert_true(w->mono_ns - shut >= 60 * WORLD_S);
    assert_int_equal(w->nodes[0].ups + w->nodes[1].ups, 0);
    world_free(w);
}

/* MP-7-12 */
static void a_stranger_sends_little(void **state)
{
    (void)state;
    static uint8_t frame[4096] = {FB_CONTROL_INVITE};
    world *w = world_new();
    w->nodes[1].judge[0] = FB_MEMBER_PENDING;
    world_book(w, 0, "n1", nobody);
    world_settle(w);
    uint32_t link = the_link(w, 0, FB_LINK_OPENING);
    for (int i = 0; i < 4; i++) world_queue(&w->nodes[0].invite[link], frame, sizeof frame);
    fb_link_has_output(&w->nodes[0].node, link, FB_CHANNEL_CONTROL);
    tick(w, 0);
    assert_int_equal(w->nodes[1].frame_count, 4); /* 16 KiB in all */
    world_queue(&w->nodes[0].invite[link], frame, 1);
    fb_link_has_output(&w->nodes[0].node, link, FB_CHANNEL_CONTROL);
    tick(w, 0);
    assert_int_equal(w->nodes[1].frame_count, 4);
    assert_int_equal(w->nodes[1].last_close, FB_ERR_LINK_PENDING);
    world_free(w);
}

/* MP-7-15 */
static void an_invite_keeps_a_link(void **state)
{
    (void)state;
    world *w = world_new();
    w->nodes[1].judge[0] = FB_MEMBER_PENDING;
    w->nodes[0].judge[1] = FB_MEMBER_PENDING; /* the joiner knows nobody */
    world_book(w, 0, "n1", nobody);
    world_settle(w);
    uint32_t a = the_link(w, 0, FB_LINK_OPENING), b = the_link(w, 1, FB_LINK_PENDING);
    WITHIN(w, 1, assert_int_equal(fb_link_keep_pending(&w->nodes[1].node, b), FB_OK));
    /* The acceptor has named itself. */
    assert_true(fb_id_equal(fb_link_at(&w->nodes[0].node, a)->peer, w->nodes[1].node.self));
    assert_int_equal(w->nodes[1].shows, 1);
    WITHIN(w, 0, assert_int_equal(fb_link_keep_pending(&w->nodes[0].node, a), FB_OK));
    world_run(w, 300 * WORLD_S);
    assert_int_equal(world_count(w, 1, FB_LINK_PENDING), 1);
    assert_int_equal(w->nodes[0].ups + w->nodes[1].ups, 0);
    /* Approved at one end only: still nothing. Then at both. */
    WITHIN(w, 1, fb_link_approved(&w->nodes[1].node, b, 0));
    assert_int_equal(w->nodes[0].ups + w->nodes[1].ups, 0);
    WITHIN(w, 0, fb_link_approved(&w->nodes[0].node, a, 1));
    assert_int_equal(w->nodes[0].ups, 1);
    assert_int_equal(w->nodes[1].ups, 1);
    world_say(w, 1, b, FB_CHANNEL_MESSAGING, "welcome", 7);
    tick(w, 1);
    assert_frame(&w->nodes[0], 0, FB_CHANNEL_MESSAGING, "welcome", 7);
    world_free(w);
}

/* MP-1-5, MP-7-11 */
static void the_revoked_are_told(void **state)
{
    (void)state;
    world *w = world_new();
    w->nodes[1].judge[0] = FB_MEMBER_REVOKED;
    world_book(w, 0, "n1", nobody);
    world_settle(w);
    assert_int_equal(w->nodes[1].last_close, FB_ERR_REVOKED);
    assert_int_equal(w->nodes[0].node.links->book[0].last, FB_ERR_REVOKED);
    w->nodes[1].judge[0] = FB_MEMBER_NONE; /* a second key for a known id */
    world_run(w, 31 * WORLD_S);
    assert_int_equal(w->nodes[1].last_close, FB_ERR_KEY);
    assert_int_equal(w->nodes[0].ups + w->nodes[1].ups, 0);
    world_free(w);

    w = linked();
    uint32_t link = the_link(w, 1, FB_LINK_OPEN);
    WITHIN(w, 1, fb_link_close(&w->nodes[1].node, link, FB_ERR_REVOKED));
    assert_int_equal(w->nodes[1].downs, 1);
    assert_int_equal(w->nodes[0].last_down, FB_ERR_REVOKED);
    world_free(w);
}

/* MP-5-4 */
static void a_copy_raises_the_alarm(void **state)
{
    (void)state;
    world *w = world_new();
    /* Node 2 becomes a copy of node 1. */
    w->nodes[2].node.options.identity_key = 0;
    fb_b32 seed;
    memset(seed.b, 2, sizeof seed.b);
    assert_int_equal(
        fb_sodium_add_signing(w->nodes[2].sodium, &seed, &w->nodes[2].node.options.identity_key),
        FB_OK);
    w->nodes[2].node.self = w->nodes[1].node.self;
    w->nodes[2].node.self_key = w->nodes[1].node.self_key;
    world_book(w, 2, "n1", nobody);
    world_settle(w);
    assert_int_equal(w->nodes[1].facts[FB_FACT_CLONE], 1);
    assert_int_equal(w->nodes[1].last_close, FB_ERR_LINK_CLONE);
    assert_int_equal(w->nodes[1].ups, 0);
    /* A node that dials its own address is no copy of itself. */
    world_book(w, 0, "n0", nobody);
    world_settle(w);
    assert_int_equal(w->nodes[0].dials, 1);
    assert_int_equal(w->nodes[0].facts[FB_FACT_CLONE], 0);
    assert_int_equal(w->nodes[0].node.links->book[0].last, FB_ERR_LINK_PEER);
    assert_int_equal(w->nodes[0].ups, 0);
    world_free(w);
}

/* Bytes of a test's own to node 1, as if somebody had connected. */
static uint64_t intrude(world *w, const void *bytes, size_t len)
{
    uint64_t link = ++w->next_link;
    world_event(
        w, 1,
        (fb_event){
            .kind = FB_EV_LINK_OPENED, .a = link, .len = 6, .bytes = (const uint8_t *)"[::]:1"});
    world_event(w, 1, (fb_event){.kind = FB_EV_LINK_WRITABLE, .a = link, .b = 100000});
    world_event(
        w, 1,
        (fb_event){.kind = FB_EV_LINK_BYTES, .a = link, .len = (uint32_t)len, .bytes = bytes});
    return link;
}

/* MP-7-2, MP-7-3, MP-7-4, MP-7-8 */
static void preambles_are_judged(void **state)
{
    (void)state;
    world *w = world_new();
    intrude(w, "GET ", 4);
    assert_int_equal(w->nodes[1].last_refused, FB_ERR_LINK_MAGIC);
    intrude(w, "FBLL", 4);
    assert_int_equal(w->nodes[1].last_close, FB_ERR_LINK_MAGIC);
    uint8_t bytes[FB_PREAMBLE_DIALER_BYTES];
    fb_id tag;
    fb_space_tag(w->nodes[0].node.options.provider, world_space, &tag);
    fb_preamble_write_dialer(bytes, tag);
    bytes[4] = 2;
    bytes[5] = 9;
    intrude(w, bytes, sizeof bytes);
    assert_int_equal(w->nodes[1].last_close, FB_ERR_LINK_VERSION);
    bytes[4] = 1;
    bytes[5] = 0; /* lowest above highest */
    intrude(w, bytes, sizeof bytes);
    assert_int_equal(w->nodes[1].last_close, FB_ERR_LINK_VERSION);
    bytes[5] = 255;
    bytes[21] ^= 1;
    intrude(w, bytes, sizeof bytes);
    assert_int_equal(w->nodes[1].last_close, FB_ERR_LINK_TAG);
    bytes[21] ^= 1;
    uint64_t link = intrude(w, bytes, sizeof bytes);
    assert_int_not_equal(fb_links_find(&w->nodes[1].node, link), FB_NONE);
    /* One byte a second is not enough: the handshake has its deadline. */
    world_run(w, w->nodes[1].node.options.timing.handshake_ns);
    assert_int_equal(w->nodes[1].last_close, FB_ERR_DEADLINE);
    world_free(w);
}

/* MP-7-3, MP-7-4 */
static void versions_and_tags_of_the_wire(void **state)
{
    (void)state;
    uint8_t version;
    uint8_t bytes[FB_PREAMBLE_ACCEPTOR_BYTES];
    static const fb_status want[] = {FB_OK, FB_ERR_LINK_VERSION, FB_ERR_LINK_TAG,
                                     FB_ERR_LINK_TOO_MANY};
    for (unsigned i = 0; i < 4; i++) {
        fb_preamble_write_acceptor(bytes, (fb_preamble_status)i);
        assert_int_equal(fb_preamble_read_acceptor(fb_span_of(bytes, 7), &version), want[i]);
    }
    bytes[6] = 4;
    assert_int_equal(fb_preamble_read_acceptor(fb_span_of(bytes, 7), &version), FB_ERR_LINK_MAGIC);
    bytes[6] = 0;
    bytes[4] = bytes[5] = 3;
    assert_int_equal(fb_preamble_read_acceptor(fb_span_of(bytes, 7), &version),
                     FB_ERR_LINK_VERSION);
    for (size_t len = 0; len < 7; len++) {
        assert_int_equal(fb_preamble_read_acceptor(fb_span_of(bytes, len), &version),
                         FB_ERR_LINK_MAGIC);
    }
}

/* MP-5-21 */
static void misbehaviour_has_a_budget(void **state)
{
    (void)state;
    world *w = linked();
    uint32_t budget = w->nodes[1].node.options.timing.misbehaviour_budget;
    uint32_t link = the_link(w, 0, FB_LINK_OPEN);
    w->nodes[1].answer = FB_ERR_MALFORMED;
    for (uint32_t i = 1; i < budget; i++) {
        world_say(w, 0, link, FB_CHANNEL_MESSAGING, "bad", 3);
        tick(w, 0);
    }
    assert_int_equal(w->nodes[1].downs, 0);
    world_say(w, 0, link, FB_CHANNEL_MESSAGING, "bad", 3);
    tick(w, 0);
    assert_int_equal(w->nodes[1].downs, 1);
    assert_int_equal(w->nodes[1].last_close, FB_ERR_LINK_MISBEHAVED);
    assert_int_equal(w->nodes[0].last_down, FB_ERR_LINK_MISBEHAVED);
    /* Another member is not affected, this one waits. */
    world_book(w, 2, "n1", nobody);
    world_settle(w);
    assert_int_equal(world_count(w, 2, FB_LINK_OPEN), 1);
    world_run(w, w->nodes[1].node.options.timing.redial_max_ns * 3);
    assert_int_equal(world_count(w, 0, FB_LINK_OPEN), 1);
    world_free(w);
}

static void a_busy_plane_pauses_its_link(void **state)
{
    (void)state;
    static uint8_t big[40000];
    world *w = linked();
    uint32_t link = the_link(w, 0, FB_LINK_OPEN);
    w->nodes[1].answer = FB_ERR_BUSY;
    world_say(w, 0, link, FB_CHANNEL_MESSAGING, "one", 3);
    world_say(w, 0, link, FB_CHANNEL_MESSAGING, big, sizeof big);
    world_say(w, 0, link, FB_CHANNEL_MESSAGING, "three", 5);
    tick(w, 0);
    assert_int_equal(w->nodes[1].frame_count, 0);
    assert_true(w->conns[0].end[1].paused);
    assert_true(w->conns[0].end[1].used != 0);
    w->nodes[1].answer = FB_OK;
    tick(w, 1);
    assert_int_equal(w->nodes[1].frame_count, 0); /* until something became durable */
    WITHIN(w, 1, fb_link_plane.durable(&w->nodes[1].node));
    assert_int_equal(w->nodes[1].frame_count, 3);
    assert_frame(&w->nodes[1], 0, FB_CHANNEL_MESSAGING, "one", 3);
    assert_frame(&w->nodes[1], 1, FB_CHANNEL_MESSAGING, big, sizeof big);
    assert_frame(&w->nodes[1], 2, FB_CHANNEL_MESSAGING, "three", 5);
    world_free(w);
}

/* MP-7-20 */
static void an_old_link_is_renewed(void **state)
{
    (void)state;
    world *w = world_new();
    for (uint32_t i = 0; i < 2; i++) w->nodes[i].node.options.timing.link_age_ns = 100 * WORLD_S;
    world_book(w, 0, "n1", nobody);
    world_settle(w);
    world_run(w, 250 * WORLD_S);
    assert_int_equal(w->nodes[0].dials, 3);
    assert_int_equal(world_count(w, 0, FB_LINK_OPEN), 1);
    assert_int_equal(world_count(w, 1, FB_LINK_OPEN), 1);
    assert_int_equal(w->nodes[0].ups, 3);
    world_free(w);
}

static void the_table_has_a_bound(void **state)
{
    (void)state;
    world *w = world_new();
    for (uint32_t i = 0; i < 3 * WORLD_LINKS; i++) {
        world_event(w, 1,
                    (fb_event){.kind = FB_EV_LINK_OPENED,
                               .a = ++w->next_link,
                               .len = 3,
                               .bytes = (const uint8_t *)"x:1"});
    }
    /* Half of the places, and one for an answer. */
    assert_int_equal(world_count(w, 1, FB_LINK_OPENING), WORLD_LINKS / 2 + 1);
    assert_int_equal(w->nodes[1].last_close, FB_ERR_LINK_TOO_MANY);
    uint8_t bytes[FB_PREAMBLE_DIALER_BYTES];
    fb_id tag;
    fb_space_tag(w->nodes[0].node.options.provider, world_space, &tag);
    fb_preamble_write_dialer(bytes, tag);
    world_event(w, 1, (fb_event){.kind = FB_EV_LINK_WRITABLE, .a = 1, .b = 1000});
    world_event(w, 1,
                (fb_event){.kind = FB_EV_LINK_BYTES, .a = 1, .len = sizeof bytes, .bytes = bytes});
    assert_int_equal(world_count(w, 1, FB_LINK_OPENING), WORLD_LINKS / 2);
    assert_int_equal(world_count(w, 1, FB_LINK_CLOSING), 1);
    /* What this node dials finds a place. */
    world_book(w, 1, "n0", nobody);
    world_settle(w);
    assert_int_equal(world_count(w, 1, FB_LINK_OPEN), 1);
    fb_link_forget(&w->nodes[1].node, 0, fb_span_text("n0"));
    world_end_conn(w, &w->conns[0]);
    for (uint64_t number = 1; number <= w->next_link; number++) {
        world_event(w, 1, (fb_event){.kind = FB_EV_LINK_CLOSED, .a = number});
    }
    assert_int_equal(world_count(w, 1, FB_LINK_FREE), WORLD_LINKS);
    for (uint32_t b = 0; b <= w->nodes[1].node.links->index_mask; b++) {
        assert_int_equal(w->nodes[1].node.links->index[b], 0);
    }
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_nodes_meet_and_talk),
        cmocka_unit_test(any_segmentation_is_the_same),
        cmocka_unit_test(any_corrupted_byte_ends_the_link),
        cmocka_unit_test(any_truncation_is_survived),
        cmocka_unit_test(large_frames_wait_for_credit),
        cmocka_unit_test(a_small_arena_delays_only),
        cmocka_unit_test(ciphers_are_rekeyed),
        cmocka_unit_test(one_link_per_pair_stays),
        cmocka_unit_test(redial_backs_off),
        cmocka_unit_test(silence_ends_a_link),
        cmocka_unit_test(clocks_are_compared),
        cmocka_unit_test(another_peer_is_a_stale_address),
        cmocka_unit_test(strangers_stay_outside),
        cmocka_unit_test(a_stranger_sends_little),
        cmocka_unit_test(an_invite_keeps_a_link),
        cmocka_unit_test(the_revoked_are_told),
        cmocka_unit_test(a_copy_raises_the_alarm),
        cmocka_unit_test(preambles_are_judged),
        cmocka_unit_test(versions_and_tags_of_the_wire),
        cmocka_unit_test(misbehaviour_has_a_budget),
        cmocka_unit_test(a_busy_plane_pauses_its_link),
        cmocka_unit_test(an_old_link_is_renewed),
        cmocka_unit_test(the_table_has_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
