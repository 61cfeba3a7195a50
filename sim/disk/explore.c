/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/disk/explore.h"

#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/hash.h"

#define SECTOR_BYTES 128u
#define FILES        16u
#define FILE_SECTORS 96u
#define PENDING      256u
#define SEEN_SLOTS   (1u << 20)
#define TRIES        4u /* of an opening that fails, as the disk does once */

/* A toy, what it should show, and its disk. */
typedef struct stand {
    fb_disk *disk;
    void *toy;
    void *model;
} stand;

enum {
    WORK,    /* runs the script */
    CRASHED, /* what a crash of it left */
    TRIAL,   /* a copy of that, to recover on */
    INNER,   /* what a crash of the recovery left */
    LATER,   /* a copy, on which power fails again */
    STANDS
};

struct fb_disk_explorer {
    fb_seed seed;
    stand stands[STANDS];
    uint64_t *seen;  /* images that were judged before, with what was acknowledged */
    uint64_t *shown; /* and what the toy showed then */
    uint64_t seen_count;
    fb_disk_history history;
    /* Of the exploration that runs. */
    const fb_disk_toy *toy;
    fb_disk_defect defect;
    uint64_t faults;
    uint64_t starts;
    uint64_t expected; /* what the recovery shows that is crashed now */
    fb_disk_report *report;
};

fb_disk_explorer *fb_disk_explorer_create(uint64_t seed)
{
    fb_disk_explorer *x = calloc(1, sizeof *x);
    if (x == NULL) return NULL;
    x->seed = (fb_seed){seed, 0};
    fb_disk_options options = {.seed = x->seed,
                               .sector_bytes = SECTOR_BYTES,
                               .files = FILES,
                               .file_sectors = FILE_SECTORS,
                               .pending = PENDING};
    options.one_in[FB_DISK_FAULT_LATENCY] = 1;
    size_t toy = fb_disk_toy_log.bytes, model = fb_disk_toy_log.model_bytes;
    if (toy < fb_disk_toy_blob.bytes) toy = fb_disk_toy_blob.bytes;
    if (model < fb_disk_toy_blob.model_bytes) model = fb_disk_toy_blob.model_bytes;
    x->seen = calloc(SEEN_SLOTS, sizeof *x->seen);
    x->shown = calloc(SEEN_SLOTS, sizeof *x->shown);
    bool whole = x->seen != NULL && x->shown != NULL;
    for (uint32_t i = 0; i < STANDS; i++) {
        x->stands[i].disk = fb_disk_create(&options);
        x->stands[i].toy = calloc(1, toy);
        x->stands[i].model = calloc(1, model);
        whole = whole && x->stands[i].disk != NULL && x->stands[i].toy != NULL &&
                x->stands[i].model != NULL;
    }
    if (whole) return x;
    fb_disk_explorer_destroy(x);
    return NULL;
}

void fb_disk_explorer_destroy(fb_disk_explorer *x)
{
    if (x == NULL) return;
    for (uint32_t i = 0; i < STANDS; i++) {
        fb_disk_destroy(x->stands[i].disk);
        free(x->stands[i].toy);
        free(x->stands[i].model);
    }
    free(x->seen);
    free(x->shown);
    free(x);
}

static void begin(fb_disk_explorer *x, const fb_disk_toy *toy, fb_disk_defect defect,
                  uint64_t faults, fb_disk_report *report)
{
    x->toy = toy;
    x->defect = defect;
    x->faults = faults;
    x->starts = 0;
    x->report = report;
    x->seen_count = 0;
    memset(x->seen, 0, SEEN_SLOTS * sizeof *x->seen);
    memset(&x->history, 0, sizeof x->history);
}

static void found(fb_disk_explorer *x, const char *wrong, uint64_t call, uint64_t choice,
                  bool nested)
{
    if (x->report->wrong != NULL) return;
    x->report->wrong = wrong;
    x->report->wrong_call = call;
    x->report->wrong_choice = choice;
    x->report->wrong_nested = nested;
}

/* What a toy showed becomes part of the hash. */
static void show(fb_disk_explorer *x, uint64_t digest)
{
    uint8_t bytes[24];
    fb_hash128 *hash = &x->report->hash;
    fb_store_be(bytes, digest, 8);
    fb_store_be(bytes + 8, hash->lo, 8);
    fb_store_be(bytes + 16, hash->hi, 8);
    *hash = fb_xxh128(bytes, sizeof bytes, 0);
}

static void stand_copy(const fb_disk_explorer *x, stand *to, const stand *from)
{
    fb_disk_copy(to->disk, from->disk);
    memcpy(to->model, from->model, x->toy->model_bytes);
}

static void stand_clear(const fb_disk_explorer *x, stand *s)
{
    fb_disk_clear(s->disk);
    fb_disk_hook(s->disk, NULL, NULL);
    fb_disk_set_faults(s->disk, x->faults);
    memset(s->toy, 0, x->toy->bytes);
    memset(s->model, 0, x->toy->model_bytes);
}

/* Starts the toy, again when the disk failed once. */
static fb_disk_result start(fb_disk_explorer *x, stand *s)
{
    fb_disk_result result = FB_DISK_FAILED;
    for (uint32_t i = 0; i < TRIES && result == FB_DISK_FAILED; i++) {
        fb_disk_restart(s->disk);
        /* Trials of a crash may use one number: what they write is never compared. */
        bool counted = s == &x->stands[WORK] || (x->faults & DISK_FAULT(SNAPSHOT)) != 0;
        uint64_t count = counted ? ++x->starts : 0;
        uint64_t incarnation = fb_draw(x->seed, FB_SIM_STREAM_DISK_INCARNATION, 0, count);
        result = x->toy->open(s->toy, s->disk, incarnation, x->defect);
    }
    return result;
}

static const char *start_and_judge(fb_disk_explorer *x, stand *s, bool damage,
                                   fb_disk_result *result)
{
    *result = start(x, s);
    if (*result == FB_DISK_FAILED) return "it does not start";
    show(x, x->toy->digest(s->toy));
    return x->toy->judge(s->toy, s->model, damage);
}

/* What follows a recovery: power fails before anything was written; the toy goes on; power fails
 * again. */
static const char *go_on(fb_disk_explorer *x, stand *s, bool damage)
{
    stand *later = &x->stands[LATER];
    fb_disk_result result;
    stand_copy(x, later, s);
    fb_disk_crash(later->disk, 0);
    const char *wrong = start_and_judge(x, later, damage, &result);
    if (wrong != NULL || result != FB_DISK_DONE) return wrong;
    for (uint32_t i = 0; i < 2; i++) {
        result = x->toy->step(s->toy, s->model, FB_DISK_OP_WRITE, NULL);
        if (result != FB_DISK_DONE) return "it does not go on";
    }
    fb_disk_crash(s->disk, 0);
    wrong = start_and_judge(x, s, damage, &result);
    return wrong == NULL && result == FB_DISK_DAMAGED ? "it went on, and then it is damaged"
                                                      : wrong;
}

/* The slot of an image, with what was acknowledged; *fresh: it was not judged before. The last slot
 * is nobody's: the table is full, and everything is judged. */
static uint64_t seen_slot(fb_disk_explorer *x, const stand *s, uint64_t salt, bool *fresh)
{
    uint64_t key = fb_xxh64(s->model, x->toy->model_bytes, fb_disk_digest(s->disk) + salt);
    if (key == 0) key = 1;
    *fresh = true;
    for (uint64_t at = key;; at++) {
        uint64_t slot = at % (SEEN_SLOTS - 1);
        if (x->seen[slot] == key) {
            *fresh = false;
            return slot;
        }
        if (x->seen[slot] != 0) continue;
        if (x->seen_count > SEEN_SLOTS / 2) return SEEN_SLOTS - 1;
        x->seen[slot] = key;
        x->seen_count++;
        return slot;
    }
}

/* Crashes inside recovery. */

static void inner_outcome(fb_disk_explorer *x, const stand *of, uint64_t call, uint64_t choice,
                          bool drawn)
{
    stand *inner = &x->stands[INNER];
    stand_copy(x, inner, of);
    if (drawn) {
        fb_disk_crash_drawn(inner->disk, choice);
    } else {
        fb_disk_crash(inner->disk, choice);
    }
    x->report->nested_outcomes++;
    bool fresh;
    seen_slot(x, inner, x->expected, &fresh);
    if (!fresh) return;
    x->report->recoveries++;
    fb_disk_result result;
    const char *wrong = start_and_judge(x, inner, false, &result);
    if (wrong == NULL && x->toy->digest(inner->toy) != x->expected) {
        wrong = "a recovery that was interrupted comes to another result";
    }
    if (wrong != NULL) found(x, wrong, call, choice, true);
}

static void inner_call(void *user, fb_disk *disk)
{
    fb_disk_explorer *x = user;
    stand *crashed = &x->stands[CRASHED];
    FB_ASSERT(disk == crashed->disk);
    if (x->report->wrong != NULL) return;
    x->report->nested_calls++;
    uint64_t choices = fb_disk_crash_choices(disk);
    bool drawn = choices > FB_DISK_OUTCOMES_NESTED;
    x->report->nested_drawn += drawn;
    if (drawn) choices = FB_DISK_OUTCOMES_NESTED / 4;
    for (uint64_t i = 0; i < choices && x->report->wrong == NULL; i++) {
        inner_outcome(x, crashed, fb_disk_calls(x->stands[WORK].disk), i, drawn);
    }
}

/* CRASHED holds what a crash of the script left. Returns what the toy shows then. */
static uint64_t outcome_judge(fb_disk_explorer *x, uint64_t call, uint64_t choice, bool nested)
{
    stand *crashed = &x->stands[CRASHED], *trial = &x->stands[TRIAL];
    fb_disk_result result;
    x->report->recoveries++;
    stand_copy(x, trial, crashed);
    const char *wrong = start_and_judge(x, trial, false, &result);
    x->expected = x->toy->digest(trial->toy);
    uint64_t shows = x->expected;
    if (wrong == NULL) wrong = go_on(x, trial, false);
    if (wrong != NULL) found(x, wrong, call, choice, false);
    if (wrong != NULL || !nested) return shows;
    fb_disk_hook(crashed->disk, inner_call, x);
    start(x, crashed);
    fb_disk_hook(crashed->disk, NULL, NULL);
    return shows;
}

/* The state of each call. */

static void outcome(fb_disk_explorer *x, uint64_t call, uint64_t choice, bool drawn, uint64_t *base)
{
    const stand *work = &x->stands[WORK];
    stand *crashed = &x->stands[CRASHED];
    uint64_t before[FB_DISK_FAULTS];
    stand_copy(x, crashed, work);
    for (uint32_t f = 0; f < FB_DISK_FAULTS; f++) {
        before[f] = fb_disk_fired(crashed->disk, (fb_disk_fault)f);
    }
    if (drawn) {
        fb_disk_crash_drawn(crashed->disk, choice);
    } else {
        fb_disk_crash(crashed->disk, choice);
    }
    x->report->outcomes++;
    bool fresh;
    uint64_t slot = seen_slot(x, crashed, 0, &fresh);
    uint64_t fired[FB_DISK_FAULTS];
    for (uint32_t f = 0; f < FB_DISK_FAULTS; f++) {
        fired[f] = fb_disk_fired(crashed->disk, (fb_disk_fault)f) - before[f];
    }
    if (fresh) x->shown[slot] = outcome_judge(x, call, choice, true);
    uint64_t shows = x->shown[slot];
    if (*base == 0) *base = shows;
    for (uint32_t f = 0; f < FB_DISK_FAULTS; f++) {
        x->report->fired[f] += fired[f];
        x->report->mattered[f] += fired[f] != 0 && shows != *base;
    }
}

static void work_call(void *user, fb_disk *disk)
{
    fb_disk_explorer *x = user;
    if (x->report->wrong != NULL) return;
    uint64_t call = fb_disk_calls(disk), base = 0;
    if (!fb_disk_inside(disk)) {
        /* The process alone ends: nothing is lost yet. */
        x->report->calls++;
        stand_copy(x, &x->stands[CRASHED], &x->stands[WORK]);
        fb_disk_restart(x->stands[CRASHED].disk);
        outcome_judge(x, call, UINT64_MAX, false);
    }
    uint64_t choices = fb_disk_crash_choices(disk);
    bool drawn = choices > FB_DISK_OUTCOMES_MAX;
    x->report->drawn += drawn;
    if (drawn) choices = FB_DISK_OUTCOMES_MAX / 4;
    /* From the end: the last one loses the least, the others are compared with it. */
    for (uint64_t i = choices; i-- > 0 && x->report->wrong == NULL;) {
        outcome(x, call, i, drawn, &base);
    }
}

/* The script. */

static uint32_t script(uint32_t n, uint32_t operations)
{
    /* The mark is as far as can be, and one more write stands behind it. */
    if (n + 2 == operations) return FB_DISK_OP_CHECKPOINT;
    if (n + 1 == operations) return FB_DISK_OP_WRITE + 1;
    return n;
}

/* False: the toy does not go on. */
static bool run(fb_disk_explorer *x, stand *s, uint32_t operations, uint64_t calls, bool damage)
{
    fb_disk_result result;
    fb_disk_history *history = (x->faults & DISK_FAULT(SNAPSHOT)) != 0 ? &x->history : NULL;
    const char *wrong = start_and_judge(x, s, damage, &result);
    for (uint32_t n = 0; wrong == NULL && n < operations; n++) {
        if (result != FB_DISK_DONE || x->report->wrong != NULL) return false;
        if (fb_disk_calls(s->disk) >= calls) break;
        uint32_t op = script(n, operations);
        result = op % FB_DISK_OPS == FB_DISK_OP_RESTART
                     ? FB_DISK_FAILED
                     : x->toy->step(s->toy, s->model, op, history);
        if (result == FB_DISK_REFUSED) result = FB_DISK_DONE;
        if (result == FB_DISK_FAILED) wrong = start_and_judge(x, s, damage, &result);
    }
    if (wrong != NULL) found(x, wrong, fb_disk_calls(s->disk), 0, false);
    return wrong == NULL && result == FB_DISK_DONE;
}

static void explore_crashes(fb_disk_explorer *x, uint32_t operations, uint64_t calls)
{
    stand *work = &x->stands[WORK];
    stand_clear(x, work);
    fb_disk_hook(work->disk, work_call, x);
    run(x, work, operations, calls, false);
    if (x->report->wrong == NULL) work_call(x, work->disk);
    fb_disk_hook(work->disk, NULL, NULL);
    uint64_t late = fb_disk_fired(work->disk, FB_DISK_FAULT_LATENCY);
    x->report->fired[FB_DISK_FAULT_LATENCY] += late;
}

/* Faults of one call. */

/* The disk stands after the script: power fails, and what it had synced may be wrong. */
static uint64_t end_and_judge(fb_disk_explorer *x, stand *s, uint64_t call, uint64_t argument,
                              bool damage)
{
    fb_disk_result result;
    fb_disk_plan_none(s->disk);
    fb_disk_crash(s->disk, 0);
    const char *wrong = start_and_judge(x, s, damage, &result);
    uint64_t shows = x->toy->digest(s->toy);
    if (wrong == NULL && result == FB_DISK_DONE) wrong = go_on(x, s, damage);
    if (wrong != NULL) found(x, wrong, call, argument, false);
    x->report->recoveries++;
    return shows;
}

static uint64_t struck_run(fb_disk_explorer *x, fb_disk_fault fault, uint64_t call,
                           uint64_t argument, uint32_t operations, uint64_t *fired)
{
    stand *work = &x->stands[WORK];
    bool damage = fault == FB_DISK_FAULT_STALE || fault == FB_DISK_FAULT_MISDIRECT;
    x->starts = 0;
    stand_clear(x, work);
    if (call != 0) fb_disk_plan(work->disk, fault, call, argument);
    run(x, work, operations, UINT64_MAX, damage);
    *fired = fb_disk_fired(work->disk, fault);
    uint64_t shows = 0;
    if (x->report->wrong == NULL) shows = end_and_judge(x, work, call, argument, damage);
    return shows;
}

static void explore_calls(fb_disk_explorer *x, fb_disk_fault fault, uint32_t operations)
{
    uint64_t fired, base = struck_run(x, fault, 0, 0, operations, &fired);
    uint64_t calls = fb_disk_calls(x->stands[WORK].disk);
    uint64_t last = fault == FB_DISK_FAULT_MISDIRECT ? FILE_SECTORS : 0;
    for (uint64_t call = 1; call <= calls; call++) {
        x->report->calls++;
        for (uint64_t argument = last != 0; argument <= last; argument++) {
            uint64_t shows = struck_run(x, fault, call, argument, operations, &fired);
            if (x->report->wrong != NULL) return;
            if (fired == 0 && argument > 1) break;
            x->report->outcomes += fired;
            x->report->fired[fault] += fired;
            x->report->mattered[fault] += fired != 0 && shows != base;
        }
    }
}

/* Faults at rest. CRASHED holds the disk after the script. */

static void rest_judge(fb_disk_explorer *x, fb_disk_fault fault, uint64_t place, uint64_t base)
{
    x->report->outcomes++;
    x->report->fired[fault]++;
    uint64_t shows = end_and_judge(x, &x->stands[TRIAL], place, 0, true);
    x->report->mattered[fault] += shows != base;
}

static void explore_rot(fb_disk_explorer *x, const char *name, uint64_t base)
{
    stand *trial = &x->stands[TRIAL];
    uint32_t sectors = fb_disk_sectors(x->stands[CRASHED].disk, name);
    /* A defect that a flipped bit shows, shows in more than one. */
    uint32_t step = x->defect == FB_DISK_SOUND ? 1 : 13;
    for (uint32_t sector = 0; sector < sectors; sector++) {
        x->report->calls++;
        for (uint32_t bit = 0; bit < 8 * SECTOR_BYTES && x->report->wrong == NULL; bit += step) {
            stand_copy(x, trial, &x->stands[CRASHED]);
            if (fb_disk_rot(trial->disk, name, sector, bit)) {
                rest_judge(x, FB_DISK_FAULT_ROT, sector, base);
            }
        }
    }
}

static void explore_cuts(fb_disk_explorer *x, const char *name, uint64_t base)
{
    stand *trial = &x->stands[TRIAL];
    uint32_t sectors = fb_disk_sectors(x->stands[CRASHED].disk, name);
    for (uint32_t sector = 0; sector < sectors && x->report->wrong == NULL; sector++) {
        x->report->calls++;
        stand_copy(x, trial, &x->stands[CRASHED]);
        if (fb_disk_cut(trial->disk, name, sector * SECTOR_BYTES)) {
            rest_judge(x, FB_DISK_FAULT_TRUNCATE, sector, base);
        }
    }
}

static void explore_rest(fb_disk_explorer *x, fb_disk_fault fault, uint32_t operations)
{
    uint64_t fired, base = struck_run(x, fault, 0, 0, operations, &fired);
    stand *work = &x->stands[WORK];
    x->starts = 0;
    stand_clear(x, work);
    run(x, work, operations, UINT64_MAX, false);
    stand_copy(x, &x->stands[CRASHED], work);
    for (uint32_t i = 0; x->report->wrong == NULL; i++) {
        const char *name = fb_disk_name(x->stands[CRASHED].disk, i);
        if (name == NULL) return;
        if (fault == FB_DISK_FAULT_ROT) explore_rot(x, name, base);
        if (fault == FB_DISK_FAULT_TRUNCATE) explore_cuts(x, name, base);
    }
}

/* Old images. The hook keeps the one of the call that is wanted. */

typedef struct keeping {
    fb_disk_explorer *x;
    uint64_t call;
    bool kept;
} keeping;

static void keep_image(void *user, fb_disk *disk)
{
    keeping *k = user;
    if (fb_disk_calls(disk) != k->call) return;
    stand_copy(k->x, &k->x->stands[CRASHED], &k->x->stands[WORK]);
    k->kept = true;
}

static void explore_snapshots(fb_disk_explorer *x, uint32_t operations)
{
    stand *work = &x->stands[WORK];
    keeping k = {x, 0, true};
    while (k.kept && x->report->wrong == NULL) {
        k.call++;
        k.kept = false;
        x->starts = 0;
        memset(&x->history, 0, sizeof x->history);
        stand_clear(x, work);
        fb_disk_hook(work->disk, keep_image, &k);
        run(x, work, operations, UINT64_MAX, false);
        fb_disk_hook(work->disk, NULL, NULL);
        if (!k.kept) break;
        uint64_t shows = x->toy->digest(work->toy);
        x->report->calls++;
        x->report->outcomes++;
        x->report->fired[FB_DISK_FAULT_SNAPSHOT]++;
        stand *old = &x->stands[CRASHED];
        fb_disk_crash(old->disk, 0);
        /* Another life goes on from the old image: other contents, and no identity again. */
        fb_disk_result result;
        const char *wrong = start_and_judge(x, old, false, &result);
        x->toy->diverge(old->model);
        for (uint32_t n = 0; wrong == NULL && n < 4 && result == FB_DISK_DONE; n++) {
            result = x->toy->step(old->toy, old->model, FB_DISK_OP_WRITE + n % 3, &x->history);
        }
        x->report->mattered[FB_DISK_FAULT_SNAPSHOT] += x->toy->digest(old->toy) != shows;
        if (wrong == NULL && x->history.clash) wrong = "one identity names two contents";
        if (wrong != NULL) found(x, wrong, k.call, 0, false);
    }
}

void fb_disk_explore(fb_disk_explorer *x, const fb_disk_toy *toy, fb_disk_defect defect,
                     fb_disk_fault fault, uint32_t operations, fb_disk_report *report)
{
    begin(x, toy, defect, fb_disk_fault_set(fault), report);
    switch (fault) {
    case FB_DISK_FAULT_CRASH:
    case FB_DISK_FAULT_LOSE_UNSYNCED:
    case FB_DISK_FAULT_TEAR:
    case FB_DISK_FAULT_REORDER:
    case FB_DISK_FAULT_RENAME_LOST:
    case FB_DISK_FAULT_RENAME_TWICE:
    case FB_DISK_FAULT_LATENCY:
        explore_crashes(x, operations, UINT64_MAX);
        return;
    case FB_DISK_FAULT_ROT:
    case FB_DISK_FAULT_TRUNCATE:
        explore_rest(x, fault, operations);
        return;
    case FB_DISK_FAULT_SNAPSHOT:
        explore_snapshots(x, operations);
        return;
    default:
        /* What a lost write leaves shows when little comes after it: two lengths. */
        explore_calls(x, fault, operations);
        if (report->wrong == NULL) explore_calls(x, fault, operations / 2);
    }
}

void fb_disk_explore_crashes(fb_disk_explorer *x, const fb_disk_toy *toy, fb_disk_defect defect,
                             uint64_t calls, fb_disk_report *report)
{
    begin(x, toy, defect, FB_DISK_FAULTS_OF_CRASH, report);
    explore_crashes(x, UINT32_MAX, calls);
}
