/* SPDX-License-Identifier: Apache-2.0 */
/* Records as documents: whatever waits, is kept or was lost on the way, reads answer what one plain
 * store with the same write sets would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "io/documents/job.h"
#include "io/documents/keeping.h"
#include "io/documents/reading.h"
#include "protocol/base/draw.h"
#include "protocol/database/database.h"
#include "protocol/database/keys.h"
#include "protocol/database/record/record.h"
#include "protocol/store/keys.h"
#include "protocol/store/writeset.h"

#define SPACE 7u
#define NOTES 1u /* a collection */
#define OWN   2u /* the space's own statements: never documents */
#define TASKS 3u /* a second collection */
#define IDS   6u

/* A plain store: entries in the order of their keys. */

typedef struct entry {
    uint8_t key[FB_KEY_BYTES_MAX];
    size_t key_len;
    uint8_t *value;
    size_t len;
} entry;

typedef struct plain {
    entry *entries;
    size_t count, cap;
} plain;

static size_t place_of(const plain *store, fb_span key, bool *there)
{
    size_t at = 0;
    *there = false;
    while (at < store->count) {
        int order =
            fb_span_compare(fb_span_of(store->entries[at].key, store->entries[at].key_len), key);
        *there = order == 0;
        if (order >= 0) break;
        at++;
    }
    return at;
}

static void plain_delete(plain *store, fb_span key)
{
    bool there;
    size_t at = place_of(store, key, &there);
    if (!there) return;
    free(store->entries[at].value);
    memmove(&store->entries[at], &store->entries[at + 1],
            (store->count - at - 1) * sizeof *store->entries);
    store->count--;
}

static void plain_put(plain *store, fb_span key, fb_span value)
{
    bool there;
    plain_delete(store, key);
    size_t at = place_of(store, key, &there);
    if (store->count == store->cap) {
        store->cap = store->cap == 0 ? 64 : 2 * store->cap;
        store->entries = realloc(store->entries, store->cap * sizeof *store->entries);
    }
    memmove(&store->entries[at + 1], &store->entries[at],
            (store->count - at) * sizeof *store->entries);
    entry *e = &store->entries[at];
    memcpy(e->key, key.p, key.len);
    e->key_len = key.len;
    e->len = value.len;
    e->value = malloc(value.len + 1);
    if (value.len != 0) memcpy(e->value, value.p, value.len);
    store->count++;
}

static void plain_apply(plain *store, fb_span set)
{
    fb_reader r = fb_reader_of(set);
    while (fb_reader_left(&r) > 0) {
        fb_write_entry e = fb_write_entry_next(&r);
        assert_false(r.failed);
        if (e.kind == FB_WRITE_PUT) plain_put(store, e.key, e.value);
        if (e.kind == FB_WRITE_DELETE) plain_delete(store, e.key);
    }
}

static void plain_free(plain *store)
{
    for (size_t i = 0; i < store->count; i++) free(store->entries[i].value);
    free(store->entries);
    *store = (plain){NULL, 0, 0};
}

/* Answers a read set as readset.h says, behind the incarnation. */
static fb_span plain_read(const plain *store, fb_span read_set, uint8_t *out, size_t cap)
{
    fb_writer w = fb_writer_of(out, cap);
    fb_reader r = fb_reader_of(read_set);
    unsigned items = fb_read_u16(&r);
    for (unsigned i = 0; i < items; i++) {
        fb_read_item item = fb_read_item_next(&r);
        bool descending = (item.flags & FB_READ_DESCENDING) != 0, whole = true;
        size_t head = w.at, bytes = 0;
        uint32_t count = 0;
        fb_write_u8(&w, 0);
        fb_write_u32(&w, 0);
        for (size_t k = 0; k < store->count; k++) {
            const entry *e = &store->entries[descending ? store->count - 1 - k : k];
            fb_span key = fb_span_of(e->key, e->key_len);
            bool inside = item.kind == FB_READ_KEY
                              ? fb_span_equal(key, item.low)
                              : fb_span_compare(key, item.low) >= 0 &&
                                    (item.high.len == 0 || fb_span_compare(key, item.high) < 0);
            if (!inside) continue;
            fb_span value = fb_span_of(e->value, e->len);
            if (value.len > item.value_bytes) value.len = item.value_bytes;
            bytes += 2 + key.len + 8 + value.len;
            if (count >= item.items || (count > 0 && bytes > item.bytes)) {
                whole = false;
                break;
            }
            const fb_read_entry given = {key, (uint32_t)e->len, value};
            fb_read_entry_write(&w, &given);
            count++;
        }
        assert_false(w.failed);
        w.p[head] = whole ? 1 : 0;
        fb_store_be(w.p + head + 1, count, 4);
    }
    return fb_writer_span(&w);
}

/* The local store as the split sees it. */

static int look(void *user, fb_span key, fb_span *value)
{
    const plain *store = user;
    bool there;
    size_t at = place_of(store, key, &there);
    *value =
        there ? fb_span_of(store->entries[at].value, store->entries[at].len) : (fb_span){NULL, 0};
    return 0;
}

static int scan(void *user, fb_span low, fb_span high,
                void (*each)(void *each_user, fb_span key, fb_span value), void *each_user)
{
    const plain *store = user;
    for (size_t i = 0; i < store->count; i++) {
        const entry *e = &store->entries[i];
        fb_span key = fb_span_of(e->key, e->key_len);
        if (fb_span_compare(key, low) < 0 || fb_span_compare(key, high) >= 0) continue;
        each(each_user, key, fb_span_of(e->value, e->len));
    }
    return 0;
}

/* A document store in memory: one document is an entry, its key the collection and the id. */

struct fb_documents {
    plain kept;
    bool away; /* no call succeeds */
};

static fb_span document_key(uint8_t *out, const char *collection, fb_id id)
{
    size_t len = strlen(collection);
    memcpy(out, collection, len + 1);
    memcpy(out + len + 1, id.b, sizeof id.b);
    return fb_span_of(out, len + 1 + sizeof id.b);
}

static fb_status fake_put(fb_documents *documents, const fb_document *to_put, size_t count,
                          fb_document_outcome *outcomes)
{
    for (size_t i = 0; i < count; i++) {
        if (documents->away && i > count / 2) return FB_ERR_UNREACHABLE;
        uint8_t key[FB_KEY_BYTES_MAX];
        fb_span named = document_key(key, to_put[i].collection, to_put[i].id);
        outcomes[i] = FB_DOCUMENT_KEPT;
        if (to_put[i].record.len == 0) {
            plain_delete(&documents->kept, named);
            continue;
        }
        static uint8_t bytes[1 << 20];
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_write_span32(&w, to_put[i].record);
        fb_write_u32(&w, (uint32_t)to_put[i].value_count);
        for (size_t k = 0; k < to_put[i].value_count; k++) {
            fb_write_span16(&w, to_put[i].values[k].column);
            fb_write_bytes(&w, to_put[i].values[k].dot, FB_DOT_BYTES);
            fb_write_span32(&w, to_put[i].values[k].value);
        }
        plain_put(&documents->kept, named, fb_writer_span(&w));
    }
    return documents->away ? FB_ERR_UNREACHABLE : FB_OK;
}

static bool give(const entry *e, const char *collection, fb_documents_found found, void *user)
{
    fb_document document = {.collection = collection};
    fb_document_value values[16];
    memcpy(document.id.b, e->key + e->key_len - 16, 16);
    fb_reader r = fb_reader_of(fb_span_of(e->value, e->len));
    document.record = fb_read_span32(&r);
    document.value_count = fb_read_u32(&r);
    assert_true(document.value_count <= 16);
    for (size_t k = 0; k < document.value_count; k++) {
        values[k].column = fb_read_span16(&r);
        memcpy(values[k].dot, fb_read_bytes(&r, FB_DOT_BYTES).p, FB_DOT_BYTES);
        values[k].value = fb_read_span32(&r);
    }
    assert_true(fb_reader_done(&r));
    document.values = values;
    return found(user, &document);
}

static fb_status fake_get(fb_documents *documents, const char *collection, const fb_id *ids,
                          size_t count, fb_documents_found found, void *user, char *why,
                          size_t why_len)
{
    (void)why;
    (void)why_len;
    if (documents->away) return FB_ERR_UNREACHABLE;
    for (size_t i = 0; i < count; i++) {
        uint8_t key[FB_KEY_BYTES_MAX];
        bool there;
        size_t at = place_of(&documents->kept, document_key(key, collection, ids[i]), &there);
        if (there) give(&documents->kept.entries[at], collection, found, user);
    }
    return FB_OK;
}

static fb_status fake_range(fb_documents *documents, const char *collection, fb_id low, fb_id high,
                            bool descending, uint32_t limit, fb_documents_found found, void *user,
                            char *why, size_t why_len)
{
    (void)why;
    (void)why_len;
    if (documents->away) return FB_ERR_UNREACHABLE;
    size_t name = strlen(collection) + 1;
    for (size_t i = 0; i < documents->kept.count && limit > 0; i++) {
        const entry *e = &documents->kept.entries[descending ? documents->kept.count - 1 - i : i];
        fb_id id;
        if (e->key_len != name + 16 || memcmp(e->key, collection, name) != 0) continue;
        memcpy(id.b, e->key + name, 16);
        if (fb_id_compare(id, low) < 0) continue;
        if (!fb_id_is_zero(high) && fb_id_compare(id, high) >= 0) continue;
        limit--;
        if (!give(e, collection, found, user)) break;
    }
    return FB_OK;
}

static const fb_documents_ops fake = {
    .interface = FB_DOCUMENTS_INTERFACE, .get = fake_get, .range = fake_range};

/* The world of a test. */

typedef struct stores {
    uint64_t seed, drawn;
    plain whole; /* what a plain store would hold */
    plain local;
    fb_split split;
    fb_documents documents;
    fb_job *jobs[64];
    size_t job_count;
    uint64_t w;
    uint8_t columns[4][IDS]; /* by area: which apart values the record has, a bit for each */
} stores;

static uint64_t draw(stores *world, uint64_t below)
{
    return fb_draw_below((fb_seed){world->seed, 0}, 1, 1, world->drawn++, below);
}

static fb_id id_of(uint64_t n)
{
    fb_id id = {{0x01, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80}};
    id.b[15] = (uint8_t)n;
    return id;
}

static void dot_of(uint8_t out[FB_DOT_BYTES], uint64_t seq)
{
    memset(out, 0, FB_DOT_BYTES);
    out[0] = out[23] = 1; /* a node and its life */
    fb_store_be(out + 24, seq, 8);
}

static const char *const names[] = {"alpha", "beta", "gamma"};

/* A record as the core stores one: alive with some values apart, or a deletion. */
static fb_span record_make(uint8_t *out, size_t cap, bool alive, uint8_t columns, uint64_t seq,
                           const uint64_t *seqs)
{
    uint8_t state[2048], dot[FB_DOT_BYTES];
    fb_writer s = fb_writer_of(state, sizeof state);
    dot_of(dot, seq);
    fb_write_u16(&s, alive ? 1 : 0);
    if (alive) fb_write_bytes(&s, dot, sizeof dot);
    if (alive) fb_write_u64(&s, seq);
    fb_write_u16(&s, 0);
    fb_write_u16(&s, alive ? 0 : 1);
    if (!alive) fb_write_bytes(&s, dot, sizeof dot);
    uint16_t count = 0;
    for (unsigned i = 0; i < 3; i++) count += columns >> i & 1u;
    fb_write_u16(&s, count);
    fb_writer w = fb_writer_of(out, cap);
    uint8_t zeros[16] = {0};
    for (unsigned i = 0; i < 3; i++) {
        if ((columns >> i & 1u) == 0) continue;
        dot_of(dot, seqs[i]);
        fb_write_span16(&s, fb_span_text(names[i]));
        fb_write_u16(&s, 1);
        fb_write_bytes(&s, dot, sizeof dot);
        fb_write_u64(&s, seqs[i]);
        fb_write_bytes(&s, zeros, 16);
        fb_write_u16(&s, 0);
    }
    fb_write_u8(&w, FB_RECORD_VERSION);
    fb_write_bytes(&w, zeros, 16);
    fb_write_u16(&w, count);
    fb_write_span32(&w, fb_writer_span(&s));
    for (unsigned i = 0; i < count; i++) {
        fb_write_u8(&w, 2);
        fb_write_u32(&w, 200);
    }
    assert_false(s.failed || w.failed);
    return fb_writer_span(&w);
}

static void set_entry(fb_writer *w, fb_write_kind kind, fb_span key, fb_span value)
{
    size_t from = w->at;
    fb_write_u8(w, (uint8_t)kind);
    fb_write_u8(w, 0);
    fb_write_u16(w, (uint16_t)key.len);
    fb_write_u32(w, (uint32_t)value.len);
    fb_write_span(w, key);
    fb_write_span(w, value);
    while (w->at < from + fb_write_entry_bytes(key.len, value.len)) fb_write_u8(w, 0);
}

/* The sequence that a column of a record was last written with. */
static uint64_t seqs[4][IDS][3];

static void write_record(stores *world, fb_writer *set, uint32_t area, uint64_t n)
{
    uint8_t key[FB_FIELD_KEY_BYTES_MAX], dot[FB_DOT_BYTES], bytes[4096], value[200];
    uint8_t *columns = &world->columns[area][n], before = *columns;
    fb_id id = id_of(n);
    uint64_t what = draw(world, 8);
    bool gone = what == 0, alive = what > 1;
    uint8_t after = alive ? (uint8_t)draw(world, 8) : 0, written = (uint8_t)draw(world, 8);
    for (unsigned i = 0; i < 3; i++) {
        bool had = (before >> i & 1u) != 0, has = (after >> i & 1u) != 0;
        bool again = has && (!had || (written >> i & 1u) != 0);
        if (had && (!has || again)) {
            dot_of(dot, seqs[area][n][i]);
            set_entry(set, FB_WRITE_DELETE,
                      fb_key_field(key, area, id, fb_span_text(names[i]), dot), (fb_span){NULL, 0});
        }
        if (!again) continue;
        seqs[area][n][i] = world->w;
        dot_of(dot, world->w);
        memset(value, (int)('a' + draw(world, 26)), sizeof value);
        value[0] = value[sizeof value - 1] = '"';
        set_entry(set, FB_WRITE_PUT, fb_key_field(key, area, id, fb_span_text(names[i]), dot),
                  fb_span_of(value, sizeof value));
    }
    *columns = after;
    fb_span named = fb_key_record(key, area, id);
    if (gone) {
        set_entry(set, FB_WRITE_DELETE, named, (fb_span){NULL, 0});
    } else {
        set_entry(set, FB_WRITE_PUT, named,
                  record_make(bytes, sizeof bytes, alive, after, world->w, seqs[area][n]));
    }
}

static void apply_set(stores *world, fb_span set)
{
    fb_room room = {.used = 0};
    fb_span local;
    fb_split_record *records;
    size_t count;
    assert_int_equal(
        fb_split_write(&world->split, 9, world->w, set, &room, &local, &records, &count), 0);
    plain_apply(&world->whole, set);
    plain_apply(&world->local, local);
    fb_job *job;
    assert_int_equal(fb_job_make(&world->split, 9, world->w, records, count, &job), 0);
    assert_true(world->job_count < 64);
    world->jobs[world->job_count++] = job;
    fb_room_free(&room);
}

static void write_some(stores *world)
{
    static uint8_t bytes[65536];
    fb_writer set = fb_writer_of(bytes, sizeof bytes);
    bool done[4][IDS] = {{false}};
    world->w++;
    for (uint64_t left = 1 + draw(world, 4); left > 0; left--) {
        uint32_t area = 1 + (uint32_t)draw(world, 3);
        uint64_t n = draw(world, IDS);
        if (done[area][n]) continue;
        done[area][n] = true;
        write_record(world, &set, area, n);
    }
    set_entry(&set, FB_WRITE_PUT, fb_span_text("Cx"), fb_span_text("log"));
    apply_set(world, fb_writer_span(&set));
}

typedef struct current {
    const fb_document *wanted;
    fb_room *room;
    fb_document now;
    bool there;
} current;

static bool take_current(void *user, const fb_document *document)
{
    current *c = user;
    fb_document_value *values =
        fb_room_take(c->room, document->value_count * sizeof *document->values);
    for (size_t i = 0; i < document->value_count; i++) {
        values[i] = document->values[i];
        values[i].column = fb_room_copy(c->room, values[i].column);
        values[i].value = fb_room_copy(c->room, values[i].value);
    }
    c->now = *document;
    c->now.values = values;
    c->there = true;
    return true;
}

/* The oldest job, as the worker does it. */
static void carry_out(stores *world)
{
    if (world->job_count == 0) return;
    fb_job *job = world->jobs[0];
    fb_room room = {.used = 0};
    char why[64];
    fb_document *documents = fb_room_take(&room, job->record_count * sizeof *documents);
    fb_document_outcome *outcomes = fb_room_take(&room, job->record_count * sizeof *outcomes);
    for (size_t i = 0; i < job->record_count; i++) {
        fb_job_record *record = &job->records[i];
        current c = {.room = &room};
        if (fb_job_record_needs_document(record)) {
            fake_get(&world->documents, record->collection, &record->id, 1, take_current, &c, why,
                     sizeof why);
            /* What is not in the redo entries was kept before. */
            assert_true(c.there);
        }
        fb_job_compose(record, c.there ? &c.now : NULL, &room, &documents[i]);
        fb_job_show(record, INT64_MAX, &room, &documents[i]);
    }
    world->documents.away = draw(world, 4) == 0;
    fb_status status = fake_put(&world->documents, documents, job->record_count, outcomes);
    world->documents.away = false;
    if (status == FB_OK) {
        fb_span set;
        for (size_t i = 0; i < job->record_count; i++) job->records[i].outcome = outcomes[i];
        assert_int_equal(fb_job_served(&world->split, job, &room, &set), 0);
        /* A crash before this set leaves redo entries that are carried out again. */
        if (draw(world, 4) != 0) plain_apply(&world->local, set);
        fb_job_free(job);
        world->job_count--;
        memmove(world->jobs, world->jobs + 1, world->job_count * sizeof *world->jobs);
    }
    fb_room_free(&room);
}

/* The process ends: jobs are lost, redo entries are not. */
static void crash(stores *world)
{
    for (size_t i = 0; i < world->job_count; i++) fb_job_free(world->jobs[i]);
    world->job_count = 0;
    fb_split_store store = world->split.store;
    fb_split_free(&world->split);
    world->split = (fb_split){.store = store};
    fb_job *found;
    assert_int_equal(fb_job_found(&world->split, &found), 0);
    if (found != NULL) world->jobs[world->job_count++] = found;
}

static void ask_something(stores *world, fb_writer *w)
{
    uint8_t low[FB_FIELD_KEY_BYTES_MAX], high[FB_FIELD_KEY_BYTES_MAX], dot[FB_DOT_BYTES];
    uint32_t area = 1 + (uint32_t)draw(world, 3);
    uint64_t n = draw(world, IDS), kind = draw(world, 4);
    fb_read_item item = {.kind = FB_READ_KEY, .value_bytes = 65536, .items = 1, .bytes = 1 << 20};
    if (draw(world, 4) == 0) item.value_bytes = (uint32_t)draw(world, 40);
    if (kind == 0) {
        item.low = fb_key_record(low, area, id_of(n));
    } else if (kind == 1) {
        unsigned column = (unsigned)draw(world, 3);
        dot_of(dot, seqs[area][n][column]);
        item.low = fb_key_field(low, area, id_of(n), fb_span_text(names[column]), dot);
        /* A value that its record does not name is nobody's any more. */
        if ((world->columns[area][n] >> column & 1u) == 0) item.low = fb_span_text("Cx");
    } else {
        item.kind = FB_READ_RANGE;
        item.flags = draw(world, 2) == 0 ? FB_READ_DESCENDING : 0;
        item.items = 1 + (uint32_t)draw(world, IDS + 1);
        item.bytes = draw(world, 2) == 0 ? 400 : 1 << 20;
        item.low = fb_key_record(low, area, id_of(n));
        if (draw(world, 2) == 0) low[item.low.len++] = 0;
        if (draw(world, 3) == 0) item.low.len = 5;
        item.high = fb_key_record(high, area, id_of(n + 1 + draw(world, IDS)));
        if (draw(world, 2) == 0) item.high = fb_key_area(high, area + 1);
        high[0] = FB_TAG_RECORD;
    }
    fb_read_item_write(w, &item);
}

/* The next entry that is no empty record: one stands where a record was deleted (split.h). */
static bool next_entry(fb_reader *r, uint32_t *left, fb_read_entry *out)
{
    while (*left > 0) {
        --*left;
        *out = fb_read_entry_next(r);
        if (out->key.p[0] != FB_TAG_RECORD || out->value_len != FB_RECORD_EMPTY_BYTES) return true;
    }
    return false;
}

/* The two answers are alike; a range may have been cut earlier, but never before its first. */
static void compare(fb_span read_set, fb_span wanted, fb_span got)
{
    fb_reader asked = fb_reader_of(read_set), a = fb_reader_of(wanted), b = fb_reader_of(got);
    unsigned items = fb_read_u16(&asked);
    fb_read_u64(&b);
    for (unsigned i = 0; i < items; i++) {
        fb_read_item item = fb_read_item_next(&asked);
        bool whole = fb_read_u8(&a) == 1, whole_got = fb_read_u8(&b) == 1;
        uint32_t count = fb_read_u32(&a), count_got = fb_read_u32(&b);
        assert_true(count_got > 0 || count == 0);
        bool all = item.kind == FB_READ_KEY || whole_got;
        if (whole_got) assert_true(whole);
        fb_read_entry e, f = {0};
        bool any = next_entry(&b, &count_got, &f);
        for (uint32_t k = 0; k < count; k++) {
            e = fb_read_entry_next(&a);
            assert_true(any || !all);
            if (!any) continue;
            assert_true(fb_span_equal(e.key, f.key));
            assert_int_equal(e.value_len, f.value_len);
            assert_true(fb_span_equal(e.value, f.value));
            any = next_entry(&b, &count_got, &f);
        }
        assert_false(any);
    }
    assert_true(fb_reader_done(&a) && fb_reader_done(&b));
}

static void read_something(stores *world)
{
    static uint8_t bytes[4096], wanted[1 << 20], local[1 << 20];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    unsigned items = 1 + (unsigned)draw(world, 4);
    fb_write_u16(&w, (uint16_t)items);
    for (unsigned i = 0; i < items; i++) ask_something(world, &w);
    fb_span read_set = fb_writer_span(&w), answer;
    fb_reading *reading;
    bool needed;
    char why[64];
    assert_int_equal(fb_reading_needed(&world->split, read_set, &needed), 0);
    assert_int_equal(fb_reading_begin(&world->split, read_set,
                                      plain_read(&world->local, read_set, local, sizeof local),
                                      &reading),
                     0);
    world->documents.away = true;
    fb_status status = fb_reading_end(reading, &fake, &world->documents, &answer, why, sizeof why);
    world->documents.away = false;
    if (status != FB_OK) {
        assert_int_equal(status, FB_ERR_UNREACHABLE);
        assert_true(needed);
        assert_int_equal(
            fb_reading_end(reading, &fake, &world->documents, &answer, why, sizeof why), FB_OK);
    }
    compare(read_set, plain_read(&world->whole, read_set, wanted, sizeof wanted), answer);
    fb_reading_free(reading);
}

static void put_area(fb_writer *set, uint32_t area, fb_area_kind kind, const char *name)
{
    uint8_t key[FB_AREA_KEY_BYTES], value[64];
    fb_writer v = fb_writer_of(value, sizeof value);
    fb_write_u8(&v, 1);
    fb_write_u32(&v, SPACE);
    fb_write_u8(&v, (uint8_t)kind);
    fb_write_span16(&v, fb_span_text(name));
    set_entry(set, FB_WRITE_PUT, fb_key_area(key, area), fb_writer_span(&v));
}

static void begin(stores *world, uint64_t seed)
{
    uint8_t bytes[1024], space[17] = {1};
    *world = (stores){.seed = seed};
    memset(seqs, 0, sizeof seqs);
    world->split.store = (fb_split_store){look, scan, &world->local};
    fb_writer set = fb_writer_of(bytes, sizeof bytes);
    static const uint8_t space_key[] = {FB_TAG_SPACE, 0, 0, 0, SPACE, 0};
    set_entry(&set, FB_WRITE_PUT, fb_span_of(space_key, sizeof space_key),
              fb_span_of(space, sizeof space));
    put_area(&set, NOTES, FB_AREA_COLLECTION, "notes");
    put_area(&set, OWN, FB_AREA_SPACE, "");
    put_area(&set, TASKS, FB_AREA_COLLECTION, "tasks");
    world->w++;
    apply_set(world, fb_writer_span(&set));
}

static void end(stores *world)
{
    for (size_t i = 0; i < world->job_count; i++) fb_job_free(world->jobs[i]);
    fb_split_free(&world->split);
    plain_free(&world->whole);
    plain_free(&world->local);
    plain_free(&world->documents.kept);
}

static size_t redo_count(const plain *local)
{
    size_t count = 0;
    for (size_t i = 0; i < local->count; i++) count += local->entries[i].key[0] == FB_TAG_REDO;
    return count;
}

static void reads_are_those_of_a_plain_store(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        stores world;
        begin(&world, seed);
        for (unsigned step = 0; step < 150; step++) {
            uint64_t what = draw(&world, 20);
            if (what < 8 && world.job_count < 60) write_some(&world);
            if (what >= 8 && what < 15) carry_out(&world);
            if (what == 15) crash(&world);
            read_something(&world);
        }
        /* Once everything is kept, nothing waits, and no document is left of what is gone. */
        crash(&world);
        while (world.job_count > 0) carry_out(&world);
        for (unsigned again = 0; again < 16 && redo_count(&world.local) > 0; again++) {
            crash(&world);
            while (world.job_count > 0) carry_out(&world);
        }
        assert_int_equal(redo_count(&world.local), 0);
        for (unsigned step = 0; step < 50; step++) read_something(&world);
        end(&world);
    }
}

/* A server that is away is not given part after part of what is to be made again; but for a record
 * that somebody reads there is always room. */
static void few_parts_are_made_again_at_once(void **state)
{
    (void)state;
    stores world;
    begin(&world, 7);
    fb_keeping k;
    fb_span set;
    assert_int_equal(fb_keeping_open(&k, &world.split.store, NULL), 0);
    k.making_again = FB_KEEPING_REMAKES_MAX;
    assert_int_equal(fb_keeping_dropped(&k, NOTES), 0);
    assert_false(fb_keeping_wants_remaking(&k));
    fb_keeping_remake(&k, 9, world.w, &set);
    assert_int_equal(set.len, 0);
    assert_false(k.makes);
    fb_keeping_missing(&k, (fb_split_record){NOTES, id_of(1)});
    assert_true(fb_keeping_misses(&k) && fb_keeping_wants_remaking(&k));
    k.missing_at++;
    assert_false(fb_keeping_wants_remaking(&k));
    /* One of them is kept: the next one may be made. */
    fb_room room = {.used = 0};
    fb_job *job = fb_room_take_zeroed(&room, sizeof *job);
    job->room = room;
    job->remade = true;
    fb_keeping_served(&k, job, 9);
    assert_int_equal(k.making_again, FB_KEEPING_REMAKES_MAX - 1);
    assert_true(fb_keeping_wants_remaking(&k));
    fb_keeping_free(&k);
    end(&world);
}

static fb_reading *list_begun(fb_keeping *k, const stores *world, bool lists)
{
    static uint8_t bytes[256], local[1 << 16];
    uint8_t low[FB_RECORD_KEY_BYTES], high[FB_RECORD_KEY_BYTES];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_read_item item = {.kind = lists ? FB_READ_RANGE : FB_READ_KEY, .value_bytes = 4096};
    item.low = fb_key_record(low, NOTES, id_of(lists ? 0 : 1));
    item.high = lists ? fb_key_record(high, NOTES, id_of(9)) : (fb_span){NULL, 0};
    item.items = 10;
    item.bytes = 4096;
    fb_write_u16(&w, 1);
    fb_read_item_write(&w, &item);
    fb_reading *reading;
    fb_span asked = fb_writer_span(&w);
    assert_int_equal(
        fb_keeping_read(k, asked, plain_read(&world->local, asked, local, sizeof local), &reading),
        0);
    return reading;
}

/* A list that began before a drop was heard of, or begins before all is made again, lacks records;
 * what asks for single ones is told which of them are gone. */
static void a_list_lacks_what_is_dropped(void **state)
{
    (void)state;
    stores world;
    begin(&world, 8);
    fb_keeping k;
    fb_span set;
    fb_job *job;
    assert_int_equal(fb_keeping_open(&k, &world.split.store, NULL), 0);
    fb_reading *list = list_begun(&k, &world, true), *one = list_begun(&k, &world, false);
    assert_false(fb_keeping_lacks(&k, list) || fb_keeping_lacks(&k, one));
    assert_int_equal(fb_keeping_dropped(&k, TASKS), 0);
    assert_true(fb_keeping_lacks(&k, list)); /* it cannot know which of them it met */
    fb_reading_free(list);
    list = list_begun(&k, &world, true);
    assert_false(fb_keeping_lacks(&k, list)); /* another area's are being made again */
    assert_int_equal(fb_keeping_dropped(&k, NOTES), 0);
    fb_reading_free(list);
    list = list_begun(&k, &world, true);
    for (unsigned areas = 0; areas < 2; areas++) {
        assert_true(fb_keeping_lacks(&k, list));
        fb_keeping_remake(&k, 9, world.w, &set);
        assert_int_equal(fb_keeping_over(&k, true, 9, 0, &job), 0);
    }
    assert_false(fb_keeping_lacks(&k, list) || fb_keeping_lacks(&k, one));
    assert_false(fb_keeping_wants_remaking(&k));
    fb_reading_free(list);
    fb_reading_free(one);
    fb_keeping_free(&k);
    end(&world);
}

static void what_the_space_says_is_never_a_document(void **state)
{
    (void)state;
    stores world;
    begin(&world, 5);
    for (unsigned step = 0; step < 100 && world.job_count < 60; step++) write_some(&world);
    for (size_t i = 0; i < world.job_count; i++) {
        for (size_t k = 0; k < world.jobs[i]->record_count; k++) {
            assert_int_not_equal(world.jobs[i]->records[k].area, OWN);
        }
    }
    end(&world);
}

static void a_malformed_set_is_an_error_and_puts_nothing(void **state)
{
    (void)state;
    stores world;
    begin(&world, 6);
    uint8_t bytes[256], key[FB_RECORD_KEY_BYTES];
    fb_room room = {.used = 0};
    fb_span local;
    fb_split_record *records;
    size_t count;
    fb_writer set = fb_writer_of(bytes, sizeof bytes);
    set_entry(&set, FB_WRITE_PUT, fb_key_record(key, NOTES, id_of(1)), fb_span_text("no record"));
    assert_int_not_equal(
        fb_split_write(&world.split, 9, 2, fb_writer_span(&set), &room, &local, &records, &count),
        0);
    fb_span cut = fb_writer_span(&set);
    cut.len -= 3;
    assert_int_not_equal(fb_split_write(&world.split, 9, 2, cut, &room, &local, &records, &count),
                         0);
    fb_room_free(&room);
    end(&world);
}

static void names_of_collections_are_safe_and_never_one(void **state)
{
    (void)state;
    char a[FB_DOCUMENTS_COLLECTION_MAX], b[FB_DOCUMENTS_COLLECTION_MAX];
    uint8_t name[FB_COLLECTION_NAME_BYTES_MAX];
    fb_id space = id_of(1);
    fb_documents_collection(space, id_of(2), fb_span_text("a b.$\xc3\xa9"), a);
    assert_string_equal(strchr(a, '.') + 1, "a%20b%2E%24%C3%A9");
    /* Two names that differ only behind what there is room for. */
    memset(name, '.', sizeof name);
    fb_documents_collection(space, id_of(2), fb_span_of(name, sizeof name), a);
    name[sizeof name - 1] = 'x';
    fb_documents_collection(space, id_of(3), fb_span_of(name, sizeof name), b);
    assert_string_not_equal(a, b);
    assert_true(strlen(a) < FB_DOCUMENTS_COLLECTION_MAX && strstr(a, "%~") != NULL);
    assert_int_equal(strspn(a, "0123456789abcdefABCDEF-.%~"), strlen(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_are_those_of_a_plain_store),
        cmocka_unit_test(few_parts_are_made_again_at_once),
        cmocka_unit_test(a_list_lacks_what_is_dropped),
        cmocka_unit_test(what_the_space_says_is_never_a_document),
        cmocka_unit_test(a_malformed_set_is_an_error_and_puts_nothing),
        cmocka_unit_test(names_of_collections_are_safe_and_never_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
