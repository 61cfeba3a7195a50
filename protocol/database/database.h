/* SPDX-License-Identifier: Apache-2.0 */
/* Records: areas, changes with dots, batches, fingerprints, version vectors, fetch (DESIGN 3.1). */
#ifndef FB_DATABASE_DATABASE_H
#define FB_DATABASE_DATABASE_H

#include "protocol/core/internal.h"

extern const fb_plane fb_database_plane;

typedef enum fb_area_kind {
    FB_AREA_COLLECTION = 1,
    FB_AREA_FILES = 2,
    FB_AREA_SPACE = 3,   /* the space's own statements, empty name */
    FB_AREA_REPORTS = 4, /* what each member holds, empty name (report.c) */
} fb_area_kind;

/* The derived id of an area (DESIGN 3.1): a UUIDv7 with the space id's time. */
fb_id fb_area_id(fb_id space, fb_area_kind kind, fb_span first_name);

/* What a local write does to a field (DESIGN 3.1, Merge). */
typedef enum fb_field_act {
    FB_ACT_SET, /* it has this value and no other */
    FB_ACT_UNSET,
    FB_ACT_ADD,    /* to a counter, or to an integer that the field has; the value is an integer */
    FB_ACT_INSERT, /* into a set; two elements are one when their texts are the same */
    FB_ACT_REMOVE, /* from a set */
    FB_ACTS
} fb_field_act;

/* A field of a change to be written locally. */
typedef struct fb_field_write {
    fb_span name;
    fb_field_act act;
    fb_span value; /* a JSON text without white space; of UNSET nothing */
} fb_field_write;

/* Writes one change from inside the node (statements of the space plane), as a local write of the
 * operator would: read set, change, batch. done is called when it was executed (w: its write set)
 * or failed. Everything is copied. FB_ERR_BUSY, FB_ERR_LIMIT. */
typedef void (*fb_write_done)(fb_node *node, uint64_t user, fb_status status, uint64_t w);
fb_status fb_database_write(fb_node *node, uint32_t space, fb_area_kind kind, fb_span name,
                            fb_id record, const fb_field_write *fields, uint32_t count,
                            fb_write_done done, uint64_t user);

/* What counts of the statements about some member is another now: data that is above a cut, or that
 * its writer had no right to, is taken back from now on, and nothing comes into those areas until
 * that is done. */
void fb_database_cuts_changed(fb_node *node, uint32_t space);

/* The cut of a member at all that is held of it now, in the space's own area alone or in all, as
 * the digits of a statement with quotes around them (space/cut.h). done is called when it was read,
 * or failed; lives: named; lacking: batches that are known of and not here. FB_ERR_BUSY: another
 * one is being read. The text is borrowed until done returns. */
typedef struct fb_cut_text {
    fb_span quoted;
    uint32_t areas, lives;
    uint64_t lacking;
} fb_cut_text;
typedef void (*fb_cut_done)(fb_node *node, uint64_t user, fb_status status,
                            const fb_cut_text *text);
fb_status fb_database_cut(fb_node *node, uint32_t space, fb_id peer, bool own_alone,
                          fb_cut_done done, uint64_t user);

/* Reads every change of one record of the space's own area that is held: `each` for one after the
 * other, then done, in a run that may put so many bytes in one entry; FB_OK, or the reading failed.
 * FB_ERR_BUSY: another one is being read, or something is not in a batch yet. */
struct fb_own_change;
typedef void (*fb_each_own)(fb_node *node, void *user, const struct fb_own_change *change);
typedef void (*fb_each_own_done)(fb_node *node, void *user, fb_status status);
fb_status fb_database_each_own(fb_node *node, uint32_t space, fb_id record, uint32_t put_bytes,
                               fb_each_own each, fb_each_own_done done, void *user);

/* A space appeared (created or joined): its own area exists from now on. Puts what is to be stored
 * into the set being built. */
fb_status fb_database_open_space(fb_node *node, uint32_t space);

/* The most that it puts. */
#define FB_DATABASE_OPEN_BYTES   64u
#define FB_DATABASE_OPEN_ENTRIES 1u

/* A verified `changed` arrived: fetch what is missing. link and member: who said so. */
void fb_database_changed(fb_node *node, uint32_t link, uint32_t member, fb_id area,
                         uint64_t incarnation, uint64_t batch);
/* It puts one entry only while so much more room than it needs is left for its caller. */
#define FB_CHANGED_SPARE_BYTES 1024u

/* 16 bytes over the version vectors of all areas that both ends of the link may hold, for its
 * heartbeats; and what to do when the peer's differ, or are the same. */
void fb_database_digest(fb_node *node, uint32_t space, uint32_t member, uint8_t out[16]);
void fb_database_differs(fb_node *node, uint32_t link);
void fb_database_same(fb_node *node, uint32_t link);

/* Collections of a space that lack something or show what was replaced, until a member that may
 * write has told; and those of them for which no link is open to one (compare/believe.h). */
void fb_database_doubts(const fb_node *node, uint32_t space, uint32_t *doubts, uint32_t *waiting);

/* For checkers: the number of areas held, and one of them. */
typedef struct fb_area_info {
    fb_id id;
    fb_id space;
    uint8_t kind;
    uint8_t root[16]; /* fingerprint as of the last executed change */
    uint32_t vector_count;
    uint64_t records; /* items in the tree */
} fb_area_info;

typedef struct fb_vector_info {
    fb_id node;
    uint64_t incarnation;
    uint64_t batch;
    uint64_t last_seq;
} fb_vector_info;

uint32_t fb_area_capacity(const fb_node *node);
bool fb_area_at(const fb_node *node, uint32_t index, fb_area_info *out);
bool fb_area_vector_at(const fb_node *node, uint32_t index, uint32_t entry, fb_vector_info *out);

/* What a comparison of fingerprints says (RECORD_VERIFY). */
typedef enum fb_verify_state {
    FB_VERIFY_SAME = 0,    /* the same changes, the same records */
    FB_VERIFY_DIFFERS = 1, /* the same changes and other records: one of both is damaged */
    FB_VERIFY_BEHIND = 2,  /* one has changes that the other has not yet */
    FB_VERIFY_UNSURE = 3,  /* one is in doubt or taking something back: ask again */
} fb_verify_state;

/* What a member's report says (SPACE_REPORTED). */
typedef enum fb_report_state {
    FB_REPORT_NONE = 0, /* none of it is here, or a copied node wrote one too */
    FB_REPORT_OLD = 1,  /* it was made before statements that are here: until the next one nothing
                           of the space is folded */
    FB_REPORT_KNOWN = 2,
} fb_report_state;

#endif
