/* SPDX-License-Identifier: Apache-2.0 */
#include "io/net/dial_race.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "protocol/base/assert.h"

typedef struct attempt {
    uv_poll_t poll;
    int fd; /* -1: not under way */
} attempt;

struct fb_race {
    uv_loop_t *loop;
    uv_timer_t next; /* the next address is due */
    fb_sockaddr addresses[FB_RACE_ADDRESSES];
    attempt attempts[FB_RACE_ADDRESSES];
    size_t count;
    size_t tried;
    size_t under_way;
    uint32_t handles;
    bool over;
    fb_race_done done;
    void *user;
};

size_t fb_race_order(const struct addrinfo *found, fb_sockaddr out[FB_RACE_ADDRESSES])
{
    const struct addrinfo *at[2] = {found, found}; /* the family of the first one, the others */
    size_t count = 0;
    if (found == NULL) return 0;
    int first = found->ai_family;
    for (size_t turn = 0; count < FB_RACE_ADDRESSES && (at[0] != NULL || at[1] != NULL); turn++) {
        const struct addrinfo **mine = &at[turn % 2];
        while (*mine != NULL && ((*mine)->ai_family == first) != (turn % 2 == 0)) {
            *mine = (*mine)->ai_next;
        }
        if (*mine == NULL) continue;
        if ((*mine)->ai_addrlen <= sizeof out[0]) {
            memset(&out[count], 0, sizeof out[0]);
            memcpy(&out[count++], (*mine)->ai_addr, (*mine)->ai_addrlen);
        }
        *mine = (*mine)->ai_next;
    }
    return count;
}

/* Ends. */

static void handle_closed(uv_handle_t *handle)
{
    fb_race *race = handle->data;
    if (--race->handles == 0) free(race);
}

static void attempt_end(fb_race *race, attempt *a, bool keep_fd)
{
    uv_close((uv_handle_t *)&a->poll, handle_closed);
    if (!keep_fd) close(a->fd);
    a->fd = -1;
    race->under_way--;
}

static void race_end(fb_race *race)
{
    FB_ASSERT(!race->over);
    race->over = true;
    for (size_t i = 0; i < race->tried; i++) {
        if (race->attempts[i].fd >= 0) attempt_end(race, &race->attempts[i], false);
    }
    uv_close((uv_handle_t *)&race->next, handle_closed);
}

void fb_race_cancel(fb_race *race)
{
    race_end(race);
}

static void race_tell(fb_race *race, int fd)
{
    race_end(race);
    race->done(race->user, fd);
}

/* Attempts. */

static void try_next(fb_race *race);

static void answered(uv_poll_t *poll, int status, int events)
{
    (void)events;
    fb_race *race = poll->data;
    attempt *a = (attempt *)((char *)poll - offsetof(attempt, poll));
    int error = 0, fd = a->fd;
    socklen_t len = sizeof error;
    if (race->over) return;
    bool connected =
        status == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
    attempt_end(race, a, connected);
    if (connected) {
        race_tell(race, fd);
    } else {
        try_next(race);
    }
}

/* False when this address failed at once. */
static bool attempt_begin(fb_race *race, attempt *a, const fb_sockaddr *to)
{
    a->fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (a->fd < 0) return false;
    if ((connect(a->fd, &to->any, fb_sockaddr_len(to)) != 0 && errno != EINPROGRESS) ||
        uv_poll_init(race->loop, &a->poll, a->fd) != 0) {
        close(a->fd);
        a->fd = -1;
        return false;
    }
    a->poll.data = race;
    race->handles++;
    race->under_way++;
    uv_poll_start(&a->poll, UV_WRITABLE, answered);
    return true;
}

static void next_due(uv_timer_t *timer)
{
    try_next(timer->data);
}

static void try_next(fb_race *race)
{
    bool begun = false;
    while (!begun && race->tried < race->count) {
        size_t i = race->tried++;
        begun = attempt_begin(race, &race->attempts[i], &race->addresses[i]);
    }
    if (race->under_way == 0) {
        race_tell(race, -1);
    } else if (race->tried < race->count) {
        uv_timer_start(&race->next, next_due, FB_RACE_PAUSE_MS, 0);
    }
}

fb_status fb_race_start(uv_loop_t *loop, const fb_sockaddr *addresses, size_t count,
                        fb_race_done done, void *user, fb_race **out)
{
    FB_ASSERT(count > 0 && count <= FB_RACE_ADDRESSES);
    fb_race *race = calloc(1, sizeof *race);
    *out = race;
    if (race == NULL) return FB_ERR_NO_MEMORY;
    race->loop = loop;
    race->count = count;
    memcpy(race->addresses, addresses, count * sizeof addresses[0]);
    for (size_t i = 0; i < count; i++) race->attempts[i].fd = -1;
    race->done = done;
    race->user = user;
    uv_timer_init(loop, &race->next);
    race->next.data = race;
    race->handles = 1;
    /* From the loop, so that `done` never comes from within this call. */
    uv_timer_start(&race->next, next_due, 0, 0);
    return FB_OK;
}
