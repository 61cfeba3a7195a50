/* SPDX-License-Identifier: Apache-2.0 */
/* The space plane's part of the store: keys and values, and reading them at start.
 * docs/WIRE-FORMATS.md, "Space". For the files of this folder only. */
#ifndef FB_SPACE_STORE_H
#define FB_SPACE_STORE_H

#include "protocol/space/table.h"
#include "protocol/store/ops.h"

/* What a put takes of the write set, key and head of the entry included. */
#define FB_SPACE_PUT_BYTES       1024u
#define FB_PROOF_PUT_BYTES       (FB_STATEMENT_PROOF_BYTES_MAX + 64u)
#define FB_MEMBER_PUT_BYTES      384u
#define FB_PENDING_PUT_BYTES     192u
#define FB_INVITE_PUT_BYTES      192u
#define FB_APPLICATION_PUT_BYTES (512u + 16u * FB_SPACES_MAX)

_Static_assert(FB_SPACE_PUT_BYTES + FB_PROOF_PUT_BYTES <= FB_SPACE_FOLD_BYTES(0u, 0u),
               "a fold puts a space and a proof once");
_Static_assert(FB_MEMBER_PUT_BYTES + 64u + 128u <=
                   FB_SPACE_FOLD_BYTES(1u, 0u) - FB_SPACE_FOLD_BYTES(0u, 0u),
               "and for each change a member, what was stated, and a deletion of who was pending");

/* Within a run that asked for the bytes. A pending member is put with put_pending, an approved one
 * with put_member; both kinds of keys are deleted by their own name. */
void fb_space_put(fb_node *node, uint32_t space);
void fb_space_put_proof(fb_node *node, uint32_t space);
void fb_member_put(fb_node *node, uint32_t member);
void fb_pending_put(fb_node *node, uint32_t member);
void fb_pending_delete(fb_node *node, uint32_t member);
void fb_invite_put(fb_node *node, uint32_t invite);
void fb_invite_delete(fb_node *node, uint32_t invite);
void fb_application_put(fb_node *node, uint32_t application);
void fb_application_delete(fb_node *node, uint32_t application);

/* Reads everything and calls fb_plane_loaded. A value that breaks its format ends the incarnation
 * with FB_ERR_STORE_DAMAGED, one of a later version with FB_ERR_VERSION_NEWER. */
void fb_space_load(fb_node *node);

#endif
