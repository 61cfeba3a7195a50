/* SPDX-License-Identifier: Apache-2.0 */
/* The system's randomness, for incarnations and seeds. */
#ifndef FB_IO_ENTROPY_H
#define FB_IO_ENTROPY_H

#include <stddef.h>
#include <stdint.h>

/* Fills `len` bytes, at most 256; ends the process when the system cannot. */
void fb_entropy(void *out, size_t len);

uint64_t fb_entropy_u64(void);

#endif
