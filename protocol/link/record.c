/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/link/record.h"

#include "protocol/base/assert.h"

_Static_assert(FB_RECORD_BYTES_MAX + FB_NOISE_TAG <= FB_NOISE_MESSAGE_MAX,
               "a record is one Noise message, and its length a u16");
_Static_assert(FB_RECORD_OVERHEAD == FB_RECORD_LENGTH + FB_NOISE_TAG, "what stands around it");

/* MP-7-19 */
static void rekey_when_due(fb_cipher *cipher, const fb_provider *provider)
{
    if (fb_transport_rekeys(cipher)) fb_cipher_rekey(cipher, provider);
}

/* FM-11-3 */
fb_status fb_transport_seal(fb_cipher *cipher, const fb_provider *provider, uint8_t *wire,
                            size_t plain_len)
{
    FB_ASSERT(plain_len <= FB_RECORD_BYTES_MAX);
    rekey_when_due(cipher, provider);
    fb_store_be(wire, plain_len + FB_NOISE_TAG, FB_RECORD_LENGTH);
    uint8_t *plain = wire + FB_RECORD_LENGTH;
    return fb_cipher_seal(cipher, provider, fb_span_of(NULL, 0), fb_span_of(plain, plain_len),
                          plain);
}

fb_status fb_transport_open(fb_cipher *cipher, const fb_provider *provider, fb_span sealed,
                            uint8_t *out)
{
    rekey_when_due(cipher, provider);
    return fb_cipher_open(cipher, provider, fb_span_of(NULL, 0), sealed, out);
}

fb_status fb_record_write(fb_cipher *cipher, const fb_provider *provider, fb_channel_id channel,
                          uint8_t flags, fb_span piece, uint8_t *wire)
{
    FB_ASSERT(piece.len <= FB_RECORD_PIECE_MAX);
    uint8_t *plain = wire + FB_RECORD_LENGTH;
    plain[0] = (uint8_t)channel;
    plain[1] = flags;
    if (piece.len != 0) memmove(plain + FB_RECORD_HEAD, piece.p, piece.len);
    return fb_transport_seal(cipher, provider, wire, FB_RECORD_HEAD + piece.len);
}

/* MP-7-18 */
fb_status fb_record_parse(fb_span plain, fb_record *out)
{
    fb_reader in = fb_reader_of(plain);
    uint8_t channel = fb_read_u8(&in);
    uint8_t flags = fb_read_u8(&in);
    if (in.failed || plain.len > FB_RECORD_BYTES_MAX) return FB_ERR_LINK_RECORD;
    if (channel >= FB_CHANNELS || (flags & ~FB_RECORD_WHOLE) != 0) return FB_ERR_LINK_RECORD;
    out->channel = (fb_channel_id)channel;
    out->flags = flags;
    out->bytes = fb_read_bytes(&in, fb_reader_left(&in));
    return FB_OK;
}

fb_status fb_reassembly_add(fb_reassembly *r, const fb_record *record, fb_span *frame,
                            bool *complete)
{
    bool first = (record->flags & FB_RECORD_FIRST) != 0;
    bool last = (record->flags & FB_RECORD_LAST) != 0;
    *complete = false;
    if (first == r->open) return FB_ERR_LINK_RECORD;
    if (first && last) { /* the common case: nothing is copied */
        *frame = record->bytes;
        *complete = true;
        return FB_OK;
    }
    if (r->buffer == NULL) return FB_ERR_BUSY;
    uint32_t used = first ? 0 : r->used;
    if (record->bytes.len > r->cap - used) return FB_ERR_LINK_RECORD;
    if (record->bytes.len != 0) memcpy(r->buffer + used, record->bytes.p, record->bytes.len);
    r->used = used + (uint32_t)record->bytes.len;
    r->open = !last;
    if (last) {
        *frame = fb_span_of(r->buffer, r->used);
        *complete = true;
    }
    return FB_OK;
}
