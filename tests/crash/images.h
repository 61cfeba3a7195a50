/* SPDX-License-Identifier: Apache-2.0 */
/* Makes of a recording every file that a crash could leave, and has each of them verified.
 *
 * A crash is tried in each call and behind each acknowledgement. What was synced, or forced, is
 * there; of what was not, any set of sectors of 512 bytes may be, and the file may have its length
 * without them. Sets are tried by page of 4,096 bytes and by sector: all of them when there are at
 * most `bits` members, else every prefix of the calls, all but one, one alone, and so many drawn.
 */
#ifndef FB_TESTS_CRASH_IMAGES_H
#define FB_TESTS_CRASH_IMAGES_H

#include "tests/crash/record.h"

typedef struct images_options {
    const char *directory; /* where the files are made */
    unsigned bits;         /* sets of so many members are tried whole */
    unsigned draws;        /* of larger ones, for pages and for sectors */
    bool stop_at_first;
} images_options;

typedef struct images_report {
    uint64_t points;     /* places of a crash */
    uint64_t images;     /* made */
    uint64_t distinct;   /* of those, verified */
    uint64_t points_all; /* points of which every set of sectors was tried */
    uint64_t wrong;      /* images of which something is wrong */
    const char *what;    /* the first of these */
    size_t what_event;   /* and the call it was in */
    uint64_t writes, forced, syncs, bytes;
    uint64_t forced_in_sector; /* forced writes that lie within one sector */
    /* Tears inside the sector of a forced write, at every 8 bytes: the beginning is new, or the
     * end. Nobody promises anything of them; they are measured. */
    uint64_t head_torn, head_wrong, tail_torn, tail_wrong;
} images_report;

void images_try(const recording *r, const images_options *o, images_report *out);

#endif
