/* SPDX-License-Identifier: Apache-2.0 */
/* Byte streams over TCP, IPv4 and IPv6, on a libuv loop.
 *
 * Everything happens on the loop's thread. The functions below never call a handler: whatever they
 * cause arrives later, from the loop. Links are numbered from 1 and never reused.
 *
 * Reading has back pressure: what the handler does not take is kept, and the link is read no
 * further until fb_carrier_resume. Writing has credit: a link starts with FB_CARRIER_CREDIT bytes,
 * and what was written comes back by `writable`, so a peer that stops reading costs no more than
 * that. */
#ifndef FB_IO_NET_CARRIER_TCP_H
#define FB_IO_NET_CARRIER_TCP_H

#include <uv.h>

#include "protocol/base/error.h"
#include "protocol/base/types.h"

#define FB_CARRIER_CREDIT     65536u
#define FB_CARRIER_READ_BYTES 65536u
#define FB_CARRIER_DIAL_MS    10000u /* until a dial counts as failed */
#define FB_CARRIER_LINGER_MS  2000u  /* for bytes to leave after close, and after a write error */
#define FB_CARRIER_LISTENERS  4u

typedef struct fb_carrier fb_carrier;

typedef struct fb_carrier_handlers {
    void *user;
    /* Answers fb_carrier_dial: link is 0 and error not FB_OK when it failed. */
    void (*dialled)(void *user, uint64_t dial, uint64_t link, fb_error error);
    /* Somebody connected; host is the remote address without its port. */
    void (*opened)(void *user, uint64_t link, const char *host);
    /* Returns how many of the bytes were taken. */
    size_t (*bytes)(void *user, uint64_t link, const uint8_t *bytes, size_t len);
    /* So many more bytes may be sent; the first call follows dialled or opened at once. */
    void (*writable)(void *user, uint64_t link, uint64_t bytes);
    /* The link is gone; FB_OK for an orderly end. Nothing names it afterwards. */
    void (*closed)(void *user, uint64_t link, fb_error error);
} fb_carrier_handlers;

/* links_max bounds the links at once, both directions; beyond it an accepted connection is closed
 * and a dial is FB_ERR_BUSY. FB_ERR_NO_MEMORY. SIGPIPE is ignored from here on. */
fb_status fb_carrier_create(uv_loop_t *loop, const fb_carrier_handlers *handlers,
                            uint32_t links_max, fb_carrier **out);

/* Closes everything without `closed` calls, then calls `gone` from the loop and frees itself. */
void fb_carrier_stop(fb_carrier *carrier, void (*gone)(void *user), void *user);

/* See fb_listener_open; FB_ERR_LIMIT: too many. */
fb_status fb_carrier_listen(fb_carrier *carrier, const char *address, char *bound, size_t bound_len,
                            char *why, size_t why_len);

/* Holds accepting back, or takes it up again: connections wait in the system's queue. */
void fb_carrier_hold(fb_carrier *carrier, bool hold);

/* Answered by one `dialled`. Names are resolved without blocking the loop, and the first of their
 * addresses that answers is taken (io/net/dial_race.h). */
void fb_carrier_dial(fb_carrier *carrier, uint64_t dial, fb_span address);

/* len must be within the link's credit. An unknown or closing link drops the bytes. */
void fb_carrier_send(fb_carrier *carrier, uint64_t link, fb_span bytes);

/* What was sent leaves first (within FB_CARRIER_LINGER_MS), what comes in is dropped. */
void fb_carrier_close(fb_carrier *carrier, uint64_t link);

/* Hands the rest in again, and reads on when it is taken. Calls `bytes`, so not from a handler. */
void fb_carrier_resume(fb_carrier *carrier, uint64_t link);

/* Every link ends at once, without `closed`; dials under way get no answer. Listeners stay. */
void fb_carrier_drop_links(fb_carrier *carrier);

typedef struct fb_carrier_stats {
    uint32_t links;    /* now, with dials under way */
    uint64_t accepted; /* connections of others */
    uint64_t full;     /* ... that were closed as there was no place */
    uint64_t dials;
    uint64_t dials_failed;
    uint64_t pauses; /* times that accepting paused for want of descriptors */
    uint64_t bytes_in, bytes_out;
} fb_carrier_stats;

void fb_carrier_stats_get(const fb_carrier *carrier, fb_carrier_stats *out);

#endif
