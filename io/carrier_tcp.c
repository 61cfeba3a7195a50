/* SPDX-License-Identifier: Apache-2.0 */
#include "io/carrier_tcp.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/address.h"
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
    uv_connect_t connecting;
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

typedef struct listener {
    uv_poll_t poll;
    int fd;
} listener;

struct fb_carrier {
    uv_loop_t *loop;
    fb_carrier_handlers handlers;
    uint32_t links_max;
    uint32_t links;
    uint64_t numbers;
    tcp_link *all;
    tcp_link *buckets[LINK_BUCKETS];
    listener listeners[FB_CARRIER_LISTENERS];
    uint32_t listener_count;
    uv_timer_t shed; /* accepting pauses until it fires */
    bool shedding;
    bool held;
    int spare_fd; /* given up for a moment to accept and refuse when no descriptor is left */
    bool stopping;
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
    if (carrier->spare_fd >= 0) close(carrier->spare_fd);
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

uint32_t fb_carrier_links(const fb_carrier *carrier)
{
    return carrier->links;
}

/* Dialling. */

static void dial_over(uv_timer_t *timer)
{
    link_end(timer->data, FB_ERR_DEADLINE);
}

static void connect_done(uv_connect_t *req, int status)
{
    tcp_link *link = req->data;
    if (link->state == LINK_DIALLING) {
        if (status != 0) {
            link_end(link, FB_ERR_UNREACHABLE);
        } else {
            fb_carrier *carrier = link->carrier;
            uv_timer_stop(&link->timer);
            link_number(link);
            carrier->handlers.dialled(carrier->handlers.user, link->dial, link->number, FB_OK);
            if (link->state == LINK_OPEN) {
                carrier->handlers.writable(carrier->handlers.user, link->number, FB_CARRIER_CREDIT);
            }
            if (link->state == LINK_OPEN) link_read(link);
        }
    }
    link_unpin(link);
}

static void link_connect(tcp_link *link, const struct sockaddr *address)
{
    link->state = LINK_DIALLING;
    link->connecting.data = link;
    if (uv_tcp_connect(&link->connecting, &link->tcp, address, connect_done) != 0) {
        link_end(link, FB_ERR_UNREACHABLE);
        return;
    }
    link->pins++;
}

static void resolve_done(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    tcp_link *link = req->data;
    if (link->state == LINK_RESOLVING) {
        if (status == 0 && found != NULL) {
            link_connect(link, found->ai_addr);
        } else {
            link->state = LINK_DIALLING; /* nothing left to cancel */
            link_end(link, FB_ERR_UNREACHABLE);
        }
    }
    uv_freeaddrinfo(found);
    link_unpin(link);
}

void fb_carrier_dial(fb_carrier *carrier, uint64_t dial, fb_span text)
{
    tcp_link *link = link_new(carrier);
    FB_ASSERT(link != NULL);
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
        link_connect(link, &numeric.any);
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

static void listen_ready(uv_poll_t *poll, int status, int events);

static void listeners_watch(fb_carrier *carrier)
{
    bool on = !carrier->held && !carrier->shedding && !carrier->stopping;
    for (uint32_t i = 0; i < carrier->listener_count; i++) {
        uv_poll_t *poll = &carrier->listeners[i].poll;
        if (uv_is_closing((uv_handle_t *)poll)) continue;
        if (on) {
            uv_poll_start(poll, UV_READABLE, listen_ready);
        } else {
            uv_poll_stop(poll);
        }
    }
}

static void shed_over(uv_timer_t *timer)
{
    fb_carrier *carrier = timer->data;
    carrier->shedding = false;
    listeners_watch(carrier);
}

/* Out of descriptors: the spare one answers whoever waits with a close, and accepting pauses. A
 * listener that stays readable would otherwise keep the loop spinning. */
static void shed_start(fb_carrier *carrier, int listen_fd)
{
    if (carrier->spare_fd >= 0) {
        close(carrier->spare_fd);
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) close(fd);
        carrier->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    carrier->shedding = true;
    listeners_watch(carrier);
    uv_timer_start(&carrier->shed, shed_over, FB_CARRIER_SHED_MS, 0);
}

static void link_accept(fb_carrier *carrier, int fd, const fb_sockaddr *from)
{
    tcp_link *link = carrier->links < carrier->links_max ? link_new(carrier) : NULL;
    if (link == NULL) {
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

static void listen_ready(uv_poll_t *poll, int status, int events)
{
    (void)events;
    fb_carrier *carrier = poll->data;
    if (status != 0 || uv_is_closing((uv_handle_t *)poll)) return;
    int listen_fd = -1;
    uv_fileno((uv_handle_t *)poll, &listen_fd);
    for (int i = 0; i < 32 && !carrier->held && !carrier->stopping; i++) {
        fb_sockaddr from;
        socklen_t len = sizeof from;
        int fd = accept4(listen_fd, &from.any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            link_accept(carrier, fd, &from);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            shed_start(carrier, listen_fd);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

static fb_status refused(char *why, size_t len, const char *address, const char *what)
{
    snprintf(why, len, "cannot listen on %s: %s", address, what);
    return FB_ERR_STORE_FAILED;
}

/* A socket that listens on the address, or -1 with errno. */
static int listen_socket(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, 128) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

fb_status fb_carrier_listen(fb_carrier *carrier, const char *text, char *bound, size_t bound_len,
                            char *why, size_t why_len)
{
    fb_address address;
    if (fb_address_parse(fb_span_text(text), &address) != FB_OK) {
        snprintf(why, why_len, "%s is not HOST:PORT", text);
        return FB_ERR_ARGUMENT;
    }
    if (carrier->listener_count == FB_CARRIER_LISTENERS) return FB_ERR_LIMIT;
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(address.host[0] != 0 ? address.host : NULL, address.port, &hints, &found);
    if (rc != 0) return refused(why, why_len, text, gai_strerror(rc));
    /* For any address one IPv6 socket serves both families, where the system has IPv6. */
    int fd = -1;
    for (struct addrinfo *at = found; at != NULL && fd < 0 && address.host[0] == 0;
         at = at->ai_next) {
        if (at->ai_family == AF_INET6) fd = listen_socket(at);
    }
    for (struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = listen_socket(at);
    }
    int error = errno;
    freeaddrinfo(found);
    if (fd < 0) return refused(why, why_len, text, strerror(error));
    fb_sockaddr here;
    socklen_t len = sizeof here;
    listener *listening = &carrier->listeners[carrier->listener_count];
    if (getsockname(fd, &here.any, &len) != 0 ||
        uv_poll_init(carrier->loop, &listening->poll, fd) != 0) {
        close(fd);
        return refused(why, why_len, text, "no descriptor");
    }
    fb_sockaddr_text(&here, bound, bound_len);
    listening->fd = fd;
    listening->poll.data = carrier;
    carrier->listener_count++;
    carrier->pins++;
    listeners_watch(carrier);
    return FB_OK;
}

void fb_carrier_hold(fb_carrier *carrier, bool hold)
{
    carrier->held = hold;
    listeners_watch(carrier);
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
    carrier->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    uv_timer_init(loop, &carrier->shed);
    carrier->shed.data = carrier;
    carrier->pins = 2; /* the timer, and the owner until stop */
    *out = carrier;
    return FB_OK;
}

static void shed_closed(uv_handle_t *handle)
{
    carrier_unpin(handle->data);
}

static void listener_closed(uv_handle_t *handle)
{
    fb_carrier *carrier = handle->data;
    for (uint32_t i = 0; i < carrier->listener_count; i++) {
        if (handle == (uv_handle_t *)&carrier->listeners[i].poll) close(carrier->listeners[i].fd);
    }
    carrier_unpin(carrier);
}

void fb_carrier_stop(fb_carrier *carrier, void (*gone)(void *user), void *user)
{
    FB_ASSERT(!carrier->stopping);
    carrier->stopping = true;
    carrier->gone = gone;
    carrier->gone_user = user;
    fb_carrier_drop_links(carrier);
    for (uint32_t i = 0; i < carrier->listener_count; i++) {
        uv_close((uv_handle_t *)&carrier->listeners[i].poll, listener_closed);
    }
    uv_close((uv_handle_t *)&carrier->shed, shed_closed);
    carrier_unpin(carrier);
}
