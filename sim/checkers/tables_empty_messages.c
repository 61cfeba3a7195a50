/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/messaging/state.h"
#include "sim/checkers/tables_empty.h"

void fb_sim_messages_held(const fb_node *core, uint64_t *envelopes, uint64_t *orphans)
{
    const struct fb_messaging *m = core->messaging;
    *envelopes = 0;
    for (uint32_t i = 0; i < m->signals; i++) *envelopes += m->signal[i].refs != 0;
    *orphans = m->orphan_count;
}
