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

#ifdef FB_BLAKE3_FROM_SOURCE
/* BLAKE3's compression function, which its C sources share among themselves and libblake3 hides.
 * Nearly all that the core hashes is shorter than one chunk, and setting up and finishing a hasher
 * costs as much as two blocks. */
void blake3_compress_in_place(uint32_t cv[8], const uint8_t block[BLAKE3_BLOCK_LEN],
                              uint8_t block_len, uint64_t counter, uint8_t flags);
/* The same of several inputs of whole blocks side by side, each from `key`; 32 bytes of each. */
void blake3_hash_many(const uint8_t *const *inputs, size_t num_inputs, size_t blocks,
                      const uint32_t key[8], uint64_t counter, bool increment_counter,
                      uint8_t flags, uint8_t flags_start, uint8_t flags_end, uint8_t *out);

enum { CHUNK_START = 1, CHUNK_END = 2, ROOT = 8 }; /* BLAKE3 2.1, Table 3 */

#define INITIAL                                                                                    \
    {                                                                                              \
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,        \
            0x5be0cd19                                                                             \
    }

/* At most one chunk in, at most 32 bytes out. */
static void one_chunk(const fb_span *parts, size_t count, uint8_t *out, size_t out_len)
{
    uint32_t cv[8] = INITIAL;
    uint8_t block[BLAKE3_BLOCK_LEN];
    uint8_t filled = 0, flags = CHUNK_START;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *p = parts[i].p;
        size_t left = parts[i].len;
        while (left != 0) {
            /* Only what something follows: the last block is another one. */
            bool full = filled == sizeof block, direct = filled == 0 && left > sizeof block;
            if (full || direct) {
                blake3_compress_in_place(cv, full ? block : p, sizeof block, 0, flags);
                flags = 0;
                filled = 0;
                if (full) continue;
                p += sizeof block;
                left -= sizeof block;
                continue;
            }
            size_t room = sizeof block - filled, take = left < room ? left : room;
            memcpy(block + filled, p, take);
            filled += (uint8_t)take;
            p += take;
            left -= take;
        }
    }
    memset(block + filled, 0, sizeof block - filled);
    blake3_compress_in_place(cv, block, filled, 0, flags | CHUNK_END | ROOT);
    uint8_t words[32];
    for (size_t i = 0; i < 8; i++) {
        words[4 * i] = (uint8_t)cv[i];
        words[4 * i + 1] = (uint8_t)(cv[i] >> 8);
        words[4 * i + 2] = (uint8_t)(cv[i] >> 16);
        words[4 * i + 3] = (uint8_t)(cv[i] >> 24);
    }
    memcpy(out, words, out_len);
}
#endif

void fb_blake3(const fb_span *parts, size_t count, uint8_t *out, size_t out_len)
{
    FB_ASSERT(out_len <= 64);
#ifdef FB_BLAKE3_FROM_SOURCE
    size_t total = 0;
    for (size_t i = 0; i < count; i++) total += parts[i].len;
    if (total <= BLAKE3_CHUNK_LEN && out_len <= 32) {
        one_chunk(parts, count, out, out_len);
        return;
    }
#endif
    blake3_hasher hasher;
    blake3_hasher_init(&hasher);
    for (size_t i = 0; i < count; i++) {
        if (parts[i].len != 0) blake3_hasher_update(&hasher, parts[i].p, parts[i].len);
    }
    blake3_hasher_finalize(&hasher, out, out_len);
}

void fb_blake3_quarters(const uint8_t *bytes, uint8_t out[4 * 32])
{
#ifdef FB_BLAKE3_FROM_SOURCE
    static const uint32_t initial[8] = INITIAL;
    const uint8_t *const inputs[4] = {bytes, bytes + 64, bytes + 128, bytes + 192};
    blake3_hash_many(inputs, 4, 1, initial, 0, false, 0, CHUNK_START, CHUNK_END | ROOT, out);
#else
    for (size_t i = 0; i < 4; i++) {
        const fb_span part = fb_span_of(bytes + 64 * i, 64);
        fb_blake3(&part, 1, out + 32 * i, 32);
    }
#endif
}
