/* SPDX-License-Identifier: Apache-2.0 */
/* The table of links, found by the driver's number, and who is shut out. */
#include "protocol/base/mutant.h"
#include "protocol/link/state.h"

/* One line of PEER_LIST with an address of the greatest length. */
#define PEER_BYTES_MAX (16u + 16u + 2u + FB_ADDRESS_BYTES_MAX + 1u + 4u + 8u + 8u + 8u)

static uint32_t frame_count(const fb_node *node)
{
    return node->links->frames == NULL ? 0 : node->options.sizes.frames;
}

static uint32_t index_size(uint32_t capacity)
{
    uint32_t size = 8;
    while (size < capacity * 2) size *= 2;
    return size;
}

void fb_links_layout_table(fb_node *node, fb_arena *arena)
{
    const fb_sizes *sizes = &node->options.sizes;
    fb_links *links = fb_arena_take(arena, 1, sizeof *links);
    uint32_t capacity = sizes->links;
    uint32_t buckets = index_size(capacity);
    uint32_t words = (capacity + 63) / 64;
    fb_link *table = fb_arena_take(arena, capacity, sizeof *table);
    uint32_t *index = fb_arena_take(arena, buckets, sizeof *index);
    uint32_t *by_member = fb_arena_take(arena, sizes->members, sizeof *by_member);
    uint64_t *ready = fb_arena_take(arena, words, sizeof *ready);
    /* A node whose link_bytes hold no record has external carriers only. */
    bool streams = sizes->link_bytes >= FB_RECORD_WIRE_MAX;
    uint8_t *bytes = streams ? fb_arena_take(arena, capacity, FB_RECORD_WIRE_MAX) : NULL;
    uint32_t buffers = streams ? sizes->frames : 0;
    uint8_t *frames = fb_arena_take(arena, buffers, FB_FRAME_BYTES_MAX);
    uint32_t *frames_free = fb_arena_take(arena, buffers, sizeof *frames_free);
    uint32_t scratch_len = (capacity + sizes->addresses) * PEER_BYTES_MAX;
    if (streams && scratch_len < FB_RECORD_WIRE_MAX) scratch_len = FB_RECORD_WIRE_MAX;
    if (scratch_len > FB_REPLY_BYTES_MAX) scratch_len = FB_REPLY_BYTES_MAX;
    uint8_t *scratch = fb_arena_take(arena, 1, scratch_len);

    node->links = links;
    if (links == NULL || scratch == NULL) return;
    links->table = table;
    links->capacity = capacity;
    links->phases = capacity / FB_BEAT_LINKS;
    if (links->phases > FB_BEAT_PHASES_MAX) links->phases = FB_BEAT_PHASES_MAX;
    if (links->phases == 0) links->phases = 1;
    links->index = index;
    links->index_mask = buckets - 1;
    links->by_member = by_member;
    links->member_capacity = sizes->members;
    links->ready = ready;
    links->ready_words = words;
    links->frames = frames;
    links->frames_free = frames_free;
    links->scratch = scratch;
    links->scratch_len = scratch_len;
    for (uint32_t i = 0; i < capacity; i++) {
        if (streams) table[i].in = bytes + (size_t)i * FB_RECORD_WIRE_MAX;
        fb_timer_init(&table[i].life, FB_TIMER_LINK, i);
        fb_timer_init(&table[i].resend, FB_TIMER_RESEND, i);
    }
}

static uint32_t bucket_of(const fb_links *links, uint64_t number)
{
    /* Numbers of drivers are often consecutive; a multiplication spreads those that are not. */
    return (uint32_t)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & links->index_mask;
}

uint32_t fb_links_find(const fb_node *node, uint64_t number)
{
    const fb_links *links = node->links;
    for (uint32_t b = bucket_of(links, number); links->index[b] != 0;
         b = (b + 1) & links->index_mask) {
        uint32_t i = links->index[b] - 1;
        if (links->table[i].info.number == number) return i;
    }
    return FB_NONE;
}

/* Everything but what the layout gave the place. */
static void clear(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    fb_link kept = *link;
    memset(link, 0, sizeof *link);
    link->in = kept.in;
    link->cell = kept.cell;
    fb_timer_init(&link->life, FB_TIMER_LINK, index);
    fb_timer_init(&link->resend, FB_TIMER_RESEND, index);
    link->info.space = FB_NONE;
    link->info.member = FB_NONE;
    link->address = FB_NONE;
    link->piece_channel = FB_NO_CHANNEL;
}

uint32_t fb_links_add(fb_node *node, uint64_t number)
{
    fb_links *links = node->links;
    uint32_t i = 0;
    while (i < links->capacity && links->table[i].info.state != FB_LINK_FREE) i++;
    if (i == links->capacity) return FB_NONE;
    clear(node, i);
    fb_link *link = &links->table[i];
    link->info.number = number;
    link->info.state = FB_LINK_OPENING;
    link->opened_ns = node->mono_ns;
    link->info.heard_ns = node->mono_ns;
    if (i >= links->high) links->high = i + 1;
    uint32_t b = bucket_of(links, number);
    while (links->index[b] != 0) b = (b + 1) & links->index_mask;
    links->index[b] = i + 1;
    fb_links_fix(node, i);
    return i;
}

/* Linear probing without gravestones: what follows in the same run moves up. */
static void unindex(fb_links *links, uint64_t number)
{
    uint32_t b = bucket_of(links, number);
    while (links->table[links->index[b] - 1].info.number != number) b = (b + 1) & links->index_mask;
    uint32_t hole = b;
    for (;;) {
        b = (b + 1) & links->index_mask;
        if (links->index[b] == 0) break;
        uint32_t home = bucket_of(links, links->table[links->index[b] - 1].info.number);
        if (((b - home) & links->index_mask) >= ((b - hole) & links->index_mask)) {
            links->index[hole] = links->index[b];
            hole = b;
        }
    }
    links->index[hole] = 0;
}

void fb_links_remove(fb_node *node, uint32_t index)
{
    fb_links *links = node->links;
    fb_link *link = &links->table[index];
    fb_timer_clear(node, &link->life);
    fb_timer_clear(node, &link->resend);
    fb_handshake_wipe(&link->hs, node->options.provider);
    fb_cipher_wipe(&link->send);
    fb_cipher_wipe(&link->receive);
    for (uint32_t c = 0; c < FB_CHANNELS; c++) fb_links_frame_give(node, &link->parts[c]);
    if (link->paused) links->paused--;
    unindex(links, link->info.number);
    links->ready[index / 64] &= ~(UINT64_C(1) << index % 64);
    clear(node, index);
    while (links->high > 0 && links->table[links->high - 1].info.state == FB_LINK_FREE)
        links->high--;
    fb_links_touch(node, index);
}

void fb_links_reset_table(fb_node *node)
{
    fb_links *links = node->links;
    for (uint32_t i = 0; i < links->capacity; i++) {
        fb_link *link = &links->table[i];
        if (link->info.state == FB_LINK_FREE) continue;
        fb_handshake_wipe(&link->hs, node->options.provider);
        fb_cipher_wipe(&link->send);
        fb_cipher_wipe(&link->receive);
        clear(node, i);
        fb_links_touch(node, i);
    }
    memset(links->index, 0, ((size_t)links->index_mask + 1) * sizeof *links->index);
    if (links->member_capacity != 0) {
        memset(links->by_member, 0, links->member_capacity * sizeof *links->by_member);
    }
    if (links->ready_words != 0) memset(links->ready, 0, links->ready_words * sizeof *links->ready);
    memset(links->shut_out, 0, sizeof links->shut_out);
    links->shut_out_next = 0;
    for (uint32_t i = 0; i < frame_count(node); i++) links->frames_free[i] = i;
    links->frames_free_count = frame_count(node);
    links->high = 0;
    links->rotor = 0;
    links->ended = 0;
    links->paused = 0;
    links->dials_wanted = 0;
    links->bound_serial = 0;
    links->sessions = 0;
    fb_timer_init(&links->heartbeat, FB_TIMER_HEARTBEAT, 0);
}

uint8_t *fb_links_frame_take(fb_node *node)
{
    fb_links *links = node->links;
    if (links->frames_free_count == 0) return NULL;
    uint32_t number = links->frames_free[--links->frames_free_count];
    return links->frames + (size_t)number * FB_FRAME_BYTES_MAX;
}

void fb_links_frame_give(fb_node *node, fb_reassembly *parts)
{
    fb_links *links = node->links;
    if (parts->buffer == NULL) return;
    size_t at = (size_t)(parts->buffer - links->frames);
    links->frames_free[links->frames_free_count++] = (uint32_t)(at / FB_FRAME_BYTES_MAX);
    *parts = (fb_reassembly){.buffer = NULL};
    fb_links_unpause(node);
}

void fb_link_take_again(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    if (!link->paused) return;
    link->paused = false;
    node->links->paused--;
    if (link->info.state != FB_LINK_CLOSING) fb_links_owe(node, index, FB_OWES_RESUME);
}

void fb_links_unpause(fb_node *node)
{
    fb_links *links = node->links;
    for (uint32_t i = 0; i < links->high && links->paused != 0; i++) fb_link_take_again(node, i);
}

void fb_links_fix(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    uint8_t bytes[88];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u64(&w, link->info.number);
    fb_write_u32(&w, link->info.space);
    fb_write_u32(&w, link->info.member);
    fb_write_id(&w, link->info.peer);
    fb_write_u64(&w, link->info.peer_incarnation);
    fb_write_u64(&w, link->info.session);
    fb_write_u64(&w, link->peer_session);
    fb_write_u64(&w, link->next_own);
    fb_write_u64(&w, link->next_peer);
    fb_write_u64(&w, link->info.dialled ? 1 : 0);
    FB_ASSERT(!w.failed);
    link->fixed = fb_xxh64(bytes, w.at, 3);
    fb_links_touch(node, index);
}

void fb_links_owe(fb_node *node, uint32_t index, uint32_t what)
{
    fb_links_get(node, index)->owes |= what;
    fb_links_ready(node, index);
    fb_links_touch(node, index);
}

uint64_t fb_links_hash_host(fb_span address)
{
    /* Without a port, if there is one: "10.0.0.1:4711" and "[::1]:4711", but not "::1". */
    size_t len = address.len, colons = 0, last = 0;
    for (size_t i = 0; i < address.len; i++) {
        if (address.p[i] != ':') continue;
        colons++;
        last = i;
    }
    if (colons == 1 || (colons > 1 && address.p[last - 1] == ']')) len = last;
    return len == 0 ? 0 : fb_xxh64(address.p, len, 1) | 1;
}

uint64_t fb_links_hash_peer(fb_id space, fb_id peer)
{
    uint8_t bytes[32];
    memcpy(bytes, space.b, 16);
    memcpy(bytes + 16, peer.b, 16);
    return fb_xxh64(bytes, sizeof bytes, 2) | 1;
}

bool fb_links_is_shut_out(const fb_node *node, uint64_t who)
{
    const fb_links *links = node->links;
    for (uint32_t i = 0; i < FB_SHUT_OUT_MAX; i++) {
        const fb_shut_out *s = &links->shut_out[i];
        if (s->who == who && who != 0 && node->mono_ns < s->until_ns) return true;
    }
    return false;
}

void fb_links_shut_out(fb_node *node, uint64_t who, uint64_t for_ns)
{
    fb_links *links = node->links;
    if (who == 0) return;
    uint32_t place = links->shut_out_next;
    for (uint32_t i = 0; i < FB_SHUT_OUT_MAX; i++) {
        if (links->shut_out[i].who == who) place = i;
    }
    if (place == links->shut_out_next) {
        links->shut_out_next = (links->shut_out_next + 1) % FB_SHUT_OUT_MAX;
    }
    links->shut_out[place] =
        (fb_shut_out){who, MUTANT(NEVER_FORGIVEN, fb_add_sat_u64(node->mono_ns, for_ns), FB_NEVER)};
    fb_digest_touch(node, FB_DIGEST_LINK, links->capacity);
}
