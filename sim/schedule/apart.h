/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule played in a process of its own: whatever it does to that process, the caller learns
 * what became of it. */
#ifndef FB_SIM_SCHEDULE_APART_H
#define FB_SIM_SCHEDULE_APART_H

#include "sim/run.h"
#include "sim/schedule/schedule.h"

/* What came out of a run, as bytes that can go through a pipe. */
typedef struct fb_sim_report {
    fb_sim_result result;
    char check[40]; /* empty: it passed */
    char detail[256];
    uint64_t events;
    uint64_t sim_ns;
    fb_hash128 hash;
    uint32_t unreached;
    uint32_t unreached_first;
    bool ended; /* false: it was stopped at its limit of steps */
} fb_sim_report;

typedef struct fb_sim_apart {
    int from; /* what the child writes to */
    long child;
} fb_sim_apart;

/* Begins any work in a process of its own, which ends by fb_sim_apart_tell. False when the machine
 * gives no process. */
bool fb_sim_apart_fork(void (*work)(void *of, int to), void *of, fb_sim_apart *out);
/* In the child: hands the report over and ends the process. */
_Noreturn void fb_sim_apart_tell(int to, const fb_sim_report *report);

/* Begins a run: with its planted bug, or `sound` without; after `limit` steps it is stopped and
 * counts as passed. Only the program with planted bugs can play one. False when the machine gives
 * no process. */
bool fb_sim_apart_begin(const fb_sim_plan *plan, bool sound, uint64_t limit, fb_sim_apart *out);
/* Waits for its end. A child that crashed is a verdict: check "assertion" or "signal". */
void fb_sim_apart_end(fb_sim_apart *apart, fb_sim_report *out);
/* It is no longer wanted. */
void fb_sim_apart_kill(fb_sim_apart *apart);
/* Both, one after the other; ends the process when the machine gives no other. */
void fb_sim_apart_play(const fb_sim_plan *plan, bool sound, uint64_t limit, fb_sim_report *out);

/* The verdict of a run that was not apart. */
void fb_sim_report_of(const fb_sim_verdict *verdict, fb_sim_report *out);
/* The same the other way round; check is borrowed from the report. */
void fb_sim_verdict_of(const fb_sim_report *report, fb_sim_verdict *out);

#endif
