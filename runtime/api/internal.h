/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by api.c (listening) and exchange.c (requests). */
#ifndef FB_RUNTIME_API_INTERNAL_H
#define FB_RUNTIME_API_INTERNAL_H

#include <errno.h>
#include <microhttpd.h>

#include "io/net/listener.h"
#include "runtime/api/api.h"
#include "runtime/api/clients.h"
#include "runtime/api/exchange.h"

#define FB_API_LISTENERS 2

typedef struct fb_api_listener {
    fb_api *api;
    struct MHD_Daemon *daemon;
    fb_listener *listener; /* accepts, and hands what it accepted to the daemon */
    bool port;
    uv_poll_t poll;
    uv_timer_t timer;
    fb_clients clients;
} fb_api_listener;

struct fb_api {
    fb_api_options options;
    char token[65];
    fb_api_listener listeners[FB_API_LISTENERS];
    fb_exchange *exchanges;
    size_t body_bytes;
    bool quiesced;
    uint64_t answers[6]; /* by the first digit of the status; 0: none, the client went */
    uint32_t handles;
    uv_timer_t beat; /* of the feeds; runs while there are some */
    uv_timer_t last; /* so that `closed` comes from the loop in every case */
    void (*closed)(void *user);
    void *closed_user;
};

/* A connection was resumed: libmicrohttpd gets a turn from the loop. */
void fb_api_turn_soon(fb_api *api, bool on_port);

/* There is a feed: each one that has no news gets a sign of life now and then. */
void fb_api_feeds_beat(fb_api *api);

/* libmicrohttpd's entrance and exit for each request. */
enum MHD_Result fb_api_handle(void *user, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_len, void **exchange);
void fb_api_completed(void *user, struct MHD_Connection *connection, void **exchange,
                      enum MHD_RequestTerminationCode code);

#endif
