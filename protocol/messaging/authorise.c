/* SPDX-License-Identifier: Apache-2.0 */
/* Authorisation before anything is sent (draft 10, profile 6). That an application may use the
 * space was decided where its write was taken; here it is the space's members and areas. Asked when
 * a notification is noted, again when it becomes a message, again before it is redelivered. */
#include "protocol/database/database.h"
#include "protocol/messaging/state.h"

/* MP-6-3, MP-6-15, MP-6-16 */
bool fb_message_may_send(const fb_node *node, const fb_message_channel *channel, bool has_area,
                         fb_id area)
{
    uint32_t space = channel->space, member = channel->member;
    return fb_space_own_status(node, space) == FB_MEMBER_APPROVED &&
           fb_member_status_of(node, member) == FB_MEMBER_APPROVED &&
           (!has_area || fb_space_may_hold(node, space, member, area));
}

fb_id fb_message_state_area(fb_node *node, uint32_t space)
{
    struct fb_messaging *m = node->messaging;
    fb_id id = fb_space_id(node, space);
    if (!fb_id_equal(m->state_space[space], id)) {
        m->state_area[space] = fb_area_id(id, FB_AREA_SPACE, (fb_span){NULL, 0});
        m->state_space[space] = id;
    }
    return m->state_area[space];
}
