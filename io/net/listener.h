/* SPDX-License-Identifier: Apache-2.0 */
/* A listener that survives running out of descriptors: a spare one is given up for a moment to
 * answer whoever waits with a close, and accepting pauses. A listener that stays readable would
 * otherwise keep the loop spinning. */
#ifndef FB_IO_NET_LISTENER_H
#define FB_IO_NET_LISTENER_H

#include <uv.h>

#include "io/net/address.h"

#define FB_LISTENER_PAUSE_MS 100u /* no accepting after the system ran out of descriptors */

typedef struct fb_listener fb_listener;

/* A connection: the descriptor is non-blocking and the callee's. `from` is of use for the families
 * of io/net/address.h alone. */
typedef void (*fb_accepted)(void *user, int fd, const fb_sockaddr *from);

/* Listens on HOST:PORT (port 0: any free one; no host: every address, IPv6 and IPv4 alike where the
 * system has both). bound gets the address in use, why a sentence. FB_ERR_ARGUMENT: not an address.
 * FB_ERR_STORE_FAILED: the system refused. FB_ERR_NO_MEMORY. */
fb_status fb_listener_open(uv_loop_t *loop, const char *address, fb_accepted accepted, void *user,
                           fb_listener **out, char *bound, size_t bound_len, char *why,
                           size_t why_len);

/* The same over a socket that listens already: it is the listener's from here on, also on failure.
 * FB_ERR_NO_MEMORY. */
fb_status fb_listener_over(uv_loop_t *loop, int fd, fb_accepted accepted, void *user,
                           fb_listener **out);

/* How often accepting paused because there was no descriptor. */
uint64_t fb_listener_pauses(const fb_listener *listener);

/* Holds accepting back, or takes it up again: connections wait in the system's queue. */
void fb_listener_hold(fb_listener *listener, bool hold);

/* `closed` is called from the loop, then it is freed. */
void fb_listener_close(fb_listener *listener, void (*closed)(void *user));

#endif
