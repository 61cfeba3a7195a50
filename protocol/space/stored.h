/* SPDX-License-Identifier: Apache-2.0 */
/* The store's entry of a space, for who reads or writes it while the node does not run.
 * docs/WIRE-FORMATS.md, "Space". */
#ifndef FB_SPACE_STORED_H
#define FB_SPACE_STORED_H

#include "protocol/base/cursor.h"
#include "protocol/base/error.h"

/* Not all that stands in it; borrowed. */
typedef struct fb_space_stored {
    fb_id id;
    fb_b32 creator;
    bool left; /* it is none any more: its number alone is kept, so that it is not used again */
    fb_span name;
} fb_space_stored;

/* FB_ERR_VERSION_NEWER, FB_ERR_STORE_DAMAGED */
fb_status fb_space_stored_decode(fb_span value, fb_space_stored *out);
/* The entry of a space that was left. */
void fb_space_left_encode(fb_writer *w, fb_id id, fb_span name);

/* What the entry says of a member: approved, or not any more. */
typedef struct fb_member_stored {
    fb_b32 key;
    bool approved;
} fb_member_stored;
fb_status fb_member_stored_decode(fb_span value, fb_member_stored *out);

#endif
