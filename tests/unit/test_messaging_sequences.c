/* SPDX-License-Identifier: Apache-2.0 */
/* The sequences that an independent model made, through the messaging plane of a node: its own
 * record, floor, rate and links. docs/VECTORS.md */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The nodes of the vectors, A to F. */
#define NODES            6u
#define FAKE_KEY_BYTE(i) ((int)(i) + 10)
#define FAKE_SPACE                                                                                 \
    0x01, 0x95, 0xa3, 0xf0, 0x80, 0x00, 0x78, 0x90, 0xab, 0xcd, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01

#include "tests/unit/signal_fakes.h"
#include "tests/unit/vector_file.h"

#include "protocol/base/hex.h"
#include "protocol/messaging/state.h"

#define SELF 1u

static fb_envelope_scratch scratch;
static const char *name; /* of the sequence */
static size_t step_number;
static uint64_t begun_ns;
static uint64_t numbers[NODES];
static size_t judged, passed_over;

static int64_t member_of(const json_t *object, const char *member, int64_t otherwise)
{
    const json_t *value = json_object_get(object, member);
    return value == NULL ? otherwise : json_integer_value(value);
}

static uint32_t node_of(const char *hex)
{
    for (uint32_t i = 0; i < NODES; i++) {
        char id[33] = {0}, key[65] = {0};
        fb_hex_format(fb_member_id(&fakes[SELF]->node, i).b, 16, id);
        fb_hex_format(keys[i].b, 32, key);
        if (strcmp(hex, id) == 0 || strcmp(hex, key) == 0) return i;
    }
    fail_msg("%s: no node %s", name, hex);
    return 0;
}

static void set_member(const json_t *member)
{
    const char *status = vector_text(member, "status");
    uint32_t i = node_of(vector_text(member, "public_key"));
    fakes[SELF]->status[i] = strcmp(status, "approved") == 0  ? FB_MEMBER_APPROVED
                             : strcmp(status, "revoked") == 0 ? FB_MEMBER_REVOKED
                                                              : FB_MEMBER_PENDING;
}

static void bring_up(uint32_t peer, const json_t *offset_ms)
{
    link_one(SELF, peer);
    fakes[SELF]->links[peer].offset_known = offset_ms != NULL;
    fakes[SELF]->links[peer].clock_offset_us = json_integer_value(offset_ms) * 1000;
    numbers[peer] = 0;
    settle(true);
}

static void bring_down(void)
{
    for (uint32_t i = 0; i < NODES; i++) {
        if (fakes[SELF]->links[i].state == FB_LINK_OPEN) unlink_one(SELF, i);
    }
    settle(true);
}

static void set_clock(const json_t *step)
{
    fb_node *node = &fakes[SELF]->node;
    node->wall_us = member_of(step, "now_ms", node->wall_us / 1000) * 1000;
    const json_t *mono = json_object_get(step, "mono_ms");
    if (mono != NULL) {
        node->mono_ns = begun_ns + (uint64_t)json_integer_value(mono) * (SECOND_NS / 1000);
    }
}

/* What the node made of it: FB_OK or the reason, and whether the floor went back. */
static fb_status judge(uint32_t peer, fb_span envelope, bool *reset)
{
    uint8_t *frame = malloc(9 + envelope.len);
    assert_non_null(frame);
    frame[0] = FB_FRAME_MESSAGE;
    fb_store_be(frame + 1, ++numbers[peer], 8);
    memcpy(frame + 9, envelope.p, envelope.len);
    fakes[SELF]->out.used = 0;
    fb_status taken =
        hand_over(SELF, peer, FB_CHANNEL_MESSAGING, fb_span_of(frame, 9 + envelope.len));
    free(frame);
    assert_int_equal(taken, FB_OK);
    fb_status verdict = FB_OK;
    uint32_t outcomes = 0;
    *reset = false;
    for (const fb_effect *e = NULL; (e = fb_effects_next(&fakes[SELF]->out, e)) != NULL;) {
        if (e->kind != FB_FX_OBSERVE) continue;
        if (e->a == FB_FACT_REFUSED) verdict = (fb_status)e->c;
        if (e->a == FB_FACT_REFUSED || e->a == FB_FACT_DELIVERED) outcomes++;
        if (e->a == FB_FACT_FLOOR && e->c != 0) *reset = true;
    }
    assert_int_equal(outcomes, 1);
    settle(true);
    return verdict;
}

/* The envelope as it goes between nodes; false for text that is none. */
static bool in_protobuf(const json_t *step, uint8_t **bytes, size_t *len)
{
    *bytes = vector_bytes(json_object_get(step, "input"), len);
    if (strcmp(vector_text(step, "encoding"), "protobuf") == 0) return true;
    static uint8_t room[FB_ENVELOPE_BYTES_MAX];
    fb_envelope e;
    fb_status status = fb_envelope_decode_json(fb_span_of(*bytes, *len), &scratch, &e, NULL);
    fb_writer w = fb_writer_of(room, sizeof room);
    if (status == FB_OK) {
        assert_int_equal(fb_envelope_encode_protobuf(&e, &w), FB_OK);
        free(*bytes);
        *bytes = malloc(w.at);
        assert_non_null(*bytes);
        memcpy(*bytes, room, w.at);
        *len = w.at;
    }
    return status == FB_OK;
}

/* The link on which a message comes: that of its sender where several are up. */
static uint32_t peer_of(fb_span envelope)
{
    fb_envelope e;
    uint32_t only = NODES, up = 0;
    for (uint32_t i = 0; i < NODES; i++) {
        if (fakes[SELF]->links[i].state != FB_LINK_OPEN) continue;
        only = i;
        up++;
    }
    if (up == 1) return only;
    assert_int_equal(fb_envelope_decode_protobuf(envelope, &e, NULL), FB_OK);
    char hex[33] = {0};
    fb_hex_format(e.source.b, 16, hex);
    return node_of(hex);
}

static void deliver(const json_t *step)
{
    size_t len;
    uint8_t *bytes;
    if (in_protobuf(step, &bytes, &len)) {
        fb_span envelope = fb_span_of(bytes, len);
        bool reset;
        fb_status verdict = judge(peer_of(envelope), envelope, &reset);
        const char *reason = json_string_value(json_object_get(step, "reason"));
        const char *found = verdict == FB_OK ? "accept" : fb_error_name(verdict);
        if (strcmp(found, reason == NULL ? "accept" : reason) != 0 ||
            reset != json_is_true(json_object_get(step, "floor_reset"))) {
            fail_msg("%s, step %zu: %s%s", name, step_number, found, reset ? ", reset" : "");
        }
        judged++;
    }
    free(bytes);
}

static bool needs_hooks(const json_t *row)
{
    size_t i;
    const json_t *step;
    const json_t *context = json_object_get(row, "context");
    if (json_array_size(json_object_get(context, "seen")) != 0) return true;
    json_array_foreach(json_object_get(row, "steps"), i, step)
    {
        /* What a node subscribes to is fixed. */
        if (strstr(vector_text(step, "do"), "subscribe") != NULL) return true;
    }
    return false;
}

static fb_options options_of(const json_t *context)
{
    fb_options options = fake_options();
    options.sizes.links = options.sizes.members = NODES;
    options.sizes.envelopes = 64 * NODES;
    options.sizes.seen_ids = (uint32_t)member_of(context, "seen_ids", 64);
    options.timing.window_past_us = member_of(context, "past_ms", 0) * 1000;
    options.timing.window_future_us = member_of(context, "future_ms", 0) * 1000;
    options.timing.rate_per_s = (uint32_t)member_of(context, "rate_per_s", 0);
    options.timing.rate_burst = (uint32_t)member_of(context, "rate_burst", 0);
    return options;
}

static void begin(const json_t *context)
{
    size_t i;
    const json_t *member;
    fb_options options = options_of(context);
    fakes_new(&options);
    for (i = 0; i < NODES; i++) fakes[SELF]->status[i] = FB_MEMBER_PENDING;
    json_array_foreach(json_object_get(context, "members"), i, member) set_member(member);
    begun_ns = fakes[SELF]->node.mono_ns;
    set_clock(context);
    const char *peer = json_string_value(json_object_get(context, "peer"));
    for (uint32_t k = 0; k < NODES; k++) {
        if (k != SELF && (peer == NULL || node_of(peer) == k)) bring_up(k, NULL);
    }
}

static void one_sequence(void *user, size_t line, const json_t *row)
{
    (void)user;
    size_t i;
    const json_t *step;
    if (line == 1) return;
    name = vector_text(row, "sequence");
    if (needs_hooks(row)) {
        passed_over++;
        return;
    }
    begin(json_object_get(row, "context"));
    json_array_foreach(json_object_get(row, "steps"), i, step)
    {
        const char *what = vector_text(step, "do");
        step_number = i + 1;
        if (strcmp(what, "deliver") == 0) {
            deliver(step);
        } else if (strcmp(what, "clock") == 0) {
            set_clock(step);
        } else if (strcmp(what, "member") == 0) {
            set_member(step);
        } else {
            assert_string_equal(what, "link");
            bring_down();
            bring_up(node_of(vector_text(step, "peer")), json_object_get(step, "offset_ms"));
        }
    }
    check_digest(SELF);
    bring_down();
    fakes_free();
}

/* MP-5-3, MP-5-5, MP-5-6, MP-5-8, MP-5-12, MP-5-14, MP-5-15, MP-5-16, MP-5-17, MP-5-19 */
static void sequences_through_the_plane(void **state)
{
    (void)state;
    size_t lines =
        vector_file_each(FB_SOURCE_DIR "/tests/vectors/sequences.jsonl", one_sequence, NULL);
    assert_true(lines - 1 - passed_over >= 55 && passed_over <= 3);
    assert_true(judged >= 200);
}

int main(void)
{
    unused_fakes();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_through_the_plane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
