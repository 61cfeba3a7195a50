/* SPDX-License-Identifier: Apache-2.0 */
/* What the records verbs have in common (request.h). */
#include "protocol/base/utf8.h"
#include "protocol/database/state.h"

void fb_refuse(fb_node *node, fb_request request, fb_status status)
{
    fb_reply(node, request.index, status, (fb_span){NULL, 0});
}

/* FM-10-1, FM-10-2, FM-11-5, MP-6-13 */
fb_status fb_space_read(fb_node *node, fb_reader *r, uint64_t principal, uint32_t *space)
{
    fb_id id = fb_read_id(r);
    if (r->failed) return FB_ERR_REQUEST_MALFORMED;
    *space = fb_space_find(node, id);
    /* Authorisation comes before anything is said about what there is (draft 10). */
    if (principal != 0 && (*space == FB_NONE || !fb_space_allows(node, *space, principal))) {
        return FB_ERR_NOT_AUTHORISED;
    }
    return *space == FB_NONE ? FB_ERR_NOT_FOUND : FB_OK;
}

fb_status fb_collection_read(fb_node *node, fb_reader *r, uint32_t space, bool open, uint32_t *area)
{
    *area = FB_NONE;
    uint8_t form = fb_read_u8(r);
    if (form == 1) {
        fb_span name = fb_read_span16(r);
        if (r->failed || name.len == 0 || !fb_utf8_is_name(name)) return FB_ERR_REQUEST_MALFORMED;
        if (name.len > FB_COLLECTION_NAME_BYTES_MAX) return FB_ERR_LIMIT;
        if (open) {
            *area = fb_area_open(node, space, FB_AREA_COLLECTION, name);
            return *area == FB_NONE ? FB_ERR_LIMIT : FB_OK;
        }
        *area = fb_area_find(node, fb_area_id(fb_space_id(node, space), FB_AREA_COLLECTION, name));
        return FB_OK;
    }
    fb_id id = fb_read_id(r);
    if (r->failed || form != 2) return FB_ERR_REQUEST_MALFORMED;
    *area = fb_area_find(node, id);
    if (*area == FB_NONE) return open ? FB_ERR_AREA_UNKNOWN : FB_OK;
    const fb_area *a = fb_area_get(node, *area);
    if (a->space != space || a->kind != FB_AREA_COLLECTION) {
        *area = FB_NONE;
        return FB_ERR_AREA_UNKNOWN;
    }
    return FB_OK;
}
