/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/link/binding.h"

/* The terminating zeros of the literals are part of the labels. */
static const char binding_label[] = "faberio-binding-v1";
static const char invite_label[] = "faberio-invite-v1";

#define HASH_BYTES   64u
#define SIGNED_PARTS 5u

/* What a binding's signature covers, as spans into the arguments and `fixed`. */
typedef struct signed_bytes {
    uint8_t role;
    uint8_t incarnation[8];
    fb_span parts[SIGNED_PARTS];
} signed_bytes;

/* MP-1-8, MP-7-7 */
static void signed_bytes_of(signed_bytes *s, fb_link_role role, const uint8_t hash[64],
                            const fb_b32 *link_static, uint64_t incarnation)
{
    s->role = (uint8_t)role;
    fb_store_be(s->incarnation, incarnation, sizeof s->incarnation);
    s->parts[0] = fb_span_of(binding_label, sizeof binding_label);
    s->parts[1] = fb_span_of(&s->role, 1);
    s->parts[2] = fb_span_of(hash, HASH_BYTES);
    s->parts[3] = fb_span_of(link_static->b, sizeof link_static->b);
    s->parts[4] = fb_span_of(s->incarnation, sizeof s->incarnation);
}

fb_status fb_binding_write(const fb_provider *provider, fb_key_handle identity, fb_link_role role,
                           const uint8_t hash[64], const fb_b32 *link_static, uint64_t incarnation,
                           fb_writer *out)
{
    signed_bytes s;
    fb_b32 public_key;
    fb_b64 signature;
    signed_bytes_of(&s, role, hash, link_static, incarnation);
    FB_TRY(provider->public_key(provider->user, identity, &public_key));
    FB_TRY(provider->sign(provider->user, identity, s.parts, SIGNED_PARTS, &signature));
    fb_write_b32(out, public_key);
    fb_write_u64(out, incarnation);
    fb_write_bytes(out, signature.b, sizeof signature.b);
    return out->failed ? FB_ERR_NO_SPACE : FB_OK;
}

fb_status fb_binding_read(const fb_provider *provider, fb_link_role role, const uint8_t hash[64],
                          const fb_b32 *link_static, fb_span bytes, fb_binding *out)
{
    fb_binding b;
    fb_b64 signature;
    fb_reader in = fb_reader_of(bytes);
    b.public_key = fb_read_b32(&in);
    b.incarnation = fb_read_u64(&in);
    fb_read_into(&in, signature.b, sizeof signature.b);
    if (!fb_reader_done(&in) || b.incarnation == 0) return FB_ERR_LINK_BINDING;

    signed_bytes s;
    signed_bytes_of(&s, role, hash, link_static, b.incarnation);
    if (!provider->verify(provider->user, &b.public_key, s.parts, SIGNED_PARTS, &signature)) {
        return FB_ERR_LINK_BINDING;
    }
    *out = b;
    return FB_OK;
}

/* MP-7-14 */
void fb_invite_proof(const fb_provider *provider, const fb_b32 *secret, fb_link_role role,
                     fb_id invite, const uint8_t hash[64], fb_b32 *out)
{
    const uint8_t role_byte = (uint8_t)role;
    const fb_span parts[4] = {
        fb_span_of(invite_label, sizeof invite_label),
        fb_span_of(&role_byte, 1),
        fb_span_of(invite.b, sizeof invite.b),
        fb_span_of(hash, HASH_BYTES),
    };
    provider->blake2b(provider->user, fb_span_of(secret->b, sizeof secret->b), parts, 4, out->b,
                      sizeof out->b);
}

bool fb_proof_equal(const fb_b32 *a, const fb_b32 *b)
{
    uint8_t difference = 0;
    for (size_t i = 0; i < sizeof a->b; i++) difference |= (uint8_t)(a->b[i] ^ b->b[i]);
    return difference == 0;
}
