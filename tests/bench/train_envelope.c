/* SPDX-License-Identifier: Apache-2.0 */
/* What a release build is arranged by besides runs of the simulator (./dev train): those have few
 * kinds of payload, none as text, and hardly a wrong one, and code that seems never to run is laid
 * out as if it never did. Here all shapes of the benchmark are read in both encodings, sound and
 * with a byte wrong. It measures nothing. */
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/draw.h"
#include "protocol/base/limits.h"
#include "protocol/envelope/envelope.h"
#include "tests/bench/envelope_shapes.h"

#define SMALL_TIMES 4000u /* of a shape below a page */
#define LARGE_TIMES 12u

static fb_envelope envelope_of(fb_span payload, unsigned number)
{
    fb_seed seed = {number, 7};
    fb_envelope e = {.mode = FB_DELIVERY_TOPIC,
                     .topic = fb_span_text("platform.replication.database"),
                     .type = FB_TYPE_CHANGED,
                     .payload = payload,
                     .timestamp = 1718000000000 + number,
                     .has_correlation = number % 2 == 0};
    if (number % 3 == 0) {
        e.mode = FB_DELIVERY_UNICAST;
        e.topic = (fb_span){NULL, 0};
        fb_store_be(e.target_node.b, fb_draw(seed, 1, 0, 2), 8);
    }
    fb_id *ids[] = {&e.id, &e.space, &e.correlation};
    for (size_t i = 0; i < 3; i++) {
        fb_store_be(ids[i]->b, fb_draw(seed, 2, i, 0), 8);
        fb_store_be(ids[i]->b + 8, fb_draw(seed, 2, i, 1), 8);
        ids[i]->b[6] = (uint8_t)(0x70 | (ids[i]->b[6] & 15));
        ids[i]->b[8] = (uint8_t)(0x80 | (ids[i]->b[8] & 63));
    }
    fb_store_be(e.source.b, fb_draw(seed, 3, 0, 0), 8);
    return e;
}

static void both(const shape *s, unsigned number)
{
    static uint8_t payload[FB_PAYLOAD_BYTES_MAX], bytes[FB_ENVELOPE_JSON_BYTES_MAX];
    static fb_envelope_scratch scratch;
    fb_envelope e = envelope_of(fb_span_of(payload, shape_make(s, number, payload)), number), back;
    fb_seed seed = {number, 9};
    for (int text = 0; text < 2; text++) {
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_status wrote =
            text ? fb_envelope_encode_json(&e, &w) : fb_envelope_encode_protobuf(&e, &w);
        FB_ASSERT(wrote == FB_OK);
        fb_span span = {bytes, w.at};
        for (int wrong = 0; wrong < 2; wrong++) {
            /* One in eight is wrong. */
            if (wrong && number % 8 != 0) continue;
            if (wrong) bytes[fb_draw_below(seed, 1, 0, 0, w.at)] = 0xff;
            if (text) {
                fb_envelope_decode_json(span, &scratch, &back, NULL);
            } else {
                fb_envelope_decode_protobuf(span, &back, NULL);
            }
        }
    }
}

int main(void)
{
    for (size_t i = 0; i < shape_count; i++) {
        unsigned times = shapes[i].bytes < 4096 ? SMALL_TIMES : LARGE_TIMES;
        for (unsigned number = 0; number < times; number++) both(&shapes[i], number);
    }
    return 0;
}
