/* SPDX-License-Identifier: Apache-2.0 */
#include "io/mongo/document.h"

#include <stdlib.h>
#include <string.h>

#include "io/mongo/value.h"
#include "protocol/base/hash.h"
#include "protocol/base/uuid.h"

#define VALUES_MAX 65536u /* more than a record can have siblings */

void fb_mongo_append_id(bson_t *to, const char *key, fb_id id)
{
    bson_append_binary(to, key, -1, BSON_SUBTYPE_UUID, id.b, sizeof id.b);
}

static bool append_bytes(bson_t *to, const char *key, fb_span bytes)
{
    return bson_append_binary(to, key, -1, BSON_SUBTYPE_BINARY, bytes.p, (uint32_t)bytes.len);
}

static bool append_values(bson_t *to, const fb_document *document)
{
    bson_t array;
    bool fits = bson_append_array_begin(to, "a", -1, &array);
    if (!fits) return false;
    for (size_t i = 0; fits && i < document->value_count; i++) {
        const fb_document_value *value = &document->values[i];
        char buffer[16];
        const char *index;
        size_t len = bson_uint32_to_string((uint32_t)i, &index, buffer, sizeof buffer);
        bson_t one;
        fits = bson_append_document_begin(&array, index, (int)len, &one);
        if (!fits) break;
        fits = append_bytes(&one, "c", value->column) &&
               append_bytes(&one, "d", fb_span_of(value->dot, sizeof value->dot)) &&
               append_bytes(&one, "t", value->value);
        fits = bson_append_document_end(&array, &one) && fits;
    }
    return bson_append_array_end(to, &array) && fits;
}

static bool is_field(const char *key)
{
    return strcmp(key, "_id") != 0 && strcmp(key, FB_MONGO_META) != 0;
}

static int64_t digest_of(const bson_t *document)
{
    uint64_t sum = 0;
    bson_iter_t at;
    bson_iter_init(&at, document);
    while (bson_iter_next(&at)) {
        if (is_field(bson_iter_key(&at))) sum += fb_xxh64(at.raw + at.off, at.next_off - at.off, 0);
    }
    return (int64_t)sum;
}

/* Both hold the values once: so much is known before anything is made. */
static bool may_fit(const fb_document *document)
{
    size_t bytes = document->record.len;
    for (size_t i = 0; i < document->value_count; i++) bytes += document->values[i].value.len;
    for (size_t i = 0; i < document->field_count; i++) bytes += document->fields[i].json.len / 2;
    return bytes <= FB_MONGO_DOCUMENT_MAX;
}

bool fb_mongo_document_make(const fb_document_change *change, bson_t *out)
{
    const fb_document *document = &change->document;
    bson_init(out);
    if (!may_fit(document)) return false;
    fb_mongo_append_id(out, "_id", document->id);
    bool fits = true;
    for (size_t i = 0; fits && i < document->field_count; i++) {
        fits = fb_mongo_append(out, document->fields[i].name, true, document->fields[i].json);
    }
    bson_t meta;
    int64_t digest = digest_of(out);
    fits = fits && bson_append_document_begin(out, FB_MONGO_META, -1, &meta);
    if (!fits) return false;
    fits = bson_append_int32(&meta, "v", -1, FB_MONGO_VERSION) &&
           bson_append_int64(&meta, "s", -1, (int64_t)change->version.start) &&
           bson_append_int64(&meta, "n", -1, (int64_t)change->version.number);
    if (document->record.len == 0) {
        fits = fits && bson_append_bool(&meta, "g", -1, true);
    } else {
        fits = fits && bson_append_int64(&meta, "t", -1, document->horizon) &&
               bson_append_int64(&meta, "h", -1, digest) &&
               append_bytes(&meta, "r", document->record) && append_values(&meta, document);
    }
    fits = bson_append_document_end(out, &meta) && fits;
    return fits && out->len <= FB_MONGO_DOCUMENT_MAX;
}

static bool read_bytes(const bson_iter_t *in, const char *key, fb_span *out)
{
    bson_iter_t at = *in;
    const uint8_t *bytes;
    uint32_t len;
    bson_subtype_t subtype;
    if (!bson_iter_find(&at, key) || !BSON_ITER_HOLDS_BINARY(&at)) return false;
    bson_iter_binary(&at, &subtype, &len, &bytes);
    *out = fb_span_of(bytes, len);
    return true;
}

bool fb_mongo_id_read(const bson_t *from, fb_id *out)
{
    bson_iter_t at;
    fb_span bytes;
    if (!bson_iter_init(&at, from) || !read_bytes(&at, "_id", &bytes)) return false;
    if (bytes.len != sizeof out->b) return false;
    memcpy(out->b, bytes.p, sizeof out->b);
    return fb_uuid_is_v7(*out);
}

static bool read_value(const bson_iter_t *at, fb_document_value *out)
{
    bson_iter_t in;
    fb_span dot;
    if (!BSON_ITER_HOLDS_DOCUMENT(at) || !bson_iter_recurse(at, &in)) return false;
    if (!read_bytes(&in, "c", &out->column) || !read_bytes(&in, "d", &dot) ||
        !read_bytes(&in, "t", &out->value) || dot.len != FB_DOT_BYTES) {
        return false;
    }
    memcpy(out->dot, dot.p, FB_DOT_BYTES);
    return true;
}

static fb_status read_values(const bson_iter_t *meta, fb_document *out, fb_document_value **values)
{
    bson_iter_t array = *meta, at;
    if (!bson_iter_find(&array, "a") || !BSON_ITER_HOLDS_ARRAY(&array)) {
        return FB_ERR_STORE_DAMAGED;
    }
    size_t count = 0;
    bson_iter_recurse(&array, &at);
    while (bson_iter_next(&at)) count++;
    if (count > VALUES_MAX) return FB_ERR_STORE_DAMAGED;
    *values = calloc(count + 1, sizeof **values);
    if (*values == NULL) return FB_ERR_NO_MEMORY;
    bson_iter_recurse(&array, &at);
    for (size_t i = 0; i < count && bson_iter_next(&at); i++) {
        if (!read_value(&at, &(*values)[i])) return FB_ERR_STORE_DAMAGED;
    }
    out->values = *values;
    out->value_count = count;
    return FB_OK;
}

static bool read_number(const bson_iter_t *in, const char *key, int64_t *out)
{
    bson_iter_t at = *in;
    if (!bson_iter_find(&at, key) || !BSON_ITER_HOLDS_INT64(&at)) return false;
    *out = bson_iter_int64(&at);
    return true;
}

fb_status fb_mongo_document_read(const bson_t *from, fb_document *out, fb_document_value **values)
{
    bson_iter_t meta_at, meta, version;
    *out = (fb_document){.record = {NULL, 0}};
    *values = NULL;
    if (!fb_mongo_id_read(from, &out->id)) return FB_ERR_BAD_UUID;
    out->whole = fb_span_of(bson_get_data(from), from->len);
    if (!bson_iter_init_find(&meta_at, from, FB_MONGO_META)) {
        out->edited = true;
        return FB_OK;
    }
    if (!BSON_ITER_HOLDS_DOCUMENT(&meta_at) || !bson_iter_recurse(&meta_at, &meta)) {
        return FB_ERR_STORE_DAMAGED;
    }
    version = meta;
    if (!bson_iter_find(&version, "v") || !BSON_ITER_HOLDS_INT32(&version)) {
        return FB_ERR_STORE_DAMAGED;
    }
    if (bson_iter_int32(&version) > FB_MONGO_VERSION) return FB_ERR_VERSION_NEWER;
    bson_iter_t mark = meta;
    if (bson_iter_find(&mark, "g") && BSON_ITER_HOLDS_BOOL(&mark)) return FB_ERR_NOT_FOUND;
    if (!read_bytes(&meta, "r", &out->record) || out->record.len == 0) {
        return FB_ERR_STORE_DAMAGED;
    }
    int64_t start = 0, number = 0, digest = 0;
    read_number(&meta, "s", &start);
    read_number(&meta, "n", &number);
    out->start = start > 0 ? (uint64_t)start : 0;
    out->number = number > 0 ? (uint64_t)number : 0;
    if (!read_number(&meta, "t", &out->horizon)) out->horizon = INT64_MAX;
    out->edited = !read_number(&meta, "h", &digest) || digest != digest_of(from);
    return read_values(&meta, out, values);
}
