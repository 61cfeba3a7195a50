/* SPDX-License-Identifier: Apache-2.0 */
/* Between mend.c, which chooses what goes and takes it away, and anew.c, which merges the records
 * of it from what stays. */
#ifndef FB_DATABASE_CUT_MEND_H
#define FB_DATABASE_CUT_MEND_H

#include "protocol/database/state.h"

/* Batches that go at once: one reading of the area serves them all. */
#define FB_MEND_BATCHES  16u
#define FB_MEND_LIVES    128u
#define FB_MEND_RETRY_NS UINT64_C(2000000)

typedef enum fb_mend_phase {
    FB_MEND_IDLE,
    FB_MEND_READ,   /* which batches go, and the records that they touched */
    FB_MEND_SCAN,   /* as many of those as there is room for: merged from all batches that stay */
    FB_MEND_VALUES, /* values of them that are stored apart are put again */
    FB_MEND_COMMIT, /* one of them after the other is replaced */
    FB_MEND_REMOVE, /* when all records are done: the batches go */
} fb_mend_phase;

typedef struct fb_mend_life {
    fb_id node;
    uint64_t incarnation;
} fb_mend_life;

struct fb_mend {
    fb_mend_phase phase;
    bool busy; /* an operation of it runs */
    fb_timer timer;
    uint64_t serial;
    uint64_t marked; /* the store says that all from this one go; 0: it says nothing */
    uint64_t end_w;  /* then this life ends, which was cut itself; 0: it does not */
    /* The batches that go: the last ones of a life. */
    uint32_t area;
    uint32_t entry;
    fb_id signer;
    uint64_t incarnation, first, last, first_seq;
    bool has_previous; /* of the first of them */
    uint64_t previous_incarnation;
    uint8_t previous_hash[32];
    uint64_t claim_before;
    uint32_t count, at, group; /* records; those from `at` are at hand, so many */
    uint32_t done;             /* of those */
    fb_id records[FB_BATCH_CHANGES_MAX];
    /* The records at hand, as merged so far, one behind the other. */
    uint8_t *states;
    size_t states_cap;
    size_t state_at[FB_BATCH_CHANGES_MAX + 1];
    uint8_t from[FB_BATCH_KEY_BYTES + 1];
    size_t from_len;
    uint32_t life_count;
    fb_mend_life lives[FB_MEND_LIVES]; /* closed ones that the page names */
    uint32_t page; /* batches of the page that they are all of: those are merged */
};

/* mend.c: an operation for the next thing to be done; NULL: later. */
fb_op *fb_mend_begin(fb_node *node, fb_op_run run, size_t bytes, size_t entries);
/* Is the operation still about what is being done? */
bool fb_mend_is_current(fb_node *node, fb_op *op);
void fb_mend_go(fb_node *node);
bool fb_mend_is_lost(const fb_node *node, uint32_t area, fb_id signer, uint64_t incarnation,
                     uint64_t number, uint64_t claim, const uint8_t *hash);

/* anew.c */
void fb_mend_scan(fb_node *node);
void fb_mend_values(fb_node *node);
/* A record at hand as it is from now on, by its place among them. */
static inline fb_span fb_mend_state(const struct fb_mend *m, uint32_t at)
{
    return fb_span_of(m->states + m->state_at[at], m->state_at[at + 1] - m->state_at[at]);
}
/* A value of it is stored apart and lives. */
bool fb_mend_lives_apart(const fb_node *node, uint32_t at, fb_span name, fb_dot dot);

#endif
