/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step/answer.h"

#include <stdarg.h>
#include <stdio.h>

#include "sim/run.h"
#include "sim/view/note.h"
#include "sim/world/world.h"

void fb_sim_time_text(uint64_t ns, char out[32])
{
    snprintf(out, 32, "%llu.%09llu", (unsigned long long)(ns / 1000000000),
             (unsigned long long)(ns % 1000000000));
}

static void name(fb_sim_answer *a, const char *n)
{
    fb_sim_out_text(a->out, a->first ? "" : ",");
    a->first = false;
    fb_sim_out_string(a->out, n);
    fb_sim_out_text(a->out, ":");
}

void fb_sim_answer_begin(fb_sim_answer *a, const char *command)
{
    if (!a->json) return;
    fb_sim_out_text(a->out, "{");
    a->first = true;
    fb_sim_answer_string(a, "command", command);
}

void fb_sim_answer_end(fb_sim_answer *a)
{
    if (a->json) fb_sim_out_text(a->out, "}\n");
    fb_sim_out_flush(a->out);
}

void fb_sim_answer_string(fb_sim_answer *a, const char *n, const char *value)
{
    if (!a->json) return;
    name(a, n);
    if (value == NULL) {
        fb_sim_out_text(a->out, "null");
    } else {
        fb_sim_out_string(a->out, value);
    }
}

void fb_sim_answer_number(fb_sim_answer *a, const char *n, uint64_t value)
{
    if (!a->json) return;
    name(a, n);
    fb_sim_out_u64(a->out, value);
}

void fb_sim_answer_bool(fb_sim_answer *a, const char *n, bool value)
{
    if (!a->json) return;
    name(a, n);
    fb_sim_out_text(a->out, value ? "true" : "false");
}

void fb_sim_answer_open(fb_sim_answer *a, const char *n)
{
    if (!a->json) return;
    name(a, n);
    fb_sim_out_text(a->out, "[");
}

void fb_sim_answer_item(fb_sim_answer *a, bool first)
{
    if (!a->json) return;
    fb_sim_out_text(a->out, first ? "{" : ",{");
    a->first = true;
}

void fb_sim_answer_item_end(fb_sim_answer *a)
{
    if (a->json) fb_sim_out_text(a->out, "}");
}

void fb_sim_answer_close(fb_sim_answer *a)
{
    if (!a->json) return;
    fb_sim_out_text(a->out, "]");
    a->first = false;
}

void fb_sim_answer_line(fb_sim_answer *a, const char *format, ...)
{
    if (a->json) return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fb_sim_out_text(a->out, text);
    fb_sim_out_text(a->out, "\n");
}

void fb_sim_answer_where(fb_sim_answer *a, const fb_sim_session *session)
{
    const fb_sim_world *world = session->world;
    char time[32];
    fb_sim_time_text(world->now_ns, time);
    bool bad = session->over && world->result != FB_SIM_PASS;
    if (a->json) {
        char ns[24], hash[33];
        snprintf(ns, sizeof ns, "%llu", (unsigned long long)world->now_ns);
        fb_sim_trace_text(fb_sim_trace_hash(&world->trace), hash);
        fb_sim_answer_number(a, "step", world->steps);
        fb_sim_answer_number(a, "turn", session->turn);
        fb_sim_answer_string(a, "time_ns", ns);
        fb_sim_answer_string(a, "hash", hash);
        fb_sim_answer_bool(a, "over", session->over);
        fb_sim_answer_string(a, "result", fb_sim_result_name(world->result));
        fb_sim_answer_string(a, "check", bad ? world->check : NULL);
        fb_sim_answer_string(a, "detail", bad ? world->detail : NULL);
        fb_sim_answer_number(a, "changes", session->decision_count);
        return;
    }
    fb_sim_answer_line(a, "step %llu, %s s%s%s", (unsigned long long)world->steps, time,
                       session->over ? ", the run is over" : "",
                       session->decision_count != 0 ? ", changed by hand" : "");
    if (bad) {
        fb_sim_answer_line(a, "## %s: %s", fb_sim_result_name(world->result), world->record->bad);
    }
}

static void notes_of(fb_sim_answer *a, const fb_sim_world *world, const fb_sim_moment *m)
{
    char text[FB_SIM_NOTE_TEXT_MAX];
    const char *glyph;
    bool first = true;
    fb_sim_answer_open(a, "notes");
    for (uint64_t i = 0; i < m->note_count; i++) {
        const fb_sim_note *note = fb_sim_record_note(world->record, m->notes + i);
        if (note == NULL || !fb_sim_note_text(world, note, &glyph, text)) continue;
        fb_sim_answer_line(a, "%30s%s", "", text);
        fb_sim_answer_item(a, first);
        fb_sim_answer_string(a, "kind", fb_sim_note_name(note->kind));
        fb_sim_answer_string(a, "text", text);
        fb_sim_answer_item_end(a);
        first = false;
    }
    fb_sim_answer_close(a);
}

void fb_sim_answer_moment(fb_sim_answer *a, const fb_sim_world *world, uint64_t step)
{
    const fb_sim_moment *m = fb_sim_record_moment(world->record, step);
    char text[FB_SIM_NOTE_TEXT_MAX], time[32], ns[24];
    fb_sim_answer_number(a, "step", step);
    if (m == NULL) {
        fb_sim_answer_line(a, "%8llu  out of the window", (unsigned long long)step);
        fb_sim_answer_bool(a, "kept", false);
        return;
    }
    fb_sim_moment_text(world, m, text);
    fb_sim_time_text(m->time_ns, time);
    snprintf(ns, sizeof ns, "%llu", (unsigned long long)m->time_ns);
    fb_sim_answer_line(a, "%8llu %15s  %-3s %s", (unsigned long long)step, time,
                       fb_sim_name(m->node), text);
    fb_sim_answer_string(a, "time_ns", ns);
    fb_sim_answer_string(a, "node", fb_sim_name(m->node));
    fb_sim_answer_string(a, "event", fb_sim_event_name(m->kind));
    fb_sim_answer_string(a, "text", text);
    if (m->cause != 0) fb_sim_answer_number(a, "cause", m->cause);
    notes_of(a, world, m);
}
