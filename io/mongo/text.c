/* SPDX-License-Identifier: Apache-2.0 */
/* BSON values as JSON texts: the way back of value.c, for what other programs put into documents.
 * Nothing is guessed: a type that JSON does not have gives no text. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/mongo/json.h"
#include "io/mongo/value.h"

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

size_t fb_mongo_name(const char *key, char *out)
{
    size_t len = 0;
    while (*key != 0) {
        int high = *key == '%' ? digit(key[1]) : -1;
        int low = high < 0 ? -1 : digit(key[2]);
        if (low < 0) {
            out[len++] = *key++;
        } else {
            out[len++] = (char)(high << 4 | low);
            key += 3;
        }
    }
    return len;
}

static json_t *value_of(const bson_iter_t *at, unsigned depth);

static json_t *array_of(const bson_iter_t *at, unsigned depth)
{
    bson_iter_t in;
    json_t *array = json_array();
    bool whole = array != NULL && bson_iter_recurse(at, &in);
    while (whole && bson_iter_next(&in)) {
        whole = json_array_append_new(array, value_of(&in, depth + 1)) == 0;
    }
    if (whole) return array;
    json_decref(array);
    return NULL;
}

static json_t *object_of(const bson_iter_t *at, unsigned depth)
{
    bson_iter_t in;
    json_t *object = json_object();
    bool whole = object != NULL && bson_iter_recurse(at, &in);
    while (whole && bson_iter_next(&in)) {
        char *name = malloc(bson_iter_key_len(&in) + 1u);
        size_t len = name == NULL ? 0 : fb_mongo_name(bson_iter_key(&in), name);
        whole = name != NULL && json_object_getn(object, name, len) == NULL &&
                json_object_setn_new(object, name, len, value_of(&in, depth + 1)) == 0;
        free(name);
    }
    if (whole) return object;
    json_decref(object);
    return NULL;
}

static json_t *value_of(const bson_iter_t *at, unsigned depth)
{
    if (depth > FB_MONGO_DEPTH_MAX) return NULL;
    uint32_t len;
    const char *text;
    switch (bson_iter_type(at)) {
    case BSON_TYPE_DOCUMENT:
        return object_of(at, depth);
    case BSON_TYPE_ARRAY:
        return array_of(at, depth);
    case BSON_TYPE_UTF8:
        text = bson_iter_utf8(at, &len);
        return json_stringn(text, len);
    case BSON_TYPE_INT32:
        return json_integer(bson_iter_int32(at));
    case BSON_TYPE_INT64:
        return json_integer(bson_iter_int64(at));
    case BSON_TYPE_DOUBLE:
        return isfinite(bson_iter_double(at)) ? json_real(bson_iter_double(at)) : NULL;
    case BSON_TYPE_BOOL:
        return json_boolean(bson_iter_bool(at));
    case BSON_TYPE_NULL:
        return json_null();
    default:
        return NULL;
    }
}

json_t *fb_mongo_json(const bson_iter_t *at)
{
    return value_of(at, 0);
}

/* The shortest text that is read back as the same number: 17 digits always are. */
char *fb_mongo_json_text(const json_t *value)
{
    char *text = NULL;
    for (unsigned digits = 15; text == NULL && digits <= 17; digits++) {
        text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        json_t *back = text == NULL || digits == 17
                           ? NULL
                           : json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (back != NULL && !json_equal(back, value)) {
            free(text);
            text = NULL;
        }
        json_decref(back);
    }
    return text;
}

/* An integer is as well the double next to it, which is all that is left of it where a program
 * knows no other numbers. */
static bool same_number(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b)) {
        return json_integer_value(a) == json_integer_value(b);
    }
    return json_number_value(a) == json_number_value(b);
}

bool fb_mongo_json_same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) return same_number(a, b);
    if (json_typeof(a) != json_typeof(b)) return false;
    if (json_is_array(a)) {
        bool same = json_array_size(a) == json_array_size(b);
        for (size_t i = 0; same && i < json_array_size(a); i++) {
            same = fb_mongo_json_same(json_array_get(a, i), json_array_get(b, i));
        }
        return same;
    }
    if (!json_is_object(a)) return json_equal(a, b);
    bool same = json_object_size(a) == json_object_size(b);
    const char *name;
    size_t len;
    json_t *part;
    json_object_keylen_foreach((json_t *)(uintptr_t)a, name, len, part)
    {
        const json_t *other = json_object_getn(b, name, len);
        same = same && other != NULL && fb_mongo_json_same(part, other);
    }
    return same;
}
