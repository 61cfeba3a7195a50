/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is given back all at once. What was taken stays where it is. */
#ifndef FB_DOCUMENTS_ROOM_H
#define FB_DOCUMENTS_ROOM_H

#include "protocol/base/types.h"

#define FB_ROOM_BLOCK ((size_t)4 << 10) /* bytes asked for at once, or what is larger */

/* Where blocks come from, aligned to 16. A simulated node's are of its world. */
typedef struct fb_room_source {
    void *(*take)(void *user, size_t len);
    void (*give)(void *user, void *block);
    void *user;
} fb_room_source;

/* Zeroed is empty. */
typedef struct fb_room {
    struct fb_room_block *last;
    size_t used;
    const fb_room_source *source; /* NULL: the process's own memory */
} fb_room;

/* Aligned to 16; never NULL: a node that has no memory stops. */
void *fb_room_take(fb_room *room, size_t len);
void *fb_room_take_zeroed(fb_room *room, size_t len);
fb_span fb_room_copy(fb_room *room, fb_span bytes);
/* Its source stays. */
void fb_room_free(fb_room *room);

#endif
