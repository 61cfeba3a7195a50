/* SPDX-License-Identifier: Apache-2.0 */
/* The record as a diagram for a terminal: time downwards, a column for each node, arrows from who
 * sent to who learned of it. */
#include <stdio.h>

#include "sim/view/note.h"
#include "sim/view/view.h"
#include "sim/world/world.h"

#define WIDTH       100u
#define COLUMNS_MAX 16u

static const char legend[] =
    "  |  runs    '  loads    z  paused    (blank) down      o--<  from whom it came\n"
    "  *  is asked   .  answers   W  writes   a  applies   >  signals   R  signals again\n"
    "  <  hears      +  a link    -  loses one   !  refuses   d  drops   m  membership\n"
    "  ^  started    x  the process ends    o--?  lost   o--%  damaged    ~  fault    ==  phase\n"
    "  B  changed by hand    ##  the check that failed\n";

typedef struct text_view {
    fb_sim_out *out;
    const fb_sim_world *world;
    const fb_sim_record *record;
    const fb_sim_span *span;
    uint32_t columns;
    char still[FB_SIM_NODES_MAX]; /* what a column shows when nothing happens there */
    uint64_t paused[FB_SIM_NODES_MAX];
    uint64_t lines;
} text_view;

static void put(text_view *v, const char *text)
{
    fb_sim_out_text(v->out, text);
}

static void head(text_view *v)
{
    char text[96];
    snprintf(text, sizeof text, "\n%8s %15s ", "step", "seconds");
    put(v, text);
    for (uint32_t i = 0; i < v->columns; i++) {
        snprintf(text, sizeof text, " %-2s", fb_sim_name(i));
        put(v, text);
    }
    put(v, "\n");
}

/* The columns, with `glyph` at node and a line from peer to it. */
static size_t tracks(text_view *v, uint32_t node, uint32_t peer, char glyph, char *row)
{
    size_t width = (size_t)v->columns * 3;
    memset(row, ' ', width);
    for (uint32_t i = 0; i < v->columns; i++) row[3 * i] = v->still[i];
    if (peer < v->columns && node < v->columns && peer != node) {
        uint32_t left = peer < node ? peer : node;
        uint32_t right = peer < node ? node : peer;
        for (uint32_t at = 3 * left + 1; at < 3 * right; at++) row[at] = '-';
        row[3 * peer] = 'o';
    }
    if (node < v->columns) row[3 * node] = glyph;
    row[width] = 0;
    return width;
}

static void line(text_view *v, uint64_t step, uint64_t ns, uint32_t node, uint32_t peer, char glyph,
                 const char *text)
{
    if (v->lines++ % 40 == 0) head(v);
    char left[160];
    int used =
        snprintf(left, sizeof left, "%8llu %5llu.%09llu ", (unsigned long long)step,
                 (unsigned long long)(ns / 1000000000), (unsigned long long)(ns % 1000000000));
    left[used++] = ' ';
    used += (int)tracks(v, node, peer, glyph, left + used);
    char said[WIDTH + 1];
    bool of_node = node < v->world->config.nodes;
    int room = (int)WIDTH - used - 1;
    if (room < 24) room = 24;
    int len = snprintf(said, sizeof said, "%s%s%s", of_node ? fb_sim_name(node) : "",
                       of_node ? " " : "", text);
    if (len > room) memcpy(said + room - 2, "..", 3);
    put(v, left);
    put(v, " ");
    put(v, said);
    put(v, "\n");
}

/* What the columns look like from now on. */
static void follow(text_view *v, const fb_sim_note *note)
{
    if (note->kind == FB_SIM_NOTE_WEATHER && note->a == FB_SIM_FAULT_PAUSE &&
        note->b < v->columns) {
        v->still[note->b] = note->d != 0 ? 'z' : '|';
    }
    if (note->node >= v->columns) return;
    if (note->kind == FB_SIM_NOTE_CRASH) v->still[note->node] = ' ';
    if (note->kind == FB_FACT_STARTED) v->still[note->node] = '|';
}

static bool shown(const text_view *v, uint32_t node, const char *name)
{
    bool of_all = node == FB_SIM_NOBODY || (node < 64 && (v->span->nodes >> node & 1) != 0);
    return of_all && (v->span->kind == NULL || strcmp(v->span->kind, name) == 0);
}

static void note_line(text_view *v, const fb_sim_note *note)
{
    char text[FB_SIM_NOTE_TEXT_MAX];
    const char *glyph;
    if (!shown(v, note->node, fb_sim_note_name(note->kind))) return;
    if (!fb_sim_note_text(v->world, note, &glyph, text)) return;
    bool came = note->kind == FB_FACT_DELIVERED || note->kind == FB_FACT_APPLIED;
    line(v, note->step, note->time_ns, note->node, came ? note->peer : UINT32_MAX, glyph[0], text);
    if (note->kind != FB_SIM_NOTE_BAD) return;
    /* Whatever a line has no room for. */
    put(v, text);
    put(v, "\n");
}

static void lost_line(text_view *v, const fb_sim_message_note *message)
{
    bool lost = message->fate == FB_SIM_LOST;
    if ((!lost && message->harmed == 0) || message->from == FB_SIM_NOBODY) return;
    if (!shown(v, message->from, lost ? "lost" : "damaged")) return;
    char text[64];
    snprintf(text, sizeof text, "%u bytes to %s are %s", (unsigned)message->len,
             fb_sim_name(message->to), lost ? "lost" : "damaged");
    if (v->lines++ % 40 == 0) head(v);
    char row[160], whole[256];
    tracks(v, message->to, message->from, lost ? '?' : '%', row);
    snprintf(
        whole, sizeof whole, "%8llu %5llu.%09llu  %s %s %s\n",
        (unsigned long long)message->sent_step, (unsigned long long)(message->sent_ns / 1000000000),
        (unsigned long long)(message->sent_ns % 1000000000), row, fb_sim_name(message->from), text);
    put(v, whole);
}

static void moment_line(text_view *v, const fb_sim_moment *moment)
{
    if (v->still[moment->node] == ' ') v->still[moment->node] = '\'';
    if (!v->span->steps || !shown(v, moment->node, fb_sim_event_name(moment->kind))) return;
    char text[FB_SIM_NOTE_TEXT_MAX], whole[FB_SIM_NOTE_TEXT_MAX + 40];
    fb_sim_moment_text(v->world, moment, text);
    if (moment->cause != 0) {
        snprintf(whole, sizeof whole, "%s  (of %llu)", text, (unsigned long long)moment->cause);
    }
    const fb_sim_moment *cause = fb_sim_record_moment(v->record, moment->cause);
    bool came = cause != NULL && moment->receive_count != 0;
    line(v, moment->step, moment->time_ns, moment->node, came ? cause->node : UINT32_MAX, ':',
         moment->cause != 0 ? whole : text);
}

void fb_sim_view_text(const fb_sim_world *world, const fb_sim_span *span, fb_sim_out *out)
{
    text_view v = {.out = out, .world = world, .record = world->record, .span = span};
    v.columns = world->config.nodes < COLUMNS_MAX ? world->config.nodes : COLUMNS_MAX;
    memset(v.still, ' ', sizeof v.still);
    char text[256];
    snprintf(text, sizeof text, "seed %s, %u nodes, steps %llu to %llu\n", world->config.seed_text,
             (unsigned)world->config.nodes, (unsigned long long)span->from,
             (unsigned long long)span->to);
    put(&v, text);
    put(&v, legend);
    uint64_t note_at = fb_sim_record_notes_from(v.record);
    uint64_t message_at = fb_sim_record_messages_from(v.record);
    const fb_sim_note *note;
    /* What happened before, for the columns. */
    for (; (note = fb_sim_record_note(v.record, note_at)) != NULL && note->step < span->from;
         note_at++) {
        follow(&v, note);
        if (note->node < v.columns && note->kind != FB_SIM_NOTE_CRASH &&
            v.still[note->node] == ' ') {
            v.still[note->node] = '|';
        }
    }
    for (uint64_t step = span->from; step <= span->to; step++) {
        const fb_sim_moment *moment = fb_sim_record_moment(v.record, step);
        if (moment != NULL) moment_line(&v, moment);
        for (; (note = fb_sim_record_note(v.record, note_at)) != NULL && note->step <= step;
             note_at++) {
            follow(&v, note);
            note_line(&v, note);
        }
        for (; message_at <= v.record->live->messages; message_at++) {
            const fb_sim_message_note *m = fb_sim_record_message(v.record, message_at);
            if (m != NULL && m->sent_step > step) break;
            if (m != NULL && m->sent_step == step) lost_line(&v, m);
        }
    }
}
