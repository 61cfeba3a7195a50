/* SPDX-License-Identifier: Apache-2.0 */
/* What is under way to the nodes of the conformance adapter: bytes that a node did not take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/conformance/queue.h"

static void add(fb_queue *queue, uint32_t node, fb_event_kind kind, uint64_t link, const char *text)
{
    fb_event event = {
        .kind = kind, .len = (uint32_t)strlen(text), .a = link, .bytes = (const uint8_t *)text};
    assert_true(fb_queue_add(queue, node, 1, event));
}

/* The next is of this kind and has these bytes, of which the node takes so many. */
static void next(fb_queue *queue, fb_event_kind kind, const char *text, size_t taken)
{
    fb_waiting *q = fb_queue_next(queue);
    assert_non_null(q);
    assert_int_equal(q->event.kind, kind);
    assert_true(fb_span_equal(fb_span_of(q->event.bytes, q->event.len), fb_span_text(text)));
    if (taken < q->event.len) {
        assert_true(fb_queue_put_back(queue, q->node, q->life, q->event, taken));
    }
    free(q);
}

static void the_rest_goes_before_what_came_later(void **state)
{
    (void)state;
    fb_queue queue = {0};
    add(&queue, 0, FB_EV_LINK_BYTES, 7, "first");
    add(&queue, 0, FB_EV_LINK_BYTES, 7, "second");
    add(&queue, 1, FB_EV_LINK_BYTES, 7, "another node's");
    add(&queue, 0, FB_EV_LINK_CLOSED, 7, "");
    add(&queue, 0, FB_EV_LINK_BYTES, 8, "another link's");
    next(&queue, FB_EV_LINK_BYTES, "first", 2);
    /* Until the node goes on, only what is not of that link. */
    next(&queue, FB_EV_LINK_BYTES, "another node's", 14);
    next(&queue, FB_EV_LINK_BYTES, "another link's", 14);
    assert_null(fb_queue_next(&queue));
    fb_queue_resume(&queue, 0, 7);
    next(&queue, FB_EV_LINK_BYTES, "rst", 0);
    assert_null(fb_queue_next(&queue));
    fb_queue_resume(&queue, 0, 7);
    next(&queue, FB_EV_LINK_BYTES, "rst", 3);
    next(&queue, FB_EV_LINK_BYTES, "second", 6);
    next(&queue, FB_EV_LINK_CLOSED, "", 0);
    assert_null(fb_queue_next(&queue));
    fb_queue_free(&queue);
}

static void who_closes_reads_no_more(void **state)
{
    (void)state;
    fb_queue queue = {0};
    add(&queue, 0, FB_EV_LINK_BYTES, 7, "first");
    add(&queue, 0, FB_EV_LINK_BYTES, 7, "second");
    next(&queue, FB_EV_LINK_BYTES, "first", 2);
    fb_queue_drop(&queue, 0, 7);
    add(&queue, 0, FB_EV_LINK_CLOSED, 7, "");
    next(&queue, FB_EV_LINK_CLOSED, "", 0);
    assert_null(fb_queue_next(&queue));
    fb_queue_free(&queue);
}

static void a_node_that_starts_anew_waits_for_nothing(void **state)
{
    (void)state;
    fb_queue queue = {0};
    add(&queue, 0, FB_EV_LINK_BYTES, 7, "first");
    next(&queue, FB_EV_LINK_BYTES, "first", 2);
    assert_null(fb_queue_next(&queue));
    fb_queue_resume_all(&queue, 0);
    next(&queue, FB_EV_LINK_BYTES, "rst", 3);
    fb_queue_free(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rest_goes_before_what_came_later),
        cmocka_unit_test(who_closes_reads_no_more),
        cmocka_unit_test(a_node_that_starts_anew_waits_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
