/* SPDX-License-Identifier: Apache-2.0 */
/* Statements: what may stand in a space's own area, and how. profile 1; DESIGN 3.1, 3.2.
 *
 * A statement is one change of one record, whole in itself: every field of its kind is set, none is
 * unset, no other is there. Which record it is follows from what it is about, so statements of two
 * nodes about one member meet in one record. docs/WIRE-FORMATS.md, "Space". */
#ifndef FB_SPACE_STATEMENT_H
#define FB_SPACE_STATEMENT_H

#include "protocol/database/database.h"
#include "protocol/space/cut.h"
#include "protocol/space/space.h"

typedef enum fb_statement_kind {
    FB_STATEMENT_SPACE = 1,    /* the root: name, full key of the creator, who signs it */
    FB_STATEMENT_MEMBER = 2,   /* an admin says: this key is approved in this role */
    FB_STATEMENT_ADDRESS = 3,  /* a member says where it can be dialled */
    FB_STATEMENT_STANDING = 5, /* what a member may do from now on, what of it stays before that */
    FB_STATEMENT_RECOVERY = 6, /* the recovery key says: this member is an admin (recovery.h) */
    FB_STATEMENT_NAME = 4,     /* an admin says: the space is called so; key: the creator's */
} fb_statement_kind;

typedef struct fb_statement {
    fb_statement_kind kind;
    fb_b32 key;              /* creator or member */
    fb_member_status status; /* MEMBER: approved */
    fb_role role;            /* MEMBER, STANDING: there NONE ends the membership */
    uint8_t number;          /* MEMBER: 1; STANDING: even ones take, with a cut (standing.h) */
    uint32_t turn;           /* RECOVERY: from 1; a later one is more senior */
    fb_b64 proof;            /* RECOVERY: by the recovery key */
    fb_span cut;             /* STANDING: digits, within the value that was read; borrowed */
    uint8_t text_len;
    uint8_t text[FB_SPACE_NAME_BYTES_MAX]; /* SPACE, NAME: name; ADDRESS: address */
} fb_statement;

_Static_assert(FB_SPACE_NAME_BYTES_MAX <= UINT8_MAX, "its length fits a byte");
_Static_assert(FB_ADDRESS_BYTES_MAX <= FB_SPACE_NAME_BYTES_MAX, "one buffer serves both");

/* A name for people: 1 to FB_SPACE_NAME_BYTES_MAX bytes of UTF-8 without control characters. */
bool fb_name_is_valid(fb_span name);
/* Printable ASCII without space, quote and backslash, 1 to FB_ADDRESS_BYTES_MAX bytes. */
bool fb_address_is_valid(fb_span address);

/* The one record that a statement of this kind about this key belongs to: the space's id for the
 * root, else a UUIDv7 with the space id's time and 74 bits of BLAKE3 over a label of the kind, the
 * space and the key, as an area's id is made. */
fb_id fb_statement_record(fb_id space, fb_statement_kind kind, const fb_b32 *key);

/* A statement as fields of a change. The spans point into the struct itself. */
#define FB_STATEMENT_FIELDS_MAX 5u
typedef struct fb_statement_fields {
    fb_field_write field[FB_STATEMENT_FIELDS_MAX];
    uint32_t count;
    uint8_t number[4];                               /* decimal */
    uint8_t turn[12];                                /* decimal */
    uint8_t proof[130];                              /* quoted hex */
    uint8_t key[66];                                 /* quoted hex */
    uint8_t text[2u * FB_SPACE_NAME_BYTES_MAX + 2u]; /* quoted; at worst each byte escaped */
} fb_statement_fields;

/* The cut of a STANDING is given with its quotes around it, statement->cut being what is between
 * them. */
void fb_statement_encode(const fb_statement *statement, fb_statement_fields *out);

/* Reads the fields of a change. FB_ERR_STATEMENT: they do not follow the format.
 * FB_ERR_UNSUPPORTED: a kind, status, role or field that this version does not know, or something
 * is unset: it may take a right away, which this version does not judge. *out is set only on FB_OK.
 */
fb_status fb_statement_decode(const fb_field_write *fields, uint32_t count, fb_statement *out);

#endif
