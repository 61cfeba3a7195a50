/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/world/process.h"

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "sim/checkers/checks.h"
#include "sim/documents/documents.h"
#include "sim/workload/workload.h"
#include "sim/world/world.h"

#define NONE UINT32_MAX

/* The instance's memory stands in the world's arena: a boot is no allocation of the process. */
static void *instance_allocate(void *user, size_t bytes)
{
    fb_sim_node *node = user;
    if (node->memory_taken || bytes > node->memory_bytes) return NULL;
    node->memory_taken = true;
    /* Fresh pages of the world are zeros already, and cost nothing while nobody writes them. */
    if (node->memory_used) memset(node->memory, 0, bytes);
    node->memory_used = true;
    return node->memory;
}

static void instance_release(void *user, void *memory, size_t bytes)
{
    fb_sim_node *node = user;
    (void)bytes;
    FB_ASSERT(node->memory_taken && memory == node->memory);
    node->memory_taken = false;
}

static fb_options options_of(fb_sim_world *world, fb_sim_node *node)
{
    fb_options options = fb_options_small();
    options.allocator = (fb_allocator){node, instance_allocate, instance_release};
    options.provider = &node->provider.table;
    options.identity_key = FB_SIM_KEY_IDENTITY;
    options.link_key = FB_SIM_KEY_LINK;
    options.sizes = world->config.sizes;
    options.timing = world->config.timing;
    options.observe = true;
    options.digest_every_step = !world->config.fast;
    return options;
}

/* How much memory an instance takes: asked once, of an allocator that only listens. */
static void *measure_allocate(void *user, size_t bytes)
{
    *(size_t *)user = bytes;
    return NULL;
}

static void measure_release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)memory;
    (void)bytes;
}

void fb_sim_stores_init(fb_sim_world *world, fb_arena *arena)
{
    const fb_sim_config *config = &world->config;
    /* Of what many nodes hold nearly all is held by many. */
    uint32_t times = config->nodes < 8 ? config->nodes : 8;
    uint32_t columns = config->faults ? 2 * config->nodes : config->nodes;
    for (uint32_t i = 0; i < 64; i++) columns += config->documents >> i & 1u;
    fb_sim_keys_init(&world->keys, arena, &world->blobs, columns, times * config->store_items);
}

void fb_sim_process_init(fb_sim_world *world, uint32_t index, fb_arena *arena)
{
    fb_sim_node local = {0};
    fb_sim_node *node = arena->base == NULL ? &local : &world->nodes[index];
    uint8_t *scratch = world->provider_scratch; /* shared by all; NULL while measuring */
    fb_sim_provider_init(&node->provider,
                         fb_seed_derive(world->seed, FB_SIM_STREAM_IDENTITY, index),
                         fb_seed_derive(world->seed, FB_SIM_STREAM_SECRET, index), scratch);
    if (arena->base == NULL) {
        fb_options options = options_of(world, node);
        size_t bytes = 0;
        options.allocator = (fb_allocator){&bytes, measure_allocate, measure_release};
        fb_node *none;
        (void)fb_node_create(&options, &none);
        world->instance_bytes = bytes;
        size_t effects = fb_effects_bytes_min(&options);
        if (effects > world->effects.capacity) world->effects.capacity = effects;
    }
    if (index < 64 && (world->config.documents >> index & 1) != 0) {
        fb_sim_documents_init(world, index, arena);
    }
    node->memory_bytes = world->instance_bytes;
    node->memory = fb_arena_take(arena, 1, node->memory_bytes);
    if (arena->base == NULL) return;
    uint32_t items = world->config.store_items;
    if (node->documents != NULL) {
        uint32_t column = (world->config.faults ? 2 : 1) * world->config.nodes;
        for (uint32_t i = 0; i < index; i++) column += world->config.documents >> i & 1u;
        fb_sim_store_init(&node->documents->local, &world->keys, column, items);
    }
    fb_sim_store_init(&node->store, &world->keys, index, items);
    if (world->config.faults) {
        fb_sim_store_init(&node->backup, &world->keys, world->config.nodes + index, items);
    }
    node->provider.fired = &world->fired[FB_SIM_FAULT_FORGE];
    node->provider.signs = &world->signs;
    static const char label[] = "faberio-node-id-v1";
    fb_span parts[2] = {fb_span_of(label, sizeof label),
                        fb_span_of(node->provider.public_key.b, 32)};
    fb_b32 hash;
    node->provider.table.sha256(&node->provider, parts, 2, &hash);
    memcpy(node->id.b, hash.b, sizeof node->id.b);
    node->home = node->id;
    fb_sim_clock_init(
        &node->clock, 0,
        fb_draw_below(world->seed, FB_SIM_STREAM_CLOCK, index, 0, UINT64_C(1000000000000)),
        FB_SIM_WALL_START_US, 0);
    node->crash_in = FB_SIM_NO_CRASH;
    node->tick_at_ns = FB_NEVER;
    node->disk.read_mean_ns = world->config.read_mean_ns;
    node->disk.write_mean_ns = world->config.write_mean_ns;
    node->disk.write_draws = fb_draw_base(world->seed, FB_SIM_STREAM_STORE_WRITE, index);
}

/* A write set reaches the disk: what reads see, and what outlives a crash. False: it is none. */
static bool disk_apply(fb_sim_world *world, uint32_t index, const fb_sim_write *write)
{
    fb_sim_node *node = &world->nodes[index];
    fb_span set = fb_sim_blob_bytes(&world->blobs, write->bytes);
    if (node->documents != NULL &&
        !fb_sim_documents_apply(node->documents, write->incarnation, write->w, set)) {
        return false;
    }
    return fb_sim_store_apply(&node->store, set);
}

/* Start and end. */

void fb_sim_at_boot(fb_sim_world *world, uint32_t index, uint32_t stamp)
{
    fb_sim_node *node = &world->nodes[index];
    if (stamp != node->boots) return; /* it booted before */
    node->booting = false;
    if (node->core != NULL || node->held_down) return;
    fb_sim_boot(world, index);
}

void fb_sim_boot(fb_sim_world *world, uint32_t index)
{
    fb_sim_node *node = &world->nodes[index];
    FB_ASSERT(node->core == NULL);
    fb_options options = options_of(world, node);
    fb_status status = fb_node_create(&options, &node->core);
    if (status != FB_OK) {
        fb_sim_violated(world, FB_SIM_CRASHED, "node-creates", "%s: fb_node_create: %s",
                        fb_sim_name(index), fb_error_name(status));
        return;
    }
    node->boots++;
    node->booting = false; /* a boot that is still to come is void */
    node->crash_at_seen = 0;
    node->needs_start = true;
    fb_sim_tick_set(world, index, FB_NEVER);
    node->last_mono_ns = 0;
    /* The monotonic clock begins anywhere at a boot. */
    fb_sim_clock_rebase(&node->clock, world->now_ns);
    node->clock.mono_least_ns = 0;
    node->clock.base_mono_ns = fb_draw_below(world->seed, FB_SIM_STREAM_CLOCK, index, node->boots,
                                             UINT64_C(1000000000000));
    if (node->documents != NULL) fb_sim_documents_boot(node->documents);
    fb_sim_at_start(world, index);
}

/* What the disk had not finished, when the process ends or the incarnation does: the first so many
 * of the waiting sets were applied after all, the rest never will be. */
static void writes_settle(fb_sim_world *world, uint32_t index)
{
    fb_sim_node *node = &world->nodes[index];
    uint64_t keep = node->write_count;
    if (node->disk.loses_unsynced && keep != 0) {
        keep = fb_draw_below(world->seed, FB_SIM_STREAM_STORE_CUT, index, node->disk.writes,
                             (uint64_t)node->write_count + 1);
        if (keep != node->write_count) world->fired[FB_SIM_FAULT_LOSE_UNSYNCED]++;
    }
    for (uint32_t i = 0; i < node->write_count; i++) {
        fb_sim_write *write = &node->writes[(node->write_first + i) % FB_SIM_WRITES_PENDING];
        if (i < keep && !write->applied) {
            (void)disk_apply(world, index, write);
            fb_sim_wrote(world, index, write->incarnation, write->w);
        }
        fb_sim_blob_drop(&world->blobs, write->bytes);
        write->bytes = 0;
    }
    node->write_count = 0;
    node->writes_flushing = 0;
}

void fb_sim_at_start(fb_sim_world *world, uint32_t index)
{
    fb_sim_node *node = &world->nodes[index];
    if (node->core == NULL || !node->needs_start) return;
    writes_settle(world, index);
    fb_sim_incarnation_over(world, index);
    fb_sim_workload_over(world, index);
    node->needs_start = false;
    node->applied_w = 0;
    node->incarnations++;
    node->incarnation = fb_draw(world->seed, FB_SIM_STREAM_INCARNATION, index, node->incarnations);
    if (node->incarnation == 0) node->incarnation = 1;
    if (node->killed_in_recovery) {
        uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_RECOVERY, index, node->incarnations);
        if ((bits & 1) != 0) {
            node->crash_in = (bits >> 8) % 10;
            node->crash_fault = FB_SIM_FAULT_KILL_RECOVERY;
        }
    }
    if (node->documents != NULL) fb_sim_documents_start(node->documents);
    fb_seed seed = fb_seed_derive(world->seed, FB_SIM_STREAM_NODE_SEED,
                                  ((uint64_t)index << 32) + node->incarnations);
    fb_sim_step(
        world, index,
        (fb_event){.kind = FB_EV_START, .a = node->incarnation, .b = seed.lo, .c = seed.hi});
}

void fb_sim_need_start(fb_sim_world *world, uint32_t index)
{
    fb_sim_node *node = &world->nodes[index];
    if (node->needs_start) return;
    node->needs_start = true;
    node->running = false;
    fb_sim_network_crashed(world, index);
    uint64_t after = fb_sim_between(world->seed, FB_SIM_STREAM_RESTART, index, node->incarnations,
                                    0, UINT64_C(200000000));
    fb_sim_schedule(world, world->now_ns + after, index, FB_SIM_AT_START, 0, node->boots);
}

void fb_sim_crash(fb_sim_world *world, uint32_t index, uint64_t restart_ns)
{
    fb_sim_node *node = &world->nodes[index];
    if (node->core == NULL) return;
    fb_node_destroy(node->core);
    node->core = NULL;
    fb_sim_tick_set(world, index, FB_NEVER);
    node->running = false;
    node->needs_start = false;
    node->boots++;
    node->crash_in = FB_SIM_NO_CRASH;
    node->power_fails = false;
    writes_settle(world, index);
    if (node->documents != NULL) fb_sim_documents_crash(node->documents);
    fb_sim_incarnation_over(world, index);
    fb_sim_workload_over(world, index);
    fb_sim_network_crashed(world, index);
    if (restart_ns != FB_NEVER && !node->booting) {
        node->booting = true;
        node->boot_at_ns = world->now_ns + restart_ns;
        fb_sim_schedule(world, node->boot_at_ns, index, FB_SIM_AT_BOOT, 0, node->boots);
    }
}

void fb_sim_boot_soon(fb_sim_world *world, uint32_t index)
{
    fb_sim_node *node = &world->nodes[index];
    if (!node->booting || node->boot_at_ns < world->now_ns + UINT64_C(10000000000)) return;
    node->boot_at_ns = world->now_ns;
    fb_sim_schedule(world, world->now_ns, index, FB_SIM_AT_BOOT, 0, node->boots);
}

void fb_sim_pause(fb_sim_world *world, uint32_t index, uint64_t until_ns)
{
    fb_sim_node *node = &world->nodes[index];
    if (until_ns > node->paused_until_ns) node->paused_until_ns = until_ns;
}

void fb_sim_backup(fb_sim_world *world, uint32_t index)
{
    fb_sim_node *node = &world->nodes[index];
    fb_sim_store_copy(&node->backup, &node->store);
    node->has_backup = true;
    fb_sim_backed_up(world, index);
}

/* The disk. */

void fb_sim_read_set(fb_sim_world *world, uint32_t index, uint64_t op, fb_span bytes)
{
    fb_sim_node *node = &world->nodes[index];
    if (world->read_free == NONE) fb_sim_fail_resource("reads of the store");
    uint32_t place = world->read_free;
    fb_sim_read *read = &world->reads[place];
    world->read_free = read->next_free;
    read->op = op;
    read->bytes = fb_sim_blob_make(&world->blobs, bytes.len);
    memcpy(fb_sim_blob_writable(&world->blobs, read->bytes), bytes.p, bytes.len);
    uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_STORE_READ, index, node->disk.reads * 2);
    uint64_t after = 1000 + fb_sim_exponential(bits, node->disk.read_mean_ns);
    if (node->disk.read_mean_ns > world->config.read_mean_ns) {
        world->fired[FB_SIM_FAULT_READ_LATE]++;
    }
    node->disk.reads++;
    fb_sim_schedule(world, world->now_ns + after, index, FB_SIM_AT_READ, place, node->boots);
}

void fb_sim_at_read(fb_sim_world *world, uint32_t index, uint32_t place, bool stale)
{
    fb_sim_node *node = &world->nodes[index];
    fb_sim_read *read = &world->reads[place];
    fb_sim_blob bytes = read->bytes;
    uint64_t op = read->op;
    read->next_free = world->read_free;
    world->read_free = place;
    if (!stale) {
        fb_event event = {.kind = FB_EV_READ_DONE, .a = op, .b = node->applied_w};
        fb_writer w = fb_writer_of(world->scratch, world->scratch_bytes);
        fb_write_u64(&w, node->incarnation);
        if (node->disk.read_fail_of != 0 &&
            fb_draw_below(world->seed, FB_SIM_STREAM_STORE_READ, index, node->disk.reads * 2 + 1,
                          node->disk.read_fail_of) == 0) {
            event.c = FB_ERR_STORE_FAILED;
            world->fired[FB_SIM_FAULT_READ_FAIL]++;
        } else if (!fb_sim_store_read(node->documents != NULL ? &node->documents->local
                                                              : &node->store,
                                      fb_sim_blob_bytes(&world->blobs, bytes), &w)) {
            fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order",
                            "%s: a read set does not follow its format, or asks for too much",
                            fb_sim_name(index));
        }
        fb_span local = fb_span_of(world->scratch + 8, w.at - 8);
        bool later = node->documents != NULL && event.c == FB_OK &&
                     fb_sim_documents_read(node->documents, op,
                                           fb_sim_blob_bytes(&world->blobs, bytes), local);
        event.len = (uint32_t)w.at;
        event.bytes = world->scratch;
        if (!later) fb_sim_step(world, index, event);
    }
    fb_sim_blob_drop(&world->blobs, bytes);
}

/* Group commit: what arrives while a flush runs waits for the next one. */
static void flush_begin(fb_sim_world *world, uint32_t index)
{
    fb_sim_node *node = &world->nodes[index];
    node->writes_flushing = node->write_count;
    uint64_t bits = fb_draw_at(node->disk.write_draws, node->disk.writes * 4);
    uint64_t after = 1000 + fb_sim_exponential(bits, node->disk.write_mean_ns);
    if (node->disk.write_mean_ns > world->config.write_mean_ns) {
        world->fired[FB_SIM_FAULT_WRITE_LATE]++;
    }
    fb_sim_schedule(world, world->now_ns + after, index, FB_SIM_AT_FLUSH,
                    (uint32_t)node->incarnations, node->boots);
}

void fb_sim_write_set(fb_sim_world *world, uint32_t index, uint64_t incarnation, uint64_t w,
                      fb_span bytes)
{
    fb_sim_node *node = &world->nodes[index];
    if (incarnation != node->incarnation || node->needs_start) {
        fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order",
                        "%s writes under an incarnation that is over", fb_sim_name(index));
        return;
    }
    if (node->write_count >= FB_WRITE_SETS_IN_FLIGHT_MAX) {
        fb_sim_violated(world, FB_SIM_SAFETY, "bounded-memory", "%s has %u write sets in flight",
                        fb_sim_name(index), node->write_count);
        return;
    }
    fb_sim_write *write =
        &node->writes[(node->write_first + node->write_count++) % FB_SIM_WRITES_PENDING];
    write->bytes = fb_sim_blob_make(&world->blobs, bytes.len);
    memcpy(fb_sim_blob_writable(&world->blobs, write->bytes), bytes.p, bytes.len);
    write->incarnation = incarnation;
    write->w = w;
    uint64_t occurrence = node->disk.writes++;
    write->fails = node->disk.write_fail_of != 0 &&
                   fb_draw_below(world->seed, FB_SIM_STREAM_STORE_WRITE, index, occurrence * 4 + 1,
                                 node->disk.write_fail_of) == 0;
    /* Some are in the disk's cache at once: reads show them long before they are durable. */
    write->applied = false;
    bool first =
        node->write_count == 1 ||
        node->writes[(node->write_first + node->write_count - 2) % FB_SIM_WRITES_PENDING].applied;
    if (first && !write->fails &&
        (fb_draw_at(node->disk.write_draws, occurrence * 4 + 2) & 7) == 0) {
        if (!disk_apply(world, index, write)) goto malformed;
        write->applied = true;
        node->applied_w = w;
        fb_sim_wrote(world, index, incarnation, w);
    }
    if (node->writes_flushing == 0) flush_begin(world, index);
    return;
malformed:
    fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order",
                    "%s: a write set does not follow its format", fb_sim_name(index));
}

void fb_sim_at_flush(fb_sim_world *world, uint32_t index)
{
    fb_sim_node *node = &world->nodes[index];
    uint64_t w = 0;
    bool failed = false;
    if (node->documents != NULL) fb_sim_documents_flush(node->documents);
    while (node->writes_flushing != 0 && !failed) {
        fb_sim_write *write = &node->writes[node->write_first];
        node->writes_flushing--;
        failed = write->fails;
        w = write->w;
        bool applied = write->applied;
        bool apply = !failed || (fb_draw(world->seed, FB_SIM_STREAM_STORE_WRITE, index,
                                         node->disk.writes * 4 + 3) &
                                 1) != 0;
        if (apply && !applied) {
            if (!disk_apply(world, index, write)) {
                fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order",
                                "%s: a write set does not follow its format", fb_sim_name(index));
                return;
            }
            fb_sim_wrote(world, index, write->incarnation, w);
        }
        if (apply) node->applied_w = w;
        fb_sim_blob_drop(&world->blobs, write->bytes);
        write->bytes = 0;
        node->write_first = (node->write_first + 1) % FB_SIM_WRITES_PENDING;
        node->write_count--;
    }
    if (failed) {
        /* What stood behind it is never applied. */
        world->fired[FB_SIM_FAULT_WRITE_FAIL]++;
        for (; node->write_count != 0; node->write_count--) {
            fb_sim_blob_drop(&world->blobs, node->writes[node->write_first].bytes);
            node->write_first = (node->write_first + 1) % FB_SIM_WRITES_PENDING;
        }
        node->writes_flushing = 0;
    } else if (node->write_count != 0) {
        flush_begin(world, index);
    }
    if (node->documents != NULL) {
        fb_sim_documents_flushed(node->documents, !failed, node->incarnation, w);
        /* The core is told once the documents are kept. */
        if (!failed) return;
    }
    fb_sim_step(world, index,
                (fb_event){.kind = FB_EV_WRITE_DONE,
                           .a = node->incarnation,
                           .b = w,
                           .c = failed ? FB_ERR_STORE_FAILED : FB_OK});
    if (failed && node->core != NULL && !node->needs_start) {
        fb_sim_violated(world, FB_SIM_SAFETY, "effects-in-order",
                        "%s goes on after a write set failed", fb_sim_name(index));
    }
}
