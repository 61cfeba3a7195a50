/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the space plane. For the files of this folder only. */
#ifndef FB_SPACE_TABLE_H
#define FB_SPACE_TABLE_H

#include "protocol/space/invite.h"
#include "protocol/space/space.h"

/* A request that waits, named so that a later one at its index is not taken for it. */
typedef struct fb_waiting {
    uint32_t index;
    uint64_t number; /* 0: none */
} fb_waiting;

/* A request that needs a new id when the clock has passed the stored mark of ids: it is asked again
 * when the new mark is durable. */
#define FB_RETRIES_MAX     4u
#define FB_RETRY_BYTES_MAX (34u + FB_SPACE_NAME_BYTES_MAX)
typedef struct fb_retry {
    fb_waiting by;
    uint16_t len;
    uint8_t arguments[FB_RETRY_BYTES_MAX];
} fb_retry;

/* What a joiner keeps of its invite. */
typedef struct fb_joining {
    bool given;
    bool dialled; /* its address is in the address book because of this plane */
    fb_id id;
    fb_b32 secret; /* zeros once this node is approved */
    fb_b32 inviter;
    uint8_t address_len;
    uint8_t address[FB_ADDRESS_BYTES_MAX];
} fb_joining;

/* When a text was stated, for the one that counts: the greatest (stamp, dot). */
typedef struct fb_dot_stamp {
    int64_t stamp;
    fb_id node;
    uint64_t incarnation;
    uint64_t seq;
} fb_dot_stamp;

typedef struct fb_space {
    bool used;
    bool left;         /* the request to join was given up: for others it does not exist */
    bool rooted;       /* the root statement is folded */
    bool taken;        /* joiner: an approved member has taken the request */
    bool writing;      /* a statement of this node's own duty is on its way */
    bool address_said; /* own address was stated in this incarnation */
    bool renamed;      /* a renaming may have come, whether it stands or not */
    bool name_due;     /* they are to be read */
    bool rows_due;     /* rows of members are to be put */
    bool rows_running;
    uint32_t local;    /* number in store keys */
    uint32_t own;      /* member index of this node, FB_NONE before it is approved */
    uint32_t first;    /* member list in the order of ids; index plus one */
    uint32_t approved; /* members of the list */
    fb_id id;
    fb_id tag; /* profile 7, preamble */
    fb_b32 creator;
    fb_b32 recovery;       /* zeros: none (recovery.h) */
    uint32_t creator_rank; /* of its first term (judge.h) */
    fb_joining joining;
    fb_waiting waiting; /* SPACE_CREATE or SPACE_JOIN */
    uint8_t name_len;
    uint8_t address_len;
    uint16_t proof_len;
    uint8_t name[FB_SPACE_NAME_BYTES_MAX];
    uint8_t root_len;
    uint8_t root_name[FB_SPACE_NAME_BYTES_MAX]; /* of the root, while it is called otherwise */
    fb_dot_stamp name_at; /* of the last renaming; no incarnation: the name is the root's */
    uint8_t address[FB_ADDRESS_BYTES_MAX];       /* where this node can be dialled */
    uint8_t proof[FB_STATEMENT_PROOF_BYTES_MAX]; /* batch that made this node a member */
    fb_timer timer;
    fb_digest_cell cell;
} fb_space;

typedef struct fb_member {
    bool used;
    bool dialled;    /* its address is in the address book because of this plane */
    bool introduced; /* known by an invite or a shown statement only; not stored */
    bool row_due;    /* what the store says of it is of before */
    uint32_t space;
    fb_member_status status;
    fb_role role;
    fb_id id;
    fb_b32 key;
    fb_id invite;        /* of a pending member */
    uint64_t approved_w; /* its pending links wait for this write set; 0: nothing waits */
    fb_dot_stamp address_at;
    uint8_t address_len;
    uint8_t address[FB_ADDRESS_BYTES_MAX];
    uint32_t standings; /* what was stated about it; plus one */
    uint32_t next;      /* in the space's list; index plus one */
    uint32_t chain;     /* in the bucket; index plus one */
    fb_digest_cell cell;
} fb_member;

/* An invite that this node gave. */
typedef struct fb_given_invite {
    bool used;
    uint32_t space;
    fb_id id;
    fb_b32 secret;
    uint32_t uses; /* left */
    int64_t expires_us;
    fb_digest_cell cell;
} fb_given_invite;

typedef struct fb_application {
    bool used;
    bool revoked;
    uint32_t number; /* the principal */
    uint64_t spaces; /* allowed: bit per space index */
    uint8_t name_len;
    uint8_t name[FB_APPLICATION_NAME_BYTES_MAX];
    fb_b32 token_hash;
    fb_digest_cell cell;
} fb_application;

/* What this end of a link has to show. */
typedef struct fb_shown {
    uint64_t number;     /* of the link */
    bool shown;          /* frames may be sent */
    bool owes_proof;     /* joiner: the invite's proof */
    bool owes_answer;    /* inviter: when answer_w is durable */
    bool owes_standing;  /* a membership frame */
    bool said_statement; /* own statement was sent on this link */
    bool read_statement; /* the peer's was looked at: one a link */
    fb_id invite;        /* answered */
    uint64_t answer_w;
    fb_digest_cell cell;
} fb_shown;

_Static_assert(FB_SPACES_MAX <= 64, "a bit for each space an application may use");

/* Something is being taken from a member: one at a time, for an operator. */
typedef struct fb_taking_away {
    bool used;
    fb_waiting by;
    uint32_t space, member;
    fb_role role;
    uint32_t areas, lives;
    uint64_t lacking;
} fb_taking_away;

/* The renamings of one space are being read. */
typedef struct fb_naming {
    bool used;
    uint32_t space;
    fb_dot_stamp at; /* of the best so far; no incarnation: none */
    uint8_t len;
    uint8_t text[FB_SPACE_NAME_BYTES_MAX];
} fb_naming;

/* SPACE_LIST, or SPACE_MEMBERS of a space. */
typedef struct fb_listing {
    uint64_t number; /* of the request; 0: none waits */
    uint32_t space;  /* FB_NONE: of all spaces */
    bool held;       /* it is told what is kept (fb_spaces.listed) */
} fb_listing;

struct fb_standing;
struct fb_cut;

struct fb_spaces {
    struct fb_standing *standing;
    struct fb_cut *cut;
    /* taken: those before it were in use since START; behind it nothing is looked at. */
    uint32_t standing_cap, standing_free, standing_taken;
    uint32_t cut_cap, cut_free, cut_taken, cuts_left;
    fb_space *space;
    fb_member *member;
    fb_given_invite *invite;
    fb_application *application;
    fb_shown *shown;     /* by link */
    uint64_t *stating;   /* by request index: number of the one that waits for a statement */
    fb_listing *listing; /* by request index: a list that waits for told_w */
    uint32_t listings;   /* of those that wait */
    uint8_t *listed;     /* a list as it was while it waited: told when this is durable */
    size_t listed_len;   /* 0: there is none */
    uint64_t listed_w;
    uint32_t *buckets; /* members by (space, id); index plus one */
    uint32_t bucket_mask;
    uint32_t member_free; /* list through `next`; index plus one */
    uint32_t members;     /* in use */
    uint32_t pending;     /* of those, in all spaces */
    uint32_t space_local; /* highest number used */
    uint32_t application_number;
    uint64_t told_w;     /* the last write set that changed what lists tell */
    uint64_t shutting_w; /* links of who is no member any more wait for this write set; 0: none */
    uint32_t awaiting;   /* members with approved_w set */
    uint32_t answering;  /* links that owe an answer whose write set is not durable */
    fb_taking_away taking_away;
    fb_naming naming;
    fb_retry retry[FB_RETRIES_MAX];
    uint8_t frame[FB_STATEMENT_PROOF_BYTES_MAX + 8]; /* the one being peeked */
    /* Loading: the last key read. */
    uint32_t load_part;
    uint16_t load_key_len;
    uint8_t load_key[FB_KEY_BYTES_MAX];
};

static inline fb_space *fb_space_at(const fb_node *node, uint32_t space)
{
    return &node->spaces->space[space];
}

static inline fb_member *fb_member_at(const fb_node *node, uint32_t member)
{
    return &node->spaces->member[member];
}

static inline void fb_dot_stamp_write(fb_writer *w, const fb_dot_stamp *at)
{
    fb_write_u64(w, (uint64_t)at->stamp);
    fb_write_id(w, at->node);
    fb_write_u64(w, at->incarnation);
    fb_write_u64(w, at->seq);
}

/* Order of (stamp, dot), DESIGN 3.1: the stamp signed, the rest unsigned. */
int fb_dot_stamp_compare(const fb_dot_stamp *a, const fb_dot_stamp *b);

/* The write set that is being filled changes what lists tell: they wait for it. */
void fb_space_tells_new(fb_node *node);

void fb_space_touch(fb_node *node, uint32_t space);
void fb_member_touch(fb_node *node, uint32_t member);

/* A free place for a space, FB_NONE when all are taken. own is FB_NONE, the creator a member. */
uint32_t fb_space_add(fb_node *node, fb_id id, uint32_t local, fb_b32 creator, fb_span name);
/* Takes back what fb_space_add made, before anything depends on it. */
void fb_space_drop(fb_node *node, uint32_t space);

/* A place for a new member, known by id to be absent; an unapproved one gives way to one that is to
 * be approved. FB_NONE when there is none. */
uint32_t fb_member_add(fb_node *node, uint32_t space, fb_id id, fb_b32 key, fb_member_status status,
                       fb_role role);
void fb_member_drop(fb_node *node, uint32_t member);
/* Is there a place for an approved member more? */
bool fb_member_fits(const fb_node *node);
/* Counts and list positions depend on the status: the one way to change it. */
void fb_member_set_status(fb_node *node, uint32_t member, fb_member_status status);

void fb_member_observe(fb_node *node, uint32_t member);
void fb_space_observe_name(fb_node *node, uint32_t space);

#endif
