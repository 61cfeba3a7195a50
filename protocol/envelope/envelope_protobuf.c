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

/* ---- The structure as it mostly is: every field with a short length, in its place ----
 *
 * These read on as long as it is so, and leave the rest to the loop behind them. */

/* The three ids and the mode have lengths that are known. */
#define HEAD_BYTES 56u
/* What follows a payload at least: the time of our days and the signature. */
#define TIME_BYTES      7u
#define SIGNATURE_BYTES (2u + 64u)
#define ID_BYTES        (2u + 16u)

/* The tag of a field and its length, as one number. */
#define HEAD_OF(field, len) ((unsigned)TAG_BYTES(field) | (unsigned)(len) << 8)

static inline unsigned two_bytes(const uint8_t *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

static inline void raw_set(raw_fields *raw, unsigned field, const uint8_t *p, size_t len)
{
    raw->at[field] = p;
    raw->len[field] = len;
    raw->present |= BIT(field);
}

static inline const uint8_t *read_head(const uint8_t *p, raw_fields *raw)
{
    unsigned other = (two_bytes(p) ^ HEAD_OF(FB_ENVELOPE_ID, 16)) |
                     (two_bytes(p + 18) ^ HEAD_OF(FB_ENVELOPE_SPACE, 16)) |
                     (two_bytes(p + 36) ^ HEAD_OF(FB_ENVELOPE_SOURCE, 16)) |
                     (p[54] ^ (unsigned)TAG_VARINT(FB_ENVELOPE_MODE));
    if (other != 0 || p[55] - 1u > 126) return p;
    raw_set(raw, FB_ENVELOPE_ID, p + 2, 16);
    raw_set(raw, FB_ENVELOPE_SPACE, p + 20, 16);
    raw_set(raw, FB_ENVELOPE_SOURCE, p + 38, 16);
    raw->mode = p[55];
    raw->present |= BIT(FB_ENVELOPE_MODE);
    return p + HEAD_BYTES;
}

/* One field of bytes whose length takes one byte, or, with `wide`, two; p when it is another, or
 * when fewer than `after` bytes follow it. At p three bytes may be read. */
static inline const uint8_t *read_next(const uint8_t *p, const uint8_t *end, raw_fields *raw,
                                       fb_envelope_field field, bool wide, size_t after)
{
    const uint8_t *bytes = p + 2;
    size_t len = p[1];
    if (wide && len >= 0x80) {
        if (*bytes - 1u > 126) return p;
        len = (len & 0x7f) | (size_t)*bytes++ << 7;
    }
    bool usual = *p == TAG_BYTES(field) && len - 1 < (wide ? 0x3fffu : 0x7fu);
    if (!usual || (size_t)(end - bytes) < len + after) return p;
    raw_set(raw, field, bytes, len);
    return bytes + len;
}

/* A time of our days takes six bytes, of which the last one is not 0. Eight bytes may be read. */
static inline const uint8_t *read_time(const uint8_t *p, raw_fields *raw)
{
    uint64_t w = fb_word_load(p) >> 8;
    bool six = (w & UINT64_C(0x808080808080)) == UINT64_C(0x008080808080) && (w >> 40 & 0x7f) != 0;
    if (*p != TAG_VARINT(FB_ENVELOPE_TIMESTAMP) || !six) return p;
    /* Seven bits of each byte, then fourteen of each pair. */
    w = (w & UINT64_C(0x007f007f007f)) | (w >> 1 & UINT64_C(0x3f803f803f80));
    raw->timestamp =
        (w & 0x3fff) | (w >> 2 & UINT64_C(0x3fff) << 14) | (w >> 4 & UINT64_C(0x3fff) << 28);
    raw->present |= BIT(FB_ENVELOPE_TIMESTAMP);
    return p + TIME_BYTES;
}

/* Where it ceased to be so. */
static inline const uint8_t *read_usual(fb_span in, raw_fields *raw)
{
    const uint8_t *p = in.p, *end = in.p + in.len, *before;
    if (in.len < HEAD_BYTES + 3) return p;
    p = read_head(before = p, raw);
    if (p == before) return p;
    p = read_next(before = p, end, raw, FB_ENVELOPE_TARGET, false, 3);
    if (p == before) return p;
    p = read_next(before = p, end, raw, FB_ENVELOPE_TYPE, false, 3);
    if (p == before) return p;
    p = read_next(before = p, end, raw, FB_ENVELOPE_PAYLOAD, true, TIME_BYTES + SIGNATURE_BYTES);
    if (p == before) return p;
    p = read_time(before = p, raw);
    if (p == before) return p;
    if (two_bytes(p) == HEAD_OF(FB_ENVELOPE_CORRELATION, 16) &&
        (size_t)(end - p) >= ID_BYTES + SIGNATURE_BYTES) {
        raw_set(raw, FB_ENVELOPE_CORRELATION, p + 2, 16);
        p += ID_BYTES;
    }
    if (two_bytes(p) == HEAD_OF(FB_ENVELOPE_SIGNATURE, 64)) {
        raw_set(raw, FB_ENVELOPE_SIGNATURE, p + 2, 64);
        p += SIGNATURE_BYTES;
    }
    return p;
}

/* The structure from p on. Returns the sentence of the fault, which is in *field at *at, or NULL.
 */
/* MP-3-5, MP-3-7 */
static const char *read_rest(fb_span in, const uint8_t *p, raw_fields *raw, unsigned *field,
                             size_t *at)
{
    const char *why = NULL;
    const uint8_t *end = in.p + in.len;
    *field = raw->present == 0 ? 0 : 31 - (unsigned)__builtin_clz(raw->present);
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
static inline void read_values(fb_decoding *d, const raw_fields *raw, uint32_t present,
                               const uint8_t *end)
{
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

static fb_status decode(fb_span in, bool draft, fb_envelope *out, fb_envelope_fault *fault)
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
    const uint8_t *p = read_usual(in, &raw), *end = in.p + in.len;
    if (p != end) {
        unsigned field;
        size_t at;
        const char *why = read_rest(in, p, &raw, &field, &at);
        if (why != NULL) {
            fb_decoding_refuse(&d, FB_ERR_MALFORMED, (fb_envelope_field)field, why);
            d.fault.offset = at;
        }
    }
    check_missing(&d, &raw, draft);
    read_signature(&d, &raw);
    /* All there is the rule, which then need not be asked of each. */
    const uint32_t optional = BIT(FB_ENVELOPE_CORRELATION);
    if ((raw.present | optional) == (REQUIRED | optional)) {
        read_values(&d, &raw, REQUIRED | (raw.present & optional), end);
    } else {
        read_values(&d, &raw, raw.present, end);
    }
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
