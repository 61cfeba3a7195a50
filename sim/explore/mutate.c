/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/explore/mutate.h"

#include "protocol/core/effect.h"
#include "sim/weather/weather.h"

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static uint32_t other_node(fb_sim_dice *d, const fb_sim_plan *plan, uint32_t node)
{
    uint32_t step = plan->nodes < 2 ? 0 : 1 + (uint32_t)fb_sim_roll(d, plan->nodes - 1);
    return (node + step) % plan->nodes;
}

/* One of the windows; NULL when there is none. */
static fb_sim_line *any_window(fb_sim_plan *plan, fb_sim_dice *d)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        count += plan->lines[i].kind == FB_SIM_LINE_WINDOW;
    }
    if (count == 0) return NULL;
    uint64_t pick = fb_sim_roll(d, count);
    for (uint32_t i = 0; i < plan->line_count; i++) {
        if (plan->lines[i].kind == FB_SIM_LINE_WINDOW && pick-- == 0) return &plan->lines[i];
    }
    return NULL;
}

/* Draws of a window hang on its key: those of a copy are others. */
static uint32_t other_key(fb_sim_dice *d)
{
    return 1000 + (uint32_t)fb_sim_roll(d, 60000);
}

/* A window keeps its length and stays within its round. */
static void window_to(const fb_sim_plan *plan, fb_sim_line *line, uint64_t at_ns)
{
    uint64_t length = line->until_ns - line->at_ns;
    uint64_t end = plan->rounds[line->round].length_ns;
    line->at_ns = at_ns < end ? at_ns : end;
    line->until_ns = fb_min_u64(line->at_ns + length, end);
}

/* The changes. Each returns false when there is no memory for it; one that finds nothing to change
 * changes nothing. */

static bool other_seed(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    snprintf(plan->seed_text, sizeof plan->seed_text, "%llu",
             (unsigned long long)fb_sim_roll(d, UINT64_C(1) << 53));
    return true;
}

static bool fault_gone(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    const fb_sim_line *chosen = any_window(plan, d);
    if (chosen == NULL) return true;
    uint32_t fault = chosen->fault, kept = 0;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fb_sim_line line = plan->lines[i];
        if (line.kind == FB_SIM_LINE_WINDOW && line.fault == fault) continue;
        plan->lines[kept++] = line;
    }
    plan->line_count = kept;
    return true;
}

static bool windows_thinned(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    uint64_t of_16 = 2 + fb_sim_roll(d, 9);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fb_sim_line line = plan->lines[i];
        if (line.kind != FB_SIM_LINE_OP && fb_sim_roll(d, 16) < of_16) continue;
        plan->lines[kept++] = line;
    }
    plan->line_count = kept;
    return true;
}

static bool window_moved(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    fb_sim_line *line = any_window(plan, d);
    if (line != NULL)
        window_to(plan, line, fb_sim_roll(d, plan->rounds[line->round].length_ns + 1));
    return true;
}

/* Just as another one begins or ends: two faults at once are worth more than one after another. */
static bool windows_together(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    fb_sim_line *line = any_window(plan, d);
    if (line == NULL) return true;
    for (int tries = 0; tries < 8; tries++) {
        const fb_sim_line *with = any_window(plan, d);
        if (with == line || with->round != line->round) continue;
        uint64_t at = fb_sim_roll(d, 2) == 0 ? with->at_ns : with->until_ns;
        window_to(plan, line, at + fb_sim_roll(d, 200 * MS));
        break;
    }
    return true;
}

static bool window_stretched(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    fb_sim_line *line = any_window(plan, d);
    if (line == NULL) return true;
    uint64_t length = line->until_ns - line->at_ns;
    length = fb_sim_roll(d, 2) == 0 ? length / 4 : length * 4;
    line->until_ns = fb_min_u64(line->at_ns + length, plan->rounds[line->round].length_ns);
    return true;
}

static bool window_elsewhere(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    fb_sim_line *line = any_window(plan, d);
    if (line == NULL || fb_sim_shape_of(line->fault)->who == FB_SIM_WHO_GROUPS) return true;
    bool whole = line->a == line->b;
    line->a = (uint32_t)fb_sim_roll(d, plan->nodes);
    line->b = whole ? line->a : other_node(d, plan, line->a);
    fb_sim_window_normalise(plan, line);
    return true;
}

/* Within what the language allows of this fault. */
static bool window_harder(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    fb_sim_line *line = any_window(plan, d);
    if (line == NULL) return true;
    const fb_sim_shape *shape = fb_sim_shape_of(line->fault);
    if (shape->p_type == FB_SIM_SHAPE_NONE || line->p == 0) return true;
    uint64_t most = shape->p_most == 0 ? UINT64_MAX : shape->p_most;
    uint64_t p = fb_sim_roll(d, 2) == 0 ? line->p / 4 : fb_add_sat_u64(line->p, line->p * 2);
    line->p = fb_min_u64(p == 0 ? 1 : p, most);
    return true;
}

static bool window_again(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    const fb_sim_line *from = any_window(plan, d);
    if (from == NULL) return true;
    fb_sim_line line = *from;
    fb_sim_line *to = fb_sim_plan_line_add(plan);
    if (to == NULL) return plan->line_count >= FB_SIM_SCHEDULE_LINES_MAX;
    *to = line;
    to->key = other_key(d);
    window_to(plan, to, fb_sim_roll(d, plan->rounds[to->round].length_ns + 1));
    fb_sim_plan_sort(plan);
    return true;
}

/* One message of a kind meets a fault. */
static bool message_line(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    fb_sim_line *line = fb_sim_plan_line_add(plan);
    if (line == NULL) return plan->line_count >= FB_SIM_SCHEDULE_LINES_MAX;
    line->kind = FB_SIM_LINE_MESSAGE;
    line->round = (uint32_t)fb_sim_roll(d, plan->round_count);
    line->a = (uint32_t)fb_sim_roll(d, plan->nodes);
    line->b = other_node(d, plan, line->a);
    line->what = (uint32_t)fb_sim_roll(d, FB_SIM_MESSAGE_KINDS);
    line->nth = 1 + (uint32_t)fb_sim_roll(d, UINT64_C(1) << (1 + fb_sim_roll(d, 5)));
    line->act = (uint32_t)fb_sim_roll(d, FB_SIM_MESSAGE_ACTS);
    if (line->act == FB_SIM_MESSAGE_DELAY) line->span_ns = (1 + fb_sim_roll(d, 2000)) * 10 * MS;
    fb_sim_plan_sort(plan);
    return true;
}

/* A process ends at an effect. */
static bool crash_line(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    static const uint32_t kinds[] = {FB_FX_WRITE, FB_FX_SEND, FB_FX_FRAME, FB_FX_REPLY, FB_FX_READ};
    fb_sim_line *line = fb_sim_plan_line_add(plan);
    if (line == NULL) return plan->line_count >= FB_SIM_SCHEDULE_LINES_MAX;
    line->kind = FB_SIM_LINE_CRASH;
    line->round = (uint32_t)fb_sim_roll(d, plan->round_count);
    line->a = line->b = (uint32_t)fb_sim_roll(d, plan->nodes);
    line->what = kinds[fb_sim_roll(d, sizeof kinds / sizeof kinds[0])];
    line->nth = 1 + (uint32_t)fb_sim_roll(d, UINT64_C(1) << (2 + fb_sim_roll(d, 7)));
    line->span_ns = (1 + fb_sim_roll(d, 500)) * 10 * MS;
    fb_sim_plan_sort(plan);
    return true;
}

/* Clients meet at the same few records. */
static bool same_records(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    uint64_t records = 1 + fb_sim_roll(d, 3);
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fb_sim_line *line = &plan->lines[i];
        if (line->kind != FB_SIM_LINE_OP) continue;
        line->op.record = (uint8_t)(line->op.record % records);
        fb_sim_op_normalise(&line->op);
    }
    return true;
}

/* Fewer of them: what is left of a run is its weather, in far fewer steps. */
static bool clients_thinned(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    uint64_t of_16 = 6 + fb_sim_roll(d, 9);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fb_sim_line line = plan->lines[i];
        if (line.kind == FB_SIM_LINE_OP && fb_sim_roll(d, 16) < of_16) continue;
        plan->lines[kept++] = line;
    }
    plan->line_count = kept;
    return true;
}

/* Values grow: what was small fills sets and frames. */
static bool values_grown(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    uint64_t of_16 = 1 + fb_sim_roll(d, 8), most = UINT64_C(1) << (8 + fb_sim_roll(d, 9));
    if (most > FB_SIM_PAD_MAX) most = FB_SIM_PAD_MAX;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fb_sim_line *line = &plan->lines[i];
        if (line->kind != FB_SIM_LINE_OP || fb_sim_roll(d, 16) >= of_16) continue;
        for (uint32_t f = 0; f < FB_SIM_FIELDS; f++) {
            line->op.pad[f] = (uint16_t)(most / 2 + fb_sim_roll(d, most / 2));
        }
        fb_sim_op_normalise(&line->op);
    }
    return true;
}

/* What the clients do in a stretch of a round they do all at once, as a window begins or ends. */
static bool clients_hurried(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    const fb_sim_line *window = any_window(plan, d);
    if (window == NULL) return true;
    uint32_t round = window->round;
    uint64_t at = fb_sim_roll(d, 2) == 0 ? window->at_ns : window->until_ns;
    uint64_t length = plan->rounds[round].length_ns;
    uint64_t span = length >> fb_sim_roll(d, 4);
    at = fb_min_u64(at + fb_sim_roll(d, 100 * MS), length);
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fb_sim_line *line = &plan->lines[i];
        bool near = line->at_ns <= at ? at - line->at_ns <= span : line->at_ns - at <= span;
        if (line->kind == FB_SIM_LINE_OP && line->round == round && near) line->at_ns = at;
    }
    fb_sim_plan_sort(plan);
    return true;
}

/* Rounds. */

/* What is open at the end of a round lasts, and nothing else happens: many seconds, few steps. */
static bool round_lengthened(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    uint32_t round = (uint32_t)fb_sim_roll(d, plan->round_count);
    uint64_t before = plan->rounds[round].length_ns;
    uint64_t length = fb_min_u64(before << (1 + fb_sim_roll(d, 3)), 300 * SECOND);
    if (length <= before) return true;
    plan->rounds[round].length_ns = length;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fb_sim_line *line = &plan->lines[i];
        if (line->kind != FB_SIM_LINE_WINDOW || line->round != round) continue;
        if (line->until_ns >= before || fb_sim_roll(d, 4) == 0) line->until_ns = length;
    }
    return true;
}

/* The beginning of one stays; a window that is open then ends with it. */
static bool round_shortened(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    uint32_t round = (uint32_t)fb_sim_roll(d, plan->round_count), kept = 0;
    uint64_t length = plan->rounds[round].length_ns;
    if (length < 2 * SECOND) return true;
    length = length / 16 * (4 + fb_sim_roll(d, 9));
    plan->rounds[round].length_ns = length;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fb_sim_line line = plan->lines[i];
        if (line.round == round && line.kind <= FB_SIM_LINE_WINDOW) {
            if (line.at_ns >= length) continue;
            if (line.kind == FB_SIM_LINE_WINDOW) line.until_ns = fb_min_u64(line.until_ns, length);
        }
        plan->lines[kept++] = line;
    }
    plan->line_count = kept;
    return true;
}

static void lines_of_round_gone(fb_sim_plan *plan, uint32_t round)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        if (plan->lines[i].round != round) plan->lines[kept++] = plan->lines[i];
    }
    plan->line_count = kept;
}

/* A copy of one of its rounds, behind all others. The lines that are new are the last ones. */
static bool round_added(fb_sim_plan *plan, const fb_sim_plan *from, uint32_t round)
{
    fb_sim_plan_round source = from->rounds[round];
    fb_sim_plan_round *to = fb_sim_plan_round_add(plan);
    if (to == NULL) return plan->round_count >= FB_SIM_SCHEDULE_ROUNDS_MAX;
    *to = source;
    /* Numbers of rounds rise. */
    uint32_t at = plan->round_count - 1;
    if (at > 0) to->number = fb_max_u64(to->number, plan->rounds[at - 1].number + 1);
    if (plan->nodes < 64) to->core &= (UINT64_C(1) << plan->nodes) - 1;
    uint32_t count = from->line_count;
    for (uint32_t i = 0; i < count; i++) {
        fb_sim_line line = from->lines[i];
        if (line.round != round || line.a >= plan->nodes || line.b >= plan->nodes) continue;
        fb_sim_line *added = fb_sim_plan_line_add(plan);
        if (added == NULL) return plan->line_count >= FB_SIM_SCHEDULE_LINES_MAX;
        *added = line;
        added->round = plan->round_count - 1;
        if (line.kind == FB_SIM_LINE_WINDOW) fb_sim_window_normalise(plan, added);
    }
    return true;
}

/* Two stories in one: the windows of a round of the other happen in one of this. */
static bool weather_of_other(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    if (other->round_count == 0 || other->nodes != plan->nodes) return true;
    uint32_t from = (uint32_t)fb_sim_roll(d, other->round_count);
    uint32_t to = (uint32_t)fb_sim_roll(d, plan->round_count);
    bool instead = fb_sim_roll(d, 2) == 0;
    if (instead) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < plan->line_count; i++) {
            fb_sim_line line = plan->lines[i];
            if (line.round == to && line.kind != FB_SIM_LINE_OP) continue;
            plan->lines[kept++] = line;
        }
        plan->line_count = kept;
    }
    uint32_t count = other->line_count;
    for (uint32_t i = 0; i < count; i++) {
        fb_sim_line line = other->lines[i];
        if (line.round != from || line.kind == FB_SIM_LINE_OP) continue;
        fb_sim_line *added = fb_sim_plan_line_add(plan);
        if (added == NULL) return plan->line_count >= FB_SIM_SCHEDULE_LINES_MAX;
        *added = line;
        added->round = to;
        added->key = other_key(d);
        if (line.kind == FB_SIM_LINE_WINDOW) {
            uint64_t end = plan->rounds[to].length_ns;
            added->at_ns = fb_min_u64(added->at_ns, end);
            added->until_ns = fb_min_u64(added->until_ns, end);
        }
    }
    fb_sim_plan_sort(plan);
    return true;
}

static bool round_of_other(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    if (other->round_count == 0) return true;
    return round_added(plan, other, (uint32_t)fb_sim_roll(d, other->round_count));
}

static bool round_again(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    uint32_t round = (uint32_t)fb_sim_roll(d, plan->round_count);
    return round_added(plan, plan, round);
}

/* So many rounds from anywhere stay. */
static void rounds_limited(fb_sim_plan *plan, fb_sim_dice *d, uint32_t most)
{
    if (plan->round_count <= most) return;
    uint32_t first = (uint32_t)fb_sim_roll(d, plan->round_count - most + 1), kept = 0;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fb_sim_line line = plan->lines[i];
        if (line.round < first || line.round >= first + most) continue;
        line.round -= first;
        plan->lines[kept++] = line;
    }
    plan->line_count = kept;
    for (uint32_t i = 0; i < most; i++) plan->rounds[i] = plan->rounds[first + i];
    plan->round_count = most;
}

static bool rounds_fewer(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    rounds_limited(plan, d, 1 + (uint32_t)fb_sim_roll(d, 2));
    return true;
}

static bool round_without_weather(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d)
{
    (void)other;
    if (plan->round_count < 2) return true;
    lines_of_round_gone(plan, (uint32_t)fb_sim_roll(d, plan->round_count));
    return true;
}

typedef bool (*change)(fb_sim_plan *plan, const fb_sim_plan *other, fb_sim_dice *d);

static const change changes[] = {
    other_seed,       other_seed,       fault_gone,       windows_thinned,  window_moved,
    windows_together, windows_together, window_again,     window_again,     window_stretched,
    window_elsewhere, window_harder,    message_line,     message_line,     crash_line,
    crash_line,       same_records,     rounds_fewer,     round_again,      round_without_weather,
    weather_of_other, weather_of_other, round_of_other,   clients_thinned,  clients_thinned,
    round_shortened,  round_shortened,  values_grown,     values_grown,     clients_hurried,
    clients_hurried,  clients_hurried,  round_lengthened, round_lengthened,
};

void fb_sim_windows_limit(fb_sim_plan *plan)
{
    uint32_t kept = 0, round = UINT32_MAX, windows = 0;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        fb_sim_line line = plan->lines[i];
        if (line.round != round) windows = 0;
        round = line.round;
        if (line.kind == FB_SIM_LINE_WINDOW && windows++ >= FB_SIM_WINDOWS_MAX) continue;
        plan->lines[kept++] = line;
    }
    plan->line_count = kept;
}

bool fb_sim_mutate(fb_sim_plan *plan, const fb_sim_plan *other, fb_seed seed, uint64_t number)
{
    fb_sim_dice d = {seed, FB_SIM_STREAM_EXPLORE, number, 0};
    plan->expect = FB_SIM_EXPECT_NOTHING;
    plan->check[0] = 0;
    plan->has_hash = false;
    if (plan->round_count == 0) return other_seed(plan, other, &d);
    rounds_limited(plan, &d, FB_SIM_MUTATED_ROUNDS);
    uint64_t count = 1 + fb_sim_roll(&d, UINT64_C(1) << fb_sim_roll(&d, 4));
    for (uint64_t i = 0; i < count; i++) {
        if (!changes[fb_sim_roll(&d, sizeof changes / sizeof changes[0])](plan, other, &d))
            return false;
    }
    rounds_limited(plan, &d, FB_SIM_MUTATED_ROUNDS);
    fb_sim_windows_limit(plan);
    return true;
}
