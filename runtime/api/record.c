/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers about records and their changes. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/cursor.h"
#include "protocol/base/hex.h"
#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"
#include "runtime/api/handlers.h"
#include "runtime/api/request_codec.h"
#include "runtime/command/record_arguments.h"

/* One entity tag as RFC 9110, 8.8.3 has them. */
static bool etag_like(const char *text, size_t len)
{
    if (len > 2 && memcmp(text, "W/", 2) == 0) {
        text += 2;
        len -= 2;
    }
    if (len < 2 || text[0] != '"' || text[len - 1] != '"') return false;
    for (size_t i = 1; i + 1 < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c <= 0x20 || c == 0x7f) return false;
    }
    return true;
}

/* If-Match: "ETAG", If-None-Match: *. */
static bool condition_read(fb_exchange *x, uint8_t *condition, fb_id *etag)
{
    const char *match = fb_exchange_header(x, "If-Match");
    const char *none = fb_exchange_header(x, "If-None-Match");
    *condition = FB_CONDITION_NONE;
    memset(etag, 0, sizeof *etag);
    if (match != NULL && none != NULL) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT, "If-Match and If-None-Match exclude each other");
        return false;
    }
    if (none != NULL) {
        *condition = FB_CONDITION_ABSENT;
        if (strcmp(none, "*") == 0) return true;
        fb_exchange_fail(x, FB_ERR_ARGUMENT, "If-None-Match: only * is understood");
        return false;
    }
    if (match == NULL) return true;
    *condition = FB_CONDITION_MATCH;
    size_t len = strlen(match);
    while (len > 0 && (match[len - 1] == ' ' || match[len - 1] == '\t')) len--;
    if (len == 34 && match[0] == '"' && match[33] == '"' &&
        fb_hex_parse(fb_span_of(match + 1, 32), etag->b, sizeof etag->b)) {
        return true;
    }
    /* A tag that this node never gave, or a weak one, is well formed and matches nothing (RFC 9110,
     * 13.1.1), as zeros do. The node says so, after it has judged whether the caller may ask: who
     * may not is not told by another answer that the space is there. */
    memset(etag, 0, sizeof *etag);
    if (etag_like(match, len)) return true;
    fb_exchange_fail(x, FB_ERR_ARGUMENT, "If-Match: one etag in double quotes is expected");
    return false;
}

/* The id in args[2]; `new` gives zeros where that is allowed. */
static bool record_id(fb_exchange *x, const char *text, bool may_be_new)
{
    memset(&x->record, 0, sizeof x->record);
    if (may_be_new && strcmp(text, "new") == 0) return true;
    if (fb_uuid_parse_v7(fb_span_text(text), &x->record)) return true;
    fb_exchange_fail(x, FB_ERR_BAD_UUID,
                     may_be_new ? "id: a UUID of version 7 in lowercase, or new"
                                : "id: a UUID of version 7 in lowercase");
    return false;
}

static void ask(fb_exchange *x, fb_verb verb, const fb_writer *arguments, fb_exchange_step step)
{
    fb_exchange_ask(x, verb, x->principal, fb_writer_span(arguments), step);
}

/* Writing one record: put, then read, so that the answer is the whole record. */

static void etag_show(fb_exchange *x, const fb_id *etag)
{
    char digits[33];
    fb_hex_text(etag->b, sizeof etag->b, digits);
    snprintf(x->etag_header, sizeof x->etag_header, "\"%s\"", digits);
}

static void got(fb_exchange *x, fb_error error, fb_span answer)
{
    if (fb_exchange_refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_reader head = r;
    fb_read_id(&head);
    fb_id etag = fb_read_id(&head);
    if (!fb_json_record(&x->out, &r) || !fb_reader_done(&r)) {
        fb_exchange_finish(x, 200, false);
        return;
    }
    if (x->etag_header[0] == 0) etag_show(x, &etag);
    fb_exchange_answer(x, x->created ? 201 : 200);
}

void fb_record_show(fb_exchange *x)
{
    uint8_t room[16 + 3 + FB_COLLECTION_NAME_BYTES_MAX + 16];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_collection_write(&w, x->args[1]);
    fb_write_id(&w, x->record);
    ask(x, FB_VERB_RECORD_GET, &w, got);
}

static void put_done(fb_exchange *x, fb_error error, fb_span answer)
{
    fb_arguments_give(x);
    if (fb_exchange_refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    x->record = fb_read_id(&r);
    x->created = fb_read_u8(&r) == 1;
    fb_id etag = fb_read_id(&r);
    if (!fb_reader_done(&r)) {
        fb_exchange_finish(x, 200, false);
        return;
    }
    etag_show(x, &etag);
    char id[FB_UUID_TEXT_LEN + 1] = "";
    fb_uuid_format(x->record, id);
    if (x->created) snprintf(x->location, sizeof x->location, "%s", id);
    fb_record_show(x);
}

static void put_in_space(fb_exchange *x)
{
    uint8_t condition;
    fb_id etag;
    fb_json_object_in body;
    if (!fb_collection_check(x) || !record_id(x, x->args[2], true) ||
        !condition_read(x, &condition, &etag))
        return;
    if (!fb_exchange_body(x, &body, NULL)) return;
    fb_writer w = fb_arguments_take(x);
    fb_write_id(&w, x->space);
    fb_collection_write(&w, x->args[1]);
    fb_write_id(&w, x->record);
    fb_write_u8(&w, strcmp(x->method, "PUT") == 0 ? FB_MODE_REPLACE : FB_MODE_CHANGE);
    fb_write_u8(&w, condition);
    fb_write_id(&w, etag);
    if (!fb_fields_write(x, &w, &body, "")) {
        /* answered */
    } else if (w.failed) {
        fb_exchange_fail(x, FB_ERR_TOO_LARGE, NULL);
    } else {
        fb_exchange_ask(x, FB_VERB_RECORD_PUT, x->principal, fb_writer_span(&w), put_done);
    }
    fb_json_object_free(&body);
}

void fb_put_record(fb_exchange *x)
{
    fb_exchange_with_space(x, put_in_space);
}

void fb_patch_record(fb_exchange *x)
{
    fb_exchange_with_space(x, put_in_space);
}

static void get_in_space(fb_exchange *x)
{
    if (fb_collection_check(x) && record_id(x, x->args[2], false)) fb_record_show(x);
}

void fb_get_record(fb_exchange *x)
{
    fb_exchange_with_space(x, get_in_space);
}

static void deleted(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)answer;
    if (fb_exchange_refused(x, error)) return;
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "id", x->record);
    fb_json_bool(&x->out, "deleted", true);
    fb_exchange_finish(x, 200, true);
}

static void delete_in_space(fb_exchange *x)
{
    uint8_t condition;
    fb_id etag;
    if (!fb_collection_check(x) || !record_id(x, x->args[2], false) ||
        !condition_read(x, &condition, &etag))
        return;
    uint8_t room[16 + 3 + FB_COLLECTION_NAME_BYTES_MAX + 33];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_collection_write(&w, x->args[1]);
    fb_write_id(&w, x->record);
    fb_write_u8(&w, condition);
    fb_write_id(&w, etag);
    ask(x, FB_VERB_RECORD_DELETE, &w, deleted);
}

void fb_delete_record(fb_exchange *x)
{
    fb_exchange_with_space(x, delete_in_space);
}

/* Lists. */

static void listed(fb_exchange *x, fb_error error, fb_span answer)
{
    if (fb_exchange_refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    bool whole = fb_read_u8(&r) == 1;
    uint16_t count = fb_read_u16(&r);
    fb_id last = {{0}};
    fb_json_open(&x->out, NULL, '{');
    fb_json_open(&x->out, "records", '[');
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_reader head = r;
        last = fb_read_id(&head);
        if (!fb_json_record(&x->out, &r)) break;
    }
    fb_json_close(&x->out, ']');
    if (!fb_reader_done(&r)) {
        fb_exchange_finish(x, 200, false);
        return;
    }
    if (whole || count == 0) {
        fb_json_raw(&x->out, "next", fb_span_text("null"));
    } else {
        fb_json_uuid(&x->out, "next", last);
    }
    fb_json_close(&x->out, '}');
    fb_exchange_answer(x, 200);
}

static void list_in_space(fb_exchange *x)
{
    const char *limit_text = fb_exchange_query(x, "limit");
    const char *after_text = fb_exchange_query(x, "after");
    unsigned long long limit = FB_LIST_ITEMS_MAX;
    fb_id after = {{0}};
    if (!fb_collection_check(x)) return;
    if (limit_text != NULL && (!fb_text_number(limit_text, UINT32_MAX, &limit) || limit == 0)) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT, "limit: a number from 1 is expected");
        return;
    }
    if (after_text != NULL && !fb_uuid_parse_v7(fb_span_text(after_text), &after)) {
        fb_exchange_fail(x, FB_ERR_BAD_UUID, "after: the id of a record is expected");
        return;
    }
    uint8_t room[16 + 3 + FB_COLLECTION_NAME_BYTES_MAX + 20];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_collection_write(&w, x->args[1]);
    fb_write_id(&w, after);
    fb_write_u32(&w, limit > FB_LIST_ITEMS_MAX ? FB_LIST_ITEMS_MAX : (uint32_t)limit);
    ask(x, FB_VERB_RECORD_LIST, &w, listed);
}

void fb_get_records(fb_exchange *x)
{
    fb_exchange_with_space(x, list_in_space);
}
