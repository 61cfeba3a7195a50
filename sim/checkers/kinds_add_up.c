/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "protocol/database/record/column.h"
#include "sim/checkers/reading.h"

/* A counter shows the sum of what each life has added since somebody last took all of it away, a
 * set the elements of which an insertion is live (DESIGN 3.1, Merge). In a quiet core: exactly.
 * While a node works: at least what is its own, was on its disk when it was asked and is still
 * live. Amounts are positive, so a part of a sum is no more than the sum. */

typedef struct shown {
    bool counter;
    int64_t sum;
    bool element[FB_SIM_ELEMENTS];
} shown;

/* ["e0","e2"]: of elements that the workload knows. */
static void read_set(fb_span text, shown *out)
{
    for (uint32_t e = 0; e < FB_SIM_ELEMENTS; e++) {
        const char name[] = {'"', 'e', (char)('0' + e), '"'};
        for (size_t at = 0; at + sizeof name <= text.len; at++) {
            out->element[e] = out->element[e] || memcmp(text.p + at, name, sizeof name) == 0;
        }
    }
}

static bool read_answer(fb_span answer, shown *out)
{
    *out = (shown){.counter = false};
    if (answer.len == 0) return true;
    fb_reader r = fb_reader_of(answer);
    fb_read_bytes(&r, 32);
    uint16_t fields = fb_read_u16(&r);
    for (uint16_t i = 0; i < fields && !r.failed; i++) {
        fb_span name = fb_read_span16(&r);
        uint16_t siblings = fb_read_u16(&r);
        for (uint16_t k = 0; k < siblings && !r.failed; k++) {
            fb_read_bytes(&r, 32 + 8);
            fb_span value = fb_read_span32(&r);
            if (fb_span_equal(name, fb_span_text("c"))) {
                out->counter = fb_integer_parse(value, &out->sum);
                if (!out->counter || siblings != 1) return false;
            }
            if (fb_span_equal(name, fb_span_text("s"))) read_set(value, out);
        }
    }
    return !r.failed;
}

/* What must be shown of a column: the parts that are certain, and whether that is all. */
typedef struct due {
    int64_t sum;
    uint32_t count;
    bool all;
} due;

static due due_of(const fb_sim_world *world, const fb_sim_model *model, const fb_sim_question *q,
                  uint32_t column)
{
    due d = {.all = q->exact};
    const fb_sim_live *live = &model->nodes[q->node].live[q->record][column];
    for (uint32_t i = 0; i < live->count; i++) {
        const fb_sim_model_change *c = &model->changes[live->changes[i]];
        fb_sim_sight sight = fb_sim_sight_of(world, q, c);
        bool covered = fb_sim_model_is_covered(model, q->node, live->changes[i]);
        bool unsure =
            sight == FB_SIM_MAYBE || c->unsure ||
            fb_sim_model_is_hushed(model, q->node, live->changes[i], column) ||
            (covered && fb_sim_model_misses_replacer(model, q->node, live->changes[i], column));
        if (unsure) d.all = false;
        if (sight != FB_SIM_VISIBLE || unsure) continue;
        bool own =
            c->author == q->node && fb_sim_stored_before(c, q->node, q->asked_step) && !covered;
        if (!q->exact && !own) continue;
        d.sum += c->total;
        d.count++;
    }
    return d;
}

static void wrong(fb_sim_world *world, const fb_sim_question *q, const char *what, int64_t value,
                  int64_t expected)
{
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_kinds_add_up.id,
                    "%s shows %lld for %s of r%02u, which is %lld%s", fb_sim_name(q->node),
                    (long long)value, what, (unsigned)q->record, (long long)expected,
                    q->exact ? "" : " at least");
}

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)own;
    fb_sim_question q;
    shown s;
    if (!fb_sim_question_of(world, node, fx, &q)) return;
    const fb_sim_model *model = fb_sim_model_of(world);
    if (!read_answer(fx->b == FB_OK ? fb_sim_fact_bytes(fx) : fb_span_of(NULL, 0), &s)) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_kinds_add_up.id,
                        "%s shows a counter of r%02u that is no number, or with siblings",
                        fb_sim_name(node), (unsigned)q.record);
        return;
    }
    due d = due_of(world, model, &q, FB_SIM_COUNTER);
    int64_t sum = s.counter ? s.sum : 0;
    bool less = sum < d.sum;
    if (less || (d.all && sum != d.sum) || (d.all && s.counter != (d.count != 0))) {
        wrong(world, &q, "the counter", sum, d.sum);
    }
    for (uint32_t e = 0; e < FB_SIM_ELEMENTS && !world->stop; e++) {
        d = due_of(world, model, &q, FB_SIM_COUNTER + 1 + e);
        bool there = s.element[e];
        if (d.count != 0 ? !there : d.all && there) {
            char what[] = {'e', (char)('0' + e), 0};
            wrong(world, &q, what, there ? 1 : 0, d.count != 0 ? 1 : 0);
        }
    }
}

const fb_sim_check fb_sim_check_kinds_add_up = {
    .id = "kinds-add-up",
    .musts = "DESIGN 3.1 merge, FI-2-8",
    .cost = "O(siblings) a get",
    .text = "a counter shows what was added and not taken away, a set what was inserted",
    .reply = reply,
};
