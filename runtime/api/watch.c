/* SPDX-License-Identifier: Apache-2.0 */
/* GET .../changes: the change feed of a space as server-sent events. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"
#include "runtime/api/handlers.h"
#include "runtime/api/internal.h"
#include "runtime/api/request_codec.h"
#include "runtime/exit.h"

/* How much of the feed may wait in this process for a client that reads slowly. */
#define WATCH_CREDIT (2u * FB_REPLY_BYTES_MAX)

/* With that much text ready for the client no further record is read. */
#define WATCH_TEXT (4u * FB_REPLY_BYTES_MAX)

/* In a row of its own: no change, but where the feed is then. */
#define MARK 0u

/* Changes that were told and wait for their record to be read: as the node told them. */
typedef struct feed {
    fb_text changes;
    size_t at;       /* of the next one */
    uint64_t credit; /* bytes of answers taken, not yet given back */
    bool over;
    fb_error error;   /* why */
    const char *only; /* changes of this collection alone, by name or its area's UUID; or NULL */
    fb_feed_cursor passed; /* the newest change that was left out since something was told */
} feed;

typedef struct change {
    fb_feed_cursor cursor;
    fb_id area;
    fb_id record;
    uint8_t kind; /* 1 changed, 2 deleted, MARK */
    fb_span collection;
} change;

static change change_next(fb_reader *r, fb_id space)
{
    change c;
    c.cursor = fb_feed_cursor_read(r, space);
    c.area = fb_read_id(r);
    c.record = fb_read_id(r);
    c.kind = fb_read_u8(r);
    c.collection = fb_read_span16(r);
    return c;
}

static fb_reader feed_reader(const feed *f)
{
    return fb_reader_of(fb_span_of(f->changes.p + f->at, f->changes.len - f->at));
}

/* A client that hears of nothing else goes on from there: an id without data is no event. */
static void mark_show(fb_exchange *x, fb_feed_cursor cursor)
{
    char text[FB_CURSOR_TEXT_MAX + 1];
    fb_text_format(&x->out, "id: %s\n\n", fb_feed_cursor_format(cursor, text));
}

static void mark_add(feed *f, fb_feed_cursor cursor)
{
    uint8_t row[16 + 16 + 16 + 1 + 2] = {0};
    fb_writer w = fb_writer_of(row, sizeof row);
    fb_write_u64(&w, cursor.sequence);
    fb_write_u64(&w, cursor.incarnation);
    fb_text_bytes(&f->changes, row, sizeof row);
}

/* The oldest change of the feed, with its record as it is now, or NULL. One that cannot be shown
 * does not hold up what is behind it. */
static void change_show(fb_exchange *x, fb_reader *record, fb_error error)
{
    feed *f = x->own;
    fb_reader r = feed_reader(f);
    change c = change_next(&r, x->space);
    f->at = f->changes.len - fb_reader_left(&r);
    fb_text line = {0};
    fb_json_open(&line, NULL, '{');
    char cursor[FB_CURSOR_TEXT_MAX + 1];
    fb_json_member(&line, "cursor", fb_feed_cursor_format(c.cursor, cursor));
    fb_json_member(&line, "change", c.kind == 2 ? "deleted" : "changed");
    fb_json_span(&line, "collection", c.collection);
    fb_json_uuid(&line, "area_id", c.area);
    fb_json_uuid(&line, "id", c.record);
    fb_json_name(&line, "record");
    if (record == NULL || !fb_json_record(&line, record)) fb_text_put(&line, "null");
    if (error != FB_OK) fb_json_error(&line, "record_error", error);
    fb_json_close(&line, '}');
    fb_text_format(&x->out, "id: %s\nevent: change\ndata: ", cursor);
    fb_text_bytes(&x->out, line.p, line.len);
    fb_text_put(&x->out, "\n\n");
    fb_text_free(&line);
}

static void stream_failed(fb_exchange *x, fb_error error)
{
    fb_text_put(&x->out, "event: error\ndata: ");
    fb_text line = {0};
    fb_json_open(&line, NULL, '{');
    fb_json_number(&line, "status", fb_http_of_error(error));
    fb_json_member(&line, "code", fb_error_name(error));
    fb_json_member(&line, "title", fb_error_text(error));
    fb_json_close(&line, '}');
    fb_text_bytes(&x->out, line.p, line.len);
    fb_text_put(&x->out, "\n\n");
    fb_text_free(&line);
    x->stream_over = true;
}

static void record_read(fb_exchange *x, fb_error error, fb_span answer);

static bool is_wanted(const feed *f, const change *c)
{
    fb_id area;
    if (f->only == NULL) return true;
    if (fb_uuid_parse_v7(fb_span_text(f->only), &area)) return fb_id_equal(area, c->area);
    return fb_span_equal(fb_span_text(f->only), c->collection);
}

/* Tells what is known, asks for the record of the next change, or takes more changes. */
static void feed_go_on(fb_exchange *x)
{
    feed *f = x->own;
    if (!x->streaming || x->stream_over || x->request != 0) return;
    while (f->at < f->changes.len && x->out.len < WATCH_TEXT) {
        fb_reader r = feed_reader(f);
        change c = change_next(&r, x->space);
        if (c.kind == MARK) {
            mark_show(x, c.cursor);
            f->passed.sequence = 0;
            f->at = f->changes.len - fb_reader_left(&r);
            continue;
        }
        if (!is_wanted(f, &c)) {
            f->passed = c.cursor;
            f->at = f->changes.len - fb_reader_left(&r);
            continue;
        }
        f->passed.sequence = 0;
        if (c.kind == 2) {
            change_show(x, NULL, FB_OK);
            continue;
        }
        uint8_t room[16 + 1 + 16 + 16];
        fb_writer w = fb_writer_of(room, sizeof room);
        fb_write_id(&w, x->space);
        fb_write_u8(&w, 2);
        fb_write_id(&w, c.area);
        fb_write_id(&w, c.record);
        if (!fb_exchange_ask(x, FB_VERB_RECORD_GET, x->principal, fb_writer_span(&w),
                             record_read)) {
            stream_failed(x, FB_ERR_AGAIN);
        }
        break;
    }
    if (f->at == f->changes.len) {
        /* Also who wants none of these goes on behind them. */
        if (f->passed.sequence != 0) mark_show(x, f->passed);
        f->passed.sequence = 0;
        fb_text_clear(&f->changes);
        f->at = 0;
        if (f->over && f->error != FB_OK) stream_failed(x, f->error);
        if (f->over) x->stream_over = true;
        if (!f->over && x->out.len == 0 && f->credit > 0) {
            fb_loop_credit(x->api->options.loop, x->long_request, f->credit);
            f->credit = 0;
        }
    }
    fb_exchange_stream_more(x);
}

static void record_read(fb_exchange *x, fb_error error, fb_span answer)
{
    fb_reader r = fb_reader_of(answer);
    if (error == FB_OK || error == FB_ERR_NOT_FOUND) {
        change_show(x, error == FB_OK ? &r : NULL, FB_OK);
    } else if (error == FB_ERR_LIMIT) {
        change_show(x, NULL, error);
    } else {
        stream_failed(x, error);
    }
    feed_go_on(x);
    fb_exchange_stream_more(x);
}

/* The first piece says where the watch begins: nothing is missed from there on, and the headers may
 * go out. A watch that is refused has none. */
static void begins(fb_exchange *x, fb_feed_cursor cursor)
{
    fb_text_put(&x->out, ": watching\n");
    mark_show(x, cursor);
    fb_exchange_stream(x, "text/event-stream");
    fb_api_feeds_beat(x->api);
}

static void piece_take(fb_exchange *x, fb_span answer)
{
    feed *f = x->own;
    fb_reader r = fb_reader_of(answer);
    uint16_t count = fb_read_u16(&r);
    size_t from = fb_reader_left(&r);
    fb_feed_cursor last = {0, 0, 0};
    for (uint16_t i = 0; i < count; i++) last = change_next(&r, x->space).cursor;
    fb_text_bytes(&f->changes, answer.p + answer.len - from, from - fb_reader_left(&r));
    fb_feed_cursor at = fb_feed_cursor_read(&r, x->space);
    FB_ASSERT(fb_reader_done(&r));
    f->credit += answer.len;
    if (!x->streaming) {
        begins(x, at);
    } else if (at.sequence != last.sequence) {
        mark_add(f, at);
    }
}

static void fed(void *user, fb_error error, bool more, fb_span answer)
{
    fb_exchange *x = user;
    feed *f = x->own;
    if (error == FB_OK && more) {
        piece_take(x, answer);
    } else {
        x->long_request = 0;
        f->over = true;
        f->error = error;
        if (!x->streaming) {
            fb_exchange_fail(x, error, NULL);
            return;
        }
    }
    feed_go_on(x);
}

static void feed_end(fb_exchange *x)
{
    feed *f = x->own;
    fb_text_free(&f->changes);
    free(f);
}

/* A feed has its place for as long as its client likes: some places are for other requests. */
static bool has_place(const fb_exchange *x)
{
    uint32_t feeds = 0, own = 0;
    for (const fb_exchange *other = x->api->exchanges; other != NULL; other = other->next) {
        if (other->own_end != feed_end || other->on_port != x->on_port) continue;
        feeds++;
        own += other->principal == x->principal;
    }
    return feeds < FB_API_FEEDS_MAX && (x->principal == 0 || own < FB_API_FEEDS_APP_MAX);
}

static void watch_in_space(fb_exchange *x)
{
    if (!has_place(x)) {
        fb_exchange_fail(x, FB_ERR_BUSY, "too many feeds are open");
        return;
    }
    const char *since = fb_exchange_header(x, "Last-Event-ID");
    if (since == NULL) since = fb_exchange_query(x, "since");
    fb_feed_cursor cursor = {UINT64_MAX, 0, 0}; /* what is new */
    if (since != NULL && !fb_feed_cursor_parse(since, &cursor)) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT, "since: a cursor of an earlier event is expected");
        return;
    }
    if (since != NULL && cursor.sequence != 0 && cursor.space != fb_feed_space(x->space)) {
        fb_exchange_fail(x, FB_ERR_CURSOR_UNKNOWN, "since: a cursor of another space");
        return;
    }
    uint8_t room[32];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_write_u64(&w, cursor.sequence);
    fb_write_u64(&w, cursor.incarnation);
    fb_loop *loop = x->api->options.loop;
    x->own = calloc(1, sizeof(feed));
    FB_ASSERT(x->own != NULL);
    ((feed *)x->own)->only = fb_exchange_query(x, "collection");
    x->own_end = feed_end;
    x->drained = feed_go_on;
    fb_exchange_watch_client(x);
    x->long_request =
        fb_loop_request(loop, FB_VERB_RECORD_WATCH, x->principal, fb_writer_span(&w), fed, x);
    if (x->long_request == 0) {
        fb_exchange_refuse(x, FB_VERB_RECORD_WATCH);
        return;
    }
    fb_loop_credit(loop, x->long_request, WATCH_CREDIT);
}

void fb_get_changes(fb_exchange *x)
{
    fb_exchange_with_space(x, watch_in_space);
}
