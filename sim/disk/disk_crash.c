/* SPDX-License-Identifier: Apache-2.0 */
/* Power fails: which of the parts that no sync covered are on the platter. The outcomes are
 * numbered, so that whoever wants can try them all. */
#include "protocol/base/assert.h"
#include "sim/disk/disk.h"
#include "sim/disk/disk_internal.h"
#include "sim/world/fail.h"

#define PARTS_MAX  512u
#define BITS_MAX   40u /* sets of more members are not numbered */
#define CALL_PARTS 16u /* of one call, in an outcome that is numbered */

/* The parts that could still reach the platter, by call. */
typedef struct shape {
    uint32_t parts[PARTS_MAX];
    uint32_t count;
    uint32_t data;                 /* of these, sectors */
    uint32_t begin[PARTS_MAX + 1]; /* of each call in `parts`, then the end of all */
    uint32_t calls;
} shape;

static void shape_of(const fb_disk *d, shape *s)
{
    s->count = s->data = s->calls = 0;
    FB_ASSERT(d->part_count <= PARTS_MAX);
    for (uint32_t i = 0; i < d->part_count; i++) {
        if (d->parts[i].doomed) continue;
        bool first = s->count == 0 || d->parts[s->parts[s->count - 1]].call != d->parts[i].call;
        if (first) s->begin[s->calls++] = s->count;
        s->data += d->parts[i].kind == FB_DISK_PART_DATA;
        s->parts[s->count++] = i;
    }
    s->begin[s->calls] = s->count;
}

static uint32_t call_data(const fb_disk *d, const shape *s, uint32_t call)
{
    uint32_t data = 0;
    for (uint32_t i = s->begin[call]; i < s->begin[call + 1]; i++) {
        data += d->parts[s->parts[i]].kind == FB_DISK_PART_DATA;
    }
    return data;
}

/* Ways in which a call survives in part: some of its parts, or all up to one and of that one the
 * beginning. */
static uint64_t torn_ways(const fb_disk *d, const shape *s, uint32_t call)
{
    uint32_t parts = s->begin[call + 1] - s->begin[call];
    if (parts > CALL_PARTS) fb_sim_fail_resource("sectors of a call that is torn");
    uint64_t sets = parts > 1 ? (UINT64_C(1) << parts) - 2 : 0;
    return sets + (uint64_t)FB_DISK_CUTS * call_data(d, s, call);
}

static uint64_t data_choices(const fb_disk *d, const shape *s)
{
    bool tear = fb_disk_has(d, FB_DISK_FAULT_TEAR);
    if (fb_disk_has(d, FB_DISK_FAULT_REORDER)) {
        uint32_t members = tear ? s->count : s->calls;
        if (members > BITS_MAX) return UINT64_MAX;
        uint64_t torn = tear ? 1 + (uint64_t)FB_DISK_CUTS * s->data : 1;
        return torn << members;
    }
    uint64_t choices = 1;
    if (fb_disk_has(d, FB_DISK_FAULT_LOSE_UNSYNCED)) {
        choices = (uint64_t)s->calls + 1;
        for (uint32_t call = 0; tear && call < s->calls; call++) choices += torn_ways(d, s, call);
    } else if (tear && d->inside && s->calls > 0) {
        choices += torn_ways(d, s, s->calls - 1);
    }
    return choices;
}

/* What survives, per member of the shape: bytes of a sector; a size counts as one that is whole. */
typedef struct outcome {
    uint32_t bytes[PARTS_MAX];
    uint32_t names;
    bool twice; /* the last of these leaves its old name */
} outcome;

/* Outcomes of the names: so many of them, and behind these, of each rename, both names. */
static uint32_t name_choices(const fb_disk *d)
{
    uint32_t choices = d->naming_count + 1;
    for (uint32_t i = 0; fb_disk_has(d, FB_DISK_FAULT_RENAME_TWICE) && i < d->naming_count; i++) {
        choices += d->namings[i].made[0] != 0 && d->namings[i].gone[0] != 0;
    }
    return choices;
}

static void choose_names(const fb_disk *d, uint32_t choice, outcome *o)
{
    o->twice = false;
    o->names = choice;
    /* The last choice is the one that loses nothing. */
    if (choice + 1 == name_choices(d)) o->names = d->naming_count;
    if (choice < d->naming_count || choice + 1 == name_choices(d)) return;
    uint32_t wanted = choice - d->naming_count;
    for (uint32_t i = 0; i < d->naming_count; i++) {
        bool renames = d->namings[i].made[0] != 0 && d->namings[i].gone[0] != 0;
        if (!renames || wanted-- != 0) continue;
        o->names = i + 1;
        o->twice = true;
        return;
    }
}

uint64_t fb_disk_crash_choices(const fb_disk *d)
{
    shape s;
    shape_of(d, &s);
    uint64_t data = data_choices(d, &s);
    uint64_t names = name_choices(d);
    return data > UINT64_MAX / names ? UINT64_MAX : data * names;
}

static void keep_calls(const fb_disk *d, const shape *s, uint32_t calls, outcome *o)
{
    for (uint32_t i = 0; i < s->count; i++) {
        o->bytes[i] = i < s->begin[calls] ? d->options.sector_bytes : 0;
    }
}

static void keep_torn(const fb_disk *d, const shape *s, uint32_t call, uint64_t way, outcome *o)
{
    const uint32_t whole = d->options.sector_bytes;
    uint32_t from = s->begin[call], parts = s->begin[call + 1] - from;
    uint64_t sets = parts > 1 ? (UINT64_C(1) << parts) - 2 : 0;
    keep_calls(d, s, call, o);
    if (way < sets) {
        for (uint32_t i = 0; i < parts; i++) o->bytes[from + i] = (way + 1) >> i & 1 ? whole : 0;
        return;
    }
    way -= sets;
    uint32_t torn = (uint32_t)(way / FB_DISK_CUTS), cut = (uint32_t)(way % FB_DISK_CUTS) + 1;
    for (uint32_t i = 0; i < parts; i++) {
        bool data = d->parts[s->parts[from + i]].kind == FB_DISK_PART_DATA;
        /* The size belongs to what is torn: without it nothing of it would be seen. */
        o->bytes[from + i] = !data || i < torn ? whole : i == torn ? cut * (whole / 8) : 0;
    }
}

static void choose_reordered(const fb_disk *d, const shape *s, uint64_t choice, outcome *o)
{
    const uint32_t whole = d->options.sector_bytes;
    bool tear = fb_disk_has(d, FB_DISK_FAULT_TEAR);
    uint32_t members = tear ? s->count : s->calls;
    uint64_t set = choice & ((UINT64_C(1) << members) - 1), torn = choice >> members;
    if (!tear) {
        for (uint32_t call = 0; call < s->calls; call++) {
            for (uint32_t i = s->begin[call]; i < s->begin[call + 1]; i++) {
                o->bytes[i] = set >> call & 1 ? whole : 0;
            }
        }
        return;
    }
    for (uint32_t i = 0; i < s->count; i++) o->bytes[i] = set >> i & 1 ? whole : 0;
    if (torn == 0) return;
    uint32_t which = (uint32_t)((torn - 1) / FB_DISK_CUTS);
    uint32_t cut = (uint32_t)((torn - 1) % FB_DISK_CUTS) + 1;
    for (uint32_t i = 0; i < s->count; i++) {
        if (d->parts[s->parts[i]].kind != FB_DISK_PART_DATA || which-- != 0) continue;
        o->bytes[i] = cut * (whole / 8);
        return;
    }
}

static void choose_data(const fb_disk *d, const shape *s, uint64_t choice, outcome *o)
{
    if (fb_disk_has(d, FB_DISK_FAULT_REORDER)) {
        choose_reordered(d, s, choice, o);
        return;
    }
    /* First the ones that lose whole calls, then the torn ones, then the one that loses nothing. */
    bool lose = fb_disk_has(d, FB_DISK_FAULT_LOSE_UNSYNCED);
    uint32_t call = lose ? 0 : s->calls - 1;
    if (choice + 1 == data_choices(d, s)) {
        keep_calls(d, s, s->calls, o);
        return;
    }
    if (lose && choice < s->calls) {
        keep_calls(d, s, (uint32_t)choice, o);
        return;
    }
    if (lose) choice -= s->calls;
    for (; choice >= torn_ways(d, s, call); call++) choice -= torn_ways(d, s, call);
    keep_torn(d, s, call, choice, o);
}

static void count_fired(fb_disk *d, const shape *s, const outcome *o)
{
    const uint32_t whole = d->options.sector_bytes;
    bool lost = false, torn = false, reordered = false;
    for (uint32_t call = 0; call < s->calls; call++) {
        uint32_t kept = 0, parts = s->begin[call + 1] - s->begin[call];
        for (uint32_t i = s->begin[call]; i < s->begin[call + 1]; i++) {
            kept += o->bytes[i] == whole;
            torn = torn || (o->bytes[i] != 0 && o->bytes[i] != whole);
        }
        torn = torn || (kept != 0 && kept != parts);
        reordered = reordered || (kept != 0 && lost);
        lost = lost || kept != parts;
    }
    d->fired[FB_DISK_FAULT_LOSE_UNSYNCED] += lost && fb_disk_has(d, FB_DISK_FAULT_LOSE_UNSYNCED);
    d->fired[FB_DISK_FAULT_TEAR] += torn;
    d->fired[FB_DISK_FAULT_REORDER] += reordered;
    d->fired[FB_DISK_FAULT_RENAME_LOST] += o->names < d->naming_count;
    d->fired[FB_DISK_FAULT_RENAME_TWICE] += o->twice;
    d->fired[FB_DISK_FAULT_CRASH]++;
}

static void carry_out(fb_disk *d, const shape *s, const outcome *o)
{
    count_fired(d, s, o);
    for (uint32_t i = 0; i < s->count; i++) {
        if (o->bytes[i] != 0) fb_disk_settle(d, s->parts[i], o->bytes[i]);
    }
    for (uint32_t i = 0; i < o->names; i++) {
        fb_disk_naming naming = d->namings[i];
        if (o->twice && i + 1 == o->names) memset(naming.gone, 0, sizeof naming.gone);
        fb_disk_name_apply(d, d->kept, &naming);
    }
    fb_disk_reload(d);
}

void fb_disk_crash(fb_disk *d, uint64_t choice)
{
    shape s;
    outcome o;
    shape_of(d, &s);
    uint64_t data = data_choices(d, &s);
    FB_ASSERT(data != UINT64_MAX || choice == 0);
    FB_ASSERT(choice / data < name_choices(d));
    choose_names(d, (uint32_t)(choice / data), &o);
    choose_data(d, &s, choice % data, &o);
    carry_out(d, &s, &o);
}

void fb_disk_crash_drawn(fb_disk *d, uint64_t occurrence)
{
    const fb_seed seed = d->options.seed;
    uint64_t choices = fb_disk_crash_choices(d);
    if (choices != UINT64_MAX) {
        fb_disk_crash(d,
                      fb_draw_below(seed, FB_SIM_STREAM_DISK_CRASH, d->calls, occurrence, choices));
        return;
    }
    shape s;
    outcome o;
    shape_of(d, &s);
    bool tear = fb_disk_has(d, FB_DISK_FAULT_TEAR);
    for (uint32_t call = 0; call < s.calls; call++) {
        for (uint32_t i = s.begin[call]; i < s.begin[call + 1]; i++) {
            uint64_t who = tear ? s.parts[i] : d->parts[s.parts[i]].call;
            uint64_t bits =
                fb_draw(seed, FB_SIM_STREAM_DISK_PART, d->calls << 16 | (who & 0xffff), occurrence);
            o.bytes[i] = bits & 1 ? d->options.sector_bytes : 0;
            bool data = d->parts[s.parts[i]].kind == FB_DISK_PART_DATA;
            if (tear && data && (bits >> 1 & 15) == 0) {
                o.bytes[i] =
                    d->options.sector_bytes / 8 * (1 + (uint32_t)(bits >> 8) % FB_DISK_CUTS);
            }
        }
    }
    uint64_t names =
        fb_draw_below(seed, FB_SIM_STREAM_DISK_CRASH, d->calls, occurrence, name_choices(d));
    choose_names(d, (uint32_t)names, &o);
    carry_out(d, &s, &o);
}
