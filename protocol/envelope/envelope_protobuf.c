/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf encoding (profile 3). One canonical form: ascending fields, each at most once,
 * shortest varints, no explicit defaults, nothing unknown. Anything else is malformed. */
#include "protocol/base/rare.h"
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

/* Each field as it stands in the bytes. Lengths and numbers are never 0, as an explicit default is
 * refused; what is not present was not written either. */
typedef struct raw_fields {
    const uint8_t *at[FB_ENVELOPE_FIELDS + 1];
    size_t len[FB_ENVELOPE_FIELDS + 1];
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

static inline void raw_set(raw_fields *raw, unsigned field, const uint8_t *p, size_t len)
{
    raw->at[field] = p;
    raw->len[field] = len;
    raw->present |= BIT(field);
}

/* The structure. Returns the sentence of the fault, which is in *field at *at, or NULL. */
/* MP-3-5, MP-3-7 */
static const char *read_fields(fb_span in, raw_fields *raw, unsigned *field, size_t *at)
{
    const char *why = NULL;
    const uint8_t *p = in.p, *end = in.p + in.len;
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
        if (is_varint(number)) {
            raw->present |= BIT(number);
            if (number == FB_ENVELOPE_MODE) raw->mode = value;
            if (number == FB_ENVELOPE_TIMESTAMP) raw->timestamp = value;
            continue;
        }
        if (value > (uint64_t)(end - p)) return "the bytes end within a field";
        raw_set(raw, number, p, (size_t)value);
        p += value;
    }
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

static inline fb_span span_of(const raw_fields *raw, fb_envelope_field field)
{
    return fb_span_of(raw->at[field], raw->len[field]);
}

/* A field of 16 bytes as an id, or NULL. */
static inline const fb_id *id_of(const raw_fields *raw, fb_envelope_field field)
{
    if (raw->len[field] != sizeof(fb_id)) return NULL;
    return (const fb_id *)(const void *)raw->at[field];
}

_Static_assert(_Alignof(fb_id) == 1, "an id may be anywhere");

/* MP-3-6, MP-4-1 */
static inline void read_values(fb_decoding *d, const raw_fields *raw, const uint8_t *end)
{
    uint32_t present = raw->present;
    if (present & BIT(FB_ENVELOPE_ID)) fb_field_uuid(d, FB_ENVELOPE_ID, id_of(raw, FB_ENVELOPE_ID));
    if (present & BIT(FB_ENVELOPE_SPACE)) {
        fb_field_uuid(d, FB_ENVELOPE_SPACE, id_of(raw, FB_ENVELOPE_SPACE));
    }
    if (present & BIT(FB_ENVELOPE_SOURCE)) fb_field_source(d, id_of(raw, FB_ENVELOPE_SOURCE));
    if (present & BIT(FB_ENVELOPE_MODE)) {
        fb_field_mode(d, raw->mode > FB_DELIVERY_TOPIC ? 0 : (unsigned)raw->mode);
    }
    if (present & BIT(FB_ENVELOPE_TARGET)) {
        if (d->e->mode == FB_DELIVERY_UNICAST) {
            fb_field_target_node(d, id_of(raw, FB_ENVELOPE_TARGET));
        } else if (d->e->mode == FB_DELIVERY_TOPIC) {
            fb_field_target_topic(d, span_of(raw, FB_ENVELOPE_TARGET));
        }
    }
    if (present & BIT(FB_ENVELOPE_TYPE)) fb_field_type(d, span_of(raw, FB_ENVELOPE_TYPE));
    if (present & BIT(FB_ENVELOPE_PAYLOAD)) {
        fb_span payload = span_of(raw, FB_ENVELOPE_PAYLOAD);
        fb_field_payload(d, payload, (size_t)(end - (payload.p + payload.len)));
    } else {
        d->e->facts = (fb_payload_facts){0};
    }
    if (present & BIT(FB_ENVELOPE_TIMESTAMP)) fb_field_timestamp(d, true, raw->timestamp);
    if (present & BIT(FB_ENVELOPE_CORRELATION)) {
        fb_field_uuid(d, FB_ENVELOPE_CORRELATION, id_of(raw, FB_ENVELOPE_CORRELATION));
    }
}

static inline void read_signature(fb_decoding *d, const raw_fields *raw)
{
    bool present = (raw->present & BIT(FB_ENVELOPE_SIGNATURE)) != 0;
    if (!present || raw->len[FB_ENVELOPE_SIGNATURE] != sizeof d->e->signature.b) {
        d->e->signature = (fb_b64){{0}};
        if (!present) return;
        fb_decoding_refuse(d, FB_ERR_MALFORMED, FB_ENVELOPE_SIGNATURE, "not 64 bytes");
        return;
    }
    memcpy(d->e->signature.b, raw->at[FB_ENVELOPE_SIGNATURE], sizeof d->e->signature.b);
    fb_decoding_read(d, FB_ENVELOPE_SIGNATURE);
}

/* Any message at all. */
static FB_RARE fb_status decode(fb_span in, bool draft, fb_envelope *out, fb_envelope_fault *fault)
{
    fb_decoding d = {out, 0, {FB_OK, FB_ENVELOPE_NONE, "", 0}};
    fb_envelope_clear(out);
    /* MP-3-8 */
    if (in.len > FB_ENVELOPE_BYTES_MAX) {
        out->facts = (fb_payload_facts){0};
        out->signature = (fb_b64){{0}};
        fb_decoding_refuse(&d, FB_ERR_TOO_LARGE, FB_ENVELOPE_NONE, "longer than 50,176 bytes");
        return fb_decoding_end(&d, fault);
    }
    static const uint8_t nothing[1] = {0};
    if (in.len == 0) in.p = nothing;
    raw_fields raw;
    raw.present = 0;
    raw.mode = raw.timestamp = 0;
    unsigned field;
    size_t at;
    const char *why = read_fields(in, &raw, &field, &at);
    if (why != NULL) {
        fb_decoding_refuse(&d, FB_ERR_MALFORMED, (fb_envelope_field)field, why);
        d.fault.offset = at;
    }
    check_missing(&d, &raw, draft);
    read_signature(&d, &raw);
    read_values(&d, &raw, in.p + in.len);
    return fb_decoding_end(&d, fault);
}

/* ---- A message as it mostly is ----
 *
 * Every field in its place with a short length, of a topic that is known here, at a time of our
 * days, and right; the payload alone may be wrong. It is read where it lies, in one go. What is
 * otherwise anywhere is read by decode(), from the start, as if nothing had been looked at: so this
 * decides nothing that is not decided there in the same way, and a test holds both against each
 * other. */

/* The three ids and the mode have lengths that are known. */
#define HEAD_BYTES 56u
/* What follows a payload at least: the time of our days and the signature. */
#define TIME_BYTES      7u
#define SIGNATURE_BYTES (2u + 64u)
#define ID_BYTES        (2u + 16u)
/* The longest known topic and the longest type, with what is before them, end within the least
 * message that is tried. */
#define TOPIC_BYTES_MAX   (2u + 29u)
#define TYPE_BYTES_MAX    (2u + 29u)
#define USUAL_BYTES_LEAST (HEAD_BYTES + TOPIC_BYTES_MAX + TYPE_BYTES_MAX + 3u + TIME_BYTES)

/* The tag of a field and its length, as one number. */
#define HEAD_OF(field, len) ((unsigned)TAG_BYTES(field) | (unsigned)(len) << 8)

static inline unsigned two_bytes(const uint8_t *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

static inline const fb_id *id_at(const uint8_t *p)
{
    return (const fb_id *)(const void *)p;
}

/* Not 0: what is at p is not a field of a UUID of version 7. */
static inline uint64_t other_uuid(const uint8_t *p, fb_envelope_field field)
{
    /* Bytes 6 and 8 of the id, at once. */
    return (two_bytes(p) ^ HEAD_OF(field, 16)) |
           ((fb_word_load_half(p + 8) & 0xc000f0) ^ UINT32_C(0x800070));
}

static inline bool is_head(const uint8_t *p)
{
    uint64_t other = other_uuid(p, FB_ENVELOPE_ID) | other_uuid(p + 18, FB_ENVELOPE_SPACE) |
                     (two_bytes(p + 36) ^ HEAD_OF(FB_ENVELOPE_SOURCE, 16)) |
                     (p[54] ^ (unsigned)TAG_VARINT(FB_ENVELOPE_MODE));
    return other == 0;
}

/* A time of our days takes six bytes, of which the last one is not 0; 0 when it is another. Eight
 * bytes may be read. */
static inline uint64_t time_at(const uint8_t *p)
{
    uint64_t w = fb_word_load(p) >> 8;
    bool six = (w & UINT64_C(0x808080808080)) == UINT64_C(0x008080808080) && (w >> 40 & 0x7f) != 0;
    if (*p != TAG_VARINT(FB_ENVELOPE_TIMESTAMP) || !six) return 0;
    /* Seven bits of each byte, then fourteen of each pair. */
    w = (w & UINT64_C(0x007f007f007f)) | (w >> 1 & UINT64_C(0x3f803f803f80));
    return (w & 0x3fff) | (w >> 2 & UINT64_C(0x3fff) << 14) | (w >> 4 & UINT64_C(0x3fff) << 28);
}

/* The payload's field, or NULL bytes; at p three bytes may be read. */
static inline fb_span payload_at(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *bytes = p + 2;
    size_t len = p[1];
    if (len >= 0x80) {
        if (*bytes - 1u > 126) return (fb_span){NULL, 0};
        len = (len & 0x7f) | (size_t)*bytes++ << 7;
    }
    bool usual = *p == TAG_BYTES(FB_ENVELOPE_PAYLOAD) && len != 0 &&
                 (size_t)(end - bytes) >= len + TIME_BYTES + SIGNATURE_BYTES;
    return usual ? fb_span_of(bytes, len) : (fb_span){NULL, 0};
}

/* The signature's field and, before it, the correlation's if there is one. False: it is otherwise,
 * or something follows. */
static inline bool is_end(const uint8_t *p, const uint8_t *end, bool *correlated)
{
    *correlated = (size_t)(end - p) != SIGNATURE_BYTES;
    if (*correlated) {
        if ((size_t)(end - p) != ID_BYTES + SIGNATURE_BYTES) return false;
        if (other_uuid(p, FB_ENVELOPE_CORRELATION) != 0) return false;
        p += ID_BYTES;
    }
    return two_bytes(p) == HEAD_OF(FB_ENVELOPE_SIGNATURE, 64);
}

/* False: out was not touched, and it is for decode(). */
static inline bool decode_usual(fb_span in, fb_envelope *out, fb_envelope_fault *fault,
                                fb_status *status)
{
    if (in.len < USUAL_BYTES_LEAST || in.len > FB_ENVELOPE_BYTES_MAX) return false;
    const uint8_t *p = in.p, *end = p + in.len;
    if (!is_head(p)) return false;
    bool unicast = p[55] == FB_DELIVERY_UNICAST;
    fb_span target = fb_span_of(p + HEAD_BYTES + 2, p[HEAD_BYTES + 1]);
    if (p[HEAD_BYTES] != TAG_BYTES(FB_ENVELOPE_TARGET)) return false;
    if (unicast ? target.len != sizeof(fb_id)
                : p[55] != FB_DELIVERY_TOPIC || fb_topic_of(target) == FB_TOPIC_FOREIGN) {
        return false;
    }
    p = target.p + target.len;
    if (*p != TAG_BYTES(FB_ENVELOPE_TYPE)) return false;
    fb_message_type type = fb_message_type_of(fb_span_of(p + 2, p[1]));
    if (type == 0) return false;
    fb_span payload = payload_at(p + 2 + p[1], end);
    if (payload.p == NULL) return false;
    p = payload.p + payload.len;
    uint64_t timestamp = time_at(p);
    bool correlated;
    if (timestamp == 0 || !is_end(p + TIME_BYTES, end, &correlated)) return false;

    out->id = *id_at(in.p + 2);
    out->space = *id_at(in.p + 20);
    out->source = *id_at(in.p + 38);
    out->mode = unicast ? FB_DELIVERY_UNICAST : FB_DELIVERY_TOPIC;
    out->target_node = unicast ? *id_at(target.p) : (fb_id){{0}};
    out->topic = unicast ? (fb_span){NULL, 0} : target;
    out->type = type;
    out->payload = payload;
    out->timestamp = timestamp;
    out->has_correlation = correlated;
    out->correlation = correlated ? *id_at(p + TIME_BYTES + 2) : (fb_id){{0}};
    memcpy(out->signature.b, end - sizeof out->signature.b, sizeof out->signature.b);
    out->readable = REQUIRED | (correlated ? BIT(FB_ENVELOPE_CORRELATION) : 0);

    fb_envelope_fault none = {FB_OK, FB_ENVELOPE_NONE, "", 0};
    *status = fb_payload_check_within(payload, (size_t)(end - p), type, &out->facts, &none.detail);
    if (*status != FB_OK) {
        out->readable -= BIT(FB_ENVELOPE_PAYLOAD);
        none.reason = *status;
        none.field = FB_ENVELOPE_PAYLOAD;
    }
    if (fault != NULL) *fault = none;
    return true;
}

fb_status fb_envelope_decode_protobuf(fb_span bytes, fb_envelope *out, fb_envelope_fault *fault)
{
    fb_status status;
    if (decode_usual(bytes, out, fault, &status)) return status;
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
