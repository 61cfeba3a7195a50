/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/view/record.h"

#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "sim/view/timeline.h"
#include "sim/world/world.h"

static fb_sim_live *live_create(const fb_sim_world *world)
{
    uint32_t nodes = world->config.nodes;
    uint32_t ends = world->network.connection_count * 2;
    uint32_t frames = world->network.frame_count;
    uint32_t causes = 64;
    while (causes < 2 * world->queue.capacity) causes *= 2;
    fb_sim_live *live = NULL;
    fb_arena arena = {NULL, 0, 0};
    for (int pass = 0; pass < 2; pass++) {
        fb_sim_live measured = {0};
        fb_sim_live *l = fb_arena_take(&arena, 1, sizeof *l);
        if (pass == 0) l = &measured;
        l->tick_cause = fb_arena_take(&arena, nodes, sizeof *l->tick_cause);
        l->last_step = fb_arena_take(&arena, nodes, sizeof *l->last_step);
        l->flow_first = fb_arena_take(&arena, ends, sizeof *l->flow_first);
        l->flow_last = fb_arena_take(&arena, ends, sizeof *l->flow_last);
        l->frame_message = fb_arena_take(&arena, frames, sizeof *l->frame_message);
        l->causes = fb_arena_take(&arena, causes, sizeof *l->causes);
        l->cause_mask = causes - 1;
        if (pass == 1) {
            live = l;
            break;
        }
        size_t bytes = arena.used;
        void *memory = calloc(1, bytes);
        if (memory == NULL) return NULL;
        arena = (fb_arena){memory, 0, bytes};
    }
    live->bytes = arena.used;
    return live;
}

fb_sim_record *fb_sim_record_create(fb_sim_world *world, uint64_t steps)
{
    fb_sim_record *record = calloc(1, sizeof *record);
    if (record == NULL) return NULL;
    record->capacity = 1024;
    while (record->capacity < steps && record->capacity < UINT64_C(1) << 32) record->capacity *= 2;
    record->live = live_create(world);
    record->moments = calloc(record->capacity, sizeof *record->moments);
    record->messages = calloc(record->capacity, sizeof *record->messages);
    record->notes = calloc(record->capacity * 2, sizeof *record->notes);
    record->bands = calloc(FB_SIM_BANDS_MAX, sizeof *record->bands);
    record->first = world->steps + 1;
    if (record->live == NULL || record->moments == NULL || record->messages == NULL ||
        record->notes == NULL || record->bands == NULL) {
        fb_sim_record_destroy(record);
        return NULL;
    }
    world->record = record;
    return record;
}

void fb_sim_record_destroy(fb_sim_record *record)
{
    if (record == NULL) return;
    free(record->live);
    free(record->moments);
    free(record->messages);
    free(record->notes);
    free(record->bands);
    free(record);
}

/* Looking up. */

const fb_sim_moment *fb_sim_record_moment(const fb_sim_record *record, uint64_t step)
{
    const fb_sim_moment *moment = &record->moments[step & (record->capacity - 1)];
    return step != 0 && moment->step == step ? moment : NULL;
}

uint64_t fb_sim_record_from(const fb_sim_record *record, uint64_t last)
{
    uint64_t from = last > record->capacity ? last - record->capacity + 1 : 1;
    return fb_max_u64(from, record->first);
}

uint64_t fb_sim_record_notes_from(const fb_sim_record *record)
{
    uint64_t room = record->capacity * 2;
    return record->live->notes > room ? record->live->notes - room + 1 : 1;
}

uint64_t fb_sim_record_messages_from(const fb_sim_record *record)
{
    uint64_t room = record->capacity;
    return record->live->messages > room ? record->live->messages - room + 1 : 1;
}

const fb_sim_note *fb_sim_record_note(const fb_sim_record *record, uint64_t number)
{
    if (number < fb_sim_record_notes_from(record) || number > record->live->notes) return NULL;
    return &record->notes[number & (record->capacity * 2 - 1)];
}

static fb_sim_message_note *message_of(const fb_sim_record *record, uint64_t number)
{
    fb_sim_message_note *message = &record->messages[number & (record->capacity - 1)];
    return number != 0 && message->number == number ? message : NULL;
}

const fb_sim_message_note *fb_sim_record_message(const fb_sim_record *record, uint64_t number)
{
    if (number > record->live->messages) return NULL;
    return message_of(record, number);
}

/* Causes of what stands in the queue. */

static uint32_t cause_place(const fb_sim_live *live, uint64_t sequence)
{
    return (uint32_t)((sequence * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & live->cause_mask;
}

static void cause_put(fb_sim_live *live, uint64_t sequence, uint64_t step)
{
    if (step == 0) return;
    uint32_t at = cause_place(live, sequence);
    while (live->causes[at].sequence != 0) at = (at + 1) & live->cause_mask;
    live->causes[at] = (fb_sim_cause){sequence + 1, step};
}

uint64_t fb_sim_record_cause(const fb_sim_record *record, uint64_t order)
{
    const fb_sim_live *live = record->live;
    uint64_t sequence = order & ((UINT64_C(1) << FB_SIM_QUEUE_SEQUENCE_BITS) - 1);
    uint32_t at = cause_place(live, sequence);
    while (live->causes[at].sequence != sequence + 1) {
        if (live->causes[at].sequence == 0) return 0;
        at = (at + 1) & live->cause_mask;
    }
    return live->causes[at].step;
}

static uint64_t cause_take(fb_sim_live *live, uint64_t sequence)
{
    uint32_t mask = live->cause_mask;
    uint32_t at = cause_place(live, sequence);
    while (live->causes[at].sequence != sequence + 1) {
        if (live->causes[at].sequence == 0) return 0;
        at = (at + 1) & mask;
    }
    uint64_t step = live->causes[at].step;
    /* What stood behind it moves up, so that no search ends too early. */
    uint32_t hole = at;
    for (uint32_t next = (at + 1) & mask; live->causes[next].sequence != 0;
         next = (next + 1) & mask) {
        uint32_t home = cause_place(live, live->causes[next].sequence - 1);
        if (((next - home) & mask) < ((next - hole) & mask)) continue;
        live->causes[hole] = live->causes[next];
        hole = next;
    }
    live->causes[hole] = (fb_sim_cause){0, 0};
    return step;
}

void fb_sim_record_scheduled(fb_sim_world *world)
{
    fb_sim_live *live = world->record->live;
    cause_put(live, world->queue.sequence & ((UINT64_C(1) << FB_SIM_QUEUE_SEQUENCE_BITS) - 1),
              live->context);
}

static void turn_begins(const fb_sim_world *world)
{
    fb_sim_live *live = world->record->live;
    live->turn_began = world->steps;
    live->arriving_step = 0;
    live->arriving_count = 0;
    live->arriving_harmed = false;
}

void fb_sim_record_popped(fb_sim_world *world, const fb_sim_entry *entry)
{
    fb_sim_live *live = world->record->live;
    live->context =
        cause_take(live, entry->order & ((UINT64_C(1) << FB_SIM_QUEUE_SEQUENCE_BITS) - 1));
    turn_begins(world);
}

void fb_sim_record_ticks(fb_sim_world *world, uint32_t node)
{
    fb_sim_live *live = world->record->live;
    live->context = live->tick_cause[node];
    turn_begins(world);
}

void fb_sim_record_tick_set(fb_sim_world *world, uint32_t node)
{
    world->record->live->tick_cause[node] = world->record->live->context;
}

/* Steps. */

fb_sim_context fb_sim_record_enter(fb_sim_world *world)
{
    return (fb_sim_context){world->record->live->context};
}

void fb_sim_record_leave(fb_sim_world *world, uint32_t node, fb_sim_context before)
{
    fb_sim_record *record = world->record;
    fb_sim_moment *moment = &record->moments[record->live->context & (record->capacity - 1)];
    if (moment->step == record->live->context && moment->step != 0) {
        moment->send_count = (uint16_t)(record->live->messages + 1 - moment->sends);
        moment->note_count = (uint16_t)(record->live->notes + 1 - moment->notes);
    }
    record->live->context = before.context;
    if (record->stepped != NULL) record->stepped(record->user, world, node);
}

static uint8_t count_up(uint8_t count)
{
    return (uint8_t)(count == UINT8_MAX ? count : count + 1);
}

void fb_sim_record_step(fb_sim_world *world, uint32_t node, const fb_event *event,
                        const fb_effects *effects, fb_hash128 digest)
{
    fb_sim_record *record = world->record;
    fb_sim_live *live = record->live;
    uint64_t step = world->steps;
    bool arrives = live->arriving_step != 0;
    fb_sim_moment moment = {
        .step = step,
        .time_ns = world->now_ns,
        .wall_us = event->wall_us,
        .turn_began = live->turn_began,
        .cause = arrives ? live->arriving_step : live->context,
        .a = event->a,
        .b = event->b,
        .c = event->c,
        .notes = live->notes + 1,
        .sends = live->messages + 1,
        .len = event->len,
        .node = (uint16_t)node,
        .receive_count = (uint16_t)live->arriving_count,
        .kind = (uint8_t)event->kind,
        .harmed = live->arriving_harmed,
    };
    for (const fb_effect *fx = fb_effects_next(effects, NULL); fx != NULL;
         fx = fb_effects_next(effects, fx)) {
        if (fx->kind == FB_FX_READ) moment.reads = count_up(moment.reads);
        if (fx->kind == FB_FX_WRITE) moment.writes = count_up(moment.writes);
        if (fx->kind == FB_FX_REPLY) moment.replies = count_up(moment.replies);
    }
    const fb_sim_note *before;
    while ((before = fb_sim_record_note(record, moment.notes - 1)) != NULL &&
           before->step == step && before->node == node) {
        moment.notes--;
    }
    record->moments[step & (record->capacity - 1)] = moment;
    live->arriving_step = 0;
    live->arriving_count = 0;
    live->arriving_harmed = false;
    live->context = step;
    live->last_step[node] = step;
    if (record->heard != NULL) record->heard(record->user, world, node, event, effects, digest);
}

/* Notes. */

void fb_sim_record_note_add(fb_sim_world *world, fb_sim_note note)
{
    fb_sim_record *record = world->record;
    record->notes[++record->live->notes & (record->capacity * 2 - 1)] = note;
}

void fb_sim_record_weather(fb_sim_world *world, const fb_sim_window *window)
{
    fb_sim_record *record = world->record;
    fb_sim_live *live = record->live;
    uint32_t number =
        world->weather->generation << 8 | (uint32_t)(window - world->weather->windows);
    if (window->active) {
        record->bands[live->bands++ % FB_SIM_BANDS_MAX] = (fb_sim_band){
            .start_ns = world->now_ns,
            .end_ns = FB_NEVER,
            .step = world->steps,
            .end_step = UINT64_MAX,
            .a = window->a,
            .b = window->b,
            .fault = window->fault,
            .window = number,
        };
        return;
    }
    uint64_t from = live->bands > FB_SIM_BANDS_MAX ? live->bands - FB_SIM_BANDS_MAX : 0;
    for (uint64_t i = live->bands; i-- > from;) {
        fb_sim_band *band = &record->bands[i % FB_SIM_BANDS_MAX];
        if (band->window != number || band->end_ns != FB_NEVER) continue;
        band->end_ns = world->now_ns;
        band->end_step = world->steps;
        return;
    }
}

/* Messages. */

static fb_sim_message_note *message_add(fb_sim_world *world, uint32_t end, size_t len)
{
    fb_sim_record *record = world->record;
    const fb_sim_connection *c = &world->network.connections[end / 2];
    uint64_t number = ++record->live->messages;
    fb_sim_message_note *message = &record->messages[number & (record->capacity - 1)];
    *message = (fb_sim_message_note){
        .number = number,
        .sent_step = record->live->context,
        .sent_ns = world->now_ns,
        .flow = end,
        .stamp = c->stamp,
        .len = (uint32_t)len,
        .from = c->attacker ? FB_SIM_NOBODY : c->ends[1 - (end & 1)].node,
        .to = c->ends[end & 1].node,
        .carrier = c->carrier,
    };
    return message;
}

static void lose(fb_sim_world *world, fb_sim_message_note *message)
{
    message->fate = FB_SIM_LOST;
    message->over_step = world->steps;
}

void fb_sim_record_sent(fb_sim_world *world, uint32_t end, size_t len, size_t kept, bool harmed)
{
    fb_sim_record *record = world->record;
    fb_sim_live *live = record->live;
    const fb_sim_connection *c = &world->network.connections[end / 2];
    fb_sim_message_note *message = message_add(world, end, len);
    message->harmed = harmed;
    message->end = c->flows[1 - (end & 1)].written;
    if (kept == 0) {
        lose(world, message);
        return;
    }
    fb_sim_message_note *last = message_of(record, live->flow_last[end]);
    if (last != NULL && live->flow_first[end] != 0) {
        last->next = message->number;
    } else {
        live->flow_first[end] = message->number;
    }
    live->flow_last[end] = message->number;
}

static void receive(fb_sim_world *world, fb_sim_message_note *message)
{
    fb_sim_live *live = world->record->live;
    message->fate = FB_SIM_RECEIVED;
    message->copies = count_up(message->copies);
    if (message->copies == 1) {
        message->received_step = world->steps + 1;
        message->received_ns = world->now_ns;
    }
    live->arriving_step = message->sent_step;
    live->arriving_count++;
    live->arriving_harmed = live->arriving_harmed || message->harmed != 0;
}

void fb_sim_record_arrives(fb_sim_world *world, uint32_t end, uint64_t offset)
{
    fb_sim_record *record = world->record;
    fb_sim_live *live = record->live;
    uint32_t stamp = world->network.connections[end / 2].stamp;
    while (live->flow_first[end] != 0) {
        fb_sim_message_note *message = message_of(record, live->flow_first[end]);
        if (message == NULL || message->stamp != stamp) {
            live->flow_first[end] = 0; /* out of the window, or of an earlier connection */
            return;
        }
        /* A part of it was here before: it says who caused this step, and arrives when whole. */
        if (message->end > offset) {
            if (live->arriving_count == 0) live->arriving_step = message->sent_step;
            live->arriving_harmed = live->arriving_harmed || message->harmed != 0;
            return;
        }
        receive(world, message);
        live->flow_first[end] = message->next;
    }
}

void fb_sim_record_dropped(fb_sim_world *world, uint32_t end)
{
    fb_sim_record *record = world->record;
    fb_sim_live *live = record->live;
    for (uint64_t number = live->flow_first[end]; number != 0;) {
        fb_sim_message_note *message = message_of(record, number);
        if (message == NULL) break;
        if (message->fate == FB_SIM_ON_WAY) lose(world, message);
        number = message->next;
    }
    live->flow_first[end] = live->flow_last[end] = 0;
}

uint64_t fb_sim_record_frame_sent(fb_sim_world *world, uint32_t end, size_t len)
{
    fb_sim_message_note *message = message_add(world, end, len);
    lose(world, message); /* until a copy is launched */
    return message->number;
}

void fb_sim_record_harmed(fb_sim_world *world, uint64_t number)
{
    fb_sim_message_note *message = message_of(world->record, number);
    if (message != NULL) message->harmed = true;
}

void fb_sim_record_frame_launched(fb_sim_world *world, uint64_t number, uint32_t place)
{
    fb_sim_message_note *message = message_of(world->record, number);
    if (message != NULL && message->fate == FB_SIM_LOST) message->fate = FB_SIM_ON_WAY;
    world->record->live->frame_message[place] = number;
}

void fb_sim_record_frame_arrives(fb_sim_world *world, uint32_t place, bool lost)
{
    fb_sim_live *live = world->record->live;
    fb_sim_message_note *message = message_of(world->record, live->frame_message[place]);
    if (message == NULL) return;
    if (!lost) {
        receive(world, message);
    } else if (message->fate == FB_SIM_ON_WAY) {
        lose(world, message);
    }
}

/* Ends, and going back. */

void fb_sim_record_verdict(fb_sim_world *world)
{
    fb_sim_record *record = world->record;
    if (world->result == FB_SIM_PASS || record->bad_step == world->steps) return;
    record->bad_step = world->steps;
    record->bad_ns = world->now_ns;
    snprintf(record->bad, sizeof record->bad, "%s: %s", world->check, world->detail);
    fb_sim_record_note_add(world, (fb_sim_note){.step = world->steps,
                                                .time_ns = world->now_ns,
                                                .record = UINT32_MAX,
                                                .node = FB_SIM_NOBODY,
                                                .peer = FB_SIM_NOBODY,
                                                .kind = FB_SIM_NOTE_BAD});
}

void fb_sim_record_rewind(fb_sim_world *world)
{
    fb_sim_record *record = world->record;
    uint64_t steps = world->steps;
    for (uint64_t i = 0; i < record->capacity; i++) {
        fb_sim_message_note *message = &record->messages[i];
        if (message->number == 0) continue;
        if (message->number > record->live->messages) {
            *message = (fb_sim_message_note){0};
            continue;
        }
        if (message->next > record->live->messages) message->next = 0;
        if (message->received_step > steps) {
            message->received_step = message->received_ns = 0;
            message->copies = 0;
            message->fate = FB_SIM_ON_WAY;
        }
        if (message->fate == FB_SIM_LOST && message->over_step > steps) {
            message->fate = FB_SIM_ON_WAY;
        }
    }
    for (uint64_t i = 0; i < record->capacity; i++) {
        if (record->moments[i].step > steps) record->moments[i].step = 0;
    }
    for (uint32_t i = 0; i < FB_SIM_BANDS_MAX; i++) {
        fb_sim_band *band = &record->bands[i];
        if (band->end_ns == FB_NEVER || band->end_step <= steps) continue;
        band->end_ns = FB_NEVER;
        band->end_step = UINT64_MAX;
    }
    if (record->bad_step >= steps) record->bad_step = 0;
}
