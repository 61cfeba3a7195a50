/* SPDX-License-Identifier: Apache-2.0 */
/* Records on real nodes with every plane: local verbs, replication, restarts, cuts, forks of lives,
 * and the fingerprint tree as stored against one recomputed from the stored records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "protocol/core/internal.h"
#include "protocol/database/batch/batch.h"
#include "protocol/database/record/record.h"
#include "protocol/database/state.h"
#include "protocol/database/tree/tree.h"
#include "protocol/store/keys.h"
#include "tests/unit/net_space.h"

#define SECOND UINT64_C(1000000000)

static void write_collection(fb_writer *w, fb_id space, const char *name)
{
    fb_write_id(w, space);
    fb_write_u8(w, 1);
    fb_write_span16(w, fb_span_text(name));
}

typedef struct put_args {
    fb_id space;
    const char *collection;
    uint32_t record;
    uint8_t mode, condition;
    const uint8_t *etag;
    const char *field;
    const char *value; /* NULL: unset */
} put_args;

static void write_put(fb_writer *w, const put_args *a)
{
    static const uint8_t zero[16];
    write_collection(w, a->space, a->collection);
    fb_write_id(w, a->record == 0 ? (fb_id){{0}} : test_net_record_id(a->record));
    fb_write_u8(w, a->mode == 0 ? 2 : a->mode);
    fb_write_u8(w, a->condition);
    fb_write_bytes(w, a->etag == NULL ? zero : a->etag, 16);
    fb_write_u16(w, a->field == NULL ? 0 : 1);
    if (a->field == NULL) return;
    fb_write_span16(w, fb_span_text(a->field));
    fb_write_u8(w, a->value == NULL ? 2 : 1);
    fb_write_span32(w, a->value == NULL ? fb_span_of(NULL, 0) : fb_span_text(a->value));
}

static const test_reply *put(test_net *net, uint32_t i, put_args a)
{
    static uint8_t bytes[70000];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    write_put(&w, &a);
    return test_net_answer(net, i, FB_VERB_RECORD_PUT, &w);
}

static void put_ok(test_net *net, uint32_t i, fb_id space, uint32_t record, const char *field,
                   const char *value)
{
    put_args a = {
        .space = space, .collection = "notes", .record = record, .field = field, .value = value};
    assert_int_equal(put(net, i, a)->status, FB_OK);
}

static const test_reply *get(test_net *net, uint32_t i, fb_id space, uint32_t record)
{
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    write_collection(&w, space, "notes");
    fb_write_id(&w, test_net_record_id(record));
    return test_net_answer(net, i, FB_VERB_RECORD_GET, &w);
}

/* Siblings of a field as read, and the displayed value; 0 when the record or field is absent. */
static uint32_t field_of(test_net *net, uint32_t i, fb_id space, uint32_t record, const char *name,
                         fb_span *value)
{
    const test_reply *reply = get(net, i, space, record);
    if (reply->status == FB_ERR_NOT_FOUND) return 0;
    assert_int_equal(reply->status, FB_OK);
    fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
    assert_true(fb_id_equal(fb_read_id(&r), test_net_record_id(record)));
    fb_read_bytes(&r, 16);
    uint32_t fields = fb_read_u16(&r), found = 0;
    for (uint32_t f = 0; f < fields; f++) {
        fb_span field = fb_read_span16(&r);
        uint32_t siblings = fb_read_u16(&r);
        for (uint32_t s = 0; s < siblings; s++) {
            fb_read_bytes(&r, FB_DOT_BYTES + 8);
            fb_span v = fb_read_span32(&r);
            if (s == 0 && fb_span_equal(field, fb_span_text(name))) {
                *value = v;
                found = siblings;
            }
        }
    }
    assert_true(fb_reader_done(&r));
    return found;
}

static void check_value(test_net *net, uint32_t i, fb_id space, uint32_t record, const char *name,
                        const char *expected)
{
    fb_span value;
    assert_true(field_of(net, i, space, record, name, &value) > 0);
    assert_true(fb_span_equal(value, fb_span_text(expected)));
}

static bool area_info(test_net *net, uint32_t i, fb_id id, fb_area_info *out, uint32_t *index)
{
    const fb_node *node = test_net_node(net, i);
    for (*index = 0; *index < fb_area_capacity(node); (*index)++) {
        if (fb_area_at(node, *index, out) && fb_id_equal(out->id, id)) return true;
    }
    return false;
}

static int by_key(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

/* The tree from nothing: every stored record of an area, hashed again. */
static void check_tree(test_net *net, uint32_t i, fb_id area)
{
    fb_area_info info;
    uint32_t index;
    assert_true(area_info(net, i, area, &info, &index));
    uint8_t *items = calloc(info.records + 1, FB_TREE_ITEM_BYTES);
    size_t count = 0;
    fb_span key, value;
    uint32_t local = UINT32_MAX;
    uint8_t kind = info.kind;
    for (size_t at = 0; test_net_stored(net, i, at, &key, &value); at++) {
        if (key.p[0] != FB_TAG_AREA) continue;
        fb_reader k = fb_reader_of(key), v = fb_reader_of(value);
        fb_read_u8(&k);
        fb_read_bytes(&v, 5);
        uint8_t stored_kind = fb_read_u8(&v);
        fb_span name = fb_read_span16(&v);
        if (stored_kind == kind &&
            fb_id_equal(fb_area_id(info.space, (fb_area_kind)kind, name), area)) {
            local = fb_read_u32(&k);
        }
    }
    for (size_t at = 0; test_net_stored(net, i, at, &key, &value); at++) {
        if (key.p[0] != FB_TAG_RECORD) continue;
        fb_reader k = fb_reader_of(key);
        fb_read_u8(&k);
        if (fb_read_u32(&k) != local) continue;
        fb_id id = fb_read_id(&k);
        fb_record record;
        assert_int_equal(fb_record_decode(value, &record), FB_OK);
        assert_true(count <= info.records);
        uint8_t *item = items + count++ * FB_TREE_ITEM_BYTES;
        fb_tree_key(id, item);
        fb_record_fingerprint(id, record.state, item + 16);
        assert_memory_equal(item + 16, record.fingerprint, 16);
    }
    assert_int_equal(count, info.records);
    qsort(items, count, FB_TREE_ITEM_BYTES, by_key);
    uint8_t root[16];
    fb_tree_recompute(items, count, root);
    assert_memory_equal(root, info.root, 16);
    free(items);
}

static void check_equal(test_net *net, uint32_t count, fb_id area)
{
    fb_area_info first, other;
    uint32_t a, b;
    assert_true(area_info(net, 0, area, &first, &a));
    check_tree(net, 0, area);
    for (uint32_t i = 1; i < count; i++) {
        assert_true(area_info(net, i, area, &other, &b));
        check_tree(net, i, area);
        assert_memory_equal(first.root, other.root, 16);
        assert_int_equal(first.vector_count, other.vector_count);
        for (uint32_t e = 0; e < first.vector_count; e++) {
            fb_vector_info x, y;
            assert_true(fb_area_vector_at(test_net_node(net, 0), a, e, &x));
            assert_true(fb_area_vector_at(test_net_node(net, i), b, e, &y));
            assert_true(fb_id_equal(x.node, y.node));
            assert_int_equal(x.batch, y.batch);
            assert_int_equal(x.last_seq, y.last_seq);
        }
    }
}

static fb_id notes_of(fb_id space)
{
    return fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes"));
}

static void one_node_writes_and_reads(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = test_net_create_space(net, 0);
    put_args a = {.space = space, .collection = "notes", .field = "t", .value = " \"x\" "};
    const test_reply *reply = put(net, 0, a);
    assert_int_equal(reply->status, FB_OK);
    assert_int_equal(reply->len, 33);
    assert_int_equal(reply->bytes[16], 1);
    put_ok(net, 0, space, 1, "t", "1");
    put_ok(net, 0, space, 1, "u", "[1, 2]");
    check_value(net, 0, space, 1, "t", "1");
    check_value(net, 0, space, 1, "u", "[1,2]");
    /* Replacing takes the other field away. */
    a = (put_args){space, "notes", 1, 1, 0, NULL, "u", "2"};
    reply = put(net, 0, a);
    assert_int_equal(reply->status, FB_OK);
    assert_int_equal(reply->bytes[16], 0);
    uint8_t etag[16];
    memcpy(etag, reply->bytes + 17, 16);
    fb_span value;
    assert_int_equal(field_of(net, 0, space, 1, "t", &value), 0);
    check_value(net, 0, space, 1, "u", "2");
    /* Conditions. */
    a = (put_args){space, "notes", 1, 2, 2, NULL, "u", "3"};
    assert_int_equal(put(net, 0, a)->status, FB_ERR_CONFLICT);
    a = (put_args){space, "notes", 1, 2, 1, etag, "u", "3"};
    assert_int_equal(put(net, 0, a)->status, FB_OK);
    assert_int_equal(put(net, 0, a)->status, FB_ERR_CONFLICT);
    a = (put_args){space, "notes", 1, 2, 0, NULL, "u", "{\"a\":1,\"a\":2}"};
    assert_int_equal(put(net, 0, a)->status, FB_ERR_VALUE_MALFORMED);
    check_tree(net, 0, notes_of(space));
    /* Everything is there after a restart. */
    test_net_restart(net, 0);
    test_net_run(net, SECOND);
    check_value(net, 0, space, 1, "u", "3");
    put_ok(net, 0, space, 2, "t", "5");
    check_tree(net, 0, notes_of(space));
    fb_area_info info;
    uint32_t index;
    assert_true(area_info(net, 0, notes_of(space), &info, &index));
    assert_int_equal(info.records, 3);
    assert_int_equal(info.vector_count, 1);
    test_net_free(net);
}

static void deleted_records_are_gone(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = test_net_create_space(net, 0);
    put_ok(net, 0, space, 1, "t", "1");
    uint8_t bytes[256];
    static const uint8_t zero[16];
    for (uint32_t i = 0; i < 2; i++) {
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        write_collection(&w, space, "notes");
        fb_write_id(&w, test_net_record_id(1));
        fb_write_u8(&w, 0);
        fb_write_bytes(&w, zero, 16);
        assert_int_equal(test_net_answer(net, 0, FB_VERB_RECORD_DELETE, &w)->status,
                         i == 0 ? FB_OK : FB_ERR_NOT_FOUND);
    }
    assert_int_equal(get(net, 0, space, 1)->status, FB_ERR_NOT_FOUND);
    put_args a = {space, "notes", 1, 2, 2, NULL, NULL, NULL};
    assert_int_equal(put(net, 0, a)->status, FB_OK);
    assert_int_equal(get(net, 0, space, 1)->status, FB_OK); /* {} exists */
    check_tree(net, 0, notes_of(space));
    test_net_free(net);
}

static uint32_t list(test_net *net, uint32_t i, fb_id space, fb_id after, uint32_t limit,
                     bool *whole, fb_id *last)
{
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    write_collection(&w, space, "notes");
    fb_write_id(&w, after);
    fb_write_u32(&w, limit);
    const test_reply *reply = test_net_answer(net, i, FB_VERB_RECORD_LIST, &w);
    assert_int_equal(reply->status, FB_OK);
    fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
    *whole = fb_read_u8(&r) != 0;
    uint32_t count = fb_read_u16(&r);
    for (uint32_t n = 0; n < count; n++) {
        *last = fb_read_id(&r);
        fb_read_bytes(&r, 16);
        uint32_t fields = fb_read_u16(&r);
        for (uint32_t f = 0; f < fields; f++) {
            fb_read_span16(&r);
            uint32_t siblings = fb_read_u16(&r);
            for (uint32_t s = 0; s < siblings; s++) {
                fb_read_bytes(&r, FB_DOT_BYTES + 8);
                fb_read_span32(&r);
            }
        }
    }
    assert_true(fb_reader_done(&r));
    return count;
}

static void lists_go_through_everything(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = test_net_create_space(net, 0);
    static char big[2002];
    memset(big, '1', sizeof big - 1);
    for (uint32_t n = 1; n <= 60; n++) put_ok(net, 0, space, n, "t", n % 7 == 0 ? big : "1");
    uint8_t bytes[256];
    static const uint8_t zero[16];
    for (uint32_t n = 10; n < 40; n++) {
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        write_collection(&w, space, "notes");
        fb_write_id(&w, test_net_record_id(n));
        fb_write_u8(&w, 0);
        fb_write_bytes(&w, zero, 16);
        assert_int_equal(test_net_answer(net, 0, FB_VERB_RECORD_DELETE, &w)->status, FB_OK);
    }
    for (uint32_t limit = 1; limit < 40; limit += 5) {
        fb_id after = {{0}};
        bool whole = false;
        uint32_t count = 0;
        while (!whole) count += list(net, 0, space, after, limit, &whole, &after);
        assert_int_equal(count, 30);
    }
    check_tree(net, 0, notes_of(space));
    check_value(net, 0, space, 7, "t", big);
    test_net_free(net);
}

static void batches_are_all_or_none(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = test_net_create_space(net, 0);
    for (uint32_t round = 0; round < 2; round++) {
        uint8_t bytes[2048];
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_write_u16(&w, 3);
        for (uint32_t n = 1; n <= 3; n++) {
            fb_write_u8(&w, FB_VERB_RECORD_PUT);
            /* The third must be absent; in the second round it is not. */
            put_args a = {space,          "notes", n == 2 ? 1 : n,     2,
                          n == 3 ? 2 : 0, NULL,    n == 2 ? "u" : "t", round == 0 ? "1" : "2"};
            write_put(&w, &a);
        }
        const test_reply *reply = test_net_answer(net, 0, FB_VERB_RECORD_BATCH, &w);
        assert_int_equal(reply->status, round == 0 ? FB_OK : FB_ERR_CONFLICT);
        if (round == 0) assert_int_equal(reply->len, 2 + 3 * 33);
        check_value(net, 0, space, 1, "t", "1");
        check_value(net, 0, space, 1, "u", "1");
        check_value(net, 0, space, 3, "t", "1");
    }
    check_tree(net, 0, notes_of(space));
    test_net_free(net);
}

static void real_sizes(fb_options *options)
{
    options->sizes = fb_options_default().sizes;
}

static void long_batches_are_answered_when_durable(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, real_sizes);
    fb_id space = test_net_create_space(net, 0);
    static uint8_t bytes[16384];
    for (uint32_t round = 0; round < 3; round++) {
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_write_u16(&w, 64);
        for (uint32_t n = 1; n <= 64; n++) {
            fb_write_u8(&w, FB_VERB_RECORD_PUT);
            put_args a = {space, "notes", 64 * round + n, 2, 0, NULL, "t", "1"};
            write_put(&w, &a);
        }
        test_net_pause_store(net, 0, true);
        uint64_t asked = test_net_ask(net, 0, FB_VERB_RECORD_BATCH, 0, fb_writer_span(&w));
        assert_false(test_net_reply(net, asked)->done);
        if (round == 1) {
            test_net_cancel(net, 0, asked);
            test_net_pause_store(net, 0, false);
            test_net_settle(net);
            continue;
        }
        test_net_pause_store(net, 0, false);
        test_net_settle(net);
        assert_true(test_net_reply(net, asked)->done);
        assert_int_equal(test_net_reply(net, asked)->status, FB_OK);
        assert_int_equal(test_net_reply(net, asked)->len, 2 + 64 * 33);
        check_value(net, 0, space, 64 * round + 64, "t", "1");
    }
    check_tree(net, 0, notes_of(space));
    test_net_free(net);
}

static void full_batches_replicate(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, real_sizes);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    static uint8_t bytes[65536];
    static char value[700];
    for (uint32_t round = 0; round < 6; round++) {
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        uint32_t count = 64 - round;
        memset(value, '1', sizeof value - 1);
        value[round % 2 == 0 ? 1 : sizeof value - 1] = 0;
        fb_write_u16(&w, (uint16_t)count);
        for (uint32_t n = 1; n <= count; n++) {
            fb_write_u8(&w, FB_VERB_RECORD_PUT);
            put_args a = {space, "notes", 30 * round + n, 2, 0, NULL, "t", value};
            write_put(&w, &a);
        }
        assert_int_equal(test_net_answer(net, round % 2, FB_VERB_RECORD_BATCH, &w)->status, FB_OK);
        check_value(net, 1 - round % 2, space, 30 * round + count, "t", value);
        check_equal(net, 2, notes_of(space));
    }
    test_net_free(net);
}

static uint32_t watched(const test_reply *reply)
{
    uint32_t changes = 0;
    fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
    while (fb_reader_left(&r) != 0 && !r.failed) {
        uint16_t count = fb_read_u16(&r);
        for (uint16_t i = 0; i < count; i++) {
            fb_read_bytes(&r, 16 + 16 + 16 + 1);
            fb_read_span16(&r);
        }
        fb_read_bytes(&r, 16);
        changes += count;
    }
    assert_true(fb_reader_done(&r));
    return changes;
}

typedef struct cursor {
    uint64_t sequence, incarnation;
} cursor;

static uint64_t watch_from(test_net *net, fb_id space, uint64_t sequence, uint64_t incarnation)
{
    uint8_t bytes[32];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u64(&w, sequence);
    fb_write_u64(&w, incarnation);
    uint64_t watch = test_net_ask(net, 0, FB_VERB_RECORD_WATCH, 0, fb_writer_span(&w));
    if (!test_net_reply(net, watch)->done) test_net_credit(net, 0, watch, 1 << 20);
    test_net_settle(net);
    return watch;
}

/* The cursor behind the last piece. */
static cursor watched_upto(const test_reply *reply)
{
    fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
    fb_read_bytes(&r, reply->len - 16);
    cursor at = {.sequence = fb_read_u64(&r)};
    at.incarnation = fb_read_u64(&r);
    return at;
}

/* FM-4.1-5 */
static void watches_see_what_is_durable(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = test_net_create_space(net, 0);
    put_ok(net, 0, space, 1, "t", "1");
    uint8_t bytes[32];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u64(&w, 0);
    fb_write_u64(&w, 0);
    uint64_t watch = test_net_ask(net, 0, FB_VERB_RECORD_WATCH, 0, fb_writer_span(&w));
    assert_int_equal(test_net_reply(net, watch)->pieces, 0); /* no credit yet */
    test_net_credit(net, 0, watch, 1 << 20);
    test_net_settle(net);
    /* Where it begins, and what there is. */
    assert_int_equal(test_net_reply(net, watch)->pieces, 2);
    assert_int_equal(watched(test_net_reply(net, watch)), 1);
    put_ok(net, 0, space, 2, "t", "1");
    assert_int_equal(test_net_reply(net, watch)->pieces, 3);
    test_net_cancel(net, 0, watch);
    put_ok(net, 0, space, 3, "t", "1");
    assert_int_equal(test_net_reply(net, watch)->pieces, 3);
    test_net_free(net);
}

static void cursors_outlive_a_restart(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = test_net_create_space(net, 0);
    put_ok(net, 0, space, 1, "t", "1");
    /* From what is new on: nothing is told, but where it stands. */
    uint64_t watch = watch_from(net, space, UINT64_MAX, 0);
    assert_int_equal(test_net_reply(net, watch)->pieces, 1);
    cursor at = watched_upto(test_net_reply(net, watch));
    test_net_restart(net, 0);
    put_ok(net, 0, space, 2, "t", "1");
    watch = watch_from(net, space, at.sequence, at.incarnation);
    assert_int_equal(watched(test_net_reply(net, watch)), 1);
    cursor after = watched_upto(test_net_reply(net, watch));
    assert_int_equal(after.sequence, at.sequence + 1);
    assert_int_not_equal(after.incarnation, at.incarnation);
    test_net_cancel(net, 0, watch);
    /* What was never given is refused and not waited for. */
    const uint64_t wrong[][2] = {{at.sequence, after.incarnation},
                                 {after.sequence, at.incarnation},
                                 {after.sequence + 1, after.incarnation},
                                 {UINT64_MAX - 1, after.incarnation},
                                 {0, at.incarnation}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        watch = watch_from(net, space, wrong[i][0], wrong[i][1]);
        assert_true(test_net_reply(net, watch)->done);
        assert_int_equal(test_net_reply(net, watch)->status, FB_ERR_CURSOR_UNKNOWN);
    }
    test_net_free(net);
}

static void short_changelog(fb_options *options)
{
    options->sizes.changelog = 4;
}

static void cursors_grow_old(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, short_changelog);
    fb_id space = test_net_create_space(net, 0);
    put_ok(net, 0, space, 1, "t", "1");
    uint64_t watch = watch_from(net, space, UINT64_MAX, 0);
    cursor at = watched_upto(test_net_reply(net, watch));
    test_net_cancel(net, 0, watch);
    /* Nothing is given to this one after its first piece: it will be too slow. */
    uint8_t bytes[32];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u64(&w, at.sequence);
    fb_write_u64(&w, at.incarnation);
    uint64_t slow = test_net_ask(net, 0, FB_VERB_RECORD_WATCH, 0, fb_writer_span(&w));
    test_net_credit(net, 0, slow, 280);
    test_net_settle(net);
    assert_int_equal(test_net_reply(net, slow)->pieces, 1);
    for (uint32_t i = 0; i < 4; i++) put_ok(net, 0, space, 2 + i, "t", "1");
    assert_int_equal(test_net_reply(net, slow)->pieces, 1);
    /* All four are kept, but not the place before them. */
    watch = watch_from(net, space, at.sequence, at.incarnation);
    assert_int_equal(test_net_reply(net, watch)->status, FB_ERR_CURSOR_OLD);
    watch = watch_from(net, space, 0, 0);
    assert_int_equal(test_net_reply(net, watch)->status, FB_ERR_CURSOR_OLD);
    put_ok(net, 0, space, 9, "t", "1");
    test_net_credit(net, 0, slow, 1 << 20);
    test_net_settle(net);
    assert_true(test_net_reply(net, slow)->done);
    assert_int_equal(test_net_reply(net, slow)->status, FB_ERR_CURSOR_OLD);
    /* A restart knows what is kept. */
    test_net_restart(net, 0);
    watch = watch_from(net, space, 0, 0);
    assert_int_equal(test_net_reply(net, watch)->status, FB_ERR_CURSOR_OLD);
    size_t kept = 0;
    fb_span key, value;
    for (size_t i = 0; test_net_stored(net, 0, i, &key, &value); i++) kept += key.p[0] == 'C';
    assert_int_equal(kept, 4);
    test_net_free(net);
}

/* FM-5.2-7, FI-2-13 */
static void two_nodes_replicate(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id space = test_net_create_space(net, 0);
    put_ok(net, 0, space, 1, "t", "1");
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    test_net_run(net, 10 * SECOND);
    check_value(net, 1, space, 1, "t", "1");
    /* Written here, at once there: no pause is needed. */
    put_ok(net, 0, space, 2, "t", "2");
    check_value(net, 1, space, 2, "t", "2");
    put_ok(net, 1, space, 2, "t", "3");
    check_value(net, 0, space, 2, "t", "3");
    check_equal(net, 2, notes_of(space));
    /* Apart, both write one field. */
    test_net_cut(net, 0, 1, true);
    put_ok(net, 0, space, 2, "t", "4");
    put_ok(net, 1, space, 2, "t", "5");
    put_ok(net, 1, space, 3, "t", "6");
    test_net_cut(net, 0, 1, false);
    test_net_run(net, 60 * SECOND);
    fb_span value;
    assert_int_equal(field_of(net, 0, space, 2, "t", &value), 2);
    assert_int_equal(field_of(net, 1, space, 2, "t", &value), 2);
    check_value(net, 0, space, 3, "t", "6");
    check_equal(net, 2, notes_of(space));
    check_equal(net, 2, fb_area_id(space, FB_AREA_SPACE, fb_span_of(NULL, 0)));
    /* A write that saw both settles it. */
    put_ok(net, 0, space, 2, "t", "7");
    assert_int_equal(field_of(net, 1, space, 2, "t", &value), 1);
    check_equal(net, 2, notes_of(space));
    test_net_free(net);
}

static void lives_are_chained(void **state)
{
    (void)state;
    test_net *net = test_net_new(3, NULL);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    test_net_join(net, 2, 0, space, FB_ROLE_WRITER);
    uint32_t n = 0;
    /* Node 2 is away while the others live many lives. */
    test_net_cut(net, 0, 2, true);
    test_net_cut(net, 1, 2, true);
    for (uint32_t life = 0; life < 20; life++) {
        put_ok(net, 0, space, 1 + n++ % 5, "t", "1");
        put_ok(net, 1, space, 1 + n++ % 5, "t", "2");
        put_ok(net, 0, space, 1 + n++ % 5, "u", "3");
        test_net_restart(net, life % 2);
        test_net_run(net, 40 * SECOND);
    }
    put_ok(net, 0, space, 6, "t", "4");
    put_ok(net, 2, space, 1, "t", "5");
    test_net_cut(net, 0, 2, false);
    test_net_cut(net, 1, 2, false);
    test_net_run(net, 200 * SECOND);
    check_equal(net, 3, notes_of(space));
    fb_area_info info;
    uint32_t index;
    assert_true(area_info(net, 2, notes_of(space), &info, &index));
    assert_int_equal(info.vector_count, 3); /* it does not grow with restarts */
    test_net_restart(net, 2);
    test_net_run(net, 40 * SECOND);
    check_equal(net, 3, notes_of(space));
    test_net_free(net);
}

/* FI-2-8 */
static void many_writes_converge(void **state)
{
    (void)state;
    test_net *net = test_net_new(3, NULL);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    test_net_join(net, 2, 0, space, FB_ROLE_WRITER);
    fb_seed seed = {5, 6};
    for (uint32_t k = 0; k < 400; k++) {
        uint32_t i = (uint32_t)fb_draw_below(seed, 1, k, 0, 3);
        uint32_t record = 1 + (uint32_t)fb_draw_below(seed, 2, k, 0, 120);
        char value[2] = {(char)('0' + k % 10), 0};
        put_ok(net, i, space, record, k % 3 == 0 ? "t" : "u", value);
        if (k % 50 == 20) test_net_cut(net, i, (i + 1) % 3, true);
        if (k % 50 == 45) {
            for (uint32_t a = 0; a < 3; a++) test_net_cut(net, a, (a + 1) % 3, false);
        }
        if (k % 90 == 60) test_net_restart(net, i);
        test_net_run(net, SECOND / 10);
        if (k % 90 == 60) test_net_run(net, 3 * SECOND);
    }
    test_net_run(net, 100 * SECOND);
    check_equal(net, 3, notes_of(space));
    test_net_free(net);
}

/* MP-6-14 */
static void readers_write_nothing(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_READER);
    put_ok(net, 0, space, 1, "t", "1");
    test_net_run(net, 10 * SECOND);
    check_value(net, 1, space, 1, "t", "1");
    put_args a = {space, "notes", 1, 2, 0, NULL, "t", "2"};
    assert_int_equal(put(net, 1, a)->status, FB_ERR_NOT_AUTHORISED);
    test_net_free(net);
}

static uint32_t count_stored(test_net *net, uint32_t i, uint8_t tag)
{
    uint32_t count = 0;
    fb_span key, value;
    for (size_t at = 0; test_net_stored(net, i, at, &key, &value); at++) count += key.p[0] == tag;
    return count;
}

static void delete_ok(test_net *net, uint32_t i, fb_id space, uint32_t record)
{
    static const uint8_t zero[16];
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    write_collection(&w, space, "notes");
    fb_write_id(&w, test_net_record_id(record));
    fb_write_u8(&w, 0);
    fb_write_bytes(&w, zero, 16);
    assert_int_equal(test_net_answer(net, i, FB_VERB_RECORD_DELETE, &w)->status, FB_OK);
}

static void long_values_come_and_go(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    static char big[1502];
    memset(big, '7', sizeof big - 1);
    for (uint32_t n = 1; n <= 12; n++) put_ok(net, n % 2, space, 1 + n / 2, "t", big);
    test_net_run(net, SECOND);
    check_value(net, 0, space, 6, "t", big);
    check_value(net, 1, space, 6, "t", big);
    assert_int_equal(count_stored(net, 0, FB_TAG_FIELD), 7);
    assert_int_equal(count_stored(net, 1, FB_TAG_FIELD), 7);
    put_ok(net, 0, space, 1, "t", "1");
    for (uint32_t n = 2; n <= 7; n++) delete_ok(net, n % 2, space, n);
    test_net_run(net, SECOND);
    assert_int_equal(count_stored(net, 0, FB_TAG_FIELD), 0);
    assert_int_equal(count_stored(net, 1, FB_TAG_FIELD), 0);
    check_equal(net, 2, notes_of(space));
    /* Longer than a batch of these nodes. */
    static char huge[9001];
    memset(huge, '7', sizeof huge - 1);
    put_args a = {space, "notes", 1, 2, 0, NULL, "t", huge};
    assert_int_equal(put(net, 0, a)->status, FB_ERR_LIMIT);
    check_value(net, 0, space, 1, "t", "1");
    test_net_free(net);
}

static void a_full_table_refuses_an_area(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = test_net_create_space(net, 0);
    uint32_t refused = 0;
    for (uint32_t n = 0; n < 12; n++) {
        char name[3] = {'c', (char)('a' + n), 0};
        put_args a = {space, name, 1, 2, 0, NULL, "t", "1"};
        fb_status status = put(net, 0, a)->status;
        if (status != FB_OK) {
            assert_int_equal(status, FB_ERR_LIMIT);
            refused++;
        }
    }
    assert_int_equal(refused, 12 - 7); /* the space's own area has a place too */
    test_net_free(net);
}

/* What a relay changed is refused, counted and asked for again; the author's own copy heals it. */
static void changed_batches_are_refused(void **state)
{
    (void)state;
    test_net *net = test_net_new(3, NULL);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    test_net_join(net, 2, 0, space, FB_ROLE_WRITER);
    put_ok(net, 2, space, 1, "t", "1");
    test_net_run(net, 10 * SECOND);
    for (uint32_t i = 0; i < 2; i++) {
        test_net_cut(net, 0, 1, true);
        test_net_cut(net, 1, 2, true);
        put_ok(net, 2, space, 2 + i, "t", "1");
        test_net_run(net, SECOND);
        /* Node 0 has it and would give it on; a byte near the end of its copy changes. */
        fb_span key, value, found_key = {NULL, 0};
        uint8_t copy_key[64], copy[4096];
        size_t len = 0;
        for (size_t at = 0; test_net_stored(net, 0, at, &key, &value); at++) {
            fb_id author = fb_node_self(test_net_node(net, 2));
            if (key.p[0] != FB_TAG_BATCH || memcmp(key.p + 5, author.b, 16) != 0) continue;
            memcpy(copy_key, key.p, key.len);
            found_key = fb_span_of(copy_key, key.len);
            memcpy(copy, value.p, value.len);
            len = value.len;
        }
        assert_true(found_key.len != 0);
        copy[i == 0 ? len - 1 : 40] ^= 1;
        test_net_store_put(net, 0, found_key, fb_span_of(copy, len));
        test_net_clear_facts(net);
        test_net_cut(net, 0, 1, false);
        test_net_run(net, 40 * SECOND);
        fb_span v;
        assert_true(test_net_facts(net, 1, FB_FACT_BATCH_REFUSED) > 0);
        assert_int_equal(field_of(net, 1, space, 2 + i, "t", &v), 0);
        test_net_cut(net, 1, 2, false);
        test_net_run(net, 400 * SECOND);
        check_value(net, 1, space, 2 + i, "t", "1");
        check_equal(net, 3, notes_of(space));
    }
    test_net_free(net);
}

static void a_failed_write_set_is_no_gap(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    for (uint32_t k = 0; k < 12; k++) {
        put_ok(net, k % 2, space, 1 + k % 3, "t", "1");
        test_net_fail_write(net, k % 2);
        put_args a = {space, "notes", 1 + k % 3, 2, 0, NULL, "u", "2"};
        static uint8_t bytes[512];
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        write_put(&w, &a);
        uint64_t asked = test_net_ask(net, k % 2, FB_VERB_RECORD_PUT, 0, fb_writer_span(&w));
        assert_true(test_net_reply(net, asked)->done);
        assert_int_equal(test_net_reply(net, asked)->status, FB_ERR_AGAIN);
        test_net_run(net, 40 * SECOND);
    }
    test_net_run(net, 40 * SECOND);
    fb_span v;
    assert_int_equal(field_of(net, 0, space, 1, "u", &v), 0);
    check_equal(net, 2, notes_of(space));
    test_net_free(net);
}

/* Whole frames from a carrier that authenticates peers itself carry the same. */
static void carriers_replicate_too(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    test_net_cut(net, 0, 1, true);
    for (uint32_t k = 0; k < 30; k++) put_ok(net, k % 2, space, 1 + k % 7, "t", "1");
    test_net_carrier(net, 0, 1, space);
    test_net_run(net, 60 * SECOND);
    check_equal(net, 2, notes_of(space));
    put_ok(net, 0, space, 1, "u", "2");
    check_value(net, 1, space, 1, "u", "2");
    test_net_free(net);
}

/* A long vector is offered in several frames; another area's turn in between begins at its start.
 */
static void an_offer_begins_at_its_start(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    const char *names[] = {"first", "second"};
    fb_node *node = test_net_node(net, 0);
    uint32_t area[2], link = 0;
    for (uint32_t i = 0; i < 2; i++) {
        put(net, 0, (put_args){.space = space, .collection = names[i], .field = "a", .value = "1"});
        area[i] = fb_area_find(node, fb_area_id(space, FB_AREA_COLLECTION, fb_span_text(names[i])));
        assert_int_not_equal(area[i], FB_NONE);
        for (uint32_t n = 1; n <= 104; n++) {
            uint32_t entry = fb_vector_add(node, area[i], test_net_record_id(n), 7);
            assert_int_not_equal(entry, FB_NONE);
            fb_vector *v = fb_vector_get(node, entry);
            v->batch = v->durable_batch = v->last_seq = v->durable_seq = 1;
        }
    }
    assert_true(area[0] < area[1]);
    while (fb_link_at(node, link)->state != FB_LINK_OPEN) link++;
    const fb_channel *vectors = node->controls[FB_CONTROL_VECTORS];
    fb_link_vectors *owed = &node->database->links[link];
    fb_frame_out frame;
    while (vectors->peek(node, link, &frame)) vectors->sent(node, link);
    const uint32_t turns[] = {area[1], area[0]};
    for (uint32_t i = 0; i < 2; i++) {
        owed->offer[turns[i] / 8] |= (uint8_t)(1u << turns[i] % 8);
        assert_true(vectors->peek(node, link, &frame));
        fb_reader r = fb_reader_of(frame.body);
        assert_true(fb_id_equal(fb_read_id(&r), fb_area_get(node, turns[i])->id));
        (void)fb_read_u8(&r);
        (void)fb_read_span16(&r);
        assert_in_range(fb_read_u16(&r), 90, 104); /* as many as fit; a few stay for the next */
        vectors->sent(node, link);
    }
    test_net_free(net);
}

static void small_pieces(fb_options *options)
{
    options->sizes.call_bytes = 1024;
}

/* Where a batch is small, the lives that its epoch would name leave room for the change. */
static void a_long_epoch_leaves_room_for_changes(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, small_pieces);
    fb_id space = test_net_create_space(net, 0);
    fb_node *node = test_net_node(net, 0);
    uint32_t own = fb_area_own(node, fb_space_find(node, space));
    for (uint32_t n = 1; n <= 60; n++) {
        uint32_t entry = fb_vector_add(node, own, test_net_record_id(n), 7);
        fb_vector *v = fb_vector_get(node, entry);
        v->batch = v->durable_batch = v->last_seq = v->durable_seq = 1;
        put_ok(net, 0, space, n, "t", "\"some text\"");
    }
    fb_area_info info;
    uint32_t index;
    assert_true(area_info(net, 0, notes_of(space), &info, &index));
    assert_int_equal(info.records, 60);
    test_net_free(net);
}

#define CLOSING 100u /* an event of this test's own */

/* A life that forks goes on and is taken up again, many times within one write set. */
static fb_status close_often(fb_node *node, const fb_event *event)
{
    uint32_t entry = (uint32_t)event->a;
    for (uint32_t i = 0; i < 60; i++) {
        fb_vector_get(node, entry)->closed = false;
        fb_vector_put(node, entry);
        fb_vector_close(node, entry);
    }
    return FB_OK;
}

static void few_heads(fb_options *options)
{
    options->sizes.vector_entries = 4;
}

static void lives_may_close_often(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, few_heads);
    fb_id space = test_net_create_space(net, 0);
    put_ok(net, 0, space, 1, "t", "1");
    fb_node *node = test_net_node(net, 0);
    uint32_t area = fb_area_find(node, notes_of(space));
    uint32_t entry = fb_vector_add(node, area, test_net_record_id(1), 7);
    fb_vector_get(node, entry)->batch = 1;
    fb_event_register(node, (fb_event_kind)CLOSING, close_often);
    assert_int_equal(test_net_event(net, 0, (fb_event){.kind = CLOSING, .a = entry}), FB_OK);
    test_net_settle(net);
    assert_int_equal(fb_area_get(node, area)->entry_count, 1);
    put_ok(net, 0, space, 2, "t", "1");
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_writes_and_reads),
        cmocka_unit_test(deleted_records_are_gone),
        cmocka_unit_test(lists_go_through_everything),
        cmocka_unit_test(batches_are_all_or_none),
        cmocka_unit_test(long_batches_are_answered_when_durable),
        cmocka_unit_test(full_batches_replicate),
        cmocka_unit_test(watches_see_what_is_durable),
        cmocka_unit_test(cursors_outlive_a_restart),
        cmocka_unit_test(cursors_grow_old),
        cmocka_unit_test(two_nodes_replicate),
        cmocka_unit_test(lives_are_chained),
        cmocka_unit_test(many_writes_converge),
        cmocka_unit_test(readers_write_nothing),
        cmocka_unit_test(long_values_come_and_go),
        cmocka_unit_test(a_full_table_refuses_an_area),
        cmocka_unit_test(changed_batches_are_refused),
        cmocka_unit_test(a_failed_write_set_is_no_gap),
        cmocka_unit_test(carriers_replicate_too),
        cmocka_unit_test(an_offer_begins_at_its_start),
        cmocka_unit_test(a_long_epoch_leaves_room_for_changes),
        cmocka_unit_test(lives_may_close_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
