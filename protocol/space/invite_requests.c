/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs: invite, join. profile 7. */
#include "protocol/identity/identity.h"
#include "protocol/link/link.h"
#include "protocol/space/fold.h"
#include "protocol/space/introduce.h"
#include "protocol/space/requests.h"
#include "protocol/space/store.h"

#define DAY_S UINT64_C(86400)

/* invite */

typedef struct invite_context {
    fb_asked asked;
    uint32_t uses;
    int64_t expires_us;
    fb_span address;
    fb_span arguments;
} invite_context;

_Static_assert(30u + FB_ADDRESS_BYTES_MAX <= FB_RETRY_BYTES_MAX, "invite may be asked again");

/* Somebody who asked with it still waits: the secret is needed when it asks again. */
static bool invite_is_awaited(const fb_node *node, const fb_given_invite *invite)
{
    for (uint32_t m = fb_member_first(node, invite->space); m != FB_NONE;
         m = fb_member_next(node, m)) {
        const fb_member *member = fb_member_at(node, m);
        if (member->status == FB_MEMBER_PENDING && fb_id_equal(member->invite, invite->id)) {
            return true;
        }
    }
    return false;
}

/* A free place, or that of an invite which is of no more use and is deleted from the store. */
static uint32_t invite_place(fb_node *node)
{
    struct fb_spaces *spaces = node->spaces;
    for (uint32_t i = 0; i < node->options.sizes.invites; i++) {
        if (!spaces->invite[i].used) return i;
    }
    for (uint32_t i = 0; i < node->options.sizes.invites; i++) {
        const fb_given_invite *invite = &spaces->invite[i];
        bool over = invite->uses == 0 || node->wall_us >= invite->expires_us;
        if (!over || invite_is_awaited(node, invite)) continue;
        fb_invite_delete(node, i);
        return i;
    }
    return FB_NONE;
}

static void invite_run(fb_node *node, fb_op *op)
{
    const invite_context *context = fb_op_context(op);
    const fb_waiting *by = &context->asked.by;
    const fb_space *space = fb_space_at(node, context->asked.space);
    const fb_provider *provider = node->options.provider;
    fb_invite invite;
    memset(&invite, 0, sizeof invite);
    fb_status status = fb_op_status(op);
    if (status == FB_OK) status = fb_request_new_id(node, by, context->arguments, &invite.id);
    if (status == FB_ERR_AGAIN) return;
    if (status == FB_OK) {
        status = provider->secret(provider->user, invite.secret.b, sizeof invite.secret.b);
    }
    uint32_t index = status == FB_OK ? invite_place(node) : FB_NONE;
    if (index == FB_NONE) {
        fb_request_answer_refusal(node, by, status == FB_OK ? FB_ERR_LIMIT : status);
        return;
    }
    fb_given_invite *given = &node->spaces->invite[index];
    given->used = true;
    given->space = context->asked.space;
    given->id = invite.id;
    given->secret = invite.secret;
    given->uses = context->uses;
    given->expires_us = context->expires_us;
    fb_digest_touch(node, FB_DIGEST_INVITE, index);
    fb_invite_put(node, index);

    invite.space = space->id;
    invite.inviter = node->self_key;
    invite.creator = space->creator;
    invite.recovery = space->recovery;
    invite.expires_us = context->expires_us;
    invite.address_len = (uint8_t)context->address.len;
    memcpy(invite.address, context->address.p, context->address.len);
    invite.name_len = space->name_len;
    memcpy(invite.name, space->name, space->name_len);
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_invite_write(&invite, &w);
    uint8_t answer[2 + sizeof bytes];
    fb_writer a = fb_writer_of(answer, sizeof answer);
    fb_write_span16(&a, fb_writer_span(&w));
    fb_request_answer(node, by, FB_OK, fb_writer_span(&a));
}

_Static_assert(2u + FB_INVITE_BYTES_MAX <= FB_REPLY_HELD_BYTES, "an invite fits a held reply");

static int64_t expiry(int64_t now_us, uint64_t seconds)
{
    const uint64_t most = (uint64_t)INT64_MAX / 1000000u;
    int64_t span = seconds > most ? INT64_MAX : (int64_t)(seconds * 1000000u);
    return now_us > INT64_MAX - span ? INT64_MAX : now_us + span;
}

void fb_space_on_invite(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    fb_id id = fb_read_id(&r);
    uint32_t uses = fb_read_u32(&r);
    uint64_t seconds = fb_read_u64(&r);
    fb_span address = fb_read_span16(&r);
    if (!fb_reader_done(&r) || !fb_address_is_valid(address) || uses > FB_INVITE_USES_MAX) {
        fb_request_refuse(node, request, FB_ERR_REQUEST_MALFORMED);
        return;
    }
    uint32_t space = fb_space_find(node, id);
    fb_status status = fb_space_may_admit(node, space);
    if (status != FB_OK) {
        fb_request_refuse(node, request, status);
        return;
    }
    fb_op *op = fb_request_begin(node, request, invite_run, 2 * FB_INVITE_PUT_BYTES, 2);
    if (op == NULL) return;
    invite_context *context = fb_op_context(op);
    context->asked.space = space;
    context->uses = uses == 0 ? 1 : uses;
    context->expires_us = expiry(node->wall_us, seconds == 0 ? DAY_S : seconds);
    context->arguments = fb_op_keep(op, arguments);
    context->address = fb_span_of(context->arguments.p + 30, address.len);
    fb_op_issue(node, op);
}

/* join */

typedef struct join_context {
    fb_asked asked;
    fb_span invite;
    fb_span address; /* where this node can be dialled */
} join_context;

static void answer_join(fb_node *node, const fb_waiting *by, const fb_space *space,
                        fb_member_status status)
{
    uint8_t answer[17];
    memcpy(answer, space->id.b, 16);
    answer[16] = (uint8_t)status;
    /* Held: what it says may not be durable yet. */
    fb_request_answer(node, by, FB_OK, fb_span_of(answer, sizeof answer));
}

/* A space that is known already: goes on with this invite, or answers at once (*done). */
static fb_status join_again(fb_node *node, uint32_t index, const fb_invite *invite,
                            const fb_waiting *by, bool *done)
{
    fb_space *space = fb_space_at(node, index);
    if (!fb_b32_equal(space->creator, invite->creator)) return FB_ERR_KEY;
    if (space->own != FB_NONE || (space->taken && fb_id_equal(space->joining.id, invite->id))) {
        answer_join(node, by, space, fb_space_own_status(node, index));
        *done = true;
        return FB_OK;
    }
    if (space->waiting.number != 0 && fb_request_is_open(node, &space->waiting)) return FB_ERR_BUSY;
    space->taken = false;
    return FB_OK;
}

static fb_status join_new(fb_node *node, const fb_invite *invite, uint32_t *out)
{
    uint32_t left = fb_space_find_left(node, invite->space);
    if (left != FB_NONE) {
        if (!fb_b32_equal(fb_space_at(node, left)->creator, invite->creator)) return FB_ERR_KEY;
        fb_space_at(node, left)->left = false;
        *out = left;
        return FB_OK;
    }
    uint32_t index = fb_space_add(node, invite->space, node->spaces->space_local + 1,
                                  invite->creator, fb_invite_name(invite));
    if (index == FB_NONE) return FB_ERR_LIMIT;
    fb_space_at(node, index)->recovery = invite->recovery;
    fb_status status = fb_database_open_space(node, index);
    if (status != FB_OK) fb_space_drop(node, index);
    *out = index;
    return status;
}

static void join_run(fb_node *node, fb_op *op)
{
    const join_context *context = fb_op_context(op);
    const fb_waiting *by = &context->asked.by;
    fb_invite invite;
    fb_status status = fb_op_status(op);
    if (status == FB_OK) status = fb_invite_read(context->invite, &invite);
    uint32_t index = FB_NONE;
    bool again = false;
    if (status == FB_OK) {
        index = fb_space_find(node, invite.space);
        status = index == FB_NONE ? join_new(node, &invite, &index)
                                  : join_again(node, index, &invite, by, &again);
    }
    if (status != FB_OK) {
        fb_request_answer_refusal(node, by, status);
        return;
    }
    fb_space *space = fb_space_at(node, index);
    if (context->address.len != 0) {
        space->address_len = (uint8_t)context->address.len;
        memcpy(space->address, context->address.p, context->address.len);
        space->address_said = false;
    }
    if (!again) {
        fb_joining *joining = &space->joining;
        fb_span before = fb_span_of(joining->address, joining->address_len);
        bool elsewhere = joining->dialled && !fb_span_equal(before, fb_invite_address(&invite));
        joining->dialled = false; /* it may be another node that is expected there */
        if (elsewhere) fb_space_dial_no_more(node, index, before);
        joining->given = true;
        joining->id = invite.id;
        joining->secret = invite.secret;
        joining->inviter = invite.inviter;
        joining->address_len = invite.address_len;
        memcpy(joining->address, invite.address, invite.address_len);
        fb_space_dial_inviter(node, index);
        if (space->own != FB_NONE) {
            answer_join(node, by, space, FB_MEMBER_APPROVED); /* its creator, without its store */
        } else {
            space->waiting = *by;
            fb_space_show_invite(node, index);
        }
    }
    fb_space_touch(node, index);
    fb_space_put(node, index);
    fb_space_duty(node, index);
}

void fb_space_on_join(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    fb_span bytes = fb_read_span16(&r);
    fb_span address = fb_reader_left(&r) == 0 ? FB_NO_BYTES : fb_read_span16(&r);
    if (!fb_reader_done(&r) || (address.len != 0 && !fb_address_is_valid(address))) {
        fb_request_refuse(node, request, FB_ERR_REQUEST_MALFORMED);
        return;
    }
    fb_invite invite;
    fb_status status = fb_invite_read(bytes, &invite);
    if (status == FB_OK) {
        const fb_provider *provider = node->options.provider;
        bool valid = fb_identity_enrol_check(provider, &invite.creator) == FB_OK &&
                     fb_identity_enrol_check(provider, &invite.inviter) == FB_OK;
        if (!valid || node->wall_us >= invite.expires_us) status = FB_ERR_INVITE;
    }
    if (status != FB_OK) {
        fb_request_refuse(node, request, status);
        return;
    }
    fb_op *op =
        fb_request_begin(node, request, join_run, FB_SPACE_PUT_BYTES + FB_DATABASE_OPEN_BYTES,
                         1 + FB_DATABASE_OPEN_ENTRIES);
    if (op == NULL) return;
    join_context *context = fb_op_context(op);
    context->invite = fb_op_keep(op, bytes);
    context->address = fb_op_keep(op, address);
    fb_op_issue(node, op);
}
