/* SPDX-License-Identifier: Apache-2.0 */
/* Two link planes whose connection is in the input's hands: it cuts, drops, inserts and corrupts
 * the bytes between them, speaks through the ciphers of either end once they are there, brings
 * frames on an external carrier, and lets time pass. Preamble, handshake, binding, records, control
 * frames.
 *
 * Properties: no frame reaches a plane on a link that is not open; links that are told up and down
 * match; the tables of the plane agree with each other; at the end no buffer is lost. */
#include <stddef.h>
#include <stdint.h>

#define WORLD_FAST
#define WORLD_NODES 2u
#include "fuzz/link_world.h"
#include "protocol/link/external.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) abort();
}

static void check_node(const world_node *n)
{
    const fb_links *links = n->node.links;
    uint32_t open = 0, parts = 0, used = 0, paused = 0;
    for (uint32_t i = 0; i < links->capacity; i++) {
        const fb_link *link = &links->table[i];
        for (uint32_t c = 0; c < FB_CHANNELS; c++) {
            if (link->parts[c].buffer != NULL) parts++;
            require(link->parts[c].used <= FB_FRAME_BYTES_MAX);
        }
        require(link->in_used <= FB_RECORD_WIRE_MAX);
        if (link->info.state == FB_LINK_FREE) continue;
        require(i < links->high);
        require(fb_links_find(&n->node, link->info.number) == i);
        used++;
        if (link->paused) paused++;
        if (link->info.state != FB_LINK_OPEN) continue;
        require(link->up && link->local_ok && link->peer_ok);
        open++;
        uint32_t chosen = fb_link_to(&n->node, 0, link->info.member);
        require(chosen != FB_NONE && links->table[chosen].info.state == FB_LINK_OPEN);
    }
    uint32_t indexed = 0;
    for (uint32_t b = 0; b <= links->index_mask; b++) indexed += links->index[b] != 0;
    require(indexed == used);
    require(paused == links->paused);
    require(n->ups - n->downs == open);
    require(links->frames_free_count + parts == n->node.options.sizes.frames);
    require(links->ended == 0);
}

typedef struct input {
    const uint8_t *p;
    size_t len;
} input;

static uint8_t next(input *in)
{
    if (in->len == 0) return 0;
    in->len--;
    return *in->p++;
}

static fb_span some(input *in)
{
    size_t len = next(in);
    if (len > in->len) len = in->len;
    fb_span s = fb_span_of(in->p, len);
    in->p += len;
    in->len -= len;
    return s;
}

static world_conn *pick_conn(world *w, uint8_t which)
{
    for (uint32_t n = 0; n < 4; n++) {
        world_conn *conn = &w->conns[(which + n) % 4];
        if (conn->used) return conn;
    }
    return NULL;
}

static void deliver(world *w, world_conn *conn, uint32_t e, size_t most)
{
    if (conn == NULL || !conn->end[e].open || conn->end[e].queue == NULL) return;
    if (conn->external || most == 255) {
        world_deliver_bytes(w, conn, e);
        return;
    }
    world_end *end = &conn->end[e];
    size_t kept = end->used > most ? end->used - most : 0;
    uint8_t *rest = malloc(kept + 1);
    require(rest != NULL);
    memcpy(rest, end->queue + end->used - kept, kept);
    end->used -= kept;
    size_t before = end->written;
    world_deliver_bytes(w, conn, e);
    if (conn->used && end->open && end->queue != NULL && end->written == before &&
        end->used + kept <= WORLD_QUEUE) {
        memcpy(end->queue + end->used, rest, kept);
        end->used += kept;
    }
    free(rest);
}

static void insert(world_conn *conn, uint32_t e, fb_span bytes)
{
    if (conn == NULL || conn->external || !conn->end[e].open) return;
    world_end *end = &conn->end[e];
    if (end->used + bytes.len > WORLD_QUEUE) return;
    if (bytes.len != 0) memcpy(end->queue + end->used, bytes.p, bytes.len);
    end->used += bytes.len;
}

/* A transport message of the sender's, whatever its plaintext. */
static void speak(world *w, world_conn *conn, uint32_t e, fb_span plain)
{
    if (conn == NULL || conn->external || !conn->end[1 - e].open) return;
    world_end *from = &conn->end[1 - e];
    uint32_t index = fb_links_find(&w->nodes[from->node].node, from->link);
    if (index == FB_NONE) return;
    fb_link *link = fb_links_get(&w->nodes[from->node].node, index);
    if (link->step < FB_STEP_BINDING) return;
    uint8_t wire[300];
    if (plain.len != 0) memcpy(wire + FB_RECORD_LENGTH, plain.p, plain.len);
    const fb_provider *provider = w->nodes[from->node].node.options.provider;
    require(fb_transport_seal(&link->send, provider, wire, plain.len) == FB_OK);
    insert(conn, e, fb_span_of(wire, plain.len + FB_RECORD_OVERHEAD));
}

static void carry(world *w, world_conn *conn, uint32_t e, uint8_t how, fb_span bytes)
{
    if (conn == NULL || !conn->external || !conn->end[e].open) return;
    world_end *to = &conn->end[e];
    uint8_t frame[300];
    size_t len = 0;
    fb_node *peer = &w->nodes[conn->end[1 - e].node].node;
    uint32_t index = fb_links_find(peer, conn->end[1 - e].link);
    if ((how & 3) != 3 && index != FB_NONE) {
        const fb_link *link = fb_links_get(peer, index);
        const fb_external_frame head = {(fb_channel_id)(how & 3),
                                        (how & 4) != 0 && link->next_own != 0 ? link->next_own
                                                                              : link->info.session,
                                        (how & 8) != 0   ? 0
                                        : (how & 4) != 0 ? link->next_peer
                                                         : link->peer_session,
                                        how >> 4,
                                        {NULL, 0}};
        fb_external_write_head(frame, &head);
        len = FB_EXTERNAL_HEAD;
    }
    if (bytes.len != 0) memcpy(frame + len, bytes.p, bytes.len);
    world_event(w, to->node,
                (fb_event){.kind = FB_EV_CARRIER_FRAME,
                           .a = to->link,
                           .len = (uint32_t)(len + bytes.len),
                           .bytes = frame});
}

static void admit(world *w, uint32_t i, uint8_t how)
{
    fb_effects fx;
    world_begin(w, i, &fx);
    uint32_t link = how % WORLD_LINKS;
    if (fb_link_at(&w->nodes[i].node, link)->state != FB_LINK_FREE) {
        if ((how & 0x40) != 0) {
            (void)fb_link_keep_pending(&w->nodes[i].node, link);
        } else if ((how & 0x80) != 0) {
            fb_link_close(&w->nodes[i].node, link, FB_ERR_REVOKED);
        } else if (!fb_id_equal(fb_link_at(&w->nodes[i].node, link)->peer, w->nodes[i].node.self)) {
            fb_link_approved(&w->nodes[i].node, link, 1 - i);
        }
    }
    world_finish(w, i, &fx);
}

static void say(world *w, uint32_t i, uint8_t how)
{
    static const uint8_t text[FB_FRAME_BYTES_MAX];
    fb_channel_id channel = (how & 1) != 0 ? FB_CHANNEL_MESSAGING : FB_CHANNEL_CALLS;
    uint32_t link = fb_link_to(&w->nodes[i].node, 0, 1 - i);
    if (link == FB_NONE || w->nodes[i].out[link][channel].count > 3) return;
    world_say(w, i, link, channel, text, (size_t)how * 250);
    world_event(w, i, (fb_event){.kind = FB_EV_TICK});
}

static void act(world *w, input *in)
{
    uint8_t op = next(in), which = next(in);
    uint32_t e = which & 1;
    world_conn *conn = pick_conn(w, which >> 1 & 3);
    switch (op % 14) {
    case 0:
        deliver(w, conn, e, next(in));
        break;
    case 1:
        world_settle(w);
        break;
    case 2:
        if (conn != NULL && conn->end[e].used > 4) {
            /* Of a carrier: within the first frame, behind the queue's own length. */
            world_end *end = &conn->end[e];
            size_t first = conn->external ? 4 : 0;
            size_t len = conn->external ? (size_t)end->queue[2] << 8 | end->queue[3] : end->used;
            if (len != 0) end->queue[first + next(in) % len] ^= next(in);
        }
        break;
    case 3: {
        size_t n = next(in);
        if (conn != NULL && !conn->external && n <= conn->end[e].used)
            world_take_out(&conn->end[e], n);
        break;
    }
    case 4:
        insert(conn, e, some(in));
        break;
    case 5:
        speak(w, conn, e, some(in));
        break;
    case 6: {
        uint8_t how = next(in);
        carry(w, conn, e, how, some(in));
        break;
    }
    case 7:
        w->hold = false;
        world_run(w, (uint64_t)next(in) * 100 * WORLD_MS);
        break;
    case 8:
        say(w, e, next(in));
        break;
    case 9:
        if (conn != NULL) world_end_conn(w, conn);
        break;
    case 10:
        w->nodes[e].answer = (which & 2) != 0 ? FB_ERR_BUSY : FB_OK;
        break;
    case 11:
        admit(w, e, next(in));
        break;
    case 12: {
        fb_effects fx;
        world_begin(w, e, &fx);
        fb_link_plane.durable(&w->nodes[e].node);
        world_finish(w, e, &fx);
        break;
    }
    default:
        w->nodes[e].answer = (which & 2) != 0 ? FB_ERR_MALFORMED : FB_OK;
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    world *w = world_again();
    uint8_t setting = next(&in);
    for (uint32_t i = 0; i < 2; i++) {
        if ((setting >> i & 1) != 0) w->nodes[i].judge[1 - i] = FB_MEMBER_PENDING;
        if ((setting >> (2 + i) & 1) != 0) w->nodes[i].judge[1 - i] = FB_MEMBER_REVOKED;
    }
    w->segment = (setting & 0x10) != 0 ? 61 : 0;
    w->cut[0][1] = (setting & 0x20) != 0;
    world_book(w, 0, "n1", (fb_id){{0}});
    if ((setting & 0x40) != 0) world_book(w, 1, "n0", (fb_id){{0}});
    if ((setting & 0x80) != 0) world_carrier(w, 0, 1);
    for (uint32_t steps = 0; in.len != 0 && steps < 100; steps++) {
        act(w, &in);
        for (uint32_t i = 0; i < 2; i++) check_node(&w->nodes[i]);
        for (uint32_t i = 0; i < 2; i++) {
            if ((setting & 0x0f) == 0) continue;
            bool outside = world_count(w, i, FB_LINK_OPEN) == 0 && w->nodes[i].ups == 0;
            for (uint32_t f = 0; outside && f < w->nodes[i].frame_count; f++) {
                require(w->nodes[i].frames[f].channel == FB_CHANNEL_CONTROL);
            }
        }
    }
    for (uint32_t c = 0; c < WORLD_CONNS; c++) {
        if (w->conns[c].used) world_end_conn(w, &w->conns[c]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        check_node(&w->nodes[i]);
        require(w->nodes[i].node.links->frames_free_count == w->nodes[i].node.options.sizes.frames);
    }
    world_clear(w);
    return 0;
}
