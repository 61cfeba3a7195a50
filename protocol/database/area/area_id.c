/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/hash.h"
#include "protocol/database/database.h"

/* DESIGN 3.1, Area: two offline nodes that create one name make one area. */
fb_id fb_area_id(fb_id space, fb_area_kind kind, fb_span first_name)
{
    static const char label[] = "faberio-area-v1"; /* hashed with its zero byte */
    uint8_t kind_byte = (uint8_t)kind;
    const fb_span parts[] = {fb_span_of(label, sizeof label), fb_span_of(space.b, sizeof space.b),
                             fb_span_of(&kind_byte, 1), first_name};
    uint8_t hash[10];
    fb_blake3(parts, 4, hash, sizeof hash);
    /* 74 bits: the first 12 are rand_a, the next 62 rand_b. */
    fb_id id = space; /* its 48 bits of time */
    id.b[6] = (uint8_t)(0x70 | hash[0] >> 4);
    id.b[7] = (uint8_t)(hash[0] << 4 | hash[1] >> 4);
    uint64_t rand_b = hash[1] & 15u;
    for (size_t i = 2; i < 9; i++) rand_b = rand_b << 8 | hash[i]; /* 4 + 56 bits */
    rand_b = rand_b << 2 | hash[9] >> 6;
    fb_store_be(id.b + 8, rand_b | UINT64_C(0x8000000000000000), 8);
    return id;
}
