/* SPDX-License-Identifier: Apache-2.0 */
/* Store keys of what a collection holds, for drivers that keep records elsewhere.
 * docs/WIRE-FORMATS.md, "Store". */
#ifndef FB_DATABASE_KEYS_H
#define FB_DATABASE_KEYS_H

#include "protocol/base/error.h"
#include "protocol/base/limits.h"
#include "protocol/base/types.h"
#include "protocol/database/dot.h"

#define FB_AREA_KEY_BYTES   5u  /* tag, area */
#define FB_RECORD_KEY_BYTES 21u /* tag, area, record */
/* tag, area, record, u16 length and name of the column, dot */
#define FB_FIELD_KEY_BYTES_MAX (FB_RECORD_KEY_BYTES + 2u + FB_COLUMN_NAME_BYTES_MAX + FB_DOT_BYTES)

/* Each writes a key of `area`, a local number, into out. */
fb_span fb_key_area(uint8_t *out, uint32_t area);
fb_span fb_key_record(uint8_t *out, uint32_t area, fb_id record);
fb_span fb_key_field(uint8_t *out, uint32_t area, fb_id record, fb_span name,
                     const uint8_t dot[FB_DOT_BYTES]);

/* What stands under the key of a vector: of a head or of a closed life. */
typedef struct fb_life {
    uint64_t batch, last_seq;
    uint8_t hash[32];
    uint64_t previous_incarnation, previous_number;
    uint64_t claim;
} fb_life;
fb_status fb_life_decode(fb_span value, fb_life *out);

#define FB_VECTOR_KEY_BYTES    30u /* tag, state, area, node, incarnation */
#define FB_BATCH_KEY_BYTES     37u
#define FB_TREE_KEY_BYTES      22u
#define FB_CHANGELOG_KEY_BYTES 13u
#define FB_WANTED_KEY_BYTES    29u
#define FB_MENDING_KEY_BYTES   30u
#define FB_DOUBT_KEY_BYTES     5u

/* Each writes a whole key into out and gives it. */
fb_span fb_key_vector(uint8_t *out, bool closed, uint32_t area, fb_id node, uint64_t incarnation);
fb_span fb_key_batch(uint8_t *out, uint32_t area, fb_id node, uint64_t incarnation,
                     uint64_t number);
fb_span fb_key_tree(uint8_t *out, uint32_t area, uint32_t depth, const uint8_t key[16]);
fb_span fb_key_changelog(uint8_t *out, uint32_t space, uint64_t sequence);
fb_span fb_key_doubt(uint8_t *out, uint32_t area);
fb_span fb_key_wanted(uint8_t *out, uint32_t area, fb_id node, uint64_t incarnation);
/* Not what is wanted of a life, but that its last batch goes. */
#define FB_WANTED_MENDING 1u
fb_span fb_key_mending(uint8_t *out, uint32_t area, fb_id node, uint64_t incarnation);

#endif
