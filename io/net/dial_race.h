/* SPDX-License-Identifier: Apache-2.0 */
/* Connects to one of several addresses of one peer, as RFC 8305 has it: the families take turns,
 * the next address is tried when the one before it failed or said nothing for a moment, and
 * whichever answers first wins. An address that swallows packets costs a moment, not the whole
 * dial. */
#ifndef FB_IO_NET_DIAL_RACE_H
#define FB_IO_NET_DIAL_RACE_H

#include <netdb.h>
#include <uv.h>

#include "io/net/address.h"

#define FB_RACE_ADDRESSES 8u   /* more of a name's addresses are not tried */
#define FB_RACE_PAUSE_MS  250u /* until the next address is tried beside those before it */

typedef struct fb_race fb_race;

/* fd: a connected, non-blocking socket that is the callee's; -1: no address answered. Called once,
 * from the loop, and the race is over. */
typedef void (*fb_race_done)(void *user, int fd);

/* The addresses of a resolved name in the order to be tried; how many. */
size_t fb_race_order(const struct addrinfo *found, fb_sockaddr out[FB_RACE_ADDRESSES]);

/* count: 1..FB_RACE_ADDRESSES; they are copied. FB_ERR_NO_MEMORY. */
fb_status fb_race_start(uv_loop_t *loop, const fb_sockaddr *addresses, size_t count,
                        fb_race_done done, void *user, fb_race **out);

/* Before `done`: it is not called any more. */
void fb_race_cancel(fb_race *race);

#endif
