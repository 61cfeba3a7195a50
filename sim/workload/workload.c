/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/workload/workload.h"

#include <stdio.h>

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "sim/checkers/checks.h"
#include "sim/schedule/player.h"
#include "sim/schedule/recorder.h"
#include "sim/view/timeline.h"
#include "sim/weather/weather.h"
#include "sim/workload/bench.h"
#include "sim/workload/director.h"
#include "sim/workload/feeds.h"
#include "sim/world/world.h"

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

#define STRANGER    UINT64_C(777) /* no application of this number exists */
#define LARGE_VALUE 6000u
#define GHOST_NS    (30 * SECOND) /* nobody waits for the execution of anything so long */

const char fb_sim_collection[] = "notes";

const char *const fb_sim_operation_names[FB_SIM_OPS] = {
    "put",    "change", "delete", "get",     "list",   "stranger", "add",
    "insert", "remove", "watch",  "members", "verify", "reported", "collections"};

void fb_sim_workload_init(fb_sim_world *world, fb_arena *arena)
{
    fb_sim_workload *work = fb_arena_take(arena, 1, sizeof *work);
    fb_sim_client *clients =
        fb_arena_take(arena, (size_t)world->config.nodes * FB_SIM_CLIENTS, sizeof *clients);
    fb_sim_feed *feeds =
        fb_arena_take(arena, (size_t)world->config.nodes * FB_SIM_CLIENTS, sizeof *feeds);
    fb_sim_client *ghosts =
        fb_arena_take(arena, (size_t)world->config.nodes * FB_SIM_GHOSTS, sizeof *ghosts);
    uint8_t *ghost_places = fb_arena_take(arena, world->config.nodes, 1);
    size_t bytes = FB_SIM_FIELDS * (FB_SIM_PAD_MAX + 64) + 512;
    uint8_t *buffer = fb_arena_take(arena, bytes, 1);
    if (arena->base == NULL) return;
    world->workload = work;
    work->clients = clients;
    work->feeds = feeds;
    work->ghosts = ghosts;
    work->ghost_places = ghost_places;
    work->buffer = buffer;
    work->buffer_bytes = bytes;
}

fb_id fb_sim_record_id(const fb_sim_world *world, uint32_t record)
{
    fb_id id;
    uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_VALUE, UINT64_MAX, record);
    fb_store_be(id.b, UINT64_C(1790000000000) + record, 6);
    fb_store_be(id.b + 6, bits, 2);
    fb_store_be(id.b + 8, bits * UINT64_C(0x9e3779b97f4a7c15), 8);
    id.b[6] = (uint8_t)((id.b[6] & 0x0f) | 0x70);
    id.b[8] = (uint8_t)((id.b[8] & 0x3f) | 0x80);
    return id;
}

uint32_t fb_sim_record_of(const fb_sim_world *world, fb_id id)
{
    uint64_t time = 0;
    for (int i = 0; i < 6; i++) time = time << 8 | id.b[i];
    uint64_t record = time - UINT64_C(1790000000000);
    if (record >= FB_SIM_RECORDS) return UINT32_MAX;
    return fb_id_equal(fb_sim_record_id(world, (uint32_t)record), id) ? (uint32_t)record
                                                                      : UINT32_MAX;
}

uint32_t fb_sim_op_space(const fb_sim_world *world, uint32_t operation, uint32_t record)
{
    bool whole = operation == FB_SIM_OP_LIST || operation >= FB_SIM_OP_VERIFY;
    return whole ? 0 : fb_sim_space_of_record(world, record);
}

static fb_sim_client *client_of(const fb_sim_world *world, uint32_t node, uint32_t client)
{
    return &world->workload->clients[node * FB_SIM_CLIENTS + client];
}

const fb_sim_client *fb_sim_client_of(const fb_sim_world *world, uint32_t node, uint64_t request)
{
    for (uint32_t i = 0; i < FB_SIM_CLIENTS; i++) {
        const fb_sim_client *client = client_of(world, node, i);
        if (client->request == request) return client;
    }
    for (uint32_t i = 0; i < world->workload->ghost_places[node]; i++) {
        const fb_sim_client *ghost = &world->workload->ghosts[node * FB_SIM_GHOSTS + i];
        if (ghost->request == request && request != 0) return ghost;
    }
    return NULL;
}

static bool is_cut_off(const fb_sim_world *world, uint32_t node)
{
    return fb_sim_weather_over(world, FB_SIM_FAULT_CLIENT_CUT, node) != NULL;
}

bool fb_sim_work_possible(const fb_sim_world *world, uint32_t index)
{
    const fb_sim_node *node = &world->nodes[index];
    return node->core != NULL && node->running && !world->held_apart[index] &&
           !is_cut_off(world, index);
}

static void work_later(fb_sim_world *world, uint32_t node, uint32_t client)
{
    if (world->player != NULL) {
        fb_sim_player_work_later(world, node, client);
        return;
    }
    fb_sim_workload *work = world->workload;
    const fb_sim_client *c = client_of(world, node, client);
    uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_WORKLOAD, ((uint64_t)node << 32) + client,
                            (uint64_t)c->count * 8);
    fb_sim_schedule(world, world->now_ns + 1000 + fb_sim_exponential(bits, work->think_ns), node,
                    FB_SIM_AT_WORK, client, c->count);
}

void fb_sim_workload_start(fb_sim_world *world, uint64_t round)
{
    fb_sim_workload *work = world->workload;
    work->round = round;
    work->active = true;
    if (world->player != NULL) {
        fb_sim_player_work_start(world);
        return;
    }
    for (uint32_t op = 0; op < FB_SIM_OPS; op++) {
        work->on[op] = world->config.plain ||
                       fb_draw_below(world->seed, FB_SIM_STREAM_SWARM, 1000 + op, round, 4) != 0;
    }
    if (!work->on[FB_SIM_OP_PUT] && !work->on[FB_SIM_OP_CHANGE]) work->on[FB_SIM_OP_CHANGE] = true;
    work->think_ns = (20 * MS) << fb_draw_below(world->seed, FB_SIM_STREAM_SWARM, 1100, round, 6);
    for (uint32_t node = 0; node < world->config.nodes; node++) {
        for (uint32_t i = 0; i < FB_SIM_CLIENTS; i++) {
            client_of(world, node, i)->count++;
            if (client_of(world, node, i)->request == 0) work_later(world, node, i);
        }
    }
}

void fb_sim_workload_stop(fb_sim_world *world)
{
    world->workload->active = false;
}

/* Arguments. */

static void write_value(fb_writer *w, uint32_t node, const fb_sim_op *op, uint32_t field)
{
    if ((op->empty >> field & 1u) != 0) {
        /* An empty value is a value too, and no two can be told apart. */
        fb_write_span32(w, fb_span_text("\"\""));
        return;
    }
    char text[48];
    int n = snprintf(text, sizeof text, "\"%s%u.%u", fb_sim_name(node), (unsigned)op->number,
                     (unsigned)field);
    size_t pad = op->pad[field];
    fb_write_u32(w, (uint32_t)((size_t)n + pad + 1));
    fb_write_bytes(w, text, (size_t)n);
    uint8_t *room = fb_write_room(w, pad);
    if (room != NULL) memset(room, '.', pad);
    fb_write_u8(w, '"');
}

static void write_collection(const fb_sim_world *world, fb_writer *w, uint32_t space)
{
    fb_write_id(w, world->spaces[space]);
    fb_write_u8(w, 1);
    fb_write_span16(w, fb_span_text(fb_sim_collection));
}

/* What is done to the one field of another kind: a counter "c", a set "s". */
static void write_kind(fb_writer *w, const fb_sim_op *op)
{
    bool adds = op->operation == FB_SIM_OP_ADD;
    char text[16];
    int n = snprintf(text, sizeof text, adds ? "%u" : "\"e%u\"", (unsigned)op->items);
    fb_write_u16(w, 1);
    fb_write_span16(w, fb_span_text(adds ? "c" : "s"));
    fb_write_u8(w, adds ? 3 : op->operation == FB_SIM_OP_INSERT ? 4 : 5);
    fb_write_span32(w, fb_span_of(text, (size_t)n));
}

static fb_verb write_arguments(const fb_sim_world *world, uint32_t node, const fb_sim_client *c,
                               const fb_sim_op *op, fb_writer *w)
{
    static const fb_id zero = {{0}};
    fb_id etag = zero;
    if (c->conditional) memcpy(etag.b, c->etag, sizeof c->etag);
    if (op->operation == FB_SIM_OP_MEMBERS) {
        fb_write_id(w, world->spaces[fb_sim_op_space(world, op->operation, op->record)]);
        return FB_VERB_SPACE_MEMBERS;
    }
    if (op->operation >= FB_SIM_OP_REPORTED) {
        fb_write_id(w, world->spaces[fb_sim_op_space(world, op->operation, op->record)]);
        fb_write_id(w, world->nodes[op->items % world->config.nodes].id);
        if (op->operation == FB_SIM_OP_REPORTED) return FB_VERB_SPACE_REPORTED;
        fb_write_id(w, zero);
        return FB_VERB_PEER_AREAS;
    }
    write_collection(world, w, fb_sim_op_space(world, op->operation, op->record));
    fb_id record = fb_sim_record_id(world, op->record);
    switch ((fb_sim_operation)op->operation) {
    case FB_SIM_OP_GET:
        fb_write_id(w, record);
        return FB_VERB_RECORD_GET;
    case FB_SIM_OP_DELETE:
        fb_write_id(w, record);
        fb_write_u8(w, c->conditional ? 1 : 0);
        fb_write_id(w, etag);
        return FB_VERB_RECORD_DELETE;
    case FB_SIM_OP_LIST:
        fb_write_id(w, op->record == 0 ? zero : fb_sim_record_id(world, op->record - 1u));
        fb_write_u32(w, op->items);
        return FB_VERB_RECORD_LIST;
    case FB_SIM_OP_VERIFY:
        fb_write_id(w, world->nodes[op->items % world->config.nodes].id);
        return FB_VERB_RECORD_VERIFY;
    default:
        break;
    }
    fb_write_id(w, record);
    bool kind = op->operation >= FB_SIM_OP_ADD;
    fb_write_u8(w, op->operation == FB_SIM_OP_CHANGE || kind ? 2 : 1);
    fb_write_u8(w, c->conditional ? 1 : 0);
    fb_write_id(w, etag);
    if (kind) {
        write_kind(w, op);
        return FB_VERB_RECORD_PUT;
    }
    uint32_t count = 0;
    for (uint32_t f = 0; f < FB_SIM_FIELDS; f++) count += op->fields >> f & 1u;
    fb_write_u16(w, (uint16_t)count);
    for (uint32_t f = 0; f < FB_SIM_FIELDS; f++) {
        if ((op->fields >> f & 1u) == 0) continue;
        const char name[2] = {'f', (char)('0' + f)};
        fb_write_span16(w, fb_span_of(name, 2));
        bool unset = (op->unset >> f & 1u) != 0;
        fb_write_u8(w, unset ? 2 : 1);
        if (unset) {
            fb_write_u32(w, 0);
        } else {
            write_value(w, node, op, f);
        }
    }
    return FB_VERB_RECORD_PUT;
}

static fb_sim_operation draw_operation(const fb_sim_workload *work, uint64_t bits)
{
    static const uint8_t weights[FB_SIM_OPS] = {4, 8, 2, 4, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1};
    uint32_t total = 0;
    for (uint32_t i = 0; i < FB_SIM_OPS; i++) total += work->on[i] ? weights[i] : 0;
    uint32_t at = (uint32_t)(bits % total);
    for (uint32_t i = 0; i < FB_SIM_OPS; i++) {
        uint32_t weight = work->on[i] ? weights[i] : 0;
        if (at < weight) return (fb_sim_operation)i;
        at -= weight;
    }
    return FB_SIM_OP_CHANGE;
}

/* Of a space that the node is no member of it is asked now and then, as it has to refuse. */
static uint8_t within_reach(const fb_sim_world *world, uint32_t node, uint32_t record,
                            uint64_t dice)
{
    uint32_t space = fb_sim_space_of_record(world, record);
    bool stays = fb_sim_is_member(world, space, fb_sim_identity(world, node)) || (dice & 7) == 0;
    return (uint8_t)(stays ? record : record - FB_SIM_SECOND_RECORDS);
}

/* What the client does next; its count is the occurrence. */
static fb_sim_op draw_op(const fb_sim_world *world, uint32_t node, uint32_t client, uint32_t count)
{
    uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_WORKLOAD, ((uint64_t)node << 32) + client,
                            (uint64_t)count * 8 + 1);
    fb_sim_op op = {.operation = (uint8_t)draw_operation(world->workload, bits & 0xffff)};
    /* Half of everything is about four records. */
    uint64_t of = (bits & (1u << 16)) != 0 ? 4 : FB_SIM_RECORDS;
    op.record = within_reach(world, node, (uint32_t)((bits >> 17 & 0xffff) % of), bits >> 56);
    op.fields = (uint8_t)((bits >> 33) & ((1u << FB_SIM_FIELDS) - 1));
    op.items = (uint8_t)(1 + (bits >> 40) % 8);
    if (op.operation == FB_SIM_OP_WATCH) {
        enum { SLOW = FB_SIM_FEED_SLOW };
        static const uint8_t from[16] = {
            FB_SIM_FEED_NEW,          FB_SIM_FEED_NEW,        FB_SIM_FEED_START,
            FB_SIM_FEED_START,        FB_SIM_FEED_LAST,       FB_SIM_FEED_LAST,
            FB_SIM_FEED_LAST,         FB_SIM_FEED_LAST,       FB_SIM_FEED_LAST,
            FB_SIM_FEED_FIRST,        FB_SIM_FEED_FIRST,      FB_SIM_FEED_BEYOND,
            FB_SIM_FEED_OTHER,        SLOW + FB_SIM_FEED_NEW, SLOW + FB_SIM_FEED_LAST,
            SLOW + FB_SIM_FEED_START,
        };
        op.items = from[bits >> 44 & 15];
    } else if (op.operation >= FB_SIM_OP_VERIFY) {
        op.items = (uint8_t)((bits >> 40) % world->config.nodes);
    } else if (op.operation >= FB_SIM_OP_INSERT) {
        op.items %= FB_SIM_ELEMENTS;
    }
    op.number = (count + 1) * FB_SIM_CLIENTS + client;
    for (uint32_t f = 0; f < FB_SIM_FIELDS; f++) {
        uint64_t dice = fb_draw(world->seed, FB_SIM_STREAM_VALUE, node,
                                (uint64_t)op.number * FB_SIM_FIELDS + f);
        uint8_t field = (uint8_t)(1u << f);
        if (op.operation == FB_SIM_OP_CHANGE && (dice >> 56) < 16) op.unset |= field & op.fields;
        if ((dice & 15) == 0) op.empty |= field & op.fields;
        if ((dice & 127) == 1) op.pad[f] = (uint16_t)((dice >> 32) % LARGE_VALUE);
    }
    op.empty &= (uint8_t)~op.unset;
    return op;
}

/* What the weather makes of it; a schedule has what came of that. */
static fb_sim_op weathered(fb_sim_world *world, uint32_t node, const fb_sim_client *c, uint32_t i,
                           fb_sim_op op)
{
    uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_WORKLOAD, ((uint64_t)node << 32) + i,
                            (uint64_t)c->count * 8 + 2);
    const fb_sim_window *w = fb_sim_weather_over(world, FB_SIM_FAULT_HOT_KEY, node);
    if (w != NULL) {
        op.record = within_reach(world, node, (uint32_t)((w->p - 1) % FB_SIM_RECORDS), bits >> 56);
        world->fired[FB_SIM_FAULT_HOT_KEY]++;
    }
    w = fb_sim_weather_over(world, FB_SIM_FAULT_GIANT_VALUES, node);
    for (uint32_t f = 0; f < FB_SIM_FIELDS && w != NULL; f++) {
        if ((bits >> (8 + 8 * f) & 7) != 0 || ((op.unset | op.empty) >> f & 1) != 0) continue;
        op.pad[f] = (uint16_t)fb_min_u64(w->p + (bits >> 40 & 1023), FB_SIM_PAD_MAX);
        world->fired[FB_SIM_FAULT_GIANT_VALUES]++;
    }
    if (fb_sim_weather_over(world, FB_SIM_FAULT_SAME_ID, node) != NULL && c->has_last &&
        (bits & 1) != 0) {
        op = c->last;
        world->fired[FB_SIM_FAULT_SAME_ID]++;
    }
    return op;
}

/* Some do not wait for their answer. */
static void patience(fb_sim_world *world, uint32_t node, uint32_t client)
{
    const fb_sim_client *c = client_of(world, node, client);
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t fault = k == 0 ? FB_SIM_FAULT_CANCEL : FB_SIM_FAULT_CLIENT_VANISH;
        const fb_sim_window *w = fb_sim_weather_over(world, fault, node);
        if (w == NULL || c->request == 0) continue;
        uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_PATIENCE, fault, c->request);
        fb_sim_schedule(world, world->now_ns + 1000 + fb_sim_exponential(bits, w->p), node,
                        FB_SIM_AT_GONE, client | k << 16, (uint32_t)c->request);
    }
}

/* False: there is no room to remember what it asked. */
static bool leave(fb_sim_world *world, uint32_t node, fb_sim_client *c)
{
    for (uint32_t i = 0; i < FB_SIM_GHOSTS; i++) {
        fb_sim_client *ghost = &world->workload->ghosts[node * FB_SIM_GHOSTS + i];
        if (ghost->request != 0 && world->now_ns - ghost->gone_ns < GHOST_NS) continue;
        *ghost = *c;
        ghost->gone_ns = world->now_ns;
        c->request = 0;
        uint8_t *places = &world->workload->ghost_places[node];
        if (*places <= i) *places = (uint8_t)(i + 1);
        return true;
    }
    return false;
}

void fb_sim_at_gone(fb_sim_world *world, uint32_t node, uint32_t ref, uint32_t stamp)
{
    bool told = ref >> 16 == 0;
    uint32_t client = ref & 0xffff;
    fb_sim_client *c = client_of(world, node, client);
    uint64_t request = c->request;
    if (request == 0 || (uint32_t)request != stamp || !fb_sim_is_up(world, node)) return;
    if (!leave(world, node, c)) return;
    world->fired[told ? FB_SIM_FAULT_CANCEL : FB_SIM_FAULT_CLIENT_VANISH]++;
    if (world->workload->active) work_later(world, node, client);
    if (told) fb_sim_step(world, node, (fb_event){.kind = FB_EV_REQUEST_CANCEL, .a = request});
}

void fb_sim_workload_vanish(fb_sim_world *world, uint32_t node)
{
    for (uint32_t i = 0; i < FB_SIM_CLIENTS; i++) {
        fb_sim_client *c = client_of(world, node, i);
        if (c->request == 0 || !leave(world, node, c)) continue;
        if (world->workload->active) work_later(world, node, i);
    }
}

void fb_sim_workload_storm(fb_sim_world *world, uint32_t index, uint32_t count)
{
    fb_sim_workload *work = world->workload;
    if (!fb_sim_work_possible(world, index) ||
        world->nodes[index].paused_until_ns > world->now_ns) {
        return;
    }
    static const fb_id zero = {{0}};
    uint32_t boots = world->nodes[index].boots;
    for (uint32_t i = 0; i < count && !world->stop; i++) {
        if (!fb_sim_is_up(world, index) || world->nodes[index].boots != boots) return;
        fb_writer w = fb_writer_of(work->buffer, work->buffer_bytes);
        write_collection(world, &w, 0);
        bool list = i % 8 == 7;
        fb_write_id(&w, list ? zero : fb_sim_record_id(world, i % FB_SIM_RECORDS));
        if (list) fb_write_u32(&w, 4);
        fb_sim_request(world, index, list ? FB_VERB_RECORD_LIST : FB_VERB_RECORD_GET, 0,
                       fb_writer_span(&w));
        world->fired[FB_SIM_FAULT_RETRY_STORM]++;
    }
}

void fb_sim_work_ask(fb_sim_world *world, uint32_t index, uint32_t client, const fb_sim_op *op)
{
    fb_sim_workload *work = world->workload;
    fb_sim_client *c = client_of(world, index, client);
    const fb_sim_node *node = &world->nodes[index];
    if (op->operation == FB_SIM_OP_WATCH) {
        if (world->recorder != NULL) fb_sim_recorder_op(world, index, client, op);
        work->done[FB_SIM_OP_WATCH]++;
        fb_sim_feed_begin(world, index, client, op);
        if (work->active && !world->stop) work_later(world, index, client);
        return;
    }
    c->operation = op->operation;
    c->record = op->record;
    c->fields = op->operation == FB_SIM_OP_DELETE ? (1u << FB_SIM_FIELDS) - 1 : op->fields;
    c->unset = op->unset;
    c->items = op->items;
    bool writes = op->operation <= FB_SIM_OP_DELETE;
    c->conditional = writes && c->has_etag && c->etag_record == op->record &&
                     fb_sim_weather_over(world, FB_SIM_FAULT_STALE_CLIENT, index) != NULL;
    if (c->conditional) {
        /* Some try the same once more, as after an answer that was lost; then the next one that it
         * reads is kept. */
        bool once_more = !c->etag_used && (c->etag[15] & 1) != 0;
        c->etag_used = once_more;
        c->has_etag = once_more;
        world->fired[FB_SIM_FAULT_STALE_CLIENT]++;
    }
    if (writes && op->number != 0) {
        c->last = *op;
        c->has_last = true;
    }
    fb_writer w = fb_writer_of(work->buffer, work->buffer_bytes);
    fb_verb verb = write_arguments(world, index, c, op, &w);
    FB_ASSERT(!w.failed);
    c->incarnation = node->incarnation;
    c->asked_ns = world->now_ns;
    c->asked_step = (uint32_t)world->steps;
    /* Replies may come within the step. */
    c->request = world->requests + 1;
    if (world->timeline != NULL) fb_sim_timeline_request(world, index, c);
    if (world->recorder != NULL) fb_sim_recorder_op(world, index, client, op);
    fb_sim_request(world, index, verb, op->operation == FB_SIM_OP_STRANGER ? STRANGER : 0,
                   fb_writer_span(&w));
    patience(world, index, client);
}

void fb_sim_at_work(fb_sim_world *world, uint32_t index, uint32_t client, uint32_t stamp)
{
    if (world->bench != NULL) {
        fb_sim_bench_work(world, index);
        return;
    }
    if (world->player != NULL) {
        fb_sim_player_work(world, index, client, stamp);
        return;
    }
    fb_sim_workload *work = world->workload;
    fb_sim_client *c = client_of(world, index, client);
    if (!work->active || c->count != stamp || c->request != 0) return;
    if (!fb_sim_work_possible(world, index)) {
        c->count++;
        work_later(world, index, client);
        return;
    }
    fb_sim_op op = draw_op(world, index, client, c->count);
    op = weathered(world, index, c, client, op);
    c->count++;
    fb_sim_work_ask(world, index, client, &op);
}

/* The first one that it comes to know, until it was used: it grows old. */
static void etag_keep(fb_sim_client *c, const fb_effect *reply)
{
    bool put = c->operation <= FB_SIM_OP_CHANGE;
    if (reply->b != FB_OK || c->has_etag || (!put && c->operation != FB_SIM_OP_GET)) return;
    size_t at = put ? 17 : 16; /* after the record's id, and whether it is new */
    if (reply->len < at + sizeof c->etag) return;
    memcpy(c->etag, fb_effect_bytes(reply) + at, sizeof c->etag);
    c->etag_record = c->record;
    c->has_etag = true;
    c->etag_used = false;
}

void fb_sim_replied(fb_sim_world *world, uint32_t node, const fb_effect *reply)
{
    fb_sim_checks_reply(world, node, reply);
    if (world->stop || fb_sim_director_reply(world, node, reply)) return;
    if (world->bench != NULL) {
        fb_sim_bench_replied(world, reply);
        return;
    }
    if (fb_sim_feed_replied(world, node, reply)) return;
    for (uint32_t i = 0; i < FB_SIM_CLIENTS; i++) {
        fb_sim_client *c = client_of(world, node, i);
        if (c->request != reply->a || reply->c != 0) continue;
        if (reply->b == FB_OK || reply->b == FB_ERR_NOT_FOUND) {
            world->workload->done[c->operation]++;
        } else {
            world->workload->failed[c->operation]++;
        }
        if (world->timeline != NULL) fb_sim_timeline_reply(world, node, c, reply);
        etag_keep(c, reply);
        c->request = 0;
        if (world->workload->active) work_later(world, node, i);
        return;
    }
    for (uint32_t i = 0; i < world->workload->ghost_places[node] && reply->c == 0; i++) {
        fb_sim_client *ghost = &world->workload->ghosts[node * FB_SIM_GHOSTS + i];
        if (ghost->request == reply->a) ghost->request = 0;
    }
}

void fb_sim_workload_over(fb_sim_world *world, uint32_t node)
{
    fb_sim_feeds_over(world, node);
    for (uint32_t i = 0; i < world->workload->ghost_places[node]; i++) {
        world->workload->ghosts[node * FB_SIM_GHOSTS + i].request = 0;
    }
    world->workload->ghost_places[node] = 0;
    for (uint32_t i = 0; i < FB_SIM_CLIENTS; i++) {
        fb_sim_client *c = client_of(world, node, i);
        if (c->request == 0) continue;
        /* The caller saw its node die: whether the write is there, nobody told it. */
        c->request = 0;
        if (world->workload->active) work_later(world, node, i);
    }
}
