/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of a database that other programs write in too: any bytes as a document of BSON, read
 * as a record's and field by field; and any JSON text as a value, which a server takes and which
 * comes back as a JSON text.
 *
 * Input: a byte (which one), then the document or the text. */
#include <stdlib.h>

#include "fuzz/envelope_same.h"
#include "io/mongo/client.h"
#include "io/mongo/document.h"
#include "io/mongo/json.h"
#include "io/mongo/value.h"
#include "protocol/envelope/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VALUE_BYTES_MAX 4096u

static bool differs(void *user, fb_span name, fb_span json)
{
    unsigned *told = user;
    fb_fuzz_require(name.len == 0 || name.p != NULL);
    fb_fuzz_require(json.len == 0 || json.p != NULL);
    return ++*told < 64;
}

static void document(fb_span in)
{
    bson_t from;
    if (!bson_init_static(&from, in.p, in.len)) return;
    fb_document out;
    fb_document_value *values = NULL;
    fb_status status = fb_mongo_document_read(&from, &out, &values);
    fb_fuzz_require(status == FB_OK || status == FB_ERR_BAD_UUID || status == FB_ERR_NOT_FOUND ||
                    status == FB_ERR_STORE_DAMAGED || status == FB_ERR_VERSION_NEWER);
    if (status == FB_OK) {
        fb_fuzz_require(out.record.len == 0 ||
                        (out.record.p >= in.p && out.record.p < in.p + in.len));
        for (size_t i = 0; i < out.value_count; i++) {
            fb_span value = out.values[i].value;
            fb_fuzz_require(value.len == 0 || (value.p >= in.p && value.p < in.p + in.len));
        }
    }
    free(values);
    char why[128] = "";
    unsigned told = 0;
    const fb_document_field shown[] = {{fb_span_text("a"), fb_span_text("1")},
                                       {fb_span_text("b.c"), fb_span_text("[true,{\"d\":null}]")}};
    status = fb_mongo_edits(in, shown, 2, differs, &told, why, sizeof why);
    fb_fuzz_require(status == FB_OK || why[0] != 0);
}

static void value(fb_span in)
{
    if (in.len > VALUE_BYTES_MAX || fb_json_value_check(in) != FB_OK) return;
    bson_t to = BSON_INITIALIZER;
    fb_fuzz_require(fb_mongo_append(&to, fb_span_text("a.$b"), true, in));
    const bson_validate_flags_t flags = BSON_VALIDATE_UTF8 | BSON_VALIDATE_UTF8_ALLOW_NULL |
                                        BSON_VALIDATE_DOLLAR_KEYS | BSON_VALIDATE_DOT_KEYS;
    fb_fuzz_require(bson_validate(&to, flags, NULL));
    bson_iter_t at;
    fb_fuzz_require(bson_iter_init(&at, &to) && bson_iter_next(&at));
    json_t *back = fb_mongo_json(&at);
    fb_fuzz_require(back != NULL && fb_mongo_json_same(back, back));
    char *text = fb_mongo_json_text(back);
    fb_fuzz_require(text != NULL && fb_json_value_check(fb_span_text(text)) == FB_OK);
    free(text);
    json_decref(back);
    bson_destroy(&to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    fb_span in = fb_span_of(data + 1, size - 1);
    if ((data[0] & 1) != 0) {
        value(in);
    } else {
        document(in);
    }
    return 0;
}
