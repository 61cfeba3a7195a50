/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FB_SIM_CHECKERS_TABLES_EMPTY_H
#define FB_SIM_CHECKERS_TABLES_EMPTY_H

#include "protocol/core/internal.h"

/* Envelopes that are held, and messages that wait for a link. Apart from the rest because two
 * planes have types of one name. */
void fb_sim_messages_held(const fb_node *core, uint64_t *envelopes, uint64_t *orphans);

#endif
