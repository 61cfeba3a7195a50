/* SPDX-License-Identifier: Apache-2.0 */
/* A record as it is shown: every field with its visible siblings, the displayed one first. */
#ifndef FB_DATABASE_RECORD_SHOW_H
#define FB_DATABASE_RECORD_SHOW_H

#include "protocol/database/record/record.h"

/* Where values that are stored apart from their record come from. item: how many of them were asked
 * for before it; key: the value's store key. False: it is not there. */
typedef struct fb_show_source {
    bool (*value)(const void *user, uint32_t item, fb_span key, fb_span *value);
    const void *user;
} fb_show_source;

typedef struct fb_show {
    uint32_t local;  /* of the area, for the keys */
    int64_t horizon; /* stamps beyond it are not visible */
    uint32_t item;   /* of the next value stored apart */
} fb_show;

/* Writes one record as RECORD_GET answers it (protocol/core/request.h). FB_ERR_AGAIN: a value is
 * not there. FB_ERR_LIMIT: it does not fit. */
fb_status fb_show_record(const fb_show_source *source, fb_show *show, fb_writer *w, fb_id id,
                         const fb_record *record);

#endif
