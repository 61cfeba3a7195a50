/* SPDX-License-Identifier: Apache-2.0 */
/* From statements to members, and what follows from that. For the files of this folder only. */
#ifndef FB_SPACE_FOLD_H
#define FB_SPACE_FOLD_H

#include "protocol/space/statement.h"
#include "protocol/space/table.h"

/* Dials the members that said where they are, and sees to the node's own statements. */
void fb_space_started(fb_node *node, uint32_t space);

/* The node that answers at the address of the invite, if this node joined by one. */
void fb_space_dial_inviter(fb_node *node, uint32_t space);
/* Takes an address back, unless another member, or the invite, is dialled there as well: the book
 * has each address once. Whoever calls this has said already that it wants it no more. */
void fb_space_dial_no_more(fb_node *node, uint32_t space, fb_span address);

/* This node has something to state itself: the root of a space it created, its own address. Tried
 * until it is written. */
void fb_space_duty(fb_node *node, uint32_t space);
void fb_space_duty_due(fb_node *node, uint32_t space); /* handler of FB_TIMER_SPACE */

/* A renaming came. */
void fb_space_fold_name(fb_node *node, uint32_t space, const fb_statement *statement,
                        const fb_own_change *change);
/* Which renamings stand may have changed: they are read again (from FB_TIMER_SPACE). */
void fb_space_name_is_due(fb_node *node, uint32_t space);
void fb_space_name_again(fb_node *node, uint32_t space);

/* Statements became durable: pending links of who is a member now become full (profile 7). */
void fb_space_durable(fb_node *node);

/* A member that is known by an invite or by a statement it showed, until statements that were
 * fetched say the same: APPROVED with this role, not stored. Its index, or FB_NONE: no place, or a
 * second key for a known node id. */
uint32_t fb_space_introduce(fb_node *node, uint32_t space, fb_b32 key, fb_role role);

#endif
