/* SPDX-License-Identifier: Apache-2.0 */
/* What a node stores about itself: the format's version, its incarnation, the mark above every UUID
 * it has given. */
#ifndef FB_CORE_META_H
#define FB_CORE_META_H

#include "protocol/core/internal.h"

/* First of all loading: reads the three, refuses a newer format, puts the new incarnation into the
 * first write set, then goes on with the planes. */
void fb_meta_load(fb_node *node);

#endif
