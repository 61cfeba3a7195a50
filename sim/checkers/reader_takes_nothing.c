/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/state.h"
#include "protocol/space/standing.h"
#include "sim/checkers/list.h"
#include "sim/workload/let_in.h"

/* Nothing that is signed proves that a value was replaced, or that batches are folded, so it is
 * believed only of a member that may write, in the eyes of who believes it (DESIGN 3.1, Folding,
 * Anti-entropy).
 *
 * A writer that lies takes away as much as by a delete; but what goes by a bare word goes on that
 * node alone, and no agreement can be demanded after that. So the run ends there, and says why. */

#define APPROVED 1u
#define WRITER   2u

typedef enum right { UNTOLD, MAY_WRITE, MAY_NOT } right;

typedef struct state {
    uint8_t *right; /* node * nodes + member, in the first space, as told in this life */
} state;

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    size_t pairs = (size_t)world->config.nodes * world->config.nodes;
    s->right = fb_arena_take(arena, pairs, sizeof *s->right);
}

/* The second space, in which nobody is a reader, and reports that are folded: of those the last one
 * of a life is all there is, and whoever says that they are folded has it. */
static bool is_apart(const fb_sim_world *world, uint32_t node, fb_id id, bool folded)
{
    const fb_node *core = world->nodes[node].core;
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        const fb_area *area = &core->database->areas[i];
        if (!area->used || !fb_id_equal(area->id, id)) continue;
        return (folded && area->kind == FB_AREA_REPORTS) ||
               !fb_id_equal(fb_space_at(core, area->space)->id, world->spaces[0]);
    }
    return true;
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    uint32_t nodes = world->config.nodes;
    if (!world->config.reference) return;
    if (fx->a == FB_FACT_MEMBER) {
        fb_sim_message m = fb_sim_message_of(fx);
        uint32_t peer = fb_sim_node_of(world, m.peer);
        if (peer == UINT32_MAX || !fb_id_equal(m.space, world->spaces[0])) return;
        bool may = fx->b == APPROVED && fx->c <= WRITER;
        s->right[node * nodes + peer] = may ? MAY_WRITE : MAY_NOT;
        return;
    }
    fb_span bytes = fb_sim_fact_bytes(fx);
    if (bytes.len < 48) return;
    fb_id area, member;
    memcpy(area.b, bytes.p, sizeof area.b);
    memcpy(member.b, bytes.p + bytes.len - sizeof member.b, sizeof member.b);
    uint32_t peer = fb_sim_node_of(world, member);
    bool repaired = fx->a == FB_FACT_REPAIRED;
    if (peer == UINT32_MAX || is_apart(world, node, area, !repaired)) return;
    /* Of a life that has told nothing of the member: as it was loaded. */
    right told = (right)s->right[node * nodes + peer];
    if (told == UNTOLD ? !fb_sim_may_write(world, node, member) : told == MAY_NOT) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_reader_takes_nothing.id,
                        "%s believed %s, which may not write, that something is %s",
                        fb_sim_name(node), fb_sim_name(peer), repaired ? "replaced" : "folded");
        return;
    }
    if (!world->nodes[peer].provider.took) return;
    world->stall = "a-writer-lied";
    world->stop = true;
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    const state *s = own;
    memset(&s->right[node * world->config.nodes], UNTOLD, world->config.nodes);
}

const fb_sim_check fb_sim_check_reader_takes_nothing = {
    .id = "reader-takes-nothing",
    .musts = "DESIGN 3.1",
    .cost = "O(areas) a comparison that takes away",
    .text = "who may not write is not believed that something was replaced or is folded",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts =
        FB_SIM_FACT(FB_FACT_MEMBER) | FB_SIM_FACT(FB_FACT_REPAIRED) | FB_SIM_FACT(FB_FACT_SKIPPED),
    .fact = fact,
    .over = over,
};
