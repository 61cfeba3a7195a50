/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/space/recovery.h"

#include "protocol/base/mutant.h"
#include "protocol/space/requests.h"
#include "protocol/space/standing.h"

void fb_recovery_text(fb_id space, const fb_statement *statement,
                      uint8_t out[FB_RECOVERY_TEXT_BYTES])
{
    static const char label[] = "faberio-recovery-v1"; /* with its zero */
    _Static_assert(sizeof label == 20, "as counted");
    fb_writer w = fb_writer_of(out, FB_RECOVERY_TEXT_BYTES);
    fb_write_bytes(&w, (const uint8_t *)label, sizeof label);
    fb_write_id(&w, space);
    fb_write_b32(&w, statement->key);
    fb_write_u8(&w, statement->number);
    fb_write_u32(&w, statement->turn);
    FB_ASSERT(!w.failed && w.at == FB_RECOVERY_TEXT_BYTES);
}

static bool has_key(const fb_space *space)
{
    static const fb_b32 none;
    return !fb_b32_equal(space->recovery, none);
}

fb_status fb_recovery_check(const fb_node *node, uint32_t index, const fb_statement *statement)
{
    const fb_space *space = fb_space_at(node, index);
    const fb_provider *provider = node->options.provider;
    if (!has_key(space)) return FB_ERR_BATCH_POLICY;
    uint8_t text[FB_RECOVERY_TEXT_BYTES];
    fb_recovery_text(space->id, statement, text);
    fb_span part = fb_span_of(text, sizeof text);
    bool proven = provider->verify(provider->user, &space->recovery, &part, 1, &statement->proof);
    return MUTANT(RECOVERY_UNPROVEN, proven, true) ? FB_OK : FB_ERR_STATEMENT;
}

/* The space and the member of a request. */
static fb_status asked_about(fb_node *node, fb_reader *r, uint32_t *space, uint32_t *member)
{
    *space = fb_space_find(node, fb_read_id(r));
    fb_id peer = fb_read_id(r);
    if (r->failed) return FB_ERR_REQUEST_MALFORMED;
    if (*space == FB_NONE) return FB_ERR_NOT_FOUND;
    /* Also at a node that was put out, if by nobody with a right to it. */
    if (fb_space_own_status(node, *space) == FB_MEMBER_PENDING) return FB_ERR_NOT_MEMBER;
    *member = fb_member_find(node, *space, peer);
    if (*member == FB_NONE) return FB_ERR_NOT_FOUND;
    if (fb_member_status_of(node, *member) == FB_MEMBER_PENDING) return FB_ERR_NOT_MEMBER;
    return has_key(fb_space_at(node, *space)) ? FB_OK : FB_ERR_UNSUPPORTED;
}

/* verb: what there is to sign. Under the next odd number but the one that counts: it outranks a
 * removal that this node has not heard of, too. */
static void on_recovery(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    uint32_t space = FB_NONE, member = FB_NONE;
    fb_status status = asked_about(node, &r, &space, &member);
    if (status == FB_OK && !fb_reader_done(&r)) status = FB_ERR_REQUEST_MALFORMED;
    fb_statement statement;
    memset(&statement, 0, sizeof statement);
    if (status == FB_OK) {
        uint32_t number = fb_member_standing(node, member);
        number += number % 2 == 0 ? 1 : 2;
        statement.number = (uint8_t)number;
        statement.turn = fb_standing_last_turn(node, space);
        if (number > FB_RECOVERIES_MAX || statement.turn == UINT32_MAX) status = FB_ERR_LIMIT;
        statement.turn++;
    }
    if (status != FB_OK) {
        fb_request_refuse(node, request, status);
        return;
    }
    statement.key = fb_member_key(node, member);
    uint8_t bytes[32 + 32 + 1 + 4];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_b32(&w, fb_space_at(node, space)->recovery);
    fb_write_b32(&w, statement.key);
    fb_write_u8(&w, statement.number);
    fb_write_u32(&w, statement.turn);
    fb_reply(node, request.index, FB_OK, fb_writer_span(&w));
}

static void on_recover(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    uint32_t space = FB_NONE, member = FB_NONE;
    fb_status status = asked_about(node, &r, &space, &member);
    fb_statement statement;
    memset(&statement, 0, sizeof statement);
    statement.kind = FB_STATEMENT_RECOVERY;
    statement.role = FB_ROLE_ADMIN;
    statement.number = fb_read_u8(&r);
    statement.turn = fb_read_u32(&r);
    fb_read_into(&r, statement.proof.b, sizeof statement.proof.b);
    bool well_formed = fb_reader_done(&r) && statement.number >= 3 && statement.number % 2 != 0 &&
                       statement.turn != 0;
    if (status == FB_OK && !well_formed) status = FB_ERR_REQUEST_MALFORMED;
    if (status == FB_OK) {
        statement.key = fb_member_key(node, member);
        /* A proof of another key is the caller's mistake: nothing is stated. */
        if (fb_recovery_check(node, space, &statement) != FB_OK) status = FB_ERR_NOT_AUTHORISED;
    }
    if (status != FB_OK) {
        fb_request_refuse(node, request, status);
        return;
    }
    fb_space_state_for(node, request, space, &statement);
}

void fb_recovery_verbs_register(fb_node *node)
{
    fb_verb_register(node, FB_VERB_SPACE_RECOVERY, on_recovery);
    fb_verb_register(node, FB_VERB_SPACE_RECOVER, on_recover);
}
