/* SPDX-License-Identifier: Apache-2.0 */
/* Lowercase hexadecimal, strict: the one text form of node ids, keys, hashes and signatures. */
#ifndef FB_BASE_HEX_H
#define FB_BASE_HEX_H

#include "protocol/base/types.h"

/* The value of each byte as a lowercase hex digit, or 0xff. */
extern const uint8_t fb_hex_value[256];

/* Writes 2 * len digits, and nothing that ends them: they go into something longer. */
void fb_hex_format(const uint8_t *bytes, size_t len, char *out);

/* The same as a text: 2 * len digits and a zero byte. */
void fb_hex_text(const uint8_t *bytes, size_t len, char *out);

/* True when `text` is exactly 2 * len lowercase digits. What out holds after false is of no use. */
bool fb_hex_parse(fb_span text, uint8_t *out, size_t len);

/* 32 digits, eight to a word and the first one lowest, as 16 bytes. The same of false. */
bool fb_hex_parse_words(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint8_t out[16]);

#endif
