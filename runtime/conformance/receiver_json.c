/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/conformance/receiver_json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"
#include "protocol/identity/identity.h"

typedef struct reading {
    fb_receiver *receiver;
    const fb_provider *provider;
    bool session;
    fb_receiver_fault *fault;
} reading;

static bool wrong(const reading *r, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Says which member of the context is wrong, and how. */
static bool wrong(const reading *r, const char *what, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->fault->where, sizeof r->fault->where, format, args);
    va_end(args);
    r->fault->what = what;
    return false;
}

/* The list has every member of `object`; those behind the first NULL are a session's. */
static bool known_members(const reading *r, json_t *object, const char *where,
                          const char *const *names)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        bool own = true, known = false;
        for (const char *const *one = names; !known; one++) {
            if (*one == NULL && (!own || !r->session)) break;
            if (*one == NULL) {
                own = false;
            } else {
                known = strcmp(*one, name) == 0;
            }
        }
        if (!known) return wrong(r, "no such member", "%s%s", where, name);
    }
    return true;
}

static bool text_of(const json_t *value, fb_span *out)
{
    if (!json_is_string(value)) return false;
    *out = fb_span_of(json_string_value(value), json_string_length(value));
    return true;
}

static bool node_id_of(const json_t *value, fb_id *out)
{
    fb_span text;
    return text_of(value, &text) && fb_hex_parse(text, out->b, sizeof out->b);
}

static bool uuid_of(const json_t *value, fb_id *out)
{
    fb_span text;
    return text_of(value, &text) && fb_uuid_parse_v7(text, out);
}

static bool read_integer(const reading *r, const json_t *root, const char *name, int64_t least,
                         bool required, int64_t *out)
{
    const json_t *value = json_object_get(root, name);
    if (value == NULL) return required ? wrong(r, "the member is missing", "%s", name) : true;
    if (!json_is_integer(value)) return wrong(r, "not an integer", "%s", name);
    if (json_integer_value(value) < least) return wrong(r, "too small", "%s", name);
    *out = json_integer_value(value);
    return true;
}

static bool read_limit(const reading *r, const json_t *root, const char *name, int64_t most,
                       uint32_t *out)
{
    int64_t value = 0;
    if (!read_integer(r, root, name, 0, false, &value)) return false;
    if (value > most) return wrong(r, "too large", "%s", name);
    *out = (uint32_t)value;
    return true;
}

fb_receiver_status fb_receiver_status_named(const json_t *value)
{
    static const char *const states[] = {"approved", "pending", "revoked"};
    const char *state = json_string_value(value);
    for (int i = 0; i < 3 && state != NULL; i++) {
        if (strcmp(state, states[i]) == 0) return (fb_receiver_status)(FB_RECEIVER_APPROVED + i);
    }
    return FB_RECEIVER_UNKNOWN;
}

static bool read_member(reading *r, json_t *entry, size_t i)
{
    static const char *const names[] = {"public_key", "status", NULL, NULL};
    char where[40];
    snprintf(where, sizeof where, "members[%zu].", i);
    if (!json_is_object(entry)) return wrong(r, "not an object", "members[%zu]", i);
    if (!known_members(r, entry, where, names)) return false;
    fb_span text;
    fb_b32 key;
    if (!text_of(json_object_get(entry, "public_key"), &text) ||
        !fb_hex_parse(text, key.b, sizeof key.b)) {
        return wrong(r, "not 64 lowercase hex digits", "%spublic_key", where);
    }
    fb_id id = fb_node_id_of(r->provider, &key);
    if (fb_receiver_member_of(r->receiver, id) != FB_RECEIVER_UNKNOWN) {
        return wrong(r, "this member was named before", "%spublic_key", where);
    }
    fb_receiver_status status = fb_receiver_status_named(json_object_get(entry, "status"));
    if (status == FB_RECEIVER_UNKNOWN) {
        return wrong(r, "not approved, pending or revoked", "%sstatus", where);
    }
    if (fb_receiver_member(r->receiver, &key, status) != FB_OK) {
        return wrong(r, "not a key that may be enrolled", "%spublic_key", where);
    }
    return true;
}

static bool read_topic(reading *r, json_t *entry, size_t i)
{
    fb_span text;
    if (!text_of(entry, &text) || !fb_topic_is_well_formed(text)) {
        return wrong(r, "not a topic", "subscriptions[%zu]", i);
    }
    fb_receiver_subscribe(r->receiver, text, true);
    return true;
}

static bool read_seen(reading *r, json_t *entry, size_t i)
{
    static const char *const names[] = {"source", "id", NULL, "timestamp", NULL};
    char where[40];
    snprintf(where, sizeof where, "seen[%zu].", i);
    if (!json_is_object(entry)) return wrong(r, "not an object", "seen[%zu]", i);
    if (!known_members(r, entry, where, names)) return false;
    fb_id source, id;
    if (!node_id_of(json_object_get(entry, "source"), &source)) {
        return wrong(r, "not a node id", "%ssource", where);
    }
    if (!uuid_of(json_object_get(entry, "id"), &id)) {
        return wrong(r, "not a UUID of version 7", "%sid", where);
    }
    const json_t *timestamp = json_object_get(entry, "timestamp");
    if (timestamp != NULL && !json_is_integer(timestamp)) {
        return wrong(r, "not an integer", "%stimestamp", where);
    }
    fb_receiver_saw(r->receiver, source, id, timestamp != NULL ? json_integer_value(timestamp) : 0);
    return true;
}

static bool read_floor(reading *r, json_t *entry, size_t i)
{
    static const char *const names[] = {"source", "timestamp", NULL, NULL};
    char where[40];
    snprintf(where, sizeof where, "floors[%zu].", i);
    if (!json_is_object(entry)) return wrong(r, "not an object", "floors[%zu]", i);
    if (!known_members(r, entry, where, names)) return false;
    fb_id source;
    if (!node_id_of(json_object_get(entry, "source"), &source)) {
        return wrong(r, "not a node id", "%ssource", where);
    }
    const json_t *timestamp = json_object_get(entry, "timestamp");
    if (!json_is_integer(timestamp)) return wrong(r, "not an integer", "%stimestamp", where);
    if (!fb_receiver_floor(r->receiver, source, json_integer_value(timestamp))) {
        return wrong(r, "this sender was named before", "%ssource", where);
    }
    return true;
}

static bool read_each(reading *r, json_t *root, const char *name, bool required,
                      bool (*read)(reading *, json_t *, size_t))
{
    json_t *array = json_object_get(root, name), *entry;
    size_t i;
    if (array == NULL) return required ? wrong(r, "the member is missing", "%s", name) : true;
    if (!json_is_array(array)) return wrong(r, "not an array", "%s", name);
    json_array_foreach(array, i, entry)
    {
        if (!read(r, entry, i)) return false;
    }
    return true;
}

static bool read_root(reading *r, json_t *root)
{
    static const char *const names[] = {"self",       "space",     "peer",    "now_ms",
                                        "past_ms",    "future_ms", "members", "subscriptions",
                                        "seen",       "floors",    NULL,      "rate_per_s",
                                        "rate_burst", "seen_ids",  NULL};
    fb_receiver_state *state = fb_receiver_state_of(r->receiver);
    if (!json_is_object(root)) return wrong(r, "not an object", "the file");
    if (!known_members(r, root, "", names)) return false;
    if (!node_id_of(json_object_get(root, "self"), &state->self)) {
        return wrong(r, "missing, or not a node id", "self");
    }
    if (!uuid_of(json_object_get(root, "space"), &state->space)) {
        return wrong(r, "missing, or not a UUID of version 7", "space");
    }
    const json_t *peer = json_object_get(root, "peer");
    state->has_peer = peer != NULL;
    if (peer != NULL && !node_id_of(peer, &state->peer)) return wrong(r, "not a node id", "peer");
    return read_integer(r, root, "now_ms", INT64_MIN, true, &state->now_ms) &&
           read_integer(r, root, "past_ms", 0, false, &state->past_ms) &&
           read_integer(r, root, "future_ms", 0, false, &state->future_ms) &&
           read_limit(r, root, "rate_per_s", 1000, &state->rate_per_s) &&
           read_limit(r, root, "rate_burst", UINT32_MAX, &state->rate_burst) &&
           read_limit(r, root, "seen_ids", UINT32_MAX, &state->seen_ids) &&
           read_each(r, root, "members", true, read_member) &&
           read_each(r, root, "subscriptions", false, read_topic) &&
           read_each(r, root, "seen", false, read_seen) &&
           read_each(r, root, "floors", false, read_floor);
}

bool fb_receiver_read(fb_receiver *receiver, json_t *context, bool session,
                      fb_receiver_fault *fault)
{
    reading r = {receiver, fb_receiver_provider(receiver), session, fault};
    return read_root(&r, context);
}
