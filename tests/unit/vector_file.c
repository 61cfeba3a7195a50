/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/vector_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/hex.h"

size_t vector_file_each(const char *path, void (*each)(void *user, size_t line, const json_t *row),
                        void *user)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) fail_msg("%s cannot be read", path);
    char *text = NULL;
    size_t room = 0, line = 0;
    while (getline(&text, &room, file) > 0) {
        json_error_t error;
        json_t *row = json_loads(text, 0, &error);
        if (row == NULL) fail_msg("%s: line %zu: %s", path, line + 1, error.text);
        each(user, ++line, row);
        json_decref(row);
    }
    free(text);
    fclose(file);
    return line;
}

const char *vector_text(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    if (value == NULL) fail_msg("no text %s", name);
    return value;
}

void vector_hex(const json_t *object, const char *name, uint8_t *out, size_t len)
{
    if (!fb_hex_parse(fb_span_text(vector_text(object, name)), out, len)) {
        fail_msg("%s is not %zu bytes in hex", name, len);
    }
}

/* Writes a part, or with out NULL only counts. */
static size_t put_part(const json_t *part, uint8_t *out)
{
    if (json_is_string(part)) {
        size_t len = json_string_length(part);
        if (out != NULL && len != 0) memcpy(out, json_string_value(part), len);
        return len;
    }
    const json_t *repeated = json_object_get(part, "repeat");
    if (repeated == NULL) {
        size_t len = json_string_length(json_object_get(part, "hex")) / 2;
        if (out != NULL) vector_hex(part, "hex", out, len);
        return len;
    }
    size_t one = put_part(repeated, NULL), times = 0;
    times = (size_t)json_integer_value(json_object_get(part, "times"));
    for (size_t i = 0; i < times && out != NULL; i++) put_part(repeated, out + i * one);
    return one * times;
}

uint8_t *vector_bytes(const json_t *parts, size_t *len)
{
    size_t i;
    const json_t *part;
    assert_true(json_is_array(parts));
    *len = 0;
    json_array_foreach(parts, i, part) *len += put_part(part, NULL);
    uint8_t *bytes = malloc(*len + (*len == 0));
    assert_non_null(bytes);
    size_t at = 0;
    json_array_foreach(parts, i, part) at += put_part(part, bytes + at);
    return bytes;
}
