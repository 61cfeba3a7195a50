/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf encoding (profile 3). One canonical form: ascending fields, each at most once,
 * shortest varints, no explicit defaults, nothing unknown. Anything else is malformed. */
#include "protocol/base/word.h"
#include "protocol/envelope/fields.h"

/* The tag of each field is one byte: number << 3 | wire type. */
#define TAG_VARINT(field) ((field) << 3)
#define TAG_BYTES(field)  ((field) << 3 | 2)

/* MP-3-4 */
static const uint8_t tags[FB_ENVELOPE_FIELDS + 1] = {
    0,
    TAG_BYTES(FB_ENVELOPE_ID),
    TAG_BYTES(FB_ENVELOPE_SPACE),
    TAG_BYTES(FB_ENVELOPE_SOURCE),
    TAG_VARINT(FB_ENVELOPE_MODE),
    TAG_BYTES(FB_ENVELOPE_TARGET),
    TAG_BYTES(FB_ENVELOPE_TYPE),
    TAG_BYTES(FB_ENVELOPE_PAYLOAD),
    TAG_VARINT(FB_ENVELOPE_TIMESTAMP),
    TAG_BYTES(FB_ENVELOPE_CORRELATION),
    TAG_BYTES(FB_ENVELOPE_SIGNATURE),
};

static bool is_varint(unsigned field)
{
    return field == FB_ENVELOPE_MODE || field == FB_ENVELOPE_TIMESTAMP;
}

/* Each field as it stands in the bytes; absent ones have length 0 or number 0, which is why an
 * explicit default is refused. */
typedef struct raw_fields {
    fb_span bytes[FB_ENVELOPE_FIELDS + 1];
    uint64_t mode;
    uint64_t timestamp;
    uint32_t present; /* a bit for each */
} raw_fields;

#define BIT(field) (UINT32_C(1) << (field))
/* What every envelope has; a draft need not have its source and signature. */
#define REQUIRED       (BIT(FB_ENVELOPE_FIELDS + 1) - 2 - BIT(FB_ENVELOPE_CORRELATION))
#define REQUIRED_DRAFT (REQUIRED - BIT(FB_ENVELOPE_SOURCE) - BIT(FB_ENVELOPE_SIGNATURE))

/* An unsigned varint of up to 64 bits in its shortest form; NULL with *why set if it is not. */
/* MP-3-5 */
static const uint8_t *read_varint(const uint8_t *p, const uint8_t *end, uint64_t *out,
                                  const char **why)
{
    uint64_t v = 0;
    for (unsigned shift = 0; p < end; shift += 7) {
        uint8_t byte = *p++;
        if (shift == 63 && byte > 1) {
            *why = "a varint of more than 64 bits";
            return NULL;
        }
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            if (byte == 0 && shift != 0) {
                *why = "a varint that is longer than it must be";
                return NULL;
            }
            *out = v;
            return p;
        }
    }
    *why = "the bytes end within a field";
    return NULL;
}

/* The structure of the whole message. Returns the sentence of the fault, or NULL. */
/* MP-3-5, MP-3-7 */
static const char *read_fields(fb_span in, raw_fields *raw, unsigned *field, size_t *at)
{
    const uint8_t *p = in.p, *end = in.p + in.len;
    const char *why = NULL;
    *field = 0;
    while (p < end) {
        *at = (size_t)(p - in.p);
        unsigned number = *p >> 3;
        if (number == 0 || number > FB_ENVELOPE_FIELDS || *p != tags[number]) {
            return "an unknown field, or one of another wire type";
        }
        unsigned before = *field;
        *field = number;
        if (number <= before) return number == before ? "a field twice" : "fields out of order";
        uint64_t value;
        p = read_varint(p + 1, end, &value, &why);
        if (p == NULL) return why;
        if (value == 0) return "a field with its default value";
        raw->present |= BIT(number);
        if (is_varint(number)) {
            if (number == FB_ENVELOPE_MODE) raw->mode = value;
            if (number == FB_ENVELOPE_TIMESTAMP) raw->timestamp = value;
            continue;
        }
        if (value > (uint64_t)(end - p)) return "the bytes end within a field";
        raw->bytes[number] = (fb_span){p, (size_t)value};
        p += value;
    }
    *field = 0;
    *at = 0;
    return NULL;
}

/* FM-5.1-1, FM-9-1, FM-11-9, MP-4-2 */
static void check_missing(fb_decoding *d, const raw_fields *raw, bool draft)
{
    uint32_t missing = (draft ? REQUIRED_DRAFT : REQUIRED) & ~raw->present;
    if (missing == 0) return;
    fb_envelope_field first = (fb_envelope_field)fb_word_lowest(missing);
    fb_decoding_refuse(d, FB_ERR_MALFORMED, first, "the field is missing");
}

/* 16 bytes as an id, or NULL. */
static const fb_id *id_of(fb_span bytes, fb_id *room)
{
    if (bytes.len != sizeof room->b) return NULL;
    memcpy(room->b, bytes.p, sizeof room->b);
    return room;
}

/* MP-3-6, MP-4-1 */
static void read_values(fb_decoding *d, const raw_fields *raw)
{
    fb_id room;
    const fb_span *bytes = raw->bytes;
    if (bytes[FB_ENVELOPE_ID].len != 0) {
        fb_field_uuid(d, FB_ENVELOPE_ID, id_of(bytes[FB_ENVELOPE_ID], &room));
    }
    if (bytes[FB_ENVELOPE_SPACE].len != 0) {
        fb_field_uuid(d, FB_ENVELOPE_SPACE, id_of(bytes[FB_ENVELOPE_SPACE], &room));
    }
    if (bytes[FB_ENVELOPE_SOURCE].len != 0) {
        fb_field_source(d, id_of(bytes[FB_ENVELOPE_SOURCE], &room));
    }
    if (raw->mode != 0) fb_field_mode(d, raw->mode > FB_DELIVERY_TOPIC ? 0 : (unsigned)raw->mode);
    if (bytes[FB_ENVELOPE_TARGET].len != 0) {
        if (d->e->mode == FB_DELIVERY_UNICAST) {
            fb_field_target_node(d, id_of(bytes[FB_ENVELOPE_TARGET], &room));
        } else if (d->e->mode == FB_DELIVERY_TOPIC) {
            fb_field_target_topic(d, bytes[FB_ENVELOPE_TARGET]);
        }
    }
    if (bytes[FB_ENVELOPE_TYPE].len != 0) fb_field_type(d, bytes[FB_ENVELOPE_TYPE]);
    if (bytes[FB_ENVELOPE_PAYLOAD].len != 0) fb_field_payload(d, bytes[FB_ENVELOPE_PAYLOAD]);
    if (raw->timestamp != 0) fb_field_timestamp(d, true, raw->timestamp);
    if (bytes[FB_ENVELOPE_CORRELATION].len != 0) {
        fb_field_uuid(d, FB_ENVELOPE_CORRELATION, id_of(bytes[FB_ENVELOPE_CORRELATION], &room));
    }
}

static fb_status decode(fb_span in, bool draft, fb_envelope *out, fb_envelope_fault *fault)
{
    fb_decoding d = {out, {FB_OK, FB_ENVELOPE_NONE, "", 0}};
    *out = (fb_envelope){0};
    /* MP-3-8 */
    if (in.len > FB_ENVELOPE_BYTES_MAX) {
        fb_decoding_refuse(&d, FB_ERR_TOO_LARGE, FB_ENVELOPE_NONE, "longer than 50,176 bytes");
        return fb_decoding_end(&d, fault);
    }
    static const uint8_t nothing[1] = {0};
    if (in.len == 0) in.p = nothing;
    raw_fields raw = {0};
    unsigned field;
    size_t at;
    const char *why = read_fields(in, &raw, &field, &at);
    if (why != NULL) {
        fb_decoding_refuse(&d, FB_ERR_MALFORMED, (fb_envelope_field)field, why);
        d.fault.offset = at;
    }
    check_missing(&d, &raw, draft);
    fb_span signature = raw.bytes[FB_ENVELOPE_SIGNATURE];
    if (signature.len == sizeof out->signature.b) {
        memcpy(out->signature.b, signature.p, signature.len);
        fb_decoding_read(&d, FB_ENVELOPE_SIGNATURE);
    } else if (signature.len != 0) {
        fb_decoding_refuse(&d, FB_ERR_MALFORMED, FB_ENVELOPE_SIGNATURE, "not 64 bytes");
    }
    read_values(&d, &raw);
    return fb_decoding_end(&d, fault);
}

fb_status fb_envelope_decode_protobuf(fb_span bytes, fb_envelope *out, fb_envelope_fault *fault)
{
    return decode(bytes, false, out, fault);
}

fb_status fb_envelope_draft_protobuf(fb_span bytes, fb_envelope *out, fb_envelope_fault *fault)
{
    return decode(bytes, true, out, fault);
}

static void put_varint(fb_writer *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) fb_write_u8(w, (uint8_t)(v | 0x80));
    fb_write_u8(w, (uint8_t)v);
}

static void put_number(fb_writer *w, fb_envelope_field field, uint64_t v)
{
    fb_write_u8(w, tags[field]);
    put_varint(w, v);
}

static void put_bytes(fb_writer *w, fb_envelope_field field, fb_span bytes)
{
    fb_write_u8(w, tags[field]);
    put_varint(w, bytes.len);
    fb_write_span(w, bytes);
}

static void put_id(fb_writer *w, fb_envelope_field field, const fb_id *id)
{
    put_bytes(w, field, fb_span_of(id->b, sizeof id->b));
}

fb_status fb_envelope_encode_protobuf(const fb_envelope *e, fb_writer *out)
{
    put_id(out, FB_ENVELOPE_ID, &e->id);
    put_id(out, FB_ENVELOPE_SPACE, &e->space);
    put_id(out, FB_ENVELOPE_SOURCE, &e->source);
    put_number(out, FB_ENVELOPE_MODE, e->mode);
    if (e->mode == FB_DELIVERY_UNICAST) {
        put_id(out, FB_ENVELOPE_TARGET, &e->target_node);
    } else {
        put_bytes(out, FB_ENVELOPE_TARGET, e->topic);
    }
    put_bytes(out, FB_ENVELOPE_TYPE, fb_span_text(fb_message_type_name(e->type)));
    put_bytes(out, FB_ENVELOPE_PAYLOAD, e->payload);
    put_number(out, FB_ENVELOPE_TIMESTAMP, e->timestamp);
    if (e->has_correlation) put_id(out, FB_ENVELOPE_CORRELATION, &e->correlation);
    put_bytes(out, FB_ENVELOPE_SIGNATURE, fb_span_of(e->signature.b, sizeof e->signature.b));
    return out->failed ? FB_ERR_NO_SPACE : FB_OK;
}
