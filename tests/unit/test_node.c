/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of fb_node_step itself: driver mistakes change nothing, time, late completions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "io/keys/provider_sodium.h"
#include "protocol/core/internal.h"
#include "tests/unit/net.h"

static void *refuse(void *user, size_t bytes)
{
    (void)user;
    (void)bytes;
    return NULL;
}

static void ignore(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)memory;
    (void)bytes;
}

static void without_memory_nothing_is_created(void **state)
{
    (void)state;
    fb_options options = fb_options_small();
    fb_sodium *sodium;
    assert_int_equal(fb_sodium_create(4, &sodium), FB_OK);
    options.provider = fb_sodium_provider(sodium);
    options.allocator = (fb_allocator){NULL, refuse, ignore};
    fb_node *node = (fb_node *)&options;
    assert_int_equal(fb_node_create(&options, &node), FB_ERR_NO_MEMORY);
    assert_null(node);
    options.sizes.operations = 0;
    assert_int_equal(fb_node_create(&options, &node), FB_ERR_ARGUMENT);
    fb_sodium_destroy(sodium);
}

static fb_status step(fb_node *node, fb_event event, size_t capacity, fb_effects *out)
{
    static uint64_t memory[1u << 19];
    assert_true(capacity <= sizeof memory);
    *out = (fb_effects){.memory = (uint8_t *)memory, .capacity = capacity};
    return fb_node_step(node, &event, out);
}

static void mistakes_of_the_driver_change_nothing(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_node *node = test_net_node(net, 0);
    fb_hash128 before = fb_node_digest(node);
    fb_options small = fb_options_small();
    size_t enough = fb_effects_bytes_min(&small);
    static const uint8_t zeros[64];
    const struct {
        fb_event event;
        size_t capacity;
        fb_status status;
    } cases[] = {
        {{.kind = FB_EV_TICK, .mono_ns = 0}, enough, FB_ERR_TIME_BACKWARDS},
        {{.kind = FB_EV_TICK, .mono_ns = 9}, enough - 1, FB_ERR_NO_SPACE},
        {{.kind = 0, .mono_ns = 9}, enough, FB_ERR_EVENT_UNKNOWN},
        {{.kind = 127, .mono_ns = 9}, enough, FB_ERR_EVENT_UNKNOWN},
        {{.kind = 128, .mono_ns = 9}, enough, FB_ERR_EVENT_UNKNOWN},
        {{.kind = UINT32_MAX, .mono_ns = 9}, enough, FB_ERR_EVENT_UNKNOWN},
        {{.kind = FB_EV_TICK, .mono_ns = 9, .len = 1}, enough, FB_ERR_EVENT_MALFORMED},
        {{.kind = FB_EV_START, .mono_ns = 9, .a = 0}, enough, FB_ERR_EVENT_MALFORMED},
        {{.kind = FB_EV_START, .mono_ns = 9, .a = 1001}, enough, FB_ERR_EVENT_MALFORMED},
        {{.kind = FB_EV_READ_DONE, .mono_ns = 9}, enough, FB_ERR_EVENT_MALFORMED},
        {{.kind = FB_EV_WRITE_DONE, .mono_ns = 9, .a = 1001, .b = 1u << 30},
         enough,
         FB_ERR_EVENT_MALFORMED},
        {{.kind = FB_EV_WRITE_DONE, .mono_ns = 9, .len = 64, .bytes = zeros},
         enough,
         FB_ERR_EVENT_MALFORMED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fb_effects out;
        assert_int_equal(step(node, cases[i].event, cases[i].capacity, &out), cases[i].status);
        assert_int_equal(out.used, 0);
        fb_hash128 after = fb_node_digest(node);
        assert_true(before.lo == after.lo && before.hi == after.hi);
    }
    fb_effects out;
    assert_int_equal(step(node, (fb_event){.kind = FB_EV_TICK, .mono_ns = 1}, enough, &out), FB_OK);
    test_net_free(net);
}

static void late_completions_are_counted(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_node *node = test_net_node(net, 0);
    fb_options small = fb_options_small();
    size_t enough = fb_effects_bytes_min(&small);
    static const uint8_t other[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    fb_effects out;
    uint64_t late = fb_node_counter(node, FB_COUNTER_LATE_COMPLETIONS);
    fb_event read = {.kind = FB_EV_READ_DONE, .mono_ns = 5, .a = 1, .len = 8, .bytes = other};
    fb_event write = {.kind = FB_EV_WRITE_DONE, .mono_ns = 5, .a = 77, .b = 1};
    assert_int_equal(step(node, read, enough, &out), FB_OK);
    assert_int_equal(step(node, write, enough, &out), FB_OK);
    assert_int_equal(fb_node_counter(node, FB_COUNTER_LATE_COMPLETIONS), late + 2);
    test_net_free(net);
}

#define FILLING 100u /* an event of this test's own */

static fb_status fill_and_end(fb_node *node, const fb_event *event)
{
    while (fb_effect_fits(node, event->a)) {
        fb_effect_put(node, FB_FX_OBSERVE, 0, 0, 0, fb_span_of(event->bytes, event->len));
    }
    fb_incarnation_end(node, FB_ERR_STORE_FAILED);
    return FB_OK;
}

static void many_requests(fb_options *options)
{
    options->sizes.requests = 200;
}

static void the_end_answers_everybody_in_a_full_arena(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, many_requests);
    fb_node *node = test_net_node(net, 0);
    fb_options options = fb_options_small();
    many_requests(&options);
    static const uint8_t name[] = {0, 1, 'x'};
    fb_span text = fb_span_of(name, sizeof name);
    uint64_t created = test_net_ask(net, 0, FB_VERB_SPACE_CREATE, 0, text);
    assert_int_equal(test_net_reply(net, created)->status, FB_OK);
    uint8_t watch[32] = {0}; /* the space's id, from the beginning */
    memcpy(watch, test_net_reply(net, created)->bytes, 16);
    for (uint32_t i = 0; i < 200; i++) {
        (void)test_net_ask(net, 0, FB_VERB_RECORD_WATCH, 0, fb_span_of(watch, sizeof watch));
    }
    fb_event_register(node, (fb_event_kind)FILLING, fill_and_end);
    fb_effects out;
    fb_event event = {.kind = FILLING, .mono_ns = 9};
    assert_int_equal(step(node, event, fb_effects_bytes_min(&options), &out), FB_OK);
    uint32_t again = 0, need = 0;
    for (const fb_effect *fx = NULL; (fx = fb_effects_next(&out, fx)) != NULL;) {
        again += fx->kind == FB_FX_REPLY && fx->b == FB_ERR_AGAIN;
        need += fx->kind == FB_FX_NEED_START;
    }
    assert_int_equal(need, 1);
    assert_int_equal(again, 200);
    test_net_free(net);
}

static void an_unknown_verb_is_refused(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    static const uint32_t verbs[] = {0, 63, 64, UINT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        uint64_t asked = test_net_ask(net, 0, (fb_verb)verbs[i], 0, (fb_span){NULL, 0});
        assert_true(test_net_reply(net, asked)->done);
        assert_int_equal(test_net_reply(net, asked)->status, FB_ERR_UNSUPPORTED);
    }
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_nothing_is_created),
        cmocka_unit_test(mistakes_of_the_driver_change_nothing),
        cmocka_unit_test(late_completions_are_counted),
        cmocka_unit_test(an_unknown_verb_is_refused),
        cmocka_unit_test(the_end_answers_everybody_in_a_full_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
