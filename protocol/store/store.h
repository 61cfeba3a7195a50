/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the store part of the core: the ring of write sets and the table of operations.
 *
 * Write sets: the one being built has number w_sealed + 1; those in flight are w_durable + 1 ..
 * w_sealed, at most two; one more is kept for reads that were issued before it was durable. Set w
 * lives in ring[w % 4]. */
#ifndef FB_STORE_STORE_H
#define FB_STORE_STORE_H

#include "protocol/store/ops.h"
#include "protocol/store/set.h"

typedef enum fb_op_state {
    FB_OP_FREE,
    FB_OP_BEGUN,    /* its read set is being made */
    FB_OP_TO_ADMIT, /* issued; waits for room in the set being built to be reserved */
    FB_OP_TO_READ,  /* admitted; FB_FX_READ waits for room in the arena */
    FB_OP_READING,  /* FB_FX_READ is out */
    FB_OP_READY,    /* nothing to read: runs later in this step */
    FB_OP_RUNNING,  /* within run */
} fb_op_state;

/* The bytes of one round inside the operation's block. */
typedef struct fb_op_round_bytes {
    uint32_t set_at, set_len;       /* read set without its count */
    uint32_t values_at, values_len; /* completion without the incarnation */
    uint32_t items;
    uint64_t applied_w; /* the store had applied this much */
} fb_op_round_bytes;

struct fb_op {
    uint64_t id; /* serial << 12 | index; 0 while free */
    fb_op_state state;
    fb_op_kind kind;
    fb_op_run run;
    uint32_t write_bytes;
    uint32_t write_entries;
    fb_status status;
    uint32_t round;  /* that was issued last, from 1 */
    bool issued;     /* within run: another round was asked for */
    bool failed;     /* the round being made passed a limit */
    bool admitted;   /* its room is reserved and its base counted */
    uint64_t base_w; /* durable when the first round was issued */
    uint8_t *block;
    uint32_t block_cap;
    uint32_t block_used;
    fb_op_round_bytes rounds[FB_READ_ROUNDS_MAX];
    fb_span borrowed; /* values of the last round while they are the event's own bytes */
    uint64_t written_bytes, written_entries; /* of what was reserved */
    uint32_t next;                           /* in the queue it waits in, plus one */
    fb_digest_cell cell;
    _Alignas(16) uint8_t context[FB_OP_CONTEXT_BYTES];
};

/* One item's result, merged, while its operation runs. */
typedef struct fb_result {
    fb_read_item item;
    uint32_t first; /* in entries */
    uint32_t count;
    bool whole;
    fb_span next; /* where a stopped range goes on */
} fb_result;

typedef struct fb_op_queue {
    uint32_t head; /* plus one */
    uint32_t tail;
    uint32_t count;
} fb_op_queue;

typedef struct fb_store {
    fb_set ring[FB_WRITE_SETS_KEPT];
    uint64_t w_sealed;
    uint64_t w_durable;

    struct fb_op *ops;
    uint32_t op_count;
    uint32_t op_free; /* head of the free list, plus one */
    uint32_t ops_used;
    struct fb_op *running;
    uint64_t op_serial;
    fb_op_queue to_admit;
    fb_op_queue to_read;
    fb_op_queue ready;
    /* Room promised in the set being built: to admitted writers, and to seal hooks. */
    uint64_t admitted_bytes, admitted_entries;
    uint64_t seal_bytes, seal_entries;
    bool from_reserve;                       /* puts come out of what was reserved for seal hooks */
    uint32_t base_count[FB_WRITE_SETS_KEPT]; /* open operations by base_w % 4 */

    fb_result *results;
    uint32_t result_count;
    fb_read_entry *entries;
    uint32_t entry_count;
    uint32_t entry_cap;
} fb_store;

void fb_store_layout(fb_node *node, fb_arena *arena);

/* Memory for the results of the one operation that runs at a time. It lives for a step and is the
 * back of the caller's arena, so that a hundred simulated nodes need it once. Aligned to 8. */
size_t fb_store_scratch_bytes(const fb_options *options);
void fb_store_scratch(fb_node *node, void *memory);

void fb_store_reset(fb_node *node);

/* READ_DONE and WRITE_DONE. FB_ERR_EVENT_MALFORMED: nothing changed. */
fb_status fb_store_read_done(fb_node *node, const fb_event *event);
fb_status fb_store_write_done(fb_node *node, const fb_event *event);

/* Towards the end of a step: runs what is ready, sends reads that waited, seals when it is time. */
void fb_store_advance(fb_node *node);

/* Merges all rounds of an operation into results. False: the bytes are no completion. */
bool fb_merge(fb_node *node, fb_op *op);
/* The same for one round's bytes without keeping anything: are they a completion of its read set?
 */
bool fb_merge_check(const fb_op *op, fb_span values);

/* The core's own puts: out of the room that every set keeps for them, not of an operation's. */
void fb_store_put_own(fb_node *node, fb_span key, fb_span value);

static inline fb_set *fb_store_building(fb_store *store)
{
    return &store->ring[(store->w_sealed + 1) % FB_WRITE_SETS_KEPT];
}

#endif
