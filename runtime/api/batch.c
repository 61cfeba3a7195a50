/* SPDX-License-Identifier: Apache-2.0 */
/* POST .../records:batch: {"changes":[{"id":ID or "new","fields":{...}},{"id":ID,"delete":true}]},
 * each with "if_match":ETAG or "if_absent":true, with fields "replace":true. One condition that
 * does not hold, and nothing is stored. */
#include <stdio.h>
#include <string.h>

#include "protocol/base/hex.h"
#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"
#include "runtime/api/handlers.h"
#include "runtime/api/request_codec.h"
#include "runtime/command/record_arguments.h"

static void batch_done(fb_exchange *x, fb_error error, fb_span answer)
{
    fb_arguments_give(x);
    fb_reader r = fb_reader_of(answer);
    uint16_t count = fb_read_u16(&r);
    if (error != FB_OK) {
        char detail[192];
        snprintf(detail, sizeof detail, "changes[%u]: %s", count, fb_error_text(error));
        fb_exchange_fail(x, error, fb_reader_done(&r) ? detail : NULL);
        return;
    }
    fb_json_open(&x->out, NULL, '{');
    fb_json_open(&x->out, "changes", '[');
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_json_open(&x->out, NULL, '{');
        fb_json_uuid(&x->out, "id", fb_read_id(&r));
        fb_json_bool(&x->out, "created", fb_read_u8(&r) == 1);
        fb_id etag = fb_read_id(&r);
        fb_json_hex(&x->out, "etag", etag.b, sizeof etag.b);
        fb_json_close(&x->out, '}');
    }
    fb_json_close(&x->out, ']');
    fb_exchange_finish(x, 200, fb_reader_done(&r));
}

/* The text of a member, as it was written. */
static fb_span member_text(const fb_json_object_in *object, const char *name)
{
    for (size_t i = 0; i < object->count; i++) {
        const fb_json_member_in *m = &object->members[i];
        if (strcmp(fb_text_string(&m->name), name) == 0)
            return fb_span_of(m->value.p, m->value.len);
    }
    return (fb_span){NULL, 0};
}

static bool wrong(fb_exchange *x, const char *where, const char *what)
{
    char detail[192];
    snprintf(detail, sizeof detail, "%s%s", where, what);
    fb_exchange_fail(x, FB_ERR_ARGUMENT, detail);
    return false;
}

/* What has to hold of the record for any of the batch to be stored. */
static bool condition_write(fb_exchange *x, fb_writer *w, const char *where,
                            const fb_json_object_in *change)
{
    const json_t *match = json_object_get(change->tree, "if_match");
    const json_t *absent = json_object_get(change->tree, "if_absent");
    fb_id etag = {{0}};
    const char *text = json_string_value(match);
    bool is_etag = text != NULL && fb_hex_parse(fb_span_text(text), etag.b, sizeof etag.b);
    if ((match != NULL && !is_etag) || (absent != NULL && !json_is_true(absent)) ||
        (match != NULL && absent != NULL)) {
        return wrong(x, where, "if_match: an etag; or if_absent: true; not both");
    }
    fb_write_u8(w, match != NULL    ? FB_CONDITION_MATCH
                   : absent != NULL ? FB_CONDITION_ABSENT
                                    : FB_CONDITION_NONE);
    fb_write_id(w, etag);
    return true;
}

static bool members_known(fb_exchange *x, const char *where, const fb_json_object_in *change)
{
    static const char *const known[] = {"id",      "fields",   "delete",
                                        "replace", "if_match", "if_absent"};
    for (size_t i = 0; i < change->count; i++) {
        size_t k = 0;
        while (k < sizeof known / sizeof known[0] &&
               strcmp(fb_text_string(&change->members[i].name), known[k]) != 0) {
            k++;
        }
        if (k < sizeof known / sizeof known[0]) continue;
        return wrong(x, where, "members are id, fields or delete, replace, if_match, if_absent");
    }
    return true;
}

/* One change; false after it answered. */
static bool change_write(fb_exchange *x, fb_writer *w, const char *where,
                         const fb_json_object_in *change)
{
    const char *id = json_string_value(json_object_get(change->tree, "id"));
    bool has_fields = json_is_object(json_object_get(change->tree, "fields"));
    bool removes = json_is_true(json_object_get(change->tree, "delete"));
    const json_t *replaces = json_object_get(change->tree, "replace");
    if (!members_known(x, where, change)) return false;
    if (id == NULL || removes == has_fields) {
        return wrong(x, where, "an id, and either fields or delete, are expected");
    }
    if (replaces != NULL && (removes || !json_is_boolean(replaces))) {
        return wrong(x, where, "replace: true or false, beside fields");
    }
    memset(&x->record, 0, sizeof x->record);
    bool is_new = !removes && strcmp(id, "new") == 0;
    if (!is_new && !fb_uuid_parse_v7(fb_span_text(id), &x->record)) {
        return wrong(x, where, "id: a UUID of version 7, or new with fields");
    }
    fb_write_u8(w, removes ? FB_VERB_RECORD_DELETE : FB_VERB_RECORD_PUT);
    fb_write_id(w, x->space);
    fb_collection_write(w, x->args[1]);
    fb_write_id(w, x->record);
    if (!removes) fb_write_u8(w, json_is_true(replaces) ? FB_MODE_REPLACE : FB_MODE_CHANGE);
    if (!condition_write(x, w, where, change)) return false;
    if (removes) return true;
    fb_json_object_in fields;
    char why[160];
    if (!fb_json_object_read(member_text(change, "fields"), &fields, why, sizeof why)) {
        return wrong(x, where, why);
    }
    bool ok = fb_fields_write(x, w, &fields, where);
    fb_json_object_free(&fields);
    return ok;
}

static bool changes_write(fb_exchange *x, fb_writer *w, fb_span array)
{
    fb_span element;
    size_t at = 0;
    for (unsigned i = 0; fb_json_element_next(array, &at, &element); i++) {
        char where[32], why[160];
        fb_json_object_in change;
        snprintf(where, sizeof where, "changes[%u]: ", i);
        if (!fb_json_object_read(element, &change, why, sizeof why)) return wrong(x, where, why);
        bool ok = change_write(x, w, where, &change);
        fb_json_object_free(&change);
        if (!ok) return false;
    }
    return true;
}

static void batch_in_space(fb_exchange *x)
{
    fb_json_object_in body;
    if (!fb_collection_check(x) || !fb_exchange_body(x, &body, "changes")) return;
    size_t count = json_array_size(json_object_get(body.tree, "changes"));
    if (count == 0 || count > FB_BATCH_CHANGES_MAX) {
        char what[64];
        snprintf(what, sizeof what, "an array of 1 to %u is expected", FB_BATCH_CHANGES_MAX);
        wrong(x, "changes: ", what);
    } else {
        fb_writer w = fb_arguments_take(x);
        fb_write_u16(&w, (uint16_t)count);
        if (!changes_write(x, &w, member_text(&body, "changes"))) {
            /* answered */
        } else if (w.failed) {
            fb_exchange_fail(x, FB_ERR_TOO_LARGE, NULL);
        } else {
            fb_exchange_ask(x, FB_VERB_RECORD_BATCH, x->principal, fb_writer_span(&w), batch_done);
        }
    }
    fb_json_object_free(&body);
}

void fb_post_batch(fb_exchange *x)
{
    fb_exchange_with_space(x, batch_in_space);
}
