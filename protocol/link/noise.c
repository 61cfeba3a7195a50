/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/link/noise.h"

#include "protocol/base/assert.h"

#define HMAC_BLOCK 128u /* BLAKE2b's block, to which HMAC pads its key */

static const char protocol_name[] = "Noise_XX_25519_ChaChaPoly_BLAKE2b";
_Static_assert(sizeof protocol_name - 1 <= FB_NOISE_HASH, "a longer name would be hashed first");

/* A loop that the compiler may not drop although nobody reads the memory afterwards. */
static void wipe(void *memory, size_t len)
{
    volatile uint8_t *p = (volatile uint8_t *)memory;
    for (size_t i = 0; i < len; i++) p[i] = 0;
}

static void hash(const fb_provider *provider, const fb_span *parts, size_t count, uint8_t *out)
{
    provider->blake2b(provider->user, fb_span_of(NULL, 0), parts, count, out, FB_NOISE_HASH);
}

/* HMAC (RFC 2104) of at most two spans, with a key of HASHLEN bytes: BLAKE2b's own keyed mode is
 * another function, and Noise 4.3 asks for this one. */
static void hmac(const fb_provider *provider, const uint8_t key[FB_NOISE_HASH], fb_span first,
                 fb_span second, uint8_t out[FB_NOISE_HASH])
{
    uint8_t pad[HMAC_BLOCK];
    uint8_t inner[FB_NOISE_HASH];
    for (size_t i = 0; i < HMAC_BLOCK; i++) {
        pad[i] = (uint8_t)((i < FB_NOISE_HASH ? key[i] : 0) ^ 0x36);
    }
    const fb_span inside[3] = {fb_span_of(pad, sizeof pad), first, second};
    hash(provider, inside, 3, inner);
    for (size_t i = 0; i < HMAC_BLOCK; i++) pad[i] ^= 0x36 ^ 0x5c;
    const fb_span outside[2] = {fb_span_of(pad, sizeof pad), fb_span_of(inner, sizeof inner)};
    hash(provider, outside, 2, out);
    wipe(pad, sizeof pad);
    wipe(inner, sizeof inner);
}

/* Noise 4.3 HKDF with two outputs; out1 may be the chaining key itself. */
static void hkdf(const fb_provider *provider, const uint8_t ck[FB_NOISE_HASH], fb_span input,
                 uint8_t out1[FB_NOISE_HASH], uint8_t out2[FB_NOISE_HASH])
{
    static const uint8_t one = 1, two = 2;
    uint8_t temp[FB_NOISE_HASH];
    hmac(provider, ck, input, fb_span_of(NULL, 0), temp);
    hmac(provider, temp, fb_span_of(&one, 1), fb_span_of(NULL, 0), out1);
    hmac(provider, temp, fb_span_of(out1, FB_NOISE_HASH), fb_span_of(&two, 1), out2);
    wipe(temp, sizeof temp);
}

fb_status fb_cipher_seal(fb_cipher *cipher, const fb_provider *provider, fb_span ad, fb_span plain,
                         uint8_t *out)
{
    if (cipher->nonce == UINT64_MAX) return FB_ERR_LIMIT;
    provider->aead_seal(provider->user, &cipher->key, cipher->nonce, ad, plain, out);
    cipher->nonce++;
    return FB_OK;
}

fb_status fb_cipher_open(fb_cipher *cipher, const fb_provider *provider, fb_span ad, fb_span sealed,
                         uint8_t *out)
{
    if (cipher->nonce == UINT64_MAX) return FB_ERR_LIMIT;
    if (sealed.len < FB_NOISE_TAG) return FB_ERR_LINK_RECORD;
    if (!provider->aead_open(provider->user, &cipher->key, cipher->nonce, ad, sealed, out)) {
        return FB_ERR_LINK_RECORD;
    }
    cipher->nonce++;
    return FB_OK;
}

void fb_cipher_rekey(fb_cipher *cipher, const fb_provider *provider)
{
    uint8_t out[sizeof cipher->key.b + FB_NOISE_TAG] = {0};
    provider->aead_seal(provider->user, &cipher->key, UINT64_MAX, fb_span_of(NULL, 0),
                        fb_span_of(out, sizeof cipher->key.b), out);
    memcpy(cipher->key.b, out, sizeof cipher->key.b);
    wipe(out, sizeof out);
}

void fb_cipher_wipe(fb_cipher *cipher)
{
    wipe(cipher, sizeof *cipher);
}

static void mix_hash(fb_handshake *hs, const fb_provider *provider, fb_span data)
{
    const fb_span parts[2] = {fb_span_of(hs->h, sizeof hs->h), data};
    uint8_t out[FB_NOISE_HASH];
    hash(provider, parts, 2, out);
    memcpy(hs->h, out, sizeof out);
}

static void mix_key(fb_handshake *hs, const fb_provider *provider, const fb_b32 *input)
{
    uint8_t temp_k[FB_NOISE_HASH];
    hkdf(provider, hs->ck, fb_span_of(input->b, sizeof input->b), hs->ck, temp_k);
    memcpy(hs->cipher.key.b, temp_k, sizeof hs->cipher.key.b);
    hs->cipher.nonce = 0;
    hs->has_key = true;
    wipe(temp_k, sizeof temp_k);
}

/* MP-7-9 */
static fb_status mix_dh(fb_handshake *hs, const fb_provider *provider, fb_key_handle key,
                        const fb_b32 *peer)
{
    fb_b32 shared;
    fb_status status = provider->dh(provider->user, key, peer, &shared);
    if (status == FB_OK) mix_key(hs, provider, &shared);
    wipe(&shared, sizeof shared);
    return status;
}

/* The Diffie-Hellman tokens, named as in Noise 7: first letter the initiator's key, second the
 * responder's. */
static fb_status mix_ee(fb_handshake *hs, const fb_provider *provider)
{
    return mix_dh(hs, provider, hs->ephemeral, &hs->remote_ephemeral);
}

static fb_status mix_es(fb_handshake *hs, const fb_provider *provider)
{
    return hs->initiator ? mix_dh(hs, provider, hs->ephemeral, &hs->remote_static)
                         : mix_dh(hs, provider, hs->static_key, &hs->remote_ephemeral);
}

static fb_status mix_se(fb_handshake *hs, const fb_provider *provider)
{
    return hs->initiator ? mix_dh(hs, provider, hs->static_key, &hs->remote_ephemeral)
                         : mix_dh(hs, provider, hs->ephemeral, &hs->remote_static);
}

/* Noise 5.2 EncryptAndHash, appended to out, which has room. */
static fb_status encrypt_and_hash(fb_handshake *hs, const fb_provider *provider, fb_span plain,
                                  fb_writer *out)
{
    size_t len = plain.len + (hs->has_key ? FB_NOISE_TAG : 0);
    uint8_t *room = fb_write_room(out, len);
    FB_ASSERT(room != NULL);
    if (hs->has_key) {
        FB_TRY(fb_cipher_seal(&hs->cipher, provider, fb_span_of(hs->h, sizeof hs->h), plain, room));
    } else if (len != 0) {
        memcpy(room, plain.p, len);
    }
    mix_hash(hs, provider, fb_span_of(room, len));
    return FB_OK;
}

/* Noise 5.2 DecryptAndHash, appended to out. */
static fb_status decrypt_and_hash(fb_handshake *hs, const fb_provider *provider, fb_span sealed,
                                  fb_writer *out)
{
    size_t tag = hs->has_key ? FB_NOISE_TAG : 0;
    if (sealed.len < tag) return FB_ERR_LINK_HANDSHAKE;
    uint8_t nothing[1]; /* an empty payload needs no buffer of the caller's */
    uint8_t *room = nothing;
    if (sealed.len != tag) {
        room = fb_write_room(out, sealed.len - tag);
        if (room == NULL) return FB_ERR_NO_SPACE;
    }
    if (hs->has_key) {
        fb_span ad = fb_span_of(hs->h, sizeof hs->h);
        if (fb_cipher_open(&hs->cipher, provider, ad, sealed, room) != FB_OK) {
            return FB_ERR_LINK_HANDSHAKE;
        }
    } else if (sealed.len != 0) {
        memcpy(room, sealed.p, sealed.len);
    }
    mix_hash(hs, provider, sealed);
    return FB_OK;
}

void fb_handshake_begin(fb_handshake *hs, const fb_provider *provider, bool initiator,
                        fb_key_handle static_key, fb_span prologue)
{
    memset(hs, 0, sizeof *hs);
    memcpy(hs->h, protocol_name, sizeof protocol_name - 1);
    memcpy(hs->ck, hs->h, sizeof hs->ck);
    hs->initiator = initiator;
    hs->static_key = static_key;
    mix_hash(hs, provider, prologue);
}

bool fb_handshake_done(const fb_handshake *hs)
{
    return !hs->failed && hs->messages == FB_NOISE_XX_MESSAGES;
}

static bool is_turn(const fb_handshake *hs, bool own)
{
    bool initiators = hs->messages % 2 == 0;
    return !hs->failed && hs->messages < FB_NOISE_XX_MESSAGES &&
           (initiators == hs->initiator) == own;
}

bool fb_handshake_writes(const fb_handshake *hs)
{
    return is_turn(hs, true);
}

size_t fb_handshake_overhead(const fb_handshake *hs)
{
    switch (hs->messages) {
    case 0:
        return FB_NOISE_XX_1;
    case 1:
        return FB_NOISE_XX_2;
    default:
        return FB_NOISE_XX_3;
    }
}

static fb_status write_ephemeral(fb_handshake *hs, const fb_provider *provider, fb_writer *out)
{
    fb_b32 public_key;
    FB_TRY(provider->dh_generate(provider->user, &hs->ephemeral));
    FB_TRY(provider->dh_public(provider->user, hs->ephemeral, &public_key));
    fb_write_b32(out, public_key);
    mix_hash(hs, provider, fb_span_of(public_key.b, sizeof public_key.b));
    return FB_OK;
}

static fb_status write_static(fb_handshake *hs, const fb_provider *provider, fb_writer *out)
{
    fb_b32 public_key;
    FB_TRY(provider->dh_public(provider->user, hs->static_key, &public_key));
    return encrypt_and_hash(hs, provider, fb_span_of(public_key.b, sizeof public_key.b), out);
}

static fb_status write_tokens(fb_handshake *hs, const fb_provider *provider, fb_writer *out)
{
    switch (hs->messages) {
    case 0:
        return write_ephemeral(hs, provider, out);
    case 1:
        FB_TRY(write_ephemeral(hs, provider, out));
        FB_TRY(mix_ee(hs, provider));
        FB_TRY(write_static(hs, provider, out));
        return mix_es(hs, provider);
    default:
        FB_TRY(write_static(hs, provider, out));
        return mix_se(hs, provider);
    }
}

/* MP-7-6 */
fb_status fb_handshake_write(fb_handshake *hs, const fb_provider *provider, fb_span payload,
                             fb_writer *out)
{
    if (!is_turn(hs, true)) return FB_ERR_LINK_HANDSHAKE;
    size_t overhead = fb_handshake_overhead(hs);
    if (payload.len > FB_NOISE_MESSAGE_MAX - overhead) return FB_ERR_NO_SPACE;
    if (out->failed || overhead + payload.len > out->cap - out->at) return FB_ERR_NO_SPACE;
    fb_status status = write_tokens(hs, provider, out);
    if (status == FB_OK) status = encrypt_and_hash(hs, provider, payload, out);
    hs->failed = status != FB_OK;
    if (status == FB_OK) hs->messages++;
    return status;
}

static fb_status read_ephemeral(fb_handshake *hs, const fb_provider *provider, fb_reader *in)
{
    hs->remote_ephemeral = fb_read_b32(in);
    if (in->failed) return FB_ERR_LINK_HANDSHAKE;
    mix_hash(hs, provider, fb_span_of(hs->remote_ephemeral.b, sizeof hs->remote_ephemeral.b));
    return FB_OK;
}

static fb_status read_static(fb_handshake *hs, const fb_provider *provider, fb_reader *in)
{
    fb_span sealed = fb_read_bytes(in, sizeof hs->remote_static.b + FB_NOISE_TAG);
    if (in->failed) return FB_ERR_LINK_HANDSHAKE;
    fb_writer out = fb_writer_of(hs->remote_static.b, sizeof hs->remote_static.b);
    return decrypt_and_hash(hs, provider, sealed, &out);
}

static fb_status read_tokens(fb_handshake *hs, const fb_provider *provider, fb_reader *in)
{
    switch (hs->messages) {
    case 0:
        return read_ephemeral(hs, provider, in);
    case 1:
        FB_TRY(read_ephemeral(hs, provider, in));
        FB_TRY(mix_ee(hs, provider));
        FB_TRY(read_static(hs, provider, in));
        return mix_es(hs, provider);
    default:
        FB_TRY(read_static(hs, provider, in));
        return mix_se(hs, provider);
    }
}

fb_status fb_handshake_read(fb_handshake *hs, const fb_provider *provider, fb_span message,
                            fb_writer *payload)
{
    if (!is_turn(hs, false) || message.len > FB_NOISE_MESSAGE_MAX) {
        hs->failed = true;
        return FB_ERR_LINK_HANDSHAKE;
    }
    fb_reader in = fb_reader_of(message);
    fb_status status = read_tokens(hs, provider, &in);
    if (status == FB_OK) {
        fb_span rest = fb_read_bytes(&in, fb_reader_left(&in));
        status = decrypt_and_hash(hs, provider, rest, payload);
    }
    hs->failed = status != FB_OK;
    if (status == FB_OK) hs->messages++;
    return status;
}

void fb_handshake_split(fb_handshake *hs, const fb_provider *provider, fb_cipher *send,
                        fb_cipher *receive)
{
    FB_ASSERT(fb_handshake_done(hs));
    uint8_t k1[FB_NOISE_HASH];
    uint8_t k2[FB_NOISE_HASH];
    hkdf(provider, hs->ck, fb_span_of(NULL, 0), k1, k2);
    fb_cipher *first = hs->initiator ? send : receive;
    fb_cipher *second = hs->initiator ? receive : send;
    memcpy(first->key.b, k1, sizeof first->key.b);
    memcpy(second->key.b, k2, sizeof second->key.b);
    first->nonce = 0;
    second->nonce = 0;
    wipe(k1, sizeof k1);
    wipe(k2, sizeof k2);
    fb_handshake_wipe(hs, provider);
}

void fb_handshake_wipe(fb_handshake *hs, const fb_provider *provider)
{
    if (hs->ephemeral != 0) provider->dh_release(provider->user, hs->ephemeral);
    hs->ephemeral = 0;
    wipe(hs->ck, sizeof hs->ck);
    fb_cipher_wipe(&hs->cipher);
}
