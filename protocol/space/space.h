/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces, members, roles, invites and applications (profile 1 and 7, DESIGN 3 and 3.1).
 *
 * Membership is signed statements: changes of the space's own area (kind 3), so they travel, merge
 * and are verified as every record is. This plane judges them, folds them into tables that others
 * ask, and keeps those tables in the store, so that loading reads no history.
 *
 * Rights are given and taken by numbered statements; what takes names a cut (DESIGN 3.1,
 * Revocation). All of them are accepted and kept; which of them stand, and what counts of those, is
 * a function of their set: judge.h and standing.h say how. */
#ifndef FB_SPACE_SPACE_H
#define FB_SPACE_SPACE_H

#include "protocol/core/internal.h"
#include "protocol/database/database.h"

/* Of the entry of a space in the store (docs/WIRE-FORMATS.md, "Space"): 1 has no recovery key. */
#define FB_SPACE_STORED_VERSION 2u

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

extern const fb_plane fb_space_plane;

/* Indices of spaces and members are stable within an incarnation. */
uint32_t fb_space_find(const fb_node *node, fb_id space);
uint32_t fb_space_find_tag(const fb_node *node, const uint8_t tag[16]); /* profile 7, preamble */
uint32_t fb_space_capacity(const fb_node *node);
bool fb_space_exists(const fb_node *node, uint32_t space);
fb_id fb_space_id(const fb_node *node, uint32_t space);
fb_span fb_space_name(const fb_node *node, uint32_t space);
uint32_t fb_space_local(const fb_node *node, uint32_t space); /* number used in store keys */

uint32_t fb_member_find(const fb_node *node, uint32_t space, fb_id peer);
/* The members of a space, pending ones and this node itself included: fb_member_first and then
 * fb_member_next until FB_NONE, in the order of node ids. */
uint32_t fb_member_first(const fb_node *node, uint32_t space);
uint32_t fb_member_next(const fb_node *node, uint32_t member);
fb_id fb_member_id(const fb_node *node, uint32_t member);
fb_b32 fb_member_key(const fb_node *node, uint32_t member);
fb_member_status fb_member_status_of(const fb_node *node, uint32_t member);
fb_role fb_member_role(const fb_node *node, uint32_t member);
/* The number of the statement about it that counts, from 1. */
uint32_t fb_member_standing(const fb_node *node, uint32_t member);

/* This node's own standing. */
fb_member_status fb_space_own_status(const fb_node *node, uint32_t space);
fb_role fb_space_own_role(const fb_node *node, uint32_t space);
/* Approved, and a writer or an admin: local writes of others are FB_ERR_NOT_AUTHORISED. */
bool fb_space_may_write(const fb_node *node, uint32_t space);
/* This node made the space. */
bool fb_space_is_creator(const fb_node *node, uint32_t space);

/* What a link does with a peer whose binding it has verified. APPROVED: open, *member is its index.
 * REVOKED: close with FB_ERR_REVOKED. PENDING: anybody else; also everybody while this node itself
 * is not approved (then the peer says with a membership frame that the link may open). A known node
 * id with another key is FB_MEMBER_NONE: close with FB_ERR_KEY (profile 1). */
fb_member_status fb_space_judge_peer(const fb_node *node, uint32_t space, fb_id peer, fb_b32 key,
                                     uint32_t *member);

/* Whether a member may hold an area (here: every approved member may; policies come with access).
 */
bool fb_space_may_hold(const fb_node *node, uint32_t space, uint32_t member, fb_id area);

/* Whether a local principal may use a space (draft 10). */
bool fb_space_allows(const fb_node *node, uint32_t space, uint64_t principal);

/* Under which statement about it the signer of a batch acted: its number, and, where it took
 * something away, which one of those with that number. It stands in the batch's epoch as an entry
 * of the signer with incarnation 0, unless it is the first. */
#define FB_CLAIM(number, tag)  ((uint64_t)(number) << 32 | (tag))
#define FB_CLAIM_FIRST         FB_CLAIM(1, 0)
#define FB_CLAIM_NUMBER(claim) ((uint32_t)((claim) >> 32))
#define FB_CLAIM_TAG(claim)    ((uint32_t)(claim))
/* What this node acts under now. */
uint64_t fb_space_claim(const fb_node *node, uint32_t space);

/* One change of a space's own area, as the database holds it. */
typedef struct fb_own_change {
    fb_b32 author; /* full key of the signer */
    fb_id record;
    int64_t stamp;
    fb_id dot_node;
    uint64_t dot_incarnation;
    uint64_t dot_seq;
    const fb_field_write *fields; /* values as JSON texts, in any order */
    uint32_t count;
    uint64_t number; /* of its batch */
    uint64_t claim;  /* of its batch */
    /* The whole signed batch that brought it, as it travels; empty for this node's own. */
    fb_span batch;
} fb_own_change;

/* A batch, as far as the rights of its signer go. */
typedef struct fb_signed {
    fb_b32 author;
    fb_id signer; /* the author's id: whoever asks has worked it out */
    uint64_t claim;
    fb_id area;
    bool own_area;
    uint64_t incarnation;
    uint64_t number;
    const uint8_t *hash; /* of its header; NULL: not known */
} fb_signed;

/* Judges the signer of a batch. FB_ERR_BATCH_POLICY: no right to write data. FB_ERR_BATCH_EPOCH: it
 * claims a statement that is not known here. FB_ERR_BATCH_CUT: it is data above a cut. The caller
 * has found the header's epoch covered (an unknown one is FB_ERR_BATCH_EPOCH and parked before).
 * What is stated in the own area is taken of everybody who was ever a member, and judged there. */
fb_status fb_space_check_author(const fb_node *node, uint32_t space, const fb_signed *batch);
/* Of data that was taken: is it above a cut now, or was the right to it taken back? */
bool fb_space_is_lost(const fb_node *node, uint32_t space, fb_id signer, const fb_signed *batch);
/* The last batch of a life that will ever be taken again, UINT64_MAX while it may go on. */
uint64_t fb_space_limit(const fb_node *node, uint32_t space, fb_id signer, fb_id area,
                        bool own_area, uint64_t incarnation);
/* Does any statement of this space take something away? */
bool fb_space_has_cuts(const fb_node *node, uint32_t space);

/* Judges one change of a batch of the own area, before any change of that batch is executed.
 * FB_ERR_STATEMENT: breaks the format. FB_ERR_BATCH_POLICY: the author never had a right to it.
 * FB_ERR_KEY: a key that is no valid point, or a second key for a known node id.
 * FB_ERR_UNSUPPORTED: a kind of a later version. FB_ERR_LIMIT: no place for another member. The
 * batch is not stored and may be asked for again; only FB_ERR_STATEMENT and FB_ERR_KEY speak
 * against its author, none against who relayed it. */
fb_status fb_space_check_statement(const fb_node *node, uint32_t space,
                                   const fb_own_change *change);

/* The database executed a change (local or received) of a space's own area: fold it. Called once
 * per change, in the order applied, within the run that puts the change. For the n changes of one
 * batch, together so many bytes long, it puts at most these, which that run has asked for
 * (fb_op_begin). */
#define FB_SPACE_FOLD_ENTRIES(n, items) (5u + 3u * (n) + FB_SPACE_FOLD_LONG(n, items) / 64u)
#define FB_SPACE_FOLD_BYTES(n, items)   (4096u + 576u * (n) + 2u * FB_SPACE_FOLD_LONG(n, items))
/* Statements without a cut are shorter. */
#define FB_SPACE_FOLD_LONG(n, items) ((items) > 512u * (n) ? (items) : 0u)
void fb_space_fold(fb_node *node, uint32_t space, const fb_own_change *change);

/* Reads one batch of the own area that stands alone, shown by a peer on a pending link: signature
 * and root are verified, epoch and chain are not. Calls `each` for its changes; false when it does
 * not verify. Implemented by the database. */
typedef void (*fb_own_change_each)(fb_node *node, void *user, const fb_own_change *change);
bool fb_database_read_statement(fb_node *node, uint32_t space, fb_span batch,
                                fb_own_change_each each, void *user);

#endif
