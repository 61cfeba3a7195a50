/* SPDX-License-Identifier: Apache-2.0 */
/* The short name of a public key: the first 16 bytes of SHA-256 over a label and the key
 * (profile 1). Whatever decides trust compares full keys. */
#ifndef FB_CORE_NODE_ID_H
#define FB_CORE_NODE_ID_H

#include "protocol/core/provider.h"

static inline fb_id fb_node_id(const fb_provider *provider, fb_b32 public_key)
{
    static const char label[] = "faberio-node-id-v1"; /* with the zero byte that ends it */
    const fb_span parts[2] = {fb_span_of(label, sizeof label),
                              fb_span_of(public_key.b, sizeof public_key.b)};
    fb_b32 hash;
    fb_id id;
    provider->sha256(provider->user, parts, 2, &hash);
    memcpy(id.b, hash.b, sizeof id.b);
    return id;
}

#endif
