/* SPDX-License-Identifier: Apache-2.0 */
/* What was stated about each member, and the cuts that go with it. DESIGN 3.1, Revocation. For the
 * files of this folder only.
 *
 * Statements about one member are numbered. An odd number gives rights, an even one takes some away
 * and names a cut. Who admits or promotes states the number that counts (or, after something was
 * taken, the next odd one); who takes away states the next even one. So whoever saw a removal
 * outranks it, and a removal outranks every grant that did not see it. Of the statements with one
 * number the greatest role counts where they give, and where they take the one by the most senior
 * author. All statements are kept, those that do not count as well: a cut may take away the one
 * that does. What counts is a function of their set.
 *
 * A batch says in its epoch under which of them its signer acted (FB_CLAIM below), and is judged by
 * that: its right, and the cuts of everything stated since. */
#ifndef FB_SPACE_STANDING_H
#define FB_SPACE_STANDING_H

#include "protocol/space/statement.h"
#include "protocol/space/table.h"

typedef struct fb_cut fb_cut;
typedef struct fb_standing fb_standing;

struct fb_cut {
    bool used;
    uint32_t next; /* of its standing, plus one; or free list */
    fb_id area;
    uint64_t incarnation;
    uint64_t number;
    uint8_t hash[FB_CUT_HASH_BYTES];
};

struct fb_standing {
    bool used;
    uint8_t number;
    fb_role role; /* NONE: no member any more */
    fb_id author; /* zeros: the recovery key, whoever stated it */
    fb_dot_stamp at;
    uint64_t batch; /* its number in the author's life */
    uint64_t claim; /* what the author said to be; of the recovery key its turn */
    /* Worked out from the set of all (judge.h). */
    bool stands;
    bool open;      /* its member is an admin by one of this number */
    uint32_t rank;  /* of its author when it was stated, 0 is the greatest; FB_NONE: no admin */
    uint32_t opens; /* the rank that it gives its member as an admin; FB_NONE: none */
    uint32_t member;
    uint32_t next; /* of the member, plus one; or free list */
    uint32_t cuts; /* plus one */
};

void fb_standings_layout(fb_node *node, fb_arena *arena);
void fb_standings_reset(fb_node *node);

/* Room for one more statement with so many cuts? */
bool fb_standing_fits(const fb_node *node, uint32_t cuts);
/* May this node state it? Every statement is kept by everybody for good, and a member whose table
 * is full takes nothing that comes after it. So the admins together state less than the tables
 * hold, also where they do not hear of each other, and with room for another space: each has its
 * part of a quarter for roles that change to and fro. To end a membership, all but a quarter may be
 * used; to admit, and to leave, all. */
bool fb_standing_may_state(const fb_node *node, uint32_t space, const fb_statement *statement);

/* The recovery key signed it, and somebody stated it before. Whoever does so again, and anybody
 * may, takes no place: or one member could fill the table, and with that node nobody could state
 * more. */
bool fb_standing_is_repeated(const fb_node *node, uint32_t member, const fb_statement *statement);
/* Keeps a statement about a member; puts its keys. What counts is not worked out yet. False: it is
 * there already. */
bool fb_standing_take(fb_node *node, uint32_t member, const fb_statement *statement,
                      const fb_own_change *change);
/* A member that is dropped leaves nothing. */
void fb_standing_drop(fb_node *node, uint32_t member);

/* What counts of those with one number that stand; FB_NONE: none does. */
uint32_t fb_standing_counting(const fb_node *node, uint32_t member, uint32_t number);
/* The greatest number that stands, and what counts of it: FB_NONE when nothing does. */
uint32_t fb_standing_top(const fb_node *node, uint32_t member);
const fb_cut *fb_standing_cut(const fb_node *node, const fb_standing *s, fb_id area,
                              uint64_t incarnation);
/* Was it ever stated that who claims this is a member, an admin? Whether it stands or not: who
 * signs a statement had heard of what made it an admin, and so has who covers that epoch.
 * FB_ERR_BATCH_EPOCH: nothing of the claim is known here. */
fb_status fb_standing_stated(const fb_node *node, uint32_t member, uint64_t claim, bool *admin);
/* The role that data may be written in under a claim: that of the last statement up to the claim,
 * or a greater one of a later statement. So what has a right has it as long as anything after it in
 * its life has. FB_ERR_BATCH_EPOCH: nothing of the claim is known here. */
fb_status fb_standing_role(const fb_node *node, uint32_t member, uint64_t claim, fb_role *role);
/* FB_OK or FB_ERR_BATCH_CUT: is data of this member above what was cut since its claim? */
fb_status fb_standing_judge(const fb_node *node, uint32_t member, uint64_t claim, fb_id area,
                            uint64_t incarnation, uint64_t number, const uint8_t *hash);
/* The last batch of a life with data that anybody takes as things stand, UINT64_MAX while it goes
 * on. */
uint64_t fb_standing_limit(const fb_node *node, uint32_t member, fb_id area, uint64_t incarnation);
/* What this member acts under. */
uint64_t fb_standing_claim(const fb_node *node, uint32_t member);
/* It is no member any more because it said so itself. */
bool fb_standing_left(const fb_node *node, uint32_t member);
bool fb_standing_is_cut(const fb_node *node, uint32_t member); /* something was ever taken */

static inline bool fb_standing_is_recovery(const fb_standing *s)
{
    return fb_id_is_zero(s->author);
}
/* The greatest turn of the recovery key that is known here. */
uint32_t fb_standing_last_turn(const fb_node *node, uint32_t space);

/* A part of the member's digest. */
void fb_standing_digest(const fb_node *node, uint32_t member, fb_writer *w);

/* Store: tag L, u32 space, subject, dot -> standing; tag X, the same and area, incarnation -> cut.
 */
#define FB_STANDING_PUT_BYTES 128u
#define FB_CUT_PUT_BYTES      192u
fb_status fb_standing_load(fb_node *node, uint32_t space, fb_reader *key, fb_reader *value);
fb_status fb_cut_load(fb_node *node, uint32_t space, fb_reader *key, fb_reader *value);

#endif
