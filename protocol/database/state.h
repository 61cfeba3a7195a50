/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the records plane. */
#ifndef FB_DATABASE_STATE_H
#define FB_DATABASE_STATE_H

#include "protocol/database/area/area.h"
#include "protocol/database/area/own.h"
#include "protocol/database/area/vector.h"
#include "protocol/database/batch/batch.h"
#include "protocol/database/batch/seal.h"
#include "protocol/database/compare/compare.h"
#include "protocol/database/cut/cut.h"
#include "protocol/database/database.h"
#include "protocol/database/exchange/exchange.h"
#include "protocol/database/exchange/fetch.h"
#include "protocol/database/exchange/peer_areas.h"
#include "protocol/database/exchange/serve.h"
#include "protocol/database/exchange/wanted.h"
#include "protocol/database/fold/fold.h"
#include "protocol/database/keys.h"
#include "protocol/database/read/answer.h"
#include "protocol/database/read/watch.h"
#include "protocol/database/record/record.h"
#include "protocol/database/record/show.h"
#include "protocol/database/tree/tree.h"
#include "protocol/database/write/put.h"
#include "protocol/database/write/stage.h"
#include "protocol/link/link.h"
#include "protocol/messaging/messaging.h"
#include "protocol/rpc/rpc.h"
#include "protocol/space/space.h"
#include "protocol/store/keys.h"
#include "protocol/store/ops.h"
#include "protocol/store/set.h"

struct fb_database {
    fb_area *areas;
    uint32_t area_free;
    uint32_t area_count;
    uint32_t local; /* last area number given */
    uint32_t *area_buckets;
    uint32_t *area_chain;
    uint32_t area_mask;

    fb_vector *vectors;
    uint32_t vector_free;
    uint32_t vector_last[FB_VECTORS_FOUND]; /* entries that were asked for last, by their life */
    fb_note *notes;                         /* ring */
    uint32_t note_head, note_count, note_cap;

    fb_space_areas *spaces;
    fb_builder *builders;
    uint32_t builder_count;
    uint64_t builder_serial;
    uint8_t *header; /* a batch being put */

    fb_wanted *wanted;
    uint32_t wanted_free;
    uint32_t *claims; /* by link, and of nobody: how many */
    uint32_t claim_share, claim_slack, claim_slack_used;
    uint32_t *named;   /* by link: areas that it named and nothing is stored of */
    bool fetch_hungry; /* a call found no place */
    fb_fetch *fetches;
    uint32_t fetch_count;
    fb_serve *serves;
    uint32_t serve_count;
    fb_answer *answers;
    uint32_t answers_used;
    fb_watch *watches;
    uint32_t watch_count, watch_used;
    fb_compare *compare;
    fb_verify *verifies;
    fb_peer_areas *peer_areas;
    uint32_t unsettled; /* the first area whose root is not durable yet, plus one */
    fb_compare_serve *compare_serves;
    fb_link_vectors *links;
    uint8_t *frame; /* of the control channel, and answers of calls */

    fb_stage stage;
    fb_change *changes;                  /* FB_BATCH_CHANGES_MAX, of the batch being looked at */
    fb_item_key item_keys[FB_ITEM_KEYS]; /* of records that were looked at last */
    size_t record_max;                   /* bytes of one stored record */
    size_t record_write_max;
    size_t batch_max;   /* bytes of a batch that is sealed here */
    size_t cost_max;    /* what applying it may put */
    uint64_t serial;    /* of fetches, serves, watches */
    uint8_t secret[32]; /* the salts of this life come from it */

    struct fb_mend *mend;       /* mend.c */
    struct fb_cutting *cutting; /* cut.c */
    struct fb_own_reading *own_reading;
    uint8_t *statement; /* items of a statement that is being written */
    size_t statement_cap;
};

static inline fb_area *fb_area_get(const fb_node *node, uint32_t area)
{
    return &node->database->areas[area];
}

static inline fb_vector *fb_vector_get(const fb_node *node, uint32_t entry)
{
    return &node->database->vectors[entry];
}

static inline fb_wanted *fb_wanted_get(const fb_node *node, uint32_t wanted)
{
    return &node->database->wanted[wanted];
}

/* request.c: what the verbs share. Reads a collection; the area is found, or made when `open`. */
fb_status fb_collection_read(fb_node *node, fb_reader *r, uint32_t space, bool open,
                             uint32_t *area);
/* Space id and principal: FB_ERR_NOT_FOUND, FB_ERR_NOT_AUTHORISED. */
fb_status fb_space_read(fb_node *node, fb_reader *r, uint64_t principal, uint32_t *space);
void fb_refuse(fb_node *node, fb_request request, fb_status status);

/* get.c, area_list.c, load.c */
void fb_get_layout(fb_node *node);
void fb_area_list_layout(fb_node *node);
void fb_database_load(fb_node *node);

#endif
