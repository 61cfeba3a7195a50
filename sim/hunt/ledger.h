/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger of a campaign: a folder of minimal schedules and a text file that only grows.
 *
 *     runs COMMIT FIRST..LAST EVENTS STATES          seeds that were played
 *     failure COMMIT SEED CHECK EVENTS LINES SKELETON FILE
 *     again COMMIT FILE fails|passes                 an old failure, played again
 *
 * Of failures with one check and one skeleton the shortest is kept. A line is written whole or not
 * at all, so that the ledger outlives whoever writes it. */
#ifndef FB_SIM_HUNT_LEDGER_H
#define FB_SIM_HUNT_LEDGER_H

#include <limits.h>

#include "sim/schedule/schedule.h"

/* Files and ledger together stay below 100 MiB. */
#define FB_SIM_LEDGER_FILES_MAX 2000u
#define FB_SIM_LEDGER_BYTES_MAX (UINT32_C(32) << 20)

typedef struct fb_sim_ledger {
    char folder[PATH_MAX / 2];
    char commit[41];
    uint64_t next_seed; /* behind all seeds that were played, of any commit */
    uint32_t failures;  /* lines of this process */
    uint32_t distinct;
    uint32_t files;
    bool full;
} fb_sim_ledger;

/* Makes the folder, reads what is there. False: it cannot be used; said on standard error. */
bool fb_sim_ledger_open(fb_sim_ledger *ledger, const char *folder, const char *commit);
void fb_sim_ledger_runs(fb_sim_ledger *ledger, uint64_t first, uint64_t last, uint64_t events,
                        uint32_t states);
/* A minimal schedule of a failure at `events` of the run it came from. True when nothing like it
 * was known; path names the file that stands for it. */
bool fb_sim_ledger_failure(fb_sim_ledger *ledger, const fb_sim_plan *plan, const char *seed,
                           uint64_t events, char *path, size_t cap);
void fb_sim_ledger_again(fb_sim_ledger *ledger, const char *path, bool fails);
/* Calls at() with each schedule of the folder, in the order of names. */
void fb_sim_ledger_each(const fb_sim_ledger *ledger, void (*at)(void *user, const char *path),
                        void *user);

#endif
