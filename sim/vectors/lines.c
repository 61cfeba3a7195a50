/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a vector: docs/VECTORS.md. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "protocol/core/internal.h"
#include "protocol/envelope/receive.h"
#include "protocol/messaging/state.h"
#include "protocol/store/keys.h"
#include "sim/vectors/vectors.h"

/* `cap` is the array's capacity, of cap_bytes bytes: 4 or 8. */
void *fb_sim_grow(void *array, size_t count, void *cap, size_t cap_bytes, size_t item)
{
    size_t room = cap_bytes == 4 ? *(uint32_t *)cap : *(uint64_t *)cap;
    if (count < room) return array;
    room = room == 0 ? 16 : room * 2;
    array = realloc(array, room * item);
    if (array == NULL) fb_sim_fail_resource("memory of this machine");
    if (cap_bytes == 4) {
        *(uint32_t *)cap = (uint32_t)room;
    } else {
        *(uint64_t *)cap = room;
    }
    return array;
}

void fb_sim_text_add(fb_sim_text *text, const void *bytes, size_t len)
{
    if (text->cap - text->len < len) {
        size_t cap = text->cap == 0 ? 4096 : text->cap;
        while (cap - text->len < len) cap *= 2;
        text->bytes = realloc(text->bytes, cap);
        if (text->bytes == NULL) fb_sim_fail_resource("memory of this machine");
        text->cap = cap;
    }
    if (len != 0) memcpy(text->bytes + text->len, bytes, len);
    text->len += len;
}

void fb_sim_text_format(fb_sim_text *text, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    FB_ASSERT(n >= 0 && (size_t)n < sizeof line);
    fb_sim_text_add(text, line, (size_t)n);
}

void fb_sim_text_hex(fb_sim_text *text, fb_span bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.len; i++) {
        char two[2] = {digits[bytes.p[i] >> 4], digits[bytes.p[i] & 15]};
        fb_sim_text_add(text, two, 2);
    }
}

void fb_sim_text_uuid(fb_sim_text *text, fb_id id)
{
    for (size_t i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) fb_sim_text_add(text, "-", 1);
        fb_sim_text_hex(text, fb_span_of(id.b + i, 1));
    }
}

/* The moment of the step that was just made. */
static void moment(fb_sim_export *export, fb_sim_vector *v)
{
    const fb_sim_world *world = export->world;
    const fb_node *core = world->nodes[v->self].core;
    fb_sim_text_format(&v->text, ",\"mono_ns\":\"%llu\",\"wall_ms\":%lld",
                       (unsigned long long)core->mono_ns,
                       (long long)fb_receive_now_ms(core->wall_us));
    v->said_step = world->steps;
}

void fb_sim_line_do(fb_sim_export *export, fb_sim_vector *v, const char *what)
{
    fb_sim_text_format(&v->text, "{\"do\":\"%s\"", what);
    moment(export, v);
}

void fb_sim_line_out(fb_sim_export *export, fb_sim_vector *v, const char *what,
                     const fb_sim_vector_link *link)
{
    if (v->said_step != export->world->steps) {
        fb_sim_line_do(export, v, "tick");
        fb_sim_text_add(&v->text, "}\n", 2);
    }
    fb_sim_text_format(&v->text, "{\"out\":\"%s\"", what);
    if (link != NULL) fb_sim_text_format(&v->text, ",\"link\":%u", (unsigned)link->ordinal);
}

static void put_node(fb_sim_text *text, const fb_sim_node *node)
{
    fb_sim_text_format(text, "{\"node_id\":\"");
    fb_sim_text_hex(text, fb_span_of(node->id.b, 16));
    fb_sim_text_format(text, "\",\"public_key\":\"");
    fb_sim_text_hex(text, fb_span_of(node->provider.public_key.b, 32));
    fb_sim_text_format(text, "\"}");
}

typedef struct initial {
    fb_sim_vector *vector;
    fb_sim_text *text;
} initial;

static void put_seen(void *user, fb_id id, uint64_t timestamp)
{
    const initial *i = user;
    if (i->text->bytes[i->text->len - 1] != '[') fb_sim_text_add(i->text, ",", 1);
    fb_sim_text_format(i->text, "{\"id\":\"");
    fb_sim_text_uuid(i->text, id);
    fb_sim_text_format(i->text, "\",\"timestamp\":%llu}", (unsigned long long)timestamp);
}

void fb_sim_line_header(fb_sim_export *export, fb_sim_vector *v, const fb_sim_store *store)
{
    const fb_sim_world *world = export->world;
    const fb_timing *timing = &world->config.timing;
    fb_sim_text *text = &v->text;
    fb_sim_text_format(text, "{\"vector\":\"%s/%s-from-%s", world->config.seed_text,
                       fb_sim_name(v->self), fb_sim_name(v->peer));
    if (v->serial != 0) fb_sim_text_format(text, "/%u", (unsigned)v->serial + 1);
    fb_sim_text_format(text, "\",\"format\":\"faberio-messaging-vectors 1\",\"source\":\"");
    for (const char *p = export->source; *p != 0; p++) {
        bool plain = *p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\';
        fb_sim_text_add(text, plain ? p : "?", 1);
    }
    fb_sim_text_format(text, "\",\"signatures\":\"sim-1\",\"self\":");
    put_node(text, &world->nodes[v->self]);
    fb_sim_text_format(text, ",\"peer\":");
    put_node(text, &world->nodes[v->peer]);
    fb_sim_text_format(text, ",\"information_space_id\":\"");
    fb_sim_text_uuid(text, v->space);
    fb_sim_text_format(text, "\",\"state_object_id\":\"");
    fb_sim_text_uuid(text, fb_area_id(v->space, FB_AREA_SPACE, fb_span_of(NULL, 0)));
    fb_sim_text_format(text, "\",\"subscriptions\":[\"platform.replication.database\","
                             "\"platform.replication.state\"],\"limits\":{");
    fb_sim_text_format(text, "\"past_ms\":%lld,\"future_ms\":%lld,\"seen_ids\":%u,",
                       (long long)(timing->window_past_us / 1000),
                       (long long)(timing->window_future_us / 1000),
                       (unsigned)world->config.sizes.seen_ids);
    fb_sim_text_format(text, "\"rate_per_s\":%u,\"rate_burst\":%u,\"redeliver_ms\":%llu,",
                       (unsigned)timing->rate_per_s, (unsigned)timing->rate_burst,
                       (unsigned long long)(timing->redeliver_ns / 1000000));
    fb_sim_text_format(text, "\"resend_min_ms\":%llu,\"resend_max_ms\":%llu,",
                       (unsigned long long)(timing->resend_min_ns / 1000000),
                       (unsigned long long)(timing->resend_max_ns / 1000000));
    fb_sim_text_format(text, "\"window_messages\":%u,\"window_bytes\":%u},\"seen\":[",
                       (unsigned)FB_SEND_WINDOW_MESSAGES, (unsigned)FB_SEND_WINDOW_BYTES);
    int64_t floor_ms = 0;
    if (store != NULL) {
        initial i = {v, text};
        floor_ms = fb_sim_seen_in_store(store, v->local, world->nodes[v->peer].id, &i, put_seen);
    }
    fb_sim_text_format(text, "],\"floor_ms\":%lld}\n", (long long)floor_ms);
}

/* ---- The store of a node ---- */

typedef struct walk {
    uint8_t prefix[21];
    void *user;
    void (*at)(void *user, fb_id id, uint64_t timestamp);
    uint64_t newest;
    int64_t floor_ms;
} walk;

static void item(void *user, fb_span key, fb_span value)
{
    walk *w = user;
    if (key.len != 25 || value.len != FB_SLOT_VALUE_BYTES) return;
    fb_reader r = fb_reader_of(value);
    (void)fb_read_u8(&r);
    fb_id id = fb_read_id(&r);
    uint64_t timestamp = fb_read_u64(&r);
    uint64_t sequence = fb_read_u64(&r);
    int64_t floor_ms = (int64_t)fb_read_u64(&r);
    if (sequence >= w->newest) {
        w->newest = sequence;
        w->floor_ms = floor_ms;
    }
    w->at(w->user, id, timestamp);
}

int64_t fb_sim_seen_in_store(const fb_sim_store *store, uint32_t local, fb_id sender, void *user,
                             void (*at)(void *user, fb_id id, uint64_t timestamp))
{
    walk w = {.user = user, .at = at};
    w.prefix[0] = FB_TAG_SEEN;
    fb_store_be(w.prefix + 1, local, 4);
    memcpy(w.prefix + 5, sender.b, 16);
    fb_sim_store_walk(store, fb_span_of(w.prefix, sizeof w.prefix), item, &w);
    return w.floor_ms;
}
