/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of bounded length, whatever their ends and however long they would be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "runtime/conformance/line_in.h"

static FILE *input;

static void begin(const char *text, size_t len)
{
    input = tmpfile();
    assert_non_null(input);
    assert_int_equal(fwrite(text, 1, len, input), len);
    rewind(input);
}

static void next(fb_line expected, const char *text, size_t text_len)
{
    char room[6];
    size_t len = 0;
    assert_int_equal(fb_line_read(input, room, sizeof room, &len), expected);
    if (expected == FB_LINE_END) return;
    assert_int_equal(len, text_len);
    assert_memory_equal(room, text, len);
    assert_int_equal(room[len], 0);
}

static void ends_of_lines(void **state)
{
    (void)state;
    static const char text[] = "a\nbc\r\n\r\n\n\rd\re\r\nf\r";
    begin(text, sizeof text - 1);
    next(FB_LINE_READ, "a", 1);
    next(FB_LINE_READ, "bc", 2);
    next(FB_LINE_READ, "", 0);
    next(FB_LINE_READ, "", 0);
    next(FB_LINE_READ, "\rd\re", 4);
    next(FB_LINE_READ, "f", 1);
    next(FB_LINE_END, "", 0);
    fclose(input);
}

static void zero_bytes_are_bytes(void **state)
{
    (void)state;
    begin("a\0b\n\0", 5);
    next(FB_LINE_READ, "a\0b", 3);
    next(FB_LINE_READ, "\0", 1);
    next(FB_LINE_END, "", 0);
    fclose(input);
}

static void what_is_too_long_is_read_and_not_kept(void **state)
{
    (void)state;
    static const char text[] = "12345\n123456\n1234\r6\n12345\r\nlast is longer";
    begin(text, sizeof text - 1);
    next(FB_LINE_READ, "12345", 5);
    next(FB_LINE_TOO_LONG, "12345", 5);
    next(FB_LINE_TOO_LONG, "1234\r", 5);
    next(FB_LINE_READ, "12345", 5);
    next(FB_LINE_TOO_LONG, "last ", 5);
    next(FB_LINE_END, "", 0);
    fclose(input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_of_lines),
        cmocka_unit_test(zero_bytes_are_bytes),
        cmocka_unit_test(what_is_too_long_is_read_and_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
