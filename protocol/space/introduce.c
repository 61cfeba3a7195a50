/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/space/introduce.h"

#include "protocol/base/mutant.h"
#include "protocol/identity/identity.h"
#include "protocol/space/fold.h"
#include "protocol/space/store.h"

static void touch(fb_node *node, uint32_t link)
{
    fb_digest_touch(node, FB_DIGEST_SHOWN, link);
}

static void forget(fb_node *node, uint32_t link)
{
    fb_shown *shown = &node->spaces->shown[link];
    if (shown->owes_answer && shown->answer_w != 0) node->spaces->answering--;
    fb_digest_cell cell = shown->cell;
    memset(shown, 0, sizeof *shown);
    shown->cell = cell;
    touch(node, link);
}

/* What is known of a link. Its place in the table may have been another's, which never was shown
 * anything and so was not taken leave of either. */
static fb_shown *shown_at(fb_node *node, uint32_t link)
{
    fb_shown *shown = &node->spaces->shown[link];
    uint64_t number = fb_link_at(node, link)->number;
    if (shown->number != number) {
        forget(node, link);
        shown->number = number;
    }
    return shown;
}

static void output(fb_node *node, uint32_t link)
{
    touch(node, link);
    fb_link_has_output(node, link, FB_CHANNEL_CONTROL);
}

static bool is_approved_here(const fb_node *node, uint32_t space)
{
    return fb_space_own_status(node, space) == FB_MEMBER_APPROVED;
}

/* It is forgotten when this node is approved: one that was put out since has nothing to show. */
static bool has_secret(const fb_space *space)
{
    static const fb_b32 none;
    return space->joining.given && space->own == FB_NONE &&
           !fb_b32_equal(space->joining.secret, none);
}

/* What a link brings out as soon as it may: who dialled shows what it has, who was dialled shows
 * nothing before it knows the peer. */
static void on_shown(fb_node *node, uint32_t link)
{
    const fb_link_info *info = fb_link_at(node, link);
    const fb_space *space = fb_space_at(node, info->space);
    fb_shown *shown = shown_at(node, link);
    shown->shown = true;
    if (info->member != FB_NONE) {
        /* The peer may not know that it is a member, nor that this node is one. */
        shown->owes_standing = true;
    } else if (info->dialled || info->external) {
        shown->owes_proof = has_secret(space);
        shown->owes_standing = !shown->owes_proof && space->proof_len != 0;
    }
    output(node, link);
}

void fb_space_open_link(fb_node *node, uint32_t link, uint32_t member)
{
    fb_link_approved(node, link, member);
    shown_at(node, link)->owes_standing = true;
    output(node, link);
}

static void on_down(fb_node *node, uint32_t link, fb_error why)
{
    (void)why;
    forget(node, link);
}

void fb_space_show_invite(fb_node *node, uint32_t space)
{
    for (uint32_t link = 0; link < fb_link_capacity(node); link++) {
        const fb_link_info *info = fb_link_at(node, link);
        fb_shown *shown = &node->spaces->shown[link];
        bool waits = info->state == FB_LINK_OPENING || info->state == FB_LINK_PENDING;
        if (!waits || info->space != space || !shown->shown || shown->number != info->number) {
            continue;
        }
        shown->owes_proof = true;
        output(node, link);
    }
}

/* Sending. */

static bool peek_invite(fb_node *node, uint32_t link, fb_frame_out *out)
{
    const fb_shown *shown = shown_at(node, link);
    const fb_link_info *info = fb_link_at(node, link);
    const fb_space *space = fb_space_at(node, info->space);
    fb_invite_frame frame;
    memset(&frame, 0, sizeof frame);
    const fb_b32 *secret = NULL;
    if (!shown->shown) return false;
    if (shown->owes_proof && has_secret(space)) {
        frame.role = FB_LINK_DIALER;
        frame.invite = space->joining.id;
        secret = &space->joining.secret;
    } else if (shown->owes_answer && shown->answer_w == 0) {
        frame.role = FB_LINK_ACCEPTOR;
        frame.invite = shown->invite;
        frame.status = info->member != FB_NONE ? FB_MEMBER_APPROVED : FB_MEMBER_PENDING;
        for (uint32_t i = 0; i < node->options.sizes.invites; i++) {
            const fb_given_invite *given = &node->spaces->invite[i];
            if (given->used && fb_id_equal(given->id, shown->invite)) secret = &given->secret;
        }
    }
    if (secret == NULL) return false;
    fb_invite_proof(node->options.provider, secret, frame.role, frame.invite, info->handshake_hash,
                    &frame.proof);
    fb_writer w = fb_writer_of(node->spaces->frame, sizeof node->spaces->frame);
    fb_invite_frame_write(&frame, &w);
    out->head_len = 0;
    out->body = fb_writer_span(&w);
    return true;
}

static void sent_invite(fb_node *node, uint32_t link)
{
    fb_shown *shown = shown_at(node, link);
    if (shown->owes_proof && has_secret(fb_space_at(node, fb_link_at(node, link)->space))) {
        shown->owes_proof = false;
    } else {
        shown->owes_answer = false;
    }
    touch(node, link);
}

static bool peek_standing(fb_node *node, uint32_t link, fb_frame_out *out)
{
    const fb_shown *shown = shown_at(node, link);
    const fb_link_info *info = fb_link_at(node, link);
    const fb_space *space = fb_space_at(node, info->space);
    if (!shown->shown || !shown->owes_standing) return false;
    fb_membership_frame frame = {FB_MEMBER_NONE, {NULL, 0}};
    if (info->member != FB_NONE) frame.you = FB_MEMBER_APPROVED;
    if (!shown->said_statement) frame.statement = fb_span_of(space->proof, space->proof_len);
    fb_writer w = fb_writer_of(node->spaces->frame, sizeof node->spaces->frame);
    fb_membership_frame_write(&frame, &w);
    out->head_len = 0;
    out->body = fb_writer_span(&w);
    return true;
}

static void sent_standing(fb_node *node, uint32_t link)
{
    fb_shown *shown = shown_at(node, link);
    shown->owes_standing = false;
    shown->said_statement = true;
    touch(node, link);
}

/* An invite proof, at the inviter. */

typedef struct proof_context {
    uint32_t link;
    uint64_t number; /* of the link: its index may be another's when the operation runs */
    fb_id invite;
} proof_context;

static uint32_t invite_find(const fb_node *node, uint32_t space, const fb_id *id)
{
    for (uint32_t i = 0; i < node->options.sizes.invites; i++) {
        const fb_given_invite *invite = &node->spaces->invite[i];
        if (invite->used && invite->space == space && fb_id_equal(invite->id, *id)) return i;
    }
    return FB_NONE;
}

/* Whether this peer may enter the list of those who asked. *again: it is in it, by this invite. */
static fb_status may_ask(const fb_node *node, const fb_link_info *info, uint32_t invite,
                         bool *again)
{
    const fb_given_invite *given = &node->spaces->invite[invite];
    *again = false;
    FB_TRY(fb_identity_enrol_check(node->options.provider, &info->peer_key));
    uint32_t known = fb_member_find(node, info->space, info->peer);
    if (known != FB_NONE) {
        const fb_member *member = fb_member_at(node, known);
        if (!fb_b32_equal(member->key, info->peer_key)) return FB_ERR_KEY;
        if (member->status == FB_MEMBER_REVOKED) return FB_ERR_REVOKED;
        *again = member->status == FB_MEMBER_APPROVED || fb_id_equal(member->invite, given->id);
        if (*again) return FB_OK;
    }
    if (given->uses == 0 || node->wall_us >= given->expires_us) return FB_ERR_INVITE;
    if (known == FB_NONE && (node->spaces->pending >= FB_PENDING_MEMBERS_MAX ||
                             node->spaces->members == node->options.sizes.members)) {
        return FB_ERR_LINK_TOO_MANY;
    }
    return FB_OK;
}

static void owe_answer(fb_node *node, uint32_t link, const fb_id *invite, uint64_t w)
{
    fb_shown *shown = shown_at(node, link);
    if (!shown->owes_answer) {
        shown->owes_answer = true;
        shown->answer_w = w;
        shown->invite = *invite;
        node->spaces->answering++;
    }
    touch(node, link);
}

static void take_proof(fb_node *node, fb_op *op)
{
    const proof_context *context = fb_op_context(op);
    const fb_link_info *info = fb_link_at(node, context->link);
    if (info->number != context->number || info->state != FB_LINK_PENDING) return;
    uint32_t invite = invite_find(node, info->space, &context->invite);
    bool again;
    fb_status status = fb_op_status(op);
    if (status == FB_OK) {
        status = invite == FB_NONE ? FB_ERR_INVITE : may_ask(node, info, invite, &again);
    }
    if (status != FB_OK) {
        fb_link_close(node, context->link, status);
        return;
    }
    uint32_t member = fb_member_find(node, info->space, info->peer);
    if (member != FB_NONE && fb_member_at(node, member)->status == FB_MEMBER_APPROVED) return;
    /* A fresh request takes one use; who asks again finds its own (restarts of either side), which
     * is put again so that the answer waits for something. */
    if (!again) {
        fb_given_invite *given = &node->spaces->invite[invite];
        if (member == FB_NONE) {
            member = fb_member_add(node, info->space, info->peer, info->peer_key, FB_MEMBER_PENDING,
                                   FB_ROLE_NONE);
        }
        given->uses--;
        fb_member_at(node, member)->invite = given->id;
        fb_member_touch(node, member);
        fb_digest_touch(node, FB_DIGEST_INVITE, invite);
        fb_invite_put(node, invite);
        fb_member_observe(node, member);
    }
    fb_pending_put(node, member);
    owe_answer(node, context->link, &context->invite, fb_w_building(node));
}

static fb_status frame_proof(fb_node *node, uint32_t link, const fb_invite_frame *frame)
{
    const fb_link_info *info = fb_link_at(node, link);
    if (info->state != FB_LINK_PENDING) return FB_OK; /* approved meanwhile */
    if (shown_at(node, link)->owes_answer) return FB_OK;
    uint32_t invite = invite_find(node, info->space, &frame->invite);
    bool again;
    fb_status status =
        is_approved_here(node, info->space) && invite != FB_NONE ? FB_OK : FB_ERR_INVITE;
    if (status == FB_OK) {
        fb_b32 expected;
        fb_invite_proof(node->options.provider, &node->spaces->invite[invite].secret,
                        FB_LINK_DIALER, frame->invite, info->handshake_hash, &expected);
        status = fb_proof_equal(&expected, &frame->proof) ? may_ask(node, info, invite, &again)
                                                          : FB_ERR_INVITE;
    }
    if (status != FB_OK) {
        fb_link_close(node, link, status);
        return FB_OK;
    }
    fb_op *op =
        fb_op_begin(node, FB_OP_WRITER, take_proof, FB_INVITE_PUT_BYTES + FB_PENDING_PUT_BYTES, 2);
    if (op == NULL) {
        fb_link_close(node, link, FB_ERR_LINK_TOO_MANY); /* it will dial again */
        return FB_OK;
    }
    *(proof_context *)fb_op_context(op) = (proof_context){link, info->number, frame->invite};
    fb_op_issue(node, op);
    return FB_OK;
}

void fb_space_answer_durable(fb_node *node)
{
    struct fb_spaces *spaces = node->spaces;
    if (spaces->answering == 0) return;
    uint64_t durable = fb_w_durable(node);
    for (uint32_t link = 0; link < fb_link_capacity(node) && spaces->answering > 0; link++) {
        fb_shown *shown = &spaces->shown[link];
        if (!shown->owes_answer || shown->answer_w == 0 || shown->answer_w > durable) continue;
        const fb_link_info *info = fb_link_at(node, link);
        if (info->number != shown->number || info->state != FB_LINK_PENDING) {
            forget(node, link); /* who asked is gone; the place may be somebody else's by now */
            continue;
        }
        shown->answer_w = 0;
        spaces->answering--;
        if (fb_link_keep_pending(node, link) != FB_OK) {
            fb_link_close(node, link, FB_ERR_LINK_TOO_MANY);
            continue;
        }
        output(node, link);
    }
}

/* The answer, at the joiner. */

static void reply_joined(fb_node *node, uint32_t index, fb_member_status status)
{
    fb_space *space = fb_space_at(node, index);
    if (space->waiting.number == 0) return;
    if (fb_request_at(node, space->waiting.index).number == space->waiting.number) {
        uint8_t answer[17];
        memcpy(answer, space->id.b, 16);
        answer[16] = (uint8_t)status;
        fb_reply_held(node, space->waiting.index, FB_OK, fb_w_building(node),
                      fb_span_of(answer, sizeof answer));
    }
    space->waiting.number = 0;
    fb_space_touch(node, index);
}

typedef struct taken_context {
    uint32_t space;
    fb_member_status status;
} taken_context;

static void take_taken(fb_node *node, fb_op *op)
{
    const taken_context *context = fb_op_context(op);
    if (fb_op_status(op) != FB_OK) return; /* the next link brings the answer again */
    fb_space *space = fb_space_at(node, context->space);
    space->taken = true;
    fb_space_touch(node, context->space);
    fb_space_put(node, context->space);
    reply_joined(node, context->space, context->status);
}

/* An approved member has taken the request: to be remembered, then told to who waits for it. */
static void taken(fb_node *node, uint32_t space, fb_member_status status)
{
    if (fb_space_at(node, space)->taken && fb_space_at(node, space)->waiting.number == 0) return;
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, take_taken, FB_SPACE_PUT_BYTES, 1);
    if (op == NULL) return; /* as above */
    *(taken_context *)fb_op_context(op) = (taken_context){space, status};
    fb_op_issue(node, op);
}

static fb_status frame_answer(fb_node *node, uint32_t link, const fb_invite_frame *frame)
{
    const fb_link_info *info = fb_link_at(node, link);
    const fb_space *space = fb_space_at(node, info->space);
    if (!has_secret(space)) return FB_OK; /* approved meanwhile */
    const fb_joining *joining = &space->joining;
    fb_b32 expected;
    fb_link_role role = MUTANT(PROOF_OF_ONE_ROLE, FB_LINK_ACCEPTOR, FB_LINK_DIALER);
    fb_invite_proof(node->options.provider, &joining->secret, role, joining->id,
                    info->handshake_hash, &expected);
    if (!fb_id_equal(frame->invite, joining->id) || !fb_proof_equal(&expected, &frame->proof) ||
        !fb_b32_equal(info->peer_key, joining->inviter)) {
        return FB_ERR_INVITE;
    }
    (void)fb_link_keep_pending(node,
                               link); /* without a place it ends after 30 s and is redialled */
    taken(node, info->space, frame->status);
    return FB_OK;
}

static fb_status on_invite(fb_node *node, uint32_t link, fb_span bytes)
{
    fb_invite_frame frame;
    FB_TRY(fb_invite_frame_read(bytes, &frame));
    return frame.role == FB_LINK_DIALER ? frame_proof(node, link, &frame)
                                        : frame_answer(node, link, &frame);
}

/* Statements and standing. */

typedef struct reading {
    uint32_t space;
    fb_b32 key;
    fb_role role; /* the greatest found */
} reading;

static void read_change(fb_node *node, void *user, const fb_own_change *change)
{
    reading *r = user;
    fb_statement statement;
    if (fb_space_check_statement(node, r->space, change) != FB_OK ||
        fb_statement_decode(change->fields, change->count, &statement) != FB_OK ||
        (statement.kind != FB_STATEMENT_MEMBER && statement.kind != FB_STATEMENT_STANDING &&
         statement.kind != FB_STATEMENT_RECOVERY) ||
        statement.role == FB_ROLE_NONE || !fb_b32_equal(statement.key, r->key)) {
        return;
    }
    if (r->role == FB_ROLE_NONE || statement.role < r->role) r->role = statement.role;
}

static void open_link(fb_node *node, uint32_t link, fb_role role)
{
    const fb_link_info *info = fb_link_at(node, link);
    uint32_t member = fb_space_introduce(node, info->space, info->peer_key, role);
    if (member != FB_NONE) fb_space_open_link(node, link, member);
}

/* A peer on a pending link shows what made it a member; the signer must be an admin here. */
static void look_at_statement(fb_node *node, uint32_t link, fb_span batch)
{
    const fb_link_info *info = fb_link_at(node, link);
    fb_shown *shown = shown_at(node, link);
    if (info->state != FB_LINK_PENDING || fb_id_is_zero(info->peer) ||
        !is_approved_here(node, info->space) || shown->read_statement) {
        return;
    }
    shown->read_statement = true; /* a signature is verified at most once a link */
    touch(node, link);
    reading r = {info->space, info->peer_key, FB_ROLE_NONE};
    if (fb_database_read_statement(node, info->space, batch, read_change, &r) &&
        r.role != FB_ROLE_NONE) {
        open_link(node, link, r.role);
    }
}

/* The peer says that this node is a member to it. A joiner believes the node that invited it and
 * the creator; what it then fetches is judged by the creator's key all the same. */
static void look_at_standing(fb_node *node, uint32_t link)
{
    const fb_link_info *info = fb_link_at(node, link);
    const fb_space *space = fb_space_at(node, info->space);
    if (info->state != FB_LINK_PENDING || is_approved_here(node, info->space)) return;
    bool inviter = space->joining.given && fb_b32_equal(info->peer_key, space->joining.inviter);
    uint32_t member = fb_member_find(node, info->space, info->peer);
    /* A node that was put out knows the members: one of them may say that it is let in again. */
    bool known = fb_space_own_status(node, info->space) == FB_MEMBER_REVOKED && member != FB_NONE &&
                 fb_member_status_of(node, member) == FB_MEMBER_APPROVED &&
                 fb_b32_equal(fb_member_key(node, member), info->peer_key);
    if (!inviter && !known && !fb_b32_equal(info->peer_key, space->creator)) return;
    uint32_t index = info->space;
    open_link(node, link, FB_ROLE_READER);
    taken(node, index, FB_MEMBER_APPROVED);
}

static fb_status on_membership(fb_node *node, uint32_t link, fb_span bytes)
{
    fb_membership_frame frame;
    FB_TRY(fb_membership_frame_read(bytes, &frame));
    if (frame.you == FB_MEMBER_APPROVED) look_at_standing(node, link);
    if (frame.statement.len != 0) look_at_statement(node, link, frame.statement);
    return FB_OK;
}

/* The state of a link is kept by the first of the two. */
const fb_channel fb_space_invite_channel = {
    .shown = on_shown,
    .down = on_down,
    .frame = on_invite,
    .peek = peek_invite,
    .sent = sent_invite,
};

const fb_channel fb_space_membership_channel = {
    .frame = on_membership,
    .peek = peek_standing,
    .sent = sent_standing,
};
