/* SPDX-License-Identifier: Apache-2.0 */
/* From what an application wants to a change: what it read becomes the dots it replaces. Pure. */
#ifndef FB_DATABASE_WRITE_WRITE_H
#define FB_DATABASE_WRITE_WRITE_H

#include "protocol/database/database.h"
#include "protocol/database/record/record.h"

typedef struct fb_record_write {
    fb_id record;
    fb_change_op op;
    bool replace;                 /* fields that are not named are unset */
    const fb_field_write *fields; /* in the order of names, none twice */
    uint32_t count;
    fb_author_kind author_kind;
    uint8_t author[16];
    int64_t wall_us;
    int64_t horizon; /* stamps up to here are visible */
    fb_dot dot;
    const uint8_t *secret; /* 32 bytes that the salts of this life are derived from */
} fb_record_write;

/* Now plus the bounded future, saturating. */
int64_t fb_horizon(int64_t wall_us, int64_t future_us);

/* max(wall, greatest visible stamp of the record + 1): causality is carried by dots, so time only
 * has to look right (DESIGN 3.1, Change). */
int64_t fb_write_stamp(const fb_record *record, int64_t wall_us, int64_t horizon);

/* Appends the encoded change. FB_ERR_LIMIT: too many fields, no room, or a counter at its end.
 * FB_ERR_FIELD_KIND: added to what is no number, inserted into what is no set, or removed from it.
 * FB_ERR_VALUE_MALFORMED: what is added is no integer of 64 bits. */
fb_status fb_change_build(fb_writer *w, const fb_record *record, const fb_record_write *write);

/* Puts fields into the order of names. FB_ERR_REQUEST_MALFORMED: a name twice, empty;
 * FB_ERR_LIMIT: a name or value too long. */
fb_status fb_fields_sort(fb_field_write *fields, uint32_t count);

#endif
