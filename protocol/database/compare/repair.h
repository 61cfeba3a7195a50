/* SPDX-License-Identifier: Apache-2.0 */
/* A record without what a peer knows to be gone. */
#ifndef FB_DATABASE_COMPARE_REPAIR_H
#define FB_DATABASE_COMPARE_REPAIR_H

#include "protocol/database/record/record.h"

/* A state as the peer has it, and of which of the dots asked about the peer says that it
 * knows them. */
typedef struct fb_peer_state {
    fb_span state;
    const uint8_t *dots; /* those asked about */
    uint32_t dot_count;
    const uint8_t *covered; /* a bit each */
} fb_peer_state;

/* Also: its columns ascend, as those of every state do. */
bool fb_peer_state_is_valid(fb_span state);
/* Of a state what is about some dots, as far as it fits: all that who asked about them looks at.
 * Nothing, where none of them is in it. */
void fb_peer_state_write(fb_writer *w, fb_span state, fb_span dots);
/* Does what this dot put there go: into the column, or (an empty name) into the existence? */
typedef bool (*fb_gone)(void *user, fb_span name, const uint8_t dot[FB_DOT_BYTES]);
/* The record without what is gone, and without replaced dots that are kept for changes which are
 * here (ops->covered). *dropped: so many dots. FB_ERR_LIMIT. */
fb_status fb_record_prune(fb_id id, const fb_record *record, fb_gone gone, void *gone_user,
                          const fb_merge_ops *ops, uint8_t *out, uint8_t *scratch, size_t out_cap,
                          fb_merged *merged, uint32_t *dropped);
/* The record without what the peer knows to be replaced, and without replaced dots that are kept
 * for changes which are here. *dropped: so many dots. FB_ERR_LIMIT. */
fb_status fb_record_repair(fb_id id, const fb_record *record, const fb_peer_state *peer,
                           const fb_merge_ops *ops, uint8_t *out, uint8_t *scratch, size_t out_cap,
                           fb_merged *merged, uint32_t *dropped);

#endif
