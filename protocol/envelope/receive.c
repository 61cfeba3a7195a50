/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/envelope/receive.h"

#include "protocol/base/mutant.h"

/* FM-6.2-2, FM-9-2, FM-9-3, FM-11-4, FM-11-10, MP-5-2 */
fb_status fb_receive_space(const fb_envelope *e, fb_id space)
{
    return MUTANT(SPACE_NOT_COMPARED, fb_id_equal(e->space, space), true) ? FB_OK
                                                                          : FB_ERR_WRONG_SPACE;
}

/* MP-5-3, MP-5-4 */
fb_status fb_receive_origin(const fb_envelope *e, fb_id peer, fb_id self)
{
    bool own = fb_id_equal(e->source, self);
    return !own && MUTANT(ORIGIN_NOT_COMPARED, fb_id_equal(e->source, peer), true)
               ? FB_OK
               : FB_ERR_NOT_ORIGIN;
}

/* MP-5-5 */
fb_status fb_receive_sender(bool approved, bool revoked)
{
    if (revoked) return FB_ERR_REVOKED;
    return approved ? FB_OK : FB_ERR_UNKNOWN_SENDER;
}

int64_t fb_receive_now_ms(int64_t wall_us)
{
    return wall_us / 1000 - (wall_us % 1000 < 0 ? 1 : 0);
}

static int64_t add(int64_t a, int64_t b)
{
    if (b > 0 && a > INT64_MAX - b) return INT64_MAX;
    if (b < 0 && a < INT64_MIN - b) return INT64_MIN;
    return a + b;
}

static int64_t subtract(int64_t a, int64_t b)
{
    if (b > 0 && a < INT64_MIN + b) return INT64_MIN;
    if (b < 0 && a > INT64_MAX + b) return INT64_MAX;
    return a - b;
}

/* MP-5-8 */
fb_status fb_receive_time(const fb_envelope *e, const fb_receive_window *window, bool *by_floor)
{
    int64_t t = (int64_t)e->timestamp; /* at most 2^53-1 */
    if (by_floor != NULL) *by_floor = false;
    if (t < subtract(window->now_ms, window->past_ms)) return FB_ERR_STALE;
    if (MUTANT(FUTURE_ACCEPTED, t > add(window->now_ms, window->future_ms), false)) {
        return FB_ERR_FROM_FUTURE;
    }
    if (MUTANT(FLOOR_NOT_COMPARED, t <= window->floor_ms, false)) {
        if (by_floor != NULL) *by_floor = true;
        return FB_ERR_STALE;
    }
    return FB_OK;
}

/* FM-6.1-1, FM-7.2-2, FM-7.3-3, MP-5-9 */
fb_status fb_receive_address(const fb_envelope *e, fb_id self, bool subscribed)
{
    if (e->mode == FB_DELIVERY_UNICAST) {
        return fb_id_equal(e->target_node, self) ? FB_OK : FB_ERR_WRONG_TARGET;
    }
    return subscribed ? FB_OK : FB_ERR_NOT_SUBSCRIBED;
}

/* MP-5-14, MP-5-16 */
int64_t fb_receive_floor(const fb_receive_window *window, int64_t highest_accepted_ms)
{
    int64_t safe = subtract(subtract(window->now_ms, window->past_ms), window->future_ms);
    int64_t floor = highest_accepted_ms < safe ? highest_accepted_ms : safe;
    return floor > window->floor_ms ? floor : window->floor_ms;
}

/* MP-5-17 */
int64_t fb_receive_floor_reset(const fb_receive_window *window)
{
    return subtract(subtract(window->now_ms, window->past_ms), 1);
}
