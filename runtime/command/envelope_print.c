/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/envelope_print.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"
#include "protocol/envelope/json.h"
#include "runtime/command/cli.h"
#include "runtime/text.h"

#define HEX_STEP 512

static void print_hex(fb_span bytes)
{
    char digits[2 * HEX_STEP];
    for (size_t at = 0; at < bytes.len; at += HEX_STEP) {
        size_t len = bytes.len - at < HEX_STEP ? bytes.len - at : HEX_STEP;
        fb_hex_format(bytes.p + at, len, digits);
        fwrite(digits, 1, 2 * len, stdout);
    }
}

static void print_line(json_t *object)
{
    json_dumpf(object, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(object);
}

static void set_hex(json_t *object, const char *name, const uint8_t *bytes, size_t len)
{
    char digits[129];
    if (2 * len >= sizeof digits) return;
    fb_hex_text(bytes, len, digits);
    json_object_set_new(object, name, json_string(digits));
}

static void set_uuid(json_t *object, const char *name, fb_id id)
{
    char text[FB_UUID_TEXT_LEN + 1] = {0};
    fb_uuid_format(id, text);
    json_object_set_new(object, name, json_string(text));
}

static void set_verdict(json_t *object, const fb_envelope_fault *fault)
{
    bool refused = fault->reason != FB_OK;
    json_object_set_new(object, "verdict", json_string(refused ? "refuse" : "accept"));
    if (!refused) return;
    json_object_set_new(object, "reason", json_string(fb_error_name(fault->reason)));
    if (fault->field != FB_ENVELOPE_NONE) {
        json_object_set_new(object, "field", json_string(fb_envelope_field_name(fault->field)));
    }
    json_object_set_new(object, "detail", json_string(fault->detail));
}

void fb_print_refusal(const fb_envelope_input *in, const fb_envelope_fault *fault)
{
    const char *field = fb_envelope_field_name(fault->field);
    fb_cli_put_visible(in->file);
    fputc(':', stderr);
    if (in->number != 0) fprintf(stderr, "%" PRIu64 ":", in->number);
    fprintf(stderr, " %s: %s%s%s", fb_error_name(fault->reason), field, field[0] != 0 ? ": " : "",
            fault->detail);
    if (fault->offset != 0) fprintf(stderr, " (at byte %zu)", fault->offset);
    fputc('\n', stderr);
}

void fb_print_verdict(const fb_envelope_input *in, const fb_envelope *e,
                      const fb_envelope_fault *fault)
{
    json_t *object = json_object();
    set_verdict(object, fault);
    if (fb_envelope_has(e, FB_ENVELOPE_ID)) set_uuid(object, "id", e->id);
    print_line(object);
    if (fault->reason != FB_OK) fb_print_refusal(in, fault);
}

void fb_print_preimage(const fb_envelope *e)
{
    fb_preimage preimage;
    fb_envelope_preimage(e, &preimage);
    fputs("{\"preimage\":\"", stdout);
    for (size_t i = 0; i < 3; i++) print_hex(preimage.parts[i]);
    fputs("\"}\n", stdout);
}

/* NAME as RFC 3339 in UTC and NAME_ms beside it. Years above 9999 have no such text: null. */
static void set_time(json_t *object, const char *name, uint64_t ms)
{
    static const uint64_t year_10000_ms = UINT64_C(253402300800000);
    char ms_name[40], text[FB_TIME_TEXT_BYTES] = "";
    snprintf(ms_name, sizeof ms_name, "%s_ms", name);
    if (ms < year_10000_ms) fb_time_format((int64_t)ms * 1000, text);
    json_object_set_new(object, name, ms < year_10000_ms ? json_string(text) : json_null());
    json_object_set_new(object, ms_name, json_integer((json_int_t)ms));
}

static void set_target(json_t *object, const fb_envelope *e)
{
    if (e->mode == FB_DELIVERY_UNICAST) {
        set_hex(object, "target", e->target_node.b, sizeof e->target_node.b);
    } else {
        json_object_set_new(object, "target", json_stringn((const char *)e->topic.p, e->topic.len));
    }
}

/* The payload as text; as hex when it is no UTF-8, which only protobuf can carry. */
static void set_payload(json_t *object, fb_span payload)
{
    json_t *text = json_stringn((const char *)payload.p, payload.len);
    if (text != NULL) {
        json_object_set_new(object, "payload", text);
    } else {
        char *digits = malloc(2 * payload.len + 1);
        if (digits == NULL) return;
        fb_hex_text(payload.p, payload.len, digits);
        json_object_set_new(object, "payload_hex", json_string(digits));
        free(digits);
    }
    json_object_set_new(object, "payload_bytes", json_integer((json_int_t)payload.len));
}

static void set_fields(json_t *object, const fb_envelope *e, int64_t now_ms)
{
    if (fb_envelope_has(e, FB_ENVELOPE_ID)) {
        set_uuid(object, "id", e->id);
        set_time(object, "id_time", fb_uuid_ms(e->id));
    }
    if (fb_envelope_has(e, FB_ENVELOPE_SPACE)) set_uuid(object, "information_space_id", e->space);
    if (fb_envelope_has(e, FB_ENVELOPE_SOURCE)) {
        set_hex(object, "source_node_id", e->source.b, sizeof e->source.b);
    }
    if (fb_envelope_has(e, FB_ENVELOPE_MODE)) {
        json_object_set_new(object, "delivery_mode",
                            json_string(e->mode == FB_DELIVERY_UNICAST ? "unicast" : "topic"));
    }
    if (fb_envelope_has(e, FB_ENVELOPE_TARGET)) set_target(object, e);
    if (fb_envelope_has(e, FB_ENVELOPE_TYPE)) {
        json_object_set_new(object, "message_type", json_string(fb_message_type_name(e->type)));
    }
    if (e->payload.p != NULL) set_payload(object, e->payload);
    if (fb_envelope_has(e, FB_ENVELOPE_TIMESTAMP)) {
        set_time(object, "timestamp", e->timestamp);
        json_object_set_new(object, "age_ms", json_integer(now_ms - (int64_t)e->timestamp));
    }
    if (fb_envelope_has(e, FB_ENVELOPE_CORRELATION)) {
        set_uuid(object, "correlation_id", e->correlation);
    }
    if (fb_envelope_has(e, FB_ENVELOPE_SIGNATURE)) {
        set_hex(object, "signature", e->signature.b, sizeof e->signature.b);
    }
}

/* Members of the JSON text that break their rule, as they are written. */
static void set_unreadable(json_t *object, fb_span text, const fb_envelope *e)
{
    static const fb_json_rules rules = {FB_JSON_DEPTH_MAX, FB_JSON_NAMES_MAX, true, false, 0};
    fb_json_watch watch[FB_ENVELOPE_FIELDS];
    for (unsigned i = 0; i < FB_ENVELOPE_FIELDS; i++) {
        watch[i].name = fb_span_text(fb_envelope_field_name((fb_envelope_field)(i + 1)));
    }
    fb_json_scan(text, &rules, watch, FB_ENVELOPE_FIELDS, NULL);
    json_t *unreadable = json_object();
    for (unsigned i = 0; i < FB_ENVELOPE_FIELDS; i++) {
        fb_envelope_field field = (fb_envelope_field)(i + 1);
        if (watch[i].value.len == 0 || fb_envelope_has(e, field)) continue;
        if (field == FB_ENVELOPE_PAYLOAD && e->payload.p != NULL) continue;
        const char *spelled = (const char *)watch[i].value.p;
        json_t *value = json_loadb(spelled, watch[i].value.len, JSON_DECODE_ANY, NULL);
        /* A number that no integer holds is shown as it is spelled. */
        if (value == NULL) value = json_stringn(spelled, watch[i].value.len);
        json_object_set_new(unreadable, fb_envelope_field_name(field), value);
    }
    if (json_object_size(unreadable) != 0) json_object_set(object, "unreadable", unreadable);
    json_decref(unreadable);
}

/* Length of an encoding, for which there is room in every case. */
static size_t encoded_size(const fb_envelope *e,
                           fb_status (*encode)(const fb_envelope *, fb_writer *))
{
    static uint8_t room[FB_ENVELOPE_JSON_BYTES_MAX];
    fb_writer w = fb_writer_of(room, sizeof room);
    return encode(e, &w) == FB_OK ? w.at : 0;
}

static void set_sizes(json_t *object, const fb_envelope *e)
{
    json_t *sizes = json_object();
    fb_preimage preimage;
    fb_envelope_preimage(e, &preimage);
    size_t signed_bytes = preimage.parts[0].len + preimage.parts[1].len + preimage.parts[2].len;
    json_object_set_new(sizes, "json",
                        json_integer((json_int_t)encoded_size(e, fb_envelope_encode_json)));
    json_object_set_new(sizes, "protobuf",
                        json_integer((json_int_t)encoded_size(e, fb_envelope_encode_protobuf)));
    json_object_set_new(sizes, "preimage", json_integer((json_int_t)signed_bytes));
    json_object_set_new(object, "bytes", sizes);
}

void fb_print_inspection(const fb_envelope_input *in, bool protobuf, const fb_envelope *e,
                         const fb_envelope_fault *fault, int64_t now_ms)
{
    json_t *object = json_object();
    set_verdict(object, fault);
    set_fields(object, e, now_ms);
    if (fault->reason != FB_ERR_TOO_LARGE) {
        json_object_set_new(object, "input_bytes", json_integer((json_int_t)in->bytes.len));
        if (fault->reason != FB_OK && !protobuf) set_unreadable(object, in->bytes, e);
    }
    if (fault->reason == FB_OK) set_sizes(object, e);
    print_line(object);
    if (fault->reason != FB_OK) fb_print_refusal(in, fault);
}
