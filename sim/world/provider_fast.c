/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/provider_fast.h"

#include "protocol/base/assert.h"
#include "protocol/base/mix.h"
#include "protocol/base/word.h"
#include "sim/weather/lies.h"
#include "sim/world/streams.h"

/* What ties a public key to its private half. Nothing outside this file uses these numbers. */
#define SIGN_SEED  UINT64_C(0x5a31d7c08e64f92b)
#define POINT_SEED UINT64_C(0x1f8b6c42d09e73a5)
#define DH_SEED    UINT64_C(0xc94e27a1365fd80b)
#define SHA_SEED   UINT64_C(0x73b0e85d92c61f4a)
#define BLAKE_SEED UINT64_C(0xe2759c1b4fa0368d)
#define SEAL_SEED  UINT64_C(0x08d3fb962e71ca54)

/* Stretches 128 bits to `words` words of 64. */
static void stretch(fb_hash128 h, uint8_t *out, size_t words)
{
    uint64_t a = h.lo, b = h.hi;
    for (size_t i = 0; i < words; i++) {
        a = (a ^ (b >> 29)) * UINT64_C(0x9fb21c651e98df25) + i;
        b = (b ^ (a >> 31)) * UINT64_C(0xd6e8feb86659fd93) + 1;
        fb_word_store(out + 8 * i, a ^ b);
    }
}

/* One text as one span: borrowed when it is one part, else gathered. */
static fb_span gather(const fb_sim_provider *provider, const fb_span *parts, size_t count)
{
    if (count == 1) return parts[0];
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        FB_ASSERT(parts[i].len <= FB_SIM_PROVIDER_TEXT_MAX - len);
        fb_copy(provider->scratch + len, parts[i].p, parts[i].len);
        len += parts[i].len;
    }
    return fb_span_of(provider->scratch, len);
}

/* A hash under a key. XXH3 spreads a seed over its whole secret for each long text; so those are
 * hashed plainly first. */
static fb_hash128 keyed_hash(const uint8_t *p, size_t len, uint64_t key)
{
    if (len <= 240) return fb_xxh128(p, len, key);
    fb_hash128 plain = fb_xxh128(p, len, 0);
    uint8_t block[24];
    fb_word_store(block, plain.lo);
    fb_word_store(block + 8, plain.hi);
    fb_word_store(block + 16, len);
    return fb_xxh128(block, sizeof block, key);
}

static fb_hash128 hash_parts(const fb_sim_provider *provider, const fb_span *parts, size_t count,
                             uint64_t seed)
{
    fb_span text = gather(provider, parts, count);
    return keyed_hash(text.p, text.len, seed);
}

/* A public key: 24 bytes of the seed and 8 that show that this file made it. */
static fb_b32 point_of(fb_seed seed, uint64_t key)
{
    fb_b32 point;
    stretch((fb_hash128){seed.lo ^ key, seed.hi + key}, point.b, 3);
    fb_word_store(point.b + 24, fb_xxh64(point.b, 24, POINT_SEED));
    return point;
}

static bool is_point(const fb_b32 *point)
{
    return fb_word_load(point->b + 24) == fb_xxh64(point->b, 24, POINT_SEED);
}

fb_b32 fb_sim_provider_public(const fb_sim_provider *provider, fb_key_handle key)
{
    if (key == FB_SIM_KEY_IDENTITY) return provider->public_key;
    if (key == FB_SIM_KEY_LINK) return provider->link_key;
    return point_of(provider->secrets, key);
}

static fb_status public_key(void *user, fb_key_handle key, fb_b32 *out)
{
    if (key != FB_SIM_KEY_IDENTITY) return FB_ERR_KEY;
    *out = ((const fb_sim_provider *)user)->public_key;
    return FB_OK;
}

/* What only this file makes of a key: the key of a hash. */
static uint64_t key_of(const fb_b32 *key, uint64_t seed, uint64_t more)
{
    fb_mix mix = {seed, more};
    fb_mix_take(&mix, fb_word_load(key->b), fb_word_load(key->b + 8));
    fb_mix_take(&mix, fb_word_load(key->b + 16), fb_word_load(key->b + 24));
    return mix.a ^ mix.b;
}

static void signature_of(const fb_sim_provider *provider, const fb_b32 *signer,
                         const fb_span *parts, size_t count, fb_b64 *out)
{
    fb_span text = gather(provider, parts, count);
    stretch(fb_mix128(text.p, text.len, key_of(signer, SIGN_SEED, 0)), out->b, 8);
}

void fb_sim_provider_recover(const fb_sim_provider *provider, fb_span text, fb_b64 *out)
{
    fb_b32 key = fb_sim_provider_public(provider, FB_SIM_KEY_RECOVERY);
    signature_of(provider, &key, &text, 1, out);
}

static fb_status sign(void *user, fb_key_handle key, const fb_span *parts, size_t count,
                      fb_b64 *out)
{
    const fb_sim_provider *provider = user;
    if (key != FB_SIM_KEY_IDENTITY) return FB_ERR_KEY;
    signature_of(provider, &provider->public_key, parts, count, out);
    return FB_OK;
}

static bool verify(void *user, const fb_b32 *signer, const fb_span *parts, size_t count,
                   const fb_b64 *signature)
{
    if (!is_point(signer)) return false;
    fb_b64 expected;
    signature_of(user, signer, parts, count, &expected);
    return memcmp(expected.b, signature->b, sizeof expected.b) == 0;
}

static bool point_is_valid(void *user, const fb_b32 *key)
{
    (void)user;
    return is_point(key);
}

static fb_status dh_public(void *user, fb_key_handle key, fb_b32 *out)
{
    const fb_sim_provider *provider = user;
    if (key != FB_SIM_KEY_LINK && key <= FB_SIM_KEY_EPHEMERAL) return FB_ERR_KEY;
    *out = fb_sim_provider_public(provider, key);
    return FB_OK;
}

static fb_status dh_generate(void *user, fb_key_handle *out)
{
    fb_sim_provider *provider = user;
    *out = FB_SIM_KEY_EPHEMERAL + ++provider->ephemeral_count;
    return FB_OK;
}

static void dh_release(void *user, fb_key_handle key)
{
    (void)user;
    (void)key;
}

static fb_status dh(void *user, fb_key_handle key, const fb_b32 *peer, fb_b32 *out)
{
    fb_b32 own;
    FB_TRY(dh_public(user, key, &own));
    static const fb_b32 zero = {{0}};
    if (fb_b32_equal(*peer, zero)) return FB_ERR_KEY;
    /* Both ends hash the two public halves in one order. */
    bool own_first = memcmp(own.b, peer->b, sizeof own.b) < 0;
    uint8_t both[64];
    memcpy(both, own_first ? own.b : peer->b, 32);
    memcpy(both + 32, own_first ? peer->b : own.b, 32);
    stretch(fb_xxh128(both, sizeof both, DH_SEED), out->b, 4);
    return FB_OK;
}

static void sha256(void *user, const fb_span *parts, size_t count, fb_b32 *out)
{
    stretch(hash_parts(user, parts, count, SHA_SEED), out->b, 4);
}

static void blake2b(void *user, fb_span key, const fb_span *parts, size_t count, uint8_t *out,
                    size_t out_len)
{
    FB_ASSERT(out_len >= 16 && out_len <= 64 && key.len <= 64);
    uint64_t seed = BLAKE_SEED + out_len;
    if (key.len != 0) seed = fb_xxh64(key.p, key.len, seed);
    uint8_t full[64];
    stretch(hash_parts(user, parts, count, seed), full, 8);
    memcpy(out, full, out_len);
}

static fb_hash128 tag_of(const fb_b32 *key, uint64_t nonce, fb_span ad, const uint8_t *plain,
                         size_t len)
{
    uint64_t seed = key_of(key, SEAL_SEED, nonce);
    if (ad.len != 0) seed = fb_xxh64(ad.p, ad.len, seed);
    return fb_mix128(plain, len, seed);
}

static void aead_seal(void *user, const fb_b32 *key, uint64_t nonce, fb_span ad, fb_span plain,
                      uint8_t *out)
{
    fb_sim_provider *provider = user;
    if (plain.len != 0 && out != plain.p) memmove(out, plain.p, plain.len);
    if (provider->lies != 0) fb_sim_lie(provider, out, plain.len);
    if (provider->read != NULL && ad.len == 0) {
        provider->read(provider->reader, false, fb_span_of(out, plain.len));
    }
    fb_hash128 tag = tag_of(key, nonce, ad, out, plain.len);
    fb_word_store(out + plain.len, tag.lo);
    fb_word_store(out + plain.len + 8, tag.hi);
}

static bool aead_open(void *user, const fb_b32 *key, uint64_t nonce, fb_span ad, fb_span sealed,
                      uint8_t *out)
{
    const fb_sim_provider *provider = user;
    if (sealed.len < 16) return false;
    size_t len = sealed.len - 16;
    fb_hash128 tag = tag_of(key, nonce, ad, sealed.p, len);
    if (fb_word_load(sealed.p + len) != tag.lo || fb_word_load(sealed.p + len + 8) != tag.hi)
        return false;
    if (len != 0 && out != sealed.p) memmove(out, sealed.p, len);
    if (provider->read != NULL && ad.len == 0) {
        provider->read(provider->reader, true, fb_span_of(out, len));
    }
    return true;
}

static fb_status secret(void *user, uint8_t *out, size_t len)
{
    fb_sim_provider *provider = user;
    for (size_t at = 0; at < len; at += 8) {
        uint8_t word[8];
        fb_word_store(
            word, fb_draw(provider->secrets, FB_SIM_STREAM_SECRET, 0, provider->secret_count++));
        memcpy(out + at, word, len - at < 8 ? len - at : 8);
    }
    return FB_OK;
}

void fb_sim_provider_init(fb_sim_provider *provider, fb_seed identity, fb_seed secrets,
                          uint8_t *scratch)
{
    *provider = (fb_sim_provider){
        .table =
            {
                .user = provider,
                .public_key = public_key,
                .sign = sign,
                .verify = verify,
                .point_is_valid = point_is_valid,
                .dh_public = dh_public,
                .dh_generate = dh_generate,
                .dh_release = dh_release,
                .dh = dh,
                .sha256 = sha256,
                .blake2b = blake2b,
                .aead_seal = aead_seal,
                .aead_open = aead_open,
                .secret = secret,
            },
        .identity = identity,
        .secrets = secrets,
        .public_key = point_of(identity, FB_SIM_KEY_IDENTITY),
        .link_key = point_of(identity, FB_SIM_KEY_LINK),
        .scratch = scratch,
    };
}
