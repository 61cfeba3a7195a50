/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: what is sealed verifies, with and without holes; every flipped bit is noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/keys/provider_sodium.h"
#include "protocol/core/node_id.h"
#include "protocol/database/batch/batch.h"
#include "protocol/database/write/write.h"

static fb_sodium *sodium;
static const fb_provider *provider;
static fb_key_handle key;
static fb_b32 public_key;
static fb_id self;
static fb_change changes[FB_BATCH_CHANGES_MAX];

static const fb_id the_record = {{1, 2, 3, 4, 5, 6, 0x70, 8, 0x80, 9}};
static const uint8_t secret[32] = {9};

static int set_up(void **state)
{
    (void)state;
    fb_b32 seed = {{42}};
    assert_int_equal(fb_sodium_create(4, &sodium), FB_OK);
    provider = fb_sodium_provider(sodium);
    assert_int_equal(fb_sodium_add_signing(sodium, &seed, &key), FB_OK);
    assert_int_equal(provider->public_key(provider->user, key, &public_key), FB_OK);
    self = fb_node_id(provider, public_key);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fb_sodium_destroy(sodium);
    return 0;
}

/* count changes of one record, sealed as number 2 after a made-up first; bytes in out. */
static size_t seal(uint8_t *out, size_t cap, uint32_t count)
{
    uint8_t items[8192], leaves[FB_BATCH_CHANGES_MAX * 32], hash[32];
    fb_writer w = fb_writer_of(items, sizeof items);
    fb_record record;
    assert_int_equal(fb_record_decode(fb_span_of(NULL, 0), &record), FB_OK);
    for (uint32_t i = 0; i < count; i++) {
        fb_field_write fields[] = {{fb_span_text("a"), FB_ACT_SET, fb_span_text("\"value one\"")},
                                   {fb_span_text("b"), FB_ACT_SET, fb_span_text("2")}};
        fb_record_write write = {.record = the_record,
                                 .op = FB_CHANGE_WRITE,
                                 .fields = fields,
                                 .count = 2,
                                 .author_kind = FB_AUTHOR_APPLICATION,
                                 .author = {[15] = 3},
                                 .wall_us = 1000 + i,
                                 .dot = {self, 7, 5 + i},
                                 .secret = secret};
        size_t len_at = w.at;
        fb_write_u32(&w, 0);
        assert_int_equal(fb_change_build(&w, &record, &write), FB_OK);
        size_t len = w.at - len_at - 4;
        fb_store_be(w.p + len_at, len, 4);
        fb_change change;
        assert_int_equal(fb_change_decode(fb_span_of(w.p + len_at + 4, len), &change), FB_OK);
        fb_change_leaf(&change, write.dot, leaves + (size_t)i * 32);
    }
    uint8_t epoch[2 * FB_EPOCH_ENTRY_BYTES] = {1};
    epoch[FB_EPOCH_ENTRY_BYTES] = 2;
    epoch[31] = epoch[63] = 1;
    fb_batch batch = {.space = the_record,
                      .area = the_record,
                      .author = public_key,
                      .incarnation = 7,
                      .number = 2,
                      .first_seq = 5,
                      .has_previous = true,
                      .previous_incarnation = 7,
                      .previous_number = 1,
                      .previous_hash = {1},
                      .count = count,
                      .epoch_count = 2,
                      .epoch = epoch};
    fb_batch_root(leaves, count, batch.root);
    fb_writer o = fb_writer_of(out, cap);
    assert_int_equal(fb_batch_seal(&o, &batch, provider, key, hash), FB_OK);
    fb_write_span(&o, fb_writer_span(&w));
    assert_false(o.failed);
    fb_batch decoded;
    assert_int_equal(fb_batch_decode(fb_writer_span(&o), &decoded, changes), FB_OK);
    uint8_t again[32];
    fb_batch_hash(decoded.header, again);
    assert_memory_equal(hash, again, 32);
    return o.at;
}

static fb_status verify(const uint8_t *bytes, size_t len, fb_batch *batch)
{
    fb_status status = fb_batch_decode(fb_span_of(bytes, len), batch, changes);
    return status != FB_OK ? status : fb_batch_verify(batch, changes, self, provider);
}

static void sealed_batches_verify(void **state)
{
    (void)state;
    for (uint32_t count = 1; count <= 17; count++) {
        uint8_t bytes[10240];
        fb_batch batch;
        size_t len = seal(bytes, sizeof bytes, count);
        assert_int_equal(verify(bytes, len, &batch), FB_OK);
        assert_int_equal(batch.count, count);
        assert_int_equal(fb_batch_last_seq(&batch), 4 + count);
        assert_false(batch.holes);
        assert_int_equal(fb_batch_epoch_at(&batch, 1).batch, 1);
        /* The dots of the leaves carry the signer. */
        fb_id other = self;
        other.b[0] ^= 1;
        assert_int_equal(fb_batch_verify(&batch, changes, other, provider), FB_ERR_BATCH_ROOT);
    }
}

static void every_bit_counts(void **state)
{
    (void)state;
    uint8_t bytes[2048];
    size_t len = seal(bytes, sizeof bytes, 2);
    fb_batch batch;
    for (size_t at = 0; at < len; at++) {
        bytes[at] ^= (uint8_t)(1u << at % 8);
        assert_int_not_equal(verify(bytes, len, &batch), FB_OK);
        bytes[at] ^= (uint8_t)(1u << at % 8);
        assert_int_not_equal(verify(bytes, at, &batch), FB_OK);
    }
    assert_int_equal(verify(bytes, len, &batch), FB_OK);
    bytes[len] = 0;
    assert_int_equal(verify(bytes, len + 1, &batch), FB_ERR_BATCH_MALFORMED);
}

/* Takes a value out of the first change and replaces the second by its leaf. */
static void holes_stay_provable(void **state)
{
    (void)state;
    uint8_t bytes[4096], holed[4096];
    size_t len = seal(bytes, sizeof bytes, 3);
    fb_batch batch;
    assert_int_equal(verify(bytes, len, &batch), FB_OK);
    fb_writer w = fb_writer_of(holed, sizeof holed);
    fb_write_bytes(&w, bytes, len - batch.items.len);
    fb_reader items = fb_reader_of(batch.items);
    for (uint32_t i = 0; i < batch.count; i++) {
        fb_span item = fb_read_span32(&items);
        fb_change change;
        assert_int_equal(fb_change_decode(item, &change), FB_OK);
        fb_dot dot = {self, 7, 5 + i};
        if (i == 1) {
            uint8_t leaf[32];
            fb_change_leaf(&change, dot, leaf);
            fb_write_u32(&w, 33);
            fb_write_u8(&w, FB_CHANGE_LEAF);
            fb_write_bytes(&w, leaf, 32);
        } else if (i == 0) {
            size_t len_at = w.at;
            fb_write_u32(&w, 0);
            fb_write_u8(&w, FB_CHANGE_WHOLE);
            fb_write_span(&w, change.head);
            fb_change_walk walk = fb_change_walk_of(&change);
            fb_change_field field;
            while (fb_change_next(&walk, &field)) {
                uint8_t hash[32];
                fb_change_field_hash(&field, hash);
                fb_write_u8(&w, 2);
                fb_write_bytes(&w, hash, 32);
            }
            fb_store_be(w.p + len_at, w.at - len_at - 4, 4);
        } else {
            fb_write_span32(&w, item);
        }
    }
    assert_int_equal(verify(holed, w.at, &batch), FB_OK);
    assert_true(batch.holes);
}

/* A change with one byte of its head set; where it starts is known from the format. */
static void later_kinds_are_refused(void **state)
{
    (void)state;
    fb_record record;
    assert_int_equal(fb_record_decode(fb_span_of(NULL, 0), &record), FB_OK);
    fb_field_write fields[] = {{fb_span_text("a"), FB_ACT_SET, fb_span_text("1")}};
    fb_record_write write = {.record = the_record,
                             .op = FB_CHANGE_WRITE,
                             .fields = fields,
                             .count = 1,
                             .author_kind = FB_AUTHOR_OPERATOR,
                             .dot = {self, 7, 1},
                             .secret = secret};
    static const struct {
        size_t at;
        uint8_t value;
        fb_status status;
    } cases[] = {
        {17, 3, FB_ERR_BATCH_MALFORMED},   /* operation */
        {26, 3, FB_ERR_UNSUPPORTED},       /* kind of author */
        {27, 1, FB_ERR_BATCH_MALFORMED},   /* an operator has no id */
        {44, 1, FB_ERR_UNSUPPORTED},       /* flags */
        {52, 1, FB_ERR_UNSUPPORTED},       /* expiry */
        {60, 1, FB_ERR_UNSUPPORTED},       /* key id */
        {7, 0x40, FB_ERR_BATCH_MALFORMED}, /* a record is a UUIDv7 */
        {76, 4, FB_ERR_UNSUPPORTED},       /* kind of column */
        {76, 2, FB_ERR_BATCH_MALFORMED},   /* whose name says another */
        {77, 3, FB_ERR_BATCH_MALFORMED},   /* operation on the field */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[256];
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_change change;
        assert_int_equal(fb_change_build(&w, &record, &write), FB_OK);
        assert_int_equal(fb_change_decode(fb_writer_span(&w), &change), FB_OK);
        bytes[cases[i].at] = cases[i].value;
        assert_int_equal(fb_change_decode(fb_writer_span(&w), &change), cases[i].status);
    }
}

static void area_ids_are_derived(void **state)
{
    (void)state;
    fb_id space = {{0x01, 0x8f, 0x22, 0x33, 0x44, 0x55, 0x7a, 0xbc, 0x9d, 1, 2, 3, 4, 5, 6, 7}};
    fb_id a = fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes"));
    assert_true(fb_id_equal(a, fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes"))));
    assert_memory_equal(a.b, space.b, 6);
    assert_int_equal(a.b[6] >> 4, 7);
    assert_int_equal(a.b[8] >> 6, 2);
    assert_false(fb_id_equal(a, fb_area_id(space, FB_AREA_FILES, fb_span_text("notes"))));
    assert_false(fb_id_equal(a, fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("note"))));
    /* The 74 bits are the hash's first ones in order. */
    uint8_t hash[10], kind = 1;
    const fb_span parts[] = {fb_span_of("faberio-area-v1", 16), fb_span_of(space.b, 16),
                             fb_span_of(&kind, 1), fb_span_text("notes")};
    fb_blake3(parts, 4, hash, 10);
    for (uint32_t bit = 0; bit < 74; bit++) {
        uint32_t at = bit < 12 ? 52 + bit : 66 + bit - 12;
        assert_int_equal(hash[bit / 8] >> (7 - bit % 8) & 1, a.b[at / 8] >> (7 - at % 8) & 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealed_batches_verify), cmocka_unit_test(every_bit_counts),
        cmocka_unit_test(holes_stay_provable),   cmocka_unit_test(later_kinds_are_refused),
        cmocka_unit_test(area_ids_are_derived),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
