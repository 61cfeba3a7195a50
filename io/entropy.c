/* SPDX-License-Identifier: Apache-2.0 */
#include "io/entropy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void fb_entropy(void *out, size_t len)
{
    ssize_t got;
    do {
        got = getrandom(out, len, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0 || (size_t)got != len) {
        fprintf(stderr, "no randomness from the system: %s\n", strerror(errno));
        abort();
    }
}

uint64_t fb_entropy_u64(void)
{
    uint64_t v;
    fb_entropy(&v, sizeof v);
    return v;
}
