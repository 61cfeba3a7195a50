/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/uuid.h"

#include "protocol/base/cursor.h"
#include "protocol/base/hex.h"
#include "protocol/base/mutant.h"
#include "protocol/base/word.h"

#define TAIL_BITS    42
#define START_BITS   22 /* what a 64-bit draw has beyond the tail */
#define COUNTER_BITS 32

_Static_assert(TAIL_BITS + START_BITS == 64, "one draw feeds one id");
_Static_assert(COUNTER_BITS + TAIL_BITS == 74, "all bits but time, version and variant");

/* Text positions of the 32 digits, and the four hyphens between them. */
static const uint8_t digit_at[16] = {0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34};
static const uint8_t hyphen_at[4] = {8, 13, 18, 23};

uint64_t fb_uuid_ms(fb_id id)
{
    uint64_t ms = 0;
    for (size_t i = 0; i < 6; i++) ms = ms << 8 | id.b[i];
    return ms;
}

bool fb_uuid_parse(fb_span text, fb_id *out)
{
    if (text.len != FB_UUID_TEXT_LEN) return false;
    const uint8_t *p = text.p;
    unsigned other = (p[8] ^ '-') | (p[13] ^ '-') | (p[18] ^ '-') | (p[23] ^ '-');
    fb_id id;
    bool good = fb_hex_parse_words(
        fb_word_load(p), fb_word_load_half(p + 9) | fb_word_load_half(p + 14) << 32,
        fb_word_load_half(p + 19) | fb_word_load_half(p + 24) << 32, fb_word_load(p + 28), id.b);
    if (!good || other != 0) return false;
    *out = id;
    return true;
}

bool fb_uuid_parse_v7(fb_span text, fb_id *out)
{
    /* The two digits tell, before their bytes are known. */
    if (text.len != FB_UUID_TEXT_LEN || text.p[14] != '7') return false;
    uint8_t variant = text.p[19];
    if (variant != '8' && variant != '9' && variant != 'a' && variant != 'b') return false;
    return fb_uuid_parse(text, out);
}

void fb_uuid_format(fb_id id, char out[FB_UUID_TEXT_LEN])
{
    for (size_t i = 0; i < 16; i++) fb_hex_format(&id.b[i], 1, out + digit_at[i]);
    for (size_t i = 0; i < 4; i++) out[hyphen_at[i]] = '-';
}

void fb_uuid_gen_init(fb_uuid_gen *gen, fb_seed seed, uint64_t incarnation)
{
    *gen = (fb_uuid_gen){.seed = seed, .incarnation = incarnation};
}

fb_status fb_uuid_gen_resume(fb_uuid_gen *gen, fb_id last)
{
    if (!fb_uuid_is_v7(last)) return FB_ERR_BAD_UUID;
    uint64_t ms = fb_uuid_ms(last);
    uint32_t counter = (uint32_t)(last.b[6] & 0x0f) << 28 | (uint32_t)last.b[7] << 20 |
                       (uint32_t)(last.b[8] & 0x3f) << 14 | (uint32_t)last.b[9] << 6 |
                       (uint32_t)last.b[10] >> 2;
    if (gen->started && (ms < gen->last_ms || (ms == gen->last_ms && counter < gen->counter))) {
        return FB_OK;
    }
    gen->last_ms = ms;
    gen->counter = counter;
    gen->started = true;
    return FB_OK;
}

fb_status fb_uuid_gen_next(fb_uuid_gen *gen, int64_t wall_us, fb_id *out)
{
    uint64_t now_ms = wall_us < 0 ? 0 : (uint64_t)wall_us / 1000;
    if (now_ms > FB_UUID_MS_MAX) return FB_ERR_CLOCK;

    uint64_t draw = fb_draw(gen->seed, FB_STREAM_UUID, gen->incarnation, gen->count);
    /* The random start sits right below the guard bit. */
    uint32_t start = (uint32_t)(draw >> TAIL_BITS) << (COUNTER_BITS - 1 - START_BITS);
    bool behind = wall_us < 0 || (gen->started && now_ms < gen->last_ms);
    bool ahead = false;
    uint64_t ms = now_ms;
    uint32_t counter = start;
    if (gen->started && MUTANT(CLOCK_BACK_UNSEEN, now_ms <= gen->last_ms, now_ms == gen->last_ms)) {
        ms = gen->last_ms;
        if (gen->counter == UINT32_MAX) {
            if (ms == FB_UUID_MS_MAX) return FB_ERR_CLOCK;
            ms++;
            ahead = true;
        } else {
            counter = gen->counter + MUTANT(UUID_COUNTER_STANDS, 1u, 0u);
        }
    }
    gen->count++;
    gen->behind += behind;
    gen->ran_ahead += ahead;
    gen->last_ms = ms;
    gen->counter = counter;
    gen->started = true;

    uint64_t tail = draw & ((UINT64_C(1) << TAIL_BITS) - 1);
    uint64_t high = ms << 16 | UINT64_C(7) << 12 | counter >> 20;
    uint64_t low = UINT64_C(2) << 62 | (uint64_t)(counter & 0xfffff) << TAIL_BITS | tail;
    fb_store_be(out->b, high, 8);
    fb_store_be(out->b + 8, low, 8);
    return FB_OK;
}
