/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/database.h"
#include "protocol/database/keys.h"
#include "protocol/store/keys.h"
#include "sim/checkers/list.h"
#include "sim/checkers/standing.h"

/* Once a core is healed, no store of it holds a batch of data that is above a cut: signed under a
 * statement before the one that took the right away, and further than that one names, or of a life
 * that it does not name. Read from what is stored alone: statements, cuts, headers of batches. What
 * a cut change had replaced is seen again because stores that undid it agree with those it never
 * reached (`converges`, `tree-recomputed`).
 *
 * And where nobody took anything from anybody, nothing is cut: who leaves takes nothing away.
 *
 * What does not stand cuts nothing (standing.c). Members from whom something was taken twice under
 * one number are not looked at: which of the two counts is what the core works out, and
 * `membership` compares. */

#define TAKINGS_MAX 64u
#define CUTS_MAX    1024u
#define WRITER      2u

typedef struct taking {
    fb_id subject, author;
    uint8_t dot[32];
    uint8_t number, role;
    bool several;
} taking;

typedef struct cut {
    uint8_t dot[32];
    fb_id area;
    uint64_t incarnation, number;
} cut;

typedef struct state {
    taking *takings;
    cut *cuts;
    fb_sim_standing *standing;
    uint32_t taking_count, cut_count;
    fb_id space;
    fb_id own_area, reports;
    /* What is found wrong. */
    bool wrong;
    fb_id signer;
    uint64_t number, last;
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    (void)world;
    taking *takings = fb_arena_take(arena, TAKINGS_MAX, sizeof *takings);
    cut *cuts = fb_arena_take(arena, CUTS_MAX, sizeof *cuts);
    fb_sim_standing *standing = fb_arena_take(arena, 1, fb_sim_standing_bytes());
    if (own == NULL) return;
    ((state *)own)->takings = takings;
    ((state *)own)->cuts = cuts;
    ((state *)own)->standing = standing;
}

static void take_standing(void *user, fb_span key, fb_span value)
{
    state *s = user;
    fb_reader k = fb_reader_of(key), v = fb_reader_of(value);
    fb_read_bytes(&k, 5);
    taking t = {.several = false};
    t.subject = fb_read_id(&k);
    fb_read_into(&k, t.dot, 32);
    fb_read_u8(&v);
    t.number = fb_read_u8(&v);
    t.role = fb_read_u8(&v);
    t.author = fb_read_id(&v);
    if (k.failed || v.failed || t.number % 2 != 0 || s->taking_count == TAKINGS_MAX) return;
    if (!fb_sim_standing_stands(s->standing, t.subject, t.dot)) return;
    for (uint32_t i = 0; i < s->taking_count; i++) {
        if (s->takings[i].number != t.number || !fb_id_equal(s->takings[i].subject, t.subject)) {
            continue;
        }
        s->takings[i].several = t.several = true;
    }
    s->takings[s->taking_count++] = t;
}

static void take_cut(void *user, fb_span key, fb_span value)
{
    state *s = user;
    fb_reader k = fb_reader_of(key), v = fb_reader_of(value);
    if (s->cut_count == CUTS_MAX) return;
    cut *c = &s->cuts[s->cut_count];
    fb_read_bytes(&k, 5 + 16);
    fb_read_into(&k, c->dot, 32);
    c->area = fb_read_id(&k);
    c->incarnation = fb_read_u64(&k);
    fb_read_u8(&v);
    c->number = fb_read_u64(&v);
    if (!k.failed && !v.failed) s->cut_count++;
}

static uint64_t last_of(const state *s, const taking *t, fb_id area, uint64_t incarnation)
{
    for (uint32_t i = 0; i < s->cut_count; i++) {
        const cut *c = &s->cuts[i];
        if (c->incarnation == incarnation && fb_id_equal(c->area, area) &&
            memcmp(c->dot, t->dot, 32) == 0) {
            return c->number;
        }
    }
    return 0;
}

/* The number of the statement that the signer acted under: 1 unless its epoch says otherwise. */
static uint32_t claim_of(fb_reader *r, fb_id signer)
{
    uint32_t claim = 1;
    if (fb_read_u8(r) == 1) fb_read_bytes(r, 48);
    fb_read_bytes(r, 32 + 2);
    uint16_t entries = fb_read_u16(r);
    for (uint16_t i = 0; i < entries && !r->failed; i++) {
        fb_id node = fb_read_id(r);
        uint64_t incarnation = fb_read_u64(r), batch = fb_read_u64(r);
        if (incarnation == 0 && fb_id_equal(node, signer)) claim = (uint32_t)(batch >> 32);
    }
    return claim;
}

static void look_at_batch(void *user, fb_span key, fb_span value)
{
    state *s = user;
    fb_reader k = fb_reader_of(key), v = fb_reader_of(value);
    fb_read_bytes(&k, 5);
    fb_id signer = fb_read_id(&k);
    uint64_t incarnation = fb_read_u64(&k), number = fb_read_u64(&k);
    fb_read_u8(&v);
    fb_reader h = fb_reader_of(fb_read_span16(&v));
    fb_id space = fb_read_id(&h), area = fb_read_id(&h);
    fb_read_b32(&h);
    fb_read_bytes(&h, 24);
    uint32_t claim = claim_of(&h, signer);
    if (h.failed || k.failed || fb_id_equal(area, s->own_area)) return;
    /* What a member says to hold is not taken back. */
    if (fb_id_equal(area, s->reports)) return;
    /* Rights are taken away in the first space alone. */
    if (!fb_id_equal(space, s->space)) return;
    for (uint32_t i = 0; i < s->taking_count; i++) {
        const taking *t = &s->takings[i];
        if (t->several || t->role == WRITER || !fb_id_equal(t->subject, signer) ||
            fb_id_equal(t->author, signer) || claim >= t->number) {
            continue;
        }
        uint64_t last = last_of(s, t, area, incarnation);
        if (number <= last) continue;
        s->wrong = true;
        s->signer = signer;
        s->number = number;
        s->last = last;
    }
}

static bool is_first_of_subject(const state *s, uint32_t place)
{
    for (uint32_t i = 0; i < place; i++) {
        if (fb_id_equal(s->takings[i].subject, s->takings[place].subject)) return false;
    }
    return true;
}

/* Area after area, what those signed from whom something was taken: most batches are of others. */
static void look_at_batches(state *s, const fb_sim_store *store)
{
    fb_span key;
    for (uint64_t area = 0; area <= UINT32_MAX; area++) {
        uint8_t prefix[1 + 4 + 16] = {FB_TAG_BATCH};
        fb_store_be32(prefix + 1, (uint32_t)area);
        if (!fb_sim_store_first(store, fb_span_of(prefix, 5), &key)) return;
        if (key.len != FB_BATCH_KEY_BYTES || key.p[0] != FB_TAG_BATCH) return;
        area = fb_load_be32(key.p + 1);
        fb_store_be32(prefix + 1, (uint32_t)area);
        for (uint32_t i = 0; i < s->taking_count; i++) {
            if (!is_first_of_subject(s, i)) continue;
            memcpy(prefix + 5, s->takings[i].subject.b, 16);
            fb_sim_store_walk(store, fb_span_of(prefix, sizeof prefix), look_at_batch, s);
        }
    }
}

static void round_end(fb_sim_world *world, void *own)
{
    state *s = own;
    static const uint8_t standings = FB_TAG_STANDING, cuts = FB_TAG_CUT;
    s->space = world->spaces[0];
    s->own_area = fb_area_id(world->spaces[0], FB_AREA_SPACE, (fb_span){NULL, 0});
    s->reports = fb_area_id(world->spaces[0], FB_AREA_REPORTS, (fb_span){NULL, 0});
    for (uint32_t i = 0; i < world->config.nodes && !world->stop; i++) {
        if (world->held_apart[i]) continue;
        const fb_sim_store *store = &world->nodes[i].store;
        s->taking_count = s->cut_count = 0;
        s->wrong = false;
        uint32_t local = fb_sim_standing_local(store, s->space);
        fb_id creator = world->nodes[fb_sim_creator(world, 0)].home;
        if (local == 0 || !fb_sim_standing_read(s->standing, store, local, s->space, creator)) {
            continue;
        }
        fb_sim_store_walk(store, fb_span_of(&standings, 1), take_standing, s);
        if (s->taking_count == 0 || s->taking_count == TAKINGS_MAX) continue;
        fb_sim_store_walk(store, fb_span_of(&cuts, 1), take_cut, s);
        if (s->cut_count == CUTS_MAX) continue;
        look_at_batches(s, store);
        if (!s->wrong) continue;
        uint32_t signer = 0;
        while (signer < world->config.nodes && !fb_id_equal(world->nodes[signer].id, s->signer)) {
            signer++;
        }
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_revocation_cut.id,
                        "%s holds batch %llu of %s, which was cut at %llu", fb_sim_name(i),
                        (unsigned long long)s->number, fb_sim_name(signer),
                        (unsigned long long)s->last);
    }
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)own;
    (void)fx;
    if (world->fired[FB_SIM_FAULT_REVOKE] != 0 || world->fired[FB_SIM_FAULT_ROLES] != 0) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_revocation_cut.id,
                    "%s takes a batch back, and nobody took a right away", fb_sim_name(node));
}

const fb_sim_check fb_sim_check_revocation_cut = {
    .id = "revocation-cut",
    .musts = "DESIGN 3.1",
    .cost = "round",
    .text = "nothing that is above a cut is left in any store, and nothing else is taken back",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_CUT),
    .fact = fact,
    .round = round_end,
};
