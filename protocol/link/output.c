/* SPDX-License-Identifier: Apache-2.0 */
/* What links emit: bytes only against the carrier's credit, and only while the caller's arena has
 * room. Frames are pulled from their planes: control first, then messaging, then calls. DESIGN 2.
 *
 * A record is built and sealed in the arena itself; nothing is copied twice and nothing queues. */
#include "protocol/base/mutant.h"
#include "protocol/link/external.h"
#include "protocol/link/state.h"

typedef enum outcome {
    OUT_DONE,   /* nothing is left to say, or it waits for credit */
    OUT_ARENA,  /* the arena is full: the next step goes on */
    OUT_CREDIT, /* waits for FB_EV_LINK_WRITABLE */
} outcome;

/* Room for `len` bytes of a stream, or the reason why not. */
static outcome stream_room(fb_node *node, fb_link *link, size_t len, uint8_t **room)
{
    if (MUTANT(CREDIT_IGNORED, link->credit < len, false)) return OUT_CREDIT;
    if (!fb_effect_fits(node, len)) return OUT_ARENA;
    *room = fb_effect_room(node, FB_FX_SEND, link->info.number, 0, 0, len);
    link->credit -= len;
    return OUT_DONE;
}

/* The bytes [at, at + len) of a frame that stands in two parts. */
static void copy_part(const fb_frame_out *frame, size_t at, size_t len, uint8_t *out)
{
    size_t head = 0;
    if (at < frame->head_len) {
        head = frame->head_len - at < len ? frame->head_len - at : len;
        memcpy(out, frame->head + at, head);
        at += head;
    }
    if (len != head) memcpy(out + head, frame->body.p + (at - frame->head_len), len - head);
}

static outcome emit_record(fb_node *node, uint32_t index, fb_channel_id channel, uint8_t flags,
                           const fb_frame_out *frame, size_t at, size_t len)
{
    fb_link *link = fb_links_get(node, index);
    uint8_t *wire;
    outcome o = stream_room(node, link, FB_RECORD_OVERHEAD + FB_RECORD_HEAD + len, &wire);
    if (o != OUT_DONE) return o;
    uint8_t *piece = wire + FB_RECORD_LENGTH + FB_RECORD_HEAD;
    copy_part(frame, at, len, piece);
    fb_status status = fb_record_write(&link->send, node->options.provider, channel, flags,
                                       fb_span_of(piece, len), wire);
    FB_ASSERT(status == FB_OK); /* a link ends long before 2^64 records */
    fb_links_touch(node, index);
    return OUT_DONE;
}

static outcome emit_external(fb_node *node, uint32_t index, fb_channel_id channel,
                             const fb_frame_out *frame, size_t len)
{
    fb_link *link = fb_links_get(node, index);
    size_t whole = FB_EXTERNAL_HEAD + len;
    if (link->credit < whole) return OUT_CREDIT;
    if (!fb_effect_fits(node, whole)) return OUT_ARENA;
    uint8_t *out = fb_effect_room(node, FB_FX_FRAME, link->info.number, 0, 0, whole);
    bool hello =
        channel == FB_CHANNEL_CONTROL && frame->head_len != 0 && frame->head[0] == FB_CONTROL_HELLO;
    bool next = hello && link->next_own != 0;
    const fb_external_frame head = {
        .channel = channel,
        .sender_session = next ? link->next_own : link->info.session,
        .peer_session = next ? link->next_peer : link->peer_session,
        .number = ++link->numbers[channel],
    };
    fb_external_write_head(out, &head);
    copy_part(frame, 0, len, out + FB_EXTERNAL_HEAD);
    link->credit -= whole;
    fb_links_touch(node, index);
    return OUT_DONE;
}

/* A frame from where it stands to its end; OUT_DONE: it is out whole. */
static outcome emit_frame(fb_node *node, uint32_t index, fb_channel_id channel,
                          const fb_frame_out *frame)
{
    fb_link *link = fb_links_get(node, index);
    size_t len = frame->head_len + frame->body.len;
    FB_ASSERT(len <= FB_FRAME_BYTES_MAX);
    if (link->info.external) return emit_external(node, index, channel, frame, len);
    FB_ASSERT(channel != FB_CHANNEL_CONTROL || len <= FB_RECORD_PIECE_MAX);
    if (len <= FB_RECORD_PIECE_MAX) {
        return emit_record(node, index, channel, FB_RECORD_WHOLE, frame, 0, len);
    }
    if (link->piece_channel != channel) {
        link->piece_channel = (uint8_t)channel;
        link->piece_at = 0;
        link->piece_len = len;
    }
    FB_ASSERT(link->piece_len == len); /* link.h: the same frame until `sent` */
    while (link->piece_at < len) {
        size_t left = len - link->piece_at;
        size_t piece = left < FB_RECORD_PIECE_MAX ? left : FB_RECORD_PIECE_MAX;
        uint8_t flags = link->piece_at == 0 ? FB_RECORD_FIRST : 0;
        if (piece == left) flags |= FB_RECORD_LAST;
        outcome o = emit_record(node, index, channel, flags, frame, link->piece_at, piece);
        if (o != OUT_DONE) return o;
        link->piece_at += piece;
    }
    link->piece_channel = FB_NO_CHANNEL;
    return OUT_DONE;
}

static outcome emit_own(fb_node *node, uint32_t index,
                        size_t (*write)(fb_node *, uint32_t, uint8_t *))
{
    /* Asked before writing: a heartbeat costs a digest. */
    fb_link *link = fb_links_get(node, index);
    size_t most = FB_HEARTBEAT_BYTES + FB_EXTERNAL_HEAD;
    if (link->credit < most) return OUT_CREDIT;
    if (!fb_effect_fits(node, most)) return OUT_ARENA;
    uint8_t bytes[FB_HEARTBEAT_BYTES];
    fb_frame_out frame = {.head_len = 0};
    size_t len = write(node, index, bytes);
    frame.head[0] = bytes[0];
    frame.head_len = 1;
    frame.body = fb_span_of(bytes + 1, len - 1);
    return emit_frame(node, index, FB_CHANNEL_CONTROL, &frame);
}

static outcome emit_preamble(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    size_t len = link->info.dialled ? FB_PREAMBLE_DIALER_BYTES : FB_PREAMBLE_ACCEPTOR_BYTES;
    uint8_t *room;
    outcome o = stream_room(node, link, len, &room);
    if (o != OUT_DONE) return o;
    memcpy(room, link->info.dialled ? link->dialer_preamble : link->acceptor_preamble, len);
    static const fb_error why[] = {FB_OK, FB_ERR_LINK_VERSION, FB_ERR_LINK_TAG,
                                   FB_ERR_LINK_TOO_MANY};
    if (link->refusal != FB_PREAMBLE_GO_ON) {
        fb_count(node, FB_COUNTER_LINKS_REFUSED, 1);
        fb_link_close(node, index, why[link->refusal]);
    }
    return OUT_DONE;
}

static outcome emit_handshake(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    size_t len = fb_handshake_overhead(&link->hs);
    uint8_t *room;
    outcome o = stream_room(node, link, FB_RECORD_LENGTH + len, &room);
    if (o != OUT_DONE) return o;
    fb_store_be(room, len, FB_RECORD_LENGTH);
    memset(room + FB_RECORD_LENGTH, 0, len);
    fb_writer w = fb_writer_of(room + FB_RECORD_LENGTH, len);
    (void)fb_stream_handshake_out(node, index, &w);
    return OUT_DONE;
}

static outcome emit_binding(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    const fb_provider *provider = node->options.provider;
    size_t len = FB_RECORD_LENGTH + FB_BINDING_BYTES + FB_NOISE_TAG;
    uint8_t *room;
    outcome o = stream_room(node, link, len, &room);
    if (o != OUT_DONE) return o;
    memset(room, 0, len);
    fb_b32 link_static;
    fb_writer w = fb_writer_of(room + FB_RECORD_LENGTH, FB_BINDING_BYTES);
    fb_link_role role = link->info.dialled ? FB_LINK_DIALER : FB_LINK_ACCEPTOR;
    fb_status status = provider->dh_public(provider->user, node->options.link_key, &link_static);
    if (status == FB_OK) {
        status = fb_binding_write(provider, node->options.identity_key, role,
                                  link->info.handshake_hash, &link_static, node->incarnation, &w);
    }
    if (status == FB_OK) status = fb_transport_seal(&link->send, provider, room, FB_BINDING_BYTES);
    if (status != FB_OK) {
        fb_link_close(node, index, status);
        return OUT_DONE;
    }
    fb_links_show(node, index);
    return OUT_DONE;
}

static outcome emit_resume(fb_node *node, uint32_t index)
{
    if (!fb_effect_fits(node, 0)) return OUT_ARENA;
    fb_effect_put(node, FB_FX_RESUME, fb_links_get(node, index)->info.number, 0, 0,
                  fb_span_of(NULL, 0));
    return OUT_DONE;
}

static outcome emit_owed(fb_node *node, uint32_t index, uint32_t what)
{
    switch (what) {
    case FB_OWES_PREAMBLE:
        return emit_preamble(node, index);
    case FB_OWES_HANDSHAKE:
        return emit_handshake(node, index);
    case FB_OWES_BINDING:
        return emit_binding(node, index);
    case FB_OWES_HELLO:
        return emit_own(node, index, fb_control_write_hello);
    case FB_OWES_HEARTBEAT:
        return emit_own(node, index, fb_control_write_heartbeat);
    default:
        return emit_resume(node, index);
    }
}

static outcome flush_owed(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    while (link->owes != 0) {
        uint32_t what = link->owes & (~link->owes + 1); /* the lowest bit */
        outcome o = emit_owed(node, index, what);
        if (o == OUT_CREDIT && (link->owes & FB_OWES_RESUME) != 0) {
            /* Taking more bytes needs no credit. */
            if (emit_resume(node, index) == OUT_ARENA) return OUT_ARENA;
            link->owes &= ~(uint32_t)FB_OWES_RESUME;
        }
        if (o != OUT_DONE) return o;
        if (link->info.state == FB_LINK_CLOSING) return OUT_DONE;
        link->owes &= ~what;
        fb_links_touch(node, index);
    }
    return OUT_DONE;
}

static outcome flush_plane(fb_node *node, uint32_t index, fb_channel_id channel,
                           const fb_channel *ops)
{
    fb_frame_out frame;
    if (ops == NULL || ops->peek == NULL) return OUT_DONE;
    fb_link *link = fb_links_get(node, index);
    for (;;) {
        frame.head_len = 0;
        frame.body = fb_span_of(NULL, 0);
        if (!ops->peek(node, index, &frame)) return OUT_DONE;
        outcome o = emit_frame(node, index, channel, &frame);
        if (o != OUT_DONE) return o;
        if (ops->sent != NULL) ops->sent(node, index);
        if (link->info.state == FB_LINK_CLOSING) return OUT_DONE;
    }
}

static outcome flush_control(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    for (uint32_t t = 0; t < FB_CONTROL_TYPES && link->control_wants != 0; t++) {
        if ((link->control_wants & 1u << t) == 0) continue;
        bool early = t == FB_CONTROL_INVITE || t == FB_CONTROL_MEMBERSHIP;
        if (early ? !link->shown : !link->up) continue;
        outcome o = flush_plane(node, index, FB_CHANNEL_CONTROL, node->controls[t]);
        if (o != OUT_DONE) return o;
        link->control_wants &= ~(1u << t);
        fb_links_touch(node, index);
    }
    return OUT_DONE;
}

static outcome flush_channels(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    if (link->control_wants != 0) {
        outcome o = flush_control(node, index);
        if (o != OUT_DONE) return o;
    }
    if (!link->up) return OUT_DONE;
    for (uint32_t i = 0; i < 2; i++) {
        /* A frame that is out in part goes on before another channel begins one. */
        bool calls_first = link->piece_channel == FB_CHANNEL_CALLS;
        uint32_t c = (i == 0) != calls_first ? FB_CHANNEL_MESSAGING : FB_CHANNEL_CALLS;
        if ((link->wants & 1u << c) == 0 || link->info.state == FB_LINK_CLOSING) continue;
        outcome o = flush_plane(node, index, (fb_channel_id)c, node->channels[c]);
        if (o != OUT_DONE) return o;
        link->wants &= ~(1u << c);
        fb_links_touch(node, index);
    }
    return OUT_DONE;
}

/* A last control frame with the reason, if there is a session and credit; then the end. */
static outcome flush_closing(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    if (link->close_sent) return OUT_DONE;
    bool session = link->info.external ? link->peer_session != 0 : link->step > FB_STEP_HANDSHAKE;
    if (session && link->peer_why == FB_OK) { /* no answer to the peer's own close */
        if (emit_own(node, index, fb_control_write_close) == OUT_ARENA) return OUT_ARENA;
    }
    if (!fb_effect_fits(node, 0)) return OUT_ARENA;
    fb_effect_put(node, FB_FX_CLOSE, link->info.number, link->why, 0, fb_span_of(NULL, 0));
    link->close_sent = MUTANT(CLOSED_TWICE, true, false);
    link->owes = 0;
    fb_links_touch(node, index);
    return OUT_DONE;
}

static outcome flush_link(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    outcome o = OUT_DONE;
    if (link->info.state == FB_LINK_FREE) return OUT_DONE;
    if (link->info.state != FB_LINK_CLOSING) {
        o = flush_owed(node, index);
        if (o == OUT_DONE && link->step == FB_STEP_RECORDS) o = flush_channels(node, index);
        if (o == OUT_DONE && link->step == FB_STEP_BINDING && link->shown) {
            o = flush_control(node, index); /* a dialer to a nameless acceptor */
        }
    }
    if (link->info.state == FB_LINK_CLOSING) {
        fb_links_settle(node);
        o = flush_closing(node, index);
    }
    return o;
}

void fb_link_has_output(fb_node *node, uint32_t index, fb_channel_id channel)
{
    fb_link *link = fb_links_get(node, index);
    if (link->info.state == FB_LINK_FREE || link->info.state == FB_LINK_CLOSING) return;
    if (channel == FB_CHANNEL_CONTROL) {
        /* Which type is not said: every plane that shares the channel is asked. */
        for (uint32_t t = 0; t < FB_CONTROL_TYPES; t++) {
            if (node->controls[t] != NULL) link->control_wants |= 1u << t;
        }
    } else {
        link->wants |= 1u << channel;
    }
    fb_links_ready(node, index);
    fb_links_touch(node, index);
}

static bool any_ready(const fb_links *links)
{
    for (uint32_t w = 0; w < links->ready_words; w++) {
        if (links->ready[w] != 0) return true;
    }
    return false;
}

void fb_links_flush(fb_node *node)
{
    fb_links *links = node->links;
    fb_links_settle(node);
    if (links->dials_wanted != 0) fb_dial_flush(node);
    /* From where the last flush was cut off. A plane that is asked on one link may find something
     * for another, hence the second time around. */
    bool ready = any_ready(links);
    for (uint32_t n = 0; n < 2 * links->high && ready; n++) {
        if (links->rotor >= links->high) links->rotor = 0;
        uint32_t i = links->rotor;
        uint64_t bit = UINT64_C(1) << i % 64;
        if ((links->ready[i / 64] & bit) != 0) {
            links->ready[i / 64] &= ~bit;
            if (flush_link(node, i) == OUT_ARENA) {
                links->ready[i / 64] |= bit;
                fb_starved(node);
                return;
            }
            ready = any_ready(links);
        }
        links->rotor++;
    }
    if (ready) fb_starved(node);
}
