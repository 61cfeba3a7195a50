/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies and arguments of the node's API: an object with its values as they were written, one
 * value, a path with percent signs. What is read is as the core's scanner has it. */
#include <stdlib.h>

#include "fuzz/envelope_same.h"
#include "protocol/envelope/json.h"
#include "runtime/api/exchange.h"
#include "runtime/json_in.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void object(fb_span in)
{
    fb_json_object_in object = {0};
    char why[200] = "";
    if (!fb_json_object_read(in, &object, why, sizeof why)) {
        fb_fuzz_require(why[0] != 0);
        return;
    }
    for (size_t i = 0; i < object.count; i++) {
        fb_span value = fb_span_of(object.members[i].value.p, object.members[i].value.len);
        fb_status status = fb_json_value_check(value);
        fb_fuzz_require(status == FB_OK || status == FB_ERR_LIMIT);
        if (value.len == 0 || value.p[0] != '[') continue;
        size_t at = 0;
        fb_span element;
        while (fb_json_element_next(value, &at, &element)) {
            status = fb_json_value_check(element);
            fb_fuzz_require(status == FB_OK || status == FB_ERR_LIMIT);
        }
    }
    fb_json_object_free(&object);
}

static void value(fb_span in)
{
    fb_text out = {NULL, 0, 0};
    char why[200] = "";
    if (fb_json_value_read(in, &out, why, sizeof why)) {
        fb_status status = fb_json_value_check(fb_span_of(out.p, out.len));
        fb_fuzz_require(status == FB_OK || status == FB_ERR_LIMIT);
    } else {
        fb_fuzz_require(why[0] != 0);
    }
    fb_text_free(&out);
}

static void path(fb_span in)
{
    char *text = malloc(in.len + 1);
    fb_fuzz_require(text != NULL);
    if (in.len != 0) memcpy(text, in.p, in.len);
    text[in.len] = 0;
    if (fb_exchange_decode(text)) fb_fuzz_require(fb_text_is_utf8(fb_span_text(text)));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fb_span in = {data, size};
    object(in);
    value(in);
    path(in);
    return 0;
}
