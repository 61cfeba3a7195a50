/* SPDX-License-Identifier: Apache-2.0 */
/* Signalling: every reason of profile 5 in its place, and the rules of profile 6. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/signal_fakes.h"

#include "protocol/messaging/state.h"

static fb_options options;

static fb_id area_of(uint8_t n)
{
    return (fb_id){{0x01, 0x90, 1, 1, 1, 1, 0x71, n, 0x90, 1, 2, 3, 4, 5, 6, n}};
}

static int setup(void **state)
{
    (void)state;
    options = fake_options();
    fakes_new(&options);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < NODES; i++) {
        check_digest(i);
        for (uint32_t j = 0; j < NODES; j++) {
            if (fakes[i]->links[j].state == FB_LINK_OPEN) unlink_one(i, j);
        }
        assert_int_equal(fakes[i]->node.messaging->slack_used, 0);
    }
    fakes_free();
    return 0;
}

/* An envelope from node 1 to be handed to node 0; a test changes it before it is signed. */
static uint8_t forged_count;
static fb_envelope envelope_base(fb_span payload)
{
    fb_id id = {{0x01, 0x91, 0, 0, 0, 0, 0x70, 0, 0x80, 9, 9, 9, 9, 9, 0, ++forged_count}};
    return (fb_envelope){
        .id = id,
        .space = fake_space,
        .source = fb_member_id(&fakes[0]->node, 1),
        .mode = FB_DELIVERY_TOPIC,
        .topic = fb_span_text(fb_topic_name(FB_TOPIC_DATABASE)),
        .type = FB_TYPE_CHANGED,
        .payload = payload,
        .timestamp = (uint64_t)(NOON_US / 1000),
    };
}

static fb_span payload_about(fb_id area)
{
    static uint8_t bytes[FB_PAYLOAD_BUILT_MAX];
    return fb_span_of(bytes, fb_payload_object(area, 0, 0, bytes));
}

static uint64_t next_number = 1;
static uint8_t wire[FB_FRAME_BYTES_MAX];
static size_t wire_len;

static void sign_and_encode(fb_envelope *e, uint32_t signer)
{
    assert_int_equal(
        fb_envelope_sign(e, fb_sodium_provider(sodium), fakes[signer]->node.options.identity_key),
        FB_OK);
    fb_writer w = fb_writer_of(wire, sizeof wire);
    fb_write_u8(&w, FB_FRAME_MESSAGE);
    fb_write_u64(&w, next_number);
    assert_int_equal(fb_envelope_encode_protobuf(e, &w), FB_OK);
    wire_len = w.at;
}

/* Hands node 0 a message of node 1 and gives its verdict: FB_OK, or the reason observed. */
static fb_status judge(void)
{
    fb_store_be(wire + 1, next_number, 8);
    fakes[0]->out.used = 0;
    fb_status status = hand_over(0, 1, FB_CHANNEL_MESSAGING, fb_span_of(wire, wire_len));
    if (status != FB_OK) return status;
    next_number++;
    uint64_t reason = FB_OK;
    uint32_t refused = facts(0, FB_FACT_REFUSED, &reason);
    assert_int_equal(refused + facts(0, FB_FACT_DELIVERED, NULL), 1);
    return (fb_status)reason;
}

static fb_status judge_signed(fb_envelope e)
{
    sign_and_encode(&e, 1);
    return judge();
}

static void begin_receiving(void)
{
    link_up(0, 1);
    next_number = 1;
    settle(true);
}

static uint64_t refused(fb_error reason)
{
    return fb_message_counts_of(&fakes[0]->node, 1)->refused[reason - FB_ERR_TOO_LARGE];
}

/* FM-4.1-8, FM-5.4-3, FM-7.3-3, FM-8.1-4, FM-9-2, FM-9-3, FM-11-2, MP-1-4, MP-3-8, MP-5-1,
 * MP-5-2, MP-5-3, MP-5-5, MP-5-7, MP-5-9, MP-5-10, MP-5-12, MP-5-19 */
static void each_reason_in_its_place(void **state)
{
    (void)state;
    begin_receiving();
    fb_span payload = payload_about(area_of(1));
    fb_envelope e;

    /* Step 1, and how long it may be. */
    e = envelope_base(payload);
    sign_and_encode(&e, 1);
    wire[FB_FRAME_HEAD] = 0xff;
    assert_int_equal(judge(), FB_ERR_MALFORMED);
    memset(wire + FB_FRAME_HEAD, 0, FB_ENVELOPE_BYTES_MAX + 1);
    wire_len = FB_FRAME_HEAD + FB_ENVELOPE_BYTES_MAX + 1;
    assert_int_equal(judge(), FB_ERR_TOO_LARGE);
    e = envelope_base(payload);
    e.id.b[6] = 0x40;
    assert_int_equal(judge_signed(e), FB_ERR_BAD_UUID);
    e = envelope_base(fb_span_text("{}"));
    assert_int_equal(judge_signed(e), FB_ERR_BAD_PAYLOAD);

    /* Each later step with every still later one broken too: the order decides. */
    e = envelope_base(payload);
    e.space.b[0] ^= 1;
    e.source = fb_member_id(&fakes[0]->node, 2);
    e.timestamp = 1;
    assert_int_equal(judge_signed(e), FB_ERR_WRONG_SPACE);
    e.space = fake_space;
    assert_int_equal(judge_signed(e), FB_ERR_NOT_ORIGIN);
    e.source = fakes[0]->node.self; /* one's own id */
    assert_int_equal(judge_signed(e), FB_ERR_NOT_ORIGIN);
    e.source = fb_member_id(&fakes[0]->node, 1);
    fakes[0]->status[1] = FB_MEMBER_REVOKED;
    sign_and_encode(&e, 2);
    assert_int_equal(judge(), FB_ERR_REVOKED);
    fakes[0]->status[1] = FB_MEMBER_PENDING;
    assert_int_equal(judge(), FB_ERR_UNKNOWN_SENDER);
    fakes[0]->status[1] = FB_MEMBER_APPROVED;
    assert_int_equal(judge(), FB_ERR_BAD_SIGNATURE);
    assert_int_equal(judge_signed(e), FB_ERR_STALE);
    e.timestamp = (uint64_t)((NOON_US + 5 * MINUTE_US) / 1000 + 1);
    e.mode = FB_DELIVERY_UNICAST;
    e.target_node = fb_member_id(&fakes[0]->node, 2);
    assert_int_equal(judge_signed(e), FB_ERR_FROM_FUTURE);
    e.timestamp--;
    assert_int_equal(judge_signed(e), FB_ERR_WRONG_TARGET);
    e.mode = FB_DELIVERY_TOPIC;
    e.topic = fb_span_text("platform.replication.files");
    assert_int_equal(judge_signed(e), FB_ERR_NOT_SUBSCRIBED);
    assert_int_equal(fakes[0]->changed.calls, 0);
    assert_int_equal(fakes[0]->stored, 0);

    /* None of these entered the record: the same id is taken now, and once. */
    e.topic = fb_span_text(fb_topic_name(FB_TOPIC_DATABASE));
    assert_int_equal(judge_signed(e), FB_OK);
    assert_int_equal(judge(), FB_ERR_DUPLICATE);
    assert_int_equal(fakes[0]->changed.calls, 1);
    assert_true(fb_id_equal(fakes[0]->changed.area, area_of(1)));

    static const fb_error once[] = {FB_ERR_TOO_LARGE,     FB_ERR_MALFORMED,      FB_ERR_BAD_UUID,
                                    FB_ERR_BAD_PAYLOAD,   FB_ERR_WRONG_SPACE,    FB_ERR_REVOKED,
                                    FB_ERR_BAD_SIGNATURE, FB_ERR_UNKNOWN_SENDER, FB_ERR_STALE,
                                    FB_ERR_FROM_FUTURE,   FB_ERR_WRONG_TARGET,   FB_ERR_DUPLICATE,
                                    FB_ERR_NOT_SUBSCRIBED};
    for (size_t i = 0; i < sizeof once / sizeof once[0]; i++) {
        assert_int_equal(refused(once[i]), 1);
    }
    assert_int_equal(refused(FB_ERR_NOT_ORIGIN), 2);
}

/* MP-5-8 */
static void the_window_is_inclusive(void **state)
{
    (void)state;
    begin_receiving();
    int64_t now = NOON_US / 1000;
    const struct {
        int64_t time_ms;
        fb_status verdict;
    } cases[] = {
        {now - 15 * 60000 - 1, FB_ERR_STALE},
        {now - 15 * 60000, FB_OK},
        {now + 5 * 60000, FB_OK},
        {now + 5 * 60000 + 1, FB_ERR_FROM_FUTURE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fb_envelope e = envelope_base(payload_about(area_of(2)));
        e.timestamp = (uint64_t)cases[i].time_ms;
        assert_int_equal(judge_signed(e), cases[i].verdict);
    }
    /* Before 1970 everything is far in the future, and nothing overflows. */
    static const int64_t clocks[] = {-1, INT64_MIN};
    for (size_t i = 0; i < 2; i++) {
        fakes[0]->node.wall_us = clocks[i];
        assert_int_equal(judge_signed(envelope_base(payload_about(area_of(2)))),
                         FB_ERR_FROM_FUTURE);
    }
    fakes[0]->node.wall_us = INT64_MAX;
    assert_int_equal(judge_signed(envelope_base(payload_about(area_of(2)))), FB_ERR_STALE);
}

/* MP-5-21 */
static void misbehaviour_is_not_clocks_or_duplicates(void **state)
{
    (void)state;
    begin_receiving();
    fb_envelope e = envelope_base(payload_about(area_of(3)));
    assert_int_equal(judge_signed(e), FB_OK);
    assert_int_equal(judge(), FB_ERR_DUPLICATE);
    e = envelope_base(payload_about(area_of(3)));
    e.timestamp = 1;
    assert_int_equal(judge_signed(e), FB_ERR_STALE);
    assert_int_equal(fakes[0]->points[1], 0);
    sign_and_encode(&e, 2);
    assert_int_equal(judge(), FB_ERR_BAD_SIGNATURE);
    assert_true(fakes[0]->points[1] > 0);
}

/* MP-5-6 */
static void a_flood_meets_the_bucket_before_its_signature(void **state)
{
    (void)state;
    begin_receiving();
    fb_envelope e = envelope_base(payload_about(area_of(4)));
    e.timestamp = 1; /* stale: costs a token all the same */
    sign_and_encode(&e, 1);
    for (uint32_t i = 0; i < options.timing.rate_burst; i++) {
        assert_int_equal(judge(), FB_ERR_STALE);
    }
    wire[wire_len - 1] ^= 1; /* the signature is not looked at any more */
    assert_int_equal(judge(), FB_ERR_RATE_LIMITED);
    fakes[0]->node.mono_ns += SECOND_NS / options.timing.rate_per_s;
    assert_int_equal(judge(), FB_ERR_BAD_SIGNATURE);
    assert_int_equal(judge(), FB_ERR_RATE_LIMITED);
    /* Another link is no new bucket. */
    link_down(0, 1);
    begin_receiving();
    assert_int_equal(judge(), FB_ERR_RATE_LIMITED);
}

static int64_t floor_of(uint32_t *ids)
{
    int64_t floor_ms = 0;
    assert_true(fb_message_record_of(&fakes[0]->node, 1, &floor_ms, ids));
    return floor_ms;
}

/* MP-5-15 */
static void a_full_record_raises_its_floor(void **state)
{
    (void)state;
    begin_receiving();
    uint64_t now = (uint64_t)(NOON_US / 1000);
    uint32_t ids;
    fb_envelope e = envelope_base(payload_about(area_of(5)));
    /* Not in the order of time, so the oldest is not the first. */
    for (uint32_t i = 0; i < 8; i++) {
        e = envelope_base(payload_about(area_of(5)));
        e.timestamp = now - 1000 + i * 7 % 8;
        assert_int_equal(judge_signed(e), FB_OK);
    }
    int64_t low = floor_of(&ids);
    assert_int_equal(ids, 8);
    assert_true(low < (int64_t)now - 1000);
    e = envelope_base(payload_about(area_of(5)));
    e.timestamp = now;
    assert_int_equal(judge_signed(e), FB_OK);
    assert_int_equal(floor_of(&ids), now - 1000);
    assert_int_equal(ids, 8);
    /* The oldest id was forgotten, and its repetition is no duplicate but stale. */
    e = envelope_base(payload_about(area_of(5)));
    e.timestamp = now - 1000;
    assert_int_equal(judge_signed(e), FB_ERR_STALE);
    e.timestamp = now - 999;
    assert_int_equal(judge_signed(e), FB_OK);
}

/* Findings, profile 5: the record knows ids by themselves, so an id that was forgotten with its
 * time is a new one under a later time. Only its own sender can do that, and signals are
 * idempotent. */
static void a_forgotten_id_is_new_under_a_later_time(void **state)
{
    (void)state;
    begin_receiving();
    uint64_t now = (uint64_t)(NOON_US / 1000);
    fb_envelope first = envelope_base(payload_about(area_of(5)));
    first.timestamp = now - 1000;
    assert_int_equal(judge_signed(first), FB_OK);
    first.timestamp = now;
    assert_int_equal(judge_signed(first), FB_ERR_DUPLICATE);
    for (uint32_t i = 0; i < 8; i++) {
        fb_envelope e = envelope_base(payload_about(area_of(5)));
        e.timestamp = now;
        assert_int_equal(judge_signed(e), FB_OK);
    }
    first.timestamp = now - 1000;
    assert_int_equal(judge_signed(first), FB_ERR_STALE);
    first.timestamp = now;
    assert_int_equal(judge_signed(first), FB_OK);
}

/* MP-5-14, MP-5-16, MP-5-17 */
static void time_raises_the_floor_and_only_agreeing_clocks_reset_it(void **state)
{
    (void)state;
    begin_receiving();
    uint32_t ids;
    fb_node *node = &fakes[0]->node;
    fb_envelope e = envelope_base(payload_about(area_of(6)));
    assert_int_equal(judge_signed(e), FB_OK);
    node->wall_us = NOON_US + 60 * MINUTE_US; /* the receiver's clock runs ahead */
    e = envelope_base(payload_about(area_of(6)));
    e.timestamp = (uint64_t)(node->wall_us / 1000);
    assert_int_equal(judge_signed(e), FB_OK);
    assert_int_equal(floor_of(&ids), (NOON_US + 40 * MINUTE_US) / 1000);
    assert_int_equal(ids, 1);
    node->wall_us = NOON_US; /* and is set right: what was forgotten cannot be repeated */
    e = envelope_base(payload_about(area_of(6)));
    assert_int_equal(judge_signed(e), FB_ERR_STALE);
    fakes[0]->links[1].offset_known = true;
    fakes[0]->links[1].clock_offset_us = 5 * MINUTE_US + 1; /* not within the window */
    assert_int_equal(judge(), FB_ERR_STALE);
    fakes[0]->links[1].clock_offset_us = 5 * MINUTE_US;
    assert_int_equal(judge(), FB_OK);
    assert_int_equal(fb_message_counts_of(node, 1)->floor_resets, 1);
    assert_int_equal(floor_of(&ids), (NOON_US - 15 * MINUTE_US) / 1000 - 1);
    /* Once a link. */
    node->wall_us = NOON_US + 60 * MINUTE_US;
    e = envelope_base(payload_about(area_of(6)));
    e.timestamp = (uint64_t)(node->wall_us / 1000);
    assert_int_equal(judge_signed(e), FB_OK);
    node->wall_us = NOON_US;
    assert_int_equal(judge_signed(envelope_base(payload_about(area_of(6)))), FB_ERR_STALE);
    assert_int_equal(fb_message_counts_of(node, 1)->floor_resets, 1);
}

/* FM-4.1-3, FM-4.1-4, FM-8.1-5, MP-5-13 */
static void the_record_survives_a_restart(void **state)
{
    (void)state;
    begin_receiving();
    uint64_t now = (uint64_t)(NOON_US / 1000);
    fb_envelope kept[20];
    for (uint32_t i = 0; i < 20; i++) {
        kept[i] = envelope_base(payload_about(area_of(7)));
        kept[i].timestamp = now + i / 2;
        assert_int_equal(judge_signed(kept[i]), FB_OK);
        if (i < 19) commit(0);
    }
    uint32_t ids, ids_after;
    int64_t low = floor_of(&ids);
    link_down(0, 1);
    restart(0); /* the last one was not durable */
    begin_receiving();
    assert_true(floor_of(&ids_after) <= low);
    assert_int_equal(judge_signed(kept[18]), FB_ERR_DUPLICATE);
    assert_int_equal(judge_signed(kept[0]), FB_ERR_STALE);
    assert_int_equal(judge_signed(kept[19]), FB_OK);
    assert_int_equal(floor_of(&ids_after), low);
    assert_int_equal(ids_after, ids);
    assert_true(fakes[0]->stored > 9);
}

/* MP-5-15 */
static void a_smaller_record_forgets_safely(void **state)
{
    (void)state;
    begin_receiving();
    fb_envelope kept[8];
    for (uint32_t i = 0; i < 8; i++) {
        kept[i] = envelope_base(payload_about(area_of(7)));
        assert_int_equal(judge_signed(kept[i]), FB_OK);
        commit(0);
    }
    fake_entry saved[8];
    memcpy(saved, fakes[0]->store, sizeof saved);
    fakes_free();
    options.sizes.seen_ids = 3;
    fakes_new(&options);
    memcpy(fakes[0]->store, saved, sizeof saved);
    fakes[0]->stored = 8;
    begin_receiving();
    for (uint32_t i = 0; i < 8; i++) assert_int_not_equal(judge_signed(kept[i]), FB_OK);
}

static void nothing_is_taken_before_the_record_is_read(void **state)
{
    (void)state;
    fakes[0]->ops_full = true;
    link_up(0, 1);
    next_number = 1;
    sign_and_encode(&(fb_envelope){0}, 1);
    fb_envelope e = envelope_base(payload_about(area_of(8)));
    sign_and_encode(&e, 1);
    assert_int_equal(judge(), FB_ERR_BUSY);
    fakes[0]->ops_full = false;
    flush(0);
    assert_int_equal(judge(), FB_ERR_BUSY);
    run_ops(fakes[0]);
    fakes[0]->store_full = true;
    assert_int_equal(judge(), FB_ERR_BUSY);
    fakes[0]->store_full = false;
    assert_int_equal(judge(), FB_OK);
    /* A store that cannot be read: the link goes, and a new one asks again. */
    link_down(0, 1);
    restart(0);
    fakes[0]->read_fails = true;
    link_up(0, 1);
    run_ops(fakes[0]);
    assert_int_equal(fakes[0]->closed[1], FB_ERR_STORE_FAILED);
    link_down(0, 1);
    fakes[0]->read_fails = false;
    begin_receiving();
    assert_int_equal(judge_signed(e), FB_OK); /* the first was never durable */
}

static uint64_t acknowledged(void)
{
    return fb_ack_value(&fakes[0]->node, &fakes[0]->node.messaging->channel[1]);
}

/* MP-5-11, MP-6-4, MP-6-6 */
static void acknowledged_is_what_is_final_and_durable(void **state)
{
    (void)state;
    begin_receiving();
    fb_envelope e = envelope_base(payload_about(area_of(9)));
    fb_envelope bad = e;
    bad.timestamp = 1;
    assert_int_equal(judge_signed(bad), FB_ERR_STALE);
    assert_int_equal(acknowledged(), 1); /* a refusal is final at once */
    assert_int_equal(judge_signed(e), FB_OK);
    assert_int_equal(acknowledged(), 1);
    assert_int_equal(judge(), FB_ERR_DUPLICATE); /* of one that is not durable */
    assert_int_equal(judge_signed(bad), FB_ERR_STALE);
    assert_int_equal(acknowledged(), 1);
    commit(0);
    assert_int_equal(acknowledged(), 4);
    sign_and_encode(&e, 1);
    assert_int_equal(judge(), FB_ERR_DUPLICATE);
    assert_int_equal(acknowledged(), 5);
    assert_true((fakes[0]->wants[1] & 1u << FB_CHANNEL_MESSAGING) != 0);
}

/* FM-8.2-2, MP-5-20 */
static void what_cannot_be_framed_ends_the_link(void **state)
{
    (void)state;
    begin_receiving();
    static const uint8_t frames[][10] = {{0}, {1}, {3, 0, 0, 0, 0, 0, 0, 0, 1}, {2, 0}, {1}};
    static const size_t lens[] = {0, 1, 9, 2, 9};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(hand_over(0, 1, FB_CHANNEL_MESSAGING, fb_span_of(frames[i], lens[i])),
                         FB_ERR_MALFORMED);
    }
    /* Of what was never sent. */
    static const uint8_t ack[] = {2, 0, 0, 0, 0, 0, 0, 0, 1};
    assert_int_equal(hand_over(0, 1, FB_CHANNEL_MESSAGING, fb_span_of(ack, 9)), FB_ERR_MALFORMED);
    assert_int_equal(fakes[0]->closed[1], FB_OK);
    next_number = 2; /* a gap: on a stream the rest has no meaning */
    fb_envelope e = envelope_base(payload_about(area_of(9)));
    assert_int_equal(judge_signed(e), FB_ERR_MALFORMED);
    assert_int_equal(fakes[0]->closed[1], FB_ERR_MALFORMED);
}

/* FM-3.4-1, FM-5.2-3, FM-7.2-1, FM-11-7, FI-2-12 */
static void changed_reaches_the_engine_with_its_batch(void **state)
{
    (void)state;
    link_up(0, 1);
    link_up(0, 2);
    settle(true);
    fb_message_changed_all(&fakes[0]->node, 0, 2, area_of(1), 0xab, 5, 0);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 1);
    assert_int_equal(fakes[2]->changed.calls, 0);
    assert_true(fb_id_equal(fakes[1]->changed.area, area_of(1)));
    assert_int_equal(fakes[1]->changed.incarnation, 0xab);
    assert_int_equal(fakes[1]->changed.batch, 5);
    /* The window is empty again: acknowledged. */
    assert_int_equal(fakes[0]->node.messaging->channel[1].count, 0);
    /* One envelope for both links. */
    uint64_t uuids = fakes[0]->uuids;
    fb_message_changed_all(&fakes[0]->node, 0, FB_NONE, area_of(1), 0xab, 6, 0);
    settle(true);
    assert_int_equal(fakes[0]->uuids, uuids + 1);
    assert_int_equal(fakes[1]->changed.calls, 2);
    assert_int_equal(fakes[2]->changed.calls, 1);
    /* One peer only. */
    fb_message_changed(&fakes[0]->node, 0, 2, area_of(1), 0, 0, 0);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 2);
    assert_int_equal(fakes[2]->changed.calls, 2);
    assert_int_equal(fakes[2]->changed.batch, 0);
}

/* FM-4.1-7 */
static void held_back_until_durable_and_never_put_off(void **state)
{
    (void)state;
    link_up(0, 1);
    settle(true);
    fb_node *node = &fakes[0]->node;
    /* A stream of writes, each in a later set than the last durable one. */
    for (uint64_t i = 0; i < 6; i++) {
        fb_message_changed_all(node, 0, FB_NONE, area_of(1), 0xab, i + 1, fakes[0]->durable + 2);
        settle(false);
        assert_int_equal(fakes[1]->changed.calls, i < 2 ? 0 : i - 1);
        commit(0);
        settle(false);
    }
    commit(0);
    commit(0);
    settle(false);
    assert_int_equal(fakes[1]->changed.batch, 6);
    assert_int_equal(fakes[1]->changed.calls, 6);
    /* Lost with its write set: nothing is ever said. */
    fb_message_changed_all(node, 0, FB_NONE, area_of(2), 0, 0, fakes[0]->durable + 1);
    uint32_t calls = fakes[1]->changed.calls;
    link_down(0, 1);
    restart(0);
    link_up(0, 1);
    commit(0);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, calls);
}

/* MP-6-5, MP-6-21 */
static void notifications_coalesce_behind_a_full_window(void **state)
{
    (void)state;
    fakes_free();
    options.sizes.seen_ids = 256; /* all within one millisecond */
    fakes_new(&options);
    link_up(0, 1);
    settle(true);
    fb_node *node = &fakes[0]->node;
    const fb_message_channel *channel = &node->messaging->channel[1];
    for (uint32_t i = 0; i < 200; i++) {
        fb_message_changed_all(node, 0, FB_NONE, area_of((uint8_t)i), 0, 0, 0);
        emit(0, 1);
    }
    assert_int_equal(channel->count, FB_SEND_WINDOW_MESSAGES);
    uint32_t pending = channel->pending;
    assert_true(pending > 0);
    for (uint32_t i = 190; i < 200; i++) {
        fb_message_changed_all(node, 0, FB_NONE, area_of((uint8_t)i), 0, 0, 0);
    }
    assert_int_equal(channel->pending, pending);
    settle(true);
    assert_int_equal(channel->count, 0);
    assert_int_equal(channel->pending, 0);
    assert_int_equal(fakes[1]->changed.calls, FB_SEND_WINDOW_MESSAGES + pending);
    assert_int_equal(node->messaging->signal[0].refs, 0);
}

/* FM-6.2-1, FM-7.3-1, FM-7.3-4, FM-8.3-1, FM-8.3-2, MP-6-2, MP-6-3, MP-6-16, MP-6-17 */
static void nothing_goes_to_who_may_not_have_it(void **state)
{
    (void)state;
    link_up(0, 1);
    settle(true);
    fb_node *node = &fakes[0]->node;
    fakes[0]->may_not_hold = true;
    fb_message_changed_all(node, 0, FB_NONE, area_of(1), 0, 0, 0);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 0);
    fakes[0]->may_not_hold = false;
    fb_message_changed_all(node, 0, FB_NONE, area_of(1), 0, 0, 0);
    fakes[0]->status[1] = FB_MEMBER_REVOKED; /* between the notice and its message */
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 0);
    assert_int_equal(fb_message_counts_of(node, 1)->dropped, 1);
    fakes[0]->status[1] = FB_MEMBER_APPROVED;
    fb_message_changed(node, 0, 2, area_of(1), 0, 0, 0); /* unreachable */
    assert_int_equal(fb_message_counts_of(node, 2)->dropped, 1);
    /* Without interest in the topic, nothing either. */
    static const uint8_t only_state[] = {FB_CONTROL_INTEREST, 1u << FB_TOPIC_STATE, 0, 0};
    assert_int_equal(hand_over(0, 1, FB_CHANNEL_CONTROL, fb_span_of(only_state, 4)), FB_OK);
    fb_message_changed_all(node, 0, FB_NONE, area_of(1), 0, 0, 0);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 0);
    fb_message_changed_all(node, 0, FB_NONE, fb_area_id(fake_space, FB_AREA_SPACE, (fb_span){0}), 0,
                           0, 0);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 1);
    static const uint8_t bad[] = {FB_CONTROL_INTEREST, 2, 0, 1, 9};
    assert_int_equal(hand_over(0, 1, FB_CHANNEL_CONTROL, fb_span_of(bad, 5)), FB_ERR_MALFORMED);
}

/* Node 1's own clock never matters to what it was sent. */
/* FM-8.1-1, FM-8.2-2, FM-8.3-5, MP-6-1, MP-6-7, MP-6-8 */
static void unacknowledged_goes_first_on_the_next_link(void **state)
{
    (void)state;
    link_up(0, 1);
    settle(true);
    fb_node *node = &fakes[0]->node;
    fb_message_changed_all(node, 0, FB_NONE, area_of(1), 0, 0, 0);
    emit(0, 1); /* given to the carrier, lost with the link */
    link_down(0, 1);
    fb_message_changed(node, 0, 1, area_of(2), 0, 0, 0); /* no queue for an unreachable target */
    link_up(0, 1);
    fb_message_changed_all(node, 0, FB_NONE, area_of(3), 0, 0, 0);
    fakes[0]->out.used = 0;
    uint64_t number = 0;
    emit(0, 1);
    assert_int_equal(facts(0, FB_FACT_RESENT, &number), 1);
    assert_int_equal(number, 1);
    assert_int_equal(facts(0, FB_FACT_SENT, &number), 1);
    assert_int_equal(number, 2);
    /* A second break: dropped. */
    link_down(0, 1);
    assert_int_equal(fb_message_counts_of(node, 1)->dropped, 2);
    link_up(0, 1);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 1);
    assert_true(fb_id_equal(fakes[1]->changed.area, area_of(3)));
    /* 60 s: dropped. */
    fb_message_changed_all(node, 0, FB_NONE, area_of(4), 0, 0, 0);
    emit(0, 1);
    link_down(0, 1);
    advance_time(60 * SECOND_NS);
    assert_int_equal(facts(0, FB_FACT_DROPPED, NULL), 1);
    link_up(0, 1);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 1);
    /* Membership is looked at again. */
    fb_message_changed_all(node, 0, FB_NONE, area_of(5), 0, 0, 0);
    emit(0, 1);
    link_down(0, 1);
    link_up(0, 1);
    fakes[0]->may_not_hold = true;
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 1);
    for (uint32_t i = 0; i < options.sizes.envelopes; i++) {
        assert_int_equal(node->messaging->signal[i].refs, 0);
    }
}

/* Two links to one peer break one after the other: each message has its own 60 s. */
/* MP-6-8 */
static void a_later_break_gives_older_messages_no_more_time(void **state)
{
    (void)state;
    fake *f = fakes[0];
    link_one(0, 1);
    f->links[2] = f->links[1];
    f->links[2].number = 102;
    channels[FB_CHANNEL_MESSAGING]->up(&f->node, 2);
    fb_message_changed(&f->node, 0, 1, area_of(1), 0, 0, 0);
    emit(0, 1);
    fb_unicast sync = {.type = FB_TYPE_SYNC, .area = area_of(2)};
    assert_true(fb_unicast_add(&f->node, 2, &sync));
    emit(0, 2);
    unlink_one(0, 1);
    advance_time(40 * SECOND_NS);
    f->links[2].state = FB_LINK_FREE;
    channels[FB_CHANNEL_MESSAGING]->down(&f->node, 2, FB_ERR_LINK_CLOSED);
    advance_time(20 * SECOND_NS - 1);
    assert_int_equal(facts(0, FB_FACT_DROPPED, NULL), 0);
    advance_time(1);
    assert_int_equal(facts(0, FB_FACT_DROPPED, NULL), 1);
    advance_time(40 * SECOND_NS - 1);
    assert_int_equal(facts(0, FB_FACT_DROPPED, NULL), 0);
    advance_time(1);
    assert_int_equal(facts(0, FB_FACT_DROPPED, NULL), 1);
}

/* The next link came in time, its carrier takes nothing before the 60 s are over. */
/* FM-8.3-5, MP-6-7 */
static void what_the_next_link_did_not_take_in_time_is_dropped(void **state)
{
    (void)state;
    fb_node *node = &fakes[0]->node;
    link_one(0, 1);
    fb_message_changed(node, 0, 1, area_of(1), 0, 0, 0);
    emit(0, 1);
    unlink_one(0, 1);
    advance_time(30 * SECOND_NS);
    link_one(0, 1);
    advance_time(30 * SECOND_NS);
    emit(0, 1);
    assert_int_equal(facts(0, FB_FACT_RESENT, NULL), 0);
    assert_int_equal(facts(0, FB_FACT_DROPPED, NULL), 1);
}

/* FM-8.1-2, FM-8.1-4 */
static void a_redelivered_message_is_a_duplicate_when_it_had_arrived(void **state)
{
    (void)state;
    link_up(0, 1);
    settle(true);
    fb_message_changed_all(&fakes[0]->node, 0, FB_NONE, area_of(1), 0, 0, 0);
    emit(0, 1);
    take(1, 0);
    commit(1);
    link_down(0, 1); /* with the acknowledgement */
    link_up(0, 1);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 1);
    assert_int_equal(fakes[0]->node.messaging->channel[1].count, 0);
    assert_int_equal(
        fb_message_counts_of(&fakes[1]->node, 0)->refused[FB_ERR_DUPLICATE - FB_ERR_TOO_LARGE], 1);
}

/* MP-6-4, MP-7-26 */
static void an_external_carrier_repeats_until_acknowledged(void **state)
{
    (void)state;
    fake_external = true;
    link_up(0, 1);
    settle(true);
    fb_node *node = &fakes[0]->node;
    fake_lose = true;
    fb_message_changed_all(node, 0, FB_NONE, area_of(1), 0, 0, 0);
    emit(0, 1);
    fb_message_changed_all(node, 0, FB_NONE, area_of(2), 0, 0, 0);
    fake_lose = false;
    emit(0, 1); /* number 2 arrives before 1: it waits for its sender */
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 0);
    uint64_t waits = 400 * SECOND_NS / 1000;
    fake_lose = true;
    advance_time(waits - 1);
    assert_int_equal(fakes[0]->wants[1], 0);
    for (uint32_t i = 0; i < 6; i++) { /* 400 ms, doubling, at most 5 s */
        advance_time(i == 0 ? 1 : waits);
        assert_true(fakes[0]->wants[1] != 0);
        emit(0, 1);
        assert_int_equal(facts(0, FB_FACT_RESENT, NULL), 2);
        waits = 2 * waits < 5 * SECOND_NS ? 2 * waits : 5 * SECOND_NS;
    }
    fake_lose = false;
    advance_time(5 * SECOND_NS);
    emit(0, 1);
    take(1, 0);
    assert_int_equal(fakes[1]->changed.calls, 2);
    commit(1);
    fake_lose = true; /* the acknowledgement is lost; the repetition brings another */
    emit(1, 0);
    fake_lose = false;
    advance_time(5 * SECOND_NS);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 2);
    assert_int_equal(node->messaging->channel[1].count, 0);
    assert_false(fb_timer_is_set(&node->messaging->channel[1].resend));
}

/* FM-5.2-2, FM-5.2-6, FM-12.5-1, MP-6-11, MP-6-15, FI-2-12 */
static void sync_is_answered_with_one_changed(void **state)
{
    (void)state;
    link_up(0, 1);
    settle(true);
    fb_message_sync(&fakes[0]->node, 0, 1, area_of(1), false);
    fb_message_sync(&fakes[0]->node, 0, 1, area_of(1), false); /* waits already */
    settle(true);
    assert_int_equal(fakes[0]->changed.calls, 1);
    assert_true(fb_id_equal(fakes[0]->changed.area, area_of(1)));
    assert_int_equal(fakes[1]->changed.calls, 0);
    fb_message_sync(&fakes[0]->node, 0, 1, area_of(1), true);
    settle(true);
    assert_int_equal(fakes[0]->changed.calls, 2);
    assert_true(
        fb_id_equal(fakes[0]->changed.area, fb_area_id(fake_space, FB_AREA_SPACE, (fb_span){0})));
    /* The answer waits for the record of the question. */
    fb_message_sync(&fakes[0]->node, 0, 1, area_of(2), false);
    settle(false);
    assert_int_equal(fakes[0]->changed.calls, 2);
    settle(true);
    assert_int_equal(fakes[0]->changed.calls, 3);
    /* Who is no member any more when it could leave asks nobody. */
    uint64_t dropped = fb_message_counts_of(&fakes[0]->node, 1)->dropped;
    fakes[0]->status[0] = FB_MEMBER_PENDING;
    fb_message_sync(&fakes[0]->node, 0, 1, area_of(3), false);
    settle(true);
    assert_int_equal(fakes[0]->changed.calls, 3);
    assert_int_equal(fb_message_counts_of(&fakes[0]->node, 1)->dropped, dropped + 1);
}

/* FM-3.1-1, FM-5.1-10, FM-5.4-1, FM-6.1-1, FM-11-1, MP-6-11 */
static void the_answer_to_sync_names_it(void **state)
{
    (void)state;
    begin_receiving();
    fb_envelope e = envelope_base(fb_span_text("{\"scope\":\"database\"}"));
    e.type = FB_TYPE_SYNC;
    e.mode = FB_DELIVERY_UNICAST;
    e.target_node = fakes[0]->node.self;
    assert_int_equal(judge_signed(e), FB_OK);
    commit(0);
    fb_frame_out out;
    const fb_channel *ops = channels[FB_CHANNEL_MESSAGING];
    assert_true(ops->peek(&fakes[0]->node, 1, &out)); /* the acknowledgement */
    ops->sent(&fakes[0]->node, 1);
    assert_true(ops->peek(&fakes[0]->node, 1, &out));
    fb_envelope answer;
    assert_int_equal(fb_envelope_decode_protobuf(out.body, &answer, NULL), FB_OK);
    assert_int_equal(answer.type, FB_TYPE_CHANGED);
    assert_int_equal(answer.mode, FB_DELIVERY_UNICAST);
    assert_true(fb_id_equal(answer.target_node, fb_member_id(&fakes[0]->node, 1)));
    assert_true(answer.has_correlation && fb_id_equal(answer.correlation, e.id));
    assert_int_equal(fb_envelope_verify(&answer, fb_sodium_provider(sodium), &keys[0]), FB_OK);
    ops->sent(&fakes[0]->node, 1);
    assert_false(ops->peek(&fakes[0]->node, 1, &out));
}

/* MP-6-19, FI-2-12 */
static void conflict_is_counted(void **state)
{
    (void)state;
    link_up(0, 1);
    settle(true);
    fb_message_conflict_all(&fakes[0]->node, 0, area_of(1), 0);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 0);
    assert_int_equal(fb_message_counts_of(&fakes[1]->node, 0)->conflicts, 1);
}

/* FM-4.1-7 */
static void without_a_clock_nothing_is_sent(void **state)
{
    (void)state;
    link_up(0, 1);
    settle(true);
    fb_node *node = &fakes[0]->node;
    /* Before the first millisecond, before 1970, beyond what an id holds. */
    const int64_t without[] = {999, -1, INT64_MIN, ((int64_t)FB_UUID_MS_MAX + 1) * 1000, INT64_MAX};
    for (uint32_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        node->wall_us = without[i];
        fb_message_changed_all(node, 0, FB_NONE, area_of(1), 7, 2 * i + 1, 0);
        fb_message_sync(node, 0, 1, area_of(2), false);
        settle(true);
        fb_message_changed_all(node, 0, FB_NONE, area_of(1), 7, 2 * i + 2, 0);
        settle(true);
        assert_int_equal(fakes[1]->changed.calls, i);
        node->wall_us =
            NOON_US + i * INT64_C(1000); /* remembered ids may be few in one millisecond */
        settle(true);
        assert_int_equal(fakes[1]->changed.calls, i + 1);
        assert_int_equal(fakes[1]->changed.batch, 2 * i + 2);
        assert_int_equal(fakes[0]->changed.calls, i + 1);
    }
    assert_int_equal(fb_message_counts_of(node, 1)->dropped, 0);
    assert_int_equal(node->messaging->channel[1].pending, 0);
}

static fb_status publish(uint64_t principal, fb_id space, uint16_t count, size_t cut)
{
    uint8_t bytes[512];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u16(&w, count);
    for (uint16_t i = 0; i < count; i++) fb_write_id(&w, area_of((uint8_t)i));
    fb_request request = {.principal = principal, .verb = FB_VERB_PUBLISH};
    verbs[FB_VERB_PUBLISH](&fakes[0]->node, request, fb_span_of(bytes, w.at - cut));
    return fakes[0]->replied;
}

/* FM-3.3-1, FM-5.2-5, FM-7.1-3, FI-1-1 */
static void publish_announces_what_nobody_holds(void **state)
{
    (void)state;
    link_up(0, 1);
    link_up(0, 2);
    settle(true);
    assert_int_equal(publish(0, fake_space, 3, 0), FB_OK);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 3);
    assert_int_equal(fakes[2]->changed.calls, 3);
    assert_int_equal(publish(0, fake_space, 3, 1), FB_ERR_REQUEST_MALFORMED);
    assert_int_equal(publish(9, fake_space, 3, 0), FB_ERR_NOT_AUTHORISED);
    assert_int_equal(publish(0, area_of(1), 3, 0), FB_ERR_NOT_FOUND);
    fakes[0]->status[0] = FB_MEMBER_PENDING;
    assert_int_equal(publish(0, fake_space, 3, 0), FB_ERR_NOT_MEMBER);
    settle(true);
    assert_int_equal(fakes[1]->changed.calls, 3);
}

/* FM-4.1-6, MP-5-18, MP-6-19 */
static void reasons_are_shown_for_each_peer(void **state)
{
    (void)state;
    begin_receiving();
    fakes[0]->links[1].offset_known = true;
    fakes[0]->links[1].clock_offset_us = -7;
    fb_envelope e = envelope_base(payload_about(area_of(1)));
    assert_int_equal(judge_signed(e), FB_OK);
    assert_int_equal(judge(), FB_ERR_DUPLICATE);
    assert_int_equal(judge(), FB_ERR_DUPLICATE);
    e.timestamp = 1;
    assert_int_equal(judge_signed(e), FB_ERR_STALE);
    fb_request request = {.verb = FB_VERB_PEER_MESSAGES};
    verbs[FB_VERB_PEER_MESSAGES](&fakes[0]->node, request, (fb_span){NULL, 0});
    assert_int_equal(fakes[0]->replied, FB_OK);
    fb_reader r = fb_reader_of(fb_span_of(fakes[0]->answer, fakes[0]->answer_len));
    assert_int_equal(fb_read_u8(&r), 1);
    assert_int_equal(fb_read_u16(&r), 1); /* node 2 said nothing */
    assert_true(fb_id_equal(fb_read_id(&r), fake_space));
    assert_true(fb_id_equal(fb_read_id(&r), fb_member_id(&fakes[0]->node, 1)));
    assert_int_equal(fb_read_u8(&r), 1);
    assert_int_equal((int64_t)fb_read_u64(&r), -7);
    assert_int_equal(fb_read_u64(&r), 1);
    for (int i = 0; i < 3; i++) assert_int_equal(fb_read_u64(&r), 0);
    assert_int_equal(fb_read_u8(&r), 2);
    assert_int_equal(fb_read_u16(&r), FB_ERR_STALE);
    assert_int_equal(fb_read_u64(&r), 1);
    assert_int_equal(fb_read_u16(&r), FB_ERR_DUPLICATE);
    assert_int_equal(fb_read_u64(&r), 2);
    assert_true(fb_reader_done(&r));
    request.principal = 3;
    verbs[FB_VERB_PEER_MESSAGES](&fakes[0]->node, request, (fb_span){NULL, 0});
    assert_int_equal(fakes[0]->replied, FB_ERR_NOT_AUTHORISED);
    request.principal = 0;
    verbs[FB_VERB_PEER_MESSAGES](&fakes[0]->node, request, fb_span_text("x"));
    assert_int_equal(fakes[0]->replied, FB_ERR_REQUEST_MALFORMED);
}

/* A peer that acknowledges nothing holds its share of the pool and no more. */
static void a_silent_peer_does_not_starve_the_others(void **state)
{
    (void)state;
    fakes_free();
    options.sizes.envelopes = 6;
    fakes_new(&options);
    link_up(0, 1);
    link_up(0, 2);
    settle(true);
    fb_node *node = &fakes[0]->node;
    for (uint32_t i = 0; i < 20; i++) {
        fb_message_changed_all(node, 0, FB_NONE, area_of((uint8_t)(i % 10)), 0, 0, 0);
        emit(0, 1);
        emit(0, 2);
        take(2, 0);
        commit(2);
        emit(2, 0);
        take(0, 2);
        emit(0, 2);
        advance_time(2 * SECOND_NS);
    }
    assert_int_equal(node->messaging->channel[1].count,
                     4); /* its one, and the three that were free */
    assert_true(fakes[2]->changed.calls >= 20);
    settle(true);
    assert_int_equal(node->messaging->channel[1].pending, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_reason_in_its_place),
        TEST(the_window_is_inclusive),
        TEST(misbehaviour_is_not_clocks_or_duplicates),
        TEST(a_flood_meets_the_bucket_before_its_signature),
        TEST(a_full_record_raises_its_floor),
        TEST(a_forgotten_id_is_new_under_a_later_time),
        TEST(time_raises_the_floor_and_only_agreeing_clocks_reset_it),
        TEST(the_record_survives_a_restart),
        TEST(a_smaller_record_forgets_safely),
        TEST(nothing_is_taken_before_the_record_is_read),
        TEST(acknowledged_is_what_is_final_and_durable),
        TEST(what_cannot_be_framed_ends_the_link),
        TEST(changed_reaches_the_engine_with_its_batch),
        TEST(held_back_until_durable_and_never_put_off),
        TEST(notifications_coalesce_behind_a_full_window),
        TEST(nothing_goes_to_who_may_not_have_it),
        TEST(unacknowledged_goes_first_on_the_next_link),
        TEST(a_later_break_gives_older_messages_no_more_time),
        TEST(what_the_next_link_did_not_take_in_time_is_dropped),
        TEST(a_redelivered_message_is_a_duplicate_when_it_had_arrived),
        TEST(an_external_carrier_repeats_until_acknowledged),
        TEST(sync_is_answered_with_one_changed),
        TEST(the_answer_to_sync_names_it),
        TEST(conflict_is_counted),
        TEST(without_a_clock_nothing_is_sent),
        TEST(publish_announces_what_nobody_holds),
        TEST(reasons_are_shown_for_each_peer),
        TEST(a_silent_peer_does_not_starve_the_others),
    };
    unused_fakes();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
