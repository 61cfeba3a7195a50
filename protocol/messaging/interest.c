/* SPDX-License-Identifier: Apache-2.0 */
/* Interest (profile 6, draft 7.3): a control frame by which a peer says what it wants to be told.
 *
 *     u8 6 (FB_CONTROL_INTEREST), u8 topics (bit 1 database, 2 file, 3 state),
 *     u16 areas, then so many area ids; none: all areas
 * Sent once when a link opens; a later one replaces it. This version looks at the topics and sends
 * for more areas than a peer named, never for fewer. */
#include "protocol/messaging/state.h"

static void up(fb_node *node, uint32_t link)
{
    node->messaging->channel[link].interest_due = true;
    fb_link_has_output(node, link, FB_CHANNEL_CONTROL);
}

static void down(fb_node *node, uint32_t link, fb_error why)
{
    (void)why;
    node->messaging->channel[link].interest_due = false;
}

/* FM-7.3-1, FM-7.3-4, MP-6-17 */
static fb_status frame(fb_node *node, uint32_t link, fb_span bytes)
{
    fb_message_channel *channel = &node->messaging->channel[link];
    fb_reader r = fb_reader_of(bytes);
    uint8_t type = fb_read_u8(&r);
    uint8_t topics = fb_read_u8(&r);
    uint16_t areas = fb_read_u16(&r);
    for (uint16_t i = 0; i < areas && !r.failed; i++) {
        if (!fb_uuid_is_v7(fb_read_id(&r))) return FB_ERR_MALFORMED;
    }
    if (!fb_reader_done(&r) || type != FB_CONTROL_INTEREST) return FB_ERR_MALFORMED;
    if (!channel->up) return FB_OK;
    channel->interest = topics & FB_TOPICS_ALL;
    fb_link_touch(node, link);
    return FB_OK;
}

static bool peek(fb_node *node, uint32_t link, fb_frame_out *out)
{
    if (!node->messaging->channel[link].interest_due) return false;
    out->head[0] = FB_CONTROL_INTEREST;
    out->head[1] = FB_TOPICS_SUBSCRIBED;
    out->head[2] = out->head[3] = 0;
    out->head_len = 4;
    out->body = (fb_span){NULL, 0};
    return true;
}

static void sent(fb_node *node, uint32_t link)
{
    node->messaging->channel[link].interest_due = false;
}

static const fb_channel interest = {
    .up = up,
    .down = down,
    .frame = frame,
    .peek = peek,
    .sent = sent,
};

void fb_interest_layout(fb_node *node)
{
    fb_control_register(node, FB_CONTROL_INTEREST, &interest);
}
