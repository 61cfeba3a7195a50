/* SPDX-License-Identifier: Apache-2.0 */
/* The record of a run, the one source of every view: steps, what happened in them and why, messages
 * with both their ends, faults as bands.
 *
 * It stands outside the world, changes nothing of a run, and keeps a window: the last so many
 * steps, notes and messages, each addressed by its number. What it has to know of the present, to
 * go on, is in `live`, which snapshots of the world contain (step/snapshot.h). */
#ifndef FB_SIM_VIEW_RECORD_H
#define FB_SIM_VIEW_RECORD_H

#include "protocol/base/hash.h"
#include "protocol/core/effect.h"
#include "protocol/core/event.h"
#include "protocol/core/observe.h"
#include "sim/network/network.h"
#include "sim/weather/weather.h"
#include "sim/workload/workload.h"
#include "sim/world/queue.h"

typedef struct fb_sim_world fb_sim_world;

#define FB_SIM_NOBODY UINT16_MAX

/* One step of one node. */
typedef struct fb_sim_moment {
    uint64_t step; /* from 1; 0: this place is empty */
    uint64_t time_ns;
    int64_t wall_us;
    uint64_t turn_began; /* steps before the turn of the world that it is in */
    uint64_t cause;      /* the step whose effect led to this one; 0: client, director or weather */
    uint64_t a, b, c;
    uint64_t notes; /* number of its first note */
    uint64_t sends; /* number of its first message */
    uint32_t len;
    uint16_t node;
    uint16_t note_count;
    uint16_t send_count;
    uint16_t receive_count;
    uint8_t kind; /* fb_event_kind */
    uint8_t reads, writes, replies;
    uint8_t harmed; /* what arrived with it was damaged on the way */
} fb_sim_moment;

/* What happened, in a form that is short and has no addresses. Kinds below 64 are facts of the core
 * (fb_fact). */
typedef enum fb_sim_note_kind {
    FB_SIM_NOTE_WEATHER = 64, /* a: fault; b, c: nodes; d: 1 it begins */
    FB_SIM_NOTE_PHASE,        /* a: round; b: phase */
    FB_SIM_NOTE_CRASH,
    FB_SIM_NOTE_REQUEST,  /* a: operation */
    FB_SIM_NOTE_REPLY,    /* a: operation; b: fb_error */
    FB_SIM_NOTE_DECISION, /* a: fb_sim_decision_kind: somebody changed the run (step/session.h) */
    FB_SIM_NOTE_BAD,      /* the check that failed; its text is of the record */
} fb_sim_note_kind;

typedef struct fb_sim_note {
    uint64_t step; /* of the world when it happened: within that step, or after it */
    uint64_t time_ns;
    uint64_t a, b, c, d;
    uint32_t record; /* number of the record it is about, UINT32_MAX */
    uint16_t node;   /* FB_SIM_NOBODY: the world */
    uint16_t peer;   /* FB_SIM_NOBODY: none, or a stranger */
    uint16_t tail;   /* the last two bytes of a message's id */
    uint8_t kind;
} fb_sim_note;

typedef enum fb_sim_fate {
    FB_SIM_ON_WAY,
    FB_SIM_RECEIVED,
    FB_SIM_LOST,
} fb_sim_fate;

/* Bytes that one effect gave to the network: a piece of a stream, or a frame of a carrier. */
typedef struct fb_sim_message_note {
    uint64_t number; /* from 1; 0: this place is empty */
    uint64_t sent_step, sent_ns;
    uint64_t received_step, received_ns;
    uint64_t over_step; /* of the world when it was lost */
    uint64_t end;       /* of a stream: offset behind its last byte */
    uint64_t next;      /* message on the same flow */
    uint32_t flow;      /* end that receives it */
    uint32_t stamp;     /* of the connection */
    uint32_t len;
    uint16_t from, to;
    uint8_t fate;
    uint8_t carrier;
    uint8_t copies; /* times it was received */
    uint8_t harmed; /* cut short, or a bit was flipped */
} fb_sim_message_note;

/* A window of the weather. */
typedef struct fb_sim_band {
    uint64_t start_ns;
    uint64_t end_ns; /* FB_NEVER: it goes on */
    uint64_t step, end_step;
    uint32_t a, b;
    uint8_t fault;
    uint32_t window; /* generation and place in the weather's table */
} fb_sim_band;

#define FB_SIM_BANDS_MAX 8192u

/* Who put an entry of the queue there, by the entry's sequence. Open addressing. */
typedef struct fb_sim_cause {
    uint64_t sequence; /* plus one; 0: free */
    uint64_t step;
} fb_sim_cause;

/* What is needed to go on. One allocation. */
typedef struct fb_sim_live {
    uint64_t bytes;
    uint64_t turn_began;    /* steps before the turn that runs */
    uint64_t context;       /* the step that does what is being done now, 0: none */
    uint64_t arriving_step; /* sender of what the next step gets; 0: nothing arrives */
    uint32_t arriving_count;
    bool arriving_harmed;
    uint64_t notes;    /* numbers given so far */
    uint64_t messages; /* the same */
    uint64_t bands;
    uint64_t *tick_cause; /* by node */
    uint64_t *last_step;  /* by node */
    uint64_t *flow_first; /* by end: messages on the way to it, as numbers */
    uint64_t *flow_last;
    uint64_t *frame_message; /* by place of the frame */
    fb_sim_cause *causes;
    uint32_t cause_mask;
} fb_sim_live;

typedef struct fb_sim_record fb_sim_record;
struct fb_sim_record {
    fb_sim_live *live;
    fb_sim_moment *moments;
    fb_sim_note *notes;
    fb_sim_message_note *messages;
    fb_sim_band *bands;
    uint64_t capacity; /* of moments and messages, a power of two; of notes it is twice that */
    uint64_t first;    /* steps below were not seen */
    uint64_t bad_step; /* of the world when a check failed; 0: none did */
    uint64_t bad_ns;
    char bad[640]; /* its name and what it said */
    bool frozen;   /* notes are not taken: the past is only walked through */
    /* Called at the end of each step, after its effects were carried out; may be NULL. */
    void (*stepped)(void *user, fb_sim_world *world, uint32_t node);
    /* Called with the bytes of each step, before its effects are carried out; may be NULL. */
    void (*heard)(void *user, const fb_sim_world *world, uint32_t node, const fb_event *event,
                  const fb_effects *effects, fb_hash128 digest);
    void *user;
};

/* A record of the last `steps` steps at least. Attached to the world before its director starts;
 * NULL when the machine has no memory for it. */
fb_sim_record *fb_sim_record_create(fb_sim_world *world, uint64_t steps);
void fb_sim_record_destroy(fb_sim_record *record);

/* The run is over: what failed, if anything did, is kept. */
void fb_sim_record_verdict(fb_sim_world *world);

/* The world went back to what it was after `world->steps` steps; live is restored already. */
void fb_sim_record_rewind(fb_sim_world *world);

/* By number; NULL when it is not in the window. */
const fb_sim_moment *fb_sim_record_moment(const fb_sim_record *record, uint64_t step);
const fb_sim_note *fb_sim_record_note(const fb_sim_record *record, uint64_t number);
const fb_sim_message_note *fb_sim_record_message(const fb_sim_record *record, uint64_t number);
/* The oldest number that is still there. */
uint64_t fb_sim_record_notes_from(const fb_sim_record *record);
uint64_t fb_sim_record_messages_from(const fb_sim_record *record);
/* The first step of the window that ends with `last`. */
uint64_t fb_sim_record_from(const fb_sim_record *record, uint64_t last);

/* The step that put an entry of this order into the queue; 0: none did. */
uint64_t fb_sim_record_cause(const fb_sim_record *record, uint64_t order);

/* Hooks of the world; each is called only when it has a record. */
typedef struct fb_sim_context {
    uint64_t context;
} fb_sim_context;

fb_sim_context fb_sim_record_enter(fb_sim_world *world);
void fb_sim_record_leave(fb_sim_world *world, uint32_t node, fb_sim_context before);
void fb_sim_record_step(fb_sim_world *world, uint32_t node, const fb_event *event,
                        const fb_effects *effects, fb_hash128 digest);
void fb_sim_record_scheduled(fb_sim_world *world);
void fb_sim_record_popped(fb_sim_world *world, const fb_sim_entry *entry);
void fb_sim_record_ticks(fb_sim_world *world, uint32_t node);
void fb_sim_record_tick_set(fb_sim_world *world, uint32_t node);
void fb_sim_record_note_add(fb_sim_world *world, fb_sim_note note);
void fb_sim_record_weather(fb_sim_world *world, const fb_sim_window *window);
/* Bytes given to the flow that ends in `end`; kept of `len` are those that will arrive. */
void fb_sim_record_sent(fb_sim_world *world, uint32_t end, size_t len, size_t kept, bool harmed);
/* The next step gets the bytes of this flow up to an offset. */
void fb_sim_record_arrives(fb_sim_world *world, uint32_t end, uint64_t offset);
/* What was on its way on this flow is gone. */
void fb_sim_record_dropped(fb_sim_world *world, uint32_t end);
/* A frame: `place` is that of its copy in the network's table, UINT32_MAX when it is lost. */
uint64_t fb_sim_record_frame_sent(fb_sim_world *world, uint32_t end, size_t len);
void fb_sim_record_harmed(fb_sim_world *world, uint64_t message);
void fb_sim_record_frame_launched(fb_sim_world *world, uint64_t message, uint32_t place);
void fb_sim_record_frame_arrives(fb_sim_world *world, uint32_t place, bool lost);

#endif
