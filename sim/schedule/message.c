/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/schedule/message.h"

#include "protocol/link/external.h"
#include "protocol/link/link.h"
#include "protocol/link/record.h"

/* protocol/messaging/state.h is private to its plane; the numbers are of docs/WIRE-FORMATS.md. */
#define MESSAGE_FRAME 1u
#define MESSAGE_ACK   2u

const char *const fb_sim_message_kind_names[FB_SIM_MESSAGE_KINDS] = {
    "any",     "handshake", "heartbeat", "close",  "invite", "membership",
    "vectors", "interest",  "hello",     "signal", "ack",    "call",
};

const char *const fb_sim_message_act_names[FB_SIM_MESSAGE_ACTS] = {"drop", "dup", "delay",
                                                                   "corrupt", "cut"};

fb_sim_message_kind fb_sim_message_kind_of(uint8_t channel, fb_span frame)
{
    static const uint8_t control[FB_CONTROL_TYPES] = {
        [FB_CONTROL_HEARTBEAT] = FB_SIM_MESSAGE_HEARTBEAT,
        [FB_CONTROL_CLOSE] = FB_SIM_MESSAGE_CLOSE,
        [FB_CONTROL_INVITE] = FB_SIM_MESSAGE_INVITE,
        [FB_CONTROL_MEMBERSHIP] = FB_SIM_MESSAGE_MEMBERSHIP,
        [FB_CONTROL_VECTORS] = FB_SIM_MESSAGE_VECTORS,
        [FB_CONTROL_INTEREST] = FB_SIM_MESSAGE_INTEREST,
        [FB_CONTROL_HELLO] = FB_SIM_MESSAGE_HELLO,
    };
    uint8_t first = frame.len == 0 ? 0 : frame.p[0];
    switch (channel) {
    case FB_CHANNEL_CONTROL:
        return first < FB_CONTROL_TYPES ? (fb_sim_message_kind)control[first] : FB_SIM_MESSAGE_ANY;
    case FB_CHANNEL_MESSAGING:
        return first == MESSAGE_FRAME ? FB_SIM_MESSAGE_SIGNAL
               : first == MESSAGE_ACK ? FB_SIM_MESSAGE_ACK
                                      : FB_SIM_MESSAGE_ANY;
    case FB_CHANNEL_CALLS:
        return FB_SIM_MESSAGE_CALL;
    default:
        return FB_SIM_MESSAGE_ANY;
    }
}

bool fb_sim_message_in_stream(fb_span sent, uint32_t counts[FB_SIM_MESSAGE_KINDS])
{
    memset(counts, 0, FB_SIM_MESSAGE_KINDS * sizeof *counts);
    size_t at = 0;
    while (at < sent.len) {
        if (sent.len - at < FB_RECORD_OVERHEAD + FB_RECORD_HEAD) return false;
        size_t sealed = (size_t)sent.p[at] << 8 | sent.p[at + 1];
        const uint8_t *plain = sent.p + at + FB_RECORD_LENGTH;
        if (sealed + FB_RECORD_LENGTH > sent.len - at || sealed < FB_RECORD_HEAD + FB_NOISE_TAG) {
            return false;
        }
        if (plain[0] >= FB_CHANNELS || plain[1] > FB_RECORD_WHOLE) return false;
        if ((plain[1] & FB_RECORD_FIRST) != 0) {
            fb_span frame =
                fb_span_of(plain + FB_RECORD_HEAD, sealed - FB_RECORD_HEAD - FB_NOISE_TAG);
            fb_sim_message_kind kind = fb_sim_message_kind_of(plain[0], frame);
            counts[FB_SIM_MESSAGE_ANY]++;
            if (kind != FB_SIM_MESSAGE_ANY) counts[kind]++;
        }
        at += FB_RECORD_LENGTH + sealed;
    }
    return true;
}

fb_sim_message_kind fb_sim_message_in_frame(fb_span frame)
{
    if (frame.len < FB_EXTERNAL_HEAD) return FB_SIM_MESSAGE_ANY;
    return fb_sim_message_kind_of(
        frame.p[0], fb_span_of(frame.p + FB_EXTERNAL_HEAD, frame.len - FB_EXTERNAL_HEAD));
}
