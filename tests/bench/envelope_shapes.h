/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads of named shapes for the benchmark of the envelope. Each is drawn anew for each number,
 * so that no two envelopes of a sweep have their tokens in the same places. */
#ifndef FB_BENCH_ENVELOPE_SHAPES_H
#define FB_BENCH_ENVELOPE_SHAPES_H

#include <stddef.h>
#include <stdint.h>

typedef enum shape_spelling {
    SPELLED_SHORTEST = 0,
    SPELLED_UNITS,  /* in JSON each byte of the payload is a \u escape */
    SPELLED_RANDOM, /* each byte one or the other way, by a draw */
} shape_spelling;

typedef struct maker maker;

typedef struct shape {
    const char *name;
    size_t bytes; /* of the payload; the text is this long or a few bytes shorter */
    void (*fill)(maker *m, size_t end);
    shape_spelling spelling;
} shape;

extern const shape shapes[];
extern const size_t shape_count;

/* Writes payload `number` of that shape, `s->bytes` bytes at most, and returns its length. */
size_t shape_make(const shape *s, unsigned number, uint8_t *out);

/* The payload as the inside of a JSON string; `out` has room for six bytes for each of it. */
size_t shape_spell(const shape *s, unsigned number, const uint8_t *payload, size_t len,
                   uint8_t *out);

#endif
