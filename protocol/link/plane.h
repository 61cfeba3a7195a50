/* SPDX-License-Identifier: Apache-2.0 */
/* The link plane as the core's step function sees it. */
#ifndef FB_LINK_PLANE_H
#define FB_LINK_PLANE_H

#include "protocol/core/internal.h"

extern const fb_plane fb_link_plane;

/* FB_EV_DIAL_RESULT to FB_EV_CARRIER_FRAME. Sets node->out->consumed for FB_EV_LINK_BYTES. Events
 * of links that are unknown here are counted and ignored, their bytes consumed.
 * FB_ERR_EVENT_MALFORMED: the driver's mistake, nothing changed. */
fb_status fb_link_event(fb_node *node, const fb_event *event);

#endif
