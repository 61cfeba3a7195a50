/* SPDX-License-Identifier: Apache-2.0 */
/* What a store gives back, whatever happened to it: records, lives of nodes, nodes of the
 * fingerprint tree, lists of dots (the version vectors of changes), marks of what is dead in a
 * batch. Read, or refused as damaged.
 *
 * Input: a byte (which one), then the value. */
#include <stdlib.h>

#include "fuzz/envelope_same.h"
#include "protocol/database/batch/mark.h"
#include "protocol/database/dot.h"
#include "protocol/database/record/change.h"
#include "protocol/database/record/record.h"
#include "protocol/database/state.h"
#include "protocol/database/tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void dots(fb_span in)
{
    fb_reader r = fb_reader_of(in);
    fb_dots list = fb_read_dots(&r);
    if (r.failed) return;
    fb_fuzz_require(2 + (size_t)list.count * FB_DOT_BYTES <= in.len);
    for (uint32_t i = 0; i < list.count; i++) {
        const uint8_t *dot = list.p + (size_t)i * FB_DOT_BYTES;
        fb_fuzz_require(fb_dots_cover(list, dot));
        if (i != 0) fb_fuzz_require(memcmp(dot - FB_DOT_BYTES, dot, FB_DOT_BYTES) < 0);
        fb_dot at = fb_dots_at(list, i);
        fb_fuzz_require(at.seq != 0 && at.incarnation != 0);
    }
    if (list.count != 0) {
        /* An earlier dot of a listed life is covered, a later one of the last life is not. */
        uint8_t other[FB_DOT_BYTES];
        memcpy(other, list.p, sizeof other);
        memset(other + 24, 0, sizeof other - 24);
        fb_fuzz_require(fb_dots_cover(list, other));
        memset(other, 0xff, sizeof other);
        bool last = memcmp(list.p + (size_t)(list.count - 1) * FB_DOT_BYTES, other, 24) == 0;
        if (!last) fb_fuzz_require(!fb_dots_cover(list, other));
    }
}

static void life(fb_span in)
{
    fb_life life;
    fb_status status = fb_life_decode(in, &life);
    fb_fuzz_require(status == FB_OK || status == FB_ERR_STORE_DAMAGED ||
                    status == FB_ERR_VERSION_NEWER);
}

static void tree(fb_span in)
{
    static fb_tree_node node;
    fb_tree_root root;
    fb_status status = fb_tree_decode(in, &node, &root);
    fb_fuzz_require(status == FB_OK || status == FB_ERR_STORE_DAMAGED ||
                    status == FB_ERR_VERSION_NEWER || status == FB_ERR_VERSION_OLDER);
    status = fb_tree_decode(in, &node, NULL);
    fb_fuzz_require(status == FB_OK || status == FB_ERR_STORE_DAMAGED ||
                    status == FB_ERR_VERSION_NEWER || status == FB_ERR_VERSION_OLDER);
}

static void record(fb_span in)
{
    fb_record record;
    if (fb_record_decode(in, &record) != FB_OK) return;
    int64_t stamp;
    (void)fb_record_visible(&record, 0, &stamp);
    fb_record_walk walk = fb_record_walk_of(&record);
    fb_record_field column;
    while (fb_record_next(&walk, &column)) {
        fb_column name = fb_column_of(column.name);
        fb_fuzz_require(name.field.len != 0 && fb_column_valid(column.name, (uint8_t)name.kind));
        uint32_t shown = fb_record_displayed(&column, 0);
        if (shown != FB_NONE) (void)fb_record_is_integer(&column, shown);
    }
}

static void change(fb_span in)
{
    fb_change change;
    if (fb_change_decode(in, &change) != FB_OK) return;
    uint8_t leaf[32];
    fb_change_leaf(&change, (fb_dot){{{1}}, 1, 1}, leaf);
}

static void mark(fb_span in)
{
    static uint8_t bytes[FB_MARK_BYTES_MAX];
    static fb_mark mark;
    bool read = fb_mark_read(in, &mark);
    fb_fuzz_require(read == (mark.bits != 0) && mark.bits <= FB_MARK_BITS_MAX);
    bool whole = fb_mark_is_whole(&mark);
    if (!read) {
        fb_fuzz_require(!whole);
        return;
    }
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_mark_write(&w, &mark);
    fb_fuzz_require(!w.failed && fb_span_equal(fb_writer_span(&w), in));
    uint32_t last = mark.bits - 1;
    mark.dead[last / 8] &= (uint8_t) ~(1u << last % 8);
    fb_fuzz_require(!fb_mark_is_whole(&mark));
    fb_mark_set(mark.dead, last);
    fb_fuzz_require(!whole || fb_mark_is_whole(&mark));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(fb_span) = {dots, life, tree, record, change, mark};
    if (size == 0) return 0;
    readers[data[0] % 6](fb_span_of(data + 1, size - 1));
    return 0;
}
