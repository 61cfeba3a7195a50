/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON encoding (profile 3): exactly the draft's members, each in the one form. */
#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"
#include "protocol/envelope/fields.h"
#include "protocol/envelope/json_scan.h"

/* Strings of fixed form are at most as long as a signature. */
#define SHORT_MAX 128u

#define NAME(text)                                                                                 \
    {                                                                                              \
        .name = {(const uint8_t *)text, sizeof text - 1 }                                          \
    }

/* FM-12.1-1, MP-3-1 */
static const fb_json_watch members[FB_ENVELOPE_FIELDS] = {
    NAME("id"),
    NAME("information_space_id"),
    NAME("source_node_id"),
    NAME("delivery_mode"),
    NAME("target"),
    NAME("message_type"),
    NAME("payload"),
    NAME("timestamp"),
    NAME("correlation_id"),
    NAME("signature"),
};

_Static_assert(sizeof((fb_envelope_scratch *)0)->payload >=
                       FB_PAYLOAD_BYTES_MAX + FB_JSON_ROOM_MORE &&
                   FB_JSON_ROOM_MORE >= FB_JSON_BEHIND,
               "an unescaped payload has the room that the scan wants");

typedef struct json_decoding {
    fb_decoding d;
    fb_json_watch watch[FB_ENVELOPE_FIELDS];
    fb_json_wanted payload;
    fb_envelope_scratch *scratch;
} json_decoding;

static const fb_json_watch *member(const json_decoding *j, fb_envelope_field field)
{
    return &j->watch[field - 1];
}

static bool has_string(const json_decoding *j, fb_envelope_field field)
{
    return fb_json_is_string(member(j, field)->value);
}

/* A string without escapes, or unescaped into room. */
static bool short_string(const json_decoding *j, fb_envelope_field field, uint8_t room[SHORT_MAX],
                         fb_span *out)
{
    return fb_json_unquote(member(j, field), room, SHORT_MAX, out);
}

/* The form, beyond the grammar: members that must be there, and JSON types (profile 4). */
/* FM-5.1-1, FM-5.1-10, FM-9-1, MP-4-2 */
static void check_members(json_decoding *j, bool draft)
{
    for (unsigned i = FB_ENVELOPE_ID; i <= FB_ENVELOPE_SIGNATURE; i++) {
        fb_envelope_field field = (fb_envelope_field)i;
        fb_span value = member(j, field)->value;
        bool optional = field == FB_ENVELOPE_CORRELATION ||
                        (draft && (field == FB_ENVELOPE_SOURCE || field == FB_ENVELOPE_SIGNATURE));
        if (value.len == 0) {
            if (!optional)
                fb_decoding_refuse(&j->d, FB_ERR_MALFORMED, field, "the member is missing");
        } else if (field == FB_ENVELOPE_TIMESTAMP) {
            if (!fb_json_is_number(value)) {
                fb_decoding_refuse(&j->d, FB_ERR_MALFORMED, field, "not a number");
            }
        } else if (!fb_json_is_string(value)) {
            fb_decoding_refuse(&j->d, FB_ERR_MALFORMED, field, "not a string");
        }
    }
}

/* FM-11-9, MP-3-2 */
static void read_signature(json_decoding *j)
{
    uint8_t room[SHORT_MAX];
    fb_span text;
    if (!has_string(j, FB_ENVELOPE_SIGNATURE)) return;
    if (short_string(j, FB_ENVELOPE_SIGNATURE, room, &text) &&
        fb_hex_parse(text, j->d.e->signature.b, sizeof j->d.e->signature.b)) {
        fb_decoding_read(&j->d, FB_ENVELOPE_SIGNATURE);
    } else {
        fb_decoding_refuse(&j->d, FB_ERR_MALFORMED, FB_ENVELOPE_SIGNATURE,
                           "not 128 lowercase hex digits");
    }
}

static void read_uuid(json_decoding *j, fb_envelope_field field)
{
    uint8_t room[SHORT_MAX];
    fb_span text;
    fb_id id;
    if (!has_string(j, field)) return;
    bool good = short_string(j, field, room, &text) && fb_uuid_parse(text, &id);
    fb_field_uuid(&j->d, field, good ? &id : NULL);
}

/* MP-1-2 */
static bool read_node_id(const json_decoding *j, fb_envelope_field field, fb_id *id)
{
    uint8_t room[SHORT_MAX];
    fb_span text;
    return short_string(j, field, room, &text) && fb_hex_parse(text, id->b, sizeof id->b);
}

static void read_mode(json_decoding *j)
{
    uint8_t room[SHORT_MAX];
    fb_span text;
    if (!has_string(j, FB_ENVELOPE_MODE)) return;
    unsigned mode = 0;
    if (short_string(j, FB_ENVELOPE_MODE, room, &text)) {
        if (fb_span_equal(text, fb_span_text("unicast"))) mode = FB_DELIVERY_UNICAST;
        if (fb_span_equal(text, fb_span_text("topic"))) mode = FB_DELIVERY_TOPIC;
    }
    fb_field_mode(&j->d, mode);
}

static void read_target(json_decoding *j)
{
    if (!has_string(j, FB_ENVELOPE_TARGET)) return;
    if (j->d.e->mode == FB_DELIVERY_UNICAST) {
        fb_id id;
        fb_field_target_node(&j->d, read_node_id(j, FB_ENVELOPE_TARGET, &id) ? &id : NULL);
    } else if (j->d.e->mode == FB_DELIVERY_TOPIC) {
        fb_span name = {NULL, 0};
        if (!fb_json_unquote(member(j, FB_ENVELOPE_TARGET), j->scratch->topic,
                             sizeof j->scratch->topic, &name)) {
            name.len = 0; /* longer than any topic */
        }
        fb_field_target_topic(&j->d, name);
    }
}

static void read_type(json_decoding *j)
{
    uint8_t room[SHORT_MAX];
    fb_span text;
    if (!has_string(j, FB_ENVELOPE_TYPE)) return;
    if (!short_string(j, FB_ENVELOPE_TYPE, room, &text)) text.len = 0;
    fb_field_type(&j->d, text);
}

/* The scan itself has unescaped it. */
static void read_payload(json_decoding *j, fb_span text)
{
    const fb_json_wanted *payload = &j->payload;
    if (!has_string(j, FB_ENVELOPE_PAYLOAD)) return;
    if (!payload->fits) {
        fb_decoding_refuse(&j->d, FB_ERR_BAD_PAYLOAD, FB_ENVELOPE_PAYLOAD,
                           "longer than 49,152 bytes");
        return;
    }
    const uint8_t *end = payload->member->escaped ? j->scratch->payload + sizeof j->scratch->payload
                                                  : text.p + text.len;
    const uint8_t *last = payload->text.p + payload->text.len;
    fb_field_payload(&j->d, payload->text, (size_t)(end - last));
}

static void read_timestamp(json_decoding *j)
{
    fb_span text = member(j, FB_ENVELOPE_TIMESTAMP)->value;
    if (!fb_json_is_number(text)) return;
    /* 16 digits hold 2^53-1 and cannot overflow; the grammar has refused leading zeros. */
    bool in_form = text.len <= 16;
    uint64_t v = 0;
    for (size_t i = 0; i < text.len && in_form; i++) {
        uint8_t c = text.p[i];
        in_form = c >= '0' && c <= '9';
        v = v * 10 + (uint64_t)(c - '0');
    }
    fb_field_timestamp(&j->d, in_form, v);
}

static fb_status decode(fb_span text, bool draft, fb_envelope_scratch *scratch, fb_envelope *out,
                        fb_envelope_fault *fault)
{
    /* MP-3-3, MP-4-1, MP-4-3 */
    static const fb_json_rules rules = {FB_JSON_DEPTH_MAX, FB_JSON_NAMES_MAX, true, true, 0};
    json_decoding j;
    j.d = (fb_decoding){out, 0, {FB_OK, FB_ENVELOPE_NONE, "", 0}};
    j.scratch = scratch;
    *out = (fb_envelope){0};
    /* MP-3-8 */
    if (text.len > FB_ENVELOPE_JSON_BYTES_MAX) {
        fb_decoding_refuse(&j.d, FB_ERR_TOO_LARGE, FB_ENVELOPE_NONE, "longer than 327,680 bytes");
        return fb_decoding_end(&j.d, fault);
    }
    memcpy(j.watch, members, sizeof j.watch);
    j.payload = (fb_json_wanted){.member = &j.watch[FB_ENVELOPE_PAYLOAD - 1],
                                 .room = scratch->payload,
                                 .cap = FB_PAYLOAD_BYTES_MAX};
    size_t at;
    const fb_json_hint hint = {0, 0, &j.payload};
    fb_json_fault form = fb_json_scan_hinted(text, &hint, &rules, j.watch, FB_ENVELOPE_FIELDS, &at);
    if (form != FB_JSON_NONE) {
        fb_decoding_refuse(&j.d, FB_ERR_MALFORMED, FB_ENVELOPE_NONE, fb_json_fault_text(form));
        j.d.fault.offset = at;
    }
    check_members(&j, draft);
    read_signature(&j);

    read_uuid(&j, FB_ENVELOPE_ID);
    read_uuid(&j, FB_ENVELOPE_SPACE);
    if (has_string(&j, FB_ENVELOPE_SOURCE)) {
        fb_id id;
        fb_field_source(&j.d, read_node_id(&j, FB_ENVELOPE_SOURCE, &id) ? &id : NULL);
    }
    read_mode(&j);
    read_target(&j);
    read_type(&j);
    read_payload(&j, text);
    read_timestamp(&j);
    read_uuid(&j, FB_ENVELOPE_CORRELATION);
    return fb_decoding_end(&j.d, fault);
}

fb_status fb_envelope_decode_json(fb_span text, fb_envelope_scratch *scratch, fb_envelope *out,
                                  fb_envelope_fault *fault)
{
    return decode(text, false, scratch, out, fault);
}

fb_status fb_envelope_draft_json(fb_span text, fb_envelope_scratch *scratch, fb_envelope *out,
                                 fb_envelope_fault *fault)
{
    return decode(text, true, scratch, out, fault);
}

static void put(fb_writer *w, const char *text)
{
    fb_write_bytes(w, text, strlen(text));
}

static void put_name(fb_writer *w, fb_envelope_field field)
{
    put(w, field == FB_ENVELOPE_ID ? "{\"" : ",\"");
    put(w, fb_envelope_field_name(field));
    put(w, "\":");
}

static void put_text(fb_writer *w, fb_envelope_field field, const char *text)
{
    put_name(w, field);
    put(w, "\"");
    put(w, text);
    put(w, "\"");
}

static void put_hex(fb_writer *w, fb_envelope_field field, const uint8_t *bytes, size_t len)
{
    put_name(w, field);
    put(w, "\"");
    uint8_t *room = fb_write_room(w, 2 * len);
    if (room != NULL) fb_hex_format(bytes, len, (char *)room);
    put(w, "\"");
}

static void put_uuid(fb_writer *w, fb_envelope_field field, fb_id id)
{
    char text[FB_UUID_TEXT_LEN + 1] = {0};
    fb_uuid_format(id, text);
    put_text(w, field, text);
}

static void put_quoted(fb_writer *w, fb_envelope_field field, fb_span text)
{
    put_name(w, field);
    if (w->failed) return;
    size_t len;
    if (fb_json_quote(text, w->p + w->at, w->cap - w->at, &len)) {
        w->at += len;
    } else {
        w->failed = true;
    }
}

static void put_number(fb_writer *w, fb_envelope_field field, uint64_t v)
{
    uint8_t digits[20];
    size_t n = sizeof digits;
    do {
        digits[--n] = (uint8_t)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    put_name(w, field);
    fb_write_bytes(w, digits + n, sizeof digits - n);
}

fb_status fb_envelope_encode_json(const fb_envelope *e, fb_writer *out)
{
    put_uuid(out, FB_ENVELOPE_ID, e->id);
    put_uuid(out, FB_ENVELOPE_SPACE, e->space);
    put_hex(out, FB_ENVELOPE_SOURCE, e->source.b, sizeof e->source.b);
    if (e->mode == FB_DELIVERY_UNICAST) {
        put_text(out, FB_ENVELOPE_MODE, "unicast");
        put_hex(out, FB_ENVELOPE_TARGET, e->target_node.b, sizeof e->target_node.b);
    } else {
        put_text(out, FB_ENVELOPE_MODE, "topic");
        put_quoted(out, FB_ENVELOPE_TARGET, e->topic);
    }
    put_text(out, FB_ENVELOPE_TYPE, fb_message_type_name(e->type));
    put_quoted(out, FB_ENVELOPE_PAYLOAD, e->payload);
    put_number(out, FB_ENVELOPE_TIMESTAMP, e->timestamp);
    if (e->has_correlation) put_uuid(out, FB_ENVELOPE_CORRELATION, e->correlation);
    put_hex(out, FB_ENVELOPE_SIGNATURE, e->signature.b, sizeof e->signature.b);
    put(out, "}");
    return out->failed ? FB_ERR_NO_SPACE : FB_OK;
}
