/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of a listener of the API, so that some which say nothing, or say it slowly, do
 * not keep others out: a request's headers, its body and its answer have deadlines, and when most
 * places are taken the one that has kept a place longest without asking anything gives way to the
 * newest. */
#ifndef FB_RUNTIME_API_CLIENTS_H
#define FB_RUNTIME_API_CLIENTS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <uv.h>

#define FB_API_HEADERS_MS 10000u /* from the connection, or from the last answer */
#define FB_API_BODY_MS    30000u
#define FB_API_REPLY_MS   30000u /* for the client to take an answer that is no stream */
#define FB_API_SPARE      16u    /* places that only the newest connections have */

typedef struct fb_client fb_client;

typedef enum fb_client_phase {
    FB_CLIENT_HEADERS,
    FB_CLIENT_BODY,
    FB_CLIENT_REPLY,
    FB_CLIENT_ANSWER, /* it waits for this node, or a stream goes on: no deadline */
} fb_client_phase;

typedef struct fb_clients {
    fb_client *first;
    uint32_t count;
    uint64_t begun; /* phases, so that the oldest is known */
    uv_timer_t due;
    void (*ended)(void *user);
    void *user;
} fb_clients;

/* The timer is one handle to be closed with the listener. ended: a connection was ended, and
 * libmicrohttpd is to have a turn soon. */
void fb_clients_open(fb_clients *clients, uv_loop_t *uv, void (*ended)(void *user), void *user);

/* For MHD_OPTION_NOTIFY_CONNECTION, with the listener's fb_clients. */
void fb_clients_notify(void *clients, struct MHD_Connection *connection, void **client,
                       enum MHD_ConnectionNotificationCode code);

/* On the socket: whether who connected is this node's user, or root. It does not change while the
 * connection lasts. */
bool fb_client_is_owner(struct MHD_Connection *connection);

/* Its request is this far now. */
void fb_clients_asked(struct MHD_Connection *connection, fb_client_phase phase);

#endif
