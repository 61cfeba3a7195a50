/* SPDX-License-Identifier: Apache-2.0 */
#include "io/net/address.h"

#include <arpa/inet.h>
#include <stdio.h>

fb_status fb_address_parse(fb_span text, fb_address *out)
{
    size_t colon = text.len;
    while (colon > 0 && text.p[colon - 1] != ':') colon--;
    if (colon == 0) return FB_ERR_ARGUMENT;
    fb_span host = {text.p, colon - 1};
    fb_span port = {text.p + colon, text.len - colon};

    bool bracketed = host.len >= 2 && host.p[0] == '[' && host.p[host.len - 1] == ']';
    if (bracketed) host = fb_span_of(host.p + 1, host.len - 2);
    if (host.len >= sizeof out->host || port.len == 0 || port.len >= sizeof out->port) {
        return FB_ERR_ARGUMENT;
    }
    for (size_t i = 0; i < host.len; i++) {
        uint8_t c = host.p[i];
        if (c <= ' ' || c >= 0x7f || c == '[' || c == ']' || (c == ':' && !bracketed)) {
            return FB_ERR_ARGUMENT;
        }
    }
    unsigned number = 0;
    for (size_t i = 0; i < port.len; i++) {
        if (port.p[i] < '0' || port.p[i] > '9') return FB_ERR_ARGUMENT;
        number = number * 10 + (unsigned)(port.p[i] - '0');
    }
    if (number > 65535) return FB_ERR_ARGUMENT;
    memset(out, 0, sizeof *out);
    if (host.len != 0) memcpy(out->host, host.p, host.len);
    snprintf(out->port, sizeof out->port, "%u", number);
    return FB_OK;
}

static uint16_t port_of(const fb_address *address)
{
    unsigned number = 0;
    for (const char *p = address->port; *p != 0; p++) number = number * 10 + (unsigned)(*p - '0');
    return (uint16_t)number;
}

bool fb_address_numeric(const fb_address *address, fb_sockaddr *out)
{
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, address->host, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(port_of(address));
        return true;
    }
    if (inet_pton(AF_INET6, address->host, &out->v6.sin6_addr) == 1) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(port_of(address));
        return true;
    }
    return false;
}

socklen_t fb_sockaddr_len(const fb_sockaddr *address)
{
    return address->any.sa_family == AF_INET ? sizeof address->v4 : sizeof address->v6;
}

void fb_sockaddr_host(const fb_sockaddr *address, char *out, size_t len)
{
    const char *text = NULL;
    if (address->any.sa_family == AF_INET) {
        text = inet_ntop(AF_INET, &address->v4.sin_addr, out, (socklen_t)len);
    } else if (address->any.sa_family == AF_INET6) {
        const struct in6_addr *v6 = &address->v6.sin6_addr;
        text = IN6_IS_ADDR_V4MAPPED(v6) ? inet_ntop(AF_INET, &v6->s6_addr[12], out, (socklen_t)len)
                                        : inet_ntop(AF_INET6, v6, out, (socklen_t)len);
    }
    if (text == NULL) snprintf(out, len, "?");
}

void fb_sockaddr_text(const fb_sockaddr *address, char *out, size_t len)
{
    char host[INET6_ADDRSTRLEN];
    fb_sockaddr_host(address, host, sizeof host);
    unsigned port =
        ntohs(address->any.sa_family == AF_INET ? address->v4.sin_port : address->v6.sin6_port);
    snprintf(out, len, strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host, port);
}

bool fb_sockaddr_is_loopback(const fb_sockaddr *address)
{
    if (address->any.sa_family == AF_INET) {
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
    }
    return address->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}
