/* SPDX-License-Identifier: Apache-2.0 */
/* faberio export: the records of a space as a file, all of one moment, whether the node runs or
 * not: the store is read as another process may read it, and nobody waits for anybody. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/store_snapshot.h"
#include "protocol/base/cursor.h"
#include "protocol/base/uuid.h"
#include "protocol/core/options.h"
#include "protocol/database/database.h"
#include "protocol/database/record.h"
#include "protocol/database/write.h"
#include "protocol/store/keys.h"
#include "runtime/commands.h"
#include "runtime/export_file.h"
#include "runtime/home.h"
#include "runtime/http_client.h"

typedef struct export
{
    fb_store_snapshot *store;
    FILE *out;
    fb_export_sum sum;
    int64_t horizon;
    uint32_t space; /* local number */
    fb_id space_id;
    fb_text space_name;
    uint64_t records, conflicts;
    char why[FB_HOME_PATH_MAX + 160];
}
export;

/* Nothing was damaged or refused so far: a sentence says what. */
static bool failed(export *e, const char *what, fb_status status)
{
    snprintf(e->why, sizeof e->why, "%s: %s", what, fb_error_text(status));
    return false;
}

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Calls `at` for each entry under a prefix until one returns false. */
static bool each(export *e, fb_span prefix,
                 bool (*at)(export *e, fb_span key, fb_span value, void *user), void *user)
{
    fb_span key, value;
    uint8_t from[64];
    memcpy(from, prefix.p, prefix.len);
    fb_status status = fb_store_snapshot_seek(e->store, fb_span_of(from, prefix.len), &key, &value);
    while (status == FB_OK && key.len >= prefix.len && memcmp(key.p, from, prefix.len) == 0) {
        if (!at(e, key, value, user)) return false;
        status = fb_store_snapshot_next(e->store, &key, &value);
    }
    if (status == FB_OK || status == FB_ERR_NOT_FOUND) return true;
    return failed(e, "the store", status);
}

/* Spaces. */

typedef struct wanted {
    const char *name;
    fb_id id;
    bool by_id, found;
} wanted;

static bool space_at(export *e, fb_span key, fb_span value, void *user)
{
    wanted *w = user;
    fb_reader k = fb_reader_of(key), v = fb_reader_of(value);
    fb_read_u8(&k);
    uint32_t local = fb_read_u32(&k);
    if (fb_read_u8(&k) != 0) return true;
    if (fb_read_u8(&v) != FB_STORE_VERSION) return failed(e, "a space", FB_ERR_VERSION_NEWER);
    fb_id id = fb_read_id(&v);
    fb_read_bytes(&v, 32);
    fb_read_u8(&v);
    fb_span name = fb_read_span16(&v);
    if (v.failed) return failed(e, "a space", FB_ERR_STORE_DAMAGED);
    bool same = w->by_id ? fb_id_equal(id, w->id) : fb_span_equal(name, fb_span_text(w->name));
    if (!same || w->found) return true;
    w->found = true;
    e->space = local;
    e->space_id = id;
    fb_text_bytes(&e->space_name, name.p, name.len);
    return true;
}

/* Records. */

static int64_t stamp_of(const uint8_t *entry)
{
    fb_reader r = fb_reader_of(fb_span_of(entry + FB_DOT_BYTES, 8));
    return (int64_t)fb_read_u64(&r);
}

typedef struct place {
    uint32_t area;
    fb_id record;
} place;

/* The text of a sibling, wherever it is kept. */
static bool value_of(export *e, const place *p, const fb_record_field *column, uint32_t at,
                     fb_span *out)
{
    fb_record_field walk = *column;
    fb_sibling sibling = {.apart = false};
    for (uint32_t i = 0; i <= at; i++) sibling = fb_record_sibling(&walk, i);
    *out = sibling.value;
    if (!sibling.apart) return true;
    uint8_t key[512];
    fb_writer w = fb_writer_of(key, sizeof key);
    fb_write_u8(&w, FB_TAG_FIELD);
    fb_write_u32(&w, p->area);
    fb_write_id(&w, p->record);
    fb_write_span16(&w, column->name);
    fb_write_bytes(&w, column->siblings + (size_t)at * FB_SIBLING_BYTES, FB_DOT_BYTES);
    fb_status status = fb_store_snapshot_get(e->store, fb_writer_span(&w), out);
    return status == FB_OK || failed(e, "a value", status);
}

/* One field, gathered from its columns: what it is, newest first, and what else it is. */
typedef struct gathered {
    fb_span field;
    fb_text plain, set, others; /* JSON; others: elements of the list of conflicts */
    const uint8_t *newest[FB_FIELD_ELEMENT + 1];
    fb_sum sum;
    bool integer;
    uint32_t others_count;
} gathered;

typedef struct lines {
    fb_text fields, counters, sets, conflicts;
} lines;

static void newest_raise(const uint8_t **newest, const uint8_t *entry)
{
    if (*newest == NULL ||
        fb_stamp_compare(stamp_of(*newest), *newest, stamp_of(entry), entry) < 0) {
        *newest = entry;
    }
}

static void other_add(gathered *g, fb_span value)
{
    fb_text_put(&g->others, g->others_count++ == 0 ? "" : ",");
    fb_text_bytes(&g->others, value.p, value.len);
}

static bool column_gather(export *e, const place *p, gathered *g, const fb_record_field *column)
{
    fb_field_kind kind = fb_column_of(column->name).kind;
    uint32_t shown = fb_record_displayed(column, e->horizon);
    if (shown == UINT32_MAX) return true;
    newest_raise(&g->newest[kind], column->siblings + (size_t)shown * FB_SIBLING_BYTES);
    for (uint32_t i = 0; i < column->count; i++) {
        fb_span value;
        int64_t part;
        if (stamp_of(column->siblings + (size_t)i * FB_SIBLING_BYTES) > e->horizon) continue;
        if (kind == FB_FIELD_ELEMENT && i != shown) continue;
        if (!value_of(e, p, column, i, &value)) return false;
        if (kind == FB_FIELD_COUNTER && fb_integer_parse(value, &part)) fb_sum_add(&g->sum, part);
        if (kind == FB_FIELD_ELEMENT) {
            fb_text_put(&g->set, g->set.len == 0 ? "[" : ",");
            fb_text_bytes(&g->set, value.p, value.len);
        }
        if (kind != FB_FIELD_REGISTER) continue;
        if (i != shown) {
            other_add(g, value);
            continue;
        }
        fb_text_bytes(&g->plain, value.p, value.len);
        g->integer = fb_integer_parse(value, &part);
        if (g->integer) fb_sum_add(&g->sum, part);
    }
    return true;
}

static void member_put(fb_text *out, fb_span name, fb_span json)
{
    fb_text_put(out, out->len == 0 ? "{" : ",");
    fb_json_string(out, name);
    fb_text_put(out, ":");
    fb_text_bytes(out, json.p, json.len);
}

static void field_show(gathered *g, lines *out)
{
    uint8_t digits[FB_INTEGER_TEXT_MAX];
    bool counts_on = g->integer && g->newest[FB_FIELD_COUNTER] != NULL;
    if (counts_on) {
        newest_raise(&g->newest[FB_FIELD_COUNTER], g->newest[FB_FIELD_REGISTER]);
        g->newest[FB_FIELD_REGISTER] = NULL;
    }
    if (g->set.len != 0) fb_text_put(&g->set, "]");
    fb_span texts[FB_FIELD_ELEMENT + 1] = {
        [FB_FIELD_REGISTER] = fb_span_of(g->plain.p, g->plain.len),
        [FB_FIELD_COUNTER] = fb_span_of(digits, fb_integer_format(fb_sum_value(&g->sum), digits)),
        [FB_FIELD_ELEMENT] = fb_span_of(g->set.p, g->set.len)};
    fb_text *members[] = {NULL, &out->fields, &out->counters, &out->sets};
    uint32_t first = 0;
    for (uint32_t kind = FB_FIELD_REGISTER; kind <= FB_FIELD_ELEMENT; kind++) {
        const uint8_t *a = g->newest[kind], *b = first == 0 ? NULL : g->newest[first];
        if (a == NULL) continue;
        if (b == NULL || fb_stamp_compare(stamp_of(b), b, stamp_of(a), a) < 0) first = kind;
    }
    for (uint32_t kind = FB_FIELD_REGISTER; kind <= FB_FIELD_ELEMENT; kind++) {
        if (g->newest[kind] != NULL && kind != first) other_add(g, texts[kind]);
    }
    if (first == 0) return;
    member_put(members[first], g->field, texts[first]);
    if (g->others_count == 0) return;
    fb_text list = {0};
    fb_text_put(&list, "[");
    fb_text_bytes(&list, g->others.p, g->others.len);
    fb_text_put(&list, "]");
    member_put(&out->conflicts, g->field, fb_span_of(list.p, list.len));
    fb_text_free(&list);
}

static bool fields_gather(export *e, const place *p, const fb_record *record, lines *out)
{
    fb_record_walk walk = fb_record_walk_of(record);
    fb_record_field column;
    bool more = fb_record_next(&walk, &column), good = true;
    while (more && good) {
        gathered g = {.field = fb_column_of(column.name).field};
        for (; more && fb_span_equal(fb_column_of(column.name).field, g.field);
             more = fb_record_next(&walk, &column)) {
            good = good && column_gather(e, p, &g, &column);
        }
        if (good) field_show(&g, out);
        fb_text_free(&g.plain);
        fb_text_free(&g.set);
        fb_text_free(&g.others);
    }
    return good;
}

static void member_close(fb_text *line, const char *name, fb_text *members)
{
    if (members->len == 0) return;
    fb_text_put(members, "}");
    fb_json_raw(line, name, fb_span_of(members->p, members->len));
}

static bool line_write(export *e, const fb_text *line)
{
    if (fb_export_write(e->out, &e->sum, line)) return true;
    snprintf(e->why, sizeof e->why, "cannot be written: %s", strerror(errno));
    return false;
}

typedef struct collection {
    fb_span name;
    uint32_t local;
} collection;

static bool record_at(export *e, fb_span key, fb_span value, void *user)
{
    const collection *c = user;
    fb_record record;
    int64_t stamp;
    fb_reader k = fb_reader_of(key);
    fb_read_bytes(&k, 5);
    place p = {c->local, fb_read_id(&k)};
    if (!fb_reader_done(&k) || fb_record_decode(value, &record) != FB_OK) {
        return failed(e, "a record", FB_ERR_STORE_DAMAGED);
    }
    if (!fb_record_visible(&record, e->horizon, &stamp)) return true;
    lines out = {0};
    fb_text line = {0};
    bool good = fields_gather(e, &p, &record, &out);
    fb_json_open(&line, NULL, '{');
    fb_json_span(&line, "collection", c->name);
    fb_json_uuid(&line, "id", p.record);
    e->conflicts += out.conflicts.len != 0;
    member_close(&line, "fields", &out.fields);
    member_close(&line, "counters", &out.counters);
    member_close(&line, "sets", &out.sets);
    member_close(&line, "conflicts", &out.conflicts);
    fb_json_close(&line, '}');
    good = good && line_write(e, &line);
    e->records++;
    fb_text_free(&line);
    fb_text_free(&out.fields);
    fb_text_free(&out.counters);
    fb_text_free(&out.sets);
    fb_text_free(&out.conflicts);
    return good;
}

/* Collections by their local numbers, which a walk over records would disturb. */
typedef struct areas {
    uint32_t locals[FB_AREAS_MAX];
    uint32_t count;
} areas;

static bool area_at(export *e, fb_span key, fb_span value, void *user)
{
    areas *a = user;
    fb_reader k = fb_reader_of(key), v = fb_reader_of(value);
    fb_read_u8(&k);
    uint32_t local = fb_read_u32(&k);
    if (fb_read_u8(&v) != FB_STORE_VERSION) return failed(e, "a collection", FB_ERR_VERSION_NEWER);
    bool wanted = fb_read_u32(&v) == e->space && fb_read_u8(&v) == FB_AREA_COLLECTION;
    if (wanted && a->count < FB_AREAS_MAX) a->locals[a->count++] = local;
    return true;
}

static bool collections_write(export *e, const areas *a)
{
    for (uint32_t i = 0; i < a->count; i++) {
        uint8_t key[5] = {FB_TAG_AREA};
        fb_span value;
        fb_store_be(key + 1, a->locals[i], 4);
        fb_status status = fb_store_snapshot_get(e->store, fb_span_of(key, sizeof key), &value);
        if (status != FB_OK) return failed(e, "a collection", status);
        fb_reader v = fb_reader_of(value);
        fb_read_bytes(&v, 6);
        collection c = {fb_read_span16(&v), a->locals[i]};
        if (!fb_reader_done(&v)) return failed(e, "a collection", FB_ERR_STORE_DAMAGED);
        key[0] = FB_TAG_RECORD;
        if (!each(e, fb_span_of(key, sizeof key), record_at, &c)) return false;
    }
    return true;
}

static bool space_write(export *e)
{
    static areas a;
    static const uint8_t prefix[] = {FB_TAG_AREA};
    fb_text line = {0};
    fb_export_begin(&e->sum);
    fb_json_open(&line, NULL, '{');
    fb_json_number(&line, "faberio_export", FB_EXPORT_VERSION);
    fb_json_uuid(&line, "space_id", e->space_id);
    fb_json_span(&line, "name", fb_span_of(e->space_name.p, e->space_name.len));
    fb_json_time(&line, "created", now_us());
    fb_json_close(&line, '}');
    bool good = line_write(e, &line);
    fb_text_clear(&line);
    good = good && each(e, fb_span_of(prefix, sizeof prefix), area_at, &a);
    good = good && collections_write(e, &a);
    fb_json_open(&line, NULL, '{');
    fb_json_bool(&line, "end", true);
    fb_json_number(&line, "records", (int64_t)e->records);
    fb_json_close(&line, '}');
    good = good && line_write(e, &line);
    fb_text_free(&line);
    return good;
}

/* A file that is there is never written over, and one under its name is always whole. */
static bool file_write(export *e, const char *path)
{
    char part[FB_HOME_PATH_MAX + 32];
    snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid());
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    e->out = fd < 0 ? NULL : fdopen(fd, "w");
    if (e->out == NULL) {
        snprintf(e->why, sizeof e->why, "%s", strerror(errno));
        return false;
    }
    bool good = space_write(e);
    bool kept = fflush(e->out) == 0 && fsync(fd) == 0;
    kept = fclose(e->out) == 0 && kept;
    if (good && (!kept || link(part, path) != 0)) {
        snprintf(e->why, sizeof e->why, "%s", strerror(errno));
        good = false;
    }
    unlink(part);
    return good;
}

static fb_exit run(const fb_cli *cli, export *e, const char *directory)
{
    static const uint8_t prefix[] = {FB_TAG_SPACE};
    wanted w = {.name = cli->argv[0]};
    w.by_id = fb_uuid_parse(fb_span_text(w.name), &w.id);
    fb_status status = fb_store_snapshot_open(directory, &e->store, e->why, sizeof e->why);
    if (status != FB_OK) return fb_cli_fail(FB_EXIT_FAILED, "%s", e->why);
    e->horizon = fb_horizon(now_us(), fb_options_default().timing.window_future_us);
    if (!each(e, fb_span_of(prefix, sizeof prefix), space_at, &w)) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s", e->why);
    }
    if (!w.found) return fb_cli_fail(FB_EXIT_FAILED, "no space %s in this node", w.name);
    if (!file_write(e, cli->argv[1])) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s: %s", cli->argv[1], e->why);
    }
    fb_text out = {0};
    fb_json_open(&out, NULL, '{');
    fb_json_uuid(&out, "space_id", e->space_id);
    fb_json_number(&out, "records", (int64_t)e->records);
    fb_json_number(&out, "conflicts", (int64_t)e->conflicts);
    fb_json_close(&out, '}');
    fb_print(cli, &out);
    fb_text_free(&out);
    return FB_EXIT_OK;
}

fb_exit fb_cmd_export(fb_cli *cli)
{
    static export e;
    fb_home home;
    char directory[FB_HOME_PATH_MAX];
    if (!fb_home_open(fb_settings_get(&cli->settings, FB_SET_HOME), &home, e.why, sizeof e.why)) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s", e.why);
    }
    fb_home_file(&home, "store", directory);
    fb_exit exit = run(cli, &e, directory);
    fb_store_snapshot_close(e.store);
    fb_text_free(&e.space_name);
    return exit;
}
