/* SPDX-License-Identifier: Apache-2.0 */
/* faberio export: the records of a space as a file, all of one moment, whether the node runs or
 * not: the store is read as another process may read it, and nobody waits for anybody. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/files/new_file.h"
#include "protocol/base/cursor.h"
#include "protocol/core/options.h"
#include "protocol/database/record/record.h"
#include "protocol/database/write/write.h"
#include "protocol/store/keys.h"
#include "runtime/command/commands.h"
#include "runtime/command/export_file.h"
#include "runtime/command/http_client.h"
#include "runtime/command/space_view.h"
#include "runtime/home.h"

typedef struct exporting {
    fb_space_view view;
    FILE *out;
    fb_export_sum sum;
    int64_t horizon;
    uint64_t records, conflicts;
    char why[FB_HOME_PATH_MAX + 160];
} exporting;

/* Nothing was damaged or refused so far: a sentence says what. */
static bool failed(exporting *e, const char *what, fb_status status)
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
static bool value_of(exporting *e, const place *p, const fb_record_field *column, uint32_t at,
                     fb_span *out)
{
    fb_record_field walk = *column;
    fb_sibling sibling = {.apart = false};
    for (uint32_t i = 0; i <= at; i++) sibling = fb_record_sibling(&walk, i);
    *out = sibling.value;
    if (!sibling.apart) return true;
    uint8_t key[512];
    fb_writer w = fb_view_key(key, sizeof key, FB_TAG_FIELD, p->area);
    fb_write_id(&w, p->record);
    fb_write_span16(&w, column->name);
    fb_write_bytes(&w, column->siblings + (size_t)at * FB_SIBLING_BYTES, FB_DOT_BYTES);
    fb_status status = fb_store_snapshot_get(e->view.store, fb_writer_span(&w), out);
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

static bool column_gather(exporting *e, const place *p, gathered *g, const fb_record_field *column)
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

static bool fields_gather(exporting *e, const place *p, const fb_record *record, lines *out)
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

static bool line_write(exporting *e, const fb_text *line)
{
    if (fb_export_write(e->out, &e->sum, line)) return true;
    snprintf(e->why, sizeof e->why, "cannot be written: %s", strerror(errno));
    return false;
}

static bool record_write(exporting *e, const fb_view_area *c, fb_span key, fb_span value)
{
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

static bool collections_write(exporting *e)
{
    for (uint32_t i = 0; i < e->view.area_count; i++) {
        const fb_view_area *area = &e->view.areas[i];
        uint8_t prefix[5];
        fb_view_key(prefix, sizeof prefix, FB_TAG_RECORD, area->local);
        fb_span key, value;
        fb_status status =
            fb_store_snapshot_first(e->view.store, fb_span_of(prefix, sizeof prefix), &key, &value);
        while (status == FB_OK) {
            if (!record_write(e, area, key, value)) return false;
            status = fb_store_snapshot_next(e->view.store, &key, &value);
        }
        if (status != FB_OK && status != FB_ERR_NOT_FOUND) return failed(e, "a record", status);
    }
    return true;
}

static bool space_write(exporting *e)
{
    fb_text line = {0};
    fb_export_begin(&e->sum);
    fb_json_open(&line, NULL, '{');
    fb_json_number(&line, "faberio_export", FB_EXPORT_VERSION);
    fb_json_uuid(&line, "space_id", e->view.id);
    fb_json_span(&line, "name", fb_span_of(e->view.name.p, e->view.name.len));
    fb_json_time(&line, "created", now_us());
    fb_json_close(&line, '}');
    bool good = line_write(e, &line);
    fb_text_clear(&line);
    good = good && collections_write(e);
    fb_json_open(&line, NULL, '{');
    fb_json_bool(&line, "end", true);
    fb_json_number(&line, "records", (int64_t)e->records);
    fb_json_close(&line, '}');
    good = good && line_write(e, &line);
    fb_text_free(&line);
    return good;
}

/* A file that is there is never written over, and one under its name is always whole. */
static bool file_write(exporting *e, const char *path)
{
    fb_new_file file;
    int error = fb_new_file_open(&file, path);
    if (error == 0) {
        int fd = dup(file.fd);
        e->out = fd < 0 ? NULL : fdopen(fd, "w");
        if (e->out == NULL) error = errno;
        if (fd >= 0 && e->out == NULL) close(fd);
    }
    bool good = error == 0 && space_write(e);
    if (e->out != NULL && fclose(e->out) != 0 && good) {
        error = errno;
        good = false;
    }
    if (good) error = fb_new_file_keep(&file);
    if (!good) fb_new_file_drop(&file);
    if (error != 0) snprintf(e->why, sizeof e->why, "%s", strerror(error));
    return good && error == 0;
}

fb_exit fb_cmd_export(fb_cli *cli)
{
    static exporting e;
    e.horizon = fb_horizon(now_us(), fb_options_default().timing.window_future_us);
    fb_exit exit = fb_space_view_open(cli, cli->argv[0], &e.view);
    if (exit == FB_EXIT_OK && !file_write(&e, cli->argv[1])) {
        exit = fb_cli_fail(FB_EXIT_FAILED, "%s: %s", cli->argv[1], e.why);
    }
    if (exit == FB_EXIT_OK) {
        fb_text out = {0};
        fb_json_open(&out, NULL, '{');
        fb_json_uuid(&out, "space_id", e.view.id);
        fb_json_number(&out, "records", (int64_t)e.records);
        fb_json_number(&out, "conflicts", (int64_t)e.conflicts);
        fb_json_close(&out, '}');
        fb_print(cli, &out);
        fb_text_free(&out);
    }
    fb_space_view_close(&e.view);
    return exit;
}
