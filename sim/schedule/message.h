/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of messages as a schedule names them. The simulator's cryptography leaves the bytes of a
 * record in the clear, so that what a node sends can be told apart from outside. */
#ifndef FB_SIM_SCHEDULE_MESSAGE_H
#define FB_SIM_SCHEDULE_MESSAGE_H

#include "protocol/base/types.h"

typedef enum fb_sim_message_kind {
    FB_SIM_MESSAGE_ANY,       /* every frame, and every send of a handshake */
    FB_SIM_MESSAGE_HANDSHAKE, /* what comes before records */
    FB_SIM_MESSAGE_HEARTBEAT,
    FB_SIM_MESSAGE_CLOSE,
    FB_SIM_MESSAGE_INVITE,
    FB_SIM_MESSAGE_MEMBERSHIP,
    FB_SIM_MESSAGE_VECTORS,
    FB_SIM_MESSAGE_INTEREST,
    FB_SIM_MESSAGE_HELLO,
    FB_SIM_MESSAGE_SIGNAL, /* an envelope */
    FB_SIM_MESSAGE_ACK,
    FB_SIM_MESSAGE_CALL, /* question, answer, credit, cancellation of calls between nodes */
    FB_SIM_MESSAGE_KINDS
} fb_sim_message_kind;

extern const char *const fb_sim_message_kind_names[FB_SIM_MESSAGE_KINDS];

/* What is done to one message. */
typedef enum fb_sim_message_act {
    FB_SIM_MESSAGE_DROP, /* a stream breaks instead: nothing else is lost on one */
    FB_SIM_MESSAGE_DUP,  /* on a carrier */
    FB_SIM_MESSAGE_DELAY,
    FB_SIM_MESSAGE_CORRUPT, /* one bit */
    FB_SIM_MESSAGE_CUT,     /* the connection breaks after it */
    FB_SIM_MESSAGE_ACTS
} fb_sim_message_act;

extern const char *const fb_sim_message_act_names[FB_SIM_MESSAGE_ACTS];

/* The kind of one frame: its channel and the frame's first byte. */
fb_sim_message_kind fb_sim_message_kind_of(uint8_t channel, fb_span frame);

/* What a send on a stream begins, kind by kind: records follow each other, and only the first
 * record of a frame counts. False: these bytes are no records (a handshake). */
bool fb_sim_message_in_stream(fb_span sent, uint32_t counts[FB_SIM_MESSAGE_KINDS]);
/* A whole frame of an external carrier. */
fb_sim_message_kind fb_sim_message_in_frame(fb_span frame);

#endif
