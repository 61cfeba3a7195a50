/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/base/cursor.h"
#include "protocol/base/draw.h"
#include "protocol/base/error.h"
#include "protocol/base/hash.h"

static void error_names_are_unique(void **state)
{
    (void)state;
    static const fb_error all[] = {
#define ROW(code, name, label, text, class) FB_ERR_##name,
        FB_ERROR_TABLE(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        for (size_t j = i + 1; j < sizeof all / sizeof all[0]; j++) {
            assert_string_not_equal(fb_error_name(all[i]), fb_error_name(all[j]));
        }
    }
    assert_string_equal(fb_error_name((fb_error)9999), "unknown");
}

/* Each has its row in all three tables; a number that is none is fatal. */
static void errors_have_texts_and_classes(void **state)
{
    (void)state;
    static const struct {
        fb_error error;
        const char *label, *text;
        fb_error_class class;
    } all[] = {
#define ROW(code, name, label, text, class) {FB_ERR_##name, label, text, FB_CLASS_##class},
        FB_ERROR_TABLE(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_string_equal(fb_error_name(all[i].error), all[i].label);
        assert_string_equal(fb_error_text(all[i].error), all[i].text);
        assert_true(all[i].error == FB_OK || all[i].text[0] != 0);
        assert_int_equal(fb_error_class_of(all[i].error), all[i].class);
    }
    assert_string_equal(fb_error_text((fb_error)9999), "no such error");
    assert_int_equal(fb_error_class_of((fb_error)9999), FB_CLASS_FATAL);
}

static void cursors_fail_stickily(void **state)
{
    (void)state;
    uint8_t bytes[8];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u16(&w, 0x0102);
    fb_write_u32(&w, 0x03040506);
    fb_write_u32(&w, 7);
    assert_true(w.failed);
    fb_write_u8(&w, 1);
    assert_int_equal(fb_writer_span(&w).len, 0);

    fb_reader r = fb_reader_of(fb_span_of(bytes, 6));
    assert_int_equal(fb_read_u16(&r), 0x0102);
    assert_int_equal(fb_read_u32(&r), 0x03040506);
    assert_true(fb_reader_done(&r));
    assert_int_equal(fb_read_u8(&r), 0);
    assert_true(r.failed);
    assert_int_equal(fb_reader_left(&r), 0);
}

static void draws_are_keyed(void **state)
{
    (void)state;
    fb_seed seed = {1, 2};
    assert_true(fb_draw(seed, 1, 2, 3) == fb_draw(seed, 1, 2, 3));
    assert_true(fb_draw(seed, 1, 2, 3) != fb_draw(seed, 1, 2, 4));
    assert_true(fb_draw(seed, 1, 2, 3) != fb_draw(seed, 1, 3, 3));
    assert_true(fb_draw(seed, 1, 2, 3) != fb_draw(seed, 2, 2, 3));
    uint32_t count[10] = {0};
    for (uint64_t i = 0; i < 100000; i++) count[fb_draw_below(seed, 7, 0, i, 10)]++;
    for (int i = 0; i < 10; i++) assert_in_range(count[i], 9500, 10500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_names_are_unique),
        cmocka_unit_test(errors_have_texts_and_classes),
        cmocka_unit_test(cursors_fail_stickily),
        cmocka_unit_test(draws_are_keyed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
