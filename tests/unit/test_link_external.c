/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions on an external carrier that loses, repeats, delays and reorders whole frames.
 * messaging-profile 7. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fuzz/link_world.h"
#include "protocol/link/external.h"

static void tick(world *w, uint32_t i)
{
    world_event(w, i, (fb_event){.kind = FB_EV_TICK});
    world_settle(w);
}

static const fb_link_info *info_of(world *w, uint32_t i)
{
    return fb_link_at(&w->nodes[i].node, 0);
}

static void assert_linked(world *w)
{
    for (uint32_t i = 0; i < 2; i++) {
        const fb_link_info *info = info_of(w, i);
        assert_int_equal(info->state, FB_LINK_OPEN);
        assert_int_equal(info->session, fb_links_get(&w->nodes[1 - i].node, 0)->peer_session);
        assert_int_equal(info->peer_incarnation, w->nodes[1 - i].node.incarnation);
        assert_memory_equal(info->handshake_hash, info_of(w, 1 - i)->handshake_hash, 64);
    }
}

/* A frame of a test's own, as if the carrier had brought it to node i. */
static void inject(world *w, uint32_t i, uint8_t channel, uint64_t sender, uint64_t peer,
                   uint64_t number, const void *bytes, size_t len)
{
    uint8_t frame[256];
    const fb_external_frame head = {(fb_channel_id)channel, sender, peer, number, {NULL, 0}};
    fb_external_write_head(frame, &head);
    memcpy(frame + FB_EXTERNAL_HEAD, bytes, len);
    world_event(w, i,
                (fb_event){.kind = FB_EV_CARRIER_FRAME,
                           .a = info_of(w, i)->number,
                           .len = (uint32_t)(FB_EXTERNAL_HEAD + len),
                           .bytes = frame});
}

static void carriers_connect(void **state)
{
    (void)state;
    world *w = world_new();
    world_carrier(w, 0, 1);
    world_settle(w);
    assert_linked(w);
    assert_true(info_of(w, 0)->external);
    assert_int_equal(w->nodes[0].ups, 1);
    assert_int_equal(w->nodes[1].ups, 1);
    world_say(w, 0, 0, FB_CHANNEL_MESSAGING, "message over a carrier", 22);
    tick(w, 0);
    assert_int_equal(w->nodes[1].frame_count, 1);
    assert_memory_equal(w->nodes[1].frames[0].bytes, "message over a carrier", 22);
    /* The hello has stopped. */
    world_run(w, 60 * WORLD_S);
    assert_int_equal(w->nodes[0].downs, 0);
    assert_false(fb_timer_is_set(&fb_links_get(&w->nodes[0].node, 0)->resend));
    world_free(w);
}

/* MP-7-25 */
static void hello_repeats_until_echoed(void **state)
{
    (void)state;
    world *w = world_new();
    world_conn *conn = world_carrier(w, 0, 1);
    conn->silent = true;
    conn->end[0].used = conn->end[1].used = 0; /* lost */
    const fb_timing *t = &w->nodes[0].node.options.timing;
    uint64_t pause = t->resend_min_ns;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(fb_timers_next(&w->nodes[0].node) - w->mono_ns, pause);
        world_run(w, pause);
        pause = fb_min_u64(pause * 2, t->resend_max_ns);
    }
    assert_int_equal(pause, t->resend_max_ns);
    assert_int_equal(w->nodes[0].ups, 0);
    conn->silent = false;
    world_run(w, t->resend_max_ns);
    assert_linked(w);
    world_free(w);
}

/* Every subset of the first frames lost, in both directions. */
/* MP-7-25 */
static void any_first_frames_may_be_lost(void **state)
{
    (void)state;
    for (uint32_t lost = 0; lost < 64; lost++) {
        world *w = world_new();
        world_conn *conn = world_carrier(w, 0, 1);
        uint32_t seen = 0;
        w->hold = true;
        for (int round = 0; round < 400 && !(w->nodes[0].ups && w->nodes[1].ups); round++) {
            for (uint32_t e = 0; e < 2; e++) {
                /* One frame of each end at a time. */
                world_end *end = &conn->end[e];
                if (end->used == 0) continue;
                size_t len = (size_t)end->queue[2] << 8 | end->queue[3];
                if (seen < 6 && (lost & 1u << seen++) != 0) {
                    world_take_out(end, len + 4);
                    continue;
                }
                uint8_t frame[256];
                memcpy(frame, end->queue + 4, len);
                world_take_out(end, len + 4);
                for (int twice = 0; twice < 2; twice++) {
                    world_event(w, e,
                                (fb_event){.kind = FB_EV_CARRIER_FRAME,
                                           .a = end->link,
                                           .len = (uint32_t)len,
                                           .bytes = frame});
                }
            }
            world_run(w, 100 * WORLD_MS);
        }
        assert_linked(w);
        assert_int_equal(w->nodes[0].ups, 1);
        assert_int_equal(w->nodes[1].ups, 1);
        assert_int_equal(w->nodes[0].downs + w->nodes[1].downs, 0);
        world_free(w);
    }
}

/* MP-7-24 */
static void a_restart_makes_a_new_session(void **state)
{
    (void)state;
    world *w = world_new();
    world_conn *conn = world_carrier(w, 0, 1);
    world_settle(w);
    uint64_t before = info_of(w, 0)->session;
    /* Node 1 restarts; its driver opens its end of the carrier again. */
    world_start(w, 1, 777);
    uint8_t bytes[48];
    memcpy(bytes, world_space.b, 16);
    memcpy(bytes + 16, w->nodes[0].node.self_key.b, 32);
    conn->end[1].link = ++w->next_link;
    conn->end[1].used = 0;
    world_event(w, 1,
                (fb_event){.kind = FB_EV_CARRIER_OPENED,
                           .a = conn->end[1].link,
                           .len = sizeof bytes,
                           .bytes = bytes});
    world_give_credit(w, &conn->end[1]);
    world_settle(w);
    assert_linked(w);
    assert_true(info_of(w, 0)->session != before);
    assert_int_equal(info_of(w, 0)->peer_incarnation, 777);
    assert_int_equal(w->nodes[0].ups, 2);
    assert_int_equal(w->nodes[0].downs, 1);
    assert_int_equal(w->nodes[0].last_down, FB_ERR_LINK_SESSION);
    world_free(w);
}

/* MP-7-24 */
static void old_frames_do_nothing(void **state)
{
    (void)state;
    world *w = world_new();
    world_carrier(w, 0, 1);
    world_settle(w);
    uint64_t own = info_of(w, 0)->session, peer = info_of(w, 1)->session;
    static const uint8_t hello[FB_HELLO_BYTES] = {FB_CONTROL_HELLO, 0, 0, 0, 0, 0, 0, 0, 0, 9};
    uint8_t confirmed[FB_HELLO_BYTES];
    memcpy(confirmed, hello, sizeof hello);
    confirmed[1] = FB_HELLO_FLAGS;

    inject(w, 0, FB_CHANNEL_MESSAGING, peer, own + 1, 1, "old", 3);
    inject(w, 0, FB_CHANNEL_MESSAGING, peer + 1, own, 1, "old", 3);
    inject(w, 0, FB_CHANNEL_MESSAGING, peer + 1, 0, 1, "old", 3);
    inject(w, 0, FB_CHANNEL_CONTROL, peer + 1, own, 1, confirmed, sizeof confirmed);
    inject(w, 0, FB_CHANNEL_CONTROL, peer, own + 1, 1, confirmed, sizeof confirmed);
    assert_int_equal(w->nodes[0].frame_count, 0);
    assert_int_equal(fb_links_get(&w->nodes[0].node, 0)->points, 0); /* nobody's fault */

    /* A hello that the carrier held back since an earlier session: answered, and forgotten when
     * nobody stands behind it. */
    inject(w, 0, FB_CHANNEL_CONTROL, 4711, 0, 1, hello, sizeof hello);
    world_run(w, 30 * WORLD_S);
    assert_linked(w);
    assert_int_equal(info_of(w, 0)->session, own);
    assert_int_equal(w->nodes[0].downs + w->nodes[1].downs, 0);
    assert_int_equal(fb_links_get(&w->nodes[0].node, 0)->next_own, 0);
    world_free(w);
}

static void malformed_frames_have_a_budget(void **state)
{
    (void)state;
    world *w = world_new();
    world_carrier(w, 0, 1);
    world_settle(w);
    uint64_t own = info_of(w, 0)->session, peer = info_of(w, 1)->session;
    uint64_t link = info_of(w, 0)->number;
    world_event(w, 0, (fb_event){.kind = FB_EV_CARRIER_FRAME, .a = link, .len = 0});
    inject(w, 0, 3, peer, own, 1, "x", 1);                     /* no such channel */
    inject(w, 0, FB_CHANNEL_MESSAGING, 0, own, 1, "x", 1);     /* no session */
    inject(w, 0, FB_CHANNEL_MESSAGING, peer, own, 0, "x", 1);  /* no number */
    inject(w, 0, FB_CHANNEL_CONTROL, peer, own, 9, "", 0);     /* no type */
    inject(w, 0, FB_CHANNEL_CONTROL, peer, own, 9, "\1", 1);   /* a cut heartbeat */
    inject(w, 0, FB_CHANNEL_CONTROL, peer, own, 9, "\7", 1);   /* a cut hello */
    inject(w, 0, FB_CHANNEL_CONTROL, peer, own, 9, "\375", 1); /* an unknown type */
    assert_int_equal(w->nodes[0].frame_count, 0);
    assert_int_equal(fb_links_get(&w->nodes[0].node, 0)->points, 8);
    for (int i = 0; i < 92; i++) {
        assert_int_equal(w->nodes[0].downs, 0);
        inject(w, 0, 3, peer, own, 1, "x", 1);
    }
    assert_int_equal(w->nodes[0].last_close, FB_ERR_LINK_MISBEHAVED);
    world_free(w);
}

static void an_overtaken_heartbeat_is_old_news(void **state)
{
    (void)state;
    world *w = world_new();
    world_carrier(w, 0, 1);
    world_settle(w);
    uint64_t own = info_of(w, 0)->session, peer = info_of(w, 1)->session;
    uint8_t beat[FB_HEARTBEAT_BYTES] = {FB_CONTROL_HEARTBEAT, 1};
    beat[49] = 1; /* a digest that differs */
    w->nodes[0].digest = 5;
    inject(w, 0, FB_CHANNEL_CONTROL, peer, own, 1000, beat, sizeof beat);
    assert_int_equal(w->nodes[0].differs, 1);
    inject(w, 0, FB_CHANNEL_CONTROL, peer, own, 1000, beat, sizeof beat);
    inject(w, 0, FB_CHANNEL_CONTROL, peer, own, 999, beat, sizeof beat);
    assert_int_equal(w->nodes[0].differs, 1);
    world_free(w);
}

static void silence_ends_the_session_not_the_carrier(void **state)
{
    (void)state;
    world *w = world_new();
    world_conn *conn = world_carrier(w, 0, 1);
    world_settle(w);
    conn->silent = true;
    world_run(w, 20 * WORLD_S);
    assert_int_equal(w->nodes[0].downs, 1);
    assert_int_equal(w->nodes[1].downs, 1);
    assert_int_equal(w->nodes[0].last_down, FB_ERR_LINK_SILENT);
    assert_true(conn->used);
    conn->silent = false;
    world_run(w, w->nodes[0].node.options.timing.resend_max_ns);
    assert_linked(w);
    assert_int_equal(w->nodes[0].ups, 2);
    world_free(w);
}

static void a_one_way_cut_ends_at_both(void **state)
{
    (void)state;
    world *w = world_new();
    world_conn *conn = world_carrier(w, 0, 1);
    world_settle(w);
    /* What goes to node 1 is lost; node 0 still hears node 1, until that gives up. */
    for (int i = 0; i < 200; i++) {
        conn->end[1].used = 0;
        world_run(w, 100 * WORLD_MS);
        conn->end[1].used = 0;
        w->hold = true;
        world_run(w, 1);
        conn->end[1].used = 0;
        w->hold = false;
    }
    world_run(w, 10 * WORLD_S);
    assert_linked(w);
    world_free(w);
}

static void strangers_on_a_carrier_begin_anew(void **state)
{
    (void)state;
    world *w = world_new();
    w->nodes[1].judge[0] = FB_MEMBER_PENDING;
    w->nodes[0].judge[1] = FB_MEMBER_PENDING;
    world_carrier(w, 0, 1);
    world_settle(w);
    assert_int_equal(info_of(w, 1)->state, FB_LINK_PENDING);
    assert_int_equal(w->nodes[1].shows, 1);
    world_run(w, 25 * WORLD_S); /* twice 10 s: what was shown may have been lost */
    assert_in_range(w->nodes[1].shows, 2, 6);
    assert_int_equal(w->nodes[0].ups + w->nodes[1].ups, 0);
    fb_effects fx;
    for (uint32_t i = 0; i < 2; i++) {
        world_begin(w, i, &fx);
        fb_link_approved(&w->nodes[i].node, 0, 1 - i);
        world_finish(w, i, &fx);
        world_settle(w);
    }
    assert_linked(w);
    world_free(w);
}

/* MP-7-22 */
static void a_carrier_and_a_stream_make_one_link(void **state)
{
    (void)state;
    world *w = world_new();
    world_book(w, 1, "n0", (fb_id){{0}});
    world_settle(w);
    world_carrier(w, 0, 1);
    world_settle(w);
    world_run(w, 10 * WORLD_S);
    assert_int_equal(world_count(w, 0, FB_LINK_OPEN), 1);
    assert_int_equal(world_count(w, 1, FB_LINK_OPEN), 1);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carriers_connect),
        cmocka_unit_test(hello_repeats_until_echoed),
        cmocka_unit_test(any_first_frames_may_be_lost),
        cmocka_unit_test(a_restart_makes_a_new_session),
        cmocka_unit_test(old_frames_do_nothing),
        cmocka_unit_test(malformed_frames_have_a_budget),
        cmocka_unit_test(an_overtaken_heartbeat_is_old_news),
        cmocka_unit_test(silence_ends_the_session_not_the_carrier),
        cmocka_unit_test(a_one_way_cut_ends_at_both),
        cmocka_unit_test(strangers_on_a_carrier_begin_anew),
        cmocka_unit_test(a_carrier_and_a_stream_make_one_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
