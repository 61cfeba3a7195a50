/* SPDX-License-Identifier: Apache-2.0 */
/* The areas of all spaces: what a node knows of a collection, and of the collections of a space. */
#ifndef FB_DATABASE_AREA_AREA_H
#define FB_DATABASE_AREA_AREA_H

#include "protocol/database/database.h"
#include "protocol/database/tree/tree.h"
#include "protocol/store/ops.h"

#define FB_AREA_VALUE_BYTES_MAX (1u + 4 + 1 + 2 + FB_COLLECTION_NAME_BYTES_MAX)

typedef struct fb_root_note {
    uint64_t w;
    uint8_t root[16];
} fb_root_note;

typedef struct fb_area {
    bool used;
    bool stored; /* has its key in the store, or in a write set on the way */
    uint8_t kind;
    uint8_t name_len;
    bool digest_known;
    bool changed; /* in the write set being built */
    bool mending; /* something of it is above a cut: nothing comes in until that is taken back */
    uint32_t space;
    uint32_t local;
    uint32_t next;  /* of the space, in the order of ids, plus one; or free list */
    uint32_t pins;  /* operations, calls and claims that name it */
    uint32_t namer; /* link that named it first, plus one, while nothing of it is stored */
    fb_id id;
    uint8_t name[FB_COLLECTION_NAME_BYTES_MAX];

    fb_tree_node root_node; /* the tree's root as last executed */
    fb_tree_root root_info;
    uint8_t root[16];

    uint32_t entries; /* head of its vector, plus one */
    uint32_t entry_count;
    uint32_t own;       /* entry of this life, plus one; 0 before its first change */
    uint64_t own_seq;   /* last sequence given in this life */
    uint32_t builder;   /* batch being filled, plus one */
    uint32_t wants;     /* what is lacking, plus one */
    uint32_t last_link; /* asked last */

    /* The root as it is durable, and what becomes it with write sets that are under way. */
    uint8_t durable_root[16];
    uint32_t root_count;
    fb_root_note roots[FB_WRITE_SETS_KEPT];
    uint32_t unsettled; /* the next area with such a root, plus one */
    uint64_t mended_w;  /* the last write set that took something back */

    uint8_t digest[16];  /* of the durable vector; zeros when that is empty */
    uint64_t applied_ns; /* the last received batch, and its write set */
    uint64_t applied_w;
    uint64_t announcements; /* made onward in this life */
    fb_timer onward;
    fb_timer wanted;
    fb_timer conflict;

    bool folding;     /* a pass of fold.c is under way */
    bool doubt;       /* batches were skipped as folded: to be compared with a peer */
    bool doubt_again; /* and since the comparison under way began */
    uint8_t put_off;  /* pauses for which a comparison waited for what is wanted */
    bool hidden;      /* a reader said of what is wanted that it is folded */
    /* Members with whom it was compared since: bits in the order of ids, of those who were believed
     * then (compare/believe.c). */
    uint32_t gap_of; /* the member that told of the last gap, from 1; 0: not known in this life */
    uint64_t consulted;
    uint64_t consulted_of;
    uint32_t pass;       /* of this life */
    uint32_t pass_from;  /* marks of earlier passes do not count */
    uint32_t fresh;      /* batches that came since the last pass began */
    uint32_t looked_at;  /* batches in the last pass */
    uint32_t looking_at; /* and in this one */
    bool flawed;         /* this pass could not look at all of it */
    bool skipped;        /* batches were skipped as folded, now or once */
    fb_timer fold;
    fb_timer compare;
    fb_digest_cell cell;
} fb_area;

typedef struct fb_space_areas {
    uint32_t first;          /* area, plus one */
    uint32_t own;            /* the space's own area, plus one */
    uint64_t changelog;      /* last sequence given */
    uint64_t changelog_gone; /* the oldest entries, up to this one, are not kept any more */
    bool strangers;          /* something of a node that is no member here yet was offered */
    bool digest_known;
    uint8_t digest[16]; /* of all areas, as for a member that may hold them all */

    uint32_t reports;  /* the area of what members hold, plus one */
    bool reporting;    /* this node's report is being written */
    bool cutting;      /* the cut is being worked out */
    bool cut_known;    /* it was, in this life */
    bool settled;      /* all members have reported the statements that are known here */
    bool has_reported; /* this node has, in this life or before */
    bool may_report;   /* it holds what one of the others reported, statements included */
    bool behind;       /* its store was set back: it holds less than it has reported */
    bool report_asked; /* who waits for the reports to be read */
    bool promise_asked;
    uint8_t reported[16]; /* hash of what this node reported last */
    uint8_t next_report[16];
    fb_timer report;
    fb_timer cut;
} fb_space_areas;

void fb_areas_layout(fb_node *node, fb_arena *arena);
void fb_areas_reset(fb_node *node);
uint32_t fb_area_find(const fb_node *node, fb_id id);
/* Finds, or makes one that is not stored yet. FB_NONE: the table is full. */
uint32_t fb_area_open(fb_node *node, uint32_t space, fb_area_kind kind, fb_span name);
/* As loaded from the store. */
fb_status fb_area_load(fb_node *node, uint32_t local, fb_span value);
void fb_area_pin(fb_node *node, uint32_t area);
/* The last pin of an area that nothing was stored of frees it. */
void fb_area_unpin(fb_node *node, uint32_t area);
size_t fb_area_value(const fb_node *node, uint32_t area, uint8_t out[FB_AREA_VALUE_BYTES_MAX]);
/* The space's own area, FB_NONE when it has none. */
uint32_t fb_area_own(const fb_node *node, uint32_t space);
void fb_area_touch(fb_node *node, uint32_t area);
/* As fb_area_open, for an area that the peer of a link names: one that is not stored here counts
 * against what that link may name. FB_NONE: no place, or over its share. */
uint32_t fb_area_named(fb_node *node, uint32_t space, fb_area_kind kind, fb_span name, fb_id id,
                       uint32_t link);
/* It has its key in the set being built. */
void fb_area_stored(fb_node *node, uint32_t area);
/* Its root is another one from the set being built on. */
void fb_area_root_put(fb_node *node, uint32_t area);
void fb_areas_durable(fb_node *node);
void fb_areas_link_down(fb_node *node, uint32_t link);

#endif
