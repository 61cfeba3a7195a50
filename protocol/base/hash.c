/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/hash.h"

#include <blake3.h>

#include "protocol/base/assert.h"
#include "protocol/base/word.h"

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

/* One message of at most a chunk: its bytes in a row, with zeros up to the end of the last block.
 */
typedef struct message {
    const uint8_t *p;
    size_t len;
    uint8_t bytes[BLAKE3_CHUNK_LEN + BLAKE3_BLOCK_LEN];
} message;

static inline void gather(message *m, const fb_span *parts, size_t count)
{
    if (count == 1 && parts[0].len % BLAKE3_BLOCK_LEN == 0 && parts[0].len != 0) {
        m->p = parts[0].p;
        m->len = parts[0].len;
        return;
    }
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        fb_copy(m->bytes + len, parts[i].p, parts[i].len);
        len += parts[i].len;
    }
    memset(m->bytes + len, 0, BLAKE3_BLOCK_LEN);
    m->p = m->bytes;
    m->len = len;
}

/* Blocks before the last one. */
static size_t full_blocks(const message *m)
{
    return m->len == 0 ? 0 : (m->len - 1) / BLAKE3_BLOCK_LEN;
}

/* From the block `at` on, `cv` being what those before it came to; at most 32 bytes out. */
static void finish(const message *m, size_t at, uint32_t cv[8], uint8_t *out, size_t out_len)
{
    size_t full = full_blocks(m);
    const uint8_t *p = m->p + at * BLAKE3_BLOCK_LEN;
    uint8_t flags = at == 0 ? CHUNK_START : 0;
    for (; at < full; at++, p += BLAKE3_BLOCK_LEN) {
        blake3_compress_in_place(cv, p, BLAKE3_BLOCK_LEN, 0, flags);
        flags = 0;
    }
    uint8_t last = (uint8_t)(m->len - full * BLAKE3_BLOCK_LEN);
    blake3_compress_in_place(cv, p, last, 0, flags | CHUNK_END | ROOT);
    uint8_t words[32];
    for (size_t i = 0; i < 4; i++) {
        fb_word_store(words + 8 * i, (uint64_t)cv[2 * i + 1] << 32 | cv[2 * i]);
    }
    memcpy(out, words, out_len);
}

static void one_chunk(const fb_span *parts, size_t count, uint8_t *out, size_t out_len)
{
    uint32_t cv[8] = INITIAL;
    message m;
    gather(&m, parts, count);
    finish(&m, 0, cv, out, out_len);
}

static size_t total(const fb_span *parts, size_t count)
{
    size_t len = 0;
    for (size_t i = 0; i < count; i++) len += parts[i].len;
    return len;
}
#endif

void fb_blake3(const fb_span *parts, size_t count, uint8_t *out, size_t out_len)
{
    FB_ASSERT(out_len <= 64);
#ifdef FB_BLAKE3_FROM_SOURCE
    if (total(parts, count) <= BLAKE3_CHUNK_LEN && out_len <= 32) {
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

void fb_blake3_two(const fb_span *a, size_t a_count, uint8_t a_out[32], const fb_span *b,
                   size_t b_count, uint8_t b_out[32])
{
#ifdef FB_BLAKE3_FROM_SOURCE
    if (total(a, a_count) <= BLAKE3_CHUNK_LEN && total(b, b_count) <= BLAKE3_CHUNK_LEN) {
        static const uint32_t initial[8] = INITIAL;
        message m[2];
        gather(&m[0], a, a_count);
        gather(&m[1], b, b_count);
        uint32_t cv[2][8] = {INITIAL, INITIAL};
        size_t full = full_blocks(&m[0]), other = full_blocks(&m[1]);
        size_t both = full < other ? full : other;
        if (both != 0) {
            const uint8_t *const inputs[2] = {m[0].p, m[1].p};
            uint8_t values[2 * 32];
            blake3_hash_many(inputs, 2, both, initial, 0, false, 0, CHUNK_START, 0, values);
            for (size_t i = 0; i < 16; i++) {
                cv[i / 8][i % 8] = (uint32_t)fb_word_load_half(values + 4 * i);
            }
        }
        finish(&m[0], both, cv[0], a_out, 32);
        finish(&m[1], both, cv[1], b_out, 32);
        return;
    }
#endif
    fb_blake3(a, a_count, a_out, 32);
    fb_blake3(b, b_count, b_out, 32);
}
