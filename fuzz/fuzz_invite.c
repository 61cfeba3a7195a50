/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that reach the space plane before it trusts anybody: invites that people hand over, and the
 * two control frames of pending links. What is accepted has one encoding, so it reads back and is
 * written as the same bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "protocol/base/uuid.h"
#include "protocol/space/invite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_same(fb_span given, const fb_writer *w)
{
    if (!fb_span_equal(given, fb_writer_span(w))) abort();
}

static void try_invite(fb_span bytes)
{
    fb_invite invite;
    if (fb_invite_read(bytes, &invite) != FB_OK) return;
    if (!fb_uuid_is_v7(invite.space) || !fb_name_is_valid(fb_invite_name(&invite)) ||
        !fb_address_is_valid(fb_invite_address(&invite))) {
        abort();
    }
    uint8_t out[FB_INVITE_BYTES_MAX];
    fb_writer w = fb_writer_of(out, sizeof out);
    fb_invite_write(&invite, &w);
    require_same(bytes, &w);
}

static void try_frames(fb_span bytes)
{
    uint8_t out[FB_STATEMENT_PROOF_BYTES_MAX + 8];
    fb_invite_frame invite;
    if (fb_invite_frame_read(bytes, &invite) == FB_OK) {
        fb_writer w = fb_writer_of(out, sizeof out);
        fb_invite_frame_write(&invite, &w);
        require_same(bytes, &w);
    }
    fb_membership_frame membership;
    if (fb_membership_frame_read(bytes, &membership) == FB_OK) {
        fb_writer w = fb_writer_of(out, sizeof out);
        fb_membership_frame_write(&membership, &w);
        require_same(bytes, &w);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_invite(fb_span_of(data, size));
    try_frames(fb_span_of(data, size));
    return 0;
}
