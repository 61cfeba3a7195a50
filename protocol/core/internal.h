/* SPDX-License-Identifier: Apache-2.0 */
/* The node as its planes see it. Not for drivers. */
#ifndef FB_CORE_INTERNAL_H
#define FB_CORE_INTERNAL_H

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/draw.h"
#include "protocol/base/limits.h"
#include "protocol/base/mutant.h"
#include "protocol/base/uuid.h"
#include "protocol/core/digest.h"
#include "protocol/core/node.h"
#include "protocol/core/observe.h"
#include "protocol/core/plane.h"
#include "protocol/core/request.h"
#include "protocol/core/timer.h"

typedef enum fb_phase {
    FB_PHASE_WAITING, /* for START: just created, or the incarnation ended */
    FB_PHASE_LOADING, /* planes read their part of the store */
    FB_PHASE_RUNNING,
} fb_phase;

typedef struct fb_timers {
    fb_timer **heap;
    uint32_t count;
    uint32_t capacity;
    fb_timer_handler handlers[FB_TIMER_KINDS];
} fb_timers;

typedef struct fb_digests {
    fb_hash128 sum;
    const fb_digest_kind *kinds[FB_DIGEST_TAGS];
    struct fb_digest_mark *dirty;
    uint32_t dirty_count;
    uint32_t capacity;
} fb_digests;

/* An event of a plane's own. FB_ERR_EVENT_MALFORMED: the driver's mistake, nothing changed. Called
 * while the node loads, too. */
typedef fb_status (*fb_event_handler)(fb_node *node, const fb_event *event);

#define FB_EVENT_KINDS 128u

struct fb_node {
    fb_options options;
    size_t effects_min;
    size_t scratch_bytes;
    size_t end_bytes; /* of the arena, kept for the end of the incarnation */
    fb_arena arena;   /* of the whole instance, full after creation */
    fb_phase phase;
    bool stepping;
    bool starved; /* something waits for nothing but the next step */
    uint32_t loading_plane;

    /* Of the event being handled. */
    uint64_t mono_ns;
    int64_t wall_us;
    fb_effects *out;
    size_t last_effect; /* offset in the arena */
    size_t effects_cap; /* of the arena, what scratch and end_bytes leave */

    uint64_t incarnation;
    fb_seed seed; /* of this incarnation: every draw of the core uses it */
    fb_id self;
    fb_b32 self_key;

    fb_uuid_gen uuid;
    fb_id uuid_mark;      /* stored: every id given is below it */
    uint64_t uuid_mark_w; /* the write set that stores it */
    fb_id uuid_durable;   /* a mark that is durable: ids up to it may be given */
    fb_error ending;      /* why the incarnation ends with this step */
    uint64_t counters[FB_COUNTERS];
    fb_digest_cell cell;

    fb_event_handler event_handlers[FB_EVENT_KINDS];
    const struct fb_method_ops *methods[8]; /* rpc.h: who serves a method */
    fb_timers timers;
    fb_digests digests;
    struct fb_store *store;       /* store/ops.c */
    struct fb_requests *requests; /* core/requests.c */

    struct fb_spaces *spaces;             /* space/ */
    struct fb_links *links;               /* link/ */
    const struct fb_channel *channels[3]; /* link.h: who registered for a channel */
    const struct fb_channel *controls[8]; /* and for a type of control frame */
    struct fb_messaging *messaging;       /* messaging/ */
    struct fb_rpc *rpc;                   /* rpc/ */
    struct fb_database *database;         /* database/ */
};

/* From a plane's layout: who takes events of a kind. */
void fb_event_register(fb_node *node, fb_event_kind kind, fb_event_handler handler);

/* The plane whose turn it is has read its part of the store. */
void fb_plane_loaded(fb_node *node);

/* Ends the incarnation (DESIGN 2, failure): planes are reset, open links closed, waiting requests
 * answered with FB_ERR_AGAIN, FB_FX_NEED_START emitted. Takes effect at the end of the step. */
void fb_incarnation_end(fb_node *node, fb_error why);

/* Effects. fb_effect_fits tells whether a record with len bytes has room; fb_effect_room makes one
 * and returns its bytes for the caller to fill (the caller has asked before: it asserts). While the
 * record is the last one, fb_effect_trim shortens it. */
bool fb_effect_fits(const fb_node *node, size_t len);
uint8_t *fb_effect_room(fb_node *node, fb_effect_kind kind, uint64_t a, uint64_t b, uint64_t c,
                        size_t len);
void fb_effect_trim(fb_node *node, size_t len);
void fb_effect_put(fb_node *node, fb_effect_kind kind, uint64_t a, uint64_t b, uint64_t c,
                   fb_span bytes);

/* What did not fit: the next deadline is now. */
static inline void fb_starved(fb_node *node)
{
    node->starved = true;
}

/* A fact for checkers; dropped silently only when the arena is full, which the published minimum
 * makes impossible for the facts of one step. */
void fb_observe(fb_node *node, fb_fact fact, uint64_t b, uint64_t c, fb_span bytes);

/* Log lines are built from constant text and escaped spans; `detail` is peer text, escaped here. */
void fb_log(fb_node *node, fb_log_level level, const char *text, fb_span detail);
void fb_count(fb_node *node, fb_counter counter, uint64_t amount);

/* A new UUIDv7 of this node: monotonic within a millisecond, across clock steps and restarts. A
 * mark above every id given is stored ahead of time; FB_ERR_AGAIN when the clock jumped beyond it:
 * the new mark is in the set being built, ask again when that is durable. FB_ERR_CLOCK: see
 * base/uuid.h. */
fb_status fb_new_uuid(fb_node *node, fb_id *out);
/* The same for an id that nobody sees before the set being built now is durable: never
 * FB_ERR_AGAIN. */
fb_status fb_new_uuid_held(fb_node *node, fb_id *out);

/* wall_us in whole milliseconds, floored. */
static inline int64_t fb_wall_ms(const fb_node *node)
{
    int64_t ms = node->wall_us / 1000;
    return node->wall_us % 1000 < 0 ? ms - 1 : ms;
}

#endif
