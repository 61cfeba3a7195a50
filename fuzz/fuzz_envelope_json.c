/* SPDX-License-Identifier: Apache-2.0 */
/* JSON envelopes from files, tools and other runtimes. Beside memory errors it looks for:
 *
 * - an accepted envelope that does not survive both encodings;
 * - a disagreement with Jansson about what is one JSON object without repeated names;
 * - values that Jansson reads differently. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "fuzz/envelope_same.h"
#include "protocol/base/hex.h"
#include "protocol/envelope/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_known(const char *name)
{
    for (unsigned i = 1; i <= FB_ENVELOPE_FIELDS; i++) {
        if (strcmp(name, fb_envelope_field_name((fb_envelope_field)i)) == 0) return true;
    }
    return false;
}

/* The form of profile 3 and 4 as far as Jansson's tree shows it. */
static bool is_well_formed(json_t *root)
{
    const char *name;
    json_t *value;
    if (!json_is_object(root)) return false;
    json_object_foreach(root, name, value)
    {
        if (!is_known(name)) return false;
        bool number = strcmp(name, "timestamp") == 0;
        if (number ? !json_is_number(value) : !json_is_string(value)) return false;
    }
    bool correlation = json_object_get(root, "correlation_id") != NULL;
    if (json_object_size(root) != FB_ENVELOPE_FIELDS - (correlation ? 0u : 1u)) return false;
    const json_t *signature = json_object_get(root, "signature");
    uint8_t bytes[64];
    return fb_hex_parse(fb_span_of(json_string_value(signature), json_string_length(signature)),
                        bytes, sizeof bytes);
}

static void compare(const fb_envelope *e, json_t *root)
{
    const json_t *payload = json_object_get(root, "payload");
    const json_t *type = json_object_get(root, "message_type");
    fb_fuzz_require(fb_span_equal(
        e->payload, fb_span_of(json_string_value(payload), json_string_length(payload))));
    fb_fuzz_require(strcmp(json_string_value(type), fb_message_type_name(e->type)) == 0);
    fb_fuzz_require((uint64_t)json_integer_value(json_object_get(root, "timestamp")) ==
                    e->timestamp);
    fb_fuzz_require((json_object_get(root, "correlation_id") != NULL) == e->has_correlation);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static fb_envelope_scratch scratch;
    fb_envelope e;
    fb_envelope_fault fault;
    fb_span text = {data, size};
    fb_status status = fb_envelope_decode_json(text, &scratch, &e, &fault);
    fb_fuzz_require(status == fault.reason && fault.offset <= size);
    if (status == FB_OK) fb_fuzz_accepted(&e);
    fb_envelope draft;
    fb_status as_draft = fb_envelope_draft_json(text, &scratch, &draft, NULL);
    if (status == FB_OK) fb_fuzz_require(as_draft == FB_OK);

    if (status == FB_ERR_TOO_LARGE) return 0;
    if (size != 0 && memchr(data, 0, size) != NULL) {
        /* Jansson passes over a NUL behind a number; RFC 8259 has no place for one. */
        fb_fuzz_require(status == FB_ERR_MALFORMED && fb_json_value_check(text) != FB_OK);
        return 0;
    }
    json_error_t error;
    json_t *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &error);
    if (root != NULL) {
        fb_fuzz_require(is_well_formed(root) == (status != FB_ERR_MALFORMED));
        if (status == FB_OK) compare(&e, root);
    } else if (status != FB_ERR_MALFORMED) {
        /* Jansson also refuses numbers that its integers or doubles do not hold. */
        fb_fuzz_require(status != FB_OK);
        fb_fuzz_require(json_error_code(&error) == json_error_numeric_overflow);
    }
    json_decref(root);

    /* A payload, or any text: the compact form means the same and is as good. */
    static uint8_t compact[FB_ENVELOPE_JSON_BYTES_MAX];
    size_t len, again;
    if (fb_json_value_check(text) == FB_OK) {
        fb_fuzz_require(fb_json_compact(text, compact, size, &len) == FB_OK);
        fb_fuzz_require(fb_json_value_check(fb_span_of(compact, len)) == FB_OK);
        fb_fuzz_require(fb_json_compact(fb_span_of(compact, len), compact, len, &again) == FB_OK);
        fb_fuzz_require(again == len);
    }
    return 0;
}
