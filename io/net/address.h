/* SPDX-License-Identifier: Apache-2.0 */
/* Network addresses as text: HOST:PORT, where HOST is a name, an IPv4 address, or an IPv6 address
 * in brackets. */
#ifndef FB_IO_NET_ADDRESS_H
#define FB_IO_NET_ADDRESS_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "protocol/base/error.h"
#include "protocol/base/limits.h"
#include "protocol/base/types.h"

typedef struct fb_address {
    char host[FB_ADDRESS_BYTES_MAX + 1]; /* without brackets; empty: any */
    char port[6];                        /* decimal, 0..65535 */
} fb_address;

typedef union fb_sockaddr {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} fb_sockaddr;

/* FB_ERR_ARGUMENT when the text is not of that form. */
fb_status fb_address_parse(fb_span text, fb_address *out);

/* True when host is a number, not a name; then *out is complete. */
bool fb_address_numeric(const fb_address *address, fb_sockaddr *out);

socklen_t fb_sockaddr_len(const fb_sockaddr *address);

/* The host part alone, e.g. "127.0.0.1" or "::1"; an IPv4 address mapped into IPv6 is shown as
 * IPv4. out has room for INET6_ADDRSTRLEN. */
void fb_sockaddr_host(const fb_sockaddr *address, char *out, size_t len);

/* HOST:PORT, with brackets around IPv6. */
void fb_sockaddr_text(const fb_sockaddr *address, char *out, size_t len);

/* 127.0.0.0/8 or ::1. */
bool fb_sockaddr_is_loopback(const fb_sockaddr *address);

#endif
