/* SPDX-License-Identifier: Apache-2.0 */
/* What a Byzantine member does to the messages that its core seals. */
#ifndef FB_SIM_WEATHER_LIES_H
#define FB_SIM_WEATHER_LIES_H

#include "protocol/base/word.h"
#include "sim/world/provider_fast.h"

/* Bits of fb_sim_provider.lies, in the order of the catalogue of faults. */
enum fb_sim_lie {
    FB_SIM_LIE_FORGE,
    FB_SIM_LIE_STALE,
    FB_SIM_LIE_FUTURE,
    FB_SIM_LIE_FOREIGN,
    FB_SIM_LIE_MISADDRESS,
};

/* And of what is told about records: no fault between has a bit. */
#define FB_SIM_LIE_GONE 8u

/* Stands for an envelope that a machine of this member signed. Never 0. */
static inline uint64_t fb_sim_signed_key(fb_id id, fb_id by)
{
    uint64_t key = (fb_word_load(id.b) ^ fb_word_load(by.b)) * UINT64_C(0x9e3779b97f4a7c15) +
                   (fb_word_load(id.b + 8) ^ fb_word_load(by.b + 8));
    return key == 0 ? 1 : key;
}

/* Changes the plain text of a record in place, keeping its length: a message of the messaging
 * channel, or an answer of the calls channel. */
void fb_sim_lie(fb_sim_provider *provider, uint8_t *record, size_t len);
void fb_sim_lie_of_gone(fb_sim_provider *provider, uint8_t *record, size_t len);

#endif
