/* SPDX-License-Identifier: Apache-2.0 */
/* Short texts that people, files and peers write: identifiers, hex, topics, addresses, numbers and
 * times of the simulator's flags, cursors of feeds. Each has one form, so what is read is printed
 * as it was. The address of a document store is shown without what is secret in it.
 *
 * Input: a byte (which one), then the text. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/envelope_same.h"
#include "io/net/address.h"
#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"
#include "runtime/api/request_codec.h"
#include "runtime/daemon/document_store.h"
#include "runtime/text.h"
#include "sim/main_sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void uuid(fb_span in, const char *text)
{
    (void)text;
    fb_id id, again;
    char out[FB_UUID_TEXT_LEN];
    if (!fb_uuid_parse(in, &id)) {
        fb_fuzz_require(!fb_uuid_parse_v7(in, &again));
        return;
    }
    fb_uuid_format(id, out);
    fb_fuzz_require(fb_span_equal(in, fb_span_of(out, sizeof out)));
    fb_fuzz_require(fb_uuid_parse_v7(in, &again) == fb_uuid_is_v7(id));
}

static void hex(fb_span in, const char *text)
{
    (void)text;
    uint8_t bytes[128];
    char out[256];
    if (in.len > sizeof out || !fb_hex_parse(in, bytes, in.len / 2)) return;
    fb_hex_format(bytes, in.len / 2, out);
    fb_fuzz_require(fb_span_equal(in, fb_span_of(out, in.len)));
}

static void topic(fb_span in, const char *text)
{
    (void)text;
    fb_topic known = fb_topic_of(in);
    if (known != FB_TOPIC_FOREIGN) {
        fb_fuzz_require(fb_topic_is_well_formed(in));
        fb_fuzz_require(fb_span_equal(in, fb_span_text(fb_topic_name(known))));
    }
    fb_message_type type = fb_message_type_of(in);
    if (type != 0) fb_fuzz_require(fb_span_equal(in, fb_span_text(fb_message_type_name(type))));
}

static void address(fb_span in, const char *text)
{
    (void)text;
    fb_address address;
    if (fb_address_parse(in, &address) != FB_OK) return;
    fb_sockaddr number, again;
    if (!fb_address_numeric(&address, &number)) return;
    char out[128];
    fb_sockaddr_text(&number, out, sizeof out);
    fb_fuzz_require(fb_address_parse(fb_span_text(out), &address) == FB_OK);
    fb_fuzz_require(fb_address_numeric(&address, &again));
}

static void numbers(fb_span in, const char *text)
{
    (void)in;
    uint64_t value;
    (void)fb_sim_parse_number(text, &value);
    (void)fb_sim_parse_time(text, &value);
    unsigned long long number;
    if (fb_text_number(text, 1000, &number)) fb_fuzz_require(number <= 1000);
}

/* What is shown of a peer's words breaks no terminal and no JSON. */
static void shown(fb_span in, const char *text)
{
    (void)text;
    fb_text out = {NULL, 0, 0};
    fb_json_string(&out, in);
    fb_span json = fb_span_of(fb_text_string(&out), out.len);
    fb_fuzz_require(fb_text_is_utf8(json));
    for (size_t i = 0; i < json.len; i++) fb_fuzz_require(json.p[i] >= 0x20 && json.p[i] != 0x7f);
    fb_text_clear(&out);
    fb_log_value(&out, in);
    for (size_t i = 0; i < out.len; i++) {
        fb_fuzz_require((uint8_t)out.p[i] >= 0x20 && out.p[i] != 0x7f);
    }
    fb_text_free(&out);
}

static void cursor(fb_span in, const char *text)
{
    (void)in;
    fb_feed_cursor cursor;
    char out[FB_CURSOR_TEXT_MAX + 1];
    if (!fb_feed_cursor_parse(text, &cursor)) {
        fb_fuzz_require(cursor.sequence == 0 && cursor.incarnation == 0 && cursor.space == 0);
        return;
    }
    fb_fuzz_require(strcmp(fb_feed_cursor_format(cursor, out), text) == 0);
}

#define SECRET "QQQ"

static void expect_hidden(const char *setting)
{
    char whole[1024], part[1024];
    fb_document_store_hide(setting, whole, sizeof whole);
    fb_fuzz_require(strstr(whole, SECRET) == NULL);
    for (size_t len = 1; len < 40; len += 13) {
        fb_document_store_hide(setting, part, len);
        fb_fuzz_require(strlen(part) < len && strncmp(part, whole, strlen(part)) == 0);
    }
}

/* The secret as a password, and as the value of an option that must not be shown. */
static void store_address(fb_span in, const char *text)
{
    if (in.len > 400 || strchr(text, SECRET[0]) != NULL) return;
    char setting[1024];
    snprintf(setting, sizeof setting, "mongodb://user:" SECRET "@%s", text);
    expect_hidden(setting);
    const char *middle = strchr(text, '|');
    int hosts = (int)(middle == NULL ? strlen(text) : (size_t)(middle - text));
    bool has_options = memchr(text, '?', (size_t)hosts) != NULL;
    snprintf(setting, sizeof setting,
             "mongodb+srv://%.*s%ctlsCertificateKeyFilePassword=" SECRET "%s", hosts, text,
             has_options ? '&' : '?', middle == NULL ? "" : middle + 1);
    expect_hidden(setting);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(fb_span, const char *) = {uuid,    hex,   topic,  address,
                                                             numbers, shown, cursor, store_address};
    if (size == 0) return 0;
    char *text = malloc(size);
    fb_fuzz_require(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    readers[data[0] % 8](fb_span_of(data + 1, size - 1), text);
    free(text);
    return 0;
}
