/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing an area with a peer that answers, and asks, as it likes. Node 0 has records and is in
 * doubt about them, or is asked whether the peer holds the same; of node 1 there is nothing but
 * what the input says: answers to the call under way and calls of its own, made of arbitrary bytes
 * or of the tree, the records and the dots that node 0 has. Comparing only ever takes away, and
 * nothing where there is no doubt; what is stored stays readable; when the link is gone
 * nothing of a comparison is left; a second run of the same input is the same. */
#include "fuzz/step_alone.h"

#include "protocol/database/compare/compare.h"
#include "protocol/database/tree/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORDS 6u

/* What a FROM_PEER event says in a. */
enum { PIECE = 1, END, REQUEST, FRAME, DOUBT };

static uint64_t written; /* records written in this run */
static bool doubted;     /* and whether there was doubt */

static const fb_call *call_of(const fb_node *node, uint32_t link)
{
    for (uint32_t i = 0; i < node->rpc->own; i++) {
        const fb_call *call = &node->rpc->call[i];
        if (call->role == FB_SIDE_CALLER && call->link == link) return call;
    }
    return NULL;
}

/* Frames of the calls channel, as if the peer had sent them. */
static fb_status from_peer(fb_node *node, const fb_event *event)
{
    if (event->a == DOUBT) {
        doubted = true;
        fb_doubt(node, fb_area_find(node, area_of(node, now.space)->id), true);
        return FB_OK;
    }
    uint32_t link = open_link_of(node);
    if (link == FB_NONE) return FB_OK;
    uint8_t frame[8192];
    fb_writer w = fb_writer_of(frame, sizeof frame);
    const fb_call *call = call_of(node, link);
    if (event->a == PIECE || event->a == END) {
        if (call == NULL) return FB_OK;
        fb_write_u8(&w, event->a == PIECE ? FB_CALL_PIECE : FB_CALL_END);
        fb_write_u64(&w, call->number);
        fb_write_u32(&w, call->pieces);
        if (event->a == END) fb_write_u16(&w, (uint16_t)event->b);
    } else if (event->a == REQUEST) {
        fb_write_u8(&w, FB_CALL_REQUEST);
        fb_write_u64(&w, node->rpc->link[link].last_peer + 1);
        fb_write_u16(&w, (uint16_t)event->c);
        fb_write_u32(&w, 5000);
        fb_write_u64(&w, event->b);
    }
    fb_write_bytes(&w, event->bytes, event->len);
    FB_ASSERT(!w.failed);
    (void)node->channels[FB_CHANNEL_CALLS]->frame(node, link, fb_writer_span(&w));
    return FB_OK;
}

/* b: of an end its status, of a request its credit. Arguments of `verify` are an area alone; so are
 * those of `areas`, which is known by its credit. */
#define AREAS_CREDIT 4096u
static void peer(world *w, uint64_t what, uint64_t b, fb_span bytes)
{
    uint8_t *copy = copy_of(bytes);
    fb_event event = {
        .kind = FROM_PEER,
        .a = what,
        .b = b,
        .c = bytes.len != sizeof(fb_id) ? FB_METHOD_COMPARE
             : b == AREAS_CREDIT        ? FB_METHOD_AREAS
                                        : FB_METHOD_VERIFY,
        .len = (uint32_t)bytes.len,
        .bytes = copy,
    };
    step(w, 0, event);
    free(copy);
}

/* Time passes until node 0 asks. */
static void until_it_asks(world *w)
{
    const fb_node *node = w->machines[0].node;
    for (uint32_t i = 0; i < 16 && !node->database->compare->calling; i++) {
        uint64_t next = fb_node_deadline(node);
        if (next == FB_NEVER) return;
        if (next > w->mono_ns) {
            w->wall_us += (int64_t)((next - w->mono_ns) / 1000);
            w->mono_ns = next;
        }
        step(w, 0, (fb_event){.kind = FB_EV_TICK});
        go_on(w, 8);
    }
}

/* ---- Answers and calls ---- */

static bool own_record(const world *w, fb_id id, fb_record *out)
{
    uint8_t key[FB_RECORD_KEY_BYTES];
    const fb_area *area = area_of(w->machines[0].node, w->space);
    return fb_record_decode(stored_of(w, fb_key_record(key, area->local, id)), out) == FB_OK;
}

/* The items of the root, which so few records are all in, some with another fingerprint. */
static void write_items(const world *w, fb_writer *out, uint8_t other, uint8_t without)
{
    static fb_tree_node root;
    static const uint8_t nothing[16];
    uint8_t key[FB_TREE_KEY_BYTES];
    fb_tree_root info;
    const fb_area *area = area_of(w->machines[0].node, w->space);
    fb_span value = stored_of(w, fb_key_tree(key, area->local, 0, nothing));
    root.count = 0;
    if (fb_tree_decode(value, &root, &info) != FB_OK || root.kind != FB_TREE_BUCKET) root.count = 0;
    size_t count_at = out->at;
    uint8_t count = 0;
    fb_write_u8(out, 0);
    for (uint32_t i = 0; i < root.count; i++) {
        if ((without >> i % 8 & 1u) != 0) continue;
        uint8_t item[FB_TREE_ITEM_BYTES];
        memcpy(item, root.bytes + (size_t)i * FB_TREE_ITEM_BYTES, sizeof item);
        if ((other >> i % 8 & 1u) != 0) item[sizeof item - 1] ^= 1;
        fb_write_bytes(out, item, sizeof item);
        count++;
    }
    out->p[count_at] = count;
}

static void answer_nodes(world *w, uint8_t choice, fb_reader *r)
{
    const fb_compare *compare = w->machines[0].node->database->compare;
    uint8_t bytes[4096];
    fb_writer out = fb_writer_of(bytes, sizeof bytes);
    fb_write_u8(&out, choice & 1);
    uint32_t paths = compare->asked_count - compare->asked_at;
    if ((choice & 2) != 0) paths = 1 + (choice >> 2) % 4;
    for (uint32_t i = 0; i < paths && i < 12; i++) {
        uint8_t kind = fb_read_u8(r) % 4, a = fb_read_u8(r), b = fb_read_u8(r);
        fb_write_u8(&out, kind == 3 ? FB_TREE_BUCKET : kind);
        if (kind == FB_TREE_INNER) {
            for (uint32_t k = 0; k < FB_TREE_FAN; k++) {
                uint8_t child[16];
                memset(child, (a >> k % 8 & 1u) != 0 ? b : 0, sizeof child);
                fb_write_bytes(&out, child, sizeof child);
            }
        } else if (kind == FB_TREE_BUCKET) {
            write_items(w, &out, a, b);
        } else if (kind == 3) {
            fb_span items = take(r, (size_t)(a % 4) * FB_TREE_ITEM_BYTES);
            fb_write_u8(&out, b < 250 ? (uint8_t)(items.len / FB_TREE_ITEM_BYTES) : b);
            fb_write_span(&out, items);
        }
    }
    if (!out.failed) peer(w, PIECE, 0, fb_writer_span(&out));
}

static void answer_record(world *w, uint8_t choice, fb_reader *r)
{
    const fb_compare *compare = w->machines[0].node->database->compare;
    uint8_t bytes[8192];
    fb_writer out = fb_writer_of(bytes, sizeof bytes);
    uint8_t covered = fb_read_u8(r);
    for (uint32_t i = 0; i < (compare->dot_count + 7) / 8; i++) fb_write_u8(&out, covered);
    fb_record record;
    fb_id asked = record_of(1);
    if (compare->record_at < compare->record_count) asked = compare->records[compare->record_at];
    if ((choice & 12) == 12) asked = record_of(choice >> 4 & 7);
    bool known = own_record(w, asked, &record);
    if ((choice & 3) == 0 || !known) {
        fb_write_span16(&out, (fb_span){NULL, 0});
    } else if ((choice & 3) == 3) {
        fb_write_span16(&out, take(r, 64));
    } else {
        size_t at = out.at + 2;
        fb_write_span16(&out, record.state);
        if ((choice & 3) == 2 && !out.failed) {
            uint8_t place = fb_read_u8(r);
            bytes[at + record.state.len * place / 256] ^= fb_read_u8(r);
        }
    }
    if (!out.failed) peer(w, PIECE, 0, fb_writer_span(&out));
}

static void ask_nodes(world *w, uint8_t choice, fb_reader *r, fb_writer *out)
{
    const fb_area *area = area_of(w->machines[0].node, w->space);
    uint8_t root[16];
    memcpy(root, area->root, sizeof root);
    if ((choice & 2) != 0) root[0] ^= 1;
    fb_write_u8(out, FB_COMPARE_NODES);
    fb_write_bytes(out, root, sizeof root);
    uint8_t count = choice >> 2 & 31;
    fb_write_u8(out, count);
    for (uint8_t i = 0; i < count; i++) {
        fb_path path = {.depth = fb_read_u8(r) % FB_TREE_DEPTH_MAX};
        if (i == 0) path.depth = 0;
        fb_tree_key(record_of(i % 8), path.key);
        if (path.depth % 2 != 0) path.key[path.depth / 2] &= 0xf0;
        fb_path_write(out, &path);
    }
}

static void ask_records(world *w, uint8_t choice, fb_reader *r, fb_writer *out)
{
    fb_write_u8(out, FB_COMPARE_RECORDS);
    uint8_t count = choice >> 2 & 7;
    fb_write_u8(out, count);
    for (uint8_t i = 0; i < count; i++) {
        fb_id id = record_of(fb_read_u8(r) % 8);
        fb_record record;
        uint32_t dots = own_record(w, id, &record) ? record.existence_count : 0;
        fb_write_id(out, id);
        fb_write_u8(out, (uint8_t)(dots + 1));
        for (uint32_t k = 0; k < dots; k++) {
            fb_write_bytes(out, record.existence + (size_t)k * FB_EXISTENCE_BYTES, FB_DOT_BYTES);
        }
        uint64_t life = w->machines[0].incarnation;
        fb_write_dot(out, (fb_dot){fb_node_self(w->machines[i & 1].node), life, fb_read_u8(r)});
    }
}

static void call(world *w, uint8_t choice, bool built, fb_reader *r)
{
    uint8_t bytes[4096];
    fb_writer out = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&out, area_of(w->machines[0].node, w->space)->id);
    if (!built) {
        fb_write_span(&out, take(r, choice & 63));
        if ((choice & 64) != 0) bytes[15] ^= 1;
    } else if ((choice & 1) != 0) {
        ask_nodes(w, choice, r, &out);
    } else {
        ask_records(w, choice, r, &out);
    }
    if (!out.failed) peer(w, REQUEST, (choice & 128) != 0 ? 8192 : 1u << 20, fb_writer_span(&out));
}

/* A client asks whether node 1 holds the same, or which collections it has. */
static void ask_whether_same(world *w, uint8_t choice)
{
    uint8_t bytes[128];
    fb_writer out = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&out, w->space);
    if ((choice & 4) != 0) {
        fb_write_id(&out, fb_node_self(w->machines[1].node));
        fb_write_id(&out, (fb_id){{0}});
        ask(w, 0, FB_VERB_PEER_AREAS, fb_writer_span(&out));
        return;
    }
    fb_write_u8(&out, FB_AREA_COLLECTION);
    fb_write_span16(&out, fb_span_text((choice & 1) != 0 ? "tasks" : "notes"));
    fb_write_id(&out, fb_node_self(w->machines[(choice & 2) != 0 ? 0 : 1].node));
    ask(w, 0, FB_VERB_RECORD_VERIFY, fb_writer_span(&out));
}

/* Node 1 says what it holds, or asks it. */
static void verify(world *w, uint8_t choice)
{
    uint8_t bytes[40];
    fb_writer out = fb_writer_of(bytes, sizeof bytes);
    fb_node *node = w->machines[0].node;
    const fb_area *area = area_of(node, w->space);
    if ((choice & 1) != 0) {
        fb_id id = area->id;
        id.b[15] ^= choice >> 7;
        fb_write_id(&out, id);
        uint64_t credit = (choice & 2) != 0 ? 8 : 8192;
        peer(w, REQUEST, (choice & 4) != 0 ? AREAS_CREDIT : credit, fb_writer_span(&out));
        return;
    }
    if ((choice & 32) != 0) {
        /* One collection, with something of it wrong. */
        fb_write_u16(&out, choice >> 1 & 3);
        fb_write_id(&out, area->id);
        fb_write_u8(&out, (choice & 8) != 0 ? FB_AREA_SPACE : FB_AREA_COLLECTION);
        fb_write_span16(&out, fb_span_text((choice & 16) != 0 ? "tasks" : "notes"));
        peer(w, PIECE, 0, fb_writer_span(&out));
        return;
    }
    fb_write_u8(&out, choice >> 1 & 1);
    fb_write_bytes(&out, fb_area_digest(node, fb_area_find(node, area->id)), 16);
    fb_write_bytes(&out, area->root, 16);
    bytes[1] ^= choice >> 2 & 1;
    bytes[17] ^= choice >> 3 & 1;
    if ((choice & 16) != 0) fb_write_u8(&out, 0);
    peer(w, PIECE, 0, fb_writer_span(&out));
}

static void act(world *w, uint8_t what, uint8_t choice, fb_reader *r)
{
    switch (what % 12) {
    case 0:
        peer(w, PIECE, 0, take(r, choice));
        break;
    case 1:
    case 2:
        answer_nodes(w, choice, r);
        break;
    case 3:
        answer_record(w, choice, r);
        break;
    case 4:
        peer(w, END, (choice & 1) != 0 ? (uint64_t)choice >> 1 : FB_OK, (fb_span){NULL, 0});
        break;
    case 5:
    case 6:
        call(w, choice, what % 12 == 6, r);
        break;
    case 7:
        peer(w, FRAME, 0, take(r, choice % 32));
        break;
    case 8:
        go_on(w, choice % 16);
        if ((choice & 64) != 0) until_it_asks(w);
        break;
    case 9:
        if ((choice & 1) != 0) {
            peer(w, DOUBT, 0, (fb_span){NULL, 0});
        } else {
            put(w, 0, choice >> 1 & 15, (choice & 32) != 0 ? "a" : "c", "\"later\"");
            written++;
        }
        break;
    case 10:
        ask_whether_same(w, choice);
        break;
    case 11:
        verify(w, choice);
        break;
    }
}

/* ---- A run ---- */

static void begin(void)
{
    make(from_peer, NULL);
    introduce(&now);
    for (uint8_t n = 1; n <= RECORDS; n++) {
        put(&now, n & 1, n, "a", "\"one\"");
        pass(&now, UINT64_C(1000000000));
        put(&now, 0, n, (n & 2) != 0 ? "a" : "b", "2");
    }
    pass(&now, UINT64_C(20000000000));
    FB_ASSERT(area_of(now.machines[0].node, now.space)->root_info.items == RECORDS);
    now.steps = 0;
    now.bounded = true;
}

static void close_links(world *w)
{
    for (uint32_t k = 0; k < LINKS_MAX; k++) close_end(w, &w->wires[k], 0, FB_ERR_LINK_CLOSED);
    go_on(w, QUEUE_MAX);
}

static uint64_t records_hash(const world *w)
{
    const fb_area *area = area_of(w->machines[0].node, w->space);
    uint64_t hash = 0;
    for (uint8_t n = 0; n < 16; n++) {
        uint8_t key[FB_RECORD_KEY_BYTES];
        fb_span value = stored_of(w, fb_key_record(key, area->local, record_of(n)));
        if (value.len != 0) hash = fb_xxh64(value.p, value.len, hash + n);
    }
    return hash;
}

static void require_all_is_well(const world *w)
{
    const fb_node *node = w->machines[0].node;
    const fb_area *area = area_of(node, w->space);
    FB_ASSERT(!node->database->compare->used);
    for (uint32_t i = 0; i < FB_VERIFIES_MAX; i++) FB_ASSERT(!node->database->verifies[i].used);
    for (uint32_t i = 0; i < FB_COMPARES_SERVED; i++) {
        FB_ASSERT(!node->database->compare_serves[i].used);
    }
    FB_ASSERT(area->root_info.items <= RECORDS + written);
    for (uint8_t n = 0; n < 16; n++) {
        uint8_t key[FB_RECORD_KEY_BYTES];
        fb_span value = stored_of(w, fb_key_record(key, area->local, record_of(n)));
        fb_record record;
        FB_ASSERT(value.len == 0 || fb_record_decode(value, &record) == FB_OK);
    }
}

static uint64_t run(fb_span input)
{
    static moment met;
    restore_or_begin(&met, begin);
    written = 0;
    doubted = false;
    uint64_t records = records_hash(&now);
    fb_reader r = fb_reader_of(input);
    uint8_t head = fb_read_u8(&r);
    if ((head & 1) != 0) {
        peer(&now, DOUBT, 0, (fb_span){NULL, 0});
        until_it_asks(&now);
    }
    while (fb_reader_left(&r) >= 2 && now.steps < STEPS_MAX) {
        uint8_t what = fb_read_u8(&r);
        act(&now, what, fb_read_u8(&r), &r);
        if ((head & 8) == 0) go_on(&now, 16);
    }
    close_links(&now);
    require_all_is_well(&now);
    FB_ASSERT(doubted || written != 0 || records_hash(&now) == records);
    return end_of_input(1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return run_input(run, data, size, 6, 2);
}
