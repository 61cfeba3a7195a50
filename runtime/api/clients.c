/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/clients.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/base/assert.h"
#include "runtime/api/api.h"

struct fb_client {
    fb_client *next, **at;
    fb_clients *clients;
    struct MHD_Connection *connection;
    int fd;
    fb_client_phase phase;
    uint64_t begun;    /* the phase's number */
    uint64_t until_ms; /* of uv_now; UINT64_MAX: no deadline */
    bool owner;
};

static void due(uv_timer_t *timer);

/* The timer runs only while somebody has a deadline. */
static void timer_set(fb_clients *clients)
{
    uint64_t first = UINT64_MAX, now = uv_now(clients->due.loop);
    for (const fb_client *c = clients->first; c != NULL; c = c->next) {
        if (c->until_ms < first) first = c->until_ms;
    }
    if (first == UINT64_MAX) {
        uv_timer_stop(&clients->due);
    } else {
        uv_timer_start(&clients->due, due, first > now ? first - now : 0, 0);
    }
}

/* libmicrohttpd sees the end of the connection and lets go of it; or, where its buffer is full and
 * it does not read, a second later. */
static void end(fb_client *client)
{
    client->until_ms = UINT64_MAX;
    shutdown(client->fd, SHUT_RDWR);
    MHD_set_connection_option(client->connection, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
    client->clients->ended(client->clients->user);
}

static void due(uv_timer_t *timer)
{
    fb_clients *clients = timer->data;
    uint64_t now = uv_now(timer->loop);
    for (fb_client *c = clients->first; c != NULL; c = c->next) {
        if (c->until_ms <= now) end(c);
    }
    timer_set(clients);
}

static void phase_begin(fb_client *client, fb_client_phase phase)
{
    static const uint64_t allowed_ms[] = {FB_API_HEADERS_MS, FB_API_BODY_MS, FB_API_REPLY_MS};
    fb_clients *clients = client->clients;
    uint64_t before = client->until_ms;
    client->phase = phase;
    client->begun = ++clients->begun;
    client->until_ms =
        phase == FB_CLIENT_ANSWER ? UINT64_MAX : uv_now(clients->due.loop) + allowed_ms[phase];
    if (before != client->until_ms) timer_set(clients);
}

/* The one that has gone longest without asking; after those, the one that is longest at its body,
 * or at taking its answer. */
static fb_client *oldest(const fb_clients *clients)
{
    fb_client *found = NULL;
    for (fb_client *c = clients->first; c != NULL; c = c->next) {
        if (c->until_ms == UINT64_MAX) continue;
        if (found == NULL || c->phase < found->phase ||
            (c->phase == found->phase && c->begun < found->begun)) {
            found = c;
        }
    }
    return found;
}

void fb_clients_open(fb_clients *clients, uv_loop_t *uv, void (*ended)(void *user), void *user)
{
    clients->ended = ended;
    clients->user = user;
    uv_timer_init(uv, &clients->due);
    clients->due.data = clients;
}

static void client_add(fb_clients *clients, struct MHD_Connection *connection, void **out)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    fb_client *client = calloc(1, sizeof *client);
    FB_ASSERT(client != NULL && info != NULL);
    if (clients->count >= FB_API_CONNECTIONS_MAX - FB_API_SPARE) {
        fb_client *gives_way = oldest(clients);
        if (gives_way != NULL) end(gives_way);
    }
    client->clients = clients;
    client->connection = connection;
    client->fd = info->connect_fd;
    struct ucred peer;
    socklen_t len = sizeof peer;
    client->owner = getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
                    (peer.uid == geteuid() || peer.uid == 0);
    client->next = clients->first;
    client->at = &clients->first;
    if (client->next != NULL) client->next->at = &client->next;
    clients->first = client;
    clients->count++;
    *out = client;
    phase_begin(client, FB_CLIENT_HEADERS);
}

void fb_clients_notify(void *user, struct MHD_Connection *connection, void **out,
                       enum MHD_ConnectionNotificationCode code)
{
    fb_clients *clients = user;
    fb_client *client = *out;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        client_add(clients, connection, out);
    } else if (client != NULL) {
        *client->at = client->next;
        if (client->next != NULL) client->next->at = client->at;
        clients->count--;
        free(client);
        *out = NULL;
    }
}

bool fb_client_is_owner(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    const fb_client *client = info != NULL ? info->socket_context : NULL;
    return client != NULL && client->owner;
}

void fb_clients_asked(struct MHD_Connection *connection, fb_client_phase phase)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (info != NULL && info->socket_context != NULL) phase_begin(info->socket_context, phase);
}
