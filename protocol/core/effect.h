/* SPDX-License-Identifier: Apache-2.0 */
/* Effects: everything a node wants done, as records in the caller's arena.
 *
 * They live until the next step with the same arena. The driver carries them out in order; it may
 * not skip one, and it may not look into the ones it only transports. */
#ifndef FB_CORE_EFFECT_H
#define FB_CORE_EFFECT_H

#include "protocol/base/types.h"

/* Numbers are part of the recording format and never change; later planes: docs/ARCHITECTURE.md. */
typedef enum fb_effect_kind {
    /* Open a byte stream. a: dial number; bytes: address as text. Answered by DIAL_RESULT. */
    FB_FX_DIAL = 1,
    /* a: link; bytes: to be sent, within the credit granted. */
    FB_FX_SEND = 2,
    /* a: link of an external carrier; bytes: one whole frame, within the credit granted. */
    FB_FX_FRAME = 3,
    /* a: link; b: fb_error, the reason. Sent bytes are flushed first, received ones dropped.
     * Answered by LINK_CLOSED unless that crossed it. */
    FB_FX_CLOSE = 4,
    /* a: link whose bytes were not all consumed: hand the rest in again. */
    FB_FX_RESUME = 5,

    /* a: operation; bytes: read set (readset.h). Answered by READ_DONE; reads may be answered in
     * any order. */
    FB_FX_READ = 10,
    /* a: incarnation; b: w; c: number of entries; bytes: write set (writeset.h). Applied
     * atomically or not at all, in order of w. Answered by WRITE_DONE, which may cover several. */
    FB_FX_WRITE = 11,

    /* a: request; b: fb_error; c: 1 when more replies follow; bytes: answer (request.h). */
    FB_FX_REPLY = 20,

    /* The incarnation ended. a: it; b: fb_error, why. The driver closes every link of the node and
     * delivers START when it can; any other event is counted and ignored until then. */
    FB_FX_NEED_START = 30,

    /* A fact for checkers (observe.h). a: fb_fact; b, c and bytes by kind. Drivers ignore it. */
    FB_FX_OBSERVE = 40,

    /* Outside the trace hash. a: fb_log_level; bytes: one line of text without line end, peer text
     * escaped. */
    FB_FX_LOG = 50,
} fb_effect_kind;

typedef enum fb_log_level {
    FB_LOG_ERROR = 1,
    FB_LOG_WARNING = 2,
    FB_LOG_INFO = 3,
} fb_log_level;

/* A record in the arena; `len` bytes follow it, padded with zeros to a multiple of 8. */
typedef struct fb_effect {
    uint32_t kind;
    uint32_t len;
    uint64_t a, b, c;
} fb_effect;

/* The caller's arena. memory is aligned to 8 and at least fb_effects_bytes_min(options) long; step
 * sets the other members. During a step its far end is scratch; afterwards only what stands before
 * `used` means anything. */
typedef struct fb_effects {
    uint8_t *memory;
    size_t capacity;
    size_t used;
    size_t consumed; /* of the bytes of LINK_BYTES */
} fb_effects;

static inline const uint8_t *fb_effect_bytes(const fb_effect *effect)
{
    return (const uint8_t *)(effect + 1);
}

/* Iteration: fb_effects_next(fx, NULL) is the first, NULL the end. */
static inline const fb_effect *fb_effects_next(const fb_effects *fx, const fb_effect *previous)
{
    size_t at = 0;
    if (previous != NULL) {
        at = (size_t)((const uint8_t *)previous - fx->memory);
        at += sizeof *previous + ((previous->len + 7u) & ~(size_t)7);
    }
    return at < fx->used ? (const fb_effect *)(fx->memory + at) : NULL;
}

#endif
