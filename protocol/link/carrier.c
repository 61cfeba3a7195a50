/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions on an external carrier. profile 7.
 *
 * Each end draws a session and says hello until the peer's frames name it. A hello of a session
 * that is not the present one is a proposal: this end draws a session for it and answers, but what
 * is up stays up until a frame names both new sessions. So a hello that the carrier held back for
 * long, or repeats, ends nothing. */
#include "protocol/core/node_id.h"
#include "protocol/link/external.h"
#include "protocol/link/state.h"

static const char transcript_label[] = "faberio-carrier-v1"; /* with its zero byte */

static uint64_t draw_session(fb_node *node)
{
    uint64_t session;
    do {
        session =
            fb_draw(node->seed, FB_STREAM_SESSION, node->incarnation, node->links->sessions++);
    } while (session == 0);
    return session;
}

/* MP-7-25 */
static void say_hello(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    link->resend_ns = node->options.timing.resend_min_ns;
    fb_timer_set(node, &link->resend, fb_add_sat_u64(node->mono_ns, link->resend_ns));
    fb_links_owe(node, index, FB_OWES_HELLO);
}

static void propose(fb_node *node, uint32_t index, uint64_t next_peer, uint64_t incarnation)
{
    fb_link *link = fb_links_get(node, index);
    if (link->next_own == 0) {
        link->next_own = draw_session(node);
        link->next_since_ns = node->mono_ns;
    }
    link->next_peer = next_peer;
    link->next_incarnation = incarnation;
    if (link->peer_session == 0) link->info.session = link->next_own;
    fb_links_fix(node, index);
    say_hello(node, index);
}

void fb_external_begin(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    link->info.external = true;
    /* Nobody dialled; the rule for duplicates then goes by the smaller id. */
    link->info.dialled = fb_id_compare(node->self, link->info.peer) < 0;
    link->step = FB_STEP_HELLO;
    propose(node, index, 0, 0);
}

void fb_external_resend(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    if (link->info.state == FB_LINK_CLOSING || link->next_own == 0) return;
    if (link->peer_session != 0 &&
        node->mono_ns - link->next_since_ns > node->options.timing.handshake_ns) {
        /* Nobody stands behind that proposal: an old hello that the carrier held back. */
        link->next_own = 0;
        link->next_peer = 0;
        fb_links_fix(node, index);
        return;
    }
    link->resend_ns = fb_min_u64(link->resend_ns * 2, node->options.timing.resend_max_ns);
    fb_timer_set(node, &link->resend, fb_add_sat_u64(node->mono_ns, link->resend_ns));
    fb_links_owe(node, index, FB_OWES_HELLO);
}

/* What belongs to one session only. */
static void forget_session(fb_link *link)
{
    link->peer_session = 0;
    link->next_own = 0;
    link->next_peer = 0;
    link->heartbeat_number = 0;
    link->pending_bytes = 0;
    memset(link->numbers, 0, sizeof link->numbers);
    link->owes = 0;
    link->info.state = FB_LINK_OPENING;
    link->step = FB_STEP_HELLO;
}

void fb_external_restart(fb_node *node, uint32_t index, fb_error why)
{
    fb_link *link = fb_links_get(node, index);
    fb_id peer = link->info.peer;
    fb_links_down(node, index, why);
    fb_timer_clear(node, &link->life);
    forget_session(link);
    propose(node, index, 0, 0);
    fb_dial_lost(node, link->info.space, peer);
}

/* The same 64 bytes at both ends, different for every pair of sessions: what an invite proof is
 * bound to. */
static void write_transcript(fb_node *node, fb_link *link)
{
    uint8_t sessions[2][8];
    bool first = fb_id_compare(node->self, link->info.peer) < 0;
    fb_store_be(sessions[first ? 0 : 1], link->info.session, 8);
    fb_store_be(sessions[first ? 1 : 0], link->peer_session, 8);
    const fb_b32 *low = first ? &node->self_key : &link->info.peer_key;
    const fb_b32 *high = first ? &link->info.peer_key : &node->self_key;
    const fb_span parts[4] = {
        fb_span_of(transcript_label, sizeof transcript_label),
        fb_span_of(low->b, sizeof low->b),
        fb_span_of(high->b, sizeof high->b),
        fb_span_of(sessions, sizeof sessions),
    };
    const fb_provider *provider = node->options.provider;
    provider->blake2b(provider->user, fb_span_of(NULL, 0), parts, 4, link->info.handshake_hash,
                      sizeof link->info.handshake_hash);
}

/* A frame named both sessions: they are the present ones from here on. */
static void establish(fb_node *node, uint32_t index, uint64_t peer, uint64_t incarnation)
{
    fb_link *link = fb_links_get(node, index);
    uint64_t own = link->next_own;
    if (link->step == FB_STEP_RECORDS) fb_links_down(node, index, FB_ERR_LINK_SESSION);
    forget_session(link);
    link->info.session = own;
    link->peer_session = peer;
    link->info.heard_ns = node->mono_ns;
    fb_timer_clear(node, &link->resend);
    write_transcript(node, link);
    const fb_binding binding = {link->info.peer_key, incarnation};
    fb_links_bound(node, index, &binding);
    fb_links_show(node, index);
}

static fb_status hello_in(fb_node *node, uint32_t index, const fb_external_frame *frame)
{
    fb_link *link = fb_links_get(node, index);
    fb_reader in = fb_reader_of(frame->bytes);
    (void)fb_read_u8(&in);
    uint8_t flags = fb_read_u8(&in);
    uint64_t incarnation = fb_read_u64(&in);
    if (!fb_reader_done(&in) || (flags & ~FB_HELLO_FLAGS) != 0 || incarnation == 0) {
        return FB_ERR_LINK_RECORD;
    }
    uint64_t theirs = frame->sender_session, ours = frame->peer_session;
    if (link->peer_session != 0 && theirs == link->peer_session) {
        if (ours != 0 && ours != link->info.session) return FB_ERR_LINK_SESSION;
    } else if (ours != 0 && ours == link->next_own) {
        establish(node, index, theirs, incarnation);
        if (link->info.state == FB_LINK_CLOSING) return FB_OK;
    } else if (ours == 0) {
        propose(node, index, theirs, incarnation);
        return FB_ERR_LINK_SESSION;
    } else {
        return FB_ERR_LINK_SESSION;
    }
    link->info.heard_ns = node->mono_ns;
    if ((flags & FB_HELLO_OPEN) != 0) fb_links_peer_ok(node, index);
    if ((flags & FB_HELLO_CONFIRMED) == 0) fb_links_owe(node, index, FB_OWES_HELLO);
    return FB_OK;
}

/* MP-7-24 */
void fb_external_frame_in(fb_node *node, uint32_t index, fb_span bytes)
{
    fb_link *link = fb_links_get(node, index);
    fb_external_frame frame;
    if (link->info.state == FB_LINK_CLOSING) return;
    fb_status status = fb_external_read(bytes, &frame);
    if (status == FB_OK) {
        bool hello = frame.channel == FB_CHANNEL_CONTROL && frame.bytes.len != 0 &&
                     frame.bytes.p[0] == FB_CONTROL_HELLO;
        bool present = link->peer_session != 0 && frame.sender_session == link->peer_session &&
                       frame.peer_session == link->info.session;
        bool next = link->next_peer != 0 && frame.sender_session == link->next_peer &&
                    frame.peer_session == link->next_own;
        if (hello) {
            status = hello_in(node, index, &frame);
        } else if (present || next) {
            /* Any frame that names both new sessions confirms them. */
            if (!present) establish(node, index, link->next_peer, link->next_incarnation);
            if (link->info.state == FB_LINK_CLOSING) return;
            status = fb_links_frame(node, index, frame.channel, frame.bytes, frame.number);
            if (status == FB_ERR_BUSY) status = FB_OK; /* lost, as the carrier may lose it */
        } else {
            status = FB_ERR_LINK_SESSION; /* an old session's: dropped, nobody's fault */
        }
    }
    fb_links_touch(node, index);
    if (status == FB_OK || status == FB_ERR_LINK_SESSION) return;
    if (link->info.state == FB_LINK_CLOSING) return;
    fb_count(node, FB_COUNTER_LINKS_REFUSED, 1);
    fb_observe(node, FB_FACT_LINK_REFUSED, link->info.number, status, fb_span_of(NULL, 0));
    if (status == FB_ERR_LINK_PENDING) {
        fb_link_close(node, index, status);
    } else {
        fb_link_misbehaved(node, index, 1);
    }
}
