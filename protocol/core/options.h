/* SPDX-License-Identifier: Apache-2.0 */
/* What a node is created with. Start from fb_options_default or fb_options_small and change. */
#ifndef FB_CORE_OPTIONS_H
#define FB_CORE_OPTIONS_H

#include "protocol/base/alloc.h"
#include "protocol/core/provider.h"

/* Sizes of the instance's tables: how many of each it can hold at once. Some are bounded by
 * a limit of limits.h, all by what fb_node_create accepts; memory grows with their sum. */
typedef struct fb_sizes {
    uint32_t spaces;            /* spaces this node takes part in */
    uint32_t members;           /* known nodes, summed over all spaces */
    uint32_t areas;             /* areas held, summed over all spaces */
    uint32_t vector_entries;    /* (area, node, incarnation), summed over all areas */
    uint32_t links;             /* open links, pending ones included */
    uint32_t addresses;         /* the address book */
    uint32_t operations;        /* read-then-execute operations at once */
    uint32_t operation_bytes;   /* kept read results of one operation */
    uint32_t write_set_bytes;   /* one write set; four of these are kept */
    uint32_t write_set_entries; /* entries of one write set */
    uint32_t requests;          /* local requests at once */
    uint32_t seen_ids;          /* remembered message ids per sender and space */
    uint32_t envelopes;         /* envelopes waiting for links or acknowledgement */
    uint32_t calls;             /* calls at once, half of them one's own */
    uint32_t call_bytes;        /* buffer of one call's answer */
    uint32_t link_bytes;        /* receive buffer of one byte-stream link: a record, or nothing
                                   for a node that has external carriers only */
    uint32_t frames;            /* buffers of FB_FRAME_BYTES_MAX for frames in several records,
                                   shared by all byte-stream links */
    uint32_t applications;
    uint32_t invites;
    uint32_t changelog; /* entries kept of each space: how far behind a watcher may be */
} fb_sizes;

/* The largest of each that a node is made with; whether its memory is there is another question. */
extern const fb_sizes fb_sizes_most;
bool fb_sizes_are_valid(const fb_sizes *sizes);

/* Times in nanoseconds of mono_ns unless the name says otherwise. */
typedef struct fb_timing {
    uint64_t heartbeat_ns;        /* profile 7; DESIGN 3.1: 2 s */
    uint64_t silent_ns;           /* a link is closed after so much silence */
    uint64_t handshake_ns;        /* profile 7: 10 s */
    uint64_t pending_ns;          /* profile 7: 30 s */
    uint64_t redial_min_ns;       /* first back-off, jittered */
    uint64_t redial_max_ns;       /* cap of the back-off */
    uint64_t link_age_ns;         /* profile 7: a new link after 24 h */
    uint64_t resend_min_ns;       /* external carrier: 400 ms */
    uint64_t resend_max_ns;       /* external carrier: 5 s */
    uint64_t redeliver_ns;        /* profile 6: 60 s */
    uint64_t call_ns;             /* default deadline of a call */
    uint64_t onward_ns;           /* pause before fetched changes are announced: one heartbeat */
    uint64_t report_ns;           /* pause before a member says what it holds by now */
    int64_t window_past_us;       /* profile 5: 15 min */
    int64_t window_future_us;     /* profile 5: 5 min */
    uint32_t rate_per_s;          /* messages a second and peer, profile 5 step 4 */
    uint32_t rate_burst;          /* depth of that bucket */
    uint32_t misbehaviour_budget; /* profile 5: points before a link is closed */
} fb_timing;

typedef struct fb_options {
    fb_allocator allocator;
    const fb_provider *provider;
    fb_key_handle identity_key; /* Ed25519, the node's */
    fb_key_handle link_key;     /* X25519, the node's Noise static key */
    fb_sizes sizes;
    fb_timing timing;
    /* Facts for checkers (observe.h) leave as effects: the simulator's wish. */
    bool observe;
    /* The digest costs about a tenth of a step; without it fb_node_digest recomputes. */
    bool digest_every_step;
} fb_options;

/* A real node's sizes. Allocator, provider and keys are left for the caller. */
fb_options fb_options_default(void);

/* The smallest sizes that everything works with: a simulated node of a hundred. */
fb_options fb_options_small(void);

/* The smallest capacity of fb_effects that any one step with these options may need. */
size_t fb_effects_bytes_min(const fb_options *options);

#endif
