/* SPDX-License-Identifier: Apache-2.0 */
/* The merge against all orders: whatever few changes three nodes make, knowing of each other what
 * they happened to get, every order that keeps each node's own leads to one record, and that record
 * is what a plain reading of the set of changes says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/base/draw.h"
#include "protocol/database/write/write.h"

#define CHANGES 5
#define NODES   3
#define PLAIN   3 /* fields that are only ever plain values */
#define COLUMNS 8

/* Every column that there is: three plain fields, a counter and a set with two elements, each of
 * which somebody may set to a plain value as well. Filled in by the first test. */
static const char *const columns[] = {"a", "b", "c"};
static const char *const elements[] = {"1", "[2]"};
static uint8_t column_bytes[COLUMNS][FB_COLUMN_NAME_BYTES_MAX];
static fb_span column_names[COLUMNS];

static void columns_name(void)
{
    for (uint32_t i = 0; i < PLAIN; i++) column_names[i] = fb_span_text(columns[i]);
    column_names[3] = fb_span_text("n");
    column_names[4] = fb_column_counter(column_bytes[4], fb_span_text("n"));
    column_names[5] = fb_span_text("s");
    for (uint32_t i = 0; i < 2; i++) {
        column_names[6 + i] =
            fb_column_element(column_bytes[6 + i], fb_span_text("s"), fb_span_text(elements[i]));
    }
}

typedef struct made {
    uint8_t bytes[2048];
    size_t len;
    fb_dot dot;
    fb_change change;
} made;

typedef struct node_state {
    uint8_t stored[4096];
    size_t len;
    bool has[CHANGES];
} node_state;

typedef struct world {
    made made[CHANGES];
    uint32_t count;
} world;

typedef struct view {
    const world *w;
    const bool *has;
} view;

static const fb_id the_record = {{1, 2, 3, 4, 5, 6, 0x70, 8, 0x80, 9}};
static const uint8_t secret[32] = {7};

static bool covered(void *user, const uint8_t dot[FB_DOT_BYTES])
{
    const view *v = user;
    fb_dot d = fb_dots_at((fb_dots){dot, 1}, 0);
    for (uint32_t i = 0; i < v->w->count; i++) {
        fb_dot own = v->w->made[i].dot;
        if (fb_dot_same_life(own, d) && own.seq == d.seq) return v->has[i];
    }
    return false;
}

static void apply(const world *w, node_state *n, uint32_t change, uint8_t fingerprint[16])
{
    static uint8_t out[4096], scratch[4096];
    fb_record record;
    assert_int_equal(fb_record_decode(fb_span_of(n->stored, n->len), &record), FB_OK);
    n->has[change] = true;
    view v = {w, n->has};
    fb_merge_ops ops = {.user = &v, .covered = covered};
    fb_merged merged;
    const made *m = &w->made[change];
    assert_int_equal(
        fb_record_merge(&record, &m->change, m->dot, &ops, out, scratch, sizeof out, &merged),
        FB_OK);
    memcpy(n->stored, merged.stored.p, merged.stored.len);
    n->len = merged.stored.len;
    memcpy(fingerprint, merged.fingerprint, 16);
}

static fb_dot dot_of(uint32_t node, uint64_t seq)
{
    fb_dot dot = {.incarnation = 10 + node, .seq = seq};
    dot.node.b[0] = (uint8_t)(1 + node);
    return dot;
}

static void make(world *w, node_state *n, fb_seed seed, uint32_t node, uint64_t seq, uint64_t draw)
{
    fb_field_write fields[PLAIN + 2];
    uint32_t count = 0;
    uint64_t kind = fb_draw_below(seed, 1, draw, 0, 6);
    char text[PLAIN][8] = {{'1'}, {'2'}, {'3'}};
    for (uint32_t i = 0; i < PLAIN; i++) {
        uint64_t what = fb_draw_below(seed, 2, draw, i, 3);
        if (what == 0) continue;
        /* Some values are what another node writes as well. */
        text[i][1] = (char)('0' + (w->count & (draw % 4 == 0 ? 1 : 7)));
        fields[count++] =
            (fb_field_write){fb_span_text(columns[i]), what == 1 ? FB_ACT_UNSET : FB_ACT_SET,
                             what == 1 ? fb_span_of(NULL, 0) : fb_span_text(text[i])};
    }
    uint32_t plain = count;
    uint64_t adds = fb_draw_below(seed, 6, draw, 0, 4),
             changes = fb_draw_below(seed, 7, draw, 0, 5);
    static const fb_field_act counting[] = {FB_ACT_ADD, FB_ACT_ADD, FB_ACT_SET};
    if (adds < 3)
        fields[count++] = (fb_field_write){fb_span_text("n"), counting[adds], fb_span_text("7")};
    if (changes < 4) {
        fields[count++] = (fb_field_write){fb_span_text("s"),
                                           changes < 2    ? FB_ACT_INSERT
                                           : changes == 2 ? FB_ACT_REMOVE
                                                          : FB_ACT_SET,
                                           fb_span_text(elements[draw % 2])};
    }
    fb_record record;
    assert_int_equal(fb_record_decode(fb_span_of(n->stored, n->len), &record), FB_OK);
    fb_record_write write = {
        .record = the_record,
        .op = kind == 0 ? FB_CHANGE_DELETE : FB_CHANGE_WRITE,
        .replace = kind < 3,
        .fields = fields,
        .count = kind == 0 ? 0 : count,
        .author_kind = FB_AUTHOR_OPERATOR,
        .wall_us = (int64_t)fb_draw_below(seed, 3, draw, 0, 50),
        .horizon = 40, /* some are hidden */
        .dot = dot_of(node, seq),
        .secret = secret,
    };
    made *m = &w->made[w->count];
    fb_writer out = fb_writer_of(m->bytes, sizeof m->bytes);
    fb_status status = fb_change_build(&out, &record, &write);
    if (status == FB_ERR_FIELD_KIND) {
        /* It is another kind by now. */
        write.count = kind == 0 ? 0 : plain;
        out = fb_writer_of(m->bytes, sizeof m->bytes);
        status = fb_change_build(&out, &record, &write);
    }
    assert_int_equal(status, FB_OK);
    m->len = out.at;
    m->dot = write.dot;
    assert_int_equal(fb_change_decode(fb_writer_span(&out), &m->change), FB_OK);
    w->count++;
}

/* A plain reading: does change `by` take away what `at` set in this field (NULL: existence)? */
static bool takes(const world *w, uint32_t by, uint32_t at, const fb_span *name)
{
    const fb_change *c = &w->made[by].change;
    uint8_t dot[FB_DOT_BYTES];
    fb_writer d = fb_writer_of(dot, sizeof dot);
    fb_write_dot(&d, w->made[at].dot);
    bool later = fb_dot_same_life(w->made[by].dot, w->made[at].dot) &&
                 w->made[by].dot.seq > w->made[at].dot.seq;
    if (c->op == FB_CHANGE_DELETE || name == NULL) return later || fb_dots_cover(c->replaced, dot);
    fb_change_walk walk = fb_change_walk_of(c);
    fb_change_field field;
    while (fb_change_next(&walk, &field)) {
        if (fb_span_equal(field.name, *name)) {
            return later || fb_dots_cover(field.replaced, dot);
        }
    }
    return false;
}

static bool sets(const world *w, uint32_t at, fb_span name)
{
    fb_change_walk walk = fb_change_walk_of(&w->made[at].change);
    fb_change_field field;
    while (fb_change_next(&walk, &field)) {
        if (field.op == FB_FIELD_SET && fb_span_equal(field.name, name)) return true;
    }
    return false;
}

static uint32_t expected(const world *w, const fb_span *name)
{
    uint32_t alive = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        if (name == NULL ? w->made[i].change.op != FB_CHANGE_WRITE : !sets(w, i, *name)) continue;
        bool gone = false;
        for (uint32_t k = 0; k < w->count && !gone; k++) gone = k != i && takes(w, k, i, name);
        if (!gone) alive++;
    }
    return alive;
}

static void check_against_plain_reading(const world *w, const node_state *n)
{
    fb_record record;
    assert_int_equal(fb_record_decode(fb_span_of(n->stored, n->len), &record), FB_OK);
    assert_int_equal(record.existence_count, expected(w, NULL));
    assert_int_equal(record.existence_pending.count, 0);
    assert_int_equal(record.whole_pending.count, 0);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        uint32_t found = 0;
        fb_record_walk walk = fb_record_walk_of(&record);
        fb_record_field field;
        while (fb_record_next(&walk, &field)) {
            assert_int_equal(field.pending.count, 0);
            if (fb_span_equal(field.name, column_names[i])) found = field.count;
        }
        assert_int_equal(found, expected(w, &column_names[i]));
    }
}

static uint32_t all_orders(const world *w, uint32_t order[CHANGES], uint32_t placed, uint32_t used,
                           uint8_t fingerprint[16], bool *first)
{
    if (placed == w->count) {
        node_state n = {.len = 0};
        uint8_t mine[16] = {0};
        for (uint32_t i = 0; i < w->count; i++) apply(w, &n, order[i], mine);
        if (*first) {
            memcpy(fingerprint, mine, 16);
            check_against_plain_reading(w, &n);
        }
        *first = false;
        assert_memory_equal(mine, fingerprint, 16);
        return 1;
    }
    uint32_t orders = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        if (used >> i & 1) continue;
        bool early = false; /* an earlier one of its life is not placed yet */
        for (uint32_t k = 0; k < w->count; k++) {
            early =
                early || (!(used >> k & 1) && fb_dot_same_life(w->made[k].dot, w->made[i].dot) &&
                          w->made[k].dot.seq < w->made[i].dot.seq);
        }
        if (early) continue;
        order[placed] = i;
        orders += all_orders(w, order, placed + 1, used | 1u << i, fingerprint, first);
    }
    return orders;
}

static void every_order_gives_one_record(void **state)
{
    (void)state;
    columns_name();
    fb_seed seed = {11, 12};
    uint64_t orders = 0, draw = 0;
    for (uint32_t run = 0; run < 600; run++) {
        static world w;
        static node_state nodes[NODES];
        memset(&w, 0, sizeof w);
        memset(nodes, 0, sizeof nodes);
        uint64_t seq[NODES] = {0};
        while (w.count < CHANGES) {
            uint32_t node = (uint32_t)fb_draw_below(seed, 4, ++draw, 0, NODES);
            uint8_t ignored[16];
            /* Some of what others made arrives before, each life in its order. */
            for (uint32_t i = 0; i < w.count; i++) {
                bool early = false;
                for (uint32_t k = 0; k < i; k++) {
                    early = early ||
                            (!nodes[node].has[k] && fb_dot_same_life(w.made[k].dot, w.made[i].dot));
                }
                if (nodes[node].has[i] || early) continue;
                if (fb_draw_chance(seed, 5, draw, i, 1, 2)) apply(&w, &nodes[node], i, ignored);
            }
            make(&w, &nodes[node], seed, node, ++seq[node], draw);
            apply(&w, &nodes[node], w.count - 1, ignored);
        }
        uint32_t order[CHANGES];
        uint8_t fingerprint[16];
        bool first = true;
        orders += all_orders(&w, order, 0, 0, fingerprint, &first);
    }
    assert_true(orders > 5000);
}

/* A replaced dot that came first is part of the fingerprint until its change arrives. */
static void a_replacer_may_come_first(void **state)
{
    (void)state;
    fb_seed seed = {1, 1};
    world w = {.count = 0};
    node_state a = {.len = 0}, b = {.len = 0};
    uint8_t f[16], g[16];
    uint64_t draw = 0;
    do {
        w.count = 0;
        make(&w, &a, seed, 0, 1, ++draw);
    } while (w.made[0].change.op != FB_CHANGE_WRITE || !sets(&w, 0, fb_span_text("a")));
    apply(&w, &a, 0, f);
    node_state seen = a;
    do {
        w.count = 1;
        make(&w, &seen, seed, 1, 1, ++draw);
    } while (w.made[1].change.op != FB_CHANGE_DELETE);
    apply(&w, &b, 1, f);
    fb_record record;
    assert_int_equal(fb_record_decode(fb_span_of(b.stored, b.len), &record), FB_OK);
    assert_int_equal(record.whole_pending.count, 1);
    apply(&w, &b, 0, g);
    assert_memory_not_equal(f, g, 16);
    int64_t stamp;
    assert_int_equal(fb_record_decode(fb_span_of(b.stored, b.len), &record), FB_OK);
    assert_false(fb_record_visible(&record, INT64_MAX, &stamp));
    assert_int_equal(record.whole_pending.count, 0);
    apply(&w, &a, 1, f);
    assert_memory_equal(f, g, 16);
}

/* Two nodes write the same value at one time: each keeps both, whatever the order, and shows that
 * of the greater dot; what a third one writes after it saw one of them replaces that one alone. */
static void equal_values_have_one_winner(void **state)
{
    (void)state;
    static world w;
    memset(&w, 0, sizeof w);
    for (uint32_t i = 0; i < 2; i++) {
        fb_field_write field = {fb_span_text("a"), FB_ACT_SET, fb_span_text("1")};
        fb_record none;
        assert_int_equal(fb_record_decode(fb_span_of(NULL, 0), &none), FB_OK);
        fb_record_write write = {.record = the_record,
                                 .op = FB_CHANGE_WRITE,
                                 .fields = &field,
                                 .count = 1,
                                 .author_kind = FB_AUTHOR_OPERATOR,
                                 .wall_us = 10,
                                 .horizon = 40,
                                 .dot = dot_of(i, 1),
                                 .secret = secret};
        fb_writer out = fb_writer_of(w.made[i].bytes, sizeof w.made[i].bytes);
        assert_int_equal(fb_change_build(&out, &none, &write), FB_OK);
        w.made[i].dot = write.dot;
        assert_int_equal(fb_change_decode(fb_writer_span(&out), &w.made[i].change), FB_OK);
        w.count++;
    }
    uint8_t prints[2][16];
    for (uint32_t first = 0; first < 2; first++) {
        node_state n = {.len = 0};
        apply(&w, &n, first, prints[first]);
        apply(&w, &n, 1 - first, prints[first]);
        fb_record record;
        assert_int_equal(fb_record_decode(fb_span_of(n.stored, n.len), &record), FB_OK);
        fb_record_walk walk = fb_record_walk_of(&record);
        fb_record_field field;
        assert_true(fb_record_next(&walk, &field));
        assert_int_equal(field.count, 2);
        uint32_t shown = fb_record_displayed(&field, 40);
        fb_dot dot = fb_record_sibling(&field, shown).dot;
        assert_true(fb_dot_same_life(dot, dot_of(1, 1)));
    }
    assert_memory_equal(prints[0], prints[1], 16);
}

static void stamps_follow_what_was_seen(void **state)
{
    (void)state;
    assert_true(fb_horizon(INT64_MAX - 1, 10) == INT64_MAX);
    assert_true(fb_horizon(-5, 10) == 5);
    fb_record none;
    assert_int_equal(fb_record_decode(fb_span_of(NULL, 0), &none), FB_OK);
    assert_true(fb_write_stamp(&none, -77, 0) == -77);
    uint8_t x[FB_DOT_BYTES] = {1}, y[FB_DOT_BYTES] = {2};
    assert_true(fb_stamp_compare(-1, y, 0, x) < 0);
    assert_true(fb_stamp_compare(3, x, 3, y) < 0);
}

/* What is stamped beyond the horizon is stored and counted, and not shown. */
static void hidden_values_wait(void **state)
{
    (void)state;
    static uint8_t out[4096], scratch[4096];
    fb_record record;
    world w = {.count = 0};
    bool all[CHANGES] = {true, true, true, true, true};
    view v = {&w, all};
    fb_merge_ops ops = {.user = &v, .covered = covered};
    fb_merged merged;
    node_state n = {.len = 0};
    for (uint32_t i = 0; i < 2; i++) {
        fb_field_write field = {fb_span_text("a"), FB_ACT_SET, fb_span_text(i == 0 ? "10" : "20")};
        assert_int_equal(fb_record_decode(fb_span_of(NULL, 0), &record), FB_OK);
        fb_record_write write = {.record = the_record,
                                 .op = FB_CHANGE_WRITE,
                                 .fields = &field,
                                 .count = 1,
                                 .author_kind = FB_AUTHOR_OPERATOR,
                                 .wall_us = i == 0 ? 10 : 20,
                                 .horizon = 100,
                                 .dot = dot_of(i, 1),
                                 .secret = secret};
        fb_writer c = fb_writer_of(w.made[i].bytes, sizeof w.made[i].bytes);
        assert_int_equal(fb_change_build(&c, &record, &write), FB_OK);
        assert_int_equal(fb_change_decode(fb_writer_span(&c), &w.made[i].change), FB_OK);
        assert_int_equal(fb_record_decode(fb_span_of(n.stored, n.len), &record), FB_OK);
        assert_int_equal(fb_record_merge(&record, &w.made[i].change, write.dot, &ops, out, scratch,
                                         sizeof out, &merged),
                         FB_OK);
        assert_int_equal(merged.conflict, i == 1);
        n.len = merged.stored.len;
        memcpy(n.stored, merged.stored.p, n.len);
    }
    assert_int_equal(fb_record_decode(fb_span_of(n.stored, n.len), &record), FB_OK);
    fb_record_walk walk = fb_record_walk_of(&record);
    fb_record_field field;
    assert_true(fb_record_next(&walk, &field));
    assert_int_equal(field.count, 2);
    int64_t stamp;
    assert_false(fb_record_visible(&record, 9, &stamp));
    assert_true(fb_record_visible(&record, 19, &stamp));
    assert_int_equal(stamp, 10);
    assert_true(fb_record_visible(&record, 20, &stamp));
    assert_int_equal(stamp, 20);
    assert_int_equal(fb_record_displayed(&field, 9), UINT32_MAX);
    assert_int_equal(fb_record_displayed(&field, 19), 0);
    assert_int_equal(fb_record_displayed(&field, 20), 1);
    /* A write replaces the hidden one too, and its stamp follows what could be seen. */
    fb_record_write write = {.record = the_record,
                             .op = FB_CHANGE_DELETE,
                             .author_kind = FB_AUTHOR_OPERATOR,
                             .wall_us = 5,
                             .horizon = 15,
                             .dot = dot_of(2, 1),
                             .secret = secret};
    fb_writer c = fb_writer_of(w.made[2].bytes, sizeof w.made[2].bytes);
    assert_int_equal(fb_change_build(&c, &record, &write), FB_OK);
    assert_int_equal(fb_change_decode(fb_writer_span(&c), &w.made[2].change), FB_OK);
    assert_int_equal(w.made[2].change.stamp, 11);
    assert_int_equal(w.made[2].change.replaced.count, 2);
}

static void damaged_records_are_told(void **state)
{
    (void)state;
    fb_seed seed = {5, 5};
    world w = {.count = 0};
    node_state n = {.len = 0};
    uint8_t f[16];
    for (uint64_t draw = 1; n.len < 150; draw++) {
        w.count = 0;
        make(&w, &n, seed, 0, 1, draw);
        memset(n.stored, 0, sizeof n.stored);
        n.len = 0;
        apply(&w, &n, 0, f);
    }
    fb_record record;
    for (size_t len = 1; len < n.len; len++) {
        assert_int_not_equal(fb_record_decode(fb_span_of(n.stored, len), &record), FB_OK);
    }
    n.stored[0] = 2;
    assert_int_equal(fb_record_decode(fb_span_of(n.stored, n.len), &record), FB_ERR_VERSION_NEWER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_gives_one_record),
        cmocka_unit_test(a_replacer_may_come_first),
        cmocka_unit_test(equal_values_have_one_winner),
        cmocka_unit_test(stamps_follow_what_was_seen),
        cmocka_unit_test(hidden_values_wait),
        cmocka_unit_test(damaged_records_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
