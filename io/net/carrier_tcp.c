/* SPDX-License-Identifier: Apache-2.0 */
#include "io/net/carrier_tcp.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/net/address.h"
#include "io/net/dial_race.h"
#include "io/net/listener.h"
#include "protocol/base/assert.h"

#define LINK_BUCKETS 256u

typedef enum link_state {
    LINK_RESOLVING,
    LINK_DIALLING,
    LINK_OPEN,
    LINK_CLOSING, /* asked to: sent bytes are on their way out */
    LINK_GONE,    /* handles are closing; freed in the last close callback */
} link_state;

typedef struct tcp_link {
    struct tcp_link *next;        /* all links, for stop */
    struct tcp_link *bucket_next; /* those with a number, by number */
    fb_carrier *carrier;
    uv_tcp_t tcp;
    uv_timer_t timer; /* dial deadline, then linger */
    uv_getaddrinfo_t resolving;
    fb_race *race; /* while dialling: over the addresses of the name */
    uv_shutdown_t shutting;
    uint32_t pins; /* handles and requests that libuv still knows; freed at 0 */
    link_state state;
    uint64_t number; /* 0 until open */
    uint64_t dial;
    fb_error error;
    bool silent;          /* the end is not told */
    bool reading;         /* uv_read_start is in force */
    bool shut_out;        /* our side was shut down after the last byte */
    bool shut_in;         /* the peer's end was read */
    bool broken;          /* a write failed: what follows is no orderly end */
    uint64_t outstanding; /* bytes given to uv_write */
    uint64_t returned;    /* of them written, not told yet */
    uint8_t *rest;        /* received, not taken */
    size_t rest_len;
} tcp_link;

typedef struct tcp_write {
    uv_write_t req;
    tcp_link *link;
    size_t len;
    uint8_t bytes[];
} tcp_write;

struct fb_carrier {
    uv_loop_t *loop;
    fb_carrier_handlers handlers;
    uint32_t links_max;
    uint32_t links;
    fb_carrier_stats stats;
    uint64_t numbers;
    tcp_link *all;
    tcp_link *buckets[LINK_BUCKETS];
    fb_listener *listeners[FB_CARRIER_LISTENERS];
    uint32_t listener_count;
    bool held;
    bool stopping;
    uv_timer_t last; /* closed last of all */
    uint32_t pins;
    void (*gone)(void *user);
    void *gone_user;
    uint8_t buffer[FB_CARRIER_READ_BYTES];
};

static void link_end(tcp_link *link, fb_error error);

/* Life of a link. */

static tcp_link *link_find(const fb_carrier *carrier, uint64_t number)
{
    tcp_link *link = carrier->buckets[number % LINK_BUCKETS];
    while (link != NULL && link->number != number) link = link->bucket_next;
    return link;
}

static void carrier_unpin(fb_carrier *carrier)
{
    if (--carrier->pins > 0) return;
    void (*gone)(void *user) = carrier->gone;
    void *user = carrier->gone_user;
    free(carrier);
    gone(user);
}

static void link_unpin(tcp_link *link)
{
    if (--link->pins > 0) return;
    fb_carrier *carrier = link->carrier;
    tcp_link **at = &carrier->all;
    while (*at != link) at = &(*at)->next;
    *at = link->next;
    uint64_t number = link->number;
    if (number != 0) {
        at = &carrier->buckets[number % LINK_BUCKETS];
        while (*at != link) at = &(*at)->bucket_next;
        *at = link->bucket_next;
    }
    carrier->links--;
    bool tell = !link->silent && !carrier->stopping;
    uint64_t dial = link->dial;
    fb_error error = link->error;
    free(link->rest);
    free(link);
    if (tell && number != 0) {
        carrier->handlers.closed(carrier->handlers.user, number, error);
    } else if (tell) {
        carrier->stats.dials_failed++;
        carrier->handlers.dialled(carrier->handlers.user, dial, 0,
                                  error == FB_OK ? FB_ERR_UNREACHABLE : error);
    }
    carrier_unpin(carrier);
}

static void handle_closed(uv_handle_t *handle)
{
    link_unpin(handle->data);
}

static tcp_link *link_new(fb_carrier *carrier)
{
    tcp_link *link = calloc(1, sizeof *link);
    if (link == NULL) return NULL;
    link->carrier = carrier;
    link->next = carrier->all;
    carrier->all = link;
    carrier->links++;
    carrier->pins++;
    uv_tcp_init(carrier->loop, &link->tcp);
    uv_timer_init(carrier->loop, &link->timer);
    link->tcp.data = link;
    link->timer.data = link;
    link->pins = 2;
    return link;
}

/* The number is given when the link opens, so that it is never one of a failed dial. */
static void link_number(tcp_link *link)
{
    fb_carrier *carrier = link->carrier;
    link->number = ++carrier->numbers;
    link->bucket_next = carrier->buckets[link->number % LINK_BUCKETS];
    carrier->buckets[link->number % LINK_BUCKETS] = link;
    link->state = LINK_OPEN;
    uv_tcp_nodelay(&link->tcp, 1);
}

/* Closes both handles; the owner is freed after their callbacks and those of all requests. */
static void link_end(tcp_link *link, fb_error error)
{
    if (link->state == LINK_GONE) return;
    if (link->state == LINK_RESOLVING) uv_cancel((uv_req_t *)&link->resolving);
    if (link->race != NULL) fb_race_cancel(link->race);
    link->race = NULL;
    link->state = LINK_GONE;
    link->error = error;
    link->reading = false;
    if (!uv_is_closing((uv_handle_t *)&link->tcp)) {
        uv_close((uv_handle_t *)&link->tcp, handle_closed);
    }
    if (!uv_is_closing((uv_handle_t *)&link->timer)) {
        uv_close((uv_handle_t *)&link->timer, handle_closed);
    }
}

static void linger_over(uv_timer_t *timer)
{
    tcp_link *link = timer->data;
    link_end(link, link->state == LINK_CLOSING ? FB_OK : FB_ERR_LINK_CLOSED);
}

static void link_linger(tcp_link *link)
{
    uv_timer_start(&link->timer, linger_over, FB_CARRIER_LINGER_MS, 0);
}

/* Reading. */

static void read_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    tcp_link *link = handle->data;
    *out = uv_buf_init((char *)link->carrier->buffer, sizeof link->carrier->buffer);
}

/* Hands bytes to the handler and keeps what it leaves. */
static void link_deliver(tcp_link *link, const uint8_t *bytes, size_t len)
{
    fb_carrier *carrier = link->carrier;
    size_t taken = carrier->handlers.bytes(carrier->handlers.user, link->number, bytes, len);
    FB_ASSERT(taken <= len);
    if (taken == len || link->state != LINK_OPEN) return;
    uint8_t *rest = malloc(len - taken);
    if (rest == NULL) {
        link_end(link, FB_ERR_NO_MEMORY);
        return;
    }
    memcpy(rest, bytes + taken, len - taken);
    link->rest = rest;
    link->rest_len = len - taken;
    if (link->reading) uv_read_stop((uv_stream_t *)&link->tcp);
    link->reading = false;
}

static void read_done(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    tcp_link *link = stream->data;
    /* A callback may still come after uv_close. */
    if (uv_is_closing((uv_handle_t *)stream) || n == 0) return;
    if (n > 0) {
        link->carrier->stats.bytes_in += (uint64_t)n;
        if (link->state == LINK_OPEN) link_deliver(link, (uint8_t *)buffer->base, (size_t)n);
        return;
    }
    link->shut_in = true;
    if (link->reading) uv_read_stop(stream);
    link->reading = false;
    if (link->state == LINK_OPEN) {
        link_end(link, n == UV_EOF && !link->broken ? FB_OK : FB_ERR_LINK_CLOSED);
    } else if (link->shut_out || n != UV_EOF) {
        link_end(link, FB_OK);
    }
}

static void link_read(tcp_link *link)
{
    if (link->reading || link->shut_in || uv_is_closing((uv_handle_t *)&link->tcp)) return;
    int rc = uv_read_start((uv_stream_t *)&link->tcp, read_room, read_done);
    if (rc != 0) {
        link_end(link, FB_ERR_LINK_CLOSED);
        return;
    }
    link->reading = true;
}

void fb_carrier_resume(fb_carrier *carrier, uint64_t number)
{
    tcp_link *link = link_find(carrier, number);
    if (link == NULL || link->state != LINK_OPEN || link->rest == NULL) return;
    uint8_t *bytes = link->rest;
    size_t len = link->rest_len;
    link->rest = NULL;
    link->rest_len = 0;
    link_deliver(link, bytes, len);
    free(bytes);
    if (link->state == LINK_OPEN && link->rest == NULL) link_read(link);
}

/* Writing. */

static void write_done(uv_write_t *req, int status)
{
    tcp_write *write = (tcp_write *)req;
    tcp_link *link = write->link;
    size_t len = write->len;
    free(write);
    link->outstanding -= len;
    if (status == 0) link->carrier->stats.bytes_out += len;
    if (status == 0 && link->state == LINK_OPEN) {
        link->returned += len;
        /* Told once for all writes that finished together. */
        if (link->outstanding == 0 || link->returned >= FB_CARRIER_CREDIT / 2) {
            uint64_t bytes = link->returned;
            link->returned = 0;
            fb_carrier *carrier = link->carrier;
            carrier->handlers.writable(carrier->handlers.user, link->number, bytes);
        }
    } else if (status != 0 && link->state == LINK_OPEN) {
        /* What the peer sent before it went is still read; the linger ends it anyway. */
        link->broken = true;
        link_linger(link);
    }
    link_unpin(link);
}

void fb_carrier_send(fb_carrier *carrier, uint64_t number, fb_span bytes)
{
    tcp_link *link = link_find(carrier, number);
    if (link == NULL || link->state != LINK_OPEN || bytes.len == 0) return;
    FB_ASSERT(bytes.len <= FB_CARRIER_CREDIT - link->outstanding - link->returned);
    tcp_write *write = malloc(sizeof *write + bytes.len);
    if (write == NULL) {
        link_end(link, FB_ERR_NO_MEMORY);
        return;
    }
    write->link = link;
    write->len = bytes.len;
    memcpy(write->bytes, bytes.p, bytes.len);
    uv_buf_t buffer = uv_buf_init((char *)write->bytes, (unsigned)bytes.len);
    int rc = uv_write(&write->req, (uv_stream_t *)&link->tcp, &buffer, 1, write_done);
    if (rc != 0) {
        free(write);
        link->broken = true;
        link_linger(link);
        return;
    }
    link->pins++;
    link->outstanding += bytes.len;
}

/* Closing. */

static void shut_done(uv_shutdown_t *req, int status)
{
    tcp_link *link = req->data;
    link->shut_out = true;
    /* Waiting for the peer's end keeps what was sent from being cut off by a reset. */
    if (link->state == LINK_CLOSING && (status != 0 || link->shut_in)) link_end(link, FB_OK);
    link_unpin(link);
}

void fb_carrier_close(fb_carrier *carrier, uint64_t number)
{
    tcp_link *link = link_find(carrier, number);
    if (link == NULL || link->state != LINK_OPEN) return;
    link->state = LINK_CLOSING;
    free(link->rest);
    link->rest = NULL;
    link->rest_len = 0;
    link_linger(link);
    link->shutting.data = link;
    if (uv_shutdown(&link->shutting, (uv_stream_t *)&link->tcp, shut_done) != 0) {
        link_end(link, FB_OK);
        return;
    }
    link->pins++;
    link_read(link);
}

void fb_carrier_drop_links(fb_carrier *carrier)
{
    for (tcp_link *link = carrier->all; link != NULL; link = link->next) {
        link->silent = true;
        link_end(link, FB_OK);
    }
}

void fb_carrier_stats_get(const fb_carrier *carrier, fb_carrier_stats *out)
{
    *out = carrier->stats;
    out->links = carrier->links;
    for (uint32_t i = 0; i < carrier->listener_count; i++) {
        out->pauses += fb_listener_pauses(carrier->listeners[i]);
    }
}

/* Dialling. */

static void dial_over(uv_timer_t *timer)
{
    link_end(timer->data, FB_ERR_DEADLINE);
}

static void connected(tcp_link *link)
{
    fb_carrier *carrier = link->carrier;
    uv_timer_stop(&link->timer);
    link_number(link);
    carrier->handlers.dialled(carrier->handlers.user, link->dial, link->number, FB_OK);
    if (link->state == LINK_OPEN) {
        carrier->handlers.writable(carrier->handlers.user, link->number, FB_CARRIER_CREDIT);
    }
    if (link->state == LINK_OPEN) link_read(link);
}

static void race_over(void *user, int fd)
{
    tcp_link *link = user;
    link->race = NULL;
    if (fd >= 0 && uv_tcp_open(&link->tcp, fd) == 0) {
        connected(link);
        return;
    }
    if (fd >= 0) close(fd);
    link_end(link, FB_ERR_UNREACHABLE);
}

static void link_connect(tcp_link *link, const fb_sockaddr *addresses, size_t count)
{
    link->state = LINK_DIALLING; /* nothing left to cancel but the race */
    if (count == 0) {
        link_end(link, FB_ERR_UNREACHABLE);
    } else if (fb_race_start(link->carrier->loop, addresses, count, race_over, link, &link->race) !=
               FB_OK) {
        link_end(link, FB_ERR_NO_MEMORY);
    }
}

static void resolve_done(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    tcp_link *link = req->data;
    if (link->state == LINK_RESOLVING) {
        fb_sockaddr addresses[FB_RACE_ADDRESSES];
        link_connect(link, addresses, status == 0 ? fb_race_order(found, addresses) : 0);
    }
    uv_freeaddrinfo(found);
    link_unpin(link);
}

void fb_carrier_dial(fb_carrier *carrier, uint64_t dial, fb_span text)
{
    tcp_link *link = link_new(carrier);
    FB_ASSERT(link != NULL);
    carrier->stats.dials++;
    link->dial = dial;
    link->state = LINK_DIALLING;
    fb_address address;
    fb_sockaddr numeric;
    if (fb_address_parse(text, &address) != FB_OK || address.host[0] == 0) {
        link_end(link, FB_ERR_ARGUMENT);
        return;
    }
    if (carrier->links > carrier->links_max) {
        link_end(link, FB_ERR_BUSY);
        return;
    }
    uv_timer_start(&link->timer, dial_over, FB_CARRIER_DIAL_MS, 0);
    if (fb_address_numeric(&address, &numeric)) {
        link_connect(link, &numeric, 1);
        return;
    }
    link->state = LINK_RESOLVING;
    link->resolving.data = link;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    if (uv_getaddrinfo(carrier->loop, &link->resolving, resolve_done, address.host, address.port,
                       &hints) != 0) {
        link->state = LINK_DIALLING;
        link_end(link, FB_ERR_UNREACHABLE);
        return;
    }
    link->pins++;
}

/* Listening. */

static void accepted(void *user, int fd, const fb_sockaddr *from)
{
    fb_carrier *carrier = user;
    tcp_link *link = carrier->links < carrier->links_max ? link_new(carrier) : NULL;
    carrier->stats.accepted++;
    if (link == NULL) {
        carrier->stats.full++;
        close(fd);
        return;
    }
    if (uv_tcp_open(&link->tcp, fd) != 0) {
        close(fd);
        link->silent = true;
        link_end(link, FB_OK);
        return;
    }
    link_number(link);
    char host[INET6_ADDRSTRLEN];
    fb_sockaddr_host(from, host, sizeof host);
    carrier->handlers.opened(carrier->handlers.user, link->number, host);
    if (link->state == LINK_OPEN) {
        carrier->handlers.writable(carrier->handlers.user, link->number, FB_CARRIER_CREDIT);
    }
    if (link->state == LINK_OPEN) link_read(link);
}

fb_status fb_carrier_listen(fb_carrier *carrier, const char *address, char *bound, size_t bound_len,
                            char *why, size_t why_len)
{
    if (carrier->listener_count == FB_CARRIER_LISTENERS) {
        snprintf(why, why_len, "at most %u listeners", FB_CARRIER_LISTENERS);
        return FB_ERR_LIMIT;
    }
    fb_listener *listener;
    FB_TRY(fb_listener_open(carrier->loop, address, accepted, carrier, &listener, bound, bound_len,
                            why, why_len));
    fb_listener_hold(listener, carrier->held);
    carrier->listeners[carrier->listener_count++] = listener;
    carrier->pins++;
    return FB_OK;
}

void fb_carrier_hold(fb_carrier *carrier, bool hold)
{
    carrier->held = hold;
    for (uint32_t i = 0; i < carrier->listener_count; i++) {
        fb_listener_hold(carrier->listeners[i], hold);
    }
}

/* The whole. */

fb_status fb_carrier_create(uv_loop_t *loop, const fb_carrier_handlers *handlers,
                            uint32_t links_max, fb_carrier **out)
{
    *out = NULL;
    fb_carrier *carrier = calloc(1, sizeof *carrier);
    if (carrier == NULL) return FB_ERR_NO_MEMORY;
    signal(SIGPIPE, SIG_IGN);
    carrier->loop = loop;
    carrier->handlers = *handlers;
    carrier->links_max = links_max;
    carrier->pins = 1; /* the owner's, until stop */
    *out = carrier;
    return FB_OK;
}

static void stopped(uv_handle_t *handle)
{
    fb_carrier *carrier = handle->data;
    carrier_unpin(carrier);
}

static void listener_closed(void *user)
{
    carrier_unpin(user);
}

void fb_carrier_stop(fb_carrier *carrier, void (*gone)(void *user), void *user)
{
    FB_ASSERT(!carrier->stopping);
    carrier->stopping = true;
    carrier->gone = gone;
    carrier->gone_user = user;
    fb_carrier_drop_links(carrier);
    for (uint32_t i = 0; i < carrier->listener_count; i++) {
        fb_listener_close(carrier->listeners[i], listener_closed);
    }
    /* So that `gone` comes from the loop also when there is nothing else to close. */
    uv_timer_init(carrier->loop, &carrier->last);
    carrier->last.data = carrier;
    uv_close((uv_handle_t *)&carrier->last, stopped);
}
