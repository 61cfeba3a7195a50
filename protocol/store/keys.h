/* SPDX-License-Identifier: Apache-2.0 */
/* Tags of the store: the first byte of every key. A plane's keys are built in its own folder; the
 * tags stand here so that none is used twice. Area and space numbers are local, u32, never reused.
 * What stands in the values is docs/WIRE-FORMATS.md, "Store". */
#ifndef FB_STORE_KEYS_H
#define FB_STORE_KEYS_H

#define FB_STORE_VERSION 1u

typedef enum fb_tag {
    FB_TAG_META = 'M',        /* u8 item: format version, incarnation, last UUID */
    FB_TAG_SPACE = 'S',       /* u32 space, u8 item: 0 space, 1 what proves the own membership */
    FB_TAG_MEMBER = 'N',      /* u32 space, node id: statements about a member, folded */
    FB_TAG_STANDING = 'L',    /* u32 space, subject, dot: one statement about a member */
    FB_TAG_CUT = 'X',         /* the same, area, incarnation: of one that takes something away */
    FB_TAG_INVITE = 'I',      /* u32 space, invite id */
    FB_TAG_PENDING = 'P',     /* u32 space, node id: asked to join */
    FB_TAG_APPLICATION = 'U', /* u32 application; allowed spaces */
    FB_TAG_ADDRESS = 'D',     /* u32 space, address text */
    FB_TAG_AREA = 'A',        /* u32 area */
    FB_TAG_VECTOR = 'V',      /* u8 head or closed, u32 area, node, incarnation */
    FB_TAG_BATCH = 'B',       /* u32 area, node, incarnation, number */
    FB_TAG_RECORD = 'R',      /* u32 area, record */
    FB_TAG_FIELD = 'F',       /* u32 area, record, field, dot */
    FB_TAG_TREE = 'T',        /* u32 area, depth, prefix */
    FB_TAG_CHANGELOG = 'C',   /* u32 space, u64 sequence */
    FB_TAG_WANTED = 'W',      /* u32 area, node; and which batch is being taken back */
    FB_TAG_MARK = 'G',        /* u32 area, node, incarnation, number: nothing of this batch lives */
    FB_TAG_DOUBT = 'K',       /* u32 area: batches were skipped as folded */
    FB_TAG_SEEN = 'q',        /* u32 space, node, u32 slot: an id, and the floor as it was then */
    FB_TAG_REDO = 'o',        /* the key of an entry: the driver's, of documents (io/documents) */
    /* Later planes: 'm' cluster map, 'r' replica plane, 'f' files, 'p' policies. */
} fb_tag;

#endif
