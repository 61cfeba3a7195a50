/* SPDX-License-Identifier: Apache-2.0 */
/* What is known to be dead of a batch that is kept: one bit for each thing that its changes put
 * into records, in the order of the changes, and of each change first its existence, then the
 * fields that it sets. DESIGN 3.1, Stable cut.
 *
 * Two things need it. A batch goes as a whole or stays, so one that stays may hold values whose
 * replacers are gone with theirs: who merges a record anew from its batches (anew.c) has to leave
 * them out. And a bit is kept only once what killed it cannot be taken back any more: seen dead in
 * one pass, dead for ever in a later one. */
#ifndef FB_DATABASE_BATCH_MARK_H
#define FB_DATABASE_BATCH_MARK_H

#include "protocol/database/batch/batch.h"
#include "protocol/database/record/record.h"
#include "protocol/store/ops.h"

/* The shortest field that sets something: two lengths, kind, operation, dots, form, salt. */
#define FB_MARK_FIELD_BYTES_MIN 29u
#define FB_MARK_BITS_MAX        (FB_BATCH_CHANGES_MAX + FB_BATCH_BYTES_MAX / FB_MARK_FIELD_BYTES_MIN)
#define FB_MARK_SET_BYTES       ((FB_MARK_BITS_MAX + 7) / 8)
#define FB_MARK_FRAME_BYTES     (1u + 8 + 4 + 2)
#define FB_MARK_BYTES_MAX       (FB_MARK_FRAME_BYTES + 2 * FB_MARK_SET_BYTES)

typedef struct fb_mark {
    uint64_t incarnation; /* of the node, and the pass of that life, in which it was put */
    uint32_t pass;
    uint32_t bits; /* 0: there is no mark */
    uint8_t dead[FB_MARK_SET_BYTES];
    uint8_t seen[FB_MARK_SET_BYTES]; /* dead in that pass */
} fb_mark;

/* Bits of a change, and of all changes of a batch. */
uint32_t fb_mark_bits_of(const fb_change *change);
uint32_t fb_mark_bits(const fb_batch *batch, const fb_change *changes);
#define FB_MARK_BYTES(bits) (FB_MARK_FRAME_BYTES + 2 * (((bits) + 7) / 8))

/* False, and no bits: it does not follow the format. */
bool fb_mark_read(fb_span bytes, fb_mark *out);
void fb_mark_write(fb_writer *w, const fb_mark *mark);

/* An operation that goes through batches reads their marks beside them, as its second range. The
 * mark of a batch, by its key; no bits: there is none. */
#define FB_MARK_RANGE 1u
void fb_mark_of(const fb_node *node, const fb_op *op, fb_span batch, fb_mark *out);
/* It was not read, because the marks before it filled the answer. */
bool fb_mark_is_unread(const fb_node *node, const fb_op *op, fb_span batch);

static inline bool fb_mark_has(const uint8_t *set, uint32_t bit)
{
    return (set[bit / 8] >> bit % 8 & 1u) != 0;
}

static inline void fb_mark_set(uint8_t *set, uint32_t bit)
{
    set[bit / 8] |= (uint8_t)(1u << bit % 8);
}

/* Everything that the batch put is dead for ever. */
bool fb_mark_is_whole(const fb_mark *mark);

#endif
