/* SPDX-License-Identifier: Apache-2.0 */
/* The two hashes of the core that need no secrecy: XXH3 (hash tables, traces; the digest has mix.h)
 * and BLAKE3 (area ids, fingerprints, Merkle roots). Everything else is the provider's. */
#ifndef FB_BASE_HASH_H
#define FB_BASE_HASH_H

#include "protocol/base/types.h"

typedef struct fb_hash128 {
    uint64_t lo;
    uint64_t hi;
} fb_hash128;

/* XXH3 with a seed; the same value on every machine, compiler and byte order. */
uint64_t fb_xxh64(const void *bytes, size_t len, uint64_t seed);
fb_hash128 fb_xxh128(const void *bytes, size_t len, uint64_t seed);

/* BLAKE3 over the concatenation of `count` spans; out_len at most 64. */
void fb_blake3(const fb_span *parts, size_t count, uint8_t *out, size_t out_len);
/* The same of two messages, 32 bytes each: short ones go side by side. */
void fb_blake3_two(const fb_span *a, size_t a_count, uint8_t a_out[32], const fb_span *b,
                   size_t b_count, uint8_t b_out[32]);
/* BLAKE3 of each of four times 64 bytes, at little more than the cost of one. */
void fb_blake3_quarters(const uint8_t *bytes, uint8_t out[4 * 32]);

#endif
