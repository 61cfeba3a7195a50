/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/hash.h"

#include <blake3.h>

#include "protocol/base/assert.h"

#define XXH_INLINE_ALL
#define XXH_NO_STREAM
#include <xxhash.h>

uint64_t fb_xxh64(const void *bytes, size_t len, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, len, seed);
}

fb_hash128 fb_xxh128(const void *bytes, size_t len, uint64_t seed)
{
    XXH128_hash_t h =
        seed == 0 ? XXH3_128bits(bytes, len) : XXH3_128bits_withSeed(bytes, len, seed);
    return (fb_hash128){h.low64, h.high64};
}

void fb_blake3(const fb_span *parts, size_t count, uint8_t *out, size_t out_len)
{
    FB_ASSERT(out_len <= 64);
    blake3_hasher hasher;
    blake3_hasher_init(&hasher);
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len != 0) blake3_hasher_update(&hasher, parts[i].p, parts[i].len);
    }
    blake3_hasher_finalize(&hasher, out, out_len);
}
