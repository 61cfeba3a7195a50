/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/link/plane.h"

#include "protocol/core/node_id.h"
#include "protocol/link/state.h"

_Static_assert(16 * FB_SHUT_OUT_MAX + 16 <= FB_DIGEST_OBJECT_BYTES_MAX, "one object");
_Static_assert(sizeof(((fb_node *)0)->channels) / sizeof(void *) == FB_CHANNELS, "one each");
_Static_assert(sizeof(((fb_node *)0)->controls) / sizeof(void *) >= FB_CONTROL_TYPES, "one each");

void fb_channel_register(fb_node *node, fb_channel_id channel, const fb_channel *ops)
{
    node->channels[channel] = ops;
}

void fb_control_register(fb_node *node, fb_control_type type, const fb_channel *ops)
{
    node->controls[type] = ops;
}

const fb_link_info *fb_link_at(const fb_node *node, uint32_t link)
{
    return &node->links->table[link].info;
}

void fb_link_touch(fb_node *node, uint32_t link)
{
    fb_links_touch(node, link);
}

uint32_t fb_link_capacity(const fb_node *node)
{
    return node->links->capacity;
}

uint32_t fb_link_to(const fb_node *node, uint32_t space, uint32_t member)
{
    const fb_links *links = node->links;
    if (member >= links->member_capacity || links->by_member[member] == 0) return FB_NONE;
    uint32_t link = links->by_member[member] - 1;
    return links->table[link].info.space == space ? link : FB_NONE;
}

/* The digest of a link covers what decides its further course; what is secret stays out. It is laid
 * down in every step that moves a frame: what seldom changes is in it as a hash, `fixed`. */
static uint32_t link_count(const fb_node *node)
{
    return node->options.sizes.links + 1; /* asked before there is a table */
}

static fb_digest_cell *link_cell(fb_node *node, uint32_t index)
{
    fb_links *links = node->links;
    return index == links->capacity ? &links->cell : &links->table[index].cell;
}

static void write_plane(const fb_links *links, fb_writer *w)
{
    fb_write_u64(w, links->bound_serial);
    fb_write_u64(w, links->sessions);
    for (uint32_t i = 0; i < FB_SHUT_OUT_MAX; i++) {
        const fb_shut_out *s = &links->shut_out[(links->shut_out_next + i) % FB_SHUT_OUT_MAX];
        fb_write_u64(w, s->who);
        fb_write_u64(w, s->until_ns);
    }
}

#define LINK_WORDS 10u

_Static_assert(FB_FRAME_BYTES_MAX < 1u << 20, "three places in a frame stand in one word");

static void link_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_links *links = node->links;
    if (index == links->capacity) {
        write_plane(links, w);
        return;
    }
    const fb_link *link = &links->table[index];
    if (link->info.state == FB_LINK_FREE) return;
    uint8_t *out = fb_write_room(w, 8 * LINK_WORDS);
    if (out == NULL) return;
    fb_word_store(out, (uint64_t)link->info.state | (uint64_t)link->step << 4 |
                           (uint64_t)link->owes << 8 | (uint64_t)link->wants << 16 |
                           (uint64_t)link->control_wants << 20 | (uint64_t)link->ended << 40 |
                           (uint64_t)link->info.offset_known << 41);
    memcpy(out + 8, link->flags, sizeof link->flags);
    fb_word_store(out + 16, link->fixed);
    fb_word_store(out + 24, link->info.heard_ns);
    fb_word_store(out + 32, (uint64_t)link->info.clock_offset_us);
    fb_word_store(out + 40, link->credit);
    fb_word_store(out + 48, (uint64_t)link->points << 32 | link->in_used);
    if (link->info.external) {
        fb_word_store(out + 56, link->numbers[FB_CHANNEL_CONTROL]);
        fb_word_store(out + 64, link->numbers[FB_CHANNEL_MESSAGING]);
        fb_word_store(out + 72, link->numbers[FB_CHANNEL_CALLS]);
    } else {
        fb_word_store(out + 56, link->send.nonce);
        fb_word_store(out + 64, link->receive.nonce);
        fb_word_store(out + 72, link->piece_at << 40 |
                                    (uint64_t)link->parts[FB_CHANNEL_MESSAGING].used << 20 |
                                    link->parts[FB_CHANNEL_CALLS].used);
    }
    for (uint32_t c = 0; c < FB_CHANNELS; c++) {
        const fb_channel *ops = node->channels[c];
        if (ops != NULL && ops->digest != NULL) ops->digest(node, index, w);
    }
}

static const fb_digest_kind link_kind = {"link", link_count, link_cell, link_write};

static uint32_t address_count(const fb_node *node)
{
    return node->options.sizes.addresses;
}

static fb_digest_cell *address_cell(fb_node *node, uint32_t index)
{
    return &node->links->book[index].cell;
}

static void address_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_address *address = &node->links->book[index];
    if (!address->used) return;
    uint8_t flags = (uint8_t)((unsigned)address->stored | (unsigned)address->wanted << 1 |
                              (unsigned)address->renews << 2 | (unsigned)address->moved << 3);
    fb_write_u8(w, flags);
    fb_write_u32(w, address->space);
    fb_write_span16(w, fb_span_of(address->text, address->len));
    fb_write_id(w, address->expected);
    fb_write_id(w, address->known);
    fb_write_u64(w, address->known_incarnation);
    fb_write_u64(w, address->dial);
    fb_write_u32(w, address->link);
    fb_write_u32(w, address->attempt);
    fb_write_u64(w, address->tries);
}

static const fb_digest_kind address_kind = {"address", address_count, address_cell, address_write};

static void heartbeat_due(fb_node *node, uint32_t index)
{
    (void)index;
    fb_control_tick(node);
}

static void layout(fb_node *node, fb_arena *arena)
{
    fb_links_layout_table(node, arena);
    fb_dial_layout(node, arena);
    const fb_sizes *sizes = &node->options.sizes;
    fb_timer_register(node, FB_TIMER_LINK, fb_links_life, sizes->links);
    fb_timer_register(node, FB_TIMER_RESEND, fb_external_resend, sizes->links);
    fb_timer_register(node, FB_TIMER_HEARTBEAT, heartbeat_due, 1);
    fb_timer_register(node, FB_TIMER_DIAL, fb_dial_due, sizes->addresses);
    fb_digest_register(node, FB_DIGEST_LINK, &link_kind);
    fb_digest_register(node, FB_DIGEST_ADDRESS, &address_kind);
    fb_peers_verbs(node);
    for (uint32_t kind = FB_EV_DIAL_RESULT; kind <= FB_EV_CARRIER_FRAME; kind++) {
        fb_event_register(node, (fb_event_kind)kind, fb_link_event);
    }
}

static void reset(fb_node *node)
{
    fb_links_reset_table(node);
    fb_dial_reset(node);
}

static void started(fb_node *node)
{
    fb_links *links = node->links;
    /* Bytes that came while the planes were loading are given again. */
    for (uint32_t i = 0; i < links->high; i++) {
        if (links->table[i].info.state == FB_LINK_OPENING) fb_links_owe(node, i, FB_OWES_RESUME);
    }
    fb_dial_started(node);
}

const fb_plane fb_link_plane = {
    .name = "link",
    .layout = layout,
    .reset = reset,
    .load = fb_peers_load,
    .started = started,
    .durable = fb_links_unpause,
    .flush = fb_links_flush,
};

static fb_status opened(fb_node *node, const fb_event *event)
{
    if (event->a == 0 || fb_links_find(node, event->a) != FB_NONE) return FB_ERR_EVENT_MALFORMED;
    bool place = node->links->table[0].in != NULL && fb_stream_may_open(node);
    uint32_t index = place ? fb_links_add(node, event->a) : FB_NONE;
    if (index == FB_NONE) {
        fb_effect_put(node, FB_FX_CLOSE, event->a, FB_ERR_LINK_TOO_MANY, 0, (fb_span){NULL, 0});
        return FB_OK;
    }
    fb_links_get(node, index)->host = fb_links_hash_host(fb_span_of(event->bytes, event->len));
    fb_stream_begin(node, index, false);
    return FB_OK;
}

static fb_status carrier_opened(fb_node *node, const fb_event *event)
{
    fb_reader in = fb_reader_of(fb_span_of(event->bytes, event->len));
    fb_id space_id = fb_read_id(&in);
    fb_b32 key = fb_read_b32(&in);
    if (!fb_reader_done(&in) || event->a == 0 || fb_links_find(node, event->a) != FB_NONE) {
        return FB_ERR_EVENT_MALFORMED;
    }
    uint32_t space = node->phase == FB_PHASE_RUNNING ? fb_space_find(node, space_id) : FB_NONE;
    uint32_t index = space == FB_NONE ? FB_NONE : fb_links_add(node, event->a);
    if (index == FB_NONE) {
        fb_error why = space == FB_NONE ? FB_ERR_LINK_TAG : FB_ERR_LINK_TOO_MANY;
        fb_effect_put(node, FB_FX_CLOSE, event->a, (uint64_t)why, 0, (fb_span){NULL, 0});
        return FB_OK;
    }
    fb_link *link = fb_links_get(node, index);
    link->info.space = space;
    link->info.peer_key = key;
    link->info.peer = fb_node_id(node->options.provider, key);
    fb_external_begin(node, index);
    return FB_OK;
}

static void closed(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    link->peer_why = link->peer_why != FB_OK ? link->peer_why : FB_ERR_LINK_CLOSED;
    fb_link_close(node, index, FB_ERR_LINK_CLOSED);
    fb_links_settle(node);
    fb_links_remove(node, index);
}

static fb_status of_link(fb_node *node, const fb_event *event, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    fb_span bytes = fb_span_of(event->bytes, event->len);
    switch (event->kind) {
    case FB_EV_LINK_CLOSED:
        closed(node, index);
        return FB_OK;
    case FB_EV_LINK_WRITABLE:
        link->credit = fb_add_sat_u64(link->credit, event->b);
        fb_links_ready(node, index);
        fb_links_touch(node, index);
        return FB_OK;
    case FB_EV_LINK_BYTES:
        if (link->info.external) return FB_ERR_EVENT_MALFORMED;
        node->out->consumed = fb_stream_take(node, index, bytes);
        return FB_OK;
    case FB_EV_CARRIER_FRAME:
        if (!link->info.external) return FB_ERR_EVENT_MALFORMED;
        fb_external_frame_in(node, index, bytes);
        return FB_OK;
    default:
        return FB_ERR_EVENT_UNKNOWN;
    }
}

fb_status fb_link_event(fb_node *node, const fb_event *event)
{
    switch (event->kind) {
    case FB_EV_DIAL_RESULT:
        fb_dial_result(node, event);
        return FB_OK;
    case FB_EV_LINK_OPENED:
        return opened(node, event);
    case FB_EV_CARRIER_OPENED:
        return carrier_opened(node, event);
    default:
        break;
    }
    uint32_t index = fb_links_find(node, event->a);
    if (index == FB_NONE) {
        fb_count(node, FB_COUNTER_LATE_COMPLETIONS, 1);
        node->out->consumed = event->len;
        return FB_OK;
    }
    FB_TRY(of_link(node, event, index));
    fb_links_settle(node);
    return FB_OK;
}
