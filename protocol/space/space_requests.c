/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/request.h"

#include "protocol/identity/identity.h"
#include "protocol/link/link.h"
#include "protocol/space/fold.h"
#include "protocol/space/introduce.h"
#include "protocol/space/requests.h"
#include "protocol/space/store.h"

#define DAY_S     UINT64_C(86400)
#define NO_ANSWER ((fb_span){NULL, 0})

/* What every operation here begins its context with. */
typedef struct asked {
    fb_waiting by;
    uint32_t space;
} asked;

static void refuse(fb_node *node, fb_request request, fb_status status)
{
    fb_reply(node, request.index, status, NO_ANSWER);
}

bool fb_request_by_operator(fb_node *node, fb_request request)
{
    if (request.principal == 0) return true;
    refuse(node, request, FB_ERR_NOT_AUTHORISED);
    return false;
}

/* The request of an operation, or of a statement's `done`, if its caller is still there. */
static bool is_open(const fb_node *node, const fb_waiting *by)
{
    return fb_request_at(node, by->index).number == by->number;
}

static void answer_held(fb_node *node, const fb_waiting *by, fb_status status, fb_span answer)
{
    if (is_open(node, by)) fb_reply_held(node, by->index, status, fb_w_building(node), answer);
}

/* A refusal from within an operation: nothing was put, nothing is waited for. */
static void answer_refusal(fb_node *node, const fb_waiting *by, fb_status status)
{
    if (is_open(node, by)) fb_reply(node, by->index, status, NO_ANSWER);
}

static fb_op *begin(fb_node *node, fb_request request, fb_op_run run, uint32_t bytes,
                    uint32_t entries)
{
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, run, bytes, entries);
    if (op == NULL) {
        refuse(node, request, FB_ERR_BUSY);
        return NULL;
    }
    asked *context = fb_op_context(op);
    context->by = (fb_waiting){request.index, request.number};
    return op;
}

/* A new id, or, when the clock has passed the mark of ids that is stored, FB_ERR_AGAIN: then the
 * request is kept, if there is a place, and asked again when the new mark is durable. */
static fb_status new_id(fb_node *node, const fb_waiting *by, fb_span arguments, fb_id *id)
{
    fb_status status = fb_new_uuid(node, id);
    if (status != FB_ERR_AGAIN) return status;
    for (uint32_t i = 0; i < FB_RETRIES_MAX; i++) {
        fb_retry *retry = &node->spaces->retry[i];
        if (retry->by.number != 0) continue;
        retry->by = *by;
        retry->len = (uint16_t)arguments.len;
        memcpy(retry->arguments, arguments.p, arguments.len);
        return FB_ERR_AGAIN;
    }
    answer_refusal(node, by, FB_ERR_AGAIN);
    return FB_ERR_AGAIN;
}

/* create */

_Static_assert(2u + FB_SPACE_NAME_BYTES_MAX <= FB_RETRY_BYTES_MAX, "create may be asked again");

typedef struct create_context {
    asked asked;
    fb_span name;
    fb_span arguments;
} create_context;

static void create_run(fb_node *node, fb_op *op)
{
    const create_context *context = fb_op_context(op);
    const fb_waiting *by = &context->asked.by;
    fb_id id;
    fb_status status = fb_op_status(op);
    if (status == FB_OK) status = new_id(node, by, context->arguments, &id);
    if (status != FB_OK) {
        if (status != FB_ERR_AGAIN) answer_refusal(node, by, status);
        return;
    }
    uint32_t index =
        fb_space_add(node, id, node->spaces->space_local + 1, node->self_key, context->name);
    status = index == FB_NONE ? FB_ERR_LIMIT : fb_database_open_space(node, index);
    if (status != FB_OK) {
        if (index != FB_NONE) fb_space_drop(node, index);
        answer_refusal(node, by, status);
        return;
    }
    fb_space_put(node, index);
    /* The root statement follows; who asked is answered when it is durable. */
    fb_space_at(node, index)->waiting = *by;
    fb_space_duty(node, index);
}

static void on_create(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    fb_span name = fb_read_span16(&r);
    if (!fb_reader_done(&r) || !fb_name_is_valid(name)) {
        refuse(node, request, FB_ERR_REQUEST_MALFORMED);
        return;
    }
    fb_op *op = begin(node, request, create_run, FB_SPACE_PUT_BYTES + FB_OPEN_SPACE_BYTES,
                      1 + FB_OPEN_SPACE_ENTRIES);
    if (op == NULL) return;
    create_context *context = fb_op_context(op);
    context->arguments = fb_op_keep(op, arguments);
    context->name = fb_span_of(context->arguments.p + 2, name.len);
    fb_op_issue(node, op);
}

/* list */

static uint32_t areas_of(const fb_node *node, fb_id space)
{
    uint32_t n = 0;
    fb_area_info info;
    for (uint32_t i = 0; i < fb_area_capacity(node); i++) {
        n += fb_area_at(node, i, &info) && fb_id_equal(info.space, space);
    }
    return n;
}

static uint32_t links_of(const fb_node *node, uint32_t space)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < fb_link_capacity(node); i++) {
        const fb_link_info *info = fb_link_at(node, i);
        n += info->state == FB_LINK_OPEN && info->space == space;
    }
    return n;
}

#define LIST_ITEM_BYTES (16u + 2u + FB_SPACE_NAME_BYTES_MAX + 2u + 12u)
_Static_assert(2u + FB_SPACES_MAX * LIST_ITEM_BYTES <= FB_REPLY_BYTES_MAX, "a list fits a reply");

static void on_list(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    if (arguments.len != 0) {
        refuse(node, request, FB_ERR_REQUEST_MALFORMED);
        return;
    }
    uint8_t bytes[2u + FB_SPACES_MAX * LIST_ITEM_BYTES];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    uint16_t count = 0;
    fb_write_u16(&w, 0);
    for (uint32_t i = 0; i < fb_space_capacity(node); i++) {
        if (!fb_space_exists(node, i)) continue;
        const fb_space *space = fb_space_at(node, i);
        fb_write_id(&w, space->id);
        fb_write_span16(&w, fb_span_of(space->name, space->name_len));
        fb_write_u8(&w, (uint8_t)fb_space_own_status(node, i));
        fb_write_u8(&w, (uint8_t)fb_space_own_role(node, i));
        fb_write_u32(&w, space->approved);
        fb_write_u32(&w, areas_of(node, space->id));
        fb_write_u32(&w, links_of(node, i));
        count++;
    }
    fb_store_be(bytes, count, 2);
    fb_reply(node, request.index, FB_OK, fb_writer_span(&w));
}

/* members */

#define MEMBER_ITEM_BYTES (16u + 32u + 2u)
#define MEMBERS_LISTED    ((FB_REPLY_BYTES_MAX - 2u) / MEMBER_ITEM_BYTES)

static void on_members(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    uint32_t space = fb_space_find(node, fb_read_id(&r));
    if (!fb_reader_done(&r) || space == FB_NONE) {
        refuse(node, request, fb_reader_done(&r) ? FB_ERR_NOT_FOUND : FB_ERR_REQUEST_MALFORMED);
        return;
    }
    uint8_t bytes[2u + MEMBERS_LISTED * MEMBER_ITEM_BYTES];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    uint16_t count = 0;
    fb_write_u16(&w, 0);
    for (uint32_t m = fb_member_first(node, space); m != FB_NONE && count < MEMBERS_LISTED;
         m = fb_member_next(node, m)) {
        fb_write_id(&w, fb_member_id(node, m));
        fb_write_b32(&w, fb_member_key(node, m));
        fb_write_u8(&w, (uint8_t)fb_member_status_of(node, m));
        fb_write_u8(&w, (uint8_t)fb_member_role(node, m));
        count++;
    }
    fb_store_be(bytes, count, 2);
    fb_reply(node, request.index, FB_OK, fb_writer_span(&w));
}

/* invite */

typedef struct invite_context {
    asked asked;
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
    if (status == FB_OK) status = new_id(node, by, context->arguments, &invite.id);
    if (status == FB_ERR_AGAIN) return;
    if (status == FB_OK) {
        status = provider->secret(provider->user, invite.secret.b, sizeof invite.secret.b);
    }
    uint32_t index = status == FB_OK ? invite_place(node) : FB_NONE;
    if (index == FB_NONE) {
        answer_refusal(node, by, status == FB_OK ? FB_ERR_LIMIT : status);
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
    answer_held(node, by, FB_OK, fb_writer_span(&a));
}

_Static_assert(2u + FB_INVITE_BYTES_MAX <= FB_REPLY_HELD_BYTES, "an invite fits a held reply");

static int64_t expiry(int64_t now_us, uint64_t seconds)
{
    const uint64_t most = (uint64_t)INT64_MAX / 1000000u;
    int64_t span = seconds > most ? INT64_MAX : (int64_t)(seconds * 1000000u);
    return now_us > INT64_MAX - span ? INT64_MAX : now_us + span;
}

/* Only an admin may approve, so only an admin takes requests: who asked is known where it asked. */
static fb_status may_admit(const fb_node *node, uint32_t space)
{
    if (space == FB_NONE) return FB_ERR_NOT_FOUND;
    if (fb_space_own_status(node, space) != FB_MEMBER_APPROVED) return FB_ERR_NOT_MEMBER;
    return fb_space_own_role(node, space) == FB_ROLE_ADMIN ? FB_OK : FB_ERR_NOT_AUTHORISED;
}

static void on_invite(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    fb_id id = fb_read_id(&r);
    uint32_t uses = fb_read_u32(&r);
    uint64_t seconds = fb_read_u64(&r);
    fb_span address = fb_read_span16(&r);
    if (!fb_reader_done(&r) || !fb_address_is_valid(address) || uses > FB_INVITE_USES_MAX) {
        refuse(node, request, FB_ERR_REQUEST_MALFORMED);
        return;
    }
    uint32_t space = fb_space_find(node, id);
    fb_status status = may_admit(node, space);
    if (status != FB_OK) {
        refuse(node, request, status);
        return;
    }
    fb_op *op = begin(node, request, invite_run, 2 * FB_INVITE_PUT_BYTES, 2);
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
    asked asked;
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
    answer_held(node, by, FB_OK, fb_span_of(answer, sizeof answer));
}

static void dial_inviter(fb_node *node, uint32_t index)
{
    const fb_joining *joining = &fb_space_at(node, index)->joining;
    (void)fb_link_dial(node, index, fb_span_of(joining->address, joining->address_len),
                       fb_node_id_of(node->options.provider, &joining->inviter));
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
    if (space->waiting.number != 0 && is_open(node, &space->waiting)) return FB_ERR_BUSY;
    fb_link_forget(node, index, fb_span_of(space->joining.address, space->joining.address_len));
    space->taken = false;
    return FB_OK;
}

static fb_status join_new(fb_node *node, const fb_invite *invite, uint32_t *out)
{
    uint32_t index = fb_space_add(node, invite->space, node->spaces->space_local + 1,
                                  invite->creator, fb_invite_name(invite));
    if (index == FB_NONE) return FB_ERR_LIMIT;
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
        answer_refusal(node, by, status);
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
        joining->given = true;
        joining->id = invite.id;
        joining->secret = invite.secret;
        joining->inviter = invite.inviter;
        joining->address_len = invite.address_len;
        memcpy(joining->address, invite.address, invite.address_len);
        dial_inviter(node, index);
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

static void on_join(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    fb_span bytes = fb_read_span16(&r);
    fb_span address = fb_reader_left(&r) == 0 ? NO_ANSWER : fb_read_span16(&r);
    if (!fb_reader_done(&r) || (address.len != 0 && !fb_address_is_valid(address))) {
        refuse(node, request, FB_ERR_REQUEST_MALFORMED);
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
        refuse(node, request, status);
        return;
    }
    fb_op *op = begin(node, request, join_run, FB_SPACE_PUT_BYTES + FB_OPEN_SPACE_BYTES,
                      1 + FB_OPEN_SPACE_ENTRIES);
    if (op == NULL) return;
    join_context *context = fb_op_context(op);
    context->invite = fb_op_keep(op, bytes);
    context->address = fb_op_keep(op, address);
    fb_op_issue(node, op);
}

/* approve and role: both write the one statement about a member. */

static void member_done(fb_node *node, uint64_t user, fb_status status, uint64_t w)
{
    fb_waiting by = {(uint32_t)user, node->spaces->stating[(uint32_t)user]};
    node->spaces->stating[(uint32_t)user] = 0;
    if (!is_open(node, &by)) return;
    fb_reply_held(node, by.index, status, status == FB_OK ? w : fb_w_durable(node), NO_ANSWER);
}

static void state_member(fb_node *node, fb_request request, uint32_t space, uint32_t member,
                         fb_role role)
{
    fb_statement statement;
    memset(&statement, 0, sizeof statement);
    statement.kind = FB_STATEMENT_MEMBER;
    statement.key = fb_member_key(node, member);
    statement.status = FB_MEMBER_APPROVED;
    statement.role = role;
    fb_statement_fields fields;
    fb_statement_encode(&statement, &fields);
    fb_id record = fb_statement_record(fb_space_id(node, space), statement.kind, &statement.key);
    /* `done` finds the request by its index; the number tells whether it is still the same one. */
    node->spaces->stating[request.index] = request.number;
    fb_status status = fb_database_write(node, space, FB_AREA_SPACE, NO_ANSWER, record,
                                         fields.field, fields.count, member_done, request.index);
    if (status != FB_OK) refuse(node, request, status);
}

static void on_statement(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    fb_id id = fb_read_id(&r);
    fb_id peer = fb_read_id(&r);
    uint8_t role = fb_read_u8(&r);
    if (!fb_reader_done(&r) || role < FB_ROLE_ADMIN || role > FB_ROLE_READER) {
        refuse(node, request, FB_ERR_REQUEST_MALFORMED);
        return;
    }
    uint32_t space = fb_space_find(node, id);
    fb_status status = may_admit(node, space);
    uint32_t member = status == FB_OK ? fb_member_find(node, space, peer) : FB_NONE;
    bool approving = request.verb == FB_VERB_SPACE_APPROVE;
    if (status == FB_OK && member == FB_NONE) {
        status = approving ? FB_ERR_NOT_ASKED : FB_ERR_NOT_FOUND;
    }
    if (status == FB_OK) {
        const fb_member *m = fb_member_at(node, member);
        if (m->status == FB_MEMBER_REVOKED) status = FB_ERR_REVOKED;
        if (m->status == FB_MEMBER_PENDING && !approving) status = FB_ERR_NOT_MEMBER;
        if (m->status == FB_MEMBER_APPROVED) {
            if (role == m->role) {
                /* What it is already; a statement of this set may be under way. */
                fb_reply_held(node, request.index, FB_OK,
                              fb_max_u64(m->approved_w, fb_w_durable(node)), NO_ANSWER);
                return;
            }
            /* A lesser role takes a right away: that needs a cut (DESIGN 3.1). */
            if (role > m->role) status = FB_ERR_UNSUPPORTED;
        }
    }
    if (status != FB_OK) {
        refuse(node, request, status);
        return;
    }
    state_member(node, request, space, member, (fb_role)role);
}

void fb_space_requests_durable(fb_node *node)
{
    for (uint32_t i = 0; i < FB_RETRIES_MAX; i++) {
        fb_retry *retry = &node->spaces->retry[i];
        if (retry->by.number == 0) continue;
        fb_retry again = *retry;
        retry->by.number = 0;
        if (!is_open(node, &again.by)) continue;
        fb_request request = fb_request_at(node, again.by.index);
        fb_span arguments = fb_span_of(again.arguments, again.len);
        if (request.verb == FB_VERB_SPACE_CREATE) {
            on_create(node, request, arguments);
        } else {
            on_invite(node, request, arguments);
        }
    }
}

void fb_space_verbs_register(fb_node *node)
{
    fb_verb_register(node, FB_VERB_SPACE_CREATE, on_create);
    fb_verb_register(node, FB_VERB_SPACE_LIST, on_list);
    fb_verb_register(node, FB_VERB_SPACE_INVITE, on_invite);
    fb_verb_register(node, FB_VERB_SPACE_JOIN, on_join);
    fb_verb_register(node, FB_VERB_SPACE_MEMBERS, on_members);
    fb_verb_register(node, FB_VERB_SPACE_APPROVE, on_statement);
    fb_verb_register(node, FB_VERB_SPACE_ROLE, on_statement);
}
