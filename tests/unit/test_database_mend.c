/* SPDX-License-Identifier: Apache-2.0 */
/* What is above a cut is taken back, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/core/internal.h"
#include "protocol/database/cut/mend.h"
#include "tests/unit/net_space.h"

#define SECOND UINT64_C(1000000000)

enum { A, B, C };

static uint32_t notes_of(test_net *net, uint32_t i, fb_id space)
{
    fb_id id = fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes"));
    return fb_area_find(test_net_node(net, i), id);
}

/* The last batch of B that C has; 0: it has none. */
static uint64_t head_at_c(test_net *net, fb_id space)
{
    const fb_node *b = test_net_node(net, B), *c = test_net_node(net, C);
    uint32_t entry = fb_vector_find(c, notes_of(net, C, space), b->self, b->incarnation);
    return entry == FB_NONE ? 0 : fb_vector_get(c, entry)->batch;
}

static void demote_b(test_net *net, fb_id space)
{
    uint8_t bytes[64];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_id(&w, fb_node_self(test_net_node(net, B)));
    fb_write_u8(&w, (uint8_t)FB_ROLE_READER);
    assert_int_equal(test_net_answer(net, A, FB_VERB_SPACE_ROLE, &w)->status, FB_OK);
}

static void put(test_net *net, fb_id space, uint32_t record)
{
    assert_int_equal(test_net_put(net, B, space, "notes", record, "1"), FB_OK);
}

/* C was taking back what is above a cut when it crashed, and had noted that from the sixth batch of
 * B on all go. By then a deeper cut counts: what is above that goes too, and no more. */
static void a_deeper_cut_after_a_crash_takes_no_more(void **state)
{
    (void)state;
    test_net *net = test_net_new(3, NULL);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    test_net_join(net, C, A, space, FB_ROLE_WRITER);
    for (uint32_t i = 1; i <= 3; i++) put(net, space, i);
    test_net_run(net, 30 * SECOND);
    assert_int_equal(head_at_c(net, space), 3);
    test_net_cut(net, A, B, true);
    test_net_cut(net, A, C, true);
    for (uint32_t i = 4; i <= 8; i++) put(net, space, i);
    test_net_run(net, 30 * SECOND);
    assert_int_equal(head_at_c(net, space), 8);
    demote_b(net, space);

    fb_node *c = test_net_node(net, C);
    struct fb_mend *mend = c->database->mend;
    mend->busy = true; /* it comes to nothing before it crashes */
    test_net_cut(net, B, C, true);
    test_net_cut(net, A, C, false);
    test_net_run(net, 30 * SECOND);
    assert_int_equal(head_at_c(net, space), 8);
    uint8_t key[FB_MENDING_KEY_BYTES], value[9] = {2, 0, 0, 0, 0, 0, 0, 0, 6};
    const fb_node *b = test_net_node(net, B);
    uint32_t local = fb_area_get(c, notes_of(net, C, space))->local;
    test_net_store_put(net, C, fb_key_mending(key, local, b->self, b->incarnation),
                       fb_span_of(value, sizeof value));
    test_net_restart(net, C);
    test_net_run(net, 30 * SECOND);
    assert_int_equal(fb_node_counter(test_net_node(net, C), FB_COUNTER_BATCHES_CUT), 5);
    /* And nothing is left to be done. */
    test_net_restart(net, C);
    test_net_run(net, 30 * SECOND);
    assert_int_equal(fb_node_counter(test_net_node(net, C), FB_COUNTER_BATCHES_CUT), 0);
    assert_int_equal(head_at_c(net, space), 3);
    for (uint32_t i = 1; i <= 8; i++) {
        assert_true(test_net_has(net, C, space, "notes", i) == (i <= 3));
    }
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_deeper_cut_after_a_crash_takes_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
