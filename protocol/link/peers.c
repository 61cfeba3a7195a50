/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's part of the address book: PEER_ADD, PEER_FORGET, PEER_LIST, and what of it is in
 * the store.
 *
 * Key: FB_TAG_ADDRESS, u32 local number of the space, the address. Value: u8 version. */
#include "protocol/link/state.h"
#include "protocol/store/keys.h"
#include "protocol/store/ops.h"

#define VALUE_VERSION 1u
#define KEY_BYTES_MAX (1u + 4u + FB_ADDRESS_BYTES_MAX)
#define WRITE_BYTES   512u
#define LOAD_ITEMS    64u

static fb_span key_of(fb_node *node, uint32_t space, fb_span text, uint8_t out[KEY_BYTES_MAX])
{
    fb_writer w = fb_writer_of(out, KEY_BYTES_MAX);
    fb_write_u8(&w, FB_TAG_ADDRESS);
    fb_write_u32(&w, fb_space_local(node, space));
    fb_write_span(&w, text);
    FB_ASSERT(!w.failed);
    return fb_writer_span(&w);
}

static uint32_t space_of_local(const fb_node *node, uint32_t local)
{
    for (uint32_t i = 0; i < fb_space_capacity(node); i++) {
        if (fb_space_exists(node, i) && fb_space_local(node, i) == local) return i;
    }
    return FB_NONE;
}

/* after: the last key seen, or the tag alone to begin with. */
static void load_from(fb_node *node, fb_span after);

static void loaded_some(fb_node *node, fb_op *op)
{
    if (fb_op_status(op) != FB_OK) {
        fb_incarnation_end(node, fb_op_status(op));
        return;
    }
    uint32_t count = fb_op_range_count(node, op, 0);
    for (uint32_t i = 0; i < count; i++) {
        fb_read_entry entry = fb_op_range_entry(node, op, 0, i);
        fb_reader key = fb_reader_of(entry.key);
        fb_reader value = fb_reader_of(entry.value);
        (void)fb_read_u8(&key);
        uint32_t space = space_of_local(node, fb_read_u32(&key));
        fb_span text = fb_read_bytes(&key, fb_reader_left(&key));
        uint8_t version = fb_read_u8(&value);
        if (key.failed || value.failed || version != VALUE_VERSION) {
            fb_incarnation_end(node, version > VALUE_VERSION ? FB_ERR_VERSION_NEWER
                                                             : FB_ERR_STORE_DAMAGED);
            return;
        }
        if (space == FB_NONE) continue; /* the space was left */
        if (fb_link_dial(node, space, text, (fb_id){{0}}) == FB_OK) {
            fb_dial_mark_stored(node, space, text);
        }
    }
    if (fb_op_range_whole(node, op, 0)) {
        fb_plane_loaded(node);
    } else {
        load_from(node, fb_op_range_next(node, op, 0));
    }
}

static void load_from(fb_node *node, fb_span after)
{
    static const uint8_t end[1] = {FB_TAG_ADDRESS + 1};
    uint8_t from[FB_KEY_BYTES_MAX + 1] = {0};
    FB_ASSERT(after.len <= FB_KEY_BYTES_MAX);
    memcpy(from, after.p, after.len);
    size_t len = after.len + 1; /* the next key after it ends in a zero byte */
    fb_op *op = fb_op_begin(node, FB_OP_READER, loaded_some, 0, 0);
    if (op == NULL || !fb_op_read_range(op, fb_span_of(from, len), fb_span_of(end, sizeof end), 1,
                                        LOAD_ITEMS, LOAD_ITEMS * 64, false)) {
        fb_incarnation_end(node, FB_ERR_BUSY);
        return;
    }
    fb_op_issue(node, op);
}

void fb_peers_load(fb_node *node)
{
    static const uint8_t begin[1] = {FB_TAG_ADDRESS};
    load_from(node, fb_span_of(begin, sizeof begin));
}

/* What waits for its turn in the set being built. */
typedef struct pending_write {
    uint32_t request;
    uint32_t space;
    uint32_t len;
    bool forget;
    uint8_t text[FB_ADDRESS_BYTES_MAX];
} pending_write;

_Static_assert(sizeof(pending_write) <= FB_OP_CONTEXT_BYTES, "kept in the operation");

static void write_address(fb_node *node, fb_op *op)
{
    const pending_write *p = fb_op_context(op);
    fb_span text = fb_span_of(p->text, p->len);
    uint8_t key[KEY_BYTES_MAX];
    static const uint8_t value[1] = {VALUE_VERSION};
    fb_status status = fb_op_status(op);
    if (status == FB_OK && !fb_space_exists(node, p->space)) status = FB_ERR_NOT_FOUND;
    if (status == FB_OK && !p->forget) status = fb_link_dial(node, p->space, text, (fb_id){{0}});
    uint32_t link = FB_NONE;
    if (status == FB_OK && p->forget && !fb_dial_remove(node, p->space, text, &link)) {
        status = FB_ERR_NOT_FOUND;
    }
    if (status != FB_OK) {
        fb_reply(node, p->request, status, (fb_span){NULL, 0});
        return;
    }
    fb_span k = key_of(node, p->space, text, key);
    if (p->forget) {
        /* Who forgets an address does not want what was made through it either. */
        if (link != FB_NONE) fb_link_close(node, link, FB_ERR_LINK_CLOSED);
        fb_delete(node, k);
    } else {
        fb_dial_mark_stored(node, p->space, text);
        fb_put(node, k, fb_span_of(value, sizeof value));
    }
    fb_reply_held(node, p->request, FB_OK, fb_w_building(node), (fb_span){NULL, 0});
}

static void change(fb_node *node, fb_request request, fb_span arguments, bool forget)
{
    fb_reader in = fb_reader_of(arguments);
    fb_id id = fb_read_id(&in);
    fb_span text = fb_read_span16(&in);
    fb_status status = FB_OK;
    uint32_t space = FB_NONE;
    if (request.principal != 0) {
        status = FB_ERR_NOT_AUTHORISED;
    } else if (!fb_reader_done(&in) || text.len == 0) {
        status = FB_ERR_REQUEST_MALFORMED;
    } else if (text.len > FB_ADDRESS_BYTES_MAX) {
        status = FB_ERR_LIMIT;
    } else if ((space = fb_space_find(node, id)) == FB_NONE) {
        status = FB_ERR_NOT_FOUND;
    }
    fb_op *op = NULL;
    if (status == FB_OK) {
        op = fb_op_begin(node, FB_OP_WRITER, write_address, WRITE_BYTES, 1);
        if (op == NULL) status = FB_ERR_BUSY;
    }
    if (status != FB_OK) {
        fb_reply(node, request.index, status, (fb_span){NULL, 0});
        return;
    }
    pending_write *p = fb_op_context(op);
    p->request = request.index;
    p->space = space;
    p->forget = forget;
    p->len = (uint32_t)text.len;
    memcpy(p->text, text.p, text.len);
    fb_op_issue(node, op);
}

static void peer_add(fb_node *node, fb_request request, fb_span arguments)
{
    change(node, request, arguments, false);
}

static void peer_forget(fb_node *node, fb_request request, fb_span arguments)
{
    change(node, request, arguments, true);
}

typedef enum peer_state {
    PEER_IDLE,
    PEER_DIALLING,
    PEER_HANDSHAKE,
    PEER_PENDING,
    PEER_OPEN,
} peer_state;

static peer_state state_of(const fb_link *link)
{
    switch (link->info.state) {
    case FB_LINK_OPENING:
        return PEER_HANDSHAKE;
    case FB_LINK_PENDING:
        return PEER_PENDING;
    case FB_LINK_OPEN:
        return PEER_OPEN;
    default:
        return PEER_IDLE;
    }
}

/* One line of PEER_LIST: an address, its link, or both. */
static void write_peer(const fb_node *node, fb_writer *w, const fb_address *address,
                       const fb_link *link)
{
    fb_id peer = {{0}};
    peer_state state = PEER_IDLE;
    fb_error last = FB_OK;
    fb_span text = {NULL, 0};
    if (address != NULL) {
        peer = fb_id_is_zero(address->known) ? address->expected : address->known;
        text = fb_span_of(address->text, address->len);
        last = address->last;
        if (address->dial != 0) state = PEER_DIALLING;
    }
    if (link != NULL) {
        if (!fb_id_is_zero(link->info.peer)) peer = link->info.peer;
        state = state_of(link);
    }
    fb_write_id(w, fb_space_id(node, address != NULL ? address->space : link->info.space));
    fb_write_id(w, peer);
    fb_write_span16(w, text);
    fb_write_u8(w, (uint8_t)state);
    fb_write_u32(w, (uint32_t)last);
    fb_write_u64(w, link != NULL ? (uint64_t)link->info.clock_offset_us : 0);
    fb_write_u64(w, link != NULL ? link->info.heard_ns : 0);
    fb_write_u64(w, link != NULL ? link->info.number : 0);
}

/* The link that stands for an address: the one it led to, or the one its peer dialled. */
static const fb_link *link_of(const fb_node *node, const fb_address *address)
{
    const fb_links *links = node->links;
    if (address->link != FB_NONE) return &links->table[address->link];
    fb_id peer = fb_id_is_zero(address->known) ? address->expected : address->known;
    for (uint32_t i = 0; i < links->high && !fb_id_is_zero(peer); i++) {
        const fb_link *link = &links->table[i];
        if (link->info.state == FB_LINK_OPEN && link->info.space == address->space &&
            fb_id_equal(link->info.peer, peer)) {
            return link;
        }
    }
    return NULL;
}

static bool has_address(const fb_node *node, const fb_link *link)
{
    const fb_links *links = node->links;
    for (uint32_t i = 0; i < links->book_capacity; i++) {
        if (links->book[i].used && link_of(node, &links->book[i]) == link) return true;
    }
    return false;
}

static void peer_list(fb_node *node, fb_request request, fb_span arguments)
{
    const fb_links *links = node->links;
    if (request.principal != 0 || arguments.len != 0) {
        fb_status why = request.principal != 0 ? FB_ERR_NOT_AUTHORISED : FB_ERR_REQUEST_MALFORMED;
        fb_reply(node, request.index, why, (fb_span){NULL, 0});
        return;
    }
    fb_writer w = fb_writer_of(links->scratch, links->scratch_len);
    uint16_t count = 0;
    fb_write_u16(&w, 0);
    for (uint32_t i = 0; i < links->book_capacity; i++) {
        const fb_address *address = &links->book[i];
        if (!address->used) continue;
        write_peer(node, &w, address, link_of(node, address));
        count++;
    }
    for (uint32_t i = 0; i < links->high; i++) {
        const fb_link *link = &links->table[i];
        if (link->info.state == FB_LINK_FREE || link->info.state == FB_LINK_CLOSING) continue;
        if (link->info.space == FB_NONE || has_address(node, link)) continue;
        write_peer(node, &w, NULL, link);
        count++;
    }
    if (w.failed) {
        fb_reply(node, request.index, FB_ERR_LIMIT, (fb_span){NULL, 0});
        return;
    }
    fb_store_be(links->scratch, count, 2);
    fb_reply(node, request.index, FB_OK, fb_writer_span(&w));
}

void fb_peers_verbs(fb_node *node)
{
    fb_verb_register(node, FB_VERB_PEER_ADD, peer_add);
    fb_verb_register(node, FB_VERB_PEER_FORGET, peer_forget);
    fb_verb_register(node, FB_VERB_PEER_LIST, peer_list);
}
