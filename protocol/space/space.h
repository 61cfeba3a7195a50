/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces, members, roles, invites and applications (profile 1, DESIGN 3 and 3.1).
 *
 * Membership is signed statements: changes of the space's own area (kind 3), so they travel, merge
 * and are verified as every record does. This plane folds them into tables that others ask. */
#ifndef FB_SPACE_SPACE_H
#define FB_SPACE_SPACE_H

#include "protocol/core/internal.h"

typedef enum fb_member_status {
    FB_MEMBER_NONE = 0,
    FB_MEMBER_APPROVED = 1,
    FB_MEMBER_PENDING = 2,
    FB_MEMBER_REVOKED = 3,
} fb_member_status;

typedef enum fb_role {
    FB_ROLE_NONE = 0,
    FB_ROLE_ADMIN = 1,
    FB_ROLE_WRITER = 2,
    FB_ROLE_READER = 3,
} fb_role;

/* Indices of spaces and members are stable within an incarnation. */
uint32_t fb_space_find(const fb_node *node, fb_id space);
uint32_t fb_space_find_tag(const fb_node *node, const uint8_t tag[16]); /* profile 7, preamble */
uint32_t fb_space_capacity(const fb_node *node);
bool fb_space_exists(const fb_node *node, uint32_t space);
fb_id fb_space_id(const fb_node *node, uint32_t space);
uint32_t fb_space_local(const fb_node *node, uint32_t space); /* number used in store keys */

uint32_t fb_member_find(const fb_node *node, uint32_t space, fb_id peer);
uint32_t fb_member_capacity(const fb_node *node);
/* The members of a space: fb_member_first and then fb_member_next until FB_NONE, in the order of
 * node ids. */
uint32_t fb_member_first(const fb_node *node, uint32_t space);
uint32_t fb_member_next(const fb_node *node, uint32_t member);
fb_id fb_member_id(const fb_node *node, uint32_t member);
fb_b32 fb_member_key(const fb_node *node, uint32_t member);
fb_member_status fb_member_status_of(const fb_node *node, uint32_t member);
fb_role fb_member_role(const fb_node *node, uint32_t member);

/* This node's own standing. */
fb_member_status fb_space_own_status(const fb_node *node, uint32_t space);
fb_role fb_space_own_role(const fb_node *node, uint32_t space);

/* Whether a member may hold an area (here: every approved member may; policies come with access).
 */
bool fb_space_may_hold(const fb_node *node, uint32_t space, uint32_t member, fb_id area);

/* Whether a local principal may use a space (draft 10). */
bool fb_space_allows(const fb_node *node, uint32_t space, uint64_t principal);

/* Judges the author of a received batch: FB_OK, FB_ERR_BATCH_POLICY, or FB_ERR_BATCH_EPOCH when the
 * statements it was signed under are not known here yet (park it). own_area: statements. */
fb_status fb_space_check_author(const fb_node *node, uint32_t space, fb_b32 author, bool own_area,
                                fb_span changes);

/* The database executed a change (local or received) of a space's own area: fold it. `fields` are
 * name and value spans as stored in the change. Called once per change, in the order applied. */
void fb_space_fold(fb_node *node, uint32_t space, fb_id record, fb_span change);

#endif
