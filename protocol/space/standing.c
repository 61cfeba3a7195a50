/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/space/standing.h"

#include "protocol/base/mutant.h"
#include "protocol/identity/identity.h"
#include "protocol/space/store.h"
#include "protocol/store/keys.h"

#define VALUE_VERSION 1u

static fb_standing *standing_at(const fb_node *node, uint32_t index)
{
    return &node->spaces->standing[index];
}

static bool is_taking(const fb_standing *s)
{
    return s->number % 2 == 0;
}

static uint32_t tag_of(const fb_dot_stamp *at)
{
    uint8_t dot[32];
    fb_writer w = fb_writer_of(dot, sizeof dot);
    fb_write_id(&w, at->node);
    fb_write_u64(&w, at->incarnation);
    fb_write_u64(&w, at->seq);
    return (uint32_t)fb_xxh64(dot, sizeof dot, 0);
}

/* The tables */

void fb_standings_layout(fb_node *node, fb_arena *arena)
{
    uint32_t count = 2 * node->options.sizes.members, cuts = 4 * node->options.sizes.members;
    fb_standing *standing = fb_arena_take(arena, count, sizeof *standing);
    fb_cut *cut = fb_arena_take(arena, cuts, sizeof *cut);
    if (node->spaces == NULL) return;
    node->spaces->standing = standing;
    node->spaces->standing_cap = count;
    node->spaces->cut = cut;
    node->spaces->cut_cap = cuts;
}

/* What was never taken is not touched: most nodes see few such statements. */
void fb_standings_reset(fb_node *node)
{
    struct fb_spaces *spaces = node->spaces;
    spaces->standing_free = spaces->cut_free = 0;
    spaces->standing_taken = spaces->cut_taken = 0;
    spaces->cuts_left = spaces->cut_cap;
}

bool fb_standing_fits(const fb_node *node, uint32_t cuts)
{
    const struct fb_spaces *spaces = node->spaces;
    bool left = spaces->standing_free != 0 || spaces->standing_taken < spaces->standing_cap;
    return left && spaces->cuts_left >= cuts;
}

/* What this node stated about members, but for one admission of each, and the cuts of it. */
static void own_use(const fb_node *node, uint32_t *stated, uint32_t *cuts)
{
    *stated = *cuts = 0;
    for (uint32_t m = 0; m < node->options.sizes.members; m++) {
        const fb_member *member = fb_member_at(node, m);
        bool admitted = false;
        for (uint32_t i = member->used ? member->standings : 0; i != 0;) {
            const fb_standing *s = standing_at(node, i - 1);
            i = s->next;
            if (!fb_id_equal(s->author, node->self)) continue;
            if (s->number != 1 || admitted) (*stated)++;
            admitted |= s->number == 1;
            for (uint32_t c = s->cuts; c != 0; c = node->spaces->cut[c - 1].next) (*cuts)++;
        }
    }
}

static uint32_t admins(const fb_node *node, uint32_t space)
{
    uint32_t count = 0;
    for (uint32_t m = fb_member_first(node, space); m != FB_NONE; m = fb_member_next(node, m)) {
        const fb_member *member = fb_member_at(node, m);
        count += member->status == FB_MEMBER_APPROVED && member->role == FB_ROLE_ADMIN;
    }
    return count == 0 ? 1 : count;
}

bool fb_standing_may_state(const fb_node *node, uint32_t space, const fb_statement *statement)
{
    const struct fb_spaces *spaces = node->spaces;
    uint32_t cuts = statement->number % 2 != 0 ? 0 : fb_cut_count(statement->cut);
    if (!MUTANT(STATED_WITHOUT_ROOM, fb_standing_fits(node, cuts), true)) return false;
    if (statement->kind == FB_STATEMENT_RECOVERY) return true;
    bool leaves = fb_b32_equal(statement->key, node->self_key);
    fb_id id = fb_node_id_of(node->options.provider, &statement->key);
    uint32_t member = fb_member_find(node, space, id);
    if (leaves || member == FB_NONE || fb_member_at(node, member)->standings == 0) return true;
    uint32_t cut = spaces->cut_cap - spaces->cuts_left + cuts;
    if (statement->role == FB_ROLE_NONE) return cut <= spaces->cut_cap / 4 * 3;
    uint32_t own, own_cuts, share = 4 * admins(node, space);
    own_use(node, &own, &own_cuts);
    bool fits = cut <= spaces->cut_cap / 4 && own < spaces->standing_cap / share &&
                own_cuts + cuts <= spaces->cut_cap / share;
    return MUTANT(STATED_WITHOUT_ROOM, fits, true);
}

static fb_cut *cut_add(fb_node *node, fb_standing *s)
{
    struct fb_spaces *spaces = node->spaces;
    if (spaces->cuts_left == 0) return NULL;
    bool again = spaces->cut_free != 0;
    uint32_t index = again ? spaces->cut_free - 1 : spaces->cut_taken++;
    fb_cut *cut = &spaces->cut[index];
    if (again) spaces->cut_free = cut->next;
    spaces->cuts_left--;
    memset(cut, 0, sizeof *cut);
    cut->used = true;
    cut->next = s->cuts;
    s->cuts = index + 1;
    return cut;
}

static void release(fb_node *node, uint32_t index)
{
    struct fb_spaces *spaces = node->spaces;
    fb_standing *s = &spaces->standing[index];
    uint32_t *at = &fb_member_at(node, s->member)->standings;
    while (*at != index + 1) at = &spaces->standing[*at - 1].next;
    *at = s->next;
    while (s->cuts != 0) {
        uint32_t cut = s->cuts - 1;
        s->cuts = spaces->cut[cut].next;
        spaces->cut[cut].used = false;
        spaces->cut[cut].next = spaces->cut_free;
        spaces->cut_free = cut + 1;
        spaces->cuts_left++;
    }
    s->used = false;
    s->next = spaces->standing_free;
    spaces->standing_free = index + 1;
}

static uint32_t add(fb_node *node, uint32_t member, const fb_dot_stamp *at)
{
    struct fb_spaces *spaces = node->spaces;
    fb_member *m = fb_member_at(node, member);
    for (uint32_t i = m->standings; i != 0; i = spaces->standing[i - 1].next) {
        const fb_dot_stamp *known = &spaces->standing[i - 1].at;
        if (known->incarnation == at->incarnation && known->seq == at->seq &&
            fb_id_equal(known->node, at->node)) {
            return FB_NONE;
        }
    }
    bool again = spaces->standing_free != 0;
    if (!again && spaces->standing_taken == spaces->standing_cap) return FB_NONE;
    uint32_t index = again ? spaces->standing_free - 1 : spaces->standing_taken++;
    fb_standing *s = &spaces->standing[index];
    if (again) spaces->standing_free = s->next;
    memset(s, 0, sizeof *s);
    s->used = true;
    s->member = member;
    s->rank = s->opens = FB_NONE;
    s->at = *at;
    s->next = m->standings;
    m->standings = index + 1;
    return index;
}

/* Store */

static void write_key(const fb_node *node, fb_writer *k, fb_tag tag, const fb_standing *s)
{
    const fb_member *m = fb_member_at(node, s->member);
    fb_write_u8(k, (uint8_t)tag);
    fb_write_u32(k, fb_space_at(node, m->space)->local);
    fb_write_id(k, m->id);
    fb_write_id(k, s->at.node);
    fb_write_u64(k, s->at.incarnation);
    fb_write_u64(k, s->at.seq);
}

static void write_cut_key(const fb_node *node, fb_writer *k, const fb_standing *s,
                          const fb_cut *cut)
{
    write_key(node, k, FB_TAG_CUT, s);
    fb_write_id(k, cut->area);
    fb_write_u64(k, cut->incarnation);
}

static void put_all(fb_node *node, const fb_standing *s)
{
    uint8_t key[96], value[64];
    fb_writer k = fb_writer_of(key, sizeof key), v = fb_writer_of(value, sizeof value);
    fb_space_tells_new(node);
    write_key(node, &k, FB_TAG_STANDING, s);
    fb_write_u8(&v, VALUE_VERSION);
    fb_write_u8(&v, s->number);
    fb_write_u8(&v, (uint8_t)s->role);
    fb_write_id(&v, s->author);
    fb_write_u64(&v, (uint64_t)s->at.stamp);
    fb_write_u64(&v, s->batch);
    fb_write_u64(&v, s->claim);
    fb_put(node, fb_writer_span(&k), fb_writer_span(&v));
    for (uint32_t i = s->cuts; i != 0; i = node->spaces->cut[i - 1].next) {
        const fb_cut *cut = &node->spaces->cut[i - 1];
        k = fb_writer_of(key, sizeof key);
        v = fb_writer_of(value, sizeof value);
        write_cut_key(node, &k, s, cut);
        fb_write_u8(&v, VALUE_VERSION);
        fb_write_u64(&v, cut->number);
        fb_write_bytes(&v, cut->hash, sizeof cut->hash);
        fb_put(node, fb_writer_span(&k), fb_writer_span(&v));
    }
}

static fb_status read_key(fb_node *node, uint32_t space, fb_reader *k, uint32_t *member,
                          fb_dot_stamp *at)
{
    fb_id subject = fb_read_id(k);
    at->node = fb_read_id(k);
    at->incarnation = fb_read_u64(k);
    at->seq = fb_read_u64(k);
    *member = k->failed ? FB_NONE : fb_member_find(node, space, subject);
    return *member == FB_NONE ? FB_ERR_STORE_DAMAGED : FB_OK;
}

fb_status fb_standing_load(fb_node *node, uint32_t space, fb_reader *k, fb_reader *v)
{
    uint32_t member;
    fb_dot_stamp at;
    FB_TRY(read_key(node, space, k, &member, &at));
    uint8_t number = fb_read_u8(v), role = fb_read_u8(v);
    fb_id author = fb_read_id(v);
    uint64_t stamp = fb_read_u64(v), batch = fb_read_u64(v), claim = fb_read_u64(v);
    if (v->failed || number == 0 || role > FB_ROLE_READER) return FB_ERR_STORE_DAMAGED;
    at.stamp = stamp <= INT64_MAX ? (int64_t)stamp : -(int64_t)(UINT64_MAX - stamp) - 1;
    uint32_t index = add(node, member, &at);
    if (index == FB_NONE) return FB_ERR_LIMIT;
    fb_standing *s = standing_at(node, index);
    s->number = number;
    s->role = (fb_role)role;
    s->author = author;
    s->batch = batch;
    s->claim = claim;
    return FB_OK;
}

fb_status fb_cut_load(fb_node *node, uint32_t space, fb_reader *k, fb_reader *v)
{
    uint32_t member;
    fb_dot_stamp at;
    FB_TRY(read_key(node, space, k, &member, &at));
    for (uint32_t i = fb_member_at(node, member)->standings; i != 0;
         i = standing_at(node, i - 1)->next) {
        fb_standing *s = standing_at(node, i - 1);
        if (s->at.incarnation != at.incarnation || s->at.seq != at.seq ||
            !fb_id_equal(s->at.node, at.node)) {
            continue;
        }
        fb_cut *cut = cut_add(node, s);
        if (cut == NULL) return FB_ERR_LIMIT;
        cut->area = fb_read_id(k);
        cut->incarnation = fb_read_u64(k);
        cut->number = fb_read_u64(v);
        fb_read_into(v, cut->hash, sizeof cut->hash);
        return FB_OK;
    }
    return FB_ERR_STORE_DAMAGED;
}

/* Taking */

/* Which of them is kept depends on the order of arrival, and nothing else does: each gives the same
 * term (judge.c). */
bool fb_standing_is_repeated(const fb_node *node, uint32_t member, const fb_statement *statement)
{
    if (statement->kind != FB_STATEMENT_RECOVERY) return false;
    for (uint32_t i = fb_member_at(node, member)->standings; i != 0;) {
        const fb_standing *s = standing_at(node, i - 1);
        i = s->next;
        bool same = s->number == statement->number && s->claim == statement->turn;
        if (same && fb_standing_is_recovery(s)) return true;
    }
    return false;
}

bool fb_standing_take(fb_node *node, uint32_t member, const fb_statement *statement,
                      const fb_own_change *change)
{
    if (fb_standing_is_repeated(node, member, statement)) return false;
    const fb_dot_stamp at = {change->stamp, change->dot_node, change->dot_incarnation,
                             change->dot_seq};
    uint32_t index = add(node, member, &at);
    if (index == FB_NONE) return false;
    fb_standing *s = standing_at(node, index);
    s->number = statement->number;
    s->role = statement->role;
    s->batch = change->number;
    if (statement->kind == FB_STATEMENT_RECOVERY) {
        s->claim = statement->turn;
    } else {
        s->author = fb_node_id_of(node->options.provider, &change->author);
        s->claim = change->claim;
    }
    fb_cut_walk walk = fb_cut_walk_of(statement->cut);
    fb_cut_entry entry;
    while (fb_cut_next(&walk, &entry)) {
        fb_cut *cut = cut_add(node, s);
        FB_ASSERT(cut != NULL); /* asked for when the statement was checked */
        cut->area = entry.area;
        cut->incarnation = entry.incarnation;
        cut->number = entry.number;
        memcpy(cut->hash, entry.hash, sizeof cut->hash);
    }
    put_all(node, s);
    return true;
}

void fb_standing_drop(fb_node *node, uint32_t member)
{
    while (fb_member_at(node, member)->standings != 0) {
        release(node, fb_member_at(node, member)->standings - 1);
    }
}

/* What counts of what stands. */

/* Of two statements with one number: does a count before b? */
static bool counts_before(const fb_standing *a, const fb_standing *b)
{
    if (!is_taking(a)) {
        if (a->role != b->role) return a->role < b->role;
        return fb_dot_stamp_compare(&a->at, &b->at) < 0;
    }
    if (a->rank != b->rank) return a->rank < b->rank;
    return fb_dot_stamp_compare(&a->at, &b->at) > 0;
}

uint32_t fb_standing_counting(const fb_node *node, uint32_t member, uint32_t number)
{
    uint32_t found = FB_NONE;
    for (uint32_t i = fb_member_at(node, member)->standings; i != 0;) {
        const fb_standing *s = standing_at(node, i - 1);
        uint32_t index = i - 1;
        i = s->next;
        if (s->number != number || !s->stands) continue;
        if (found == FB_NONE ||
            MUTANT(FIRST_REMOVAL_COUNTS, counts_before(s, standing_at(node, found)), true)) {
            found = index;
        }
    }
    return found;
}

uint32_t fb_standing_top(const fb_node *node, uint32_t member)
{
    uint32_t top = 0;
    for (uint32_t i = fb_member_at(node, member)->standings; i != 0;) {
        const fb_standing *s = standing_at(node, i - 1);
        i = s->next;
        bool later = MUTANT(OLD_RUMOUR_ADDS, s->number > top, top == 0);
        if (s->stands && later) top = s->number;
    }
    return top == 0 ? FB_NONE : fb_standing_counting(node, member, top);
}

static bool is_creator(const fb_node *node, const fb_member *m)
{
    return fb_b32_equal(m->key, fb_space_at(node, m->space)->creator);
}

/* The statement under which somebody claims to act, FB_NONE: none of them, or one not known here.
 * Of those that give, any with that number. */
static uint32_t claimed(const fb_node *node, uint32_t member, uint64_t claim)
{
    uint32_t number = FB_CLAIM_NUMBER(claim), tag = FB_CLAIM_TAG(claim);
    for (uint32_t i = fb_member_at(node, member)->standings; i != 0;) {
        const fb_standing *s = standing_at(node, i - 1);
        if (s->number == number && (number % 2 != 0 || tag_of(&s->at) == tag)) return i - 1;
        i = s->next;
    }
    return FB_NONE;
}

fb_status fb_standing_stated(const fb_node *node, uint32_t member, uint64_t claim, bool *admin)
{
    const fb_member *m = fb_member_at(node, member);
    uint32_t number = FB_CLAIM_NUMBER(claim);
    *admin = number == 1 && is_creator(node, m);
    if (*admin) return FB_OK;
    if (claimed(node, member, claim) == FB_NONE) {
        /* Known by an invite, or by a statement that it showed. */
        return number == 1 && m->introduced ? FB_OK : FB_ERR_BATCH_EPOCH;
    }
    for (uint32_t i = m->standings; i != 0;) {
        const fb_standing *s = standing_at(node, i - 1);
        i = s->next;
        *admin |= s->number == number && s->role == FB_ROLE_ADMIN;
    }
    return FB_OK;
}

static fb_role greater(fb_role a, fb_role b)
{
    if (a == FB_ROLE_NONE || b == FB_ROLE_NONE) return a == FB_ROLE_NONE ? b : a;
    return a < b ? a : b;
}

fb_status fb_standing_role(const fb_node *node, uint32_t member, uint64_t claim, fb_role *role)
{
    const fb_member *m = fb_member_at(node, member);
    bool admin;
    FB_TRY(fb_standing_stated(node, member, claim, &admin));
    uint32_t number = FB_CLAIM_NUMBER(claim), last = is_creator(node, m);
    fb_role of_last = last == 1 ? FB_ROLE_ADMIN : FB_ROLE_NONE, later = FB_ROLE_NONE;
    for (uint32_t i = m->standings; i != 0;) {
        const fb_standing *s = standing_at(node, i - 1);
        i = s->next;
        if (!s->stands) continue;
        if (s->number > number) later = greater(later, s->role);
        if (s->number <= number && s->number > last) last = s->number;
    }
    if (last != 0) {
        uint32_t under = number % 2 == 0 && last == number ? claimed(node, member, claim) : FB_NONE;
        if (under == FB_NONE || !standing_at(node, under)->stands) {
            under = fb_standing_counting(node, member, last);
        }
        if (under != FB_NONE && !(last == 1 && is_creator(node, m))) {
            of_last = standing_at(node, under)->role;
        }
    } else if (m->standings == 0 && m->introduced) {
        of_last = m->role;
    }
    *role = greater(of_last, later);
    return FB_OK;
}

const fb_cut *fb_standing_cut(const fb_node *node, const fb_standing *s, fb_id area,
                              uint64_t incarnation)
{
    for (uint32_t i = s->cuts; i != 0; i = node->spaces->cut[i - 1].next) {
        const fb_cut *cut = &node->spaces->cut[i - 1];
        if (cut->incarnation == incarnation && fb_id_equal(cut->area, area)) return cut;
    }
    return NULL;
}

fb_status fb_standing_judge(const fb_node *node, uint32_t member, uint64_t claim, fb_id area,
                            uint64_t incarnation, uint64_t number, const uint8_t *hash)
{
    const fb_member *m = fb_member_at(node, member);
    uint32_t under = FB_CLAIM_NUMBER(claim) % 2 == 0 ? claimed(node, member, claim) : FB_NONE;
    for (uint32_t i = m->standings; i != 0;) {
        const fb_standing *s = standing_at(node, i - 1);
        uint32_t index = i - 1;
        i = s->next;
        if (!is_taking(s) || s->number < FB_CLAIM_NUMBER(claim) || index == under) continue;
        /* One that leaves the right to write data takes nothing from it. */
        if (s->role == FB_ROLE_WRITER) continue;
        if (fb_standing_counting(node, member, s->number) != index) continue;
        /* Who leaves names no cut. */
        if (MUTANT(LEAVING_CUTS, fb_id_equal(s->author, m->id), false)) continue;
        const fb_cut *cut = fb_standing_cut(node, s, area, incarnation);
        uint64_t last = cut == NULL ? 0 : cut->number;
        if (number > MUTANT(CUT_ONE_TOO_FAR, last, last + 1)) return FB_ERR_BATCH_CUT;
        if (number == last && hash != NULL && memcmp(hash, cut->hash, sizeof cut->hash) != 0) {
            return FB_ERR_BATCH_CUT;
        }
    }
    return FB_OK;
}

uint64_t fb_standing_limit(const fb_node *node, uint32_t member, fb_id area, uint64_t incarnation)
{
    const fb_member *m = fb_member_at(node, member);
    uint32_t top = fb_standing_top(node, member);
    /* What was stated of it does not stand. */
    if (top == FB_NONE) return m->standings == 0 || is_creator(node, m) ? UINT64_MAX : 0;
    const fb_standing *s = standing_at(node, top);
    bool ends = is_taking(s) && s->role != FB_ROLE_WRITER;
    bool leaves = MUTANT(LEAVING_CUTS, fb_id_equal(s->author, m->id), false);
    if (!ends || leaves) return UINT64_MAX;
    const fb_cut *cut = fb_standing_cut(node, s, area, incarnation);
    uint64_t last = cut == NULL ? 0 : cut->number;
    return MUTANT(CUT_ONE_TOO_FAR, last, last + 1);
}

uint64_t fb_standing_claim(const fb_node *node, uint32_t member)
{
    uint32_t top = fb_standing_top(node, member);
    if (top == FB_NONE) return FB_CLAIM_FIRST;
    const fb_standing *s = standing_at(node, top);
    return FB_CLAIM(s->number, is_taking(s) ? tag_of(&s->at) : 0);
}

bool fb_standing_left(const fb_node *node, uint32_t member)
{
    uint32_t top = fb_standing_top(node, member);
    if (top == FB_NONE) return false;
    const fb_standing *s = standing_at(node, top);
    return s->role == FB_ROLE_NONE && fb_id_equal(s->author, fb_member_at(node, member)->id);
}

bool fb_standing_is_cut(const fb_node *node, uint32_t member)
{
    for (uint32_t i = fb_member_at(node, member)->standings; i != 0;) {
        const fb_standing *s = standing_at(node, i - 1);
        if (is_taking(s)) return true;
        i = s->next;
    }
    return false;
}

uint32_t fb_standing_last_turn(const fb_node *node, uint32_t space)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < node->spaces->standing_taken; i++) {
        const fb_standing *s = standing_at(node, i);
        if (!s->used || !fb_standing_is_recovery(s)) continue;
        if (fb_member_at(node, s->member)->space != space || s->claim <= last) continue;
        last = (uint32_t)s->claim;
    }
    return last;
}

void fb_standing_digest(const fb_node *node, uint32_t member, fb_writer *w)
{
    /* The order of the list is that of arrival: a sum does not depend on it. */
    uint64_t sum = 0;
    for (uint32_t i = fb_member_at(node, member)->standings; i != 0;) {
        const fb_standing *s = standing_at(node, i - 1);
        i = s->next;
        sum += fb_xxh64((const uint8_t[2]){s->number, (uint8_t)s->role}, 2, tag_of(&s->at));
    }
    fb_write_u64(w, sum);
}
