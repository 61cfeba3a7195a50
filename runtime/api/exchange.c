/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/exchange.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"
#include "runtime/api/held_back.h"
#include "runtime/api/internal.h"
#include "runtime/api/request_codec.h"
#include "runtime/exit.h"

/* Waiting. */

static void wake(fb_exchange *x)
{
    if (!x->suspended) return;
    x->suspended = false;
    MHD_resume_connection(x->connection);
    fb_api_turn_soon(x->api, x->on_port);
}

void fb_exchange_answer(fb_exchange *x, unsigned status)
{
    if (x->ready) return;
    x->status = status;
    x->ready = true;
    wake(x);
}

void fb_exchange_stream(fb_exchange *x, const char *content_type)
{
    x->streaming = true;
    x->content_type = content_type;
    fb_exchange_answer(x, 200);
}

void fb_exchange_stream_more(fb_exchange *x)
{
    wake(x);
}

void fb_exchange_problem(fb_exchange *x, unsigned status, const char *code, const char *title,
                         const char *detail)
{
    fb_text_clear(&x->out);
    fb_json_open(&x->out, NULL, '{');
    char type[96];
    snprintf(type, sizeof type, "urn:faberio:error:%s", code);
    fb_json_member(&x->out, "type", type);
    fb_json_member(&x->out, "title", title);
    fb_json_number(&x->out, "status", status);
    fb_json_member(&x->out, "detail", detail != NULL ? detail : title);
    fb_json_member(&x->out, "code", code);
    fb_json_close(&x->out, '}');
    x->content_type = "application/problem+json";
    fb_exchange_answer(x, status);
}

void fb_exchange_fail(fb_exchange *x, fb_error error, const char *detail)
{
    fb_exchange_problem(x, fb_http_of_error(error), fb_error_name(error), fb_error_text(error),
                        detail);
}

void fb_exchange_refuse(fb_exchange *x, fb_verb verb)
{
    fb_exchange_fail(x, FB_ERR_AGAIN, fb_loop_refusal(x->api->options.loop, verb));
}

static void replied(void *user, fb_error error, bool more, fb_span answer)
{
    fb_exchange *x = user;
    FB_ASSERT(!more);
    x->request = 0;
    if (!x->ready || x->streaming) x->step(x, error, answer);
}

bool fb_exchange_ask(fb_exchange *x, fb_verb verb, uint64_t principal, fb_span arguments,
                     fb_exchange_step step)
{
    x->step = step;
    x->request = fb_loop_request(x->api->options.loop, verb, principal, arguments, replied, x);
    if (x->request != 0) return true;
    if (!x->streaming) fb_exchange_refuse(x, verb);
    return false;
}

/* Spaces by name. */

static void space_listed(fb_exchange *x, fb_error error, fb_span answer)
{
    if (error != FB_OK) {
        fb_exchange_fail(x, error, NULL);
        return;
    }
    uint32_t found = 0;
    fb_reader r = fb_reader_of(answer);
    uint16_t count = fb_read_u16(&r);
    for (uint16_t i = 0; i < count; i++) {
        fb_space_row row = fb_space_row_next(&r);
        if (fb_span_equal(row.name, fb_span_text(x->args[0]))) {
            x->space = row.space;
            found++;
        }
    }
    char detail[320];
    if (found == 1) {
        x->with_space(x);
    } else if (found == 0 && x->principal != 0) {
        /* An application learns nothing about spaces it may not use. */
        fb_exchange_fail(x, FB_ERR_NOT_AUTHORISED, NULL);
    } else {
        snprintf(detail, sizeof detail,
                 found == 0 ? "no space is called %.200s here"
                            : "several spaces are called %.200s: use the id (space list)",
                 x->args[0]);
        fb_exchange_fail(x, found == 0 ? FB_ERR_NOT_FOUND : FB_ERR_CONFLICT, detail);
    }
}

void fb_exchange_with_space(fb_exchange *x, fb_exchange_handler then)
{
    x->with_space = then;
    if (fb_uuid_parse(fb_span_text(x->args[0]), &x->space)) {
        then(x);
        return;
    }
    fb_exchange_ask(x, FB_VERB_SPACE_LIST, 0, (fb_span){NULL, 0}, space_listed);
}

/* Who asks. */

static void enter(fb_exchange *x)
{
    if (x->principal != 0 && !x->for_applications) {
        fb_exchange_fail(x, FB_ERR_NOT_AUTHORISED, "this is the operator's");
        return;
    }
    x->handler(x);
}

static void unauthorised(fb_exchange *x)
{
    fb_exchange_problem(x, 401, "unauthorised", "a valid token is needed",
                        "send Authorization: Bearer TOKEN");
}

static void authenticated(fb_exchange *x, fb_error error, fb_span answer)
{
    fb_reader r = fb_reader_of(answer);
    x->principal = fb_read_u64(&r);
    if (error == FB_OK && fb_reader_done(&r) && x->principal != 0) {
        enter(x);
    } else if (error == FB_OK || error == FB_ERR_NOT_AUTHORISED) {
        unauthorised(x);
    } else {
        fb_exchange_fail(x, error, NULL);
    }
}

static void authenticate(fb_exchange *x)
{
    const char *header = fb_exchange_header(x, "Authorization");
    uint8_t token[32];
    if (header == NULL) {
        if (x->on_port || !fb_client_is_owner(x->connection)) {
            unauthorised(x);
        } else {
            enter(x);
        }
        return;
    }
    if (strncmp(header, "Bearer ", 7) != 0 ||
        !fb_hex_parse(fb_span_text(header + 7), token, sizeof token)) {
        unauthorised(x);
        return;
    }
    if (sodium_memcmp(header + 7, x->api->token, 64) == 0) {
        enter(x);
        return;
    }
    fb_exchange_ask(x, FB_VERB_APP_AUTHENTICATE, 0, fb_span_of(token, sizeof token), authenticated);
}

/* Routes. */

/* Matches the path's segments and keeps what the stars stood for. */
static bool route_matches(const fb_route *route, const char *url, const char *starts[],
                          size_t lens[])
{
    int stars = 0;
    const char *pattern = route->path;
    while (*pattern == '/' && *url == '/') {
        pattern++;
        url++;
        if (*pattern == '*') {
            size_t have = strcspn(url, "/");
            if (have == 0) return false;
            starts[stars] = url;
            lens[stars++] = have;
            pattern++;
            url += have;
            continue;
        }
        while (*pattern == *url && *pattern != '/' && *pattern != 0) {
            pattern++;
            url++;
        }
    }
    return *pattern == 0 && *url == 0;
}

static void begin(fb_exchange *x)
{
    const char *starts[FB_EXCHANGE_ARGS];
    size_t lens[FB_EXCHANGE_ARGS];
    const fb_route *found = NULL;
    bool path_known = false;
    for (const fb_route *route = fb_routes; route->path != NULL && found == NULL; route++) {
        if (!route_matches(route, x->url, starts, lens)) continue;
        path_known = true;
        if (strcmp(route->method, x->method) == 0) found = route;
    }
    if (found == NULL) {
        fb_exchange_problem(x, path_known ? 405 : 404, path_known ? "method" : "not_found",
                            path_known ? "not with this method" : "no such path", x->url);
    } else {
        int stars = 0;
        bool decoded = true;
        for (const char *p = found->path; *p != 0; p++) {
            if (*p != '*') continue;
            x->args[stars] = strndup(starts[stars], lens[stars]);
            FB_ASSERT(x->args[stars] != NULL);
            decoded = fb_exchange_decode(x->args[stars]) && decoded;
            stars++;
        }
        x->handler = found->handler;
        x->for_applications = found->for_applications;
        if (!decoded) {
            fb_exchange_problem(x, 400, "request_malformed", "the path cannot be read",
                                "a bad percent escape, or bytes that are not UTF-8");
        } else if (!fb_exchange_query_read(x, found->query)) {
            /* answered */
        } else if (found->open) {
            x->handler(x);
        } else {
            authenticate(x);
        }
    }
}

/* Streams. */

static ssize_t stream_read(void *user, uint64_t position, char *out, size_t max)
{
    (void)position;
    fb_exchange *x = user;
    if (x->gone) return MHD_CONTENT_READER_END_WITH_ERROR;
    if (x->out.len == 0) {
        if (x->stream_over) return MHD_CONTENT_READER_END_OF_STREAM;
        x->suspended = true;
        MHD_suspend_connection(x->connection);
        return 0;
    }
    size_t n = x->out.len < max ? x->out.len : max;
    memcpy(out, x->out.p, n);
    memmove(x->out.p, x->out.p + n, x->out.len - n);
    x->out.len -= n;
    if (x->out.len == 0 && x->drained != NULL) x->drained(x);
    return (ssize_t)n;
}

static enum MHD_Result respond(fb_exchange *x)
{
    if (!x->streaming) fb_clients_asked(x->connection, FB_CLIENT_REPLY);
    struct MHD_Response *response =
        x->streaming
            ? MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, stream_read, x, NULL)
            : MHD_create_response_from_buffer(x->out.len, x->out.p, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) return MHD_NO;
    if (!x->streaming) x->out = (fb_text){NULL, 0, 0}; /* it is the response's now */
    MHD_add_response_header(response, "Content-Type",
                            x->content_type != NULL ? x->content_type : "application/json");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (x->status == 401) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (x->status == 503) MHD_add_response_header(response, "Retry-After", "1");
    if (x->etag_header[0] != 0) MHD_add_response_header(response, "ETag", x->etag_header);
    if (x->location[0] != 0) MHD_add_response_header(response, "Location", x->location);
    enum MHD_Result queued = MHD_queue_response(x->connection, x->status, response);
    MHD_destroy_response(response);
    return queued;
}

/* A part of the body; what has no room is not kept, and the answer says so. */
static void body_take(fb_exchange *x, const char *bytes, size_t len)
{
    if (x->status != 0) return;
    if (len > FB_API_BODY_MAX - x->body.len) x->status = 413;
    if (len > FB_API_BODIES_MAX - x->api->body_bytes) x->status = 503;
    if (x->status != 0) return;
    fb_text_bytes(&x->body, bytes, len);
    x->api->body_bytes += len;
}

/* libmicrohttpd's entrance: once with the headers, then with each part of the body, then at its
 * end, and again after each resume. */
enum MHD_Result fb_api_handle(void *user, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_len, void **exchange)
{
    fb_api_listener *l = user;
    fb_exchange *x = *exchange;
    if (x == NULL) {
        x = calloc(1, sizeof *x);
        if (x == NULL) return MHD_NO;
        x->api = l->api;
        x->connection = connection;
        x->on_port = l->port;
        x->method = method;
        x->url = strdup(url);
        FB_ASSERT(x->url != NULL);
        x->next = l->api->exchanges;
        x->at = &l->api->exchanges;
        if (x->next != NULL) x->next->at = &x->next;
        l->api->exchanges = x;
        *exchange = x;
        fb_clients_asked(connection, FB_CLIENT_BODY);
        x->begun = !fb_exchange_headers_check(x, version);
        return x->ready ? respond(x) : MHD_YES;
    }
    if (*upload_len > 0) {
        body_take(x, upload, *upload_len);
        *upload_len = 0;
        return MHD_YES;
    }
    if (!x->begun) {
        x->begun = true;
        fb_clients_asked(connection, FB_CLIENT_ANSWER);
        if (x->status == 413) {
            fb_exchange_fail(x, FB_ERR_TOO_LARGE, "the body is larger than 1 MiB");
        } else if (x->status == 503) {
            fb_exchange_fail(x, FB_ERR_BUSY, "too many large requests at once");
        } else if (x->api->quiesced) {
            fb_exchange_fail(x, FB_ERR_AGAIN, "the node stops");
        } else {
            begin(x);
            /* What needs no disk is answered now, without waiting for a turn of the loop. */
            if (!x->ready) fb_loop_flush(x->api->options.loop);
        }
    }
    if (x->ready) return respond(x);
    x->suspended = true;
    MHD_suspend_connection(connection);
    return MHD_YES;
}

/* Clients that go while nothing is sent to them. */

static void client_closed(uv_handle_t *handle)
{
    free(handle);
}

static void client_gone(uv_poll_t *poll, int status, int events)
{
    fb_exchange *x = poll->data;
    if (status == 0 && (events & UV_DISCONNECT) == 0) return;
    uv_poll_stop(poll);
    x->gone = true;
    if (x->streaming) {
        wake(x);
    } else {
        fb_exchange_fail(x, FB_ERR_CANCELLED, NULL);
    }
}

void fb_exchange_watch_client(fb_exchange *x)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info == NULL || x->watch != NULL) return;
    x->watch = calloc(1, sizeof *x->watch);
    FB_ASSERT(x->watch != NULL);
    if (uv_poll_init(x->api->options.uv, x->watch, info->connect_fd) != 0) {
        free(x->watch);
        x->watch = NULL;
        return;
    }
    x->watch->data = x;
    uv_poll_start(x->watch, UV_DISCONNECT, client_gone);
}

void fb_api_completed(void *user, struct MHD_Connection *connection, void **exchange,
                      enum MHD_RequestTerminationCode code)
{
    (void)user;
    (void)code;
    fb_exchange *x = *exchange;
    if (x == NULL) return;
    unsigned class = x->ready && !x->gone ? x->status / 100 : 0;
    x->api->answers[class < 6 ? class : 0]++;
    fb_clients_asked(connection, FB_CLIENT_HEADERS);
    *exchange = NULL;
    /* Before the descriptor is closed. */
    if (x->watch != NULL) uv_close((uv_handle_t *)x->watch, client_closed);
    if (x->own_end != NULL) x->own_end(x);
    fb_held_back_free(x->held_back);
    if (x->request != 0) fb_loop_cancel(x->api->options.loop, x->request);
    if (x->long_request != 0) fb_loop_cancel(x->api->options.loop, x->long_request);
    *x->at = x->next;
    if (x->next != NULL) x->next->at = x->at;
    for (int i = 0; i < FB_EXCHANGE_ARGS; i++) free(x->args[i]);
    for (int i = 0; i < FB_EXCHANGE_QUERY; i++) free(x->query[i].value);
    free(x->url);
    x->api->body_bytes -= x->body.len;
    fb_text_free(&x->body);
    fb_text_free(&x->out);
    fb_text_free(&x->scratch);
    free(x);
}
