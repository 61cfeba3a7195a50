/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/timeline.h"

#include <stdarg.h>
#include <stdio.h>

#include "protocol/base/cursor.h"
#include "sim/director.h"
#include "sim/world.h"

#define COLUMNS_MAX 16u

/* Prints as it happens; it keeps what it needs to leave out repetitions. */
struct fb_sim_timeline {
    uint64_t lines;
};

void fb_sim_timeline_init(fb_sim_world *world, fb_arena *arena)
{
    struct fb_sim_timeline *timeline = fb_arena_take(arena, 1, sizeof *timeline);
    if (arena->base != NULL && world->config.timeline) world->timeline = timeline;
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

static void line(fb_sim_world *world, uint32_t node, const char *glyph, const char *text)
{
    uint32_t columns = world->config.nodes < COLUMNS_MAX ? world->config.nodes : COLUMNS_MAX;
    if (world->timeline->lines++ % 40 == 0) {
        printf("\n%12s ", "seconds");
        for (uint32_t i = 0; i < columns; i++) printf(" %-2s", fb_sim_name(i));
        printf("\n");
    }
    printf("%5llu.%06llu ", (unsigned long long)(world->now_ns / 1000000000),
           (unsigned long long)(world->now_ns / 1000 % 1000000));
    for (uint32_t i = 0; i < columns; i++) printf(" %-2s", i == node ? glyph : still(world, i));
    printf("  %s%s%s\n", node < world->config.nodes ? fb_sim_name(node) : "",
           node < world->config.nodes ? " " : "", text);
}

void fb_sim_timeline_note(fb_sim_world *world, uint32_t node, const char *glyph, const char *format,
                          ...)
{
    if (world->timeline == NULL) return;
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    line(world, node, glyph, text);
}

static const char *member_of(const fb_sim_world *world, fb_id id)
{
    uint32_t node = fb_sim_node_of(world, id);
    return node == UINT32_MAX ? "?" : fb_sim_name(node);
}

static void record_text(const fb_sim_world *world, fb_id record, char out[16])
{
    uint32_t number = fb_sim_record_of(world, record);
    if (number == UINT32_MAX) {
        snprintf(out, 16, "a statement");
    } else {
        snprintf(out, 16, "r%02u", (unsigned)number);
    }
}

void fb_sim_timeline_fact(fb_sim_world *world, uint32_t node, const fb_effect *fx)
{
    fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(fx), fx->len));
    char record[16];
    fb_id space, peer, author, id;
    uint64_t seq;
    switch ((fb_fact)fx->a) {
    case FB_FACT_STARTED:
        fb_sim_timeline_note(world, node, "^", "runs, incarnation %08x", (unsigned)(fx->b >> 32));
        return;
    case FB_FACT_LINK_BOUND:
        space = fb_read_id(&r);
        peer = fb_read_id(&r);
        (void)space;
        fb_sim_timeline_note(world, node, "+", "is linked to %s", member_of(world, peer));
        return;
    case FB_FACT_LINK_ENDED:
        fb_sim_timeline_note(world, node, "-", "loses a link: %s", fb_error_name((fb_error)fx->c));
        return;
    case FB_FACT_LINK_REFUSED:
        fb_sim_timeline_note(world, node, "!", "refuses bytes of a link: %s",
                             fb_error_name((fb_error)fx->c));
        return;
    case FB_FACT_CLONE:
        fb_sim_timeline_note(world, node, "!", "sees its own key at another machine");
        return;
    case FB_FACT_DELIVERED:
    case FB_FACT_SENT:
    case FB_FACT_RESENT:
        fb_read_id(&r);
        peer = fb_read_id(&r);
        id = fb_read_id(&r);
        fb_sim_timeline_note(world, node,
                             fx->a == FB_FACT_DELIVERED ? "<"
                             : fx->a == FB_FACT_SENT    ? ">"
                                                        : "R",
                             "%s %s, number %llu, id ..%02x%02x",
                             fx->a == FB_FACT_DELIVERED ? "hears from"
                             : fx->a == FB_FACT_SENT    ? "signals to"
                                                        : "signals again to",
                             member_of(world, peer), (unsigned long long)fx->c, id.b[14], id.b[15]);
        return;
    case FB_FACT_REFUSED:
        fb_read_id(&r);
        peer = fb_read_id(&r);
        id = fb_read_id(&r);
        fb_sim_timeline_note(world, node, "!", "refuses a message of %s: %s, id ..%02x%02x",
                             member_of(world, peer), fb_error_name((fb_error)fx->c), id.b[14],
                             id.b[15]);
        return;
    case FB_FACT_DROPPED:
        fb_read_id(&r);
        peer = fb_read_id(&r);
        fb_sim_timeline_note(world, node, "d", "drops a signal to %s: %s", member_of(world, peer),
                             fb_error_name((fb_error)fx->b));
        return;
    case FB_FACT_WRITTEN:
        fb_read_id(&r);
        record_text(world, fb_read_id(&r), record);
        fb_read_id(&r);
        fb_read_u64(&r);
        seq = fb_read_u64(&r);
        fb_sim_timeline_note(world, node, "W", "writes %s as change %llu (set %llu)", record,
                             (unsigned long long)seq, (unsigned long long)fx->c);
        return;
    case FB_FACT_APPLIED:
        fb_read_id(&r);
        record_text(world, fb_read_id(&r), record);
        author = fb_read_id(&r);
        fb_read_u64(&r);
        seq = fb_read_u64(&r);
        fb_sim_timeline_note(world, node, "a", "applies %s, change %llu of %s", record,
                             (unsigned long long)seq, member_of(world, author));
        return;
    case FB_FACT_BATCH_REFUSED:
        fb_sim_timeline_note(world, node, "!", "refuses a batch: %s",
                             fb_error_name((fb_error)fx->c));
        return;
    case FB_FACT_MEMBER:
        fb_read_id(&r);
        peer = fb_read_id(&r);
        fb_sim_timeline_note(world, node, "m", "holds %s for %s", member_of(world, peer),
                             fx->b == 1   ? "approved"
                             : fx->b == 2 ? "pending"
                             : fx->b == 3 ? "revoked"
                                          : "nobody");
        return;
    default:
        return;
    }
}

void fb_sim_timeline_weather(fb_sim_world *world, const fb_sim_window *window)
{
    char text[160];
    fb_sim_window_text(world, window, text, sizeof text);
    fb_sim_timeline_note(world, UINT32_MAX, "", "    ~ %s", text);
}

void fb_sim_timeline_phase(fb_sim_world *world)
{
    static const char *const names[] = {
        "set up", "weather and work", "healed: must converge", "must be quiet", "bench", "done"};
    fb_sim_timeline_note(world, UINT32_MAX, "", "    == round %llu: %s",
                         (unsigned long long)world->director->round, names[world->director->phase]);
}

void fb_sim_timeline_request(fb_sim_world *world, uint32_t node, const fb_sim_client *client)
{
    fb_sim_timeline_note(world, node, "*", "is asked: %s r%02u",
                         fb_sim_operation_names[client->operation], (unsigned)client->record);
}

void fb_sim_timeline_reply(fb_sim_world *world, uint32_t node, const fb_sim_client *client,
                           const fb_effect *reply)
{
    fb_sim_timeline_note(world, node, ".", "answers the %s of r%02u: %s",
                         fb_sim_operation_names[client->operation], (unsigned)client->record,
                         fb_error_name((fb_error)reply->b));
}
