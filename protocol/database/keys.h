/* SPDX-License-Identifier: Apache-2.0 */
/* Store keys of what a collection holds, for drivers that keep records elsewhere.
 * docs/WIRE-FORMATS.md, "Store". */
#ifndef FB_DATABASE_KEYS_H
#define FB_DATABASE_KEYS_H

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

#endif
