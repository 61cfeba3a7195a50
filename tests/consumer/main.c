/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest use of the installed library: errors, hashes, options. */
#include "protocol/base/assert.h"
#include "protocol/base/hash.h"
#include "protocol/core/node.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void fb_assert_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}

int main(void)
{
    /* BLAKE3 of nothing, as published: the library and its BLAKE3 are linked. */
    static const uint8_t expected[4] = {0xaf, 0x13, 0x49, 0xb9};
    uint8_t hash[32];
    fb_blake3(NULL, 0, hash, sizeof hash);
    if (memcmp(hash, expected, sizeof expected) != 0) return 1;
    if (strcmp(fb_error_name(FB_ERR_BAD_UUID), "bad_uuid") != 0) return 2;
    puts("consumer: the installed core answers");
    return 0;
}
