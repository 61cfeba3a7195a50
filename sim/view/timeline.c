/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/view/timeline.h"

#include <stdio.h>

#include "sim/view/note.h"
#include "sim/workload/director.h"
#include "sim/world/world.h"

#define COLUMNS_MAX 16u

struct fb_sim_timeline {
    uint64_t lines;
};

void fb_sim_timeline_init(fb_sim_world *world, fb_arena *arena)
{
    struct fb_sim_timeline *timeline = fb_arena_take(arena, 1, sizeof *timeline);
    bool wanted = world->config.timeline || world->config.viewed;
    if (arena->base != NULL && wanted) world->timeline = timeline;
}

/* What a node's column shows when nothing happens there. */
static const char *still(const fb_sim_world *world, uint32_t node)
{
    const fb_sim_node *n = &world->nodes[node];
    if (n->core == NULL) return " ";
    if (n->paused_until_ns > world->now_ns) return "z";
    if (!n->running) return "'";
    return "|";
}

/* Of the columns: before the first line. */
static const char legend[] =
    "columns: * is asked  . answers  W writes  a applies another's  > signals  R signals again\n"
    "         < hears  + a link is bound  - is lost  ! refuses  d drops  m holds a member  ^ runs\n"
    "         ~ a fault begins or ends  == a phase begins; | is up  ' loads  z is paused\n";

static void line(fb_sim_world *world, uint32_t node, const char *glyph, const char *text)
{
    uint32_t columns = world->config.nodes < COLUMNS_MAX ? world->config.nodes : COLUMNS_MAX;
    if (world->timeline->lines == 0) printf("%s", legend);
    if (world->timeline->lines++ % 40 == 0) {
        printf("\n%12s ", "seconds");
        for (uint32_t i = 0; i < columns; i++) printf(" %-2s", fb_sim_name(i));
        printf("\n");
    }
    printf("%5llu.%06llu ", (unsigned long long)(world->now_ns / 1000000000),
           (unsigned long long)(world->now_ns / 1000 % 1000000));
    for (uint32_t i = 0; i < columns; i++) printf(" %-2s", i == node ? glyph : still(world, i));
    bool of_node = node < world->config.nodes;
    printf("  %s%s%s\n", of_node ? fb_sim_name(node) : "    ", of_node ? " " : "", text);
}

static void tell(fb_sim_world *world, fb_sim_note note)
{
    /* What somebody asks of a node is the beginning of its next step. */
    note.step = world->steps + (note.kind == FB_SIM_NOTE_REQUEST);
    note.time_ns = world->now_ns;
    if (world->record != NULL) fb_sim_record_note_add(world, note);
    if (!world->config.timeline) return;
    const char *glyph;
    char text[FB_SIM_NOTE_TEXT_MAX];
    if (fb_sim_note_text(world, &note, &glyph, text)) line(world, note.node, glyph, text);
}

void fb_sim_timeline_fact(fb_sim_world *world, uint32_t node, const fb_effect *fact)
{
    tell(world, fb_sim_note_of_fact(world, node, fact));
}

void fb_sim_timeline_weather(fb_sim_world *world, const fb_sim_window *window)
{
    if (world->record != NULL) fb_sim_record_weather(world, window);
    tell(world, (fb_sim_note){.a = window->fault,
                              .b = window->a,
                              .c = window->b,
                              .d = window->active,
                              .record = UINT32_MAX,
                              .node = FB_SIM_NOBODY,
                              .peer = FB_SIM_NOBODY,
                              .kind = FB_SIM_NOTE_WEATHER});
}

void fb_sim_timeline_phase(fb_sim_world *world)
{
    tell(world, (fb_sim_note){.a = world->director->round,
                              .b = world->director->phase,
                              .record = UINT32_MAX,
                              .node = FB_SIM_NOBODY,
                              .peer = FB_SIM_NOBODY,
                              .kind = FB_SIM_NOTE_PHASE});
}

void fb_sim_timeline_crash(fb_sim_world *world, uint32_t node)
{
    tell(world, (fb_sim_note){.record = UINT32_MAX,
                              .node = (uint16_t)node,
                              .peer = FB_SIM_NOBODY,
                              .kind = FB_SIM_NOTE_CRASH});
}

void fb_sim_timeline_request(fb_sim_world *world, uint32_t node, const fb_sim_client *client)
{
    tell(world, (fb_sim_note){.a = client->operation,
                              .record = client->record,
                              .node = (uint16_t)node,
                              .peer = FB_SIM_NOBODY,
                              .kind = FB_SIM_NOTE_REQUEST});
}

void fb_sim_timeline_reply(fb_sim_world *world, uint32_t node, const fb_sim_client *client,
                           const fb_effect *reply)
{
    tell(world, (fb_sim_note){.a = client->operation,
                              .b = reply->b,
                              .record = client->record,
                              .node = (uint16_t)node,
                              .peer = FB_SIM_NOBODY,
                              .kind = FB_SIM_NOTE_REPLY});
}
