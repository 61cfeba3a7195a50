/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of checks. Each is a file of sim/checkers/ named after its property; it sees the
 * events and the facts it asks for, and what became of write sets. */
#ifndef FB_SIM_CHECKERS_CHECKS_H
#define FB_SIM_CHECKERS_CHECKS_H

#include "sim/world/memo.h"
#include "sim/world/world.h"

typedef struct fb_sim_check {
    const char *id;    /* stable: printed, and named in the closing line */
    const char *musts; /* what it is about: sections of DESIGN, and ids of specs-conformance/ */
    const char *cost;  /* "O(1) a fact", "round": only at the end of one */
    const char *text;
    /* Room of its own, zeroed: so many bytes, or, of one of these two, for each node, for each end
     * of a connection (fb_sim_link_end). layout is called in both passes of the world's arena, with
     * `state` NULL while measuring. */
    size_t state_bytes;
    size_t of_node_bytes;
    size_t of_end_bytes;
    void (*layout)(fb_sim_world *world, void *state, fb_arena *arena);
    uint64_t facts; /* bit set of fb_fact numbers below 64 */
    void (*fact)(fb_sim_world *world, void *state, uint32_t node, const fb_effect *fact);
    uint64_t events; /* bit set of fb_event_kind below 64 */
    void (*event)(fb_sim_world *world, void *state, uint32_t node, const fb_event *event);
    /* A last reply, or a piece of a stream, before the workload sees it. */
    void (*reply)(fb_sim_world *world, void *state, uint32_t node, const fb_effect *reply);
    /* A write set is in the store: it outlives a crash. */
    void (*wrote)(fb_sim_world *world, void *state, uint32_t node, uint64_t incarnation,
                  uint64_t w);
    /* The node's incarnation ended; what was not in the store never will be. */
    void (*over)(fb_sim_world *world, void *state, uint32_t node);
    /* Its store is kept aside: an old image to come back to. */
    void (*backup)(fb_sim_world *world, void *state, uint32_t node);
    /* The node's store is an old one, or empty, from now on. */
    void (*restored)(fb_sim_world *world, void *state, uint32_t node, bool empty);
    /* The node's machine is a copy of another one from now on; it is `restored` at the end. NULL:
     * as if its disk were lost. */
    void (*cloned)(fb_sim_world *world, void *state, uint32_t node, uint32_t of);
    /* A round healed and converged, as far as the director can see. */
    void (*round)(fb_sim_world *world, void *state);
    /* `round` looks at stores alone and holds at any time: fast runs have it every 65,536 steps. */
    bool stands_alone;
    /* `fact` alone judges, and without knowing who asked for what: histories of real nodes too, put
     * together from their recordings (record/merge.h). */
    bool histories;
} fb_sim_check;

#define FB_SIM_FACT(fact) (UINT64_C(1) << (fact))

extern const fb_sim_check *const fb_sim_check_list[]; /* NULL at the end */

/* One check that wants facts of a kind. */
typedef struct fb_sim_watch {
    void (*fact)(fb_sim_world *world, void *state, uint32_t node, const fb_effect *fact);
    void *state;
    uint64_t *seen;
} fb_sim_watch;

/* The list has no more, so a place in it is a byte. */
#define FB_SIM_CHECKS_MAX 128u

/* What a check may be called for, beside facts: an event, by its kind, or one of these. */
enum {
    FB_SIM_MOMENT_REPLY = 64,
    FB_SIM_MOMENT_WROTE,
    FB_SIM_MOMENT_OVER,
    FB_SIM_MOMENT_BACKUP,
    FB_SIM_MOMENT_RESTORED,
    FB_SIM_MOMENTS,
};

struct fb_sim_checks {
    void **states; /* by place in the list */
    uint32_t count;
    /* Who wants facts of each kind: runs of `watches`, in the order of the list. */
    fb_sim_watch *watches;
    uint16_t fact_first[65];
    /* Who wants events of each kind, and then the other moments: runs of `places` in the list. */
    uint8_t *places;
    uint16_t moment_first[FB_SIM_MOMENTS + 1];
    void *sent;               /* delivered_was_sent.c: what others ask it */
    fb_sim_memo messages;     /* what several checks remember of each: fb_sim_known */
    struct fb_sim_told *told; /* the fact that they look at, taken apart */
    uint64_t calls;           /* for `checks` with counters */
    uint64_t *seen;           /* by place: how often its precondition was true */
};

void fb_sim_checks_init(fb_sim_world *world, fb_arena *arena);
void fb_sim_checks_event(fb_sim_world *world, uint32_t node, const fb_event *event);
void fb_sim_checks_fact(fb_sim_world *world, uint32_t node, const fb_effect *fact);
/* A fact of a real node's recording, to the checks that judge those. */
void fb_sim_checks_history(fb_sim_world *world, uint32_t node, const fb_effect *fact);
void fb_sim_checks_reply(fb_sim_world *world, uint32_t node, const fb_effect *reply);
void fb_sim_checks_round(fb_sim_world *world);

void fb_sim_wrote(fb_sim_world *world, uint32_t node, uint64_t incarnation, uint64_t w);
void fb_sim_incarnation_over(fb_sim_world *world, uint32_t node);
void fb_sim_backed_up(fb_sim_world *world, uint32_t node);
void fb_sim_rolled_back(fb_sim_world *world, uint32_t node);
void fb_sim_forgot(fb_sim_world *world, uint32_t node);
void fb_sim_cloned(fb_sim_world *world, uint32_t node, uint32_t of);

/* How often each check had something to look at, by place in the list. */
void fb_sim_checks_seen(const fb_sim_world *world, uint64_t seen[FB_SIM_CHECKS_MAX]);

/* One that is told by who does what it looks at: its precondition was true once more. */
void fb_sim_check_saw(fb_sim_world *world, const fb_sim_check *check);

/* A check's own state, for others that build on what it knows. */
void *fb_sim_check_state(fb_sim_world *world, const fb_sim_check *check);

#endif
