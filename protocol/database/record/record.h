/* SPDX-License-Identifier: Apache-2.0 */
/* A record: multi-value registers with dots, and the merge of one change into it. DESIGN 3.1,
 * Merge; docs/WIRE-FORMATS.md, "Store".
 *
 * Its state is a function of the set of accepted changes, whatever their order, provided that the
 * changes of one life (node, incarnation) come in the order of their sequences:
 * - a sibling of a field lives unless some change replaced it or a later dot of its life, or a
 * later change of its life set or unset the field, or deleted the record;
 * - what stands for the record's existence is the same with one register that has no value;
 * - a replaced dot whose change has not come yet is kept: for its field, for the existence, or,
 * from a delete, for the whole record.
 * A record of which nothing is left is not stored: merging into it and into one that never was is
 * the same.
 *
 * Stored value: u8 version 1, 16 bytes of fingerprint, u16 values stored apart, u32 length of the
 * state, the state, then for each sibling of a field in the order of the state: u8 1, u16 length
 * and the value; or u8 2 and its u32 length: it is stored under a key of its own. State, which is
 * what the fingerprint covers: u16  living existence dots, each: dot, i64 stamp u16  dots replaced
 * before they came (existence), u16 the same (whole record) u16  fields, each in the order of
 * names: span16 name, u16 siblings, each ascending: dot, i64 stamp, 16 leading bytes of the value's
 * salted hash; u16 dots replaced before they came */
#ifndef FB_DATABASE_RECORD_RECORD_H
#define FB_DATABASE_RECORD_RECORD_H

#include "protocol/database/record/change.h"

#define FB_RECORD_VERSION     1u
#define FB_RECORD_FRAME_BYTES (1u + 16 + 2 + 4 + 8)
/* Longer values are stored apart from their record. */
#define FB_VALUE_INLINE_MAX 128u
/* The most a stored record may hold. A writer stays below a third of it, so that what concurrent
 * writers add still fits: a receiver drops nothing. */
#define FB_RECORD_BYTES_MAX_STORED 61440u

#define FB_EXISTENCE_BYTES (FB_DOT_BYTES + 8u)
#define FB_SIBLING_BYTES   (FB_DOT_BYTES + 8u + 16u)

/* A record read from a stored value; borrowed. All empty for one that does not exist. */
typedef struct fb_record {
    uint8_t fingerprint[16];
    uint32_t apart;
    fb_span state;
    fb_span values;
    const uint8_t *existence; /* count entries of FB_EXISTENCE_BYTES */
    uint32_t existence_count;
    fb_dots existence_pending;
    fb_dots whole_pending;
    uint32_t field_count;
    fb_span fields;
} fb_record;

typedef struct fb_record_field {
    fb_span name;
    const uint8_t *siblings; /* count entries of FB_SIBLING_BYTES, ascending by dot */
    uint32_t count;
    fb_dots pending;
    fb_reader values; /* for fb_record_value, in the order of the siblings */
} fb_record_field;

typedef struct fb_record_walk {
    fb_reader fields;
    fb_reader values;
    uint32_t left;
} fb_record_walk;

typedef struct fb_sibling {
    fb_dot dot;
    int64_t stamp;
    bool apart;
    uint32_t len;
    fb_span value; /* empty when it is stored apart */
} fb_sibling;

/* FB_ERR_STORE_DAMAGED: does not follow the format. An empty span is a record that is not there. */
fb_status fb_record_decode(fb_span stored, fb_record *out);

fb_record_walk fb_record_walk_of(const fb_record *record);
bool fb_record_next(fb_record_walk *walk, fb_record_field *out);
/* Goes through the siblings of a field, `at` from 0, on a copy of it. */
fb_sibling fb_record_sibling(fb_record_field *field, uint32_t at);

/* The place of the displayed sibling, that with the greatest (stamp, dot) among those stamped at
 * most `horizon`; FB_NONE when there is none. */
uint32_t fb_record_displayed(const fb_record_field *field, int64_t horizon);

/* The value of that sibling is an integer, which a counter may count on from. */
bool fb_record_is_integer(const fb_record_field *field, uint32_t at);

/* The record exists for readers: something living is stamped at most `horizon`. *stamp: the
 * greatest such stamp. */
bool fb_record_visible(const fb_record *record, int64_t horizon, int64_t *stamp);

/* (stamp, dot): the stamp signed, then node, incarnation and sequence unsigned. */
int fb_stamp_compare(int64_t a_stamp, const uint8_t *a_dot, int64_t b_stamp, const uint8_t *b_dot);

/* Of each life the last living dot of the record, hidden ones too, ascending: what a delete
 * replaces. The writer is given u16 count and the dots. */
void fb_record_all_dots(const fb_record *record, fb_writer *w);

/* Nothing lives in it, and no change is awaited that it holds for replaced: a record that is not
 * there is no other, so it is not stored, and no item of the tree. */
bool fb_record_is_empty(const fb_record *record);

/* What a merge needs and what it tells. */
typedef struct fb_merge_ops {
    void *user;
    /* Has the change of this dot been accepted (the one being merged included)? */
    bool (*covered)(void *user, const uint8_t dot[FB_DOT_BYTES]);
    /* A value that is stored apart came or went; either may be NULL. */
    void (*came)(void *user, fb_span field, const uint8_t dot[FB_DOT_BYTES], fb_span value);
    void (*went)(void *user, fb_span field, const uint8_t dot[FB_DOT_BYTES]);
    /* What comes of it is merged further before anybody sees it: its fingerprint, which costs more
     * than the merge, is left zero until fb_record_finish. */
    bool draft;
} fb_merge_ops;

typedef struct fb_merged {
    fb_span stored; /* within out */
    uint8_t fingerprint[16];
    bool conflict;   /* a field that the change sets has something else beside that, of this kind or
                        another; elements of a set and shares of a counter count as one */
    uint32_t values; /* siblings and dots of existence that are left; 0: nothing to show, ever */
    bool empty;      /* and no replaced dot is kept: fb_record_is_empty */
} fb_merged;

/* Merges a whole change with all its values into a record. `out` and `scratch` have room for
 * out_cap bytes each. FB_ERR_LIMIT: the result is longer (came and went may have been called). */
fb_status fb_record_merge(const fb_record *record, const fb_change *change, fb_dot dot,
                          const fb_merge_ops *ops, uint8_t *out, uint8_t *scratch, size_t out_cap,
                          fb_merged *merged);

/* A state of FB_RECORD_EMPTY_STATE bytes has no entry in any of its lists. */
#define FB_RECORD_EMPTY_STATE (2u + 2 + 2 + 2)

/* Such a record as it would be stored, for who has to say that there is none. */
#define FB_RECORD_EMPTY_BYTES (1u + 16 + 2 + 4 + FB_RECORD_EMPTY_STATE)
fb_span fb_record_empty(fb_id record, uint8_t out[FB_RECORD_EMPTY_BYTES]);

/* Puts the fingerprint into a stored record that was merged as a draft. */
fb_status fb_record_finish(fb_id id, uint8_t *stored, size_t len);

/* BLAKE3-128 of "faberio-record-v1" 0x00 ‖ record ‖ state. */
void fb_record_fingerprint(fb_id record, fb_span state, uint8_t out[16]);

#endif
