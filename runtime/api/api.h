/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP API (command contract, section 6) on <home>/api.sock and, when asked, a loopback port.
 * libmicrohttpd runs without threads: its epoll descriptor is one more thing the loop waits for. */
#ifndef FB_RUNTIME_API_API_H
#define FB_RUNTIME_API_API_H

#include "io/loop.h"
#include "runtime/home.h"
#include "runtime/settings.h"

#define FB_API_BODY_MAX        (1u << 20)
#define FB_API_BODIES_MAX      ((size_t)16 << 20) /* of all requests that are being read */
#define FB_API_CONNECTIONS_MAX 128u
#define FB_API_IDLE_S          60u
#define FB_API_FEEDS_MAX       96u    /* of a listener: the other places are for those who ask */
#define FB_API_FEEDS_APP_MAX   32u    /* of one application */
#define FB_API_BEAT_MS         10000u /* between signs of life on a feed with no news */
#define FB_API_JOIN_S                                                                              \
    100u /* a join waits so long for a member to take it: over the minute for                      \
            which an address may be shut out (profile 7) */
#define FB_API_JOIN_S_MAX 86400u /* ... at most, when told */

typedef struct fb_api fb_api;

/* What does not change while a node runs. */
typedef struct fb_api_node {
    const fb_home *home;
    const fb_home_keys *keys;
    const char *version;
    char listen[64];     /* in use, empty for none */
    char advertise[160]; /* what invites name unless told otherwise; may be empty */
    uint64_t started_mono_ns;
    int64_t started_wall_us;
    fb_lmdb_opening opening; /* what the start found in the store's place */
    bool store_lost;         /* there had been a store, and it found none */
} fb_api_node;

typedef struct fb_api_options {
    uv_loop_t *uv;
    fb_loop *loop;
    const fb_api_node *node;
    const fb_settings *settings; /* in force; may change between requests */
    const char *port;            /* HOST:PORT of loopback, or empty */
} fb_api_options;

/* bound gets the port's address in use. False with a sentence in why. */
bool fb_api_open(const fb_api_options *options, fb_api **out, char *bound, size_t bound_len,
                 char *why, size_t why_len);

/* No new connections and requests; those under way go on, streams end with the loop. */
void fb_api_quiesce(fb_api *api);

/* Whoever still waits is told to try again; then everything is closed. `closed` is called from the
 * loop. */
void fb_api_close(fb_api *api, void (*closed)(void *user), void *user);

typedef struct fb_api_stats {
    uint32_t connections, requests, feeds; /* now */
    uint64_t answers[6];                   /* by the first digit of their status; 0: to nobody */
    uint64_t pauses;                       /* of accepting, for want of descriptors */
} fb_api_stats;

void fb_api_stats_get(const fb_api *api, fb_api_stats *out);

const fb_api_options *fb_api_options_of(const fb_api *api);

#endif
