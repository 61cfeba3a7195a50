/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner reads 16 bytes at a time, with SSE2 where that is and with words elsewhere. Here both
 * are compiled, the second under other names, and must agree: in each mask, and in verdict, place
 * and values over texts that were made, changed and cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/block.h"
#include "protocol/base/draw.h"
#include "protocol/base/hex.h"
#include "protocol/envelope/json_names.h"
#include "tests/unit/portable_scan.h"

static const fb_seed seed = {21, 1};

/* Each byte at each place, among others of each kind. */
static void masks_agree(void **state)
{
    (void)state;
    static const uint8_t others[] = {'a', '"', '0', ' ', 0x00, 0x1f, 0x20, 0x7f, 0x80, 0xff, '\\'};
    for (size_t k = 0; k < sizeof others; k++) {
        for (unsigned c = 0; c < 256; c++) {
            for (size_t at = 0; at < FB_BLOCK_BYTES; at++) {
                uint8_t block[FB_BLOCK_BYTES];
                memset(block, others[k], sizeof block);
                block[at] = (uint8_t)c;
                assert_int_equal(fb_block_specials(block), portable_specials(block));
                assert_int_equal(fb_block_digits(block), portable_digits(block));
                assert_int_equal(fb_block_space(block), portable_space(block));
                uint64_t a[2], b[2];
                fb_block_words(block, (unsigned)at, a);
                portable_words(block, (unsigned)at, b);
                assert_memory_equal(a, b, sizeof a);
            }
        }
    }
}

/* Each byte at each place of 32 digits. */
static void digits_agree(void **state)
{
    (void)state;
    uint8_t text[32], a[16], b[16];
    for (size_t at = 0; at < sizeof text; at++) {
        for (unsigned c = 0; c < 256; c++) {
            memcpy(text, "0123456789abcdef89fedcba76543210", sizeof text);
            text[at] = (uint8_t)c;
            bool good = fb_hex_parse(fb_span_of(text, sizeof text), a, sizeof a);
            assert_int_equal(good, portable_hex(text, b));
            assert_int_equal(good, (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
            if (good) assert_memory_equal(a, b, sizeof a);
        }
    }
}

/* What texts are put together from: right and wrong pieces of everything. */
static const char *const pieces[] = {
    "\"",
    "\\",
    "\\u",
    "\\ud800",
    "\\udc00",
    "\\u0000",
    "\\n",
    "\\x",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "1",
    "0",
    "-",
    "1e5",
    "1.5",
    "01",
    "true",
    "fals",
    "null",
    "\xc3\xa9",
    "\xe2\x82\xac",
    "\xf0\x9f\x98\x80",
    "\xed\xa0\x80",
    "\xc0\x80",
    "\xff",
    "\x80",
    " ",
    "\n",
    "\t",
    "\x01",
    "\"a\":1",
    "\"a\":",
    "\"b\":2,",
    "\"\\u0061\":1",
    "[[[[[[[[[[[[[[[[",
    "{\"a\":{",
    "0.0e-0",
    "1E+",
    "\xf4\x90\x80\x80",
    "\xe0\x9f\xbf",
    "\xc3",
    "\"scope\":\"all\",",
    "12345678901234567890",
    "\"abcdefghijklmnopqrst\":1,",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "\\u0041\\u0042\\u0043\\u0044\\u0045",
    "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 some text of other scripts \xd0\xb6\xd0\xb6\"",
};

#define PIECES (sizeof pieces / sizeof pieces[0])

typedef struct result {
    fb_json_fault fault;
    size_t at;
    fb_json_watch watch[3];
    fb_json_wanted wanted;
    uint8_t room[256 + FB_JSON_ROOM_MORE];
} result;

static void begin(result *r, size_t cap)
{
    static const char *const names[] = {"a", "scope", "b"};
    memset(r, 0, sizeof *r);
    for (size_t i = 0; i < 3; i++) r->watch[i].name = fb_span_text(names[i]);
    r->wanted = (fb_json_wanted){.member = &r->watch[0], .room = r->room, .cap = cap};
}

static void compare(const result *a, const result *b, fb_span text)
{
    if (a->fault != b->fault || a->at != b->at) {
        fail_msg("%d at %zu, portable %d at %zu: %.*s", a->fault, a->at, b->fault, b->at,
                 (int)text.len, (const char *)text.p);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_true(fb_span_equal(a->watch[i].value, b->watch[i].value));
        if (a->watch[i].value.len != 0) {
            assert_int_equal(a->watch[i].escaped, b->watch[i].escaped);
        }
    }
    if (fb_json_is_string(a->watch[0].value)) {
        assert_int_equal(a->wanted.fits, b->wanted.fits);
        if (!a->wanted.fits) return;
        assert_true(fb_span_equal(a->wanted.text, b->wanted.text));
        /* And as who unescapes afterwards. */
        uint8_t room[256];
        fb_span later;
        assert_true(fb_json_unquote(&a->watch[0], room, a->wanted.cap, &later));
        assert_true(fb_span_equal(a->wanted.text, later));
    }
}

static void scan_both(fb_span text, size_t behind, size_t cap)
{
    static const fb_json_rules rules[] = {{16, 256, false, false, 0},
                                          {32, FB_JSON_NAMES_MAX, true, false, 0},
                                          {3, 2, true, true, UINT64_C(1) << 1 | UINT64_C(1) << 5}};
    for (size_t i = 0; i < 3; i++) {
        static result a, b;
        begin(&a, cap);
        begin(&b, cap);
        fb_json_hint hint = {behind, 0, &a.wanted};
        a.fault = fb_json_scan_hinted(text, &hint, &rules[i], a.watch, 3, &a.at);
        hint.wanted = &b.wanted;
        b.fault = portable_fb_json_scan_hinted(text, &hint, &rules[i], b.watch, 3, &b.at);
        compare(&a, &b, text);
        /* What stands behind the text says nothing. */
        if (behind == 0) continue;
        fb_json_fault fault = a.fault;
        size_t at = a.at;
        begin(&a, cap);
        hint = (fb_json_hint){0, 0, &a.wanted};
        a.fault = fb_json_scan_hinted(text, &hint, &rules[i], a.watch, 3, &a.at);
        if (a.fault != fault || a.at != at) {
            fail_msg("%d at %zu, with more behind %d at %zu: %.*s", a.fault, a.at, fault, at,
                     (int)(text.len + behind), (const char *)text.p);
        }
    }
}

static void texts_agree(void **state)
{
    (void)state;
    static char text[8192];
    for (uint64_t round = 0; round < 60000; round++) {
        uint64_t draws = 0;
#define DRAW(bound) fb_draw_below(seed, 1, round, draws++, bound)
        size_t count = (size_t)DRAW(40), n = 0;
        n += (size_t)sprintf(text, "%s", DRAW(2) == 0 ? "{\"a\":\"" : "");
        for (size_t i = 0; i < count; i++) {
            n += (size_t)sprintf(text + n, "%s", pieces[DRAW(PIECES)]);
        }
        if (DRAW(2) == 0) n += (size_t)sprintf(text + n, "\"}");
        if (DRAW(8) == 0 && n != 0) text[DRAW(n)] = '\0';
        if (DRAW(4) == 0) n = (size_t)DRAW(n + 1);
        /* In a block of its own size, or with something behind that goes on as the text would. */
        size_t behind = DRAW(2) == 0 ? 0 : FB_JSON_BEHIND;
        uint8_t *block = malloc(n + behind + 1);
        assert_non_null(block);
        memcpy(block, text, n);
        for (size_t i = 0; i < behind; i++) block[n + i] = (uint8_t)text[DRAW(n + 1)];
        scan_both(fb_span_of(block, n), behind, (size_t)DRAW(200));
        free(block);
#undef DRAW
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_agree),
        cmocka_unit_test(digits_agree),
        cmocka_unit_test(texts_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
