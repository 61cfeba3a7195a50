/* SPDX-License-Identifier: Apache-2.0 */
/* What a document shows: the fields of its record, for others to read. */
#include "protocol/database/record/show.h"
#include "io/documents/job.h"
#include "protocol/base/assert.h"
#include "protocol/base/limits.h"
#include "protocol/core/request.h"
#include "protocol/database/keys.h"
#include "protocol/database/record/record.h"

/* The key is a value's: its column and dot say which. */
static bool shown_value(const void *user, uint32_t item, fb_span key, fb_span *value)
{
    const fb_document *document = user;
    (void)item;
    fb_reader r = fb_reader_of(key);
    fb_read_bytes(&r, FB_RECORD_KEY_BYTES);
    fb_span column = fb_read_span16(&r);
    fb_span dot = fb_read_bytes(&r, FB_DOT_BYTES);
    if (r.failed) return false;
    for (size_t i = 0; i < document->value_count; i++) {
        const fb_document_value *one = &document->values[i];
        if (memcmp(one->dot, dot.p, FB_DOT_BYTES) != 0 || !fb_span_equal(one->column, column)) {
            continue;
        }
        *value = one->value;
        return true;
    }
    return false;
}

/* The fields of one record of an answer (request.h, RECORD_GET): the first of each is displayed. */
static void take_fields(fb_span answer, fb_room *room, fb_document *out)
{
    fb_reader r = fb_reader_of(answer);
    fb_read_bytes(&r, 16 + 16);
    size_t count = fb_read_u16(&r);
    fb_document_field *fields = fb_room_take(room, count * sizeof *fields);
    for (size_t i = 0; i < count; i++) {
        fields[i].name = fb_read_span16(&r);
        uint16_t siblings = fb_read_u16(&r);
        for (uint16_t k = 0; k < siblings; k++) {
            fb_read_bytes(&r, FB_DOT_BYTES + 8);
            fb_span json = fb_read_span32(&r);
            if (k == 0) fields[i].json = json;
        }
    }
    FB_ASSERT(fb_reader_done(&r));
    out->fields = fields;
    out->field_count = count;
}

void fb_job_show(const fb_job_record *record, int64_t horizon, fb_room *room, fb_document *document)
{
    fb_record decoded;
    document->horizon = horizon;
    if (record->record.len == 0 || fb_record_decode(record->record, &decoded) != FB_OK) return;
    size_t bytes = 2 * record->record.len + 4096;
    for (size_t i = 0; i < document->value_count; i++) bytes += document->values[i].value.len;
    /* No answer is larger than the record and its values, with what stands about each. */
    bytes += (size_t)decoded.field_count * (FB_DOT_BYTES + 64);
    fb_writer w = fb_writer_of(fb_room_take(room, bytes), bytes);
    const fb_show_source source = {shown_value, document};
    fb_show show = {record->area, horizon, 0};
    /* What cannot be shown is there all the same: a value that is missing was reported. */
    if (fb_show_record(&source, &show, &w, record->id, &decoded) == FB_OK) {
        take_fields(fb_writer_span(&w), room, document);
    }
}
