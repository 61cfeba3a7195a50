/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a handshake: the binding, which ties the Ed25519 node key to the Noise
 * session by a signature over its hash, and the invite proof. profile 7.
 *
 * The signature covers the handshake hash, so a leaked binding is of no use in another session. */
#ifndef FB_LINK_BINDING_H
#define FB_LINK_BINDING_H

#include "protocol/base/cursor.h"
#include "protocol/base/error.h"
#include "protocol/core/provider.h"

#define FB_BINDING_BYTES      (32u + 8u + 64u) /* public key, incarnation, signature */
#define FB_INVITE_PROOF_BYTES 32u

typedef enum fb_link_role {
    FB_LINK_DIALER = 1,
    FB_LINK_ACCEPTOR = 2,
} fb_link_role;

/* What a verified binding says. */
typedef struct fb_binding {
    fb_b32 public_key; /* Ed25519, the whole key, never only the node id */
    uint64_t incarnation;
} fb_binding;

/* Appends one's own binding: FB_BINDING_BYTES. `link_static` is the public half of one's own Noise
 * key, `hash` the final handshake hash. FB_ERR_NO_SPACE, and errors of the provider. */
fb_status fb_binding_write(const fb_provider *provider, fb_key_handle identity, fb_link_role role,
                           const uint8_t hash[64], const fb_b32 *link_static, uint64_t incarnation,
                           fb_writer *out);

/* Verifies the binding of a peer in `role`. `link_static` is the Noise key that the handshake
 * proved. FB_ERR_LINK_BINDING: wrong length, incarnation 0 or a signature that does not verify;
 * *out is unchanged. */
fb_status fb_binding_read(const fb_provider *provider, fb_link_role role, const uint8_t hash[64],
                          const fb_b32 *link_static, fb_span bytes, fb_binding *out);

/* BLAKE2b-256 keyed with the invite's secret over "faberio-invite-v1" 0x00, role, invite id and
 * handshake hash: proves that one holds the secret without showing it. */
void fb_invite_proof(const fb_provider *provider, const fb_b32 *secret, fb_link_role role,
                     fb_id invite, const uint8_t hash[64], fb_b32 *out);

/* Comparison whose time does not depend on where the bytes differ. */
bool fb_proof_equal(const fb_b32 *a, const fb_b32 *b);

#endif
