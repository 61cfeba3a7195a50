/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the records plane. */
#ifndef FB_DATABASE_STATE_H
#define FB_DATABASE_STATE_H

#include "protocol/database/batch.h"
#include "protocol/database/database.h"
#include "protocol/database/keys.h"
#include "protocol/database/record.h"
#include "protocol/database/show.h"
#include "protocol/database/tree.h"
#include "protocol/link/link.h"
#include "protocol/messaging/messaging.h"
#include "protocol/rpc/rpc.h"
#include "protocol/space/space.h"
#include "protocol/store/keys.h"
#include "protocol/store/ops.h"
#include "protocol/store/set.h"

/* Store keys beside those of keys.h. */
#define FB_VECTOR_KEY_BYTES    30u /* tag, state, area, node, incarnation */
#define FB_BATCH_KEY_BYTES     37u
#define FB_TREE_KEY_BYTES      22u
#define FB_CHANGELOG_KEY_BYTES 13u
#define FB_WANTED_KEY_BYTES    29u
#define FB_MENDING_KEY_BYTES   30u

/* What one change puts into the changelog: an entry, and the oldest one goes. */
#define FB_CHANGELOG_ROOM                                                                          \
    (fb_write_entry_bytes(FB_CHANGELOG_KEY_BYTES, FB_CHANGELOG_VALUE_BYTES) +                      \
     fb_write_entry_bytes(FB_CHANGELOG_KEY_BYTES, 0))
#define FB_CHANGELOG_ROOM_ENTRIES 2u

#define FB_VECTOR_VALUE_BYTES    (1u + 8 + 8 + 32 + 8 + 8 + 8)
#define FB_CHANGELOG_VALUE_BYTES (1u + 8 + 4 + 16 + 1)
#define FB_WANTED_VALUE_BYTES    (1u + 8)
#define FB_AREA_VALUE_BYTES_MAX  (1u + 4 + 1 + 2 + FB_COLLECTION_NAME_BYTES_MAX)

/* One life of one node in one area: a head of its chain, or (closed) one that a later life has
 * taken up and that is still to become durable so. */
typedef struct fb_vector {
    bool used;
    bool closed;
    uint32_t area;
    uint32_t next; /* of the area, in the order (node, incarnation), plus one; or free list */
    fb_id node;
    uint64_t incarnation;
    uint64_t batch; /* executed: sealed or applied, 0 before the first */
    uint64_t last_seq;
    uint8_t hash[32];              /* of the header of that batch */
    uint64_t claim;                /* of that batch (space.h) */
    uint64_t previous_incarnation; /* that the first header named, 0 for none */
    uint64_t previous_number;
    uint64_t durable_batch;
    uint64_t durable_seq;
    uint64_t cut;    /* every member holds it up to this batch */
    uint64_t marked; /* its batch when the last pass of fold.c ended */
    uint64_t marked_seq;
    uint64_t noted_w; /* the last note about it */
    uint32_t noted_at;
    uint32_t notes; /* about it that are not durable: it keeps its place until they are */
    fb_digest_cell cell;
} fb_vector;

/* What becomes true of an entry when a write set is durable. */
typedef struct fb_note {
    uint64_t w;
    uint32_t entry;
    bool close;
    uint64_t batch;
    uint64_t seq;
} fb_note;

typedef struct fb_area {
    bool used;
    bool stored; /* has its key in the store, or in a write set on the way */
    uint8_t kind;
    uint8_t name_len;
    bool digest_known;
    bool changed; /* in the write set being built */
    bool mending; /* something of it is above a cut: nothing comes in until that is taken back */
    uint32_t space;
    uint32_t local;
    uint32_t next;  /* of the space, in the order of ids, plus one; or free list */
    uint32_t pins;  /* operations, calls and claims that name it */
    uint32_t namer; /* link that named it first, plus one, while nothing of it is stored */
    fb_id id;
    uint8_t name[FB_COLLECTION_NAME_BYTES_MAX];

    fb_tree_node root_node; /* the tree's root as last executed */
    fb_tree_root root_info;
    uint8_t root[16];

    uint32_t entries; /* head of its vector, plus one */
    uint32_t entry_count;
    uint32_t own;       /* entry of this life, plus one; 0 before its first change */
    uint64_t own_seq;   /* last sequence given in this life */
    uint32_t builder;   /* batch being filled, plus one */
    uint32_t wants;     /* what is lacking, plus one */
    uint32_t last_link; /* asked last */

    uint8_t digest[16];  /* of the durable vector; zeros when that is empty */
    uint64_t applied_ns; /* the last received batch, and its write set */
    uint64_t applied_w;
    uint64_t announcements; /* made onward in this life */
    fb_timer onward;
    fb_timer wanted;
    fb_timer conflict;

    bool folding;     /* a pass of fold.c is under way */
    bool doubt;       /* batches were skipped as folded: to be compared with a peer */
    bool doubt_again; /* and since the comparison under way began */
    /* Members with whom it was compared since: bits in the order of ids, of so many members. */
    uint64_t consulted;
    uint32_t consulted_of;
    uint32_t pass;       /* of this life */
    uint32_t pass_from;  /* marks of earlier passes do not count */
    uint32_t fresh;      /* batches that came since the last pass began */
    uint32_t looked_at;  /* batches in the last pass */
    uint32_t looking_at; /* and in this one */
    bool flawed;         /* this pass could not look at all of it */
    bool skipped;        /* batches were skipped as folded, now or once */
    fb_timer fold;
    fb_timer compare;
    fb_digest_cell cell;
} fb_area;

typedef struct fb_space_areas {
    uint32_t first;          /* area, plus one */
    uint32_t own;            /* the space's own area, plus one */
    uint64_t changelog;      /* last sequence given */
    uint64_t changelog_gone; /* the oldest entries, up to this one, are not kept any more */
    bool strangers;          /* something of a node that is no member here yet was offered */
    bool digest_known;
    uint8_t digest[16]; /* of all areas, as for a member that may hold them all */

    uint32_t reports;  /* the area of what members hold, plus one */
    bool reporting;    /* this node's report is being written */
    bool cutting;      /* the cut is being worked out */
    bool cut_known;    /* it was, in this life */
    bool settled;      /* all members have reported the statements that are known here */
    bool has_reported; /* this node has, in this life or before */
    bool may_report;   /* it holds what one of the others reported, statements included */
    bool report_asked; /* who waits for the reports to be read */
    bool promise_asked;
    uint8_t reported[16]; /* hash of what this node reported last */
    uint8_t next_report[16];
    fb_timer report;
    fb_timer cut;
} fb_space_areas;

/* A batch being filled with the changes of this node. */
typedef struct fb_builder {
    bool used;
    uint32_t area;
    uint32_t count;
    uint64_t first_seq;
    uint32_t epoch_max; /* entries there is room for */
    uint64_t claim;     /* under which its changes were written (space.h) */
    size_t len;
    size_t cost;    /* what applying it will put, about */
    uint32_t lives; /* that its changes name, counted for each change */
    size_t reserved_bytes, reserved_entries;
    uint64_t serial; /* order of beginning */
    uint8_t *items;
    uint8_t leaves[FB_BATCH_CHANGES_MAX * 32];
} fb_builder;

/* A claim: something that a peer said to have and we lack, of one life of one node. */
typedef struct fb_wanted {
    bool used;
    bool stored;
    bool parked; /* its epoch is unknown here yet */
    bool whole;  /* what the life follows is not here either: the next call names no heads */
    bool waits;  /* a batch of it came early: for this dot of another life */
    fb_dot waits_for;
    uint32_t area;
    uint32_t next; /* of the area, plus one; or free list */
    fb_id node;
    uint64_t incarnation;
    uint64_t batch;       /* up to this one */
    uint32_t link;        /* who claims it, FB_NONE: nobody who is linked now */
    uint32_t avoid;       /* then: who was asked last and gave nothing */
    uint32_t fetch;       /* the call that asks for it, plus one */
    uint64_t back_off_ns; /* the last pause, 0 before one */
    uint64_t again_ns;    /* not asked for before */
    /* A life of the node that is no head here, and how far it is here: the answer to an earlier
     * call told. 0: none did. */
    uint64_t known_incarnation, known_batch;
    fb_digest_cell cell;
} fb_wanted;

/* What stands before a batch of which those before it are folded (fold.c). */
typedef struct fb_folded {
    bool used;
    fb_id node;
    uint64_t incarnation;
    uint64_t after; /* what is folded begins behind this one; 0: with the life */
    uint64_t previous_incarnation, previous_number; /* that the first header of the life named */
} fb_folded;
#define FB_FOLDED_BYTES 49u /* u8 0 and the others, as an item of a piece */

/* A call of our own. */
/* Values whose hashes are kept from the judging of a batch to its merge. */
#define FB_FETCH_VALUES 16u

typedef struct fb_fetch {
    bool used;
    bool ended;  /* the call is gone; an operation may still run */
    bool inside; /* within the callback of the call */
    bool busy;   /* an operation applies a batch of the piece */
    bool heard;  /* a batch came, whatever became of it */
    bool progress;
    bool refused; /* a batch was forged */
    uint32_t node_count;
    fb_id nodes[FB_FETCH_RANGES_MAX]; /* that it still asks for */
    uint64_t heard_ns;                /* when the last batch came, or it began */
    uint32_t area;
    uint32_t link;
    uint32_t call;
    uint64_t serial;
    uint64_t link_number;
    fb_status status;
    uint8_t *piece;
    uint32_t piece_len;
    uint32_t piece_at;
    fb_folded folded; /* the item before the one at hand */
    /* Of the batch at piece_at, while it is applied. */
    uint32_t tries;
    fb_id heard_of; /* the signer of the batch before this one */
    fb_id signer;
    uint64_t incarnation, number;
    uint8_t hash[32];
    fb_dot waits_for; /* FB_ERR_BATCH_EARLY */
    uint64_t here;    /* FB_ERR_DUPLICATE: how far its life is here */
    /* As it was read when it was judged first, if it has one change: most have. */
    bool kept;
    fb_batch batch;
    fb_change change;
    uint8_t leaf[32];
    uint8_t value_hashes[FB_FETCH_VALUES * 32]; /* of the first values in it */
} fb_fetch;

typedef struct fb_range {
    fb_id node;
    uint64_t incarnation;
    uint64_t batch;
    uint32_t have_count;
    uint64_t have_incarnation[FB_FETCH_HAVES_MAX];
    uint64_t have_batch[FB_FETCH_HAVES_MAX];
} fb_range;

typedef struct fb_step_back {
    uint64_t incarnation;
    uint64_t from, upto;
    uint64_t previous_incarnation, previous_number; /* as its first header names them */
} fb_step_back;

/* A call of another node. */
typedef struct fb_serve {
    bool used;
    bool busy; /* an operation reads */
    uint32_t area;
    uint32_t call;
    uint64_t serial;
    uint32_t count, at; /* ranges */
    fb_range range[FB_FETCH_RANGES_MAX];
    uint32_t depth; /* lives on the path, the next one to send last */
    fb_step_back path[FB_SERVE_PATH_MAX];
    bool walking; /* the walk for this range was begun */
    bool cut;     /* the path lost its far end: walk again from there */
} fb_serve;

/* The answer to a RECORD_BATCH that waits for its write set. */
typedef struct fb_answer {
    bool used;
    bool ready;
    uint32_t index; /* of the request */
    uint64_t number;
    uint64_t w;
    uint32_t len;
    uint8_t bytes[FB_ANSWER_BYTES_MAX];
} fb_answer;

/* A place of the changelog: its sequence, and the incarnation that wrote what stands there. Zeros:
 * before everything. */
typedef struct fb_place {
    uint64_t sequence;
    uint64_t incarnation;
} fb_place;

typedef struct fb_watch {
    bool used;
    bool fresh;  /* from what is new on */
    bool placed; /* its caller knows where it begins */
    bool reading;
    bool dry;       /* nothing durable is left to give */
    uint64_t stuck; /* credit that was too little */
    uint32_t space;
    uint32_t request;
    uint64_t number;
    uint64_t principal; /* who asked: an application may lose the space while it watches */
    fb_place cursor;    /* what was given last */
    uint64_t serial;
    fb_digest_cell cell;
} fb_watch;

/* What the control channel owes a link. */
typedef struct fb_link_vectors {
    bool up;
    bool summary;        /* all areas, from `summary_after` on */
    fb_id summary_after; /* zeros: from the start */
    uint64_t differs_ns; /* the peer's digest differed then */
    uint32_t stranger_count;
    fb_id strangers[FB_STRANGERS_MAX];
    uint32_t offer_at;   /* entries of the offer at hand that are out */
    uint32_t offer_area; /* of which area */
    uint8_t *offer;      /* bits by area: our vector is owed */
    uint8_t *ask;        /* bits by area: its vector is wanted */
    /* The frame last peeked. */
    uint8_t peeked;
    uint32_t peeked_area;
    uint32_t peeked_next; /* entries of the offer that are out then */
    fb_id peeked_last;    /* of a summary */
} fb_link_vectors;

/* What one operation has worked out and not put yet. */
typedef struct fb_staged_area {
    uint32_t area;
    uint64_t next_seq; /* of this node's own changes */
    fb_tree_node node; /* the root */
    fb_tree_root info;
    uint8_t root[16];
} fb_staged_area;

typedef struct fb_staged_change {
    uint32_t area; /* index among the staged areas */
    bool own;
    uint32_t at, len; /* of an own one, in bytes */
    uint64_t seq;
    uint8_t leaf[32];
    fb_id record;
    int64_t stamp;
    bool deleted; /* nothing visible is left of the record */
    bool created;
    bool conflict;
    uint8_t etag[16];
    uint32_t cost;
    uint32_t lives; /* that an own one names */
} fb_staged_change;

typedef struct fb_stage {
    fb_set set;
    uint32_t area_count;
    fb_staged_area areas[FB_WRITE_AREAS_MAX];
    uint32_t change_count;
    fb_staged_change changes[FB_BATCH_CHANGES_MAX];
    uint8_t *bytes; /* of own changes */
    size_t bytes_len, bytes_cap;
    uint8_t *merged, *scratch; /* record_max each */
    bool overflow;
} fb_stage;

#define FB_VECTORS_FOUND 32u

/* A record's key in the tree is asked for when its path is read and again when it is written. */
#define FB_ITEM_KEYS 32u

typedef struct fb_item_key {
    bool known;
    fb_id record;
    uint8_t key[16];
} fb_item_key;

/* The way to a node of a tree: its first `depth` nibbles. */
typedef struct fb_path {
    uint8_t depth;
    uint8_t key[16];
} fb_path;

/* A comparison of this node's (compare.c). */
typedef struct fb_compare {
    bool used;
    bool calling;   /* a call is under way */
    bool busy;      /* an operation is */
    bool more;      /* not all that differs was looked at */
    bool doubtful;  /* the peer is in doubt itself */
    bool dots_left; /* of the record at hand, behind those asked about */
    uint8_t phase;
    /* The last one was whole: area, plus one, which is out of doubt when this is durable. */
    uint32_t cleared;
    uint64_t cleared_w;
    uint32_t area;
    uint32_t link;
    uint64_t link_number;
    uint32_t call;
    uint64_t serial;
    uint32_t rounds; /* calls for nodes */
    uint64_t bytes;  /* of them */
    uint64_t differ; /* items that differ, here or there */
    uint8_t *piece;
    uint32_t piece_len;
    /* Most nodes never compare: what is below is not touched before one does. */
    uint32_t front_count;
    fb_path front[FB_COMPARE_FRONT_MAX]; /* still to be asked for */
    uint32_t asked_count, asked_at;
    fb_path asked[FB_COMPARE_PATHS_MAX];
    uint32_t found_count; /* keys of items that are other here */
    uint8_t found[FB_COMPARE_FOUND_MAX][16];
    fb_id scanned;
    uint32_t record_count, record_at;
    fb_id records[FB_COMPARE_FOUND_MAX];
    uint32_t dot_count;               /* of the record at hand */
    uint8_t dots_after[FB_DOT_BYTES]; /* those up to this one were asked about */
    uint8_t dots[FB_COMPARE_DOTS_MAX * FB_DOT_BYTES];
} fb_compare;

/* And of another node. */
typedef struct fb_compare_serve {
    bool used;
    bool busy;
    uint8_t kind;
    uint32_t area;
    uint32_t call;
    uint64_t serial;
    uint32_t count; /* paths or records that are left, from `at` on */
    uint32_t at;
    uint32_t arguments_len;
    uint8_t root[16];
    uint8_t arguments[FB_CALL_ARGUMENTS_MAX];
} fb_compare_serve;

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

/* keys.c: each writes a whole key into out and gives it. */
fb_span fb_key_vector(uint8_t *out, bool closed, uint32_t area, fb_id node, uint64_t incarnation);
fb_span fb_key_batch(uint8_t *out, uint32_t area, fb_id node, uint64_t incarnation,
                     uint64_t number);
fb_span fb_key_tree(uint8_t *out, uint32_t area, uint32_t depth, const uint8_t key[16]);
fb_span fb_key_changelog(uint8_t *out, uint32_t space, uint64_t sequence);
fb_span fb_key_doubt(uint8_t *out, uint32_t area);
fb_span fb_key_wanted(uint8_t *out, uint32_t area, fb_id node, uint64_t incarnation);
/* Not what is wanted of a life, but that its last batch goes. */
#define FB_WANTED_MENDING 1u
fb_span fb_key_mending(uint8_t *out, uint32_t area, fb_id node, uint64_t incarnation);

/* area.c */
void fb_areas_layout(fb_node *node, fb_arena *arena);
void fb_areas_reset(fb_node *node);
uint32_t fb_area_find(const fb_node *node, fb_id id);
/* Finds, or makes one that is not stored yet. FB_NONE: the table is full. */
uint32_t fb_area_open(fb_node *node, uint32_t space, fb_area_kind kind, fb_span name);
/* As loaded from the store. */
fb_status fb_area_load(fb_node *node, uint32_t local, fb_span value);
void fb_area_pin(fb_node *node, uint32_t area);
/* The last pin of an area that nothing was stored of frees it. */
void fb_area_unpin(fb_node *node, uint32_t area);
size_t fb_area_value(const fb_node *node, uint32_t area, uint8_t out[FB_AREA_VALUE_BYTES_MAX]);
/* The space's own area, FB_NONE when it has none. */
uint32_t fb_area_own(const fb_node *node, uint32_t space);
void fb_area_touch(fb_node *node, uint32_t area);
/* As fb_area_open, for an area that the peer of a link names: one that is not stored here counts
 * against what that link may name. FB_NONE: no place, or over its share. */
uint32_t fb_area_named(fb_node *node, uint32_t space, fb_area_kind kind, fb_span name, fb_id id,
                       uint32_t link);
/* It has its key in the set being built. */
void fb_area_stored(fb_node *node, uint32_t area);
void fb_areas_link_down(fb_node *node, uint32_t link);

static inline fb_area *fb_area_get(const fb_node *node, uint32_t area)
{
    return &node->database->areas[area];
}

/* vector.c */
void fb_vectors_layout(fb_node *node, fb_arena *arena);
void fb_vectors_reset(fb_node *node);
/* The head of a life, or FB_NONE. */
uint32_t fb_vector_find(const fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation);
/* Does any life of the node stand in the area's vector? */
bool fb_vector_knows(const fb_node *node, uint32_t area, fb_id peer);
uint32_t fb_vector_add(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation);
bool fb_vector_room(const fb_node *node, uint32_t count);
/* May a received batch begin a life of this node? Whoever signs many first batches has half of the
 * table at most, and FB_LIVES_IN_AREA_MAX of an area: FB_ERR_BATCH_LIVES, or FB_ERR_LIMIT when the
 * table is full. closes: it takes up a head. */
fb_status fb_vector_admits(const fb_node *node, uint32_t area, fb_id peer, bool closes);
void fb_vector_remove(fb_node *node, uint32_t entry);
/* Puts the entry as it stands now and notes it for when that is durable. */
void fb_vector_put(fb_node *node, uint32_t entry);
/* A later life took it up: it is a head no more. Puts two entries. */
void fb_vector_close(fb_node *node, uint32_t entry);
void fb_vectors_durable(fb_node *node);
/* A stored value, of a head or of a closed life. */
typedef struct fb_life {
    uint64_t batch, last_seq;
    uint8_t hash[32];
    uint64_t previous_incarnation, previous_number;
    uint64_t claim;
} fb_life;
fb_status fb_life_decode(fb_span value, fb_life *out);
/* Digest of the durable vector of an area; zeros when it is empty. */
const uint8_t *fb_area_digest(fb_node *node, uint32_t area);
/* Writes the executed vector of the space's own area, and the signer's claim unless it is the first
 * one, at most so many entries. */
uint32_t fb_epoch_write(const fb_node *node, uint32_t space, uint64_t claim, uint32_t most,
                        fb_writer *w);
/* A closed life is a head again, as its stored value says: puts two entries. */
uint32_t fb_vector_reopen(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                          const fb_life *life);
/* A head whose batches were all taken back: puts one entry. */
void fb_vector_erase(fb_node *node, uint32_t entry);

static inline fb_vector *fb_vector_get(const fb_node *node, uint32_t entry)
{
    return &node->database->vectors[entry];
}

/* stage.c */
void fb_stage_layout(fb_node *node, fb_arena *arena);
void fb_stage_clear(fb_node *node);
/* The place of an area among the staged ones, FB_NONE when there is no room. */
uint32_t fb_stage_area(fb_node *node, uint32_t area);
void fb_stage_put(fb_node *node, fb_span key, fb_span value);
void fb_stage_delete(fb_node *node, fb_span key);
/* What an operation's reads say of a change: where its record is among the items, and its path. */
typedef struct fb_reads {
    const fb_op *op;
    uint32_t record; /* item of the record; those of the path follow, depth 1 first */
    uint32_t levels; /* so many of them */
} fb_reads;
/* Adds the items for a record of an area. False: a limit. */
bool fb_stage_read(fb_node *node, fb_op *op, uint32_t area, fb_id record, uint32_t *next_item,
                   fb_reads *reads);
/* The stored record as it stands with what is staged. */
fb_status fb_stage_record(const fb_node *node, const fb_reads *reads, uint32_t area, fb_id record,
                          fb_record *out);
/* Merges a change and stages record, values, tree and changelog. FB_ERR_AGAIN: the tree grew below
 * what was read; read again. FB_ERR_LIMIT. FB_ERR_BATCH_EARLY: the record is large, and *early is a
 * dot that a received change replaces and that is not covered. out->own, seq and bytes are the
 * caller's. */
fb_status fb_stage_change(fb_node *node, const fb_reads *reads, uint32_t staged_area,
                          const fb_change *change, fb_dot dot,
                          bool (*covered)(void *, const uint8_t *), void *user,
                          fb_staged_change *out, fb_dot *early);
/* conflict.c: a value of this node's own stands beside another one in a field of the change, in the
 * record as merged. */
bool fb_conflict_with_own(const fb_node *node, const fb_record *record, const fb_change *change);
/* A record as it was worked out elsewhere, and its place in the tree. As fb_stage_change fails. */
fb_status fb_stage_rewrite(fb_node *node, const fb_reads *reads, uint32_t staged_area, fb_id record,
                           const fb_merged *merged, fb_staged_change *out);
/* What the stage puts. */
void fb_stage_size(const fb_node *node, size_t *bytes, size_t *entries);
/* Puts everything and makes it the state. */
void fb_stage_commit(fb_node *node);

/* seal.c */
void fb_builders_layout(fb_node *node, fb_arena *arena);
void fb_builders_reset(fb_node *node);
/* The most that sealing needs beside the changes themselves, for each batch begun. */
size_t fb_seal_frame_bytes(const fb_node *node, uint32_t area);
#define FB_SEAL_FRAME_ENTRIES 4u
/* The longest change of an area that a batch of this node holds. */
size_t fb_change_bytes_max(const fb_node *node, uint32_t area);
/* Adds an own change to the batch being filled; reserves what its sealing will put. */
void fb_builder_add(fb_node *node, uint32_t area, fb_span change, uint64_t seq,
                    const uint8_t leaf[32], size_t cost, uint32_t lives);
/* Can a node of the same sizes read at once what applying such a batch takes: the records and their
 * paths, and the lives that changes, epoch and chain name? */
bool fb_batch_readable(const fb_node *node, uint32_t area, uint32_t changes, uint32_t lives);
/* May this node begin a life in the area, as far as its peers' rules go? */
fb_status fb_life_begins(const fb_node *node, uint32_t area);
void fb_database_seal(fb_node *node);

/* put.c: RECORD_PUT, RECORD_DELETE, RECORD_BATCH, fb_database_write */
void fb_put_layout(fb_node *node, fb_arena *arena);
void fb_put_reset(fb_node *node);
void fb_put_flush(fb_node *node);
/* request.c: what the verbs share. Reads a collection; the area is found, or made when `open`. */
fb_status fb_collection_read(fb_node *node, fb_reader *r, uint32_t space, bool open,
                             uint32_t *area);
/* Space id and principal: FB_ERR_NOT_FOUND, FB_ERR_NOT_AUTHORISED. */
fb_status fb_space_read(fb_node *node, fb_reader *r, uint64_t principal, uint32_t *space);
void fb_refuse(fb_node *node, fb_request request, fb_status status);

/* own.c: a change of a space's own area as the space plane sees it. fields has room for
 * FB_RECORD_FIELDS_MAX. */
void fb_own_change_of(const fb_change *change, fb_b32 author, fb_dot dot, uint64_t number,
                      uint64_t claim, fb_span batch, fb_field_write *fields, fb_own_change *out);
void fb_own_reading_layout(fb_node *node, fb_arena *arena);
void fb_own_reading_reset(fb_node *node);

/* show.c: values that are stored apart are asked for by fb_show_read in one round and taken in the
 * same order by fb_show_write in the next. */
/* The most that an answer holds, and what stands in it before the records of a list. */
#define FB_SHOW_HEAD_BYTES 3u
size_t fb_show_max(const fb_node *node);
/* Bytes of the answer; 0 when the record is not visible. *apart is raised by the values to read. */
size_t fb_show_size(const fb_record *record, int64_t horizon, uint32_t *apart);
/* In a list, a record that is larger than any answer. */
#define FB_SHOW_TOO_LARGE_BYTES (16u + 16 + 2)
void fb_show_too_large(fb_writer *w, fb_id id, const fb_record *record);
bool fb_show_read(fb_op *op, fb_show *show, fb_id id, const fb_record *record);
/* FB_ERR_AGAIN: the record changed between the rounds. */
fb_status fb_show_write(const fb_node *node, const fb_op *op, fb_show *show, fb_writer *w, fb_id id,
                        const fb_record *record);

/* get.c, list.c, watch.c, areas.c */
void fb_get_layout(fb_node *node);
void fb_watch_layout(fb_node *node, fb_arena *arena);
void fb_watch_reset(fb_node *node);
void fb_watch_durable(fb_node *node);
void fb_watch_flush(fb_node *node);
void fb_area_list_layout(fb_node *node);

/* fetch.c, apply.c, serve.c, exchange.c, onward.c */
void fb_wanted_layout(fb_node *node, fb_arena *arena);
void fb_wanted_reset(fb_node *node);
/* A peer claims this; true when it is lacking here and is wanted now. */
bool fb_want(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation, uint64_t batch,
             uint32_t link);
/* Puts the claim into the set being built, if there is room. */
void fb_wanted_store(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation, uint32_t link);
void fb_wanted_touch(fb_node *node, uint32_t wanted);
/* Nobody has it: counted and forgotten. */
void fb_wanted_drop(fb_node *node, uint32_t wanted);
void fb_wanted_link_down(fb_node *node, uint32_t link);

static inline fb_wanted *fb_wanted_get(const fb_node *node, uint32_t wanted)
{
    return &node->database->wanted[wanted];
}

void fb_fetch_layout(fb_node *node, fb_arena *arena);
void fb_fetch_reset(fb_node *node);
/* A call asks for this node no more. */
void fb_fetch_has(fb_node *node, uint32_t fetch, fb_id peer);
/* Starts what calls there can be for an area. */
void fb_fetch_go(fb_node *node, uint32_t area);
void fb_fetch_go_all(fb_node *node, uint32_t space);
fb_status fb_wanted_load(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                         fb_span value);
/* We have this batch: claims that it satisfies are forgotten. Puts one entry when room for it is
 * reserved, or there is. */
void fb_wanted_satisfy(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                       uint64_t batch, bool reserved);
/* Judges the batch at hand of a fetch. True: an operation goes on with it, and fb_fetch_applied
 * follows. False: *status is the outcome. */
bool fb_apply_begin(fb_node *node, uint32_t fetch, fb_status *status);
void fb_fetch_applied(fb_node *node, uint32_t fetch, fb_status status);
/* The batch at hand. */
fb_span fb_fetch_batch(const fb_node *node, uint32_t fetch);
/* Statements came: what waited for them is asked for again. */
void fb_fetch_unpark(fb_node *node, uint32_t space);
/* Changes of a life came, up to this one: what waited for them is asked for again. */
void fb_fetch_woken(fb_node *node, uint32_t area, fb_dot last);
void fb_serve_layout(fb_node *node, fb_arena *arena);
void fb_serve_reset(fb_node *node);
void fb_vector_exchange_layout(fb_node *node, fb_arena *arena);
void fb_vector_exchange_reset(fb_node *node);
void fb_vector_ask(fb_node *node, uint32_t link, uint32_t area, fb_id id);
/* Tells every link of a space what is held here, to be told of the rest. */
void fb_vector_compare_all(fb_node *node, uint32_t space);
void fb_onward_layout(fb_node *node);
/* A received batch was applied to this area. */
void fb_onward_applied(fb_node *node, uint32_t area, bool conflict);

/* cut.c, mend.c */
void fb_cut_layout(fb_node *node, fb_arena *arena);
void fb_cut_reset(fb_node *node);
void fb_mend_layout(fb_node *node, fb_arena *arena);
void fb_mend_reset(fb_node *node);
void fb_mend_started(fb_node *node);
fb_status fb_mend_load(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                       fb_span value);
void fb_mend_durable(fb_node *node);
/* The last batch of a life that anybody takes; UINT64_MAX: it goes on. */
uint64_t fb_mend_limit(const fb_node *node, uint32_t area, fb_id signer, uint64_t incarnation);
/* report.c: what each member holds durably, and the stable cut that follows from it. */
void fb_reports_layout(fb_node *node);
void fb_reports_reset(fb_node *node);
void fb_reports_started(fb_node *node);
/* More is durable of an area than before. */
void fb_report_due(fb_node *node, uint32_t area);
/* A report came. */
void fb_cut_due(fb_node *node, uint32_t space);
/* May this node state cuts? Told by fb_cut_promised (cut.c): FB_ERR_BEHIND while it holds less than
 * it has reported, or has not reported yet. */
void fb_report_promise(fb_node *node, uint32_t space);
void fb_cut_promised(fb_node *node, uint32_t space, fb_status status);
/* The reports are not read yet: nobody knows what is folded here. */
bool fb_report_is_awaited(const fb_node *node, uint32_t space);
/* May this batch stand in the area of reports? */
fb_status fb_report_check(const fb_node *node, uint32_t space, const fb_batch *batch, fb_id signer,
                          const fb_change *changes);

/* compare.c: the other side's fingerprints, and what follows when they differ. */
void fb_compare_layout(fb_node *node, fb_arena *arena);
void fb_compare_reset(fb_node *node);
void fb_compare_durable(fb_node *node);
void fb_compare_link_up(fb_node *node, uint32_t space);
void fb_compare_serve_layout(fb_node *node, fb_arena *arena);
/* Batches were skipped: something may live here that was replaced by one of them. Puts one entry
 * when `put`. */
void fb_doubt(fb_node *node, uint32_t area, bool put);
#define FB_DOUBT_KEY_BYTES   5u
#define FB_DOUBT_VALUE_BYTES 1u
/* Its value: in doubt, or it was once. */
#define FB_DOUBT_NOW  1u
#define FB_DOUBT_ONCE 2u

/* fold.c: batches of which nothing lives, below the cut. */
void fb_fold_layout(fb_node *node);
void fb_fold_due(fb_node *node, uint32_t area);
/* Up to which batch every member holds a life; 0: not at all, or not known. */
uint64_t fb_fold_cut(const fb_node *node, uint32_t area, fb_id signer, uint64_t incarnation);
/* Something was taken back here, or can be unknown to the cut: what was seen dead may live again.
 */
void fb_fold_mended(fb_node *node, uint32_t area);

/* load.c */
void fb_database_load(fb_node *node);

#endif
