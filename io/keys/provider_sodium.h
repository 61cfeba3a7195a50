/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of protocol/core/provider.h on libsodium (1.0.18 or newer).
 *
 * One instance belongs to one node and one thread. Private keys live in a guarded table of the
 * instance and are wiped when it is destroyed; a handle is never reused, so a stale one is refused
 * and never names another key. */
#ifndef FB_IO_KEYS_PROVIDER_SODIUM_H
#define FB_IO_KEYS_PROVIDER_SODIUM_H

#include "protocol/core/provider.h"

typedef struct fb_sodium fb_sodium;

/* The longest message, over all its parts, that is signed or verified: an envelope's pre-image is
 * at most 49,520 bytes. A longer one is FB_ERR_NO_SPACE, or does not verify. */
#define FB_SODIUM_MESSAGE_MAX 65536

/* Initialises libsodium once per process, checks the strict signature rule of profile 1 and known
 * answers, and makes an instance for at most keys_max keys (signing, static and ephemeral together;
 * 1..65535). FB_ERR_ARGUMENT, FB_ERR_NO_MEMORY, FB_ERR_CRYPTO (the library is not fit: do not
 * go on). */
fb_status fb_sodium_create(size_t keys_max, fb_sodium **out);

/* Wipes every key. NULL does nothing. */
void fb_sodium_destroy(fb_sodium *sodium);

/* The table of functions to hand to a core; it lives as long as the instance. */
const fb_provider *fb_sodium_provider(const fb_sodium *sodium);

/* An Ed25519 signing key from its 32-byte seed; the seed is copied. FB_ERR_BUSY: table full. */
fb_status fb_sodium_add_signing(fb_sodium *sodium, const fb_b32 *seed, fb_key_handle *out);

/* An X25519 static key from its 32 secret bytes; copied. FB_ERR_BUSY: table full. */
fb_status fb_sodium_add_dh(fb_sodium *sodium, const fb_b32 *secret, fb_key_handle *out);

/* Wipes a key of either kind; an unknown handle does nothing. */
void fb_sodium_remove(fb_sodium *sodium, fb_key_handle key);

/* Keys in use, for tests of leaks. */
size_t fb_sodium_keys(const fb_sodium *sodium);

/* The self-test that fb_sodium_create runs. */
fb_status fb_sodium_self_test(void);

#endif
