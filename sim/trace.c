/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/trace.h"

/* Hashed as little-endian bytes, whatever the machine. */
static uint8_t *put_le(uint8_t *p, uint64_t v, size_t width)
{
    for (size_t i = 0; i < width; i++, v >>= 8) p[i] = (uint8_t)v;
    return p + width;
}

static uint8_t *put_hash(uint8_t *p, fb_hash128 h)
{
    return put_le(put_le(p, h.lo, 8), h.hi, 8);
}

static bool outside(uint32_t kind)
{
    return kind == FB_FX_LOG;
}

/* Effects are hashed one by one, each as its head and its bytes; a run of small ones is gathered
 * first, because one long hash is cheaper than many short ones. */
static fb_hash128 hash_effects(const fb_effects *effects)
{
    uint8_t gathered[2048];
    size_t used = 0;
    fb_hash128 chain = {0, 0};
    for (const fb_effect *fx = fb_effects_next(effects, NULL); fx != NULL;
         fx = fb_effects_next(effects, fx)) {
        if (outside(fx->kind)) continue;
        bool small = fx->len <= 512;
        size_t need = 32 + (small ? (size_t)fx->len : 16);
        if (need > sizeof gathered - used) {
            fb_hash128 h = fb_xxh128(gathered, used, chain.lo);
            chain = (fb_hash128){h.lo, h.hi ^ chain.hi};
            used = 0;
        }
        uint8_t *p = gathered + used;
        p = put_le(p, fx->kind, 4);
        p = put_le(p, fx->len, 4);
        p = put_le(p, fx->a, 8);
        p = put_le(p, fx->b, 8);
        p = put_le(p, fx->c, 8);
        if (small) {
            memcpy(p, fb_effect_bytes(fx), fx->len);
        } else {
            put_hash(p, fb_xxh128(fb_effect_bytes(fx), fx->len, 0));
        }
        used += need;
    }
    fb_hash128 h = fb_xxh128(gathered, used, chain.lo);
    return (fb_hash128){h.lo, h.hi ^ chain.hi};
}

void fb_sim_trace_step(fb_sim_trace *trace, uint32_t node, const fb_event *event,
                       const fb_effects *effects, fb_hash128 digest)
{
    uint8_t block[124];
    uint8_t *p = put_hash(block, trace->hash);
    p = put_le(p, node, 4);
    p = put_le(p, event->kind, 4);
    p = put_le(p, event->len, 4);
    p = put_le(p, event->mono_ns, 8);
    p = put_le(p, (uint64_t)event->wall_us, 8);
    p = put_le(p, event->a, 8);
    p = put_le(p, event->b, 8);
    p = put_le(p, event->c, 8);
    p = put_hash(p, event->len == 0 ? (fb_hash128){0, 0} : fb_xxh128(event->bytes, event->len, 0));
    p = put_hash(p, effects->used == 0 ? (fb_hash128){0, 0} : hash_effects(effects));
    p = put_hash(p, digest);
    trace->hash = fb_xxh128(block, (size_t)(p - block), 0);
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
