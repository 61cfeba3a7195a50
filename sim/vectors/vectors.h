/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance vectors out of a run: for each node and each of its peers in a space, what came in on
 * the messaging channel, with times, and what has to come of it. docs/VECTORS.md has the format.
 *
 * A vector is written from what any implementation would see: envelopes, acknowledgements, links
 * that come and go, starts, clocks. Facts of the core only say which frames were looked at and what
 * became of them; the bytes are those that crossed the link. */
#ifndef FB_SIM_VECTORS_VECTORS_H
#define FB_SIM_VECTORS_VECTORS_H

#include "sim/world/world.h"

/* Text that grows; every part of an export is one. */
typedef struct fb_sim_text {
    char *bytes;
    size_t len, cap;
} fb_sim_text;

/* An accepted message of a vector. */
typedef struct fb_sim_accepted {
    fb_id id;
    uint64_t timestamp;
} fb_sim_accepted;

/* So many messages were accepted when write set w was sealed. */
typedef struct fb_sim_sealed {
    uint64_t w;
    uint64_t accepted;
} fb_sim_sealed;

typedef struct fb_sim_vector {
    uint32_t self, peer; /* nodes */
    fb_id space;
    uint32_t local;  /* the space's number in the store of self */
    uint32_t serial; /* of the vectors of one pair */
    bool over;       /* nothing more is added: another one goes on */
    uint32_t delivered, sent;
    uint32_t links; /* numbered from 1 in the vector */
    fb_sim_text text;
    fb_sim_accepted *accepted;
    uint64_t accepted_count, accepted_cap;
    uint64_t durable; /* the first so many are known to be */
    fb_sim_sealed *sealed;
    uint64_t sealed_count, sealed_cap;
    uint64_t said_step; /* the last step with a line of its own */
} fb_sim_vector;

/* A session of the messaging channel. */
typedef struct fb_sim_vector_link {
    uint64_t number;
    uint64_t session;
    uint32_t vector;
    uint32_t ordinal; /* in the vector */
    bool external;
    bool up;
    uint64_t received; /* numbers up to this one have an outcome */
    bool offset_known, offset_said;
    int64_t offset_us, offset_said_us;
} fb_sim_vector_link;

/* A signed batch of the node's own that is not durable yet. */
typedef struct fb_sim_vector_batch {
    uint64_t w;
    uint64_t number;
    fb_id area;
} fb_sim_vector_batch;

/* One plain record that the step opened or sealed. */
typedef struct fb_sim_vector_frame {
    bool opened;
    bool used; /* of one that was sealed: it has its line */
    bool external;
    bool heartbeat;
    uint64_t session, peer_session; /* of an external one */
    size_t at, len;                 /* in `bytes` of the export */
} fb_sim_vector_frame;

typedef struct fb_sim_vector_node {
    fb_sim_vector_link *links;
    uint32_t link_count, link_cap;
    fb_sim_vector_batch *batches;
    uint32_t batch_count, batch_cap;
    uint64_t facts_dropped;
    uint32_t replaced; /* of fb_sim_node, as known */
    bool blind;        /* until it starts anew */
    bool lies;         /* for ever */
    fb_sim_text parts; /* of a frame that comes in several records */
} fb_sim_vector_node;

typedef struct fb_sim_export {
    fb_sim_world *world;
    const char *source; /* words that make the same run */
    uint64_t nodes;     /* of which vectors are wanted, as a bit set */
    fb_sim_vector *vectors;
    uint32_t vector_count, vector_cap;
    fb_sim_vector_node *node;
    uint32_t stepping; /* the node that steps */
    fb_sim_vector_frame *frames;
    uint32_t frame_count, frame_cap;
    fb_sim_text bytes; /* of the frames of this step */
} fb_sim_export;

/* Listens to a world that has a record and has not begun. */
fb_sim_export *fb_sim_export_create(fb_sim_world *world, const char *source, uint64_t nodes);
/* The run is over: each vector gets its last moment. */
void fb_sim_export_end(fb_sim_export *export);
void fb_sim_export_destroy(fb_sim_export *export);

/* All vectors in which a message came or went, one JSON object a line. False: it could not be
 * written. The counts of vectors and of deliveries come back. */
bool fb_sim_export_write(const fb_sim_export *export, const char *path, uint32_t *vectors,
                         uint64_t *deliveries);

/* `faberio sim export`, arguments as of fb_sim_main. */
int fb_sim_export_main(int argc, char **argv);

/* lines.c: pieces of text. */
void *fb_sim_grow(void *array, size_t count, void *cap, size_t cap_bytes, size_t item);
void fb_sim_text_add(fb_sim_text *text, const void *bytes, size_t len);
void fb_sim_text_format(fb_sim_text *text, const char *format, ...);
void fb_sim_text_hex(fb_sim_text *text, fb_span bytes);
void fb_sim_text_uuid(fb_sim_text *text, fb_id id);
/* {"do":"WHAT","mono_ns":"…","wall_ms":… without the closing brace. */
void fb_sim_line_do(fb_sim_export *export, fb_sim_vector *v, const char *what);
/* {"out":"WHAT", the link unless that is NULL; a moment stands before it, or a tick is put there.
 */
void fb_sim_line_out(fb_sim_export *export, fb_sim_vector *v, const char *what,
                     const fb_sim_vector_link *link);
/* The first line of a vector. `store` NULL: of a sender that is new to self. */
void fb_sim_line_header(fb_sim_export *export, fb_sim_vector *v, const fb_sim_store *store);

/* frames.c: what crosses the links in a step. */
void fb_sim_frame_record(void *user, bool opened, fb_span plain);
void fb_sim_frame_external(fb_sim_export *export, bool opened, fb_span bytes);
fb_span fb_sim_frame_bytes(const fb_sim_export *export, const fb_sim_vector_frame *frame);
/* A link's place in the table of its node, or FB_NONE. */
uint32_t fb_sim_link_index(const fb_node *core, uint64_t number);
const struct fb_link_info *fb_sim_link_info(const fb_node *core, uint32_t index, fb_id *space,
                                            uint32_t *local);

/* lives.c: of the node that steps. */
void fb_sim_vectors_published(fb_sim_export *export, fb_id area);
void fb_sim_vectors_sealed(fb_sim_export *export, uint64_t w);
void fb_sim_vectors_durable(fb_sim_export *export, uint64_t w);
void fb_sim_vectors_batch(fb_sim_export *export, const fb_effect *fact);
void fb_sim_vectors_started(fb_sim_export *export, uint64_t incarnation);

/* What the store of a node holds of a sender: calls `at` for each id in it, in the order of slots;
 * the floor of the newest. */
int64_t fb_sim_seen_in_store(const fb_sim_store *store, uint32_t local, fb_id sender, void *user,
                             void (*at)(void *user, fb_id id, uint64_t timestamp));

#endif
