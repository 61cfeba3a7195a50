/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf envelopes from peers, against protobuf-c: what is accepted decodes there to the same
 * values and is packed there to the same bytes; what is packed there to the same bytes, without a
 * missing field, is not malformed. */
#include <stddef.h>
#include <stdint.h>

#include "envelope.pb-c.h"
#include "fuzz/envelope_same.h"

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
