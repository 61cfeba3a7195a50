/* SPDX-License-Identifier: Apache-2.0 */
/* All checks that have a file here. */
#ifndef FB_SIM_CHECKERS_LIST_H
#define FB_SIM_CHECKERS_LIST_H

#include "protocol/base/cursor.h"
#include "protocol/base/mix.h"
#include "sim/checkers/checks.h"
#include "sim/checkers/oracle.h"
#include "sim/world/memo.h"

extern const fb_sim_check fb_sim_check_delivered_was_sent;
extern const fb_sim_check fb_sim_check_delivered_once;
extern const fb_sim_check fb_sim_check_delivered_in_order;
extern const fb_sim_check fb_sim_check_durable_before_acked;
extern const fb_sim_check fb_sim_check_durable_before_reply;
extern const fb_sim_check fb_sim_check_durable_before_told;
extern const fb_sim_check fb_sim_check_redelivered_once;
extern const fb_sim_check fb_sim_check_replies_once;
extern const fb_sim_check fb_sim_check_write_sets_in_order;
extern const fb_sim_check fb_sim_check_ids_ascend;
extern const fb_sim_check fb_sim_check_dots_unique;
extern const fb_sim_check fb_sim_check_applied_was_written;
extern const fb_sim_check fb_sim_check_floor_rises;
extern const fb_sim_check fb_sim_check_floor_covers;
extern const fb_sim_check fb_sim_check_spaces_apart;
extern const fb_sim_check fb_sim_check_senders_are_members;
extern const fb_sim_check fb_sim_check_within_window;
extern const fb_sim_check fb_sim_check_honest_well_formed;
extern const fb_sim_check fb_sim_check_strangers_refused;
extern const fb_sim_check fb_sim_check_sent_is_settled;
extern const fb_sim_check fb_sim_check_resent_in_order;
extern const fb_sim_check fb_sim_check_stamps_ascend;
extern const fb_sim_check fb_sim_check_quiet;
extern const fb_sim_check fb_sim_check_acknowledged_survives;
extern const fb_sim_check fb_sim_check_session_guarantees;
extern const fb_sim_check fb_sim_check_kinds_add_up;
extern const fb_sim_check fb_sim_check_one_link;
extern const fb_sim_check fb_sim_check_tree_recomputed;
extern const fb_sim_check fb_sim_check_clone_noticed;
extern const fb_sim_check fb_sim_check_causal_stamps;
extern const fb_sim_check fb_sim_check_etag_once;
extern const fb_sim_check fb_sim_check_change_feed;
extern const fb_sim_check fb_sim_check_lists_go_on;
extern const fb_sim_check fb_sim_check_honest_fits;
extern const fb_sim_check fb_sim_check_tables_empty;
extern const fb_sim_check fb_sim_check_work_bounded;
extern const fb_sim_check fb_sim_check_no_resurrection;
extern const fb_sim_check fb_sim_check_digest_means_equal;
extern const fb_sim_check fb_sim_check_retries_paused;
extern const fb_sim_check fb_sim_check_membership;
extern const fb_sim_check fb_sim_check_authorship;
extern const fb_sim_check fb_sim_check_revocation_cut;
extern const fb_sim_check fb_sim_check_put_out_is_shut;
extern const fb_sim_check fb_sim_check_reader_takes_nothing;
extern const fb_sim_check fb_sim_check_documents_newest;
extern const fb_sim_check fb_sim_check_documents_stay_removed;
extern const fb_sim_check fb_sim_check_documents_acknowledged;
extern const fb_sim_check fb_sim_check_documents_one_writer;
extern const fb_sim_check fb_sim_check_documents_read;
extern const fb_sim_check fb_sim_check_documents_are_records;
extern const fb_sim_check fb_sim_check_documents_recover;
extern const fb_sim_check fb_sim_check_documents_redo_bounded;
extern const fb_sim_check fb_sim_check_folded_below_cut;
extern const fb_sim_check fb_sim_check_dead_are_folded;
extern const fb_sim_check fb_sim_check_verified_same;
extern const fb_sim_check fb_sim_check_reported_is_held;
extern const fb_sim_check fb_sim_check_listed_is_held;
extern const fb_sim_check fb_sim_check_compare_in_proportion;
extern const fb_sim_check fb_sim_check_listed_is_durable;

/* Keys of what checks remember: never 0. */
static inline uint64_t fb_sim_key(fb_span bytes, uint64_t more)
{
    uint64_t key = fb_xxh64(bytes.p, bytes.len, more);
    return key == 0 ? 1 : key;
}

/* The same for a message between two nodes: its id is random enough. */
static inline uint64_t fb_sim_message_key(fb_id id, fb_id from, fb_id to)
{
    uint64_t words[4];
    memcpy(words, id.b, 16);
    memcpy(words + 2, from.b, 8);
    memcpy(words + 3, to.b, 8);
    /* Differs between byte orders, as places of a table may. */
    uint64_t key = (words[0] ^ words[2]) * UINT64_C(0x9e3779b97f4a7c15) + (words[1] ^ words[3]);
    return key == 0 ? 1 : key;
}

/* The same for a pair of nodes, or a node in a space. */
static inline uint64_t fb_sim_pair_key(fb_id space, fb_id node, uint64_t more)
{
    fb_mix mix = {more, UINT64_C(0x9e3779b97f4a7c15)};
    fb_mix_take(&mix, fb_word_load(space.b), fb_word_load(space.b + 8));
    fb_mix_take(&mix, fb_word_load(node.b), fb_word_load(node.b + 8));
    return mix.a == 0 ? 1 : mix.a;
}

/* Places of a memo of what each node holds of each other one in each space: so many that nothing is
 * forgotten, as a table is half full at most. A machine that is a copy of another counts again. */
static inline uint32_t fb_sim_pair_places(const fb_sim_world *world)
{
    uint32_t nodes = world->config.nodes;
    uint32_t keys = fb_sim_space_count(world) * nodes * nodes * (world->config.faults ? 2 : 1);
    uint32_t places = 1024;
    while (places / 2 < keys) places *= 2;
    return places;
}

static inline fb_span fb_sim_fact_bytes(const fb_effect *fact)
{
    return fb_span_of(fb_effect_bytes(fact), fact->len);
}

/* The place of a link in tables of this many ends; links carry their end in the low bits. */
static inline uint32_t fb_sim_link_end(const fb_sim_world *world, uint64_t link)
{
    uint32_t ends = world->network.connection_count * 2;
    uint32_t end = (uint32_t)(link & 0xffff);
    return end < ends ? end : 0;
}

/* A message fact: space, the other node, message id. */
typedef struct fb_sim_message {
    fb_id space;
    fb_id peer;
    fb_id id;
    uint64_t timestamp; /* of SENT and RESENT */
} fb_sim_message;

static inline fb_sim_message fb_sim_message_of(const fb_effect *fact)
{
    const uint8_t *bytes = fb_effect_bytes(fact);
    fb_sim_message m = {.timestamp = 0};
    if (fact->len >= 16) memcpy(m.space.b, bytes, 16);
    if (fact->len >= 32) memcpy(m.peer.b, bytes + 16, 16);
    if (fact->len >= 48) memcpy(m.id.b, bytes + 32, 16);
    if (fact->len >= 56) m.timestamp = fb_load_be64(bytes + 48);
    return m;
}

/* What several checks remember of one message from one node to another, in one place. */
enum fb_sim_known {
    FB_SIM_KNOWN_GIVEN,     /* redelivered_once.c */
    FB_SIM_KNOWN_PLACE,     /* resent_in_order.c */
    FB_SIM_KNOWN_DELIVERED, /* delivered_once.c */
    FB_SIM_KNOWN_VARIANT,   /* delivered_once.c */
    FB_SIM_KNOWN_VALUES
};

/* A fact about a node and another one, or about a message between them, taken apart once for all
 * checks that look at it. Means something within their `fact`, for the kinds that
 * fb_sim_told_facts names. */
typedef struct fb_sim_told {
    fb_sim_message message; /* as far as the fact goes */
    uint32_t end;           /* place of the link in tables by end */
    uint32_t peer;          /* the other node, UINT32_MAX for a stranger */
    /* Of facts with a message: what it is known by, and, of SENT, RESENT and DELIVERED, what is
     * known of it. */
    uint64_t key;
    uint64_t *known; /* by fb_sim_known */
    /* Of DELIVERED: when its sender says that it sent it, 0 for what it never gave to this link. */
    uint64_t sent_ms;
} fb_sim_told;

#define fb_sim_told_facts                                                                          \
    (FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_RESENT) | FB_SIM_FACT(FB_FACT_DELIVERED) |    \
     FB_SIM_FACT(FB_FACT_REFUSED) | FB_SIM_FACT(FB_FACT_DROPPED) | FB_SIM_FACT(FB_FACT_FLOOR) |    \
     FB_SIM_FACT(FB_FACT_LINK_BOUND))

/* delivered_was_sent.c: what `sent_ms` is. */
uint64_t fb_sim_sent_ms(const fb_sim_world *world, const fb_effect *delivered,
                        const fb_sim_told *told);

/* A change fact: area, record, dot, stamp. */
typedef struct fb_sim_change {
    fb_id area;
    fb_id record;
    fb_id node;
    uint64_t incarnation;
    uint64_t seq;
    uint64_t stamp;
} fb_sim_change;

static inline fb_sim_change fb_sim_change_of(const fb_effect *fact)
{
    fb_reader r = fb_reader_of(fb_sim_fact_bytes(fact));
    fb_sim_change c;
    c.area = fb_read_id(&r);
    c.record = fb_read_id(&r);
    c.node = fb_read_id(&r);
    c.incarnation = fb_read_u64(&r);
    c.seq = fb_read_u64(&r);
    c.stamp = fb_read_u64(&r);
    return c;
}

#endif
