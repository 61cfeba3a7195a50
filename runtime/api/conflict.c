/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers about fields with more than one value. An item is COLLECTION/RECORD/FIELD. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"
#include "runtime/api/handlers.h"
#include "runtime/api/internal.h"
#include "runtime/api/request_codec.h"
#include "runtime/command/record_arguments.h"

#define AREA_COLLECTION 1u

typedef struct sibling {
    fb_id node;
    int64_t stamp;
    fb_span value;
} sibling;

static sibling sibling_read(fb_reader *r)
{
    sibling s = {.node = fb_read_id(r)};
    fb_read_bytes(r, 16); /* incarnation, sequence */
    s.stamp = (int64_t)fb_read_u64(r);
    s.value = fb_read_span32(r);
    return s;
}

static void siblings_skip(fb_reader *r, uint16_t count)
{
    for (uint16_t k = 0; k < count && !r->failed; k++) sibling_read(r);
}

/* The list: one page of one collection, and where to go on. */

typedef struct place {
    char collection[FB_COLLECTION_NAME_BYTES_MAX + 1];
    char next[FB_COLLECTION_NAME_BYTES_MAX + 1]; /* the one after it; empty: none */
} place;

static void place_free(fb_exchange *x)
{
    free(x->own);
    x->own = NULL;
}

static void sibling_show(fb_text *out, const sibling *s)
{
    fb_json_raw(out, "value", s->value);
    fb_json_hex(out, "node_id", s->node.b, sizeof s->node.b);
    fb_json_time(out, "stamp", s->stamp);
}

typedef struct conflict {
    const char *collection;
    fb_id record, etag;
    fb_span field;
    uint16_t siblings;
} conflict;

static void conflict_show(fb_text *out, const conflict *c, fb_reader *r)
{
    char id[FB_UUID_TEXT_LEN + 1] = "";
    fb_uuid_format(c->record, id);
    fb_text item = {0};
    fb_text_format(&item, "%s/%s/", c->collection, id);
    fb_text_bytes(&item, c->field.p, c->field.len);
    fb_json_open(out, NULL, '{');
    fb_json_span(out, "item", fb_span_of(item.p, item.len));
    fb_json_member(out, "collection", c->collection);
    fb_json_uuid(out, "id", c->record);
    fb_json_span(out, "field", c->field);
    fb_json_hex(out, "etag", c->etag.b, sizeof c->etag.b);
    sibling s = sibling_read(r);
    sibling_show(out, &s);
    fb_json_open(out, "others", '[');
    for (uint16_t k = 1; k < c->siblings && !r->failed; k++) {
        s = sibling_read(r);
        fb_json_open(out, NULL, '{');
        sibling_show(out, &s);
        fb_json_close(out, '}');
    }
    fb_json_close(out, ']');
    fb_json_close(out, '}');
    fb_text_free(&item);
}

static fb_id record_show(fb_text *out, const char *collection, fb_reader *r)
{
    conflict c = {.collection = collection, .record = fb_read_id(r)};
    c.etag = fb_read_id(r);
    uint16_t fields = fb_read_u16(r);
    if (fields == UINT16_MAX) fields = 0; /* larger than an answer */
    for (uint16_t i = 0; i < fields && !r->failed; i++) {
        c.field = fb_read_span16(r);
        c.siblings = fb_read_u16(r);
        if (c.siblings > 1) {
            conflict_show(out, &c, r);
        } else {
            siblings_skip(r, c.siblings);
        }
    }
    return c.record;
}

static void next_show(fb_text *out, const char *collection, const fb_id *after)
{
    fb_json_open(out, "next", '{');
    fb_json_member(out, "collection", collection);
    if (after != NULL) fb_json_uuid(out, "after", *after);
    fb_json_close(out, '}');
}

static void listed(fb_exchange *x, fb_error error, fb_span answer)
{
    const place *p = x->own;
    if (fb_exchange_refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    bool whole = fb_read_u8(&r) == 1;
    uint16_t count = fb_read_u16(&r);
    fb_id last = {{0}};
    fb_json_open(&x->out, NULL, '{');
    fb_json_open(&x->out, "conflicts", '[');
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        last = record_show(&x->out, p->collection, &r);
    }
    fb_json_close(&x->out, ']');
    if (!whole && count != 0) {
        next_show(&x->out, p->collection, &last);
    } else if (p->next[0] != 0) {
        next_show(&x->out, p->next, NULL);
    } else {
        fb_json_raw(&x->out, "next", fb_span_text("null"));
    }
    fb_exchange_finish(x, 200, fb_reader_done(&r));
}

static void nothing_listed(fb_exchange *x)
{
    fb_json_open(&x->out, NULL, '{');
    fb_json_open(&x->out, "conflicts", '[');
    fb_json_close(&x->out, ']');
    fb_json_raw(&x->out, "next", fb_span_text("null"));
    fb_exchange_finish(x, 200, true);
}

/* Of the names from `from` on the two smallest: the collection to be listed, and the next one. */
static void name_take(place *p, const char *from, const char *name)
{
    if (strcmp(name, from) < 0) return;
    if (p->collection[0] == 0 || strcmp(name, p->collection) < 0) {
        strcpy(p->next, p->collection);
        strcpy(p->collection, name);
    } else if (strcmp(name, p->collection) > 0 && (p->next[0] == 0 || strcmp(name, p->next) < 0)) {
        strcpy(p->next, name);
    }
}

/* One page of areas; how many, and the last. The order of areas is the node's own; that of names is
 * not. */
static uint16_t names_take(place *p, const char *from, fb_span answer, fb_id *last)
{
    fb_reader r = fb_reader_of(answer);
    uint16_t count = fb_read_u16(&r);
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        char name[FB_COLLECTION_NAME_BYTES_MAX + 1] = "";
        *last = fb_read_id(&r);
        bool collection = fb_read_u8(&r) == AREA_COLLECTION;
        fb_span text = fb_read_span16(&r);
        fb_read_bytes(&r, 16);
        uint32_t entries = fb_read_u32(&r);
        if (entries != FB_AREA_TOO_LARGE) fb_read_bytes(&r, (size_t)entries * 40);
        if (r.failed || !collection || text.len >= sizeof name) continue;
        memcpy(name, text.p, text.len);
        name_take(p, from, name);
    }
    return r.failed ? 0 : count;
}

static void areas_known(fb_exchange *x, fb_error error, fb_span answer);

/* The names alone; the list itself is asked for as the caller. */
static void areas_ask(fb_exchange *x, fb_id after)
{
    uint8_t room[34];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_write_u16(&w, UINT16_MAX);
    fb_write_id(&w, after);
    fb_exchange_ask(x, FB_VERB_AREAS, 0, fb_writer_span(&w), areas_known);
}

static void areas_known(fb_exchange *x, fb_error error, fb_span answer)
{
    place *p = x->own;
    if (fb_exchange_refused(x, error)) return;
    const char *from = fb_exchange_query(x, "collection");
    fb_id last = {{0}};
    if (names_take(p, from != NULL ? from : "", answer, &last) != 0) {
        areas_ask(x, last);
        return;
    }
    if (p->collection[0] == 0) {
        nothing_listed(x);
        return;
    }
    bool same = from != NULL && strcmp(from, p->collection) == 0;
    static const fb_id start = {{0}};
    uint8_t room[16 + 3 + FB_COLLECTION_NAME_BYTES_MAX + 20];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_write_u8(&w, AREA_COLLECTION);
    fb_write_span16(&w, fb_span_text(p->collection));
    fb_write_id(&w, same ? x->record : start);
    fb_write_u32(&w, FB_LIST_ITEMS_MAX);
    fb_exchange_ask(x, FB_VERB_RECORD_LIST, x->principal, fb_writer_span(&w), listed);
}

static void allowed(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)answer;
    if (!fb_exchange_refused(x, error)) areas_ask(x, (fb_id){{0}});
}

static void list_in_space(fb_exchange *x)
{
    const char *after = fb_exchange_query(x, "after");
    memset(&x->record, 0, sizeof x->record);
    if (after != NULL && (fb_exchange_query(x, "collection") == NULL ||
                          !fb_uuid_parse_v7(fb_span_text(after), &x->record))) {
        fb_exchange_fail(x, FB_ERR_BAD_UUID,
                         "after: the id of a record is expected, and its collection");
        return;
    }
    x->own = calloc(1, sizeof(place));
    if (x->own == NULL) {
        fb_exchange_fail(x, FB_ERR_NO_MEMORY, NULL);
        return;
    }
    x->own_end = place_free;
    if (x->principal == 0) {
        areas_ask(x, (fb_id){{0}});
        return;
    }
    /* What there is, is the operator's to ask: first whether the caller may use the space at all.
     */
    uint8_t room[16 + 1 + 2 + 1 + 16 + 4];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_write_u8(&w, AREA_COLLECTION);
    fb_write_span16(&w, fb_span_text("?"));
    fb_write_id(&w, (fb_id){{0}});
    fb_write_u32(&w, 1);
    fb_exchange_ask(x, FB_VERB_RECORD_LIST, x->principal, fb_writer_span(&w), allowed);
}

void fb_get_conflicts(fb_exchange *x)
{
    fb_exchange_with_space(x, list_in_space);
}

/* Settling one: a write that is made only while the record is the one that was looked at. */

typedef enum keep {
    KEEP_MINE,
    KEEP_THEIRS,
    KEEP_BOTH,
    KEEP_VALUE,
} keep;

typedef struct settling {
    keep keep;
    const char *field; /* within args[1] */
    fb_text value;
} settling;

static void settling_free(fb_exchange *x)
{
    settling *s = x->own;
    fb_text_free(&s->value);
    free(s);
    x->own = NULL;
}

/* Splits args[1] in place: of "notes/ID/field" the collection is left there. */
static bool item_split(fb_exchange *x, const char **field)
{
    char *item = x->args[1];
    size_t len = strlen(item);
    for (char *slash = strchr(item, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        size_t rest = len - (size_t)(slash + 1 - item);
        if (rest < FB_UUID_TEXT_LEN + 2 || slash[1 + FB_UUID_TEXT_LEN] != '/') continue;
        if (!fb_uuid_parse_v7(fb_span_of(slash + 1, FB_UUID_TEXT_LEN), &x->record)) continue;
        *slash = 0;
        *field = slash + 1 + FB_UUID_TEXT_LEN + 1;
        return slash != item;
    }
    return false;
}

static void settled(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)answer;
    fb_arguments_give(x);
    if (!fb_exchange_refused(x, error)) fb_record_show(x);
}

static bool is_own(const fb_exchange *x, const sibling *s)
{
    return fb_id_equal(s->node, x->api->options.node->keys->node_id);
}

/* The value to write; false when nobody wrote such a one. */
static bool value_choose(const fb_exchange *x, settling *s, fb_reader *r, uint16_t siblings)
{
    bool chosen = s->keep == KEEP_VALUE;
    if (s->keep == KEEP_BOTH) fb_text_put(&s->value, "[");
    for (uint16_t k = 0; k < siblings && !r->failed; k++) {
        sibling one = sibling_read(r);
        if (s->keep == KEEP_BOTH) {
            if (k > 0) fb_text_put(&s->value, ",");
            fb_text_bytes(&s->value, one.value.p, one.value.len);
            chosen = true;
        } else if (!chosen && is_own(x, &one) == (s->keep == KEEP_MINE)) {
            fb_text_bytes(&s->value, one.value.p, one.value.len);
            chosen = true;
        }
    }
    if (s->keep == KEEP_BOTH) fb_text_put(&s->value, "]");
    return chosen && !r->failed;
}

static void write_value(fb_exchange *x, const settling *s, fb_id etag)
{
    if (s->value.len > FB_FIELD_VALUE_BYTES_MAX) {
        fb_exchange_fail(x, FB_ERR_LIMIT, "the value is too long for one field");
        return;
    }
    fb_writer w = fb_arguments_take(x);
    fb_write_id(&w, x->space);
    fb_collection_write(&w, x->args[1]);
    fb_write_id(&w, x->record);
    fb_write_u8(&w, FB_MODE_CHANGE);
    fb_write_u8(&w, FB_CONDITION_MATCH);
    fb_write_id(&w, etag);
    fb_write_u16(&w, 1);
    fb_write_span16(&w, fb_span_text(s->field));
    fb_write_u8(&w, 1);
    fb_write_span32(&w, fb_span_of(s->value.p, s->value.len));
    if (w.failed) {
        fb_exchange_fail(x, FB_ERR_NO_MEMORY, NULL);
        return;
    }
    fb_exchange_ask(x, FB_VERB_RECORD_PUT, x->principal, fb_writer_span(&w), settled);
}

static void looked_at(fb_exchange *x, fb_error error, fb_span answer)
{
    settling *s = x->own;
    if (fb_exchange_refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_read_id(&r);
    fb_id etag = fb_read_id(&r);
    uint16_t fields = fb_read_u16(&r);
    for (uint16_t i = 0; i < fields && !r.failed; i++) {
        fb_span field = fb_read_span16(&r);
        uint16_t siblings = fb_read_u16(&r);
        if (!fb_span_equal(field, fb_span_text(s->field)) || siblings < 2) {
            siblings_skip(&r, siblings);
            continue;
        }
        if (value_choose(x, s, &r, siblings)) {
            write_value(x, s, etag);
        } else {
            fb_exchange_fail(x, FB_ERR_NOT_FOUND,
                             s->keep == KEEP_MINE ? "none of the values was written by this node"
                                                  : "all of the values were written by this node");
        }
        return;
    }
    fb_exchange_fail(x, FB_ERR_NOT_FOUND, "the field has no conflict");
}

/* {"keep":"mine"|"theirs"|"both"} or {"value":JSON}. */
static bool body_read(fb_exchange *x, settling *s)
{
    static const char *const names[] = {"mine", "theirs", "both"};
    fb_json_object_in body;
    const char *text;
    if (!fb_exchange_body(x, &body, "keep value")) return false;
    bool ok = fb_exchange_body_option(x, &body, "keep", &text), found = false;
    for (uint32_t i = 0; ok && text != NULL && i < 3; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        s->keep = (keep)i;
        found = true;
    }
    for (size_t i = 0; i < body.count; i++) {
        if (strcmp(fb_text_string(&body.members[i].name), "value") != 0) continue;
        fb_text_bytes(&s->value, body.members[i].value.p, body.members[i].value.len);
        s->keep = KEEP_VALUE;
        found = true;
    }
    if (ok && (!found || body.count != 1)) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT,
                         "either keep (mine, theirs or both) or a value is expected");
        ok = false;
    }
    fb_json_object_free(&body);
    return ok;
}

static void settle_in_space(fb_exchange *x)
{
    settling *s = calloc(1, sizeof *s);
    if (s == NULL) {
        fb_exchange_fail(x, FB_ERR_NO_MEMORY, NULL);
        return;
    }
    x->own = s;
    x->own_end = settling_free;
    if (!item_split(x, &s->field)) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT, "item: COLLECTION/ID/FIELD is expected");
        return;
    }
    if (!body_read(x, s) || !fb_collection_check(x)) return;
    uint8_t room[16 + 3 + FB_COLLECTION_NAME_BYTES_MAX + 16];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_collection_write(&w, x->args[1]);
    fb_write_id(&w, x->record);
    fb_exchange_ask(x, FB_VERB_RECORD_GET, x->principal, fb_writer_span(&w), looked_at);
}

void fb_post_conflict(fb_exchange *x)
{
    fb_exchange_with_space(x, settle_in_space);
}
