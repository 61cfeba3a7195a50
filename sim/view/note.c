/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/view/note.h"

#include <stdarg.h>
#include <stdio.h>

#include "protocol/base/cursor.h"
#include "sim/step/decision.h"
#include "sim/workload/director.h"
#include "sim/world/world.h"

static uint16_t member_of(const fb_sim_world *world, fb_id id)
{
    uint32_t node = fb_sim_node_of(world, id);
    return node == UINT32_MAX ? FB_SIM_NOBODY : (uint16_t)node;
}

fb_sim_note fb_sim_note_of_fact(const fb_sim_world *world, uint32_t node, const fb_effect *fx)
{
    fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(fx), fx->len));
    fb_sim_note note = {
        .step = world->steps,
        .time_ns = world->now_ns,
        .a = fx->b,
        .b = fx->c,
        .record = UINT32_MAX,
        .node = (uint16_t)node,
        .peer = FB_SIM_NOBODY,
        .kind = (uint8_t)fx->a,
    };
    fb_id id;
    switch ((fb_fact)fx->a) {
    case FB_FACT_LINK_BOUND:
    case FB_FACT_FLOOR:
    case FB_FACT_MEMBER:
        fb_read_id(&r);
        note.peer = member_of(world, fb_read_id(&r));
        break;
    case FB_FACT_SENT:
    case FB_FACT_RESENT:
    case FB_FACT_DELIVERED:
    case FB_FACT_REFUSED:
    case FB_FACT_DROPPED:
        fb_read_id(&r);
        note.peer = member_of(world, fb_read_id(&r));
        id = fb_read_id(&r);
        note.tail = (uint16_t)(id.b[14] << 8 | id.b[15]);
        break;
    case FB_FACT_WRITTEN:
    case FB_FACT_APPLIED:
        fb_read_id(&r);
        note.record = fb_sim_record_of(world, fb_read_id(&r));
        note.peer = member_of(world, fb_read_id(&r));
        note.d = fb_read_u64(&r);
        note.c = fb_read_u64(&r);
        break;
    case FB_FACT_BATCH:
    case FB_FACT_BATCH_REFUSED:
        fb_read_id(&r);
        note.peer = member_of(world, fb_read_id(&r));
        note.d = fb_read_u64(&r);
        note.c = fb_read_u64(&r);
        break;
    default:
        break;
    }
    return note;
}

static const char *who(uint16_t node)
{
    return node == FB_SIM_NOBODY ? "?" : fb_sim_name(node);
}

static const char *what(uint32_t record, char out[16])
{
    if (record == UINT32_MAX) return "a statement";
    snprintf(out, 16, "r%02u", (unsigned)record);
    return out;
}

static bool say(const char **glyph, const char *g, char *out, const char *format, ...)
{
    *glyph = g;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out, FB_SIM_NOTE_TEXT_MAX, format, arguments);
    va_end(arguments);
    return true;
}

static bool world_text(const fb_sim_world *world, const fb_sim_note *n, const char **glyph,
                       char *out)
{
    static const char *const phases[] = {
        "set up", "weather and work", "healed: must converge", "must be quiet", "bench", "done"};
    char window[160];
    switch ((fb_sim_note_kind)n->kind) {
    case FB_SIM_NOTE_WEATHER: {
        fb_sim_window w = {
            .fault = (uint8_t)n->a, .active = n->d != 0, .a = (uint32_t)n->b, .b = (uint32_t)n->c};
        fb_sim_window_text(world, &w, window, sizeof window);
        return say(glyph, "~", out, "~ %s", window);
    }
    case FB_SIM_NOTE_PHASE:
        return say(glyph, "=", out, "== round %llu: %s", (unsigned long long)n->a,
                   phases[n->b < 6 ? n->b : 5]);
    case FB_SIM_NOTE_CRASH:
        return say(glyph, "x", out, "the process ends");
    case FB_SIM_NOTE_REQUEST:
        return say(glyph, "*", out, "is asked: %s r%02u", fb_sim_operation_names[n->a],
                   (unsigned)n->record);
    case FB_SIM_NOTE_REPLY:
        return say(glyph, ".", out, "answers the %s of r%02u: %s", fb_sim_operation_names[n->a],
                   (unsigned)n->record, fb_error_name((fb_error)n->b));
    case FB_SIM_NOTE_DECISION:
        return say(glyph, "B", out, ">> changed by hand: %s", fb_sim_decision_name((uint8_t)n->a));
    case FB_SIM_NOTE_BAD:
        return say(glyph, "#", out, "## VIOLATION %s",
                   world->record == NULL ? "" : world->record->bad);
    }
    return false;
}

bool fb_sim_note_text(const fb_sim_world *world, const fb_sim_note *n, const char **glyph,
                      char out[FB_SIM_NOTE_TEXT_MAX])
{
    char record[16];
    switch ((fb_fact)n->kind) {
    case FB_FACT_STARTED:
        return say(glyph, "^", out, "runs, incarnation %08x", (unsigned)(n->a >> 32));
    case FB_FACT_LINK_BOUND:
        return say(glyph, "+", out, "is linked to %s", who(n->peer));
    case FB_FACT_LINK_ENDED:
        return say(glyph, "-", out, "loses a link: %s", fb_error_name((fb_error)n->b));
    case FB_FACT_LINK_REFUSED:
        return say(glyph, "!", out, "refuses bytes of a link: %s", fb_error_name((fb_error)n->b));
    case FB_FACT_CLONE:
        return say(glyph, "!", out, "sees its own key at another machine");
    case FB_FACT_DELIVERED:
        return say(glyph, "<", out, "hears from %s, number %llu, id ..%04x", who(n->peer),
                   (unsigned long long)n->b, (unsigned)n->tail);
    case FB_FACT_SENT:
        return say(glyph, ">", out, "signals to %s, number %llu, id ..%04x", who(n->peer),
                   (unsigned long long)n->b, (unsigned)n->tail);
    case FB_FACT_RESENT:
        return say(glyph, "R", out, "signals again to %s, number %llu, id ..%04x", who(n->peer),
                   (unsigned long long)n->b, (unsigned)n->tail);
    case FB_FACT_REFUSED:
        return say(glyph, "!", out, "refuses a message of %s: %s, id ..%04x", who(n->peer),
                   fb_error_name((fb_error)n->b), (unsigned)n->tail);
    case FB_FACT_DROPPED:
        return say(glyph, "d", out, "drops a signal to %s: %s", who(n->peer),
                   fb_error_name((fb_error)n->a));
    case FB_FACT_WRITTEN:
        return say(glyph, "W", out, "writes %s as change %llu (set %llu)", what(n->record, record),
                   (unsigned long long)n->c, (unsigned long long)n->b);
    case FB_FACT_APPLIED:
        return say(glyph, "a", out, "applies %s, change %llu of %s", what(n->record, record),
                   (unsigned long long)n->c, who(n->peer));
    case FB_FACT_BATCH_REFUSED:
        return say(glyph, "!", out, "refuses a batch: %s", fb_error_name((fb_error)n->b));
    case FB_FACT_MEMBER:
        return say(glyph, "m", out, "holds %s for %s", who(n->peer),
                   n->a == 1   ? "approved"
                   : n->a == 2 ? "pending"
                   : n->a == 3 ? "revoked"
                               : "nobody");
    default:
        return world_text(world, n, glyph, out);
    }
}

const char *fb_sim_note_name(uint8_t kind)
{
    switch (kind) {
#define NAME(id, name)                                                                             \
    case id:                                                                                       \
        return name
        NAME(FB_FACT_STARTED, "started");
        NAME(FB_FACT_SEALED, "sealed");
        NAME(FB_FACT_LINK_BOUND, "linked");
        NAME(FB_FACT_LINK_ENDED, "link-ended");
        NAME(FB_FACT_LINK_REFUSED, "link-refused");
        NAME(FB_FACT_CLONE, "clone");
        NAME(FB_FACT_SENT, "sent");
        NAME(FB_FACT_RESENT, "resent");
        NAME(FB_FACT_DELIVERED, "delivered");
        NAME(FB_FACT_REFUSED, "refused");
        NAME(FB_FACT_ACKED, "acked");
        NAME(FB_FACT_DROPPED, "dropped");
        NAME(FB_FACT_FLOOR, "floor");
        NAME(FB_FACT_WRITTEN, "written");
        NAME(FB_FACT_APPLIED, "applied");
        NAME(FB_FACT_BATCH, "batch");
        NAME(FB_FACT_BATCH_REFUSED, "batch-refused");
        NAME(FB_FACT_ROOT, "root");
        NAME(FB_FACT_ANNOUNCED, "announced");
        NAME(FB_FACT_MEMBER, "member");
        NAME(FB_FACT_UUID, "uuid");
        NAME(FB_SIM_NOTE_WEATHER, "weather");
        NAME(FB_SIM_NOTE_PHASE, "phase");
        NAME(FB_SIM_NOTE_CRASH, "crash");
        NAME(FB_SIM_NOTE_REQUEST, "request");
        NAME(FB_SIM_NOTE_REPLY, "reply");
        NAME(FB_SIM_NOTE_DECISION, "decision");
        NAME(FB_SIM_NOTE_BAD, "violation");
    default:
        return "fact";
    }
}

const char *fb_sim_event_name(uint8_t kind)
{
    switch (kind) {
        NAME(FB_EV_START, "start");
        NAME(FB_EV_TICK, "tick");
        NAME(FB_EV_DIAL_RESULT, "dial-result");
        NAME(FB_EV_LINK_OPENED, "link-opened");
        NAME(FB_EV_CARRIER_OPENED, "carrier-opened");
        NAME(FB_EV_LINK_CLOSED, "link-closed");
        NAME(FB_EV_LINK_BYTES, "bytes");
        NAME(FB_EV_LINK_WRITABLE, "writable");
        NAME(FB_EV_CARRIER_FRAME, "frame");
        NAME(FB_EV_READ_DONE, "read-done");
        NAME(FB_EV_WRITE_DONE, "write-done");
        NAME(FB_EV_REQUEST, "request");
        NAME(FB_EV_REQUEST_CANCEL, "cancel");
        NAME(FB_EV_REQUEST_CREDIT, "reply-credit");
#undef NAME
    default:
        return "event";
    }
}

/* The node at the other end of a link: links carry their end in the low bits. */
static const char *other_end(const fb_sim_world *world, uint64_t link)
{
    uint32_t end = (uint32_t)(link & 0xffff);
    if (end / 2 >= world->network.connection_count) return "?";
    const fb_sim_connection *c = &world->network.connections[end / 2];
    return c->ends[end & 1].link == link && !c->attacker ? fb_sim_name(c->ends[1 - (end & 1)].node)
                                                         : "?";
}

void fb_sim_moment_text(const fb_sim_world *world, const fb_sim_moment *m,
                        char out[FB_SIM_NOTE_TEXT_MAX])
{
    const fb_sim_moment *cause =
        world->record == NULL ? NULL : fb_sim_record_moment(world->record, m->cause);
    const char *from = cause != NULL ? fb_sim_name(cause->node) : "?";
    unsigned long long a = m->a, b = m->b;
    switch ((fb_event_kind)m->kind) {
    case FB_EV_START:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "begins, incarnation %08x", (unsigned)(m->a >> 32));
        return;
    case FB_EV_TICK:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "tick");
        return;
    case FB_EV_DIAL_RESULT:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "dial %llu: %s", a,
                 m->c == 0 ? "open" : fb_error_name((fb_error)m->c));
        return;
    case FB_EV_LINK_OPENED:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "is dialled by %s", from);
        return;
    case FB_EV_CARRIER_OPENED:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "a carrier to %s opens", other_end(world, m->a));
        return;
    case FB_EV_LINK_CLOSED:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "a link is closed: %s", fb_error_name((fb_error)m->b));
        return;
    case FB_EV_LINK_BYTES:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "gets %u bytes from %s%s", (unsigned)m->len, from,
                 m->harmed != 0 ? ", damaged on the way" : "");
        return;
    case FB_EV_LINK_WRITABLE:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "may send %llu more bytes", b);
        return;
    case FB_EV_CARRIER_FRAME:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "gets a frame of %u bytes from %s%s", (unsigned)m->len,
                 from, m->harmed != 0 ? ", damaged on the way" : "");
        return;
    case FB_EV_READ_DONE:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "read %llu is done: %u bytes%s%s", a, (unsigned)m->len,
                 m->c == 0 ? "" : ", ", m->c == 0 ? "" : fb_error_name((fb_error)m->c));
        return;
    case FB_EV_WRITE_DONE:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "write set %llu is durable%s%s", b,
                 m->c == 0 ? "" : ": not so, ", m->c == 0 ? "" : fb_error_name((fb_error)m->c));
        return;
    case FB_EV_REQUEST:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "request %llu, verb %llu", a, b);
        return;
    case FB_EV_REQUEST_CANCEL:
    case FB_EV_REQUEST_CREDIT:
        snprintf(out, FB_SIM_NOTE_TEXT_MAX, "%s %llu", fb_sim_event_name(m->kind), a);
        return;
    }
    snprintf(out, FB_SIM_NOTE_TEXT_MAX, "event %u", (unsigned)m->kind);
}

void fb_sim_band_text(const fb_sim_world *world, const fb_sim_band *band, char *out, size_t cap)
{
    char text[160];
    fb_sim_window w = {.fault = band->fault, .active = true, .a = band->a, .b = band->b};
    fb_sim_window_text(world, &w, text, sizeof text);
    /* Without its verb. */
    char *verb = strstr(text, " begins");
    if (verb != NULL) memmove(verb, verb + 7, strlen(verb + 7) + 1);
    snprintf(out, cap, "%s", text);
}
