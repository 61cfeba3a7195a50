/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of views and stepping: changes of the queue by hand, the record, snapshots, text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/step/session.h"
#include "sim/step/snapshot.h"
#include "sim/view/out.h"
#include "sim/view/record.h"
#include "sim/workload/director.h"
#include "sim/world/world.h"

static void queue_keeps_its_order(void **state)
{
    (void)state;
    static fb_sim_entry memory[512];
    fb_sim_queue queue;
    fb_seed seed = {7, 0};
    fb_sim_queue_init(&queue, memory, 512);
    for (uint64_t i = 0; i < 400; i++) {
        fb_sim_queue_push(&queue, fb_draw_below(seed, 1, 0, i, 50), 1 + i % 5, 3, (uint32_t)i, 0);
    }
    /* Whatever is taken out of the middle and put back later or never, the rest comes in order. */
    for (uint64_t i = 0; i < 200; i++) {
        uint32_t place = (uint32_t)fb_draw_below(seed, 2, 0, i, queue.count);
        fb_sim_entry entry = fb_sim_queue_take(&queue, place);
        if (i % 2 == 0) {
            entry.time_ns += fb_draw_below(seed, 3, 0, i, 50);
            fb_sim_queue_put(&queue, entry);
        }
    }
    assert_int_equal(queue.count, 300);
    fb_sim_entry last = {0}, next;
    for (uint32_t i = 0; i < 300; i++) {
        assert_true(fb_sim_queue_pop(&queue, &next));
        assert_true(next.time_ns > last.time_ns ||
                    (next.time_ns == last.time_ns && next.order > last.order));
        last = next;
    }
    assert_false(fb_sim_queue_pop(&queue, &next));
}

static fb_sim_world *world_make(bool recorded)
{
    fb_sim_config config = fb_sim_config_default();
    config.seed = (fb_seed){12, 0};
    config.nodes = 3;
    config.events = 4000;
    config.quiet = true;
    config.viewed = recorded;
    config.store_items = 1u << 12;
    config.blob_bytes = UINT64_C(64) << 20;
    fb_sim_world *world = fb_sim_world_create(&config);
    assert_non_null(world);
    if (recorded) assert_non_null(fb_sim_record_create(world, 2048));
    fb_sim_director_start(world);
    return world;
}

static void world_free(fb_sim_world *world)
{
    fb_sim_record_destroy(world->record);
    fb_sim_world_destroy(world);
}

static void record_changes_nothing(void **state)
{
    (void)state;
    fb_sim_world *plain = world_make(false), *recorded = world_make(true);
    while (fb_sim_world_next(plain)) {
    }
    while (fb_sim_world_next(recorded)) {
    }
    fb_hash128 a = fb_sim_trace_hash(&plain->trace), b = fb_sim_trace_hash(&recorded->trace);
    assert_int_equal(plain->steps, recorded->steps);
    assert_true(a.lo == b.lo && a.hi == b.hi);
    /* The window holds the last steps, each caused by an earlier one. */
    const fb_sim_record *record = recorded->record;
    uint64_t from = fb_sim_record_from(record, recorded->steps);
    assert_true(recorded->steps - from + 1 >= 2048);
    uint32_t caused = 0;
    for (uint64_t step = from; step <= recorded->steps; step++) {
        const fb_sim_moment *m = fb_sim_record_moment(record, step);
        assert_non_null(m);
        assert_true(m->cause < step);
        caused += m->cause != 0;
    }
    assert_true(caused > 1000);
    assert_null(fb_sim_record_moment(record, from - 1));
    uint32_t received = 0;
    for (uint64_t i = fb_sim_record_messages_from(record); i <= record->live->messages; i++) {
        const fb_sim_message_note *m = fb_sim_record_message(record, i);
        if (m == NULL || m->fate != FB_SIM_RECEIVED) continue;
        assert_true(m->received_step > m->sent_step && m->received_ns >= m->sent_ns);
        received++;
    }
    assert_true(received > 100);
    world_free(plain);
    world_free(recorded);
}

static void snapshots_restore(void **state)
{
    (void)state;
    fb_sim_world *world = world_make(true);
    fb_sim_shelf shelf;
    assert_true(fb_sim_shelf_init(&shelf, 8, UINT64_C(256) << 20));
    fb_hash128 hashes[4];
    uint64_t turn = 0, steps[4];
    for (uint32_t i = 0; i < 4; i++) {
        while (world->steps < 500 * (i + 1)) {
            assert_true(fb_sim_world_next(world));
            turn++;
        }
        fb_sim_shelf_take(&shelf, world, turn);
        hashes[i] = fb_sim_trace_hash(&world->trace);
        steps[i] = world->steps;
    }
    assert_int_equal(shelf.count, 4);
    for (uint32_t i = 4; i-- > 0;) {
        const fb_sim_snapshot *s = fb_sim_shelf_before(&shelf, steps[i]);
        assert_int_equal(s->step, steps[i]);
        fb_sim_shelf_restore(s, world);
        fb_hash128 h = fb_sim_trace_hash(&world->trace);
        assert_true(h.lo == hashes[i].lo && h.hi == hashes[i].hi);
        /* From there the same comes again. */
        if (i == 3) continue;
        while (world->steps < steps[i + 1]) assert_true(fb_sim_world_next(world));
        h = fb_sim_trace_hash(&world->trace);
        assert_true(h.lo == hashes[i + 1].lo && h.hi == hashes[i + 1].hi);
    }
    assert_null(fb_sim_shelf_before(&shelf, steps[0] - 1));
    fb_sim_shelf_forget(&shelf, shelf.snapshots[1].turn);
    assert_int_equal(shelf.count, 2);
    fb_sim_shelf_free(&shelf);
    assert_int_equal(shelf.pages, 0);
    world_free(world);
}

static void shelf_thins(void **state)
{
    (void)state;
    fb_sim_world *world = world_make(true);
    fb_sim_shelf shelf;
    assert_true(fb_sim_shelf_init(&shelf, 6, UINT64_C(256) << 20));
    fb_sim_shelf_take(&shelf, world, 0);
    for (uint64_t turn = 1; turn <= 40; turn++) {
        uint64_t before = world->steps;
        while (world->steps < before + 20) assert_true(fb_sim_world_next(world));
        fb_sim_shelf_take(&shelf, world, turn);
        assert_true(shelf.count <= 6);
    }
    /* The first and the newest stay; the rest lies denser where one is. */
    assert_int_equal(shelf.snapshots[0].turn, 0);
    assert_int_equal(shelf.snapshots[5].turn, 40);
    assert_true(shelf.snapshots[1].step - shelf.snapshots[0].step >=
                shelf.snapshots[5].step - shelf.snapshots[4].step);
    fb_sim_shelf_free(&shelf);
    world_free(world);
}

static void text_is_escaped(void **state)
{
    (void)state;
    char path[] = "/tmp/fb-views-XXXXXX";
    int made = mkstemp(path);
    assert_true(made >= 0);
    fb_sim_out *out = fb_sim_out_open(path);
    assert_non_null(out);
    fb_sim_out_string(out, "a\"b\\c</script>\n\x7f");
    fb_sim_out_u64(out, UINT64_MAX);
    fb_sim_out_text(out, " ");
    fb_sim_out_i64(out, INT64_MIN);
    fb_sim_out_text(out, " ");
    fb_sim_out_us(out, 1234005);
    assert_true(fb_sim_out_close(out));
    char text[256] = "";
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    remove(path);
    assert_string_equal(text, "\"a\\u0022b\\u005cc\\u003c/script>\\u000a\\u007f\""
                              "18446744073709551615 -9223372036854775808 1234.005");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queue_keeps_its_order), cmocka_unit_test(record_changes_nothing),
        cmocka_unit_test(snapshots_restore),     cmocka_unit_test(shelf_thins),
        cmocka_unit_test(text_is_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
