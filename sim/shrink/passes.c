/* SPDX-License-Identifier: Apache-2.0 */
/* What the shrinker tries. */
#include <stdlib.h>

#include "sim/shrink/shrink.h"

#define SECOND UINT64_C(1000000000)
#define MS     UINT64_C(1000000)

#define THIN_TRIES 6u
#define THIN_LINES 24u

static fb_sim_plan copy_of(const fb_sim_plan *plan)
{
    fb_sim_plan copy;
    if (!fb_sim_plan_copy(&copy, plan)) fb_sim_fail_resource("memory of this machine");
    return copy;
}

/* The best without the lines that keep() refuses. */
typedef bool (*keep)(const fb_sim_plan *plan, uint32_t line, uint64_t a, uint64_t b);

static uint32_t filter(fb_sim_plan *plan, keep wanted, uint64_t a, uint64_t b)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        if (wanted(plan, i, a, b)) plan->lines[kept++] = plan->lines[i];
    }
    uint32_t gone = plan->line_count - kept;
    plan->line_count = kept;
    return gone;
}

/* The same as a candidate; false when nothing would go. */
static bool try_without(fb_sim_shrinker *s, keep wanted, uint64_t a, uint64_t b)
{
    if (fb_sim_shrink_is_over(s)) return false;
    fb_sim_plan candidate = copy_of(&s->best);
    if (filter(&candidate, wanted, a, b) == 0) {
        fb_sim_plan_free(&candidate);
        return false;
    }
    return fb_sim_shrink_try(s, &candidate);
}

/* Rounds. */

static void rounds_cut(fb_sim_plan *plan, uint32_t first, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fb_sim_line line = plan->lines[i];
        if (line.round >= first && line.round < first + count) continue;
        if (line.round >= first + count) line.round -= count;
        plan->lines[kept++] = line;
    }
    plan->line_count = kept;
    for (uint32_t i = first; i + count < plan->round_count; i++) {
        plan->rounds[i] = plan->rounds[i + count];
    }
    plan->round_count -= count;
}

static bool try_quiet(fb_sim_shrinker *s, uint64_t setup_ns, uint64_t settle_ns)
{
    if (s->best.setup_ns <= setup_ns && s->best.settle_ns <= settle_ns) return false;
    fb_sim_plan candidate = copy_of(&s->best);
    if (setup_ns < candidate.setup_ns) candidate.setup_ns = setup_ns;
    if (settle_ns < candidate.settle_ns) candidate.settle_ns = settle_ns;
    return fb_sim_shrink_try(s, &candidate);
}

void fb_sim_shrink_rounds(fb_sim_shrinker *s)
{
    try_quiet(s, 0, 0);
    try_quiet(s, 0, UINT64_MAX);
    static const uint64_t shorter[] = {0, 1, 10, 20, 50};
    for (size_t i = 0; i < sizeof shorter / sizeof shorter[0]; i++) {
        if (try_quiet(s, UINT64_MAX, shorter[i] * SECOND)) break;
    }
    /* Halves from the front, then from anywhere; the last one last. */
    for (uint32_t size = s->best.round_count; size > 0; size /= 2) {
        for (uint32_t first = 0; first < s->best.round_count && !fb_sim_shrink_is_over(s);) {
            uint32_t count = s->best.round_count - first;
            fb_sim_plan candidate = copy_of(&s->best);
            rounds_cut(&candidate, first, count < size ? count : size);
            if (!fb_sim_shrink_try(s, &candidate)) first += size;
        }
    }
    /* Two halves of a story may fit into one. */
    for (uint32_t i = 1; i < s->best.round_count && s->best.round_count < 6; i++) {
        fb_sim_plan candidate = copy_of(&s->best);
        uint64_t length = candidate.rounds[i - 1].length_ns;
        for (uint32_t k = 0; k < candidate.line_count; k++) {
            fb_sim_line *line = &candidate.lines[k];
            if (line->round == i && line->kind <= FB_SIM_LINE_WINDOW) {
                line->at_ns += length;
                line->until_ns += line->kind == FB_SIM_LINE_WINDOW ? length : 0;
            }
            if (line->round >= i) line->round--;
        }
        candidate.rounds[i].length_ns += length;
        for (uint32_t k = i - 1; k + 1 < candidate.round_count; k++) {
            candidate.rounds[k] = candidate.rounds[k + 1];
        }
        candidate.round_count--;
        if (fb_sim_shrink_try(s, &candidate)) i--;
    }
}

/* Classes of lines. */

static bool not_kind(const fb_sim_plan *plan, uint32_t i, uint64_t kind, uint64_t unused)
{
    (void)unused;
    return plan->lines[i].kind != (fb_sim_line_kind)kind;
}

static bool not_fault(const fb_sim_plan *plan, uint32_t i, uint64_t low, uint64_t high)
{
    const fb_sim_line *line = &plan->lines[i];
    return line->kind != FB_SIM_LINE_WINDOW || line->fault < low || line->fault >= high;
}

static bool not_operation(const fb_sim_plan *plan, uint32_t i, uint64_t operation, uint64_t unused)
{
    const fb_sim_line *line = &plan->lines[i];
    (void)unused;
    return line->kind != FB_SIM_LINE_OP || line->op.operation != operation;
}

static bool not_client(const fb_sim_plan *plan, uint32_t i, uint64_t node, uint64_t client)
{
    const fb_sim_line *line = &plan->lines[i];
    return line->kind != FB_SIM_LINE_OP || line->a != node || line->client != client;
}

/* Without the nodes from `nodes` on. Groups forget them by themselves. */
static bool is_among(const fb_sim_plan *plan, uint32_t i, uint64_t nodes, uint64_t unused)
{
    const fb_sim_line *line = &plan->lines[i];
    (void)unused;
    return line->a < nodes && line->b < nodes;
}

static bool try_nodes(fb_sim_shrinker *s, uint32_t nodes)
{
    if (fb_sim_shrink_is_over(s)) return false;
    fb_sim_plan candidate = copy_of(&s->best);
    candidate.nodes = nodes;
    filter(&candidate, is_among, nodes, 0);
    for (uint32_t i = 0; i < candidate.line_count; i++) {
        fb_sim_window_normalise(&candidate, &candidate.lines[i]);
    }
    for (uint32_t i = 0; i < candidate.round_count; i++) {
        uint64_t all = nodes >= 64 ? UINT64_MAX : (UINT64_C(1) << nodes) - 1;
        candidate.rounds[i].core &= all;
        if (candidate.rounds[i].core == all) candidate.rounds[i].core = 0;
    }
    candidate.second &= nodes >= 64 ? UINT64_MAX : (UINT64_C(1) << nodes) - 1;
    candidate.documents &= nodes >= 64 ? UINT64_MAX : (UINT64_C(1) << nodes) - 1;
    return fb_sim_shrink_try(s, &candidate);
}

/* Documents go whole. */
static void try_documents(fb_sim_shrinker *s)
{
    if (s->best.documents == 0) return;
    fb_sim_plan candidate = copy_of(&s->best);
    candidate.documents = 0;
    fb_sim_shrink_try(s, &candidate);
}

/* A second space goes whole, or loses members. */
static void try_second(fb_sim_shrinker *s)
{
    for (uint32_t i = 0; i <= 64 && s->best.second != 0 && !fb_sim_shrink_is_over(s); i++) {
        fb_sim_plan candidate = copy_of(&s->best);
        candidate.second &= i == 0 ? 0 : ~(UINT64_C(1) << (i - 1));
        if (candidate.second == s->best.second) {
            fb_sim_plan_free(&candidate);
            continue;
        }
        fb_sim_shrink_try(s, &candidate);
    }
}

void fb_sim_shrink_classes(fb_sim_shrinker *s)
{
    try_documents(s);
    try_second(s);
    for (uint32_t nodes = 2; nodes < s->best.nodes && nodes < 5; nodes++) {
        if (try_nodes(s, nodes)) break;
    }
    try_without(s, not_fault, 0, FB_SIM_FAULTS);
    try_without(s, not_kind, FB_SIM_LINE_OP, 0);
    for (uint32_t size = FB_SIM_FAULTS / 2; size > 0; size /= 2) {
        for (uint32_t low = 0; low < FB_SIM_FAULTS; low += size) {
            try_without(s, not_fault, low, low + size);
        }
    }
    for (uint32_t i = 0; i < FB_SIM_OPS; i++) try_without(s, not_operation, i, 0);
    for (uint32_t i = 0; i < s->best.nodes; i++) {
        for (uint32_t client = 0; client < FB_SIM_CLIENTS; client++) {
            try_without(s, not_client, i, client);
        }
    }
}

/* Nodes. */

static uint64_t used_nodes(const fb_sim_plan *plan)
{
    uint64_t used = 1 | plan->documents; /* the first one creates the space */
    for (uint32_t i = 0; i < plan->line_count; i++) {
        used |= UINT64_C(1) << (plan->lines[i].a % 64) | UINT64_C(1) << (plan->lines[i].b % 64);
    }
    return used;
}

/* Moves node `from` to the place of `to`, which nobody needs. */
static void node_move(fb_sim_plan *plan, uint32_t from, uint32_t to)
{
    uint64_t member = plan->second >> from & 1;
    plan->second = (plan->second & ~(UINT64_C(1) << to | UINT64_C(1) << from)) | member << to;
    uint64_t documents = plan->documents >> from & 1;
    plan->documents = (plan->documents & ~(UINT64_C(1) << to | UINT64_C(1) << from)) | documents
                                                                                           << to;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fb_sim_line *line = &plan->lines[i];
        if (line->a == from) line->a = to;
        if (line->b == from) line->b = to;
        uint64_t low = line->q >> from & 1, high = line->mask >> from & 1;
        fb_sim_shape_who who = fb_sim_shape_of(line->fault)->who;
        if (line->kind != FB_SIM_LINE_WINDOW ||
            (who != FB_SIM_WHO_GROUPS && who != FB_SIM_WHO_BRIDGE)) {
            continue;
        }
        line->q = (line->q & ~(UINT64_C(1) << to)) | low << to;
        line->mask = (line->mask & ~(UINT64_C(1) << to)) | high << to;
    }
}

void fb_sim_shrink_nodes(fb_sim_shrinker *s)
{
    for (uint32_t nodes = 2; nodes < s->best.nodes; nodes++) {
        if (try_nodes(s, nodes)) break;
    }
    if (s->best.nodes > 64) return;
    uint64_t used = used_nodes(&s->best);
    fb_sim_plan candidate = copy_of(&s->best);
    bool moved = false;
    for (uint32_t to = 1; to < candidate.nodes; to++) {
        if ((used >> to & 1) != 0) continue;
        uint32_t from = to + 1;
        while (from < candidate.nodes && (used >> from & 1) == 0) from++;
        if (from >= candidate.nodes) break;
        node_move(&candidate, from, to);
        used = (used & ~(UINT64_C(1) << from)) | UINT64_C(1) << to;
        moved = true;
    }
    if (!moved || !fb_sim_shrink_try(s, &candidate)) {
        if (!moved) fb_sim_plan_free(&candidate);
        return;
    }
    for (uint32_t nodes = 2; nodes < s->best.nodes; nodes++) {
        if (try_nodes(s, nodes)) break;
    }
}

/* Sizes: what needs a table to be full needs few lines when it is small. One more line in the
 * header, so only while there are many. */

static void try_size(fb_sim_shrinker *s, const char *name, uint64_t value)
{
    uint32_t row = 0;
    while (strcmp(fb_sim_setting_rows[row].name, name) != 0) row++;
    if (s->best.setting_count == FB_SIM_SETTINGS_MAX || fb_sim_shrink_is_over(s)) return;
    for (uint32_t i = 0; i < s->best.setting_count; i++) {
        if (s->best.settings[i].row == row) return;
    }
    fb_sim_plan candidate = copy_of(&s->best);
    candidate.settings[candidate.setting_count++] = (fb_sim_setting){row, value};
    fb_sim_shrink_try(s, &candidate);
}

void fb_sim_shrink_sizes(fb_sim_shrinker *s)
{
    static const uint64_t values[] = {4, 8, 16, 32};
    static const char *const names[] = {"seen-ids", "envelopes"};
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            if (s->best.line_count > THIN_LINES) try_size(s, names[n], values[i]);
        }
    }
}

/* Lines at random: where a failure needs enough of something and not just these, taking most of it
 * away at once and looking at a few such runs gets there in few runs. */

static bool is_drawn(const fb_sim_plan *plan, uint32_t i, uint64_t of, uint64_t occurrence)
{
    /* Of windows fewer go: there are few, and they are why. */
    uint64_t parts = plan->lines[i].kind == FB_SIM_LINE_OP ? of : 2;
    return fb_draw_below((fb_seed){1, 1}, FB_SIM_STREAM_SHRINK, i, occurrence, parts) == 0;
}

/* A fault that strikes one send of fifty hides a bug behind fifty sends. */
static void strengthen(fb_sim_shrinker *s)
{
    static const uint64_t of[] = {4, 16};
    for (size_t k = 0; k < sizeof of / sizeof of[0]; k++) {
        bool changed = false;
        fb_sim_plan candidate = copy_of(&s->best);
        for (uint32_t i = 0; i < candidate.line_count; i++) {
            fb_sim_line *line = &candidate.lines[i];
            if (line->kind != FB_SIM_LINE_WINDOW || line->p <= of[k]) continue;
            if (fb_sim_shape_of(line->fault)->p_type != FB_SIM_SHAPE_RATIO) continue;
            line->p = of[k];
            changed = true;
        }
        if (!changed || fb_sim_shrink_is_over(s)) {
            fb_sim_plan_free(&candidate);
            return;
        }
        if (fb_sim_shrink_try(s, &candidate)) return;
    }
}

void fb_sim_shrink_thin(fb_sim_shrinker *s)
{
    uint64_t occurrence = 0;
    if (s->best.line_count > THIN_LINES) strengthen(s);
    for (uint32_t of = 16; of > 1; of /= 2) {
        for (uint32_t tries = 0; tries < THIN_TRIES && s->best.line_count > THIN_LINES; tries++) {
            if (fb_sim_shrink_is_over(s)) return;
            if (try_without(s, is_drawn, of, occurrence++)) tries = 0;
        }
    }
}

/* Lines: chunks, halved until they are single ones. */

static bool outside(const fb_sim_plan *plan, uint32_t i, uint64_t first, uint64_t count)
{
    (void)plan;
    return i < first || i >= first + count;
}

void fb_sim_shrink_lines(fb_sim_shrinker *s)
{
    uint32_t size = s->best.line_count;
    while (size > 0 && !fb_sim_shrink_is_over(s)) {
        bool helped = false;
        /* From the back: what comes last is often what nobody waits for. */
        for (uint32_t end = s->best.line_count; end > 0 && !fb_sim_shrink_is_over(s);) {
            uint32_t first = end > size ? end - size : 0;
            helped = try_without(s, outside, first, end - first) || helped;
            end = first;
        }
        if (size == 1 && !helped) return;
        if (size == 1) continue;
        size = size / 2;
        if (size > s->best.line_count) size = s->best.line_count;
    }
}

/* The header. */

void fb_sim_shrink_header(fb_sim_shrinker *s)
{
    try_second(s);
    if (s->best.steps != 0) {
        fb_sim_plan candidate = copy_of(&s->best);
        candidate.steps = 0;
        fb_sim_shrink_try(s, &candidate);
    }
    for (uint32_t i = s->best.setting_count; i-- > 0 && !fb_sim_shrink_is_over(s);) {
        fb_sim_plan candidate = copy_of(&s->best);
        candidate.setting_count--;
        for (uint32_t k = i; k < candidate.setting_count; k++) {
            candidate.settings[k] = candidate.settings[k + 1];
        }
        fb_sim_shrink_try(s, &candidate);
    }
    for (uint32_t i = 0; i < s->best.round_count && !fb_sim_shrink_is_over(s); i++) {
        if (s->best.rounds[i].core != 0) {
            fb_sim_plan candidate = copy_of(&s->best);
            candidate.rounds[i].core = 0;
            fb_sim_shrink_try(s, &candidate);
        }
        if (s->best.rounds[i].number != i + 1) {
            fb_sim_plan candidate = copy_of(&s->best);
            for (uint32_t k = i; k < candidate.round_count; k++) candidate.rounds[k].number = k + 1;
            fb_sim_shrink_try(s, &candidate);
        }
    }
    if (strlen(s->best.seed_text) > 1) {
        fb_sim_plan candidate = copy_of(&s->best);
        snprintf(candidate.seed_text, sizeof candidate.seed_text, "1");
        fb_sim_shrink_try(s, &candidate);
    }
    /* A planted bug that is not needed is none. */
}

/* Times. */

static uint64_t rounded(uint64_t ns, uint64_t unit)
{
    return (ns + unit / 2) / unit * unit;
}

static bool round_line(fb_sim_line *line, uint64_t unit)
{
    fb_sim_line before = *line;
    if (line->kind == FB_SIM_LINE_OP || line->kind == FB_SIM_LINE_WINDOW) {
        line->at_ns = rounded(line->at_ns, unit);
    }
    if (line->more != 0 && rounded(line->every_ns, unit) != 0) {
        line->every_ns = rounded(line->every_ns, unit);
    }
    if (line->kind == FB_SIM_LINE_WINDOW) {
        line->until_ns = rounded(line->until_ns, unit);
        if (line->until_ns <= line->at_ns) line->until_ns = line->at_ns + unit;
    }
    return !fb_sim_line_equal(line, &before);
}

/* Nothing more than its lines need, and a little. */
static uint64_t needed_ns(const fb_sim_plan *plan, uint32_t round)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        if (plan->lines[i].round != round) continue;
        const fb_sim_line *line = &plan->lines[i];
        uint64_t end = line->at_ns + line->more * line->every_ns;
        last = fb_max_u64(last, fb_max_u64(end, line->until_ns));
    }
    return last;
}

static void round_lengths(fb_sim_shrinker *s)
{
    for (uint32_t i = 0; i < s->best.round_count && !fb_sim_shrink_is_over(s); i++) {
        uint64_t needed = needed_ns(&s->best, i);
        uint64_t tries[] = {(needed / SECOND + 1) * SECOND, (needed / SECOND + 2) * SECOND,
                            rounded(s->best.rounds[i].length_ns / 2, SECOND),
                            rounded(s->best.rounds[i].length_ns, 5 * SECOND),
                            rounded(s->best.rounds[i].length_ns, SECOND)};
        for (size_t k = 0; k < sizeof tries / sizeof tries[0]; k++) {
            uint64_t now = s->best.rounds[i].length_ns;
            bool simpler = tries[k] < now || (now % SECOND != 0 && tries[k] % SECOND == 0);
            if (tries[k] == now || tries[k] == 0 || !simpler) continue;
            fb_sim_plan candidate = copy_of(&s->best);
            candidate.rounds[i].length_ns = tries[k];
            if (fb_sim_shrink_try(s, &candidate)) break;
        }
    }
}

/* Everything of a round so much earlier that its first line, or the second, begins at once. */
static void shift(fb_sim_shrinker *s, uint32_t round)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < s->best.line_count; i++) {
        const fb_sim_line *line = &s->best.lines[i];
        if (line->round == round && line->kind <= FB_SIM_LINE_WINDOW) {
            first = fb_min_u64(first, line->at_ns);
        }
    }
    static const uint64_t starts[] = {0, SECOND, 2 * SECOND};
    for (size_t k = 0; k < sizeof starts / sizeof starts[0] && first != UINT64_MAX; k++) {
        if (first <= starts[k] || fb_sim_shrink_is_over(s)) return;
        fb_sim_plan candidate = copy_of(&s->best);
        uint64_t by = first - starts[k];
        for (uint32_t i = 0; i < candidate.line_count; i++) {
            fb_sim_line *line = &candidate.lines[i];
            if (line->round != round || line->kind > FB_SIM_LINE_WINDOW) continue;
            line->at_ns -= by;
            if (line->kind == FB_SIM_LINE_WINDOW) line->until_ns -= by;
        }
        if (candidate.rounds[round].length_ns > by) candidate.rounds[round].length_ns -= by;
        if (fb_sim_shrink_try(s, &candidate)) return;
    }
}

void fb_sim_shrink_times(fb_sim_shrinker *s)
{
    for (uint32_t i = 0; i < s->best.round_count && i < 16; i++) shift(s, i);
    static const uint64_t units[] = {10 * SECOND, SECOND, 500 * MS, 100 * MS, 10 * MS, MS, 1000};
    round_lengths(s);
    for (size_t u = 1; u < sizeof units / sizeof units[0]; u++) {
        fb_sim_plan candidate = copy_of(&s->best);
        bool changed = false;
        for (uint32_t i = 0; i < candidate.line_count; i++) {
            changed = round_line(&candidate.lines[i], units[u]) || changed;
        }
        if (!changed) {
            fb_sim_plan_free(&candidate);
            return;
        }
        if (fb_sim_shrink_try(s, &candidate)) break;
    }
    for (uint32_t i = 0; i < s->best.line_count && s->best.line_count <= 64; i++) {
        for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
            fb_sim_plan candidate = copy_of(&s->best);
            if (!round_line(&candidate.lines[i], units[u])) {
                fb_sim_plan_free(&candidate);
                /* A finer one would not change it either. */
                if (s->best.lines[i].at_ns % units[u] == 0) break;
                continue;
            }
            if (fb_sim_shrink_try(s, &candidate)) break;
        }
    }
    round_lengths(s);
}

/* Values. */

/* One significant digit. */
static uint64_t plain(uint64_t v)
{
    uint64_t unit = 1;
    while (v / unit >= 10) unit *= 10;
    return v / unit * unit;
}

/* The i-th simplification of a line; false when there is none of this number. */
static bool simplify(const fb_sim_plan *plan, fb_sim_line *line, uint32_t which, uint32_t place)
{
    fb_sim_op *op = &line->op;
    bool window = line->kind == FB_SIM_LINE_WINDOW;
    switch (which) {
    case 0:
        if (line->kind == FB_SIM_LINE_OP) {
            memset(op->pad, 0, sizeof op->pad);
            op->empty = op->unset = 0;
        }
        return true;
    case 1:
        if (line->kind == FB_SIM_LINE_OP && op->fields != 0) op->fields = 1;
        return true;
    case 2:
        if (line->kind == FB_SIM_LINE_OP && op->items != 0) op->items = 1;
        if (line->kind == FB_SIM_LINE_OP) op->record = 0;
        break;
    case 3:
        if (line->kind == FB_SIM_LINE_OP) line->client = 0;
        line->within_ns = FB_SIM_SCHEDULE_WITHIN_NS;
        break;
    case 4:
        if (line->kind == FB_SIM_LINE_OP && op->fields != 0) op->number = place + 1;
        break;
    case 5:
        if (window) line->key = 1;
        break;
    case 6:
        if (window && fb_sim_shape_of(line->fault)->who != FB_SIM_WHO_ANY) line->p = plain(line->p);
        break;
    case 7:
        if (window && fb_sim_shape_of(line->fault)->q_type != FB_SIM_SHAPE_NONE) {
            line->q = plain(line->q);
        }
        break;
    case 8:
        /* Often enough that it does not hang on the seed, but not always. */
        if (window && fb_sim_shape_of(line->fault)->p_type == FB_SIM_SHAPE_RATIO && line->p > 4) {
            line->p = 4;
        }
        break;
    case 9:
        if (window) line->at_ns = 0;
        break;
    case 10:
        if (window) line->until_ns = plan->rounds[line->round].length_ns;
        if (line->until_ns < line->at_ns) line->until_ns = line->at_ns;
        break;
    default:
        return false;
    }
    if (line->kind == FB_SIM_LINE_OP) {
        fb_sim_op_normalise(op);
        bool counts = op->operation == FB_SIM_OP_LIST || op->operation == FB_SIM_OP_ADD;
        if (counts && op->items == 0) op->items = 1;
    }
    return true;
}

void fb_sim_shrink_values(fb_sim_shrinker *s)
{
    if (s->best.line_count > 200) return;
    uint32_t place = 0; /* when every operation is a line */
    for (uint32_t i = 0; i < s->best.line_count; place += s->best.lines[i++].more + 1) {
        for (uint32_t which = 0; !fb_sim_shrink_is_over(s); which++) {
            fb_sim_plan candidate = copy_of(&s->best);
            bool more = simplify(&candidate, &candidate.lines[i], which, place);
            if (!more || fb_sim_line_equal(&candidate.lines[i], &s->best.lines[i])) {
                fb_sim_plan_free(&candidate);
                if (!more) break;
                continue;
            }
            fb_sim_shrink_try(s, &candidate);
        }
    }
}
