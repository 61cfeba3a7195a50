/* SPDX-License-Identifier: Apache-2.0 */
/* The record as one page: page.html with the runs' data put in as JSON. */
#include <stdio.h>

#include "sim/run.h"
#include "sim/view/note.h"
#include "sim/view/page.h"
#include "sim/view/view.h"

static const char place[] = "<!--DATA-->";

typedef struct page {
    fb_sim_out *out;
    const fb_sim_world *world;
    const fb_sim_record *record;
    const fb_sim_span *span;
} page;

static void text(page *p, const char *t)
{
    fb_sim_out_text(p->out, t);
}

static void number(page *p, uint64_t value)
{
    fb_sim_out_u64(p->out, value);
}

/* Of a node, or -1. */
static void node_number(page *p, uint64_t node)
{
    if (node < p->world->config.nodes) {
        number(p, node);
    } else {
        text(p, "-1");
    }
}

/* Kinds are numbers below 256, named once. Those of events stand behind the notes'. */
#define EVENTS 128u

static void kinds(page *p)
{
    text(p, "\"kinds\":[");
    for (uint32_t i = 0; i < 256; i++) {
        if (i != 0) text(p, ",");
        fb_sim_out_string(p->out, i < EVENTS ? fb_sim_note_name((uint8_t)i)
                                             : fb_sim_event_name((uint8_t)(i - EVENTS)));
    }
    text(p, "],\n");
}

static void moment(page *p, const fb_sim_moment *m)
{
    char said[FB_SIM_NOTE_TEXT_MAX];
    const char *glyph;
    fb_sim_moment_text(p->world, m, said);
    text(p, "[");
    number(p, m->step);
    text(p, ",");
    number(p, m->time_ns);
    text(p, ",");
    number(p, m->node);
    text(p, ",");
    number(p, EVENTS + m->kind);
    text(p, ",");
    number(p, m->cause);
    text(p, ",");
    fb_sim_out_string(p->out, said);
    text(p, ",[");
    bool first = true;
    for (uint64_t i = 0; i < m->note_count; i++) {
        const fb_sim_note *note = fb_sim_record_note(p->record, m->notes + i);
        if (note == NULL || note->node == FB_SIM_NOBODY) continue;
        if (!fb_sim_note_text(p->world, note, &glyph, said)) continue;
        text(p, first ? "[" : ",[");
        first = false;
        number(p, note->kind);
        text(p, ",");
        fb_sim_out_string(p->out, said);
        text(p, "]");
    }
    text(p, "]]");
}

static void moments(page *p)
{
    bool first = true;
    text(p, "\"moments\":[");
    for (uint64_t step = p->span->from; step <= p->span->to; step++) {
        const fb_sim_moment *m = fb_sim_record_moment(p->record, step);
        if (m == NULL) continue;
        text(p, first ? "\n" : ",\n");
        first = false;
        moment(p, m);
    }
    text(p, "],\n");
}

static void messages(page *p)
{
    bool first = true;
    text(p, "\"messages\":[");
    uint64_t from = fb_sim_record_messages_from(p->record);
    for (uint64_t i = from; i <= p->record->live->messages; i++) {
        const fb_sim_message_note *m = fb_sim_record_message(p->record, i);
        if (m == NULL || m->from == FB_SIM_NOBODY) continue;
        if (m->sent_step < p->span->from || m->sent_step > p->span->to) continue;
        bool got = m->fate == FB_SIM_RECEIVED && m->received_step <= p->span->to;
        const uint64_t values[] = {m->sent_step, got ? m->received_step : 0,
                                   m->from,      m->to,
                                   m->len,       got ? 1 : m->fate == FB_SIM_LOST ? 2 : 0,
                                   m->carrier,   m->copies,
                                   m->harmed};
        text(p, first ? "\n[" : ",\n[");
        first = false;
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            if (k != 0) text(p, ",");
            number(p, values[k]);
        }
        text(p, "]");
    }
    text(p, "],\n");
}

/* Those of the whole network have no node. */
static bool is_wide(uint8_t fault)
{
    return fault == FB_SIM_FAULT_SPLIT || fault == FB_SIM_FAULT_RING;
}

static void bands(page *p)
{
    const fb_sim_moment *first = fb_sim_record_moment(p->record, p->span->from);
    const fb_sim_moment *last = fb_sim_record_moment(p->record, p->span->to);
    uint64_t start_ns = first == NULL ? 0 : first->time_ns;
    uint64_t end_ns = last == NULL ? p->world->now_ns : last->time_ns;
    uint64_t count = p->record->live->bands;
    const char *between = "\n[";
    char said[160];
    text(p, "\"bands\":[");
    for (uint64_t i = count > FB_SIM_BANDS_MAX ? count - FB_SIM_BANDS_MAX : 0; i < count; i++) {
        const fb_sim_band *band = &p->record->bands[i % FB_SIM_BANDS_MAX];
        if (band->end_ns <= start_ns || band->start_ns > end_ns) continue;
        fb_sim_band_text(p->world, band, said, sizeof said);
        text(p, between);
        between = ",\n[";
        number(p, band->start_ns);
        text(p, ",");
        number(p, band->end_ns < end_ns ? band->end_ns : end_ns + 1);
        text(p, ",");
        fb_sim_out_string(p->out, said);
        text(p, ",");
        node_number(p, is_wide(band->fault) ? UINT64_MAX : band->a);
        text(p, ",");
        node_number(p, is_wide(band->fault) ? UINT64_MAX : band->b);
        text(p, "]");
    }
    text(p, "],\n");
}

/* What is of no step: weather, phases, the violation, what a client asked of a node. */
static void world_notes(page *p)
{
    char said[FB_SIM_NOTE_TEXT_MAX];
    const char *glyph;
    const char *between = "\n[";
    text(p, "\"world\":[");
    uint64_t from = fb_sim_record_notes_from(p->record);
    for (uint64_t i = from; i <= p->record->live->notes; i++) {
        const fb_sim_note *note = fb_sim_record_note(p->record, i);
        if (note->node != FB_SIM_NOBODY) continue;
        if (note->step < p->span->from || note->step > p->span->to) continue;
        if (!fb_sim_note_text(p->world, note, &glyph, said)) continue;
        text(p, between);
        between = ",\n[";
        number(p, note->step);
        text(p, ",");
        number(p, note->time_ns);
        text(p, ",");
        number(p, note->kind);
        text(p, ",");
        fb_sim_out_string(p->out, said);
        text(p, "]");
    }
    text(p, "]");
}

static void run_data(const fb_sim_world *world, const fb_sim_span *span, fb_sim_out *out)
{
    page p = {out, world, world->record, span};
    char said[160];
    text(&p, "<script type=\"application/json\">{\"title\":");
    snprintf(said, sizeof said, "seed %s, %u nodes, steps %llu to %llu", world->config.seed_text,
             (unsigned)world->config.nodes, (unsigned long long)span->from,
             (unsigned long long)span->to);
    fb_sim_out_string(out, said);
    text(&p, ",\"result\":");
    fb_sim_out_string(out, fb_sim_result_name(world->result));
    text(&p, ",\"detail\":");
    fb_sim_out_string(out, world->result == FB_SIM_PASS ? "" : world->record->bad);
    text(&p, ",\"bad\":");
    number(&p, world->record->bad_step);
    text(&p, ",\"nodes\":[");
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        if (i != 0) text(&p, ",");
        fb_sim_out_string(out, fb_sim_name(i));
    }
    text(&p, "],\n");
    kinds(&p);
    moments(&p);
    messages(&p);
    bands(&p);
    world_notes(&p);
    text(&p, "}</script>\n");
}

void fb_sim_view_html(const fb_sim_world *world, const fb_sim_span *span,
                      const fb_sim_world *beside, const fb_sim_span *beside_span, fb_sim_out *out)
{
    size_t at = 0;
    size_t mark = sizeof place - 1;
    while (at + mark < fb_sim_page_len && memcmp(fb_sim_page + at, place, mark) != 0) at++;
    fb_sim_out_bytes(out, fb_sim_page, at);
    run_data(world, span, out);
    if (beside != NULL) run_data(beside, beside_span, out);
    fb_sim_out_bytes(out, fb_sim_page + at + mark, fb_sim_page_len - at - mark);
}
