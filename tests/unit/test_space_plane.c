/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces, invites, joining, approval, what links show, applications. */
#include "tests/unit/space_stand_in.h"

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
    assert_int_equal(list->len, 2 + 16 + 2 + 4 + 2 + 20);
    assert_memory_equal(list->bytes + 20, "home", 4);

    test_net_restart(net, 0);
    test_net_run(net, UINT64_C(1000000000));
    assert_int_equal(written_count, 1);
    list = ask(net, 0, FB_VERB_SPACE_LIST, NULL);
    assert_int_equal(list->len, 2 + 16 + 2 + 4 + 2 + 20);

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

/* MP-7-15 */
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

    /* Asked again: at once, nothing is written. A lesser role is given with a cut, then a greater
     * one again. */
    assert_int_equal(approve(net, 0, space, id_at(net, 1), FB_ROLE_WRITER), FB_OK);
    assert_int_equal(written_count, 3);
    assert_int_equal(approve(net, 0, space, id_at(net, 1), FB_ROLE_READER), FB_OK);
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

/* MP-7-14 */
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

/* The link that asked is gone before the request is durable, and a stranger has its place. */
/* MP-7-17 */
static void an_answer_is_for_who_asked(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(3, NULL);
    fb_id space = create(net, 0, "home");
    uint8_t bytes[FB_INVITE_BYTES_MAX];
    size_t len = invite(net, 0, space, 1, 0, bytes);
    join(net, 1, fb_span_of(bytes, len), NULL);
    test_net_settle(net);
    connect(net, 1, 0, 0, 0, 1);
    test_net_pause_store(net, 0, true);
    assert_true(carry(net, 1, 0, 0, 0));
    assert_int_equal(status_of(net, 0, 1), FB_MEMBER_PENDING);
    assert_false(of(test_net_node(net, 0))->shown[0]); /* held back */
    connect(net, 2, 0, 1, 0, 2);
    test_net_pause_store(net, 0, false);
    test_net_settle(net);
    assert_false(of(test_net_node(net, 0))->shown[0]);
    assert_false(of(test_net_node(net, 0))->kept[0]);
    /* Who asked is answered on its next link. */
    connect(net, 1, 0, 0, 1, 3);
    assert_int_equal(carry_all(net, 1, 0, 0, 1), 2);
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

/* 0 approved 1 and 2, and 2 does not know of 1 yet: 1 dials 2 and shows the statement. */
/* MP-7-16 */
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

/* MP-7-12 */
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

/* FM-10-1 */
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
    kept[0] = 3;
    test_net_store_put(net, 0, fb_span_of(kept_key, key_len), fb_span_of(kept, len));
    test_net_restart(net, 0);
    test_net_settle(net);
    assert_int_equal(test_net_last_end(net, 0), FB_ERR_VERSION_NEWER);
    assert_false(fb_node_is_running(test_net_node(net, 0)));
    test_net_free(net);
}

/* The one before had no recovery key behind the creator's. */
static void a_space_of_the_first_version_is_read(void **state)
{
    (void)state;
    forget_all();
    test_net *net = test_net_new(1, NULL);
    create(net, 0, "home");
    fb_span key, value;
    size_t at = 0;
    while (test_net_stored(net, 0, at, &key, &value) && key.p[0] != 'S') at++;
    uint8_t kept_key[16], kept[1024];
    const size_t creator_end = 1 + 16 + 32;
    size_t key_len = key.len, len = value.len - 32;
    memcpy(kept_key, key.p, key_len);
    memcpy(kept, value.p, creator_end);
    memcpy(kept + creator_end, value.p + creator_end + 32, len - creator_end);
    kept[0] = 1;
    test_net_store_put(net, 0, fb_span_of(kept_key, key_len), fb_span_of(kept, len));
    test_net_restart(net, 0);
    test_net_settle(net);
    assert_true(fb_node_is_running(test_net_node(net, 0)));
    assert_true(fb_span_equal(fb_space_name(test_net_node(net, 0), 0), fb_span_text("home")));
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_space_is_created_with_its_root),
        cmocka_unit_test(a_node_joins_and_is_approved),
        cmocka_unit_test(a_join_survives_restarts_of_either_side),
        cmocka_unit_test(a_proof_is_good_for_one_handshake_and_one_space),
        cmocka_unit_test(an_answer_is_for_who_asked),
        cmocka_unit_test(invites_end),
        cmocka_unit_test(a_statement_shown_opens_a_link),
        cmocka_unit_test(nothing_of_a_space_is_on_a_link_of_a_stranger),
        cmocka_unit_test(applications_have_tokens_and_spaces),
        cmocka_unit_test(a_damaged_value_ends_the_start),
        cmocka_unit_test(a_space_of_the_first_version_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
