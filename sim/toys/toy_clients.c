/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's director and its clients ask of the toy node. */
#include "sim/toys/toy_inside.h"

#include "protocol/core/request.h"

#define AT_ONCE     40u /* the director asks for each record at the end of a round */
#define LEASE_NS    UINT64_C(8000000000)
#define LONG_ENOUGH 80u /* for a write to have a value in it: every value is another one */

static const fb_id space = {{1, 0x9f, 0, 0, 0, 1, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1}};
const fb_id fb_toy_area = {{1, 0x9f, 0, 0, 0, 2, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 2}};

static void areas(fb_node *node, uint64_t request)
{
    uint8_t bytes[64];
    uint64_t sum[2] = {0, 0};
    for (uint32_t i = 0; i < RECORDS; i++) {
        uint8_t raw[64];
        fb_writer e = fb_writer_of(raw, sizeof raw);
        fb_toy_entry_write(&e, &node->entries[i]);
        sum[0] += fb_xxh64(raw, e.at, i);
    }
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u16(&w, 1);
    fb_write_id(&w, fb_toy_area);
    fb_write_u8(&w, 1);
    fb_write_u16(&w, 0);
    fb_write_u64(&w, sum[0]);
    fb_write_u64(&w, sum[1]);
    fb_write_u32(&w, 0);
    fb_toy_reply(node, request, FB_OK, bytes, w.at);
}

/* Changes with every write. */
static void etag_of(const fb_toy_entry *e, uint8_t out[16])
{
    uint8_t raw[64];
    fb_writer w = fb_writer_of(raw, sizeof raw);
    fb_toy_entry_write(&w, e);
    fb_hash128 hash = fb_xxh128(raw, w.at, 0);
    memcpy(out, &hash, 16);
}

/* What a node must not take for granted of its clients. True: this one gets no answer. */
static bool trusts_clients(fb_node *node, const fb_event *ev)
{
    bool over = node->asked_ns != 0 && node->mono_ns - node->asked_ns > LEASE_NS;
    if (over && fb_toy_defect_now == FB_TOY_LEASE_RUNS_OUT) node->mute = true;
    node->asked = node->asked_ns == node->mono_ns ? node->asked + 1 : 1;
    node->asked_ns = node->mono_ns;
    if (fb_toy_defect_now == FB_TOY_ONE_AT_A_TIME && node->asked > AT_ONCE) node->mute = true;
    if (ev->b != FB_VERB_RECORD_PUT) return false;
    if (fb_toy_defect_now == FB_TOY_SIGNED_LENGTH) return (int16_t)ev->len < 0;
    uint64_t hash = fb_xxh64(ev->bytes, ev->len, 0);
    bool again = hash == node->last_asked && ev->len > LONG_ENOUGH;
    node->last_asked = hash;
    return again && fb_toy_defect_now == FB_TOY_ASKED_ALREADY;
}

static void put(fb_node *node, uint64_t request, fb_span arguments)
{
    fb_reader r = fb_reader_of(arguments);
    fb_read_id(&r);
    fb_read_u8(&r);
    fb_read_span16(&r);
    fb_id record = fb_read_id(&r);
    fb_read_u8(&r);
    bool conditional = fb_read_u8(&r) != 0;
    fb_id wanted = fb_read_id(&r);
    if (r.failed || node->reply_count == 16) {
        fb_toy_reply(node, request, FB_ERR_BUSY, NULL, 0);
        return;
    }
    uint32_t i = record.b[5] % RECORDS;
    node->in_a_row = i == node->last_record ? node->in_a_row + 1 : 1;
    node->last_record = i;
    if (fb_toy_defect_now == FB_TOY_EIGHT_IN_A_ROW && node->in_a_row == 8) node->mute = true;
    uint8_t etag[16];
    etag_of(&node->entries[i], etag);
    if (conditional && fb_toy_defect_now != FB_TOY_LAST_WORD &&
        memcmp(etag, wanted.b, sizeof etag) != 0) {
        fb_toy_reply(node, request, FB_ERR_CONFLICT, NULL, 0);
        return;
    }
    fb_toy_entry e = {node->entries[i].counter + 1, record, node->self, node->incarnation,
                      ++node->seq};
    if (fb_toy_defect_now == FB_TOY_FORGETS_COUNTER) e.counter = (uint64_t)node->wall_us;
    fb_toy_observe_change(node, FB_FACT_WRITTEN, request, &e);
    if (!fb_toy_take(node, i, &e)) {
        /* Its own clock went back: the write is lost. */
        fb_toy_effect(node, FB_FX_OBSERVE, FB_FACT_SEALED, 0, 0, NULL, 0);
    }
    if (fb_toy_defect_now == FB_TOY_REPLIES_EARLY) {
        fb_toy_reply(node, request, FB_OK, NULL, 0);
    } else {
        if (fb_toy_defect_now == FB_TOY_ONE_FOR_EACH && node->reply_count == 2) node->reply_count--;
        waiting_reply *waiting = &node->replies[node->reply_count++];
        *waiting = (waiting_reply){request, node->w + 1, {0}};
        memcpy(waiting->answer, record.b, 16);
        etag_of(&node->entries[i], waiting->answer + 17);
    }
}

void fb_toy_request(fb_node *node, const fb_event *ev)
{
    static const uint8_t invite[3] = {0, 1, 'x'};
    if (trusts_clients(node, ev)) return;
    fb_span arguments = fb_span_of(ev->bytes, ev->len);
    fb_reader r = fb_reader_of(arguments);
    switch (ev->b) {
    case FB_VERB_SPACE_CREATE:
        fb_toy_reply(node, ev->a, FB_OK, space.b, 16);
        return;
    case FB_VERB_SPACE_INVITE:
        fb_toy_reply(node, ev->a, FB_OK, invite, sizeof invite);
        return;
    case FB_VERB_SPACE_JOIN:
    case FB_VERB_SPACE_APPROVE:
        fb_toy_reply(node, ev->a, FB_OK, NULL, 0);
        return;
    case FB_VERB_PEER_ADD: {
        fb_read_id(&r);
        fb_span address = fb_read_span16(&r);
        toy_peer *peer = &node->peers[node->peer_count];
        if (r.failed || node->peer_count == PEERS || address.len >= sizeof peer->address) break;
        node->peer_count++;
        memcpy(peer->address, address.p, address.len);
        peer->address_len = (uint32_t)address.len;
        fb_toy_reply(node, ev->a, FB_OK, NULL, 0);
        return;
    }
    case FB_VERB_AREAS:
        areas(node, ev->a);
        return;
    case FB_VERB_RECORD_PUT:
        if (ev->c != 0) {
            fb_toy_reply(node, ev->a, FB_ERR_NOT_AUTHORISED, NULL, 0);
        } else {
            put(node, ev->a, arguments);
        }
        return;
    default:
        break;
    }
    fb_toy_reply(node, ev->a, FB_ERR_UNSUPPORTED, NULL, 0);
}
