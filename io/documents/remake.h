/* SPDX-License-Identifier: Apache-2.0 */
/* Records whose documents are gone, made again from what the local store has.
 *
 * Documents hold the only copy of living records, but not of what was written to them: every batch
 * of which something lives is in the local store, and so is the fingerprint of each record. So a
 * record is merged anew from its batches, without what their marks say to be dead, as the core does
 * it when a batch is taken back (protocol/database/cut/mend.c), and its fingerprint proves that it
 * is what it was. One that is not proven (batches were taken over as folded from a peer, and no
 * pass has marked since what they had replaced) is put all the same: it has all that lives in it,
 * and what it has too much goes when it is compared with a peer.
 *
 * What is made is a write set as the core would write it, of the state that is committed: the same
 * way leads from there into documents. */
#ifndef FB_DOCUMENTS_REMAKE_H
#define FB_DOCUMENTS_REMAKE_H

#include "io/documents/split.h"

/* Records that are made in one go, and what they may hold together. */
#define FB_REMAKE_RECORDS_MAX 8192u
#define FB_REMAKE_BYTES_MAX   ((size_t)32 << 20)

typedef struct fb_remake {
    uint32_t area;
    fb_id low;          /* the records from here on */
    bool over;          /* there are none */
    uint64_t remade;    /* records so far */
    uint64_t not_equal; /* of those, not proven */
} fb_remake;

/* The next records of an area, or, where ids are given, in their order, those of them. *set is in
 * `room`, and empty when nothing lives of them. `remake` goes on behind them.
 * Not 0: the local store's error, or EINVAL for entries that do not follow their format. */
int fb_remake_next(fb_split *split, fb_remake *remake, const fb_id *ids, size_t count,
                   fb_room *room, fb_span *set);

/* The fingerprint of a record that the area has, or *there is false. Not 0: as above. */
int fb_remake_expected(fb_split *split, uint32_t area, fb_id id, uint8_t fingerprint[16],
                       bool *there);

#endif
