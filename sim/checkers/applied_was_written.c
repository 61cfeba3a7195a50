/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/limits.h"
#include "sim/checkers/list.h"

/* Each change by its dot, with a hash of what was written: area, record, stamp. Of changes that are
 * older than its memory the check knows how far their author's life went. */
typedef struct state {
    fb_sim_memo lives;   /* (area, node, incarnation) -> last sequence */
    fb_sim_memo written; /* dot -> hash, and of few nodes who applied it in which incarnation */
    fb_sim_memo applied; /* (node, dot) -> incarnation, of the others and of what is forgotten */
} state;

/* In a world of few nodes a place of `written` is one line of the cache: all look at the same one.
 */
#define BESIDE (FB_SIM_MEMO_VALUES_MAX - 1)

static bool is_beside(const fb_sim_world *world)
{
    return world->config.nodes <= BESIDE;
}

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->lives, arena, 1u << 12, 1);
    fb_sim_memo_init(&s->written, arena, 1u << 15, is_beside(world) ? 1 + BESIDE : 1);
    fb_sim_memo_init(&s->applied, arena, 1u << 15, 1);
}

static uint64_t life_of(fb_span bytes)
{
    return fb_sim_key(fb_span_of(bytes.p + 32, 24), fb_xxh64(bytes.p, 16, 1));
}

static bool is_forgotten(state *s, fb_span bytes, uint64_t seq)
{
    if (s->written.turns < 2) return false;
    const uint64_t *last = fb_sim_memo_find(&s->lives, life_of(bytes));
    return last == NULL ? s->lives.turns >= 2 : seq <= *last;
}

/* The incarnation in which the node applied the change; 0: none. */
static uint64_t *applied_of(const fb_sim_world *world, state *s, uint64_t *known, uint32_t node,
                            fb_span bytes)
{
    if (known != NULL && is_beside(world)) return known + 1 + node;
    uint64_t key = node + 1 + fb_xxh64(bytes.p, 16, 0);
    return fb_sim_memo_at(&s->applied, fb_sim_key(fb_span_of(bytes.p + 32, 32), key));
}

/* What was taken back may be let stay by a later statement, and comes again then. */
static void taken_back(const fb_sim_world *world, state *s, uint32_t node, fb_span fact)
{
    uint8_t bytes[64] = {0};
    memcpy(bytes, fact.p, 16);
    memcpy(bytes + 32, fact.p + 16, 24);
    fb_reader r = fb_reader_of(fb_span_of(fact.p + 40, 8));
    uint64_t last = fb_read_u64(&r);
    for (uint64_t seq = last + 1; seq <= last + FB_BATCH_CHANGES_MAX; seq++) {
        fb_store_be(bytes + 56, seq, 8);
        uint64_t dot = fb_sim_key(fb_span_of(bytes + 32, 32), fb_xxh64(bytes, 16, 0));
        uint64_t *known = fb_sim_memo_find(&s->written, dot);
        if (known != NULL && is_beside(world)) {
            known[1 + node] = 0;
            continue;
        }
        uint64_t key = fb_sim_key(fb_span_of(bytes + 32, 32), node + 1 + fb_xxh64(bytes, 16, 0));
        uint64_t *applied = fb_sim_memo_find(&s->applied, key);
        if (applied != NULL) *applied = 0;
    }
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    fb_span bytes = fb_sim_fact_bytes(fx);
    if (fx->a == FB_FACT_CUT && bytes.len == 48) taken_back(world, s, node, bytes);
    if (bytes.len < 72) return;
    uint64_t dot = fb_sim_key(fb_span_of(bytes.p + 32, 32), fb_xxh64(bytes.p, 16, 0));
    uint64_t what = fb_xxh64(bytes.p, bytes.len, 0);
    if (fx->a == FB_FACT_WRITTEN) {
        fb_sim_memo_put(&s->written, dot, what);
        fb_sim_memo_put(&s->lives, life_of(bytes), fb_sim_change_of(fx).seq);
        return;
    }
    fb_sim_change c = fb_sim_change_of(fx);
    uint32_t author = fb_sim_node_of(world, c.node);
    uint64_t *known = fb_sim_memo_find(&s->written, dot);
    if (ORACLE(UNWRITTEN_ALLOWED, false, true)) return;
    if (known == NULL ? !is_forgotten(s, bytes, c.seq) : *known != what) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_applied_was_written.id,
                        "%s applied change %llu of %s, which %s", fb_sim_name(node),
                        (unsigned long long)c.seq,
                        author == UINT32_MAX ? "a stranger" : fb_sim_name(author),
                        known == NULL ? "was never written" : "was written otherwise");
        return;
    }
    uint64_t *before = applied_of(world, s, known, node, bytes);
    if (*before == world->nodes[node].incarnation) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_applied_was_written.id,
                        "%s applied change %llu of %s twice", fb_sim_name(node),
                        (unsigned long long)c.seq,
                        author == UINT32_MAX ? "a stranger" : fb_sim_name(author));
        return;
    }
    *before = world->nodes[node].incarnation;
}

const fb_sim_check fb_sim_check_applied_was_written = {
    .id = "applied-was-written",
    .musts = "DESIGN 3.1 authorship, FM-4.1-9",
    .cost = "O(1) a change",
    .text = "a change is applied as its author wrote it, once in an incarnation unless taken back",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_WRITTEN) | FB_SIM_FACT(FB_FACT_APPLIED) | FB_SIM_FACT(FB_FACT_CUT),
    .fact = fact,
    .histories = true,
};
