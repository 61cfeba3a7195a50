/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/conformance/node.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "protocol/database/database.h"
#include "protocol/envelope/envelope.h"
#include "protocol/envelope/json.h"
#include "protocol/space/space.h"
#include "runtime/conformance/json.h"
#include "runtime/conformance/peer.h"
#include "runtime/conformance/world.h"

#define TESTED      0u /* the others only join, and are played by the suite from then on */
#define PEERS_MAX   (FB_WORLD_NODES - 1)
#define LINKS_MAX   64u
#define PATIENCE_NS UINT64_C(20000000000)
#define MS_NS       UINT64_C(1000000)
#define TICK_MS_MAX INT64_C(1000000000)

typedef struct tested_link {
    uint64_t number; /* the world's; 0: it ended */
    uint32_t peer;
    fb_peer_end end;
} tested_link;

struct fb_adapter_node {
    fb_world *world;
    fb_id space;
    uint64_t opened_ns;
    struct {
        fb_id id;
        fb_b32 key;
    } peers[PEERS_MAX];
    uint32_t peer_count;
    tested_link links[LINKS_MAX]; /* number 1 is the first */
    uint32_t link_count;
    json_t *out;
    /* Of the last message handed in. */
    bool judged, reset;
    fb_status verdict;
};

/* ---- What comes out ---- */

static json_t *put_out(fb_adapter_node *n, const char *kind)
{
    uint64_t ms = (fb_world_mono_ns(n->world) - n->opened_ns) / MS_NS;
    json_t *one = json_pack("{s:s, s:I}", "out", kind, "at_ms", (json_int_t)ms);
    json_array_append_new(n->out, one);
    return one;
}

static uint32_t link_named(const fb_adapter_node *n, uint64_t number)
{
    uint32_t i = 0;
    while (i < n->link_count && n->links[i].number != number) i++;
    return i;
}

static void on_frame(void *user, uint32_t node, uint64_t number, fb_span bytes)
{
    fb_adapter_node *n = user;
    uint32_t i = link_named(n, number);
    if (node != TESTED || i == n->link_count) return;
    tested_link *link = &n->links[i];
    fb_peer_in in;
    fb_peer_take(&link->end, bytes, fb_world_wall_us(n->world), fb_world_mono_ns(n->world), &in);
    json_t *one;
    switch (in.event) {
    case FB_PEER_REPLY:
        fb_world_frame(n->world, TESTED, number, fb_span_of(in.reply, in.reply_len));
        break;
    case FB_PEER_MESSAGE:
        one = put_out(n, "send");
        json_object_set_new(one, "link", json_integer(i + 1));
        json_object_set_new(one, "number", json_integer((json_int_t)in.number));
        json_object_set_new(one, "envelope", fb_adapter_hex(in.envelope));
        break;
    case FB_PEER_ACK:
        one = put_out(n, "ack");
        json_object_set_new(one, "link", json_integer(i + 1));
        json_object_set_new(one, "number", json_integer((json_int_t)in.number));
        break;
    case FB_PEER_NOTHING:
        break;
    }
}

static void on_closed(void *user, uint32_t node, uint64_t number, fb_error why)
{
    fb_adapter_node *n = user;
    uint32_t i = link_named(n, number);
    if (node != TESTED || i == n->link_count) return;
    n->links[i].number = 0;
    json_t *one = put_out(n, "close");
    json_object_set_new(one, "link", json_integer(i + 1));
    json_object_set_new(one, "reason", json_string(fb_error_name(why)));
}

static void on_fact(void *user, uint32_t node, const fb_effect *fact)
{
    fb_adapter_node *n = user;
    if (node != TESTED) return;
    switch (fact->a) {
    case FB_FACT_DELIVERED:
        n->judged = true;
        n->verdict = FB_OK;
        break;
    case FB_FACT_REFUSED:
        n->judged = true;
        n->verdict = (fb_status)fact->c;
        break;
    case FB_FACT_FLOOR:
        if (fact->c != 0) n->reset = true;
        break;
    case FB_FACT_DROPPED: {
        fb_id id;
        if (fact->len < 48) break;
        memcpy(id.b, fb_effect_bytes(fact) + 32, sizeof id.b);
        json_t *one = put_out(n, "drop");
        json_object_set_new(one, "id", fb_adapter_uuid(id));
        json_object_set_new(one, "reason", json_string(fb_error_name((fb_error)fact->b)));
        break;
    }
    default:
        break;
    }
}

/* ---- Opening: a space, and its members by the way that members come in ---- */

/* Milliseconds within what an envelope's time may be, of either sign, as microseconds. */
static bool read_time(const json_t *request, const char *name, int64_t *us)
{
    int64_t ms;
    if (!fb_adapter_integer(request, name, &ms)) return false;
    if (ms < -FB_TIMESTAMP_MS_MAX || ms > FB_TIMESTAMP_MS_MAX) return false;
    *us = ms * 1000;
    return true;
}

/* A limit that was given takes the place of the usual one. False: not within 1 and `most`. */
static bool take_limit(const json_t *limits, const char *name, int64_t most, uint32_t *out)
{
    int64_t value;
    if (json_object_get(limits, name) == NULL) return true;
    if (!fb_adapter_integer(limits, name, &value) || value < 1 || value > most) return false;
    *out = (uint32_t)value;
    return true;
}

static bool read_limits(const json_t *limits, fb_options *options)
{
    *options = fb_options_small();
    options->sizes.envelopes = 1024;
    options->sizes.areas = 256;
    return take_limit(limits, "seen_ids", 4096, &options->sizes.seen_ids) &&
           take_limit(limits, "rate_per_s", 1000000, &options->timing.rate_per_s) &&
           take_limit(limits, "rate_burst", 1000000, &options->timing.rate_burst);
}

static bool create_space(fb_adapter_node *n)
{
    uint8_t bytes[64];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_span16(&w, fb_span_text("conformance"));
    fb_span answer;
    fb_status status = fb_world_ask(n->world, TESTED, FB_VERB_SPACE_CREATE, fb_writer_span(&w),
                                    PATIENCE_NS, &answer);
    fb_reader r = fb_reader_of(answer);
    n->space = fb_read_id(&r);
    return status == FB_OK;
}

static bool join(fb_adapter_node *n, uint32_t peer, bool approved)
{
    uint8_t bytes[1024];
    fb_span answer;
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, n->space);
    fb_write_u32(&w, 1);
    fb_write_u64(&w, 0);
    fb_write_span16(&w, fb_span_text(fb_world_address(TESTED)));
    if (fb_world_ask(n->world, TESTED, FB_VERB_SPACE_INVITE, fb_writer_span(&w), PATIENCE_NS,
                     &answer) != FB_OK) {
        return false;
    }
    w = fb_writer_of(bytes, sizeof bytes);
    fb_write_span(&w, answer);
    if (fb_world_ask(n->world, peer, FB_VERB_SPACE_JOIN, fb_writer_span(&w), PATIENCE_NS,
                     &answer) != FB_OK) {
        return false;
    }
    if (!approved) return true;
    w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, n->space);
    fb_write_id(&w, fb_node_self(fb_world_node(n->world, peer)));
    fb_write_u8(&w, FB_ROLE_WRITER);
    return fb_world_ask(n->world, TESTED, FB_VERB_SPACE_APPROVE, fb_writer_span(&w), PATIENCE_NS,
                        &answer) == FB_OK;
}

static bool add_peer(fb_adapter_node *n, const json_t *peer, const fb_options *options)
{
    fb_b32 seed;
    const char *status = json_string_value(json_object_get(peer, "status"));
    if (!fb_adapter_bytes32(peer, "seed", &seed) || status == NULL) return false;
    uint32_t at = fb_world_add(n->world, &seed, options);
    n->peers[at - 1].id = fb_node_self(fb_world_node(n->world, at));
    n->peers[at - 1].key = fb_world_key(n->world, at);
    n->peer_count = at;
    bool good = strcmp(status, "approved") == 0 || strcmp(status, "pending") == 0;
    return good && join(n, at, strcmp(status, "approved") == 0);
}

static fb_adapter_node *open_node(const json_t *request)
{
    fb_b32 seed;
    int64_t wall_us;
    json_t *peers = json_object_get(request, "peers"), *peer;
    size_t i;
    fb_options options;
    if (!fb_adapter_bytes32(request, "seed", &seed) ||
        !read_limits(json_object_get(request, "limits"), &options) ||
        !read_time(request, "wall_ms", &wall_us) || !json_is_array(peers) ||
        json_array_size(peers) > PEERS_MAX) {
        return NULL;
    }
    fb_adapter_node *n = calloc(1, sizeof *n);
    if (n == NULL) return NULL;
    const fb_world_user user = {n, on_frame, on_closed, on_fact};
    const fb_options small = fb_options_small();
    n->out = json_array();
    n->world = fb_world_new(&user, wall_us);
    fb_world_add(n->world, &seed, &options);
    bool good = create_space(n);
    json_array_foreach(peers, i, peer) good = good && add_peer(n, peer, &small);
    if (!good) {
        fb_adapter_node_free(n);
        return NULL;
    }
    for (uint32_t k = 1; k <= n->peer_count; k++) fb_world_remove(n->world, k);
    fb_world_run(n->world, 0);
    /* Whatever joining took: the clock begins as it was asked for. */
    fb_world_set_wall(n->world, wall_us);
    n->opened_ns = fb_world_mono_ns(n->world);
    json_array_clear(n->out);
    return n;
}

void fb_adapter_node_free(fb_adapter_node *node)
{
    if (node == NULL) return;
    fb_world_free(node->world);
    json_decref(node->out);
    free(node);
}

/* ---- Steps ---- */

static tested_link *link_of(fb_adapter_node *n, const json_t *request)
{
    int64_t number;
    if (!fb_adapter_integer(request, "link", &number) || number < 1 ||
        (uint64_t)number > n->link_count || n->links[number - 1].number == 0) {
        return NULL;
    }
    return &n->links[number - 1];
}

static json_t *step_link_up(fb_adapter_node *n, const json_t *request)
{
    fb_id peer;
    int64_t offset_us = 0;
    uint32_t i = 0;
    if (n->link_count == LINKS_MAX || !fb_adapter_id(request, "peer", &peer)) return NULL;
    while (i < n->peer_count && !fb_id_equal(n->peers[i].id, peer)) i++;
    if (i == n->peer_count) return NULL;
    if (json_object_get(request, "offset_ms") != NULL &&
        !read_time(request, "offset_ms", &offset_us)) {
        return NULL;
    }
    tested_link *link = &n->links[n->link_count++];
    link->peer = i;
    link->end = (fb_peer_end){.own_session = n->link_count, .offset_us = offset_us};
    link->number = fb_world_carrier(n->world, TESTED, n->space, &n->peers[i].key);
    fb_world_run(n->world, 0);
    return json_pack("{s:I}", "link", (json_int_t)n->link_count);
}

static json_t *step_link_down(fb_adapter_node *n, const json_t *request)
{
    tested_link *link = link_of(n, request);
    if (link == NULL) return NULL;
    uint64_t number = link->number;
    link->number = 0;
    fb_world_carrier_end(n->world, TESTED, number);
    return json_object();
}

static json_t *step_deliver(fb_adapter_node *n, const json_t *request)
{
    tested_link *link = link_of(n, request);
    int64_t number;
    size_t len;
    uint8_t *envelope;
    if (link == NULL || !fb_adapter_integer(request, "number", &number) ||
        !fb_adapter_bytes(request, "envelope", &envelope, &len)) {
        return NULL;
    }
    n->judged = n->reset = false;
    uint8_t *frame = malloc(FB_PEER_FRAME_BYTES(len));
    if (frame != NULL) {
        size_t whole =
            fb_peer_message(&link->end, (uint64_t)number, fb_span_of(envelope, len), frame);
        fb_world_frame(n->world, TESTED, link->number, fb_span_of(frame, whole));
        fb_world_run(n->world, 0);
    }
    free(frame);
    free(envelope);
    json_t *answer = json_object();
    const char *verdict = !n->judged ? "none" : n->verdict == FB_OK ? "accept" : "refuse";
    json_object_set_new(answer, "verdict", json_string(verdict));
    if (n->judged && n->verdict != FB_OK) {
        json_object_set_new(answer, "reason", json_string(fb_error_name(n->verdict)));
    }
    if (n->reset) json_object_set_new(answer, "floor_reset", json_true());
    return answer;
}

static json_t *step_ack(fb_adapter_node *n, const json_t *request)
{
    tested_link *link = link_of(n, request);
    int64_t number;
    if (link == NULL || !fb_adapter_integer(request, "number", &number)) return NULL;
    uint8_t frame[FB_PEER_FRAME_BYTES(0)];
    size_t len = fb_peer_ack(&link->end, (uint64_t)number, frame);
    fb_world_frame(n->world, TESTED, link->number, fb_span_of(frame, len));
    fb_world_run(n->world, 0);
    return json_object();
}

static json_t *step_publish(fb_adapter_node *n, const json_t *request)
{
    fb_id object;
    uint8_t bytes[34];
    if (!fb_adapter_uuid_of(request, "object_id", &object)) return NULL;
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, n->space);
    fb_write_u16(&w, 1);
    fb_write_id(&w, object);
    fb_status status = fb_world_ask(n->world, TESTED, FB_VERB_PUBLISH, fb_writer_span(&w), 0, NULL);
    return status == FB_OK ? json_object() : NULL;
}

/* A local write: a new record of one collection. It is answered when it is durable, and the object
 * is known before. */
static json_t *step_write(fb_adapter_node *n, const json_t *request)
{
    static const uint8_t new_record[16], no_etag[16];
    fb_span collection = fb_span_text("conformance");
    const char *text = json_string_value(json_object_get(request, "text"));
    uint8_t quoted[128], bytes[256];
    size_t len;
    if (text == NULL || !fb_json_quote(fb_span_text(text), quoted, sizeof quoted, &len)) {
        return NULL;
    }
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, n->space);
    fb_write_u8(&w, 1);
    fb_write_span16(&w, collection);
    fb_write_bytes(&w, new_record, sizeof new_record);
    fb_write_u8(&w, 1);
    fb_write_u8(&w, 0);
    fb_write_bytes(&w, no_etag, sizeof no_etag);
    fb_write_u16(&w, 1);
    fb_write_span16(&w, fb_span_text("text"));
    fb_write_u8(&w, 1);
    fb_write_span32(&w, fb_span_of(quoted, len));
    fb_status status =
        fb_world_ask(n->world, TESTED, FB_VERB_RECORD_PUT, fb_writer_span(&w), 0, NULL);
    if (status != FB_OK && status != FB_ERR_AGAIN) return NULL;
    json_t *answer = json_object();
    json_object_set_new(answer, "object_id",
                        fb_adapter_uuid(fb_area_id(n->space, FB_AREA_COLLECTION, collection)));
    return answer;
}

static json_t *step_tick(fb_adapter_node *n, const json_t *request)
{
    int64_t ms;
    if (!fb_adapter_integer(request, "ms", &ms) || ms < 0 || ms > TICK_MS_MAX) return NULL;
    fb_world_run(n->world, (uint64_t)ms * MS_NS);
    return json_object();
}

static json_t *step_clock(fb_adapter_node *n, const json_t *request)
{
    int64_t wall_us;
    if (!read_time(request, "wall_ms", &wall_us)) return NULL;
    fb_world_set_wall(n->world, wall_us);
    return json_object();
}

/* The core's topics are fixed; what it listens to it tells its peers, and here. */
static json_t *step_subscribe(fb_adapter_node *n, const json_t *request)
{
    const char *topic = json_string_value(json_object_get(request, "topic"));
    if (topic == NULL) return NULL;
    fb_topic which = fb_topic_of(fb_span_text(topic));
    (void)n;
    return json_pack("{s:b}", "subscribed", which != FB_TOPIC_FOREIGN && which != FB_TOPIC_FILE);
}

static json_t *step_disk(fb_adapter_node *n, const json_t *request)
{
    const json_t *hold = json_object_get(request, "hold");
    if (!json_is_boolean(hold)) return NULL;
    fb_world_hold_disk(n->world, TESTED, json_is_true(hold));
    return json_object();
}

static json_t *step_restart(fb_adapter_node *n, const json_t *request)
{
    (void)request;
    for (uint32_t i = 0; i < n->link_count; i++) n->links[i].number = 0;
    fb_world_restart(n->world, TESTED);
    return json_object();
}

static const struct {
    const char *name;
    json_t *(*run)(fb_adapter_node *n, const json_t *request);
} steps[] = {
    {"link_up", step_link_up}, {"link_down", step_link_down}, {"deliver", step_deliver},
    {"ack", step_ack},         {"publish", step_publish},     {"tick", step_tick},
    {"clock", step_clock},     {"subscribe", step_subscribe}, {"disk", step_disk},
    {"restart", step_restart}, {"write", step_write},
};

static json_t *answer_open(fb_adapter_node **node, const json_t *request)
{
    fb_adapter_node_free(*node);
    *node = open_node(request);
    if (*node == NULL) return NULL;
    json_t *answer = json_object();
    fb_id self = fb_node_self(fb_world_node((*node)->world, TESTED));
    fb_id state = fb_area_id((*node)->space, FB_AREA_SPACE, (fb_span){NULL, 0});
    json_object_set_new(answer, "node_id", fb_adapter_hex(fb_span_of(self.b, sizeof self.b)));
    json_object_set_new(answer, "information_space_id", fb_adapter_uuid((*node)->space));
    json_object_set_new(answer, "state_object_id", fb_adapter_uuid(state));
    return answer;
}

json_t *fb_adapter_node_answer(fb_adapter_node **node, const json_t *request, const char **why)
{
    const char *what = json_string_value(json_object_get(request, "do"));
    json_t *answer = NULL;
    if (what != NULL && strcmp(what, "open") == 0) {
        answer = answer_open(node, request);
    } else if (what != NULL && *node != NULL) {
        for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
            if (strcmp(steps[i].name, what) == 0) answer = steps[i].run(*node, request);
        }
    }
    if (answer == NULL) {
        *why = "not a step that this node takes";
        return NULL;
    }
    json_object_set(answer, "out", (*node)->out);
    json_decref((*node)->out);
    (*node)->out = json_array();
    return answer;
}
