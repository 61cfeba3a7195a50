/* SPDX-License-Identifier: Apache-2.0 */
/* Marks as an operation has read them. */
#include "protocol/database/batch/mark.h"
#include "protocol/database/keys.h"

void fb_mark_of(const fb_node *node, const fb_op *op, fb_span batch, fb_mark *out)
{
    uint32_t count = fb_op_range_count(node, op, FB_MARK_RANGE);
    out->bits = 0;
    for (uint32_t i = 0; i < count; i++) {
        fb_read_entry entry = fb_op_range_entry(node, op, FB_MARK_RANGE, i);
        if (memcmp(entry.key.p + 1, batch.p + 1, FB_BATCH_KEY_BYTES - 1) != 0) continue;
        (void)fb_mark_read(entry.value, out);
        return;
    }
}

bool fb_mark_is_unread(const fb_node *node, const fb_op *op, fb_span batch)
{
    if (fb_op_range_whole(node, op, FB_MARK_RANGE)) return false;
    uint32_t count = fb_op_range_count(node, op, FB_MARK_RANGE);
    if (count == 0) return true;
    fb_span last = fb_op_range_entry(node, op, FB_MARK_RANGE, count - 1).key;
    return memcmp(batch.p + 1, last.p + 1, FB_BATCH_KEY_BYTES - 1) > 0;
}
