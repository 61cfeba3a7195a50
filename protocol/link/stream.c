/* SPDX-License-Identifier: Apache-2.0 */
/* Received bytes of a stream link: preamble, handshake, binding, records. profile 7.
 *
 * A message that stands whole in the event is read where it is; only one that an event cuts is
 * gathered in the link's buffer. What cannot be taken now (the plane has no room for it) is left to
 * the driver, cipher and buffer as if it had not come. */
#include "protocol/link/state.h"

/* Of the arena, for the facts that the frames of one step may cause. */
#define RESERVE_BYTES      8192u
#define RECORDS_A_STEP_MAX 256u

#define BINDING_SEALED (FB_BINDING_BYTES + FB_NOISE_TAG)
#define CLOSE_SEALED   (FB_RECORD_HEAD + FB_CLOSE_BYTES + FB_NOISE_TAG)

static fb_link_role own_role(const fb_link *link)
{
    return link->info.dialled ? FB_LINK_DIALER : FB_LINK_ACCEPTOR;
}

void fb_stream_begin(fb_node *node, uint32_t index, bool dialled)
{
    fb_link *link = fb_links_get(node, index);
    link->info.dialled = dialled;
    link->step = FB_STEP_PREAMBLE;
    fb_timer_set(node, &link->life,
                 fb_add_sat_u64(node->mono_ns, node->options.timing.handshake_ns));
    if (dialled) {
        fb_id tag;
        fb_space_tag(node->options.provider, fb_space_id(node, link->info.space), &tag);
        fb_preamble_write_dialer(link->dialer_preamble, tag);
        fb_links_owe(node, index, FB_OWES_PREAMBLE);
    }
}

/* MP-7-6 */
static void begin_handshake(fb_node *node, fb_link *link)
{
    uint8_t prologue[FB_PROLOGUE_BYTES];
    fb_prologue_write(prologue, link->dialer_preamble, link->acceptor_preamble,
                      fb_space_id(node, link->info.space));
    fb_handshake_begin(&link->hs, node->options.provider, link->info.dialled,
                       node->options.link_key, fb_span_of(prologue, sizeof prologue));
    link->step = FB_STEP_HANDSHAKE;
}

/* Links that somebody opened and that are in their handshakes. */
static uint32_t count_opening(const fb_node *node)
{
    const fb_links *links = node->links;
    uint32_t count = 0;
    for (uint32_t i = 0; i < links->high; i++) {
        const fb_link *link = &links->table[i];
        if (link->info.state == FB_LINK_OPENING && !link->info.dialled && !link->info.external) {
            count++;
        }
    }
    return count;
}

/* Whoever is in a handshake takes no more than half of the places: members need the rest. */
static uint32_t opening_max(const fb_node *node)
{
    return (node->links->capacity + 1) / 2;
}

bool fb_stream_may_open(const fb_node *node)
{
    /* One place more, for an answer that says why. */
    return count_opening(node) <= opening_max(node);
}

/* The acceptor's answer; everything but GO_ON closes once it is out (output.c). */
static fb_status accept_preamble(fb_node *node, uint32_t index, fb_span bytes)
{
    fb_link *link = fb_links_get(node, index);
    fb_id tag;
    uint8_t version;
    FB_TRY(fb_preamble_read_dialer(bytes, &tag, &version));
    memcpy(link->dialer_preamble, bytes.p, bytes.len);
    link->refusal = FB_PREAMBLE_GO_ON;
    if (version == 0) {
        link->refusal = FB_PREAMBLE_NO_VERSION;
    } else {
        /* MP-7-1 */
        link->info.space = fb_space_find_tag(node, tag.b);
        if (link->info.space == FB_NONE) {
            link->refusal = FB_PREAMBLE_UNKNOWN_TAG;
        } else if (count_opening(node) > opening_max(node)) {
            link->refusal = FB_PREAMBLE_TOO_MANY;
        }
    }
    fb_preamble_write_acceptor(link->acceptor_preamble, link->refusal);
    fb_links_owe(node, index, FB_OWES_PREAMBLE);
    if (link->refusal == FB_PREAMBLE_GO_ON) begin_handshake(node, link);
    return FB_OK;
}

static fb_status answered_preamble(fb_node *node, uint32_t index, fb_span bytes)
{
    fb_link *link = fb_links_get(node, index);
    uint8_t version;
    FB_TRY(fb_preamble_read_acceptor(bytes, &version));
    memcpy(link->acceptor_preamble, bytes.p, bytes.len);
    begin_handshake(node, link);
    fb_links_owe(node, index, FB_OWES_HANDSHAKE);
    return FB_OK;
}

/* The last handshake message went out or came in. */
static void handshake_done(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    fb_handshake_split(&link->hs, node->options.provider, &link->send, &link->receive);
    memcpy(link->info.handshake_hash, link->hs.h, sizeof link->info.handshake_hash);
    link->step = FB_STEP_BINDING;
    if (link->info.dialled) {
        /* The acceptor may hold this node pending before it names itself. */
        fb_timer_set(node, &link->life,
                     fb_add_sat_u64(node->mono_ns, node->options.timing.pending_ns));
        fb_links_owe(node, index, FB_OWES_BINDING);
    }
    fb_links_touch(node, index);
}

bool fb_stream_handshake_out(fb_node *node, uint32_t index, fb_writer *out)
{
    fb_link *link = fb_links_get(node, index);
    if (fb_handshake_write(&link->hs, node->options.provider, fb_span_of(NULL, 0), out) != FB_OK) {
        fb_link_close(node, index, FB_ERR_LINK_HANDSHAKE);
        return false;
    }
    if (fb_handshake_done(&link->hs)) handshake_done(node, index);
    return true;
}

static fb_status handshake_in(fb_node *node, uint32_t index, fb_span message)
{
    fb_link *link = fb_links_get(node, index);
    uint8_t nothing[1];
    fb_writer payload = fb_writer_of(nothing, 0); /* the profile's payloads are empty */
    FB_TRY(fb_handshake_read(&link->hs, node->options.provider, message, &payload));
    if (fb_handshake_done(&link->hs)) {
        handshake_done(node, index);
    } else {
        fb_links_owe(node, index, FB_OWES_HANDSHAKE);
    }
    return FB_OK;
}

/* MP-7-7 */
static fb_status binding_in(fb_node *node, uint32_t index, fb_span sealed)
{
    fb_link *link = fb_links_get(node, index);
    const fb_provider *provider = node->options.provider;
    uint8_t *plain = node->links->scratch;
    FB_TRY(fb_transport_open(&link->receive, provider, sealed, plain));
    fb_span bytes = fb_span_of(plain, sealed.len - FB_NOISE_TAG);
    if (sealed.len == CLOSE_SEALED) {
        /* Refused by name before any binding: the reason is a control frame. */
        fb_record record;
        FB_TRY(fb_record_parse(bytes, &record));
        if (record.channel != FB_CHANNEL_CONTROL || record.flags != FB_RECORD_WHOLE ||
            record.bytes.p[0] != FB_CONTROL_CLOSE) {
            return FB_ERR_LINK_RECORD;
        }
        return fb_control_frame(node, index, record.bytes, 0);
    }
    fb_binding binding;
    fb_link_role peer = own_role(link) == FB_LINK_DIALER ? FB_LINK_ACCEPTOR : FB_LINK_DIALER;
    FB_TRY(fb_binding_read(provider, peer, link->info.handshake_hash, &link->hs.remote_static,
                           bytes, &binding));
    link->info.heard_ns = node->mono_ns;
    fb_links_bound(node, index, &binding);
    return FB_OK;
}

static fb_status record_in(fb_node *node, uint32_t index, fb_span sealed)
{
    fb_link *link = fb_links_get(node, index);
    /* To go back to when the frame cannot be taken now: the nonce, and the key where REKEY is due.
     */
    uint64_t nonce = link->receive.nonce;
    bool rekeys = fb_transport_rekeys(&link->receive);
    fb_cipher cipher;
    if (rekeys) cipher = link->receive;
    FB_TRY(fb_transport_open(&link->receive, node->options.provider, sealed, node->links->scratch));
    fb_record record;
    FB_TRY(fb_record_parse(fb_span_of(node->links->scratch, sealed.len - FB_NOISE_TAG), &record));
    fb_reassembly *parts = &link->parts[record.channel];
    if (record.flags == FB_RECORD_FIRST && record.channel != FB_CHANNEL_CONTROL && !parts->open) {
        if (node->options.sizes.frames == 0) return FB_ERR_LINK_RECORD; /* whole records only */
        parts->buffer = fb_links_frame_take(node);
        parts->cap = FB_FRAME_BYTES_MAX;
        link->parts_since_ns[record.channel] = node->mono_ns;
    }
    /* A control frame is one record. */
    if (record.channel == FB_CHANNEL_CONTROL && record.flags != FB_RECORD_WHOLE) {
        return FB_ERR_LINK_RECORD;
    }
    fb_reassembly before = *parts;
    fb_span frame;
    bool complete;
    fb_status status = fb_reassembly_add(parts, &record, &frame, &complete);
    if (status == FB_OK && complete) {
        status = fb_links_frame(node, index, record.channel, frame, 0);
    } else if (status == FB_OK) {
        link->info.heard_ns = node->mono_ns;
    }
    if (status == FB_ERR_BUSY) {
        link->receive.nonce = nonce;
        if (rekeys) link->receive = cipher;
        *parts = before;
    } else if (complete) {
        fb_links_frame_give(node, parts);
    }
    if (rekeys) fb_cipher_wipe(&cipher);
    return status;
}

/* MP-7-8 */
static bool length_is_allowed(const fb_link *link, size_t len)
{
    switch (link->step) {
    case FB_STEP_HANDSHAKE:
        return !fb_handshake_writes(&link->hs) && len == fb_handshake_overhead(&link->hs);
    case FB_STEP_BINDING:
        return len == BINDING_SEALED || len == CLOSE_SEALED;
    default:
        return len >= FB_RECORD_HEAD + FB_NOISE_TAG && len <= FB_RECORD_BYTES_MAX + FB_NOISE_TAG;
    }
}

/* Bytes of the message that begins with `head`, as far as they are known (`whole`). */
/* MP-7-5 */
static fb_status message_size(const fb_link *link, fb_span head, size_t *size, bool *whole)
{
    *whole = true;
    if (link->step == FB_STEP_PREAMBLE) {
        *size = link->info.dialled ? FB_PREAMBLE_ACCEPTOR_BYTES : FB_PREAMBLE_DIALER_BYTES;
        return fb_preamble_may_follow(head) ? FB_OK : FB_ERR_LINK_MAGIC;
    }
    *size = FB_RECORD_LENGTH;
    *whole = head.len >= FB_RECORD_LENGTH;
    if (!*whole) return FB_OK;
    size_t len = (size_t)head.p[0] << 8 | head.p[1];
    *size += len;
    if (length_is_allowed(link, len)) return FB_OK;
    return link->step == FB_STEP_HANDSHAKE ? FB_ERR_LINK_HANDSHAKE : FB_ERR_LINK_RECORD;
}

static fb_status message_in(fb_node *node, uint32_t index, fb_span message)
{
    const fb_link *link = fb_links_get(node, index);
    fb_span body = message;
    if (link->step != FB_STEP_PREAMBLE) {
        body = fb_span_of(message.p + FB_RECORD_LENGTH, message.len - FB_RECORD_LENGTH);
    }
    switch (link->step) {
    case FB_STEP_PREAMBLE:
        return link->info.dialled ? answered_preamble(node, index, body)
                                  : accept_preamble(node, index, body);
    case FB_STEP_HANDSHAKE:
        return handshake_in(node, index, body);
    case FB_STEP_BINDING:
        return binding_in(node, index, body);
    default:
        return record_in(node, index, body);
    }
}

/* MP-5-20 */
static void refuse(fb_node *node, uint32_t index, fb_status why)
{
    fb_link *link = fb_links_get(node, index);
    if (link->info.state == FB_LINK_CLOSING) return;
    fb_count(node, FB_COUNTER_LINKS_REFUSED, 1);
    fb_observe(node, FB_FACT_LINK_REFUSED, link->info.number, why, fb_span_of(NULL, 0));
    fb_link_close(node, index, why);
}

/* Not before the planes are loaded, not while the peer was refused, not while paused. */
static bool may_read(const fb_node *node, const fb_link *link)
{
    return node->phase == FB_PHASE_RUNNING && !link->paused &&
           link->info.state != FB_LINK_CLOSING && link->refusal == FB_PREAMBLE_GO_ON;
}

size_t fb_stream_take(fb_node *node, uint32_t index, fb_span bytes)
{
    fb_link *link = fb_links_get(node, index);
    size_t taken = 0;
    uint32_t messages = 0;
    if (link->in == NULL) return bytes.len;
    while (taken < bytes.len && may_read(node, link)) {
        size_t left = bytes.len - taken, size, fetched = 0;
        bool whole;
        bool gathered = link->in_used != 0;
        fb_span head =
            gathered ? fb_span_of(link->in, link->in_used) : fb_span_of(bytes.p + taken, left);
        fb_status status = message_size(link, head, &size, &whole);
        if (status == FB_OK && (gathered || !whole || left < size)) {
            /* Into the buffer: up to the length first, then up to the end. */
            fetched = size - link->in_used < left ? size - link->in_used : left;
            memcpy(link->in + link->in_used, bytes.p + taken, fetched);
            link->in_used += (uint32_t)fetched;
            taken += fetched;
            fb_links_touch(node, index);
            gathered = true;
            if (link->step == FB_STEP_PREAMBLE || link->in_used < size || !whole) {
                status = message_size(link, fb_span_of(link->in, link->in_used), &size, &whole);
            }
            if (status == FB_OK && (!whole || link->in_used < size)) continue;
        }
        if (status == FB_OK) {
            if (++messages > RECORDS_A_STEP_MAX || !fb_effect_fits(node, RESERVE_BYTES)) {
                status = FB_ERR_BUSY;
            } else {
                status = message_in(node, index,
                                    gathered ? fb_span_of(link->in, size)
                                             : fb_span_of(bytes.p + taken, size));
            }
            if (status == FB_ERR_BUSY) {
                /* As if these bytes had not come. */
                link->in_used -= (uint32_t)fetched;
                taken -= fetched;
                bool soon = messages > RECORDS_A_STEP_MAX || !fb_effect_fits(node, RESERVE_BYTES);
                if (soon) {
                    fb_links_owe(node, index, FB_OWES_RESUME);
                } else if (!link->paused) {
                    link->paused = true;
                    node->links->paused++;
                }
                fb_links_touch(node, index);
                return taken;
            }
        }
        if (status != FB_OK) {
            refuse(node, index, status);
            break;
        }
        if (gathered) {
            link->in_used = 0;
        } else {
            taken += size;
        }
        fb_links_touch(node, index);
    }
    if (node->phase != FB_PHASE_RUNNING || link->paused) return taken;
    return bytes.len; /* a closing link's bytes are dropped */
}
