/* SPDX-License-Identifier: Apache-2.0 */
/* A recording of a real node (protocol/core/recording.h), made again: the same events into a fresh
 * instance of the same core, with the recorded outputs in the place of its provider. Each step has
 * to come to the same effects and the same state; the first that does not is shown. */
#ifndef FB_SIM_RECORD_REPLAY_H
#define FB_SIM_RECORD_REPLAY_H

#include <setjmp.h>

#include "protocol/core/node.h"
#include "protocol/core/recording.h"

typedef enum fb_sim_replayed {
    FB_SIM_REPLAY_STEP,      /* one more step, as it was recorded */
    FB_SIM_REPLAY_END,       /* nothing more: see `whole`, and `why` when it ends within a step */
    FB_SIM_REPLAY_DIFFERS,   /* `why` says where and what */
    FB_SIM_REPLAY_MALFORMED, /* the recording is not one: `why` */
    FB_SIM_REPLAY_RESOURCE,  /* no memory on this machine */
} fb_sim_replayed;

typedef struct fb_sim_replay {
    fb_reader in;
    fb_recording_header header;
    fb_node *node;  /* NULL: redacted, only told again */
    void *instance; /* its memory */
    fb_provider provider;
    fb_effects effects; /* of the last step; of a redacted one with zeros for bytes */
    fb_event event;     /* ... and what led to it */
    fb_hash128 digest;
    uint64_t steps;
    uint64_t starts;
    uint64_t outputs;
    fb_hash128 hash;      /* of all steps so far */
    bool whole;           /* the driver ended it, or began another file */
    fb_sim_replayed over; /* once it is not FB_SIM_REPLAY_STEP, for good */
    char why[640];
    jmp_buf out; /* of a step whose provider has nothing to say */
    size_t hash_bytes;
    uint8_t *hash_room; /* one item */
} fb_sim_replay;

/* Reads the header and makes the instance. The bytes must outlive the replay. False: `over` and
 * `why` say what it was; it is to be closed all the same. */
bool fb_sim_replay_open(fb_sim_replay *replay, fb_span recording);
void fb_sim_replay_close(fb_sim_replay *replay);

fb_sim_replayed fb_sim_replay_next(fb_sim_replay *replay);

#endif
