/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/mutate.h"

#include <stdlib.h>

size_t fb_fuzz_mutate_within(uint8_t *data, size_t size, size_t max, size_t at, size_t len,
                             size_t *now)
{
    *now = len;
    size_t room = len + (max - size);
    uint8_t *piece = room != 0 ? malloc(room) : NULL;
    if (piece == NULL) return size;
    memcpy(piece, data + at, len);
    *now = LLVMFuzzerMutate(piece, len, room);
    memmove(data + at + *now, data + at + len, size - at - len);
    memcpy(data + at, piece, *now);
    free(piece);
    return size - len + *now;
}
