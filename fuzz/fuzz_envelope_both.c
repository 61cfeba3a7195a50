/* SPDX-License-Identifier: Apache-2.0 */
/* One envelope in both encodings: made from values that are right, or wrong in ways that both can
 * say. The two decoders must give one verdict, and of an accepted one the same signed bytes.
 *
 * Input, a form of its own so that few bytes are wasted: flags, then for each field what it is, and
 * at the end the payload. So every input reaches the rules behind the grammar. */
#include "fuzz/envelope_same.h"
#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"
#include "protocol/envelope/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the input says. */
typedef struct values {
    uint32_t flags;
    fb_id id, space, source, node, correlation;
    uint8_t mode, type, topic_len;
    uint64_t timestamp;
    fb_span topic;
    fb_span payload;
} values;

enum { NO_TYPE = 1, FREE_TOPIC = 2, CORRELATION = 4, BARE_ID = 8, BARE_SPACE = 16 };

static fb_id id_from(fb_reader *r, bool bare)
{
    fb_id id = fb_read_id(r);
    if (bare) return id;
    id.b[6] = (uint8_t)(0x70 | (id.b[6] & 15));
    id.b[8] = (uint8_t)(0x80 | (id.b[8] & 63));
    return id;
}

static values read_values(fb_reader *r)
{
    values v = {.flags = fb_read_u8(r)};
    v.id = id_from(r, (v.flags & BARE_ID) != 0);
    v.space = id_from(r, (v.flags & BARE_SPACE) != 0);
    v.source = fb_read_id(r);
    v.node = fb_read_id(r);
    v.correlation = id_from(r, false);
    v.mode = fb_read_u8(r) % 3;
    v.type = fb_read_u8(r) % 4;
    v.timestamp = fb_read_u64(r) >> fb_read_u8(r) % 64;
    v.topic = fb_read_bytes(r, fb_read_u8(r) % 140);
    v.payload = fb_read_bytes(r, fb_reader_left(r));
    return v;
}

static void put(fb_writer *w, const char *text)
{
    fb_write_bytes(w, text, strlen(text));
}

static void member(fb_writer *w, fb_envelope_field field)
{
    put(w, field == FB_ENVELOPE_ID ? "{\"" : ",\"");
    put(w, fb_envelope_field_name(field));
    put(w, "\":");
}

static void text_member(fb_writer *w, fb_envelope_field field, fb_span text)
{
    member(w, field);
    size_t len = 0;
    if (w->failed) return;
    fb_fuzz_require(fb_json_quote(text, w->p + w->at, w->cap - w->at, &len));
    w->at += len;
}

static void hex_member(fb_writer *w, fb_envelope_field field, const uint8_t *bytes, size_t len)
{
    char digits[128];
    fb_hex_format(bytes, len, digits);
    text_member(w, field, fb_span_of(digits, 2 * len));
}

static void uuid_member(fb_writer *w, fb_envelope_field field, fb_id id)
{
    char text[FB_UUID_TEXT_LEN];
    fb_uuid_format(id, text);
    text_member(w, field, fb_span_of(text, sizeof text));
}

static fb_span target_of(const values *v)
{
    static const char *const topics[] = {"platform.replication.database",
                                         "platform.replication.file",
                                         "platform.replication.custom_1", "platform.replication."};
    if (v->mode == FB_DELIVERY_UNICAST) return fb_span_of(v->node.b, sizeof v->node.b);
    if ((v->flags & FREE_TOPIC) != 0 && v->topic.len != 0) return v->topic;
    return fb_span_text(topics[v->flags >> 6 & 3]);
}

static fb_span type_of(const values *v)
{
    if ((v->flags & NO_TYPE) != 0) return fb_span_text("platform.replication.other");
    return fb_span_text(fb_message_type_name((fb_message_type)(v->type == 0 ? 1 : v->type)));
}

static const uint8_t signature[64] = {1, 2, 3};

static void write_json(const values *v, fb_writer *w)
{
    static const char *const modes[] = {"none", "unicast", "topic"};
    uuid_member(w, FB_ENVELOPE_ID, v->id);
    uuid_member(w, FB_ENVELOPE_SPACE, v->space);
    hex_member(w, FB_ENVELOPE_SOURCE, v->source.b, sizeof v->source.b);
    text_member(w, FB_ENVELOPE_MODE, fb_span_text(modes[v->mode]));
    if (v->mode == FB_DELIVERY_UNICAST) {
        hex_member(w, FB_ENVELOPE_TARGET, v->node.b, sizeof v->node.b);
    } else {
        text_member(w, FB_ENVELOPE_TARGET, target_of(v));
    }
    text_member(w, FB_ENVELOPE_TYPE, type_of(v));
    text_member(w, FB_ENVELOPE_PAYLOAD, v->payload);
    member(w, FB_ENVELOPE_TIMESTAMP);
    char digits[24];
    size_t n = sizeof digits;
    uint64_t t = v->timestamp;
    do {
        digits[--n] = (char)('0' + t % 10);
        t /= 10;
    } while (t != 0);
    fb_write_bytes(w, digits + n, sizeof digits - n);
    if ((v->flags & CORRELATION) != 0) uuid_member(w, FB_ENVELOPE_CORRELATION, v->correlation);
    hex_member(w, FB_ENVELOPE_SIGNATURE, signature, sizeof signature);
    put(w, "}");
}

static void varint(fb_writer *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) fb_write_u8(w, (uint8_t)(v | 0x80));
    fb_write_u8(w, (uint8_t)v);
}

static void bytes_field(fb_writer *w, fb_envelope_field field, fb_span bytes)
{
    fb_write_u8(w, (uint8_t)(field << 3 | 2));
    varint(w, bytes.len);
    fb_write_span(w, bytes);
}

static void write_protobuf(const values *v, fb_writer *w)
{
    bytes_field(w, FB_ENVELOPE_ID, fb_span_of(v->id.b, 16));
    bytes_field(w, FB_ENVELOPE_SPACE, fb_span_of(v->space.b, 16));
    bytes_field(w, FB_ENVELOPE_SOURCE, fb_span_of(v->source.b, 16));
    fb_write_u8(w, FB_ENVELOPE_MODE << 3);
    varint(w, v->mode == 0 ? 3 : v->mode);
    bytes_field(w, FB_ENVELOPE_TARGET, target_of(v));
    bytes_field(w, FB_ENVELOPE_TYPE, type_of(v));
    bytes_field(w, FB_ENVELOPE_PAYLOAD, v->payload);
    fb_write_u8(w, FB_ENVELOPE_TIMESTAMP << 3);
    varint(w, v->timestamp);
    if ((v->flags & CORRELATION) != 0) {
        bytes_field(w, FB_ENVELOPE_CORRELATION, fb_span_of(v->correlation.b, 16));
    }
    bytes_field(w, FB_ENVELOPE_SIGNATURE, fb_span_of(signature, sizeof signature));
}

/* Bytes that a JSON string can carry: valid UTF-8 without U+0000. */
static bool is_text(fb_span bytes)
{
    static uint8_t quoted[FB_JSON_QUOTED_MAX(FB_PAYLOAD_BYTES_MAX)];
    size_t len;
    return fb_json_quote(bytes, quoted, sizeof quoted, &len) &&
           fb_json_value_check(fb_span_of(quoted, len)) == FB_OK &&
           (bytes.len == 0 || memchr(bytes.p, 0, bytes.len) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t json[FB_ENVELOPE_JSON_BYTES_MAX], protobuf[2 * FB_ENVELOPE_BYTES_MAX];
    static fb_envelope_scratch scratch;
    fb_reader r = fb_reader_of(fb_span_of(data, size));
    values v = read_values(&r);
    /* What one of them calls missing, the other has no word for. */
    if (r.failed || v.payload.len == 0 || v.payload.len > FB_PAYLOAD_BYTES_MAX) return 0;
    if (v.timestamp == 0 || !is_text(v.payload) || !is_text(target_of(&v))) {
        if (v.mode != FB_DELIVERY_UNICAST || v.timestamp == 0 || !is_text(v.payload)) return 0;
    }
    fb_writer j = fb_writer_of(json, sizeof json), p = fb_writer_of(protobuf, sizeof protobuf);
    write_json(&v, &j);
    write_protobuf(&v, &p);
    fb_fuzz_require(!j.failed && !p.failed);

    fb_envelope a, b;
    fb_envelope_fault x, y;
    fb_status one = fb_envelope_decode_json(fb_writer_span(&j), &scratch, &a, &x);
    fb_status two = fb_envelope_decode_protobuf(fb_writer_span(&p), &b, &y);
    fb_fuzz_require(one == two && x.field == y.field && a.readable == b.readable);
    if (one != FB_OK) return 0;
    fb_preimage left, right;
    fb_envelope_preimage(&a, &left);
    fb_envelope_preimage(&b, &right);
    for (size_t i = 0; i < 3; i++) fb_fuzz_require(fb_span_equal(left.parts[i], right.parts[i]));
    fb_fuzz_require(fb_id_equal(a.facts.object, b.facts.object) && a.facts.scope == b.facts.scope &&
                    a.facts.batch == b.facts.batch);
    fb_fuzz_accepted(&a);
    return 0;
}
