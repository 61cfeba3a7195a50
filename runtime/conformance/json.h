/* SPDX-License-Identifier: Apache-2.0 */
/* Members of the adapter protocol's objects. Readers are false for a member that is missing or has
 * another form. */
#ifndef FB_RUNTIME_CONFORMANCE_JSON_H
#define FB_RUNTIME_CONFORMANCE_JSON_H

#include <jansson.h>

#include "protocol/base/types.h"

bool fb_adapter_integer(const json_t *object, const char *name, int64_t *out);
/* Bytes in lowercase hex, in a heap block of their size: free(). */
bool fb_adapter_bytes(const json_t *object, const char *name, uint8_t **out, size_t *len);
bool fb_adapter_bytes32(const json_t *object, const char *name, fb_b32 *out);
/* 32 hex digits; a UUID of version 7. */
bool fb_adapter_id(const json_t *object, const char *name, fb_id *out);
bool fb_adapter_uuid_of(const json_t *object, const char *name, fb_id *out);

json_t *fb_adapter_hex(fb_span bytes);
json_t *fb_adapter_uuid(fb_id id);

#endif
