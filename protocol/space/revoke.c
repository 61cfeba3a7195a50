/* SPDX-License-Identifier: Apache-2.0 */
/* Taking rights away: a lesser role, the end of a membership, leaving. DESIGN 3.1, Revocation. The
 * cut is read first (database/cut.c), then the statement is written with it. A member that leaves
 * names none: what it signed stays, and who would sign on need not have left. */
#include "protocol/space/requests.h"
#include "protocol/space/standing.h"

static void taken(fb_node *node, uint64_t user, fb_status status, uint64_t w)
{
    (void)user;
    fb_taking_away *t = &node->spaces->taking_away;
    uint8_t answer[16];
    fb_writer a = fb_writer_of(answer, sizeof answer);
    fb_write_u32(&a, t->areas);
    fb_write_u32(&a, t->lives);
    fb_write_u64(&a, t->lacking);
    t->used = false;
    if (!fb_request_is_open(node, &t->by)) return;
    fb_reply_held(node, t->by.index, status, status == FB_OK ? w : fb_w_durable(node),
                  status == FB_OK ? fb_writer_span(&a) : FB_NO_BYTES);
}

static fb_status write_statement(fb_node *node, fb_span digits)
{
    const fb_taking_away *t = &node->spaces->taking_away;
    const fb_member *m = fb_member_at(node, t->member);
    if (m->status != FB_MEMBER_APPROVED) return FB_ERR_CONFLICT; /* another one was faster */
    uint32_t number = FB_CLAIM_NUMBER(fb_standing_claim(node, t->member));
    number += number % 2 == 0 ? 2 : 1;
    if (number > FB_TAKINGS_MAX) return FB_ERR_LIMIT;
    fb_statement statement;
    memset(&statement, 0, sizeof statement);
    statement.kind = FB_STATEMENT_STANDING;
    statement.key = m->key;
    statement.role = t->role;
    statement.number = (uint8_t)number;
    statement.cut = digits;
    return fb_space_state(node, t->space, &statement, taken, 0);
}

static void cut_read(fb_node *node, uint64_t user, fb_status status, const fb_cut_text *text)
{
    (void)user;
    fb_taking_away *t = &node->spaces->taking_away;
    if (status == FB_OK && !fb_request_is_open(node, &t->by)) status = FB_ERR_CANCELLED;
    t->areas = text->areas;
    t->lives = text->lives;
    t->lacking = text->lacking;
    if (status == FB_OK) {
        status = write_statement(node, fb_span_of(text->quoted.p + 1, text->quoted.len - 2));
    }
    if (status == FB_OK) return;
    t->used = false;
    if (fb_request_is_open(node, &t->by)) {
        fb_reply_held(node, t->by.index, status, fb_w_durable(node), FB_NO_BYTES);
    }
}

/* A space without an admin admits nobody any more. */
static bool is_last_admin(const fb_node *node, uint32_t space, uint32_t member)
{
    if (fb_member_role(node, member) != FB_ROLE_ADMIN) return false;
    for (uint32_t m = fb_member_first(node, space); m != FB_NONE; m = fb_member_next(node, m)) {
        const fb_member *other = fb_member_at(node, m);
        if (m != member && other->status == FB_MEMBER_APPROVED && other->role == FB_ROLE_ADMIN) {
            return false;
        }
    }
    return true;
}

void fb_space_take_away(fb_node *node, fb_request request, uint32_t space, uint32_t member,
                        fb_role role)
{
    fb_taking_away *t = &node->spaces->taking_away;
    fb_status status = FB_OK;
    if (t->used) status = FB_ERR_BUSY;
    if (status == FB_OK && is_last_admin(node, space, member)) status = FB_ERR_CONFLICT;
    if (status == FB_OK) {
        *t = (fb_taking_away){.used = true,
                              .by = {request.index, request.number},
                              .space = space,
                              .member = member,
                              .role = role};
        if (fb_id_equal(fb_member_id(node, member), node->self)) {
            static const uint8_t nothing[] = "\"\"";
            status = write_statement(node, fb_span_of(nothing + 1, 0));
        } else {
            status = fb_database_cut(node, space, fb_member_id(node, member),
                                     role == FB_ROLE_WRITER, cut_read, 0);
        }
        if (status != FB_OK) t->used = false;
    }
    if (status != FB_OK) fb_request_refuse(node, request, status);
}

void fb_space_on_revoke(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    fb_id id = fb_read_id(&r);
    fb_id peer = fb_read_id(&r);
    if (!fb_reader_done(&r)) {
        fb_request_refuse(node, request, FB_ERR_REQUEST_MALFORMED);
        return;
    }
    uint32_t space = fb_space_find(node, id);
    fb_status status = fb_space_may_admit(node, space);
    uint32_t member = status == FB_OK ? fb_member_find(node, space, peer) : FB_NONE;
    if (status == FB_OK && member == FB_NONE) status = FB_ERR_NOT_FOUND;
    if (status == FB_OK) {
        fb_member_status is = fb_member_status_of(node, member);
        if (is == FB_MEMBER_PENDING) status = FB_ERR_NOT_MEMBER;
        if (is == FB_MEMBER_REVOKED) {
            static const uint8_t nothing[16];
            fb_reply_held(node, request.index, FB_OK, node->spaces->told_w,
                          fb_span_of(nothing, sizeof nothing));
            return;
        }
    }
    if (status != FB_OK) {
        fb_request_refuse(node, request, status);
        return;
    }
    fb_space_take_away(node, request, space, member, FB_ROLE_NONE);
}
