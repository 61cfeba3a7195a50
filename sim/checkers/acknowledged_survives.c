/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/acknowledged_survives.h"

#include "sim/workload/director.h"

typedef struct state {
    fb_sim_model model;
} state;

fb_sim_model *fb_sim_model_of(fb_sim_world *world)
{
    state *s = fb_sim_check_state(world, &fb_sim_check_acknowledged_survives);
    return &s->model;
}

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_model_layout(world, &s->model, arena);
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    if (fx->a == FB_FACT_CUT) {
        /* What was promised is taken back by a statement: from here on it says nothing. */
        s->model.blind = true;
    } else if (fx->a == FB_FACT_WRITTEN) {
        fb_sim_model_written(world, &s->model, node, fx);
    } else if (fx->a == FB_FACT_SKIPPED) {
        fb_sim_model_skipped(world, &s->model, node, fx);
    } else {
        fb_sim_model_applied(world, &s->model, node, fx);
    }
}

static void wrote(fb_sim_world *world, void *own, uint32_t node, uint64_t incarnation, uint64_t w)
{
    (void)incarnation;
    fb_sim_model_wrote(world, &((state *)own)->model, node, w);
}

static void over(fb_sim_world *world, void *own, uint32_t node)
{
    fb_sim_model_over(world, &((state *)own)->model, node);
}

static void backup(fb_sim_world *world, void *own, uint32_t node)
{
    (void)world;
    fb_sim_model_backup(&((state *)own)->model, node);
}

static void restored(fb_sim_world *world, void *own, uint32_t node, bool empty)
{
    fb_sim_model_restored(world, &((state *)own)->model, node, empty);
}

static void cloned(fb_sim_world *world, void *own, uint32_t node, uint32_t of)
{
    (void)world;
    fb_sim_model_cloned(&((state *)own)->model, node, of);
}

/* A write was answered: its change may never be lost any more. */
static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    fb_sim_model *model = &((state *)own)->model;
    if (model->blind || fx->b != FB_OK || fx->c != 0) return;
    const fb_sim_client *client = fb_sim_client_of(world, node, fx->a);
    if (client == NULL || !fb_sim_op_writes(client->operation)) return;
    for (uint32_t i = model->change_count; i-- > 1;) {
        fb_sim_model_change *c = &model->changes[i];
        if (c->request != fx->a || c->author != node) continue;
        c->acked = true;
        return;
    }
}

/* The core agrees: whatever one of it promised, all of it has. */
static void round_end(fb_sim_world *world, void *own)
{
    fb_sim_model *model = &((state *)own)->model;
    if (model->blind) return;
    uint32_t members = 0;
    bool all = true;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        if (world->held_apart[i]) {
            all = false;
        } else {
            members |= 1u << i;
        }
    }
    for (uint32_t i = 1; i < model->change_count; i++) {
        const fb_sim_model_change *c = &model->changes[i];
        uint32_t core = members & (uint32_t)world->members[c->space];
        /* Its author's own disk went back: then it is whoever else has it that counts. */
        bool promised = c->acked && !c->excused && !c->forked && (core >> c->author & 1) != 0;
        bool somewhere = (c->stored & core) != 0;
        if ((c->stored & core) == core || (!promised && !somewhere)) continue;
        uint32_t node = 0;
        while ((core >> node & 1) == 0 || (c->stored >> node & 1) != 0) node++;
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_acknowledged_survives.id,
                        "%s does not have change %llu of %s, which %s", fb_sim_name(node),
                        (unsigned long long)c->seq, fb_sim_name(c->author),
                        promised ? "was acknowledged" : "others of the core have");
        return;
    }
    if (all) fb_sim_model_forget(world, model);
}

const fb_sim_check fb_sim_check_acknowledged_survives = {
    .id = "acknowledged-survives",
    .musts = "DESIGN 3.1, 7, FM-4.1-9, FM-8.3-3",
    .cost = "O(replaced) a change",
    .text =
        "no acknowledged write is lost while a disk that had it lives, and all of a core get it",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_WRITTEN) | FB_SIM_FACT(FB_FACT_APPLIED) |
             FB_SIM_FACT(FB_FACT_CUT) | FB_SIM_FACT(FB_FACT_SKIPPED),
    .fact = fact,
    .reply = reply,
    .wrote = wrote,
    .over = over,
    .backup = backup,
    .restored = restored,
    .cloned = cloned,
    .round = round_end,
};
