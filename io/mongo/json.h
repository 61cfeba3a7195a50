/* SPDX-License-Identifier: Apache-2.0 */
/* BSON values as JSON values, and which of those are equal. For text.c and edits.c only. */
#ifndef FB_MONGO_JSON_H
#define FB_MONGO_JSON_H

#include <bson/bson.h>
#include <jansson.h>

/* What another program put there; the caller's. NULL: no JSON value is so (a date, a number that is
 * none, text that is not UTF-8, nested too deep), or no memory. */
json_t *fb_mongo_json(const bson_iter_t *value);
/* Its compact text, which the caller frees; NULL without memory. */
char *fb_mongo_json_text(const json_t *value);
/* What a program leaves that read the one and wrote it again: numbers by their value, whatever
 * type or spelling they have, the members of objects in any order. */
bool fb_mongo_json_same(const json_t *a, const json_t *b);

#endif
