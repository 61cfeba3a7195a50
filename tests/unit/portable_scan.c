/* SPDX-License-Identifier: Apache-2.0 */
/* The sources themselves, once more, under other names. */
#define FB_BLOCK_PORTABLE

#define fb_json_scan            portable_fb_json_scan
#define fb_json_scan_hinted     portable_fb_json_scan_hinted
#define fb_json_value_check     portable_fb_json_value_check
#define fb_json_fault_text      portable_fb_json_fault_text
#define fb_json_place_begin     portable_fb_json_place_begin
#define fb_json_place_tail      portable_fb_json_place_tail
#define fb_json_place_stop      portable_fb_json_place_stop
#define fb_json_place_space     portable_fb_json_place_space
#define fb_json_scan_plain      portable_fb_json_scan_plain
#define fb_json_scan_escapes    portable_fb_json_scan_escapes
#define fb_json_scan_wanted     portable_fb_json_scan_wanted
#define fb_json_scan_any_number portable_fb_json_scan_any_number
#define fb_json_scan_word       portable_fb_json_scan_word
#define fb_hex_value            portable_fb_hex_value
#define fb_hex_format           portable_fb_hex_format
#define fb_hex_text             portable_fb_hex_text
#define fb_hex_parse            portable_fb_hex_parse
#define fb_hex_parse_words      portable_fb_hex_parse_words

#include "tests/unit/portable_scan.h"
#include "protocol/base/hex.c"
#include "protocol/envelope/json.c"
#include "protocol/envelope/json_scan.c"

uint32_t portable_specials(const uint8_t *p)
{
    return fb_block_specials(p);
}

uint32_t portable_digits(const uint8_t *p)
{
    return fb_block_digits(p);
}

uint32_t portable_space(const uint8_t *p)
{
    return fb_block_space(p);
}

void portable_words(const uint8_t *p, unsigned len, uint64_t out[2])
{
    fb_block_words(p, len, out);
}

bool portable_hex(const uint8_t text[32], uint8_t out[16])
{
    return fb_hex_parse(fb_span_of(text, 32), out, 16);
}
