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
    .window_past_us = INT64_C(15) * 60 * 1000000,
    .window_future_us = INT64_C(5) * 60 * 1000000,
    .rate_per_s = 1000,
    .rate_burst = 4000,
    .misbehaviour_budget = 100,
};

/* Of each size: a real node's, and a small one's. */
#define SIZES(X)                                                                                   \
    X(spaces, 16, 2)                                                                               \
    X(members, 512, 128)                                                                           \
    X(areas, 256, 8)                                                                               \
    X(vector_entries, 4096, 256)                                                                   \
    X(links, 384, 16)                                                                              \
    X(addresses, 256, 32)                                                                          \
    X(operations, 256, 12)                                                                         \
    X(operation_bytes, 256 * 1024, 12 * 1024)                                                      \
    X(write_set_bytes, 1024 * 1024, 32 * 1024)                                                     \
    X(write_set_entries, 8192, 256)                                                                \
    X(requests, 1024, 32)                                                                          \
    X(seen_ids, 4096, 64)                                                                          \
    X(envelopes, 1024, 64)                                                                         \
    X(calls, 128, 16)                                                                              \
    X(call_bytes, FB_FRAME_BYTES_MAX, 8 * 1024)                                                    \
    X(link_bytes, 18 * 1024, 18 * 1024)                                                            \
    X(frames, 8, 1)                                                                                \
    X(applications, 64, 4)                                                                         \
    X(invites, 64, 4)                                                                              \
    X(changelog, 1024 * 1024, 128)

#define DEFAULT_SIZE(name, real, small) .name = (real),
#define SMALL_SIZE(name, real, small)   .name = (small),
static const fb_sizes sizes_default = {SIZES(DEFAULT_SIZE)};
static const fb_sizes sizes_small = {SIZES(SMALL_SIZE)};
#undef DEFAULT_SIZE
#undef SMALL_SIZE

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
