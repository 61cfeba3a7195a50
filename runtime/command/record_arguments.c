/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/record_arguments.h"

#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/limits.h"
#include "protocol/database/database.h"
#include "protocol/database/record/column.h"
#include "runtime/api/request_codec.h"

fb_writer fb_arguments_take(fb_exchange *x)
{
    fb_text_free(&x->scratch);
    char *room = calloc(1, FB_ARGUMENT_BYTES_MAX);
    if (room == NULL) return fb_writer_of(NULL, 0); /* fails at the first byte */
    x->scratch = (fb_text){room, 0, FB_ARGUMENT_BYTES_MAX};
    return fb_writer_of(room, FB_ARGUMENT_BYTES_MAX);
}

void fb_arguments_give(fb_exchange *x)
{
    fb_text_free(&x->scratch);
}

bool fb_collection_check(fb_exchange *x)
{
    if (strlen(x->args[1]) <= FB_COLLECTION_NAME_BYTES_MAX) return true;
    char detail[96];
    snprintf(detail, sizeof detail, "collection \"%.20s...\": its name has at most %u bytes",
             x->args[1], FB_COLLECTION_NAME_BYTES_MAX);
    fb_exchange_fail(x, FB_ERR_LIMIT, detail);
    return false;
}

static bool is_integer(fb_span text)
{
    int64_t number;
    return fb_integer_parse(text, &number);
}

/* What a value like {"$add":5} asks for; the operand's text is within `in`. */
static bool operation_read(const fb_json_object_in *in, fb_field_act *act, fb_span *operand)
{
    static const struct {
        const char *name;
        fb_field_act act;
    } operations[] = {{"$unset", FB_ACT_UNSET},
                      {"$add", FB_ACT_ADD},
                      {"$insert", FB_ACT_INSERT},
                      {"$remove", FB_ACT_REMOVE}};
    const fb_json_member_in *member = &in->members[0];
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        if (strcmp(fb_text_string(&member->name), operations[i].name) != 0) continue;
        *act = operations[i].act;
        *operand = fb_span_of(member->value.p, member->value.len);
        if (*act != FB_ACT_UNSET) return true;
        bool right = fb_span_equal(*operand, fb_span_text("true"));
        *operand = (fb_span){NULL, 0};
        return right;
    }
    return false;
}

/* One field of a PUT, a PATCH or a batch; false after it answered. */
static bool field_write(fb_exchange *x, fb_writer *w, const fb_json_member_in *member,
                        const json_t *value, const char *where)
{
    char name[FB_FIELD_NAME_BYTES_MAX + 1], detail[FB_FIELD_NAME_BYTES_MAX + 128];
    snprintf(name, sizeof name, "%s", fb_text_string(&member->name));
    fb_error error = FB_OK;
    if (member->name.len == 0 || member->name.len > FB_FIELD_NAME_BYTES_MAX) {
        snprintf(detail, sizeof detail, "%sfield \"%.40s%s\": its name must have 1 to %u bytes",
                 where, name, member->name.len > 40 ? "..." : "", FB_FIELD_NAME_BYTES_MAX);
        fb_exchange_fail(x, FB_ERR_LIMIT, detail);
        return false;
    }
    fb_field_act act = FB_ACT_SET;
    fb_span operand = fb_span_of(member->value.p, member->value.len);
    fb_json_object_in in = {0};
    char why[64];
    const char *key = json_is_object(value) && json_object_size(value) == 1
                          ? json_object_iter_key(json_object_iter((json_t *)(uintptr_t)value))
                          : "";
    if (key[0] == '$' && !(fb_json_object_read(operand, &in, why, sizeof why) &&
                           operation_read(&in, &act, &operand))) {
        snprintf(detail, sizeof detail, "%sfield %s: {\"%.40s\":...} is no operation on a field",
                 where, name, key);
        error = FB_ERR_UNSUPPORTED;
    } else if (operand.len > FB_FIELD_VALUE_BYTES_MAX) {
        snprintf(detail, sizeof detail, "%sfield %s: its value must have at most %u bytes", where,
                 name, FB_FIELD_VALUE_BYTES_MAX);
        error = FB_ERR_LIMIT;
    } else if (act == FB_ACT_ADD && !is_integer(operand)) {
        snprintf(detail, sizeof detail, "%sfield %s: what is added must be an integer of 64 bits",
                 where, name);
        error = FB_ERR_ARGUMENT;
    } else {
        fb_write_span16(w, fb_span_of(member->name.p, member->name.len));
        fb_write_u8(w, (uint8_t)(act + 1));
        fb_write_span32(w, operand);
    }
    fb_json_object_free(&in);
    if (error != FB_OK) fb_exchange_fail(x, error, detail);
    return error == FB_OK;
}

bool fb_fields_write(fb_exchange *x, fb_writer *w, const fb_json_object_in *fields,
                     const char *where)
{
    if (fields->count > FB_RECORD_FIELDS_MAX) {
        char detail[128];
        snprintf(detail, sizeof detail, "%sat most %u fields a record", where,
                 FB_RECORD_FIELDS_MAX);
        fb_exchange_fail(x, FB_ERR_LIMIT, detail);
        return false;
    }
    fb_write_u16(w, (uint16_t)fields->count);
    for (size_t i = 0; i < fields->count; i++) {
        const json_t *value =
            json_object_get(fields->tree, fb_text_string(&fields->members[i].name));
        if (!field_write(x, w, &fields->members[i], value, where)) return false;
    }
    return true;
}
