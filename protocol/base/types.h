/* SPDX-License-Identifier: Apache-2.0 */
/* The small value types that every other header uses. */
#ifndef FB_BASE_TYPES_H
#define FB_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* 16 bytes: a UUID or a node id, in network order. Compared as unsigned bytes. */
typedef struct fb_id {
    uint8_t b[16];
} fb_id;

/* 32 bytes: a public key, a hash, a symmetric key. */
typedef struct fb_b32 {
    uint8_t b[32];
} fb_b32;

/* 64 bytes: an Ed25519 signature, a BLAKE2b-512 hash. */
typedef struct fb_b64 {
    uint8_t b[64];
} fb_b64;

/* Borrowed bytes: the holder neither owns nor frees them. p may be NULL when len is 0. */
typedef struct fb_span {
    const uint8_t *p;
    size_t len;
} fb_span;

/* A deadline that never comes. */
#define FB_NEVER UINT64_MAX

static inline fb_span fb_span_of(const void *p, size_t len)
{
    return (fb_span){(const uint8_t *)p, len};
}

static inline fb_span fb_span_text(const char *text)
{
    return fb_span_of(text, strlen(text));
}

static inline bool fb_span_equal(fb_span a, fb_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

/* memcmp order, a proper prefix first: the order of the store. */
static inline int fb_span_compare(fb_span a, fb_span b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n == 0 ? 0 : memcmp(a.p, b.p, n);
    if (order != 0) return order < 0 ? -1 : 1;
    return a.len < b.len ? -1 : a.len > b.len ? 1 : 0;
}

static inline bool fb_id_equal(fb_id a, fb_id b)
{
    /* Two words: no call, in the most frequent comparison of all. */
    uint64_t x[2], y[2];
    memcpy(x, a.b, sizeof x);
    memcpy(y, b.b, sizeof y);
    return ((x[0] ^ y[0]) | (x[1] ^ y[1])) == 0;
}

static inline int fb_id_compare(fb_id a, fb_id b)
{
    int order = memcmp(a.b, b.b, sizeof a.b);
    return order < 0 ? -1 : order > 0 ? 1 : 0;
}

static inline bool fb_id_is_zero(fb_id a)
{
    static const uint8_t zero[16] = {0};
    return memcmp(a.b, zero, sizeof zero) == 0;
}

static inline bool fb_b32_equal(fb_b32 a, fb_b32 b)
{
    return memcmp(a.b, b.b, sizeof a.b) == 0;
}

static inline uint64_t fb_min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t fb_max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Saturating: a deadline computed from FB_NEVER stays FB_NEVER. */
static inline uint64_t fb_add_sat_u64(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

#endif
