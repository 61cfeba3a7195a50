/* SPDX-License-Identifier: Apache-2.0 */
/* The token bucket of profile 5 step 4, one for each member: it outlives links, so reconnecting
 * fills nothing. Kept as the time at which the bucket is full again. */
#include "protocol/messaging/state.h"

#define SECOND_NS UINT64_C(1000000000)

/* MP-5-6 */
bool fb_rate_take(fb_node *node, fb_sender *sender)
{
    const fb_timing *timing = &node->options.timing;
    if (timing->rate_per_s == 0) return true;
    uint64_t token_ns = SECOND_NS / timing->rate_per_s;
    uint64_t full_ns = fb_max_u64(sender->rate_ns, node->mono_ns);
    uint64_t depth_ns = token_ns * timing->rate_burst;
    if (full_ns - node->mono_ns + token_ns > depth_ns) return false;
    sender->rate_ns = full_ns + token_ns;
    return true;
}
