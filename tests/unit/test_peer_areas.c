/* SPDX-License-Identifier: Apache-2.0 */
/* Which collections a peer has: asked page by page, and what is not believed of an answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "protocol/core/internal.h"
#include "protocol/database/state.h"
#include "tests/unit/net_space.h"

#define SECOND UINT64_C(1000000000)

enum { A, B };

static const test_reply *ask(test_net *net, fb_id space, fb_id peer, fb_id after)
{
    uint8_t bytes[48];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_id(&w, peer);
    fb_write_id(&w, after);
    return test_net_answer(net, A, FB_VERB_PEER_AREAS, &w);
}

static void name_of(uint32_t n, char out[201])
{
    memset(out, 'x', 200);
    out[200] = 0;
    snprintf(out, 8, "%u", (unsigned)n);
    out[strlen(out)] = '-';
}

/* Names of which two fill an answer: all of them are told, each once, and no other. */
static void all_are_told_page_by_page(void **state)
{
    (void)state;
    enum { COUNT = 7 };
    test_net *net = test_net_new(2, NULL);
    fb_id space = test_net_create_space(net, A);
    test_net_join(net, B, A, space, FB_ROLE_WRITER);
    fb_id peer = fb_node_self(test_net_node(net, B)), after = {{0}};
    assert_int_equal(ask(net, space, peer, after)->len, 2); /* none yet */
    char name[201];
    for (uint32_t n = 0; n < COUNT; n++) {
        name_of(n, name);
        assert_int_equal(test_net_put(net, B, space, name, 1, "1"), FB_OK);
    }
    uint32_t told = 0, pages = 0;
    for (uint16_t count = 1; count != 0; pages++) {
        const test_reply *reply = ask(net, space, peer, after);
        assert_int_equal(reply->status, FB_OK);
        fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
        count = fb_read_u16(&r);
        for (uint16_t i = 0; i < count; i++) {
            fb_id id = fb_read_id(&r);
            assert_int_equal(fb_read_u8(&r), FB_AREA_COLLECTION);
            fb_span is = fb_read_span16(&r);
            fb_id right = fb_area_id(space, FB_AREA_COLLECTION, is);
            assert_memory_equal(id.b, right.b, sizeof id.b);
            assert_true(fb_id_compare(id, after) > 0);
            after = id;
            told++;
        }
        assert_true(fb_reader_done(&r));
    }
    assert_int_equal(told, COUNT);
    assert_true(pages > 3);
    /* What cannot be asked. */
    static const fb_id nobody = {{7}};
    assert_int_equal(ask(net, space, nobody, after)->status, FB_ERR_NOT_FOUND);
    assert_int_equal(ask(net, nobody, peer, after)->status, FB_ERR_NOT_FOUND);
    test_net_cut(net, A, B, true);
    test_net_run(net, 60 * SECOND);
    assert_int_equal(ask(net, space, peer, after)->status, FB_ERR_UNREACHABLE);
    test_net_free(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_told_page_by_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
