/* SPDX-License-Identifier: Apache-2.0 */
#include "io/documents/outer.h"

#include <stdlib.h>
#include <string.h>

#include "io/documents/elements.h"
#include "io/documents/job.h"
#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "protocol/core/request.h"
#include "protocol/database/record/record.h"

#define SET_BYTES_MAX ((size_t)1 << 20) /* of the text of one that another program changed */

/* As in request.h. */
enum { ACT_SET = 1, ACT_UNSET = 2, ACT_ADD = 3, ACT_INSERT = 4, ACT_REMOVE = 5 };
enum { MODE_CHANGE = 2, CONDITION_NONE = 0, CONDITION_MATCH = 1, CONDITION_ABSENT = 2 };

static fb_outer *outer_new(fb_outer_kind kind, const char *collection, fb_id id)
{
    fb_outer *outer = calloc(1, sizeof *outer);
    FB_ASSERT(outer != NULL);
    outer->kind = kind;
    outer->id = id;
    outer->collection =
        (const char *)fb_room_copy(&outer->room, fb_span_of(collection, strlen(collection) + 1)).p;
    return outer;
}

fb_outer *fb_outer_token(fb_span token)
{
    fb_outer *outer = outer_new(FB_OUTER_TOKEN, "", (fb_id){{0}});
    outer->token = fb_room_copy(&outer->room, token);
    return outer;
}

void fb_outer_free(fb_outer *outer)
{
    if (outer == NULL) return;
    fb_room_free(&outer->room);
    free(outer);
}

/* What a document should show. */
static void should_show(const fb_document *document, fb_room *room, fb_document *out)
{
    fb_job_record record = {.collection = document->collection,
                            .id = document->id,
                            .record = document->record,
                            .values = (fb_document_value *)(uintptr_t)document->values,
                            .value_count = document->value_count};
    *out = (fb_document){.id = document->id};
    if (document->record.len != 0) {
        fb_job_compose(&record, NULL, room, out);
        fb_job_show(&record, document->horizon, room, out);
    }
}

static fb_span shown_in(const fb_document *shown, fb_span name)
{
    for (size_t i = 0; i < shown->field_count; i++) {
        if (fb_span_equal(shown->fields[i].name, name)) return shown->fields[i].json;
    }
    return (fb_span){NULL, 0};
}

/* Of the columns that a record has for a field: a counter or a set says so. */
static uint8_t kind_of(const fb_record *record, fb_span name)
{
    fb_record_walk walk = fb_record_walk_of(record);
    fb_record_field field;
    uint8_t kind = FB_FIELD_REGISTER;
    while (fb_record_next(&walk, &field)) {
        fb_column column = fb_column_of(field.name);
        if (fb_span_equal(column.field, name) && field.count != 0) kind = (uint8_t)column.kind;
    }
    return kind;
}

typedef struct taking {
    fb_outer *outer;
    const fb_document *shown;
    const fb_record *record; /* NULL: none */
} taking;

static fb_outer_field *field_add(fb_outer *outer)
{
    if (outer->field_count == outer->field_cap) {
        size_t cap = outer->field_cap == 0 ? 8 : 2 * outer->field_cap;
        fb_outer_field *fields = fb_room_take(&outer->room, cap * sizeof *fields);
        if (outer->field_count != 0) {
            memcpy(fields, outer->fields, outer->field_count * sizeof *fields);
        }
        outer->fields = fields;
        outer->field_cap = cap;
    }
    return &outer->fields[outer->field_count++];
}

static bool take_field(void *user, fb_span name, fb_span json)
{
    taking *t = user;
    fb_outer_field *field = field_add(t->outer);
    *field = (fb_outer_field){.name = fb_room_copy(&t->outer->room, name),
                              .was = fb_room_copy(&t->outer->room, shown_in(t->shown, name)),
                              .is = fb_room_copy(&t->outer->room, json),
                              .kind = FB_FIELD_REGISTER};
    if (t->record != NULL) field->kind = kind_of(t->record, name);
    return true;
}

static void leave(fb_outer *outer, const char *why)
{
    outer->kind = FB_OUTER_LEFT;
    size_t len = strlen(why);
    if (len >= sizeof outer->why) len = sizeof outer->why - 1;
    memcpy(outer->why, why, len);
    outer->why[len] = 0;
}

/* Sets */

static bool is_element(fb_span array, fb_span wanted)
{
    fb_span element;
    while (fb_element_next(&array, &element)) {
        if (fb_span_equal(element, wanted)) return true;
    }
    return false;
}

/* Adds the elements of a that b does not have. False: they are too many. */
static bool moves_add(fb_outer_field *field, fb_span a, fb_span b)
{
    fb_span element;
    while (fb_element_next(&a, &element)) {
        if (is_element(b, element)) continue;
        if (field->move_count == FB_WRITE_ITEMS_MAX) return false;
        field->moves[field->move_count++] = element;
    }
    return true;
}

/* False: no request says so much, nor is it worth the time to look through it. */
static bool moves_take(fb_room *room, fb_outer_field *field)
{
    field->gone = field->move_count = 0;
    if (field->kind != FB_FIELD_ELEMENT || field->is.len == 0 || field->is.p[0] != '[') return true;
    if (field->is.len > SET_BYTES_MAX) return false;
    field->moves = fb_room_take(room, FB_WRITE_ITEMS_MAX * sizeof *field->moves);
    if (!moves_add(field, field->was, field->is)) return false;
    field->gone = field->move_count;
    return moves_add(field, field->is, field->was);
}

/* The fields of `document`, whose record is that of `base`, that are not as they should be. */
static void take_edits(fb_outer *outer, const fb_documents_ops *ops, const fb_document *document,
                       const fb_document *base)
{
    fb_document shown = {.id = document->id};
    fb_record record;
    bool known =
        base != NULL && base->record.len != 0 && fb_record_decode(base->record, &record) == FB_OK;
    char why[sizeof outer->why] = "";
    outer->field_count = 0;
    outer->has_base = known;
    if (known) {
        should_show(base, &outer->room, &shown);
        memcpy(outer->etag, record.fingerprint, sizeof outer->etag);
    }
    taking t = {outer, &shown, known ? &record : NULL};
    if (document->edited && ops->edits(document->whole, shown.fields, shown.field_count, take_field,
                                       &t, why, sizeof why) != FB_OK) {
        leave(outer, why);
    }
    for (size_t i = 0; i < outer->field_count; i++) {
        if (moves_take(&outer->room, &outer->fields[i])) continue;
        leave(outer, "a set has more new and missing elements than one request can say");
    }
}

static fb_outer *of_document(const fb_documents_ops *ops, const fb_document_event *change)
{
    const fb_document *document = change->document;
    if (!document->edited) return outer_new(FB_OUTER_STALE, change->collection, change->id);
    fb_outer *outer = outer_new(FB_OUTER_EDIT, change->collection, change->id);
    bool stripped = document->record.len == 0 && change->before != NULL;
    if (stripped) outer->restore = fb_room_copy(&outer->room, change->before->whole);
    take_edits(outer, ops, document, stripped ? change->before : document);
    /* A document that shows nothing else, and is ours, needs nothing. */
    if (outer->kind == FB_OUTER_EDIT && outer->field_count == 0 && outer->has_base && !stripped) {
        fb_outer_free(outer);
        return NULL;
    }
    return outer;
}

fb_outer *fb_outer_make(const fb_documents_ops *ops, const fb_document_event *change)
{
    fb_outer *outer;
    switch (change->kind) {
    case FB_DOCUMENT_SEEN:
        return of_document(ops, change);
    case FB_DOCUMENT_GONE:
        outer = outer_new(change->before != NULL ? FB_OUTER_DELETE : FB_OUTER_LOST,
                          change->collection, change->id);
        if (change->before != NULL) {
            outer->restore = fb_room_copy(&outer->room, change->before->whole);
            take_edits(outer, ops, change->before, change->before);
            outer->kind = FB_OUTER_DELETE;
            outer->version = (fb_document_version){change->before->start, change->before->number};
        }
        outer->look = true;
        return outer;
    case FB_DOCUMENT_ALIEN:
        outer = outer_new(FB_OUTER_LEFT, change->collection, change->id);
        leave(outer, "its _id is no UUID of version 7, or its _faberio cannot be read");
        return outer;
    case FB_DOCUMENT_DROPPED:
        return outer_new(FB_OUTER_DROPPED, change->collection, change->id);
    case FB_DOCUMENT_NOTHING:
        break;
    }
    return NULL;
}

bool fb_outer_is_as_it_was(const fb_outer *outer, fb_span stored)
{
    fb_record record;
    return outer->has_base && stored.len != 0 && fb_record_decode(stored, &record) == FB_OK &&
           memcmp(record.fingerprint, outer->etag, sizeof outer->etag) == 0;
}

bool fb_outer_is_remade(const fb_outer *outer, const fb_document *now)
{
    const fb_document_version version = {now->start, now->number};
    return fb_document_is_older(outer->version, version) &&
           fb_outer_is_as_it_was(outer, now->record);
}

void fb_outer_not_restored(fb_outer *outer, const char *why)
{
    bool removed = outer->kind == FB_OUTER_DELETE;
    leave(outer, why);
    if (removed) outer->kind = FB_OUTER_LOST;
}

static bool has_field(const fb_outer *outer, fb_span name)
{
    for (size_t i = 0; i < outer->field_count; i++) {
        if (fb_span_equal(outer->fields[i].name, name)) return true;
    }
    return false;
}

void fb_outer_rebase(fb_outer *outer, const fb_documents_ops *ops, const fb_document *now)
{
    outer->look = false;
    if (outer->kind != FB_OUTER_EDIT) return;
    const fb_outer_field *taken = outer->fields;
    size_t count = outer->field_count;
    outer->fields = NULL;
    outer->field_count = outer->field_cap = 0;
    if (now == NULL) {
        /* Nor is there anything to be made of it: it says the same as a record that is as it was.
         */
        outer->overwrote = outer->has_base = true;
        return;
    }
    take_edits(outer, ops, now, now);
    if (outer->kind != FB_OUTER_EDIT) return;
    fb_document shown;
    should_show(now, &outer->room, &shown);
    for (size_t i = 0; i < count; i++) {
        if (has_field(outer, taken[i].name)) continue;
        fb_span is = shown_in(&shown, taken[i].name);
        if (fb_span_equal(is, taken[i].is)) continue;
        if (fb_span_equal(is, taken[i].was)) {
            *field_add(outer) = taken[i];
        } else {
            outer->overwrote = true;
        }
    }
}

/* Requests */

static void act_write(fb_writer *w, fb_span name, uint8_t act, fb_span value)
{
    fb_write_span16(w, name);
    fb_write_u8(w, act);
    fb_write_span32(w, value);
}

/* One field; of a set the element of number `round`. False: nothing of it in this round. */
static bool field_write(fb_writer *w, const fb_outer_field *field, size_t round)
{
    const fb_span nothing = {NULL, 0};
    if (field->kind == FB_FIELD_ELEMENT && field->is.len != 0 && field->is.p[0] == '[') {
        if (round >= field->move_count) return false;
        act_write(w, field->name, round < field->gone ? ACT_REMOVE : ACT_INSERT,
                  field->moves[round]);
        return true;
    }
    if (round > 0) return false;
    int64_t was, is;
    if (field->kind == FB_FIELD_COUNTER && fb_integer_parse(field->was, &was) &&
        fb_integer_parse(field->is, &is) && !__builtin_sub_overflow(is, was, &is)) {
        uint8_t text[FB_INTEGER_TEXT_MAX];
        act_write(w, field->name, ACT_ADD, fb_span_of(text, fb_integer_format(is, text)));
    } else if (field->is.len == 0) {
        act_write(w, field->name, ACT_UNSET, nothing);
    } else {
        act_write(w, field->name, ACT_SET, field->is);
    }
    return true;
}

static void target_write(fb_writer *w, const fb_outer *outer)
{
    fb_write_id(w, outer->space);
    fb_write_u8(w, 2);
    fb_write_id(w, outer->area);
    fb_write_id(w, outer->id);
}

static void condition_write(fb_writer *w, const fb_outer *outer, size_t round)
{
    static const uint8_t none[16] = {0};
    bool match = outer->has_base && round == 0;
    uint8_t absent = round == 0 ? CONDITION_ABSENT : CONDITION_NONE;
    fb_write_u8(w, match ? CONDITION_MATCH : absent);
    fb_write_bytes(w, match ? outer->etag : none, sizeof none);
}

/* A change has one act for each field: what a set needs more of comes in further changes. */
static bool change_write(fb_writer *w, const fb_outer *outer, size_t round)
{
    target_write(w, outer);
    fb_write_u8(w, MODE_CHANGE);
    condition_write(w, outer, round);
    size_t count_at = w->at;
    uint16_t count = 0;
    fb_write_u16(w, 0);
    for (size_t i = 0; i < outer->field_count; i++) {
        if (field_write(w, &outer->fields[i], round)) count++;
    }
    if (!w->failed) fb_store_be(w->p + count_at, count, 2);
    return count != 0 || round == 0;
}

fb_span fb_outer_request(fb_outer *outer, uint32_t *verb)
{
    size_t bytes = 256, rounds = 1, names = 0;
    for (size_t i = 0; i < outer->field_count; i++) {
        const fb_outer_field *field = &outer->fields[i];
        bytes += field->was.len + field->is.len;
        names += field->name.len + 64;
        if (field->move_count > rounds) rounds = field->move_count;
    }
    bytes += rounds * (160 + names);
    fb_writer w = fb_writer_of(fb_room_take(&outer->room, bytes), bytes);
    if (outer->kind == FB_OUTER_DELETE) {
        *verb = FB_VERB_RECORD_DELETE;
        target_write(&w, outer);
        condition_write(&w, outer, 0);
    } else if (rounds == 1) {
        *verb = FB_VERB_RECORD_PUT;
        change_write(&w, outer, 0);
    } else {
        *verb = FB_VERB_RECORD_BATCH;
        fb_write_u16(&w, (uint16_t)rounds);
        for (size_t round = 0; round < rounds; round++) {
            fb_write_u8(&w, FB_VERB_RECORD_PUT);
            change_write(&w, outer, round);
        }
    }
    FB_ASSERT(!w.failed);
    return fb_writer_span(&w);
}
