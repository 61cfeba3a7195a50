/* SPDX-License-Identifier: Apache-2.0 */
/* A record as a document of MongoDB:
 *
 *     { _id: UUID, the fields as they are shown,
 *       _faberio: { v: 1, s: number of the start, n: number within it, t: stamps beyond it are not
 *                   shown, h: digest of the fields, r: the record as the core stores it,
 *                   a: [ { c: column, d: dot, t: value } ] } }
 *
 * What stands in _faberio is the record, byte by byte; the fields beside it are for others to read
 * and to change. Numbers are 64-bit integers, c, d, r and the t of values binary. (s, n) says which
 * of two documents is newer. h is the sum of the XXH3-64 of each field's element, so that their
 * order does not count: a document whose fields have another one was changed by another program.
 * A mark, which stands a while where a record was removed, has g: true in the place of r and a, and
 * no fields. */
#ifndef FB_MONGO_DOCUMENT_H
#define FB_MONGO_DOCUMENT_H

#include <bson/bson.h>

#include "io/documents/documents.h"

#define FB_MONGO_META    "_faberio"
#define FB_MONGO_VERSION 1

/* The most that a document may have: what a server takes less room for what it adds itself. */
#define FB_MONGO_DOCUMENT_MAX ((16u << 20) - (64u << 10))

/* An id where others see a UUID. */
void fb_mongo_append_id(bson_t *to, const char *key, fb_id id);

/* The _id of a record's document; false: it is no such one. */
bool fb_mongo_id_read(const bson_t *from, fb_id *out);

/* False: no document can hold it. *out is the caller's either way. */
bool fb_mongo_document_make(const fb_document_change *change, bson_t *out);

/* What was read; `out` borrows from `from` and from *values, which the caller frees.
 * FB_ERR_BAD_UUID: its _id is no record's. FB_ERR_NOT_FOUND: it is a mark. FB_ERR_STORE_DAMAGED,
 * FB_ERR_VERSION_NEWER. */
fb_status fb_mongo_document_read(const bson_t *from, fb_document *out, fb_document_value **values);

#endif
