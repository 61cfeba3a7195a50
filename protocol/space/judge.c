/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/space/judge.h"

#include "protocol/base/mutant.h"
#include "protocol/identity/identity.h"

/* Everything that is asked for about one space. */
typedef struct judging {
    fb_node *node;
    uint32_t space;
    fb_id area; /* the own one */
    fb_id creator;
} judging;

static judging judging_of(const fb_node *node, uint32_t space)
{
    const fb_space *s = fb_space_at(node, space);
    return (judging){
        .node = (fb_node *)(uintptr_t)node,
        .space = space,
        .area = fb_area_id(s->id, FB_AREA_SPACE, (fb_span){NULL, 0}),
        .creator = fb_node_id_of(node->options.provider, &s->creator),
    };
}

static fb_standing *at(const judging *j, uint32_t index)
{
    return &j->node->spaces->standing[index];
}

/* The next one of this space from a place on; FB_NONE: there is none. */
static uint32_t from(const judging *j, uint32_t index)
{
    const struct fb_spaces *spaces = j->node->spaces;
    for (; index < spaces->standing_taken; index++) {
        const fb_standing *s = &spaces->standing[index];
        if (s->used && fb_member_at(j->node, s->member)->space == j->space) return index;
    }
    return FB_NONE;
}

/* The term is open: other statements of its number open it no more. */
static void mark_open(const judging *j, uint32_t member, uint32_t number)
{
    for (uint32_t i = fb_member_at(j->node, member)->standings; i != 0; i = at(j, i - 1)->next) {
        if (at(j, i - 1)->number == number) at(j, i - 1)->open = true;
    }
}

/* FB_NONE: it is not open. */
static uint32_t rank_of_term(const judging *j, uint32_t member, uint32_t number)
{
    const fb_member *m = fb_member_at(j->node, member);
    if (number == 1 && fb_id_equal(m->id, j->creator)) {
        return fb_space_at(j->node, j->space)->creator_rank;
    }
    for (uint32_t i = m->standings; i != 0; i = at(j, i - 1)->next) {
        const fb_standing *s = at(j, i - 1);
        if (s->number == number && s->opens != FB_NONE) return s->opens;
    }
    return FB_NONE;
}

/* Is what a member signed in its own area cut by somebody more senior? Who is as senior or less is
 * not asked: it may have heard of the statement, and could not have stated otherwise. */
static bool is_cut(const judging *j, uint32_t member, uint32_t claimed, uint32_t rank,
                   uint64_t incarnation, uint64_t number)
{
    const fb_member *m = fb_member_at(j->node, member);
    for (uint32_t i = m->standings; i != 0;) {
        const fb_standing *t = at(j, i - 1);
        uint32_t index = i - 1;
        i = t->next;
        if (!t->stands || t->number % 2 != 0 || t->number <= claimed || t->rank >= rank) continue;
        if (fb_id_equal(t->author, m->id)) continue; /* who leaves names no cut */
        if (fb_standing_counting(j->node, member, t->number) != index) continue;
        const fb_cut *cut = fb_standing_cut(j->node, t, j->area, incarnation);
        if (number > (cut == NULL ? 0 : cut->number)) return true;
    }
    return false;
}

static void judge_one(const judging *j, fb_standing *s, uint32_t author, uint32_t rank)
{
    s->rank = rank;
    bool stands = !is_cut(j, author, FB_CLAIM_NUMBER(s->claim), rank, s->at.incarnation, s->batch);
    s->stands = MUTANT(CUT_STATEMENT_COUNTS, stands, true);
}

static void open_term(const judging *j, uint32_t member, uint32_t number, uint32_t rank)
{
    fb_id id = fb_member_at(j->node, member)->id;
    mark_open(j, member, number);
    for (uint32_t i = from(j, 0); i != FB_NONE; i = from(j, i + 1)) {
        fb_standing *s = at(j, i);
        if (FB_CLAIM_NUMBER(s->claim) != number || !fb_id_equal(s->author, id)) continue;
        judge_one(j, s, member, rank);
    }
}

/* Of two statements of the recovery key the one whose term is senior. */
static bool is_before(const judging *j, const fb_standing *a, const fb_standing *b)
{
    if (a->claim != b->claim) return a->claim > b->claim;
    int order =
        fb_id_compare(fb_member_at(j->node, a->member)->id, fb_member_at(j->node, b->member)->id);
    if (order != 0) return order < 0;
    return a->number != b->number ? a->number < b->number
                                  : fb_dot_stamp_compare(&a->at, &b->at) < 0;
}

static uint32_t next_recovery(const judging *j)
{
    uint32_t found = FB_NONE;
    for (uint32_t i = from(j, 0); i != FB_NONE; i = from(j, i + 1)) {
        const fb_standing *s = at(j, i);
        if (!fb_standing_is_recovery(s) || s->open) continue;
        if (found == FB_NONE || is_before(j, s, at(j, found))) found = i;
    }
    return found;
}

/* They depend on nothing that anybody else states. */
static uint32_t open_recoveries(const judging *j)
{
    uint32_t rank = 0;
    for (uint32_t i = next_recovery(j); i != FB_NONE; i = next_recovery(j)) {
        at(j, i)->opens = rank;
        open_term(j, at(j, i)->member, at(j, i)->number, rank++);
    }
    return rank;
}

/* The statement that opens the next term. */
static uint32_t next_opening(const judging *j)
{
    uint32_t found = FB_NONE;
    for (uint32_t i = from(j, 0); i != FB_NONE; i = from(j, i + 1)) {
        const fb_standing *s = at(j, i);
        if (!s->stands || s->open || s->number % 2 == 0 || s->role != FB_ROLE_ADMIN) continue;
        if (found != FB_NONE) {
            const fb_standing *best = at(j, found);
            if (s->rank > best->rank) continue;
            if (s->rank == best->rank && fb_dot_stamp_compare(&s->at, &best->at) > 0) continue;
        }
        found = i;
    }
    return found;
}

/* Who is no admin states that it leaves: what any admin cut of it is cut. */
static void judge_leaving(const judging *j)
{
    for (uint32_t i = from(j, 0); i != FB_NONE; i = from(j, i + 1)) {
        fb_standing *s = at(j, i);
        const fb_member *m = fb_member_at(j->node, s->member);
        bool leaves = s->rank == FB_NONE && s->role == FB_ROLE_NONE && s->number % 2 == 0 &&
                      fb_id_equal(s->author, m->id);
        if (leaves) {
            s->stands = !is_cut(j, s->member, FB_CLAIM_NUMBER(s->claim), FB_NONE, s->at.incarnation,
                                s->batch);
        }
    }
}

void fb_space_judge(fb_node *node, uint32_t space)
{
    const judging j = judging_of(node, space);
    for (uint32_t i = from(&j, 0); i != FB_NONE; i = from(&j, i + 1)) {
        fb_standing *s = at(&j, i);
        s->stands = fb_standing_is_recovery(s);
        s->open = false;
        s->rank = s->opens = FB_NONE;
    }
    uint32_t creator = fb_member_find(node, space, j.creator);
    FB_ASSERT(creator != FB_NONE);
    fb_space_at(node, space)->creator_rank = FB_NONE;
    uint32_t rank = MUTANT(RECOVERY_IS_JUNIOR, open_recoveries(&j), 0);
    fb_space_at(node, space)->creator_rank = rank;
    open_term(&j, creator, 1, rank);
    for (uint32_t i = next_opening(&j); i != FB_NONE; i = next_opening(&j)) {
        at(&j, i)->opens = ++rank;
        open_term(&j, at(&j, i)->member, at(&j, i)->number, rank);
    }
    judge_leaving(&j);
}

bool fb_space_stands(const fb_node *node, uint32_t space, fb_id author, uint64_t claim,
                     uint64_t incarnation, uint64_t number)
{
    const judging j = judging_of(node, space);
    uint32_t member = fb_member_find(node, space, author);
    if (member == FB_NONE) return false;
    uint32_t rank = rank_of_term(&j, member, FB_CLAIM_NUMBER(claim));
    return rank != FB_NONE &&
           !is_cut(&j, member, FB_CLAIM_NUMBER(claim), rank, incarnation, number);
}
