/* SPDX-License-Identifier: Apache-2.0 */
/* Tries a toy on the disk under a fault in every way there is.
 *
 *   faults of a crash   the script runs once; at each call of the disk, every outcome of a power
 *                       failure there is made on a copy, recovered from and judged, and so is the
 *                       end of the process alone. Inside that recovery the same again: at each of
 *                       its calls every outcome, recovered from, and the result must be the same
 *                       (recovery is idempotent). After a recovery power fails once more before
 *                       anything is written, then the toy goes on writing, then power fails again.
 *   faults of a call    the script, and the first half of it, runs once for each call and each
 *                       argument of the fault
 *   faults at rest      after the script, each sector and bit, each length, each old image
 *
 * Outcomes of one crash point are all tried when there are at most FB_DISK_OUTCOMES_MAX, inside
 * recovery FB_DISK_OUTCOMES_NESTED; of more, a quarter of that number is drawn. */
#ifndef FB_SIM_DISK_EXPLORE_H
#define FB_SIM_DISK_EXPLORE_H

#include "protocol/base/hash.h"
#include "sim/disk/toy.h"

#define FB_DISK_OUTCOMES_MAX    2048u
#define FB_DISK_OUTCOMES_NESTED 256u
#define FB_DISK_CALLS_MAX       10000u /* of a script at whose every call a crash is tried */

/* All faults of a crash at once. */
#define FB_DISK_FAULTS_OF_CRASH                                                                    \
    (DISK_FAULT(CRASH) | DISK_FAULT(LOSE_UNSYNCED) | DISK_FAULT(TEAR) | DISK_FAULT(REORDER) |      \
     DISK_FAULT(RENAME_LOST) | DISK_FAULT(RENAME_TWICE))

typedef struct fb_disk_report {
    uint64_t calls;    /* of the script: crash points, or places of a strike */
    uint64_t outcomes; /* tried */
    uint64_t recoveries;
    uint64_t nested_calls; /* crash points inside recoveries */
    uint64_t nested_outcomes;
    uint64_t drawn;        /* crash points with more outcomes than were tried */
    uint64_t nested_drawn; /* the same inside recoveries */
    fb_hash128 hash;       /* of everything that the toys showed, in order */
    uint64_t fired[FB_DISK_FAULTS];
    uint64_t mattered[FB_DISK_FAULTS]; /* what the toy showed was another thing without it */
    const char *wrong;                 /* NULL: nothing was found */
    uint64_t wrong_call;
    uint64_t wrong_choice;
    bool wrong_nested; /* inside recovery */
} fb_disk_report;

typedef struct fb_disk_explorer fb_disk_explorer;

/* NULL: no memory. Nothing is allocated after it. */
fb_disk_explorer *fb_disk_explorer_create(uint64_t seed);
void fb_disk_explorer_destroy(fb_disk_explorer *explorer);

/* Adds to *report, and stops at what is found first. */
void fb_disk_explore(fb_disk_explorer *explorer, const fb_disk_toy *toy, fb_disk_defect defect,
                     fb_disk_fault fault, uint32_t operations, fb_disk_report *report);
/* All faults of a crash together. The script ends when it has made so many calls. */
void fb_disk_explore_crashes(fb_disk_explorer *explorer, const fb_disk_toy *toy,
                             fb_disk_defect defect, uint64_t calls, fb_disk_report *report);

#endif
