/* SPDX-License-Identifier: Apache-2.0 */
/* One change: one application write of one record, as it stands in a batch and is hashed into a
 * leaf. DESIGN 3.1; docs/WIRE-FORMATS.md, "Records".
 *
 *     u8   form: 1 whole; 2 leaf only (32 bytes follow and nothing else)
 *     head:
 *     id   record
 *     u8   operation: 1 write, 2 delete
 *     i64  stamp
 *     u8   kind of author (1 operator, 2 application), 16 bytes: which (zeros for the operator)
 *     u16  flags, i64 expiry, 16 bytes key id: carried, and refused when not zero
 *     u16  dots replaced, then the dots: of a write, those of the record's existence; of a delete,
 *          every dot of the record that the writer saw
 *     u16  fields (0 in a delete), each in the order of names, none twice:
 *          span16 name of the column (column.h), u8 its kind, u8 operation (1 set, 2 unset),
 *          u16 dots replaced and the dots
 *     values, one for each field that is set, in the same order:
 *     u8   form: 1 there (16 bytes of salt, span32 value); 2 gone (32 bytes: its salted hash)
 *
 * The leaf is BLAKE3("faberio-change-v1" 0x00 ‖ dot ‖ head ‖ salted hash of each value), the salted
 * hash BLAKE3(salt ‖ value): a value can go with its salt while the rest stays provable, and nobody
 * can guess what went. */
#ifndef FB_DATABASE_RECORD_CHANGE_H
#define FB_DATABASE_RECORD_CHANGE_H

#include "protocol/base/error.h"
#include "protocol/base/hash.h"
#include "protocol/base/limits.h"
#include "protocol/database/dot.h"
#include "protocol/database/record/column.h"

#define FB_SALT_BYTES 16u

typedef enum fb_change_form {
    FB_CHANGE_WHOLE = 1,
    FB_CHANGE_LEAF = 2,
} fb_change_form;

typedef enum fb_change_op {
    FB_CHANGE_WRITE = 1,
    FB_CHANGE_DELETE = 2,
} fb_change_op;

typedef enum fb_author_kind {
    FB_AUTHOR_OPERATOR = 1,
    FB_AUTHOR_APPLICATION = 2,
} fb_author_kind;

typedef enum fb_field_op {
    FB_FIELD_SET = 1,
    FB_FIELD_UNSET = 2,
} fb_field_op;

/* A change read from borrowed bytes, or one to be written. */
typedef struct fb_change {
    fb_change_form form;
    fb_b32 leaf; /* FB_CHANGE_LEAF only; nothing below is set then */
    fb_id record;
    fb_change_op op;
    int64_t stamp;
    fb_author_kind author_kind;
    uint8_t author[16];
    fb_dots replaced;
    uint32_t field_count;
    uint32_t value_count; /* fields that it sets */
    /* The hashes of these in order, 32 bytes each, where somebody worked them out; else NULL. */
    const uint8_t *hashes;
    const uint8_t *worked_out; /* its leaf, in the same way */
    bool holes;                /* a value is gone */
    fb_span head;              /* its bytes, hashed into the leaf */
    fb_span fields;            /* within head */
    fb_span values;
} fb_change;

typedef struct fb_change_field {
    fb_span name;
    fb_field_op op;
    fb_dots replaced;
    bool gone;           /* set, but the value is not here */
    fb_span salt;        /* of a value that is here */
    fb_span value;       /* empty unless set */
    const uint8_t *hash; /* of a value that is gone or was hashed before: 32 bytes; else NULL */
} fb_change_field;

/* Walks the fields of a change that fb_change_decode accepted. */
typedef struct fb_change_walk {
    fb_reader fields;
    fb_reader values;
    uint32_t left;
    const uint8_t *hashes;
} fb_change_walk;

/* Reads one change from bytes that hold exactly it.
 * FB_ERR_BATCH_MALFORMED: breaks the format. FB_ERR_UNSUPPORTED: flags, expiry, key id, a kind of
 * field or author of a later version. FB_ERR_LIMIT: a named limit. *out is set only on FB_OK. */
fb_status fb_change_decode(fb_span bytes, fb_change *out);

fb_change_walk fb_change_walk_of(const fb_change *change);
bool fb_change_next(fb_change_walk *walk, fb_change_field *out);

/* How many lives its replaced dots are of; counts no further than `most` and one more, which is at
 * most FB_BATCH_LIVES_MAX. */
uint32_t fb_change_lives(const fb_change *change, uint32_t most);

/* BLAKE3(salt ‖ value), 32 bytes. */
void fb_value_hash(fb_span salt, fb_span value, uint8_t out[32]);
/* The same for a field that is set, whether its value is here or gone. */
void fb_change_field_hash(const fb_change_field *field, uint8_t out[32]);
/* The hashes of all values that the change sets into out, 32 bytes each. */
void fb_change_value_hashes(const fb_change *change, uint8_t *out);

/* The leaf of a change, also of one whose values or whole content is gone. */
void fb_change_leaf(const fb_change *change, fb_dot dot, uint8_t out[32]);
/* What is hashed for the leaf of a change that is there and whose hashes are known; dot_bytes,
 * where the dot is written to, belongs to it. */
#define FB_LEAF_PARTS 4u
void fb_change_leaf_parts(const fb_change *change, fb_dot dot, uint8_t dot_bytes[FB_DOT_BYTES],
                          fb_span parts[FB_LEAF_PARTS]);

/* Writers, in this order: head with its replaced dots, fields, then a value for each field set. */
void fb_change_write_head(fb_writer *w, fb_id record, fb_change_op op, int64_t stamp,
                          fb_author_kind author_kind, const uint8_t author[16]);
void fb_change_write_field(fb_writer *w, fb_span name, fb_field_op op);
void fb_change_write_value(fb_writer *w, const uint8_t salt[FB_SALT_BYTES], fb_span value);

/* Bytes of a change beside its dots, names and values. */
#define FB_CHANGE_HEAD_BYTES  (1u + 16 + 1 + 8 + 17 + 26 + 2 + 2)
#define FB_CHANGE_FIELD_BYTES (2u + 2 + 2 + 1 + FB_SALT_BYTES + 4)

#endif
