/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/space/invite.h"

#include "protocol/base/hash.h"
#include "protocol/base/uuid.h"
#include "protocol/link/link.h"

static void sum(fb_span bytes, uint8_t out[FB_INVITE_SUM_BYTES])
{
    static const uint8_t label[] = "faberio-invite-v1"; /* with its zero */
    fb_span parts[2] = {fb_span_of(label, sizeof label), bytes};
    fb_blake3(parts, 2, out, FB_INVITE_SUM_BYTES);
}

void fb_invite_write(const fb_invite *invite, fb_writer *out)
{
    size_t begin = out->at;
    fb_write_u8(out, FB_INVITE_VERSION);
    fb_write_id(out, invite->space);
    fb_write_id(out, invite->id);
    fb_write_b32(out, invite->secret);
    fb_write_b32(out, invite->inviter);
    fb_write_b32(out, invite->creator);
    fb_write_b32(out, invite->recovery);
    fb_write_u64(out, (uint64_t)invite->expires_us);
    fb_write_span16(out, fb_invite_address(invite));
    fb_write_span16(out, fb_invite_name(invite));
    if (out->failed) return;
    uint8_t check[FB_INVITE_SUM_BYTES];
    sum(fb_span_of(out->p + begin, out->at - begin), check);
    fb_write_bytes(out, check, sizeof check);
}

static int64_t to_signed(uint64_t v)
{
    return v <= INT64_MAX ? (int64_t)v : -(int64_t)(UINT64_MAX - v) - 1;
}

fb_status fb_invite_read(fb_span bytes, fb_invite *out)
{
    if (bytes.len <= FB_INVITE_SUM_BYTES) return FB_ERR_INVITE;
    bytes.len -= FB_INVITE_SUM_BYTES;
    uint8_t check[FB_INVITE_SUM_BYTES];
    sum(bytes, check);
    if (memcmp(bytes.p + bytes.len, check, sizeof check) != 0) return FB_ERR_INVITE;
    fb_reader r = fb_reader_of(bytes);
    uint8_t version = fb_read_u8(&r);
    if (version > FB_INVITE_VERSION) return FB_ERR_VERSION_NEWER;
    fb_invite invite;
    memset(&invite, 0, sizeof invite);
    invite.space = fb_read_id(&r);
    invite.id = fb_read_id(&r);
    invite.secret = fb_read_b32(&r);
    invite.inviter = fb_read_b32(&r);
    invite.creator = fb_read_b32(&r);
    invite.recovery = fb_read_b32(&r);
    invite.expires_us = to_signed(fb_read_u64(&r));
    fb_span address = fb_read_span16(&r);
    fb_span name = fb_read_span16(&r);
    if (!fb_reader_done(&r) || version != FB_INVITE_VERSION || !fb_uuid_is_v7(invite.space) ||
        !fb_uuid_is_v7(invite.id) || !fb_address_is_valid(address) || !fb_name_is_valid(name)) {
        return FB_ERR_INVITE;
    }
    invite.address_len = (uint8_t)address.len;
    memcpy(invite.address, address.p, address.len);
    invite.name_len = (uint8_t)name.len;
    memcpy(invite.name, name.p, name.len);
    *out = invite;
    return FB_OK;
}

void fb_invite_frame_write(const fb_invite_frame *frame, fb_writer *out)
{
    fb_write_u8(out, FB_CONTROL_INVITE);
    fb_write_u8(out, (uint8_t)frame->role);
    fb_write_id(out, frame->invite);
    fb_write_b32(out, frame->proof);
    if (frame->role == FB_LINK_ACCEPTOR) fb_write_u8(out, (uint8_t)frame->status);
}

fb_status fb_invite_frame_read(fb_span bytes, fb_invite_frame *out)
{
    fb_reader r = fb_reader_of(bytes);
    uint8_t type = fb_read_u8(&r);
    uint8_t role = fb_read_u8(&r);
    fb_invite_frame frame = {.invite = fb_read_id(&r)};
    frame.proof = fb_read_b32(&r);
    uint8_t status = FB_MEMBER_NONE;
    if (role == FB_LINK_ACCEPTOR) {
        status = fb_read_u8(&r);
        if (status != FB_MEMBER_APPROVED && status != FB_MEMBER_PENDING) return FB_ERR_MALFORMED;
    } else if (role != FB_LINK_DIALER) {
        return FB_ERR_MALFORMED;
    }
    if (!fb_reader_done(&r) || type != FB_CONTROL_INVITE) return FB_ERR_MALFORMED;
    frame.role = (fb_link_role)role;
    frame.status = (fb_member_status)status;
    *out = frame;
    return FB_OK;
}

void fb_membership_frame_write(const fb_membership_frame *frame, fb_writer *out)
{
    fb_write_u8(out, FB_CONTROL_MEMBERSHIP);
    fb_write_u8(out, (uint8_t)frame->you);
    fb_write_span16(out, frame->statement);
}

fb_status fb_membership_frame_read(fb_span bytes, fb_membership_frame *out)
{
    fb_reader r = fb_reader_of(bytes);
    uint8_t type = fb_read_u8(&r);
    uint8_t you = fb_read_u8(&r);
    fb_span statement = fb_read_span16(&r);
    if (!fb_reader_done(&r) || type != FB_CONTROL_MEMBERSHIP || you > FB_MEMBER_PENDING ||
        statement.len > FB_STATEMENT_PROOF_BYTES_MAX) {
        return FB_ERR_MALFORMED;
    }
    *out = (fb_membership_frame){(fb_member_status)you, statement};
    return FB_OK;
}
