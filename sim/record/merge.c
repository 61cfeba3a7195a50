/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/record/merge.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/checkers/checks.h"
#include "sim/flags.h"
#include "sim/view/note.h"
#include "sim/view/record.h"

#define HEAD_BYTES    56u /* preamble, a length, the dialler's ephemeral key */
#define CONNECTIONS   4096u
#define LIVES_MAX     65536u
#define RECORDS_MAX   4096u
#define NONE          UINT32_MAX
#define NS_PER_US     1000
#define RELATIVE_ZERO INT64_MAX

/* One end of a connection as one node knows it. */
typedef struct end_of {
    uint32_t lane;
    uint32_t file;
    uint64_t link;
    bool dialled;
    bool alone;  /* nobody recorded the other end */
    bool closed; /* this one knows that it is over */
    uint32_t connection;
    uint64_t sent, received;
    uint32_t head_len;
    uint8_t head[HEAD_BYTES];
} end_of;

/* The files of one node, one after the other. */
typedef struct lane {
    fb_id node;
    uint32_t files[FB_SIM_MERGE_FILES_MAX];
    uint32_t count, at;
    bool open;
    bool over;
    fb_sim_replay replay;
    bool known; /* the next event, that was looked at */
    fb_event next;
    int64_t time_us; /* of it */
    int64_t base_us; /* wall clock where the monotonic one of this file was zero */
    bool based;
} lane;

typedef struct merge {
    const fb_span *recordings;
    lane *lanes;
    uint32_t lane_count;
    end_of *ends;
    uint32_t end_count, end_cap;
    uint32_t connections;
    bool uncertain;  /* something arrived before it was seen to be sent: the order is a guess */
    uint64_t *lives; /* incarnations that were recorded from their beginning */
    uint32_t life_count;
    fb_id records[RECORDS_MAX];
    uint32_t record_count;
    int64_t zero_us;
    fb_sim_world *world;
    fb_sim_outline *outline; /* NULL: nobody wants one */
} merge;

static end_of *end_find(merge *m, uint32_t number, uint32_t file, uint64_t link)
{
    for (uint32_t i = m->end_count; i-- > 0;) {
        end_of *e = &m->ends[i];
        if (e->lane == number && e->file == file && e->link == link) return e;
    }
    return NULL;
}

static void end_add(merge *m, uint32_t number, uint64_t link, bool dialled)
{
    if (m->end_count == m->end_cap) {
        uint32_t cap = m->end_cap == 0 ? 256 : 2 * m->end_cap;
        end_of *ends = realloc(m->ends, cap * sizeof *ends);
        if (ends == NULL) fb_sim_fail_resource("memory of this machine");
        m->ends = ends;
        m->end_cap = cap;
    }
    m->ends[m->end_count++] = (end_of){.lane = number,
                                       .file = m->lanes[number].at,
                                       .link = link,
                                       .dialled = dialled,
                                       .connection = NONE};
}

static void head_take(end_of *e, fb_span bytes)
{
    size_t room = HEAD_BYTES - e->head_len;
    size_t len = bytes.len < room ? bytes.len : room;
    if (len != 0) memcpy(e->head + e->head_len, bytes.p, len);
    e->head_len += (uint32_t)len;
}

/* The dialler's end with these first bytes. */
static end_of *dialler_of(merge *m, const uint8_t head[HEAD_BYTES])
{
    for (uint32_t i = m->end_count; i-- > 0;) {
        end_of *e = &m->ends[i];
        if (e->dialled && e->connection == NONE && e->head_len == HEAD_BYTES &&
            memcmp(e->head, head, HEAD_BYTES) == 0) {
            return e;
        }
    }
    return NULL;
}

static void pair(merge *m, end_of *dialler, end_of *acceptor)
{
    if (m->connections == m->world->network.connection_count) return;
    uint32_t number = m->connections++;
    fb_sim_connection *c = &m->world->network.connections[number];
    c->stamp = 1;
    c->ends[0] = (fb_sim_end){.node = (uint16_t)dialler->lane, .link = dialler->link};
    c->ends[1] = (fb_sim_end){.node = (uint16_t)acceptor->lane, .link = acceptor->link};
    c->flows[0].written = dialler->sent;
    c->flows[1].written = acceptor->sent;
    dialler->connection = acceptor->connection = number;
    if (m->outline != NULL) {
        fb_sim_outline_linked(m->outline, dialler->lane, acceptor->lane, m->world->now_ns, true);
    }
}

/* The first of two ends that knows it ends their connection. */
static void closed(merge *m, end_of *e)
{
    if (e == NULL || e->closed) return;
    e->closed = true;
    if (m->outline == NULL || e->connection == NONE) return;
    for (uint32_t i = 0; i < m->end_count; i++) {
        end_of *other = &m->ends[i];
        if (other == e || other->connection != e->connection) continue;
        if (other->closed) return;
        fb_sim_outline_linked(m->outline, e->lane, other->lane, m->world->now_ns, false);
        return;
    }
}

/* The next event. */

static bool lane_open(merge *m, lane *l)
{
    if (l->at == l->count) {
        l->over = true;
        return false;
    }
    l->open = fb_sim_replay_open(&l->replay, m->recordings[l->files[l->at]]);
    l->based = false;
    return true;
}

static bool lane_look(lane *l)
{
    fb_recording_item item;
    bool cut;
    fb_reader ahead = l->replay.in;
    if (l->known) return true;
    if (fb_recording_read(&ahead, l->replay.header.redacted, &item, &cut) != FB_OK ||
        item.kind != FB_RECORDING_EVENT) {
        return false;
    }
    l->next = item.event;
    if (!l->based) {
        l->base_us = item.event.wall_us - (int64_t)(item.event.mono_ns / NS_PER_US);
        l->based = true;
    }
    l->time_us = l->base_us + (int64_t)(item.event.mono_ns / NS_PER_US);
    l->known = true;
    return true;
}

/* Does it wait for what another node has not sent yet? */
static bool is_blocked(merge *m, uint32_t number)
{
    const lane *l = &m->lanes[number];
    if (l->next.kind != FB_EV_LINK_BYTES || l->next.bytes == NULL) return false;
    end_of *e = end_find(m, number, l->at, l->next.a);
    if (e == NULL || e->alone) return false;
    if (e->connection == NONE) {
        if (e->dialled || e->head_len == HEAD_BYTES || e->head_len + l->next.len < HEAD_BYTES) {
            return false;
        }
        uint8_t head[HEAD_BYTES];
        memcpy(head, e->head, e->head_len);
        memcpy(head + e->head_len, l->next.bytes, HEAD_BYTES - e->head_len);
        return dialler_of(m, head) == NULL;
    }
    const fb_sim_connection *c = &m->world->network.connections[e->connection];
    return c->flows[e->dialled ? 1 : 0].written < e->received + l->next.len;
}

/* What waits for something that is not coming goes on without. */
static void unblock(merge *m, uint32_t number)
{
    lane *l = &m->lanes[number];
    end_of *e = end_find(m, number, l->at, l->next.a);
    if (e != NULL) e->alone = true;
    m->uncertain = true;
}

static uint32_t choose(merge *m)
{
    uint32_t best = NONE, blocked = NONE;
    for (uint32_t i = 0; i < m->lane_count; i++) {
        const lane *l = &m->lanes[i];
        if (l->over || !l->known) continue;
        uint32_t *place = is_blocked(m, i) ? &blocked : &best;
        if (*place == NONE || l->time_us < m->lanes[*place].time_us) *place = i;
    }
    if (best == NONE && blocked != NONE) unblock(m, blocked);
    return best != NONE ? best : blocked;
}

/* One step. */

static uint32_t record_number(merge *m, const fb_effect *fact)
{
    if (fact->len < 32) return NONE;
    fb_id id;
    memcpy(id.b, fb_effect_bytes(fact) + 16, sizeof id.b);
    for (uint32_t i = 0; i < m->record_count; i++) {
        if (fb_id_equal(m->records[i], id)) return i;
    }
    if (m->record_count == RECORDS_MAX) return NONE;
    m->records[m->record_count] = id;
    return m->record_count++;
}

static void note_fact(merge *m, uint32_t node, const fb_effect *fact)
{
    fb_sim_note note = fb_sim_note_of_fact(m->world, node, fact);
    if (fact->a == FB_FACT_WRITTEN || fact->a == FB_FACT_APPLIED) {
        note.record = record_number(m, fact);
    }
    fb_sim_record_note_add(m->world, note);
}

/* What checks may see of it: links carry their end in the low bits, as in the simulator; and
 * nothing is said of links and lives of which one side was not recorded. */
static void judge(merge *m, uint32_t number, const fb_effect *fact)
{
    static const uint64_t of_links =
        FB_SIM_FACT(FB_FACT_LINK_BOUND) | FB_SIM_FACT(FB_FACT_LINK_ENDED) |
        FB_SIM_FACT(FB_FACT_LINK_REFUSED) | FB_SIM_FACT(FB_FACT_CLONE) | FB_SIM_FACT(FB_FACT_SENT) |
        FB_SIM_FACT(FB_FACT_RESENT) | FB_SIM_FACT(FB_FACT_DELIVERED) |
        FB_SIM_FACT(FB_FACT_REFUSED) | FB_SIM_FACT(FB_FACT_ACKED) | FB_SIM_FACT(FB_FACT_ANNOUNCED) |
        FB_SIM_FACT(FB_FACT_BATCH_REFUSED);
    uint8_t room[sizeof(fb_effect) + 256];
    if (fact->a >= 64 || fact->len > 256) return;
    if (m->uncertain && (fact->a == FB_FACT_APPLIED || fact->a == FB_FACT_DELIVERED)) return;
    fb_effect *seen = (fb_effect *)(void *)room;
    memcpy(room, fact, sizeof *fact + fact->len);
    if ((of_links >> fact->a & 1) != 0) {
        end_of *e = end_find(m, number, m->lanes[number].at, fact->b);
        if (e == NULL || e->connection == NONE) return;
        seen->b = (uint64_t)(e - m->ends + 1) << 16 | (2 * e->connection + (e->dialled ? 0 : 1));
    }
    if (fact->a == FB_FACT_APPLIED) {
        uint64_t incarnation = fact->len < 56 ? 0 : fb_load_be64(fb_effect_bytes(fact) + 48);
        uint32_t i = 0;
        while (i < m->life_count && m->lives[i] != incarnation) i++;
        if (i == m->life_count) return;
    }
    fb_sim_checks_history(m->world, number, seen);
}

static void life_begins(merge *m, uint32_t number, uint64_t incarnation)
{
    m->world->nodes[number].incarnation = incarnation;
    if (m->life_count < LIVES_MAX) m->lives[m->life_count++] = incarnation;
}

/* A file of a node is over. */
static void lane_down(merge *m, uint32_t number)
{
    for (uint32_t i = 0; i < m->end_count; i++) {
        if (m->ends[i].lane == number) closed(m, &m->ends[i]);
    }
    if (m->outline != NULL) fb_sim_outline_down(m->outline, number, m->world->now_ns);
}

static void note_end(merge *m, uint32_t node)
{
    fb_sim_record_note_add(m->world, (fb_sim_note){.step = m->world->steps,
                                                   .time_ns = m->world->now_ns,
                                                   .record = NONE,
                                                   .node = (uint16_t)node,
                                                   .peer = FB_SIM_NOBODY,
                                                   .kind = FB_SIM_NOTE_CRASH});
}

static void before_step(merge *m, uint32_t number)
{
    lane *l = &m->lanes[number];
    fb_sim_live *live = m->world->record->live;
    live->context = live->arriving_step = 0;
    live->arriving_count = 0;
    live->arriving_harmed = false;
    live->turn_began = m->world->steps;
    if (l->next.kind == FB_EV_START) life_begins(m, number, l->next.a);
    if (m->outline != NULL) fb_sim_outline_event(m->outline, number, m->world->now_ns, &l->next);
    if (l->next.kind == FB_EV_LINK_CLOSED) closed(m, end_find(m, number, l->at, l->next.a));
    if (l->next.kind == FB_EV_LINK_OPENED) end_add(m, number, l->next.a, false);
    if (l->next.kind == FB_EV_DIAL_RESULT && l->next.c == 0) end_add(m, number, l->next.b, true);
    if (l->next.kind != FB_EV_LINK_BYTES) return;
    end_of *e = end_find(m, number, l->at, l->next.a);
    if (e == NULL) return;
    if (!e->dialled && l->next.bytes != NULL) {
        head_take(e, fb_span_of(l->next.bytes, l->next.len));
        end_of *dialler = e->connection == NONE && e->head_len == HEAD_BYTES && !e->alone
                              ? dialler_of(m, e->head)
                              : NULL;
        if (dialler != NULL) pair(m, dialler, e);
    }
    if (e->connection != NONE) {
        fb_sim_record_arrives(m->world, 2 * e->connection + (e->dialled ? 0 : 1),
                              e->received + l->next.len);
    }
}

static void sent(merge *m, uint32_t number, const fb_effect *fx)
{
    end_of *e = end_find(m, number, m->lanes[number].at, fx->a);
    if (e == NULL) return;
    e->sent += fx->len;
    if (e->dialled && m->lanes[number].replay.node != NULL) {
        head_take(e, fb_span_of(fb_effect_bytes(fx), fx->len));
    }
    if (e->connection == NONE) return;
    m->world->network.connections[e->connection].flows[e->dialled ? 0 : 1].written = e->sent;
    fb_sim_record_sent(m->world, 2 * e->connection + (e->dialled ? 1 : 0), fx->len, fx->len, false);
}

static void after_step(merge *m, uint32_t number)
{
    lane *l = &m->lanes[number];
    const fb_effects *effects = &l->replay.effects;
    fb_sim_world *world = m->world;
    if (l->next.kind == FB_EV_LINK_BYTES) {
        end_of *e = end_find(m, number, l->at, l->next.a);
        if (e != NULL) e->received += effects->consumed;
    }
    world->steps++;
    fb_sim_trace_step(&world->trace, number, &l->replay.event, effects, l->replay.digest);
    fb_sim_record_step(world, number, &l->replay.event, effects, l->replay.digest);
    for (const fb_effect *fx = fb_effects_next(effects, NULL); fx != NULL;
         fx = fb_effects_next(effects, fx)) {
        if (fx->kind == FB_FX_OBSERVE) {
            note_fact(m, number, fx);
            judge(m, number, fx);
        }
        if (fx->kind == FB_FX_SEND) sent(m, number, fx);
        if (fx->kind == FB_FX_CLOSE) closed(m, end_find(m, number, l->at, fx->a));
        if (fx->kind == FB_FX_REPLY && m->outline != NULL) {
            fb_sim_outline_reply(m->outline, number, fx);
        }
    }
    fb_sim_record_leave(world, number, (fb_sim_context){0});
}

/* Until every lane is over; the first difference or mistake ends it. */
static fb_sim_replayed run(merge *m, uint32_t *which)
{
    for (;;) {
        for (uint32_t i = 0; i < m->lane_count; i++) {
            lane *l = &m->lanes[i];
            while (!l->over && !l->known) {
                if (!l->open && !lane_open(m, l)) break;
                if (l->open && lane_look(l)) break;
                /* No event comes next: the replay says why. */
                *which = l->files[l->at];
                if (l->open) fb_sim_replay_next(&l->replay);
                if (l->replay.over > FB_SIM_REPLAY_END) return l->replay.over;
                if (!l->replay.whole) note_end(m, i);
                lane_down(m, i);
                fb_sim_replay_close(&l->replay);
                l->open = false;
                l->at++;
            }
        }
        uint32_t next = choose(m);
        if (next == NONE) return FB_SIM_REPLAY_END;
        lane *l = &m->lanes[next];
        *which = l->files[l->at];
        if (m->zero_us == RELATIVE_ZERO) m->zero_us = l->time_us;
        int64_t since_us = l->time_us - m->zero_us;
        /* Never back: what waited for a sender happens when that has sent. */
        uint64_t now_ns = since_us < 0 ? 0 : (uint64_t)since_us * NS_PER_US;
        m->world->now_ns = fb_max_u64(m->world->now_ns, now_ns);
        before_step(m, next);
        fb_sim_replayed how = fb_sim_replay_next(&l->replay);
        if (how > FB_SIM_REPLAY_END) return how;
        if (how == FB_SIM_REPLAY_STEP) after_step(m, next);
        l->known = false;
    }
}

/* Lanes by node, in the order of the files. */
static bool lanes_make(merge *m, uint32_t count, uint32_t *which, fb_sim_replayed *worst, char *why,
                       size_t why_len)
{
    for (uint32_t i = 0; i < count; i++) {
        fb_reader in = fb_reader_of(m->recordings[i]);
        fb_recording_item item;
        bool cut;
        *which = i;
        fb_status status = fb_recording_read(&in, false, &item, &cut);
        if (status != FB_OK || item.kind != FB_RECORDING_HEADER) {
            snprintf(why, why_len, "byte 0: %s",
                     status == FB_ERR_VERSION_NEWER ? "of another version"
                                                    : "a recording begins with its header");
            *worst = FB_SIM_REPLAY_MALFORMED;
            return false;
        }
        uint32_t at = 0;
        while (at < m->lane_count && !fb_id_equal(m->lanes[at].node, item.header.node)) at++;
        if (at == FB_SIM_MERGE_NODES_MAX) {
            snprintf(why, why_len, "more than %u nodes", FB_SIM_MERGE_NODES_MAX);
            *worst = FB_SIM_REPLAY_RESOURCE;
            return false;
        }
        if (at == m->lane_count) m->lanes[m->lane_count++].node = item.header.node;
        m->lanes[at].files[m->lanes[at].count++] = i;
    }
    return true;
}

static fb_sim_world *world_make(const merge *m, uint64_t steps)
{
    fb_sim_config config = fb_sim_config_default();
    fb_sim_config_nodes(&config, m->lane_count < 2 ? 2 : m->lane_count);
    config.viewed = true;
    config.quiet = true;
    config.checks = false;
    config.connections = CONNECTIONS;
    snprintf(config.seed_text, sizeof config.seed_text, "none (recorded)");
    fb_sim_world *world = fb_sim_world_create(&config);
    if (world == NULL || fb_sim_record_create(world, steps) == NULL) {
        fb_sim_fail_resource("memory of this machine");
    }
    for (uint32_t i = 0; i < m->lane_count; i++) {
        fb_sim_world_call(world, i, m->lanes[i].node);
    }
    return world;
}

fb_sim_world *fb_sim_merge(const fb_span *recordings, uint32_t count, uint64_t steps,
                           fb_sim_outline *outline, fb_sim_replayed *worst, uint32_t *which,
                           char *why, size_t why_len)
{
    merge *m = calloc(1, sizeof *m);
    lane *lanes = calloc(FB_SIM_MERGE_NODES_MAX, sizeof *lanes);
    if (m != NULL) m->lives = calloc(LIVES_MAX, sizeof *m->lives);
    if (m == NULL || lanes == NULL || m->lives == NULL || count > FB_SIM_MERGE_FILES_MAX) {
        fb_sim_fail_resource("memory of this machine");
    }
    m->recordings = recordings;
    m->outline = outline;
    m->lanes = lanes;
    m->zero_us = RELATIVE_ZERO;
    *worst = FB_SIM_REPLAY_END;
    fb_sim_world *world = NULL;
    if (lanes_make(m, count, which, worst, why, why_len)) {
        world = m->world = world_make(m, steps);
        *worst = run(m, which);
        fb_sim_record_verdict(world);
        for (uint32_t i = 0; i < m->lane_count; i++) {
            lane *l = &m->lanes[i];
            if (l->open && l->replay.over > FB_SIM_REPLAY_END) {
                snprintf(why, why_len, "%s", l->replay.why);
            }
            if (l->open) fb_sim_replay_close(&l->replay);
        }
        if (*worst > FB_SIM_REPLAY_END) {
            fb_sim_merge_close(world);
            world = NULL;
        }
    }
    free(m->ends);
    free(m->lives);
    free(lanes);
    free(m);
    return world;
}

void fb_sim_merge_close(fb_sim_world *world)
{
    fb_sim_record_destroy(world->record);
    fb_sim_world_destroy(world);
}
