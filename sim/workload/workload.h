/* SPDX-License-Identifier: Apache-2.0 */
/* What applications do to a simulated cluster: clients of each node put, change, delete, read and
 * list records through local requests, some keys far more than others, some values empty, some
 * large. Each value is unique, so a check can tell which write it came from. */
#ifndef FB_SIM_WORKLOAD_WORKLOAD_H
#define FB_SIM_WORKLOAD_WORKLOAD_H

#include "protocol/base/alloc.h"
#include "protocol/base/types.h"
#include "protocol/core/effect.h"

typedef struct fb_sim_world fb_sim_world;

#define FB_SIM_CLIENTS  2u /* of each node */
#define FB_SIM_RECORDS  32u
#define FB_SIM_FIELDS   4u
#define FB_SIM_ELEMENTS 4u /* that a set may have */
/* What the merge knows of a record: its plain fields, a counter, the elements of a set. */
#define FB_SIM_COUNTER FB_SIM_FIELDS
#define FB_SIM_COLUMNS (FB_SIM_FIELDS + 1 + FB_SIM_ELEMENTS)
#define FB_SIM_PAD_MAX 60000u /* the longest value is so much longer than its name */
#define FB_SIM_GHOSTS  16u    /* of each node: clients that left before their answer came */

typedef enum fb_sim_operation {
    FB_SIM_OP_PUT,    /* replaces the record: all fields */
    FB_SIM_OP_CHANGE, /* some fields */
    FB_SIM_OP_DELETE,
    FB_SIM_OP_GET,
    FB_SIM_OP_LIST,
    FB_SIM_OP_STRANGER, /* a put by an application that may not use the space */
    FB_SIM_OP_ADD,      /* to the record's counter */
    FB_SIM_OP_INSERT,   /* into its set */
    FB_SIM_OP_REMOVE,
    FB_SIM_OP_WATCH,       /* feeds.h */
    FB_SIM_OP_MEMBERS,     /* of the record's space */
    FB_SIM_OP_VERIFY,      /* whether another node holds the same */
    FB_SIM_OP_REPORTED,    /* what another node has said to hold */
    FB_SIM_OP_COLLECTIONS, /* which ones another node has */
    FB_SIM_OPS
} fb_sim_operation;

/* One operation, all of it: drawn, or read from a schedule. */
typedef struct fb_sim_op {
    uint8_t operation;
    uint8_t record;  /* of a list, if not 0, the one after the record that it begins behind */
    uint8_t fields;  /* bit set */
    uint8_t unset;   /* of them, those that are taken away */
    uint8_t empty;   /* of them, those whose value is the empty text */
    uint8_t items;   /* of a list; how much is added; which element; where a feed begins;
                      which node is asked */
    uint32_t number; /* names its values: no other operation of its node has it */
    uint16_t pad[FB_SIM_FIELDS]; /* bytes that make a value longer */
} fb_sim_op;

typedef struct fb_sim_client {
    uint64_t request;     /* that is out; 0: none */
    uint64_t incarnation; /* of its node when it was asked */
    uint64_t asked_ns;
    uint32_t count; /* operations so far */
    uint8_t operation;
    uint8_t record;
    uint8_t fields; /* bit set */
    uint8_t unset;  /* of them, those that are taken away */
    uint8_t items;
    uint32_t asked_step; /* of the world */
    uint64_t gone_ns;    /* of a ghost: since when */
    bool conditional;    /* asked on condition of what it read */
    bool has_etag;
    bool etag_used; /* and it is kept for one more try */
    bool has_last;
    uint8_t etag_record;
    uint8_t etag[16];
    fb_sim_op last;
} fb_sim_client;

typedef struct fb_sim_workload {
    fb_sim_client *clients;    /* node * FB_SIM_CLIENTS + client */
    struct fb_sim_feed *feeds; /* the same: what clients watch */
    fb_sim_client *ghosts;     /* node * FB_SIM_GHOSTS: the write may still happen */
    uint8_t *ghost_places;     /* by node: how many of its first ones were in use since its start */
    bool active;
    bool on[FB_SIM_OPS];
    uint64_t think_ns;
    uint64_t round;
    uint64_t done[FB_SIM_OPS];
    uint64_t failed[FB_SIM_OPS];
    uint8_t *buffer; /* of arguments */
    size_t buffer_bytes;
} fb_sim_workload;

extern const char *const fb_sim_operation_names[FB_SIM_OPS];

/* Something of a record is to be other than before. */
static inline bool fb_sim_op_writes(uint32_t operation)
{
    return operation <= FB_SIM_OP_DELETE ||
           (operation >= FB_SIM_OP_ADD && operation < FB_SIM_OP_WATCH);
}

void fb_sim_workload_init(fb_sim_world *world, fb_arena *arena);
/* Operations of this round are drawn, clients begin. */
void fb_sim_workload_start(fb_sim_world *world, uint64_t round);
/* Clients finish what they have and ask no more. */
void fb_sim_workload_stop(fb_sim_world *world);

/* A client reaches its node, and it answers. */
bool fb_sim_work_possible(const fb_sim_world *world, uint32_t node);
void fb_sim_at_work(fb_sim_world *world, uint32_t node, uint32_t client, uint32_t stamp);
/* A client that waits for nothing asks its node, which is up. */
void fb_sim_work_ask(fb_sim_world *world, uint32_t node, uint32_t client, const fb_sim_op *op);
/* The client that asked this is gone, and its node is told or not. */
void fb_sim_at_gone(fb_sim_world *world, uint32_t node, uint32_t client, uint32_t stamp);
/* All clients of a node are gone, and it is not told. */
void fb_sim_workload_vanish(fb_sim_world *world, uint32_t node);
/* So many questions at once, of callers that do not wait for the answers. */
void fb_sim_workload_storm(fb_sim_world *world, uint32_t node, uint32_t count);
/* A reply of a node: to the director or to a client. */
void fb_sim_replied(fb_sim_world *world, uint32_t node, const fb_effect *reply);

/* The node ended its incarnation: its callers get no more answers. */
void fb_sim_workload_over(fb_sim_world *world, uint32_t node);

/* The client whose request this is, or NULL. */
const fb_sim_client *fb_sim_client_of(const fb_sim_world *world, uint32_t node, uint64_t request);
/* The id of record number `record`. */
fb_id fb_sim_record_id(const fb_sim_world *world, uint32_t record);
/* Its number, or UINT32_MAX. */
uint32_t fb_sim_record_of(const fb_sim_world *world, fb_id id);

/* In which space an operation happens: a list is one of the first. */
uint32_t fb_sim_op_space(const fb_sim_world *world, uint32_t operation, uint32_t record);

extern const char fb_sim_collection[];

#endif
