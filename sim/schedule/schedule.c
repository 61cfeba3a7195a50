/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/schedule/schedule.h"

#include <stddef.h>
#include <stdlib.h>

#include "sim/flags.h"
#include "sim/main_sim.h"
#include "sim/workload/feeds.h"

#define SETTING(text, member, time, low, high)                                                     \
    {                                                                                              \
        text, (uint32_t)offsetof(fb_sim_config, member), sizeof(((fb_sim_config *)0)->member),     \
            time, low, high                                                                        \
    }

/* Everything of a configuration that changes what a run does, or what it has room for. */
const fb_sim_setting_row fb_sim_setting_rows[] = {
    SETTING("degree", degree, false, 0, 64),
    SETTING("carriers", carriers_of_16, false, 0, 16),
    SETTING("delay-min", delay_min_ns, true, 0, 60000000000),
    SETTING("delay-mean", delay_mean_ns, true, 0, 60000000000),
    SETTING("read-mean", read_mean_ns, true, 0, 60000000000),
    SETTING("write-mean", write_mean_ns, true, 0, 60000000000),
    SETTING("window-bytes", window_bytes, false, 65536, 1u << 24),
    SETTING("store-items", store_items, false, 256, 1u << 22),
    SETTING("connections", connections, false, 16, 32768),
    SETTING("links", sizes.links, false, 1, 4096),
    SETTING("addresses", sizes.addresses, false, 1, 4096),
    SETTING("members", sizes.members, false, 1, 4096),
    SETTING("vector-entries", sizes.vector_entries, false, 1, 1u << 20),
    SETTING("operations", sizes.operations, false, 1, 4096),
    SETTING("requests", sizes.requests, false, 1, 4096),
    SETTING("seen-ids", sizes.seen_ids, false, 1, 1u << 20),
    SETTING("envelopes", sizes.envelopes, false, 1, 1u << 16),
    SETTING("changelog", sizes.changelog, false, 1, 1u << 10),
    SETTING("calls", sizes.calls, false, 1, 4096),
    SETTING("heartbeat", timing.heartbeat_ns, true, 1000000, 3600000000000),
    SETTING("silent", timing.silent_ns, true, 1000000, 3600000000000),
    SETTING("redial-min", timing.redial_min_ns, true, 1000000, 3600000000000),
    SETTING("redial-max", timing.redial_max_ns, true, 1000000, 3600000000000),
    SETTING("link-age", timing.link_age_ns, true, 1000000000, 90000000000000),
    SETTING("redeliver", timing.redeliver_ns, true, 1000000, 3600000000000),
    SETTING("call", timing.call_ns, true, 1000000, 3600000000000),
    SETTING("onward", timing.onward_ns, true, 1000000, 3600000000000),
    SETTING("write-set-bytes", sizes.write_set_bytes, false, 32768, 1u << 26),
    SETTING("write-set-entries", sizes.write_set_entries, false, 256, 1u << 20),
    SETTING("report", timing.report_ns, true, 1000000, 90000000000000),
};
const uint32_t fb_sim_setting_count = sizeof fb_sim_setting_rows / sizeof fb_sim_setting_rows[0];

_Static_assert(sizeof fb_sim_setting_rows / sizeof fb_sim_setting_rows[0] <= FB_SIM_SETTINGS_MAX,
               "a schedule has room for all settings");

static uint64_t setting_get(const fb_sim_config *config, const fb_sim_setting_row *row)
{
    const uint8_t *place = (const uint8_t *)config + row->offset;
    uint32_t narrow;
    uint64_t wide;
    if (row->width == sizeof wide) {
        memcpy(&wide, place, sizeof wide);
        return wide;
    }
    memcpy(&narrow, place, sizeof narrow);
    return narrow;
}

static void setting_put(fb_sim_config *config, const fb_sim_setting_row *row, uint64_t value)
{
    uint8_t *place = (uint8_t *)config + row->offset;
    uint32_t narrow = (uint32_t)value;
    if (row->width == sizeof value) {
        memcpy(place, &value, sizeof value);
    } else {
        memcpy(place, &narrow, sizeof narrow);
    }
}

/* Shapes. Faults without one are written with their bare numbers. */

#define SECONDS_MOST (UINT64_C(100) * 365 * 86400)
#define TIME_MOST    FB_SIM_SCHEDULE_TIME_MAX
#define EACH         EACH_CALLED("every")
#define EACH_CALLED(word)                                                                          \
    FB_SIM_WHO_NODE, word, FB_SIM_SHAPE_TIME, NULL, FB_SIM_SHAPE_NONE, TIME_MOST, 0
#define BARE(who) who, NULL, FB_SIM_SHAPE_NONE, NULL, FB_SIM_SHAPE_NONE, 0, 0
#define ONE_OF    FB_SIM_WHO_PATHS, NULL, FB_SIM_SHAPE_RATIO, NULL, FB_SIM_SHAPE_NONE, UINT32_MAX, 0
#define DISK_OF   FB_SIM_WHO_NODE, NULL, FB_SIM_SHAPE_RATIO, NULL, FB_SIM_SHAPE_NONE, UINT32_MAX, 0
#define BY        FB_SIM_WHO_NODE, "by", FB_SIM_SHAPE_BY_SECONDS, NULL, FB_SIM_SHAPE_NONE, SECONDS_MOST, 0
#define BEFORE    FB_SIM_WHO_NODE, "by", FB_SIM_SHAPE_SECONDS, NULL, FB_SIM_SHAPE_NONE, SECONDS_MOST, 0
#define MEAN(who) who, "mean", FB_SIM_SHAPE_TIME, NULL, FB_SIM_SHAPE_NONE, TIME_MOST, 0

static const fb_sim_shape shapes[FB_SIM_FAULTS] = {
    [FB_SIM_FAULT_DELAY] = {MEAN(FB_SIM_WHO_PATHS)},
    [FB_SIM_FAULT_RATE] = {FB_SIM_WHO_PATHS, "bytes", FB_SIM_SHAPE_NUMBER, NULL, FB_SIM_SHAPE_NONE,
                           UINT32_MAX, 0},
    [FB_SIM_FAULT_SEGMENT] = {FB_SIM_WHO_PATHS, NULL, FB_SIM_SHAPE_OF_16, NULL, FB_SIM_SHAPE_NONE,
                              16, 0},
    [FB_SIM_FAULT_CORRUPT] = {FB_SIM_WHO_PATHS, NULL, FB_SIM_SHAPE_RATIO, "bits",
                              FB_SIM_SHAPE_NUMBER, UINT32_MAX, 1},
    [FB_SIM_FAULT_TRUNCATE] = {ONE_OF},
    [FB_SIM_FAULT_CUT] = {ONE_OF},
    [FB_SIM_FAULT_HALF_OPEN] = {BARE(FB_SIM_WHO_PATHS)},
    [FB_SIM_FAULT_REPLAY] = {FB_SIM_WHO_NONE, "every", FB_SIM_SHAPE_TIME, NULL, FB_SIM_SHAPE_NONE,
                             TIME_MOST, 0},
    [FB_SIM_FAULT_LOSS] = {ONE_OF},
    [FB_SIM_FAULT_DUP] = {FB_SIM_WHO_PATHS, NULL, FB_SIM_SHAPE_RATIO, "copies", FB_SIM_SHAPE_NUMBER,
                          UINT32_MAX, 0},
    [FB_SIM_FAULT_REORDER] = {FB_SIM_WHO_PATHS, NULL, FB_SIM_SHAPE_RATIO, "by", FB_SIM_SHAPE_TIME,
                              UINT32_MAX, 0},
    [FB_SIM_FAULT_STALE_SESSION] = {ONE_OF},
    [FB_SIM_FAULT_ISOLATE] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_SPLIT] = {BARE(FB_SIM_WHO_GROUPS)},
    [FB_SIM_FAULT_RING] = {BARE(FB_SIM_WHO_NONE)},
    [FB_SIM_FAULT_BRIDGE] = {BARE(FB_SIM_WHO_BRIDGE)},
    [FB_SIM_FAULT_ONEWAY] = {BARE(FB_SIM_WHO_ARROW)},
    [FB_SIM_FAULT_FLAP] = {FB_SIM_WHO_NODE, "every", FB_SIM_SHAPE_TIME, "duty", FB_SIM_SHAPE_OF_16,
                           TIME_MOST, 8},
    [FB_SIM_FAULT_NONTRANSITIVE] = {BARE(FB_SIM_WHO_PAIR)},
    [FB_SIM_FAULT_CRASH] = {EACH},
    [FB_SIM_FAULT_RESTART_SAME_TICK] = {BARE(FB_SIM_WHO_NONE)},
    [FB_SIM_FAULT_PAUSE] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_FORGET] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_ROLLBACK] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_READ_LATE] = {MEAN(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_READ_FAIL] = {DISK_OF},
    [FB_SIM_FAULT_WRITE_LATE] = {MEAN(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_WRITE_FAIL] = {DISK_OF},
    [FB_SIM_FAULT_LOSE_UNSYNCED] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_OFFSET] = {BY},
    [FB_SIM_FAULT_OFFSET_FAR] = {BY},
    [FB_SIM_FAULT_DRIFT] = {FB_SIM_WHO_NODE, "ppm", FB_SIM_SHAPE_BY_NUMBER, NULL, FB_SIM_SHAPE_NONE,
                            FB_SIM_CLOCK_PPM_MAX, 0},
    [FB_SIM_FAULT_CLOCK_STEP] = {BY},
    [FB_SIM_FAULT_CLOCK_FREEZE] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_SUSPEND] = {BEFORE},
    [FB_SIM_FAULT_BEFORE_1970] = {BEFORE},
    [FB_SIM_FAULT_EPOCH_EDGE] = {BEFORE},
    [FB_SIM_FAULT_FORGE] = {EACH},
    [FB_SIM_FAULT_STALE] = {EACH},
    [FB_SIM_FAULT_FUTURE] = {EACH},
    [FB_SIM_FAULT_FOREIGN] = {EACH},
    [FB_SIM_FAULT_MISADDRESS] = {EACH},
    [FB_SIM_FAULT_OVERSIZE] = {EACH},
    [FB_SIM_FAULT_FLOOD] = {EACH},
    [FB_SIM_FAULT_GARBAGE] = {EACH},
    [FB_SIM_FAULT_GONE] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_TIMER_EARLY] = {FB_SIM_WHO_NODE, NULL, FB_SIM_SHAPE_OF_16, NULL,
                                  FB_SIM_SHAPE_NONE, 16, 0},
    [FB_SIM_FAULT_TIMER_LATE] = {MEAN(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_TIMER_BURST] = {FB_SIM_WHO_NODE, "more", FB_SIM_SHAPE_NUMBER, NULL,
                                  FB_SIM_SHAPE_NONE, 32, 0},
    [FB_SIM_FAULT_TIMER_STARVE] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_TIMER_COALESCE] = {EACH},
    [FB_SIM_FAULT_QUEUE] = {FB_SIM_WHO_PATHS, "bytes", FB_SIM_SHAPE_NUMBER, "lose",
                            FB_SIM_SHAPE_NUMBER, UINT32_MAX, 1},
    [FB_SIM_FAULT_CLIENT_CUT] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_CRASH_AT] = {FB_SIM_WHO_NODE, NULL, FB_SIM_SHAPE_CRASH_AT, "nth",
                               FB_SIM_SHAPE_NUMBER, FB_SIM_CRASH_AT_KINDS, 0},
    [FB_SIM_FAULT_POWER_FAIL] = {EACH},
    [FB_SIM_FAULT_RESTART_LATE] = {EACH_CALLED("down")},
    [FB_SIM_FAULT_SLOW] = {EACH_CALLED("step")},
    [FB_SIM_FAULT_KILL_RECOVERY] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_CLOCK_COARSE] = {EACH_CALLED("step")},
    [FB_SIM_FAULT_CLOCK_BACKWARDS] = {FB_SIM_WHO_NODE, NULL, FB_SIM_SHAPE_RATIO, "by",
                                      FB_SIM_SHAPE_TIME, UINT32_MAX, 0},
    [FB_SIM_FAULT_JUMP_YEAR] = {BY},
    [FB_SIM_FAULT_SUSPEND_COUNTED] = {BEFORE},
    [FB_SIM_FAULT_ADDRESS_REUSE] = {BARE(FB_SIM_WHO_ARROW)},
    [FB_SIM_FAULT_CLONE] = {BARE(FB_SIM_WHO_ARROW)},
    [FB_SIM_FAULT_MEMBER_RACE] = {EACH},
    [FB_SIM_FAULT_ROLES] = {FB_SIM_WHO_ARROW, "every", FB_SIM_SHAPE_TIME, NULL, FB_SIM_SHAPE_NONE,
                            TIME_MOST, 0},
    [FB_SIM_FAULT_RENAME] = {FB_SIM_WHO_ARROW, "every", FB_SIM_SHAPE_TIME, NULL, FB_SIM_SHAPE_NONE,
                             TIME_MOST, 0},
    [FB_SIM_FAULT_HOT_KEY] = {FB_SIM_WHO_NODE, "record", FB_SIM_SHAPE_NUMBER, NULL,
                              FB_SIM_SHAPE_NONE, FB_SIM_RECORDS, 0},
    [FB_SIM_FAULT_SAME_ID] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_GIANT_VALUES] = {FB_SIM_WHO_NODE, "bytes", FB_SIM_SHAPE_NUMBER, NULL,
                                   FB_SIM_SHAPE_NONE, FB_SIM_PAD_MAX, 0},
    [FB_SIM_FAULT_RETRY_STORM] = {FB_SIM_WHO_NODE, "every", FB_SIM_SHAPE_TIME, "of",
                                  FB_SIM_SHAPE_NUMBER, TIME_MOST, 0},
    [FB_SIM_FAULT_CANCEL] = {EACH_CALLED("after")},
    [FB_SIM_FAULT_CLIENT_VANISH] = {EACH_CALLED("after")},
    [FB_SIM_FAULT_STALE_CLIENT] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_DOC_AWAY] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_DOC_SLOW] = {MEAN(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_DOC_LOST] = {DISK_OF},
    [FB_SIM_FAULT_DOC_LATE] = {DISK_OF},
    [FB_SIM_FAULT_DOC_PART] = {DISK_OF},
    [FB_SIM_FAULT_DOC_TWICE] = {DISK_OF},
    [FB_SIM_FAULT_DOC_FAILOVER] = {DISK_OF},
    [FB_SIM_FAULT_DOC_FULL] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_DOC_RIVAL] = {BARE(FB_SIM_WHO_NODE)},
    [FB_SIM_FAULT_REVOKE] = {FB_SIM_WHO_ARROW, "every", FB_SIM_SHAPE_TIME, NULL, FB_SIM_SHAPE_NONE,
                             TIME_MOST, 0},
    [FB_SIM_FAULT_RECOVER] = {FB_SIM_WHO_ARROW, "every", FB_SIM_SHAPE_TIME, NULL, FB_SIM_SHAPE_NONE,
                              TIME_MOST, 0},
    [FB_SIM_FAULT_LEAVE] = {FB_SIM_WHO_ARROW, "every", FB_SIM_SHAPE_TIME, NULL, FB_SIM_SHAPE_NONE,
                            TIME_MOST, 0},
    [FB_SIM_FAULT_DOC_DROPPED] = {BARE(FB_SIM_WHO_NODE)},
};

const char *const fb_sim_crash_at_names[FB_SIM_CRASH_AT_KINDS + 1] = {NULL, "io", "send", "timer"};

const fb_sim_shape *fb_sim_shape_of(uint32_t fault)
{
    return &shapes[fault];
}

const char *fb_sim_effect_name(uint32_t kind)
{
    switch (kind) {
    case 0:
        return "effect";
    case FB_FX_DIAL:
        return "dial";
    case FB_FX_SEND:
        return "send";
    case FB_FX_FRAME:
        return "frame";
    case FB_FX_CLOSE:
        return "close";
    case FB_FX_RESUME:
        return "resume";
    case FB_FX_READ:
        return "read";
    case FB_FX_WRITE:
        return "write";
    case FB_FX_REPLY:
        return "reply";
    case FB_FX_NEED_START:
        return "need-start";
    default:
        return NULL;
    }
}

void fb_sim_groups_normalise(uint32_t nodes, uint64_t *low, uint64_t *high)
{
    fb_sim_window window = {.q = *low, .mask = *high};
    uint32_t numbers[4] = {4, 4, 4, 4};
    uint32_t next = 0;
    *low = *high = 0;
    for (uint32_t i = 0; i < nodes && i < 64; i++) {
        uint32_t group = fb_sim_window_group(&window, i);
        if (numbers[group] == 4) numbers[group] = next++;
        *low |= (uint64_t)(numbers[group] & 1) << i;
        *high |= (uint64_t)(numbers[group] >> 1) << i;
    }
}

bool fb_sim_op_has_record(const fb_sim_op *op)
{
    return op->operation != FB_SIM_OP_LIST && op->operation != FB_SIM_OP_WATCH &&
           op->operation < FB_SIM_OP_VERIFY;
}

static bool op_writes(const fb_sim_op *op)
{
    return op->operation == FB_SIM_OP_PUT || op->operation == FB_SIM_OP_CHANGE ||
           op->operation == FB_SIM_OP_STRANGER;
}

fb_sim_line fb_sim_line_nth(const fb_sim_line *line, uint32_t k)
{
    fb_sim_line one = *line;
    one.more = one.over = 0;
    one.every_ns = 0;
    one.at_ns += k * line->every_ns;
    if (op_writes(&line->op)) one.op.number += k;
    if (line->over > 1) one.op.record = (uint8_t)(line->op.record + k % line->over);
    return one;
}

uint64_t fb_sim_plan_lines_alone(const fb_sim_plan *plan)
{
    uint64_t count = plan->line_count;
    for (uint32_t i = 0; i < plan->line_count; i++) count += plan->lines[i].more;
    return count;
}

void fb_sim_op_normalise(fb_sim_op *op)
{
    if (op->operation < FB_SIM_OP_ADD && op->operation != FB_SIM_OP_LIST) op->items = 0;
    if (op->operation == FB_SIM_OP_WATCH) {
        op->record = 0;
        op->items &= FB_SIM_FEED_SLOW | (FB_SIM_FEED_SLOW - 1);
    } else if (op->operation == FB_SIM_OP_MEMBERS) {
        op->items = 0;
    } else if (op->operation >= FB_SIM_OP_VERIFY) {
        op->record = 0;
    } else if (op->operation >= FB_SIM_OP_INSERT) {
        op->items %= FB_SIM_ELEMENTS;
    }
    if (!op_writes(op)) {
        op->fields = op->unset = op->empty = 0;
        op->number = 0;
    }
    for (uint32_t f = 0; f < FB_SIM_FIELDS; f++) {
        uint8_t bit = (uint8_t)(1u << f);
        if ((op->fields & bit) == 0 || ((op->unset | op->empty) & bit) != 0) op->pad[f] = 0;
    }
}

static bool line_before(const fb_sim_line *a, const fb_sim_line *b)
{
    bool a_timed = a->kind <= FB_SIM_LINE_WINDOW, b_timed = b->kind <= FB_SIM_LINE_WINDOW;
    if (a->round != b->round) return a->round < b->round;
    if (a_timed != b_timed) return a_timed;
    return a_timed && a->at_ns < b->at_ns;
}

void fb_sim_plan_sort(fb_sim_plan *plan)
{
    /* Nearly in order as a rule. */
    for (uint32_t i = 1; i < plan->line_count; i++) {
        fb_sim_line line = plan->lines[i];
        uint32_t at = i;
        for (; at > 0 && line_before(&line, &plan->lines[at - 1]); at--) {
            plan->lines[at] = plan->lines[at - 1];
        }
        plan->lines[at] = line;
    }
}

void fb_sim_window_normalise(const fb_sim_plan *plan, fb_sim_line *line)
{
    const fb_sim_shape *shape = fb_sim_shape_of(line->fault);
    bool any = shape->who == FB_SIM_WHO_ANY;
    bool groups = shape->who == FB_SIM_WHO_GROUPS || shape->who == FB_SIM_WHO_BRIDGE;
    bool two = any || shape->who == FB_SIM_WHO_PATHS || shape->who == FB_SIM_WHO_PAIR ||
               shape->who == FB_SIM_WHO_ARROW;
    if (!two) line->b = line->a;
    if (shape->who == FB_SIM_WHO_NONE || shape->who == FB_SIM_WHO_GROUPS) line->a = line->b = 0;
    if (shape->p_type == FB_SIM_SHAPE_NONE && !any) line->p = 0;
    if (shape->p_type == FB_SIM_SHAPE_CRASH_AT) line->p = (line->p + 2) % FB_SIM_CRASH_AT_KINDS + 1;
    if (shape->q_type == FB_SIM_SHAPE_NONE && !any && !groups) line->q = 0;
    bool sign = shape->p_type == FB_SIM_SHAPE_BY_SECONDS || shape->p_type == FB_SIM_SHAPE_BY_NUMBER;
    if (!any && !groups && !sign) line->mask = 0;
    if (groups) fb_sim_groups_normalise(plan->nodes, &line->q, &line->mask);
}

bool fb_sim_line_equal(const fb_sim_line *a, const fb_sim_line *b)
{
    const fb_sim_op *x = &a->op, *y = &b->op;
    bool ops = x->operation == y->operation && x->record == y->record && x->fields == y->fields &&
               x->unset == y->unset && x->empty == y->empty && x->items == y->items &&
               x->number == y->number && memcmp(x->pad, y->pad, sizeof x->pad) == 0;
    bool places = a->kind == b->kind && a->round == b->round && a->a == b->a && a->b == b->b &&
                  a->at_ns == b->at_ns && a->until_ns == b->until_ns;
    bool windows = a->fault == b->fault && a->key == b->key && a->p == b->p && a->q == b->q &&
                   a->mask == b->mask;
    bool addressed = a->what == b->what && a->nth == b->nth && a->life == b->life &&
                     a->act == b->act && a->span_ns == b->span_ns;
    return ops && places && windows && addressed && a->within_ns == b->within_ns &&
           a->client == b->client && a->more == b->more && a->over == b->over &&
           a->every_ns == b->every_ns;
}

/* The object. */

void fb_sim_plan_init(fb_sim_plan *schedule)
{
    *schedule = (fb_sim_plan){.seed_text = "1", .nodes = fb_sim_config_default().nodes};
}

void fb_sim_plan_free(fb_sim_plan *schedule)
{
    free(schedule->rounds);
    free(schedule->lines);
    fb_sim_plan_init(schedule);
}

bool fb_sim_plan_copy(fb_sim_plan *to, const fb_sim_plan *from)
{
    *to = *from;
    to->rounds = NULL;
    to->lines = NULL;
    to->round_cap = from->round_count == 0 ? 1 : from->round_count;
    to->line_cap = from->line_count == 0 ? 1 : from->line_count;
    to->rounds = malloc(to->round_cap * sizeof *to->rounds);
    to->lines = malloc(to->line_cap * sizeof *to->lines);
    if (to->rounds == NULL || to->lines == NULL) {
        fb_sim_plan_free(to);
        return false;
    }
    if (from->round_count != 0) {
        memcpy(to->rounds, from->rounds, from->round_count * sizeof *to->rounds);
    }
    if (from->line_count != 0) {
        memcpy(to->lines, from->lines, from->line_count * sizeof *to->lines);
    }
    return true;
}

/* Room for one more of so many bytes, doubled when it is full. */
static void *grown(void *array, uint32_t count, uint32_t *cap, size_t each, uint32_t most)
{
    if (count < *cap) return array;
    if (count >= most) return NULL;
    uint32_t more = *cap == 0 ? 16 : *cap * 2;
    void *larger = realloc(array, more * each);
    if (larger != NULL) *cap = more;
    return larger;
}

fb_sim_line *fb_sim_plan_line_add(fb_sim_plan *schedule)
{
    fb_sim_line *lines = grown(schedule->lines, schedule->line_count, &schedule->line_cap,
                               sizeof *lines, FB_SIM_SCHEDULE_LINES_MAX);
    if (lines == NULL) return NULL;
    schedule->lines = lines;
    fb_sim_line *line = &lines[schedule->line_count++];
    *line = (fb_sim_line){.round = schedule->round_count == 0 ? 0 : schedule->round_count - 1};
    return line;
}

fb_sim_plan_round *fb_sim_plan_round_add(fb_sim_plan *schedule)
{
    fb_sim_plan_round *rounds = grown(schedule->rounds, schedule->round_count, &schedule->round_cap,
                                      sizeof *rounds, FB_SIM_SCHEDULE_ROUNDS_MAX);
    if (rounds == NULL) return NULL;
    schedule->rounds = rounds;
    fb_sim_plan_round *round = &rounds[schedule->round_count++];
    *round = (fb_sim_plan_round){0};
    return round;
}

/* Few keys in wide tables touch a page of memory each, and a minimal schedule does little else. The
 * size of a table changes nothing that a run does. */
#define SMALL_LINES 256u
#define SMALL_ITEMS 16384u
#define SMALL_NS    UINT64_C(300000000000)

static bool is_small(const fb_sim_plan *plan)
{
    uint64_t length = plan->setup_ns;
    for (uint32_t i = 0; i < plan->round_count && length <= SMALL_NS; i++) {
        length += plan->rounds[i].length_ns + plan->settle_ns;
    }
    return plan->nodes <= 8 && fb_sim_plan_lines_alone(plan) <= SMALL_LINES && length <= SMALL_NS;
}

void fb_sim_plan_config(const fb_sim_plan *schedule, fb_sim_config *out)
{
    *out = fb_sim_config_default();
    fb_sim_parse_seed(schedule->seed_text, out);
    fb_sim_config_nodes(out, schedule->nodes);
    if (is_small(schedule)) {
        out->store_items = SMALL_ITEMS;
    }
    for (uint32_t i = 0; i < schedule->setting_count; i++) {
        setting_put(out, &fb_sim_setting_rows[schedule->settings[i].row],
                    schedule->settings[i].value);
    }
    out->second = schedule->second;
    out->documents = schedule->documents;
    out->faults = !schedule->calm;
    out->events = schedule->steps == 0 ? UINT64_MAX : schedule->steps;
    out->duration_ns = FB_NEVER;
    out->schedule = schedule;
}

void fb_sim_plan_from_config(fb_sim_plan *schedule, const fb_sim_config *config, const char *bug)
{
    fb_sim_config plain = fb_sim_config_default();
    fb_sim_config_nodes(&plain, config->nodes);
    memcpy(schedule->seed_text, config->seed_text, sizeof schedule->seed_text);
    schedule->nodes = config->nodes;
    schedule->calm = !config->faults;
    if (bug != NULL) snprintf(schedule->bug, sizeof schedule->bug, "%s", bug);
    for (uint32_t i = 0; i < fb_sim_setting_count; i++) {
        uint64_t value = setting_get(config, &fb_sim_setting_rows[i]);
        if (value == setting_get(&plain, &fb_sim_setting_rows[i])) continue;
        schedule->settings[schedule->setting_count++] = (fb_sim_setting){i, value};
    }
}
