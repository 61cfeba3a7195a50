/* SPDX-License-Identifier: Apache-2.0 */
/* The remembered ids of a sender, more than one run of messages makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/signal_fakes.h"

#include "protocol/messaging/state.h"

/* The index of a record grows with its ids; whether one is known does not depend on how it came in.
 */
static void a_large_record_knows_each_of_its_ids(void **state)
{
    (void)state;
    enum { KEPT = 1500, SENT = 4000 };
    fb_options options = fake_options();
    options.sizes.seen_ids = KEPT;
    fakes_new(&options);
    link_up(0, 1);
    settle(true);
    fb_node *node = &fakes[0]->node;
    struct fb_messaging *m = node->messaging;
    fb_record *record = &m->record[m->sender[1].record];
    assert_int_equal(record->state, FB_RECORD_READY);
    int64_t first_ms = 1 + node->wall_us / 1000;
    for (uint32_t i = 0; i < SENT; i++) {
        /* In each ten of them the timestamps go back. */
        uint32_t at = i / 10 * 10 + 9 - i % 10;
        fb_id id = {.b = {(uint8_t)(i >> 8), (uint8_t)i, 7, (uint8_t)(i * 31)}};
        assert_false(fb_seen_find(node, record, id));
        if (first_ms + at <= record->floor_ms) continue;
        fb_seen_add(node, record, id, first_ms + at);
        fakes[0]->stored = 0;
        assert_true(fb_seen_find(node, record, id));
    }
    const fb_seen *ids = m->ids + (size_t)fb_record_index(m, record) * m->seen;
    uint32_t listed = 0;
    for (uint32_t at = record->oldest; at != FB_NONE; at = ids[at].newer, listed++) {
        assert_true(fb_seen_find(node, record, ids[at].id));
        assert_true(ids[at].time_ms > record->floor_ms);
    }
    assert_int_equal(listed, record->count);
    assert_in_range(listed, KEPT - 10, KEPT);
    assert_in_range(record->touched, KEPT, KEPT + 1);
    assert_in_range(record->index_size, 2 * KEPT, m->index_size);
    check_digest(0);
    for (uint32_t i = 0; i < NODES; i++) {
        for (uint32_t j = 0; j < NODES; j++) {
            if (fakes[i]->links[j].state == FB_LINK_OPEN) unlink_one(i, j);
        }
    }
    fakes_free();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_record_knows_each_of_its_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
