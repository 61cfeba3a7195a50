/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds the stable cut back, in each space: for status, metrics and doctor. Batches stay with
 * every member until all have reported that they hold them (docs/CONSISTENCY.md, "What is folded"),
 * so one member that is gone is the reason that they grow on all. */
#ifndef FB_RUNTIME_API_HELD_BACK_H
#define FB_RUNTIME_API_HELD_BACK_H

#include "protocol/database/database.h"
#include "runtime/api/exchange.h"

typedef struct fb_held_member {
    fb_id node;
    bool told; /* false: the node did not answer about this one; nothing below is set */
    fb_report_state state;
    int64_t reported_us; /* by that member's clock; 0 without a report */
    uint64_t batches;    /* that wait for it */
} fb_held_member;

/* A space that this node is an approved member of. */
typedef struct fb_held_space {
    fb_id space;
    bool folds;       /* false: it has too many members for that */
    uint64_t batches; /* that wait for somebody */
    fb_held_member *members;
    size_t count;
} fb_held_space;

typedef struct fb_held_back {
    fb_text listed; /* the node's answer to SPACE_LIST */
    fb_held_space *spaces;
    size_t count, at, member_at;
    fb_exchange_handler then;
} fb_held_back;

/* Asks the node about every member of every space, then goes on; x->held_back has what it said, and
 * ends with the exchange. A node that cannot be asked is answered for, as in fb_exchange_ask. */
void fb_held_back_ask(fb_exchange *x, fb_exchange_handler then);
void fb_held_back_free(fb_held_back *held);

/* NULL: nothing is known of it. */
const fb_held_space *fb_held_back_of(const fb_held_back *held, fb_id space);
/* The member is one of those that others wait for: something is not reported, or may not be. */
bool fb_held_back_by(const fb_held_member *member);
/* The members of a space are in this order: who never reported, then whose report is the oldest. */

/* The object "held_back". */
void fb_held_back_json(fb_text *out, const fb_held_space *space);

#endif
