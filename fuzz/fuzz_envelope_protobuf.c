/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf envelopes from peers, against protobuf-c: what is accepted decodes there to the same
 * values and is packed there to the same bytes; what is packed there to the same bytes, without a
 * missing field, is not malformed. */
#include <stddef.h>
#include <stdint.h>

#include "envelope.pb-c.h"
#include "fuzz/envelope_same.h"
#include "fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_id(ProtobufCBinaryData bytes, fb_id id)
{
    return fb_span_equal(fb_span_of(bytes.data, bytes.len), fb_span_of(id.b, sizeof id.b));
}

static void compare(const fb_envelope *e, const Fuzz__Envelope *m)
{
    fb_span target = fb_span_of(m->target.data, m->target.len);
    fb_fuzz_require(is_id(m->id, e->id));
    fb_fuzz_require(is_id(m->information_space_id, e->space));
    fb_fuzz_require(is_id(m->source_node_id, e->source));
    fb_fuzz_require((int)m->delivery_mode == (int)e->mode);
    if (e->mode == FB_DELIVERY_UNICAST) {
        fb_fuzz_require(is_id(m->target, e->target_node));
    } else {
        fb_fuzz_require(fb_span_equal(target, e->topic));
    }
    fb_fuzz_require(strcmp(m->message_type, fb_message_type_name(e->type)) == 0);
    fb_fuzz_require(fb_span_equal(fb_span_of(m->payload.data, m->payload.len), e->payload));
    fb_fuzz_require(m->timestamp == e->timestamp);
    fb_fuzz_require((m->correlation_id.len != 0) == e->has_correlation);
    if (e->has_correlation) fb_fuzz_require(is_id(m->correlation_id, e->correlation));
    fb_fuzz_require(fb_span_equal(fb_span_of(m->signature.data, m->signature.len),
                                  fb_span_of(e->signature.b, sizeof e->signature.b)));
}

static bool packs_to(const Fuzz__Envelope *m, fb_span bytes)
{
    static uint8_t packed[FB_ENVELOPE_BYTES_MAX];
    if (fuzz__envelope__get_packed_size(m) != bytes.len) return false;
    return fb_span_equal(fb_span_of(packed, fuzz__envelope__pack(m, packed)), bytes);
}

/* Nothing absent that must be there, and a signature of the right length. */
static bool is_complete(const Fuzz__Envelope *m)
{
    return m->base.n_unknown_fields == 0 && m->id.len != 0 && m->information_space_id.len != 0 &&
           m->source_node_id.len != 0 && m->delivery_mode != 0 && m->target.len != 0 &&
           m->message_type[0] != '\0' && m->payload.len != 0 && m->timestamp != 0 &&
           m->signature.len == 64;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fb_envelope e;
    fb_envelope_fault fault;
    fb_span bytes = {data, size};
    fb_status status = fb_envelope_decode_protobuf(bytes, &e, &fault);
    fb_fuzz_require(status == fault.reason && fault.offset <= size);
    if (status == FB_OK) fb_fuzz_accepted(&e);
    fb_envelope draft;
    fb_status as_draft = fb_envelope_draft_protobuf(bytes, &draft, NULL);
    if (status == FB_OK) fb_fuzz_require(as_draft == FB_OK);
    /* A draft is always read field by field, a message that is as most are in one go. */
    if (fb_envelope_has(&e, FB_ENVELOPE_SOURCE) && fb_envelope_has(&e, FB_ENVELOPE_SIGNATURE)) {
        fb_fuzz_require(as_draft == status && draft.readable == e.readable);
    }
    if (status == FB_ERR_TOO_LARGE) return 0;

    Fuzz__Envelope *m = fuzz__envelope__unpack(NULL, size, data);
    if (status == FB_OK) {
        fb_fuzz_require(m != NULL);
        compare(&e, m);
        fb_fuzz_require(packs_to(m, bytes));
    } else if (m == NULL) {
        fb_fuzz_require(status == FB_ERR_MALFORMED);
    } else if (is_complete(m) && packs_to(m, bytes)) {
        fb_fuzz_require(status != FB_ERR_MALFORMED);
    }
    if (m != NULL) fuzz__envelope__free_unpacked(m, NULL);
    return 0;
}

/* ---- Mutation: a field, the order of fields, or anything ---- */

#define FIELDS_MAX 16u

/* A field as it stands: its tag, and what is behind that. */
typedef struct field {
    uint8_t tag;
    bool is_bytes;
    uint64_t number;
    fb_span bytes;
} field;

static uint64_t read_varint(fb_reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = fb_read_u8(r);
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) break;
    }
    return v;
}

static void write_varint(fb_writer *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) fb_write_u8(w, (uint8_t)(v | 0x80));
    fb_write_u8(w, (uint8_t)v);
}

/* 0: these bytes are no message. */
static unsigned fields_of(fb_span in, field *fields)
{
    fb_reader r = fb_reader_of(in);
    unsigned n = 0;
    while (fb_reader_left(&r) != 0) {
        if (n == FIELDS_MAX) return 0;
        field *f = &fields[n++];
        *f = (field){.tag = fb_read_u8(&r)};
        f->is_bytes = (f->tag & 7) == 2;
        f->number = read_varint(&r);
        if (f->is_bytes) f->bytes = fb_read_bytes(&r, (size_t)f->number);
        if (r.failed || (!f->is_bytes && (f->tag & 7) != 0)) return 0;
    }
    return n;
}

static size_t put_fields(const field *fields, unsigned n, uint8_t *out, size_t max)
{
    fb_writer w = fb_writer_of(out, max);
    for (unsigned i = 0; i < n; i++) {
        fb_write_u8(&w, fields[i].tag);
        write_varint(&w, fields[i].is_bytes ? fields[i].bytes.len : fields[i].number);
        if (fields[i].is_bytes) fb_write_span(&w, fields[i].bytes);
    }
    return w.failed ? 0 : w.at;
}

static const uint64_t numbers[] = {
    0, 1, 2, 3, 127, 128, FB_TIMESTAMP_MS_MAX, FB_TIMESTAMP_MS_MAX + 1, UINT64_MAX,
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static uint8_t before[2 * FB_ENVELOPE_BYTES_MAX], bytes[2 * FB_ENVELOPE_BYTES_MAX];
    field fields[FIELDS_MAX + 1];
    unsigned how = fb_fuzz_draw(&seed, 8);
    if (size > sizeof before || how == 0) return LLVMFuzzerMutate(data, size, max_size);
    if (size != 0) memcpy(before, data, size);
    unsigned n = fields_of(fb_span_of(before, size), fields);
    if (n == 0) return LLVMFuzzerMutate(data, size, max_size);
    unsigned at = fb_fuzz_draw(&seed, n);
    field *f = &fields[at];
    if (how == 1) { /* it is missing */
        memmove(f, f + 1, (n - at - 1) * sizeof *f);
        n--;
    } else if (how == 2 && n < FIELDS_MAX) { /* it is there twice */
        memmove(f + 1, f, (n - at) * sizeof *f);
        n++;
    } else if (how == 3 && at + 1 < n) { /* it stands behind the next */
        field next = f[1];
        f[1] = f[0];
        f[0] = next;
    } else if (!f->is_bytes) {
        f->number = numbers[fb_fuzz_draw(&seed, sizeof numbers / sizeof numbers[0])];
    } else {
        size_t room = f->bytes.len + 64 < sizeof bytes ? f->bytes.len + 64 : sizeof bytes;
        if (f->bytes.len != 0) memcpy(bytes, f->bytes.p, f->bytes.len);
        f->bytes = fb_span_of(bytes, LLVMFuzzerMutate(bytes, f->bytes.len, room));
    }
    size_t made = put_fields(fields, n, data, max_size);
    if (made != 0) return made;
    memcpy(data, before, size);
    return LLVMFuzzerMutate(data, size, max_size);
}
