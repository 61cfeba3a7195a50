/* SPDX-License-Identifier: Apache-2.0 */
/* Signalling: signed ephemeral messages (the draft; profile 5 and 6). */
#ifndef FB_MESSAGING_MESSAGING_H
#define FB_MESSAGING_MESSAGING_H

#include "protocol/core/internal.h"

typedef enum fb_message_kind {
    FB_MESSAGE_CHANGED = 1,
    FB_MESSAGE_SYNC = 2,
    FB_MESSAGE_CONFLICT = 3,
} fb_message_kind;

/* Announces to one connected member that an area changed. Coalesced: at most one pending
 * notification per (peer, area); `after_w` holds it back until that write set is durable.
 * incarnation and batch name the sender's own batch, 0 and 0 for an onward announcement.
 * Unconnected: dropped and counted (profile 6). */
void fb_message_changed(fb_node *node, uint32_t space, uint32_t member, fb_id area,
                        uint64_t incarnation, uint64_t batch, uint64_t after_w);

/* As above to every connected approved member that may hold the area, `except` aside (a member
 * index or FB_NONE). */
void fb_message_changed_all(fb_node *node, uint32_t space, uint32_t except, fb_id area,
                            uint64_t incarnation, uint64_t batch, uint64_t after_w);

/* `conflict` about an area, to all, at most once per area and pause. */
void fb_message_conflict_all(fb_node *node, uint32_t space, fb_id area, uint64_t after_w);

/* `sync` to one member: full copy wanted. scope_all: {"scope":"all"}, else the area. */
void fb_message_sync(fb_node *node, uint32_t space, uint32_t member, fb_id area, bool scope_all);

#endif
