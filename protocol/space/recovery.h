/* SPDX-License-Identifier: Apache-2.0 */
/* The recovery key of a space: when its last admin is lost, or the creator's key is in other hands,
 * whoever holds it makes a member an admin. DESIGN 3.1, Revocation: it outranks all.
 *
 * Its public half is known from the first day: the creator names it when it makes the space, every
 * invite carries it on, beside the creator's key. The secret half is never on a node. So a member
 * states in its own name what the key signed (its *proof*), and it counts whoever states it, as
 * often as anybody likes. Each proof has a turn: the admin of a later turn is senior to that of an
 * earlier one, and all of them are senior to the creator. */
#ifndef FB_SPACE_RECOVERY_H
#define FB_SPACE_RECOVERY_H

#include "protocol/space/statement.h"

/* What is signed: "faberio-recovery-v1" 0x00, space id, key of the member, u8 number, u32 turn. */
#define FB_RECOVERY_TEXT_BYTES (20u + 16u + 32u + 1u + 4u)
void fb_recovery_text(fb_id space, const fb_statement *statement,
                      uint8_t out[FB_RECOVERY_TEXT_BYTES]);

/* FB_ERR_BATCH_POLICY: the space has no recovery key. FB_ERR_STATEMENT: it did not sign this. */
fb_status fb_recovery_check(const fb_node *node, uint32_t space, const fb_statement *statement);

#endif
