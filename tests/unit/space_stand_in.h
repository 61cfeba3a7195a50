/* SPDX-License-Identifier: Apache-2.0 */
/* The space plane on the real core, with a database and links that are plain tables: what the tests
 * of this plane share. It defines the planes of the program that includes it, once. */
#ifndef FB_TESTS_SPACE_STAND_IN_H
#define FB_TESTS_SPACE_STAND_IN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <sodium.h>

#include "protocol/identity/identity.h"
#include "protocol/link/link.h"
#include "protocol/link/plane.h"
#include "protocol/space/introduce.h"
#include "protocol/space/invite.h"
#include "protocol/space/recovery.h"
#include "protocol/store/ops.h"
#include "tests/unit/net.h"

/* With FB_TEST_REAL_LINKS the links are the link plane's, and only the database is a table. */

/* Verbs of the stand-ins below. */
enum {
    VERB_APPLY = 60, /* a change as bytes: checked and folded, the status is the answer */
    VERB_LINK = 61,  /* u8 link, u8 dialled, key of the peer: the handshake is over */
    VERB_FRAME = 62, /* u8 link, a control frame */
    VERB_PEEK = 63,  /* u8 link -> a control frame, or nothing */
};

#define LINKS   4u
#define DIALS   32u
#define WRITTEN 64u

/* What the stand-ins of one node hold. */
typedef struct stand_in {
    fb_node *node;
    uint64_t seq;
    fb_link_info link[LINKS];
    fb_error closed[LINKS];
    bool kept[LINKS], shown[LINKS];
    uint64_t numbers;
    char dialled[DIALS][FB_ADDRESS_BYTES_MAX + 1];
    uint32_t dials;
    bool busy;                   /* the database refuses the next write */
    uint8_t held[WRITTEN][2048]; /* every change that was folded */
    uint16_t held_len[WRITTEN];
    uint32_t held_count;
} stand_in;

static stand_in stand_ins[8];

/* Changes that some node wrote, as bytes, in order. */
static uint8_t written[WRITTEN][2048];
static size_t written_len[WRITTEN];
static uint32_t written_count;

static stand_in *of(const fb_node *node)
{
    for (size_t i = 0; i < 8; i++) {
        if (stand_ins[i].node == node || stand_ins[i].node == NULL) {
            stand_ins[i].node = (fb_node *)(uintptr_t)node;
            return &stand_ins[i];
        }
    }
    abort();
}

static inline void forget_all(void)
{
    memset(stand_ins, 0, sizeof stand_ins);
    written_count = 0;
}

/* Changes as bytes: author, record, stamp, dot, claim, fields. */

static void change_write(const fb_own_change *change, fb_writer *w)
{
    fb_write_b32(w, change->author);
    fb_write_id(w, change->record);
    fb_write_u64(w, (uint64_t)change->stamp);
    fb_write_id(w, change->dot_node);
    fb_write_u64(w, change->dot_incarnation);
    fb_write_u64(w, change->dot_seq);
    fb_write_u64(w, change->claim);
    fb_write_u8(w, (uint8_t)change->count);
    for (uint32_t i = 0; i < change->count; i++) {
        fb_write_span16(w, change->fields[i].name);
        fb_write_u8(w, (uint8_t)change->fields[i].act);
        fb_write_span16(w, change->fields[i].value);
    }
}

static void change_read(fb_span bytes, fb_own_change *change, fb_field_write fields[16])
{
    fb_reader r = fb_reader_of(bytes);
    change->author = fb_read_b32(&r);
    change->record = fb_read_id(&r);
    change->stamp = (int64_t)fb_read_u64(&r);
    change->dot_node = fb_read_id(&r);
    change->dot_incarnation = fb_read_u64(&r);
    change->dot_seq = fb_read_u64(&r);
    change->claim = fb_read_u64(&r);
    change->count = fb_read_u8(&r);
    assert_in_range(change->count, 0, 16);
    for (uint32_t i = 0; i < change->count; i++) {
        fields[i].name = fb_read_span16(&r);
        fields[i].act = (fb_field_act)fb_read_u8(&r);
        fields[i].value = fb_read_span16(&r);
    }
    assert_true(fb_reader_done(&r));
    change->fields = fields;
    change->number = change->dot_seq; /* each in a batch of its own */
    change->batch = bytes;
}

/* The stand-in for the database. */

static void put_dot(fb_node *node, const fb_own_change *change)
{
    uint8_t key[17] = {'R'};
    memcpy(key + 1, change->record.b, 16);
    fb_put(node, fb_span_of(key, sizeof key), (fb_span){NULL, 0});
}

typedef struct write_context {
    fb_span bytes;
    uint32_t space;
    fb_write_done done;
    uint64_t user;
    fb_request request;
} write_context;

static void hold(stand_in *s, fb_span bytes)
{
    for (uint32_t i = 0; i < s->held_count; i++) {
        if (fb_span_equal(fb_span_of(s->held[i], s->held_len[i]), bytes)) return;
    }
    if (s->held_count == WRITTEN) return;
    memcpy(s->held[s->held_count], bytes.p, bytes.len);
    s->held_len[s->held_count++] = (uint16_t)bytes.len;
}

static void write_run(fb_node *node, fb_op *op)
{
    const write_context *c = fb_op_context(op);
    fb_own_change change;
    fb_field_write fields[16];
    change_read(c->bytes, &change, fields);
    fb_status status = fb_space_check_statement(node, c->space, &change);
    if (status == FB_OK) {
        if (c->done != NULL) change.batch = (fb_span){NULL, 0};
        put_dot(node, &change);
        hold(of(node), c->bytes);
        fb_space_fold(node, c->space, &change);
    }
    if (c->done != NULL) {
        if (status == FB_OK) {
            memcpy(written[written_count], c->bytes.p, c->bytes.len);
            written_len[written_count++] = c->bytes.len;
        }
        c->done(node, c->user, status, fb_w_building(node));
    } else {
        fb_reply_held(node, c->request.index, status, status == FB_OK ? fb_w_building(node) : 0,
                      (fb_span){NULL, 0});
    }
}

static fb_op *write_begin(fb_node *node)
{
    return fb_op_begin(node, FB_OP_WRITER, write_run, FB_SPACE_FOLD_BYTES(1u, 2048u) + 256,
                       FB_SPACE_FOLD_ENTRIES(1u, 2048u) + 1);
}

fb_status fb_database_write(fb_node *node, uint32_t space, fb_area_kind kind, fb_span name,
                            fb_id record, const fb_field_write *fields, uint32_t count,
                            fb_write_done done, uint64_t user)
{
    assert_int_equal(kind, FB_AREA_SPACE);
    assert_int_equal(name.len, 0);
    stand_in *s = of(node);
    if (s->busy) {
        s->busy = false;
        return FB_ERR_BUSY;
    }
    fb_op *op = write_begin(node);
    if (op == NULL) return FB_ERR_BUSY;
    fb_own_change change = {node->self_key, record, node->wall_us, node->self, node->incarnation,
                            ++s->seq,       fields, count,         s->seq,     FB_CLAIM_FIRST,
                            {NULL, 0}};
    uint8_t bytes[2048];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    change_write(&change, &w);
    write_context *c = fb_op_context(op);
    *c = (write_context){fb_op_keep(op, fb_writer_span(&w)), space, done, user, {0, 0, 0, 0}};
    fb_op_issue(node, op);
    return FB_OK;
}

static void on_apply(fb_node *node, fb_request request, fb_span arguments)
{
    fb_op *op = write_begin(node);
    write_context *c = fb_op_context(op);
    *c = (write_context){fb_op_keep(op, arguments), 0, NULL, 0, request};
    fb_op_issue(node, op);
}

fb_status fb_database_open_space(fb_node *node, uint32_t space)
{
    (void)node;
    (void)space;
    return FB_OK;
}

/* Nothing is held of anybody. */
fb_status fb_database_cut(fb_node *node, uint32_t space, fb_id peer, bool own_alone,
                          fb_cut_done done, uint64_t user)
{
    (void)space;
    (void)peer;
    (void)own_alone;
    const fb_cut_text text = {.quoted = fb_span_text("\"\"")};
    done(node, user, FB_OK, &text);
    return FB_OK;
}

void fb_database_cuts_changed(fb_node *node, uint32_t space)
{
    (void)node;
    (void)space;
}

typedef struct read_context {
    fb_each_own each;
    fb_each_own_done done;
    void *user;
} read_context;

static void read_run(fb_node *node, fb_op *op)
{
    const read_context *c = fb_op_context(op);
    const stand_in *s = of(node);
    for (uint32_t i = 0; i < s->held_count; i++) {
        fb_own_change change;
        fb_field_write fields[16];
        change_read(fb_span_of(s->held[i], s->held_len[i]), &change, fields);
        c->each(node, c->user, &change);
    }
    c->done(node, c->user, FB_OK);
}

/* Of all records: the space plane takes what it looks for. */
fb_status fb_database_each_own(fb_node *node, uint32_t space, fb_id record, uint32_t put_bytes,
                               fb_each_own each, fb_each_own_done done, void *user)
{
    (void)space;
    (void)record;
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, read_run, put_bytes, 1);
    if (op == NULL) return FB_ERR_BUSY;
    *(read_context *)fb_op_context(op) = (read_context){each, done, user};
    fb_op_issue(node, op);
    return FB_OK;
}

void fb_database_digest(fb_node *node, uint32_t space, uint32_t member, uint8_t out[16])
{
    (void)node;
    (void)space;
    (void)member;
    memset(out, 0, 16);
}

void fb_database_doubts(const fb_node *node, uint32_t space, uint32_t *doubts, uint32_t *waiting)
{
    (void)node;
    (void)space;
    *doubts = *waiting = 0;
}

void fb_database_same(fb_node *node, uint32_t link)
{
    (void)node;
    (void)link;
}

void fb_database_differs(fb_node *node, uint32_t link)
{
    (void)node;
    (void)link;
}

uint32_t fb_area_capacity(const fb_node *node)
{
    (void)node;
    return 0;
}

bool fb_area_at(const fb_node *node, uint32_t index, fb_area_info *out)
{
    (void)node;
    (void)index;
    (void)out;
    return false;
}

bool fb_database_read_statement(fb_node *node, uint32_t space, fb_span batch,
                                fb_own_change_each each, void *user)
{
    (void)space;
    fb_own_change change;
    fb_field_write fields[16];
    change_read(batch, &change, fields);
    each(node, user, &change);
    return true;
}

#ifndef FB_TEST_REAL_LINKS

/* The stand-in for links: who is at the other end is what the test says. */

void fb_control_register(fb_node *node, fb_control_type type, const fb_channel *ops)
{
    (void)node;
    (void)type;
    (void)ops;
}

uint32_t fb_link_capacity(const fb_node *node)
{
    (void)node;
    return LINKS;
}

const fb_link_info *fb_link_at(const fb_node *node, uint32_t link)
{
    return &of(node)->link[link];
}

void fb_link_has_output(fb_node *node, uint32_t link, fb_channel_id channel)
{
    (void)node;
    (void)link;
    (void)channel;
}

static void show(fb_node *node, uint32_t link)
{
    if (of(node)->shown[link]) return;
    of(node)->shown[link] = true;
    fb_space_invite_channel.shown(node, link);
}

void fb_link_close(fb_node *node, uint32_t link, fb_error why)
{
    of(node)->closed[link] = why;
    of(node)->link[link].state = FB_LINK_CLOSING;
    if (of(node)->shown[link]) fb_space_invite_channel.down(node, link, why);
}

void fb_link_approved(fb_node *node, uint32_t link, uint32_t member)
{
    of(node)->link[link].member = member;
    show(node, link);
}

fb_status fb_link_keep_pending(fb_node *node, uint32_t link)
{
    of(node)->kept[link] = true;
    show(node, link);
    return FB_OK;
}

fb_status fb_link_dial(fb_node *node, uint32_t space, fb_span address, fb_id expected)
{
    (void)space;
    (void)expected;
    stand_in *s = of(node);
    assert_in_range(s->dials, 0, DIALS - 1);
    memcpy(s->dialled[s->dials], address.p, address.len);
    s->dialled[s->dials++][address.len] = 0;
    return FB_OK;
}

void fb_link_forget(fb_node *node, uint32_t space, fb_span address)
{
    (void)space;
    stand_in *s = of(node);
    for (uint32_t i = 0; i < s->dials; i++) {
        if (fb_span_equal(fb_span_text(s->dialled[i]), address)) s->dialled[i][0] = 0;
    }
}

void fb_link_forget_space(fb_node *node, uint32_t space)
{
    (void)space;
    of(node)->dials = 0;
}

static inline bool dials(const fb_node *node, const char *address)
{
    const stand_in *s = of(node);
    for (uint32_t i = 0; i < s->dials; i++) {
        if (strcmp(s->dialled[i], address) == 0) return true;
    }
    return false;
}

static void on_link(fb_node *node, fb_request request, fb_span arguments)
{
    fb_reader r = fb_reader_of(arguments);
    uint32_t link = fb_read_u8(&r);
    stand_in *s = of(node);
    s->closed[link] = FB_OK;
    s->kept[link] = s->shown[link] = false;
    fb_link_info *info = &s->link[link];
    memset(info, 0, sizeof *info);
    info->number = ++s->numbers;
    info->dialled = fb_read_u8(&r) != 0;
    info->state = FB_LINK_PENDING;
    info->member = FB_NONE;
    info->peer_key = fb_read_b32(&r);
    info->peer = fb_node_id_of(node->options.provider, &info->peer_key);
    fb_read_into(&r, info->handshake_hash, sizeof info->handshake_hash);
    assert_true(fb_reader_done(&r));
    uint32_t member;
    fb_member_status judged = fb_space_judge_peer(node, 0, info->peer, info->peer_key, &member);
    uint8_t answer = (uint8_t)judged;
    if (judged == FB_MEMBER_APPROVED) {
        fb_link_approved(node, link, member);
    } else if (info->dialled) {
        show(node, link);
    }
    fb_reply(node, request.index, FB_OK, fb_span_of(&answer, 1));
}

static void on_frame(fb_node *node, fb_request request, fb_span arguments)
{
    uint32_t link = arguments.p[0];
    fb_span frame = fb_span_of(arguments.p + 1, arguments.len - 1);
    fb_status status = frame.p[0] == FB_CONTROL_INVITE
                           ? fb_space_invite_channel.frame(node, link, frame)
                           : fb_space_membership_channel.frame(node, link, frame);
    fb_reply(node, request.index, status, (fb_span){NULL, 0});
}

static void on_peek(fb_node *node, fb_request request, fb_span arguments)
{
    static const fb_channel *const channels[2] = {&fb_space_invite_channel,
                                                  &fb_space_membership_channel};
    uint32_t link = arguments.p[0];
    fb_frame_out out = {.head_len = 0};
    bool open = of(node)->link[link].state == FB_LINK_PENDING;
    for (size_t i = 0; i < 2 && open; i++) {
        if (!channels[i]->peek(node, link, &out)) continue;
        assert_int_equal(out.head_len, 0);
        fb_reply(node, request.index, FB_OK, out.body);
        channels[i]->sent(node, link);
        return;
    }
    fb_reply(node, request.index, FB_OK, (fb_span){NULL, 0});
}

#endif

static void layout(fb_node *node, fb_arena *arena)
{
    (void)arena;
    fb_verb_register(node, (fb_verb)VERB_APPLY, on_apply);
#ifndef FB_TEST_REAL_LINKS
    fb_verb_register(node, (fb_verb)VERB_LINK, on_link);
    fb_verb_register(node, (fb_verb)VERB_FRAME, on_frame);
    fb_verb_register(node, (fb_verb)VERB_PEEK, on_peek);
#endif
}

static const fb_plane stand_in_plane = {.name = "stand-in", .layout = layout};
const fb_plane *const fb_planes[] = {
    &fb_space_plane,
    &stand_in_plane,
#ifdef FB_TEST_REAL_LINKS
    &fb_link_plane,
#endif
    NULL,
};

/* Asking. */

static uint8_t argument_bytes[4096];

static inline fb_writer arguments(void)
{
    return fb_writer_of(argument_bytes, sizeof argument_bytes);
}

static inline const test_reply *ask(test_net *net, uint32_t i, int verb, const fb_writer *w)
{
    fb_span bytes = w == NULL ? (fb_span){NULL, 0} : fb_writer_span(w);
    const test_reply *reply = test_net_reply(net, test_net_ask(net, i, (fb_verb)verb, 0, bytes));
    return reply;
}

static inline fb_status answer(test_net *net, uint32_t i, int verb, const fb_writer *w)
{
    const test_reply *reply = ask(net, i, verb, w);
    assert_true(reply->done);
    return reply->status;
}

static inline fb_id create(test_net *net, uint32_t i, const char *name)
{
    fb_writer w = arguments();
    fb_write_span16(&w, fb_span_text(name));
    const test_reply *reply = ask(net, i, FB_VERB_SPACE_CREATE, &w);
    assert_true(reply->done);
    assert_int_equal(reply->status, FB_OK);
    assert_int_equal(reply->len, 16);
    fb_id id;
    memcpy(id.b, reply->bytes, 16);
    return id;
}

static inline size_t invite(test_net *net, uint32_t i, fb_id space, uint32_t uses, uint64_t seconds,
                            uint8_t out[FB_INVITE_BYTES_MAX])
{
    fb_writer w = arguments();
    fb_write_id(&w, space);
    fb_write_u32(&w, uses);
    fb_write_u64(&w, seconds);
    fb_write_span16(&w, fb_span_text(test_net_address(i)));
    const test_reply *reply = ask(net, i, FB_VERB_SPACE_INVITE, &w);
    assert_true(reply->done);
    assert_int_equal(reply->status, FB_OK);
    fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
    fb_span bytes = fb_read_span16(&r);
    assert_true(fb_reader_done(&r));
    memcpy(out, bytes.p, bytes.len);
    return bytes.len;
}

static inline uint64_t join(test_net *net, uint32_t i, fb_span invite_bytes, const char *address)
{
    fb_writer w = arguments();
    fb_write_span16(&w, invite_bytes);
    if (address != NULL) fb_write_span16(&w, fb_span_text(address));
    return test_net_ask(net, i, FB_VERB_SPACE_JOIN, 0, fb_writer_span(&w));
}

static inline fb_status approve(test_net *net, uint32_t i, fb_id space, fb_id peer, fb_role role)
{
    fb_writer w = arguments();
    fb_write_id(&w, space);
    fb_write_id(&w, peer);
    fb_write_u8(&w, (uint8_t)role);
    return answer(net, i, FB_VERB_SPACE_APPROVE, &w);
}

static inline fb_b32 key_at(test_net *net, uint32_t i)
{
    return test_net_node(net, i)->self_key;
}

static inline fb_id id_at(test_net *net, uint32_t i)
{
    return test_net_node(net, i)->self;
}

/* What node i holds of node j's membership in its only space. */
static inline fb_member_status status_of(test_net *net, uint32_t i, uint32_t j)
{
    const fb_node *node = test_net_node(net, i);
    uint32_t member = fb_member_find(node, 0, id_at(net, j));
    return member == FB_NONE ? FB_MEMBER_NONE : fb_member_status_of(node, member);
}

static inline fb_role role_of(test_net *net, uint32_t i, uint32_t j)
{
    const fb_node *node = test_net_node(net, i);
    uint32_t member = fb_member_find(node, 0, id_at(net, j));
    return member == FB_NONE ? FB_ROLE_NONE : fb_member_role(node, member);
}

#ifndef FB_TEST_REAL_LINKS

/* Links i and j: a handshake is over, i dialled. */
static inline void connect(test_net *net, uint32_t i, uint32_t j, uint8_t link_i, uint8_t link_j,
                           uint8_t hash)
{
    for (int side = 0; side < 2; side++) {
        fb_writer w = arguments();
        fb_write_u8(&w, side == 0 ? link_i : link_j);
        fb_write_u8(&w, side == 0);
        fb_write_b32(&w, key_at(net, side == 0 ? j : i));
        uint8_t bytes[64];
        memset(bytes, hash, sizeof bytes);
        fb_write_bytes(&w, bytes, sizeof bytes);
        assert_int_equal(answer(net, side == 0 ? i : j, VERB_LINK, &w), FB_OK);
    }
}

/* Carries one frame, if there is one. */
static inline bool carry(test_net *net, uint32_t from, uint32_t to, uint8_t link_from,
                         uint8_t link_to)
{
    const test_reply *reply = test_net_reply(
        net, test_net_ask(net, from, (fb_verb)VERB_PEEK, 0, fb_span_of(&link_from, 1)));
    assert_true(reply->done);
    if (reply->len == 0) return false;
    uint8_t bytes[4096];
    bytes[0] = link_to;
    memcpy(bytes + 1, reply->bytes, reply->len);
    reply = test_net_reply(
        net, test_net_ask(net, to, (fb_verb)VERB_FRAME, 0, fb_span_of(bytes, reply->len + 1)));
    assert_true(reply->done);
    assert_int_equal(reply->status, FB_OK);
    return true;
}

static inline uint32_t carry_all(test_net *net, uint32_t i, uint32_t j, uint8_t link_i,
                                 uint8_t link_j)
{
    uint32_t count = 0;
    for (;;) {
        bool there = carry(net, i, j, link_i, link_j);
        bool back = carry(net, j, i, link_j, link_i);
        if (!there && !back) return count;
        count += (uint32_t)there + (uint32_t)back;
    }
}

#endif

static inline fb_status apply(test_net *net, uint32_t i, fb_span change)
{
    const test_reply *reply =
        test_net_reply(net, test_net_ask(net, i, (fb_verb)VERB_APPLY, 0, change));
    assert_true(reply->done);
    return reply->status;
}

static inline fb_span written_at(uint32_t n)
{
    return fb_span_of(written[n], written_len[n]);
}

/* Everything written so far reaches a node, in the order written. */
static inline void apply_all(test_net *net, uint32_t i)
{
    for (uint32_t n = 0; n < written_count; n++) {
        assert_int_equal(apply(net, i, written_at(n)), FB_OK);
    }
}

/* What authors of the statements below claim to be. */
static uint64_t statement_claim = FB_CLAIM_FIRST;

/* A member statement of an author, made by hand. */
/* The recovery key of the spaces of a test. */
static inline fb_b32 recovery_key(uint8_t secret[64])
{
    const uint8_t seed[32] = {0xee};
    fb_b32 key;
    assert_int_equal(crypto_sign_seed_keypair(key.b, secret, seed), 0);
    return key;
}

static inline fb_span statement(test_net *net, fb_id space, uint32_t author, fb_statement_kind kind,
                                fb_b32 key, fb_role role, const char *text, int64_t stamp,
                                uint8_t *out)
{
    fb_statement s;
    memset(&s, 0, sizeof s);
    s.kind = kind;
    s.key = key;
    s.status = FB_MEMBER_APPROVED;
    s.role = role;
    char cut[256];
    if (kind == FB_STATEMENT_STANDING) {
        /* text: its number, one digit, and the digits of its cut */
        s.number = (uint8_t)(text[0] - '0');
        snprintf(cut, sizeof cut, "\"%s\"", text + 1);
        s.cut = fb_span_of((const uint8_t *)cut + 1, strlen(cut) - 2);
    } else if (kind == FB_STATEMENT_RECOVERY) {
        /* text: its number and its turn, one digit each */
        uint8_t secret[64], signed_text[FB_RECOVERY_TEXT_BYTES];
        s.number = (uint8_t)(text[0] - '0');
        s.turn = (uint32_t)(text[1] - '0');
        recovery_key(secret);
        fb_recovery_text(space, &s, signed_text);
        crypto_sign_detached(s.proof.b, NULL, signed_text, sizeof signed_text, secret);
    } else {
        s.text_len = (uint8_t)strlen(text);
        memcpy(s.text, text, s.text_len);
    }
    fb_statement_fields fields;
    fb_statement_encode(&s, &fields);
    fb_own_change change = {key_at(net, author),
                            fb_statement_record(space, kind, &key),
                            stamp,
                            id_at(net, author),
                            1,
                            (uint64_t)stamp,
                            fields.field,
                            fields.count,
                            (uint64_t)stamp,
                            statement_claim,
                            {NULL, 0}};
    fb_writer w = fb_writer_of(out, 2048);
    change_write(&change, &w);
    return fb_writer_span(&w);
}

#endif
