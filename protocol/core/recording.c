/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/recording.h"

#define EFFECT_BYTES 48u
#define REDACTED     1u
#define OBSERVES     2u
#define DIGESTS      4u

/* A new member has to be written down too, and raises the count. */
#define TIMING_BYTES (15 * sizeof(uint64_t) + 3 * sizeof(uint32_t))
_Static_assert(sizeof(fb_timing) == (TIMING_BYTES + _Alignof(fb_timing) - 1) / _Alignof(fb_timing) *
                                        _Alignof(fb_timing),
               "timing_out");
_Static_assert(sizeof(fb_sizes) == FB_RECORDING_SIZES * sizeof(uint32_t), "sizes are words");

/* Items: the length is known when the body is there. */

static size_t item_begin(fb_writer *w, fb_recording_kind kind)
{
    fb_write_u8(w, (uint8_t)kind);
    size_t at = w->at;
    fb_write_u32(w, 0);
    return at;
}

static void item_end(fb_writer *w, size_t at)
{
    if (!w->failed) fb_store_be(w->p + at, w->at - at - 4, 4);
}

static void write_hash(fb_writer *w, fb_hash128 hash)
{
    fb_write_u64(w, hash.hi);
    fb_write_u64(w, hash.lo);
}

static fb_hash128 read_hash(fb_reader *r)
{
    uint64_t hi = fb_read_u64(r);
    return (fb_hash128){fb_read_u64(r), hi};
}

/* Options as lists of numbers. */

static void sizes_out(const fb_sizes *sizes, uint32_t out[FB_RECORDING_SIZES])
{
    memcpy(out, sizes, sizeof *sizes);
}

typedef struct timing_words {
    uint64_t w[FB_RECORDING_TIMING];
} timing_words;

static timing_words timing_out(const fb_timing *t)
{
    return (timing_words){{
        t->heartbeat_ns,
        t->silent_ns,
        t->handshake_ns,
        t->pending_ns,
        t->redial_min_ns,
        t->redial_max_ns,
        t->link_age_ns,
        t->resend_min_ns,
        t->resend_max_ns,
        t->redeliver_ns,
        t->call_ns,
        t->onward_ns,
        t->report_ns,
        (uint64_t)t->window_past_us,
        (uint64_t)t->window_future_us,
        t->rate_per_s,
        t->rate_burst,
        t->misbehaviour_budget,
    }};
}

static fb_timing timing_in(const timing_words *words)
{
    const uint64_t *w = words->w;
    return (fb_timing){
        .heartbeat_ns = w[0],
        .silent_ns = w[1],
        .handshake_ns = w[2],
        .pending_ns = w[3],
        .redial_min_ns = w[4],
        .redial_max_ns = w[5],
        .link_age_ns = w[6],
        .resend_min_ns = w[7],
        .resend_max_ns = w[8],
        .redeliver_ns = w[9],
        .call_ns = w[10],
        .onward_ns = w[11],
        .report_ns = w[12],
        .window_past_us = (int64_t)w[13],
        .window_future_us = (int64_t)w[14],
        .rate_per_s = (uint32_t)w[15],
        .rate_burst = (uint32_t)w[16],
        .misbehaviour_budget = (uint32_t)w[17],
    };
}

/* Writing. */

void fb_recording_write_header(fb_writer *w, const fb_recording_header *header)
{
    uint32_t sizes[FB_RECORDING_SIZES];
    size_t at = item_begin(w, FB_RECORDING_HEADER);
    fb_write_u16(w, FB_RECORDING_VERSION);
    fb_write_span16(w, fb_span_text(header->program));
    fb_write_id(w, header->node);
    fb_write_u64(w, (uint64_t)header->wall_us);
    fb_write_u64(w, header->effects_capacity);
    fb_write_u64(w, header->options.identity_key);
    fb_write_u64(w, header->options.link_key);
    fb_write_u8(w, (uint8_t)((header->redacted ? REDACTED : 0) |
                             (header->options.observe ? OBSERVES : 0) |
                             (header->options.digest_every_step ? DIGESTS : 0)));
    sizes_out(&header->options.sizes, sizes);
    fb_write_u8(w, FB_RECORDING_SIZES);
    for (size_t i = 0; i < FB_RECORDING_SIZES; i++) fb_write_u32(w, sizes[i]);
    timing_words timing = timing_out(&header->options.timing);
    fb_write_u8(w, FB_RECORDING_TIMING);
    for (size_t i = 0; i < FB_RECORDING_TIMING; i++) fb_write_u64(w, timing.w[i]);
    item_end(w, at);
}

void fb_recording_write_output(fb_writer *w, fb_recording_call call, uint32_t result, fb_span bytes)
{
    size_t at = item_begin(w, FB_RECORDING_OUTPUT);
    fb_write_u8(w, (uint8_t)call);
    fb_write_u32(w, result);
    fb_write_span(w, bytes);
    item_end(w, at);
}

static void event_head(fb_writer *w, const fb_event *event)
{
    fb_write_u32(w, event->kind);
    fb_write_u64(w, event->mono_ns);
    fb_write_u64(w, (uint64_t)event->wall_us);
    fb_write_u64(w, event->a);
    fb_write_u64(w, event->b);
    fb_write_u64(w, event->c);
}

void fb_recording_write_event(fb_writer *w, const fb_event *event)
{
    size_t at = item_begin(w, FB_RECORDING_EVENT);
    event_head(w, event);
    fb_write_bytes(w, event->bytes, event->len);
    item_end(w, at);
}

static void step_head(fb_writer *w, uint32_t status, uint64_t consumed, fb_hash128 digest)
{
    fb_write_u32(w, status);
    fb_write_u64(w, consumed);
    write_hash(w, digest);
}

static void step_item(fb_writer *w, fb_status status, const fb_effects *effects, fb_hash128 digest,
                      fb_recording_hash hash, void *user)
{
    size_t at = item_begin(w, FB_RECORDING_STEP);
    step_head(w, (uint32_t)status, effects->consumed, digest);
    for (const fb_effect *fx = fb_effects_next(effects, NULL); fx != NULL;
         fx = fb_effects_next(effects, fx)) {
        if (fx->kind == FB_FX_LOG) continue;
        fb_write_u32(w, fx->kind);
        fb_write_u32(w, fx->len);
        fb_write_u64(w, fx->a);
        fb_write_u64(w, fx->b);
        fb_write_u64(w, fx->c);
        write_hash(w, hash(user, fb_span_of(fb_effect_bytes(fx), fx->len)));
    }
    item_end(w, at);
}

static fb_hash128 hash_plain(void *user, fb_span bytes)
{
    (void)user;
    return fb_xxh128(bytes.p, bytes.len, 0);
}

void fb_recording_write_step(fb_writer *w, fb_status status, const fb_effects *effects,
                             fb_hash128 digest)
{
    step_item(w, status, effects, digest, hash_plain, NULL);
}

void fb_recording_redact_step(fb_writer *w, fb_status status, const fb_effects *effects,
                              fb_hash128 digest, fb_recording_hash hash, void *user)
{
    step_item(w, status, effects, digest, hash, user);
}

void fb_recording_write_end(fb_writer *w)
{
    item_end(w, item_begin(w, FB_RECORDING_END));
}

void fb_recording_write_fact(fb_writer *w, const fb_effect *fact)
{
    size_t at = item_begin(w, FB_RECORDING_FACT);
    fb_write_u64(w, fact->a);
    fb_write_u64(w, fact->b);
    fb_write_u64(w, fact->c);
    fb_write_bytes(w, fb_effect_bytes(fact), fact->len);
    item_end(w, at);
}

void fb_recording_redact_event(fb_writer *w, const fb_event *event, fb_recording_hash hash,
                               void *user)
{
    size_t at = item_begin(w, FB_RECORDING_EVENT);
    event_head(w, event);
    fb_write_u32(w, event->len);
    write_hash(w, hash(user, fb_span_of(event->bytes, event->len)));
    item_end(w, at);
}

/* Reading. */

static fb_status read_header(fb_reader *r, fb_recording_header *out)
{
    uint32_t sizes[FB_RECORDING_SIZES];
    timing_words timing;
    memset(out, 0, sizeof *out);
    if (fb_read_u16(r) != FB_RECORDING_VERSION) return FB_ERR_VERSION_NEWER;
    fb_span program = fb_read_span16(r);
    if (program.len >= sizeof out->program) return FB_ERR_MALFORMED;
    if (program.len != 0) memcpy(out->program, program.p, program.len);
    out->node = fb_read_id(r);
    out->wall_us = (int64_t)fb_read_u64(r);
    out->effects_capacity = fb_read_u64(r);
    out->options.identity_key = fb_read_u64(r);
    out->options.link_key = fb_read_u64(r);
    uint8_t flags = fb_read_u8(r);
    out->redacted = (flags & REDACTED) != 0;
    out->options.observe = (flags & OBSERVES) != 0;
    out->options.digest_every_step = (flags & DIGESTS) != 0;
    if (fb_read_u8(r) != FB_RECORDING_SIZES) return FB_ERR_VERSION_NEWER;
    for (size_t i = 0; i < FB_RECORDING_SIZES; i++) sizes[i] = fb_read_u32(r);
    memcpy(&out->options.sizes, sizes, sizeof out->options.sizes);
    if (fb_read_u8(r) != FB_RECORDING_TIMING) return FB_ERR_VERSION_NEWER;
    for (size_t i = 0; i < FB_RECORDING_TIMING; i++) timing.w[i] = fb_read_u64(r);
    out->options.timing = timing_in(&timing);
    return (flags & ~(REDACTED | OBSERVES | DIGESTS)) == 0 ? FB_OK : FB_ERR_MALFORMED;
}

static void read_bytes(fb_reader *r, bool redacted, fb_recording_item *out)
{
    if (redacted) {
        out->len = fb_read_u32(r);
        out->hash = read_hash(r);
        return;
    }
    out->bytes = fb_read_bytes(r, fb_reader_left(r));
    out->len = (uint32_t)out->bytes.len;
    out->hash = fb_xxh128(out->bytes.p, out->bytes.len, 0);
}

static fb_status read_body(fb_reader *r, bool redacted, fb_recording_item *out)
{
    switch (out->kind) {
    case FB_RECORDING_HEADER:
        return read_header(r, &out->header);
    case FB_RECORDING_OUTPUT:
        out->call = (fb_recording_call)fb_read_u8(r);
        out->result = fb_read_u32(r);
        read_bytes(r, redacted, out);
        return out->call >= FB_CALL_PUBLIC_KEY && out->call < FB_CALLS ? FB_OK : FB_ERR_MALFORMED;
    case FB_RECORDING_EVENT:
        out->event.kind = fb_read_u32(r);
        out->event.mono_ns = fb_read_u64(r);
        out->event.wall_us = (int64_t)fb_read_u64(r);
        out->event.a = fb_read_u64(r);
        out->event.b = fb_read_u64(r);
        out->event.c = fb_read_u64(r);
        read_bytes(r, redacted, out);
        out->event.bytes = out->bytes.p;
        out->event.len = out->len;
        return FB_OK;
    case FB_RECORDING_STEP:
        out->status = fb_read_u32(r);
        out->consumed = fb_read_u64(r);
        out->digest = read_hash(r);
        out->effect_heads = fb_read_bytes(r, fb_reader_left(r));
        out->effects = (uint32_t)(out->effect_heads.len / EFFECT_BYTES);
        return out->effect_heads.len % EFFECT_BYTES == 0 ? FB_OK : FB_ERR_MALFORMED;
    case FB_RECORDING_FACT:
        out->a = fb_read_u64(r);
        out->b = fb_read_u64(r);
        out->c = fb_read_u64(r);
        read_bytes(r, false, out);
        return redacted ? FB_OK : FB_ERR_MALFORMED;
    case FB_RECORDING_END:
        return FB_OK;
    }
    return FB_ERR_MALFORMED;
}

fb_status fb_recording_read(fb_reader *in, bool redacted, fb_recording_item *out, bool *cut)
{
    *cut = false;
    fb_reader head = *in;
    memset(out, 0, sizeof *out);
    if (fb_reader_left(&head) == 0) return FB_ERR_NOT_FOUND;
    out->kind = (fb_recording_kind)fb_read_u8(&head);
    uint32_t len = fb_read_u32(&head);
    if (head.failed) {
        *cut = true;
        return FB_ERR_NOT_FOUND;
    }
    if (len > FB_RECORDING_ITEM_BYTES_MAX) return FB_ERR_MALFORMED;
    fb_span body = fb_read_bytes(&head, len);
    if (head.failed) {
        *cut = true;
        return FB_ERR_NOT_FOUND;
    }
    fb_reader r = fb_reader_of(body);
    fb_status status = read_body(&r, redacted, out);
    if (status == FB_OK && !fb_reader_done(&r)) status = FB_ERR_MALFORMED;
    if (status == FB_OK) *in = head;
    return status;
}

fb_recording_effect fb_recording_effect_at(const fb_recording_item *step, uint32_t index)
{
    fb_reader r = fb_reader_of(step->effect_heads);
    fb_read_bytes(&r, (size_t)index * EFFECT_BYTES);
    fb_recording_effect e = {.kind = fb_read_u32(&r)};
    e.len = fb_read_u32(&r);
    e.a = fb_read_u64(&r);
    e.b = fb_read_u64(&r);
    e.c = fb_read_u64(&r);
    e.bytes = read_hash(&r);
    return e;
}

const char *fb_recording_call_name(fb_recording_call call)
{
    switch (call) {
    case FB_CALL_PUBLIC_KEY:
        return "public_key";
    case FB_CALL_SIGN:
        return "sign";
    case FB_CALL_VERIFY:
        return "verify";
    case FB_CALL_POINT_IS_VALID:
        return "point_is_valid";
    case FB_CALL_DH_PUBLIC:
        return "dh_public";
    case FB_CALL_DH_GENERATE:
        return "dh_generate";
    case FB_CALL_DH:
        return "dh";
    case FB_CALL_SHA256:
        return "sha256";
    case FB_CALL_BLAKE2B:
        return "blake2b";
    case FB_CALL_AEAD_SEAL:
        return "aead_seal";
    case FB_CALL_AEAD_OPEN:
        return "aead_open";
    case FB_CALL_SECRET:
        return "secret";
    case FB_CALLS:
        break;
    }
    return "unknown";
}
