/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/envelope_same.h"

#include <stdlib.h>

void fb_fuzz_require(bool condition)
{
    if (!condition) abort();
}

static void same(const fb_envelope *a, const fb_envelope *b)
{
    fb_preimage pa, pb;
    fb_envelope_preimage(a, &pa);
    fb_envelope_preimage(b, &pb);
    for (size_t i = 0; i < 3; i++) fb_fuzz_require(fb_span_equal(pa.parts[i], pb.parts[i]));
    fb_fuzz_require(memcmp(a->signature.b, b->signature.b, sizeof a->signature.b) == 0);
    fb_fuzz_require(a->readable == b->readable);
    fb_fuzz_require(a->facts.has_object == b->facts.has_object);
    fb_fuzz_require(a->facts.scope == b->facts.scope);
    fb_fuzz_require(a->facts.has_batch == b->facts.has_batch);
    fb_fuzz_require(a->facts.batch == b->facts.batch);
}

void fb_fuzz_accepted(const fb_envelope *e)
{
    static uint8_t json[FB_ENVELOPE_JSON_BYTES_MAX], protobuf[FB_ENVELOPE_BYTES_MAX];
    static fb_envelope_scratch scratch;
    fb_envelope back;

    fb_writer w = fb_writer_of(protobuf, sizeof protobuf);
    fb_fuzz_require(fb_envelope_encode_protobuf(e, &w) == FB_OK);
    fb_fuzz_require(fb_envelope_decode_protobuf(fb_writer_span(&w), &back, NULL) == FB_OK);
    same(e, &back);

    w = fb_writer_of(json, sizeof json);
    fb_fuzz_require(fb_envelope_encode_json(e, &w) == FB_OK);
    fb_fuzz_require(fb_envelope_decode_json(fb_writer_span(&w), &scratch, &back, NULL) == FB_OK);
    same(e, &back);

    back = *e;
    fb_fuzz_require(fb_envelope_check(&back, NULL) == FB_OK);
    same(e, &back);
}
