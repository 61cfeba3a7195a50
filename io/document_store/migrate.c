/* SPDX-License-Identifier: Apache-2.0 */
/* Into documents: the entries of some records are written once more, as the node's own writes are
 * with a document store: redo entries in the place of local ones, in one transaction, then the
 * documents, then the redo entries go. Back: documents are written as local entries, which count as
 * long as no document is newer; at the end, in one transaction, all that speaks of a document store
 * goes. So a process that ends anywhere leaves a store that is right. */
#include "io/document_store/migrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/clock.h"
#include "io/document_store/call.h"
#include "io/documents/keeping.h"
#include "io/store/lmdb_env.h"
#include "io/store/place.h"
#include "protocol/base/assert.h"
#include "protocol/database/keys.h"
#include "protocol/database/record/record.h"
#include "protocol/store/keys.h"
#include "protocol/store/readset.h"
#include "protocol/store/writeset.h"

#define FUTURE_US (INT64_C(300) * 1000000)

typedef struct set {
    uint8_t *bytes;
    size_t len, cap;
} set;

/* A record of the part at hand, as it is where it comes from. */
typedef struct moved {
    fb_id id;
    fb_span record;
    fb_document_value *values;
    size_t value_count;
    bool met; /* it was found again as it is */
    bool stays;
} moved;

typedef struct migrating {
    const fb_migrate_options *options;
    fb_migrate_stats *stats;
    fb_lmdb_env env;
    int lock_fd;
    fb_keeping keeping;
    fb_handing handing;
    char *why;
    size_t why_len;
    uint64_t w;      /* write sets so far */
    uint32_t *areas; /* in areas_room */
    size_t area_count, area_cap;
    fb_room areas_room;
    uint32_t area;
    const char *collection;
    fb_room room; /* of the part at hand */
    set set;      /* ... its entries */
    moved *part;
    size_t part_count, part_bytes;
    bool edited; /* some document of it was changed by another program */
} migrating;

static fb_status failed(migrating *m, int rc)
{
    if (rc == 0) return FB_OK;
    snprintf(m->why, m->why_len, "%s: %s", m->options->directory, fb_lmdb_text(rc));
    return fb_lmdb_error(rc) == FB_OK ? FB_ERR_STORE_FAILED : fb_lmdb_error(rc);
}

static int look(void *user, fb_span key, fb_span *value)
{
    return fb_lmdb_env_look(&((migrating *)user)->env, key, value);
}

static int scan(void *user, fb_span low, fb_span high,
                void (*each)(void *each_user, fb_span key, fb_span value), void *each_user)
{
    return fb_lmdb_env_scan(&((migrating *)user)->env, low, high, each, each_user);
}

static void set_add(set *s, uint8_t kind, fb_span key, fb_span value)
{
    size_t bytes = fb_write_entry_bytes(key.len, value.len);
    if (s->len + bytes > s->cap) {
        s->cap = 2 * (s->len + bytes);
        s->bytes = realloc(s->bytes, s->cap);
        FB_ASSERT(s->bytes != NULL);
    }
    fb_writer w = fb_writer_of(s->bytes + s->len, bytes);
    fb_write_u8(&w, kind);
    fb_write_u8(&w, 0);
    fb_write_u16(&w, (uint16_t)key.len);
    fb_write_u32(&w, (uint32_t)value.len);
    fb_write_span(&w, key);
    fb_write_span(&w, value);
    while (w.at < bytes) fb_write_u8(&w, 0);
    s->len += bytes;
}

static void part_begin(migrating *m)
{
    fb_room_free(&m->room);
    m->part = fb_room_take(&m->room, FB_MIGRATE_RECORDS * sizeof *m->part);
    m->part_count = m->part_bytes = 0;
    m->set.len = 0;
}

static moved *part_add(migrating *m, fb_id id, fb_span record)
{
    moved *one = &m->part[m->part_count++];
    *one = (moved){.id = id, .record = fb_room_copy(&m->room, record)};
    m->part_bytes += record.len;
    return one;
}

static void value_add(migrating *m, moved *one, fb_span column, const uint8_t *dot, fb_span value)
{
    if ((one->value_count & (one->value_count - 1)) == 0) {
        size_t cap = one->value_count == 0 ? 1 : 2 * one->value_count;
        fb_document_value *values = fb_room_take(&m->room, cap * sizeof *values);
        if (one->value_count != 0) {
            memcpy(values, one->values, one->value_count * sizeof *values);
        }
        one->values = values;
    }
    fb_document_value *added = &one->values[one->value_count++];
    *added = (fb_document_value){.column = fb_room_copy(&m->room, column),
                                 .value = fb_room_copy(&m->room, value)};
    memcpy(added->dot, dot, FB_DOT_BYTES);
    m->part_bytes += value.len;
}

/* The entries of the part, as they stand in a local store. */
static void part_entries(migrating *m)
{
    for (size_t i = 0; i < m->part_count; i++) {
        const moved *one = &m->part[i];
        uint8_t key[FB_FIELD_KEY_BYTES_MAX];
        set_add(&m->set, FB_WRITE_PUT, fb_key_record(key, m->area, one->id), one->record);
        for (size_t k = 0; k < one->value_count; k++) {
            const fb_document_value *value = &one->values[k];
            set_add(&m->set, FB_WRITE_PUT,
                    fb_key_field(key, m->area, one->id, value->column, value->dot), value->value);
        }
    }
}

static bool same_values(const moved *one, const fb_document *document)
{
    if (one->value_count != document->value_count) return false;
    for (size_t i = 0; i < one->value_count; i++) {
        const fb_document_value *a = &one->values[i];
        bool met = false;
        for (size_t k = 0; k < document->value_count && !met; k++) {
            const fb_document_value *b = &document->values[k];
            met = memcmp(a->dot, b->dot, FB_DOT_BYTES) == 0 &&
                  fb_span_equal(a->column, b->column) && fb_span_equal(a->value, b->value);
        }
        if (!met) return false;
    }
    return true;
}

/* Handing on */

static void outcomes(migrating *m, const fb_job *job)
{
    for (size_t i = 0; i < job->record_count; i++) {
        const fb_job_record *record = &job->records[i];
        if (record->outcome == FB_DOCUMENT_KEPT || record->outcome == FB_DOCUMENT_PRESENT) continue;
        for (size_t k = 0; k < m->part_count; k++) {
            if (fb_id_equal(m->part[k].id, record->id)) m->part[k].stays = true;
        }
    }
}

/* Until nothing is to be done any more. */
static fb_status hand_on(migrating *m, fb_job *job)
{
    if (job != NULL) fb_handing_job(&m->handing, job);
    uint64_t since_ns = fb_clock_mono_ns();
    fb_status status = FB_OK;
    for (;;) {
        fb_handing_call c;
        uint64_t now_ms = fb_clock_awake_or_not_ms();
        fb_handing_next(&m->handing, now_ms, fb_clock_wall_us() + FUTURE_US, &c);
        if (c.kind == FB_HANDING_IDLE) return FB_OK;
        if (c.kind == FB_HANDING_LOCKED) return FB_ERR_STORE_LOCKED;
        if (c.kind == FB_HANDING_DONE) {
            outcomes(m, c.job);
            fb_keeping_served(&m->keeping, c.job, m->handing.start);
        } else if (c.kind == FB_HANDING_PAUSE) {
            uint64_t ms = c.at_ms > now_ms ? c.at_ms - now_ms : 0;
            const struct timespec pause = {(time_t)(ms / 1000), (long)(ms % 1000 * 1000000)};
            nanosleep(&pause, NULL);
        } else {
            status = fb_documents_call(m->options->ops, m->options->documents, &m->handing, &c,
                                       m->why, m->why_len);
            if (status == FB_OK) since_ns = fb_clock_mono_ns();
        }
        uint64_t waited_ms = (fb_clock_mono_ns() - since_ns) / 1000000;
        if (status != FB_OK && waited_ms > FB_MIGRATE_PATIENCE_MS) return status;
    }
}

static fb_status write_sets(migrating *m, fb_span first, fb_span second)
{
    const fb_span sets[] = {first, second};
    return failed(m, fb_lmdb_env_write(&m->env, sets, 2));
}

/* Redo entries that have served go. */
static fb_status clean(migrating *m)
{
    fb_span served;
    fb_job *job;
    FB_TRY(failed(m, fb_keeping_clean(&m->keeping, &served)));
    FB_TRY(write_sets(m, served, (fb_span){NULL, 0}));
    return failed(m, fb_keeping_over(&m->keeping, true, 0, 0, &job));
}

/* Into documents */

static bool is_alive(fb_span stored)
{
    fb_record record;
    int64_t stamp;
    return fb_record_decode(stored, &record) == FB_OK &&
           fb_record_visible(&record, INT64_MAX, &stamp);
}

typedef struct valuing {
    migrating *m;
    moved *one;
} valuing;

static void take_value(void *user, fb_span key, fb_span stored)
{
    valuing *v = user;
    fb_reader r = fb_reader_of(key);
    fb_read_bytes(&r, FB_RECORD_KEY_BYTES);
    fb_span column = fb_read_span16(&r);
    fb_span dot = fb_read_bytes(&r, FB_DOT_BYTES);
    if (fb_reader_done(&r)) value_add(v->m, v->one, column, dot.p, stored);
}

static fb_status take_values(migrating *m, moved *one)
{
    uint8_t low[FB_RECORD_KEY_BYTES], high[FB_RECORD_KEY_BYTES];
    fb_key_record(low, m->area, one->id);
    low[0] = FB_TAG_FIELD;
    memcpy(high, low, sizeof high);
    bool carry = true;
    for (size_t i = sizeof high; carry && i-- > 0;) carry = ++high[i] == 0;
    valuing v = {m, one};
    return failed(m, fb_lmdb_env_scan(&m->env, fb_span_of(low, sizeof low),
                                      fb_span_of(high, sizeof high), take_value, &v));
}

/* The next living records behind `after`; *whole: there are none behind them. */
static fb_status local_part(migrating *m, uint8_t *after, size_t *after_len, bool *whole)
{
    uint8_t asked[256], low[FB_RECORD_KEY_BYTES + 1], high[FB_AREA_KEY_BYTES];
    fb_writer w = fb_writer_of(asked, sizeof asked);
    memcpy(low, after, *after_len);
    if (*after_len == FB_RECORD_KEY_BYTES) low[(*after_len)++] = 0;
    fb_key_area(high, m->area + 1);
    high[0] = FB_TAG_RECORD;
    const fb_read_item item = {.kind = FB_READ_RANGE,
                               .value_bytes = UINT32_MAX,
                               .items = FB_MIGRATE_RECORDS,
                               .bytes = FB_MIGRATE_BYTES,
                               .low = fb_span_of(low, *after_len),
                               .high = fb_span_of(high, sizeof high)};
    fb_write_u16(&w, 1);
    fb_read_item_write(&w, &item);
    fb_span answer;
    FB_TRY(failed(m, fb_lmdb_env_read(&m->env, 0, fb_writer_span(&w), &answer)));
    fb_reader r = fb_reader_of(answer);
    fb_read_u64(&r);
    *whole = fb_read_u8(&r) == 1;
    uint32_t count = fb_read_u32(&r);
    for (uint32_t i = 0; i < count && !r.failed; i++) {
        fb_read_entry entry = fb_read_entry_next(&r);
        if (r.failed || entry.key.len != FB_RECORD_KEY_BYTES) break;
        memcpy(after, entry.key.p, entry.key.len);
        *after_len = entry.key.len;
        fb_reader key = fb_reader_of(entry.key);
        fb_read_bytes(&key, FB_AREA_KEY_BYTES);
        if (is_alive(entry.value)) part_add(m, fb_read_id(&key), entry.value);
    }
    for (size_t i = 0; i < m->part_count; i++) FB_TRY(take_values(m, &m->part[i]));
    return FB_OK;
}

static bool compare(void *user, const fb_document *document)
{
    migrating *m = user;
    for (size_t i = 0; i < m->part_count; i++) {
        moved *one = &m->part[i];
        if (!fb_id_equal(one->id, document->id)) continue;
        one->met = fb_span_equal(one->record, document->record) && same_values(one, document);
    }
    return true;
}

static void count_part(migrating *m)
{
    for (size_t i = 0; i < m->part_count; i++) {
        const moved *one = &m->part[i];
        if (one->stays) m->stats->stayed++;
        if (one->met) m->stats->records++;
        if (one->met) m->stats->values += one->value_count;
    }
    if (m->options->progress != NULL) m->options->progress(m->options->user, m->stats->records);
}

/* Every document is there as its record is. */
static fb_status documents_check(migrating *m)
{
    fb_id *ids = fb_room_take(&m->room, (m->part_count + 1) * sizeof *ids);
    for (size_t i = 0; i < m->part_count; i++) ids[i] = m->part[i].id;
    FB_TRY(m->options->ops->get(m->options->documents, m->collection, ids, m->part_count, compare,
                                m, m->why, m->why_len));
    for (size_t i = 0; i < m->part_count; i++) {
        if (m->part[i].met || m->part[i].stays) continue;
        snprintf(m->why, m->why_len, "a document of %s is not what was put there", m->collection);
        return FB_ERR_STORE_DAMAGED;
    }
    return FB_OK;
}

static fb_status into_documents(migrating *m)
{
    uint8_t after[FB_RECORD_KEY_BYTES + 1];
    size_t after_len = FB_AREA_KEY_BYTES;
    fb_key_area(after, m->area);
    after[0] = FB_TAG_RECORD;
    for (bool whole = false; !whole;) {
        part_begin(m);
        FB_TRY(local_part(m, after, &after_len, &whole));
        if (m->part_count == 0) continue;
        part_entries(m);
        fb_span local;
        fb_job *job;
        uint64_t w = ++m->w;
        FB_TRY(failed(
            m, fb_keeping_split(&m->keeping, 0, w, fb_span_of(m->set.bytes, m->set.len), &local)));
        FB_TRY(write_sets(m, local, (fb_span){NULL, 0}));
        FB_TRY(failed(m, fb_keeping_over(&m->keeping, true, 0, w, &job)));
        FB_TRY(hand_on(m, job));
        FB_TRY(documents_check(m));
        count_part(m);
        FB_TRY(clean(m));
    }
    return FB_OK;
}

/* Back */

static bool take_document(void *user, const fb_document *document)
{
    migrating *m = user;
    m->edited = m->edited || document->edited;
    if (document->record.len == 0) return !m->edited;
    moved *one = part_add(m, document->id, document->record);
    for (size_t i = 0; i < document->value_count; i++) {
        const fb_document_value *value = &document->values[i];
        value_add(m, one, value->column, value->dot, value->value);
    }
    return m->part_count < FB_MIGRATE_RECORDS && m->part_bytes < FB_MIGRATE_BYTES;
}

/* Records that the local store knows to be deleted are no more, whatever a document says. */
static fb_status drop_deleted(migrating *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->part_count; i++) {
        uint8_t key[FB_RECORD_KEY_BYTES];
        fb_span stored;
        FB_TRY(failed(m, look(m, fb_key_record(key, m->area, m->part[i].id), &stored)));
        if (stored.len == 0 || is_alive(stored)) m->part[kept++] = m->part[i];
    }
    m->part_count = kept;
    return FB_OK;
}

static fb_status local_check(migrating *m)
{
    for (size_t i = 0; i < m->part_count; i++) {
        moved *one = &m->part[i];
        uint8_t key[FB_FIELD_KEY_BYTES_MAX];
        fb_span stored;
        FB_TRY(failed(m, look(m, fb_key_record(key, m->area, one->id), &stored)));
        one->met = fb_span_equal(stored, one->record);
        for (size_t k = 0; k < one->value_count && one->met; k++) {
            const fb_document_value *value = &one->values[k];
            fb_span named = fb_key_field(key, m->area, one->id, value->column, value->dot);
            FB_TRY(failed(m, look(m, named, &stored)));
            one->met = fb_span_equal(stored, value->value);
        }
        if (one->met) continue;
        snprintf(m->why, m->why_len, "an entry of the local store is not what was put there");
        return FB_ERR_STORE_DAMAGED;
    }
    return FB_OK;
}

static fb_status from_documents(migrating *m)
{
    fb_id low = {{0}};
    for (;;) {
        part_begin(m);
        FB_TRY(m->options->ops->range(m->options->documents, m->collection, low, (fb_id){{0}},
                                      false, FB_MIGRATE_RECORDS, take_document, m, m->why,
                                      m->why_len));
        if (m->edited) {
            snprintf(m->why, m->why_len,
                     "other programs changed documents of %s: let the node run with them until "
                     "it has taken that up",
                     m->collection);
            return FB_ERR_CONFLICT;
        }
        if (m->part_count == 0) return FB_OK;
        low = m->part[m->part_count - 1].id;
        bool over = true;
        for (size_t i = sizeof low.b; over && i-- > 0;) over = ++low.b[i] == 0;
        FB_TRY(drop_deleted(m));
        part_entries(m);
        FB_TRY(write_sets(m, fb_span_of(m->set.bytes, m->set.len), (fb_span){NULL, 0}));
        FB_TRY(local_check(m));
        count_part(m);
        if (over) return FB_OK;
    }
}

static void redo_back(void *user, fb_span key, fb_span stored)
{
    migrating *m = user;
    fb_redo redo;
    set_add(&m->set, FB_WRITE_DELETE, key, (fb_span){NULL, 0});
    if (key.len <= FB_RECORD_KEY_BYTES || !fb_redo_read(stored, &redo)) return;
    /* What no document could hold. */
    fb_span own = fb_span_of(key.p + 1, key.len - 1);
    if (redo.kind == FB_WRITE_PUT) set_add(&m->set, FB_WRITE_PUT, own, redo.value);
    if (redo.kind == FB_WRITE_PUT && own.p[0] == FB_TAG_RECORD) m->stats->records++;
}

/* What stood where no document was to be (split.h): here there is no record then. */
static void deletion_back(void *user, fb_span key, fb_span stored)
{
    migrating *m = user;
    if (stored.len == FB_RECORD_EMPTY_BYTES) {
        set_add(&m->set, FB_WRITE_DELETE, key, (fb_span){NULL, 0});
    }
}

/* From here on this store has everything. */
static fb_status end_documents(migrating *m)
{
    static const uint8_t low[] = {FB_TAG_REDO}, high[] = {FB_TAG_REDO + 1};
    static const uint8_t first[] = {FB_TAG_RECORD}, end[] = {FB_TAG_RECORD + 1};
    m->set.len = 0;
    FB_TRY(failed(m, scan(m, fb_span_of(first, sizeof first), fb_span_of(end, sizeof end),
                          deletion_back, m)));
    FB_TRY(failed(
        m, scan(m, fb_span_of(low, sizeof low), fb_span_of(high, sizeof high), redo_back, m)));
    return write_sets(m, fb_span_of(m->set.bytes, m->set.len), (fb_span){NULL, 0});
}

/* Both */

static void take_area(void *user, fb_span key, fb_span stored)
{
    migrating *m = user;
    (void)stored;
    fb_reader r = fb_reader_of(key);
    fb_read_u8(&r);
    uint32_t area = fb_read_u32(&r);
    if (!fb_reader_done(&r)) return;
    if (m->area_count == m->area_cap) {
        size_t cap = m->area_cap == 0 ? 64 : 2 * m->area_cap;
        uint32_t *areas = fb_room_take(&m->areas_room, cap * sizeof *areas);
        if (m->area_count != 0) memcpy(areas, m->areas, m->area_count * sizeof *areas);
        m->areas = areas;
        m->area_cap = cap;
    }
    m->areas[m->area_count++] = area;
}

static fb_status each_area(migrating *m, fb_status (*move)(migrating *))
{
    static const uint8_t low[] = {FB_TAG_AREA}, high[] = {FB_TAG_AREA + 1};
    FB_TRY(failed(
        m, scan(m, fb_span_of(low, sizeof low), fb_span_of(high, sizeof high), take_area, m)));
    for (size_t i = 0; i < m->area_count; i++) {
        bool documents = false;
        m->area = m->areas[i];
        FB_TRY(failed(m, fb_split_is_document(&m->keeping.split, m->area, &documents)));
        /* A space that was dropped leaves its areas behind. */
        if (!documents || fb_split_collection(&m->keeping.split, m->area, &m->collection) != 0) {
            continue;
        }
        FB_TRY(move(m));
    }
    return FB_OK;
}

static fb_status migrate(migrating *m)
{
    fb_error error = FB_OK;
    fb_job *found;
    int rc = fb_lmdb_env_open(&m->env, m->why, m->why_len, &error);
    if (error != FB_OK) return error;
    FB_TRY(failed(m, rc));
    const fb_split_store store = {look, scan, m};
    FB_TRY(failed(m, fb_keeping_open(&m->keeping, &store, NULL)));
    fb_handing_init(&m->handing, m->keeping.start, m->keeping.first, NULL, NULL);
    /* What waits for the documents goes there first; and no earlier process writes any more. */
    FB_TRY(failed(m, fb_job_found(&m->keeping.split, &found)));
    part_begin(m);
    FB_TRY(hand_on(m, found));
    FB_TRY(clean(m));
    if (!m->options->to_local) return each_area(m, into_documents);
    FB_TRY(each_area(m, from_documents));
    return end_documents(m);
}

fb_status fb_store_migrate(const fb_migrate_options *options, fb_migrate_stats *stats, char *why,
                           size_t why_len)
{
    *stats = (fb_migrate_stats){0};
    migrating *m = calloc(1, sizeof *m);
    if (m == NULL) return FB_ERR_NO_MEMORY;
    fb_lmdb_opening opening = {0};
    m->options = options;
    m->stats = stats;
    m->why = why;
    m->why_len = why_len;
    m->lock_fd = -1;
    m->env.directory = options->directory;
    m->env.owner = options->owner;
    m->env.must_exist = true;
    m->env.map_bytes = FB_LMDB_MAP_MIN;
    m->env.map_bytes_max = FB_LMDB_MAP_MAX;
    fb_status status = fb_store_place_take(options->directory, &m->lock_fd, &opening, why, why_len);
    if (status == FB_OK) status = migrate(m);
    fb_handing_free(&m->handing);
    fb_keeping_free(&m->keeping);
    fb_lmdb_env_free(&m->env);
    fb_room_free(&m->room);
    fb_room_free(&m->areas_room);
    free(m->set.bytes);
    if (m->lock_fd >= 0) close(m->lock_fd);
    free(m);
    return status;
}
