/* SPDX-License-Identifier: Apache-2.0 */
#include "io/net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ACCEPTS_A_TURN 32 /* then other events have theirs */

struct fb_listener {
    uv_poll_t poll;
    uv_timer_t pause;
    int fd;
    int spare_fd;
    bool held;
    bool pausing;
    unsigned handles;
    uint64_t pauses;
    fb_accepted accepted;
    void (*closed)(void *user);
    void *user;
};

static void ready(uv_poll_t *poll, int status, int events);

static void watch(fb_listener *l)
{
    if (uv_is_closing((uv_handle_t *)&l->poll)) return;
    if (l->held || l->pausing) {
        uv_poll_stop(&l->poll);
    } else {
        uv_poll_start(&l->poll, UV_READABLE, ready);
    }
}

static void pause_over(uv_timer_t *timer)
{
    fb_listener *l = timer->data;
    l->pausing = false;
    watch(l);
}

static void pause_start(fb_listener *l)
{
    if (l->spare_fd >= 0) {
        close(l->spare_fd);
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) close(fd);
        l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
    l->pausing = true;
    l->pauses++;
    watch(l);
    uv_timer_start(&l->pause, pause_over, FB_LISTENER_PAUSE_MS, 0);
}

static void ready(uv_poll_t *poll, int status, int events)
{
    (void)events;
    fb_listener *l = poll->data;
    if (status != 0) return;
    for (int i = 0; i < ACCEPTS_A_TURN && !l->held; i++) {
        if (uv_is_closing((uv_handle_t *)poll)) return;
        fb_sockaddr from;
        socklen_t len = sizeof from;
        int fd = accept4(l->fd, &from.any, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            l->accepted(l->user, fd, &from);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_start(l);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
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

static int listen_any_of(const struct addrinfo *found, bool every_address)
{
    int fd = -1;
    errno = EADDRNOTAVAIL;
    /* For every address one IPv6 socket serves both families, where the system has IPv6. */
    for (const struct addrinfo *at = found; at != NULL && fd < 0 && every_address;
         at = at->ai_next) {
        if (at->ai_family == AF_INET6) fd = listen_socket(at);
    }
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = listen_socket(at);
    }
    return fd;
}

static fb_status refused(char *why, size_t len, const char *address, const char *what)
{
    snprintf(why, len, "cannot listen on %s: %s", address, what);
    return FB_ERR_STORE_FAILED;
}

fb_status fb_listener_open(uv_loop_t *loop, const char *text, fb_accepted accepted, void *user,
                           fb_listener **out, char *bound, size_t bound_len, char *why,
                           size_t why_len)
{
    *out = NULL;
    fb_address address;
    if (fb_address_parse(fb_span_text(text), &address) != FB_OK) {
        snprintf(why, why_len, "%s is not HOST:PORT", text);
        return FB_ERR_ARGUMENT;
    }
    struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    bool every_address = address.host[0] == 0;
    int rc = getaddrinfo(every_address ? NULL : address.host, address.port, &hints, &found);
    if (rc != 0) return refused(why, why_len, text, gai_strerror(rc));
    int fd = listen_any_of(found, every_address);
    int error = errno;
    freeaddrinfo(found);
    if (fd < 0) return refused(why, why_len, text, strerror(error));
    fb_sockaddr here;
    socklen_t len = sizeof here;
    if (getsockname(fd, &here.any, &len) != 0) {
        close(fd);
        return refused(why, why_len, text, strerror(errno));
    }
    fb_sockaddr_text(&here, bound, bound_len);
    fb_status status = fb_listener_over(loop, fd, accepted, user, out);
    if (status != FB_OK) (void)refused(why, why_len, text, "no memory or descriptor");
    return status;
}

fb_status fb_listener_over(uv_loop_t *loop, int fd, fb_accepted accepted, void *user,
                           fb_listener **out)
{
    *out = NULL;
    fb_listener *l = calloc(1, sizeof *l);
    if (l == NULL || uv_poll_init(loop, &l->poll, fd) != 0) {
        free(l);
        close(fd);
        return FB_ERR_NO_MEMORY;
    }
    uv_timer_init(loop, &l->pause);
    l->poll.data = l->pause.data = l;
    l->handles = 2;
    l->fd = fd;
    l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    l->accepted = accepted;
    l->user = user;
    watch(l);
    *out = l;
    return FB_OK;
}

uint64_t fb_listener_pauses(const fb_listener *listener)
{
    return listener->pauses;
}

void fb_listener_hold(fb_listener *listener, bool hold)
{
    if (listener->held == hold) return;
    listener->held = hold;
    watch(listener);
}

static void handle_closed(uv_handle_t *handle)
{
    fb_listener *l = handle->data;
    if (--l->handles > 0) return;
    void (*closed)(void *user) = l->closed;
    void *user = l->user;
    close(l->fd);
    if (l->spare_fd >= 0) close(l->spare_fd);
    free(l);
    closed(user);
}

void fb_listener_close(fb_listener *listener, void (*closed)(void *user))
{
    listener->closed = closed;
    uv_close((uv_handle_t *)&listener->poll, handle_closed);
    uv_close((uv_handle_t *)&listener->pause, handle_closed);
}
