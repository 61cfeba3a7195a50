/* SPDX-License-Identifier: Apache-2.0 */
/* The replication engine's own entrance to announcing (FB_VERB_PUBLISH), for the bench and the
 * conformance adapter; not for applications (draft 3.6). */
#include "protocol/messaging/state.h"

void fb_publish(fb_node *node, fb_request request, fb_span arguments)
{
    fb_status status = FB_OK;
    fb_reader r = fb_reader_of(arguments);
    fb_id space_id = fb_read_id(&r);
    uint16_t count = fb_read_u16(&r);
    fb_span ids = fb_read_bytes(&r, (size_t)count * 16);
    uint32_t space = FB_NONE;
    if (!fb_reader_done(&r)) status = FB_ERR_REQUEST_MALFORMED;
    /* FM-1-1, FM-3.3-1, FM-3.6-1, FM-5.2-5, FM-7.1-3, FM-7.2-3, FM-11-6, FM-11-8, FI-1-1 */
    if (status == FB_OK && request.principal != 0) status = FB_ERR_NOT_AUTHORISED;
    if (status == FB_OK) {
        space = fb_space_find(node, space_id);
        if (space == FB_NONE) {
            status = FB_ERR_NOT_FOUND;
        } else if (fb_space_own_status(node, space) != FB_MEMBER_APPROVED) {
            status = FB_ERR_NOT_MEMBER;
        }
    }
    for (uint16_t i = 0; i < count && status == FB_OK; i++) {
        fb_id area;
        memcpy(area.b, ids.p + (size_t)i * 16, sizeof area.b);
        if (!fb_uuid_is_v7(area)) status = FB_ERR_BAD_UUID;
    }
    for (uint16_t i = 0; i < count && status == FB_OK; i++) {
        fb_id area;
        memcpy(area.b, ids.p + (size_t)i * 16, sizeof area.b);
        status = fb_announce_all(node, space, FB_NONE, FB_TYPE_CHANGED, area, 0, 0, 0);
    }
    fb_reply(node, request.index, status, (fb_span){NULL, 0});
}
