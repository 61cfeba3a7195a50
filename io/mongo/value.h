/* SPDX-License-Identifier: Apache-2.0 */
/* JSON texts as BSON values, and names of fields that every tool takes.
 *
 * true, false, null, strings, arrays, objects: the same. An integer is a 64-bit one; any other
 * number, and an integer beyond 64 bits, a double. What is nested deeper than FB_MONGO_DEPTH_MAX is
 * a string that holds the text. In names, "%" is "%25", "." "%2E", a "$" in front "%24", a zero
 * byte "%00", and the first byte of what would be "_id" or "_faberio" at the top "%5F"; nothing
 * else changes. So two names stay two, and a name is read back by turning every %XX into its byte.
 */
#ifndef FB_MONGO_VALUE_H
#define FB_MONGO_VALUE_H

#include <bson/bson.h>

#include "protocol/base/types.h"

/* Below what a server takes, the document around it counted. */
#define FB_MONGO_DEPTH_MAX 80u

/* Appends the value; `top`: the name is one of the document's own. False: it does not fit. */
bool fb_mongo_append(bson_t *to, fb_span name, bool top, fb_span json);

/* What a name stands for, into out, which has as many bytes as the name; its length. */
size_t fb_mongo_name(const char *key, char *out);

#endif
