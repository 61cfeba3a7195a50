/* SPDX-License-Identifier: Apache-2.0 */
/* Read, then execute (DESIGN 2).
 *
 * An operation names what it needs, at most FB_READ_ROUNDS_MAX times, and then executes as a pure
 * function of (state, values). Values come from the store with the node's own later write sets laid
 * over them. An operation never waits for another's key. A writer's room in the write set being
 * built is reserved before its first read goes out; it waits for that, holding nothing, and for
 * nothing after it.
 *
 * Two kinds: a *reader* sees durable values only (sets up to fb_w_durable), so what it answers may
 * go out at once; a *writer* sees every executed change, and what depends on its own is held back
 * until its set is durable (fb_w_building, fb_reply_held). */
#ifndef FB_STORE_OPS_H
#define FB_STORE_OPS_H

#include "protocol/core/internal.h"
#include "protocol/store/readset.h"
#include "protocol/store/set.h"

typedef struct fb_op fb_op;

/* Called when the values of a round are there (or status is not FB_OK: the read failed, nothing can
 * be asked, the operation ends). It reads the results, then either asks for another round with
 * fb_op_read_* and fb_op_issue, or executes. An operation that did not issue is over when this
 * returns, and is freed. Spans of results live until this returns. */
typedef void (*fb_op_run)(fb_node *node, fb_op *op);

typedef enum fb_op_kind {
    FB_OP_READER = 1,
    FB_OP_WRITER = 2,
} fb_op_kind;

/* A free operation, or NULL when all are taken (answer FB_ERR_BUSY).
 * write_bytes, write_entries: for writers, the most that the operation puts, with what it reserves
 * by fb_seal_reserve; entries count fb_write_entry_bytes each. At most fb_op_write_bytes_max and
 * fb_op_write_entries_max; asserted when it is passed. */
fb_op *fb_op_begin(fb_node *node, fb_op_kind kind, fb_op_run run, uint32_t write_bytes,
                   uint32_t write_entries);
uint32_t fb_op_write_bytes_max(const fb_node *node);
uint32_t fb_op_write_entries_max(const fb_node *node);
/* What it was begun with. */
uint32_t fb_op_write_bytes(const fb_op *op);
uint32_t fb_op_write_entries(const fb_op *op);

/* FB_OP_CONTEXT_BYTES zeroed bytes of the caller's, aligned to 16. */
void *fb_op_context(fb_op *op);

/* Copies bytes that the operation will need later (arguments of a request). The span is empty with
 * NULL when operation_bytes is used up: then answer FB_ERR_LIMIT and fb_op_abandon. */
fb_span fb_op_keep(fb_op *op, fb_span bytes);

/* For an operation that was begun and will never be issued. */
void fb_op_abandon(fb_node *node, fb_op *op);

/* The read set of the next round; the bytes are copied. Items are numbered from 0 through all
 * rounds of the operation, in the order of these calls. False when the set or its bytes pass a
 * limit: end the operation. */
bool fb_op_read_key(fb_op *op, fb_span key, uint32_t value_bytes);
bool fb_op_read_range(fb_op *op, fb_span low, fb_span high, uint32_t value_bytes, uint32_t items,
                      uint32_t bytes, bool descending);
/* So many keys of so many bytes together can be asked for in this round. */
bool fb_op_read_fits(const fb_op *op, uint32_t keys, size_t bytes);
/* Sends it. An empty read set is allowed: run is called in this step. */
void fb_op_issue(fb_node *node, fb_op *op);

/* Within run. */
fb_status fb_op_status(const fb_op *op);
uint32_t fb_op_round(const fb_op *op); /* from 1 */
/* Results of every round so far, each with what was executed since laid over it anew.
 * The value of a key item: false when absent. value_len is the whole length, value
 * the leading bytes asked for (an overlaid value may be given longer). */
bool fb_op_value(const fb_node *node, const fb_op *op, uint32_t item, fb_read_entry *out);
/* How many items all rounds asked for. */
uint32_t fb_op_items(const fb_node *node, const fb_op *op);
/* Entries of a range item, in the order asked for. */
uint32_t fb_op_range_count(const fb_node *node, const fb_op *op, uint32_t item);
fb_read_entry fb_op_range_entry(const fb_node *node, const fb_op *op, uint32_t item, uint32_t at);
/* True when nothing of the range is left beyond the entries given. When it is false, go on from
 * the last key given, or, when every entry was deleted meanwhile, from fb_op_range_next. */
bool fb_op_range_whole(const fb_node *node, const fb_op *op, uint32_t item);
/* The key after which a stopped range goes on. */
fb_span fb_op_range_next(const fb_node *node, const fb_op *op, uint32_t item);

/* The set being built. Whole values, never deltas; a key put again replaces what was put before.
 * Asserts that there is room: see fb_op_begin and fb_write_fits. */
void fb_put(fb_node *node, fb_span key, fb_span value);
void fb_delete(fb_node *node, fb_span key);
/* All that stands in another set, in its order. */
void fb_put_set(fb_node *node, const fb_set *from);
/* For writers that are no operation (a received message): room for so much more? */
bool fb_write_fits(const fb_node *node, size_t bytes, size_t entries);
/* Keeps room in the set being built for what the plane's seal hook will put into it because of the
 * operation that is running. */
void fb_seal_reserve(fb_node *node, size_t bytes, size_t entries);
/* Between true and false, puts come out of what was reserved: a plane that seals part of its own
 * before the hook is called. What was reserved and is not needed is given back. */
void fb_seal_use(fb_node *node, bool use);
void fb_seal_release(fb_node *node, size_t bytes, size_t entries);
void fb_seal_left(const fb_node *node, size_t *bytes, size_t *entries);

/* The number that the set being built will have; what depends on it waits for that. */
uint64_t fb_w_building(const fb_node *node);
/* Every set up to here is durable. */
uint64_t fb_w_durable(const fb_node *node);
/* Something was put into the set being built since the last seal. */
bool fb_w_dirty(const fb_node *node);

#endif
