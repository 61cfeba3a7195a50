/* SPDX-License-Identifier: Apache-2.0 */
/* AREAS: the areas of a space with their fingerprints and executed vectors. */
#include "protocol/database/state.h"

static bool write_head(const fb_area *area, uint32_t entries, fb_writer *w)
{
    fb_write_id(w, area->id);
    fb_write_u8(w, area->kind);
    fb_write_span16(w, fb_span_of(area->name, area->name_len));
    fb_write_bytes(w, area->root, sizeof area->root);
    fb_write_u32(w, entries);
    return !w->failed;
}

static void write_area(const fb_node *node, const fb_area *area, fb_writer *w)
{
    uint32_t count = 0;
    write_head(area, 0, w);
    size_t count_at = w->at - 4;
    for (uint32_t at = area->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (v->closed || v->batch == 0) continue;
        count++;
        fb_write_id(w, v->node);
        fb_write_u64(w, v->incarnation);
        fb_write_u64(w, v->batch);
        fb_write_u64(w, v->last_seq);
    }
    if (!w->failed) fb_store_be(w->p + count_at, count, 4);
}

/* One of which all was taken back is to nobody what it was to who took it. */
static bool is_empty(const fb_node *node, const fb_area *area)
{
    for (uint32_t at = area->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (v->batch != 0) return false;
    }
    return area->kind != FB_AREA_SPACE && area->builder == 0;
}

static void on_areas(fb_node *node, fb_request request, fb_span arguments)
{
    fb_reader r = fb_reader_of(arguments);
    uint32_t space;
    if (request.principal != 0) {
        fb_refuse(node, request, FB_ERR_NOT_AUTHORISED);
        return;
    }
    fb_status status = fb_space_read(node, &r, request.principal, &space);
    uint16_t most = fb_read_u16(&r);
    fb_id after = {{0}};
    if (fb_reader_left(&r) != 0) after = fb_read_id(&r);
    if (status == FB_OK && !fb_reader_done(&r)) status = FB_ERR_REQUEST_MALFORMED;
    if (status != FB_OK) {
        fb_refuse(node, request, status);
        return;
    }
    fb_stage *stage = &node->database->stage;
    fb_stage_clear(node);
    size_t cap = stage->set.cap < FB_REPLY_BYTES_MAX ? stage->set.cap : FB_REPLY_BYTES_MAX;
    fb_writer w = fb_writer_of(stage->set.bytes, cap);
    uint32_t count = 0;
    fb_write_u16(&w, 0);
    for (uint32_t at = node->database->spaces[space].first; at != 0 && count < most;) {
        const fb_area *area = fb_area_get(node, at - 1);
        at = area->next;
        if (!area->stored || fb_id_compare(area->id, after) <= 0 || is_empty(node, area)) continue;
        size_t before = w.at;
        write_area(node, area, &w);
        if (w.failed) {
            w.failed = false;
            w.at = before;
            if (count > 0 || !write_head(area, FB_AREA_TOO_LARGE, &w)) break;
        }
        count++;
    }
    fb_store_be(w.p, count, 2);
    fb_reply(node, request.index, FB_OK, fb_writer_span(&w));
}

void fb_area_list_layout(fb_node *node)
{
    fb_verb_register(node, FB_VERB_AREAS, on_areas);
}
