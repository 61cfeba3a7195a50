/* SPDX-License-Identifier: Apache-2.0 */
/* BLAKE3 as the core calls it: in parts, short and long, against the library's own hasher. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <blake3.h>
#include <cmocka.h>

#include "protocol/base/hash.h"

#define BYTES 2600u

static uint8_t bytes[BYTES];

static void check(size_t len, size_t first, size_t second, size_t out_len)
{
    uint8_t expected[64], got[64];
    blake3_hasher hasher;
    blake3_hasher_init(&hasher);
    blake3_hasher_update(&hasher, bytes, len);
    blake3_hasher_finalize(&hasher, expected, out_len);
    if (first > len) first = len;
    if (second > len - first) second = len - first;
    const fb_span parts[] = {fb_span_of(bytes, first), fb_span_of(NULL, 0),
                             fb_span_of(bytes + first, second),
                             fb_span_of(bytes + first + second, len - first - second)};
    fb_blake3(parts, 4, got, out_len);
    assert_memory_equal(got, expected, out_len);
}

static void every_length_in_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < BYTES; i++) bytes[i] = (uint8_t)(i % 251);
    for (size_t len = 0; len <= BYTES; len++) {
        check(len, 0, 0, 16);
        check(len, len % 67, len % 131, 32);
        check(len, 64, 64, 10);
        check(len, len, 0, 64);
    }
}

/* The first of BLAKE3's published vectors: the empty input. */
static void a_known_hash(void **state)
{
    (void)state;
    static const uint8_t empty[] = {0xaf, 0x13, 0x49, 0xb9, 0xf5, 0xf9, 0xa1, 0xa6,
                                    0xa0, 0x40, 0x4d, 0xea, 0x36, 0xdc, 0xc9, 0x49};
    uint8_t got[16];
    fb_blake3(NULL, 0, got, sizeof got);
    assert_memory_equal(got, empty, sizeof empty);
}

static void four_side_by_side(void **state)
{
    (void)state;
    uint8_t got[4 * 32], expected[32];
    fb_blake3_quarters(bytes + 3, got);
    for (size_t i = 0; i < 4; i++) {
        const fb_span part = fb_span_of(bytes + 3 + 64 * i, 64);
        fb_blake3(&part, 1, expected, sizeof expected);
        assert_memory_equal(got + 32 * i, expected, sizeof expected);
    }
}

static void two_side_by_side(void **state)
{
    (void)state;
    const size_t lengths[] = {0, 1, 63, 64, 65, 128, 200, 350, 1023, 1024, 1025, 2000};
    for (size_t i = 0; i < 12 * 12; i++) {
        const fb_span a = fb_span_of(bytes, lengths[i % 12]);
        size_t len = lengths[i / 12], head = len < 17 ? len : 17;
        const fb_span b[] = {fb_span_of(bytes + 5, head), fb_span_of(bytes + 5 + head, len - head)};
        uint8_t got[2][32], expected[2][32];
        fb_blake3(&a, 1, expected[0], 32);
        fb_blake3(b, 2, expected[1], 32);
        fb_blake3_two(&a, 1, got[0], b, 2, got[1]);
        assert_memory_equal(got, expected, sizeof expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_in_parts),
        cmocka_unit_test(a_known_hash),
        cmocka_unit_test(four_side_by_side),
        cmocka_unit_test(two_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
