/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is taken for the time of some work is given back with its end. A table whose places
 * leak, one here and there, refuses honest work after a long life; so after each round in which all
 * nodes agreed and were quiet, every such table has to be empty. */
#include "sim/checkers/tables_empty.h"

#include "protocol/database/state.h"
#include "protocol/rpc/state.h"
#include "protocol/store/store.h"
#include "sim/checkers/list.h"
#include "sim/workload/director.h"

typedef struct left_over {
    const char *what;
    uint64_t count;
    bool of_messages;
} left_over;

static uint64_t database_count(const fb_node *core, left_over *out)
{
    const struct fb_database *db = core->database;
    uint64_t claims = 0, closed = 0, named = 0, fetches = 0, serves = 0, builders = 0;
    for (uint32_t i = 0; i < core->options.sizes.vector_entries; i++) {
        claims += db->wanted[i].used;
        const fb_vector *v = &db->vectors[i];
        /* This very life keeps its place, though a copy of the node has taken it up. */
        bool living = v->used && db->areas[v->area].own == i + 1;
        closed += v->used && ((v->closed && !living) || v->notes != 0);
    }
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        named += db->areas[i].used && (!db->areas[i].stored || db->areas[i].pins != 0);
    }
    for (uint32_t i = 0; i < db->fetch_count; i++) fetches += db->fetches[i].used;
    for (uint32_t i = 0; i < db->serve_count; i++) serves += db->serves[i].used;
    for (uint32_t i = 0; i < db->builder_count; i++) builders += db->builders[i].used;
    out[0] = (left_over){"claims", claims, false};
    out[1] = (left_over){"closed lives, or notes about lives", closed + db->note_count, false};
    out[2] = (left_over){"areas that are pinned or not stored", named, false};
    out[3] = (left_over){"calls for batches", fetches, false};
    out[4] = (left_over){"calls of others that are served", serves, false};
    out[5] = (left_over){"batches being filled", builders, false};
    out[6] = (left_over){"long answers", db->answers_used, false};
    uint64_t verifies = 0;
    for (uint32_t i = 0; i < FB_VERIFIES_MAX; i++) verifies += db->verifies[i].used;
    out[7] = (left_over){"questions about fingerprints", verifies, false};
    uint64_t listings = 0;
    for (uint32_t i = 0; i < FB_PEER_AREAS_MAX; i++) listings += db->peer_areas[i].used;
    out[8] = (left_over){"questions about collections", listings, false};
    return 9;
}

static uint64_t others_count(const fb_node *core, left_over *out)
{
    uint64_t envelopes, orphans, calls = 0;
    fb_sim_messages_held(core, &envelopes, &orphans);
    for (uint32_t i = 0; i < core->rpc->calls; i++) {
        calls += core->rpc->call[i].role != FB_SIDE_FREE;
    }
    out[0] = (left_over){"operations", core->store->ops_used, false};
    out[1] = (left_over){"envelopes", envelopes, true};
    out[2] = (left_over){"calls", calls, false};
    out[3] = (left_over){"messages that no link has", orphans, true};
    return 4;
}

static void round_end(fb_sim_world *world, void *state)
{
    (void)state;
    if (world->config.degree != 0 || !world->config.reference) return;
    /* What a broken link had is kept for the next one, for a while: a schedule need not wait so
     * long in the quiet. */
    bool waited =
        world->now_ns - world->director->phase_since_ns > world->config.timing.redeliver_ns;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        if (world->held_apart[i] || !world->nodes[i].running) return;
    }
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        left_over rows[16];
        uint64_t count = database_count(world->nodes[i].core, rows);
        count += others_count(world->nodes[i].core, rows + count);
        for (uint64_t k = 0; k < count; k++) {
            if (rows[k].count == 0 || (rows[k].of_messages && !waited)) continue;
            fb_sim_violated(world, FB_SIM_LIVENESS, "tables-empty", "in the quiet %s holds %llu %s",
                            fb_sim_name(i), (unsigned long long)rows[k].count, rows[k].what);
            return;
        }
    }
}

const fb_sim_check fb_sim_check_tables_empty = {
    .id = "tables-empty",
    .musts = "DESIGN 6",
    .cost = "round",
    .text = "in the quiet no place is taken in a table that holds work: nothing leaks",
    .round = round_end,
};
