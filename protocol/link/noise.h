/* SPDX-License-Identifier: Apache-2.0 */
/* Noise_XX_25519_ChaChaPoly_BLAKE2b (Noise revision 34) over the instance's provider: the handshake
 * and the two cipher states that it ends in. profile 7.
 *
 * Nothing here knows links, records or time. All key material is wiped by fb_handshake_wipe and
 * fb_cipher_wipe, which may be called at any moment and more than once. */
#ifndef FB_LINK_NOISE_H
#define FB_LINK_NOISE_H

#include "protocol/base/cursor.h"
#include "protocol/base/error.h"
#include "protocol/core/provider.h"

#define FB_NOISE_HASH        64u    /* HASHLEN of BLAKE2b */
#define FB_NOISE_TAG         16u    /* of Poly1305 */
#define FB_NOISE_MESSAGE_MAX 65535u /* Noise 3: no message is longer */
#define FB_NOISE_XX_MESSAGES 3u     /* -> e; <- e, ee, s, es; -> s, se */

/* Bytes of the handshake messages with empty payloads, as the profile uses them. */
#define FB_NOISE_XX_1 32u
#define FB_NOISE_XX_2 (32u + 32u + FB_NOISE_TAG + FB_NOISE_TAG)
#define FB_NOISE_XX_3 (32u + FB_NOISE_TAG + FB_NOISE_TAG)

/* One direction of an established session. */
typedef struct fb_cipher {
    fb_b32 key;
    uint64_t nonce; /* of the next message */
} fb_cipher;

/* Seals plain_len bytes to out, which has room for FB_NOISE_TAG more and may be `plain` itself, and
 * counts the nonce up. FB_ERR_LIMIT: the nonces are spent; nothing was written. */
fb_status fb_cipher_seal(fb_cipher *cipher, const fb_provider *provider, fb_span ad, fb_span plain,
                         uint8_t *out);

/* Opens sealed.len bytes to out, which has room for FB_NOISE_TAG fewer and may be `sealed` itself.
 * FB_ERR_LINK_RECORD: too short or not authentic; the nonce did not move (Noise 5.1).
 * FB_ERR_LIMIT: the nonces are spent. */
fb_status fb_cipher_open(fb_cipher *cipher, const fb_provider *provider, fb_span ad, fb_span sealed,
                         uint8_t *out);

/* Noise 4.2 REKEY: a new key from the old one; the nonce runs on. */
void fb_cipher_rekey(fb_cipher *cipher, const fb_provider *provider);

void fb_cipher_wipe(fb_cipher *cipher);

typedef struct fb_handshake {
    uint8_t h[FB_NOISE_HASH];  /* after the last message: the handshake hash */
    uint8_t ck[FB_NOISE_HASH]; /* chaining key */
    fb_cipher cipher;
    fb_key_handle static_key;
    fb_key_handle ephemeral; /* 0 until generated, and after it was given back */
    fb_b32 remote_static;    /* known to the initiator after message 2, else after 3 */
    fb_b32 remote_ephemeral;
    uint8_t messages; /* written and read so far; 3 is done */
    bool initiator;
    bool has_key;
    bool failed; /* no further message is read or written */
} fb_handshake;

/* static_key: an X25519 handle. The prologue's bytes are hashed at once, not kept. */
void fb_handshake_begin(fb_handshake *hs, const fb_provider *provider, bool initiator,
                        fb_key_handle static_key, fb_span prologue);

/* True when the next message is one's own to write; false as well once done or failed. */
bool fb_handshake_writes(const fb_handshake *hs);

/* True when all three messages went through. */
bool fb_handshake_done(const fb_handshake *hs);

/* Bytes that the next message adds to its payload. */
size_t fb_handshake_overhead(const fb_handshake *hs);

/* Appends the next message, with `payload` inside, to out.
 * FB_ERR_NO_SPACE: out is too small, nothing happened. FB_ERR_LINK_HANDSHAKE: not one's turn, or an
 * earlier message failed. FB_ERR_KEY and errors of the provider: the handshake is failed. */
fb_status fb_handshake_write(fb_handshake *hs, const fb_provider *provider, fb_span payload,
                             fb_writer *out);

/* Reads the peer's next message and appends its payload to `payload`.
 * FB_ERR_LINK_HANDSHAKE: too short, not authentic, or not the peer's turn. FB_ERR_KEY: a Diffie-
 * Hellman output was all zero. FB_ERR_NO_SPACE: the payload does not fit. After any of them the
 * handshake is failed. */
fb_status fb_handshake_read(fb_handshake *hs, const fb_provider *provider, fb_span message,
                            fb_writer *payload);

/* After the last message: the cipher states of both directions. The handshake hash and the peer's
 * static key stay readable; the rest of hs is wiped. */
void fb_handshake_split(fb_handshake *hs, const fb_provider *provider, fb_cipher *send,
                        fb_cipher *receive);

/* Gives the ephemeral key back to the provider and forgets all secrets. */
void fb_handshake_wipe(fb_handshake *hs, const fb_provider *provider);

#endif
