/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/model.h"

#include "protocol/base/hash.h"
#include "protocol/database/database.h"
#include "sim/checkers/list.h"
#include "sim/checkers/oracle.h"
#include "sim/world/world.h"

#define BUCKETS 65536u

void fb_sim_model_layout(fb_sim_world *world, fb_sim_model *model, fb_arena *arena)
{
    bool large = world->config.nodes > FB_SIM_MODEL_NODES || !world->config.checks ||
                 !world->config.reference;
    uint32_t share = large ? 0 : 1;
    model->nodes = fb_arena_take(arena, large ? 0 : world->config.nodes, sizeof *model->nodes);
    model->changes = fb_arena_take(arena, share * FB_SIM_MODEL_CHANGES, sizeof *model->changes);
    model->edges = fb_arena_take(arena, share * FB_SIM_MODEL_EDGES, sizeof *model->edges);
    model->buckets = fb_arena_take(arena, share * BUCKETS, sizeof *model->buckets);
    model->blind = large;
    model->edge_count = 1; /* 0 ends a list */
    model->change_count = 1;
}

static uint32_t bucket_of(uint32_t space, fb_id node, uint64_t incarnation, uint64_t seq)
{
    uint64_t words[5] = {0, 0, incarnation, seq, space};
    memcpy(words, node.b, 16);
    return (uint32_t)fb_xxh64(words, sizeof words, 0) & (BUCKETS - 1);
}

fb_sim_model_change *fb_sim_model_find(fb_sim_model *model, uint32_t space, fb_id node,
                                       uint64_t incarnation, uint64_t seq)
{
    uint32_t at = model->buckets[bucket_of(space, node, incarnation, seq)];
    for (; at != 0; at = model->changes[at].next) {
        fb_sim_model_change *c = &model->changes[at];
        if (c->seq == seq && c->incarnation == incarnation && c->space == space &&
            fb_id_equal(c->node, node)) {
            return c;
        }
    }
    return NULL;
}

static void bucket_add(fb_sim_model *model, uint32_t index)
{
    fb_sim_model_change *c = &model->changes[index];
    c->before = model->written[c->record][c->author];
    model->written[c->record][c->author] = index;
    uint32_t *bucket = &model->buckets[bucket_of(c->space, c->node, c->incarnation, c->seq)];
    c->next = *bucket;
    *bucket = index;
}

static uint16_t bit(uint32_t node)
{
    return (uint16_t)(1u << node);
}

/* Live values. */

static void live_add(fb_sim_model *model, uint32_t node, uint32_t index, uint32_t field)
{
    fb_sim_live *live = &model->nodes[node].live[model->changes[index].record][field];
    if (live->count == FB_SIM_MODEL_LIVE) {
        model->blind = true;
        return;
    }
    live->changes[live->count++] = index;
}

/* Takes away a value and the earlier ones of its life. */
static void live_remove(fb_sim_model *model, uint32_t node, uint32_t index, uint32_t field)
{
    const fb_sim_model_change *c = &model->changes[index];
    fb_sim_live *live = &model->nodes[node].live[c->record][field];
    for (uint32_t i = live->count; i-- > 0;) {
        const fb_sim_model_change *v = &model->changes[live->changes[i]];
        if (v->incarnation != c->incarnation || v->author != c->author || v->seq > c->seq) continue;
        live->changes[i] = live->changes[--live->count];
    }
}

bool fb_sim_model_is_hushed(const fb_sim_model *model, uint32_t node, uint32_t index,
                            uint32_t field)
{
    uint32_t by = model->changes[index].hushed[field];
    return by != 0 && (model->changes[by].applied & bit(node)) != 0;
}

static bool is_replaced(const fb_sim_model *model, uint32_t node, const fb_sim_model_change *c,
                        uint32_t field)
{
    for (uint32_t e = c->replacers; e != 0; e = model->edges[e].next_of_target) {
        const fb_sim_edge *edge = &model->edges[e];
        if (edge->field == field && (model->changes[edge->replacer].applied & bit(node)) != 0) {
            return true;
        }
    }
    return false;
}

bool fb_sim_model_is_live(const fb_sim_model *model, uint32_t node, uint32_t index, uint32_t field)
{
    const fb_sim_model_change *c = &model->changes[index];
    if ((c->applied & bit(node)) == 0 || (c->sets >> field & 1) == 0) return false;
    if (is_replaced(model, node, c, field)) return false;
    /* Within one life a later change of a field replaces its earlier ones, listed or not: so does
     * the list of whoever saw the later one, on nodes that never got it. */
    for (uint32_t i = c->later[field]; i != 0; i = model->changes[i].later[field]) {
        const fb_sim_model_change *later = &model->changes[i];
        if ((later->applied & bit(node)) != 0 || is_replaced(model, node, later, field)) {
            return false;
        }
    }
    return true;
}

bool fb_sim_model_is_covered(const fb_sim_model *model, uint32_t node, uint32_t index)
{
    const fb_sim_model_change *c = &model->changes[index];
    for (uint32_t author = 0; author < FB_SIM_MODEL_NODES; author++) {
        uint32_t seen = c->applied_at[author];
        if (seen == 0) continue;
        /* One author's changes were written in the order of their indices. */
        uint32_t at = model->nodes[node].newest[c->record][author];
        for (; at != 0 && model->changes[at].written_at >= seen; at = model->changes[at].before) {
            if (at != index && (model->changes[at].applied & bit(node)) != 0) return true;
        }
    }
    return false;
}

bool fb_sim_model_misses_replacer(const fb_sim_model *model, uint32_t node, uint32_t index,
                                  uint32_t field)
{
    for (uint32_t at = index; at != 0; at = model->changes[at].later[field]) {
        const fb_sim_model_change *c = &model->changes[at];
        if (at != index && (c->applied & bit(node)) == 0) return true;
        for (uint32_t e = c->replacers; e != 0; e = model->edges[e].next_of_target) {
            const fb_sim_edge *edge = &model->edges[e];
            if (edge->field != field) continue;
            if ((model->changes[edge->replacer].applied & bit(node)) == 0) return true;
        }
    }
    return false;
}

static void newest_raise(fb_sim_model *model, uint32_t node, uint32_t index)
{
    const fb_sim_model_change *c = &model->changes[index];
    uint32_t *newest = &model->nodes[node].newest[c->record][c->author];
    if (index > *newest) *newest = index;
}

/* After the change was taken away here. */
static void newest_lower(fb_sim_model *model, uint32_t node, uint32_t index)
{
    const fb_sim_model_change *c = &model->changes[index];
    uint32_t *newest = &model->nodes[node].newest[c->record][c->author];
    while (*newest != 0 && (model->changes[*newest].applied & bit(node)) == 0) {
        *newest = model->changes[*newest].before;
    }
}

static void apply(const fb_sim_world *world, fb_sim_model *model, uint32_t node, uint32_t index)
{
    fb_sim_model_change *c = &model->changes[index];
    if ((c->applied & bit(node)) != 0) return;
    c->applied |= bit(node);
    /* The first time: what comes back after a lost store was known when the node wrote. */
    if (c->applied_at[node] == 0) c->applied_at[node] = (uint32_t)world->steps;
    newest_raise(model, node, index);
    for (uint32_t e = c->targets; e != 0; e = model->edges[e].next_of_replacer) {
        live_remove(model, node, model->edges[e].target, model->edges[e].field);
    }
    for (uint32_t f = 0; f < FB_SIM_COLUMNS; f++) {
        if (!fb_sim_model_is_live(model, node, index, f)) continue;
        if (ORACLE(CONCURRENT_LOSES, false, true)) model->nodes[node].live[c->record][f].count = 0;
        live_add(model, node, index, f);
    }
}

static void undo(fb_sim_model *model, uint32_t node, uint32_t index)
{
    fb_sim_model_change *c = &model->changes[index];
    if ((c->applied & bit(node)) == 0) return;
    for (uint32_t f = 0; f < FB_SIM_COLUMNS; f++) {
        fb_sim_live *live = &model->nodes[node].live[c->record][f];
        for (uint32_t i = live->count; i-- > 0;) {
            if (live->changes[i] == index) live->changes[i] = live->changes[--live->count];
        }
    }
    c->applied &= (uint16_t)~bit(node);
    newest_lower(model, node, index);
    for (uint32_t e = c->targets; e != 0; e = model->edges[e].next_of_replacer) {
        const fb_sim_edge *edge = &model->edges[e];
        live_remove(model, node, edge->target, edge->field);
        for (uint32_t i = edge->target; i != 0; i = model->changes[i].earlier[edge->field]) {
            if (fb_sim_model_is_live(model, node, i, edge->field)) {
                live_add(model, node, i, edge->field);
            }
            if ((model->changes[i].applied & bit(node)) != 0) break;
        }
    }
}

static void replace(fb_sim_model *model, uint32_t index, uint32_t target, uint32_t field,
                    bool maybe)
{
    if (model->edge_count == FB_SIM_MODEL_EDGES) {
        model->blind = true;
        return;
    }
    uint32_t e = model->edge_count++;
    fb_sim_model_change *c = &model->changes[index];
    fb_sim_model_change *t = &model->changes[target];
    model->edges[e] = (fb_sim_edge){.replacer = index,
                                    .target = target,
                                    .next_of_replacer = c->targets,
                                    .next_of_target = t->replacers,
                                    .field = (uint8_t)field,
                                    .maybe = maybe};
    c->targets = e;
    t->replacers = e;
}

static void wait_for_store(fb_sim_model *model, uint32_t node, uint32_t index, uint64_t w)
{
    fb_sim_model_node *n = &model->nodes[node];
    if (n->count == FB_SIM_MODEL_WAITING) {
        model->blind = true;
        return;
    }
    uint32_t at = (n->first + n->count++) % FB_SIM_MODEL_WAITING;
    n->waiting[at] = index;
    n->sets[at] = w;
}

/* Facts. */

static bool same_life(const fb_sim_model_change *a, const fb_sim_model_change *b)
{
    return a->author == b->author && a->incarnation == b->incarnation;
}

static void columns_of(const fb_sim_client *client, uint16_t *touches, uint16_t *sets)
{
    uint16_t element = (uint16_t)(1u << (FB_SIM_COUNTER + 1 + client->items));
    switch (client->operation) {
    case FB_SIM_OP_ADD:
        *touches = *sets = 1u << FB_SIM_COUNTER;
        break;
    case FB_SIM_OP_INSERT:
    case FB_SIM_OP_REMOVE:
        *touches = element;
        *sets = client->operation == FB_SIM_OP_INSERT ? element : 0;
        break;
    case FB_SIM_OP_PUT:
    case FB_SIM_OP_DELETE:
        *touches = (1u << FB_SIM_COLUMNS) - 1;
        *sets = client->operation == FB_SIM_OP_PUT
                    ? (uint16_t)(client->fields & (uint32_t)~client->unset)
                    : 0;
        break;
    default:
        *touches = client->fields;
        *sets = (uint16_t)(client->fields & (uint32_t)~client->unset);
        break;
    }
}

/* An addition goes on from what its life has there, if that is still there. */
static void total_of(fb_sim_model *model, uint32_t node, uint32_t index, uint32_t amount)
{
    fb_sim_model_change *c = &model->changes[index];
    const fb_sim_live *live = &model->nodes[node].live[c->record][FB_SIM_COUNTER];
    c->total = amount;
    for (uint32_t i = 0; i < live->count; i++) {
        const fb_sim_model_change *own = &model->changes[live->changes[i]];
        if (!same_life(own, c)) continue;
        c->total += own->total;
        c->unsure = own->unsure || fb_sim_model_is_covered(model, node, live->changes[i]);
    }
}

void fb_sim_model_written(fb_sim_world *world, fb_sim_model *model, uint32_t node,
                          const fb_effect *fact)
{
    if (model->blind || fact->b == 0) return;
    const fb_sim_client *client = fb_sim_client_of(world, node, fact->b);
    fb_sim_change what = fb_sim_change_of(fact);
    uint32_t record = fb_sim_record_of(world, what.record);
    if (client == NULL || record == UINT32_MAX) return;
    if (model->change_count == FB_SIM_MODEL_CHANGES) {
        model->blind = true;
        return;
    }
    uint32_t index = model->change_count++;
    fb_sim_model_change *c = &model->changes[index];
    uint16_t touches, sets;
    columns_of(client, &touches, &sets);
    *c = (fb_sim_model_change){
        .node = what.node,
        .incarnation = what.incarnation,
        .seq = what.seq,
        .stamp = (int64_t)what.stamp,
        .request = fact->b,
        .author = (uint8_t)node,
        .written_at = (uint32_t)world->steps,
        .record = (uint8_t)record,
        .space = (uint8_t)fb_sim_space_of_record(world, record),
        .touches = touches,
        .sets = sets,
    };
    bucket_add(model, index);
    fb_sim_model_node *n = &model->nodes[node];
    for (uint32_t f = 0; f < FB_SIM_COLUMNS; f++) {
        if ((c->touches >> f & 1) == 0) continue;
        const fb_sim_live *live = &n->live[record][f];
        if (live->count == 0 && (c->sets >> f & 1) == 0) {
            c->touches &= (uint16_t) ~(1u << f); /* nothing to take away: it says nothing of it */
            uint32_t own = n->last[record][f];
            if (own != 0 && model->changes[own - 1].incarnation == c->incarnation &&
                model->changes[own - 1].hushed[f] == 0) {
                model->changes[own - 1].hushed[f] = index;
            }
            continue;
        }
        bool says = (c->sets >> f & 1) != 0;
        bool adds = client->operation == FB_SIM_OP_ADD;
        if (adds) total_of(model, node, index, client->items);
        for (uint32_t i = 0; i < live->count; i++) {
            uint32_t target = live->changes[i];
            if (adds && !same_life(&model->changes[target], c)) continue;
            bool maybe = fb_sim_model_is_covered(model, node, target);
            replace(model, index, target, f, maybe);
            says = says || !maybe;
        }
        /* A later change of one life replaces its earlier ones, whether it holds them or not; but
         * where all that it takes away was gone already, it need say nothing of the field. */
        uint32_t last = n->last[record][f];
        if (last != 0 && model->changes[last - 1].incarnation == c->incarnation) {
            replace(model, index, last - 1, f, !says);
            c->earlier[f] = last - 1;
            model->changes[last - 1].later[f] = index;
        }
        n->last[record][f] = index + 1;
    }
    apply(world, model, node, index);
    wait_for_store(model, node, index, fact->c);
}

void fb_sim_model_applied(fb_sim_world *world, fb_sim_model *model, uint32_t node,
                          const fb_effect *fact)
{
    if (model->blind) return;
    fb_sim_change what = fb_sim_change_of(fact);
    uint32_t record = fb_sim_record_of(world, what.record);
    if (record == UINT32_MAX) return;
    fb_sim_model_change *c = fb_sim_model_find(model, fb_sim_space_of_record(world, record),
                                               what.node, what.incarnation, what.seq);
    if (c == NULL) return; /* before the model's memory: everybody has it */
    uint32_t index = (uint32_t)(c - model->changes);
    apply(world, model, node, index);
    wait_for_store(model, node, index, fact->b);
}

void fb_sim_model_skipped(fb_sim_world *world, fb_sim_model *model, uint32_t node,
                          const fb_effect *fact)
{
    fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(fact), fact->len));
    fb_id area = fb_read_id(&r), author = fb_read_id(&r);
    uint64_t incarnation = fb_read_u64(&r), last = fb_read_u64(&r);
    uint32_t space = r.failed ? FB_SIM_SPACES : 0;
    while (space < FB_SIM_SPACES &&
           !fb_id_equal(area, fb_area_id(world->spaces[space], FB_AREA_COLLECTION,
                                         fb_span_text(fb_sim_collection)))) {
        space++;
    }
    if (space == FB_SIM_SPACES) return;
    for (uint32_t i = 1; i < model->change_count && !model->blind; i++) {
        const fb_sim_model_change *c = &model->changes[i];
        if (c->space != space || c->incarnation != incarnation || c->seq > last ||
            !fb_id_equal(c->node, author) || (c->applied & bit(node)) != 0) {
            continue;
        }
        apply(world, model, node, i);
        wait_for_store(model, node, i, fact->b);
    }
}

void fb_sim_model_wrote(fb_sim_world *world, fb_sim_model *model, uint32_t node, uint64_t w)
{
    if (model->blind) return;
    fb_sim_model_node *n = &model->nodes[node];
    while (n->count != 0 && n->sets[n->first] <= w) {
        fb_sim_model_change *c = &model->changes[n->waiting[n->first]];
        c->stored |= bit(node);
        c->stored_at[node] = (uint32_t)world->steps;
        n->first = (n->first + 1) % FB_SIM_MODEL_WAITING;
        n->count--;
    }
}

void fb_sim_model_over(fb_sim_world *world, fb_sim_model *model, uint32_t node)
{
    (void)world;
    if (model->blind) return;
    fb_sim_model_node *n = &model->nodes[node];
    if (ORACLE(CRASH_KEEPS_ALL, false, true)) n->count = 0;
    while (n->count != 0) {
        n->count--;
        undo(model, node, n->waiting[(n->first + n->count) % FB_SIM_MODEL_WAITING]);
    }
    memset(n->last, 0, sizeof n->last);
}

void fb_sim_model_backup(fb_sim_model *model, uint32_t node)
{
    for (uint32_t i = 1; i < model->change_count && !model->blind; i++) {
        fb_sim_model_change *c = &model->changes[i];
        c->backup &= (uint16_t)~bit(node);
        c->backup |= c->stored & bit(node);
    }
}

void fb_sim_model_restored(fb_sim_world *world, fb_sim_model *model, uint32_t node, bool empty)
{
    (void)world;
    if (model->blind) return;
    fb_sim_model_node *n = &model->nodes[node];
    memset(n->live, 0, sizeof n->live);
    memset(n->newest, 0, sizeof n->newest);
    for (uint32_t i = 1; i < model->change_count; i++) {
        fb_sim_model_change *c = &model->changes[i];
        bool has = !empty && (c->backup & bit(node)) != 0;
        c->applied &= (uint16_t)~bit(node);
        c->stored &= (uint16_t)~bit(node);
        if (has) {
            c->applied |= bit(node);
            c->stored |= bit(node);
            newest_raise(model, node, i);
        }
        if (c->author == node && !has) c->forked = true;
        /* The only disk that had it is gone: nobody could keep that promise. */
        if (c->stored == 0) c->excused = true;
    }
    for (uint32_t i = 1; i < model->change_count; i++) {
        for (uint32_t f = 0; f < FB_SIM_COLUMNS; f++) {
            if (fb_sim_model_is_live(model, node, i, f)) live_add(model, node, i, f);
        }
    }
}

void fb_sim_model_cloned(fb_sim_model *model, uint32_t node, uint32_t of)
{
    if (model->blind) return;
    memset(model->nodes[node].live, 0, sizeof model->nodes[node].live);
    for (uint32_t i = 1; i < model->change_count; i++) {
        fb_sim_model_change *c = &model->changes[i];
        c->applied &= (uint16_t)~bit(node);
        c->stored &= (uint16_t)~bit(node);
        if ((c->stored & bit(of)) == 0) continue;
        c->applied |= bit(node);
        c->stored |= bit(node);
    }
    for (uint32_t i = 1; i < model->change_count; i++) {
        for (uint32_t f = 0; f < FB_SIM_COLUMNS; f++) {
            if (fb_sim_model_is_live(model, node, i, f)) live_add(model, node, i, f);
        }
    }
}

void fb_sim_model_forget(fb_sim_world *world, fb_sim_model *model)
{
    if (model->blind) return;
    uint32_t kept = 1;
    memset(model->buckets, 0, BUCKETS * sizeof *model->buckets);
    memset(model->written, 0, sizeof model->written);
    uint32_t nodes = world->config.nodes;
    for (uint32_t n = 0; n < nodes; n++) {
        memset(model->nodes[n].live, 0, sizeof model->nodes[n].live);
        memset(model->nodes[n].newest, 0, sizeof model->nodes[n].newest);
    }
    /* Live ones first: is_live needs the edges and bits as they are. */
    for (uint32_t i = 1; i < model->change_count; i++) {
        fb_sim_model_change *c = &model->changes[i];
        uint16_t live = 0;
        uint32_t any = fb_sim_creator(world, c->space); /* any member */
        for (uint32_t f = 0; f < FB_SIM_COLUMNS; f++) {
            if (fb_sim_model_is_live(model, any, i, f)) live |= (uint16_t)(1u << f);
        }
        c->touches = live; /* what the compacted one still sets */
    }
    for (uint32_t i = 1; i < model->change_count; i++) {
        fb_sim_model_change c = model->changes[i];
        if (c.touches == 0) continue;
        c.sets = c.touches;
        c.targets = c.replacers = 0;
        c.backup = 0;
        memset(c.earlier, 0, sizeof c.earlier);
        memset(c.later, 0, sizeof c.later);
        memset(c.hushed, 0, sizeof c.hushed);
        model->changes[kept] = c;
        bucket_add(model, kept);
        kept++;
    }
    model->change_count = kept;
    model->edge_count = 1;
    for (uint32_t i = 1; i < kept; i++) {
        for (uint32_t n = 0; n < nodes; n++) {
            if ((model->changes[i].applied & bit(n)) != 0) newest_raise(model, n, i);
            for (uint32_t f = 0; f < FB_SIM_COLUMNS; f++) {
                if (fb_sim_model_is_live(model, n, i, f)) live_add(model, n, i, f);
            }
        }
    }
    for (uint32_t n = 0; n < nodes; n++)
        memset(model->nodes[n].last, 0, sizeof model->nodes[n].last);
}
