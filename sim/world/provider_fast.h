/* SPDX-License-Identifier: Apache-2.0 */
/* A provider of keyed hashes: fast, deterministic per node, and without any security.
 *
 * It has the shape of the real one where a protocol could notice. A signature, a sealed text or a
 * proof verifies only when whoever made it went through a handle of the right key: the link between
 * a public key and what signs for it is a secret of this file, so a Byzantine node of the simulator
 * can forge no more than a real one could. Random bytes are no valid key. The plain text of a
 * sealed record is readable; nobody in the simulator looks. */
#ifndef FB_SIM_WORLD_PROVIDER_FAST_H
#define FB_SIM_WORLD_PROVIDER_FAST_H

#include "protocol/base/draw.h"
#include "protocol/core/provider.h"

/* A handle is one of these or, above them, an ephemeral key. */
#define FB_SIM_KEY_IDENTITY  1u
#define FB_SIM_KEY_LINK      2u
#define FB_SIM_KEY_RECOVERY  3u /* of the spaces that this machine makes; no core has it */
#define FB_SIM_KEY_EPHEMERAL 1000u

/* The longest text that is signed or hashed, all parts together. */
#define FB_SIM_PROVIDER_TEXT_MAX (1u << 17)

typedef struct fb_sim_provider {
    fb_provider table;     /* table.user is this struct */
    fb_seed identity;      /* two machines with one identity have the same */
    fb_seed secrets;       /* theirs differ */
    uint64_t secret_count; /* lives as long as the machine, not as a node's incarnation */
    uint64_t ephemeral_count;
    fb_b32 public_key; /* of FB_SIM_KEY_IDENTITY */
    fb_b32 link_key;   /* of FB_SIM_KEY_LINK */
    uint8_t *scratch;  /* FB_SIM_PROVIDER_TEXT_MAX bytes, shared by all providers of a world */
    /* A Byzantine machine: which lies it tells (bit 0: the first Byzantine fault), and how often it
     * had a chance to. Its counters are kept by the caller of each fault. */
    uint32_t lies;
    uint64_t lie_count;
    bool took;         /* it said of something that it is gone */
    uint64_t *fired;   /* counters by fault, from the first Byzantine one on, or NULL */
    uint8_t kept[512]; /* an envelope that its core sealed earlier, also one that never left */
    uint32_t kept_len;
    struct fb_sim_memo *signs; /* takes what is given with a good signature in the place of what its
                                  core gave (fb_sim_signed_key), or NULL */
    /* Who reads along what transport messages say; NULL: nobody. */
    void (*read)(void *user, bool opened, fb_span plain);
    void *reader;
} fb_sim_provider;

void fb_sim_provider_init(fb_sim_provider *provider, fb_seed identity, fb_seed secrets,
                          uint8_t *scratch);

/* The public half of any handle, for the driver's own use outside a step. */
fb_b32 fb_sim_provider_public(const fb_sim_provider *provider, fb_key_handle key);
/* What the recovery key of this machine signs, in the hands of a person. */
void fb_sim_provider_recover(const fb_sim_provider *provider, fb_span text, fb_b64 *out);

#endif
