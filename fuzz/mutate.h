/* SPDX-License-Identifier: Apache-2.0 */
/* For mutators that know their format: where random bytes would be refused at the first length that
 * no longer fits, these keep the lengths right and change what is inside. */
#ifndef FB_FUZZ_MUTATE_H
#define FB_FUZZ_MUTATE_H

#include "protocol/base/cursor.h"

/* libFuzzer's own; in the replay it changes nothing. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Draws below `bound`, which is not 0, and moves the seed on. */
static inline unsigned fb_fuzz_draw(unsigned *seed, unsigned bound)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % bound;
}

/* Changes `len` bytes at `at`, within a room of `max` bytes; what is behind them moves. The bytes
 * in their place have *now bytes. Returns the new size of the whole. */
size_t fb_fuzz_mutate_within(uint8_t *data, size_t size, size_t max, size_t at, size_t len,
                             size_t *now);

#endif
