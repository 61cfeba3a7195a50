/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP carrier over real sockets: a link that echoes, and peers that behave badly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/net/address.h"
#include "io/net/carrier_tcp.h"

#define TOTAL (1u << 20)

/* What one end knows of its link. */
typedef struct end {
    uint64_t link;
    uint64_t credit;
    size_t received;
    size_t sent;
    bool closed;
    fb_error error;
} end;

typedef struct fixture {
    uv_loop_t loop;
    fb_carrier *carrier;
    char bound[64];
    uint64_t dials;
    end near, far; /* the dialler's and the acceptor's */
    char from[64];
    fb_error dial_error;
    bool dial_answered;
    bool echo;
    size_t take; /* far takes at most so many bytes a call */
    uint8_t *echoed;
    size_t echoed_len;
    bool gone;
} fixture;

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 31 + (i >> 8));
}

static end *end_of(fixture *f, uint64_t link)
{
    return link == f->near.link ? &f->near : link == f->far.link ? &f->far : NULL;
}

static void on_dialled(void *user, uint64_t dial, uint64_t link, fb_error error)
{
    fixture *f = user;
    assert_int_equal(dial, f->dials);
    assert_true((link == 0) == (error != FB_OK));
    f->dial_answered = true;
    f->dial_error = error;
    f->near.link = link;
}

static void on_opened(void *user, uint64_t link, const char *host)
{
    fixture *f = user;
    f->far = (end){.link = link};
    snprintf(f->from, sizeof f->from, "%s", host);
}

static void far_send(fixture *f)
{
    while (f->echoed_len > 0 && f->far.credit > 0) {
        size_t n = f->echoed_len < f->far.credit ? f->echoed_len : f->far.credit;
        fb_carrier_send(f->carrier, f->far.link, fb_span_of(f->echoed, n));
        f->far.credit -= n;
        f->far.sent += n;
        f->echoed_len -= n;
        memmove(f->echoed, f->echoed + n, f->echoed_len);
    }
}

static size_t on_bytes(void *user, uint64_t link, const uint8_t *bytes, size_t len)
{
    fixture *f = user;
    end *e = end_of(f, link);
    if (e == &f->far && len > f->take) len = f->take;
    for (size_t i = 0; i < len; i++) assert_int_equal(bytes[i], byte_at(e->received + i));
    e->received += len;
    if (e == &f->far && f->echo) {
        memcpy(f->echoed + f->echoed_len, bytes, len);
        f->echoed_len += len;
        far_send(f);
    }
    return len;
}

static void on_writable(void *user, uint64_t link, uint64_t bytes)
{
    fixture *f = user;
    end *e = end_of(f, link);
    e->credit += bytes;
    assert_true(e->credit <= FB_CARRIER_CREDIT);
    if (e == &f->far) far_send(f);
}

static void on_closed(void *user, uint64_t link, fb_error error)
{
    fixture *f = user;
    end *e = end_of(f, link);
    assert_false(e->closed);
    e->closed = true;
    e->error = error;
}

static void on_gone(void *user)
{
    ((fixture *)user)->gone = true;
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->take = SIZE_MAX;
    f->echoed = malloc(TOTAL);
    uv_loop_init(&f->loop);
    fb_carrier_handlers handlers = {f, on_dialled, on_opened, on_bytes, on_writable, on_closed};
    assert_int_equal(fb_carrier_create(&f->loop, &handlers, 64, &f->carrier), FB_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    if (f->carrier != NULL) fb_carrier_stop(f->carrier, on_gone, f);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_true(f->gone);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    free(f->echoed);
    free(f);
    return 0;
}

static uint32_t links(const fixture *f)
{
    fb_carrier_stats stats;
    fb_carrier_stats_get(f->carrier, &stats);
    return stats.links;
}

#define RUN_UNTIL(f, condition)                                                                    \
    while (!(condition)) uv_run(&(f)->loop, UV_RUN_ONCE)

static void listen_on(fixture *f, const char *address)
{
    char why[160];
    assert_int_equal(
        fb_carrier_listen(f->carrier, address, f->bound, sizeof f->bound, why, sizeof why), FB_OK);
}

static void dial(fixture *f, const char *address)
{
    f->dial_answered = false;
    f->near = (end){0};
    fb_carrier_dial(f->carrier, ++f->dials, fb_span_text(address));
    assert_false(f->dial_answered); /* never from within the call */
    RUN_UNTIL(f, f->dial_answered);
}

static void connect_ends(fixture *f, const char *address)
{
    listen_on(f, address);
    dial(f, f->bound);
    assert_int_equal(f->dial_error, FB_OK);
    RUN_UNTIL(f, f->far.link != 0 && f->far.credit > 0 && f->near.credit > 0);
    assert_int_equal(f->near.credit, FB_CARRIER_CREDIT);
    assert_int_equal(f->far.credit, FB_CARRIER_CREDIT);
}

/* As much as the credit allows, up to `total` in all. */
static void near_send(fixture *f, size_t total)
{
    static uint8_t bytes[FB_CARRIER_CREDIT];
    size_t n = total - f->near.sent;
    if (n > f->near.credit) n = f->near.credit;
    for (size_t i = 0; i < n; i++) bytes[i] = byte_at(f->near.sent + i);
    fb_carrier_send(f->carrier, f->near.link, fb_span_of(bytes, n));
    f->near.credit -= n;
    f->near.sent += n;
}

static void echo_over(fixture *f, const char *address)
{
    f->echo = true;
    connect_ends(f, address);
    while (f->near.received < TOTAL) {
        near_send(f, TOTAL);
        uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_int_equal(f->far.received, TOTAL);
    fb_carrier_close(f->carrier, f->near.link);
    RUN_UNTIL(f, f->near.closed && f->far.closed);
    assert_int_equal(f->near.error, FB_OK);
    assert_int_equal(f->far.error, FB_OK);
    assert_int_equal(links(f), 0);
}

static void a_megabyte_is_echoed_over_ipv4(void **state)
{
    echo_over(*state, "127.0.0.1:0");
    assert_string_equal(((fixture *)*state)->from, "127.0.0.1");
}

static void a_megabyte_is_echoed_over_ipv6(void **state)
{
    echo_over(*state, "[::1]:0");
    assert_string_equal(((fixture *)*state)->from, "::1");
}

static void names_are_resolved(void **state)
{
    fixture *f = *state;
    listen_on(f, "127.0.0.1:0");
    char named[64];
    snprintf(named, sizeof named, "localhost%s", strrchr(f->bound, ':'));
    dial(f, named);
    /* localhost may be ::1 first, where nobody listens: the next address is tried. */
    assert_int_equal(f->dial_error, FB_OK);
    snprintf(named, sizeof named, "localhost:1");
    dial(f, named);
    assert_int_equal(f->dial_error, FB_ERR_UNREACHABLE);
}

static void what_is_not_taken_waits_and_stops_the_sender(void **state)
{
    fixture *f = *state;
    f->take = 1000;
    connect_ends(f, "127.0.0.1:0");
    near_send(f, TOTAL);
    RUN_UNTIL(f, f->far.received > 0);
    /* Nothing is read meanwhile: the sender fills what the system buffers and stalls there. */
    while (f->near.credit > 0) {
        near_send(f, 64u << 20);
        for (int i = 0; i < 50; i++) uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(f->far.received, 1000);
    size_t total = f->near.sent;
    assert_true(total < 64u << 20);
    f->take = 70000;
    while (f->far.received < total) {
        fb_carrier_resume(f->carrier, f->far.link);
        uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(f->far.received, total);
}

static void close_lets_sent_bytes_leave_first(void **state)
{
    fixture *f = *state;
    connect_ends(f, "127.0.0.1:0");
    near_send(f, FB_CARRIER_CREDIT);
    fb_carrier_close(f->carrier, f->near.link);
    fb_carrier_close(f->carrier, f->near.link); /* twice is once */
    fb_carrier_send(f->carrier, f->near.link, fb_span_text("dropped"));
    fb_carrier_resume(f->carrier, f->near.link);
    RUN_UNTIL(f, f->far.closed && f->near.closed);
    assert_int_equal(f->far.received, FB_CARRIER_CREDIT);
    assert_int_equal(f->far.error, FB_OK);
}

static void a_dial_that_fails_is_answered_once(void **state)
{
    fixture *f = *state;
    listen_on(f, "127.0.0.1:0");
    char taken[64], why[160];
    assert_int_equal(fb_carrier_listen(f->carrier, f->bound, taken, sizeof taken, why, sizeof why),
                     FB_ERR_STORE_FAILED);
    assert_non_null(strstr(why, f->bound));
    assert_int_equal(
        fb_carrier_listen(f->carrier, "nonsense", taken, sizeof taken, why, sizeof why),
        FB_ERR_ARGUMENT);
    static const char *const wrong[] = {
        "", ":1", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "::1:5", "a b:5"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        dial(f, wrong[i]);
        assert_int_equal(f->dial_error, FB_ERR_ARGUMENT);
    }
    fb_carrier_hold(f->carrier, true);
    /* A port that was free a moment ago: nobody listens there. */
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    fb_sockaddr here = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof here.v4;
    assert_int_equal(bind(fd, &here.any, len), 0);
    assert_int_equal(getsockname(fd, &here.any, &len), 0);
    close(fd);
    char text[64];
    fb_sockaddr_text(&here, text, sizeof text);
    dial(f, text);
    assert_int_equal(f->dial_error, FB_ERR_UNREACHABLE);
}

/* A plain socket connected to the carrier's listener. */
static int raw_connect(fixture *f)
{
    fb_address address;
    fb_sockaddr to;
    assert_int_equal(fb_address_parse(fb_span_text(f->bound), &address), FB_OK);
    assert_true(fb_address_numeric(&address, &to));
    int fd = socket(to.any.sa_family, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &to.any, fb_sockaddr_len(&to)), 0);
    return fd;
}

static void a_reset_is_an_end_with_an_error(void **state)
{
    fixture *f = *state;
    listen_on(f, "127.0.0.1:0");
    int fd = raw_connect(f);
    RUN_UNTIL(f, f->far.credit > 0);
    struct linger hard = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    RUN_UNTIL(f, f->far.closed);
    assert_int_equal(f->far.error, FB_ERR_LINK_CLOSED);
}

static void bytes_before_a_broken_pipe_are_still_read(void **state)
{
    fixture *f = *state;
    f->take = 1;
    listen_on(f, "127.0.0.1:0");
    int fd = raw_connect(f);
    uint8_t bytes[3] = {byte_at(0), byte_at(1), byte_at(2)};
    assert_int_equal(send(fd, bytes, 3, 0), 3);
    RUN_UNTIL(f, f->far.received == 1);
    struct linger hard = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
    /* Writes fail from here on; they must neither kill the process nor take the rest away. */
    for (int i = 0; i < 3; i++) {
        fb_carrier_send(f->carrier, f->far.link, fb_span_text("x"));
        for (int k = 0; k < 10; k++) uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_false(f->far.closed);
    f->take = SIZE_MAX;
    fb_carrier_resume(f->carrier, f->far.link);
    RUN_UNTIL(f, f->far.closed);
    assert_int_equal(f->far.received, 3);
    assert_int_equal(f->far.error, FB_ERR_LINK_CLOSED);
}

static void without_descriptors_accepting_pauses(void **state)
{
    fixture *f = *state;
    listen_on(f, "127.0.0.1:0");
    int fd = raw_connect(f);
    struct rlimit old, tight;
    getrlimit(RLIMIT_NOFILE, &old);
    int lowest = dup(fd);
    close(lowest);
    tight = old;
    tight.rlim_cur = (rlim_t)lowest;
    setrlimit(RLIMIT_NOFILE, &tight);
    uv_run(&f->loop, UV_RUN_ONCE);
    assert_int_equal(f->far.link, 0);
    uint8_t byte;
    assert_int_equal(recv(fd, &byte, 1, 0), 0); /* refused, not left hanging */
    /* The pause is in force: with nothing else to do the loop sleeps until it ends. */
    int turns = 0;
    uint64_t start = uv_hrtime();
    while (uv_hrtime() - start < 50u * 1000 * 1000) {
        uv_run(&f->loop, UV_RUN_ONCE);
        turns++;
    }
    assert_in_range(turns, 1, 10);
    setrlimit(RLIMIT_NOFILE, &old);
    int again = raw_connect(f);
    RUN_UNTIL(f, f->far.link != 0);
    close(again);
    close(fd);
}

static void links_are_bounded_and_dropped_silently(void **state)
{
    fixture *f = *state;
    listen_on(f, "127.0.0.1:0");
    int fds[64];
    for (int i = 0; i < 64; i++) {
        fds[i] = raw_connect(f);
        RUN_UNTIL(f, links(f) == (uint32_t)i + 1);
    }
    int over = raw_connect(f);
    uint8_t byte;
    uv_run(&f->loop, UV_RUN_ONCE);
    assert_int_equal(recv(over, &byte, 1, 0), 0);
    fb_carrier_drop_links(f->carrier);
    RUN_UNTIL(f, links(f) == 0);
    assert_false(f->far.closed);
    for (int i = 0; i < 64; i++) close(fds[i]);
    close(over);
}

static void stop_ends_everything_under_way(void **state)
{
    fixture *f = *state;
    connect_ends(f, "127.0.0.1:0");
    near_send(f, FB_CARRIER_CREDIT);
    fb_carrier_dial(f->carrier, 77, fb_span_text("localhost:1"));
    fb_carrier_dial(f->carrier, 78, fb_span_text("127.0.0.1:1"));
    fb_carrier_stop(f->carrier, on_gone, f);
    f->carrier = NULL;
    RUN_UNTIL(f, f->gone);
    assert_false(f->near.closed);
}

static void addresses(void **state)
{
    (void)state;
    fb_address a;
    fb_sockaddr s;
    char text[64];
    assert_int_equal(fb_address_parse(fb_span_text("[::ffff:10.1.2.3]:9"), &a), FB_OK);
    assert_true(fb_address_numeric(&a, &s));
    fb_sockaddr_host(&s, text, sizeof text);
    assert_string_equal(text, "10.1.2.3");
    assert_int_equal(fb_address_parse(fb_span_text("[::1]:65535"), &a), FB_OK);
    assert_true(fb_address_numeric(&a, &s));
    assert_true(fb_sockaddr_is_loopback(&s));
    fb_sockaddr_text(&s, text, sizeof text);
    assert_string_equal(text, "[::1]:65535");
    assert_int_equal(fb_address_parse(fb_span_text("node.example:0012"), &a), FB_OK);
    assert_string_equal(a.port, "12");
    assert_false(fb_address_numeric(&a, &s));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_megabyte_is_echoed_over_ipv4),
        TEST(a_megabyte_is_echoed_over_ipv6),
        TEST(names_are_resolved),
        TEST(what_is_not_taken_waits_and_stops_the_sender),
        TEST(close_lets_sent_bytes_leave_first),
        TEST(a_dial_that_fails_is_answered_once),
        TEST(a_reset_is_an_end_with_an_error),
        TEST(bytes_before_a_broken_pipe_are_still_read),
        TEST(without_descriptors_accepting_pauses),
        TEST(links_are_bounded_and_dropped_silently),
        TEST(stop_ends_everything_under_way),
        cmocka_unit_test(addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
