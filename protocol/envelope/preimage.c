/* SPDX-License-Identifier: Apache-2.0 */
/* The canonical form, profile 2: the same bytes are signed whatever the encoding on the wire. */
#include "protocol/base/assert.h"
#include "protocol/envelope/envelope.h"

/* FM-3.1-1, FM-5.1-11, FM-5.4-2, MP-1-8, MP-2-1, MP-2-2 */
void fb_envelope_preimage(const fb_envelope *e, fb_preimage *out)
{
    fb_writer w = fb_writer_of(out->head, sizeof out->head);
    fb_write_bytes(&w, FB_ENVELOPE_LABEL, sizeof FB_ENVELOPE_LABEL); /* with its zero byte */
    fb_write_id(&w, e->id);
    fb_write_id(&w, e->space);
    fb_write_id(&w, e->source);
    fb_write_u8(&w, (uint8_t)e->mode);
    if (e->mode == FB_DELIVERY_UNICAST) {
        fb_write_u16(&w, sizeof e->target_node.b);
        fb_write_id(&w, e->target_node);
    } else {
        fb_write_span16(&w, e->topic);
    }
    fb_write_span16(&w, fb_span_text(fb_message_type_name(e->type)));
    fb_write_u32(&w, (uint32_t)e->payload.len);
    FB_ASSERT(!w.failed); /* a checked envelope's parts are bounded */
    out->parts[0] = fb_writer_span(&w);

    out->parts[1] = e->payload;

    w = fb_writer_of(out->tail, sizeof out->tail);
    fb_write_u64(&w, e->timestamp);
    fb_write_u8(&w, e->has_correlation ? 1 : 0);
    if (e->has_correlation) fb_write_id(&w, e->correlation);
    FB_ASSERT(!w.failed);
    out->parts[2] = fb_writer_span(&w);
}

fb_status fb_envelope_sign(fb_envelope *e, const fb_provider *provider, fb_key_handle key)
{
    fb_preimage preimage;
    fb_envelope_preimage(e, &preimage);
    return provider->sign(provider->user, key, preimage.parts, 3, &e->signature);
}

fb_status fb_envelope_verify(const fb_envelope *e, const fb_provider *provider,
                             const fb_b32 *public_key)
{
    fb_preimage preimage;
    fb_envelope_preimage(e, &preimage);
    bool good = provider->verify(provider->user, public_key, preimage.parts, 3, &e->signature);
    return good ? FB_OK : FB_ERR_BAD_SIGNATURE;
}
