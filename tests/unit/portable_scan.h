/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner as it is compiled for machines without SSE2, beside the one of this machine. */
#ifndef FB_TESTS_PORTABLE_SCAN_H
#define FB_TESTS_PORTABLE_SCAN_H

#include "protocol/envelope/json.h"
#include "protocol/envelope/json_scan.h"

fb_json_fault portable_fb_json_scan_hinted(fb_span text, const fb_json_hint *hint,
                                           const fb_json_rules *rules, fb_json_watch *watch,
                                           size_t watched, size_t *at);

uint32_t portable_specials(const uint8_t *p);
uint32_t portable_digits(const uint8_t *p);
uint32_t portable_space(const uint8_t *p);
void portable_words(const uint8_t *p, unsigned len, uint64_t out[2]);
bool portable_hex(const uint8_t text[32], uint8_t out[16]);

#endif
