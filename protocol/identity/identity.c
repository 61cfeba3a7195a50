/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/identity/identity.h"

#define FINGERPRINT_LABEL "faberio-fingerprint-v1"

static const char first_syllable[16][3] = {
    "ba", "de", "fi", "go", "hu", "ja", "ke", "li", "mo", "nu", "pa", "re", "si", "to", "vu", "ze",
};
static const char second_syllable[16][3] = {
    "bo", "cu", "da", "fe", "gi", "jo", "ku", "la", "me", "ni", "po", "ru", "sa", "te", "vi", "zo",
};

static void hash_key(const fb_provider *provider, const char *label, size_t label_len,
                     const fb_b32 *public_key, fb_b32 *out)
{
    fb_span parts[2] = {{(const uint8_t *)label, label_len}, {public_key->b, sizeof public_key->b}};
    provider->sha256(provider->user, parts, 2, out);
}

/* FI-2-2, MP-1-1 */
fb_id fb_node_id_of(const fb_provider *provider, const fb_b32 *public_key)
{
    fb_b32 hash;
    fb_id id;
    hash_key(provider, FB_NODE_ID_LABEL, sizeof FB_NODE_ID_LABEL, public_key, &hash);
    memcpy(id.b, hash.b, sizeof id.b);
    return id;
}

/* MP-1-6 */
fb_status fb_identity_enrol_check(const fb_provider *provider, const fb_b32 *public_key)
{
    return provider->point_is_valid(provider->user, public_key) ? FB_OK : FB_ERR_KEY;
}

void fb_fingerprint(const fb_provider *provider, const fb_b32 *public_key,
                    char out[FB_FINGERPRINT_BYTES])
{
    fb_b32 hash;
    hash_key(provider, FINGERPRINT_LABEL, sizeof FINGERPRINT_LABEL, public_key, &hash);
    for (size_t i = 0; i < FB_FINGERPRINT_WORDS; i++) {
        memcpy(out + 5 * i, first_syllable[hash.b[i] >> 4], 2);
        memcpy(out + 5 * i + 2, second_syllable[hash.b[i] & 15], 2);
        out[5 * i + 4] = i + 1 < FB_FINGERPRINT_WORDS ? '-' : '\0';
    }
}
