/* SPDX-License-Identifier: Apache-2.0 */
/* The judgement of statements once more, and not as the core does it: no order of terms, but a
 * fixed point. Everything stands at first; with what stands, each statement has the best path of
 * grants from the creator to its author; with the paths it is worked out anew what stands, until
 * nothing changes. What rests on n grants is right after n rounds, and it is right for good, as it
 * depends on better paths alone. */
#include "sim/checkers/standing.h"

#include "protocol/base/hash.h"
#include "protocol/database/database.h"
#include "protocol/store/keys.h"

#define STATED_MAX 512u
#define CUTS_MAX   1024u
#define ROOT       STATED_MAX
#define NOWHERE    (STATED_MAX + 1u)
#define KEY        (STATED_MAX + 2u) /* the recovery key: what it grants is before the root */
#define ADMIN      1u

typedef struct stated {
    fb_id subject, author;
    uint8_t dot[32];
    int64_t stamp;
    uint64_t incarnation, batch;
    uint32_t claim;
    uint32_t turn; /* of the recovery key; 0: somebody else stated it */
    uint8_t number, role;
    bool stands;
    uint32_t up;    /* the grant that its author acts under: its index, ROOT, KEY or NOWHERE */
    uint32_t depth; /* grants from the creator to its author, one more */
} stated;

typedef struct cut {
    uint8_t dot[32];
    uint64_t incarnation, number;
} cut;

/* What one store states, and what comes of that. */
typedef struct statements {
    stated all[STATED_MAX];
    cut cuts[CUTS_MAX];
    uint32_t count, cut_count;
    uint32_t local;
    fb_id area, creator;
    bool full;
    uint64_t hash[2]; /* of all that was read; zeros: nothing was */
} statements;

/* Nodes are asked again and again, and all of them state the same as a rule: what was judged lately
 * is not judged anew. One place more is there to read into. */
#define JUDGED 8u

struct fb_sim_standing {
    statements *now;
    statements places[JUDGED + 1];
    uint32_t next;
};

size_t fb_sim_standing_bytes(void)
{
    return sizeof(fb_sim_standing);
}

/* The area's number in that store is no part of what is stated. */
static void add_hash(statements *s, fb_span key, fb_span value)
{
    for (uint32_t i = 0; i < 2; i++) {
        s->hash[i] = fb_xxh64(key.p + 5, key.len - 5, s->hash[i] + i + 1);
        s->hash[i] = fb_xxh64(value.p, value.len, s->hash[i]);
    }
}

static void take_stated(void *user, fb_span key, fb_span value)
{
    statements *s = user;
    fb_reader k = fb_reader_of(key), v = fb_reader_of(value);
    fb_read_u8(&k);
    if (fb_read_u32(&k) != s->local) return;
    add_hash(s, key, value);
    if (s->count == STATED_MAX) {
        s->full = true;
        return;
    }
    stated *t = &s->all[s->count++];
    memset(t, 0, sizeof *t);
    t->subject = fb_read_id(&k);
    fb_read_into(&k, t->dot, sizeof t->dot);
    fb_reader dot = fb_reader_of(fb_span_of(t->dot + 16, 8));
    t->incarnation = fb_read_u64(&dot);
    fb_read_u8(&v);
    t->number = fb_read_u8(&v);
    t->role = fb_read_u8(&v);
    t->author = fb_read_id(&v);
    t->stamp = (int64_t)fb_read_u64(&v);
    t->batch = fb_read_u64(&v);
    uint64_t claim = fb_read_u64(&v);
    t->claim = (uint32_t)(claim >> 32);
    if (fb_id_is_zero(t->author)) t->turn = (uint32_t)claim;
    t->stands = true;
}

static void take_cut(void *user, fb_span key, fb_span value)
{
    statements *s = user;
    fb_reader k = fb_reader_of(key), v = fb_reader_of(value);
    fb_read_u8(&k);
    if (fb_read_u32(&k) != s->local) return;
    cut c;
    fb_read_bytes(&k, 16);
    fb_read_into(&k, c.dot, sizeof c.dot);
    fb_id area = fb_read_id(&k);
    c.incarnation = fb_read_u64(&k);
    fb_read_u8(&v);
    c.number = fb_read_u64(&v);
    if (!fb_id_equal(area, s->area)) return;
    add_hash(s, key, value);
    if (s->cut_count == CUTS_MAX) {
        s->full = true;
        return;
    }
    s->cuts[s->cut_count++] = c;
}

static int by_dot(const stated *a, const stated *b)
{
    if (a->stamp != b->stamp) return a->stamp < b->stamp ? -1 : 1;
    return memcmp(a->dot, b->dot, sizeof a->dot);
}

static uint32_t depth_of(const statements *s, uint32_t place)
{
    return place == ROOT ? 1 : s->all[place].depth + 1;
}

/* Two places on paths: the shorter path is the better, then the one whose first other step is. */
static int compare(const statements *s, uint32_t a, uint32_t b)
{
    if (a == b) return 0;
    if (a == KEY || b == KEY) return a == KEY ? -1 : 1;
    if (a == NOWHERE || b == NOWHERE) return a == NOWHERE ? 1 : -1;
    uint32_t depth_a = depth_of(s, a), depth_b = depth_of(s, b);
    if (depth_a != depth_b) return depth_a < depth_b ? -1 : 1;
    /* Grants of the recovery key are as long as the root, and before it: the last turn first. */
    if (a == ROOT || b == ROOT) return a == ROOT ? 1 : -1;
    const stated *x = &s->all[a], *y = &s->all[b];
    if (x->turn != y->turn) return x->turn > y->turn ? -1 : 1;
    if (x->turn != 0) {
        int member = memcmp(x->subject.b, y->subject.b, sizeof x->subject.b);
        if (member == 0) member = (int)x->number - (int)y->number;
        return member != 0 ? member : by_dot(x, y);
    }
    int order = compare(s, s->all[a].up, s->all[b].up);
    return order != 0 ? order : by_dot(&s->all[a], &s->all[b]);
}

/* The best grant that makes somebody an admin under a number. */
static uint32_t grant_of(const statements *s, fb_id member, uint32_t number)
{
    if (number == 1 && fb_id_equal(member, s->creator)) return ROOT;
    uint32_t best = NOWHERE;
    for (uint32_t i = 0; i < s->count; i++) {
        const stated *g = &s->all[i];
        if (!g->stands || g->up == NOWHERE || g->number != number || number % 2 == 0 ||
            g->role != ADMIN || !fb_id_equal(g->subject, member)) {
            continue;
        }
        if (compare(s, i, best) < 0) best = i;
    }
    return best;
}

static void find_paths(statements *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        s->all[i].up = s->all[i].turn != 0 ? KEY : NOWHERE;
        s->all[i].depth = 0;
    }
    /* Those with paths of one length, then of the next. */
    for (uint32_t depth = 1; depth <= s->count + 1; depth++) {
        bool any = false;
        for (uint32_t i = 0; i < s->count; i++) {
            stated *t = &s->all[i];
            if (t->up != NOWHERE) continue;
            uint32_t up = grant_of(s, t->author, t->claim);
            if (up == NOWHERE || depth_of(s, up) != depth) continue;
            t->depth = depth;
            t->up = up;
            any = true;
        }
        if (!any) break;
    }
}

/* Of the takings with one number, the one that counts. */
static uint32_t taking_of(const statements *s, fb_id member, uint32_t number)
{
    uint32_t best = NOWHERE;
    for (uint32_t i = 0; i < s->count; i++) {
        const stated *t = &s->all[i];
        if (!t->stands || t->number != number || !fb_id_equal(t->subject, member)) continue;
        if (best != NOWHERE) {
            int order = compare(s, t->up, s->all[best].up);
            if (order > 0 || (order == 0 && by_dot(t, &s->all[best]) < 0)) continue;
        }
        best = i;
    }
    return best;
}

static bool is_cut(const statements *s, const stated *t)
{
    for (uint32_t number = 2; number <= 254; number += 2) {
        if (number <= t->claim) continue;
        uint32_t best = taking_of(s, t->author, number);
        if (best == NOWHERE || fb_id_equal(s->all[best].author, t->author)) continue;
        if (compare(s, s->all[best].up, t->up) >= 0) continue;
        uint64_t last = 0;
        for (uint32_t i = 0; i < s->cut_count; i++) {
            const cut *c = &s->cuts[i];
            if (c->incarnation == t->incarnation && memcmp(c->dot, s->all[best].dot, 32) == 0) {
                last = c->number;
            }
        }
        if (t->batch > last) return true;
    }
    return false;
}

static bool judge(statements *s)
{
    static bool stands[STATED_MAX];
    bool changed = false;
    find_paths(s);
    for (uint32_t i = 0; i < s->count; i++) {
        const stated *t = &s->all[i];
        if (t->turn != 0) {
            stands[i] = true;
            continue;
        }
        bool leaves = t->number % 2 == 0 && t->role == 0 && fb_id_equal(t->author, t->subject);
        stands[i] = (t->up != NOWHERE || leaves) && !is_cut(s, t);
        changed |= stands[i] != t->stands;
    }
    for (uint32_t i = 0; i < s->count; i++) s->all[i].stands = stands[i];
    return changed;
}

bool fb_sim_standing_read(fb_sim_standing *standing, const fb_sim_store *store, uint32_t local,
                          fb_id space, fb_id creator)
{
    static const uint8_t standings = FB_TAG_STANDING, cuts = FB_TAG_CUT;
    statements *s = &standing->places[standing->next];
    s->count = s->cut_count = 0;
    s->full = false;
    s->local = local;
    s->creator = creator;
    s->area = fb_area_id(space, FB_AREA_SPACE, (fb_span){NULL, 0});
    s->hash[0] = s->hash[1] = 1;
    fb_sim_store_walk(store, fb_span_of(&standings, 1), take_stated, s);
    fb_sim_store_walk(store, fb_span_of(&cuts, 1), take_cut, s);
    for (uint32_t i = 0; i <= JUDGED; i++) {
        statements *known = &standing->places[i];
        if (i == standing->next || memcmp(known->hash, s->hash, sizeof s->hash) != 0 ||
            !fb_id_equal(known->area, s->area) || !fb_id_equal(known->creator, creator)) {
            continue;
        }
        standing->now = known;
        return !known->full;
    }
    for (uint32_t round = 0; !s->full && round <= s->count + 1 && judge(s); round++) {
    }
    standing->now = s;
    standing->next = (standing->next + 1) % (JUDGED + 1);
    return !s->full;
}

uint8_t fb_sim_standing_role(const fb_sim_standing *standing, fb_id member, bool *known)
{
    const statements *s = standing->now;
    const stated *top = NULL;
    *known = false;
    for (uint32_t i = 0; i < s->count; i++) {
        const stated *t = &s->all[i];
        if (!fb_id_equal(t->subject, member)) continue;
        *known = true;
        if (!t->stands || (top != NULL && t->number < top->number)) continue;
        if (top != NULL && t->number == top->number && t->role >= top->role) continue;
        top = t;
    }
    if (top != NULL && top->number % 2 == 0) return s->all[taking_of(s, member, top->number)].role;
    bool creator = fb_id_equal(member, s->creator);
    if (creator && (top == NULL || top->number == 1)) return ADMIN;
    return top == NULL ? 0 : top->role;
}

uint32_t fb_sim_standing_turn(const fb_sim_standing *standing)
{
    const statements *s = standing->now;
    uint32_t last = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->all[i].turn > last) last = s->all[i].turn;
    }
    return last;
}

bool fb_sim_standing_stands(const fb_sim_standing *standing, fb_id member, const uint8_t dot[32])
{
    const statements *s = standing->now;
    for (uint32_t i = 0; i < s->count; i++) {
        const stated *t = &s->all[i];
        if (fb_id_equal(t->subject, member) && memcmp(t->dot, dot, 32) == 0) return t->stands;
    }
    return false;
}

typedef struct finding {
    fb_id space;
    uint32_t local;
} finding;

static void take_space(void *user, fb_span key, fb_span value)
{
    finding *f = user;
    fb_reader k = fb_reader_of(key), v = fb_reader_of(value);
    fb_read_u8(&k);
    uint32_t local = fb_read_u32(&k);
    if (fb_read_u8(&k) != 0 || !fb_reader_done(&k)) return;
    fb_read_u8(&v);
    if (fb_id_equal(fb_read_id(&v), f->space)) f->local = local;
}

uint32_t fb_sim_standing_local(const fb_sim_store *store, fb_id space)
{
    static const uint8_t spaces = FB_TAG_SPACE;
    finding f = {space, 0};
    fb_sim_store_walk(store, fb_span_of(&spaces, 1), take_space, &f);
    return f.local;
}
