/* SPDX-License-Identifier: Apache-2.0 */
/* Who a node is (profile 1): its Ed25519 key, the 16-byte id made from it, and words by which
 * people compare keys. Trust is always decided by the full key, never by the id alone. */
#ifndef FB_IDENTITY_IDENTITY_H
#define FB_IDENTITY_IDENTITY_H

#include "protocol/core/provider.h"

#define FB_NODE_ID_LABEL "faberio-node-id-v1" /* hashed with its terminating zero byte */

/* The first 16 bytes of SHA-256 over the label, a zero byte and the public key. */
fb_id fb_node_id_of(const fb_provider *provider, const fb_b32 *public_key);

/* Whether a key may be enrolled: the canonical encoding of a point of the prime-order subgroup.
 * FB_ERR_KEY if not. Asked once, when a member is added. */
fb_status fb_identity_enrol_check(const fb_provider *provider, const fb_b32 *public_key);

/* Ten words of four letters with hyphens between them, and a terminating zero. */
#define FB_FINGERPRINT_WORDS 10
#define FB_FINGERPRINT_BYTES (FB_FINGERPRINT_WORDS * 5)

/* 80 bits of SHA-256 over "faberio-fingerprint-v1", a zero byte and the public key, one word a
 * byte. The 256 words are built by rule: the high nibble chooses the first of two syllables and the
 * low nibble the second, from two lists of 16 that are easy to tell apart when read aloud. */
void fb_fingerprint(const fb_provider *provider, const fb_b32 *public_key,
                    char out[FB_FINGERPRINT_BYTES]);

#endif
