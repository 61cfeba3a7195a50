/* SPDX-License-Identifier: Apache-2.0 */
/* The short name of a public key, for planes that hold the key by value. */
#ifndef FB_CORE_NODE_ID_H
#define FB_CORE_NODE_ID_H

#include "protocol/identity/identity.h"

/* MP-1-1 */
static inline fb_id fb_node_id(const fb_provider *provider, fb_b32 public_key)
{
    return fb_node_id_of(provider, &public_key);
}

#endif
