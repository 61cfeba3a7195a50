/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/conformance/json.h"

#include <stdlib.h>

#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"

bool fb_adapter_integer(const json_t *object, const char *name, int64_t *out)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value)) return false;
    *out = json_integer_value(value);
    return true;
}

static bool text_of(const json_t *object, const char *name, fb_span *out)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value)) return false;
    *out = fb_span_of(json_string_value(value), json_string_length(value));
    return true;
}

bool fb_adapter_bytes(const json_t *object, const char *name, uint8_t **out, size_t *len)
{
    fb_span text;
    if (!text_of(object, name, &text) || text.len % 2 != 0) return false;
    *len = text.len / 2;
    *out = malloc(*len + (*len == 0));
    if (*out == NULL) return false;
    if (fb_hex_parse(text, *out, *len)) return true;
    free(*out);
    *out = NULL;
    return false;
}

bool fb_adapter_bytes32(const json_t *object, const char *name, fb_b32 *out)
{
    fb_span text;
    return text_of(object, name, &text) && fb_hex_parse(text, out->b, sizeof out->b);
}

bool fb_adapter_id(const json_t *object, const char *name, fb_id *out)
{
    fb_span text;
    return text_of(object, name, &text) && fb_hex_parse(text, out->b, sizeof out->b);
}

bool fb_adapter_uuid_of(const json_t *object, const char *name, fb_id *out)
{
    fb_span text;
    return text_of(object, name, &text) && fb_uuid_parse_v7(text, out);
}

json_t *fb_adapter_hex(fb_span bytes)
{
    char *text = malloc(2 * bytes.len + 1);
    if (text == NULL) return NULL;
    fb_hex_format(bytes.p, bytes.len, text);
    json_t *made = json_stringn(text, 2 * bytes.len);
    free(text);
    return made;
}

json_t *fb_adapter_uuid(fb_id id)
{
    char text[FB_UUID_TEXT_LEN];
    fb_uuid_format(id, text);
    return json_stringn(text, sizeof text);
}
