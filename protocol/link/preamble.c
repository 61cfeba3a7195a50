/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/link/preamble.h"

#include "protocol/base/assert.h"

static const uint8_t magic[FB_PREAMBLE_MAGIC_BYTES] = {'F', 'B', 'L', 'K'};

/* The terminating zero of the literal is part of the label. */
static const char tag_label[] = "faberio-space-tag-v1";
static const char link_label[] = "faberio-link-v1";

_Static_assert(sizeof link_label == 16, "FB_PROLOGUE_BYTES counts the label with its zero byte");

void fb_space_tag(const fb_provider *provider, fb_id space, fb_id *tag)
{
    const fb_span parts[2] = {fb_span_of(tag_label, sizeof tag_label),
                              fb_span_of(space.b, sizeof space.b)};
    provider->blake2b(provider->user, fb_span_of(NULL, 0), parts, 2, tag->b, sizeof tag->b);
}

/* MP-7-2 */
void fb_preamble_write_dialer(uint8_t out[FB_PREAMBLE_DIALER_BYTES], fb_id tag)
{
    fb_writer w = fb_writer_of(out, FB_PREAMBLE_DIALER_BYTES);
    fb_write_bytes(&w, magic, sizeof magic);
    fb_write_u8(&w, FB_LINK_VERSION_LOWEST);
    fb_write_u8(&w, FB_LINK_VERSION_HIGHEST);
    fb_write_id(&w, tag);
    FB_ASSERT(!w.failed && w.at == FB_PREAMBLE_DIALER_BYTES);
}

/* MP-7-3 */
void fb_preamble_write_acceptor(uint8_t out[FB_PREAMBLE_ACCEPTOR_BYTES], fb_preamble_status status)
{
    fb_writer w = fb_writer_of(out, FB_PREAMBLE_ACCEPTOR_BYTES);
    fb_write_bytes(&w, magic, sizeof magic);
    fb_write_u8(&w, FB_LINK_VERSION_LOWEST);
    fb_write_u8(&w, FB_LINK_VERSION_HIGHEST);
    fb_write_u8(&w, (uint8_t)status);
    FB_ASSERT(!w.failed && w.at == FB_PREAMBLE_ACCEPTOR_BYTES);
}

bool fb_preamble_may_follow(fb_span bytes)
{
    size_t n = bytes.len < sizeof magic ? bytes.len : sizeof magic;
    return n == 0 || memcmp(bytes.p, magic, n) == 0;
}

/* MP-7-4 */
static uint8_t common_version(uint8_t lowest, uint8_t highest)
{
    if (lowest > highest) return 0;
    uint8_t top = highest < FB_LINK_VERSION_HIGHEST ? highest : (uint8_t)FB_LINK_VERSION_HIGHEST;
    uint8_t bottom = lowest > FB_LINK_VERSION_LOWEST ? lowest : (uint8_t)FB_LINK_VERSION_LOWEST;
    return bottom <= top ? top : 0;
}

/* The members that both preambles begin with. */
static fb_status read_head(fb_reader *in, uint8_t *version)
{
    fb_span m = fb_read_bytes(in, sizeof magic);
    uint8_t lowest = fb_read_u8(in);
    uint8_t highest = fb_read_u8(in);
    if (in->failed || memcmp(m.p, magic, sizeof magic) != 0) return FB_ERR_LINK_MAGIC;
    *version = common_version(lowest, highest);
    return FB_OK;
}

fb_status fb_preamble_read_dialer(fb_span bytes, fb_id *tag, uint8_t *version)
{
    fb_reader in = fb_reader_of(bytes);
    FB_TRY(read_head(&in, version));
    *tag = fb_read_id(&in);
    return fb_reader_done(&in) ? FB_OK : FB_ERR_LINK_MAGIC;
}

fb_status fb_preamble_read_acceptor(fb_span bytes, uint8_t *version)
{
    fb_reader in = fb_reader_of(bytes);
    FB_TRY(read_head(&in, version));
    uint8_t status = fb_read_u8(&in);
    if (!fb_reader_done(&in)) return FB_ERR_LINK_MAGIC;
    switch (status) {
    case FB_PREAMBLE_GO_ON:
        return *version != 0 ? FB_OK : FB_ERR_LINK_VERSION;
    case FB_PREAMBLE_NO_VERSION:
        return FB_ERR_LINK_VERSION;
    case FB_PREAMBLE_UNKNOWN_TAG:
        return FB_ERR_LINK_TAG;
    case FB_PREAMBLE_TOO_MANY:
        return FB_ERR_LINK_TOO_MANY;
    default:
        return FB_ERR_LINK_MAGIC;
    }
}

void fb_prologue_write(uint8_t out[FB_PROLOGUE_BYTES], const uint8_t *dialer,
                       const uint8_t *acceptor, fb_id space)
{
    fb_writer w = fb_writer_of(out, FB_PROLOGUE_BYTES);
    fb_write_bytes(&w, link_label, sizeof link_label);
    fb_write_bytes(&w, dialer, FB_PREAMBLE_DIALER_BYTES);
    fb_write_bytes(&w, acceptor, FB_PREAMBLE_ACCEPTOR_BYTES);
    fb_write_id(&w, space);
    FB_ASSERT(!w.failed && w.at == FB_PROLOGUE_BYTES);
}
