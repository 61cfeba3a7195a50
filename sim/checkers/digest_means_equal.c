/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/hash.h"
#include "protocol/database/state.h"
#include "protocol/store/keys.h"
#include "sim/checkers/list.h"
#include "sim/workload/workload.h"

/* Nodes that agree on the fingerprint of an area hold the same records: every byte of them, and the
 * values that are stored apart. DESIGN 3.1, Anti-entropy. */

static void add(void *user, fb_span key, fb_span value)
{
    uint64_t *sum = user;
    /* Without tag and local number, which are each node's own. */
    uint64_t hash = fb_xxh64(key.p + 5, key.len - 5, key.p[0]);
    *sum += fb_xxh64(value.p, value.len, hash);
}

static uint64_t content_of(const fb_sim_store *store, uint32_t local)
{
    uint64_t sum = 0;
    static const uint8_t tags[] = {FB_TAG_RECORD, FB_TAG_FIELD};
    for (uint32_t i = 0; i < sizeof tags; i++) {
        uint8_t prefix[5];
        fb_writer w = fb_writer_of(prefix, sizeof prefix);
        fb_write_u8(&w, tags[i]);
        fb_write_u32(&w, local);
        fb_sim_store_walk(store, fb_writer_span(&w), add, &sum);
    }
    return sum;
}

static const fb_area *area_of(const fb_node *core, fb_id id)
{
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        const fb_area *area = &core->database->areas[i];
        if (area->used && area->stored && fb_id_equal(area->id, id)) return area;
    }
    return NULL;
}

static void look(fb_sim_world *world, fb_id space)
{
    fb_id id = fb_area_id(space, FB_AREA_COLLECTION, fb_span_text(fb_sim_collection));
    const fb_area *first = NULL;
    uint64_t content = 0;
    uint32_t who = 0;
    for (uint32_t i = 0; i < world->config.nodes && !world->stop; i++) {
        const fb_sim_node *node = &world->nodes[i];
        const fb_area *area =
            world->held_apart[i] || !node->running ? NULL : area_of(node->core, id);
        if (area == NULL) continue;
        uint64_t mine = content_of(&node->store, area->local);
        if (first == NULL) {
            first = area;
            content = mine;
            who = i;
        } else if (memcmp(area->root, first->root, 16) == 0 && mine != content) {
            fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_digest_means_equal.id,
                            "%s and %s have the same fingerprint and other records",
                            fb_sim_name(who), fb_sim_name(i));
        }
    }
}

static void round_end(fb_sim_world *world, void *own)
{
    (void)own;
    for (uint32_t s = 0; s < fb_sim_space_count(world) && world->config.reference; s++) {
        look(world, world->spaces[s]);
    }
}

const fb_sim_check fb_sim_check_digest_means_equal = {
    .id = "digest-means-equal",
    .musts = "DESIGN 3.1",
    .cost = "round",
    .text = "nodes with the same fingerprint of an area hold the same records, byte for byte",
    .round = round_end,
};
