/* SPDX-License-Identifier: Apache-2.0 */
/* What the toy node writes down, and reads again when it starts. */
#include "sim/toys/toy_inside.h"

#include "protocol/store/readset.h"
#include "protocol/store/writeset.h"

void fb_toy_entry_write(fb_writer *w, const fb_toy_entry *e)
{
    fb_write_u64(w, e->counter);
    fb_write_id(w, e->record);
    fb_write_id(w, e->node);
    fb_write_u64(w, e->incarnation);
    fb_write_u64(w, e->seq);
}

fb_toy_entry fb_toy_entry_read(fb_reader *r)
{
    fb_toy_entry e;
    e.counter = fb_read_u64(r);
    e.record = fb_read_id(r);
    e.node = fb_read_id(r);
    e.incarnation = fb_read_u64(r);
    e.seq = fb_read_u64(r);
    return e;
}

void fb_toy_seal(fb_node *node)
{
    bool nothing = node->dirty == 0 && node->peers_stored == node->peer_count;
    if (node->in_flight || (nothing && node->mark == MARK_NONE)) return;
    uint8_t set[RECORDS * 72 + PEERS * 32 + 32];
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
        fb_toy_entry_write(&w, &node->entries[i]);
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
    if (node->mark != MARK_NONE) {
        fb_write_u8(&w, FB_WRITE_PUT);
        fb_write_u8(&w, 0);
        fb_write_u16(&w, 2);
        fb_write_u32(&w, 8);
        fb_write_u8(&w, 'q');
        fb_write_u8(&w, 0);
        fb_write_u64(&w, node->mark == MARK_SET ? node->incarnation : 0);
        while (w.at % 8 != 0) fb_write_u8(&w, 0);
        node->mark = MARK_NONE;
        count++;
    }
    FB_ASSERT(!w.failed);
    node->flight = node->dirty;
    node->dirty = 0;
    node->in_flight = true;
    node->w++;
    fb_toy_effect(node, FB_FX_OBSERVE, FB_FACT_SEALED, node->w, count, NULL, 0);
    fb_toy_effect(node, FB_FX_WRITE, node->incarnation, node->w, count, set, w.at);
}

/* Start: everything from the store, in one range. */
void fb_toy_start(fb_node *node, const fb_event *ev)
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
    if (fb_toy_defect_now == FB_TOY_STARTS_ONCE) node->mark = MARK_SET;
    for (uint32_t i = 0; i < LINKS; i++) node->links[i].peer = -1;
    uint8_t set[64];
    fb_writer w = fb_writer_of(set, sizeof set);
    fb_write_u16(&w, 1);
    fb_read_item item = {.kind = FB_READ_RANGE,
                         .value_bytes = 64,
                         .items = RECORDS + PEERS + 1,
                         .bytes = 1u << 16,
                         .low = fb_span_text("p"),
                         .high = fb_span_text("s")};
    fb_read_item_write(&w, &item);
    fb_toy_effect(node, FB_FX_READ, ++node->numbers, 0, 0, set, w.at);
}

void fb_toy_loaded(fb_node *node, const fb_event *ev)
{
    if (ev->c != FB_OK) {
        node->started = false;
        fb_toy_effect(node, FB_FX_NEED_START, node->incarnation, ev->c, 0, NULL, 0);
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
        if (item.key.len == 2 && item.key.p[0] == 'q') {
            /* The mark of a start that nothing came of. Its store is as good as any. */
            uint64_t begun = fb_read_u64(&v);
            if (begun != 0 && begun != node->incarnation) node->mute = true;
            continue;
        }
        fb_toy_entry e = fb_toy_entry_read(&v);
        if (!v.failed && item.key.len == 2) node->entries[item.key.p[1] % RECORDS] = e;
    }
    if (fb_toy_defect_now == FB_TOY_STARTS_ONCE) node->mark = MARK_CLEAR;
    node->running = true;
    node->next_ns = node->mono_ns;
    fb_toy_effect(node, FB_FX_OBSERVE, FB_FACT_STARTED, node->incarnation, 0, NULL, 0);
}

void fb_toy_written(fb_node *node, const fb_event *ev)
{
    if (ev->a != node->incarnation) return;
    if (ev->c != FB_OK && fb_toy_defect_now != FB_TOY_NEVER_RESTARTS) {
        node->started = node->running = false;
        fb_toy_effect(node, FB_FX_NEED_START, node->incarnation, ev->c, 0, NULL, 0);
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
            const waiting_reply *waiting = &node->replies[i];
            fb_toy_reply(node, waiting->request, FB_OK, waiting->answer, sizeof waiting->answer);
        }
    }
    node->reply_count = kept;
}
