/* SPDX-License-Identifier: Apache-2.0 */
#include "io/keys/provider_sodium.h"

#include <sodium.h>
#include <stdlib.h>

#include "protocol/base/cursor.h"
#include "protocol/base/hex.h"

typedef enum key_kind {
    KEY_NONE,
    KEY_SIGNING,
    KEY_DH,
} key_kind;

typedef struct key_slot {
    key_kind kind;
    fb_key_handle handle;
    uint8_t secret[64]; /* Ed25519: seed and public key; X25519: the first 32 bytes */
    fb_b32 public_key;
} key_slot;

struct fb_sodium {
    fb_provider provider;
    key_slot *slots; /* sodium_malloc: guard pages, kept out of swap and core dumps */
    size_t slots_max;
    size_t used;
    uint64_t next_serial;
    uint8_t *message; /* FB_SODIUM_MESSAGE_MAX bytes: the parts of one message, joined */
};

/* A handle is serial << 16 | slot: found at once, and never given twice. */
static key_slot *slot_of(fb_sodium *s, fb_key_handle key, key_kind kind)
{
    size_t at = (size_t)(key & 0xffff);
    if (key == 0 || at >= s->slots_max) return NULL;
    key_slot *slot = &s->slots[at];
    return slot->kind == kind && slot->handle == key ? slot : NULL;
}

static key_slot *slot_take(fb_sodium *s, key_kind kind)
{
    if (s->used == s->slots_max) return NULL;
    for (size_t i = 0; i < s->slots_max; i++) {
        key_slot *slot = &s->slots[i];
        if (slot->kind != KEY_NONE) continue;
        slot->kind = kind;
        slot->handle = s->next_serial++ << 16 | i;
        s->used++;
        return slot;
    }
    return NULL;
}

static void slot_release(fb_sodium *s, key_slot *slot)
{
    sodium_memzero(slot, sizeof *slot);
    s->used--;
}

/* One message of all parts. libsodium's detached functions want it in one piece; a single part is
 * used where it is. False when it is too long. */
static bool join(fb_sodium *s, const fb_span *parts, size_t count, fb_span *out)
{
    if (count == 1) {
        *out = parts[0];
        return parts[0].len <= FB_SODIUM_MESSAGE_MAX;
    }
    fb_writer w = fb_writer_of(s->message, FB_SODIUM_MESSAGE_MAX);
    for (size_t i = 0; i < count; i++) fb_write_span(&w, parts[i]);
    *out = (fb_span){s->message, w.at};
    return !w.failed;
}

static fb_status do_public_key(void *user, fb_key_handle key, fb_b32 *out)
{
    const key_slot *slot = slot_of(user, key, KEY_SIGNING);
    if (slot == NULL) return FB_ERR_KEY;
    *out = slot->public_key;
    return FB_OK;
}

static fb_status do_sign(void *user, fb_key_handle key, const fb_span *parts, size_t count,
                         fb_b64 *out)
{
    fb_sodium *s = user;
    const key_slot *slot = slot_of(s, key, KEY_SIGNING);
    if (slot == NULL) return FB_ERR_KEY;
    fb_span message;
    if (!join(s, parts, count, &message)) return FB_ERR_NO_SPACE;
    crypto_sign_detached(out->b, NULL, message.p, message.len, slot->secret);
    return FB_OK;
}

/* FM-5.1-11, MP-1-7 */
static bool do_verify(void *user, const fb_b32 *public_key, const fb_span *parts, size_t count,
                      const fb_b64 *signature)
{
    fb_span message;
    if (!join(user, parts, count, &message)) return false;
    return crypto_sign_verify_detached(signature->b, message.p, message.len, public_key->b) == 0;
}

static bool do_point_is_valid(void *user, const fb_b32 *public_key)
{
    (void)user;
    return crypto_core_ed25519_is_valid_point(public_key->b) == 1;
}

static fb_status do_dh_public(void *user, fb_key_handle key, fb_b32 *out)
{
    const key_slot *slot = slot_of(user, key, KEY_DH);
    if (slot == NULL) return FB_ERR_KEY;
    *out = slot->public_key;
    return FB_OK;
}

static fb_status do_dh_generate(void *user, fb_key_handle *out)
{
    fb_b32 secret;
    randombytes_buf(secret.b, sizeof secret.b);
    fb_status status = fb_sodium_add_dh(user, &secret, out);
    sodium_memzero(&secret, sizeof secret);
    return status;
}

static void do_dh_release(void *user, fb_key_handle key)
{
    key_slot *slot = slot_of(user, key, KEY_DH);
    if (slot != NULL) slot_release(user, slot);
}

static fb_status do_dh(void *user, fb_key_handle key, const fb_b32 *peer, fb_b32 *out)
{
    const key_slot *slot = slot_of(user, key, KEY_DH);
    if (slot == NULL) return FB_ERR_KEY;
    /* MP-7-9 */
    /* Fails for points that give an all-zero output (profile 7). */
    if (crypto_scalarmult(out->b, slot->secret, peer->b) != 0) return FB_ERR_KEY;
    return FB_OK;
}

static void do_sha256(void *user, const fb_span *parts, size_t count, fb_b32 *out)
{
    (void)user;
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    for (size_t i = 0; i < count; i++) crypto_hash_sha256_update(&state, parts[i].p, parts[i].len);
    crypto_hash_sha256_final(&state, out->b);
}

static void do_blake2b(void *user, fb_span key, const fb_span *parts, size_t count, uint8_t *out,
                       size_t out_len)
{
    (void)user;
    crypto_generichash_state state;
    crypto_generichash_init(&state, key.len != 0 ? key.p : NULL, key.len, out_len);
    for (size_t i = 0; i < count; i++) crypto_generichash_update(&state, parts[i].p, parts[i].len);
    crypto_generichash_final(&state, out, out_len);
    sodium_memzero(&state, sizeof state);
}

static void noise_nonce(uint64_t nonce, uint8_t out[12])
{
    memset(out, 0, 4);
    for (size_t i = 0; i < 8; i++, nonce >>= 8) out[4 + i] = (uint8_t)nonce;
}

static void do_aead_seal(void *user, const fb_b32 *key, uint64_t nonce, fb_span ad, fb_span plain,
                         uint8_t *out)
{
    (void)user;
    uint8_t n[12];
    noise_nonce(nonce, n);
    crypto_aead_chacha20poly1305_ietf_encrypt(out, NULL, plain.p, plain.len, ad.p, ad.len, NULL, n,
                                              key->b);
}

static bool do_aead_open(void *user, const fb_b32 *key, uint64_t nonce, fb_span ad, fb_span sealed,
                         uint8_t *out)
{
    (void)user;
    uint8_t n[12];
    noise_nonce(nonce, n);
    return crypto_aead_chacha20poly1305_ietf_decrypt(out, NULL, NULL, sealed.p, sealed.len, ad.p,
                                                     ad.len, n, key->b) == 0;
}

static fb_status do_secret(void *user, uint8_t *out, size_t len)
{
    (void)user;
    randombytes_buf(out, len);
    return FB_OK;
}

fb_status fb_sodium_create(size_t keys_max, fb_sodium **out)
{
    if (keys_max == 0 || keys_max > 0xffff) return FB_ERR_ARGUMENT;
    /* Safe to call again and from several threads; it does its work once. */
    if (sodium_init() < 0) return FB_ERR_CRYPTO;
    FB_TRY(fb_sodium_self_test());
    fb_sodium *s = calloc(1, sizeof *s);
    if (s == NULL) return FB_ERR_NO_MEMORY;
    s->slots = sodium_allocarray(keys_max, sizeof *s->slots);
    s->message = malloc(FB_SODIUM_MESSAGE_MAX);
    if (s->slots == NULL || s->message == NULL) {
        fb_sodium_destroy(s);
        return FB_ERR_NO_MEMORY;
    }
    sodium_memzero(s->slots, keys_max * sizeof *s->slots);
    s->slots_max = keys_max;
    s->next_serial = 1;
    s->provider = (fb_provider){
        .user = s,
        .public_key = do_public_key,
        .sign = do_sign,
        .verify = do_verify,
        .point_is_valid = do_point_is_valid,
        .dh_public = do_dh_public,
        .dh_generate = do_dh_generate,
        .dh_release = do_dh_release,
        .dh = do_dh,
        .sha256 = do_sha256,
        .blake2b = do_blake2b,
        .aead_seal = do_aead_seal,
        .aead_open = do_aead_open,
        .secret = do_secret,
    };
    *out = s;
    return FB_OK;
}

void fb_sodium_destroy(fb_sodium *sodium)
{
    if (sodium == NULL) return;
    sodium_free(sodium->slots); /* wipes */
    free(sodium->message);
    free(sodium);
}

const fb_provider *fb_sodium_provider(const fb_sodium *sodium)
{
    return &sodium->provider;
}

fb_status fb_sodium_add_signing(fb_sodium *sodium, const fb_b32 *seed, fb_key_handle *out)
{
    key_slot *slot = slot_take(sodium, KEY_SIGNING);
    if (slot == NULL) return FB_ERR_BUSY;
    crypto_sign_seed_keypair(slot->public_key.b, slot->secret, seed->b);
    *out = slot->handle;
    return FB_OK;
}

fb_status fb_sodium_add_dh(fb_sodium *sodium, const fb_b32 *secret, fb_key_handle *out)
{
    key_slot *slot = slot_take(sodium, KEY_DH);
    if (slot == NULL) return FB_ERR_BUSY;
    memcpy(slot->secret, secret->b, sizeof secret->b);
    crypto_scalarmult_base(slot->public_key.b, slot->secret);
    *out = slot->handle;
    return FB_OK;
}

void fb_sodium_remove(fb_sodium *sodium, fb_key_handle key)
{
    key_slot *slot = slot_of(sodium, key, KEY_SIGNING);
    if (slot == NULL) slot = slot_of(sodium, key, KEY_DH);
    if (slot != NULL) slot_release(sodium, slot);
}

size_t fb_sodium_keys(const fb_sodium *sodium)
{
    return sodium->used;
}

static bool verifies(const char *message, const char *public_key, const char *signature)
{
    uint8_t m[32], pk[32], sig[64];
    return fb_hex_parse(fb_span_text(message), m, sizeof m) &&
           fb_hex_parse(fb_span_text(public_key), pk, sizeof pk) &&
           fb_hex_parse(fb_span_text(signature), sig, sizeof sig) &&
           crypto_sign_verify_detached(sig, m, sizeof m, pk) == 0;
}

/* Profile 1: the strict rule. A library built with ED25519_COMPAT or made cofactored would take the
 * two refused cases (ed25519-speccheck 4 and 5: they hold only when multiplied by the cofactor). */
static bool strict_rule_holds(void)
{
    static const char key[] = "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d";
    static const char message3[] =
        "9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79";
    static const char message45[] =
        "e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c";
    static const char *const signature[3] = {
        ("9046a64750444938de19f227bb80485e92b83fdb4b6506c160484c016cc1852f"
         "87909e14428a7a1d62e9f22f3d3ad7802db02eb2e688b6c52fcd6648a98bd009"),
        ("160a1cb0dc9c0258cd0a7d23e94d8fa878bcb1925f2c64246b2dee1796bed512"
         "5ec6bc982a269b723e0668e540911a9a6a58921d6925e434ab10aa7940551a09"),
        ("21122a84e0b5fca4052f5b1235c80a537878b38f3142356b2c2384ebad4668b7"
         "e40bc836dac0f71076f9abe3a53f9c03c1ceeeddb658d0030494ace586687405"),
    };
    /* Case 6: S is not below L, and case 2: a key of small order. */
    static const char *const case6[3] = {
        "85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40",
        "442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623",
        ("e96f66be976d82e60150baecff9906684aebb1ef181f67a7189ac78ea23b6c0e"
         "547f7690a0e2ddcd04d87dbc3490dc19b3b3052f7ff0538cb68afb369ba3a514"),
    };
    static const char *const case2[3] = {
        "aebf3f2601a0c8c5d39cc7d8911642f740b78168218da8471772b35f9d35b9ab",
        "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
        ("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"
         "8c4bd45aecaca5b24fb97bc10ac27ac8751a7dfe1baff8b953ec9f5833ca260e"),
    };
    return verifies(message3, key, signature[0]) && !verifies(message45, key, signature[1]) &&
           !verifies(message45, key, signature[2]) && !verifies(case6[0], case6[1], case6[2]) &&
           !verifies(case2[0], case2[1], case2[2]);
}

/* MP-1-7 */
fb_status fb_sodium_self_test(void)
{
    /* RFC 8032 7.1, test 1: a key pair and a deterministic signature of the empty message. */
    static const char seed_hex[] =
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    static const char signature_hex[] =
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
        "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
    uint8_t seed[32], expected[64], signature[64], pk[32], sk[64], shared[32];
    if (sodium_init() < 0) return FB_ERR_CRYPTO;
    if (!fb_hex_parse(fb_span_text(seed_hex), seed, sizeof seed) ||
        !fb_hex_parse(fb_span_text(signature_hex), expected, sizeof expected)) {
        return FB_ERR_CRYPTO;
    }
    crypto_sign_seed_keypair(pk, sk, seed);
    crypto_sign_detached(signature, NULL, NULL, 0, sk);
    if (memcmp(signature, expected, sizeof expected) != 0) return FB_ERR_CRYPTO;
    if (!strict_rule_holds()) return FB_ERR_CRYPTO;
    /* An all-zero point must not give a shared secret. */
    static const uint8_t zero[32] = {0};
    if (crypto_scalarmult(shared, seed, zero) == 0) return FB_ERR_CRYPTO;
    return FB_OK;
}
