/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/effect.h"

#include "protocol/base/word.h"
#include "protocol/core/internal.h"

static size_t padded(size_t len)
{
    return (len + 7) & ~(size_t)7;
}

static inline bool fits(const fb_node *node, size_t len)
{
    return sizeof(fb_effect) + padded(len) <= node->effects_cap - node->out->used;
}

bool fb_effect_fits(const fb_node *node, size_t len)
{
    return fits(node, len);
}

/* Zeros behind `len` bytes, up to the next effect. */
static inline void pad(uint8_t *bytes, size_t len)
{
    if (len % 8 == 0) return;
    uint8_t *end = bytes + padded(len);
    uint64_t last = fb_word_load(end - 8) & (UINT64_MAX >> (8 - len % 8) * 8);
    fb_word_store(end - 8, last);
}

uint8_t *fb_effect_room(fb_node *node, fb_effect_kind kind, uint64_t a, uint64_t b, uint64_t c,
                        size_t len)
{
    fb_effects *out = node->out;
    FB_ASSERT(fits(node, len) && len <= UINT32_MAX);
    fb_effect *effect = (fb_effect *)(void *)(out->memory + out->used);
    *effect = (fb_effect){(uint32_t)kind, (uint32_t)len, a, b, c};
    uint8_t *bytes = (uint8_t *)(effect + 1);
    if (len % 8 != 0) fb_word_store(bytes + padded(len) - 8, 0);
    node->last_effect = out->used;
    out->used += sizeof *effect + padded(len);
    return bytes;
}

void fb_effect_trim(fb_node *node, size_t len)
{
    fb_effects *out = node->out;
    fb_effect *effect = (fb_effect *)(void *)(out->memory + node->last_effect);
    FB_ASSERT(len <= effect->len);
    effect->len = (uint32_t)len;
    uint8_t *bytes = (uint8_t *)(effect + 1);
    pad(bytes, len);
    out->used = node->last_effect + sizeof *effect + padded(len);
}

void fb_effect_put(fb_node *node, fb_effect_kind kind, uint64_t a, uint64_t b, uint64_t c,
                   fb_span bytes)
{
    uint8_t *room = fb_effect_room(node, kind, a, b, c, bytes.len);
    if (bytes.len != 0) memcpy(room, bytes.p, bytes.len);
}

void fb_observe(fb_node *node, fb_fact fact, uint64_t b, uint64_t c, fb_span bytes)
{
    if (!node->options.observe) return;
    if (!fits(node, bytes.len)) {
        fb_count(node, FB_COUNTER_FACTS_DROPPED, 1);
        return;
    }
    fb_effect_put(node, FB_FX_OBSERVE, (uint64_t)fact, b, c, bytes);
}

void fb_count(fb_node *node, fb_counter counter, uint64_t amount)
{
    node->counters[counter] += amount;
}

const char *fb_counter_name(fb_counter counter)
{
    switch (counter) {
#define FB_COUNTER_ROW(name, label)                                                                \
    case FB_COUNTER_##name:                                                                        \
        return label;
        FB_COUNTER_TABLE(FB_COUNTER_ROW)
#undef FB_COUNTER_ROW
    case FB_COUNTERS:
        break;
    }
    return "unknown";
}

/* Peer text is shown as printable ASCII; everything else, the backslash too, as \xNN. */
static size_t escape(uint8_t *out, fb_span text)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.p[i];
        if (c >= 0x20 && c < 0x7f && c != '\\') {
            out[at++] = c;
        } else {
            out[at++] = '\\';
            out[at++] = 'x';
            out[at++] = (uint8_t)digits[c >> 4];
            out[at++] = (uint8_t)digits[c & 15];
        }
    }
    return at;
}

void fb_log(fb_node *node, fb_log_level level, const char *text, fb_span detail)
{
    size_t text_len = strlen(text);
    if (detail.len > FB_LOG_DETAIL_BYTES_MAX) detail.len = FB_LOG_DETAIL_BYTES_MAX;
    size_t most = text_len + 1 + 4 * detail.len;
    if (!fb_effect_fits(node, most)) {
        fb_count(node, FB_COUNTER_LOGS_DROPPED, 1);
        return;
    }
    uint8_t *line = fb_effect_room(node, FB_FX_LOG, (uint64_t)level, 0, 0, most);
    memcpy(line, text, text_len);
    size_t len = text_len;
    if (detail.len != 0) {
        line[len++] = ' ';
        len += escape(line + len, detail);
    }
    fb_effect_trim(node, len);
}
