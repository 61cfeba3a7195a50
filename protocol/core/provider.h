/* SPDX-License-Identifier: Apache-2.0 */
/* Cryptography as the core sees it: a table of functions, called synchronously.
 *
 * Private keys stay in the provider; the core holds handles. What must be secret (keys, invite
 * secrets, tokens) is drawn here and never from a seed. io/ has the libsodium provider; sim/ a fast
 * one of keyed hashes that is deterministic per node and gives no security.
 *
 * A recording keeps every output of a provider in the order of the calls, so that a replay needs no
 * key. Therefore no function here may be called from outside fb_node_step. */
#ifndef FB_CORE_PROVIDER_H
#define FB_CORE_PROVIDER_H

#include "protocol/base/error.h"
#include "protocol/base/types.h"

/* Names a private key inside the provider; 0 is no key. */
typedef uint64_t fb_key_handle;

typedef struct fb_provider {
    void *user;

    /* Ed25519. The public half of a signing key handle. */
    fb_status (*public_key)(void *user, fb_key_handle key, fb_b32 *out);
    /* Deterministic Ed25519 signature over the concatenation of the parts (at most 8). */
    fb_status (*sign)(void *user, fb_key_handle key, const fb_span *parts, size_t count,
                      fb_b64 *out);
    /* The strict rule of profile 1 (S < L, no small order, canonical, cofactorless). */
    bool (*verify)(void *user, const fb_b32 *public_key, const fb_span *parts, size_t count,
                   const fb_b64 *signature);
    /* A canonical encoding of a point of the prime-order subgroup: asked once, at enrolment. */
    bool (*point_is_valid)(void *user, const fb_b32 *public_key);

    /* X25519. The public half of a static or ephemeral handle. */
    fb_status (*dh_public)(void *user, fb_key_handle key, fb_b32 *out);
    /* A fresh ephemeral key pair; the handle is given back with dh_release. */
    fb_status (*dh_generate)(void *user, fb_key_handle *out);
    void (*dh_release)(void *user, fb_key_handle key);
    /* FB_ERR_KEY when the output would be all zero. */
    fb_status (*dh)(void *user, fb_key_handle key, const fb_b32 *peer, fb_b32 *out);

    /* SHA-256 of the concatenation (node ids). */
    void (*sha256)(void *user, const fb_span *parts, size_t count, fb_b32 *out);
    /* BLAKE2b with out_len 16..64, keyed when key.len is not 0 (at most 64). */
    void (*blake2b)(void *user, fb_span key, const fb_span *parts, size_t count, uint8_t *out,
                    size_t out_len);

    /* ChaCha20-Poly1305 (IETF) with the nonce of Noise: 4 zero bytes, then the counter in
     * little-endian. out has room for plain.len + 16 bytes; it may be plain.p itself. */
    void (*aead_seal)(void *user, const fb_b32 *key, uint64_t nonce, fb_span ad, fb_span plain,
                      uint8_t *out);
    /* out has room for sealed.len - 16 bytes and may be sealed.p itself. False, and nothing of use
     * in out, when the tag does not match or sealed is shorter than 16. */
    bool (*aead_open)(void *user, const fb_b32 *key, uint64_t nonce, fb_span ad, fb_span sealed,
                      uint8_t *out);

    /* len secret random bytes (invite secrets, tokens, leaf salts). */
    fb_status (*secret)(void *user, uint8_t *out, size_t len);
} fb_provider;

#endif
