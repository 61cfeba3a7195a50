/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes of a stream link, before any cryptography: magic, versions, space tag. profile 7.
 *
 * Both preambles go into the Noise prologue as they were sent, so whoever changes a version on the
 * way breaks the handshake. */
#ifndef FB_LINK_PREAMBLE_H
#define FB_LINK_PREAMBLE_H

#include "protocol/base/cursor.h"
#include "protocol/base/error.h"
#include "protocol/core/provider.h"

/* Link versions of this program. */
#define FB_LINK_VERSION_LOWEST  1u
#define FB_LINK_VERSION_HIGHEST 1u

#define FB_PREAMBLE_MAGIC_BYTES    4u
#define FB_PREAMBLE_DIALER_BYTES   22u /* magic, lowest, highest, tag */
#define FB_PREAMBLE_ACCEPTOR_BYTES 7u  /* magic, lowest, highest, status */

/* "faberio-link-v1" 0x00, both preambles, the space id. */
#define FB_PROLOGUE_BYTES (16u + FB_PREAMBLE_DIALER_BYTES + FB_PREAMBLE_ACCEPTOR_BYTES + 16u)

/* The acceptor's status byte. */
typedef enum fb_preamble_status {
    FB_PREAMBLE_GO_ON = 0,
    FB_PREAMBLE_NO_VERSION = 1,
    FB_PREAMBLE_UNKNOWN_TAG = 2,
    FB_PREAMBLE_TOO_MANY = 3,
} fb_preamble_status;

/* BLAKE2b-128 of "faberio-space-tag-v1" 0x00 and the space id: names a space to those who know it
 * without showing the id to others. */
void fb_space_tag(const fb_provider *provider, fb_id space, fb_id *tag);

void fb_preamble_write_dialer(uint8_t out[FB_PREAMBLE_DIALER_BYTES], fb_id tag);
void fb_preamble_write_acceptor(uint8_t out[FB_PREAMBLE_ACCEPTOR_BYTES], fb_preamble_status status);

/* True while `bytes` may still become a preamble: a stranger's protocol is refused at its first
 * wrong byte, not after 22. */
bool fb_preamble_may_follow(fb_span bytes);

/* Reads a dialer's 22 bytes. The version is the highest common one, 0 when there is none.
 * FB_ERR_LINK_MAGIC: not this protocol. */
fb_status fb_preamble_read_dialer(fb_span bytes, fb_id *tag, uint8_t *version);

/* Reads an acceptor's 7 bytes. FB_ERR_LINK_MAGIC; FB_ERR_LINK_VERSION, FB_ERR_LINK_TAG and
 * FB_ERR_LINK_TOO_MANY for the acceptor's refusal (an unknown status counts as LINK_MAGIC). */
fb_status fb_preamble_read_acceptor(fb_span bytes, uint8_t *version);

/* The Noise prologue from the bytes that went over the wire. */
void fb_prologue_write(uint8_t out[FB_PROLOGUE_BYTES], const uint8_t *dialer,
                       const uint8_t *acceptor, fb_id space);

#endif
