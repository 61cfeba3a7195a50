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
    const uint8_t *in;
    uint32_t at[FB_ENVELOPE_FIELDS + 1];
    uint32_t len[FB_ENVELOPE_FIELDS + 1];
    uint64_t mode;
    uint64_t timestamp;
    uint32_t present; /* a bit for each */
} raw_fields;

static inline void raw_set(raw_fields *raw, unsigned field, const uint8_t *p, size_t len)
{
    raw->at[field] = (uint32_t)(p - raw->in);
    raw->len[field] = (uint32_t)len;
}

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

/* ---- The structure as it mostly is: every field with a short length, in its place ----
 *
 * These read on as long as it is so, and leave the rest to the loop behind them. */

/* The three ids and the mode have lengths that are known: their tags are compared at once. */
#define HEAD_BYTES 56u

static inline const uint8_t *read_head(const uint8_t *p, const uint8_t *end, raw_fields *raw)
{
    if ((size_t)(end - p) < HEAD_BYTES) return p;
    uint32_t other = (uint32_t)(p[0] ^ TAG_BYTES(FB_ENVELOPE_ID)) | (p[1] ^ 16u) |
                     (p[18] ^ TAG_BYTES(FB_ENVELOPE_SPACE)) | (p[19] ^ 16u) |
                     (p[36] ^ TAG_BYTES(FB_ENVELOPE_SOURCE)) | (p[37] ^ 16u) |
                     (p[54] ^ TAG_VARINT(FB_ENVELOPE_MODE)) | (p[55] > 127) | (p[55] == 0);
    if (other != 0) return p;
    raw_set(raw, FB_ENVELOPE_ID, p + 2, 16);
    raw_set(raw, FB_ENVELOPE_SPACE, p + 20, 16);
    raw_set(raw, FB_ENVELOPE_SOURCE, p + 38, 16);
    raw->mode = p[55];
    raw->present = BIT(FB_ENVELOPE_ID) | BIT(FB_ENVELOPE_SPACE) | BIT(FB_ENVELOPE_SOURCE) |
                   BIT(FB_ENVELOPE_MODE);
    return p + HEAD_BYTES;
}

/* One field of bytes whose length takes one byte, or, with `wide`, two. False: it is another. */
static inline bool read_next(const uint8_t **at, const uint8_t *end, raw_fields *raw,
                             fb_envelope_field field, bool wide)
{
    const uint8_t *p = *at;
    if (end - p < 3 || *p != TAG_BYTES(field)) return false;
    size_t len = p[1];
    p += 2;
    if (wide && len >= 0x80) {
        if (*p == 0 || *p >= 0x80) return false;
        len = (len & 0x7f) | (size_t)*p++ << 7;
    }
    if (len == 0 || len > (wide ? 0x3fffu : 0x7fu) || len > (size_t)(end - p)) return false;
    raw_set(raw, field, p, len);
    raw->present |= BIT(field);
    *at = p + len;
    return true;
}

/* A time of our days takes six bytes. */
static inline bool read_time(const uint8_t **at, const uint8_t *end, raw_fields *raw)
{
    const uint8_t *p = *at;
    if (end - p < 8 || *p != TAG_VARINT(FB_ENVELOPE_TIMESTAMP)) return false;
    uint64_t w = fb_word_load(p) >> 8;
    if ((w & UINT64_C(0x808080808080)) != UINT64_C(0x008080808080)) return false;
    uint64_t v = 0;
    for (unsigned i = 0; i < 6; i++) v |= (w >> i & UINT64_C(0x7f) << 7 * i);
    if ((w >> 40 & 0x7f) == 0) return false;
    raw->timestamp = v;
    raw->present |= BIT(FB_ENVELOPE_TIMESTAMP);
    *at = p + 7;
    return true;
}

/* Where it ceased to be so; *field is the last one before that. */
static inline const uint8_t *read_usual(fb_span in, raw_fields *raw, unsigned *field)
{
    const uint8_t *p = in.p, *end = in.p + in.len;
    p = read_head(p, end, raw);
    if (raw->present == 0) return p;
    *field = FB_ENVELOPE_MODE;
    if (!read_next(&p, end, raw, FB_ENVELOPE_TARGET, false)) return p;
    *field = FB_ENVELOPE_TARGET;
    if (!read_next(&p, end, raw, FB_ENVELOPE_TYPE, false)) return p;
    *field = FB_ENVELOPE_TYPE;
    if (!read_next(&p, end, raw, FB_ENVELOPE_PAYLOAD, true)) return p;
    *field = FB_ENVELOPE_PAYLOAD;
    if (!read_time(&p, end, raw)) return p;
    *field = FB_ENVELOPE_TIMESTAMP;
    if (read_next(&p, end, raw, FB_ENVELOPE_CORRELATION, false)) *field = FB_ENVELOPE_CORRELATION;
    if (read_next(&p, end, raw, FB_ENVELOPE_SIGNATURE, false)) *field = FB_ENVELOPE_SIGNATURE;
    return p;
}

/* The structure of the whole message. Returns the sentence of the fault, or NULL. */
/* MP-3-5, MP-3-7 */
static const char *read_fields(fb_span in, raw_fields *raw, unsigned *field, size_t *at)
{
    const char *why = NULL;
    *field = 0;
    const uint8_t *p = read_usual(in, raw, field), *end = in.p + in.len;
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
        raw->present |= BIT(number);
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

static inline fb_span span_of(const raw_fields *raw, fb_envelope_field field)
{
    return fb_span_of(raw->in + raw->at[field], raw->len[field]);
}

/* A field of 16 bytes as an id, or NULL. */
static inline const fb_id *id_of(const raw_fields *raw, fb_envelope_field field)
{
    if (raw->len[field] != sizeof(fb_id)) return NULL;
    return (const fb_id *)(const void *)(raw->in + raw->at[field]);
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
    if (raw->mode != 0) fb_field_mode(d, raw->mode > FB_DELIVERY_TOPIC ? 0 : (unsigned)raw->mode);
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
    }
    if (raw->timestamp != 0) fb_field_timestamp(d, true, raw->timestamp);
    if (present & BIT(FB_ENVELOPE_CORRELATION)) {
        fb_field_uuid(d, FB_ENVELOPE_CORRELATION, id_of(raw, FB_ENVELOPE_CORRELATION));
    }
}

static fb_status decode(fb_span in, bool draft, fb_envelope *out, fb_envelope_fault *fault)
{
    fb_decoding d = {out, 0, {FB_OK, FB_ENVELOPE_NONE, "", 0}};
    *out = (fb_envelope){0};
    /* MP-3-8 */
    if (in.len > FB_ENVELOPE_BYTES_MAX) {
        fb_decoding_refuse(&d, FB_ERR_TOO_LARGE, FB_ENVELOPE_NONE, "longer than 50,176 bytes");
        return fb_decoding_end(&d, fault);
    }
    static const uint8_t nothing[1] = {0};
    if (in.len == 0) in.p = nothing;
    raw_fields raw = {.in = in.p};
    unsigned field;
    size_t at;
    const char *why = read_fields(in, &raw, &field, &at);
    if (why != NULL) {
        fb_decoding_refuse(&d, FB_ERR_MALFORMED, (fb_envelope_field)field, why);
        d.fault.offset = at;
    }
    check_missing(&d, &raw, draft);
    fb_span signature = span_of(&raw, FB_ENVELOPE_SIGNATURE);
    if (signature.len == sizeof out->signature.b) {
        memcpy(out->signature.b, signature.p, signature.len);
        fb_decoding_read(&d, FB_ENVELOPE_SIGNATURE);
    } else if (signature.len != 0) {
        fb_decoding_refuse(&d, FB_ERR_MALFORMED, FB_ENVELOPE_SIGNATURE, "not 64 bytes");
    }
    read_values(&d, &raw, in.p + in.len);
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
