/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that a failure needs many of, whichever they are: one line that is done so many times
 * stands for all of them, then as few times as will do. */
#include "sim/shrink/shrink.h"

#define MS     UINT64_C(1000000)
#define JOINED 3u /* two lines say as much as a series of two */

/* Which operations one line may stand for, from the most alike on. */
typedef enum alike {
    ALIKE_RECORD, /* those of a client about one record */
    ALIKE_CLIENT, /* those of a client */
    ALIKE_NODE,   /* of both clients of a node */
    ALIKE_WRITES, /* of a node, puts and changes together */
    ALIKES,
} alike;

static bool is_write(const fb_sim_op *op)
{
    return op->operation == FB_SIM_OP_PUT || op->operation == FB_SIM_OP_CHANGE;
}

static bool is_alike(const fb_sim_line *x, const fb_sim_line *y, alike how)
{
    if (x->kind != FB_SIM_LINE_OP || y->kind != FB_SIM_LINE_OP) return false;
    if (x->round != y->round || x->a != y->a || !fb_sim_op_has_record(&y->op)) return false;
    bool same = x->op.operation == y->op.operation;
    switch (how) {
    case ALIKE_RECORD:
        return same && x->client == y->client && x->op.record == y->op.record && x->over == y->over;
    case ALIKE_CLIENT:
        return same && x->client == y->client;
    case ALIKE_NODE:
        return same;
    default:
        return is_write(&x->op) && is_write(&y->op);
    }
}

static uint32_t length_of(const fb_sim_op *op)
{
    uint32_t total = 0;
    for (uint32_t f = 0; f < FB_SIM_FIELDS; f++) total += op->pad[f];
    return total;
}

/* Lines of the plan that are like the one at `first`, in the order of the text, from the from-th to
 * before the to-th of them. */
typedef struct lot {
    uint32_t first;
    alike how;
    uint32_t from, to;
} lot;

static bool is_in(const fb_sim_plan *plan, const lot *of, uint32_t i, uint32_t *seen)
{
    if (!is_alike(&plan->lines[of->first], &plan->lines[i], of->how)) return false;
    uint32_t place = (*seen)++;
    return of->from <= place && place < of->to;
}

/* The line that stands for all of a lot. */
typedef struct joined {
    fb_sim_line line;
    uint32_t lines;
    uint32_t times;
    uint32_t low, high; /* records */
    uint64_t end_ns;    /* the last one's time */
    uint64_t least_ns;  /* between two of them */
} joined;

static joined join_of(const fb_sim_plan *plan, const lot *of)
{
    joined j = {.low = UINT32_MAX, .least_ns = UINT64_MAX};
    uint64_t before = 0;
    for (uint32_t i = 0, seen = 0; i < plan->line_count; i++) {
        if (!is_in(plan, of, i, &seen)) continue;
        const fb_sim_line *line = &plan->lines[i];
        uint32_t last = line->op.record + (line->over == 0 ? 0 : line->over - 1);
        uint64_t end = line->at_ns + line->more * line->every_ns;
        if (j.lines++ == 0) {
            j.line = *line;
        } else if (line->at_ns > before) {
            j.least_ns = fb_min_u64(j.least_ns, line->at_ns - before);
        }
        if (line->more != 0) j.least_ns = fb_min_u64(j.least_ns, line->every_ns);
        before = end;
        j.times += line->more + 1;
        j.low = line->op.record < j.low ? line->op.record : j.low;
        j.high = last > j.high ? last : j.high;
        j.line.at_ns = fb_min_u64(j.line.at_ns, line->at_ns);
        j.end_ns = fb_max_u64(j.end_ns, end);
        if (length_of(&line->op) > length_of(&j.line.op)) {
            uint32_t number = j.line.op.number;
            j.line.op = line->op;
            j.line.op.number = number;
        }
    }
    return j;
}

/* Tries one line in the place of a lot; over: so many records. */
static bool try_joined(fb_sim_shrinker *s, const lot *of, const joined *j, uint32_t times,
                       uint32_t over)
{
    if (times < 2 || times > FB_SIM_SCHEDULE_TIMES_MAX || fb_sim_shrink_is_over(s)) return false;
    fb_sim_plan candidate;
    if (!fb_sim_plan_copy(&candidate, &s->best)) fb_sim_fail_resource("memory of this machine");
    fb_sim_line line = j->line;
    uint64_t every = (j->end_ns - line.at_ns) / (times - 1);
    line.every_ns = every < 10 * MS ? every : every / (10 * MS) * (10 * MS);
    line.more = times - 1;
    line.over = over;
    if (over > 1) line.op.record = (uint8_t)j->low;
    uint32_t kept = 0;
    bool put = false;
    for (uint32_t i = 0, seen = 0; i < s->best.line_count; i++) {
        if (!is_in(&s->best, of, i, &seen)) {
            candidate.lines[kept++] = s->best.lines[i];
        } else if (!put) {
            candidate.lines[kept++] = line;
            put = true;
        }
    }
    candidate.line_count = kept;
    return fb_sim_shrink_try(s, &candidate);
}

/* As one line, or each half of them. */
static void join(fb_sim_shrinker *s, lot of)
{
    if (of.to - of.from < JOINED || fb_sim_shrink_is_over(s)) return;
    joined j = join_of(&s->best, &of);
    if (j.lines < JOINED) return;
    uint32_t records = of.how == ALIKE_RECORD ? j.line.over : j.high - j.low + 1;
    uint64_t span = j.end_ns - j.line.at_ns;
    /* As many as there are, further apart; or as close as the closest two, where some are gone. */
    uint64_t close = j.least_ns == 0 || j.least_ns > span ? 0 : span / j.least_ns + 1;
    uint32_t dense = close > FB_SIM_SCHEDULE_TIMES_MAX ? 0 : (uint32_t)close;
    if (try_joined(s, &of, &j, j.times, records < 2 ? 0 : records)) return;
    if (records > 1 && try_joined(s, &of, &j, j.times, 0)) return;
    if (dense > j.times && dense / 4 <= j.times &&
        try_joined(s, &of, &j, dense, records < 2 ? 0 : records)) {
        return;
    }
    uint32_t half = of.from + (of.to - of.from) / 2;
    join(s, (lot){of.first, of.how, half, of.to}); /* the later ones first: places stay */
    join(s, (lot){of.first, of.how, of.from, half});
}

void fb_sim_shrink_join(fb_sim_shrinker *s)
{
    for (alike how = ALIKE_RECORD; how < ALIKES; how++) {
        for (uint32_t i = 0; i < s->best.line_count && !fb_sim_shrink_is_over(s); i++) {
            const fb_sim_line *lines = s->best.lines;
            if (lines[i].kind != FB_SIM_LINE_OP || !fb_sim_op_has_record(&lines[i].op)) continue;
            bool begins = true;
            for (uint32_t k = 0; k < i && begins; k++) {
                begins = !is_alike(&lines[k], &lines[i], how);
            }
            lot all = {i, how, 0, s->best.line_count};
            all.to = join_of(&s->best, &all).lines;
            if (begins) join(s, all);
        }
    }
}

static bool try_times(fb_sim_shrinker *s, uint32_t i, uint32_t more, uint32_t over)
{
    const fb_sim_line *now = &s->best.lines[i];
    if (fb_sim_shrink_is_over(s) || (now->more == more && now->over == over)) return false;
    fb_sim_plan candidate;
    if (!fb_sim_plan_copy(&candidate, &s->best)) fb_sim_fail_resource("memory of this machine");
    candidate.lines[i].more = more;
    candidate.lines[i].over = more == 0 || over < 2 ? 0 : over;
    if (more == 0) candidate.lines[i].every_ns = 0;
    return fb_sim_shrink_try(s, &candidate);
}

void fb_sim_shrink_series(fb_sim_shrinker *s)
{
    for (uint32_t i = 0; i < s->best.line_count; i++) {
        if (s->best.lines[i].more == 0 || try_times(s, i, 0, 0)) continue;
        /* A half less, an eighth less, one less, each as often as it goes. */
        for (uint32_t part = 2; part != 0; part = part == 2 ? 8 : part == 8 ? UINT32_MAX : 0) {
            for (bool less = true; less && s->best.lines[i].more != 0;) {
                uint32_t more = s->best.lines[i].more, by = (more + 1) / part;
                less = try_times(s, i, more - (by == 0 ? 1 : by), s->best.lines[i].over);
            }
        }
        while (s->best.lines[i].over != 0 && try_times(s, i, s->best.lines[i].more, 0)) {
        }
        for (bool less = true; less && s->best.lines[i].over > 2;) {
            less = try_times(s, i, s->best.lines[i].more, s->best.lines[i].over / 2);
        }
    }
}
