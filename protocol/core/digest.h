/* SPDX-License-Identifier: Apache-2.0 */
/* The incremental digest of a node's state: the sum of one 128-bit hash per object. A plane marks
 * an object that it changed; at the end of the step the old hash is subtracted and the new one
 * added. Everything is hashed as bytes that the object's `write` lays down, never as a C struct. */
#ifndef FB_CORE_DIGEST_H
#define FB_CORE_DIGEST_H

#include "protocol/base/cursor.h"
#include "protocol/base/hash.h"

typedef struct fb_node fb_node;

#define FB_DIGEST_OBJECT_BYTES_MAX 1024u

/* Kinds of objects; a plane's kinds stand together. */
typedef enum fb_digest_tag {
    FB_DIGEST_NODE,
    FB_DIGEST_OPERATION,
    FB_DIGEST_WRITE_SET,
    FB_DIGEST_REQUEST,
    FB_DIGEST_SPACE,
    FB_DIGEST_MEMBER,
    FB_DIGEST_INVITE,
    FB_DIGEST_APPLICATION,
    FB_DIGEST_SHOWN, /* space: what the ends of a link have to show each other */
    FB_DIGEST_ADDRESS,
    FB_DIGEST_LINK,         /* with what the messaging plane holds for it */
    FB_DIGEST_SENDER,       /* messaging: what is remembered of a sender, its counters and floor */
    FB_DIGEST_SEEN,         /* messaging: the remembered ids of a sender */
    FB_DIGEST_ENVELOPE,     /* messaging: an envelope in the pool */
    FB_DIGEST_ANNOUNCEMENT, /* messaging: what is to be told about an area */
    FB_DIGEST_ORPHANS,      /* messaging: what waits for a peer's next link */
    FB_DIGEST_CALL,
    FB_DIGEST_CALL_LINK, /* calls: what is owed on a link besides them */
    FB_DIGEST_AREA,
    FB_DIGEST_VECTOR,
    FB_DIGEST_WANTED,
    FB_DIGEST_WATCH,
    FB_DIGEST_TAGS
} fb_digest_tag;

/* Lives in the object. */
typedef struct fb_digest_cell {
    fb_hash128 last;
    bool dirty;
} fb_digest_cell;

typedef struct fb_digest_kind {
    const char *name;
    uint32_t (*count)(const fb_node *node); /* objects of this kind that can exist */
    fb_digest_cell *(*cell)(fb_node *node, uint32_t index);
    /* Lays down what the object is, at most FB_DIGEST_OBJECT_BYTES_MAX bytes; nothing for a place
     * that is free. */
    void (*write)(const fb_node *node, uint32_t index, fb_writer *w);
} fb_digest_kind;

/* From a plane's layout: makes a kind known and reserves its place in the list of dirty objects. */
void fb_digest_register(fb_node *node, fb_digest_tag tag, const fb_digest_kind *kind);

/* The object changed in this step. */
void fb_digest_touch(fb_node *node, fb_digest_tag tag, uint32_t index);
/* The same for who has the object at hand: one look when it was marked already. */
void fb_digest_mark(fb_node *node, fb_digest_cell *cell, fb_digest_tag tag, uint32_t index);
static inline void fb_digest_touch_cell(fb_node *node, fb_digest_cell *cell, fb_digest_tag tag,
                                        uint32_t index)
{
    if (!cell->dirty) fb_digest_mark(node, cell, tag, index);
}

#endif
