/* SPDX-License-Identifier: Apache-2.0 */
/* One HTTP request on its way: what its handler reads, asks of the node, and answers.
 *
 * A handler calls exactly one of fb_exchange_answer, fb_exchange_stream and fb_exchange_fail, then
 * or later, from the loop's thread. */
#ifndef FB_RUNTIME_API_EXCHANGE_H
#define FB_RUNTIME_API_EXCHANGE_H

#include <microhttpd.h>

#include "io/loop.h"
#include "runtime/api/api.h"
#include "runtime/json_in.h"
#include "runtime/text.h"

#define FB_EXCHANGE_ARGS  3
#define FB_EXCHANGE_QUERY 2

typedef struct fb_exchange fb_exchange;
struct fb_held_back;

/* What the node answered. */
typedef void (*fb_exchange_step)(fb_exchange *x, fb_error error, fb_span answer);
typedef void (*fb_exchange_handler)(fb_exchange *x);

struct fb_exchange {
    fb_exchange *next, **at; /* in the API's list */
    fb_api *api;
    struct MHD_Connection *connection;
    bool on_port;
    const char *method;
    char *url;
    fb_text body;
    char *args[FB_EXCHANGE_ARGS]; /* what stood for the stars of the route, decoded */
    struct {
        const char *name;
        char *value;
    } query[FB_EXCHANGE_QUERY]; /* decoded */
    fb_exchange_handler handler;
    bool for_applications;
    uint64_t principal;

    uint64_t request;      /* open at the node, or 0 */
    uint64_t long_request; /* another one, a watch or a join, that stays open beside it */
    fb_exchange_step step;
    fb_exchange_handler with_space;
    fb_id space;
    /* The handler's own. */
    fb_id record;
    bool created;
    uint8_t etag[16];
    uint32_t count;
    uint32_t done;
    fb_text scratch;
    void *own; /* more of it, and how it ends with the exchange */
    void (*own_end)(fb_exchange *x);
    struct fb_held_back *held_back; /* held_back.h, when it was asked for */

    bool begun;
    bool suspended;
    bool ready;
    bool gone; /* the client went while it was waiting */
    unsigned status;
    fb_text out;
    const char *content_type;
    char etag_header[40];
    char location[128];

    bool streaming;
    bool stream_over;
    fb_exchange_handler drained; /* everything in `out` was taken */
    uv_poll_t *watch;            /* tells when the client goes */
};

/* The answer is x->out, JSON unless x->content_type says otherwise. */
void fb_exchange_answer(fb_exchange *x, unsigned status);

/* Answers 200 and then whatever is put into x->out, until x->stream_over; call
 * fb_exchange_stream_more after each change. */
void fb_exchange_stream(fb_exchange *x, const char *content_type);
void fb_exchange_stream_more(fb_exchange *x);

/* problem+json with the error's name and status; detail may be NULL. */
void fb_exchange_fail(fb_exchange *x, fb_error error, const char *detail);
/* The same with a status of its own. code is a stable name. */
void fb_exchange_problem(fb_exchange *x, unsigned status, const char *code, const char *title,
                         const char *detail);

/* Asks the node; `step` is called with the answer. False: the node is not there to be asked, and
 * the exchange was answered with that, unless it streams. */
bool fb_exchange_ask(fb_exchange *x, fb_verb verb, uint64_t principal, fb_span arguments,
                     fb_exchange_step step);

/* Answers that fb_loop_request did not take this one, and why. */
void fb_exchange_refuse(fb_exchange *x, fb_verb verb);

/* Finds the space named by args[0] (a name or a UUID), sets x->space and goes on with `then`. */
void fb_exchange_with_space(fb_exchange *x, fb_exchange_handler then);

/* Whether the client is still there is watched while this exchange waits for long. */
void fb_exchange_watch_client(fb_exchange *x);

/* A query argument, or NULL. The text belongs to the request. */
const char *fb_exchange_query(const fb_exchange *x, const char *name);
const char *fb_exchange_header(fb_exchange *x, const char *name);

/* The body as one JSON object with no member but these, blanks between their names; no body is an
 * empty object. NULL: any member. On false the exchange was answered. */
bool fb_exchange_body(fb_exchange *x, fb_json_object_in *out, const char *members);
/* A member that must be a string of 1 to `max` bytes; NULL after it answered. */
const char *fb_exchange_body_text(fb_exchange *x, const fb_json_object_in *body, const char *name,
                                  size_t max);
/* One that may be missing, within 1..max; false after it answered. */
bool fb_exchange_body_number(fb_exchange *x, const fb_json_object_in *body, const char *name,
                             int64_t max, uint64_t *out);
/* One that may be missing, *out is then NULL; false after it answered. */
bool fb_exchange_body_option(fb_exchange *x, const fb_json_object_in *body, const char *name,
                             const char **out);

/* For steps: the node's refusal becomes the answer. */
bool fb_exchange_refused(fb_exchange *x, fb_error error);
/* Closes the object in x->out and answers, or says that the node's answer could not be read. */
void fb_exchange_finish(fb_exchange *x, unsigned status, bool ok);

/* Of the entrance: what can be refused before the body is read, and before the handler is called.
 * On false the exchange was answered. */
bool fb_exchange_headers_check(fb_exchange *x, const char *version);
bool fb_exchange_query_read(fb_exchange *x, const char *allowed);
/* Percent escapes, in place. False: a bad one, a zero byte, or not UTF-8. */
bool fb_exchange_decode(char *text);

/* The table of routes.c. */
typedef struct fb_route {
    const char *method;
    const char *path;  /* segments; a star stands for any one */
    const char *query; /* names of its arguments, blanks between */
    fb_exchange_handler handler;
    bool for_applications;
    bool open; /* no token is asked for */
} fb_route;

extern const fb_route fb_routes[];

#endif
