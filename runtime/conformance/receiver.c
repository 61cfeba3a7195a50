/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/conformance/receiver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/hash.h"
#include "protocol/envelope/receive.h"
#include "protocol/identity/identity.h"
#include "runtime/exit.h"

#define PAST_MS_DEFAULT   INT64_C(900000)
#define FUTURE_MS_DEFAULT INT64_C(300000)

/* What is known about one node: its membership, what was accepted from it, or both. */
typedef struct sender {
    fb_id id;
    fb_receiver_status status;
    fb_b32 public_key;
    bool floor_given;
    int64_t floor_ms;
    int64_t highest_ms;
    uint64_t full_at_ms; /* when its bucket is full again */
    bool reset_used;     /* on this link */
} sender;

/* An id that was seen, in an open table. */
typedef struct seen_id {
    bool used;
    bool forgotten;
    fb_id source;
    fb_id id;
    int64_t timestamp; /* 0: not known */
} seen_id;

struct fb_receiver {
    const fb_provider *provider;
    fb_receiver_state state;
    sender *senders;
    size_t sender_count;
    char **topics;
    size_t topic_count;
    seen_id *seen;
    size_t seen_count;
    size_t seen_size; /* a power of two */
};

_Noreturn static void out_of_memory(void)
{
    fputs("faberio: out of memory\n", stderr);
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

fb_receiver *fb_receiver_new(const fb_provider *provider)
{
    fb_receiver *r = calloc(1, sizeof *r);
    if (r == NULL) out_of_memory();
    r->provider = provider;
    r->state.past_ms = PAST_MS_DEFAULT;
    r->state.future_ms = FUTURE_MS_DEFAULT;
    r->seen_size = 64;
    r->seen = calloc(r->seen_size, sizeof *r->seen);
    if (r->seen == NULL) out_of_memory();
    return r;
}

void fb_receiver_free(fb_receiver *receiver)
{
    if (receiver == NULL) return;
    for (size_t i = 0; i < receiver->topic_count; i++) free(receiver->topics[i]);
    free(receiver->topics);
    free(receiver->senders);
    free(receiver->seen);
    free(receiver);
}

fb_receiver_state *fb_receiver_state_of(fb_receiver *receiver)
{
    return &receiver->state;
}

const fb_provider *fb_receiver_provider(const fb_receiver *receiver)
{
    return receiver->provider;
}

/* ---- Senders ---- */

static sender *sender_find(const fb_receiver *r, fb_id id)
{
    for (size_t i = 0; i < r->sender_count; i++) {
        if (fb_id_equal(r->senders[i].id, id)) return &r->senders[i];
    }
    return NULL;
}

static sender *sender_of(fb_receiver *r, fb_id id)
{
    sender *known = sender_find(r, id);
    if (known != NULL) return known;
    r->senders = grow(r->senders, r->sender_count, sizeof *r->senders);
    sender *fresh = &r->senders[r->sender_count++];
    *fresh = (sender){.id = id};
    return fresh;
}

fb_status fb_receiver_member(fb_receiver *receiver, const fb_b32 *public_key,
                             fb_receiver_status status)
{
    FB_TRY(fb_identity_enrol_check(receiver->provider, public_key));
    sender *s = sender_of(receiver, fb_node_id_of(receiver->provider, public_key));
    s->public_key = *public_key;
    s->status = status;
    return FB_OK;
}

fb_receiver_status fb_receiver_member_of(const fb_receiver *receiver, fb_id node)
{
    const sender *s = sender_find(receiver, node);
    return s != NULL ? s->status : FB_RECEIVER_UNKNOWN;
}

bool fb_receiver_floor(fb_receiver *receiver, fb_id source, int64_t floor_ms)
{
    sender *s = sender_of(receiver, source);
    if (s->floor_given) return false;
    s->floor_given = true;
    s->floor_ms = floor_ms;
    return true;
}

void fb_receiver_link(fb_receiver *receiver)
{
    for (size_t i = 0; i < receiver->sender_count; i++) receiver->senders[i].reset_used = false;
}

/* ---- Topics ---- */

static size_t topic_find(const fb_receiver *r, fb_span topic)
{
    size_t i = 0;
    while (i < r->topic_count && !fb_span_equal(fb_span_text(r->topics[i]), topic)) i++;
    return i;
}

void fb_receiver_subscribe(fb_receiver *receiver, fb_span topic, bool subscribed)
{
    size_t at = topic_find(receiver, topic);
    bool known = at < receiver->topic_count;
    if (known == subscribed) return;
    if (known) {
        free(receiver->topics[at]);
        receiver->topics[at] = receiver->topics[--receiver->topic_count];
        return;
    }
    receiver->topics = grow(receiver->topics, receiver->topic_count, sizeof *receiver->topics);
    char *copy = strndup((const char *)topic.p, topic.len);
    if (copy == NULL) out_of_memory();
    receiver->topics[receiver->topic_count++] = copy;
}

/* ---- Ids ---- */

static seen_id *seen_slot(const fb_receiver *r, fb_id source, fb_id id)
{
    uint8_t both[32];
    memcpy(both, source.b, 16);
    memcpy(both + 16, id.b, 16);
    size_t at = (size_t)fb_xxh64(both, sizeof both, 0) & (r->seen_size - 1);
    while (r->seen[at].used &&
           !(fb_id_equal(r->seen[at].source, source) && fb_id_equal(r->seen[at].id, id))) {
        at = (at + 1) & (r->seen_size - 1);
    }
    return &r->seen[at];
}

void fb_receiver_saw(fb_receiver *receiver, fb_id source, fb_id id, int64_t timestamp)
{
    if (2 * (receiver->seen_count + 1) > receiver->seen_size) {
        seen_id *old = receiver->seen;
        size_t old_size = receiver->seen_size;
        receiver->seen_size = 2 * old_size;
        receiver->seen = calloc(receiver->seen_size, sizeof *receiver->seen);
        if (receiver->seen == NULL) out_of_memory();
        for (size_t i = 0; i < old_size; i++) {
            if (old[i].used) *seen_slot(receiver, old[i].source, old[i].id) = old[i];
        }
        free(old);
    }
    seen_id *slot = seen_slot(receiver, source, id);
    if (!slot->used) receiver->seen_count++;
    *slot = (seen_id){true, false, source, id, timestamp};
    sender *s = sender_of(receiver, source);
    if (timestamp > s->highest_ms) s->highest_ms = timestamp;
}

static bool was_seen(const fb_receiver *r, const fb_envelope *e)
{
    const seen_id *slot = seen_slot(r, e->source, e->id);
    return slot->used && !slot->forgotten;
}

static bool counts(const seen_id *slot, fb_id source)
{
    return slot->used && !slot->forgotten && slot->timestamp != 0 &&
           fb_id_equal(slot->source, source);
}

/* The oldest timestamp when more ids are kept than may be; else 0. */
static int64_t overflow_ms(const fb_receiver *r, fb_id source)
{
    if (r->state.seen_ids == 0) return 0;
    uint32_t kept = 0;
    int64_t oldest = INT64_MAX;
    for (size_t i = 0; i < r->seen_size; i++) {
        if (!counts(&r->seen[i], source)) continue;
        kept++;
        if (r->seen[i].timestamp < oldest) oldest = r->seen[i].timestamp;
    }
    return kept > r->state.seen_ids ? oldest : 0;
}

static void forget(fb_receiver *r, const sender *s)
{
    for (size_t i = 0; i < r->seen_size; i++) {
        seen_id *slot = &r->seen[i];
        if (counts(slot, s->id) && slot->timestamp <= s->floor_ms) slot->forgotten = true;
    }
}

static void record(fb_receiver *r, sender *s, const fb_receive_window *window, const fb_envelope *e)
{
    fb_receiver_saw(r, e->source, e->id, (int64_t)e->timestamp);
    int64_t floor_ms = fb_receive_floor(window, s->highest_ms);
    int64_t overflow = overflow_ms(r, s->id);
    if (overflow > floor_ms) floor_ms = overflow;
    if (floor_ms == s->floor_ms) return;
    s->floor_ms = floor_ms;
    forget(r, s);
}

/* ---- The order of checks ---- */

/* One token of the sender's bucket. */
static bool within_rate(const fb_receiver_state *state, sender *s)
{
    if (state->rate_per_s == 0) return true;
    uint64_t token_ms = 1000 / state->rate_per_s;
    uint64_t full_at = s->full_at_ms > state->mono_ms ? s->full_at_ms : state->mono_ms;
    if (full_at - state->mono_ms + token_ms > token_ms * state->rate_burst) return false;
    s->full_at_ms = full_at + token_ms;
    return true;
}

static bool clocks_agree(const fb_receiver_state *state)
{
    return state->offset_known && state->offset_ms >= -state->past_ms &&
           state->offset_ms <= state->future_ms;
}

static fb_status refuse(fb_envelope_fault *fault, fb_status reason, fb_envelope_field field)
{
    *fault = (fb_envelope_fault){reason, field, fb_error_text(reason), 0};
    return reason;
}

fb_status fb_receiver_judge(fb_receiver *receiver, const fb_envelope *e, fb_envelope_fault *fault,
                            bool *floor_reset)
{
    const fb_receiver_state *state = &receiver->state;
    if (floor_reset != NULL) *floor_reset = false;
    fb_status status = fb_receive_space(e, state->space);
    if (status != FB_OK) return refuse(fault, status, FB_ENVELOPE_SPACE);

    status = fb_receive_origin(e, state->has_peer ? state->peer : e->source, state->self);
    if (status != FB_OK) return refuse(fault, status, FB_ENVELOPE_SOURCE);

    sender *s = sender_find(receiver, e->source);
    status = fb_receive_sender(s != NULL && s->status == FB_RECEIVER_APPROVED,
                               s != NULL && s->status == FB_RECEIVER_REVOKED);
    if (status == FB_OK && !within_rate(state, s)) status = FB_ERR_RATE_LIMITED;
    if (status != FB_OK) return refuse(fault, status, FB_ENVELOPE_SOURCE);

    status = fb_envelope_verify(e, receiver->provider, &s->public_key);
    if (status != FB_OK) return refuse(fault, status, FB_ENVELOPE_SIGNATURE);

    fb_receive_window window = {state->now_ms, state->past_ms, state->future_ms, s->floor_ms};
    bool by_floor;
    status = fb_receive_time(e, &window, &by_floor);
    if (by_floor && !s->reset_used && clocks_agree(state)) {
        s->reset_used = true;
        s->floor_ms = window.floor_ms = fb_receive_floor_reset(&window);
        if (floor_reset != NULL) *floor_reset = true;
        status = fb_receive_time(e, &window, &by_floor);
    }
    if (status != FB_OK) {
        refuse(fault, status, FB_ENVELOPE_TIMESTAMP);
        if (by_floor) fault->detail = "at or below the sender's floor";
        return status;
    }

    bool subscribed =
        e->mode == FB_DELIVERY_TOPIC && topic_find(receiver, e->topic) < receiver->topic_count;
    status = fb_receive_address(e, state->self, subscribed);
    if (status != FB_OK) return refuse(fault, status, FB_ENVELOPE_TARGET);

    if (was_seen(receiver, e)) return refuse(fault, FB_ERR_DUPLICATE, FB_ENVELOPE_ID);
    record(receiver, s, &window, e);
    return FB_OK;
}
