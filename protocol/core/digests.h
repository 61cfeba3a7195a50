/* SPDX-License-Identifier: Apache-2.0 */
/* What the step needs of the digest; planes use digest.h. */
#ifndef FB_CORE_DIGESTS_H
#define FB_CORE_DIGESTS_H

#include "protocol/core/internal.h"

/* After every plane has registered. */
void fb_digests_layout(fb_node *node, fb_arena *arena);
/* Brings the sum up to date with every object marked since. */
void fb_digests_update(fb_node *node);

#endif
