/* SPDX-License-Identifier: Apache-2.0 */
/* A node that fits on a few pages, behind the same seam as the real one: 32 last-writer-wins
 * registers, told to every peer on every link and told again every two seconds.
 *
 * It is here to test the adversary, and as a tutorial: with a defect switched on it still works in
 * good weather, and fails under the fault that the defect is about. It replaces the core at link
 * time, so the simulator drives it through fb_node_step like any other. */
#include "sim/toys/toy_inside.h"

#include "sim/step/state.h"
#include "sim/workload/workload.h"

fb_toy_defect fb_toy_defect_now;

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

void fb_toy_effect(fb_node *node, uint32_t kind, uint64_t a, uint64_t b, uint64_t c,
                   const void *bytes, size_t len)
{
    fb_effects *out = node->out;
    size_t padded = (len + 7) & ~(size_t)7;
    FB_ASSERT(out->used + sizeof(fb_effect) + padded <= out->capacity);
    fb_effect *fx = (fb_effect *)(void *)(out->memory + out->used);
    *fx = (fb_effect){kind, (uint32_t)len, a, b, c};
    memset(fx + 1, 0, padded);
    if (len != 0) memcpy(fx + 1, bytes, len);
    out->used += sizeof *fx + padded;
}

void fb_toy_observe_change(fb_node *node, fb_fact fact, uint64_t b, const fb_toy_entry *e)
{
    uint8_t bytes[72];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, fb_toy_area);
    fb_write_id(&w, e->record);
    fb_write_id(&w, e->node);
    fb_write_u64(&w, e->incarnation);
    fb_write_u64(&w, e->seq);
    fb_write_u64(&w, e->counter);
    fb_toy_effect(node, FB_FX_OBSERVE, fact, b, node->w + 1, bytes, w.at);
}

void fb_toy_reply(fb_node *node, uint64_t request, fb_error status, const void *bytes, size_t len)
{
    fb_toy_effect(node, FB_FX_REPLY, request, status, 0, bytes, len);
}

/* A register takes a greater entry, and everybody is to hear of it. */
bool fb_toy_take(fb_node *node, uint32_t i, const fb_toy_entry *e)
{
    fb_toy_entry *own = &node->entries[i];
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
        fb_toy_effect(node, FB_FX_CLOSE, number, FB_ERR_LINK_TOO_MANY, 0, NULL, 0);
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
    fb_toy_effect(node, FB_FX_CLOSE, link->link, FB_ERR_LINK_RECORD, 0, NULL, 0);
    link_over(node, link);
}

static void frame_out(fb_node *node, toy_link *link)
{
    uint8_t frame[FRAME];
    fb_writer w = fb_writer_of(frame, sizeof frame);
    fb_write_bytes(&w, link->out, MESSAGE);
    fb_write_u64(&w, link->link);
    fb_write_u64(&w, ++link->sent);
    fb_toy_effect(node, FB_FX_FRAME, link->link, 0, 0, frame, FRAME);
    link->credit -= FRAME;
    link->out_at = MESSAGE;
}

static void speak(fb_node *node, toy_link *link)
{
    size_t least = link->carrier ? FRAME : 1;
    while (link->link != 0 && link->credit >= least && !node->mute) {
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
            fb_toy_entry_write(&w, &node->entries[i]);
            uint64_t sum = fb_xxh64(link->out, w.at, 0);
            if (fb_toy_defect_now == FB_TOY_READS_UNWRITTEN) {
                sum ^= node->out->memory[node->out->capacity / 2];
            }
            fb_write_u64(&w, sum);
            FB_ASSERT(!w.failed && w.at == MESSAGE);
            link->out_at = 0;
        }
        if (link->carrier) {
            frame_out(node, link);
            continue;
        }
        size_t len = MESSAGE - link->out_at;
        if (len > link->credit) len = (size_t)link->credit;
        fb_toy_effect(node, FB_FX_SEND, link->link, 0, 0, link->out + link->out_at, len);
        link->out_at += len;
        link->credit -= len;
    }
}

static bool hear(fb_node *node, toy_link *link, const uint8_t *message)
{
    fb_reader r = fb_reader_of(fb_span_of(message, MESSAGE));
    uint16_t len = fb_read_u16(&r);
    uint16_t i = fb_read_u16(&r);
    fb_toy_entry e = fb_toy_entry_read(&r);
    uint64_t sum = fb_read_u64(&r);
    link->heard_ns = node->mono_ns;
    link->silent = 0;
    if (node->ticks <= TICKS_MOST) node->ticks = 1;
    if (fb_toy_defect_now != FB_TOY_NO_CHECKSUM &&
        (len != MESSAGE - 2 || sum != fb_xxh64(message, MESSAGE - 8, 0))) {
        return false;
    }
    const fb_toy_entry *own = &node->entries[i % RECORDS];
    if (fb_toy_defect_now == FB_TOY_NOTHING_OLDER && !link->heard && own->counter > e.counter + 4) {
        node->mute = true;
    }
    link->heard = true;
    if (fb_toy_take(node, i % RECORDS, &e)) {
        fb_toy_observe_change(node, FB_FACT_APPLIED, node->w + 1, &e);
        /* Its own, and not in its store. */
        if (fb_id_equal(e.node, node->self))
            fb_toy_effect(node, FB_FX_OBSERVE, FB_FACT_CLONE, 0, 0, NULL, 0);
    }
    return true;
}

/* A register may be told twice; but that is a matter of what the frames hold. */
static void frame_in(fb_node *node, toy_link *link, fb_span bytes)
{
    if (bytes.len != FRAME) return;
    fb_reader r = fb_reader_of(fb_span_of(bytes.p + MESSAGE, FRAME - MESSAGE));
    uint64_t session = fb_read_u64(&r);
    uint64_t number = fb_read_u64(&r);
    if (link->session == 0) link->session = session;
    if (session != link->session) {
        /* A peer that starts again gets a new link: this frame is an old one. */
        if (fb_toy_defect_now == FB_TOY_ANY_SESSION) node->mute = true;
        return;
    }
    uint64_t back = link->last - number;
    bool again = number == link->last ||
                 (number < link->last && back <= 64 && (link->before >> (back - 1) & 1) != 0);
    if (again && fb_toy_defect_now == FB_TOY_ONCE_ONLY) node->mute = true;
    if (number > link->last) {
        uint64_t by = number - link->last;
        link->before = by > 64 ? 0 : (by == 64 ? 0 : link->before << by) | UINT64_C(1) << (by - 1);
        link->last = number;
    } else if (back != 0 && back <= 64) {
        link->before |= UINT64_C(1) << (back - 1);
    }
    (void)hear(node, link, bytes.p);
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
        fb_toy_effect(node, FB_FX_DIAL, peer->dial, 0, 0, peer->address, peer->address_len);
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
    case FB_EV_CARRIER_OPENED:
        link_open(node, ev->a, -1);
        link = link_of(node, ev->a);
        if (link != NULL) link->carrier = true;
        break;
    case FB_EV_CARRIER_FRAME:
        link = link_of(node, ev->a);
        if (link != NULL) frame_in(node, link, fb_span_of(ev->bytes, ev->len));
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
        if (!node->running) fb_toy_loaded(node, ev);
        break;
    case FB_EV_WRITE_DONE:
        fb_toy_written(node, ev);
        break;
    case FB_EV_REQUEST:
        if (node->running) {
            fb_toy_request(node, ev);
        } else {
            fb_toy_reply(node, ev->a, FB_ERR_AGAIN, NULL, 0);
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
        fb_toy_start(node, event);
        fb_toy_seal(node);
        return FB_OK;
    }
    if (!node->started) return FB_OK;
    event_in(node, event);
    tick(node, event->kind == FB_EV_TICK);
    fb_toy_seal(node);
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
        const fb_toy_entry *e = &node->entries[i];
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
    for (uint32_t i = 0; i < RECORDS; i++) fb_toy_entry_write(&w, &node->entries[i]);
    return fb_xxh128(raw, w.at, node->w);
}
