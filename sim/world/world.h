/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a run: nodes, network, disks and clocks in virtual time.
 *
 * A run is a pure function of its configuration. Everything that happens is an entry of one queue
 * in a written total order; every choice is a keyed draw; nothing is allocated after
 * fb_sim_world_create. */
#ifndef FB_SIM_WORLD_WORLD_H
#define FB_SIM_WORLD_WORLD_H

#include "protocol/core/observe.h"
#include "protocol/core/request.h"
#include "sim/faults.h"
#include "sim/network/network.h"
#include "sim/world/fail.h"
#include "sim/world/memo.h"
#include "sim/world/process.h"
#include "sim/world/queue.h"
#include "sim/world/random.h"
#include "sim/world/trace.h"

#define FB_SIM_NODES_MAX 512u

/* Spaces that nodes share: one of all of them, and in most runs a second one of some. Records from
 * this number on live in the second one where there is one. */
#define FB_SIM_SPACES         2u
#define FB_SIM_SECOND_RECORDS 24u
#define FB_SIM_SECOND_DRAWN   UINT64_MAX
#define FB_SIM_SECOND_NODES   6u /* a larger cluster has one only when it is told to */

/* The true wall clock at the start of a run: some time in 2026. */
#define FB_SIM_WALL_START_US INT64_C(1790000000000000)

/* Kinds of entries, in the order in which those of one node at one time happen. The world's own are
 * node 0 in that order, nodes follow from 1. */
typedef enum fb_sim_kind {
    FB_SIM_AT_WEATHER = 1, /* ref: window; stamp: 0 it ends, 1 it begins */
    FB_SIM_AT_SCRIPT,      /* the run's director has its turn */
    FB_SIM_AT_ACT,         /* ref: window: it acts again (replay, byzantine, flapping) */
    FB_SIM_AT_BOOT,
    FB_SIM_AT_START,
    FB_SIM_AT_ACCEPT,
    FB_SIM_AT_DIAL_RESULT,
    FB_SIM_AT_CARRIER,
    FB_SIM_AT_BYTES,
    FB_SIM_AT_FRAME,
    FB_SIM_AT_CREDIT,
    FB_SIM_AT_CLOSED,
    FB_SIM_AT_READ,
    FB_SIM_AT_FLUSH,
    FB_SIM_AT_WORK,      /* ref: client; stamp: its operation */
    FB_SIM_AT_GONE,      /* ref: client; stamp: its operation: it waits no longer */
    FB_SIM_AT_FEED,      /* ref: client; stamp: its feed: it takes more */
    FB_SIM_AT_DOCUMENTS, /* documents/calls.h: ref */
    FB_SIM_AT_TICK,
    FB_SIM_AT_SERVER, /* the world's; ref: node and call of its document server; stamp: which */
} fb_sim_kind;

typedef enum fb_sim_result {
    FB_SIM_PASS,
    FB_SIM_SAFETY,
    FB_SIM_LIVENESS,
    FB_SIM_CRASHED,
    FB_SIM_NONDETERMINISM,
    FB_SIM_RESOURCE,
    FB_SIM_ORACLE,
} fb_sim_result;

/* How two nodes can reach each other. */
typedef enum fb_sim_route {
    FB_SIM_ROUTE_STREAM,
    FB_SIM_ROUTE_BOTH,
    FB_SIM_ROUTE_CARRIER,
} fb_sim_route;

/* What a run is made of. Filled in by fb_sim_config_default and the command line. */
typedef struct fb_sim_config fb_sim_config;
struct fb_sim_config {
    fb_seed seed;
    char seed_text[44];
    uint32_t nodes;
    uint64_t second;      /* members of the second space; 0: there is none; or drawn */
    uint64_t documents;   /* nodes whose records are documents, as a bit set; or drawn */
    uint32_t degree;      /* neighbours that each node dials and is dialled by; 0: all */
    uint64_t events;      /* the run ends with this step; a while before, a round is healed early */
    uint64_t duration_ns; /* or simulated time; FB_NEVER: steps alone */
    uint64_t stop_at_step; /* the run is not let go on after so many */
    bool faults;
    bool fast; /* digests and checks only every 2^16 steps */
    bool checks;
    bool reference; /* records are held against the reference model: not those of a toy node */
    bool timeline;
    bool viewed;    /* a record (view/record.h) is attached before the start */
    uint8_t poison; /* fills memory that nobody may read before it is written; 0: not filled */
    bool verbose;
    bool quiet;               /* nothing on standard error */
    fb_sim_fault_set without; /* faults that are off in every round */
    fb_sim_fault_set only;    /* those alone are on in every round; none: the swarm draws */
    bool plain; /* no swarm: every round has all faults that it may have, and all operations */
    uint32_t carriers_of_16;            /* share of pairs that an external carrier joins */
    const struct fb_sim_plan *schedule; /* is played instead of what the swarm draws; or NULL */
    struct fb_sim_plan *record;         /* takes what happens, to be played again; or NULL */
    const char *record_path;            /* where it is written should the process crash; or NULL */
    struct fb_sim_seen *seen;           /* takes what the run shows (explore/seen.h); or NULL */
    fb_sizes sizes;
    fb_timing timing;
    uint32_t store_items;
    uint64_t blob_bytes;
    uint32_t connections;
    uint32_t window_bytes;
    uint64_t delay_min_ns; /* of all paths in good weather */
    uint64_t delay_mean_ns;
    uint64_t read_mean_ns;
    uint64_t write_mean_ns;
};

struct fb_sim_checks;
struct fb_sim_weather;
struct fb_sim_director;
struct fb_sim_workload;
struct fb_sim_timeline;
struct fb_sim_record;

struct fb_sim_world {
    fb_sim_config config;
    fb_seed seed; /* of this run */
    uint64_t now_ns;
    uint64_t steps;
    uint64_t last_step; /* the run ends with it, wherever that is */
    uint64_t ticks;
    uint64_t accepting; /* steps that accepted a message */
    uint64_t applying;  /* steps that applied changes of another node */
    uint64_t applied;   /* those changes */
    fb_sim_queue queue;
    /* Ticks stand outside the queue, because they move with every step: a tournament among the
     * nodes, the first to tick at place 1. */
    uint32_t *tick_tree;
    uint32_t tick_leaves;
    fb_sim_trace trace;
    fb_sim_blobs blobs;
    fb_sim_keys keys; /* of all stores */
    fb_sim_network network;
    fb_sim_node *nodes;
    uint16_t *by_id; /* their places + 1, by id: open addressing, 0 for none */
    uint32_t by_id_mask;
    fb_sim_read *reads;
    uint32_t read_free;
    uint32_t reads_max;
    fb_effects effects; /* of the step that runs: one arena for all nodes */
    uint8_t *scratch;   /* bytes of the event that is being made */
    size_t scratch_bytes;
    uint8_t *provider_scratch;
    size_t instance_bytes; /* of one fb_node */
    uint8_t *blob_memory;
    fb_id spaces[FB_SIM_SPACES];     /* once they exist */
    uint64_t members[FB_SIM_SPACES]; /* of them, as bit sets; 0 for a second one that is not */
    uint64_t requests;               /* numbers given so far */

    uint64_t fired[FB_SIM_FAULTS];
    uint8_t *carriers; /* from * nodes + to: fb_sim_route */
    uint32_t traitor;  /* the Byzantine member of this round, UINT32_MAX for none */
    bool *liars;       /* by node: it lied, and what it said may still be on its way */
    fb_sim_memo signs; /* by fb_sim_signed_key: what liars gave in the place of what was sent */
    bool *held_apart;  /* by node: out of reach until the next round */
    fb_sim_result result;
    const char *check; /* id of the violated one */
    const char *stall; /* why no progress can be demanded; NULL: it was */
    char detail[512];
    bool stop;

    struct fb_sim_checks *checks;
    struct fb_sim_weather *weather;
    struct fb_sim_director *director;
    struct fb_sim_workload *workload;
    struct fb_sim_timeline *timeline;
    struct fb_sim_bench *bench;       /* NULL but in a benchmark */
    struct fb_sim_player *player;     /* NULL: the swarm draws */
    struct fb_sim_recorder *recorder; /* NULL: nobody writes the run down */
    struct fb_sim_record *record;     /* of what happens, for views; NULL but when asked for */

    fb_arena arena; /* of everything above */
    void *memory;
};

fb_sim_config fb_sim_config_default(void);

/* Everything the run will need is allocated here. NULL when the machine has no memory for it. */
fb_sim_world *fb_sim_world_create(const fb_sim_config *config);
void fb_sim_world_destroy(fb_sim_world *world);

/* Takes the next entry and does it. False when the queue is empty or the run is over: with the last
 * step of its configuration (`events`, `stop_at_step`), if nothing ended it before. */
bool fb_sim_world_next(fb_sim_world *world);

/* One event into one node: its clocks are read, the node steps, its effects are carried out, the
 * trace and the checks see it. kind, a, b, c and bytes of the event are the caller's. */
void fb_sim_step(fb_sim_world *world, uint32_t node, fb_event event);

/* A local request of a node that is up; returns its number. */
uint64_t fb_sim_request(fb_sim_world *world, uint32_t node, fb_verb verb, uint64_t principal,
                        fb_span arguments);

/* The node's next tick: FB_NEVER for none. */
void fb_sim_tick_set(fb_sim_world *world, uint32_t node, uint64_t at_ns);

/* The weather of ticks changed: the next one of this node is set anew. */
void fb_sim_tick_again(fb_sim_world *world, uint32_t node);

void fb_sim_schedule(fb_sim_world *world, uint64_t at_ns, uint32_t node, fb_sim_kind kind,
                     uint32_t ref, uint32_t stamp);
void fb_sim_schedule_world(fb_sim_world *world, uint64_t at_ns, fb_sim_kind kind, uint32_t ref,
                           uint32_t stamp);

/* The first violation of a run is kept and ends it. */
void fb_sim_violated(fb_sim_world *world, fb_sim_result result, const char *check,
                     const char *format, ...);

static inline bool fb_sim_is_up(const fb_sim_world *world, uint32_t node)
{
    return world->nodes[node].core != NULL;
}

static inline bool fb_sim_is_member(const fb_sim_world *world, uint32_t space, uint32_t node)
{
    return space == 0 || (node < 64 && (world->members[space] >> node & 1) != 0);
}

/* Whose identity a machine has now: its own, or that which it is a copy of. */
static inline uint32_t fb_sim_identity(const fb_sim_world *world, uint32_t node)
{
    return world->nodes[node].cloned ? world->nodes[node].clone_of : node;
}

static inline uint32_t fb_sim_space_count(const fb_sim_world *world)
{
    return world->members[1] != 0 ? 2 : 1;
}

/* Of a record by its number. */
static inline uint32_t fb_sim_space_of_record(const fb_sim_world *world, uint32_t record)
{
    return world->members[1] != 0 && record >= FB_SIM_SECOND_RECORDS ? 1 : 0;
}

/* By its id; FB_SIM_SPACES for another one. */
static inline uint32_t fb_sim_space_of(const fb_sim_world *world, fb_id id)
{
    uint32_t space = 0;
    while (space < FB_SIM_SPACES && !fb_id_equal(world->spaces[space], id)) space++;
    return space;
}

/* Who makes a space: the first node, or the last member of the second one. */
static inline uint32_t fb_sim_creator(const fb_sim_world *world, uint32_t space)
{
    uint32_t node = 0;
    for (uint32_t i = 0; i < 64 && space != 0; i++) {
        if ((world->members[space] >> i & 1) != 0) node = i;
    }
    return node;
}

/* Makes the state of all paths anew from the weather and held_apart. */
void fb_sim_paths_renew(fb_sim_world *world);

/* "A".."Z", then "n26" and so on; a small ring of texts, valid for the next few calls. */
const char *fb_sim_name(uint32_t node);

/* A node of a world that does not run is known by this id from now on. */
void fb_sim_world_call(fb_sim_world *world, uint32_t node, fb_id id);

/* A node by its id; UINT32_MAX for a stranger. */
uint32_t fb_sim_node_of(const fb_sim_world *world, fb_id id);

#endif
