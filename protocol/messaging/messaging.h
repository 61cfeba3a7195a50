/* SPDX-License-Identifier: Apache-2.0 */
/* Signalling: signed ephemeral messages between the replication engines of a space's nodes (the
 * draft; profile 5 and 6). What is sent waits here as state, a notification for each (area, link),
 * until the link's credit, its send window and the causing write set let it become an envelope. */
#ifndef FB_MESSAGING_MESSAGING_H
#define FB_MESSAGING_MESSAGING_H

#include "protocol/core/internal.h"

/* Announces to one connected member that an area changed. Coalesced: at most one pending
 * notification per (peer, area); `after_w` holds it back until that write set is durable.
 * incarnation and batch name the sender's own batch, 0 and 0 for an onward announcement.
 * Unconnected: dropped and counted (profile 6). */
void fb_message_changed(fb_node *node, uint32_t space, uint32_t member, fb_id area,
                        uint64_t incarnation, uint64_t batch, uint64_t after_w);

/* As above to every connected approved member that may hold the area, `except` aside (a member
 * index or FB_NONE). Who is connected is looked at when after_w is durable. */
void fb_message_changed_all(fb_node *node, uint32_t space, uint32_t except, fb_id area,
                            uint64_t incarnation, uint64_t batch, uint64_t after_w);

/* `conflict` about an area, to all; coalesced as `changed` is. The pause between two about one area
 * (profile 6) is kept by the caller, who has a timer for each area. */
void fb_message_conflict_all(fb_node *node, uint32_t space, fb_id area, uint64_t after_w);

/* `sync` to one member: full copy wanted. scope_all: {"scope":"all"}, else the area. */
void fb_message_sync(fb_node *node, uint32_t space, uint32_t member, fb_id area, bool scope_all);

/* What is counted of a member's messages since START. refused is indexed by reason, as
 * FB_ERR_TOO_LARGE + i. */
#define FB_MESSAGE_REASONS 20u
typedef struct fb_message_counts {
    uint64_t delivered;
    uint64_t conflicts;    /* of those delivered */
    uint64_t floor_resets; /* profile 5, the last resort of step 6 */
    uint64_t dropped;      /* own messages that this member will never get */
    uint64_t refused[FB_MESSAGE_REASONS];
} fb_message_counts;

const fb_message_counts *fb_message_counts_of(const fb_node *node, uint32_t member);

/* For checkers: the sender's floor as held now (0: none yet), and ids remembered. False when the
 * member has no record in memory. */
bool fb_message_record_of(const fb_node *node, uint32_t member, int64_t *floor_ms, uint32_t *ids);

extern const struct fb_plane fb_messaging_plane;

#endif
