/* SPDX-License-Identifier: Apache-2.0 */
/* faberio verify: is what this node holds of a space whole? Every record is read at one moment, its
 * fingerprint and those of its collection are worked out anew, and every value that it names is
 * looked at. The store is read as another process may read it: the node may run. With --peers the
 * node that runs is asked as well, whether those who are linked hold the same. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/cursor.h"
#include "protocol/base/uuid.h"
#include "protocol/database/record/record.h"
#include "protocol/database/tree/tree.h"
#include "protocol/store/keys.h"
#include "runtime/command/commands.h"
#include "runtime/command/http_client.h"
#include "runtime/command/space_view.h"

typedef struct item {
    uint8_t key[16], fingerprint[16];
} item;

_Static_assert(sizeof(item) == FB_TREE_ITEM_BYTES, "items as the tree takes them");

typedef struct verify {
    fb_space_view view;
    item *items; /* of the collection at hand */
    size_t count, cap;
    uint64_t records, values, damaged;
} verify;

static void wrong(verify *v, const fb_view_area *area, const fb_id *record, const char *what)
{
    char id[FB_UUID_TEXT_LEN + 1] = "";
    fb_text line = {0};
    if (record != NULL) fb_uuid_format(*record, id);
    fb_log_value(&line, area->name);
    fb_text_format(&line, "%s%s: %s", record != NULL ? "/" : "", id, what);
    fprintf(stderr, "%s\n", line.p);
    fb_text_free(&line);
    v->damaged++;
}

/* The values of a record that stand apart from it. */
static void values_check(verify *v, const fb_view_area *area, fb_id id, const fb_record *record)
{
    fb_record_walk walk = fb_record_walk_of(record);
    fb_record_field column;
    while (fb_record_next(&walk, &column)) {
        fb_record_field siblings = column;
        for (uint32_t i = 0; i < column.count; i++) {
            fb_sibling sibling = fb_record_sibling(&siblings, i);
            uint8_t key[512];
            fb_span value;
            v->values++;
            if (!sibling.apart) continue;
            fb_writer w = fb_view_key(key, sizeof key, FB_TAG_FIELD, area->local);
            fb_write_id(&w, id);
            fb_write_span16(&w, column.name);
            fb_write_bytes(&w, column.siblings + (size_t)i * FB_SIBLING_BYTES, FB_DOT_BYTES);
            fb_status status = fb_store_snapshot_get(v->view.store, fb_writer_span(&w), &value);
            if (status == FB_ERR_NOT_FOUND) wrong(v, area, &id, "a value is missing");
            if (status != FB_OK && status != FB_ERR_NOT_FOUND) {
                wrong(v, area, &id, "a value is damaged");
            } else if (status == FB_OK && value.len != sibling.len) {
                wrong(v, area, &id, "a value has another length");
            }
        }
    }
}

static void item_add(verify *v, fb_id id, const uint8_t fingerprint[16])
{
    if (v->count == v->cap) {
        v->cap = v->cap == 0 ? 1024 : 2 * v->cap;
        v->items = realloc(v->items, v->cap * sizeof *v->items);
        if (v->items == NULL) abort();
    }
    fb_tree_key(id, v->items[v->count].key);
    memcpy(v->items[v->count++].fingerprint, fingerprint, 16);
}

static void record_check(verify *v, const fb_view_area *area, fb_span key, fb_status status,
                         fb_span value)
{
    fb_record record;
    uint8_t fingerprint[16];
    fb_reader k = fb_reader_of(key);
    fb_read_bytes(&k, 5);
    fb_id id = fb_read_id(&k);
    v->records++;
    if (status != FB_OK || fb_record_decode(value, &record) != FB_OK) {
        wrong(v, area, &id, "the record is damaged");
        return;
    }
    if (fb_record_is_empty(&record)) wrong(v, area, &id, "a deleted record was left behind");
    fb_record_fingerprint(id, record.state, fingerprint);
    item_add(v, id, fingerprint);
    if (memcmp(fingerprint, record.fingerprint, sizeof fingerprint) != 0) {
        wrong(v, area, &id, "the fingerprint is not that of the record");
    }
    values_check(v, area, id, &record);
}

static int by_key(const void *a, const void *b)
{
    return memcmp(a, b, 16);
}

/* The fingerprint that peers are told of against that of what is there. */
static void root_check(verify *v, const fb_view_area *area)
{
    uint8_t key[6], told[16], is[16];
    fb_tree_node root;
    fb_tree_root info = {0, 0};
    fb_span value;
    fb_writer w = fb_view_key(key, sizeof key, FB_TAG_TREE, area->local);
    fb_write_u8(&w, 0); /* depth */
    fb_status status = fb_store_snapshot_get(v->view.store, fb_writer_span(&w), &value);
    if (status == FB_ERR_NOT_FOUND) value = (fb_span){NULL, 0};
    if ((status != FB_OK && status != FB_ERR_NOT_FOUND) ||
        fb_tree_decode(value, &root, &info) != FB_OK) {
        wrong(v, area, NULL, "the root of its fingerprints is damaged");
        return;
    }
    qsort(v->items, v->count, sizeof *v->items, by_key);
    fb_tree_fingerprint(&root, told);
    fb_tree_recompute((const uint8_t *)v->items, v->count, is);
    if (memcmp(told, is, sizeof is) != 0) {
        wrong(v, area, NULL, "its fingerprint is not that of its records");
    }
}

static bool area_check(verify *v, const fb_view_area *area)
{
    uint8_t prefix[5];
    fb_view_key(prefix, sizeof prefix, FB_TAG_RECORD, area->local);
    fb_span key, value;
    uint64_t before = v->damaged;
    v->count = 0;
    fb_status status =
        fb_store_snapshot_first(v->view.store, fb_span_of(prefix, sizeof prefix), &key, &value);
    while (key.len != 0) {
        record_check(v, area, key, status, value);
        status = fb_store_snapshot_next(v->view.store, &key, &value);
    }
    if (status == FB_ERR_STORE_DAMAGED) {
        wrong(v, area, NULL, "what is behind the last record cannot be read");
    } else if (status == FB_ERR_STORE_FAILED) {
        fb_cli_fail(FB_EXIT_FAILED, "%s", fb_error_text(status));
        return false;
    }
    /* With a record missing the rest cannot agree. */
    if (v->damaged == before) root_check(v, area);
    return true;
}

/* What the members that are linked hold, as the node tells it. */
static fb_exit peers_ask(fb_cli *cli, json_t **out)
{
    fb_text path = {0}, answer;
    fb_text_put(&path, "/v1/spaces");
    fb_path_put(&path, cli->argv[0]);
    fb_text_put(&path, "/verify");
    fb_exit exit = fb_http_run(cli, "GET", path.p, NULL, NULL, &answer);
    fb_text_free(&path);
    if (exit != FB_EXIT_OK) return exit;
    json_error_t error;
    *out = json_loadb(fb_text_string(&answer), answer.len, 0, &error);
    fb_text_free(&answer);
    if (*out != NULL) return FB_EXIT_OK;
    return fb_cli_fail(FB_EXIT_FAILED, "the node's answer cannot be read");
}

static fb_exit peers_exit(const json_t *peers)
{
    static const struct {
        const char *status;
        fb_exit exit;
    } exits[] = {{"same", FB_EXIT_OK},          {"incomplete", FB_EXIT_UNREACHABLE},
                 {"differs", FB_EXIT_DEGRADED}, {"behind", FB_EXIT_AGAIN},
                 {"unsure", FB_EXIT_AGAIN},     {"unreachable", FB_EXIT_UNREACHABLE}};
    const char *status = json_string_value(json_object_get(peers, "status"));
    for (size_t i = 0; status != NULL && i < sizeof exits / sizeof exits[0]; i++) {
        if (strcmp(status, exits[i].status) == 0) return exits[i].exit;
    }
    return FB_EXIT_FAILED;
}

static void peers_show(fb_text *out, const json_t *peers)
{
    char *list = json_dumps(json_object_get(peers, "peers"), JSON_COMPACT);
    if (list != NULL) fb_json_raw(out, "peers", fb_span_text(list));
    free(list);
    const char *status = json_string_value(json_object_get(peers, "status"));
    fb_json_member(out, "status", status != NULL ? status : "failed");
}

fb_exit fb_cmd_verify(fb_cli *cli)
{
    static verify v;
    json_t *peers = NULL;
    if (fb_cli_option(cli, "peers") != NULL) {
        fb_exit asked = peers_ask(cli, &peers);
        if (asked != FB_EXIT_OK) return asked;
    }
    fb_exit exit = fb_space_view_open(cli, cli->argv[0], &v.view);
    for (uint32_t i = 0; exit == FB_EXIT_OK && i < v.view.area_count; i++) {
        if (!area_check(&v, &v.view.areas[i])) exit = FB_EXIT_FAILED;
    }
    if (exit == FB_EXIT_OK) {
        fb_text out = {0};
        fb_json_open(&out, NULL, '{');
        fb_json_uuid(&out, "space_id", v.view.id);
        fb_json_number(&out, "collections", v.view.area_count);
        fb_json_number(&out, "records", (int64_t)v.records);
        fb_json_number(&out, "values", (int64_t)v.values);
        fb_json_number(&out, "damaged", (int64_t)v.damaged);
        if (peers != NULL) peers_show(&out, peers);
        fb_json_close(&out, '}');
        fb_print(cli, &out);
        fb_text_free(&out);
        if (peers != NULL) exit = peers_exit(peers);
        if (v.damaged != 0) exit = FB_EXIT_DEGRADED;
    }
    json_decref(peers);
    free(v.items);
    fb_space_view_close(&v.view);
    return exit;
}
