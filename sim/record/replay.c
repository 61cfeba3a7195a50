/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/record/replay.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/schedule/schedule.h"
#include "sim/view/note.h"

#define EFFECTS_MAX (UINT64_C(1) << 27) /* a header that asks for more is none */

static fb_sim_replayed over(fb_sim_replay *r, fb_sim_replayed how, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static fb_sim_replayed over(fb_sim_replay *r, fb_sim_replayed how, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->why, sizeof r->why, format, arguments);
    va_end(arguments);
    r->over = how;
    return how;
}

/* The next item. False: it is over. */
static bool item_next(fb_sim_replay *r, fb_recording_item *item)
{
    bool cut;
    size_t at = r->in.at;
    fb_status status = fb_recording_read(&r->in, r->header.redacted, item, &cut);
    if (status == FB_OK) return true;
    if (status == FB_ERR_NOT_FOUND) {
        over(r, FB_SIM_REPLAY_END, cut ? "ends within an item at byte %zu" : "ends at byte %zu",
             at);
    } else {
        over(r, FB_SIM_REPLAY_MALFORMED, "byte %zu, after step %" PRIu64 ": %s", at, r->steps,
             status == FB_ERR_VERSION_NEWER ? "of another version" : "not an item of a recording");
    }
    return false;
}

/* The provider: what the recorded one said, in its order. A step that asks for anything else is
 * not the recorded one, and there is nothing to go on with. */

static _Noreturn void leave(fb_sim_replay *r)
{
    longjmp(r->out, 1);
}

static uint32_t recorded(fb_sim_replay *r, fb_recording_call call, void *out, size_t len)
{
    fb_recording_item item;
    size_t at = r->in.at;
    if (!item_next(r, &item)) {
        if (r->over == FB_SIM_REPLAY_END) {
            over(r, FB_SIM_REPLAY_END,
                 "the process ended within step %" PRIu64 " (%s), when or before it asked for %s",
                 r->steps + 1, fb_sim_event_name((uint8_t)r->event.kind),
                 fb_recording_call_name(call));
        }
        leave(r);
    }
    bool same = item.kind == FB_RECORDING_OUTPUT && item.call == call;
    bool made = call == FB_CALL_AEAD_OPEN ? item.result == 1 : item.result == FB_OK;
    if (call == FB_CALL_VERIFY || call == FB_CALL_POINT_IS_VALID) made = true;
    size_t want = made ? len : 0;
    if (!same || item.bytes.len != want) {
        char then[80] = "no more of the provider";
        if (item.kind == FB_RECORDING_OUTPUT) {
            snprintf(then, sizeof then, "for %s with %zu bytes", fb_recording_call_name(item.call),
                     item.bytes.len);
        }
        over(r, FB_SIM_REPLAY_DIFFERS,
             "step %" PRIu64 " (%s, byte %zu): asks the provider for %s with %zu bytes, then it "
             "asked %s",
             r->steps + 1, fb_sim_event_name((uint8_t)r->event.kind), at,
             fb_recording_call_name(call), want, then);
        leave(r);
    }
    r->outputs++;
    if (want != 0) memcpy(out, item.bytes.p, want);
    return item.result;
}

static fb_status do_public_key(void *user, fb_key_handle key, fb_b32 *out)
{
    (void)key;
    return (fb_status)recorded(user, FB_CALL_PUBLIC_KEY, out->b, sizeof out->b);
}

static fb_status do_sign(void *user, fb_key_handle key, const fb_span *parts, size_t count,
                         fb_b64 *out)
{
    (void)key;
    (void)parts;
    (void)count;
    return (fb_status)recorded(user, FB_CALL_SIGN, out->b, sizeof out->b);
}

static bool do_verify(void *user, const fb_b32 *public_key, const fb_span *parts, size_t count,
                      const fb_b64 *signature)
{
    (void)public_key;
    (void)parts;
    (void)count;
    (void)signature;
    return recorded(user, FB_CALL_VERIFY, NULL, 0) == 1;
}

static bool do_point_is_valid(void *user, const fb_b32 *public_key)
{
    (void)public_key;
    return recorded(user, FB_CALL_POINT_IS_VALID, NULL, 0) == 1;
}

static fb_status do_dh_public(void *user, fb_key_handle key, fb_b32 *out)
{
    (void)key;
    return (fb_status)recorded(user, FB_CALL_DH_PUBLIC, out->b, sizeof out->b);
}

static fb_status do_dh_generate(void *user, fb_key_handle *out)
{
    uint8_t handle[8] = {0};
    fb_status status = (fb_status)recorded(user, FB_CALL_DH_GENERATE, handle, sizeof handle);
    *out = fb_load_be64(handle);
    return status;
}

static void do_dh_release(void *user, fb_key_handle key)
{
    (void)user;
    (void)key;
}

static fb_status do_dh(void *user, fb_key_handle key, const fb_b32 *peer, fb_b32 *out)
{
    (void)key;
    (void)peer;
    return (fb_status)recorded(user, FB_CALL_DH, out->b, sizeof out->b);
}

static void do_sha256(void *user, const fb_span *parts, size_t count, fb_b32 *out)
{
    (void)parts;
    (void)count;
    recorded(user, FB_CALL_SHA256, out->b, sizeof out->b);
}

static void do_blake2b(void *user, fb_span key, const fb_span *parts, size_t count, uint8_t *out,
                       size_t out_len)
{
    (void)key;
    (void)parts;
    (void)count;
    recorded(user, FB_CALL_BLAKE2B, out, out_len);
}

static void do_aead_seal(void *user, const fb_b32 *key, uint64_t nonce, fb_span ad, fb_span plain,
                         uint8_t *out)
{
    (void)key;
    (void)nonce;
    (void)ad;
    recorded(user, FB_CALL_AEAD_SEAL, out, plain.len + 16);
}

static bool do_aead_open(void *user, const fb_b32 *key, uint64_t nonce, fb_span ad, fb_span sealed,
                         uint8_t *out)
{
    (void)key;
    (void)nonce;
    (void)ad;
    return recorded(user, FB_CALL_AEAD_OPEN, out, sealed.len < 16 ? 0 : sealed.len - 16) == 1;
}

static fb_status do_secret(void *user, uint8_t *out, size_t len)
{
    return (fb_status)recorded(user, FB_CALL_SECRET, out, len);
}

static const fb_provider recorded_provider = {
    .public_key = do_public_key,
    .sign = do_sign,
    .verify = do_verify,
    .point_is_valid = do_point_is_valid,
    .dh_public = do_dh_public,
    .dh_generate = do_dh_generate,
    .dh_release = do_dh_release,
    .dh = do_dh,
    .sha256 = do_sha256,
    .blake2b = do_blake2b,
    .aead_seal = do_aead_seal,
    .aead_open = do_aead_open,
    .secret = do_secret,
};

/* Opening. */

/* A node makes one allocation. It is known here, as its making may be left half-way. */
static void *allocate(void *user, size_t bytes)
{
    fb_sim_replay *r = user;
    r->instance = calloc(1, bytes);
    return r->instance;
}

static void release(void *user, void *memory, size_t bytes)
{
    fb_sim_replay *r = user;
    (void)bytes;
    r->instance = NULL;
    free(memory);
}

/* Nobody runs a node far larger than a real one: what asks for that is no recording. */
static bool sizes_are_real(const fb_sizes *sizes)
{
    fb_options real = fb_options_default();
    uint32_t given[FB_RECORDING_SIZES], usual[FB_RECORDING_SIZES];
    memcpy(given, sizes, sizeof given);
    memcpy(usual, &real.sizes, sizeof usual);
    for (size_t i = 0; i < FB_RECORDING_SIZES; i++) {
        if (given[i] > usual[i] * UINT64_C(64)) return false;
    }
    return true;
}

static void instance_make(fb_sim_replay *r)
{
    fb_options options = r->header.options;
    if (!sizes_are_real(&options.sizes)) {
        over(r, FB_SIM_REPLAY_MALFORMED, "a node of sizes that none has");
        return;
    }
    r->provider = recorded_provider;
    r->provider.user = r;
    options.allocator = (fb_allocator){r, allocate, release};
    options.provider = &r->provider;
    fb_status status = fb_node_create(&options, &r->node);
    if (status == FB_ERR_NO_MEMORY) {
        over(r, FB_SIM_REPLAY_RESOURCE, "no memory for the node");
    } else if (status != FB_OK) {
        over(r, FB_SIM_REPLAY_MALFORMED, "a node with these sizes cannot be made: %s",
             fb_error_text(status));
    } else if (r->effects.capacity < fb_effects_bytes_min(&options)) {
        over(r, FB_SIM_REPLAY_DIFFERS, "effects have less room than this version needs");
    } else if (!fb_id_equal(fb_node_self(r->node), r->header.node)) {
        over(r, FB_SIM_REPLAY_DIFFERS, "the key that it was given is another node's");
    }
}

bool fb_sim_replay_open(fb_sim_replay *replay, fb_span recording)
{
    fb_sim_replay *r = replay;
    fb_recording_item item;
    memset(r, 0, sizeof *r);
    r->in = fb_reader_of(recording);
    if (!item_next(r, &item)) return false;
    if (item.kind != FB_RECORDING_HEADER) {
        over(r, FB_SIM_REPLAY_MALFORMED, "byte 0: a recording begins with its header");
        return false;
    }
    r->header = item.header;
    if (r->header.effects_capacity > EFFECTS_MAX) {
        over(r, FB_SIM_REPLAY_MALFORMED, "effects of %" PRIu64 " bytes",
             r->header.effects_capacity);
        return false;
    }
    r->effects.capacity = (size_t)r->header.effects_capacity;
    /* aligned_alloc wants a multiple; calloc is aligned enough for anything. */
    r->effects.memory = calloc(1, r->effects.capacity + 8);
    r->hash_bytes = FB_RECORDING_ITEM_BYTES_MAX + 64;
    r->hash_room = malloc(r->hash_bytes);
    if (r->effects.memory == NULL || r->hash_room == NULL) {
        over(r, FB_SIM_REPLAY_RESOURCE, "no memory for its effects");
        return false;
    }
    /* An instance that cannot be made as it was made asks for something else. */
    if (!r->header.redacted && setjmp(r->out) == 0) instance_make(r);
    return r->over == FB_SIM_REPLAY_STEP;
}

void fb_sim_replay_close(fb_sim_replay *replay)
{
    if (replay->node != NULL) fb_node_destroy(replay->node);
    free(replay->instance);
    replay->node = NULL;
    replay->instance = NULL;
    free(replay->effects.memory);
    free(replay->hash_room);
    replay->effects.memory = replay->hash_room = NULL;
}

/* Steps. */

static fb_hash128 hash_plain(void *user, fb_span bytes)
{
    (void)user;
    return fb_xxh128(bytes.p, bytes.len, 0);
}

/* What happened and what came of it, chained: event and step as they stand in a recording. */
static void chain(fb_sim_replay *r, const fb_recording_item *event, const fb_recording_item *step)
{
    fb_writer w = fb_writer_of(r->hash_room, r->hash_bytes);
    fb_write_u64(&w, r->hash.hi);
    fb_write_u64(&w, r->hash.lo);
    fb_write_u64(&w, event->event.kind);
    fb_write_u64(&w, event->event.mono_ns);
    fb_write_u64(&w, (uint64_t)event->event.wall_us);
    fb_write_u64(&w, event->event.a);
    fb_write_u64(&w, event->event.b);
    fb_write_u64(&w, event->event.c);
    fb_write_u64(&w, event->hash.hi);
    fb_write_u64(&w, event->hash.lo);
    fb_write_u64(&w, r->digest.hi);
    fb_write_u64(&w, r->digest.lo);
    fb_write_span(&w, step->effect_heads);
    fb_span bytes = fb_writer_span(&w);
    r->hash = fb_xxh128(bytes.p, bytes.len, 0);
}

static bool hashes_equal(fb_hash128 a, fb_hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

/* Says which effect is another one. */
static fb_sim_replayed effect_differs(fb_sim_replay *r, uint32_t index, const fb_effect *made,
                                      const fb_recording_effect *then)
{
    char what[160];
    if (then == NULL) {
        snprintf(what, sizeof what, "none was there then");
    } else if (made == NULL) {
        snprintf(what, sizeof what, "%s was there then (%u bytes)",
                 fb_sim_effect_name(then->kind) != NULL ? fb_sim_effect_name(then->kind) : "one",
                 (unsigned)then->len);
    } else {
        snprintf(what, sizeof what,
                 "then %u (a %" PRIu64 ", b %" PRIu64 ", c %" PRIu64 ", %u bytes)%s",
                 (unsigned)then->kind, then->a, then->b, then->c, (unsigned)then->len,
                 then->len == made->len ? ", or other bytes" : "");
    }
    return over(r, FB_SIM_REPLAY_DIFFERS,
                "step %" PRIu64 " (%s): effect %u is %u (a %" PRIu64 ", b %" PRIu64 ", c %" PRIu64
                ", %u bytes); %s",
                r->steps, fb_sim_event_name((uint8_t)r->event.kind), (unsigned)index + 1,
                made != NULL ? (unsigned)made->kind : 0, made != NULL ? made->a : 0,
                made != NULL ? made->b : 0, made != NULL ? made->c : 0,
                made != NULL ? (unsigned)made->len : 0, what);
}

static fb_sim_replayed compare(fb_sim_replay *r, const fb_recording_item *step, fb_status status)
{
    uint32_t at = 0;
    const char *name = fb_sim_event_name((uint8_t)r->event.kind);
    if (step->status != (uint32_t)status) {
        return over(r, FB_SIM_REPLAY_DIFFERS, "step %" PRIu64 " (%s): %s, then %s", r->steps, name,
                    fb_error_name(status), fb_error_name((fb_error)step->status));
    }
    for (const fb_effect *fx = fb_effects_next(&r->effects, NULL); fx != NULL;
         fx = fb_effects_next(&r->effects, fx)) {
        if (fx->kind == FB_FX_LOG) continue;
        if (at == step->effects) return effect_differs(r, at, fx, NULL);
        fb_recording_effect then = fb_recording_effect_at(step, at);
        fb_hash128 bytes = hash_plain(NULL, fb_span_of(fb_effect_bytes(fx), fx->len));
        if (fx->kind != then.kind || fx->len != then.len || fx->a != then.a || fx->b != then.b ||
            fx->c != then.c || !hashes_equal(bytes, then.bytes)) {
            return effect_differs(r, at, fx, &then);
        }
        at++;
    }
    if (at != step->effects) {
        fb_recording_effect then = fb_recording_effect_at(step, at);
        return effect_differs(r, at, NULL, &then);
    }
    if (step->consumed != r->effects.consumed) {
        return over(r, FB_SIM_REPLAY_DIFFERS,
                    "step %" PRIu64 " (%s): takes %zu bytes, then %" PRIu64, r->steps, name,
                    r->effects.consumed, step->consumed);
    }
    if (!hashes_equal(step->digest, r->digest)) {
        return over(r, FB_SIM_REPLAY_DIFFERS,
                    "step %" PRIu64 " (%s): the same effects, but another state", r->steps, name);
    }
    return FB_SIM_REPLAY_STEP;
}

/* A recording may be cut anywhere, and so is one of a process that was killed. */
static void within_step(fb_sim_replay *r)
{
    over(r, FB_SIM_REPLAY_END, "the process ended within step %" PRIu64 " (%s)", r->steps,
         fb_sim_event_name((uint8_t)r->event.kind));
}

/* What a redacted step did, with zeros where its bytes were, and its facts. */
static fb_sim_replayed told(fb_sim_replay *r, const fb_recording_item *step)
{
    fb_writer w = fb_writer_of(r->effects.memory, r->effects.capacity);
    bool facts_missing = false;
    for (uint32_t i = 0; i < step->effects; i++) {
        fb_recording_effect e = fb_recording_effect_at(step, i);
        fb_effect head = {e.kind, e.len, e.a, e.b, e.c};
        fb_recording_item fact = {0};
        if (e.kind == FB_FX_OBSERVE) {
            if (!item_next(r, &fact)) {
                if (r->over == FB_SIM_REPLAY_END) within_step(r);
                return r->over;
            }
            facts_missing = fact.kind != FB_RECORDING_FACT || fact.len != e.len;
            if (facts_missing) break;
        }
        fb_write_bytes(&w, &head, sizeof head);
        uint8_t *bytes = fb_write_room(&w, (e.len + 7u) & ~(size_t)7);
        if (bytes == NULL) break;
        memset(bytes, 0, (e.len + 7u) & ~(size_t)7);
        if (e.kind == FB_FX_OBSERVE && e.len != 0) memcpy(bytes, fact.bytes.p, e.len);
    }
    r->effects.used = w.at;
    if (w.failed || facts_missing) {
        return over(r, FB_SIM_REPLAY_MALFORMED, "byte %zu, step %" PRIu64 ": %s", r->in.at,
                    r->steps,
                    w.failed ? "more effects than a node of this size has" : "a fact is missing");
    }
    return FB_SIM_REPLAY_STEP;
}

/* The item that an event's step ends with. */
static bool step_read(fb_sim_replay *r, fb_recording_item *step)
{
    if (!item_next(r, step)) {
        if (r->over == FB_SIM_REPLAY_END) within_step(r);
        return false;
    }
    if (step->kind == FB_RECORDING_STEP) return true;
    over(r, step->kind == FB_RECORDING_OUTPUT ? FB_SIM_REPLAY_DIFFERS : FB_SIM_REPLAY_MALFORMED,
         "step %" PRIu64 " (%s): %s", r->steps, fb_sim_event_name((uint8_t)r->event.kind),
         step->kind == FB_RECORDING_OUTPUT ? "then it asked more of the provider"
                                           : "an event without what came of it");
    return false;
}

fb_sim_replayed fb_sim_replay_next(fb_sim_replay *replay)
{
    fb_sim_replay *r = replay;
    fb_recording_item event, step;
    if (r->over != FB_SIM_REPLAY_STEP) return r->over;
    if (!item_next(r, &event)) return r->over;
    if (event.kind == FB_RECORDING_END) {
        r->whole = true;
        if (!fb_reader_done(&r->in)) {
            return over(r, FB_SIM_REPLAY_MALFORMED, "bytes after its end, from byte %zu", r->in.at);
        }
        return over(r, FB_SIM_REPLAY_END, "ends in order");
    }
    if (event.kind != FB_RECORDING_EVENT) {
        return over(r, FB_SIM_REPLAY_MALFORMED, "after step %" PRIu64 ": no event where one begins",
                    r->steps);
    }
    r->event = event.event;
    fb_status status = FB_OK;
    if (r->node != NULL) {
        if (setjmp(r->out) != 0) return r->over;
        status = fb_node_step(r->node, &r->event, &r->effects);
        r->digest = fb_node_digest(r->node);
    }
    r->steps++;
    if (r->event.kind == FB_EV_START) r->starts++;
    if (!step_read(r, &step)) return r->over;
    if (r->node == NULL) {
        r->digest = step.digest;
        r->effects.consumed = (size_t)step.consumed;
    }
    fb_sim_replayed how = r->node != NULL ? compare(r, &step, status) : told(r, &step);
    if (how == FB_SIM_REPLAY_STEP) chain(r, &event, &step);
    return how;
}
