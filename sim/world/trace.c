/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/trace.h"

#include "protocol/base/word.h"

#define CHAIN_BYTES 16u

fb_hash128 fb_sim_trace_hash(const fb_sim_trace *trace)
{
    return trace->used == 0 ? (fb_hash128){0, 0} : fb_xxh128(trace->block, trace->used, 0);
}

static void next_block(fb_sim_trace *trace)
{
    fb_hash128 h = fb_sim_trace_hash(trace);
    fb_word_store(trace->block, h.lo);
    fb_word_store(trace->block + 8, h.hi);
    trace->used = CHAIN_BYTES;
}

static void append_over_blocks(fb_sim_trace *trace, const uint8_t *p, size_t len)
{
    while (len > FB_SIM_TRACE_BLOCK - trace->used) {
        size_t part = FB_SIM_TRACE_BLOCK - trace->used;
        memcpy(trace->block + trace->used, p, part);
        trace->used += part;
        p += part;
        len -= part;
        next_block(trace);
    }
    memcpy(trace->block + trace->used, p, len);
    trace->used += len;
}

static inline void append(fb_sim_trace *trace, const void *bytes, size_t len)
{
    if (len > FB_SIM_TRACE_BLOCK - trace->used) {
        append_over_blocks(trace, bytes, len);
        return;
    }
    fb_copy(trace->block + trace->used, bytes, len);
    trace->used += len;
}

/* As words whose lowest byte comes first, whatever the machine. */
static void append_words(fb_sim_trace *trace, const uint64_t *words, size_t count)
{
    uint8_t bytes[96];
    for (size_t i = 0; i < count; i++) fb_word_store(bytes + 8 * i, words[i]);
    append(trace, bytes, 8 * count);
}

void fb_sim_trace_step(fb_sim_trace *trace, uint32_t node, const fb_event *event,
                       const fb_effects *effects, fb_hash128 digest)
{
    if (trace->used == 0) next_block(trace);
    const uint64_t step[] = {
        UINT64_C(1) << 63 | (uint64_t)node << 32 | event->kind, /* no effect begins so */
        event->len,
        event->mono_ns,
        (uint64_t)event->wall_us,
        event->a,
        event->b,
        event->c,
        digest.lo,
        digest.hi,
    };
    append_words(trace, step, sizeof step / sizeof step[0]);
    if (event->len != 0) append(trace, event->bytes, event->len);
    for (const fb_effect *fx = fb_effects_next(effects, NULL); fx != NULL;
         fx = fb_effects_next(effects, fx)) {
        if (fx->kind == FB_FX_LOG) continue;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        const uint64_t head[] = {(uint64_t)fx->len << 32 | fx->kind, fx->a, fx->b, fx->c};
        append_words(trace, head, sizeof head / sizeof head[0]);
        append(trace, fb_effect_bytes(fx), fx->len);
#else
        /* Its head stands in the arena as those words would. */
        append(trace, fx, sizeof *fx + fx->len);
#endif
    }
    trace->steps++;
}

void fb_sim_trace_text(fb_hash128 hash, char out[33])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        out[i] = digits[(hash.hi >> (60 - 4 * i)) & 15];
        out[16 + i] = digits[(hash.lo >> (60 - 4 * i)) & 15];
    }
    out[32] = 0;
}
