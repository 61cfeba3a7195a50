/* SPDX-License-Identifier: Apache-2.0 */
/* The reference model of records: what every node's registers must hold, from the facts alone.
 *
 * It is written for clarity and shares no code with the core. A change sets or unsets fields of one
 * record and replaces exactly what its writer held then; a value is live on a node while no change
 * that replaces it is applied there (DESIGN 3.1, merge). A value that is replaced stands for the
 * earlier ones of its life, whether it is applied or not. What a crash, a lost or an old disk takes
 * away is taken away here too. An addition to a counter replaces those of its own life alone, and
 * an element of a set is a field without a value. Clusters of more than FB_SIM_MODEL_NODES are not
 * modelled. */
#ifndef FB_SIM_CHECKERS_MODEL_H
#define FB_SIM_CHECKERS_MODEL_H

#include "sim/workload/workload.h"

typedef struct fb_sim_world fb_sim_world;

#define FB_SIM_MODEL_NODES   16u
#define FB_SIM_MODEL_CHANGES 32768u
#define FB_SIM_MODEL_EDGES   131072u
#define FB_SIM_MODEL_LIVE    48u
#define FB_SIM_MODEL_WAITING 1024u

typedef struct fb_sim_edge {
    uint32_t replacer;
    uint32_t target;
    uint32_t next_of_replacer;
    uint32_t next_of_target;
    uint8_t field;
    bool maybe; /* the writer may have known already that it was gone */
} fb_sim_edge;

typedef struct fb_sim_model_change {
    fb_id node;
    uint64_t incarnation;
    uint64_t seq;
    int64_t stamp;
    uint64_t request;   /* that caused it, at its author */
    uint32_t targets;   /* edges from here */
    uint32_t replacers; /* edges to here */
    uint32_t next;      /* in its bucket */
    uint32_t before;    /* change of the same author to the same record */
    uint16_t applied;   /* nodes that executed it */
    uint16_t stored;    /* nodes whose disk has it */
    uint16_t backup;    /* nodes whose backup has it */
    uint8_t author;
    uint8_t record;
    uint8_t space;
    uint16_t touches; /* columns */
    uint16_t sets;
    uint32_t total;                   /* of an addition: what its life has added by it */
    bool unsure;                      /* its writer may have begun anew: total is one of two */
    bool acked;                       /* its caller was told that it is durable */
    bool forked;                      /* its author's disk went back behind it */
    bool excused;                     /* lost with the only disks that had it */
    uint32_t written_at;              /* steps of the world */
    uint32_t earlier[FB_SIM_COLUMNS]; /* change of the same life that touched the field before */
    uint32_t later[FB_SIM_COLUMNS];   /* and after */
    uint32_t hushed[FB_SIM_COLUMNS];  /* one of them that took away nothing its author still held:
                                        whether it speaks of the field is its author's to say */
    uint32_t applied_at[FB_SIM_MODEL_NODES];
    uint32_t stored_at[FB_SIM_MODEL_NODES];
} fb_sim_model_change;

typedef struct fb_sim_live {
    uint32_t count;
    uint32_t changes[FB_SIM_MODEL_LIVE];
} fb_sim_live;

typedef struct fb_sim_model_node {
    fb_sim_live live[FB_SIM_RECORDS][FB_SIM_COLUMNS];
    uint32_t waiting[FB_SIM_MODEL_WAITING]; /* executed and not in the store, oldest first */
    uint64_t sets[FB_SIM_MODEL_WAITING];
    uint32_t first;
    uint32_t count;
    uint32_t last[FB_SIM_RECORDS][FB_SIM_COLUMNS]; /* its own last change of a field, + 1 */
    /* The newest change of each author that is applied here. */
    uint32_t newest[FB_SIM_RECORDS][FB_SIM_MODEL_NODES];
} fb_sim_model_node;

typedef struct fb_sim_model {
    bool blind; /* a table is full, or the cluster too large: it says nothing more */
    fb_sim_model_node *nodes;
    fb_sim_model_change *changes;
    uint32_t change_count;
    fb_sim_edge *edges;
    uint32_t edge_count;
    uint32_t *buckets;
    uint32_t written[FB_SIM_RECORDS][FB_SIM_MODEL_NODES]; /* the newest change of each author */
} fb_sim_model;

void fb_sim_model_layout(fb_sim_world *world, fb_sim_model *model, fb_arena *arena);

/* From facts. */
void fb_sim_model_written(fb_sim_world *world, fb_sim_model *model, uint32_t node,
                          const fb_effect *fact);
void fb_sim_model_applied(fb_sim_world *world, fb_sim_model *model, uint32_t node,
                          const fb_effect *fact);
/* What a node holds for known though it never came: everybody had it (FB_FACT_SKIPPED). */
void fb_sim_model_skipped(fb_sim_world *world, fb_sim_model *model, uint32_t node,
                          const fb_effect *fact);
void fb_sim_model_wrote(fb_sim_world *world, fb_sim_model *model, uint32_t node, uint64_t w);
void fb_sim_model_over(fb_sim_world *world, fb_sim_model *model, uint32_t node);
void fb_sim_model_backup(fb_sim_model *model, uint32_t node);
void fb_sim_model_restored(fb_sim_world *world, fb_sim_model *model, uint32_t node, bool empty);
/* The node's machine holds what the disk of another one does; what it held itself is in its backup.
 */
void fb_sim_model_cloned(fb_sim_model *model, uint32_t node, uint32_t of);
/* Everybody holds the same: what is live nowhere is forgotten. */
void fb_sim_model_forget(fb_sim_world *world, fb_sim_model *model);

/* A change by its dot, which names one within the area of a space alone, or NULL. */
fb_sim_model_change *fb_sim_model_find(fb_sim_model *model, uint32_t space, fb_id node,
                                       uint64_t incarnation, uint64_t seq);
/* A change of the same record is here that was written where this one had been seen: the node may
 * know by it that the value is gone, though what replaced it has not come. (A dot that a change
 * lists stands for the earlier ones of its life.) */
bool fb_sim_model_is_covered(const fb_sim_model *model, uint32_t node, uint32_t change);
/* True when a node may hold the value for gone or not. */
bool fb_sim_model_is_hushed(const fb_sim_model *model, uint32_t node, uint32_t change,
                            uint32_t field);
/* A change that replaces the value is not here: in the end, it is lost or out of reach. Who saw it
 * may have told others that the value is gone, without a word about its field (is_covered). */
bool fb_sim_model_misses_replacer(const fb_sim_model *model, uint32_t node, uint32_t change,
                                  uint32_t field);
bool fb_sim_model_is_live(const fb_sim_model *model, uint32_t node, uint32_t change,
                          uint32_t field);

#endif
