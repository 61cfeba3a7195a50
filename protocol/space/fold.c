/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/space/fold.h"

#include "protocol/base/mutant.h"
#include "protocol/identity/identity.h"
#include "protocol/link/link.h"
#include "protocol/space/introduce.h"
#include "protocol/space/judge.h"
#include "protocol/space/recovery.h"
#include "protocol/space/store.h"

/* An own statement that could not be written (every operation was taken) is tried again. */
#define DUTY_RETRY_NS UINT64_C(50000000)

/* The member that signs; `id` follows from its key. */
static fb_status author_of(const fb_node *node, uint32_t space, fb_id id, const fb_b32 *author,
                           uint32_t *member)
{
    uint32_t index = fb_member_find(node, space, id);
    if (index == FB_NONE) return FB_ERR_BATCH_POLICY;
    const fb_member *m = fb_member_at(node, index);
    /* profile 1: the full key decides */
    if (!fb_b32_equal(m->key, *author) || m->status == FB_MEMBER_PENDING) {
        return FB_ERR_BATCH_POLICY;
    }
    *member = index;
    return FB_OK;
}

/* MP-6-14 */
static fb_status check_data(const fb_node *node, uint32_t member, const fb_signed *batch)
{
    fb_role role;
    FB_TRY(fb_standing_role(node, member, batch->claim, &role));
    bool may = role == FB_ROLE_ADMIN || role == FB_ROLE_WRITER;
    if (!MUTANT(READERS_WRITE, may, role != FB_ROLE_NONE)) return FB_ERR_BATCH_POLICY;
    return MUTANT(CUT_NOT_JUDGED,
                  fb_standing_judge(node, member, batch->claim, batch->area, batch->incarnation,
                                    batch->number, batch->hash),
                  FB_OK);
}

/* In the own area whoever was ever stated to be a member: what counts is judged of all of it. */
fb_status fb_space_check_author(const fb_node *node, uint32_t space, const fb_signed *batch)
{
    uint32_t member;
    bool admin;
    FB_TRY(author_of(node, space, batch->signer, &batch->author, &member));
    return batch->own_area ? fb_standing_stated(node, member, batch->claim, &admin)
                           : check_data(node, member, batch);
}

bool fb_space_is_lost(const fb_node *node, uint32_t space, fb_id signer, const fb_signed *batch)
{
    uint32_t member = fb_member_find(node, space, signer);
    return !batch->own_area && member != FB_NONE && check_data(node, member, batch) != FB_OK;
}

uint64_t fb_space_limit(const fb_node *node, uint32_t space, fb_id signer, fb_id area,
                        bool own_area, uint64_t incarnation)
{
    uint32_t member = fb_member_find(node, space, signer);
    return own_area || member == FB_NONE ? UINT64_MAX
                                         : fb_standing_limit(node, member, area, incarnation);
}

bool fb_space_has_cuts(const fb_node *node, uint32_t space)
{
    for (uint32_t m = fb_member_first(node, space); m != FB_NONE; m = fb_member_next(node, m)) {
        if (fb_standing_is_cut(node, m)) return true;
    }
    return false;
}

uint64_t fb_space_claim(const fb_node *node, uint32_t space)
{
    uint32_t own = fb_member_find(node, space, node->self);
    return own == FB_NONE ? FB_CLAIM_FIRST : fb_standing_claim(node, own);
}

static fb_status check_key(const fb_node *node, uint32_t space, const fb_statement *statement)
{
    const fb_provider *provider = node->options.provider;
    FB_TRY(fb_identity_enrol_check(provider, &statement->key));
    uint32_t known = fb_member_find(node, space, fb_node_id_of(provider, &statement->key));
    bool admits = statement->kind == FB_STATEMENT_MEMBER;
    uint32_t cuts = admits ? 0 : fb_cut_count(statement->cut);
    bool repeated = known != FB_NONE && fb_standing_is_repeated(node, known, statement);
    if (!repeated && !fb_standing_fits(node, cuts)) return FB_ERR_LIMIT;
    if (known == FB_NONE) {
        /* Whoever changes a standing has seen the member, and so has who covers that epoch. */
        if (!admits) return FB_ERR_BATCH_POLICY;
        return fb_member_fits(node) ? FB_OK : FB_ERR_LIMIT;
    }
    /* MP-1-5 */
    return fb_b32_equal(fb_member_at(node, known)->key, statement->key) ? FB_OK : FB_ERR_KEY;
}

static fb_status check(const fb_node *node, uint32_t space, const fb_own_change *change,
                       fb_statement *statement)
{
    FB_TRY(fb_statement_decode(change->fields, change->count, statement));
    const fb_space *s = fb_space_at(node, space);
    if (!fb_id_equal(change->record,
                     fb_statement_record(s->id, statement->kind, &statement->key))) {
        return FB_ERR_STATEMENT;
    }
    bool self = fb_b32_equal(statement->key, change->author);
    uint32_t author;
    bool admin;
    if (statement->kind == FB_STATEMENT_SPACE) {
        /* The root of trust came with the invite, or this node is the creator. */
        return self && fb_b32_equal(change->author, s->creator) ? FB_OK : FB_ERR_BATCH_POLICY;
    }
    fb_id id = fb_node_id_of(node->options.provider, &change->author);
    FB_TRY(author_of(node, space, id, &change->author, &author));
    FB_TRY(fb_standing_stated(node, author, change->claim, &admin));
    switch (statement->kind) {
    case FB_STATEMENT_SPACE:
        break;
    case FB_STATEMENT_MEMBER:
        return admin ? check_key(node, space, statement) : FB_ERR_BATCH_POLICY;
    case FB_STATEMENT_STANDING:
        if (statement->number < 2) return FB_ERR_STATEMENT;
        /* Everybody may leave. */
        if (!admin && !(self && statement->role == FB_ROLE_NONE)) return FB_ERR_BATCH_POLICY;
        return check_key(node, space, statement);
    case FB_STATEMENT_RECOVERY:
        /* Whoever states it: it is the proof that counts. */
        FB_TRY(fb_recovery_check(node, space, statement));
        return check_key(node, space, statement);
    case FB_STATEMENT_NAME:
        if (!fb_b32_equal(statement->key, s->creator)) return FB_ERR_STATEMENT;
        return MUTANT(ANYBODY_RENAMES, admin, true) ? FB_OK : FB_ERR_BATCH_POLICY;
    case FB_STATEMENT_ADDRESS:
        return self ? FB_OK : FB_ERR_BATCH_POLICY;
    }
    return FB_ERR_UNSUPPORTED;
}

fb_status fb_space_check_statement(const fb_node *node, uint32_t space, const fb_own_change *change)
{
    fb_statement statement;
    return check(node, space, change, &statement);
}

static fb_span address_of(const fb_member *member)
{
    return fb_span_of(member->address, member->address_len);
}

void fb_space_dial_no_more(fb_node *node, uint32_t space, fb_span address)
{
    const fb_joining *joining = &fb_space_at(node, space)->joining;
    fb_span invited = fb_span_of(joining->address, joining->address_len);
    bool shared = joining->dialled && fb_span_equal(invited, address);
    uint32_t m = fb_member_first(node, space);
    for (; m != FB_NONE && !shared; m = fb_member_next(node, m)) {
        const fb_member *member = fb_member_at(node, m);
        shared = member->dialled && fb_span_equal(address_of(member), address);
    }
    if (MUTANT(SHARED_ADDRESS_FORGOTTEN, shared, false)) return;
    fb_link_forget(node, space, address);
}

static void dial(fb_node *node, fb_member *member, bool wanted)
{
    if (member->dialled == wanted) return;
    if (wanted) {
        /* A full address book is no reason to refuse a statement: others may dial. */
        if (fb_link_dial(node, member->space, address_of(member), member->id) != FB_OK) return;
    }
    member->dialled = wanted;
    if (!wanted) fb_space_dial_no_more(node, member->space, address_of(member));
}

void fb_space_dial_inviter(fb_node *node, uint32_t space)
{
    fb_joining *joining = &fb_space_at(node, space)->joining;
    if (!joining->given || joining->dialled) return;
    joining->dialled =
        fb_link_dial(node, space, fb_span_of(joining->address, joining->address_len),
                     fb_node_id_of(node->options.provider, &joining->inviter)) == FB_OK;
    fb_space_touch(node, space);
}

/* Whom this node dials: of the members that said where they are, the next ones after itself in the
 * ring of node ids. Small spaces are fully linked so; in large ones everybody has as many links in
 * as out, and nobody's table fills up. */
static void plan_dials(fb_node *node, uint32_t space)
{
    uint32_t own = fb_space_at(node, space)->own;
    if (own == FB_NONE) return;
    uint32_t left = node->options.sizes.links / 4;
    if (left == 0) left = 1;
    for (uint32_t m = fb_member_next(node, own); m != own; m = fb_member_next(node, m)) {
        if (m == FB_NONE) m = fb_member_first(node, space);
        if (m == own) break;
        fb_member *member = fb_member_at(node, m);
        if (member->address_len == 0) continue;
        if (member->status != FB_MEMBER_APPROVED) {
            dial(node, member, false);
            continue;
        }
        dial(node, member, left > 0);
        if (left > 0) left--;
    }
    /* The address of the invite is one more, as long as there are too few. */
    if (left > 0) {
        fb_space_dial_inviter(node, space);
    } else if (fb_space_at(node, space)->joining.dialled) {
        fb_joining *joining = &fb_space_at(node, space)->joining;
        joining->dialled = false;
        fb_space_dial_no_more(node, space, fb_span_of(joining->address, joining->address_len));
        fb_space_touch(node, space);
    }
}

static fb_dot_stamp stamp_of(const fb_own_change *change)
{
    return (fb_dot_stamp){change->stamp, change->dot_node, change->dot_incarnation,
                          change->dot_seq};
}

static void fold_root(fb_node *node, uint32_t index, const fb_statement *statement)
{
    fb_space *space = fb_space_at(node, index);
    if (space->rooted) return;
    space->rooted = true;
    if (space->name_at.incarnation == 0) {
        space->name_len = statement->text_len;
        memcpy(space->name, statement->text, statement->text_len);
    } else {
        space->root_len = statement->text_len;
        memcpy(space->root_name, statement->text, statement->text_len);
    }
    fb_space_touch(node, index);
    fb_space_put(node, index);
    fb_member_observe(
        node, fb_member_find(node, index, fb_node_id_of(node->options.provider, &space->creator)));
}

/* This node became a member: the invite's secret is of no more use, the statement is its proof. */
static void fold_own(fb_node *node, uint32_t index, fb_span batch)
{
    fb_space *space = fb_space_at(node, index);
    memset(&space->joining.secret, 0, sizeof space->joining.secret);
    space->taken = true;
    if (batch.len != 0 && batch.len <= sizeof space->proof) {
        memcpy(space->proof, batch.p, batch.len);
        space->proof_len = (uint16_t)batch.len;
        fb_space_put_proof(node, index);
    }
    fb_space_put(node, index);
    fb_space_touch(node, index);
    fb_space_duty(node, index);
    plan_dials(node, index);
}

/* Rows of members that changed because of what was stated about others: there may be many. */

#define ROWS_AT_ONCE 8u

static void rows_run(fb_node *node, fb_op *op)
{
    uint32_t space = *(const uint32_t *)fb_op_context(op), count = 0;
    fb_space *s = fb_space_at(node, space);
    s->rows_running = false;
    if (!s->used || fb_op_status(op) != FB_OK) return;
    for (uint32_t m = fb_member_first(node, space); m != FB_NONE; m = fb_member_next(node, m)) {
        fb_member *member = fb_member_at(node, m);
        if (!member->row_due) continue;
        if (count++ == ROWS_AT_ONCE) {
            fb_timer_set(node, &s->timer, node->mono_ns);
            return;
        }
        member->row_due = false;
        fb_member_put(node, m);
    }
    s->rows_due = false;
}

static void put_rows(fb_node *node, uint32_t space)
{
    fb_space *s = fb_space_at(node, space);
    if (!s->rows_due || s->rows_running) return;
    fb_op *op =
        fb_op_begin(node, FB_OP_WRITER, rows_run, ROWS_AT_ONCE * FB_MEMBER_PUT_BYTES, ROWS_AT_ONCE);
    if (op == NULL) {
        fb_timer_set(node, &s->timer, fb_add_sat_u64(node->mono_ns, DUTY_RETRY_NS));
        return;
    }
    s->rows_running = true;
    *(uint32_t *)fb_op_context(op) = space;
    fb_op_issue(node, op);
}

/* What counts of all that was stated about a member, worked out anew. */
static void recount(fb_node *node, uint32_t space, uint32_t index, const fb_own_change *by)
{
    fb_member *m = fb_member_at(node, index);
    fb_space *s = fb_space_at(node, space);
    uint32_t top = fb_standing_top(node, index);
    fb_member_status status = FB_MEMBER_APPROVED;
    fb_role role = FB_ROLE_ADMIN;
    bool creator = fb_b32_equal(m->key, s->creator);
    if (top != FB_NONE) {
        const fb_standing *counting = &node->spaces->standing[top];
        if (!creator || counting->number != 1) role = counting->role;
    } else if (!creator) {
        if (m->standings == 0) return; /* nothing was stated: it asks, or was introduced */
        role = FB_ROLE_NONE;           /* nothing of it stands */
    }
    if (role == FB_ROLE_NONE) status = FB_MEMBER_REVOKED;
    if (m->status == status && m->role == role && !m->introduced) return;
    bool self = fb_b32_equal(m->key, node->self_key);
    bool was = m->status == FB_MEMBER_APPROVED;
    if (m->status == FB_MEMBER_PENDING) fb_pending_delete(node, index);
    m->introduced = false;
    m->role = role;
    if (m->status != status) fb_member_set_status(node, index, status);
    if (status == FB_MEMBER_APPROVED && !was && m->approved_w == 0) {
        m->approved_w = fb_w_building(node);
        node->spaces->awaiting++;
    }
    if (status == FB_MEMBER_REVOKED) node->spaces->shutting_w = fb_w_building(node);
    fb_member_touch(node, index);
    if (by != NULL) {
        fb_member_put(node, index);
    } else {
        m->row_due = s->rows_due = true;
        fb_timer_set(node, &s->timer, node->mono_ns);
    }
    fb_member_observe(node, index);
    if (self && status == FB_MEMBER_APPROVED && !was) {
        fold_own(node, space, by == NULL ? (fb_span){NULL, 0} : by->batch);
    }
    if (status == FB_MEMBER_REVOKED || !was) plan_dials(node, space);
}

static void recount_all(fb_node *node, uint32_t space, uint32_t but)
{
    for (uint32_t m = fb_member_first(node, space); m != FB_NONE;) {
        uint32_t next = fb_member_next(node, m);
        if (m != but) recount(node, space, m, NULL);
        m = next;
    }
}

static void fold_member(fb_node *node, uint32_t space, const fb_statement *statement,
                        const fb_own_change *change)
{
    fb_id id = fb_node_id_of(node->options.provider, &statement->key);
    uint32_t index = fb_member_find(node, space, id);
    if (index == FB_NONE) {
        index = fb_member_add(node, space, id, statement->key, FB_MEMBER_NONE, FB_ROLE_NONE);
        if (index == FB_NONE) {
            /* A batch with more members than there are places left. They are no members here. */
            fb_log(node, FB_LOG_ERROR, "no place for another member; raise the limit",
                   (fb_span){NULL, 0});
            return;
        }
    }
    if (!fb_standing_take(node, index, statement, change)) return;
    fb_member_touch(node, index);
    fb_space_judge(node, space);
    recount(node, space, index, change);
    /* Where something was taken away, what others stated may stand now, or stand no more. */
    if (fb_space_has_cuts(node, space)) {
        recount_all(node, space, index);
        fb_space_name_is_due(node, space);
        fb_database_cuts_changed(node, space);
    }
}

static void fold_address(fb_node *node, uint32_t space, const fb_statement *statement,
                         const fb_own_change *change)
{
    uint32_t index =
        fb_member_find(node, space, fb_node_id_of(node->options.provider, &statement->key));
    if (index == FB_NONE) return;
    fb_member *member = fb_member_at(node, index);
    fb_dot_stamp at = stamp_of(change);
    if (member->address_len != 0 && fb_dot_stamp_compare(&at, &member->address_at) <= 0) return;
    fb_span said = fb_span_of(statement->text, statement->text_len);
    bool moved = !fb_span_equal(address_of(member), said);
    if (moved) dial(node, member, false);
    member->address_at = at;
    member->address_len = statement->text_len;
    memcpy(member->address, said.p, said.len);
    fb_member_touch(node, index);
    fb_member_put(node, index);
    if (moved) plan_dials(node, space);
}

void fb_space_fold(fb_node *node, uint32_t space, const fb_own_change *change)
{
    fb_statement statement;
    /* The database has checked the batch before it executed any of it. */
    if (check(node, space, change, &statement) != FB_OK) return;
    switch (statement.kind) {
    case FB_STATEMENT_SPACE:
        fold_root(node, space, &statement);
        break;
    case FB_STATEMENT_MEMBER:
    case FB_STATEMENT_STANDING:
    case FB_STATEMENT_RECOVERY:
        fold_member(node, space, &statement, change);
        break;
    case FB_STATEMENT_NAME:
        fb_space_fold_name(node, space, &statement, change);
        break;
    case FB_STATEMENT_ADDRESS:
        fold_address(node, space, &statement, change);
        break;
    }
}

/* A removal is durable: nothing is said to who is no member any more. A node that reads of its own
 * removal closes nothing: it may have been let in again further on in what it is reading, and
 * whoever still speaks to it hears of the removal so, and closes. */
static void shut_links(fb_node *node)
{
    struct fb_spaces *spaces = node->spaces;
    if (spaces->shutting_w == 0 || spaces->shutting_w > fb_w_durable(node)) return;
    spaces->shutting_w = 0;
    for (uint32_t i = 0; i < fb_link_capacity(node); i++) {
        const fb_link_info *info = fb_link_at(node, i);
        if (info->state == FB_LINK_FREE || info->state == FB_LINK_CLOSING) continue;
        /* Before it is known who is there it may not be known of which space the link is. */
        if (fb_id_is_zero(info->peer) || !fb_space_exists(node, info->space)) continue;
        uint32_t peer = fb_member_find(node, info->space, info->peer);
        bool gone = peer != FB_NONE && fb_member_at(node, peer)->status == FB_MEMBER_REVOKED;
        if (MUTANT(PUT_OUT_STAYS_LINKED, gone, false)) fb_link_close(node, i, FB_ERR_REVOKED);
    }
}

uint32_t fb_space_introduce(fb_node *node, uint32_t space, fb_b32 key, fb_role role)
{
    const fb_provider *provider = node->options.provider;
    if (fb_identity_enrol_check(provider, &key) != FB_OK) return FB_NONE;
    fb_id id = fb_node_id_of(provider, &key);
    uint32_t index = fb_member_find(node, space, id);
    if (index == FB_NONE) {
        index = fb_member_add(node, space, id, key, FB_MEMBER_APPROVED, role);
        if (index == FB_NONE) return FB_NONE;
    } else {
        fb_member *known = fb_member_at(node, index);
        if (!fb_b32_equal(known->key, key)) return FB_NONE;
        if (known->status == FB_MEMBER_APPROVED) return index;
        if (known->status != FB_MEMBER_PENDING) return FB_NONE;
        known->role = role;
        fb_member_set_status(node, index, FB_MEMBER_APPROVED);
    }
    fb_member_at(node, index)->introduced = true;
    fb_member_touch(node, index);
    fb_member_observe(node, index);
    return index;
}

/* Links that wait for a statement to be durable. */
void fb_space_durable(fb_node *node)
{
    struct fb_spaces *spaces = node->spaces;
    shut_links(node);
    if (spaces->awaiting == 0) return;
    uint64_t durable = fb_w_durable(node);
    bool any = false;
    for (uint32_t i = 0; i < node->options.sizes.members && spaces->awaiting > 0; i++) {
        fb_member *member = fb_member_at(node, i);
        if (!member->used || member->approved_w == 0 || member->approved_w > durable) continue;
        member->approved_w = 0;
        spaces->awaiting--;
        any = true;
        fb_member_touch(node, i);
    }
    if (!any) return;
    for (uint32_t link = 0; link < fb_link_capacity(node); link++) {
        const fb_link_info *info = fb_link_at(node, link);
        if (info->state != FB_LINK_PENDING || fb_id_is_zero(info->peer)) continue;
        uint32_t member;
        if (fb_space_judge_peer(node, info->space, info->peer, info->peer_key, &member) ==
            FB_MEMBER_APPROVED) {
            fb_space_open_link(node, link, member);
        }
    }
}

/* What this node states itself. */

static void duty_done(fb_node *node, uint64_t user, fb_status status, uint64_t w)
{
    fb_space *space = fb_space_at(node, (uint32_t)user);
    space->writing = false;
    fb_space_touch(node, (uint32_t)user);
    if (status != FB_OK) {
        fb_timer_set(node, &space->timer, fb_add_sat_u64(node->mono_ns, DUTY_RETRY_NS));
        return;
    }
    if (space->rooted && space->waiting.number != 0 && !space->joining.given) {
        uint32_t index = space->waiting.index;
        if (fb_request_at(node, index).number == space->waiting.number) {
            uint8_t answer[16];
            memcpy(answer, space->id.b, sizeof answer);
            fb_reply_held(node, index, FB_OK, w, fb_span_of(answer, sizeof answer));
        }
        space->waiting.number = 0;
    }
    fb_space_duty(node, (uint32_t)user);
}

static fb_status duty_write(fb_node *node, uint32_t index, const fb_statement *statement)
{
    fb_space *space = fb_space_at(node, index);
    fb_statement_fields fields;
    fb_statement_encode(statement, &fields);
    fb_id record = fb_statement_record(space->id, statement->kind, &statement->key);
    /* `done` may come within the call. */
    space->writing = true;
    fb_status status = fb_database_write(node, index, FB_AREA_SPACE, (fb_span){NULL, 0}, record,
                                         fields.field, fields.count, duty_done, index);
    if (status != FB_OK) space->writing = false;
    fb_space_touch(node, index);
    return status;
}

/* The statement that is due, if any. */
static bool duty_of(const fb_node *node, const fb_space *space, fb_statement *statement)
{
    memset(statement, 0, sizeof *statement);
    statement->key = node->self_key;
    if (!space->rooted && !space->joining.given && fb_b32_equal(space->creator, node->self_key)) {
        statement->kind = FB_STATEMENT_SPACE;
        statement->text_len = space->name_len;
        memcpy(statement->text, space->name, space->name_len);
        return true;
    }
    if (space->own == FB_NONE || space->address_len == 0 || space->address_said) return false;
    const fb_member *own = fb_member_at(node, space->own);
    if (fb_span_equal(fb_span_of(own->address, own->address_len),
                      fb_span_of(space->address, space->address_len))) {
        return false;
    }
    statement->kind = FB_STATEMENT_ADDRESS;
    statement->text_len = space->address_len;
    memcpy(statement->text, space->address, space->address_len);
    return true;
}

void fb_space_duty(fb_node *node, uint32_t index)
{
    fb_space *space = fb_space_at(node, index);
    fb_statement statement;
    if (space->writing || fb_timer_is_set(&space->timer) || !duty_of(node, space, &statement)) {
        return;
    }
    fb_timer_set(node, &space->timer, node->mono_ns);
}

void fb_space_duty_due(fb_node *node, uint32_t index)
{
    fb_space *space = fb_space_at(node, index);
    fb_statement statement;
    if (!space->used) return;
    put_rows(node, index);
    fb_space_name_again(node, index);
    if (space->writing || !duty_of(node, space, &statement)) return;
    /* Once an incarnation: a value from a clock in the future may be shown instead for a while. */
    if (statement.kind == FB_STATEMENT_ADDRESS) space->address_said = true;
    if (duty_write(node, index, &statement) != FB_OK) {
        if (statement.kind == FB_STATEMENT_ADDRESS) space->address_said = false;
        fb_timer_set(node, &space->timer, fb_add_sat_u64(node->mono_ns, DUTY_RETRY_NS));
    }
}

void fb_space_started(fb_node *node, uint32_t index)
{
    /* A stop may have come between a statement and what follows from it. */
    recount_all(node, index, FB_NONE);
    /* Whether somebody renamed it is not kept. */
    fb_space_at(node, index)->renamed = MUTANT(RENAMES_FORGOTTEN, true, false);
    if (fb_space_has_cuts(node, index)) fb_space_name_is_due(node, index);
    if (fb_space_at(node, index)->own == FB_NONE) fb_space_dial_inviter(node, index);
    plan_dials(node, index);
    fb_space_duty(node, index);
}
