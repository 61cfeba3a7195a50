/* SPDX-License-Identifier: Apache-2.0 */
/* What the requirement catalogue (specs-conformance/) asks for and no test of one part shows: whole
 * nodes, memory stores, links without faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protocol/link/link.h"
#include "protocol/messaging/messaging.h"
#include "protocol/rpc/rpc.h"
#include "protocol/space/invite.h"
#include "tests/unit/net_space.h"

#define SECOND_NS UINT64_C(1000000000)

static fb_id create(test_net *net, uint32_t i, const char *name)
{
    uint8_t bytes[64];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_span16(&w, fb_span_text(name));
    const test_reply *reply = test_net_answer(net, i, FB_VERB_SPACE_CREATE, &w);
    assert_int_equal(reply->status, FB_OK);
    fb_id space;
    memcpy(space.b, reply->bytes, sizeof space.b);
    return space;
}

static uint32_t member_of(test_net *net, uint32_t i, uint32_t space, uint32_t j)
{
    return fb_member_find(test_net_node(net, i), space, fb_node_self(test_net_node(net, j)));
}

static const fb_message_counts *counts(test_net *net, uint32_t i, uint32_t j)
{
    return fb_message_counts_of(test_net_node(net, i), member_of(net, i, 0, j));
}

/* An application that may use a space has its records and nothing else: no verb publishes,
 * subscribes, calls another node or looks into messaging for it. */
/* FM-1-1, FM-3.6-1, FM-3.6-3, FM-7.2-3, FM-11-6, FM-11-8 */
static void applications_have_records_and_nothing_else(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_span16(&w, fb_span_text("editor"));
    const test_reply *made = test_net_answer(net, 0, FB_VERB_APP_CREATE, &w);
    assert_int_equal(made->status, FB_OK);
    uint64_t principal = fb_load_be64(made->bytes);
    fb_write_id(&w, space);
    assert_int_equal(test_net_answer(net, 0, FB_VERB_APP_ALLOW, &w)->status, FB_OK);

    test_net_clear_facts(net);
    for (uint32_t verb = 0; verb < FB_VERBS_MAX; verb++) {
        bool records = verb >= FB_VERB_RECORD_PUT && verb <= FB_VERB_RECORD_BATCH;
        if (records) continue;
        /* A space and one id: well-formed for PUBLISH, and for others as good as anything. */
        w = fb_writer_of(bytes, sizeof bytes);
        if (verb != FB_VERB_STATUS && verb != FB_VERB_SPACE_LIST && verb != FB_VERB_PEER_LIST &&
            verb != FB_VERB_PEER_MESSAGES) {
            fb_write_id(&w, space);
            fb_write_u16(&w, 1);
            fb_write_id(&w, test_net_record_id(1));
        }
        uint64_t asked = test_net_ask(net, 0, (fb_verb)verb, principal, fb_writer_span(&w));
        const test_reply *reply = test_net_reply(net, asked);
        assert_true(reply->done);
        assert_int_not_equal(reply->status, FB_OK);
        assert_int_equal(reply->len, 0);
        if (verb == FB_VERB_PUBLISH) assert_int_equal(reply->status, FB_ERR_NOT_AUTHORISED);
    }
    test_net_run(net, SECOND_NS);
    assert_int_equal(test_net_facts(net, 0, FB_FACT_SENT), 0);
    test_net_free(net);
}

static uint32_t open_links(const fb_node *node, uint32_t space)
{
    uint32_t count = 0;
    for (uint32_t link = 0; link < fb_link_capacity(node); link++) {
        const fb_link_info *info = fb_link_at(node, link);
        count += info->state == FB_LINK_OPEN && (space == FB_NONE || info->space == space);
    }
    return count;
}

/* One pair of nodes, two spaces: two links, and what is written in one space stays in it. */
/* FM-6.2-2, FM-9-2, MP-7-1 */
static void two_spaces_are_two_links(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id one = create(net, 0, "one");
    test_net_join(net, 1, 0, one, FB_ROLE_WRITER);
    assert_int_equal(open_links(test_net_node(net, 0), FB_NONE), 1);
    fb_id two = create(net, 0, "two");
    test_net_join(net, 1, 0, two, FB_ROLE_WRITER);
    for (uint32_t i = 0; i < 2; i++) {
        const fb_node *node = test_net_node(net, i);
        assert_int_equal(open_links(node, FB_NONE), 2);
        assert_int_equal(open_links(node, fb_space_find(node, one)), 1);
        assert_int_equal(open_links(node, fb_space_find(node, two)), 1);
    }
    assert_int_equal(test_net_put(net, 0, one, "notes", 1, "1"), FB_OK);
    test_net_run(net, SECOND_NS);
    assert_true(test_net_has(net, 1, one, "notes", 1));
    assert_false(test_net_has(net, 1, two, "notes", 1));
    assert_false(test_net_has(net, 0, two, "notes", 1));
    test_net_free(net);
}

/* Two nodes write one field apart from each other. Each merges a sibling of its own change and says
 * so once, however many more come; the third has no change of its own among them and says nothing.
 */
/* FM-5.2-4, MP-6-18 */
static void conflict_is_told_by_whose_change_it_is(void **state)
{
    (void)state;
    test_net *net = test_net_new(3, NULL);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    test_net_join(net, 2, 0, space, FB_ROLE_WRITER);
    test_net_run(net, 60 * SECOND_NS);
    for (uint32_t r = 1; r <= 2; r++) {
        assert_int_equal(test_net_put(net, 0, space, "notes", r, "0"), FB_OK);
    }
    test_net_run(net, 10 * SECOND_NS);
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t j = 0; j < 3; j++) test_net_cut(net, i, j, i != j);
    }
    for (uint32_t r = 1; r <= 2; r++) {
        assert_int_equal(test_net_put(net, 0, space, "notes", r, "10"), FB_OK);
        assert_int_equal(test_net_put(net, 1, space, "notes", r, "11"), FB_OK);
    }
    test_net_run(net, 20 * SECOND_NS);
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t j = 0; j < 3; j++) test_net_cut(net, i, j, false);
    }
    test_net_run(net, 120 * SECOND_NS);
    assert_int_equal(counts(net, 0, 1)->conflicts, 1);
    assert_int_equal(counts(net, 1, 0)->conflicts, 1);
    /* The third hears it from those to whom it was linked by then. */
    uint64_t heard = counts(net, 2, 0)->conflicts + counts(net, 2, 1)->conflicts;
    assert_in_range(heard, 1, 2);
    assert_int_equal(counts(net, 0, 2)->conflicts, 0);
    assert_int_equal(counts(net, 1, 2)->conflicts, 0);
    test_net_free(net);
}

/* A peer whose batches are folded, as a later version will have them. */
static uint32_t asked_folded;

static fb_status folded(fb_node *node, uint32_t call, uint32_t link, fb_span arguments, void *state)
{
    (void)node;
    (void)call;
    (void)link;
    (void)arguments;
    (void)state;
    asked_folded++;
    return FB_ERR_CALL_FOLDED;
}

/* Absent until the peer has folded what is missing: `sync` goes to that peer, once for each answer
 * that says so, and is answered there with one `changed` that leads to nothing but asking again. */
/* FM-8.3-4, FM-12.5-1, MP-6-10 */
static void a_folded_answer_leads_to_sync(void **state)
{
    (void)state;
    test_net *net = test_net_new(2, NULL);
    fb_id space = test_net_create_space(net, 0);
    test_net_join(net, 1, 0, space, FB_ROLE_WRITER);
    test_net_run(net, 10 * SECOND_NS);
    static const fb_method_ops ops = {.begin = folded};
    asked_folded = 0;
    fb_method_register(test_net_node(net, 0), FB_METHOD_FETCH, &ops);
    uint64_t before = counts(net, 0, 1)->delivered;
    assert_int_equal(test_net_put(net, 0, space, "notes", 1, "1"), FB_OK);
    assert_int_not_equal(asked_folded, 0);
    assert_false(test_net_has(net, 1, space, "notes", 1));
    /* What reached the peer of that node is `sync`: it wrote nothing and has nothing to tell on. */
    assert_int_equal(counts(net, 0, 1)->delivered - before, asked_folded);
    test_net_free(net);
}

/* FI-2-1 */
static void records_are_named_by_uuids_of_version_7(void **state)
{
    (void)state;
    test_net *net = test_net_new(1, NULL);
    fb_id space = test_net_create_space(net, 0);
    static const struct {
        uint8_t version, variant;
        fb_status status;
    } cases[] = {
        {0x70, 0x80, FB_OK},
        {0x70, 0xb0, FB_OK},
        {0x40, 0x80, FB_ERR_REQUEST_MALFORMED},
        {0x70, 0xc0, FB_ERR_REQUEST_MALFORMED},
        {0x70, 0x40, FB_ERR_REQUEST_MALFORMED},
    };
    static const uint8_t no_etag[16];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fb_id record = test_net_record_id(1);
        record.b[6] = cases[i].version;
        record.b[8] = cases[i].variant;
        uint8_t bytes[256];
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_write_id(&w, space);
        fb_write_u8(&w, 1);
        fb_write_span16(&w, fb_span_text("notes"));
        fb_write_id(&w, record);
        fb_write_u8(&w, 2);
        fb_write_u8(&w, 0);
        fb_write_bytes(&w, no_etag, sizeof no_etag);
        fb_write_u16(&w, 0);
        assert_int_equal(test_net_answer(net, 0, FB_VERB_RECORD_PUT, &w)->status, cases[i].status);
    }
    test_net_free(net);
}

/* An invite of node 0, for people to carry; a forged one has another secret. */
static size_t invite(test_net *net, fb_id space, bool forged, uint8_t bytes[1024])
{
    fb_writer w = fb_writer_of(bytes, 1024);
    fb_write_id(&w, space);
    fb_write_u32(&w, 1);
    fb_write_u64(&w, 0);
    fb_write_span16(&w, fb_span_text(test_net_address(0)));
    const test_reply *reply = test_net_answer(net, 0, FB_VERB_SPACE_INVITE, &w);
    assert_int_equal(reply->status, FB_OK);
    fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
    fb_invite made;
    assert_int_equal(fb_invite_read(fb_read_span16(&r), &made), FB_OK);
    if (forged) made.secret.b[0] ^= 1;
    uint8_t text[FB_INVITE_BYTES_MAX];
    fb_writer t = fb_writer_of(text, sizeof text);
    fb_invite_write(&made, &t);
    w = fb_writer_of(bytes, 1024);
    fb_write_span16(&w, fb_writer_span(&t));
    return w.at;
}

/* Findings, profile 7: a stranger behind an address keeps its honest neighbours from joining for a
 * minute after its own link has ended. When the profile changes, so does this. */
static void neighbours_pay_for_a_stranger(void **state)
{
    (void)state;
    test_net *net = test_net_new(3, NULL);
    fb_id space = test_net_create_space(net, 0);
    uint8_t bytes[1024];
    size_t len = invite(net, space, true, bytes);
    test_net_ask(net, 2, FB_VERB_SPACE_JOIN, 0, fb_span_of(bytes, len));
    test_net_run(net, 31 * SECOND_NS); /* its pending link has ended */
    len = invite(net, space, false, bytes);
    uint64_t asked = test_net_ask(net, 1, FB_VERB_SPACE_JOIN, 0, fb_span_of(bytes, len));
    test_net_run(net, 20 * SECOND_NS);
    assert_false(test_net_reply(net, asked)->done);
    test_net_run(net, 120 * SECOND_NS);
    assert_true(test_net_reply(net, asked)->done);
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(applications_have_records_and_nothing_else),
        cmocka_unit_test(two_spaces_are_two_links),
        cmocka_unit_test(conflict_is_told_by_whose_change_it_is),
        cmocka_unit_test(a_folded_answer_leads_to_sync),
        cmocka_unit_test(records_are_named_by_uuids_of_version_7),
        cmocka_unit_test(neighbours_pay_for_a_stranger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
