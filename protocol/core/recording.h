/* SPDX-License-Identifier: Apache-2.0 */
/* What a driver writes down of one instance, so that the same steps can be made again elsewhere:
 * how it was created, every event, every output of its provider, and after each step what came of
 * it. A provider's outputs stand for its keys, so a recording holds none.
 *
 * This is the plain format: a sequence of items, each a kind (u8), a length (u32) and a body. How
 * it is kept, encrypted, cut into files and bounded is the driver's affair (io/recorder.h). Layout:
 * docs/WIRE-FORMATS.md.
 *
 *     header output* (event output* step fact*)* end?
 *
 * One that ends within a step is of a process that ended there. */
#ifndef FB_CORE_RECORDING_H
#define FB_CORE_RECORDING_H

#include "protocol/base/cursor.h"
#include "protocol/base/error.h"
#include "protocol/base/hash.h"
#include "protocol/core/effect.h"
#include "protocol/core/event.h"
#include "protocol/core/options.h"

#define FB_RECORDING_VERSION 1u

/* The longest body: an event of 64 KiB and more, or the effects of one step as heads. */
#define FB_RECORDING_ITEM_BYTES_MAX (1u << 21)
#define FB_RECORDING_PROGRAM_MAX    64u
/* Numbers of this version, each stored with its count: another count is another version. */
#define FB_RECORDING_SIZES  (sizeof(fb_sizes) / sizeof(uint32_t))
#define FB_RECORDING_TIMING 18u

typedef enum fb_recording_kind {
    FB_RECORDING_HEADER = 'H',
    FB_RECORDING_OUTPUT = 'P',
    FB_RECORDING_EVENT = 'E',
    FB_RECORDING_STEP = 'S',
    FB_RECORDING_FACT = 'F', /* of the step before it: redacted recordings alone */
    FB_RECORDING_END = 'X',  /* the driver was done with the instance */
} fb_recording_kind;

/* Functions of the provider, in its order. */
typedef enum fb_recording_call {
    FB_CALL_PUBLIC_KEY = 1,
    FB_CALL_SIGN,
    FB_CALL_VERIFY,
    FB_CALL_POINT_IS_VALID,
    FB_CALL_DH_PUBLIC,
    FB_CALL_DH_GENERATE,
    FB_CALL_DH,
    FB_CALL_SHA256,
    FB_CALL_BLAKE2B,
    FB_CALL_AEAD_SEAL,
    FB_CALL_AEAD_OPEN,
    FB_CALL_SECRET,
    FB_CALLS,
} fb_recording_call;

/* How the instance was created. `options` without allocator and provider. */
typedef struct fb_recording_header {
    char program[FB_RECORDING_PROGRAM_MAX]; /* what made it, with its version */
    fb_id node;
    int64_t wall_us;
    uint64_t effects_capacity;
    fb_options options;
    bool redacted; /* bytes of events and outputs were replaced by their hashes */
} fb_recording_header;

/* One effect without its bytes. */
typedef struct fb_recording_effect {
    uint32_t kind;
    uint32_t len;
    uint64_t a, b, c;
    fb_hash128 bytes;
} fb_recording_effect;

typedef struct fb_recording_item {
    fb_recording_kind kind;
    fb_recording_header header;
    /* Output. The status, or 1 and 0 for true and false. */
    fb_recording_call call;
    uint32_t result;
    fb_event event;
    /* Of event and output, borrowed from the reader; when redacted, length and hash alone. */
    fb_span bytes;
    uint32_t len;
    fb_hash128 hash;
    /* Step. */
    uint32_t status;
    uint64_t consumed;
    fb_hash128 digest;
    uint32_t effects;     /* how many, log lines aside */
    fb_span effect_heads; /* fb_recording_effect_at */
    /* Fact: `bytes`, and */
    uint64_t a, b, c;
} fb_recording_item;

/* Each appends one item; a writer without room fails stickily. */
void fb_recording_write_header(fb_writer *w, const fb_recording_header *header);
void fb_recording_write_output(fb_writer *w, fb_recording_call call, uint32_t result,
                               fb_span bytes);
void fb_recording_write_event(fb_writer *w, const fb_event *event);
void fb_recording_write_step(fb_writer *w, fb_status status, const fb_effects *effects,
                             fb_hash128 digest);
void fb_recording_write_end(fb_writer *w);
void fb_recording_write_fact(fb_writer *w, const fb_effect *fact);

/* The same without what was said: a header that tells so; an event with the length and hash of its
 * bytes; a step whose effects carry these hashes. `hash` is the caller's, as short texts would be
 * guessed from one that everybody can compute. Outputs are left out. */
typedef fb_hash128 (*fb_recording_hash)(void *user, fb_span bytes);
void fb_recording_redact_event(fb_writer *w, const fb_event *event, fb_recording_hash hash,
                               void *user);
void fb_recording_redact_step(fb_writer *w, fb_status status, const fb_effects *effects,
                              fb_hash128 digest, fb_recording_hash hash, void *user);

/* Reads the next item. FB_ERR_NOT_FOUND: the input ends here, orderly or within an item (*cut is
 * then true). FB_ERR_VERSION_NEWER: a header of another version. FB_ERR_MALFORMED: the item at
 * `in->at` breaks the format; *in stays there. `redacted` is what the header said. */
fb_status fb_recording_read(fb_reader *in, bool redacted, fb_recording_item *out, bool *cut);

/* Effect `index` of a step that was read. */
fb_recording_effect fb_recording_effect_at(const fb_recording_item *step, uint32_t index);

/* Name of a provider's function, for people. */
const char *fb_recording_call_name(fb_recording_call call);

#endif
