/* SPDX-License-Identifier: Apache-2.0 */
/* One identity on two machines: for a while another node's machine runs on a copy of a store and of
 * its keys.
 *
 * The machine keeps its place in the network, its clocks and its clients; whoever dials its address
 * reaches the copy. Its own store is set aside and comes back when the copy is gone for good.
 *
 * What the protocol promises then: every start has an incarnation of its own, so the two never give
 * one dot to two changes (dots-unique, applied-was-written); both histories converge; and the clone
 * is noticed by the one or the other (DESIGN 2, incarnation; profile 5 step 3). */
#include "sim/checkers/checks.h"
#include "sim/workload/workload.h"
#include "sim/world/process.h"
#include "sim/world/streams.h"
#include "sim/world/world.h"

static void identity_take(fb_sim_world *world, uint32_t machine, uint32_t of)
{
    fb_sim_node *node = &world->nodes[machine];
    fb_sim_provider *provider = &node->provider;
    uint64_t *fired = provider->fired;
    struct fb_sim_memo *signs = provider->signs;
    uint8_t *scratch = provider->scratch;
    /* Two machines with one identity draw secrets of their own. */
    uint64_t machines = (uint64_t)(++node->identities) << 32;
    fb_sim_provider_init(provider, fb_seed_derive(world->seed, FB_SIM_STREAM_IDENTITY, of),
                         fb_seed_derive(world->seed, FB_SIM_STREAM_SECRET, machines + machine),
                         scratch);
    provider->fired = fired;
    provider->signs = signs;
    static const char label[] = "faberio-node-id-v1";
    fb_span parts[2] = {fb_span_of(label, sizeof label), fb_span_of(provider->public_key.b, 32)};
    fb_b32 hash;
    provider->table.sha256(provider, parts, 2, &hash);
    memcpy(node->id.b, hash.b, sizeof node->id.b);
}

bool fb_sim_clone_begin(fb_sim_world *world, uint32_t of, uint32_t machine)
{
    const fb_sim_node *original = &world->nodes[of];
    fb_sim_node *node = &world->nodes[machine];
    bool free = of != machine && !original->cloned && !original->forgot && !node->cloned &&
                !node->forgot && !node->has_backup && node->core != NULL && node->running &&
                original->running && node->paused_until_ns <= world->now_ns &&
                world->traitor != of && world->traitor != machine && original->documents == NULL &&
                node->documents == NULL;
    if (!free) return false;
    fb_sim_crash(world, machine, FB_NEVER);
    fb_sim_backup(world, machine);
    fb_sim_store_copy(&node->store, &original->store);
    node->cloned = true;
    node->clone_of = of;
    identity_take(world, machine, of);
    fb_sim_cloned(world, machine, of);
    fb_sim_boot(world, machine);
    return true;
}

void fb_sim_clone_end(fb_sim_world *world, uint32_t machine)
{
    fb_sim_node *node = &world->nodes[machine];
    if (!node->cloned) return;
    fb_sim_crash(world, machine, FB_NEVER);
    fb_sim_store_copy(&node->store, &node->backup);
    fb_sim_store_clear(&node->backup);
    node->has_backup = false;
    node->cloned = false;
    identity_take(world, machine, machine);
    fb_sim_rolled_back(world, machine);
    fb_sim_boot(world, machine);
}
