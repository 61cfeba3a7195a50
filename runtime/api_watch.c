/* SPDX-License-Identifier: Apache-2.0 */
/* GET .../changes: the change feed of a space as server-sent events. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "runtime/exit.h"
#include "runtime/handlers.h"
#include "runtime/request_codec.h"

/* How much of the feed may wait in this process for a client that reads slowly. */
#define WATCH_CREDIT (2u * FB_REPLY_BYTES_MAX)

static void change_show(fb_text *out, fb_reader *r)
{
    uint64_t sequence = fb_read_u64(r);
    fb_id area = fb_read_id(r), record = fb_read_id(r);
    uint8_t kind = fb_read_u8(r);
    fb_span collection = fb_read_span16(r);
    if (r->failed) return;
    fb_text_format(out, "id: %llu\nevent: change\ndata: ", (unsigned long long)sequence);
    fb_text line = {0};
    fb_json_open(&line, NULL, '{');
    fb_json_u64_string(&line, "cursor", sequence);
    fb_json_member(&line, "change", kind == 2 ? "deleted" : "changed");
    fb_json_span(&line, "collection", collection);
    fb_json_uuid(&line, "area_id", area);
    fb_json_uuid(&line, "id", record);
    fb_json_close(&line, '}');
    fb_text_bytes(out, line.p, line.len);
    fb_text_put(out, "\n\n");
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

static void fed(void *user, fb_error error, bool more, fb_span answer)
{
    fb_exchange *x = user;
    if (!more) x->stream_request = 0;
    if (error == FB_OK && more) {
        fb_reader r = fb_reader_of(answer);
        uint16_t count = fb_read_u16(&r);
        for (uint16_t i = 0; i < count && !r.failed; i++) change_show(&x->out, &r);
        x->stream_credit += answer.len;
    } else if (!x->streaming) {
        fb_exchange_fail(x, error, NULL);
        return;
    } else if (error != FB_OK) {
        stream_failed(x, error);
    } else {
        x->stream_over = true;
    }
    if (x->streaming) fb_exchange_stream_more(x);
}

/* The node took the watch before it took this question: from now on nothing is missed, and the
 * headers may go out. A watch that was refused has been answered. */
static void watching(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)error;
    (void)answer;
    fb_text events = x->out;
    x->out = (fb_text){0};
    fb_text_put(&x->out, ": watching\n\n");
    fb_text_bytes(&x->out, events.p, events.len);
    fb_text_free(&events);
    fb_exchange_stream(x, "text/event-stream");
}

static void watch_in_space(fb_exchange *x)
{
    const char *since = fb_exchange_header(x, "Last-Event-ID");
    if (since == NULL) since = fb_exchange_query(x, "since");
    uint64_t cursor = UINT64_MAX;
    if (since != NULL) {
        char *end = NULL;
        cursor = since[0] >= '0' && since[0] <= '9' ? strtoull(since, &end, 10) : 0;
        if (end == NULL || *end != 0) {
            fb_exchange_fail(x, FB_ERR_ARGUMENT, "since: a cursor of an earlier event is expected");
            return;
        }
    }
    uint8_t room[24];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_write_u64(&w, cursor);
    fb_loop *loop = fb_api_options_of(x->api)->loop;
    fb_exchange_watch_client(x);
    x->stream_request =
        fb_loop_request(loop, FB_VERB_RECORD_WATCH, x->principal, fb_writer_span(&w), fed, x);
    if (x->stream_request == 0) {
        fb_exchange_fail(x, FB_ERR_AGAIN, "the node is starting or stopping");
        return;
    }
    fb_loop_credit(loop, x->stream_request, WATCH_CREDIT);
    fb_exchange_ask(x, FB_VERB_SPACE_LIST, 0, (fb_span){NULL, 0}, watching);
}

void fb_get_changes(fb_exchange *x)
{
    fb_exchange_with_space(x, watch_in_space);
}
