/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted of each member's messages, for the operator: every reason of profile 5 for
 * itself, beside the measured clock offset, which is what `stale` and `from_future` are about. */
#include "protocol/messaging/state.h"

#define LINE_BYTES_MAX (16 + 16 + 1 + 8 + 4 * 8 + 1 + FB_MESSAGE_REASONS * 10)
#define ANSWER_BYTES   16384u

_Static_assert(ANSWER_BYTES <= FB_REPLY_BYTES_MAX && LINE_BYTES_MAX < ANSWER_BYTES, "lines fit");

static bool is_silent(const fb_message_counts *counts)
{
    uint64_t sum = counts->delivered + counts->floor_resets + counts->dropped;
    for (uint32_t i = 0; i < FB_MESSAGE_REASONS; i++) sum += counts->refused[i];
    return sum == 0;
}

static void write_line(const fb_node *node, uint32_t space, uint32_t member, fb_writer *w)
{
    const fb_message_counts *counts = &node->messaging->sender[member].counts;
    uint32_t link = fb_link_to(node, space, member);
    const fb_link_info *info = link != FB_NONE ? fb_link_at(node, link) : NULL;
    bool known = info != NULL && info->offset_known;
    fb_write_id(w, fb_space_id(node, space));
    fb_write_id(w, fb_member_id(node, member));
    fb_write_u8(w, known);
    fb_write_u64(w, known ? (uint64_t)info->clock_offset_us : 0);
    fb_write_u64(w, counts->delivered);
    fb_write_u64(w, counts->conflicts);
    fb_write_u64(w, counts->floor_resets);
    fb_write_u64(w, counts->dropped);
    size_t reasons_at = w->at;
    uint8_t reasons = 0;
    fb_write_u8(w, 0);
    for (uint32_t i = 0; i < FB_MESSAGE_REASONS; i++) {
        if (counts->refused[i] == 0) continue;
        fb_write_u16(w, (uint16_t)(FB_ERR_TOO_LARGE + i));
        fb_write_u64(w, counts->refused[i]);
        reasons++;
    }
    w->p[reasons_at] = reasons;
}

void fb_counts_request(fb_node *node, fb_request request, fb_span arguments)
{
    fb_status status = FB_OK;
    if (arguments.len != 0) status = FB_ERR_REQUEST_MALFORMED;
    /* FM-4.1-6 */
    if (request.principal != 0) status = FB_ERR_NOT_AUTHORISED;
    if (status != FB_OK) {
        fb_reply(node, request.index, status, (fb_span){NULL, 0});
        return;
    }
    uint8_t answer[ANSWER_BYTES];
    fb_writer w = fb_writer_of(answer, sizeof answer);
    uint16_t count = 0;
    bool whole = true;
    fb_write_u8(&w, 1);
    fb_write_u16(&w, 0);
    for (uint32_t space = 0; space < fb_space_capacity(node); space++) {
        if (!fb_space_exists(node, space)) continue;
        for (uint32_t member = fb_member_first(node, space); member != FB_NONE;
             member = fb_member_next(node, member)) {
            if (is_silent(&node->messaging->sender[member].counts)) continue;
            if (w.cap - w.at < LINE_BYTES_MAX) {
                whole = false;
                break;
            }
            write_line(node, space, member, &w);
            count++;
        }
    }
    answer[0] = whole;
    fb_store_be(answer + 1, count, 2);
    fb_reply(node, request.index, FB_OK, fb_writer_span(&w));
}
