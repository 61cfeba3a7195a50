/* SPDX-License-Identifier: Apache-2.0 */
#include "io/mongo/value.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/database/record/column.h"

static bool is_taken(fb_span name)
{
    return fb_span_equal(name, fb_span_text("_id")) ||
           fb_span_equal(name, fb_span_text("_faberio"));
}

/* NULL without memory. The caller frees it. */
static char *key_of(fb_span name, bool top, int *len)
{
    static const char digits[] = "0123456789ABCDEF";
    char *key = malloc(3 * name.len + 1);
    if (key == NULL) return NULL;
    size_t at = 0;
    bool taken = top && is_taken(name);
    for (size_t i = 0; i < name.len; i++) {
        uint8_t c = name.p[i];
        bool escape = c == '%' || c == '.' || c == 0 || (i == 0 && (c == '$' || taken));
        if (!escape) {
            key[at++] = (char)c;
            continue;
        }
        key[at++] = '%';
        key[at++] = digits[c >> 4];
        key[at++] = digits[c & 15];
    }
    key[at] = 0;
    *len = (int)at;
    return key;
}

static unsigned depth_of(const json_t *value)
{
    unsigned deepest = 0;
    size_t i;
    const char *name;
    json_t *part;
    if (json_is_array(value)) {
        json_array_foreach(value, i, part)
        {
            unsigned depth = depth_of(part);
            if (depth > deepest) deepest = depth;
        }
        return deepest + 1;
    }
    if (!json_is_object(value)) return 0;
    json_object_foreach((json_t *)(uintptr_t)value, name, part)
    {
        unsigned depth = depth_of(part);
        if (depth > deepest) deepest = depth;
    }
    return deepest + 1;
}

static bool append(bson_t *to, const char *key, int key_len, const json_t *value);

static bool append_array(bson_t *to, const char *key, int key_len, const json_t *value)
{
    bson_t array;
    if (!bson_append_array_begin(to, key, key_len, &array)) return false;
    bool fits = true;
    size_t i;
    json_t *part;
    json_array_foreach(value, i, part)
    {
        char buffer[16];
        const char *index;
        size_t len = bson_uint32_to_string((uint32_t)i, &index, buffer, sizeof buffer);
        fits = fits && append(&array, index, (int)len, part);
    }
    return bson_append_array_end(to, &array) && fits;
}

static bool append_object(bson_t *to, const char *key, int key_len, const json_t *value)
{
    bson_t document;
    if (!bson_append_document_begin(to, key, key_len, &document)) return false;
    bool fits = true;
    const char *name;
    size_t name_len;
    json_t *part;
    json_object_keylen_foreach((json_t *)(uintptr_t)value, name, name_len, part)
    {
        int len;
        char *escaped = key_of(fb_span_of(name, name_len), false, &len);
        fits = fits && escaped != NULL && append(&document, escaped, len, part);
        free(escaped);
    }
    return bson_append_document_end(to, &document) && fits;
}

static bool append(bson_t *to, const char *key, int key_len, const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return append_object(to, key, key_len, value);
    case JSON_ARRAY:
        return append_array(to, key, key_len, value);
    case JSON_STRING:
        return bson_append_utf8(to, key, key_len, json_string_value(value),
                                (int)json_string_length(value));
    case JSON_INTEGER:
        return bson_append_int64(to, key, key_len, json_integer_value(value));
    case JSON_REAL:
        return bson_append_double(to, key, key_len, json_real_value(value));
    case JSON_TRUE:
        return bson_append_bool(to, key, key_len, true);
    case JSON_FALSE:
        return bson_append_bool(to, key, key_len, false);
    case JSON_NULL:
        return bson_append_null(to, key, key_len);
    }
    return false;
}

/* An integer of more than 64 bits, which is read as a double; `len` is its length. */
static bool is_wide(fb_span text, size_t at, size_t *len)
{
    size_t digits = at + (text.p[at] == '-');
    size_t end = digits;
    while (end < text.len && text.p[end] >= '0' && text.p[end] <= '9') end++;
    *len = end - at;
    bool integer = end == text.len || (text.p[end] != '.' && (text.p[end] | 0x20) != 'e');
    int64_t value;
    return integer && end - digits >= 19 &&
           !fb_integer_parse(fb_span_of(text.p + at, *len), &value);
}

/* The text with "e0" behind each integer of more than 64 bits, which the parser takes for an error;
 * other integers stay what they are. NULL without memory. */
static char *widened(fb_span text, size_t *len)
{
    char *out = malloc(text.len + text.len / 19 * 2 + 1);
    bool quoted = false;
    *len = 0;
    for (size_t at = 0; out != NULL && at < text.len;) {
        uint8_t c = text.p[at];
        size_t take = 1;
        bool wide = false;
        if (quoted && c == '\\' && at + 1 < text.len) {
            take = 2;
        } else if (c == '"') {
            quoted = !quoted;
        } else if (!quoted && (c == '-' || (c >= '0' && c <= '9'))) {
            wide = is_wide(text, at, &take);
            /* The rest of a number is no number of its own. */
            while (!wide && at + take < text.len && strchr("+-.eE0123456789", text.p[at + take])) {
                take++;
            }
        }
        memcpy(out + *len, text.p + at, take);
        *len += take;
        at += take;
        if (!wide) continue;
        memcpy(out + *len, "e0", 2);
        *len += 2;
    }
    return out;
}

static json_t *parse(fb_span text)
{
    const size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_t *value = json_loadb((const char *)text.p, text.len, flags, NULL);
    if (value != NULL) return value;
    size_t len;
    char *wide = widened(text, &len);
    if (wide != NULL) value = json_loadb(wide, len, flags, NULL);
    free(wide);
    return value;
}

bool fb_mongo_append(bson_t *to, fb_span name, bool top, fb_span text)
{
    int len;
    char *key = key_of(name, top, &len);
    if (key == NULL) return false;
    json_t *value = parse(text);
    bool fits;
    if (value == NULL || depth_of(value) > FB_MONGO_DEPTH_MAX) {
        fits = bson_append_utf8(to, key, len, (const char *)text.p, (int)text.len);
    } else {
        fits = append(to, key, len, value);
    }
    json_decref(value);
    free(key);
    return fits;
}
