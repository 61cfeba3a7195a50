/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/state.h"
#include "protocol/space/table.h"
#include "sim/checkers/list.h"
#include "sim/workload/feeds.h"

/* A feed of changes is the changelog behind its cursor: in order, without a gap, nothing twice,
 * nothing at or below the place that was asked for, nothing that a crash could take back, and a
 * mark of progress only behind what it stands for. It goes on from a cursor that its store gave,
 * whatever happened in between, or says that it cannot, and then it is true: what follows is not
 * kept any more, or the store is another one than it was.
 *
 * What the changelog is, is known from the facts: each change that a node writes or applies is one
 * entry, and so is each record that a cut took something out of. When a life begins, the store says
 * what there is; what was stored before must be there. */

/* Entries that are known: some times as many as a node keeps (128 in the simulator's sizes). */
#define RING 256u

typedef struct entry {
    uint64_t incarnation;
    uint64_t w;
    fb_id record;
    bool hidden; /* a statement: applications are not told */
    bool stored;
} entry;

typedef struct node_state {
    entry *ring;
    uint64_t last;   /* sequence of the newest one */
    uint64_t stored; /* up to here it is in the store */
    bool replaced;   /* the store is another one since */
} node_state;

typedef struct state {
    node_state *nodes;
    fb_id notes, own; /* areas */
    bool known;
} state;

static void layout(fb_sim_world *world, void *state_of, fb_arena *arena)
{
    state local;
    state *s = state_of != NULL ? state_of : &local;
    s->nodes = fb_arena_take(arena, world->config.nodes, sizeof *s->nodes);
    entry *ring = fb_arena_take(arena, (size_t)world->config.nodes * RING, sizeof *ring);
    for (uint32_t i = 0; arena->base != NULL && i < world->config.nodes; i++) {
        s->nodes[i].ring = ring + (size_t)i * RING;
    }
}

static void wrong(fb_sim_world *world, uint32_t node, const char *what, uint64_t sequence)
{
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_change_feed.id, "a feed of %s %s %llu",
                    fb_sim_name(node), what, (unsigned long long)sequence);
}

static entry *entry_at(const node_state *n, uint64_t sequence)
{
    return &n->ring[sequence % RING];
}

/* Beyond that nothing is known. */
static bool in_ring(const node_state *n, uint64_t sequence)
{
    return sequence != 0 && sequence <= n->last && sequence + RING > n->last;
}

/* The store gave this cursor and still has what stands there. */
static bool is_of_store(const node_state *n, fb_sim_cursor c)
{
    if (c.sequence == 0) return c.incarnation == 0;
    return in_ring(n, c.sequence) && entry_at(n, c.sequence)->stored &&
           entry_at(n, c.sequence)->incarnation == c.incarnation;
}

/* What the store has when a life begins. */
typedef struct loading {
    fb_sim_world *world;
    uint32_t node;
    node_state *n;
    uint64_t before; /* what was stored, by the facts */
    bool compare;
    uint32_t own_local;
} loading;

static void load_at(void *user, fb_span key, fb_span value)
{
    loading *l = user;
    fb_reader k = fb_reader_of(key), v = fb_reader_of(value);
    fb_read_bytes(&k, 5);
    uint64_t sequence = fb_read_u64(&k);
    entry e = {.stored = true};
    fb_read_u8(&v);
    e.incarnation = fb_read_u64(&v);
    e.hidden = fb_read_u32(&v) == l->own_local;
    e.record = fb_read_id(&v);
    entry *known = entry_at(l->n, sequence);
    if (l->compare && sequence <= l->before && in_ring(l->n, sequence) &&
        (!fb_id_equal(known->record, e.record) || known->incarnation != e.incarnation)) {
        wrong(l->world, l->node, "has another entry now of number", sequence);
    }
    *known = e;
    if (sequence > l->n->last || !l->compare) l->n->last = sequence;
    l->n->stored = sequence;
}

static uint32_t space_of(const fb_sim_world *world, const fb_node *core)
{
    if (!world->config.reference) return FB_NONE; /* a toy */
    for (uint32_t i = 0; i < core->options.sizes.spaces; i++) {
        if (fb_space_at(core, i)->used && fb_id_equal(fb_space_at(core, i)->id, world->spaces[0])) {
            return i;
        }
    }
    return FB_NONE;
}

static void started(fb_sim_world *world, state *s, uint32_t node)
{
    node_state *n = &s->nodes[node];
    const fb_node *core = world->nodes[node].core;
    uint32_t space = space_of(world, core);
    uint8_t prefix[5] = {FB_TAG_CHANGELOG};
    loading l = {world, node, n, n->stored, !n->replaced, 0};
    if (space != FB_NONE) {
        uint32_t own = core->database->spaces[space].own;
        l.own_local = own == 0 ? 0 : fb_area_get(core, own - 1)->local;
    }
    n->stored = 0;
    if (n->replaced) n->last = 0;
    n->replaced = false;
    if (space != FB_NONE) {
        fb_store_be(prefix + 1, fb_space_at(core, space)->local, 4);
        fb_sim_store_walk(&world->nodes[node].store, fb_span_of(prefix, sizeof prefix), load_at,
                          &l);
    }
    if (world->stop) return;
    n->last = n->stored;
    if (l.compare && n->stored < l.before) wrong(world, node, "has lost its entry", l.before);
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    node_state *n = &s->nodes[node];
    if (fx->a == FB_FACT_STARTED) {
        started(world, s, node);
        return;
    }
    if (!s->known && !fb_id_is_zero(world->spaces[0])) {
        s->notes =
            fb_area_id(world->spaces[0], FB_AREA_COLLECTION, fb_span_text(fb_sim_collection));
        s->own = fb_area_id(world->spaces[0], FB_AREA_SPACE, fb_span_of(NULL, 0));
        s->known = true;
    }
    fb_reader r = fb_reader_of(fb_sim_fact_bytes(fx));
    fb_id area = fb_read_id(&r);
    /* What comes before the space has a name is its first statement, and a report about it. */
    if (!s->known && fb_id_is_zero(s->own)) s->own = area;
    bool hidden = fb_id_equal(area, s->own);
    if (!s->known && !hidden) return;
    if (!hidden && !fb_id_equal(area, s->notes)) return;
    entry e = {.incarnation = world->nodes[node].incarnation,
               .w = fx->a == FB_FACT_WRITTEN ? fx->c : fx->b,
               .record = fb_read_id(&r),
               .hidden = hidden};
    *entry_at(n, ++n->last) = e;
}

static void wrote(fb_sim_world *world, void *own, uint32_t node, uint64_t incarnation, uint64_t w)
{
    (void)world;
    node_state *n = &((state *)own)->nodes[node];
    while (n->stored < n->last) {
        entry *e = entry_at(n, n->stored + 1);
        if (e->incarnation != incarnation || e->w > w) return;
        e->stored = true;
        n->stored++;
    }
}

static void restored(fb_sim_world *world, void *own, uint32_t node, bool empty)
{
    (void)world;
    (void)empty;
    ((state *)own)->nodes[node].replaced = true;
}

/* From the place before to this one: told is what an item is about, NULL for a mark of progress. */
static bool moves(fb_sim_world *world, const node_state *n, uint32_t node, fb_sim_cursor *at,
                  fb_sim_cursor to, const fb_id *told)
{
    if (told != NULL ? to.sequence <= at->sequence : to.sequence < at->sequence) {
        wrong(world, node, "goes back to change", to.sequence);
        return false;
    }
    for (uint64_t i = at->sequence + 1; i <= to.sequence; i++) {
        bool last = i == to.sequence;
        if (!in_ring(n, i)) {
            if (i > n->last) wrong(world, node, "tells what is not there, change", i);
            continue;
        }
        const entry *e = entry_at(n, i);
        if (!e->stored) wrong(world, node, "tells before it is durable change", i);
        if (!e->hidden && (!last || told == NULL) && ORACLE(GAP_UNSEEN, true, false)) {
            wrong(world, node, "leaves out change", i);
        }
        bool same =
            e->incarnation == to.incarnation && (told == NULL || fb_id_equal(*told, e->record));
        if (last && !same) wrong(world, node, "tells another one than change", i);
        if (world->stop) return false;
    }
    *at = to;
    return true;
}

static fb_sim_cursor read_cursor(fb_reader *r)
{
    fb_sim_cursor c = {.sequence = fb_read_u64(r)};
    c.incarnation = fb_read_u64(r);
    return c;
}

static void piece(fb_sim_world *world, const node_state *n, uint32_t node, const fb_sim_feed *feed,
                  const fb_effect *fx)
{
    fb_reader r = fb_reader_of(fb_sim_fact_bytes(fx));
    uint16_t count = fb_read_u16(&r);
    if (!feed->placed) {
        fb_sim_cursor at = read_cursor(&r);
        bool right = feed->fresh || (at.sequence == feed->asked.sequence &&
                                     at.incarnation == feed->asked.incarnation);
        if (count != 0 || !right || !is_of_store(n, at)) {
            wrong(world, node, "begins at a place that is none,", at.sequence);
        }
        return;
    }
    fb_sim_cursor at = feed->last;
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_sim_cursor to = read_cursor(&r);
        fb_read_id(&r);
        fb_id record = fb_read_id(&r);
        fb_read_u8(&r);
        fb_read_span16(&r);
        if (!moves(world, n, node, &at, to, &record)) return;
    }
    fb_sim_cursor to = read_cursor(&r);
    if (!fb_reader_done(&r)) wrong(world, node, "has a piece that is none, of", count);
    if (to.sequence != at.sequence) moves(world, n, node, &at, to, NULL);
}

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    const fb_sim_feed *feed = fb_sim_feed_of(world, node, fx->a);
    if (feed == NULL) return;
    const node_state *n = &((state *)own)->nodes[node];
    if (fx->c != 0) {
        piece(world, n, node, feed, fx);
        return;
    }
    fb_sim_cursor at = feed->placed ? feed->last : feed->asked;
    if (fx->b == FB_ERR_CURSOR_OLD && at.sequence + world->config.sizes.changelog > n->last) {
        wrong(world, node, "ends as too old, and all is kept behind", at.sequence);
    }
    if (fx->b == FB_ERR_CURSOR_UNKNOWN && is_of_store(n, at)) {
        wrong(world, node, "is refused a cursor that was given,", at.sequence);
    }
}

/* In the quiet whoever listens has heard all. */
static void round_end(fb_sim_world *world, void *own)
{
    for (uint32_t node = 0; node < world->config.nodes; node++) {
        const node_state *n = &((state *)own)->nodes[node];
        if (world->held_apart[node] || !world->nodes[node].running) continue;
        for (uint32_t i = 0; i < FB_SIM_CLIENTS; i++) {
            const fb_sim_feed *feed = fb_sim_feed_at(world, node, i);
            if (feed->request == 0 || feed->slow || feed->pending) continue;
            if (feed->placed && feed->last.sequence == n->last) continue;
            fb_sim_violated(world, FB_SIM_LIVENESS, fb_sim_check_change_feed.id,
                            "in the quiet a feed of %s stands at %llu of %llu", fb_sim_name(node),
                            (unsigned long long)feed->last.sequence, (unsigned long long)n->last);
            return;
        }
    }
}

const fb_sim_check fb_sim_check_change_feed = {
    .id = "change-feed",
    .musts = "DESIGN 3.1, 8 consistency, FM-4.1-5",
    .cost = "O(1) a change told",
    .text = "a feed of changes has all behind its cursor, in order and once, or says it cannot",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_STARTED) | FB_SIM_FACT(FB_FACT_WRITTEN) |
             FB_SIM_FACT(FB_FACT_APPLIED) | FB_SIM_FACT(FB_FACT_MENDED) |
             FB_SIM_FACT(FB_FACT_REPAIRED),
    .fact = fact,
    .reply = reply,
    .wrote = wrote,
    .restored = restored,
    .round = round_end,
};
