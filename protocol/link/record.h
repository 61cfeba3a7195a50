/* SPDX-License-Identifier: Apache-2.0 */
/* Records of an established stream link, and the frames they carry. profile 7.
 *
 * On the wire a record is a u16 length and so many sealed bytes. Its plaintext is u8 channel,
 * u8 flags and bytes of one frame of that channel. Frames of different channels interleave; within
 * a channel the records of a frame follow each other. */
#ifndef FB_LINK_RECORD_H
#define FB_LINK_RECORD_H

#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "protocol/link/link.h"
#include "protocol/link/noise.h"

#define FB_RECORD_FIRST 0x01u
#define FB_RECORD_LAST  0x02u
#define FB_RECORD_WHOLE (FB_RECORD_FIRST | FB_RECORD_LAST)

#define FB_RECORD_LENGTH    2u /* the u16 before every transport message */
#define FB_RECORD_HEAD      2u /* channel, flags */
#define FB_RECORD_PIECE_MAX (FB_RECORD_BYTES_MAX - FB_RECORD_HEAD) /* of a frame in one record */
#define FB_RECORD_WIRE_MAX  (FB_RECORD_BYTES_MAX + FB_RECORD_OVERHEAD)

/* Is the key replaced before the next message? */
static inline bool fb_transport_rekeys(const fb_cipher *cipher)
{
    return cipher->nonce != 0 && cipher->nonce % FB_REKEY_EVERY == 0;
}

/* Seals `plain_len` bytes that already stand at wire + FB_RECORD_LENGTH, in place, writes the
 * length before them and rekeys when it is time. wire has room for FB_RECORD_LENGTH + plain_len +
 * FB_NOISE_TAG bytes, which is also what the message takes. For bindings and records alike.
 * FB_ERR_LIMIT: the nonces are spent. */
fb_status fb_transport_seal(fb_cipher *cipher, const fb_provider *provider, uint8_t *wire,
                            size_t plain_len);

/* Opens one transport message (without its length) to out, which has room for sealed.len -
 * FB_NOISE_TAG bytes and may be sealed.p itself. FB_ERR_LINK_RECORD, FB_ERR_LIMIT. */
fb_status fb_transport_open(fb_cipher *cipher, const fb_provider *provider, fb_span sealed,
                            uint8_t *out);

/* Writes one whole record to wire: FB_RECORD_OVERHEAD + FB_RECORD_HEAD + piece.len bytes. The piece
 * is at most FB_RECORD_PIECE_MAX long and may stand in its place in wire already. */
fb_status fb_record_write(fb_cipher *cipher, const fb_provider *provider, fb_channel_id channel,
                          uint8_t flags, fb_span piece, uint8_t *wire);

typedef struct fb_record {
    fb_channel_id channel;
    uint8_t flags;
    fb_span bytes; /* of the frame; borrowed from the plaintext */
} fb_record;

/* Takes a plaintext apart. FB_ERR_LINK_RECORD: too short or too long, another channel, other bits.
 */
fb_status fb_record_parse(fb_span plain, fb_record *out);

/* A frame that comes in several records, in a buffer of fixed size. buffer is NULL while no frame
 * is incomplete. */
typedef struct fb_reassembly {
    uint8_t *buffer;
    uint32_t cap;
    uint32_t used;
    bool open; /* the first record came, the last one not yet */
} fb_reassembly;

/* Adds a record's bytes. When it completes a frame, *frame is set and *complete true: a frame of
 * one record is borrowed from the record, others stand in the buffer. FB_ERR_LINK_RECORD: first and
 * last do not alternate, or the frame is longer than the buffer. FB_ERR_BUSY: a buffer is needed
 * and there is none. Nothing changed after either. */
fb_status fb_reassembly_add(fb_reassembly *r, const fb_record *record, fb_span *frame,
                            bool *complete);

#endif
