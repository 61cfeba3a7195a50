/* SPDX-License-Identifier: Apache-2.0 */
/* Whose bare word takes something away.
 *
 * Batches are signed, so a member may relay whose they are and forge none. Two things that members
 * tell each other are proven by nothing: that a value was replaced (compare.c), and that batches of
 * somebody are folded (exchange/apply.c). Both take away here what may live. So they are believed
 * of a member that may write there now, and of nobody else: it could take as much away by a delete
 * that it signs. What a reader gives is taken, what it says to be gone stays. */
#ifndef FB_DATABASE_COMPARE_BELIEVE_H
#define FB_DATABASE_COMPARE_BELIEVE_H

#include "protocol/database/area/area.h"

bool fb_believes(const fb_node *node, uint32_t area, uint32_t member);
/* Rights changed: who waits for somebody to believe looks again. */
void fb_believe_again(fb_node *node, uint32_t space);

/* The members whose knowledge together is all there is: those that are believed, but for this node.
 * Was the area compared with this one since it came into doubt? */
bool fb_is_consulted(const fb_node *node, const fb_area *area, uint32_t member);
/* It was now; true: that were all of them. */
bool fb_consulted(fb_node *node, uint32_t area, uint32_t member);

/* One line for people: so much went here because this member said so. */
void fb_believe_log(fb_node *node, const char *text, fb_id member, fb_id area, uint64_t count);

#endif
