/* SPDX-License-Identifier: Apache-2.0 */
/* Listening, and libmicrohttpd as one more thing that the loop waits for. */
#include "runtime/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/net/address.h"
#include "protocol/base/assert.h"
#include "runtime/api/exchange.h"
#include "runtime/api/internal.h"

static void timer_due(uv_timer_t *timer);

#define RUNS_A_TURN 8 /* then everything else has its turn */

static void turn(fb_api_listener *l)
{
    if (l->daemon == NULL) return;
    MHD_UNSIGNED_LONG_LONG ms = 0;
    bool waits = true;
    for (int i = 0; i < RUNS_A_TURN && waits && ms == 0; i++) {
        MHD_run(l->daemon);
        waits = MHD_get_timeout(l->daemon, &ms) == MHD_YES;
    }
    /* A client can make libmicrohttpd want to run at once again for as long as it likes, and a
     * timer that is due at once would be the only thing that libuv looks at. */
    if (waits) {
        uv_timer_start(&l->timer, timer_due, ms > 0 ? ms : 1, 0);
    } else {
        uv_timer_stop(&l->timer);
    }
    /* Who finds no place waits in the system's queue. */
    bool full = l->clients.count >= FB_API_CONNECTIONS_MAX;
    if (l->listener != NULL) fb_listener_hold(l->listener, full || l->api->quiesced);
}

/* Accepting is not left to libmicrohttpd: without descriptors it would go round and round. */
static void accepted(void *user, int fd, const fb_sockaddr *from)
{
    fb_api_listener *l = user;
    struct sockaddr here = {.sa_family = AF_UNIX};
    bool local = !l->port;
    /* On failure it has closed the descriptor. */
    MHD_add_connection(l->daemon, fd, local ? &here : &from->any,
                       local ? sizeof here.sa_family : fb_sockaddr_len(from));
    turn(l);
}

static void timer_due(uv_timer_t *timer)
{
    turn(timer->data);
}

void fb_api_turn_soon(fb_api *api, bool on_port)
{
    fb_api_listener *l = &api->listeners[on_port ? 1 : 0];
    if (l->daemon != NULL) uv_timer_start(&l->timer, timer_due, 0, 0);
}

static void readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    turn(poll->data);
}

/* Paths and query arguments are split before they are decoded, by ourselves. */
static size_t no_unescape(void *user, struct MHD_Connection *connection, char *string)
{
    (void)user;
    (void)connection;
    return strlen(string);
}

static void turn_soon(void *user)
{
    fb_api_listener *l = user;
    fb_api_turn_soon(l->api, l->port);
}

static bool listener_open(fb_api *api, fb_api_listener *l, int fd, bool port)
{
    l->api = api;
    l->port = port;
    l->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL,
        fb_api_handle, l, MHD_OPTION_CONNECTION_LIMIT, FB_API_CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, FB_API_IDLE_S, MHD_OPTION_NOTIFY_COMPLETED, fb_api_completed,
        l, MHD_OPTION_NOTIFY_CONNECTION, fb_clients_notify, &l->clients,
        MHD_OPTION_UNESCAPE_CALLBACK, no_unescape, NULL, MHD_OPTION_END);
    if (l->daemon == NULL) {
        close(fd);
        return false;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(l->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    FB_ASSERT(info != NULL);
    uv_poll_init(api->options.uv, &l->poll, info->epoll_fd);
    uv_timer_init(api->options.uv, &l->timer);
    l->poll.data = l->timer.data = l;
    fb_clients_open(&l->clients, api->options.uv, turn_soon, l);
    api->handles += 3;
    uv_poll_start(&l->poll, UV_READABLE, readable);
    if (fb_listener_over(api->options.uv, fd, accepted, l, &l->listener) != FB_OK) return false;
    api->handles++;
    turn(l);
    return true;
}

/* Only loopback: beyond it the API would need more than a token. */
static int port_socket(const char *text, char *bound, size_t bound_len, char *why, size_t why_len)
{
    fb_address address;
    fb_sockaddr at;
    if (fb_address_parse(fb_span_text(text), &address) != FB_OK) {
        snprintf(why, why_len, "api: %s is not HOST:PORT", text);
        return -1;
    }
    if (strcmp(address.host, "localhost") == 0) snprintf(address.host, 16, "127.0.0.1");
    if (!fb_address_numeric(&address, &at) || !fb_sockaddr_is_loopback(&at)) {
        snprintf(why, why_len, "api: %s is not on loopback", text);
        return -1;
    }
    int fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    socklen_t len = sizeof at;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(fd, &at.any, fb_sockaddr_len(&at)) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, &at.any, &len) != 0) {
        snprintf(why, why_len, "api: cannot listen on %s: %s", text, strerror(errno));
        if (fd >= 0) close(fd);
        return -1;
    }
    fb_sockaddr_text(&at, bound, bound_len);
    return fd;
}

static void beat_due(uv_timer_t *timer)
{
    fb_api *api = ((fb_api_listener *)timer->data)->api;
    bool feeds = false;
    for (fb_exchange *x = api->exchanges; x != NULL; x = x->next) {
        if (!x->streaming || x->stream_over) continue;
        feeds = true;
        if (x->out.len > 0) continue; /* what waits already is sign enough */
        fb_text_put(&x->out, ":\n\n");
        fb_exchange_stream_more(x);
    }
    if (!feeds) uv_timer_stop(timer);
}

void fb_api_feeds_beat(fb_api *api)
{
    if (uv_is_active((uv_handle_t *)&api->beat)) return;
    uv_timer_start(&api->beat, beat_due, FB_API_BEAT_MS, FB_API_BEAT_MS);
}

bool fb_api_open(const fb_api_options *options, fb_api **out, char *bound, size_t bound_len,
                 char *why, size_t why_len)
{
    *out = NULL;
    bound[0] = 0;
    fb_api *api = calloc(1, sizeof *api);
    FB_ASSERT(api != NULL);
    api->options = *options;
    if (fb_home_token(options->node->home, api->token, why, why_len) != FB_OK) {
        free(api);
        return false;
    }
    uv_timer_init(options->uv, &api->beat);
    api->beat.data = &api->listeners[0];
    api->listeners[0].api = api;
    api->handles++;
    int port = -1;
    if (options->port[0] != 0) {
        port = port_socket(options->port, bound, bound_len, why, why_len);
        if (port < 0) {
            *out = api;
            return false;
        }
    }
    int fd = fb_home_listen(options->node->home, "api.sock", 64);
    bool ok = fd >= 0 && listener_open(api, &api->listeners[0], fd, false);
    if (!ok) {
        snprintf(why, why_len, "%s/api.sock: %s", options->node->home->path, strerror(errno));
    }
    if (ok && port >= 0) {
        ok = listener_open(api, &api->listeners[1], port, true);
        if (!ok) snprintf(why, why_len, "api: the listener does not start");
    }
    *out = api;
    return ok;
}

const fb_api_options *fb_api_options_of(const fb_api *api)
{
    return &api->options;
}

void fb_api_quiesce(fb_api *api)
{
    api->quiesced = true;
    for (int i = 0; i < FB_API_LISTENERS; i++) {
        fb_api_listener *l = &api->listeners[i];
        if (l->listener != NULL) fb_listener_hold(l->listener, true);
    }
}

static void handle_closed(fb_api *api)
{
    if (--api->handles > 0) return;
    void (*closed)(void *user) = api->closed;
    void *user = api->closed_user;
    free(api);
    closed(user);
}

static void listener_closed(uv_handle_t *handle)
{
    handle_closed(((fb_api_listener *)handle->data)->api);
}

static void clients_closed(uv_handle_t *handle)
{
    fb_clients *clients = handle->data;
    handle_closed(((fb_api_listener *)((char *)clients - offsetof(fb_api_listener, clients)))->api);
}

static void accepting_closed(void *user)
{
    handle_closed(((fb_api_listener *)user)->api);
}

void fb_api_stats_get(const fb_api *api, fb_api_stats *out)
{
    *out = (fb_api_stats){0};
    memcpy(out->answers, api->answers, sizeof out->answers);
    for (int i = 0; i < FB_API_LISTENERS; i++) {
        const fb_api_listener *l = &api->listeners[i];
        out->connections += l->clients.count;
        if (l->listener != NULL) out->pauses += fb_listener_pauses(l->listener);
    }
    for (const fb_exchange *x = api->exchanges; x != NULL; x = x->next) {
        out->requests++;
        out->feeds += x->streaming;
    }
}

void fb_api_close(fb_api *api, void (*closed)(void *user), void *user)
{
    api->closed = closed;
    api->closed_user = user;
    api->quiesced = true;
    for (fb_exchange *x = api->exchanges; x != NULL; x = x->next) {
        if (x->streaming) {
            x->stream_over = true;
            fb_exchange_stream_more(x);
        } else if (x->suspended) {
            fb_exchange_fail(x, FB_ERR_AGAIN, "the node stops");
        }
    }
    char path[FB_HOME_PATH_MAX];
    fb_home_file(api->options.node->home, "api.sock", path);
    if (api->listeners[0].daemon != NULL) unlink(path);
    api->handles++;
    for (int i = 0; i < FB_API_LISTENERS; i++) {
        fb_api_listener *l = &api->listeners[i];
        if (l->daemon == NULL) continue;
        /* What is ready leaves now: a turn resumes, the next ones write. */
        for (int turns = 0; turns < 4; turns++) MHD_run(l->daemon);
        uv_close((uv_handle_t *)&l->poll, listener_closed);
        uv_close((uv_handle_t *)&l->timer, listener_closed);
        MHD_stop_daemon(l->daemon);
        uv_close((uv_handle_t *)&l->clients.due, clients_closed);
        l->daemon = NULL;
        if (l->listener != NULL) fb_listener_close(l->listener, accepting_closed);
        l->listener = NULL;
    }
    uv_close((uv_handle_t *)&api->beat, listener_closed);
    api->last.data = &api->listeners[0];
    uv_timer_init(api->options.uv, &api->last);
    uv_close((uv_handle_t *)&api->last, listener_closed);
}
