/* SPDX-License-Identifier: Apache-2.0 */
/* What the ends of a link show each other before it is open (profile 7): invite proofs, and the
 * statement that made a node a member. For the files of this folder only. */
#ifndef FB_SPACE_INTRODUCE_H
#define FB_SPACE_INTRODUCE_H

#include "protocol/link/link.h"
#include "protocol/space/table.h"

extern const fb_channel fb_space_invite_channel;     /* FB_CONTROL_INVITE */
extern const fb_channel fb_space_membership_channel; /* FB_CONTROL_MEMBERSHIP */

/* A joiner's invite is new or was replaced: its links that wait show its proof. */
void fb_space_show_invite(fb_node *node, uint32_t space);

/* A link's peer is a member here; the link is full when the peer says the same. */
void fb_space_open_link(fb_node *node, uint32_t link, uint32_t member);

/* Answers whose write set is durable now. */
void fb_space_answer_durable(fb_node *node);

#endif
