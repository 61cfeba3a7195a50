/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/oracle.h"
#include "sim/checkers/reading.h"

/* What a node answers to `get` is what the model says it holds. While it works: its own writes that
 * were on its disk when it was asked and are still live (read your writes), nothing that had been
 * replaced on its disk by then (monotonic reads). In a quiet core: exactly that. */

/* A replacer of the value was on the disk before the question. */
static bool was_gone(const fb_sim_model *model, const fb_sim_model_change *c, uint32_t field,
                     const fb_sim_question *q)
{
    for (uint32_t e = c->replacers; e != 0; e = model->edges[e].next_of_target) {
        const fb_sim_edge *edge = &model->edges[e];
        if (edge->field == field && !edge->maybe &&
            fb_sim_stored_before(&model->changes[edge->replacer], q->node, q->asked_step)) {
            return true;
        }
    }
    return false;
}

static void wrong(fb_sim_world *world, const fb_sim_question *q, uint32_t field,
                  const fb_sim_model_change *c, const char *what)
{
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_session_guarantees.id,
                    "%s %s field f%u of r%02u, change %llu of %s", fb_sim_name(q->node), what,
                    (unsigned)field, (unsigned)q->record, (unsigned long long)c->seq,
                    fb_sim_name(c->author));
}

/* One field's siblings against the model. shown: those that the answer has. */
static void compare(fb_sim_world *world, const fb_sim_model *model, const fb_sim_question *q,
                    uint32_t field, const uint32_t *shown, uint32_t count)
{
    const fb_sim_live *live = &model->nodes[q->node].live[q->record][field];
    for (uint32_t i = 0; i < live->count && !world->stop; i++) {
        const fb_sim_model_change *c = &model->changes[live->changes[i]];
        bool must =
            fb_sim_sight_of(world, q, c) == FB_SIM_VISIBLE &&
            (q->exact || (c->author == q->node && fb_sim_stored_before(c, q->node, q->asked_step)));
        bool there = false;
        for (uint32_t k = 0; k < count; k++) there = there || shown[k] == live->changes[i];
        if (!must || there || ORACLE(ANSWERS_UNREAD, false, true)) continue;
        if (fb_sim_model_is_hushed(model, q->node, live->changes[i], field)) continue;
        if ((!q->exact || fb_sim_model_misses_replacer(model, q->node, live->changes[i], field)) &&
            fb_sim_model_is_covered(model, q->node, live->changes[i])) {
            continue;
        }
        wrong(world, q, field, c, "does not show");
    }
    for (uint32_t k = 0; k < count && !world->stop; k++) {
        const fb_sim_model_change *c = &model->changes[shown[k]];
        if (fb_sim_sight_of(world, q, c) == FB_SIM_HIDDEN && ORACLE(EARLY_UNSEEN, true, false)) {
            wrong(world, q, field, c, "shows too early");
        }
        if (fb_sim_model_is_live(model, q->node, shown[k], field)) continue;
        if (q->exact || was_gone(model, c, field, q)) {
            wrong(world, q, field, c, "still shows");
        }
    }
}

static void judge(fb_sim_world *world, fb_sim_model *model, const fb_sim_question *q,
                  fb_span answer)
{
    uint32_t shown[FB_SIM_FIELDS][FB_SIM_MODEL_LIVE];
    uint32_t counts[FB_SIM_FIELDS] = {0};
    uint32_t space = fb_sim_space_of_record(world, q->record);
    fb_reader r = fb_reader_of(answer);
    if (answer.len != 0) {
        fb_read_id(&r);
        fb_read_bytes(&r, 16);
    }
    uint16_t fields = answer.len == 0 ? 0 : fb_read_u16(&r);
    for (uint16_t i = 0; i < fields && !r.failed; i++) {
        fb_span name = fb_read_span16(&r);
        uint16_t siblings = fb_read_u16(&r);
        uint32_t f = name.len == 2 && name.p[0] == 'f' ? (uint32_t)(name.p[1] - '0') : 99;
        for (uint16_t k = 0; k < siblings && !r.failed; k++) {
            fb_id node = fb_read_id(&r);
            uint64_t incarnation = fb_read_u64(&r);
            uint64_t seq = fb_read_u64(&r);
            fb_read_u64(&r);
            fb_read_span32(&r);
            const fb_sim_model_change *c = fb_sim_model_find(model, space, node, incarnation, seq);
            if (f >= FB_SIM_FIELDS) continue; /* of another kind: kinds-add-up */
            if (c == NULL || counts[f] == FB_SIM_MODEL_LIVE) return;
            shown[f][counts[f]++] = (uint32_t)(c - model->changes);
        }
    }
    if (r.failed) return;
    for (uint32_t f = 0; f < FB_SIM_FIELDS && !world->stop; f++) {
        compare(world, model, q, f, shown[f], counts[f]);
    }
}

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)own;
    fb_sim_question q;
    if (!fb_sim_question_of(world, node, fx, &q)) return;
    bool found = fx->b == FB_OK;
    judge(world, fb_sim_model_of(world), &q, found ? fb_sim_fact_bytes(fx) : fb_span_of(NULL, 0));
}

const fb_sim_check fb_sim_check_session_guarantees = {
    .id = "session-guarantees",
    .musts = "DESIGN 3.1 merge, 8 consistency, FM-4.1-10, FI-2-8",
    .cost = "O(siblings) a get",
    .text = "a read shows the session's own writes, never goes back, and in the end is the merge",
    .reply = reply,
};
