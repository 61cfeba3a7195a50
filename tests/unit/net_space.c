/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/net_space.h"

#include "protocol/base/assert.h"
#include "protocol/link/link.h"

#define SECOND UINT64_C(1000000000)

const test_reply *test_net_answer(test_net *net, uint32_t i, fb_verb verb, const fb_writer *w)
{
    FB_ASSERT(!w->failed);
    const test_reply *reply = test_net_reply(net, test_net_ask(net, i, verb, 0, fb_writer_span(w)));
    FB_ASSERT(reply->done);
    return reply;
}

fb_id test_net_create_space(test_net *net, uint32_t i)
{
    uint8_t bytes[64];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_span16(&w, fb_span_text("home"));
    const test_reply *reply = test_net_answer(net, i, FB_VERB_SPACE_CREATE, &w);
    FB_ASSERT(reply->status == FB_OK);
    fb_reader r = fb_reader_of(fb_span_of(reply->bytes, reply->len));
    return fb_read_id(&r);
}

void test_net_join(test_net *net, uint32_t i, uint32_t inviter, fb_id space, fb_role role)
{
    uint8_t bytes[1024];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_u32(&w, 1);
    fb_write_u64(&w, 0);
    fb_write_span16(&w, fb_span_text(test_net_address(inviter)));
    const test_reply *reply = test_net_answer(net, inviter, FB_VERB_SPACE_INVITE, &w);
    FB_ASSERT(reply->status == FB_OK);
    w = fb_writer_of(bytes, sizeof bytes);
    fb_write_bytes(&w, reply->bytes, reply->len);
    fb_write_span16(&w, fb_span_text(test_net_address(i)));
    uint64_t asked = test_net_ask(net, i, FB_VERB_SPACE_JOIN, 0, fb_writer_span(&w));
    test_net_run(net, SECOND);
    FB_ASSERT(test_net_reply(net, asked)->done);
    FB_ASSERT(test_net_reply(net, asked)->status == FB_OK);
    w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, space);
    fb_write_id(&w, fb_node_self(test_net_node(net, i)));
    fb_write_u8(&w, (uint8_t)role);
    FB_ASSERT(test_net_answer(net, inviter, FB_VERB_SPACE_APPROVE, &w)->status == FB_OK);
    test_net_run(net, 5 * SECOND);
}

fb_id test_net_record_id(uint32_t n)
{
    fb_id id = {{0x01, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80}};
    fb_store_be(id.b + 12, n, 4);
    return id;
}

static void write_record(fb_writer *w, fb_id space, const char *collection, uint32_t record)
{
    fb_write_id(w, space);
    fb_write_u8(w, 1);
    fb_write_span16(w, fb_span_text(collection));
    fb_write_id(w, test_net_record_id(record));
}

fb_status test_net_put(test_net *net, uint32_t i, fb_id space, const char *collection,
                       uint32_t record, const char *value)
{
    static const uint8_t no_etag[16];
    uint8_t bytes[512];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    write_record(&w, space, collection, record);
    fb_write_u8(&w, 2); /* the other fields stay */
    fb_write_u8(&w, 0);
    fb_write_bytes(&w, no_etag, 16);
    fb_write_u16(&w, 1);
    fb_write_span16(&w, fb_span_text("t"));
    fb_write_u8(&w, 1);
    fb_write_span32(&w, fb_span_text(value));
    return test_net_answer(net, i, FB_VERB_RECORD_PUT, &w)->status;
}

bool test_net_has(test_net *net, uint32_t i, fb_id space, const char *collection, uint32_t record)
{
    uint8_t bytes[256];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    write_record(&w, space, collection, record);
    return test_net_answer(net, i, FB_VERB_RECORD_GET, &w)->status == FB_OK;
}

uint32_t test_net_link(test_net *net, uint32_t i, uint32_t j)
{
    const fb_node *node = test_net_node(net, i);
    fb_id peer = fb_node_self(test_net_node(net, j));
    for (uint32_t link = 0; link < fb_link_capacity(node); link++) {
        const fb_link_info *info = fb_link_at(node, link);
        if (info->state == FB_LINK_OPEN && fb_id_equal(info->peer, peer)) return link;
    }
    return FB_NONE;
}
