/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/space/stored.h"

#include "protocol/space/space.h"

#define FLAG_LEFT      8u /* as in store.c */
#define MEMBER_VERSION 1u

fb_status fb_space_stored_decode(fb_span value, fb_space_stored *out)
{
    fb_reader r = fb_reader_of(value);
    uint8_t version = fb_read_u8(&r);
    if (version > FB_SPACE_STORED_VERSION) return FB_ERR_VERSION_NEWER;
    out->id = fb_read_id(&r);
    out->creator = fb_read_b32(&r);
    if (version == FB_SPACE_STORED_VERSION) fb_read_b32(&r); /* the recovery key */
    out->left = (fb_read_u8(&r) & FLAG_LEFT) != 0;
    out->name = fb_read_span16(&r);
    return r.failed || version == 0 ? FB_ERR_STORE_DAMAGED : FB_OK;
}

void fb_space_left_encode(fb_writer *w, fb_id id, fb_span name)
{
    static const fb_b32 none;
    fb_write_u8(w, FB_SPACE_STORED_VERSION);
    fb_write_id(w, id);
    fb_write_b32(w, none);
    fb_write_b32(w, none);
    fb_write_u8(w, FLAG_LEFT);
    fb_write_span16(w, name);
    fb_write_span16(w, (fb_span){NULL, 0}); /* the address to dial */
}

fb_status fb_member_stored_decode(fb_span value, fb_member_stored *out)
{
    fb_reader r = fb_reader_of(value);
    uint8_t version = fb_read_u8(&r);
    if (!r.failed && version > MEMBER_VERSION) return FB_ERR_VERSION_NEWER;
    out->key = fb_read_b32(&r);
    out->approved = fb_read_u8(&r) == FB_MEMBER_APPROVED;
    return r.failed ? FB_ERR_STORE_DAMAGED : FB_OK;
}
