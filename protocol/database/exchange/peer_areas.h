/* SPDX-License-Identifier: Apache-2.0 */
/* The collections that a peer has, asked of it. */
#ifndef FB_DATABASE_EXCHANGE_PEER_AREAS_H
#define FB_DATABASE_EXCHANGE_PEER_AREAS_H

#include "protocol/core/internal.h"

/* One question that is under way. */
typedef struct fb_peer_areas {
    bool used;
    uint32_t index; /* of the request */
    uint64_t number;
    uint64_t serial;
    fb_id space;
    fb_id after;
} fb_peer_areas;

void fb_peer_areas_layout(fb_node *node, fb_arena *arena);
void fb_peer_areas_reset(fb_node *node);

#endif
