/* SPDX-License-Identifier: Apache-2.0 */
/* The space plane on the real core, with a database and links that are plain tables: what is folded
 * from statements in any order, what an invite allows, what applications may. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "protocol/identity/identity.h"
#include "protocol/link/link.h"
#include "protocol/space/introduce.h"
#include "protocol/space/invite.h"
#include "protocol/store/ops.h"
#include "tests/unit/net.h"

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
    bool busy; /* the database refuses the next write */
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

static void forget_all(void)
{
    memset(stand_ins, 0, sizeof stand_ins);
    written_count = 0;
}

/* Changes as bytes: author, record, stamp, dot, fields. */

static void change_write(const fb_own_change *change, fb_writer *w)
{
    fb_write_b32(w, change->author);
    fb_write_id(w, change->record);
    fb_write_u64(w, (uint64_t)change->stamp);
    fb_write_id(w, change->dot_node);
    fb_write_u64(w, change->dot_incarnation);
    fb_write_u64(w, change->dot_seq);
    fb_write_u8(w, (uint8_t)change->count);
    for (uint32_t i = 0; i < change->count; i++) {
        fb_write_span16(w, change->fields[i].name);
        fb_write_u8(w, change->fields[i].unset);
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
    change->count = fb_read_u8(&r);
    assert_in_range(change->count, 0, 16);
    for (uint32_t i = 0; i < change->count; i++) {
        fields[i].name = fb_read_span16(&r);
        fields[i].unset = fb_read_u8(&r) != 0;
        fields[i].value = fb_read_span16(&r);
    }
    assert_true(fb_reader_done(&r));
    change->fields = fields;
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
    return fb_op_begin(node, FB_OP_WRITER, write_run, FB_SPACE_FOLD_BYTES(1u) + 256,
                       FB_SPACE_FOLD_ENTRIES(1u) + 1);
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
                            ++s->seq,       fields, count,         {NULL, 0}};
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

static bool dials(const fb_node *node, const char *address)
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

static void layout(fb_node *node, fb_arena *arena)
{
    (void)arena;
    fb_verb_register(node, (fb_verb)VERB_APPLY, on_apply);
    fb_verb_register(node, (fb_verb)VERB_LINK, on_link);
    fb_verb_register(node, (fb_verb)VERB_FRAME, on_frame);
    fb_verb_register(node, (fb_verb)VERB_PEEK, on_peek);
}

static const fb_plane stand_in_plane = {.name = "stand-in", .layout = layout};
const fb_plane *const fb_planes[] = {&fb_space_plane, &stand_in_plane, NULL};

/* Asking. */

static uint8_t argument_bytes[4096];

static fb_writer arguments(void)
{
    return fb_writer_of(argument_bytes, sizeof argument_bytes);
}

static const test_reply *ask(test_net *net, uint32_t i, int verb, const fb_writer *w)
{
    fb_span bytes = w == NULL ? (fb_span){NULL, 0} : fb_writer_span(w);
    const test_reply *reply = test_net_reply(net, test_net_ask(net, i, (fb_verb)verb, 0, bytes));
    return reply;
}

static fb_status answer(test_net *net, uint32_t i, int verb, const fb_writer *w)
{
    const test_reply *reply = ask(net, i, verb, w);
    assert_true(reply->done);
    return reply->status;
}

static fb_id create(test_net *net, uint32_t i, const char *name)
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

static size_t invite(test_net *net, uint32_t i, fb_id space, uint32_t uses, uint64_t seconds,
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

static uint64_t join(test_net *net, uint32_t i, fb_span invite_bytes, const char *address)
{
    fb_writer w = arguments();
    fb_write_span16(&w, invite_bytes);
    if (address != NULL) fb_write_span16(&w, fb_span_text(address));
    return test_net_ask(net, i, FB_VERB_SPACE_JOIN, 0, fb_writer_span(&w));
}

static fb_status approve(test_net *net, uint32_t i, fb_id space, fb_id peer, fb_role role)
{
    fb_writer w = arguments();
    fb_write_id(&w, space);
    fb_write_id(&w, peer);
    fb_write_u8(&w, (uint8_t)role);
    return answer(net, i, FB_VERB_SPACE_APPROVE, &w);
}

static fb_b32 key_at(test_net *net, uint32_t i)
{
    return test_net_node(net, i)->self_key;
}

static fb_id id_at(test_net *net, uint32_t i)
{
    return test_net_node(net, i)->self;
}

/* What node i holds of node j's membership in its only space. */
static fb_member_status status_of(test_net *net, uint32_t i, uint32_t j)
{
    const fb_node *node = test_net_node(net, i);
    uint32_t member = fb_member_find(node, 0, id_at(net, j));
    return member == FB_NONE ? FB_MEMBER_NONE : fb_member_status_of(node, member);
}

static fb_role role_of(test_net *net, uint32_t i, uint32_t j)
{
    const fb_node *node = test_net_node(net, i);
    uint32_t member = fb_member_find(node, 0, id_at(net, j));
    return member == FB_NONE ? FB_ROLE_NONE : fb_member_role(node, member);
}

/* Links i and j: a handshake is over, i dialled. */
static void connect(test_net *net, uint32_t i, uint32_t j, uint8_t link_i, uint8_t link_j,
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
static bool carry(test_net *net, uint32_t from, uint32_t to, uint8_t link_from, uint8_t link_to)
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

static uint32_t carry_all(test_net *net, uint32_t i, uint32_t j, uint8_t link_i, uint8_t link_j)
{
    uint32_t count = 0;
    for (;;) {
        bool there = carry(net, i, j, link_i, link_j);
        bool back = carry(net, j, i, link_j, link_i);
        if (!there && !back) return count;
        count += (uint32_t)there + (uint32_t)back;
    }
}

static fb_status apply(test_net *net, uint32_t i, fb_span change)
{
    const test_reply *reply =
        test_net_reply(net, test_net_ask(net, i, (fb_verb)VERB_APPLY, 0, change));
    assert_true(reply->done);
    return reply->status;
}

static fb_span written_at(uint32_t n)
{
    return fb_span_of(written[n], written_len[n]);
}

/* Everything written so far reaches a node, in the order written. */
static void apply_all(test_net *net, uint32_t i)
{
    for (uint32_t n = 0; n < written_count; n++) {
        assert_int_equal(apply(net, i, written_at(n)), FB_OK);
    }
}

/* A member statement of an author, made by hand. */
static fb_span statement(test_net *net, fb_id space, uint32_t author, fb_statement_kind kind,
                         fb_b32 key, fb_role role, const char *text, int64_t stamp, uint8_t *out)
{
    fb_statement s;
    memset(&s, 0, sizeof s);
    s.kind = kind;
    s.key = key;
    s.status = FB_MEMBER_APPROVED;
    s.role = role;
    s.text_len = (uint8_t)strlen(text);
    memcpy(s.text, text, s.text_len);
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
                            {NULL, 0}};
    fb_writer w = fb_writer_of(out, 2048);
    change_write(&change, &w);
    return fb_writer_span(&w);
}

/* Tests. */

static void a_space_is_created_with_its_root(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(1, NULL);
    of(test_net_node(net, 0))->busy = true; /* the first try of the root statement */
    fb_writer w = arguments();
    fb_write_span16(&w, fb_span_text("home"));
    uint64_t asked = test_net_ask(net, 0, FB_VERB_SPACE_CREATE, 0, fb_writer_span(&w));
    assert_false(test_net_reply(net, asked)->done);
    test_net_run(net, UINT64_C(1000000000));
    assert_true(test_net_reply(net, asked)->done);
    assert_int_equal(test_net_reply(net, asked)->status, FB_OK);
    assert_int_equal(written_count, 1);
    assert_int_equal(status_of(net, 0, 0), FB_MEMBER_APPROVED);
    assert_int_equal(role_of(net, 0, 0), FB_ROLE_ADMIN);

    /* Only the creator signs the root; a second one changes nothing. */
    fb_id space = fb_space_id(test_net_node(net, 0), 0);
    uint8_t bytes[2048];
    assert_int_equal(apply(net, 0,
                           statement(net, space, 0, FB_STATEMENT_SPACE, key_at(net, 0),
                                     FB_ROLE_NONE, "other", 9, bytes)),
                     FB_OK);
    const test_reply *list = ask(net, 0, FB_VERB_SPACE_LIST, NULL);
    assert_int_equal(list->status, FB_OK);
    assert_int_equal(list->len, 2 + 16 + 2 + 4 + 2 + 12);
    assert_memory_equal(list->bytes + 20, "home", 4);

    test_net_restart(net, 0);
    test_net_run(net, UINT64_C(1000000000));
    assert_int_equal(written_count, 1);
    list = ask(net, 0, FB_VERB_SPACE_LIST, NULL);
    assert_int_equal(list->len, 2 + 16 + 2 + 4 + 2 + 12);

    w = arguments();
    fb_write_span16(&w, fb_span_text("a\nb"));
    assert_int_equal(answer(net, 0, FB_VERB_SPACE_CREATE, &w), FB_ERR_REQUEST_MALFORMED);
    /* The table is bounded. */
    create(net, 0, "two");
    w = arguments();
    fb_write_span16(&w, fb_span_text("three"));
    assert_int_equal(answer(net, 0, FB_VERB_SPACE_CREATE, &w), FB_ERR_LIMIT);
    test_net_free(net);
}

/* The creator (0) and a joiner (1) up to the point where 1 waits for approval. */
static fb_id ask_to_join(test_net *net, uint64_t *asked)
{
    fb_id space = create(net, 0, "home");
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    size_t len = invite(net, 0, space, 1, 0, bytes);
    *asked = join(net, 1, fb_span_of(bytes, len), "test:1");
    assert_false(test_net_reply(net, *asked)->done);
    assert_true(dials(test_net_node(net, 1), "test:0"));
    connect(net, 1, 0, 0, 0, 7);
    carry_all(net, 1, 0, 0, 0);
    return space;
}

static void a_node_joins_and_is_approved(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(2, NULL);
    uint64_t asked;
    fb_id space = ask_to_join(net, &asked);
    const test_reply *reply = test_net_reply(net, asked);
    assert_true(reply->done);
    assert_int_equal(reply->status, FB_OK);
    assert_int_equal(reply->len, 17);
    assert_int_equal(reply->bytes[16], FB_MEMBER_PENDING);
    assert_int_equal(status_of(net, 0, 1), FB_MEMBER_PENDING);
    assert_true(of(test_net_node(net, 0))->kept[0]);
    assert_true(of(test_net_node(net, 0))->link[0].member == FB_NONE);
    assert_int_equal(fb_space_own_status(test_net_node(net, 1), 0), FB_MEMBER_PENDING);
    assert_false(fb_space_may_write(test_net_node(net, 1), 0));

    /* Approval opens the waiting link at once, and the joiner hears of it. */
    fb_id other = id_at(net, 0);
    other.b[0] ^= 1;
    assert_int_equal(approve(net, 0, space, other, FB_ROLE_WRITER), FB_ERR_NOT_ASKED);
    assert_int_equal(approve(net, 0, space, id_at(net, 1), FB_ROLE_WRITER), FB_OK);
    assert_int_equal(status_of(net, 0, 1), FB_MEMBER_APPROVED);
    assert_true(of(test_net_node(net, 0))->link[0].member != FB_NONE);
    carry_all(net, 1, 0, 0, 0);
    assert_true(of(test_net_node(net, 1))->link[0].member != FB_NONE);

    /* What it then fetches makes it a member; it says where it can be dialled. */
    assert_int_equal(fb_space_own_status(test_net_node(net, 1), 0), FB_MEMBER_PENDING);
    apply_all(net, 1);
    assert_int_equal(fb_space_own_status(test_net_node(net, 1), 0), FB_MEMBER_APPROVED);
    assert_int_equal(fb_space_own_role(test_net_node(net, 1), 0), FB_ROLE_WRITER);
    test_net_settle(net);
    assert_int_equal(written_count, 3);
    assert_int_equal(apply(net, 0, written_at(2)), FB_OK);
    assert_true(dials(test_net_node(net, 0), "test:1"));

    /* All of it survives a restart. */
    for (uint32_t i = 0; i < 2; i++) {
        of(test_net_node(net, i))->dials = 0;
        test_net_restart(net, i);
        test_net_run(net, UINT64_C(1000000000));
        assert_int_equal(status_of(net, i, 0), FB_MEMBER_APPROVED);
        assert_int_equal(status_of(net, i, 1), FB_MEMBER_APPROVED);
        assert_int_equal(role_of(net, i, 1), FB_ROLE_WRITER);
    }
    assert_true(dials(test_net_node(net, 0), "test:1"));
    assert_int_equal(written_count, 3);

    /* Asked again: at once, nothing is written. A greater role is given, a lesser one is not. */
    assert_int_equal(approve(net, 0, space, id_at(net, 1), FB_ROLE_WRITER), FB_OK);
    assert_int_equal(written_count, 3);
    assert_int_equal(approve(net, 0, space, id_at(net, 1), FB_ROLE_READER), FB_ERR_UNSUPPORTED);
    assert_int_equal(approve(net, 1, space, id_at(net, 0), FB_ROLE_ADMIN), FB_ERR_NOT_AUTHORISED);
    fb_writer w = arguments();
    fb_write_id(&w, space);
    fb_write_id(&w, id_at(net, 1));
    fb_write_u8(&w, FB_ROLE_ADMIN);
    assert_int_equal(answer(net, 0, FB_VERB_SPACE_ROLE, &w), FB_OK);
    assert_int_equal(role_of(net, 0, 1), FB_ROLE_ADMIN);
    test_net_free(net);
}

static void a_join_survives_restarts_of_either_side(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(2, NULL);
    uint64_t asked;
    fb_id space = ask_to_join(net, &asked);
    for (uint32_t restarted = 0; restarted < 2; restarted++) {
        test_net_restart(net, restarted);
        test_net_run(net, UINT64_C(1000000000));
        assert_int_equal(status_of(net, 0, 1), FB_MEMBER_PENDING);
        /* The same node finds its own request; the one use of the invite is not taken twice. */
        connect(net, 1, 0, 0, 0, (uint8_t)(20 + restarted));
        assert_int_equal(carry_all(net, 1, 0, 0, 0), 2);
        assert_int_equal(of(test_net_node(net, 0))->closed[0], FB_OK);
    }
    assert_int_equal(approve(net, 0, space, id_at(net, 1), FB_ROLE_WRITER), FB_OK);
    test_net_restart(net, 0);
    test_net_settle(net);
    /* A new link is one of a member from its binding on. */
    connect(net, 1, 0, 0, 0, 30);
    assert_true(of(test_net_node(net, 0))->link[0].member != FB_NONE);
    carry_all(net, 1, 0, 0, 0);
    assert_true(of(test_net_node(net, 1))->link[0].member != FB_NONE);
    test_net_free(net);
}

static void a_proof_is_good_for_one_handshake_and_one_space(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(3, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    size_t len = invite(net, 0, space, 1, 0, bytes);
    join(net, 1, fb_span_of(bytes, len), NULL);
    connect(net, 1, 0, 0, 0, 1);
    /* The frame is caught and shown in another handshake, by another node. */
    uint8_t link = 0;
    const test_reply *reply =
        test_net_reply(net, test_net_ask(net, 1, (fb_verb)VERB_PEEK, 0, fb_span_of(&link, 1)));
    uint8_t frame[128] = {1};
    size_t frame_len = reply->len;
    assert_int_equal(frame_len, FB_INVITE_FRAME_BYTES_MAX - 1);
    memcpy(frame + 1, reply->bytes, frame_len);
    connect(net, 2, 0, 1, 1, 2);
    test_net_ask(net, 0, (fb_verb)VERB_FRAME, 0, fb_span_of(frame, frame_len + 1));
    assert_int_equal(of(test_net_node(net, 0))->closed[1], FB_ERR_INVITE);
    assert_int_equal(status_of(net, 0, 2), FB_MEMBER_NONE);
    assert_false(of(test_net_node(net, 0))->shown[1]); /* nameless to the end */

    frame[0] = 0;
    test_net_ask(net, 0, (fb_verb)VERB_FRAME, 0, fb_span_of(frame, frame_len + 1));
    assert_int_equal(of(test_net_node(net, 0))->closed[0], FB_OK);
    assert_int_equal(status_of(net, 0, 1), FB_MEMBER_PENDING);
    assert_true(of(test_net_node(net, 0))->shown[0]);

    /* The invite is used up for everybody else. */
    join(net, 2, fb_span_of(bytes, len), NULL);
    connect(net, 2, 0, 1, 1, 3);
    carry_all(net, 2, 0, 1, 1);
    assert_int_equal(of(test_net_node(net, 0))->closed[1], FB_ERR_INVITE);
    assert_int_equal(status_of(net, 0, 2), FB_MEMBER_NONE);
    test_net_free(net);
}

static void invites_end(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(2, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    size_t len = invite(net, 0, space, 1, 5, bytes);
    uint64_t asked = join(net, 1, fb_span_of(bytes, len), NULL);
    assert_false(test_net_reply(net, asked)->done);
    test_net_run(net, UINT64_C(6000000000));
    connect(net, 1, 0, 0, 0, 1);
    carry_all(net, 1, 0, 0, 0);
    assert_int_equal(of(test_net_node(net, 0))->closed[0], FB_ERR_INVITE);
    assert_int_equal(status_of(net, 0, 1), FB_MEMBER_NONE);
    /* Expired by the joiner's own clock, it is not even tried. */
    asked = join(net, 1, fb_span_of(bytes, len), NULL);
    assert_int_equal(test_net_reply(net, asked)->status, FB_ERR_INVITE);

    /* The table is bounded; what has expired makes room (the first one did). */
    uint8_t last[FB_INVITE_BYTES_MAX];
    uint32_t places = fb_options_small().sizes.invites;
    for (uint32_t i = 0; i < places; i++) invite(net, 0, space, 2, 0, last);
    fb_writer w = arguments();
    fb_write_id(&w, space);
    fb_write_u32(&w, 1);
    fb_write_u64(&w, 0);
    fb_write_span16(&w, fb_span_text("test:0"));
    assert_int_equal(answer(net, 0, FB_VERB_SPACE_INVITE, &w), FB_ERR_LIMIT);
    w = arguments();
    fb_write_id(&w, space);
    fb_write_u32(&w, FB_INVITE_USES_MAX + 1);
    fb_write_u64(&w, 0);
    fb_write_span16(&w, fb_span_text("test:0"));
    assert_int_equal(answer(net, 0, FB_VERB_SPACE_INVITE, &w), FB_ERR_REQUEST_MALFORMED);
    test_net_free(net);
}

/* Delivers changes in the given order, again and again until all are taken (as fetch does), and
 * tells what came out. False when the rest is refused for good. */
static bool deliver(test_net *net, uint32_t i, const fb_span *changes, const uint32_t *order,
                    uint32_t count)
{
    uint32_t left = count;
    bool taken[4] = {false};
    for (uint32_t round = 0; round < count && left > 0; round++) {
        for (uint32_t n = 0; n < count; n++) {
            if (taken[order[n]]) continue;
            fb_status status = apply(net, i, changes[order[n]]);
            if (status == FB_OK) {
                taken[order[n]] = true;
                left--;
            } else {
                assert_int_equal(status, FB_ERR_BATCH_POLICY);
            }
        }
    }
    return left == 0;
}

/* The next permutation in lexicographic order. */
static bool permute(uint32_t *order, uint32_t count)
{
    uint32_t i = count - 1;
    while (i > 0 && order[i - 1] >= order[i]) i--;
    if (i == 0) return false;
    uint32_t j = count - 1;
    while (order[j] <= order[i - 1]) j--;
    uint32_t t = order[i - 1];
    order[i - 1] = order[j];
    order[j] = t;
    for (uint32_t a = i, b = count - 1; a < b; a++, b--) {
        t = order[a];
        order[a] = order[b];
        order[b] = t;
    }
    return true;
}

static void statements_fold_to_one_result_in_any_order(void **state)
{
    (void)state;
    uint32_t orders = 0;
    for (uint32_t order[4] = {0, 1, 2, 3}, more = 1; more != 0; orders++) {
        forget_all();
        test_net *net = test_net_new(4, NULL);
        fb_id space = create(net, 0, "home");
        uint8_t b[4][2048];
        /* 0 makes 1 an admin, 1 makes 2 a reader, 0 makes 2 a writer, 2 says where it is twice
         * (the later one by stamp is the lesser in delivery half of the time). */
        const fb_span changes[4] = {
            statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 1), FB_ROLE_ADMIN, "", 10,
                      b[0]),
            statement(net, space, 1, FB_STATEMENT_MEMBER, key_at(net, 2), FB_ROLE_READER, "", 30,
                      b[1]),
            statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 2), FB_ROLE_WRITER, "", 20,
                      b[2]),
            statement(net, space, 1, FB_STATEMENT_ADDRESS, key_at(net, 1), FB_ROLE_NONE, "one:1",
                      40, b[3]),
        };
        assert_true(deliver(net, 0, changes, order, 4));
        assert_int_equal(status_of(net, 0, 1), FB_MEMBER_APPROVED);
        assert_int_equal(role_of(net, 0, 1), FB_ROLE_ADMIN);
        assert_int_equal(status_of(net, 0, 2), FB_MEMBER_APPROVED);
        assert_int_equal(role_of(net, 0, 2), FB_ROLE_WRITER);
        assert_int_equal(status_of(net, 0, 3), FB_MEMBER_NONE);
        assert_true(dials(test_net_node(net, 0), "one:1"));

        /* Once more, repeated: nothing changes. And after a restart. */
        assert_true(deliver(net, 0, changes, order, 4));
        test_net_restart(net, 0);
        test_net_settle(net);
        assert_int_equal(role_of(net, 0, 1), FB_ROLE_ADMIN);
        assert_int_equal(role_of(net, 0, 2), FB_ROLE_WRITER);
        test_net_free(net);
        more = permute(order, 4);
    }
    assert_int_equal(orders, 24);
}

static void the_latest_address_counts_in_any_order(void **state)
{
    (void)state;
    for (uint32_t order[3] = {0, 1, 2}, more = 1; more != 0;) {
        forget_all();
        test_net *net = test_net_new(2, NULL);
        fb_id space = create(net, 0, "home");
        uint8_t b[4][2048];
        assert_int_equal(apply(net, 0,
                               statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 1),
                                         FB_ROLE_READER, "", 1, b[3])),
                         FB_OK);
        static const char *const places[3] = {"a:1", "b:2", "c:3"};
        fb_span changes[3];
        for (int i = 0; i < 3; i++) {
            changes[i] = statement(net, space, 1, FB_STATEMENT_ADDRESS, key_at(net, 1),
                                   FB_ROLE_NONE, places[i], 10 + i, b[i]);
        }
        assert_true(deliver(net, 0, changes, order, 3));
        assert_true(dials(test_net_node(net, 0), "c:3"));
        assert_false(dials(test_net_node(net, 0), "a:1"));
        assert_false(dials(test_net_node(net, 0), "b:2"));
        test_net_free(net);
        more = permute(order, 3);
    }
}

static void who_has_no_right_states_nothing(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(3, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t b[2048];
    /* A stranger approves itself, or says where it is. */
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_MEMBER, key_at(net, 1),
                                     FB_ROLE_ADMIN, "", 1, b)),
                     FB_ERR_BATCH_POLICY);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_ADDRESS, key_at(net, 1),
                                     FB_ROLE_NONE, "a:1", 1, b)),
                     FB_ERR_BATCH_POLICY);
    /* A writer approves nobody, and speaks only of its own address. */
    assert_int_equal(apply(net, 0,
                           statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 1),
                                     FB_ROLE_WRITER, "", 2, b)),
                     FB_OK);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_MEMBER, key_at(net, 2),
                                     FB_ROLE_READER, "", 3, b)),
                     FB_ERR_BATCH_POLICY);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_MEMBER, key_at(net, 1),
                                     FB_ROLE_ADMIN, "", 3, b)),
                     FB_ERR_BATCH_POLICY);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_ADDRESS, key_at(net, 0),
                                     FB_ROLE_NONE, "a:1", 3, b)),
                     FB_ERR_BATCH_POLICY);
    /* The root is the creator's, about the creator. */
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_SPACE, key_at(net, 1),
                                     FB_ROLE_NONE, "mine", 4, b)),
                     FB_ERR_BATCH_POLICY);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 1, FB_STATEMENT_SPACE, key_at(net, 0),
                                     FB_ROLE_NONE, "mine", 4, b)),
                     FB_ERR_BATCH_POLICY);
    /* In a record that is not the one of its key. */
    fb_span odd =
        statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 2), FB_ROLE_READER, "", 5, b);
    b[32 + 15] ^= 1;
    assert_int_equal(apply(net, 0, odd), FB_ERR_STATEMENT);
    /* Keys of small order, and what is no point at all (EXPECTATIONS: refuse at enrolment). */
    fb_b32 small = {{1}};
    assert_int_equal(
        apply(net, 0,
              statement(net, space, 0, FB_STATEMENT_MEMBER, small, FB_ROLE_READER, "", 6, b)),
        FB_ERR_KEY);
    fb_b32 zero = {{0}};
    assert_int_equal(
        apply(net, 0,
              statement(net, space, 0, FB_STATEMENT_MEMBER, zero, FB_ROLE_READER, "", 6, b)),
        FB_ERR_KEY);

    const fb_node *node = test_net_node(net, 0);
    assert_int_equal(fb_space_check_author(node, 0, key_at(net, 0)), FB_OK);
    assert_int_equal(fb_space_check_author(node, 0, key_at(net, 1)), FB_OK);
    assert_int_equal(fb_space_check_author(node, 0, key_at(net, 2)), FB_ERR_BATCH_POLICY);
    assert_int_equal(apply(net, 0,
                           statement(net, space, 0, FB_STATEMENT_MEMBER, key_at(net, 2),
                                     FB_ROLE_READER, "", 7, b)),
                     FB_OK);
    assert_int_equal(fb_space_check_author(node, 0, key_at(net, 2)), FB_ERR_BATCH_POLICY);
    test_net_free(net);
}

/* 0 approved 1 and 2, and 2 does not know of 1 yet: 1 dials 2 and shows the statement. */
static void a_statement_shown_opens_a_link(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(4, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    size_t len = invite(net, 0, space, 3, 0, bytes);
    for (uint8_t i = 1; i <= 2; i++) {
        join(net, i, fb_span_of(bytes, len), NULL);
        connect(net, i, 0, 0, i, i);
        carry_all(net, i, 0, 0, i);
    }
    assert_int_equal(approve(net, 0, space, id_at(net, 2), FB_ROLE_WRITER), FB_OK);
    apply_all(net, 2);
    assert_int_equal(fb_space_own_status(test_net_node(net, 2), 0), FB_MEMBER_APPROVED);
    assert_int_equal(approve(net, 0, space, id_at(net, 1), FB_ROLE_READER), FB_OK);
    apply_all(net, 1);
    assert_int_equal(status_of(net, 2, 1), FB_MEMBER_NONE);

    connect(net, 1, 2, 3, 3, 9);
    assert_int_equal(carry_all(net, 1, 2, 3, 3) > 0, 1);
    assert_int_equal(status_of(net, 2, 1), FB_MEMBER_APPROVED);
    assert_int_equal(role_of(net, 2, 1), FB_ROLE_READER);
    assert_true(of(test_net_node(net, 2))->link[3].member != FB_NONE);
    assert_true(of(test_net_node(net, 1))->link[3].member != FB_NONE);

    /* Another node shows the same bytes as its own: they are about somebody else. */
    uint8_t frame[4096];
    fb_writer w = fb_writer_of(frame, sizeof frame);
    fb_write_u8(&w, 2); /* link */
    fb_membership_frame shown = {FB_MEMBER_APPROVED, written_at(written_count - 1)};
    fb_membership_frame_write(&shown, &w);
    connect(net, 3, 2, 2, 2, 11);
    assert_int_equal(answer(net, 2, VERB_FRAME, &w), FB_OK);
    assert_true(of(test_net_node(net, 2))->link[2].member == FB_NONE);
    assert_int_equal(status_of(net, 2, 3), FB_MEMBER_NONE);

    /* It was known by what it showed only; a restart forgets, the fetched statement stays. */
    test_net_restart(net, 2);
    test_net_settle(net);
    assert_int_equal(status_of(net, 2, 1), FB_MEMBER_NONE);
    apply_all(net, 2);
    test_net_restart(net, 2);
    test_net_settle(net);
    assert_int_equal(status_of(net, 2, 1), FB_MEMBER_APPROVED);
    test_net_free(net);
}

static void nothing_of_a_space_is_on_a_link_of_a_stranger(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(2, NULL);
    create(net, 0, "home");
    connect(net, 1, 0, 0, 0, 1);
    uint8_t link = 0;
    const test_reply *reply =
        test_net_reply(net, test_net_ask(net, 0, (fb_verb)VERB_PEEK, 0, fb_span_of(&link, 1)));
    assert_int_equal(reply->len, 0);
    assert_false(of(test_net_node(net, 0))->shown[0]);
    test_net_free(net);
}

static uint64_t authenticate(test_net *net, const uint8_t token[32])
{
    const test_reply *reply = test_net_reply(
        net, test_net_ask(net, 0, FB_VERB_APP_AUTHENTICATE, 0, fb_span_of(token, 32)));
    assert_true(reply->done);
    if (reply->status != FB_OK) {
        assert_int_equal(reply->status, FB_ERR_NOT_AUTHORISED);
        return 0;
    }
    fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
    return fb_read_u64(&r);
}

static void applications_have_tokens_and_spaces(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(1, NULL);
    fb_id space = create(net, 0, "home");
    create(net, 0, "work");
    fb_writer name = arguments();
    fb_write_span16(&name, fb_span_text("notes"));
    const test_reply *reply = ask(net, 0, FB_VERB_APP_CREATE, &name);
    assert_true(reply->done);
    assert_int_equal(reply->status, FB_OK);
    assert_int_equal(reply->len, 40);
    uint8_t token[32];
    memcpy(token, reply->bytes + 8, 32);
    uint64_t principal = authenticate(net, token);
    assert_int_equal(principal, 1);
    const fb_node *node = test_net_node(net, 0);
    assert_false(fb_space_allows(node, 0, principal));
    assert_true(fb_space_allows(node, 0, 0));

    /* The token itself is nowhere in the store. */
    fb_span key, value;
    for (size_t at = 0; test_net_stored(net, 0, at, &key, &value); at++) {
        for (size_t i = 0; i + 32 <= value.len; i++) {
            assert_memory_not_equal(value.p + i, token, 32);
        }
    }
    name = arguments();
    fb_write_span16(&name, fb_span_text("notes"));
    assert_int_equal(answer(net, 0, FB_VERB_APP_CREATE, &name), FB_ERR_EXISTS);
    fb_write_id(&name, space);
    assert_int_equal(answer(net, 0, FB_VERB_APP_ALLOW, &name), FB_OK);
    assert_true(fb_space_allows(node, 0, principal));
    assert_false(fb_space_allows(node, 1, principal));

    test_net_restart(net, 0);
    test_net_settle(net);
    assert_int_equal(authenticate(net, token), principal);
    assert_true(fb_space_allows(node, 0, principal));
    assert_false(fb_space_allows(node, 1, principal));

    /* An application manages nothing. */
    name = arguments();
    fb_write_span16(&name, fb_span_text("more"));
    reply = test_net_reply(
        net, test_net_ask(net, 0, FB_VERB_APP_CREATE, principal, fb_writer_span(&name)));
    assert_int_equal(reply->status, FB_ERR_NOT_AUTHORISED);

    name = arguments();
    fb_write_span16(&name, fb_span_text("notes"));
    assert_int_equal(answer(net, 0, FB_VERB_APP_REVOKE, &name), FB_OK);
    assert_int_equal(answer(net, 0, FB_VERB_APP_REVOKE, &name), FB_ERR_NOT_FOUND);
    assert_int_equal(authenticate(net, token), 0);
    assert_false(fb_space_allows(node, 0, principal));
    /* Its name may be given again, its number never. */
    reply = ask(net, 0, FB_VERB_APP_CREATE, &name);
    assert_int_equal(reply->status, FB_OK);
    memcpy(token, reply->bytes + 8, 32);
    assert_int_equal(authenticate(net, token), 2);
    test_net_restart(net, 0);
    test_net_settle(net);
    assert_int_equal(authenticate(net, token), 2);
    test_net_free(net);
}

static void a_damaged_value_ends_the_start(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(1, NULL);
    create(net, 0, "home");
    fb_span key, value;
    size_t at = 0;
    while (test_net_stored(net, 0, at, &key, &value) && key.p[0] != 'S') at++;
    uint8_t kept_key[16], kept[1024];
    size_t key_len = key.len, len = value.len;
    memcpy(kept_key, key.p, key_len);
    memcpy(kept, value.p, len);
    kept[0] = 2;
    test_net_store_put(net, 0, fb_span_of(kept_key, key_len), fb_span_of(kept, len));
    test_net_restart(net, 0);
    test_net_settle(net);
    assert_int_equal(test_net_last_end(net, 0), FB_ERR_VERSION_NEWER);
    assert_false(fb_node_is_running(test_net_node(net, 0)));
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_space_is_created_with_its_root),
        cmocka_unit_test(a_node_joins_and_is_approved),
        cmocka_unit_test(a_join_survives_restarts_of_either_side),
        cmocka_unit_test(a_proof_is_good_for_one_handshake_and_one_space),
        cmocka_unit_test(invites_end),
        cmocka_unit_test(statements_fold_to_one_result_in_any_order),
        cmocka_unit_test(the_latest_address_counts_in_any_order),
        cmocka_unit_test(who_has_no_right_states_nothing),
        cmocka_unit_test(a_statement_shown_opens_a_link),
        cmocka_unit_test(nothing_of_a_space_is_on_a_link_of_a_stranger),
        cmocka_unit_test(applications_have_tokens_and_spaces),
        cmocka_unit_test(a_damaged_value_ends_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
