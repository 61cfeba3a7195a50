/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step/snapshot.h"

#include <stdlib.h>

#include "protocol/base/assert.h"
#include "sim/world/world.h"

#define REGIONS 4u

static const uint8_t zeros[FB_SIM_PAGE_BYTES];

typedef struct region {
    uint8_t *memory;
    uint64_t bytes;
} region;

static void regions_of(const fb_sim_world *world, uint64_t blobs_used, region out[REGIONS])
{
    out[0] = (region){(uint8_t *)(uintptr_t)world, sizeof *world};
    out[1] = (region){world->memory, world->arena.used};
    out[2] = (region){world->blob_memory, blobs_used};
    out[3] = (region){(uint8_t *)world->record->live, world->record->live->bytes};
}

static uint32_t pages_of(const region *r)
{
    return (uint32_t)((r->bytes + FB_SIM_PAGE_BYTES - 1) / FB_SIM_PAGE_BYTES);
}

bool fb_sim_shelf_init(fb_sim_shelf *shelf, uint32_t capacity, uint64_t bytes_max)
{
    *shelf = (fb_sim_shelf){.capacity = capacity, .pages_max = bytes_max / FB_SIM_PAGE_BYTES};
    shelf->snapshots = calloc(capacity, sizeof *shelf->snapshots);
    return shelf->snapshots != NULL;
}

static void release(fb_sim_shelf *shelf, fb_sim_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->count; i++) {
        fb_sim_page *page = snapshot->pages[i];
        if (page == NULL || --page->refs != 0) continue;
        free(page);
        shelf->pages--;
    }
    free(snapshot->pages);
}

static void take_away(fb_sim_shelf *shelf, uint32_t at)
{
    release(shelf, &shelf->snapshots[at]);
    shelf->count--;
    memmove(&shelf->snapshots[at], &shelf->snapshots[at + 1],
            (shelf->count - at) * sizeof *shelf->snapshots);
}

void fb_sim_shelf_free(fb_sim_shelf *shelf)
{
    while (shelf->count != 0) take_away(shelf, shelf->count - 1);
    free(shelf->snapshots);
    *shelf = (fb_sim_shelf){0};
}

fb_sim_snapshot *fb_sim_shelf_before(fb_sim_shelf *shelf, uint64_t step)
{
    uint32_t at = shelf->count;
    while (at != 0 && shelf->snapshots[at - 1].step > step) at--;
    return at == 0 ? NULL : &shelf->snapshots[at - 1];
}

fb_sim_snapshot *fb_sim_shelf_before_turn(fb_sim_shelf *shelf, uint64_t turn)
{
    uint32_t at = shelf->count;
    while (at != 0 && shelf->snapshots[at - 1].turn > turn) at--;
    return at == 0 ? NULL : &shelf->snapshots[at - 1];
}

/* Neither the first nor the newest few; the one whose absence makes the least difference. */
static void thin(fb_sim_shelf *shelf, uint64_t now)
{
    uint32_t least = 0;
    uint64_t least_gap = UINT64_MAX;
    for (uint32_t i = 1; i + 1 < shelf->count; i++) {
        const fb_sim_snapshot *s = &shelf->snapshots[i];
        uint64_t gap = shelf->snapshots[i + 1].step - shelf->snapshots[i - 1].step;
        uint64_t away = s->step > now ? s->step - now : now - s->step;
        /* A gap counts less the farther away it is. */
        uint64_t weight = gap * 1024 / (away / 64 + 1024);
        if (weight < least_gap) {
            least_gap = weight;
            least = i;
        }
    }
    if (least != 0) take_away(shelf, least);
}

static fb_sim_page *page_keep(fb_sim_shelf *shelf, const uint8_t *bytes, size_t len,
                              fb_sim_page *before)
{
    if (memcmp(before == NULL ? zeros : before->bytes, bytes, len) == 0) {
        if (before != NULL) before->refs++;
        return before;
    }
    fb_sim_page *page = malloc(sizeof *page);
    if (page == NULL) fb_sim_fail_resource("memory of this machine");
    page->refs = 1;
    memcpy(page->bytes, bytes, len);
    memset(page->bytes + len, 0, FB_SIM_PAGE_BYTES - len);
    shelf->pages++;
    return page;
}

void fb_sim_shelf_take(fb_sim_shelf *shelf, const fb_sim_world *world, uint64_t turn)
{
    while (shelf->count > 2 &&
           (shelf->count == shelf->capacity || shelf->pages > shelf->pages_max)) {
        uint32_t had = shelf->count;
        thin(shelf, world->steps);
        if (shelf->count == had) break;
    }
    if (shelf->count == shelf->capacity) return;
    uint32_t at = shelf->count;
    while (at != 0 && shelf->snapshots[at - 1].turn > turn) at--;
    const fb_sim_snapshot *before = at == 0 ? NULL : &shelf->snapshots[at - 1];
    if (before != NULL && before->turn == turn) return;
    fb_sim_snapshot made = {.turn = turn,
                            .step = world->steps,
                            .time_ns = world->now_ns,
                            .blobs_used = world->blobs.used};
    region regions[REGIONS];
    regions_of(world, made.blobs_used, regions);
    for (uint32_t r = 0; r < REGIONS; r++) made.count += pages_of(&regions[r]);
    made.pages = malloc(made.count * sizeof *made.pages);
    if (made.pages == NULL) fb_sim_fail_resource("memory of this machine");
    uint32_t place = 0, old = 0;
    region then[REGIONS];
    regions_of(world, before == NULL ? 0 : before->blobs_used, then);
    for (uint32_t r = 0; r < REGIONS; r++) {
        uint32_t had = before == NULL ? 0 : pages_of(&then[r]);
        for (uint32_t i = 0; i < pages_of(&regions[r]); i++) {
            uint64_t from = (uint64_t)i * FB_SIM_PAGE_BYTES;
            uint64_t left = regions[r].bytes - from;
            size_t len = left < FB_SIM_PAGE_BYTES ? (size_t)left : FB_SIM_PAGE_BYTES;
            fb_sim_page *same = before != NULL && i < had ? before->pages[old + i] : NULL;
            made.pages[place++] = page_keep(shelf, regions[r].memory + from, len, same);
        }
        old += had;
    }
    memmove(&shelf->snapshots[at + 1], &shelf->snapshots[at],
            (shelf->count - at) * sizeof *shelf->snapshots);
    shelf->snapshots[at] = made;
    shelf->count++;
}

void fb_sim_shelf_restore(const fb_sim_snapshot *snapshot, fb_sim_world *world)
{
    region regions[REGIONS];
    regions_of(world, snapshot->blobs_used, regions);
    uint32_t place = 0;
    for (uint32_t r = 0; r < REGIONS; r++) {
        for (uint32_t i = 0; i < pages_of(&regions[r]); i++) {
            uint64_t from = (uint64_t)i * FB_SIM_PAGE_BYTES;
            uint64_t left = regions[r].bytes - from;
            size_t len = left < FB_SIM_PAGE_BYTES ? (size_t)left : FB_SIM_PAGE_BYTES;
            const fb_sim_page *page = snapshot->pages[place++];
            const uint8_t *bytes = page == NULL ? zeros : page->bytes;
            /* Pages that nobody wrote stay as the system gave them. */
            if (memcmp(regions[r].memory + from, bytes, len) != 0) {
                memcpy(regions[r].memory + from, bytes, len);
            }
        }
    }
    FB_ASSERT(world->steps == snapshot->step);
    fb_sim_record_rewind(world);
}

void fb_sim_shelf_forget(fb_sim_shelf *shelf, uint64_t turn)
{
    while (shelf->count != 0 && shelf->snapshots[shelf->count - 1].turn > turn) {
        take_away(shelf, shelf->count - 1);
    }
}
