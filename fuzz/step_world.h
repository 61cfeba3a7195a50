/* SPDX-License-Identifier: Apache-2.0 */
/* Two whole nodes of one space over a driver that keeps the contract where it must: a store is a
 * store, links have two ends. Everything that happens waits in a queue of which its user decides.
 *
 * Included by one source file of a program. */
#ifndef FB_FUZZ_STEP_WORLD_H
#define FB_FUZZ_STEP_WORLD_H

#include <stdlib.h>

#include "protocol/core/internal.h"
#include "protocol/database/state.h"
#include "protocol/rpc/state.h"
#include "protocol/store/readset.h"
#include "protocol/store/writeset.h"
#include "sim/world/provider_fast.h"

#define NODES      2u
#define QUEUE_MAX  256u
#define STORE_MAX  512u
#define LINKS_MAX  16u
#define INPUT_MAX  512u
#define STEPS_MAX  96u
#define READ_BYTES (1u << 18)
#define POOL_BYTES (1u << 20)
#define FORGED_MAX 16u
/* Events of this target's own: frames of a peer's, from the first open link. */
#define FROM_PEER 100u

typedef struct pending {
    uint32_t node;
    fb_event event;
    uint8_t *bytes;
} pending;

typedef struct stored {
    fb_span key, value; /* in the pool */
} stored;

typedef struct wire {
    uint64_t ends[NODES]; /* link numbers, 0: none */
    bool external;
} wire;

typedef struct machine {
    fb_node *node;
    fb_sim_provider provider;
    stored store[STORE_MAX];
    uint32_t stored;
    uint64_t incarnation, applied;
    uint64_t asked; /* last request */
    bool store_fails;
} machine;

/* A batch that a member signed as it liked. */
typedef struct forged {
    bool used;
    uint64_t incarnation, number, last_seq;
    uint8_t hash[32];
} forged;

typedef struct world {
    machine machines[NODES];
    forged forged[FORGED_MAX];
    pending queue[QUEUE_MAX];
    uint32_t queued;
    wire wires[LINKS_MAX];
    uint64_t links, lives, mono_ns;
    int64_t wall_us;
    uint64_t steps, trace;
    bool bounded; /* by STEPS_MAX */
    fb_id space;
    uint8_t invite[512];
    size_t invite_len;
} world;

/* What a world looked like: the nodes' memory lies at one place for ever, so a copy of the bytes is
 * a copy of the nodes. */
typedef struct moment {
    world world;
    uint8_t *memory[NODES];
    uint8_t *pool;
    size_t pool_used;
} moment;

static uint8_t scratch[FB_SIM_PROVIDER_TEXT_MAX];
static uint64_t *arena;
static size_t arena_bytes;
static world now;
static uint8_t *memory[NODES];
static size_t memory_bytes[NODES];
static uint8_t pool[POOL_BYTES]; /* keys and values of both stores */
static size_t pool_used;

static void *allocate(void *user, size_t bytes)
{
    uint32_t i = (uint32_t)(uintptr_t)user;
    memory[i] = calloc(1, bytes);
    memory_bytes[i] = bytes;
    return memory[i];
}

static void release(void *user, void *of, size_t bytes)
{
    (void)user;
    (void)of;
    (void)bytes;
}

/* Of exactly its length, so that a sanitizer sees a read beyond it. */
static uint8_t *copy_of(fb_span s)
{
    uint8_t *p = malloc(s.len == 0 ? 1 : s.len);
    FB_ASSERT(p != NULL);
    if (s.len != 0) memcpy(p, s.p, s.len);
    return p;
}

static bool keep(fb_span from, fb_span *to)
{
    if (from.len > POOL_BYTES - pool_used) return false;
    *to = fb_span_of(pool + pool_used, from.len);
    if (from.len != 0) memcpy(pool + pool_used, from.p, from.len);
    pool_used += from.len;
    return true;
}

static void enqueue(world *w, uint32_t node, fb_event event)
{
    if (w->queued == QUEUE_MAX) return; /* late for ever, which a driver may be */
    pending *p = &w->queue[w->queued++];
    *p = (pending){node, event, copy_of(fb_span_of(event.bytes, event.len))};
}

static pending dequeue(world *w, uint32_t at)
{
    pending p = w->queue[at];
    w->queued--;
    memmove(&w->queue[at], &w->queue[at + 1], (w->queued - at) * sizeof p);
    return p;
}

/* ---- The store ---- */

static uint32_t find(const machine *m, fb_span key)
{
    uint32_t low = 0, high = m->stored;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (fb_span_compare(m->store[middle].key, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void drop_entry(machine *m, uint32_t at)
{
    m->stored--;
    memmove(&m->store[at], &m->store[at + 1], (m->stored - at) * sizeof(stored));
}

static bool apply(machine *m, fb_span set)
{
    fb_reader r = fb_reader_of(set);
    while (fb_reader_left(&r) > 0) {
        fb_write_entry e = fb_write_entry_next(&r);
        FB_ASSERT(!r.failed);
        uint32_t at = find(m, e.key);
        if (at < m->stored && fb_span_equal(m->store[at].key, e.key)) drop_entry(m, at);
        if (e.kind != FB_WRITE_PUT) continue;
        stored fresh;
        if (m->stored == STORE_MAX || !keep(e.key, &fresh.key) || !keep(e.value, &fresh.value)) {
            return false;
        }
        memmove(&m->store[at + 1], &m->store[at], (m->stored - at) * sizeof(stored));
        m->store[at] = fresh;
        m->stored++;
    }
    return true;
}

static void answer_item(const machine *m, const fb_read_item *item, fb_writer *w)
{
    size_t head = w->at;
    fb_write_u8(w, 1);
    fb_write_u32(w, 0);
    size_t start = w->at;
    uint32_t from = find(m, item->low), count = 0;
    uint32_t to = item->high.len == 0 ? m->stored : find(m, item->high);
    bool key = item->kind == FB_READ_KEY, whole = true;
    if (key)
        to = from < m->stored && fb_span_equal(m->store[from].key, item->low) ? from + 1 : from;
    for (uint32_t i = 0; from + i < to; i++) {
        if (count == item->items || (count > 0 && w->at - start >= item->bytes)) {
            whole = key;
            break;
        }
        bool down = (item->flags & FB_READ_DESCENDING) != 0;
        const stored *s = &m->store[down ? to - 1 - i : from + i];
        size_t shown = s->value.len < item->value_bytes ? s->value.len : item->value_bytes;
        fb_read_entry entry = {s->key, (uint32_t)s->value.len, {s->value.p, shown}};
        fb_read_entry_write(w, &entry);
        count++;
    }
    if (w->failed) return;
    w->p[head] = whole;
    fb_store_be(w->p + head + 1, count, 4);
}

static void do_read(world *w, uint32_t i, const fb_effect *fx)
{
    const machine *m = &w->machines[i];
    static uint8_t bytes[READ_BYTES];
    fb_writer out = fb_writer_of(bytes, sizeof bytes);
    fb_write_u64(&out, m->incarnation);
    fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(fx), fx->len));
    uint16_t count = fb_read_u16(&r);
    for (uint16_t k = 0; k < count; k++) {
        fb_read_item item = fb_read_item_next(&r);
        answer_item(m, &item, &out);
    }
    FB_ASSERT(fb_reader_done(&r));
    enqueue(w, i,
            (fb_event){.kind = FB_EV_READ_DONE,
                       .len = out.failed ? 0 : (uint32_t)out.at,
                       .a = fx->a,
                       .b = m->applied,
                       .c = out.failed ? FB_ERR_STORE_FAILED : FB_OK,
                       .bytes = bytes});
}

static void do_write(world *w, uint32_t i, const fb_effect *fx)
{
    machine *m = &w->machines[i];
    bool ok = !m->store_fails && fx->a == m->incarnation && fx->b == m->applied + 1 &&
              apply(m, fb_span_of(fb_effect_bytes(fx), fx->len));
    if (ok) m->applied = fx->b;
    enqueue(w, i,
            (fb_event){.kind = FB_EV_WRITE_DONE,
                       .a = fx->a,
                       .b = fx->b,
                       .c = ok ? FB_OK : FB_ERR_STORE_FAILED});
}

/* ---- Links ---- */

static wire *wire_of(world *w, uint32_t i, uint64_t number)
{
    for (uint32_t k = 0; k < LINKS_MAX; k++) {
        if (number != 0 && w->wires[k].ends[i] == number) return &w->wires[k];
    }
    return NULL;
}

static void close_end(world *w, wire *l, uint32_t i, fb_error why)
{
    if (l->ends[i] == 0) return;
    enqueue(w, i, (fb_event){.kind = FB_EV_LINK_CLOSED, .a = l->ends[i], .b = why});
    l->ends[i] = 0;
}

static wire *open_wire(world *w, bool external)
{
    for (uint32_t k = 0; k < LINKS_MAX; k++) {
        wire *l = &w->wires[k];
        if ((l->ends[0] | l->ends[1]) != 0) continue;
        *l = (wire){{w->links + 1, w->links + 2}, external};
        w->links += 2;
        return l;
    }
    return NULL;
}

static void grant(world *w, uint32_t i, uint64_t link, uint64_t bytes)
{
    enqueue(w, i, (fb_event){.kind = FB_EV_LINK_WRITABLE, .a = link, .b = bytes});
}

static void do_dial(world *w, uint32_t i, const fb_effect *fx)
{
    wire *l = fx->len == 1 && fb_effect_bytes(fx)[0] == '1' - i ? open_wire(w, false) : NULL;
    fb_event result = {.kind = FB_EV_DIAL_RESULT, .a = fx->a, .c = FB_ERR_UNREACHABLE};
    if (l != NULL) {
        result.b = l->ends[i];
        result.c = FB_OK;
        static const uint8_t from[] = "host:1";
        enqueue(
            w, 1 - i,
            (fb_event){.kind = FB_EV_LINK_OPENED, .len = 6, .a = l->ends[1 - i], .bytes = from});
        grant(w, 1 - i, l->ends[1 - i], 1u << 20);
    }
    enqueue(w, i, result);
    if (l != NULL) grant(w, i, l->ends[i], 1u << 20);
}

static void do_send(world *w, uint32_t i, const fb_effect *fx)
{
    wire *l = wire_of(w, i, fx->a);
    if (l == NULL) return;
    if (l->ends[1 - i] != 0) {
        enqueue(w, 1 - i,
                (fb_event){.kind = fx->kind == FB_FX_FRAME ? FB_EV_CARRIER_FRAME : FB_EV_LINK_BYTES,
                           .len = fx->len,
                           .a = l->ends[1 - i],
                           .bytes = fb_effect_bytes(fx)});
    }
    grant(w, i, fx->a, fx->len);
}

/* ---- Steps ---- */

static void start(world *w, uint32_t i)
{
    machine *m = &w->machines[i];
    for (uint32_t k = 0; k < LINKS_MAX; k++) {
        close_end(w, &w->wires[k], 1 - i, FB_ERR_LINK_CLOSED);
        w->wires[k].ends[i] = 0;
    }
    /* Nothing of the earlier life is delivered any more. */
    for (uint32_t k = 0; k < w->queued;) {
        if (w->queue[k].node == i) {
            free(dequeue(w, k).bytes);
        } else {
            k++;
        }
    }
    m->incarnation = 1000 + ++w->lives;
    m->applied = 0;
    enqueue(w, i, (fb_event){.kind = FB_EV_START, .a = m->incarnation, .b = 5, .c = 6});
}

static void trace(world *w, const void *bytes, size_t len)
{
    w->trace = fb_xxh64(bytes, len, w->trace);
}

static void reply(world *w, uint32_t i, const fb_effect *fx)
{
    if (fx->a != w->machines[i].asked || fx->b != FB_OK || i != 0) return;
    if (fx->len == 16 && fb_id_is_zero(w->space)) memcpy(w->space.b, fb_effect_bytes(fx), 16);
    if (fx->len > 100 && fx->len < sizeof w->invite) {
        memcpy(w->invite, fb_effect_bytes(fx), fx->len);
        w->invite_len = fx->len;
    }
}

static void carry_out(world *w, uint32_t i, const fb_effects *out)
{
    bool again = false;
    for (const fb_effect *fx = NULL; (fx = fb_effects_next(out, fx)) != NULL;) {
        if (fx->kind < FB_FX_LOG) trace(w, fx, sizeof *fx + fx->len);
        wire *l;
        switch (fx->kind) {
        case FB_FX_DIAL:
            do_dial(w, i, fx);
            break;
        case FB_FX_SEND:
        case FB_FX_FRAME:
            do_send(w, i, fx);
            break;
        case FB_FX_CLOSE:
            l = wire_of(w, i, fx->a);
            if (l == NULL) break;
            close_end(w, l, i, FB_OK);
            close_end(w, l, 1 - i, FB_OK);
            break;
        case FB_FX_READ:
            do_read(w, i, fx);
            break;
        case FB_FX_WRITE:
            do_write(w, i, fx);
            break;
        case FB_FX_REPLY:
            reply(w, i, fx);
            break;
        case FB_FX_NEED_START:
            again = true;
            break;
        default:
            break;
        }
    }
    if (again) start(w, i);
}

static void step(world *w, uint32_t i, fb_event event)
{
    fb_node *node = w->machines[i].node;
    w->steps++;
    event.mono_ns = w->mono_ns;
    event.wall_us = w->wall_us;
    fb_effects out = {.memory = (uint8_t *)arena, .capacity = arena_bytes};
    bool compare = w->steps % 16 == 0;
    fb_hash128 before = compare ? fb_node_digest(node) : (fb_hash128){0, 0};
    fb_status status = fb_node_step(node, &event, &out);
    trace(w, &status, sizeof status);
    if (status != FB_OK) {
        FB_ASSERT(fb_error_class_of(status) == FB_CLASS_ARGUMENT);
        FB_ASSERT(out.used == 0);
        if (!compare) return;
        fb_hash128 after = fb_node_digest(node);
        FB_ASSERT(before.lo == after.lo && before.hi == after.hi);
        return;
    }
    if (event.kind == FB_EV_LINK_BYTES) FB_ASSERT(out.consumed <= event.len);
    if (event.kind == FB_EV_LINK_BYTES && out.consumed < event.len) {
        event.bytes += out.consumed;
        event.len -= (uint32_t)out.consumed;
        enqueue(w, i, event);
    }
    carry_out(w, i, &out);
}

static void deliver(world *w, uint32_t at)
{
    pending p = dequeue(w, at);
    p.event.bytes = p.bytes;
    step(w, p.node, p.event);
    free(p.bytes);
}

/* As a decent driver would, for a while. */
static void settle(world *w, uint32_t most)
{
    for (; most > 0 && (!w->bounded || w->steps < STEPS_MAX); most--) {
        if (w->queued > 0) {
            deliver(w, 0);
            continue;
        }
        bool ticked = false;
        for (uint32_t i = 0; i < NODES; i++) {
            if (fb_node_deadline(w->machines[i].node) > w->mono_ns) continue;
            step(w, i, (fb_event){.kind = FB_EV_TICK});
            ticked = true;
        }
        if (!ticked) return;
    }
}

/* The same, with time passing from deadline to deadline. */
static void pass(world *w, uint64_t ns)
{
    uint64_t end = w->mono_ns + ns;
    for (uint32_t round = 0; round < 64; round++) {
        settle(w, 300);
        uint64_t next = fb_min_u64(fb_node_deadline(w->machines[0].node),
                                   fb_node_deadline(w->machines[1].node));
        if (next > end) break;
        if (next <= w->mono_ns) continue;
        w->wall_us += (int64_t)((next - w->mono_ns) / 1000);
        w->mono_ns = next;
    }
}

/* ---- Requests ---- */

static void ask(world *w, uint32_t i, fb_verb verb, fb_span arguments)
{
    static uint64_t number;
    machine *m = &w->machines[i];
    number = ++m->asked;
    step(w, i,
         (fb_event){.kind = FB_EV_REQUEST,
                    .len = (uint32_t)arguments.len,
                    .a = number,
                    .b = verb,
                    .bytes = arguments.p});
}

/* One space, two members, a link: from where most inputs begin. */
static void introduce(world *w)
{
    settle(w, 200);
    uint8_t bytes[1024];
    fb_writer out = fb_writer_of(bytes, sizeof bytes);
    fb_write_span16(&out, fb_span_text("home"));
    ask(w, 0, FB_VERB_SPACE_CREATE, fb_writer_span(&out));
    settle(w, 200);
    if (fb_id_is_zero(w->space)) return;
    out = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&out, w->space);
    fb_write_u32(&out, 1);
    fb_write_u64(&out, 0);
    fb_write_span16(&out, fb_span_text("0"));
    ask(w, 0, FB_VERB_SPACE_INVITE, fb_writer_span(&out));
    settle(w, 200);
    if (w->invite_len == 0) return;
    ask(w, 1, FB_VERB_SPACE_JOIN, fb_span_of(w->invite, w->invite_len));
    pass(w, UINT64_C(2000000000));
    out = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&out, w->space);
    fb_write_id(&out, fb_node_self(w->machines[1].node));
    fb_write_u8(&out, 2);
    ask(w, 0, FB_VERB_SPACE_APPROVE, fb_writer_span(&out));
    pass(w, UINT64_C(5000000000));
}

static inline uint32_t open_link_of(const fb_node *node)
{
    for (uint32_t link = 0; link < fb_link_capacity(node); link++) {
        if (fb_link_at(node, link)->state == FB_LINK_OPEN) return link;
    }
    return FB_NONE;
}

/* ---- Moments ---- */

static fb_sizes small_sizes(void)
{
    fb_sizes sizes = fb_options_small().sizes;
    sizes.spaces = 1;
    sizes.members = 8;
    sizes.areas = 4;
    sizes.vector_entries = 24;
    sizes.links = 4;
    sizes.addresses = 4;
    sizes.operations = 8;
    sizes.write_set_bytes = 16384;
    sizes.write_set_entries = 128;
    sizes.requests = 8;
    sizes.seen_ids = 8;
    sizes.envelopes = 16;
    sizes.calls = 8;
    sizes.call_bytes = 4160;
    return sizes;
}

/* `event`: for FROM_PEER, of the program that includes this. */
static void make(fb_event_handler event, void (*change)(fb_options *))
{
    now = (world){.mono_ns = 1, .wall_us = INT64_C(1718000000000000)};
    for (uint32_t i = 0; i < NODES; i++) {
        machine *m = &now.machines[i];
        fb_sim_provider_init(&m->provider, (fb_seed){i, 1}, (fb_seed){i, 2}, scratch);
        fb_options options = fb_options_small();
        options.sizes = small_sizes();
        options.allocator = (fb_allocator){(void *)(uintptr_t)i, allocate, release};
        options.provider = &m->provider.table;
        options.identity_key = FB_SIM_KEY_IDENTITY;
        options.link_key = FB_SIM_KEY_LINK;
        options.observe = true;
        options.digest_every_step = false;
        if (change != NULL) change(&options);
        arena_bytes = fb_effects_bytes_min(&options);
        if (arena == NULL) arena = malloc((arena_bytes + 7) & ~(size_t)7);
        FB_ASSERT(arena != NULL && fb_node_create(&options, &m->node) == FB_OK);
        fb_event_register(m->node, (fb_event_kind)FROM_PEER, event);
        start(&now, i);
    }
}

static void save(moment *at)
{
    at->world = now;
    for (uint32_t i = 0; i < NODES; i++) {
        at->memory[i] = copy_of(fb_span_of(memory[i], memory_bytes[i]));
    }
    at->pool = copy_of(fb_span_of(pool, pool_used));
    at->pool_used = pool_used;
}

static void restore(const moment *at)
{
    now = at->world;
    for (uint32_t i = 0; i < NODES; i++) memcpy(memory[i], at->memory[i], memory_bytes[i]);
    pool_used = at->pool_used;
    if (pool_used != 0) memcpy(pool, at->pool, pool_used);
    for (uint32_t k = 0; k < now.queued; k++) {
        now.queue[k].bytes = copy_of(fb_span_of(now.queue[k].bytes, now.queue[k].event.len));
    }
}

/* ---- An input ---- */

/* The next bytes of it, or as many as are left. */
static fb_span take(fb_reader *r, size_t len)
{
    size_t left = fb_reader_left(r);
    return fb_read_bytes(r, len < left ? len : left);
}

/* `begin` makes what every input begins from, once; each has its own copy. */
static inline void restore_or_begin(moment *at, void (*begin)(void))
{
    if (at->pool == NULL) {
        begin();
        save(at);
    }
    restore(at);
}

/* What an input came to: all that was done, and the first nodes as they are now. */
static uint64_t end_of_input(uint32_t nodes)
{
    for (uint32_t i = 0; i < nodes; i++) {
        fb_hash128 digest = fb_node_digest(now.machines[i].node);
        trace(&now, &digest, sizeof digest);
    }
    while (now.queued > 0) free(dequeue(&now, 0).bytes);
    return now.trace;
}

/* Some inputs are run twice, by the bits of their first byte, and come to the same. */
static int run_input(uint64_t (*run)(fb_span input), const uint8_t *data, size_t size,
                     uint8_t twice_mask, uint8_t twice)
{
    if (size < 1 || size > INPUT_MAX) return 0;
    uint64_t first = run(fb_span_of(data, size));
    if ((data[0] & twice_mask) == twice) FB_ASSERT(run(fb_span_of(data, size)) == first);
    return 0;
}

#endif
