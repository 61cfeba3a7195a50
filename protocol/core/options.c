/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/options.h"

#include "protocol/base/limits.h"
#include "protocol/core/effect.h"
#include "protocol/core/requests.h"
#include "protocol/store/store.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

static const fb_timing timing = {
    .heartbeat_ns = 2 * S,
    .silent_ns = 7 * S,
    .handshake_ns = 10 * S,
    .pending_ns = 30 * S,
    .redial_min_ns = 250 * MS,
    .redial_max_ns = 30 * S,
    .link_age_ns = 24 * 3600 * S,
    .resend_min_ns = 400 * MS,
    .resend_max_ns = 5 * S,
    .redeliver_ns = 60 * S,
    .call_ns = 30 * S,
    .onward_ns = 2 * S,
    .report_ns = 300 * S,
    .window_past_us = INT64_C(15) * 60 * 1000000,
    .window_future_us = INT64_C(5) * 60 * 1000000,
    .rate_per_s = 1000,
    .rate_burst = 4000,
    .misbehaviour_budget = 100,
};

/* Of each size: a real node's, a small one's, and the most. */
#define SIZES(X)                                                                                   \
    X(spaces, 16, 2, FB_SPACES_MAX)                                                                \
    X(members, 512, 128, FB_MEMBERS_MAX)                                                           \
    X(areas, 256, 8, FB_AREAS_MAX)                                                                 \
    X(vector_entries, 4096, 256, 1u << 20)                                                         \
    X(links, 384, 16, FB_LINKS_MAX)                                                                \
    X(addresses, 256, 32, 1u << 16)                                                                \
    X(operations, 256, 12, FB_OPERATIONS_MAX)                                                      \
    X(operation_bytes, 256 * 1024, 12 * 1024, 1u << 24)                                            \
    X(write_set_bytes, 1024 * 1024, 32 * 1024, 1u << 26)                                           \
    X(write_set_entries, 8192, 256, 1u << 20)                                                      \
    X(requests, 1024, 32, FB_REQUESTS_MAX)                                                         \
    X(seen_ids, 4096, 64, 1u << 16)                                                                \
    X(envelopes, 1024, 64, 1u << 16)                                                               \
    X(calls, 128, 16, 1u << 12)                                                                    \
    X(call_bytes, FB_FRAME_BYTES_MAX, 8 * 1024, 1u << 20)                                          \
    X(link_bytes, 18 * 1024, 18 * 1024, 1u << 20)                                                  \
    X(frames, 8, 1, 1u << 12)                                                                      \
    X(applications, 64, 4, 1u << 12)                                                               \
    X(invites, 64, 4, 1u << 12)                                                                    \
    X(changelog, 1024 * 1024, 128, 1u << 30)

#define DEFAULT_SIZE(name, real, small, most) .name = (real),
#define SMALL_SIZE(name, real, small, most)   .name = (small),
#define MOST_SIZE(name, real, small, most)    .name = (most),
static const fb_sizes sizes_default = {SIZES(DEFAULT_SIZE)};
static const fb_sizes sizes_small = {SIZES(SMALL_SIZE)};
const fb_sizes fb_sizes_most = {SIZES(MOST_SIZE)};
#undef DEFAULT_SIZE
#undef SMALL_SIZE
#undef MOST_SIZE

#define IS_WITHIN(name, real, small, most) &&sizes->name <= fb_sizes_most.name
bool fb_sizes_are_valid(const fb_sizes *sizes)
{
    return sizes->spaces >= 1 && sizes->members >= 1 && sizes->areas >= 1 && sizes->links >= 1 &&
           sizes->operations >= 4 && sizes->requests >= 1 && sizes->operation_bytes >= 4096 &&
           sizes->write_set_bytes >= 8192 && sizes->write_set_entries >= 64 &&
           sizes->vector_entries >= 1 && sizes->calls >= 2 && sizes->call_bytes >= 1024 &&
           sizes->seen_ids >= 1 && sizes->envelopes >= 1 && sizes->changelog >= 1 SIZES(IS_WITHIN);
}
#undef IS_WITHIN

fb_options fb_options_default(void)
{
    return (fb_options){.sizes = sizes_default, .timing = timing, .digest_every_step = false};
}

fb_options fb_options_small(void)
{
    return (fb_options){.sizes = sizes_small, .timing = timing, .digest_every_step = true};
}

size_t fb_effects_bytes_min(const fb_options *options)
{
    return fb_store_scratch_bytes(options) + options->sizes.write_set_bytes +
           fb_requests_end_bytes(options) +
           (options->sizes.links + (size_t)64) * (sizeof(fb_effect) + 64) +
           2 * (FB_REPLY_BYTES_MAX + sizeof(fb_effect)) + FB_FRAME_BYTES_MAX;
}
