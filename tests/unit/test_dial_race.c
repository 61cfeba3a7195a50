/* SPDX-License-Identifier: Apache-2.0 */
/* Several addresses of one peer: refusing ones, silent ones, and one that answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/net/dial_race.h"

#define BACKLOG_FILLERS 8

typedef struct fixture {
    uv_loop_t loop;
    int told;
    int fd;
    int silent_fd; /* listens, and its queue is full: what comes is not answered */
    int fillers[BACKLOG_FILLERS];
    fb_sockaddr silent;
} fixture;

static fb_sockaddr bound(int fd, int family)
{
    fb_sockaddr here = {.any.sa_family = (sa_family_t)family};
    if (family == AF_INET) here.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (family == AF_INET6) here.v6.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
    socklen_t len = fb_sockaddr_len(&here);
    assert_int_equal(bind(fd, &here.any, len), 0);
    assert_int_equal(getsockname(fd, &here.any, &len), 0);
    return here;
}

static int socket_of(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    return fd;
}

static fb_sockaddr listening(int family, int *fd)
{
    *fd = socket_of(family);
    fb_sockaddr here = bound(*fd, family);
    assert_int_equal(listen(*fd, 8), 0);
    return here;
}

/* Nobody listens: the port was free a moment ago and is kept by a socket that does not. */
static fb_sockaddr refusing(int family, int *fd)
{
    *fd = socket_of(family);
    return bound(*fd, family);
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    uv_loop_init(&f->loop);
    f->fd = -2;
    f->silent_fd = socket_of(AF_INET);
    f->silent = bound(f->silent_fd, AF_INET);
    assert_int_equal(listen(f->silent_fd, 0), 0);
    for (int i = 0; i < BACKLOG_FILLERS; i++) {
        f->fillers[i] = socket_of(AF_INET);
        (void)!connect(f->fillers[i], &f->silent.any, fb_sockaddr_len(&f->silent));
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < BACKLOG_FILLERS; i++) close(f->fillers[i]);
    close(f->silent_fd);
    if (f->fd >= 0) close(f->fd);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    free(f);
    return 0;
}

static void done(void *user, int fd)
{
    fixture *f = user;
    f->told++;
    f->fd = fd;
}

static fb_race *start(fixture *f, const fb_sockaddr *addresses, size_t count)
{
    fb_race *race;
    assert_int_equal(fb_race_start(&f->loop, addresses, count, done, f, &race), FB_OK);
    assert_int_equal(f->told, 0); /* never from within the call */
    return race;
}

static void run(fixture *f)
{
    while (f->told == 0) uv_run(&f->loop, UV_RUN_ONCE);
}

/* The port that the socket is connected to. */
static uint16_t peer_port(int fd)
{
    fb_sockaddr to;
    socklen_t len = sizeof to;
    assert_int_equal(getpeername(fd, &to.any, &len), 0);
    return to.any.sa_family == AF_INET ? to.v4.sin_port : to.v6.sin6_port;
}

static void one_that_answers_is_enough(void **state)
{
    fixture *f = *state;
    int none, there;
    fb_sockaddr addresses[] = {f->silent, refusing(AF_INET, &none), listening(AF_INET6, &there)};
    start(f, addresses, 3);
    run(f);
    assert_true(f->fd >= 0);
    assert_int_equal(peer_port(f->fd), addresses[2].v6.sin6_port);
    uv_run(&f->loop, UV_RUN_DEFAULT); /* the others are gone, nothing more is told */
    assert_int_equal(f->told, 1);
    close(none);
    close(there);
}

static void refusals_are_passed_over(void **state)
{
    fixture *f = *state;
    int none[3], there;
    fb_sockaddr addresses[] = {refusing(AF_INET, &none[0]), refusing(AF_INET, &none[1]),
                               refusing(AF_INET6, &none[2]), listening(AF_INET, &there)};
    start(f, addresses, 4);
    run(f);
    assert_true(f->fd >= 0);
    assert_int_equal(peer_port(f->fd), addresses[3].v4.sin_port);
    for (int i = 0; i < 3; i++) close(none[i]);
    close(there);
}

static void the_first_wins_when_all_answer(void **state)
{
    fixture *f = *state;
    int there[2];
    fb_sockaddr addresses[] = {listening(AF_INET6, &there[0]), listening(AF_INET, &there[1])};
    start(f, addresses, 2);
    run(f);
    assert_int_equal(peer_port(f->fd), addresses[0].v6.sin6_port);
    assert_int_equal(accept(there[1], NULL, NULL), -1); /* nobody bothered the other one */
    for (int i = 0; i < 2; i++) close(there[i]);
}

static void none_that_answers_is_told_once(void **state)
{
    fixture *f = *state;
    int none[2];
    fb_sockaddr addresses[] = {refusing(AF_INET, &none[0]), refusing(AF_INET6, &none[1])};
    start(f, addresses, 2);
    run(f);
    assert_int_equal(f->fd, -1);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->told, 1);
    for (int i = 0; i < 2; i++) close(none[i]);
}

static void without_descriptors_it_fails(void **state)
{
    fixture *f = *state;
    struct rlimit old, none;
    getrlimit(RLIMIT_NOFILE, &old);
    none = old;
    none.rlim_cur = 0;
    start(f, &f->silent, 1);
    setrlimit(RLIMIT_NOFILE, &none);
    run(f);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_int_equal(f->fd, -1);
}

static void a_cancelled_race_tells_nobody(void **state)
{
    fixture *f = *state;
    fb_sockaddr addresses[] = {f->silent, f->silent, f->silent};
    fb_race_cancel(start(f, addresses, 3)); /* before it began */
    fb_race *race = start(f, addresses, 3);
    uv_run(&f->loop, UV_RUN_ONCE);
    uv_run(&f->loop, UV_RUN_ONCE); /* with attempts under way */
    fb_race_cancel(race);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->told, 0);
}

static void families_take_turns(void **state)
{
    (void)state;
    struct addrinfo list[12];
    fb_sockaddr addresses[12], out[FB_RACE_ADDRESSES];
    for (size_t i = 0; i < 12; i++) {
        bool v6 = i < 7; /* seven of IPv6, then five of IPv4 */
        addresses[i] = (fb_sockaddr){.any.sa_family = v6 ? AF_INET6 : AF_INET};
        if (v6) addresses[i].v6.sin6_port = (in_port_t)i;
        if (!v6) addresses[i].v4.sin_port = (in_port_t)i;
        list[i] = (struct addrinfo){.ai_family = v6 ? AF_INET6 : AF_INET,
                                    .ai_addr = &addresses[i].any,
                                    .ai_addrlen = fb_sockaddr_len(&addresses[i]),
                                    .ai_next = i + 1 < 12 ? &list[i + 1] : NULL};
    }
    static const in_port_t wanted[] = {0, 7, 1, 8, 2, 9, 3, 10};
    assert_int_equal(fb_race_order(list, out), FB_RACE_ADDRESSES);
    for (size_t i = 0; i < FB_RACE_ADDRESSES; i++) {
        assert_int_equal(i % 2 == 0 ? out[i].v6.sin6_port : out[i].v4.sin_port, wanted[i]);
    }
    /* One family alone is in its order; none is none. */
    assert_int_equal(fb_race_order(&list[9], out), 3);
    assert_int_equal(out[2].v4.sin_port, 11);
    assert_int_equal(fb_race_order(NULL, out), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(one_that_answers_is_enough),      TEST(refusals_are_passed_over),
        TEST(the_first_wins_when_all_answer),  TEST(none_that_answers_is_told_once),
        TEST(without_descriptors_it_fails),    TEST(a_cancelled_race_tells_nobody),
        cmocka_unit_test(families_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
