/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs: create, list, members, approve, role, rename. */
#include "protocol/base/mutant.h"
#include "protocol/link/link.h"
#include "protocol/space/fold.h"
#include "protocol/space/requests.h"
#include "protocol/space/standing.h"
#include "protocol/space/store.h"

/* create */

_Static_assert(2u + FB_SPACE_NAME_BYTES_MAX + 32u <= FB_RETRY_BYTES_MAX,
               "create may be asked again");

typedef struct create_context {
    fb_asked asked;
    fb_span name;
    fb_b32 recovery;
    fb_span arguments;
} create_context;

static void create_run(fb_node *node, fb_op *op)
{
    const create_context *context = fb_op_context(op);
    const fb_waiting *by = &context->asked.by;
    fb_id id;
    fb_status status = fb_op_status(op);
    if (status == FB_OK) status = fb_request_new_id(node, by, context->arguments, &id);
    if (status != FB_OK) {
        if (status != FB_ERR_AGAIN) fb_request_answer_refusal(node, by, status);
        return;
    }
    uint32_t index =
        fb_space_add(node, id, node->spaces->space_local + 1, node->self_key, context->name);
    status = index == FB_NONE ? FB_ERR_LIMIT : fb_database_open_space(node, index);
    if (status != FB_OK) {
        if (index != FB_NONE) fb_space_drop(node, index);
        fb_request_answer_refusal(node, by, status);
        return;
    }
    fb_space_at(node, index)->recovery = context->recovery;
    fb_space_touch(node, index);
    fb_space_put(node, index);
    /* The root statement follows; who asked is answered when it is durable. */
    fb_space_at(node, index)->waiting = *by;
    fb_space_duty(node, index);
}

void fb_space_on_create(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    fb_span name = fb_read_span16(&r);
    fb_b32 recovery = {{0}};
    if (fb_reader_left(&r) != 0) recovery = fb_read_b32(&r);
    if (!fb_reader_done(&r) || !fb_name_is_valid(name)) {
        fb_request_refuse(node, request, FB_ERR_REQUEST_MALFORMED);
        return;
    }
    fb_op *op =
        fb_request_begin(node, request, create_run, FB_SPACE_PUT_BYTES + FB_DATABASE_OPEN_BYTES,
                         1 + FB_DATABASE_OPEN_ENTRIES);
    if (op == NULL) return;
    create_context *context = fb_op_context(op);
    context->arguments = fb_op_keep(op, arguments);
    context->name = fb_span_of(context->arguments.p + 2, name.len);
    context->recovery = recovery;
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

#define LIST_ITEM_BYTES (16u + 2u + FB_SPACE_NAME_BYTES_MAX + 2u + 20u)
_Static_assert(2u + FB_SPACES_MAX * LIST_ITEM_BYTES <= FB_REPLY_BYTES_MAX, "a list fits a reply");

/* What is told of spaces and members could be taken back by a crash while the statements that it
 * follows from are not durable: who is told to be a member would write, start anew and be refused.
 * So a list waits until all that was stated is durable; where more is stated all the time it is
 * told as it was at one moment while it waited, as soon as what had been stated by then is durable.
 */
static bool may_list(fb_node *node, fb_request request, uint32_t space)
{
    struct fb_spaces *spaces = node->spaces;
    if (MUTANT(MEMBER_BEFORE_DURABLE, spaces->told_w <= fb_w_durable(node), true)) return true;
    fb_listing *listing = &spaces->listing[request.index];
    if (listing->number == 0) spaces->listings++; /* else its caller is gone */
    *listing = (fb_listing){request.number, space, false};
    return false;
}

/* Into fb_space_list_bytes bytes; how many there are. */
static size_t list(const fb_node *node, uint8_t *bytes)
{
    fb_writer w = fb_writer_of(bytes, FB_REPLY_BYTES_MAX);
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
        uint32_t doubts, waiting;
        fb_database_doubts(node, i, &doubts, &waiting);
        fb_write_u32(&w, doubts);
        fb_write_u32(&w, waiting);
        count++;
    }
    fb_store_be(bytes, count, 2);
    return w.at;
}

/* members */

#define MEMBER_ITEM_BYTES (16u + 32u + 2u)
#define MEMBERS_LISTED    ((FB_REPLY_BYTES_MAX - 2u) / MEMBER_ITEM_BYTES)

/* As list; 0: there are too many, and a part is never told as if it were all. */
static size_t list_members(const fb_node *node, uint32_t space, uint8_t *bytes)
{
    fb_writer w = fb_writer_of(bytes, FB_REPLY_BYTES_MAX);
    uint16_t count = 0;
    fb_write_u16(&w, 0);
    for (uint32_t m = fb_member_first(node, space); m != FB_NONE; m = fb_member_next(node, m)) {
        if (count == MEMBERS_LISTED) return 0;
        fb_write_id(&w, fb_member_id(node, m));
        fb_write_b32(&w, fb_member_key(node, m));
        fb_write_u8(&w, (uint8_t)fb_member_status_of(node, m));
        fb_write_u8(&w, (uint8_t)fb_member_role(node, m));
        count++;
    }
    fb_store_be(bytes, count, 2);
    return w.at;
}

static void answer_list(fb_node *node, fb_request request, uint32_t space)
{
    uint8_t bytes[FB_REPLY_BYTES_MAX];
    if (space != FB_NONE && !fb_space_exists(node, space)) {
        fb_request_refuse(node, request, FB_ERR_NOT_FOUND); /* left meanwhile */
        return;
    }
    size_t len = space == FB_NONE ? list(node, bytes) : list_members(node, space, bytes);
    if (len == 0) {
        fb_request_refuse(node, request, FB_ERR_LIMIT);
    } else {
        fb_reply(node, request.index, FB_OK, fb_span_of(bytes, len));
    }
}

static void on_list(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    if (arguments.len != 0) {
        fb_request_refuse(node, request, FB_ERR_REQUEST_MALFORMED);
        return;
    }
    if (may_list(node, request, FB_NONE)) answer_list(node, request, FB_NONE);
}

static void on_members(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    uint32_t space = fb_space_find(node, fb_read_id(&r));
    if (!fb_reader_done(&r) || space == FB_NONE) {
        fb_request_refuse(node, request,
                          fb_reader_done(&r) ? FB_ERR_NOT_FOUND : FB_ERR_REQUEST_MALFORMED);
        return;
    }
    if (may_list(node, request, space)) answer_list(node, request, space);
}

size_t fb_space_list_bytes(const fb_sizes *sizes)
{
    size_t spaces = 2 + sizes->spaces * (size_t)LIST_ITEM_BYTES;
    size_t members = 2 + sizes->members * (size_t)MEMBER_ITEM_BYTES;
    size_t most = spaces > members ? spaces : members;
    return most < FB_REPLY_BYTES_MAX ? most : FB_REPLY_BYTES_MAX;
}

/* More is stated while lists wait: the one that waits first is kept as it is now, for all who have
 * asked for it by now. */
static void hold_list(fb_node *node)
{
    struct fb_spaces *spaces = node->spaces;
    uint32_t first = 0;
    while (spaces->listing[first].number == 0) first++;
    uint32_t space = spaces->listing[first].space;
    if (space != FB_NONE && !fb_space_exists(node, space))
        return; /* left: told when all is durable */
    spaces->listed_len =
        space == FB_NONE ? list(node, spaces->listed) : list_members(node, space, spaces->listed);
    spaces->listed_w = spaces->told_w;
    for (uint32_t i = first; i < node->options.sizes.requests && spaces->listed_len != 0; i++) {
        fb_listing *listing = &spaces->listing[i];
        listing->held = listing->number != 0 && listing->space == space;
    }
}

void fb_space_lists_flush(fb_node *node)
{
    struct fb_spaces *spaces = node->spaces;
    if (spaces->listings == 0) return;
    bool all = spaces->told_w <= fb_w_durable(node);
    bool held = spaces->listed_len != 0 && spaces->listed_w <= fb_w_durable(node);
    for (uint32_t i = 0; i < node->options.sizes.requests && (all || held); i++) {
        const fb_listing waited = spaces->listing[i];
        if (waited.number == 0 || (!all && !waited.held)) continue;
        if (!fb_effect_fits(node, FB_REPLY_BYTES_MAX)) {
            fb_starved(node);
            return;
        }
        spaces->listing[i].number = 0;
        spaces->listings--;
        fb_request request = fb_request_at(node, i);
        if (request.number != waited.number) continue;
        if (all) {
            answer_list(node, request, waited.space);
        } else {
            fb_reply(node, i, FB_OK, fb_span_of(spaces->listed, spaces->listed_len));
        }
    }
    if (all || held) spaces->listed_len = 0;
    if (spaces->listings != 0 && spaces->listed_len == 0) hold_list(node);
}

/* approve, role and rename: each writes one statement. */

static void stated(fb_node *node, uint64_t user, fb_status status, uint64_t w)
{
    fb_waiting by = {(uint32_t)user, node->spaces->stating[(uint32_t)user]};
    node->spaces->stating[(uint32_t)user] = 0;
    if (!fb_request_is_open(node, &by)) return;
    fb_reply_held(node, by.index, status, status == FB_OK ? w : fb_w_durable(node), FB_NO_BYTES);
}

fb_status fb_space_state(fb_node *node, uint32_t space, const fb_statement *statement,
                         fb_write_done done, uint64_t user)
{
    bool about_member = statement->kind == FB_STATEMENT_MEMBER ||
                        statement->kind == FB_STATEMENT_STANDING ||
                        statement->kind == FB_STATEMENT_RECOVERY;
    if (about_member && !fb_standing_may_state(node, space, statement)) return FB_ERR_LIMIT;
    fb_statement_fields fields;
    fb_statement_encode(statement, &fields);
    fb_id record = fb_statement_record(fb_space_id(node, space), statement->kind, &statement->key);
    return fb_database_write(node, space, FB_AREA_SPACE, FB_NO_BYTES, record, fields.field,
                             fields.count, done, user);
}

void fb_space_state_for(fb_node *node, fb_request request, uint32_t space,
                        const fb_statement *statement)
{
    /* `done` finds the request by its index; the number tells whether it is still the same one. */
    node->spaces->stating[request.index] = request.number;
    fb_status status = fb_space_state(node, space, statement, stated, request.index);
    if (status != FB_OK) fb_request_refuse(node, request, status);
}

static void state_member(fb_node *node, fb_request request, uint32_t space, uint32_t member,
                         fb_role role)
{
    fb_statement statement;
    memset(&statement, 0, sizeof statement);
    /* Under the number that counts, or, after something was taken, the next odd one. */
    uint32_t number = FB_CLAIM_NUMBER(fb_standing_claim(node, member));
    if (number % 2 == 0) number++;
    if (number > FB_STANDINGS_MAX) {
        fb_request_refuse(node, request, FB_ERR_LIMIT);
        return;
    }
    statement.kind = number == 1 ? FB_STATEMENT_MEMBER : FB_STATEMENT_STANDING;
    statement.key = fb_member_key(node, member);
    statement.status = FB_MEMBER_APPROVED;
    statement.role = role;
    statement.number = (uint8_t)number;
    fb_space_state_for(node, request, space, &statement);
}

static void on_rename(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    fb_id id = fb_read_id(&r);
    fb_span name = fb_read_span16(&r);
    if (!fb_reader_done(&r) || !fb_name_is_valid(name)) {
        fb_request_refuse(node, request, FB_ERR_REQUEST_MALFORMED);
        return;
    }
    uint32_t space = fb_space_find(node, id);
    fb_status status = fb_space_may_admit(node, space);
    if (MUTANT(ANYBODY_RENAMES, status, status == FB_ERR_NOT_AUTHORISED ? FB_OK : status) !=
        FB_OK) {
        fb_request_refuse(node, request, status);
        return;
    }
    fb_statement statement;
    memset(&statement, 0, sizeof statement);
    statement.kind = FB_STATEMENT_NAME;
    statement.key = fb_space_at(node, space)->creator;
    statement.text_len = (uint8_t)name.len;
    memcpy(statement.text, name.p, name.len);
    fb_space_state_for(node, request, space, &statement);
}

static void on_statement(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    fb_id id = fb_read_id(&r);
    fb_id peer = fb_read_id(&r);
    uint8_t role = fb_read_u8(&r);
    if (!fb_reader_done(&r) || role < FB_ROLE_ADMIN || role > FB_ROLE_READER) {
        fb_request_refuse(node, request, FB_ERR_REQUEST_MALFORMED);
        return;
    }
    uint32_t space = fb_space_find(node, id);
    fb_status status = fb_space_may_admit(node, space);
    uint32_t member = status == FB_OK ? fb_member_find(node, space, peer) : FB_NONE;
    bool approving = request.verb == FB_VERB_SPACE_APPROVE;
    if (status == FB_OK && member == FB_NONE) {
        status = approving ? FB_ERR_NOT_ASKED : FB_ERR_NOT_FOUND;
    }
    if (status == FB_OK) {
        const fb_member *m = fb_member_at(node, member);
        if (m->status == FB_MEMBER_REVOKED && !approving) status = FB_ERR_REVOKED;
        if (m->status == FB_MEMBER_PENDING && !approving) status = FB_ERR_NOT_MEMBER;
        if (m->status == FB_MEMBER_APPROVED) {
            if (role == m->role) {
                /* What it is already; what made it so may be under way. */
                fb_reply_held(node, request.index, FB_OK, node->spaces->told_w, FB_NO_BYTES);
                return;
            }
            /* A lesser role takes a right away: that needs a cut (DESIGN 3.1). */
            if (role > m->role) {
                fb_space_take_away(node, request, space, member, (fb_role)role);
                return;
            }
        }
    }
    if (status != FB_OK) {
        fb_request_refuse(node, request, status);
        return;
    }
    state_member(node, request, space, member, (fb_role)role);
}

void fb_space_verbs_register(fb_node *node)
{
    fb_recovery_verbs_register(node);
    fb_verb_register(node, FB_VERB_SPACE_CREATE, fb_space_on_create);
    fb_verb_register(node, FB_VERB_SPACE_LIST, on_list);
    fb_verb_register(node, FB_VERB_SPACE_INVITE, fb_space_on_invite);
    fb_verb_register(node, FB_VERB_SPACE_JOIN, fb_space_on_join);
    fb_verb_register(node, FB_VERB_SPACE_MEMBERS, on_members);
    fb_verb_register(node, FB_VERB_SPACE_APPROVE, on_statement);
    fb_verb_register(node, FB_VERB_SPACE_ROLE, on_statement);
    fb_verb_register(node, FB_VERB_SPACE_LEAVE, fb_space_on_leave);
    fb_verb_register(node, FB_VERB_SPACE_RENAME, on_rename);
    fb_verb_register(node, FB_VERB_SPACE_REVOKE, fb_space_on_revoke);
}
