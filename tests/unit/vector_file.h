/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors as lines of JSON (docs/VECTORS.md): lines, and bytes in their notation. */
#ifndef FB_TESTS_VECTOR_FILE_H
#define FB_TESTS_VECTOR_FILE_H

#include <jansson.h>

#include "protocol/base/types.h"

/* Calls `each` for every line of a file below the source folder; the first is number 1. Returns how
 * many there are. */
size_t vector_file_each(const char *path, void (*each)(void *user, size_t line, const json_t *row),
                        void *user);

/* The bytes of a list of parts, in a heap block of their size: free(). */
uint8_t *vector_bytes(const json_t *parts, size_t *len);

/* A member that must be there and be a text. */
const char *vector_text(const json_t *object, const char *name);
/* The bytes of a member in hex, which must have so many. */
void vector_hex(const json_t *object, const char *name, uint8_t *out, size_t len);

#endif
