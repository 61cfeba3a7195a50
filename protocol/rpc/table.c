/* SPDX-License-Identifier: Apache-2.0 */
/* Places of the table, and what they owe to their links. */
#include "protocol/base/mutant.h"
#include "protocol/rpc/state.h"

void fb_call_touch(fb_node *node, uint32_t call)
{
    fb_digest_touch_cell(node, &node->rpc->call[call].digest, FB_DIGEST_CALL, call);
}

uint32_t fb_call_find(const struct fb_rpc *rpc, fb_call_side role, uint32_t link, uint64_t number)
{
    uint32_t end = role == FB_SIDE_CALLER ? rpc->own : rpc->calls;
    for (uint32_t i = role == FB_SIDE_CALLER ? 0 : rpc->own; i < end; i++) {
        const fb_call *call = &rpc->call[i];
        if (call->role == (uint8_t)role && call->link == link && call->number == number) return i;
    }
    return FB_NONE;
}

/* Among served calls that only wait to repeat their end, the one begun first. */
static uint32_t oldest_closed(const struct fb_rpc *rpc)
{
    uint32_t best = FB_NONE;
    for (uint32_t i = rpc->own; i < rpc->calls; i++) {
        const fb_call *call = &rpc->call[i];
        if (call->role != FB_SIDE_SERVER || !call->closed || call->peeked) continue;
        if (best == FB_NONE || call->serial < rpc->call[best].serial) best = i;
    }
    return best;
}

uint32_t fb_call_take(fb_node *node, fb_call_side role, uint32_t link, uint64_t number)
{
    struct fb_rpc *rpc = node->rpc;
    uint32_t end = role == FB_SIDE_CALLER ? rpc->own : rpc->calls;
    uint32_t index = role == FB_SIDE_CALLER ? 0 : rpc->own;
    while (index < end && rpc->call[index].role != FB_SIDE_FREE) index++;
    if (index == end && role == FB_SIDE_SERVER) {
        index = oldest_closed(rpc);
        if (index != FB_NONE) fb_call_free(node, index);
    }
    if (index == FB_NONE || index == end) return FB_NONE;
    fb_call *call = &rpc->call[index];
    fb_digest_cell digest = call->digest;
    memset(call, 0, sizeof *call);
    call->digest = digest;
    call->role = (uint8_t)role;
    call->link = link;
    call->external = rpc->link[link].external;
    call->number = number;
    call->serial = ++rpc->serials;
    call->retry_ns = FB_NEVER;
    call->backoff_ns = node->options.timing.resend_min_ns;
    fb_timer_init(&call->timer, FB_TIMER_CALL, index);
    if (role == FB_SIDE_SERVER) rpc->link[link].served++;
    fb_call_touch(node, index);
    return index;
}

static void owing_changed(fb_node *node, fb_call *call, uint32_t owes)
{
    fb_call_link *link = &node->rpc->link[call->link];
    if (owes != 0 && call->owes == 0) link->owing++;
    if (owes == 0 && call->owes != 0) link->owing--;
    call->owes = owes;
}

void fb_call_free(fb_node *node, uint32_t index)
{
    struct fb_rpc *rpc = node->rpc;
    fb_call *call = &rpc->call[index];
    FB_ASSERT(call->role != FB_SIDE_FREE);
    owing_changed(node, call, 0);
    if (call->role == FB_SIDE_SERVER) rpc->link[call->link].served--;
    if (call->wanting) rpc->wanting--;
    call->wanting = false;
    fb_timer_clear(node, &call->timer);
    /* A frame that the link was shown may be half out: it goes out whole, so its bytes and its
     * number stay until then. */
    bool half_out = call->peeked && rpc->link[call->link].up;
    call->role = half_out ? FB_SIDE_LEAVING : FB_SIDE_FREE;
    fb_call_touch(node, index);
}

void fb_call_owe(fb_node *node, uint32_t index, uint32_t type)
{
    fb_call *call = &node->rpc->call[index];
    owing_changed(node, call, call->owes | 1u << type);
    fb_call_touch(node, index);
    fb_link_has_output(node, call->link, FB_CHANNEL_CALLS);
}

void fb_call_paid(fb_node *node, uint32_t index, uint32_t type)
{
    fb_call *call = &node->rpc->call[index];
    fb_call_link *link = &node->rpc->link[call->link];
    owing_changed(node, call, call->owes & ~(1u << type));
    if (call->external && call->peeked && link->out == type) {
        /* It waits for the carrier and need not be said any more; its buffer may soon hold
         * something else. External frames leave whole, so no part of it is out. */
        call->peeked = false;
        link->out = 0;
        fb_digest_touch(node, FB_DIGEST_CALL_LINK, call->link);
    }
    fb_call_touch(node, index);
}

void fb_call_note_add(fb_node *node, uint32_t index, uint8_t type, uint64_t number,
                      fb_status status)
{
    fb_call_link *link = &node->rpc->link[index];
    if (!link->up) return;
    fb_digest_touch(node, FB_DIGEST_CALL_LINK, index);
    for (uint32_t i = 0; i < link->notes; i++) {
        if (link->note[i].number == number && link->note[i].type == type) return;
    }
    if (link->notes == FB_CALL_NOTES_MAX) {
        /* Not the first: it may be with the link already. Deadlines make up for what is lost. */
        memmove(&link->note[1], &link->note[2], (FB_CALL_NOTES_MAX - 2) * sizeof link->note[0]);
        link->notes--;
    }
    link->note[link->notes++] = (fb_call_note){type, (uint16_t)status, number};
    fb_link_has_output(node, index, FB_CHANNEL_CALLS);
}

/* The frames of a call in the order in which they make sense. */
static uint8_t next_type(uint32_t owes)
{
    static const uint8_t order[] = {FB_CALL_REQUEST, FB_CALL_PIECE, FB_CALL_END, FB_CALL_CREDIT};
    for (size_t i = 0; i < sizeof order; i++) {
        if ((owes & 1u << order[i]) != 0) return order[i];
    }
    return 0;
}

/* Numbers of requests ascend on a link, whatever places their calls have: a server of a byte stream
 * takes none that comes after a later one. */
static uint32_t first_request(const struct fb_rpc *rpc, uint32_t link, uint32_t at)
{
    uint64_t number = rpc->call[at].number;
    for (uint32_t i = 0; i < rpc->own; i++) {
        const fb_call *call = &rpc->call[i];
        if (call->role != FB_SIDE_CALLER || call->link != link || call->number >= number) continue;
        if ((call->owes & 1u << FB_CALL_REQUEST) == 0) continue;
        if (MUTANT(REQUESTS_OVERTAKE, false, true)) continue;
        number = call->number;
        at = i;
    }
    return at;
}

static bool choose(fb_node *node, uint32_t index)
{
    struct fb_rpc *rpc = node->rpc;
    fb_call_link *link = &rpc->link[index];
    if (link->notes > 0) {
        link->out = link->note[0].type;
        link->out_call = FB_NONE;
        return true;
    }
    if (link->owing == 0) return false;
    for (uint32_t i = 0; i < rpc->calls; i++) {
        uint32_t at = (link->scan + i) % rpc->calls;
        const fb_call *call = &rpc->call[at];
        if (call->role == FB_SIDE_FREE || call->link != index || call->owes == 0) continue;
        link->out = next_type(call->owes);
        if (link->out == FB_CALL_REQUEST) at = first_request(rpc, index, at);
        link->out_call = at;
        link->scan = at + 1;
        rpc->call[at].peeked = true;
        return true;
    }
    return false;
}

static uint32_t ms_left(const fb_node *node, const fb_call *call)
{
    if (call->deadline_ns <= node->mono_ns) return 0;
    uint64_t ms = (call->deadline_ns - node->mono_ns) / 1000000;
    return ms > FB_CALL_MS_MAX ? FB_CALL_MS_MAX : (uint32_t)ms;
}

static void write_head(const fb_node *node, const fb_call_link *link, fb_writer *w)
{
    fb_write_u8(w, link->out);
    if (link->out_call == FB_NONE) {
        fb_write_u64(w, link->note[0].number);
        if (link->out != FB_CALL_END) return;
        fb_write_u32(w, 0);
        fb_write_u16(w, link->note[0].status);
        return;
    }
    const fb_call *call = &node->rpc->call[link->out_call];
    fb_write_u64(w, call->number);
    switch (link->out) {
    case FB_CALL_REQUEST:
        fb_write_u16(w, call->method);
        fb_write_u32(w, ms_left(node, call));
        fb_write_u64(w, call->credit);
        break;
    case FB_CALL_PIECE:
        fb_write_u32(w, call->pieces);
        break;
    case FB_CALL_END:
        fb_write_u32(w, call->pieces);
        fb_write_u16(w, call->status);
        break;
    case FB_CALL_CREDIT:
        fb_write_u32(w, call->pieces);
        fb_write_u64(w, call->credit);
        break;
    }
}

bool fb_call_peek(fb_node *node, uint32_t index, fb_frame_out *out)
{
    struct fb_rpc *rpc = node->rpc;
    fb_call_link *link = &rpc->link[index];
    if (!link->up) return false;
    if (link->out == 0) {
        if (!choose(node, index)) return false;
        fb_digest_touch(node, FB_DIGEST_CALL_LINK, index);
    }
    fb_writer w = fb_writer_of(out->head, sizeof out->head);
    write_head(node, link, &w);
    FB_ASSERT(!w.failed);
    out->head_len = (uint8_t)w.at;
    out->body = (fb_span){NULL, 0};
    if (link->out == FB_CALL_REQUEST || link->out == FB_CALL_PIECE) {
        out->body = fb_span_of(fb_call_buffer(rpc, link->out_call), rpc->call[link->out_call].len);
    }
    return true;
}

void fb_call_sent(fb_node *node, uint32_t index)
{
    struct fb_rpc *rpc = node->rpc;
    fb_call_link *link = &rpc->link[index];
    uint8_t type = link->out;
    link->out = 0;
    fb_digest_touch(node, FB_DIGEST_CALL_LINK, index);
    if (type == 0) return;
    if (link->out_call == FB_NONE) {
        link->notes--;
        memmove(link->note, link->note + 1, link->notes * sizeof link->note[0]);
        return;
    }
    fb_call *call = &rpc->call[link->out_call];
    call->peeked = false;
    if (call->role == FB_SIDE_LEAVING) {
        call->role = FB_SIDE_FREE;
        fb_call_touch(node, link->out_call);
        return;
    }
    fb_call_paid(node, link->out_call, type);
    if (call->role == FB_SIDE_CALLER) {
        fb_caller_sent(node, link->out_call, type);
    } else {
        fb_server_sent(node, link->out_call, type);
    }
}
