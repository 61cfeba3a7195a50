/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors that an independent model made, through the core's code: each envelope in its
 * context, and what comes of several with changes in between. docs/VECTORS.md */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "io/keys/provider_sodium.h"
#include "protocol/base/hex.h"
#include "runtime/conformance/receiver_json.h"
#include "tests/unit/vector_file.h"

static fb_sodium *sodium;
static const fb_provider *provider;
static fb_envelope_scratch scratch;

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(fb_sodium_create(1, &sodium), FB_OK);
    provider = fb_sodium_provider(sodium);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fb_sodium_destroy(sodium);
    return 0;
}

static void decode(const json_t *row, fb_span bytes, fb_envelope *e, fb_envelope_fault *fault)
{
    if (strcmp(vector_text(row, "encoding"), "json") == 0) {
        fb_envelope_decode_json(bytes, &scratch, e, fault);
    } else {
        fb_envelope_decode_protobuf(bytes, e, fault);
    }
}

static fb_receiver *receiver_of(json_t *context)
{
    fb_receiver *receiver = fb_receiver_new(provider);
    fb_receiver_fault fault;
    if (!fb_receiver_read(receiver, context, true, &fault)) {
        fail_msg("context: %s: %s", fault.where, fault.what);
    }
    return receiver;
}

static void expect(const char *name, size_t step, const json_t *row, const fb_envelope_fault *fault)
{
    const char *reason = json_string_value(json_object_get(row, "reason"));
    const char *field = json_string_value(json_object_get(row, "field"));
    const char *found = fault->reason == FB_OK ? NULL : fb_error_name(fault->reason);
    assert_string_equal(vector_text(row, "verdict"), reason == NULL ? "accept" : "refuse");
    bool same = (reason == NULL) == (found == NULL) && (reason == NULL || !strcmp(reason, found));
    if (!same || (field != NULL && strcmp(field, fb_envelope_field_name(fault->field)) != 0)) {
        fail_msg("%s, step %zu: %s (%s; %s), expected %s (%s)", name, step,
                 found == NULL ? "accept" : found, fb_envelope_field_name(fault->field),
                 fault->detail, reason == NULL ? "accept" : reason, field == NULL ? "" : field);
    }
}

/* ---- Envelopes ---- */

typedef struct envelopes {
    json_t *contexts;
    size_t judged;
    size_t reasons[256]; /* how often each was found */
} envelopes;

static void expect_hash(const char *name, const json_t *row, const char *form, fb_span bytes)
{
    fb_b32 hash, expected;
    provider->sha256(provider->user, &bytes, 1, &hash);
    vector_hex(row, form, expected.b, sizeof expected.b);
    if (!fb_b32_equal(hash, expected)) fail_msg("%s: another %s", name, form);
}

static void expect_forms(const char *name, const json_t *row, const fb_envelope *e)
{
    static uint8_t room[FB_ENVELOPE_JSON_BYTES_MAX];
    fb_preimage preimage;
    fb_envelope_preimage(e, &preimage);
    fb_writer w = fb_writer_of(room, sizeof room);
    for (size_t i = 0; i < 3; i++) fb_write_span(&w, preimage.parts[i]);
    expect_hash(name, row, "preimage_sha256", fb_writer_span(&w));
    w = fb_writer_of(room, sizeof room);
    assert_int_equal(fb_envelope_encode_json(e, &w), FB_OK);
    expect_hash(name, row, "json_sha256", fb_writer_span(&w));
    w = fb_writer_of(room, sizeof room);
    assert_int_equal(fb_envelope_encode_protobuf(e, &w), FB_OK);
    expect_hash(name, row, "protobuf_sha256", fb_writer_span(&w));
}

static void one_envelope(void *user, size_t line, const json_t *row)
{
    envelopes *all = user;
    if (line == 1) {
        assert_string_equal(vector_text(row, "format"), "faberio-envelope-vectors 1");
        all->contexts = json_incref(json_object_get(row, "contexts"));
        return;
    }
    const char *name = vector_text(row, "vector");
    size_t len;
    uint8_t *bytes = vector_bytes(json_object_get(row, "input"), &len);
    fb_envelope e;
    fb_envelope_fault fault;
    decode(row, fb_span_of(bytes, len), &e, &fault);
    bool formed = fault.reason == FB_OK;
    if (formed != (json_object_get(row, "preimage_sha256") != NULL)) {
        fail_msg("%s: %s (%s)", name, fb_error_name(fault.reason), fault.detail);
    }
    if (formed) {
        expect_forms(name, row, &e);
        fb_receiver *receiver =
            receiver_of(json_object_get(all->contexts, vector_text(row, "context")));
        fb_receiver_judge(receiver, &e, &fault, NULL);
        expect(name, 0, row, &fault);
        /* What is accepted is not accepted again; what is refused left nothing. */
        fb_envelope_fault again;
        fb_receiver_judge(receiver, &e, &again, NULL);
        bool repeated = again.reason == FB_ERR_DUPLICATE || again.reason == FB_ERR_STALE;
        if (fault.reason == FB_OK ? !repeated : again.reason != fault.reason) {
            fail_msg("%s, again: %s", name, fb_error_name(again.reason));
        }
        fb_receiver_free(receiver);
    } else {
        expect(name, 0, row, &fault);
    }
    all->judged++;
    all->reasons[fault.reason]++;
    free(bytes);
}

/* FM-5.1-1, FM-5.4-2, FM-5.4-3, FM-11-2, MP-1-4, MP-2-1, MP-3-1, MP-3-3, MP-3-5, MP-3-9, MP-4-1,
 * MP-4-14, MP-5-1, MP-5-12 */
static void envelopes_as_the_model_judges_them(void **state)
{
    (void)state;
    envelopes all = {0};
    vector_file_each(FB_SOURCE_DIR "/tests/vectors/envelopes.jsonl", one_envelope, &all);
    json_decref(all.contexts);
    assert_true(all.judged >= 1500);
    assert_true(all.reasons[FB_OK] >= 300);
    for (int i = FB_ERR_TOO_LARGE; i <= FB_ERR_DUPLICATE; i++) {
        /* The rate is a matter of sequences. */
        if (i != FB_ERR_RATE_LIMITED && all.reasons[i] < 4) fail_msg("%s", fb_error_name(i));
    }
}

/* ---- Sequences ---- */

static int64_t number_of(const json_t *step, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(step, name);
    return value == NULL ? otherwise : json_integer_value(value);
}

static void change(fb_receiver *receiver, const json_t *step)
{
    fb_receiver_state *s = fb_receiver_state_of(receiver);
    const char *what = vector_text(step, "do");
    if (strcmp(what, "clock") == 0) {
        s->now_ms = number_of(step, "now_ms", s->now_ms);
        s->mono_ms = (uint64_t)number_of(step, "mono_ms", (int64_t)s->mono_ms);
    } else if (strcmp(what, "link") == 0) {
        vector_hex(step, "peer", s->peer.b, sizeof s->peer.b);
        s->has_peer = true;
        s->offset_known = json_object_get(step, "offset_ms") != NULL;
        s->offset_ms = number_of(step, "offset_ms", 0);
        fb_receiver_link(receiver);
    } else if (strcmp(what, "member") == 0) {
        fb_b32 key;
        vector_hex(step, "public_key", key.b, sizeof key.b);
        fb_receiver_status status = fb_receiver_status_named(json_object_get(step, "status"));
        assert_int_equal(fb_receiver_member(receiver, &key, status), FB_OK);
    } else {
        bool begins = strcmp(what, "subscribe") == 0;
        assert_true(begins || strcmp(what, "unsubscribe") == 0);
        fb_receiver_subscribe(receiver, fb_span_text(vector_text(step, "topic")), begins);
    }
}

static void deliver(const char *name, size_t number, fb_receiver *receiver, const json_t *step)
{
    size_t len;
    uint8_t *bytes = vector_bytes(json_object_get(step, "input"), &len);
    fb_envelope e;
    fb_envelope_fault fault;
    bool reset = false;
    decode(step, fb_span_of(bytes, len), &e, &fault);
    if (fault.reason == FB_OK) fb_receiver_judge(receiver, &e, &fault, &reset);
    expect(name, number, step, &fault);
    if (reset != json_is_true(json_object_get(step, "floor_reset"))) {
        fail_msg("%s, step %zu: the floor is reset, or is not", name, number);
    }
    free(bytes);
}

static void one_sequence(void *user, size_t line, const json_t *row)
{
    size_t *count = user, i;
    if (line == 1) {
        assert_string_equal(vector_text(row, "format"), "faberio-receiver-sequences 1");
        return;
    }
    fb_receiver *receiver = receiver_of(json_object_get(row, "context"));
    const json_t *step;
    json_array_foreach(json_object_get(row, "steps"), i, step)
    {
        if (strcmp(vector_text(step, "do"), "deliver") == 0) {
            deliver(vector_text(row, "sequence"), i + 1, receiver, step);
        } else {
            change(receiver, step);
        }
    }
    fb_receiver_free(receiver);
    ++*count;
}

/* FM-8.1-4, MP-5-5, MP-5-8, MP-5-10, MP-5-12, MP-5-14, MP-5-16 */
static void sequences_as_the_model_judges_them(void **state)
{
    (void)state;
    size_t count = 0;
    vector_file_each(FB_SOURCE_DIR "/tests/vectors/sequences.jsonl", one_sequence, &count);
    assert_true(count >= 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(envelopes_as_the_model_judges_them),
        cmocka_unit_test(sequences_as_the_model_judges_them),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
