/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: a streamed answer under credit, ends of every kind, both carriers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/signal_fakes.h"

#include "protocol/rpc/state.h"

static fb_options options;

/* The served method: `pieces` pieces of `size` bytes, then `status`. Byte k of piece n is n + k. */
typedef struct served {
    uint32_t pieces, size;
    fb_status begin, status;
    bool later; /* answers when the test says so */
    uint32_t begun, made, ended;
    uint32_t waiting; /* call, while `later` */
} served;
static served serve;

static void answer(fb_node *node, uint32_t call)
{
    uint32_t *made = (uint32_t *)(void *)node->rpc->call[call].state;
    if (*made == serve.pieces) {
        fb_call_finish(node, call, serve.status);
        return;
    }
    uint8_t bytes[FB_FRAME_BYTES_MAX];
    for (uint32_t k = 0; k < serve.size; k++) bytes[k] = (uint8_t)(*made + k);
    ++*made;
    serve.made++;
    fb_call_answer(node, call, fb_span_of(bytes, serve.size));
}

static fb_status begin(fb_node *node, uint32_t call, uint32_t link, fb_span arguments, void *state)
{
    (void)node;
    (void)call;
    (void)link;
    assert_true(arguments.len >= 3 && memcmp(arguments.p, "ask", 3) == 0);
    assert_int_equal((uintptr_t)state % 16, 0);
    serve.begun++;
    return serve.begin;
}

static void more(fb_node *node, uint32_t call, void *state)
{
    (void)state;
    if (serve.later) {
        serve.waiting = call;
        return;
    }
    answer(node, call);
}

static void end(fb_node *node, uint32_t call, void *state)
{
    (void)node;
    (void)call;
    (void)state;
    serve.ended++;
}

static const fb_method_ops ops = {begin, more, end};

/* The consumer. */
typedef struct consumed {
    uint32_t pieces, lasts;
    fb_status status;
    bool stop; /* takes no more after each piece */
    bool resume_inside;
    bool cancel_inside;
    uint32_t call;
} consumed;
static consumed eaten;

static bool piece(fb_node *node, uint32_t call, uint64_t user, fb_span bytes, bool last,
                  fb_status status)
{
    assert_int_equal(user, 4711);
    assert_int_equal(eaten.lasts, 0);
    if (last) {
        eaten.lasts++;
        eaten.status = status;
        return true;
    }
    assert_int_equal(bytes.len, serve.size);
    for (uint32_t k = 0; k < serve.size; k++)
        assert_int_equal(bytes.p[k], (uint8_t)(eaten.pieces + k));
    eaten.pieces++;
    if (eaten.resume_inside) fb_call_resume(node, call);
    if (eaten.cancel_inside) fb_call_cancel(node, call);
    return !eaten.stop;
}

static int setup(void **state)
{
    (void)state;
    options = fake_options();
    fakes_new(&options);
    for (uint32_t i = 0; i < NODES; i++) fb_method_register(&fakes[i]->node, FB_METHOD_FETCH, &ops);
    serve = (served){.pieces = 3, .size = 100};
    eaten = (consumed){0};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < NODES; i++) {
        check_digest(i);
        assert_int_equal(fakes[i]->node.rpc->wanting, 0);
    }
    fakes_free();
    return 0;
}

static fb_status start(const char *arguments)
{
    return fb_call_start(&fakes[0]->node, 1, FB_METHOD_FETCH, fb_span_text(arguments),
                         fakes[0]->node.mono_ns + 30 * SECOND_NS, piece, 4711, &eaten.call);
}

static uint32_t in_use(uint32_t i)
{
    uint32_t used = 0;
    for (uint32_t c = 0; c < options.sizes.calls; c++) {
        if (fakes[i]->node.rpc->call[c].role != FB_SIDE_FREE) used++;
    }
    return used;
}

static void nothing_is_left(void)
{
    assert_int_equal(in_use(0), 0);
    assert_int_equal(in_use(1), 0);
    assert_int_equal(fakes[1]->node.rpc->link[0].served, 0);
    assert_int_equal(fakes[0]->node.rpc->link[1].owing, 0);
    assert_int_equal(serve.ended, serve.begun);
}

static void an_answer_streams(void **state)
{
    (void)state;
    for (int external = 0; external < 2; external++) {
        fake_external = external != 0;
        link_up(0, 1);
        serve = (served){.pieces = 50, .size = 1000}; /* more than the window */
        eaten = (consumed){0};
        assert_int_equal(start("ask"), FB_OK);
        for (int i = 0; i < 10; i++) settle(false);
        assert_int_equal(eaten.pieces, 50);
        assert_int_equal(eaten.lasts, 1);
        assert_int_equal(eaten.status, FB_OK);
        assert_int_equal(serve.begun, 1);
        nothing_is_left();
        link_down(0, 1);
    }
}

static void credit_bounds_what_is_under_way(void **state)
{
    (void)state;
    link_up(0, 1);
    serve = (served){.pieces = 50, .size = 1000};
    eaten.stop = true;
    assert_int_equal(start("ask"), FB_OK);
    settle(false);
    settle(false);
    assert_int_equal(eaten.pieces, 1);
    /* The window of 4,096 bytes holds four pieces; a fifth may be ready at the server. */
    assert_in_range(serve.made, 4, 5);
    for (uint32_t i = 2; i <= 50; i++) {
        fb_call_resume(&fakes[0]->node, eaten.call);
        settle(false);
        assert_int_equal(eaten.pieces, i);
        assert_int_equal(eaten.lasts, 0);
    }
    fb_call_resume(&fakes[0]->node, eaten.call);
    assert_int_equal(eaten.lasts, 1);
    nothing_is_left();
}

static void resume_may_come_from_within(void **state)
{
    (void)state;
    link_up(0, 1);
    eaten.stop = eaten.resume_inside = true;
    assert_int_equal(start("ask"), FB_OK);
    settle(false);
    assert_int_equal(eaten.pieces, 3);
    assert_int_equal(eaten.lasts, 1);
    nothing_is_left();
}

static void answers_may_come_later(void **state)
{
    (void)state;
    link_up(0, 1);
    serve.later = true;
    assert_int_equal(start("ask"), FB_OK);
    for (uint32_t i = 0; i < 3; i++) {
        settle(false);
        assert_int_equal(eaten.pieces, i);
        answer(&fakes[1]->node, serve.waiting);
    }
    settle(false);
    /* Too late: the call is gone. */
    fb_call_cancel(&fakes[0]->node, eaten.call);
    settle(false);
    assert_int_equal(fakes[1]->node.rpc->call[serve.waiting].role, FB_SIDE_FREE);
    fb_call_answer(&fakes[1]->node, serve.waiting, fb_span_text("late"));
    fb_call_finish(&fakes[1]->node, serve.waiting, FB_OK);
    settle(false);
    assert_int_equal(eaten.lasts, 0);
    nothing_is_left();
}

/* MP-6-10 */
static void the_server_says_why_not(void **state)
{
    (void)state;
    link_up(0, 1);
    serve.begin = FB_ERR_AREA_UNKNOWN;
    assert_int_equal(start("ask"), FB_OK);
    settle(false);
    assert_int_equal(eaten.status, FB_ERR_AREA_UNKNOWN);
    assert_int_equal(in_use(0) + in_use(1), 0);
    serve = (served){.status = FB_ERR_CALL_FOLDED};
    eaten = (consumed){0};
    assert_int_equal(start("ask"), FB_OK);
    settle(false);
    assert_int_equal(eaten.status, FB_ERR_CALL_FOLDED);
    /* Methods of later versions are refused, not guessed. */
    for (uint32_t method = 2; method < 9; method++) {
        eaten = (consumed){0};
        uint32_t call;
        assert_int_equal(fb_call_start(&fakes[0]->node, 1, (fb_method)method, fb_span_text("ask"),
                                       FB_NEVER, piece, 4711, &call),
                         FB_OK);
        settle(false);
        assert_int_equal(eaten.status, FB_ERR_CALL_METHOD);
    }
    /* A piece that no window can take. */
    serve = (served){.pieces = 1, .size = 4096};
    eaten = (consumed){0};
    assert_int_equal(start("ask"), FB_OK);
    settle(false);
    assert_int_equal(eaten.status, FB_ERR_LIMIT);
    nothing_is_left();
}

static bool last_only(fb_node *node, uint32_t call, uint64_t user, fb_span bytes, bool last,
                      fb_status status)
{
    (void)node;
    (void)call;
    (void)user;
    (void)bytes;
    assert_true(last);
    eaten.lasts++;
    eaten.status = status;
    return true;
}

static void tables_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(start("ask"), FB_ERR_UNREACHABLE);
    link_up(0, 1);
    link_up(2, 1);
    serve.later = true;
    static char long_arguments[FB_CALL_ARGUMENTS_MAX + 2];
    memset(long_arguments, 'a', sizeof long_arguments - 1);
    assert_int_equal(start(long_arguments), FB_ERR_LIMIT);
    assert_int_equal(in_use(0), 0);
    for (uint32_t i = 0; i < options.sizes.calls / 2; i++) {
        uint32_t call;
        assert_int_equal(fb_call_start(&fakes[0]->node, 1, FB_METHOD_FETCH, fb_span_text("ask"),
                                       FB_NEVER, last_only, 0, &call),
                         FB_OK);
    }
    assert_int_equal(start("ask"), FB_ERR_BUSY);
    settle(false);
    /* One peer gets half of the served places. */
    assert_int_equal(serve.begun, options.sizes.calls / 4);
    assert_int_equal(eaten.lasts, options.sizes.calls / 4);
    assert_int_equal(eaten.status, FB_ERR_BUSY);
    link_down(0, 1);
    assert_int_equal(eaten.lasts, options.sizes.calls / 2);
    assert_int_equal(eaten.status, FB_ERR_UNREACHABLE);
    assert_int_equal(serve.ended, serve.begun);
    assert_int_equal(in_use(0), 0);
}

static void arguments_may_be_as_long_as_the_limit(void **state)
{
    (void)state;
    link_up(0, 1);
    link_up(2, 1);
    static char arguments[FB_CALL_ARGUMENTS_MAX + 1];
    memset(arguments, '.', sizeof arguments - 1);
    memcpy(arguments, "ask", 3);
    serve.pieces = 1;
    serve.size = 8;
    assert_int_equal(start(arguments), FB_OK);
    for (int i = 0; i < 10; i++) settle(false);
    assert_int_equal(serve.begun, 1);
    assert_int_equal(eaten.lasts, 1);
    assert_int_equal(eaten.status, FB_OK);
    assert_int_equal(in_use(0), 0);
}

static void a_broken_link_ends_calls(void **state)
{
    (void)state;
    link_up(0, 1);
    serve.later = true;
    assert_int_equal(start("ask"), FB_OK);
    settle(false);
    link_down(0, 1);
    assert_int_equal(eaten.lasts, 1);
    assert_int_equal(eaten.status, FB_ERR_UNREACHABLE);
    assert_int_equal(fb_error_class_of(eaten.status), FB_CLASS_AGAIN);
    nothing_is_left();
}

static void deadlines_hold_at_both_ends(void **state)
{
    (void)state;
    link_up(0, 1);
    serve.later = true;
    assert_int_equal(start("ask"), FB_OK);
    settle(false);
    advance_time(30 * SECOND_NS);
    assert_int_equal(eaten.status, FB_ERR_DEADLINE);
    settle(false);
    nothing_is_left();
    /* The server's own, when the caller is only slow to say so. */
    eaten = (consumed){0};
    uint32_t call;
    assert_int_equal(fb_call_start(&fakes[0]->node, 1, FB_METHOD_FETCH, fb_span_text("ask"),
                                   FB_NEVER, last_only, 0, &call),
                     FB_OK);
    settle(false);
    advance_time(UINT64_C(1000000) * FB_CALL_MS_MAX);
    settle(false);
    assert_int_equal(eaten.lasts, 1);
    assert_int_equal(eaten.status, FB_ERR_DEADLINE);
    nothing_is_left();
}

static void cancel_before_and_after_it_left(void **state)
{
    (void)state;
    link_up(0, 1);
    assert_int_equal(start("ask"), FB_OK);
    fb_call_cancel(&fakes[0]->node, eaten.call);
    settle(false);
    assert_int_equal(serve.begun, 0);
    serve.later = true;
    assert_int_equal(start("ask"), FB_OK);
    settle(false);
    fb_call_cancel(&fakes[0]->node, eaten.call);
    settle(false);
    serve.later = false;
    eaten.cancel_inside = true;
    assert_int_equal(start("ask"), FB_OK);
    settle(false);
    assert_int_equal(eaten.pieces, 1);
    assert_int_equal(eaten.lasts, 0);
    nothing_is_left();
}

static void a_frame_half_out_stays(void **state)
{
    (void)state;
    link_up(0, 1);
    assert_int_equal(start("ask"), FB_OK);
    const fb_channel *calls = channels[FB_CHANNEL_CALLS];
    fb_frame_out first, second;
    assert_true(calls->peek(&fakes[0]->node, 1, &first));
    fb_call_cancel(&fakes[0]->node, eaten.call);
    assert_true(calls->peek(&fakes[0]->node, 1, &second));
    assert_int_equal(first.head_len + first.body.len, second.head_len + second.body.len);
    assert_true(fb_span_equal(first.body, second.body));
    assert_memory_equal(first.head, second.head, first.head_len); /* of this call, not of none */
    calls->sent(&fakes[0]->node, 1);
    assert_int_equal(in_use(0), 0);
    assert_true(calls->peek(&fakes[0]->node, 1, &second)); /* the cancel follows */
    assert_int_equal(second.head[0], FB_CALL_CANCEL);
    calls->sent(&fakes[0]->node, 1);
}

/* The request waits for credit, and the peer answers a number that it can guess. */
static void an_answer_before_the_question_is_refused(void **state)
{
    (void)state;
    link_up(0, 1);
    assert_int_equal(start("ask"), FB_OK);
    const fb_channel *calls = channels[FB_CHANNEL_CALLS];
    fb_frame_out first, second;
    assert_true(calls->peek(&fakes[0]->node, 1, &first));
    static const uint8_t guessed[] = {FB_CALL_PIECE, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 'x'};
    static const uint8_t over[] = {FB_CALL_END, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    assert_int_equal(hand_over(0, 1, FB_CHANNEL_CALLS, fb_span_of(guessed, sizeof guessed)),
                     FB_ERR_CALL_MALFORMED);
    assert_int_equal(hand_over(0, 1, FB_CHANNEL_CALLS, fb_span_of(over, sizeof over)),
                     FB_ERR_CALL_MALFORMED);
    assert_int_equal(eaten.pieces + eaten.lasts, 0);
    assert_true(calls->peek(&fakes[0]->node, 1, &second));
    assert_int_equal(first.body.len, second.body.len);
    settle(false);
    assert_int_equal(eaten.pieces, 3);
    assert_int_equal(eaten.status, FB_OK);
    nothing_is_left();
}

/* External carrier: a repeated piece waits for credit when the caller says that it has it. */
static void a_piece_that_was_taken_is_not_said_again(void **state)
{
    (void)state;
    fake_external = true;
    link_up(0, 1);
    serve.later = true;
    assert_int_equal(start("ask"), FB_OK);
    settle(false);
    answer(&fakes[1]->node, serve.waiting);
    const fb_channel *calls = channels[FB_CHANNEL_CALLS];
    fb_frame_out out;
    assert_true(calls->peek(&fakes[1]->node, 0, &out));
    calls->sent(&fakes[1]->node, 0);
    uint8_t credit[21] = {FB_CALL_CREDIT, 0, 0, 0, 0, 0, 0, 0, 1};
    assert_int_equal(hand_over(1, 0, FB_CHANNEL_CALLS, fb_span_of(credit, sizeof credit)), FB_OK);
    assert_true(calls->peek(&fakes[1]->node, 0, &out));
    assert_int_equal(out.head[0], FB_CALL_PIECE);
    credit[12] = 1; /* one piece taken */
    assert_int_equal(hand_over(1, 0, FB_CHANNEL_CALLS, fb_span_of(credit, sizeof credit)), FB_OK);
    assert_false(calls->peek(&fakes[1]->node, 0, &out));
    link_down(0, 1);
    nothing_is_left();
}

static void bad_frames_are_refused(void **state)
{
    (void)state;
    link_up(0, 1);
    link_up(2, 1);
    serve.later = true;
    assert_int_equal(start("ask"), FB_OK);
    settle(false);
    fb_hash128 before = (fb_digests_update(&fakes[0]->node), fakes[0]->node.digests.sum);
    struct {
        uint32_t at;
        const char *hex;
    } frames[] = {
        {0, ""},                                                   /* empty */
        {0, "07000000000000000a"},                                 /* type */
        {0, "0500000000000001"},                                   /* short */
        {0, "05000000000000000100"},                               /* long */
        {0, "050000000000000000"},                                 /* number 0 */
        {0, "020000000000000009000000"},                           /* piece: short */
        {0, "02000000000000000900000000aa"},                       /* piece: of no call ever made */
        {0, "02000000000000000100000001aa"},                       /* piece: gap */
        {0, "030000000000000001000000010000"},                     /* end: count */
        {0, "0300000000000000090000000000 00"},                    /* end: of no call ever made */
        {0, "040000000000000001000000000000000000"},               /* credit: short */
        {1, "01000000000000000100010000ffff00000000000010006173"}, /* request: number used */
        {1, "0100000000000000000001000003e8000000000000100061"},   /* request: number 0 */
        {1, "0100000000000000090001000003e80000000100000000"},     /* request: credit */
        {1, "04000000000000000900000000000000000000ffff"},         /* credit: no such call */
        {1, "04000000000000000100000005000000000000ffff"},         /* credit: never sent */
    };
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        uint8_t bytes[64];
        size_t len = 0;
        for (const char *p = frames[i].hex; *p != '\0';) {
            if (*p == ' ') {
                p++;
                continue;
            }
            char two[3] = {p[0], p[1], '\0'};
            bytes[len++] = (uint8_t)strtoul(two, NULL, 16);
            p += 2;
        }
        uint32_t from = frames[i].at == 0 ? 1 : 0;
        assert_int_equal(hand_over(frames[i].at, from, FB_CHANNEL_CALLS, fb_span_of(bytes, len)),
                         FB_ERR_CALL_MALFORMED);
    }
    fb_digests_update(&fakes[0]->node);
    assert_true(before.lo == fakes[0]->node.digests.sum.lo);
    assert_int_equal(eaten.lasts, 0);
    assert_int_equal(serve.begun, 1);
    /* More than was granted: the caller is told, the peer counted. */
    static uint8_t much[4097 + FB_PIECE_HEAD] = {2, 0, 0, 0, 0, 0, 0, 0, 1};
    assert_int_equal(hand_over(0, 1, FB_CHANNEL_CALLS, fb_span_of(much, sizeof much)),
                     FB_ERR_CALL_CREDIT);
    assert_int_equal(eaten.status, FB_ERR_CALL_CREDIT);
    settle(false);
    nothing_is_left();
}

/* Every frame in turn is lost, then every second one, then repeated: still each piece comes once.
 */
/* MP-7-28 */
static void a_lossy_carrier_delivers_each_piece_once(void **state)
{
    (void)state;
    fake_external = true;
    link_up(0, 1);
    for (uint32_t seed = 0; seed < 64; seed++) {
        serve = (served){.pieces = 5, .size = 700};
        eaten = (consumed){.stop = seed % 3 == 0, .resume_inside = seed % 3 == 0};
        assert_int_equal(start("ask"), FB_OK);
        for (uint32_t round = 0; round < 290 && eaten.lasts == 0; round++) {
            uint64_t draw = fb_draw((fb_seed){seed, 1}, 1, round, 0);
            fakes[0]->out.used = fakes[1]->out.used = 0;
            flush(1);
            fake_lose = draw % 4 == 0;
            emit(0, 1);
            fake_lose = draw / 4 % 4 == 0;
            emit(1, 0);
            fake_lose = false;
            /* Repeat and reorder what is queued. */
            for (uint32_t i = 0; i < 2; i++) {
                fake *f = fakes[i];
                uint32_t n = f->queued[1 - i];
                if (n > 0 && n < QUEUE_MAX && draw / 16 % 3 == 0) {
                    fake_frame copy = f->queue[1 - i][0];
                    copy.bytes = malloc(copy.len);
                    memcpy(copy.bytes, f->queue[1 - i][0].bytes, copy.len);
                    f->queue[1 - i][f->queued[1 - i]++] = copy;
                }
                take(i, 1 - i);
            }
            advance_time(SECOND_NS / 10);
        }
        assert_int_equal(eaten.lasts, 1);
        assert_int_equal(eaten.status, FB_OK);
        assert_int_equal(eaten.pieces, 5);
        for (uint32_t i = 0; i < 3; i++) {
            settle(false);
            advance_time(SECOND_NS);
        }
        advance_time(700 * SECOND_NS); /* what a lost cancel left ends by its deadline */
        settle(false);
        assert_int_equal(in_use(0), 0);
        assert_int_equal(in_use(1), 0);
        assert_int_equal(serve.ended, serve.begun);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_answer_streams),
        TEST(credit_bounds_what_is_under_way),
        TEST(resume_may_come_from_within),
        TEST(answers_may_come_later),
        TEST(the_server_says_why_not),
        TEST(tables_are_bounded),
        TEST(arguments_may_be_as_long_as_the_limit),
        TEST(a_broken_link_ends_calls),
        TEST(deadlines_hold_at_both_ends),
        TEST(cancel_before_and_after_it_left),
        TEST(a_frame_half_out_stays),
        TEST(an_answer_before_the_question_is_refused),
        TEST(a_piece_that_was_taken_is_not_said_again),
        TEST(bad_frames_are_refused),
        TEST(a_lossy_carrier_delivers_each_piece_once),
    };
    unused_fakes();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
