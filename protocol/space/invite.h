/* SPDX-License-Identifier: Apache-2.0 */
/* Invites as bytes, and the frames that pass on a link that is not open yet. profile 7.
 *
 * The frames of a pending link carry nothing of the space: a proof shows that one holds the
 * invite's secret without showing it, and is bound to the handshake, so it cannot be repeated. */
#ifndef FB_SPACE_INVITE_H
#define FB_SPACE_INVITE_H

#include "protocol/base/cursor.h"
#include "protocol/link/binding.h"
#include "protocol/space/statement.h"

#define FB_INVITE_VERSION 2u

/* What travels from people to people. The creator's key is the root of trust: every right in the
 * space follows from it by signed statements. */
typedef struct fb_invite {
    fb_id space;
    fb_id id;
    fb_b32 secret;
    fb_b32 inviter;     /* full Ed25519 key of the node that answers at the address */
    fb_b32 creator;     /* full Ed25519 key */
    fb_b32 recovery;    /* of the space; zeros: it has none (recovery.h) */
    int64_t expires_us; /* wall clock of the inviter */
    uint8_t address_len;
    uint8_t name_len;
    uint8_t address[FB_ADDRESS_BYTES_MAX];
    uint8_t name[FB_SPACE_NAME_BYTES_MAX]; /* of the space, for people; the true one comes later */
} fb_invite;

/* At the end of an invite of any version: the first bytes of BLAKE3("faberio-invite-v1" 0x00 and
 * all before it). It travels by hand: without it one changed character would name another space. */
#define FB_INVITE_SUM_BYTES 8u

#define FB_INVITE_BYTES_MAX                                                                        \
    (1u + 16u + 16u + 32u + 32u + 32u + 32u + 8u + 2u + FB_ADDRESS_BYTES_MAX + 2u +                \
     FB_SPACE_NAME_BYTES_MAX + FB_INVITE_SUM_BYTES)

static inline fb_span fb_invite_address(const fb_invite *invite)
{
    return fb_span_of(invite->address, invite->address_len);
}

static inline fb_span fb_invite_name(const fb_invite *invite)
{
    return fb_span_of(invite->name, invite->name_len);
}

void fb_invite_write(const fb_invite *invite, fb_writer *out);

/* FB_ERR_VERSION_NEWER: whole, but of a later version. FB_ERR_INVITE: not an invite, or damaged.
 * *out is set only on FB_OK. */
fb_status fb_invite_read(fb_span bytes, fb_invite *out);

/* Control frame INVITE: u8 type 3, u8 role (1 shows, 2 answers), invite id, proof (32); an answer
 * also u8 what the peer is to the sender: 1 approved, 2 pending. */
typedef struct fb_invite_frame {
    fb_link_role role;
    fb_id invite;
    fb_b32 proof;
    fb_member_status status; /* of an answer */
} fb_invite_frame;

#define FB_INVITE_FRAME_BYTES_MAX (1u + 1u + 16u + 32u + 1u)

/* Control frame MEMBERSHIP: u8 type 4, u8 what the peer is to the sender (0 not known, 1 approved,
 * 2 pending), span16 the batch with the statement that made the sender a member (empty: none). */
typedef struct fb_membership_frame {
    fb_member_status you;
    fb_span statement;
} fb_membership_frame;

/* A longer batch is not kept as a proof, its member then waits until others have told the peer. */
#define FB_STATEMENT_PROOF_BYTES_MAX 2048u
_Static_assert(4u * FB_STATEMENT_PROOF_BYTES_MAX <= FB_PENDING_BYTES_MAX,
               "a pending link carries binding, proof and statement with ease");

void fb_invite_frame_write(const fb_invite_frame *frame, fb_writer *out);
void fb_membership_frame_write(const fb_membership_frame *frame, fb_writer *out);

/* FB_ERR_MALFORMED. The frame's first byte is its type. */
fb_status fb_invite_frame_read(fb_span bytes, fb_invite_frame *out);
fb_status fb_membership_frame_read(fb_span bytes, fb_membership_frame *out);

#endif
