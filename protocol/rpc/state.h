/* SPDX-License-Identifier: Apache-2.0 */
/* The table of calls. Only for files of this folder.
 *
 * Frames, all integers big-endian; a call's number is its caller's, from 1 on a link:
 *     1 request  u64 call, u16 method, u32 ms left, u64 credit, arguments
 *     2 piece    u64 call, u32 index from 0, bytes
 *     3 end      u64 call, u32 pieces before it, u16 fb_error
 *     4 credit   u64 call, u32 pieces taken, u64 credit
 *     5 cancel   u64 call
 * Credit is the total granted since the call began, so a repeated or overtaken frame does no harm;
 * a piece costs its length and FB_PIECE_COST.
 *
 * On an external carrier frames get lost, so the answer goes one piece at a time: a credit frame
 * says how many were taken, and the caller repeats its last word, the whole request at first, until
 * it is answered. The server repeats only when asked. */
#ifndef FB_RPC_STATE_H
#define FB_RPC_STATE_H

#include "protocol/link/link.h"
#include "protocol/rpc/rpc.h"

#define FB_CALL_REQUEST 1u
#define FB_CALL_PIECE   2u
#define FB_CALL_END     3u
#define FB_CALL_CREDIT  4u
#define FB_CALL_CANCEL  5u

#define FB_PIECE_HEAD 13u
#define FB_PIECE_COST 8u

_Static_assert(sizeof((fb_node *)0)->methods / sizeof(void *) >= FB_METHODS, "each has a place");
_Static_assert(FB_PIECE_COST >= 4, "a kept piece is stored with its length");

typedef enum fb_call_side {
    FB_SIDE_FREE,
    FB_SIDE_CALLER,
    FB_SIDE_SERVER,
    FB_SIDE_LEAVING, /* over, but a frame of its buffer is half out */
} fb_call_side;

typedef struct fb_call {
    uint8_t role;
    bool external;
    bool peeked;   /* its frame was given to peek and not yet taken */
    bool ended;    /* caller: the end arrived; server: the method has finished */
    bool answered; /* caller: something of the answer arrived */
    bool paused;   /* caller: the consumer takes nothing now */
    bool inside;   /* caller: the consumer is being called */
    bool resumed;  /* caller: and has said meanwhile that it takes more */
    bool closed;   /* server, external: over, kept to repeat the end */
    bool asking;   /* server: `more` is unanswered */
    bool ready;    /* server: a piece is in the buffer */
    bool shown;    /* server, external: that piece was sent at least once */
    bool wanting;  /* server: in the count of those that `more` may be asked of */
    uint16_t method;
    uint16_t status; /* of the end */
    uint32_t owes;   /* bit 1 << type of frame */
    uint32_t link;
    uint64_t number;
    uint64_t serial;
    uint64_t deadline_ns;
    uint64_t retry_ns; /* external caller: says its last word again then */
    uint64_t backoff_ns;
    uint64_t credit; /* total granted */
    uint64_t spent;
    uint64_t consumed; /* caller: of what was spent, what its consumer has had */
    uint64_t window;   /* granted at once */
    uint32_t pieces; /* caller: taken; server: sent, on an external carrier: taken by the caller */
    uint32_t end_pieces;
    uint32_t len; /* bytes in the buffer: arguments, kept pieces, or the piece to send */
    uint32_t at;  /* kept pieces before it were given on */
    fb_call_piece piece;
    uint64_t user;
    fb_timer timer;
    fb_digest_cell digest;
    _Alignas(16) uint8_t state[FB_CALL_STATE_BYTES];
} fb_call;

/* A frame about a call that is not in the table. */
typedef struct fb_call_note {
    uint8_t type; /* FB_CALL_END or FB_CALL_CANCEL */
    uint16_t status;
    uint64_t number;
} fb_call_note;

typedef struct fb_call_link {
    bool up;
    bool external;
    uint8_t out;       /* type of the frame peeked, 0: none */
    uint32_t out_call; /* whose, FB_NONE: the first note */
    uint32_t owing;    /* calls that owe a frame */
    uint32_t served;
    uint32_t scan;
    uint32_t notes;
    uint64_t last_own;  /* number given to the last own call */
    uint64_t last_peer; /* greatest number of the peer's calls */
    fb_call_note note[FB_CALL_NOTES_MAX];
    fb_digest_cell digest;
} fb_call_link;

struct fb_rpc {
    uint32_t calls, links, own; /* own: calls below it are callers */
    uint32_t bytes;             /* of each buffer */
    uint64_t serials;
    uint32_t wanting;
    fb_call *call;
    uint8_t *buffer;
    fb_call_link *link;
};

static inline uint8_t *fb_call_buffer(const struct fb_rpc *rpc, uint32_t call)
{
    return rpc->buffer + (size_t)call * rpc->bytes;
}

/* table.c */
uint32_t fb_call_take(fb_node *node, fb_call_side role, uint32_t link, uint64_t number);
void fb_call_free(fb_node *node, uint32_t call);
uint32_t fb_call_find(const struct fb_rpc *rpc, fb_call_side role, uint32_t link, uint64_t number);
void fb_call_touch(fb_node *node, uint32_t call);
void fb_call_owe(fb_node *node, uint32_t call, uint32_t type);
void fb_call_paid(fb_node *node, uint32_t call, uint32_t type);
void fb_call_note_add(fb_node *node, uint32_t link, uint8_t type, uint64_t number,
                      fb_status status);
bool fb_call_peek(fb_node *node, uint32_t link, fb_frame_out *out);
void fb_call_sent(fb_node *node, uint32_t link);

/* caller.c */
fb_status fb_caller_piece(fb_node *node, uint32_t link, uint64_t number, uint32_t index,
                          fb_span piece);
fb_status fb_caller_end(fb_node *node, uint32_t link, uint64_t number, uint32_t pieces,
                        uint16_t status);
void fb_caller_timer(fb_node *node, uint32_t call);
void fb_caller_sent(fb_node *node, uint32_t call, uint8_t type);
/* The call ends for its consumer. */
void fb_caller_finish(fb_node *node, uint32_t call, fb_status status);

/* server.c */
fb_status fb_server_request(fb_node *node, uint32_t link, uint64_t number, fb_reader *r);
fb_status fb_server_credit(fb_node *node, uint32_t link, uint64_t number, uint32_t pieces,
                           uint64_t credit);
fb_status fb_server_cancel(fb_node *node, uint32_t link, uint64_t number);
void fb_server_timer(fb_node *node, uint32_t call);
void fb_server_sent(fb_node *node, uint32_t call, uint8_t type);
/* The method is told, the place freed. */
void fb_server_over(fb_node *node, uint32_t call);
void fb_server_flush(fb_node *node);

#endif
