/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of a change of a space's own area, as a verified batch of any member may hold them. Input:
 * for each field a span16 name, a byte (1: unset), a span16 value. What is accepted is whole, has
 * one encoding, and decodes to the same again. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "protocol/base/cursor.h"
#include "protocol/base/uuid.h"
#include "protocol/space/statement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FIELDS_MAX 8u

static const fb_field_write *find(const fb_field_write *fields, uint32_t count, fb_span name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fb_span_equal(fields[i].name, name)) return &fields[i];
    }
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fb_reader r = fb_reader_of(fb_span_of(data, size));
    fb_field_write fields[FIELDS_MAX];
    uint32_t count = 0;
    while (count < FIELDS_MAX && fb_reader_left(&r) > 0) {
        fields[count].name = fb_read_span16(&r);
        fields[count].act = fb_read_u8(&r) == 1 ? FB_ACT_UNSET : FB_ACT_SET;
        fields[count].value = fb_read_span16(&r);
        if (r.failed) break;
        count++;
    }
    fb_statement statement;
    if (fb_statement_decode(fields, count, &statement) != FB_OK) return 0;

    fb_statement_fields again;
    fb_statement_encode(&statement, &again);
    if (again.count != count) abort();
    for (uint32_t i = 0; i < count; i++) {
        const fb_field_write *own = find(again.field, again.count, fields[i].name);
        if (fields[i].act != FB_ACT_SET || !fb_span_equal(own->value, fields[i].value)) abort();
    }
    static const fb_id space = {{1, 2, 3, 4, 5, 6, 0x70, 0, 0x80}};
    fb_id record = fb_statement_record(space, statement.kind, &statement.key);
    if (!fb_uuid_is_v7(record)) abort();
    return 0;
}
