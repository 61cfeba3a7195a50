/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/link/external.h"

void fb_external_write_head(uint8_t out[FB_EXTERNAL_HEAD], const fb_external_frame *frame)
{
    out[0] = (uint8_t)frame->channel;
    fb_store_be(out + 1, frame->sender_session, 8);
    fb_store_be(out + 9, frame->peer_session, 8);
    fb_store_be(out + 17, frame->number, 8);
}

fb_status fb_external_read(fb_span bytes, fb_external_frame *out)
{
    fb_reader in = fb_reader_of(bytes);
    uint8_t channel = fb_read_u8(&in);
    out->sender_session = fb_read_u64(&in);
    out->peer_session = fb_read_u64(&in);
    out->number = fb_read_u64(&in);
    if (in.failed || channel >= FB_CHANNELS) return FB_ERR_LINK_RECORD;
    if (out->sender_session == 0 || out->number == 0) return FB_ERR_LINK_RECORD;
    out->channel = (fb_channel_id)channel;
    out->bytes = fb_read_bytes(&in, fb_reader_left(&in));
    return FB_OK;
}
