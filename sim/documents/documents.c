/* SPDX-License-Identifier: Apache-2.0 */
/* Between the core, its disk and what is decided for the document store. */
#include "sim/documents/documents.h"

#include "protocol/base/assert.h"
#include "sim/documents/calls.h"
#include "sim/world/world.h"

#define MS UINT64_C(1000000)

/* Memory of the process: blobs of the world, whose bytes are aligned to 8. */

static void *block_take(void *user, size_t len)
{
    fb_sim_blobs *blobs = &((fb_sim_documents *)user)->world->blobs;
    return fb_sim_blob_writable(blobs, fb_sim_blob_make(blobs, len + 8)) + 8;
}

static void block_give(void *user, void *block)
{
    fb_sim_blobs *blobs = &((fb_sim_documents *)user)->world->blobs;
    size_t at = (size_t)((uint8_t *)block - 8 - sizeof(fb_sim_blob_head) - blobs->memory);
    fb_sim_blob_drop(blobs, (fb_sim_blob)(at / 16));
}

/* The disk */

static int look(void *user, fb_span key, fb_span *value)
{
    const fb_sim_documents *d = user;
    if (!fb_sim_store_get(&d->local, key, value)) *value = (fb_span){NULL, 0};
    return 0;
}

typedef struct scanning {
    fb_span low, high;
    void (*each)(void *user, fb_span key, fb_span value);
    void *user;
} scanning;

static void scan_one(void *user, fb_span key, fb_span value)
{
    const scanning *s = user;
    if (fb_span_compare(key, s->low) < 0 || fb_span_compare(key, s->high) >= 0) return;
    s->each(s->user, key, value);
}

static int scan(void *user, fb_span low, fb_span high,
                void (*each)(void *each_user, fb_span key, fb_span value), void *each_user)
{
    const fb_sim_documents *d = user;
    size_t common = 0;
    while (common < low.len && common < high.len && low.p[common] == high.p[common]) common++;
    scanning s = {low, high, each, each_user};
    fb_sim_store_walk(&d->local, fb_span_of(low.p, common), scan_one, &s);
    return 0;
}

void fb_sim_documents_init(fb_sim_world *world, uint32_t index, fb_arena *arena)
{
    fb_sim_documents *d = fb_arena_take(arena, 1, sizeof *d);
    fb_sim_documents_server server;
    fb_sim_documents_server_init(&server, arena, &world->blobs);
    if (arena->base == NULL) return;
    d->world = world;
    d->node = index;
    d->server = server;
    d->wake_ns = FB_NEVER;
    d->source = (fb_room_source){block_take, block_give, d};
    world->nodes[index].documents = d;
}

uint64_t fb_sim_documents_draw(const fb_sim_world *world)
{
    const fb_sim_config *config = &world->config;
    if (!config->faults || !config->reference || config->nodes > FB_SIM_DOCUMENTS_NODES ||
        config->degree != 0) {
        return 0;
    }
    uint64_t bits = fb_draw(world->seed, FB_SIM_STREAM_DOCUMENTS, UINT64_MAX, 0);
    if ((bits & 3) != 0) return 0;
    return UINT64_C(1) << (bits >> 8) % config->nodes;
}

static uint64_t now_ms(const fb_sim_documents *d)
{
    return d->world->now_ns / MS;
}

/* Write sets */

uint64_t fb_sim_documents_age(const fb_sim_documents *d, uint64_t incarnation, uint64_t w)
{
    for (uint64_t i = 0; i < d->lives_seen && i < FB_SIM_DOCUMENTS_LIVES; i++) {
        const fb_sim_documents_life *life =
            &d->lives[(d->lives_seen - 1 - i) % FB_SIM_DOCUMENTS_LIVES];
        if (life->incarnation == incarnation) return (life->index << 40) + w;
    }
    return 0; /* of long ago */
}

bool fb_sim_documents_apply(fb_sim_documents *d, uint64_t incarnation, uint64_t w, fb_span set)
{
    fb_span local;
    if (fb_keeping_split(&d->keeping, incarnation, w, set, &local) != 0) return false;
    d->sets++;
    return fb_sim_store_apply(&d->local, local);
}

static void wrong_disk(const fb_sim_documents *d, int rc)
{
    if (rc == 0) return;
    fb_sim_violated(d->world, FB_SIM_SAFETY, "effects-in-order",
                    "%s: what its disk holds for documents does not follow its format",
                    fb_sim_name(d->node));
}

static void clean(fb_sim_documents *d)
{
    fb_span set;
    wrong_disk(d, fb_keeping_clean(&d->keeping, &set));
    if (set.len == 0) return;
    fb_sim_check_documents_cleaned(d, set);
    if (!fb_sim_store_apply(&d->local, set)) wrong_disk(d, 1);
}

/* Records whose documents are gone, while no group is open. */
static void remake(fb_sim_documents *d)
{
    const fb_sim_node *node = &d->world->nodes[d->node];
    if (node->core == NULL || node->needs_start) return;
    while (d->keeping.touched_count == 0 && fb_keeping_wants_remaking(&d->keeping)) {
        fb_span set;
        fb_job *job;
        clean(d);
        fb_keeping_remake(&d->keeping, node->incarnation, node->applied_w, &set);
        if (set.len != 0 && !fb_sim_store_apply(&d->local, set)) wrong_disk(d, 1);
        wrong_disk(d, fb_keeping_over(&d->keeping, true, 0, 0, &job));
        if (job != NULL) fb_handing_job(&d->handing, job);
    }
}

bool fb_sim_documents_lately_dropped(const fb_sim_documents *d)
{
    return d->dropped ||
           (d->dropped_ns != 0 && d->world->now_ns - d->dropped_ns < 2 * FB_SIM_DOCUMENTS_LATE_NS);
}

void fb_sim_documents_hears(fb_sim_documents *d)
{
    d->dropped = false;
    wrong_disk(d, fb_keeping_dropped_all(&d->keeping));
}

void fb_sim_documents_flush(fb_sim_documents *d)
{
    clean(d);
}

void fb_sim_documents_flushed(fb_sim_documents *d, bool durable, uint64_t incarnation, uint64_t w)
{
    fb_job *job;
    wrong_disk(d, fb_keeping_over(&d->keeping, durable, incarnation, w, &job));
    if (job != NULL) fb_handing_job(&d->handing, job);
    remake(d);
    fb_sim_documents_pump(d);
}

/* The process */

static void found(fb_sim_documents *d)
{
    fb_job *job;
    wrong_disk(d, fb_job_found(&d->keeping.split, &job));
    if (job != NULL) fb_handing_job(&d->handing, job);
}

void fb_sim_documents_boot(fb_sim_documents *d)
{
    const fb_split_store store = {look, scan, d};
    wrong_disk(d, fb_keeping_open(&d->keeping, &store, &d->source));
    fb_handing_init(&d->handing, d->keeping.start, d->keeping.first, NULL, &d->source);
    d->handing.doubt_ms = FB_SIM_DOCUMENTS_DOUBT_MS;
    d->up = true;
    d->calling = false;
    d->job_overtaken = false;
    d->overtaken = d->rival != 0;
    d->wake_ns = FB_NEVER;
    /* What was put lately a server that was deposed since may not know. */
    for (uint32_t i = 0; i < d->server.count; i++) {
        fb_sim_document *document = &d->server.documents[i];
        document->confirmed = document->changed_ns + FB_SIM_DOCUMENTS_HEAL_NS <= d->world->now_ns;
    }
}

void fb_sim_documents_start(fb_sim_documents *d)
{
    fb_job *none;
    /* Sets of the incarnation before were applied outside of a group. */
    wrong_disk(d, fb_keeping_over(&d->keeping, false, 0, 0, &none));
    uint64_t index = d->lives_seen++;
    d->lives[index % FB_SIM_DOCUMENTS_LIVES] =
        (fb_sim_documents_life){d->world->nodes[d->node].incarnation, index + 1};
    found(d);
    fb_sim_documents_pump(d);
}

static void reading_end(fb_sim_documents *d, fb_sim_documents_reading *r)
{
    fb_reading_free(r->reading);
    fb_sim_blob_drop(&d->world->blobs, r->read_set);
    *r = (fb_sim_documents_reading){.reading = NULL};
}

void fb_sim_documents_crash(fb_sim_documents *d)
{
    if (!d->up) return;
    for (uint32_t i = 0; i < FB_SIM_DOCUMENTS_READINGS; i++) reading_end(d, &d->readings[i]);
    fb_handing_free(&d->handing);
    fb_keeping_free(&d->keeping);
    d->up = false;
    /* What it sent is on its way. */
    if (d->calling) fb_sim_documents_call_left(d);
    d->calling = false;
}

void fb_sim_documents_forget(fb_sim_documents *d)
{
    fb_sim_store_clear(&d->local);
    d->lost = d->server.fence;
}

/* Handing on */

static void wake_at(fb_sim_documents *d, uint64_t at_ns)
{
    if (at_ns >= d->wake_ns && d->wake_ns > d->world->now_ns) return;
    d->wake_ns = at_ns;
    fb_sim_schedule(d->world, at_ns, d->node, FB_SIM_AT_DOCUMENTS, FB_SIM_DOCUMENTS_WAKE,
                    d->world->nodes[d->node].boots);
}

/* False: the process ended while its core was told. */
static bool job_done(fb_sim_documents *d, fb_job *job)
{
    fb_sim_world *world = d->world;
    const fb_sim_node *node = &world->nodes[d->node];
    uint64_t incarnation = job->incarnation, w = job->w;
    uint32_t boots = node->boots;
    fb_sim_check_documents_done(d, job);
    d->job_overtaken = false;
    fb_keeping_served(&d->keeping, job, d->handing.start);
    if (d->keeping.touched_count == 0 && fb_keeping_wants_cleaning(&d->keeping, false)) {
        fb_job *none;
        clean(d);
        wrong_disk(d, fb_keeping_over(&d->keeping, true, 0, 0, &none));
    }
    if (w != 0 && incarnation == node->incarnation && node->core != NULL && !node->needs_start) {
        fb_sim_step(world, d->node,
                    (fb_event){.kind = FB_EV_WRITE_DONE, .a = incarnation, .b = w, .c = FB_OK});
    }
    return !world->stop && d->up && node->boots == boots;
}

void fb_sim_documents_pump(fb_sim_documents *d)
{
    if (!d->up || d->calling || d->pumping) return;
    d->pumping = true;
    for (;;) {
        fb_job *again;
        remake(d);
        wrong_disk(d, fb_keeping_again(&d->keeping, now_ms(d), &again));
        if (again != NULL) {
            fb_handing_job(&d->handing, again);
            continue;
        }
        fb_handing_call call;
        fb_handing_next(&d->handing, now_ms(d), INT64_MAX, &call);
        if (call.kind == FB_HANDING_DONE) {
            if (!job_done(d, call.job)) break;
            continue;
        }
        uint64_t again_ms = fb_keeping_again_at(&d->keeping);
        if (again_ms != UINT64_MAX) wake_at(d, again_ms * MS);
        if (call.kind == FB_HANDING_LOCKED) {
            fb_sim_check_documents_locked(d);
            fb_sim_documents_taken_over(d);
        }
        if (call.kind == FB_HANDING_PAUSE) {
            fb_sim_check_documents_pauses(d, call.at_ms - now_ms(d));
            wake_at(d, call.at_ms * MS);
        }
        if (call.kind == FB_HANDING_FENCE || call.kind == FB_HANDING_CONFIRM ||
            call.kind == FB_HANDING_GET || call.kind == FB_HANDING_PUT) {
            d->calling = true;
            fb_sim_documents_send(d, &call);
        }
        break;
    }
    d->pumping = false;
}

bool fb_sim_documents_wait(const fb_sim_world *world)
{
    for (uint32_t i = 0; i < world->config.nodes && world->config.documents != 0; i++) {
        const fb_sim_documents *d = world->nodes[i].documents;
        if (d == NULL || !d->up || world->held_apart[i]) continue;
        if (d->handing.job != NULL || d->handing.jobs != NULL || world->nodes[i].write_count != 0) {
            return true;
        }
    }
    return false;
}

/* Reading */

static fb_status ask_get(fb_documents *documents, const char *collection, const fb_id *ids,
                         size_t count, fb_documents_found give, void *user, char *why,
                         size_t why_len)
{
    fb_sim_documents *d = (fb_sim_documents *)(void *)documents;
    uint64_t name = fb_sim_documents_collection(collection);
    fb_room room = {.used = 0};
    (void)why;
    (void)why_len;
    if (fb_sim_documents_away(d)) return FB_ERR_UNREACHABLE;
    for (size_t i = 0; i < count; i++) {
        const fb_sim_document *document = fb_sim_documents_find(&d->server, name, ids[i]);
        fb_document seen;
        if (document == NULL || !fb_sim_documents_seen(&d->server, document, &room, &seen)) {
            continue;
        }
        if (!give(user, &seen)) break;
    }
    fb_room_free(&room);
    return FB_OK;
}

static fb_status ask_range(fb_documents *documents, const char *collection, fb_id low, fb_id high,
                           bool descending, uint32_t limit, fb_documents_found give, void *user,
                           char *why, size_t why_len)
{
    fb_sim_documents *d = (fb_sim_documents *)(void *)documents;
    uint64_t name = fb_sim_documents_collection(collection);
    fb_room room = {.used = 0};
    (void)why;
    (void)why_len;
    if (fb_sim_documents_away(d)) return FB_ERR_UNREACHABLE;
    for (uint32_t i = 0; i < d->server.count && limit > 0; i++) {
        const fb_sim_document *document =
            &d->server.documents[descending ? d->server.count - 1 - i : i];
        fb_document seen;
        if (document->collection != name || fb_id_compare(document->id, low) < 0) continue;
        if (!fb_id_is_zero(high) && fb_id_compare(document->id, high) >= 0) continue;
        if (!fb_sim_documents_seen(&d->server, document, &room, &seen)) continue;
        limit--;
        if (!give(user, &seen)) break;
    }
    fb_room_free(&room);
    return FB_OK;
}

static const fb_documents_ops reader = {
    .interface = FB_DOCUMENTS_INTERFACE, .get = ask_get, .range = ask_range};

static uint64_t read_delay(fb_sim_documents *d)
{
    uint64_t bits = fb_draw(d->world->seed, FB_SIM_STREAM_DOCUMENTS, d->node * 2, d->reads_made++);
    return 1000 + fb_sim_exponential(bits, fb_sim_documents_mean_ns(d));
}

bool fb_sim_documents_read(fb_sim_documents *d, uint64_t operation, fb_span read_set, fb_span local)
{
    fb_sim_world *world = d->world;
    const fb_sim_node *node = &world->nodes[d->node];
    bool needed;
    wrong_disk(d, fb_reading_needed(&d->keeping.split, read_set, &needed));
    if (!needed) return false;
    uint32_t place = 0;
    while (place < FB_SIM_DOCUMENTS_READINGS && d->readings[place].reading != NULL) place++;
    if (place == FB_SIM_DOCUMENTS_READINGS) fb_sim_fail_resource("readings of documents");
    fb_sim_documents_reading *r = &d->readings[place];
    int rc = fb_keeping_read(&d->keeping, read_set, local, &r->reading);
    if (rc != 0) {
        wrong_disk(d, rc);
        return true;
    }
    r->reading->operation = operation;
    r->reading->incarnation = node->incarnation;
    r->reading->w = node->applied_w;
    r->read_set = fb_sim_blob_make(&world->blobs, read_set.len);
    memcpy(fb_sim_blob_writable(&world->blobs, r->read_set), read_set.p, read_set.len);
    r->sets = d->sets;
    r->until_ns = world->now_ns + UINT64_C(15000000000);
    r->pause_ns = FB_HANDING_RETRY_MIN_MS * MS;
    fb_sim_schedule(world, world->now_ns + read_delay(d), d->node, FB_SIM_AT_DOCUMENTS,
                    FB_SIM_DOCUMENTS_READ | place, node->boots);
    return true;
}

static void missing(void *user, uint32_t area, fb_id id)
{
    fb_sim_documents *d = user;
    fb_keeping_missing(&d->keeping, (fb_split_record){area, id});
}

/* What it missed is made again, if it should still be there, and it begins anew; sure: reading.h.
 */
static void read_again(fb_sim_documents *d, uint32_t place, bool sure)
{
    fb_sim_world *world = d->world;
    const fb_sim_node *node = &world->nodes[d->node];
    fb_sim_documents_reading *r = &d->readings[place];
    uint64_t operation = r->reading->operation;
    bool waits = d->keeping.touched_count != 0; /* for a group to end */
    if (!waits) {
        if (sure) fb_reading_missing(r->reading, missing, d);
        fb_writer w = fb_writer_of(world->scratch, world->scratch_bytes);
        fb_span read_set = fb_sim_blob_bytes(&world->blobs, r->read_set);
        remake(d);
        if (!fb_sim_store_read(&d->local, read_set, &w)) wrong_disk(d, 1);
        fb_reading_free(r->reading);
        wrong_disk(d, fb_keeping_read(&d->keeping, read_set, fb_writer_span(&w), &r->reading));
        if (r->reading == NULL) return;
        r->reading->operation = operation;
        r->reading->incarnation = node->incarnation;
        r->reading->w = node->applied_w;
        r->reading->sure = sure;
        r->sets = d->sets;
    }
    fb_sim_schedule(world, world->now_ns + read_delay(d), d->node, FB_SIM_AT_DOCUMENTS,
                    FB_SIM_DOCUMENTS_READ | place, node->boots);
    fb_sim_documents_pump(d);
}

static void read_on(fb_sim_documents *d, uint32_t place)
{
    fb_sim_world *world = d->world;
    const fb_sim_node *node = &world->nodes[d->node];
    fb_sim_documents_reading *r = &d->readings[place];
    if (r->reading == NULL) return;
    char why[8];
    fb_span answer = {NULL, 0};
    fb_status status = FB_ERR_UNREACHABLE;
    if (fb_handing_may_read(&d->handing)) {
        r->reading->first = d->handing.first;
        status = fb_reading_end(r->reading, &reader, (fb_documents *)(void *)d, &answer, why,
                                sizeof why);
    }
    bool lacks = status == FB_OK && fb_keeping_lacks(&d->keeping, r->reading);
    if (status == FB_ERR_UNREACHABLE && world->now_ns < r->until_ns) {
        uint64_t at = world->now_ns + r->pause_ns;
        if (r->pause_ns < FB_HANDING_RETRY_MAX_MS * MS) r->pause_ns *= 2;
        fb_sim_schedule(world, at, d->node, FB_SIM_AT_DOCUMENTS, FB_SIM_DOCUMENTS_READ | place,
                        node->boots);
        return;
    }
    bool current = r->reading->incarnation == node->incarnation && !node->needs_start;
    if (status == FB_ERR_NOT_FOUND || (lacks && world->now_ns < r->until_ns)) {
        read_again(d, place, !lacks);
        return;
    }
    if (lacks) status = FB_ERR_AGAIN;
    fb_event event = {.kind = FB_EV_READ_DONE, .a = r->reading->operation, .b = r->reading->w};
    fb_writer w = fb_writer_of(world->scratch, world->scratch_bytes);
    if (status == FB_OK) {
        if (r->sets == d->sets) {
            fb_sim_check_documents_answer(d, fb_sim_blob_bytes(&world->blobs, r->read_set), answer,
                                          d->dropped);
        }
        fb_write_span(&w, answer);
    } else {
        event.c = FB_ERR_AGAIN;
        fb_write_u64(&w, r->reading->incarnation);
    }
    event.len = (uint32_t)w.at;
    event.bytes = world->scratch;
    reading_end(d, r);
    if (current && !w.failed) fb_sim_step(world, d->node, event);
}

void fb_sim_at_documents(fb_sim_world *world, uint32_t index, uint32_t ref, uint32_t stamp)
{
    fb_sim_node *node = &world->nodes[index];
    fb_sim_documents *d = node->documents;
    if (!d->up || node->core == NULL || stamp != node->boots) return;
    if (ref == FB_SIM_DOCUMENTS_WAKE) {
        d->wake_ns = FB_NEVER;
        fb_sim_documents_pump(d);
    } else if (ref == FB_SIM_DOCUMENTS_DROPPED) {
        if (d->dropped) fb_sim_documents_hears(d);
        fb_sim_documents_pump(d);
    } else if (ref == FB_SIM_DOCUMENTS_TAKEN_OVER) {
        fb_sim_crash(world, index, 100 * MS);
    } else if ((ref & FB_SIM_DOCUMENTS_READ) != 0) {
        read_on(d, ref & ~FB_SIM_DOCUMENTS_READ);
    } else {
        fb_sim_documents_answered(d, ref);
        fb_sim_documents_pump(d);
    }
}
