/* SPDX-License-Identifier: Apache-2.0 */
/* fb_node_step with arbitrary events. Two nodes of one space run over a driver that keeps the
 * contract where it must (a store is a store, links have two ends); the input decides everything
 * else: what is delivered when, repeated, lost, changed, cut, failed, asked, events made of nothing
 * but its bytes, and batches that a member signed as it liked. Nothing may assert; a driver's
 * mistake changes nothing; a second run of the same input gives the same effects and digests.
 *
 * The two nodes are made once, small, and copied: an input begins from a copy of their memory as it
 * was before the first event, or as it was when they had met. */
#include "fuzz/step_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- Requests ---- */

static void ask_record(world *w, uint32_t i, uint8_t what)
{
    uint8_t bytes[256];
    fb_writer out = fb_writer_of(bytes, sizeof bytes);
    fb_id record = {{1, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, what & 3}};
    fb_write_id(&out, w->space);
    if ((what & 0xc0) == 0xc0) {
        fb_write_u16(&out, 1);
        fb_write_id(&out, record);
        ask(w, i, FB_VERB_PUBLISH, fb_writer_span(&out));
        return;
    }
    fb_write_u8(&out, 1);
    fb_write_span16(&out, fb_span_text((what & 4) != 0 ? "notes" : "tasks"));
    fb_write_id(&out, record);
    fb_verb verb = (what & 0xc0) == 0 ? FB_VERB_RECORD_PUT : FB_VERB_RECORD_DELETE;
    if ((what & 0xc0) == 0x80) {
        ask(w, i, FB_VERB_RECORD_GET, fb_writer_span(&out));
        return;
    }
    if (verb == FB_VERB_RECORD_PUT) fb_write_u8(&out, (what & 8) != 0 ? 1 : 2);
    fb_write_u8(&out, 0);
    fb_write_id(&out, (fb_id){{0}});
    if (verb == FB_VERB_RECORD_PUT) {
        fb_write_u16(&out, 1);
        fb_write_span16(&out, fb_span_text((what & 16) != 0 ? "a" : "b"));
        fb_write_u8(&out, (what & 32) != 0 ? 2 : 1);
        fb_write_span32(&out, fb_span_text((what & 32) != 0 ? "" : "\"v\""));
    }
    ask(w, i, verb, fb_writer_span(&out));
}

/* ---- A carrier ---- */

static void open_carrier(world *w)
{
    wire *l = open_wire(w, true);
    for (uint32_t i = 0; l != NULL && i < NODES; i++) {
        uint8_t bytes[48];
        memcpy(bytes, w->space.b, 16);
        memcpy(bytes + 16, w->machines[1 - i].provider.public_key.b, 32);
        enqueue(
            w, i,
            (fb_event){.kind = FB_EV_CARRIER_OPENED, .len = 48, .a = l->ends[i], .bytes = bytes});
        grant(w, i, l->ends[i], 1u << 20);
    }
}

/* ---- A member that signs what it likes ---- */

/* a: channel. Of a piece, the number is that of the call under way. */
static fb_status from_peer(fb_node *node, const fb_event *event)
{
    uint32_t link = open_link_of(node);
    if (link == FB_NONE) return FB_OK;
    if (event->a == FB_CHANNEL_CONTROL) {
        const fb_channel *vectors = node->controls[FB_CONTROL_VECTORS];
        (void)vectors->frame(node, link, fb_span_of(event->bytes, event->len));
        return FB_OK;
    }
    for (uint32_t i = 0; i < node->rpc->own; i++) {
        const fb_call *call = &node->rpc->call[i];
        if (call->role != FB_SIDE_CALLER || call->link != link) continue;
        uint8_t frame[2048];
        fb_writer w = fb_writer_of(frame, sizeof frame);
        fb_write_u8(&w, FB_CALL_PIECE);
        fb_write_u64(&w, call->number);
        fb_write_u32(&w, call->pieces);
        fb_write_bytes(&w, event->bytes, event->len);
        if (!w.failed)
            (void)node->channels[FB_CHANNEL_CALLS]->frame(node, link, fb_writer_span(&w));
        break;
    }
    return FB_OK;
}

/* What is under way for one node; late: but for completions of its write sets. */
static void deliver_to(world *w, uint32_t i, uint32_t most, bool late)
{
    for (uint32_t k = 0; k < w->queued && most > 0;) {
        bool skip = late && w->queue[k].event.kind == FB_EV_WRITE_DONE;
        if (w->queue[k].node != i || skip) {
            k++;
            continue;
        }
        deliver(w, k);
        most--;
        k = 0;
    }
}

static const forged *forged_find(const world *w, uint64_t incarnation, uint64_t number)
{
    for (uint32_t k = 0; k < FORGED_MAX; k++) {
        const forged *f = &w->forged[k];
        if (f->used && f->incarnation == incarnation && f->number == number) return f;
    }
    return NULL;
}

static size_t forged_change(uint8_t *out, size_t cap, fb_id signer, uint8_t choice, uint8_t dots)
{
    static const uint8_t author[16], salt[FB_SALT_BYTES];
    fb_writer c = fb_writer_of(out, cap);
    fb_id record = {{1, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, choice & 3}};
    bool deletes = (choice & 4) != 0;
    fb_change_write_head(&c, record, deletes ? FB_CHANGE_DELETE : FB_CHANGE_WRITE,
                         (int64_t)choice << 50, FB_AUTHOR_OPERATOR, author);
    uint16_t count = dots & 3;
    fb_write_u16(&c, count);
    for (uint16_t k = 0; k < count; k++) {
        fb_write_dot(&c, (fb_dot){signer, 5000 + k, 1 + (dots >> 2)});
    }
    fb_write_u16(&c, deletes ? 0 : 1);
    if (deletes) return c.at;
    fb_change_write_field(&c, fb_span_text("a"), FB_FIELD_SET);
    fb_write_u16(&c, 0);
    fb_change_write_value(&c, salt, fb_span_text("1"));
    return c.at;
}

/* Signs the batch `number` of a life, after the header it names if that is known. */
static size_t sign(world *w, uint32_t signer, fb_id area, uint8_t which, fb_reader *r, uint8_t *out,
                   size_t cap, fb_batch *batch)
{
    const fb_node *node = w->machines[signer].node;
    uint8_t item[512], leaf[32], hash[32];
    uint64_t incarnation = 5000 + (which & 3), number = 1 + (which >> 2 & 3);
    uint8_t before = fb_read_u8(r), choice = fb_read_u8(r);
    size_t len = forged_change(item, sizeof item, node->self, choice, fb_read_u8(r));
    *batch = (fb_batch){.space = w->space,
                        .area = area,
                        .author = node->self_key,
                        .incarnation = incarnation,
                        .number = number,
                        .first_seq = 1,
                        .count = 1};
    uint64_t previous = number > 1 ? incarnation : UINT64_C(5000) + (before & 3);
    const forged *f =
        forged_find(w, previous, number > 1 ? number - 1 : UINT64_C(1) + (before >> 2 & 3));
    if (f != NULL && (number > 1 || previous != incarnation)) {
        batch->has_previous = true;
        batch->previous_incarnation = f->incarnation;
        batch->previous_number = f->number;
        memcpy(batch->previous_hash, f->hash, 32);
        if (number > 1) batch->first_seq = f->last_seq + 1;
    }
    fb_change change;
    if (fb_change_decode(fb_span_of(item, len), &change) != FB_OK) return 0;
    fb_change_leaf(&change, (fb_dot){node->self, incarnation, batch->first_seq}, leaf);
    fb_batch_root(leaf, 1, batch->root);
    fb_writer o = fb_writer_of(out, cap);
    fb_write_u32(&o, 0);
    fb_writer b = fb_writer_of(out + 4, cap - 4);
    if (fb_batch_seal(&b, batch, node->options.provider, node->options.identity_key, hash) !=
        FB_OK) {
        return 0;
    }
    fb_write_span32(&b, fb_span_of(item, len));
    if (b.failed) return 0;
    fb_store_be(out, b.at, 4);
    forged *kept = &w->forged[(which & 3) * 4 + (which >> 2 & 3)];
    *kept = (forged){true, incarnation, number, batch->first_seq, {0}};
    memcpy(kept->hash, hash, 32);
    return 4 + b.at;
}

/* The peer of node i claims a batch of its own, and answers the call that asks for it with it. */
static void forge(world *w, uint32_t i, bool late, uint8_t choice, fb_reader *r)
{
    fb_span name = fb_span_text((choice & 128) != 0 ? "notes" : "tasks");
    fb_id area = fb_area_id(w->space, FB_AREA_COLLECTION, name);
    uint8_t bytes[1024], offer[256];
    fb_batch batch;
    size_t len = sign(w, 1 - i, area, choice & 15, r, bytes, sizeof bytes, &batch);
    if (len == 0) return;
    fb_writer o = fb_writer_of(offer, sizeof offer);
    fb_write_u8(&o, FB_CONTROL_VECTORS);
    fb_write_u8(&o, 2);
    fb_write_id(&o, area);
    fb_write_u8(&o, FB_AREA_COLLECTION);
    fb_write_span16(&o, name);
    fb_write_u16(&o, 1);
    fb_write_id(&o, w->machines[1 - i].node->self);
    fb_write_u64(&o, batch.incarnation);
    fb_write_u64(&o, batch.number);
    fb_write_u64(&o, batch.first_seq);
    step(w, i,
         (fb_event){
             .kind = FROM_PEER, .a = FB_CHANNEL_CONTROL, .len = (uint32_t)o.at, .bytes = offer});
    if ((choice & 16) != 0) deliver_to(w, i, 4, late);
    step(
        w, i,
        (fb_event){.kind = FROM_PEER, .a = FB_CHANNEL_CALLS, .len = (uint32_t)len, .bytes = bytes});
    deliver_to(w, i, choice >> 5 & 3, late);
}

/* ---- The input ---- */

static void arbitrary(world *w, uint32_t i, uint8_t choice, fb_reader *r)
{
    static const uint8_t kinds[] = {1, 2, 10, 11, 12, 13, 14, 15, 16, 20, 21, 30, 31, 32, 0, 99};
    fb_event event = {.kind = kinds[choice % sizeof kinds]};
    event.a = fb_read_u8(r);
    event.b = fb_read_u8(r);
    event.c = fb_read_u8(r);
    if ((choice & 16) != 0) event.a += w->machines[i].incarnation - 8;
    if ((choice & 32) != 0) event.b = ~event.b;
    fb_span bytes = take(r, fb_read_u8(r));
    uint8_t *copy = copy_of(bytes);
    event.len = (uint32_t)bytes.len;
    event.bytes = copy;
    /* What the contract forbids a driver is not asked of it: a life begins through start(), a
     * link's number is new, a write set is done when it is done. */
    bool forbidden = event.kind == FB_EV_START || event.kind == FB_EV_LINK_OPENED ||
                     event.kind == FB_EV_CARRIER_OPENED || event.kind == FB_EV_WRITE_DONE ||
                     event.kind == FB_EV_DIAL_RESULT || event.kind == FB_EV_REQUEST;
    if (event.kind == FB_EV_LINK_OPENED || event.kind == FB_EV_CARRIER_OPENED) {
        event.a = ++w->links;
        forbidden = false;
    }
    if (event.kind == FB_EV_REQUEST) {
        event.a = ++w->machines[i].asked;
        event.b &= 63;
        forbidden = false;
    }
    if (!forbidden) step(w, i, event);
    free(copy);
}

static void change(pending *p, fb_reader *r)
{
    uint8_t at = fb_read_u8(r), by = fb_read_u8(r);
    if (p->event.len == 0) return;
    bool from_peer = p->event.kind == FB_EV_LINK_BYTES || p->event.kind == FB_EV_CARRIER_FRAME;
    bool read = p->event.kind == FB_EV_READ_DONE;
    if (!from_peer && !read) return;
    size_t place = p->event.len * (size_t)at / 256;
    if (by == 0) {
        p->event.len = (uint32_t)place;
    } else if (!read || place >= 8) {
        p->bytes[place] ^= by;
    }
}

static void act(world *w, uint8_t what, uint8_t choice, fb_reader *r)
{
    uint32_t i = choice & 1;
    uint32_t at = w->queued == 0 ? 0 : choice % w->queued;
    switch (what % 17) {
    case 0:
    case 1:
    case 2:
        settle(w, choice);
        break;
    case 3:
        if (w->queued > 0) deliver(w, at);
        break;
    case 4:
        if (w->queued > 0) change(&w->queue[at], r);
        break;
    case 5: /* carriers may repeat frames */
        if (w->queued > 0 && w->queue[at].event.kind == FB_EV_CARRIER_FRAME) {
            fb_event event = w->queue[at].event;
            event.bytes = w->queue[at].bytes;
            enqueue(w, w->queue[at].node, event);
        }
        break;
    case 6: /* and lose them */
        if (w->queued > 0 && w->queue[at].event.kind == FB_EV_CARRIER_FRAME) {
            free(dequeue(w, at).bytes);
        }
        break;
    case 7:
        w->mono_ns += choice * UINT64_C(50000000);
        w->wall_us += choice * INT64_C(50000);
        for (uint32_t k = 0; k < NODES; k++) step(w, k, (fb_event){.kind = FB_EV_TICK});
        break;
    case 8:
        arbitrary(w, i, (uint8_t)(choice >> 1), r);
        break;
    case 9:
    case 10:
        ask_record(w, i, (uint8_t)(choice >> 1 | choice << 7));
        break;
    case 11:
        if (choice < 32) start(w, i);
        w->machines[i].store_fails = choice > 240;
        break;
    case 12:
        for (uint32_t k = 0; k < LINKS_MAX; k++) {
            if (k % 4 != choice / 2 % 4) continue;
            close_end(w, &w->wires[k], i, FB_ERR_LINK_CLOSED);
            close_end(w, &w->wires[k], 1 - i, FB_OK);
        }
        break;
    case 13:
        open_carrier(w);
        break;
    case 14:
        w->wall_us = (int64_t)((uint64_t)(choice - 128) << 53);
        if ((choice & 3) != 0) w->wall_us = INT64_C(1718000000000000) + choice * INT64_C(60000000);
        break;
    case 15: {
        fb_verb verb = (fb_verb)(choice % 64);
        uint8_t bytes[96];
        fb_writer out = fb_writer_of(bytes, sizeof bytes);
        if ((choice & 64) != 0) fb_write_id(&out, w->space);
        fb_write_span(&out, take(r, fb_read_u8(r) % 64));
        ask(w, choice >> 7, verb, fb_writer_span(&out));
        break;
    }
    case 16:
        if (!fb_id_is_zero(w->space)) forge(w, what / 17 & 1, what / 34 % 2 != 0, choice, r);
        break;
    }
}

static uint64_t run(fb_span input)
{
    static moment fresh, met;
    if (fresh.pool == NULL) {
        make(from_peer, NULL);
        save(&fresh);
        restore(&fresh);
        introduce(&now);
        now.steps = 0;
        now.bounded = true;
        save(&met);
        fresh.world.bounded = true;
    }
    fb_reader r = fb_reader_of(input);
    restore((fb_read_u8(&r) & 1) != 0 ? &met : &fresh);
    while (fb_reader_left(&r) >= 2 && now.steps < STEPS_MAX) {
        uint8_t what = fb_read_u8(&r);
        act(&now, what, fb_read_u8(&r), &r);
    }
    return end_of_input(NODES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return run_input(run, data, size, 6, 2);
}
