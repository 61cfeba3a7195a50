/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/plane.h"

#include "protocol/database/state.h"

static void layout(fb_node *node, fb_arena *arena)
{
    node->database = fb_arena_take(arena, 1, sizeof *node->database);
    fb_areas_layout(node, arena);
    fb_vectors_layout(node, arena);
    fb_stage_layout(node, arena);
    fb_builders_layout(node, arena);
    fb_wanted_layout(node, arena);
    fb_fetch_layout(node, arena);
    fb_serve_layout(node, arena);
    fb_vector_exchange_layout(node, arena);
    fb_watch_layout(node, arena);
    fb_onward_layout(node);
    fb_reports_layout(node);
    fb_reported_layout(node);
    fb_fold_layout(node);
    fb_compare_layout(node, arena);
    fb_verify_layout(node, arena);
    fb_peer_areas_layout(node, arena);
    fb_put_layout(node, arena);
    fb_get_layout(node);
    fb_area_list_layout(node);
    fb_cut_layout(node, arena);
    fb_own_reading_layout(node, arena);
    fb_mend_layout(node, arena);
}

static void reset(fb_node *node)
{
    fb_areas_reset(node);
    fb_vectors_reset(node);
    fb_stage_clear(node);
    fb_builders_reset(node);
    fb_wanted_reset(node);
    fb_fetch_reset(node);
    fb_serve_reset(node);
    fb_vector_exchange_reset(node);
    fb_compare_reset(node);
    fb_verify_reset(node);
    fb_peer_areas_reset(node);
    fb_put_reset(node);
    fb_watch_reset(node);
    fb_cut_reset(node);
    fb_own_reading_reset(node);
    fb_mend_reset(node);
    node->database->serial = 0;
    memset(node->database->secret, 0, sizeof node->database->secret);
}

static void durable(fb_node *node)
{
    fb_vectors_durable(node);
    fb_areas_durable(node);
    fb_watch_durable(node);
    fb_mend_durable(node);
    fb_compare_durable(node);
}

static void started(fb_node *node)
{
    fb_mend_started(node);
    fb_reports_started(node);
}

static void flush(fb_node *node)
{
    fb_put_flush(node);
    fb_watch_flush(node);
}

const fb_plane fb_database_plane = {
    .name = "database",
    .layout = layout,
    .reset = reset,
    .load = fb_database_load,
    .started = started,
    .seal = fb_database_seal,
    .durable = durable,
    .flush = flush,
};
