/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a space's own area, as the space plane sees them. */
#ifndef FB_DATABASE_AREA_OWN_H
#define FB_DATABASE_AREA_OWN_H

#include "protocol/database/database.h"
#include "protocol/database/record/change.h"
#include "protocol/space/space.h"

/* own.c: a change of a space's own area as the space plane sees it. fields has room for
 * FB_RECORD_FIELDS_MAX. */
void fb_own_change_of(const fb_change *change, fb_b32 author, fb_dot dot, uint64_t number,
                      uint64_t claim, fb_span batch, fb_field_write *fields, fb_own_change *out);
void fb_own_reading_layout(fb_node *node, fb_arena *arena);
void fb_own_reading_reset(fb_node *node);

#endif
