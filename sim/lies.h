/* SPDX-License-Identifier: Apache-2.0 */
/* What a Byzantine member does to the messages that its core seals. */
#ifndef FB_SIM_LIES_H
#define FB_SIM_LIES_H

#include "sim/provider_fast.h"

/* Bits of fb_sim_provider.lies, in the order of the catalogue of faults. */
enum fb_sim_lie {
    FB_SIM_LIE_FORGE,
    FB_SIM_LIE_STALE,
    FB_SIM_LIE_FUTURE,
    FB_SIM_LIE_FOREIGN,
    FB_SIM_LIE_MISADDRESS,
};

/* Changes the plain text of a record in place, keeping its length. What is no message of the
 * messaging channel stays as it is. */
void fb_sim_lie(fb_sim_provider *provider, uint8_t *record, size_t len);

#endif
