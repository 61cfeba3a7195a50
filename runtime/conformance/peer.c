/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/conformance/peer.h"

#include "protocol/base/cursor.h"
#include "protocol/link/external.h"

#define INCARNATION UINT64_C(1)
/* docs/WIRE-FORMATS.md, "Link" and "Messaging" */
#define HELLO_SEEN_OPEN  3u
#define HEARTBEAT_OPEN   1u
#define HEARTBEAT_DIGEST 16u
#define FRAME_MESSAGE    1u
#define FRAME_ACK        2u
#define MESSAGE_HEAD     9u

static fb_writer begin(const fb_peer_end *end, fb_channel_id channel, uint64_t number, uint8_t *out,
                       size_t cap)
{
    const fb_external_frame head = {
        channel, end->own_session, end->node_session, number, {NULL, 0}};
    fb_external_write_head(out, &head);
    fb_writer w = fb_writer_of(out, cap);
    (void)fb_write_room(&w, FB_EXTERNAL_HEAD);
    return w;
}

static void say_hello(fb_peer_end *end, fb_peer_in *in)
{
    fb_writer w =
        begin(end, FB_CHANNEL_CONTROL, ++end->control_number, in->reply, sizeof in->reply);
    fb_write_u8(&w, FB_CONTROL_HELLO);
    fb_write_u8(&w, HELLO_SEEN_OPEN);
    fb_write_u64(&w, INCARNATION);
    in->event = FB_PEER_REPLY;
    in->reply_len = w.at;
}

/* Both clocks of this end run as the node's do; only the wall clock may be off. */
static void beat(fb_peer_end *end, uint64_t echo_ns, int64_t wall_us, uint64_t mono_ns,
                 fb_peer_in *in)
{
    static const uint8_t no_digest[HEARTBEAT_DIGEST] = {0};
    fb_writer w =
        begin(end, FB_CHANNEL_CONTROL, ++end->control_number, in->reply, sizeof in->reply);
    fb_write_u8(&w, FB_CONTROL_HEARTBEAT);
    fb_write_u8(&w, HEARTBEAT_OPEN);
    fb_write_u64(&w, (uint64_t)wall_us + (uint64_t)end->offset_us);
    fb_write_u64(&w, mono_ns);
    fb_write_u64(&w, echo_ns);
    fb_write_u64(&w, 0);
    fb_write_bytes(&w, no_digest, sizeof no_digest);
    in->event = FB_PEER_REPLY;
    in->reply_len = w.at;
}

static void take_control(fb_peer_end *end, const fb_external_frame *frame, int64_t wall_us,
                         uint64_t mono_ns, fb_peer_in *in)
{
    fb_reader r = fb_reader_of(frame->bytes);
    uint8_t type = fb_read_u8(&r);
    if (type == FB_CONTROL_HELLO) {
        if (end->node_session != frame->sender_session) {
            end->own_session++;
            end->node_session = frame->sender_session;
            end->control_number = end->message_frames = 0;
        }
        say_hello(end, in);
    } else if (type == FB_CONTROL_HEARTBEAT) {
        (void)fb_read_u8(&r);
        (void)fb_read_u64(&r);
        beat(end, fb_read_u64(&r), wall_us, mono_ns, in);
    }
}

void fb_peer_take(fb_peer_end *end, fb_span frame, int64_t node_wall_us, uint64_t node_mono_ns,
                  fb_peer_in *in)
{
    fb_external_frame f;
    *in = (fb_peer_in){.event = FB_PEER_NOTHING};
    if (fb_external_read(frame, &f) != FB_OK || f.bytes.len == 0) return;
    if (f.channel == FB_CHANNEL_CONTROL) {
        take_control(end, &f, node_wall_us, node_mono_ns, in);
    } else if (f.channel == FB_CHANNEL_MESSAGING && f.sender_session == end->node_session) {
        fb_reader r = fb_reader_of(f.bytes);
        uint8_t type = fb_read_u8(&r);
        in->number = fb_read_u64(&r);
        in->envelope = fb_read_bytes(&r, fb_reader_left(&r));
        if (type == FRAME_MESSAGE) in->event = FB_PEER_MESSAGE;
        if (type == FRAME_ACK) in->event = FB_PEER_ACK;
    }
}

static size_t message_frame(fb_peer_end *end, uint8_t type, uint64_t number, fb_span bytes,
                            uint8_t *out)
{
    fb_writer w = begin(end, FB_CHANNEL_MESSAGING, ++end->message_frames, out,
                        FB_EXTERNAL_HEAD + MESSAGE_HEAD + bytes.len);
    fb_write_u8(&w, type);
    fb_write_u64(&w, number);
    fb_write_span(&w, bytes);
    return w.at;
}

size_t fb_peer_message(fb_peer_end *end, uint64_t number, fb_span envelope, uint8_t *out)
{
    return message_frame(end, FRAME_MESSAGE, number, envelope, out);
}

size_t fb_peer_ack(fb_peer_end *end, uint64_t number, uint8_t *out)
{
    return message_frame(end, FRAME_ACK, number, (fb_span){NULL, 0}, out);
}
