/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cmd_envelope_context.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/hash.h"
#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"
#include "protocol/envelope/receive.h"
#include "protocol/identity/identity.h"
#include "runtime/cli.h"
#include "runtime/exit.h"

#define PAST_MS_DEFAULT   INT64_C(900000)
#define FUTURE_MS_DEFAULT INT64_C(300000)

typedef enum member_status {
    MEMBER_APPROVED,
    MEMBER_PENDING,
    MEMBER_REVOKED,
} member_status;

/* What is known about one sender: its membership, or its floor, or both. */
typedef struct sender {
    fb_id id;
    bool member;
    member_status status;
    fb_b32 public_key;
    bool has_floor;
    int64_t floor_ms;
    int64_t highest_ms;
} sender;

/* An id that was seen, in an open table. */
typedef struct seen_id {
    bool used;
    fb_id source;
    fb_id id;
} seen_id;

struct fb_context {
    const char *path;
    const fb_provider *provider;
    fb_id self;
    fb_id space;
    bool has_peer;
    fb_id peer;
    int64_t now_ms;
    int64_t past_ms;
    int64_t future_ms;
    sender *senders;
    size_t sender_count;
    char **topics;
    size_t topic_count;
    seen_id *seen;
    size_t seen_count;
    size_t seen_size; /* a power of two */
};

static bool wrong(const fb_context *c, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Says which member of the context is wrong, and how. */
static bool wrong(const fb_context *c, const char *what, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char where[512];
    vsnprintf(where, sizeof where, format, args);
    fputs("faberio envelope verify: context ", stderr);
    fb_cli_put_visible(c->path);
    fputs(": ", stderr);
    fb_cli_put_visible(where);
    fputs(": ", stderr);
    fb_cli_put_visible(what);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

_Noreturn static void out_of_memory(void)
{
    fputs("faberio envelope verify: out of memory\n", stderr);
    exit(FB_EXIT_FAILED);
}

static void *grow(void *memory, size_t count, size_t size)
{
    /* Room is made in powers of two. */
    if (count != 0 && (count & (count - 1)) != 0) return memory;
    void *more = reallocarray(memory, count == 0 ? 1 : 2 * count, size);
    if (more == NULL) out_of_memory();
    return more;
}

static sender *sender_find(const fb_context *c, fb_id id)
{
    for (size_t i = 0; i < c->sender_count; i++) {
        if (fb_id_equal(c->senders[i].id, id)) return &c->senders[i];
    }
    return NULL;
}

static sender *sender_of(fb_context *c, fb_id id)
{
    sender *known = sender_find(c, id);
    if (known != NULL) return known;
    c->senders = grow(c->senders, c->sender_count, sizeof *c->senders);
    sender *fresh = &c->senders[c->sender_count++];
    *fresh = (sender){.id = id};
    return fresh;
}

static seen_id *seen_slot(const fb_context *c, fb_id source, fb_id id)
{
    uint8_t both[32];
    memcpy(both, source.b, 16);
    memcpy(both + 16, id.b, 16);
    size_t at = (size_t)fb_xxh64(both, sizeof both, 0) & (c->seen_size - 1);
    while (c->seen[at].used &&
           !(fb_id_equal(c->seen[at].source, source) && fb_id_equal(c->seen[at].id, id))) {
        at = (at + 1) & (c->seen_size - 1);
    }
    return &c->seen[at];
}

static void seen_add(fb_context *c, fb_id source, fb_id id)
{
    if (2 * (c->seen_count + 1) > c->seen_size) {
        seen_id *old = c->seen;
        size_t old_size = c->seen_size;
        c->seen_size = old_size == 0 ? 64 : 2 * old_size;
        c->seen = calloc(c->seen_size, sizeof *c->seen);
        if (c->seen == NULL) out_of_memory();
        for (size_t i = 0; i < old_size; i++) {
            if (old[i].used) *seen_slot(c, old[i].source, old[i].id) = old[i];
        }
        free(old);
    }
    seen_id *slot = seen_slot(c, source, id);
    if (!slot->used) c->seen_count++;
    *slot = (seen_id){true, source, id};
}

/* ---- Reading ---- */

/* Members of `object` that are not in the list; NULL-terminated. */
static bool known_members(const fb_context *c, json_t *object, const char *where,
                          const char *const *names)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        const char *const *known = names;
        while (*known != NULL && strcmp(*known, name) != 0) known++;
        if (*known == NULL) return wrong(c, "no such member", "%s%s", where, name);
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

static bool read_integer(const fb_context *c, const json_t *root, const char *name, int64_t least,
                         bool required, int64_t *out)
{
    const json_t *value = json_object_get(root, name);
    if (value == NULL) return required ? wrong(c, "the member is missing", "%s", name) : true;
    if (!json_is_integer(value)) return wrong(c, "not an integer", "%s", name);
    if (json_integer_value(value) < least) return wrong(c, "too small", "%s", name);
    *out = json_integer_value(value);
    return true;
}

static bool read_array(const fb_context *c, const json_t *root, const char *name, bool required,
                       json_t **out)
{
    *out = json_object_get(root, name);
    if (*out == NULL) return required ? wrong(c, "the member is missing", "%s", name) : true;
    return json_is_array(*out) ? true : wrong(c, "not an array", "%s", name);
}

static bool read_member(fb_context *c, json_t *entry, size_t i)
{
    static const char *const names[] = {"public_key", "status", NULL};
    static const char *const states[] = {"approved", "pending", "revoked"};
    char where[40];
    snprintf(where, sizeof where, "members[%zu].", i);
    if (!json_is_object(entry)) return wrong(c, "not an object", "members[%zu]", i);
    if (!known_members(c, entry, where, names)) return false;
    fb_span text;
    fb_b32 key;
    if (!text_of(json_object_get(entry, "public_key"), &text) ||
        !fb_hex_parse(text, key.b, sizeof key.b)) {
        return wrong(c, "not 64 lowercase hex digits", "%spublic_key", where);
    }
    if (fb_identity_enrol_check(c->provider, &key) != FB_OK) {
        return wrong(c, "not a key that may be enrolled", "%spublic_key", where);
    }
    sender *s = sender_of(c, fb_node_id_of(c->provider, &key));
    if (s->member) return wrong(c, "this member was named before", "%spublic_key", where);
    const char *state = json_string_value(json_object_get(entry, "status"));
    for (int k = MEMBER_APPROVED; k <= MEMBER_REVOKED; k++) {
        if (state == NULL || strcmp(state, states[k]) != 0) continue;
        s->member = true;
        s->status = (member_status)k;
        s->public_key = key;
        return true;
    }
    return wrong(c, "not approved, pending or revoked", "%sstatus", where);
}

static bool read_topic(fb_context *c, json_t *entry, size_t i)
{
    fb_span text;
    if (!text_of(entry, &text) || !fb_topic_is_well_formed(text)) {
        return wrong(c, "not a topic", "subscriptions[%zu]", i);
    }
    c->topics = grow(c->topics, c->topic_count, sizeof *c->topics);
    char *copy = strdup(json_string_value(entry));
    if (copy == NULL) out_of_memory();
    c->topics[c->topic_count++] = copy;
    return true;
}

static bool read_seen(fb_context *c, json_t *entry, size_t i)
{
    static const char *const names[] = {"source", "id", NULL};
    char where[40];
    snprintf(where, sizeof where, "seen[%zu].", i);
    if (!json_is_object(entry)) return wrong(c, "not an object", "seen[%zu]", i);
    if (!known_members(c, entry, where, names)) return false;
    fb_id source, id;
    if (!node_id_of(json_object_get(entry, "source"), &source)) {
        return wrong(c, "not a node id", "%ssource", where);
    }
    if (!uuid_of(json_object_get(entry, "id"), &id)) {
        return wrong(c, "not a UUID of version 7", "%sid", where);
    }
    seen_add(c, source, id);
    return true;
}

static bool read_floor(fb_context *c, json_t *entry, size_t i)
{
    static const char *const names[] = {"source", "timestamp", NULL};
    char where[40];
    snprintf(where, sizeof where, "floors[%zu].", i);
    if (!json_is_object(entry)) return wrong(c, "not an object", "floors[%zu]", i);
    if (!known_members(c, entry, where, names)) return false;
    fb_id source;
    if (!node_id_of(json_object_get(entry, "source"), &source)) {
        return wrong(c, "not a node id", "%ssource", where);
    }
    const json_t *timestamp = json_object_get(entry, "timestamp");
    if (!json_is_integer(timestamp)) return wrong(c, "not an integer", "%stimestamp", where);
    sender *s = sender_of(c, source);
    if (s->has_floor) return wrong(c, "this sender was named before", "%ssource", where);
    s->has_floor = true;
    s->floor_ms = json_integer_value(timestamp);
    return true;
}

static bool read_each(fb_context *c, json_t *root, const char *name, bool required,
                      bool (*read)(fb_context *, json_t *, size_t))
{
    json_t *array, *entry;
    size_t i;
    if (!read_array(c, root, name, required, &array)) return false;
    json_array_foreach(array, i, entry)
    {
        if (!read(c, entry, i)) return false;
    }
    return true;
}

static bool read_root(fb_context *c, json_t *root)
{
    static const char *const names[] = {"self",    "space",     "peer",    "now_ms",
                                        "past_ms", "future_ms", "members", "subscriptions",
                                        "seen",    "floors",    NULL};
    if (!json_is_object(root)) return wrong(c, "not an object", "the file");
    if (!known_members(c, root, "", names)) return false;
    if (!node_id_of(json_object_get(root, "self"), &c->self)) {
        return wrong(c, "missing, or not a node id", "self");
    }
    if (!uuid_of(json_object_get(root, "space"), &c->space)) {
        return wrong(c, "missing, or not a UUID of version 7", "space");
    }
    const json_t *peer = json_object_get(root, "peer");
    c->has_peer = peer != NULL;
    if (c->has_peer && !node_id_of(peer, &c->peer)) return wrong(c, "not a node id", "peer");
    return read_integer(c, root, "now_ms", INT64_MIN, true, &c->now_ms) &&
           read_integer(c, root, "past_ms", 0, false, &c->past_ms) &&
           read_integer(c, root, "future_ms", 0, false, &c->future_ms) &&
           read_each(c, root, "members", true, read_member) &&
           read_each(c, root, "subscriptions", false, read_topic) &&
           read_each(c, root, "seen", false, read_seen) &&
           read_each(c, root, "floors", false, read_floor);
}

fb_context *fb_context_read(const char *path, const fb_provider *provider)
{
    fb_context *c = calloc(1, sizeof *c);
    if (c == NULL) out_of_memory();
    c->path = path;
    c->provider = provider;
    c->past_ms = PAST_MS_DEFAULT;
    c->future_ms = FUTURE_MS_DEFAULT;
    c->seen_size = 64;
    c->seen = calloc(c->seen_size, sizeof *c->seen);
    if (c->seen == NULL) out_of_memory();
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    bool good = false;
    if (root == NULL && error.line > 0) {
        wrong(c, error.text, "line %d, column %d", error.line, error.column);
    } else if (root == NULL) {
        wrong(c, error.text, "the file");
    } else {
        good = read_root(c, root);
    }
    json_decref(root);
    if (good) return c;
    fb_context_free(c);
    return NULL;
}

void fb_context_free(fb_context *context)
{
    if (context == NULL) return;
    for (size_t i = 0; i < context->topic_count; i++) free(context->topics[i]);
    free(context->topics);
    free(context->senders);
    free(context->seen);
    free(context);
}

/* ---- Judging ---- */

static bool is_subscribed(const fb_context *c, fb_span topic)
{
    for (size_t i = 0; i < c->topic_count; i++) {
        if (fb_span_equal(fb_span_text(c->topics[i]), topic)) return true;
    }
    return false;
}

static fb_status refuse(fb_envelope_fault *fault, fb_status reason, fb_envelope_field field)
{
    *fault = (fb_envelope_fault){reason, field, fb_error_text(reason), 0};
    return reason;
}

fb_status fb_context_judge(fb_context *c, const fb_envelope *e, fb_envelope_fault *fault)
{
    fb_status status = fb_receive_space(e, c->space);
    if (status != FB_OK) return refuse(fault, status, FB_ENVELOPE_SPACE);

    status = fb_receive_origin(e, c->has_peer ? c->peer : e->source, c->self);
    if (status != FB_OK) return refuse(fault, status, FB_ENVELOPE_SOURCE);

    sender *s = sender_find(c, e->source);
    bool member = s != NULL && s->member;
    status = fb_receive_sender(member && s->status == MEMBER_APPROVED,
                               member && s->status == MEMBER_REVOKED);
    if (status != FB_OK) return refuse(fault, status, FB_ENVELOPE_SOURCE);

    status = fb_envelope_verify(e, c->provider, &s->public_key);
    if (status != FB_OK) return refuse(fault, status, FB_ENVELOPE_SIGNATURE);

    fb_receive_window window = {c->now_ms, c->past_ms, c->future_ms, s->floor_ms};
    bool by_floor;
    status = fb_receive_time(e, &window, &by_floor);
    if (status != FB_OK) {
        refuse(fault, status, FB_ENVELOPE_TIMESTAMP);
        if (by_floor) fault->detail = "at or below the sender's floor";
        return status;
    }

    bool subscribed = e->mode == FB_DELIVERY_TOPIC && is_subscribed(c, e->topic);
    status = fb_receive_address(e, c->self, subscribed);
    if (status != FB_OK) return refuse(fault, status, FB_ENVELOPE_TARGET);

    if (seen_slot(c, e->source, e->id)->used) {
        return refuse(fault, FB_ERR_DUPLICATE, FB_ENVELOPE_ID);
    }
    seen_add(c, e->source, e->id);
    if ((int64_t)e->timestamp > s->highest_ms) s->highest_ms = (int64_t)e->timestamp;
    s->floor_ms = fb_receive_floor(&window, s->highest_ms);
    return FB_OK;
}
