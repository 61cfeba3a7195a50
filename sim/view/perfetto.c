/* SPDX-License-Identifier: Apache-2.0 */
/* The record in the Trace Event Format, which Perfetto and Chrome load: a thread for each node with
 * a slice for each step, flow arrows for messages, and a process of its own for the weather, where
 * every fault is an asynchronous slice. Times are microseconds of virtual time. */
#include "sim/view/note.h"
#include "sim/view/out.h"
#include "sim/view/view.h"
#include "sim/world/world.h"

#define NODES   1 /* process numbers */
#define WEATHER 2

/* Steps take no virtual time. A slice has to have some length to be seen and to hold an arrow's
 * end; steps of one node at one moment follow one another. */
#define SLICE_NS 200u

typedef struct perfetto {
    fb_sim_out *out;
    const fb_sim_world *world;
    const fb_sim_record *record;
    uint64_t free_ns[FB_SIM_NODES_MAX]; /* from when on the node's track is free */
    uint64_t *placed;                   /* by step - from: where its slice begins */
    uint64_t from, to;
    bool first;
} perfetto;

static void begin(perfetto *p)
{
    fb_sim_out_text(p->out, p->first ? "\n" : ",\n");
    p->first = false;
}

static void named(perfetto *p, const char *what, unsigned pid, uint32_t tid, const char *name)
{
    begin(p);
    fb_sim_out_text(p->out, "{\"ph\":\"M\",\"name\":\"");
    fb_sim_out_text(p->out, what);
    fb_sim_out_text(p->out, "\",\"pid\":");
    fb_sim_out_u64(p->out, pid);
    fb_sim_out_text(p->out, ",\"tid\":");
    fb_sim_out_u64(p->out, tid);
    fb_sim_out_text(p->out, ",\"args\":{\"name\":");
    fb_sim_out_string(p->out, name);
    fb_sim_out_text(p->out, "}}");
}

static void where(perfetto *p, unsigned pid, uint32_t tid, uint64_t ns)
{
    fb_sim_out_text(p->out, ",\"pid\":");
    fb_sim_out_u64(p->out, pid);
    fb_sim_out_text(p->out, ",\"tid\":");
    fb_sim_out_u64(p->out, tid);
    fb_sim_out_text(p->out, ",\"ts\":");
    fb_sim_out_us(p->out, ns);
}

static void slice(perfetto *p, const fb_sim_moment *m)
{
    uint64_t at = fb_max_u64(m->time_ns, p->free_ns[m->node]);
    p->free_ns[m->node] = at + SLICE_NS;
    p->placed[m->step - p->from] = at;
    begin(p);
    fb_sim_out_text(p->out, "{\"ph\":\"X\",\"cat\":\"step\",\"name\":\"");
    fb_sim_out_text(p->out, fb_sim_event_name(m->kind));
    fb_sim_out_text(p->out, "\",\"dur\":0.200");
    where(p, NODES, m->node + 1u, at);
    fb_sim_out_text(p->out, ",\"args\":{\"step\":");
    fb_sim_out_u64(p->out, m->step);
    if (m->cause != 0) {
        fb_sim_out_text(p->out, ",\"cause\":");
        fb_sim_out_u64(p->out, m->cause);
    }
    if (m->len != 0) {
        fb_sim_out_text(p->out, ",\"bytes\":");
        fb_sim_out_u64(p->out, m->len);
    }
    char text[FB_SIM_NOTE_TEXT_MAX];
    const char *glyph;
    uint32_t shown = 0;
    for (uint64_t i = 0; i < m->note_count; i++) {
        const fb_sim_note *note = fb_sim_record_note(p->record, m->notes + i);
        if (note == NULL || note->node == FB_SIM_NOBODY) continue;
        if (!fb_sim_note_text(p->world, note, &glyph, text)) continue;
        fb_sim_out_text(p->out, shown == 0 ? ",\"happened\":[" : ",");
        fb_sim_out_string(p->out, text);
        shown++;
    }
    fb_sim_out_text(p->out, shown != 0 ? "]}}" : "}}");
}

static void flow_end(perfetto *p, const char *phase, uint64_t id, const char *name, uint32_t node,
                     uint64_t ns)
{
    begin(p);
    fb_sim_out_text(p->out, "{\"ph\":\"");
    fb_sim_out_text(p->out, phase);
    fb_sim_out_text(p->out, "\",\"cat\":\"message\",\"name\":\"");
    fb_sim_out_text(p->out, name);
    fb_sim_out_text(p->out, "\",\"id\":");
    fb_sim_out_u64(p->out, id);
    where(p, NODES, node + 1u, ns);
    fb_sim_out_text(p->out, "}");
}

static void flow(perfetto *p, const fb_sim_message_note *message)
{
    const fb_sim_moment *sent = fb_sim_record_moment(p->record, message->sent_step);
    const fb_sim_moment *got = fb_sim_record_moment(p->record, message->received_step);
    if (message->fate != FB_SIM_RECEIVED || sent == NULL || got == NULL) return;
    if (sent->step < p->from || got->step > p->to) return;
    const char *name = message->carrier ? "frame" : "bytes";
    flow_end(p, "s", message->number, name, sent->node, p->placed[sent->step - p->from]);
    /* Bound to the slice that encloses it, not to the next one. */
    flow_end(p, "f\",\"bp\":\"e", message->number, name, got->node, p->placed[got->step - p->from]);
}

static void instant(perfetto *p, uint32_t tid, uint64_t ns, const char *scope, const char *category,
                    const char *text)
{
    begin(p);
    fb_sim_out_text(p->out, "{\"ph\":\"i\",\"s\":\"");
    fb_sim_out_text(p->out, scope);
    fb_sim_out_text(p->out, "\",\"cat\":\"");
    fb_sim_out_text(p->out, category);
    fb_sim_out_text(p->out, "\",\"name\":");
    fb_sim_out_string(p->out, text);
    where(p, tid == 0 ? WEATHER : NODES, tid, ns);
    fb_sim_out_text(p->out, "}");
}

static void band_end(perfetto *p, const char *phase, uint64_t id, const char *text, uint64_t ns)
{
    begin(p);
    fb_sim_out_text(p->out, "{\"ph\":\"");
    fb_sim_out_text(p->out, phase);
    fb_sim_out_text(p->out, "\",\"cat\":\"fault\",\"id\":");
    fb_sim_out_u64(p->out, id);
    fb_sim_out_text(p->out, ",\"name\":");
    fb_sim_out_string(p->out, text);
    where(p, WEATHER, 1, ns);
    fb_sim_out_text(p->out, "}");
}

void fb_sim_view_perfetto(const fb_sim_world *world, const fb_sim_span *span, fb_sim_out *out)
{
    perfetto p = {.out = out,
                  .world = world,
                  .record = world->record,
                  .from = span->from,
                  .to = span->to,
                  .first = true};
    p.placed = span->memory;
    fb_sim_out_text(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"seed\":");
    fb_sim_out_string(out, world->config.seed_text);
    fb_sim_out_text(out, ",\"clock\":\"virtual time of the simulator\"},\"traceEvents\":[");
    named(&p, "process_name", NODES, 0, "nodes");
    named(&p, "process_name", WEATHER, 0, "weather");
    named(&p, "thread_name", WEATHER, 1, "faults");
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        named(&p, "thread_name", NODES, i + 1, fb_sim_name(i));
    }
    uint64_t start_ns = UINT64_MAX, end_ns = 0;
    for (uint64_t step = p.from; step <= p.to; step++) {
        const fb_sim_moment *m = fb_sim_record_moment(p.record, step);
        if (m == NULL) continue;
        if (start_ns == UINT64_MAX) start_ns = m->time_ns;
        end_ns = m->time_ns;
        slice(&p, m);
    }
    for (uint64_t i = fb_sim_record_messages_from(p.record); i <= p.record->live->messages; i++) {
        const fb_sim_message_note *message = fb_sim_record_message(p.record, i);
        if (message != NULL) flow(&p, message);
    }
    char text[FB_SIM_NOTE_TEXT_MAX];
    const char *glyph;
    for (uint64_t i = fb_sim_record_notes_from(p.record); i <= p.record->live->notes; i++) {
        const fb_sim_note *note = fb_sim_record_note(p.record, i);
        if (note->kind < FB_SIM_NOTE_PHASE || note->step < p.from || note->step > p.to) continue;
        if (!fb_sim_note_text(world, note, &glyph, text)) continue;
        uint32_t tid = note->node == FB_SIM_NOBODY ? 0 : note->node + 1u;
        instant(&p, tid, note->time_ns, tid == 0 ? "g" : "t", fb_sim_note_name(note->kind), text);
    }
    uint64_t count = p.record->live->bands;
    for (uint64_t i = count > FB_SIM_BANDS_MAX ? count - FB_SIM_BANDS_MAX : 0; i < count; i++) {
        const fb_sim_band *band = &p.record->bands[i % FB_SIM_BANDS_MAX];
        if (band->end_ns <= start_ns || band->start_ns > end_ns) continue;
        fb_sim_band_text(world, band, text, sizeof text);
        uint64_t end = band->end_ns == FB_NEVER ? end_ns : band->end_ns;
        band_end(&p, "b", i + 1, text, band->start_ns);
        band_end(&p, "e", i + 1, text, end);
    }
    fb_sim_out_text(out, "\n]}\n");
}
