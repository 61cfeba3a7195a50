/* SPDX-License-Identifier: Apache-2.0 */
/* A node that fits on a few pages, behind the same seam as the real one: 32 last-writer-wins
 * registers, told to every peer on every link and told again every two seconds.
 *
 * It is here to test the adversary, and as a tutorial: with a defect switched on it still works in
 * good weather, and fails under the fault that the defect is about. It replaces the core at link
 * time, so the simulator drives it through fb_node_step like any other. */
#include "sim/toys/toy.h"

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/hash.h"
#include "protocol/core/node.h"
#include "protocol/core/observe.h"
#include "protocol/core/request.h"
#include "protocol/store/readset.h"
#include "protocol/store/writeset.h"
#include "sim/step/state.h"
#include "sim/workload.h"

fb_toy_defect fb_toy_defect_now;

#define LINKS      32u
#define PEERS      16u
#define RECORDS    32u
#define MESSAGE    68u /* u16 length of the rest, record, counter, node, incarnation, seq, sum */
#define PERIOD_NS  UINT64_C(2000000000)
#define SILENT_NS  UINT64_C(9000000000)
#define TICKS_MOST 24u

static const fb_id space = {{1, 0x9f, 0, 0, 0, 1, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1}};
static const fb_id area = {{1, 0x9f, 0, 0, 0, 2, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 2}};

typedef struct entry {
    uint64_t counter; /* greater wins; 0: nothing there */
    fb_id record;
    fb_id node;
    uint64_t incarnation;
    uint64_t seq;
} entry;

typedef struct toy_link {
    uint64_t link;
    uint64_t credit;
    uint64_t heard_ns;
    uint32_t silent; /* ticks since something was heard */
    uint32_t unsaid; /* registers that this link has yet to be told, as a bit set */
    uint8_t part[MESSAGE];
    size_t part_len;
    uint8_t out[MESSAGE];
    size_t out_at; /* MESSAGE: nothing is half sent */
    int peer;      /* that was dialled, or -1 */
} toy_link;

typedef struct toy_peer {
    char address[16];
    uint32_t address_len;
    uint64_t dial; /* that is out */
    uint64_t retry_ns;
    bool linked;
} toy_peer;

typedef struct waiting_reply {
    uint64_t request;
    uint64_t w;
} waiting_reply;

struct fb_node {
    fb_options options;
    fb_id self;
    bool started, running;
    uint64_t incarnation, seq, w, w_done, mono_ns, next_ns, numbers;
    int64_t wall_us;
    bool in_flight;
    bool mute; /* says nothing any more */
    uint64_t ticked_ns;
    uint32_t ticks;  /* since something was heard; 0: nothing was heard yet */
    uint32_t dirty;  /* registers that no write set has yet, as a bit set */
    uint32_t flight; /* those in the write set that is not durable */
    uint32_t peers_stored;
    entry entries[RECORDS];
    toy_link links[LINKS];
    toy_peer peers[PEERS];
    uint32_t peer_count;
    waiting_reply replies[16];
    uint32_t reply_count;
    fb_effects *out;
};

fb_options fb_options_small(void)
{
    return (fb_options){.timing = {.heartbeat_ns = PERIOD_NS,
                                   .silent_ns = SILENT_NS,
                                   .redial_max_ns = PERIOD_NS,
                                   .handshake_ns = PERIOD_NS,
                                   .call_ns = PERIOD_NS,
                                   .onward_ns = PERIOD_NS},
                        .sizes = {.operations = 4}};
}

/* For the replay of recordings, of which toys make none. */
fb_options fb_options_default(void)
{
    return fb_options_small();
}

size_t fb_effects_bytes_min(const fb_options *options)
{
    (void)options;
    return 256 * 1024;
}

fb_status fb_node_create(const fb_options *options, fb_node **out)
{
    *out = NULL;
    fb_node *node = options->allocator.allocate(options->allocator.user, sizeof *node);
    if (node == NULL) return FB_ERR_NO_MEMORY;
    memset(node, 0, sizeof *node);
    node->options = *options;
    static const char label[] = "faberio-node-id-v1";
    const fb_provider *p = options->provider;
    fb_b32 key, hash;
    FB_ASSERT(p->public_key(p->user, options->identity_key, &key) == FB_OK);
    fb_span parts[2] = {fb_span_of(label, sizeof label), fb_span_of(key.b, 32)};
    p->sha256(p->user, parts, 2, &hash);
    memcpy(node->self.b, hash.b, 16);
    *out = node;
    return FB_OK;
}

void fb_node_destroy(fb_node *node)
{
    if (node != NULL) {
        fb_allocator allocator = node->options.allocator;
        allocator.release(allocator.user, node, sizeof *node);
    }
}

/* Effects. */

static uint8_t *effect(fb_node *node, uint32_t kind, uint64_t a, uint64_t b, uint64_t c,
                       const void *bytes, size_t len)
{
    fb_effects *out = node->out;
    size_t padded = (len + 7) & ~(size_t)7;
    FB_ASSERT(out->used + sizeof(fb_effect) + padded <= out->capacity);
    fb_effect *fx = (fb_effect *)(void *)(out->memory + out->used);
    *fx = (fb_effect){kind, (uint32_t)len, a, b, c};
    uint8_t *room = (uint8_t *)(fx + 1);
    memset(room, 0, padded);
    if (len != 0 && bytes != NULL) memcpy(room, bytes, len);
    out->used += sizeof *fx + padded;
    return room;
}

static void observe_change(fb_node *node, fb_fact fact, uint64_t b, const entry *e)
{
    uint8_t bytes[72];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, area);
    fb_write_id(&w, e->record);
    fb_write_id(&w, e->node);
    fb_write_u64(&w, e->incarnation);
    fb_write_u64(&w, e->seq);
    fb_write_u64(&w, e->counter);
    effect(node, FB_FX_OBSERVE, fact, b, node->w + 1, bytes, w.at);
}

static void reply(fb_node *node, uint64_t request, fb_error status, const void *bytes, size_t len)
{
    effect(node, FB_FX_REPLY, request, status, 0, bytes, len);
}

/* The store: one write set at a time, each register under one key. */

static void entry_write(fb_writer *w, const entry *e)
{
    fb_write_u64(w, e->counter);
    fb_write_id(w, e->record);
    fb_write_id(w, e->node);
    fb_write_u64(w, e->incarnation);
    fb_write_u64(w, e->seq);
}

static entry entry_read(fb_reader *r)
{
    entry e;
    e.counter = fb_read_u64(r);
    e.record = fb_read_id(r);
    e.node = fb_read_id(r);
    e.incarnation = fb_read_u64(r);
    e.seq = fb_read_u64(r);
    return e;
}

static void seal(fb_node *node)
{
    if (node->in_flight || (node->dirty == 0 && node->peers_stored == node->peer_count)) return;
    uint8_t set[RECORDS * 72 + PEERS * 32];
    fb_writer w = fb_writer_of(set, sizeof set);
    uint64_t count = 0;
    for (uint32_t i = 0; i < RECORDS; i++) {
        if ((node->dirty >> i & 1) == 0) continue;
        fb_write_u8(&w, FB_WRITE_PUT);
        fb_write_u8(&w, 0);
        fb_write_u16(&w, 2);
        fb_write_u32(&w, 56);
        fb_write_u8(&w, 'r');
        fb_write_u8(&w, (uint8_t)i);
        entry_write(&w, &node->entries[i]);
        while (w.at % 8 != 0) fb_write_u8(&w, 0);
        count++;
    }
    for (; node->peers_stored < node->peer_count; node->peers_stored++) {
        const toy_peer *peer = &node->peers[node->peers_stored];
        fb_write_u8(&w, FB_WRITE_PUT);
        fb_write_u8(&w, 0);
        fb_write_u16(&w, 2);
        fb_write_u32(&w, peer->address_len);
        fb_write_u8(&w, 'p');
        fb_write_u8(&w, (uint8_t)node->peers_stored);
        fb_write_bytes(&w, peer->address, peer->address_len);
        while (w.at % 8 != 0) fb_write_u8(&w, 0);
        count++;
    }
    FB_ASSERT(!w.failed);
    node->flight = node->dirty;
    node->dirty = 0;
    node->in_flight = true;
    node->w++;
    effect(node, FB_FX_OBSERVE, FB_FACT_SEALED, node->w, count, NULL, 0);
    effect(node, FB_FX_WRITE, node->incarnation, node->w, count, set, w.at);
}

/* A register takes a greater entry, and everybody is to hear of it. */
static bool take(fb_node *node, uint32_t i, const entry *e)
{
    entry *own = &node->entries[i];
    if (e->counter < own->counter) return false;
    if (e->counter == own->counter && fb_id_compare(e->node, own->node) <= 0) return false;
    *own = *e;
    node->dirty |= 1u << i;
    for (uint32_t k = 0; k < LINKS; k++) node->links[k].unsaid |= 1u << i;
    return true;
}

/* Links. */

static toy_link *link_of(fb_node *node, uint64_t link)
{
    for (uint32_t i = 0; i < LINKS; i++) {
        if (node->links[i].link == link) return &node->links[i];
    }
    return NULL;
}

static void link_open(fb_node *node, uint64_t number, int peer)
{
    toy_link *link = link_of(node, 0);
    if (link == NULL) {
        effect(node, FB_FX_CLOSE, number, FB_ERR_LINK_TOO_MANY, 0, NULL, 0);
        return;
    }
    *link = (toy_link){.link = number,
                       .heard_ns = node->mono_ns,
                       .unsaid = fb_toy_defect_now == FB_TOY_SENDS_ONCE ? 0 : UINT32_MAX,
                       .out_at = MESSAGE,
                       .peer = peer};
}

static void link_over(fb_node *node, toy_link *link)
{
    if (link->peer >= 0) {
        node->peers[link->peer].linked = false;
        node->peers[link->peer].retry_ns =
            fb_toy_defect_now == FB_TOY_NO_REDIAL || fb_toy_defect_now == FB_TOY_TICKS_ARE_TIME
                ? FB_NEVER
                : node->mono_ns + PERIOD_NS;
    }
    *link = (toy_link){.peer = -1};
}

static void link_drop(fb_node *node, toy_link *link)
{
    effect(node, FB_FX_CLOSE, link->link, FB_ERR_LINK_RECORD, 0, NULL, 0);
    link_over(node, link);
}

static void speak(fb_node *node, toy_link *link)
{
    while (link->link != 0 && link->credit != 0 && !node->mute) {
        if (link->out_at == MESSAGE) {
            uint32_t i = 0;
            /* What could still be lost is told to nobody. */
            uint32_t told = link->unsaid & ~(node->dirty | node->flight);
            while (i < RECORDS && ((told >> i & 1) == 0 || node->entries[i].counter == 0)) i++;
            if (i == RECORDS) return;
            link->unsaid &= ~(1u << i);
            fb_writer w = fb_writer_of(link->out, sizeof link->out);
            fb_write_u16(&w, MESSAGE - 2);
            fb_write_u16(&w, (uint16_t)i);
            entry_write(&w, &node->entries[i]);
            uint64_t sum = fb_xxh64(link->out, w.at, 0);
            if (fb_toy_defect_now == FB_TOY_READS_UNWRITTEN) {
                sum ^= node->out->memory[node->out->capacity / 2];
            }
            fb_write_u64(&w, sum);
            FB_ASSERT(!w.failed && w.at == MESSAGE);
            link->out_at = 0;
        }
        size_t len = MESSAGE - link->out_at;
        if (len > link->credit) len = (size_t)link->credit;
        effect(node, FB_FX_SEND, link->link, 0, 0, link->out + link->out_at, len);
        link->out_at += len;
        link->credit -= len;
    }
}

static bool hear(fb_node *node, toy_link *link, const uint8_t *message)
{
    fb_reader r = fb_reader_of(fb_span_of(message, MESSAGE));
    uint16_t len = fb_read_u16(&r);
    uint16_t i = fb_read_u16(&r);
    entry e = entry_read(&r);
    uint64_t sum = fb_read_u64(&r);
    link->heard_ns = node->mono_ns;
    link->silent = 0;
    if (node->ticks <= TICKS_MOST) node->ticks = 1;
    if (fb_toy_defect_now != FB_TOY_NO_CHECKSUM &&
        (len != MESSAGE - 2 || sum != fb_xxh64(message, MESSAGE - 8, 0))) {
        return false;
    }
    if (take(node, i % RECORDS, &e)) {
        observe_change(node, FB_FACT_APPLIED, node->w + 1, &e);
        /* Its own, and not in its store. */
        if (fb_id_equal(e.node, node->self))
            effect(node, FB_FX_OBSERVE, FB_FACT_CLONE, 0, 0, NULL, 0);
    }
    return true;
}

static void bytes_in(fb_node *node, toy_link *link, fb_span bytes)
{
    if (fb_toy_defect_now == FB_TOY_WHOLE_MESSAGES) {
        for (size_t at = 0; at + MESSAGE <= bytes.len; at += MESSAGE) {
            if (!hear(node, link, bytes.p + at)) break;
        }
        return;
    }
    for (size_t at = 0; at < bytes.len;) {
        size_t len = MESSAGE - link->part_len;
        if (len > bytes.len - at) len = bytes.len - at;
        memcpy(link->part + link->part_len, bytes.p + at, len);
        link->part_len += len;
        at += len;
        if (link->part_len < MESSAGE) return;
        link->part_len = 0;
        if (!hear(node, link, link->part)) {
            link_drop(node, link);
            return;
        }
    }
}

/* Requests: what the simulator's director and workload ask. */

static void areas(fb_node *node, uint64_t request)
{
    uint8_t bytes[64];
    uint64_t sum[2] = {0, 0};
    for (uint32_t i = 0; i < RECORDS; i++) {
        uint8_t raw[64];
        fb_writer e = fb_writer_of(raw, sizeof raw);
        entry_write(&e, &node->entries[i]);
        sum[0] += fb_xxh64(raw, e.at, i);
    }
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u16(&w, 1);
    fb_write_id(&w, area);
    fb_write_u8(&w, 1);
    fb_write_u16(&w, 0);
    fb_write_u64(&w, sum[0]);
    fb_write_u64(&w, sum[1]);
    fb_write_u32(&w, 0);
    reply(node, request, FB_OK, bytes, w.at);
}

static void put(fb_node *node, uint64_t request, fb_span arguments)
{
    fb_reader r = fb_reader_of(arguments);
    fb_read_id(&r);
    fb_read_u8(&r);
    fb_read_span16(&r);
    fb_id record = fb_read_id(&r);
    if (r.failed || node->reply_count == 16) {
        reply(node, request, FB_ERR_BUSY, NULL, 0);
        return;
    }
    uint32_t i = record.b[5] % RECORDS;
    entry e = {node->entries[i].counter + 1, record, node->self, node->incarnation, ++node->seq};
    if (fb_toy_defect_now == FB_TOY_FORGETS_COUNTER) e.counter = (uint64_t)node->wall_us;
    observe_change(node, FB_FACT_WRITTEN, request, &e);
    if (!take(node, i, &e)) {
        /* Its own clock went back: the write is lost. */
        effect(node, FB_FX_OBSERVE, FB_FACT_SEALED, 0, 0, NULL, 0);
    }
    if (fb_toy_defect_now == FB_TOY_REPLIES_EARLY) {
        reply(node, request, FB_OK, NULL, 0);
    } else {
        node->replies[node->reply_count++] = (waiting_reply){request, node->w + 1};
    }
}

static void request_in(fb_node *node, const fb_event *ev)
{
    static const uint8_t invite[3] = {0, 1, 'x'};
    fb_span arguments = fb_span_of(ev->bytes, ev->len);
    fb_reader r = fb_reader_of(arguments);
    switch (ev->b) {
    case FB_VERB_SPACE_CREATE:
        reply(node, ev->a, FB_OK, space.b, 16);
        return;
    case FB_VERB_SPACE_INVITE:
        reply(node, ev->a, FB_OK, invite, sizeof invite);
        return;
    case FB_VERB_SPACE_JOIN:
    case FB_VERB_SPACE_APPROVE:
        reply(node, ev->a, FB_OK, NULL, 0);
        return;
    case FB_VERB_PEER_ADD: {
        fb_read_id(&r);
        fb_span address = fb_read_span16(&r);
        toy_peer *peer = &node->peers[node->peer_count];
        if (r.failed || node->peer_count == PEERS || address.len >= sizeof peer->address) break;
        node->peer_count++;
        memcpy(peer->address, address.p, address.len);
        peer->address_len = (uint32_t)address.len;
        reply(node, ev->a, FB_OK, NULL, 0);
        return;
    }
    case FB_VERB_AREAS:
        areas(node, ev->a);
        return;
    case FB_VERB_RECORD_PUT:
        if (ev->c != 0) {
            reply(node, ev->a, FB_ERR_NOT_AUTHORISED, NULL, 0);
        } else {
            put(node, ev->a, arguments);
        }
        return;
    default:
        break;
    }
    reply(node, ev->a, FB_ERR_UNSUPPORTED, NULL, 0);
}

/* Start: everything from the store, in one range. */
static void start(fb_node *node, const fb_event *ev)
{
    fb_options options = node->options;
    fb_id self = node->self;
    uint64_t numbers = node->numbers;
    fb_effects *out = node->out;
    *node = (fb_node){.options = options,
                      .self = self,
                      .started = true,
                      .incarnation = ev->a,
                      .mono_ns = ev->mono_ns,
                      .wall_us = ev->wall_us,
                      .out = out,
                      .numbers = numbers};
    for (uint32_t i = 0; i < LINKS; i++) node->links[i].peer = -1;
    uint8_t set[64];
    fb_writer w = fb_writer_of(set, sizeof set);
    fb_write_u16(&w, 1);
    fb_read_item item = {.kind = FB_READ_RANGE,
                         .value_bytes = 64,
                         .items = RECORDS + PEERS,
                         .bytes = 1u << 16,
                         .low = fb_span_text("p"),
                         .high = fb_span_text("s")};
    fb_read_item_write(&w, &item);
    effect(node, FB_FX_READ, ++node->numbers, 0, 0, set, w.at);
}

static void loaded(fb_node *node, const fb_event *ev)
{
    if (ev->c != FB_OK) {
        node->started = false;
        effect(node, FB_FX_NEED_START, node->incarnation, ev->c, 0, NULL, 0);
        return;
    }
    fb_reader r = fb_reader_of(fb_span_of(ev->bytes, ev->len));
    fb_read_u64(&r);
    fb_read_u8(&r);
    uint32_t count = fb_read_u32(&r);
    for (uint32_t i = 0; i < count; i++) {
        fb_read_entry item = fb_read_entry_next(&r);
        fb_reader v = fb_reader_of(item.value);
        if (item.key.len == 2 && item.key.p[0] == 'p' && node->peer_count < PEERS) {
            toy_peer *peer = &node->peers[node->peer_count++];
            peer->address_len = (uint32_t)item.value.len;
            memcpy(peer->address, item.value.p, item.value.len);
            node->peers_stored = node->peer_count;
            continue;
        }
        entry e = entry_read(&v);
        if (!v.failed && item.key.len == 2) node->entries[item.key.p[1] % RECORDS] = e;
    }
    node->running = true;
    node->next_ns = node->mono_ns;
    effect(node, FB_FX_OBSERVE, FB_FACT_STARTED, node->incarnation, 0, NULL, 0);
}

static void written(fb_node *node, const fb_event *ev)
{
    if (ev->a != node->incarnation) return;
    if (ev->c != FB_OK && fb_toy_defect_now != FB_TOY_NEVER_RESTARTS) {
        node->started = node->running = false;
        effect(node, FB_FX_NEED_START, node->incarnation, ev->c, 0, NULL, 0);
        return;
    }
    node->in_flight = false;
    node->flight = 0;
    node->w_done = ev->b;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < node->reply_count; i++) {
        if (node->replies[i].w > node->w_done) {
            node->replies[kept++] = node->replies[i];
        } else {
            reply(node, node->replies[i].request, FB_OK, NULL, 0);
        }
    }
    node->reply_count = kept;
}

/* What the timers of a node must not be trusted with. True: nothing else is done now. */
static bool trusts_timers(fb_node *node, bool called)
{
    switch (fb_toy_defect_now) {
    case FB_TOY_TICKS_ARE_TIME:
        for (uint32_t i = 0; called && i < LINKS; i++) {
            toy_link *link = &node->links[i];
            if (link->link == 0 || node->entries[0].counter == 0) continue;
            if (++link->silent > 4) link_drop(node, link);
        }
        return false;
    case FB_TOY_LATE_IS_LOST:
    case FB_TOY_STARVES: {
        uint64_t late_ns = node->mono_ns > node->next_ns ? node->mono_ns - node->next_ns : 0;
        uint64_t most_ns = fb_toy_defect_now == FB_TOY_STARVES ? UINT64_C(1500000000) : 100000000;
        if (called && late_ns > most_ns) node->mute = true;
        return !called;
    }
    case FB_TOY_EVEN_TICKS:
        if (called && node->ticked_ns != 0 &&
            node->mono_ns - node->ticked_ns > PERIOD_NS + 1000000) {
            node->mute = true;
        }
        if (called) node->ticked_ns = node->mono_ns;
        return !called;
    default:
        return false;
    }
}

static void tick(fb_node *node, bool called)
{
    if (node->running && trusts_timers(node, called)) return;
    if (fb_toy_defect_now == FB_TOY_COUNTS_TICKS && node->ticks > 0 && ++node->ticks > TICKS_MOST) {
        return; /* nobody has spoken for a long time, it thinks, and goes to sleep */
    }
    if (!node->running || node->mono_ns < node->next_ns) return;
    node->next_ns = node->mono_ns + PERIOD_NS;
    for (uint32_t i = 0; i < LINKS; i++) {
        toy_link *link = &node->links[i];
        if (link->link == 0) continue;
        if (fb_toy_defect_now != FB_TOY_SENDS_ONCE && fb_toy_defect_now != FB_TOY_WHOLE_MESSAGES) {
            link->unsaid = UINT32_MAX;
        }
        if (fb_toy_defect_now != FB_TOY_NO_PATIENCE && fb_toy_defect_now != FB_TOY_SENDS_ONCE &&
            fb_toy_defect_now != FB_TOY_WHOLE_MESSAGES && node->entries[0].counter != 0 &&
            node->mono_ns - link->heard_ns > SILENT_NS) {
            link_drop(node, link);
        }
    }
    for (uint32_t i = 0; i < node->peer_count; i++) {
        toy_peer *peer = &node->peers[i];
        if (peer->linked || peer->dial != 0 || node->mono_ns < peer->retry_ns) continue;
        peer->dial = ++node->numbers;
        effect(node, FB_FX_DIAL, peer->dial, 0, 0, peer->address, peer->address_len);
    }
}

static void event_in(fb_node *node, const fb_event *ev)
{
    toy_link *link;
    switch (ev->kind) {
    case FB_EV_DIAL_RESULT:
        for (uint32_t i = 0; i < node->peer_count; i++) {
            toy_peer *peer = &node->peers[i];
            if (peer->dial != ev->a) continue;
            peer->dial = 0;
            peer->linked = ev->c == FB_OK;
            peer->retry_ns = node->mono_ns + PERIOD_NS;
            if (peer->linked) link_open(node, ev->b, (int)i);
        }
        break;
    case FB_EV_LINK_OPENED:
        link_open(node, ev->a, -1);
        break;
    case FB_EV_LINK_CLOSED:
        link = link_of(node, ev->a);
        if (link != NULL) link_over(node, link);
        break;
    case FB_EV_LINK_BYTES:
        link = link_of(node, ev->a);
        if (link != NULL) bytes_in(node, link, fb_span_of(ev->bytes, ev->len));
        node->out->consumed = ev->len;
        break;
    case FB_EV_LINK_WRITABLE:
        link = link_of(node, ev->a);
        if (link != NULL) link->credit += ev->b;
        break;
    case FB_EV_READ_DONE:
        if (!node->running) loaded(node, ev);
        break;
    case FB_EV_WRITE_DONE:
        written(node, ev);
        break;
    case FB_EV_REQUEST:
        if (node->running) {
            request_in(node, ev);
        } else {
            reply(node, ev->a, FB_ERR_AGAIN, NULL, 0);
        }
        break;
    default:
        break;
    }
}

fb_status fb_node_step(fb_node *node, const fb_event *event, fb_effects *out)
{
    out->used = out->consumed = 0;
    if (event->mono_ns < node->mono_ns) return FB_ERR_TIME_BACKWARDS;
    node->mono_ns = event->mono_ns;
    node->wall_us = event->wall_us;
    node->out = out;
    if (event->kind == FB_EV_START) {
        start(node, event);
        return FB_OK;
    }
    if (!node->started) return FB_OK;
    event_in(node, event);
    tick(node, event->kind == FB_EV_TICK);
    seal(node);
    for (uint32_t i = 0; i < LINKS && node->started; i++) speak(node, &node->links[i]);
    return FB_OK;
}

fb_id fb_node_self(const fb_node *node)
{
    return node->self;
}

uint64_t fb_node_deadline(const fb_node *node)
{
    return node->running ? node->next_ns : FB_NEVER;
}

/* What `sim step` shows of it. */
void fb_sim_state_core(fb_sim_fields *f, const fb_node *node)
{
    if (fb_sim_group(f, "node")) {
        fb_sim_field(f, "running", "%s", node->running ? "yes" : "no");
        fb_sim_field(f, "seq", "%llu", (unsigned long long)node->seq);
        fb_sim_field(f, "w", "%llu", (unsigned long long)node->w);
        fb_sim_field(f, "w_durable", "%llu", (unsigned long long)node->w_done);
        fb_sim_field(f, "replies_waiting", "%u", (unsigned)node->reply_count);
    }
    for (uint32_t i = 0; i < LINKS; i++) {
        const toy_link *link = &node->links[i];
        if (link->link == 0 || !fb_sim_group(f, "link[%u]", (unsigned)i)) continue;
        fb_sim_field(f, "number", "%llu", (unsigned long long)link->link);
        fb_sim_field(f, "credit", "%llu", (unsigned long long)link->credit);
        fb_sim_field(f, "unsaid", "%08x", (unsigned)link->unsaid);
        fb_sim_field(f, "heard_mono_ns", "%llu", (unsigned long long)link->heard_ns);
    }
    for (uint32_t i = 0; i < node->peer_count; i++) {
        const toy_peer *peer = &node->peers[i];
        if (!fb_sim_group(f, "peer[%.*s]", (int)peer->address_len, peer->address)) continue;
        fb_sim_field(f, "linked", "%s", peer->linked ? "yes" : "no");
        fb_sim_field(f, "dial", "%llu", (unsigned long long)peer->dial);
    }
    for (uint32_t i = 0; i < RECORDS; i++) {
        const entry *e = &node->entries[i];
        if (e->counter == 0) continue;
        uint32_t number = fb_sim_record_of(f->world, e->record);
        bool known = number == UINT32_MAX ? fb_sim_group(f, "record[nobody's]")
                                          : fb_sim_group(f, "record[r%02u]", (unsigned)number);
        if (!known) continue;
        fb_sim_field(f, "counter", "%llu", (unsigned long long)e->counter);
        fb_sim_field(f, "author", "%s", fb_sim_id_name(f, e->node));
        fb_sim_field(f, "change", "%08x %llu", (unsigned)(e->incarnation >> 32),
                     (unsigned long long)e->seq);
    }
}

fb_hash128 fb_node_digest(fb_node *node)
{
    uint8_t raw[RECORDS * 56];
    fb_writer w = fb_writer_of(raw, sizeof raw);
    for (uint32_t i = 0; i < RECORDS; i++) entry_write(&w, &node->entries[i]);
    return fb_xxh128(raw, w.at, node->w);
}
