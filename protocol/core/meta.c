/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/meta.h"

#include "protocol/base/mutant.h"
#include "protocol/store/keys.h"
#include "protocol/store/store.h"

typedef enum meta_item {
    META_VERSION = 1,     /* u32 */
    META_INCARNATION = 2, /* u64: the newest; DESIGN 2: stored before anything else is written */
    META_UUID_MARK = 3,   /* 16 bytes: every UUID given is below it */
} meta_item;

#define META_WRITE_BYTES (3 * (FB_WRITE_ENTRY_HEAD + 8 + 16))

/* The mark runs ahead of the clock so that it is stored rarely, and little, since after a restart
 * the ids' time goes on from it. */
#define MARK_AHEAD_MS 4000u

static fb_span meta_key(uint8_t key[2], meta_item item)
{
    key[0] = FB_TAG_META;
    key[1] = (uint8_t)item;
    return fb_span_of(key, 2);
}

static void put_mark(fb_node *node, uint64_t ms)
{
    fb_id mark = {{0}};
    fb_store_be(mark.b, ms > FB_UUID_MS_MAX ? FB_UUID_MS_MAX : ms, 6);
    memset(mark.b + 6, 0xff, 10);
    mark.b[6] = 0x7f;
    mark.b[8] = 0xbf;
    uint8_t key[2];
    fb_store_put_own(node, meta_key(key, META_UUID_MARK), fb_span_of(mark.b, sizeof mark.b));
    node->uuid_mark = mark;
    node->uuid_mark_w = fb_w_building(node);
    fb_digest_touch(node, FB_DIGEST_NODE, 0);
}

static void loaded(fb_node *node, fb_op *op)
{
    fb_read_entry version, mark;
    if (fb_op_status(op) != FB_OK) {
        fb_incarnation_end(node, FB_ERR_STORE_FAILED);
        return;
    }
    if (fb_op_value(node, op, 0, &version)) {
        fb_reader r = fb_reader_of(version.value);
        uint32_t number = fb_read_u32(&r);
        if (!fb_reader_done(&r)) {
            fb_incarnation_end(node, FB_ERR_STORE_DAMAGED);
            return;
        }
        if (number > FB_STORE_VERSION) {
            fb_log(node, FB_LOG_ERROR, "the store was written by a newer program",
                   (fb_span){NULL, 0});
            fb_incarnation_end(node, FB_ERR_VERSION_NEWER);
            return;
        }
    }
    fb_uuid_gen_init(&node->uuid, node->seed, node->incarnation);
    if (MUTANT(UUID_MARK_UNREAD, true, false) && fb_op_value(node, op, 1, &mark)) {
        fb_id last;
        if (mark.value.len != sizeof last.b) {
            fb_incarnation_end(node, FB_ERR_STORE_DAMAGED);
            return;
        }
        memcpy(last.b, mark.value.p, sizeof last.b);
        if (fb_uuid_gen_resume(&node->uuid, last) != FB_OK) {
            fb_incarnation_end(node, FB_ERR_STORE_DAMAGED);
            return;
        }
        node->uuid_mark = last;
    }
    /* The first mark of the incarnation is stored with it, so that a node that is running can give
     * ids at once. */
    uint64_t now_ms = node->wall_us < 0 ? 0 : (uint64_t)node->wall_us / 1000;
    put_mark(node, fb_max_u64(now_ms, fb_uuid_ms(node->uuid_mark)) + MARK_AHEAD_MS);
    uint8_t key[2], value[8];
    fb_store_be(value, FB_STORE_VERSION, 4);
    fb_put(node, meta_key(key, META_VERSION), fb_span_of(value, 4));
    fb_store_be(value, node->incarnation, 8);
    fb_put(node, meta_key(key, META_INCARNATION), fb_span_of(value, 8));
    fb_plane_loaded(node);
}

void fb_meta_load(fb_node *node)
{
    uint8_t key[2];
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, loaded, META_WRITE_BYTES, 3);
    FB_ASSERT(op != NULL);
    fb_op_read_key(op, meta_key(key, META_VERSION), 4);
    fb_op_read_key(op, meta_key(key, META_UUID_MARK), 16);
    fb_op_issue(node, op);
}

/* With `durable` only ids up to a mark that is durable are given: a restart goes on above it. */
static fb_status new_uuid(fb_node *node, bool durable, fb_id *out)
{
    fb_uuid_gen next = node->uuid;
    fb_id id;
    FB_TRY(fb_uuid_gen_next(&next, node->wall_us, &id));
    bool stored = fb_w_durable(node) >= node->uuid_mark_w;
    if (stored) node->uuid_durable = node->uuid_mark;
    uint64_t ms = fb_uuid_ms(id);
    bool above = fb_id_compare(id, node->uuid_mark) > 0;
    bool near = ms + MARK_AHEAD_MS / 2 > fb_uuid_ms(node->uuid_mark) &&
                fb_uuid_ms(node->uuid_mark) < FB_UUID_MS_MAX;
    /* A mark that is still on its way is left alone unless it is too low already. */
    if (near && (stored || (above && !durable))) put_mark(node, ms + MARK_AHEAD_MS);
    bool early = fb_id_compare(id, node->uuid_durable) > 0;
    if (durable && MUTANT(ID_BEFORE_ITS_MARK, early, false)) return FB_ERR_AGAIN;
    if (fb_id_compare(id, node->uuid_mark) > 0) return FB_ERR_CLOCK;
    node->uuid = next;
    *out = id;
    fb_observe(node, FB_FACT_UUID, 0, 0, fb_span_of(id.b, sizeof id.b));
    fb_digest_touch(node, FB_DIGEST_NODE, 0);
    return FB_OK;
}

fb_status fb_new_uuid(fb_node *node, fb_id *out)
{
    return new_uuid(node, true, out);
}

fb_status fb_new_uuid_held(fb_node *node, fb_id *out)
{
    return new_uuid(node, false, out);
}
