/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/workload/feeds.h"

#include "protocol/base/cursor.h"
#include "sim/world/world.h"

#define MS UINT64_C(1000000)

/* A change and where it stands take less than 400 bytes. */
#define CREDIT_FAST 8192u
#define CREDIT_SLOW 400u
#define FAST_NS     MS
#define SLOW_NS     (1000 * MS)

const char *const fb_sim_feed_names[FB_SIM_FEED_FROMS] = {"new",   "start",  "last",
                                                          "first", "beyond", "other"};

fb_sim_feed *fb_sim_feed_at(const fb_sim_world *world, uint32_t node, uint32_t client)
{
    return &world->workload->feeds[node * FB_SIM_CLIENTS + client];
}

const fb_sim_feed *fb_sim_feed_of(const fb_sim_world *world, uint32_t node, uint64_t request)
{
    for (uint32_t i = 0; i < FB_SIM_CLIENTS && request != 0; i++) {
        const fb_sim_feed *feed = fb_sim_feed_at(world, node, i);
        if (feed->request == request) return feed;
    }
    return NULL;
}

static void feed_end(fb_sim_world *world, uint32_t node, fb_sim_feed *feed)
{
    uint64_t request = feed->request;
    feed->request = 0;
    feed->pending = false;
    feed->count++;
    if (request == 0) return;
    fb_sim_step(world, node, (fb_event){.kind = FB_EV_REQUEST_CANCEL, .a = request});
}

static void grant(fb_sim_world *world, uint32_t node, const fb_sim_feed *feed, uint32_t bytes)
{
    fb_sim_step(world, node,
                (fb_event){.kind = FB_EV_REQUEST_CREDIT, .a = feed->request, .b = bytes});
}

void fb_sim_feed_begin(fb_sim_world *world, uint32_t node, uint32_t client, const fb_sim_op *op)
{
    fb_sim_feed *feed = fb_sim_feed_at(world, node, client);
    uint32_t boots = world->nodes[node].boots;
    feed_end(world, node, feed);
    if (world->stop || !fb_sim_is_up(world, node) || world->nodes[node].boots != boots) return;
    uint32_t from = op->items % FB_SIM_FEED_SLOW % FB_SIM_FEED_FROMS;
    if (from > FB_SIM_FEED_START && !feed->known) from = FB_SIM_FEED_NEW;
    fb_sim_cursor since = {0, 0};
    if (from == FB_SIM_FEED_NEW) since.sequence = UINT64_MAX;
    if (from >= FB_SIM_FEED_LAST) since = from == FB_SIM_FEED_FIRST ? feed->first : feed->last;
    if (from == FB_SIM_FEED_BEYOND) since.sequence += 1000000;
    if (from == FB_SIM_FEED_OTHER) since.incarnation ^= 1;
    feed->fresh = from == FB_SIM_FEED_NEW;
    feed->placed = false;
    feed->slow = (op->items & FB_SIM_FEED_SLOW) != 0;
    feed->asked = since;
    feed->owed = 0;
    uint8_t bytes[32];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, world->spaces[0]);
    fb_write_u64(&w, since.sequence);
    fb_write_u64(&w, since.incarnation);
    /* Refused at once, it is over within the step. */
    feed->request = world->requests + 1;
    fb_sim_request(world, node, FB_VERB_RECORD_WATCH, 0, fb_writer_span(&w));
    if (world->stop || feed->request == 0 || !fb_sim_is_up(world, node)) return;
    grant(world, node, feed, feed->slow ? CREDIT_SLOW : CREDIT_FAST);
}

bool fb_sim_feed_replied(fb_sim_world *world, uint32_t node, const fb_effect *reply)
{
    for (uint32_t i = 0; i < FB_SIM_CLIENTS; i++) {
        fb_sim_feed *feed = fb_sim_feed_at(world, node, i);
        if (feed->request == 0 || feed->request != reply->a) continue;
        if (reply->c == 0) {
            feed->request = 0;
            feed->pending = false;
            feed->count++;
            /* What is not known there it will not ask for again. */
            if (reply->b == FB_ERR_CURSOR_OLD || reply->b == FB_ERR_CURSOR_UNKNOWN) {
                feed->known = false;
            }
            return true;
        }
        fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(reply), reply->len));
        fb_read_bytes(&r, reply->len - 16u);
        feed->last.sequence = fb_read_u64(&r);
        feed->last.incarnation = fb_read_u64(&r);
        feed->known = true;
        if (!feed->placed) feed->first = feed->last;
        feed->placed = true;
        feed->owed += reply->len;
        if (feed->pending) return true;
        feed->pending = true;
        fb_sim_schedule(world, world->now_ns + (feed->slow ? SLOW_NS : FAST_NS), node,
                        FB_SIM_AT_FEED, i, feed->count);
        return true;
    }
    return false;
}

void fb_sim_at_feed(fb_sim_world *world, uint32_t node, uint32_t client, uint32_t stamp)
{
    fb_sim_feed *feed = fb_sim_feed_at(world, node, client);
    if (feed->request == 0 || feed->count != stamp) return;
    if (!fb_sim_is_up(world, node)) return;
    if (world->nodes[node].paused_until_ns > world->now_ns) {
        fb_sim_schedule(world, world->nodes[node].paused_until_ns, node, FB_SIM_AT_FEED, client,
                        stamp);
        return;
    }
    feed->pending = false;
    uint32_t owed = feed->owed;
    feed->owed = 0;
    grant(world, node, feed, owed);
}

void fb_sim_feeds_over(fb_sim_world *world, uint32_t node)
{
    for (uint32_t i = 0; i < FB_SIM_CLIENTS; i++) {
        fb_sim_feed *feed = fb_sim_feed_at(world, node, i);
        feed->request = 0;
        feed->pending = false;
        feed->count++;
    }
}
