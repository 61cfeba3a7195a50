/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/documents/calls.h"

#include "protocol/base/assert.h"
#include "sim/weather/weather.h"
#include "sim/world/world.h"

#define MS          UINT64_C(1000000)
#define MEAN_NS     (MS / 2)
#define PATIENCE_NS (1000 * MS)

static const fb_sim_window *over(const fb_sim_documents *d, fb_sim_fault fault)
{
    return fb_sim_weather_over(d->world, fault, d->node);
}

bool fb_sim_documents_away(fb_sim_documents *d)
{
    if (over(d, FB_SIM_FAULT_DOC_AWAY) == NULL) return false;
    d->world->fired[FB_SIM_FAULT_DOC_AWAY]++;
    return true;
}

uint64_t fb_sim_documents_mean_ns(const fb_sim_documents *d)
{
    const fb_sim_window *slow = over(d, FB_SIM_FAULT_DOC_SLOW);
    if (slow == NULL) return MEAN_NS;
    d->world->fired[FB_SIM_FAULT_DOC_SLOW]++;
    return slow->p;
}

/* Draws of one call. */
enum {
    DRAW_DELAY,
    DRAW_BACK,
    DRAW_LOST,
    DRAW_LATE,
    DRAW_BY,
    DRAW_PART,
    DRAW_CUT,
    DRAW_TWICE,
    DRAW_FAILOVER,
    DRAW_TAKEN,
    DRAWS
};

static uint64_t bits_of(const fb_sim_documents *d, uint32_t what)
{
    return fb_draw(d->world->seed, FB_SIM_STREAM_DOCUMENTS, d->node * 2 + 1,
                   d->calls_made * DRAWS + what);
}

/* One of so many calls. */
static bool happens(const fb_sim_documents *d, fb_sim_fault fault, uint32_t what)
{
    const fb_sim_window *w = over(d, fault);
    if (w == NULL || bits_of(d, what) % w->p != 0) return false;
    d->world->fired[fault]++;
    return true;
}

static void server_at(const fb_sim_documents *d, uint32_t place, uint64_t at_ns)
{
    fb_sim_schedule_world(d->world, at_ns, FB_SIM_AT_SERVER, d->node << 8 | place,
                          d->calls[place].serial);
}

static void answer_at(const fb_sim_documents *d, uint32_t place, uint64_t at_ns)
{
    fb_sim_schedule(d->world, at_ns, d->node, FB_SIM_AT_DOCUMENTS, place,
                    d->world->nodes[d->node].boots);
}

static void call_end(fb_sim_documents *d, fb_sim_documents_call *call)
{
    fb_sim_blobs *blobs = &d->world->blobs;
    fb_sim_document_change *changes =
        call->changes == 0
            ? NULL
            : (fb_sim_document_change *)(void *)fb_sim_blob_writable(blobs, call->changes);
    for (uint32_t i = 0; i < call->all; i++) fb_sim_blob_drop(blobs, changes[i].bytes);
    fb_sim_blob_drop(blobs, call->changes);
    fb_sim_blob_drop(blobs, call->outcomes);
    *call = (fb_sim_documents_call){.used = false};
}

static void call_end_when_over(fb_sim_documents *d, fb_sim_documents_call *call)
{
    if (call->used && call->answered && call->to_come == 0) call_end(d, call);
}

void fb_sim_documents_call_left(fb_sim_documents *d)
{
    d->calls[d->call].answered = true;
    call_end_when_over(d, &d->calls[d->call]);
}

/* What a put carries. */
static void changes_take(fb_sim_documents *d, fb_sim_documents_call *c, const fb_handing_call *call)
{
    fb_sim_blobs *blobs = &d->world->blobs;
    const fb_job *job = d->handing.job;
    c->all = c->count = (uint32_t)call->count;
    c->changes = fb_sim_blob_make(blobs, call->count * sizeof(fb_sim_document_change));
    c->outcomes = fb_sim_blob_make(blobs, call->count * sizeof(fb_document_outcome));
    memset(fb_sim_blob_writable(blobs, c->outcomes), 0, call->count * sizeof(fb_document_outcome));
    for (uint32_t i = 0; i < c->all; i++) {
        const fb_document_change *from = &call->changes[i];
        const fb_job_record *record = &job->records[d->handing.places[i]];
        fb_sim_document_change change = {
            .collection = fb_sim_documents_collection(call->collection),
            .id = from->document.id,
            .version = from->version,
            .age = fb_sim_documents_age(d, record->incarnation, record->w),
            .puts = from->document.record.len != 0,
            .marks = from->marks,
        };
        if (change.puts) change.bytes = fb_sim_documents_encode(blobs, &from->document);
        uint8_t *to = fb_sim_blob_writable(blobs, c->changes);
        memcpy(to + i * sizeof change, &change, sizeof change);
    }
}

void fb_sim_documents_send(fb_sim_documents *d, const fb_handing_call *call)
{
    fb_sim_world *world = d->world;
    uint64_t now = world->now_ns;
    uint32_t place = 0;
    while (place < FB_SIM_DOCUMENTS_CALLS && d->calls[place].used) place++;
    /* A server that has so much to do takes nothing more. */
    bool away = place == FB_SIM_DOCUMENTS_CALLS || fb_sim_documents_away(d);
    d->calls_made++;
    if (place == FB_SIM_DOCUMENTS_CALLS) {
        place = FB_SIM_DOCUMENTS_CALLS - 1;
        call_end(d, &d->calls[place]);
    }
    d->call = place;
    fb_sim_documents_call *c = &d->calls[place];
    *c = (fb_sim_documents_call){
        .used = true, .serial = ++d->serial, .kind = (uint8_t)call->kind, .number = call->number};
    c->life = world->nodes[d->node].boots;
    c->durable = true;
    if (away) {
        c->kind = FB_HANDING_PAUSE; /* nothing is known of it */
        answer_at(d, place, now + MS + fb_sim_exponential(bits_of(d, DRAW_DELAY), 100 * MS));
        return;
    }
    uint64_t mean = fb_sim_documents_mean_ns(d);
    uint64_t there = now + 1000 + fb_sim_exponential(bits_of(d, DRAW_DELAY), mean);
    if (call->kind == FB_HANDING_GET) {
        answer_at(d, place, there);
        return;
    }
    if (call->kind == FB_HANDING_PUT) changes_take(d, c, call);
    bool lost = happens(d, FB_SIM_FAULT_DOC_LOST, DRAW_LOST);
    if (call->kind == FB_HANDING_PUT && happens(d, FB_SIM_FAULT_DOC_LATE, DRAW_LATE)) {
        there = now + bits_of(d, DRAW_BY) % FB_SIM_DOCUMENTS_LATE_NS;
    }
    if (there > now + FB_SIM_DOCUMENTS_LATE_NS) there = now + FB_SIM_DOCUMENTS_LATE_NS;
    if (call->kind == FB_HANDING_PUT && happens(d, FB_SIM_FAULT_DOC_PART, DRAW_PART)) {
        /* The rest is not done: nobody says so, or the answer does. */
        c->count = (uint32_t)(bits_of(d, DRAW_CUT) % c->all);
        lost = lost || (bits_of(d, DRAW_CUT) >> 32 & 1) != 0;
    }
    if (call->kind == FB_HANDING_PUT && happens(d, FB_SIM_FAULT_DOC_FAILOVER, DRAW_FAILOVER)) {
        c->durable = false;
        c->vanishes = (bits_of(d, DRAW_TAKEN) & 1) != 0;
    }
    c->to_come = 1;
    if (call->kind == FB_HANDING_PUT && happens(d, FB_SIM_FAULT_DOC_TWICE, DRAW_TWICE)) {
        c->to_come = 2;
        server_at(d, place, there + 1000);
    }
    server_at(d, place, there);
    if (lost || there + MS > now + PATIENCE_NS) {
        c->kind |= 0x80; /* done, and not told */
        answer_at(d, place, now + PATIENCE_NS);
    }
}

static void applied(void *user, const fb_sim_document *before, const fb_sim_document_change *change)
{
    fb_sim_check_documents_applied(user, before, change);
}

static void carry_out(fb_sim_documents *d, fb_sim_documents_call *c)
{
    fb_sim_blobs *blobs = &d->world->blobs;
    const fb_sim_document_change *changes =
        (const fb_sim_document_change *)(const void *)fb_sim_blob_writable(blobs, c->changes);
    fb_document_outcome *outcomes =
        (fb_document_outcome *)(void *)fb_sim_blob_writable(blobs, c->outcomes);
    for (uint32_t i = 0; i < c->count; i++) {
        if (changes[i].version.start < d->server.writer) c->overtaken = true;
        outcomes[i] = c->vanishes ? FB_DOCUMENT_KEPT
                                  : fb_sim_document_apply(&d->server, d->world->now_ns, &changes[i],
                                                          applied, d);
        if (outcomes[i] == FB_DOCUMENT_OPEN) d->world->fired[FB_SIM_FAULT_DOC_FULL]++;
    }
}

void fb_sim_at_server(fb_sim_world *world, uint32_t ref, uint32_t stamp)
{
    fb_sim_documents *d = world->nodes[ref >> 8].documents;
    uint32_t place = ref & 0xff;
    fb_sim_documents_call *c = &d->calls[place];
    if (!c->used || c->serial != stamp) return;
    c->to_come--;
    uint8_t kind = c->kind & 0x7f;
    if (kind == FB_HANDING_FENCE) {
        if (d->server.by != c->life) d->server.before = d->server.fence;
        d->server.by = c->life;
        c->older = d->server.before < c->number;
        c->number = fb_sim_documents_fence(&d->server, c->number, world->now_ns);
    } else if (kind == FB_HANDING_CONFIRM) {
        c->number = d->server.fence;
    } else {
        carry_out(d, c);
    }
    bool waits = !c->answered && (c->kind & 0x80) == 0 && c->to_come == 0;
    if (waits) answer_at(d, place, world->now_ns + 1000);
    call_end_when_over(d, c);
}

static void got(fb_sim_documents *d)
{
    fb_room room = {.used = 0};
    fb_handing *h = &d->handing;
    bool away = fb_sim_documents_away(d);
    uint64_t name = fb_sim_documents_collection(h->collection);
    for (size_t i = 0; i < h->count && !away; i++) {
        const fb_sim_document *document = fb_sim_documents_find(&d->server, name, h->ids[i]);
        fb_document seen;
        if (document != NULL && fb_sim_documents_seen(&d->server, document, &room, &seen)) {
            fb_handing_found(h, &seen);
        }
    }
    fb_room_free(&room);
    fb_handing_got(h, d->world->now_ns / MS, away ? FB_ERR_UNREACHABLE : FB_OK);
}

/* The process knows of what it has put. */
static void confirm(fb_sim_documents *d, const fb_sim_documents_call *c)
{
    const fb_sim_document_change *changes =
        (const fb_sim_document_change *)(const void *)fb_sim_blob_writable(&d->world->blobs,
                                                                           c->changes);
    for (uint32_t i = 0; i < c->all; i++) {
        fb_sim_document *document =
            fb_sim_documents_find(&d->server, changes[i].collection, changes[i].id);
        if (document != NULL) document->confirmed = true;
    }
}

static bool all_is_open(const fb_job *job)
{
    size_t open = 0;
    while (job != NULL && open < job->record_count &&
           job->records[open].outcome == FB_DOCUMENT_OPEN) {
        open++;
    }
    return job == NULL || open == job->record_count;
}

void fb_sim_documents_answered(fb_sim_documents *d, uint32_t place)
{
    fb_sim_documents_call *c = &d->calls[place];
    if (!d->calling || d->call != place || !c->used) return;
    uint64_t now_ms = d->world->now_ns / MS;
    fb_handing *h = &d->handing;
    bool told = (c->kind & 0x80) == 0;
    fb_status status = told ? FB_OK : FB_ERR_UNREACHABLE;
    d->calling = false;
    switch ((fb_handing_kind)(c->kind & 0x7f)) {
    case FB_HANDING_FENCE:
        fb_handing_fenced(h, now_ms, status, c->number);
        /* What is put anew, all of it, is put as the last start. */
        if (told && all_is_open(h->job)) d->job_overtaken = false;
        if (told && c->older) fb_sim_documents_hears(d);
        for (uint32_t i = 0; told && i < d->server.count; i++) {
            d->server.documents[i].confirmed = true;
        }
        break;
    case FB_HANDING_CONFIRM:
        fb_handing_confirmed(h, now_ms, status, c->number);
        break;
    case FB_HANDING_GET:
        got(d);
        break;
    case FB_HANDING_PUT:
        if (told && c->durable) confirm(d, c);
        d->job_overtaken = d->job_overtaken || (told && c->durable && c->overtaken);
        fb_handing_was_put(h, now_ms, status, c->durable,
                           (const fb_document_outcome *)(const void *)fb_sim_blob_writable(
                               &d->world->blobs, c->outcomes));
        break;
    default: /* the server was away: whatever was asked */
        fb_handing_failed(h, now_ms);
        break;
    }
    c->answered = true;
    call_end_when_over(d, c);
}

/* Another process of this node, on a machine of which nobody knows: it raises the fence, waits for
 * the lease and puts every document anew. */
static void rival_puts(fb_sim_documents *d)
{
    fb_sim_documents_server *server = &d->server;
    for (uint32_t i = 0; i < server->count; i++) {
        fb_sim_document *document = &server->documents[i];
        if (!document->there || document->mark || fb_sim_documents_is_lost(d, document->version)) {
            continue;
        }
        fb_sim_document_change change = {.collection = document->collection,
                                         .id = document->id,
                                         .version = {d->rival, i + 1},
                                         .age = document->age,
                                         .puts = true,
                                         .bytes = document->bytes};
        fb_sim_document_apply(server, d->world->now_ns, &change, applied, d);
    }
    if (server->writer < d->rival) server->writer = d->rival;
    d->world->fired[FB_SIM_FAULT_DOC_RIVAL]++;
}

void fb_sim_documents_taken_over(fb_sim_documents *d)
{
    if (d->rival != 0 || !d->overtaken || !d->up || !d->handing.locked) return;
    fb_sim_schedule(d->world, d->world->now_ns + 100 * MS, d->node, FB_SIM_AT_DOCUMENTS,
                    FB_SIM_DOCUMENTS_TAKEN_OVER, d->world->nodes[d->node].boots);
}

/* Of what is on its way everything was carried out right before, or never is. */
static void drop(fb_sim_documents *d)
{
    fb_sim_world *world = d->world;
    fb_sim_documents_server_clear(&d->server);
    d->server.fence = d->server.before = d->server.writer = 0;
    d->server.by = 0;
    for (uint32_t i = 0; i < FB_SIM_DOCUMENTS_CALLS; i++) {
        if ((d->calls[i].kind & 0x7f) == FB_HANDING_PUT) d->calls[i].vanishes = true;
    }
    d->dropped = true;
    d->dropped_ns = world->now_ns;
    d->calls_made++;
    world->fired[FB_SIM_FAULT_DOC_DROPPED]++;
    if (!d->up) return; /* it hears of it when it begins */
    fb_sim_schedule(world, world->now_ns + bits_of(d, DRAW_DELAY) % (3000 * MS), d->node,
                    FB_SIM_AT_DOCUMENTS, FB_SIM_DOCUMENTS_DROPPED, world->nodes[d->node].boots);
}

void fb_sim_documents_weather(fb_sim_world *world, const fb_sim_window *w)
{
    fb_sim_documents *d = world->nodes[w->a].documents;
    if (d == NULL) return;
    if (w->fault == FB_SIM_FAULT_DOC_DROPPED && w->active) drop(d);
    d->server.full = over(d, FB_SIM_FAULT_DOC_FULL) != NULL;
    d->server.deposed = over(d, FB_SIM_FAULT_DOC_FAILOVER) != NULL;
    if (w->fault != FB_SIM_FAULT_DOC_RIVAL) return;
    if (w->active) {
        d->rival = fb_sim_documents_fence(&d->server, d->handing.start, d->world->now_ns);
        d->server.by = 0;
        d->overtaken = true;
    } else if (d->rival != 0) {
        d->rival = 0;
        fb_sim_documents_taken_over(d);
    }
}

void fb_sim_documents_rival(fb_sim_world *world, uint32_t node)
{
    fb_sim_documents *d = world->nodes[node].documents;
    if (d != NULL && d->rival != 0) rival_puts(d);
}
