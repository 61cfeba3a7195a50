/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the benchmarks: as much as the links carry, no faults. */
#ifndef FB_SIM_WORKLOAD_BENCH_H
#define FB_SIM_WORKLOAD_BENCH_H

#include "sim/world/world.h"

typedef enum fb_sim_bench_profile {
    FB_SIM_BENCH_MESSAGES, /* `changed` of areas that no node holds */
    FB_SIM_BENCH_RECORDS,  /* puts of records that every node gets */
} fb_sim_bench_profile;

typedef struct fb_sim_bench {
    fb_sim_bench_profile profile;
    uint32_t records;     /* different records that are put */
    uint64_t interval_ns; /* between two turns of one node */
    uint32_t per_turn;    /* areas announced, or records put */
    uint64_t *turns;      /* by node */
    uint64_t left;        /* turns of each node before it rests; UINT64_MAX: for ever */
    uint64_t failed;      /* requests that were not answered with success */
} fb_sim_bench;

/* Every node's first turn goes into the queue. */
void fb_sim_bench_start(fb_sim_world *world);
/* A turn of one node. */
void fb_sim_bench_work(fb_sim_world *world, uint32_t node);
/* A last reply to a request of a turn. */
void fb_sim_bench_replied(fb_sim_world *world, const fb_effect *reply);

#endif
