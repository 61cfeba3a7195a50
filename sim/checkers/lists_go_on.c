/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"
#include "sim/workload/workload.h"

/* A list has at most what was asked for, in the order of ids, and no record ends it: what is larger
 * than an answer is named, and the list goes on behind it. */

static void wrong(fb_sim_world *world, uint32_t node, const char *what)
{
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_lists_go_on.id, "a list of %s %s",
                    fb_sim_name(node), what);
}

static bool record_skip(fb_reader *r, fb_id *id)
{
    *id = fb_read_id(r);
    fb_read_bytes(r, 16);
    uint16_t fields = fb_read_u16(r);
    if (fields == UINT16_MAX) fields = 0;
    for (uint16_t i = 0; i < fields && !r->failed; i++) {
        fb_read_span16(r);
        uint16_t siblings = fb_read_u16(r);
        for (uint16_t k = 0; k < siblings && !r->failed; k++) {
            fb_read_bytes(r, 32 + 8);
            fb_read_span32(r);
        }
    }
    return !r->failed;
}

static void reply(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    (void)own;
    const fb_sim_client *client = fb_sim_client_of(world, node, fx->a);
    if (client == NULL || client->operation != FB_SIM_OP_LIST || fx->c != 0) return;
    if (fx->b == FB_ERR_LIMIT && ORACLE(LIST_MAY_END, true, false)) {
        wrong(world, node, "ends at a record");
    }
    if (fx->b != FB_OK) return;
    fb_reader r = fb_reader_of(fb_sim_fact_bytes(fx));
    bool whole = fb_read_u8(&r) == 1;
    uint16_t count = fb_read_u16(&r);
    fb_id before = {{0}}, id;
    if (client->record != 0) before = fb_sim_record_id(world, client->record - 1u);
    for (uint16_t i = 0; i < count; i++) {
        if (!record_skip(&r, &id) || memcmp(before.b, id.b, sizeof id.b) >= 0) {
            wrong(world, node, "is out of order");
            return;
        }
        before = id;
    }
    if (!fb_reader_done(&r) || count > client->items) wrong(world, node, "has more than asked for");
    if (count == 0 && !whole) wrong(world, node, "stands still");
}

const fb_sim_check fb_sim_check_lists_go_on = {
    .id = "lists-go-on",
    .musts = "DESIGN 8",
    .cost = "O(records) a list",
    .text = "a list is in order, within what was asked for, and ends at no record",
    .reply = reply,
};
