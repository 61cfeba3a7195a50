/* SPDX-License-Identifier: Apache-2.0 */
#include "io/document_store/store.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "io/clock.h"
#include "protocol/base/assert.h"
#include "protocol/database/keys.h"
#include "protocol/store/keys.h"
#include "protocol/store/writeset.h"

struct fb_store_documents {
    fb_lmdb_env *env;
    fb_keeping keeping;
    fb_worker *worker;
    fb_outer *token;                    /* not written yet */
    bool token_writing;                 /* ... but by the group at hand */
    _Atomic uint64_t late;              /* documents of earlier starts that were taken away again */
    _Atomic uint64_t remade, not_equal; /* records whose documents were gone */
    _Atomic uint64_t overwritten;       /* edits of which nothing is left to be taken */
    _Atomic uint64_t drops;             /* the keeping's, for other threads */
    fb_reading *parked;                 /* lists, until what they list is made again */
    fb_outer *kept, **kept_end;         /* until the local store can be read */
    uint64_t kept_until_ms;             /* none of them is tried before */
    fb_room room;                       /* of the group that is being committed */
};

/* Where the watch goes on: no entry has this key, as no tag is zero. */
static const uint8_t token_key[] = {FB_TAG_REDO, 0};

static int look(void *user, fb_span key, fb_span *value)
{
    fb_store_documents *sd = user;
    return fb_lmdb_env_look(sd->env, key, value);
}

static int scan(void *user, fb_span low, fb_span high,
                void (*each)(void *each_user, fb_span key, fb_span value), void *each_user)
{
    fb_store_documents *sd = user;
    return fb_lmdb_env_scan(sd->env, low, high, each, each_user);
}

int fb_store_documents_open(fb_lmdb_env *env, const fb_documents_ops *ops, fb_documents *documents,
                            const fb_worker_ops *callbacks, fb_store_documents **out)
{
    fb_store_documents *sd = calloc(1, sizeof *sd);
    FB_ASSERT(sd != NULL);
    sd->env = env;
    sd->kept_end = &sd->kept;
    const fb_split_store store = {look, scan, sd};
    int rc = fb_keeping_open(&sd->keeping, &store, NULL);
    fb_span token = {NULL, 0};
    if (rc == 0) rc = look(sd, fb_span_of(token_key, sizeof token_key), &token);
    if (rc == 0) {
        sd->worker =
            fb_worker_new(ops, documents, sd->keeping.start, sd->keeping.first, token, callbacks);
        if (sd->worker == NULL) rc = EAGAIN;
    }
    if (rc == 0) rc = fb_store_documents_resume(sd);
    if (rc == 0) {
        *out = sd;
    } else {
        fb_store_documents_free(sd);
    }
    return rc;
}

int fb_store_documents_resume(fb_store_documents *sd)
{
    fb_job *found;
    int rc = fb_job_found(&sd->keeping.split, &found);
    if (rc == 0 && found != NULL) fb_worker_job(sd->worker, found);
    return rc;
}

void fb_store_documents_stop(fb_store_documents *sd)
{
    fb_worker_free(sd->worker);
    sd->worker = NULL;
}

void fb_store_documents_free(fb_store_documents *sd)
{
    if (sd == NULL) return;
    fb_worker_free(sd->worker);
    fb_keeping_free(&sd->keeping);
    fb_outer_free(sd->token);
    while (sd->kept != NULL) {
        fb_outer *next = sd->kept->next;
        fb_outer_free(sd->kept);
        sd->kept = next;
    }
    while (sd->parked != NULL) {
        fb_reading *next = sd->parked->next;
        fb_reading_free(sd->parked);
        sd->parked = next;
    }
    fb_room_free(&sd->room);
    free(sd);
}

int fb_store_documents_read(fb_store_documents *sd, uint64_t operation, uint64_t incarnation,
                            uint64_t w, fb_span read_set, fb_span local, bool sure, bool *taken)
{
    fb_reading *reading;
    int rc = fb_reading_needed(&sd->keeping.split, read_set, taken);
    if (rc != 0 || !*taken) return rc;
    rc = fb_keeping_read(&sd->keeping, read_set, local, &reading);
    *taken = rc == 0;
    if (rc != 0) return rc;
    reading->operation = operation;
    reading->incarnation = incarnation;
    reading->w = w;
    reading->sure = sure;
    if (fb_keeping_lacks(&sd->keeping, reading)) {
        reading->until_ns = fb_clock_mono_ns() + FB_WORKER_PATIENCE_MS * UINT64_C(1000000);
        reading->next = sd->parked;
        sd->parked = reading;
    } else {
        fb_worker_read(sd->worker, reading);
    }
    return 0;
}

bool fb_store_documents_lacks(fb_store_documents *sd, const fb_reading *reading)
{
    return atomic_load(&sd->drops) != reading->drops && fb_reading_lists(reading);
}

/* What stands as redo entries now did not when it was begun. */
static bool has_waited(const fb_store_documents *sd, fb_reading *reading, bool *late)
{
    *late = fb_clock_mono_ns() >= reading->until_ns;
    reading->drops = sd->keeping.drops;
    return *late || !fb_keeping_lacks(&sd->keeping, reading);
}

fb_reading *fb_store_documents_waited(fb_store_documents *sd, bool *late)
{
    for (fb_reading **at = &sd->parked; *at != NULL; at = &(*at)->next) {
        fb_reading *reading = *at;
        if (!has_waited(sd, reading, late)) continue;
        *at = reading->next;
        reading->next = NULL;
        return reading;
    }
    return NULL;
}

int fb_store_documents_split(fb_store_documents *sd, uint64_t incarnation, uint64_t w, fb_span set,
                             fb_span *local)
{
    return fb_keeping_split(&sd->keeping, incarnation, w, set, local);
}

int fb_store_documents_clean(fb_store_documents *sd, fb_span *set)
{
    fb_span served;
    int rc = fb_keeping_clean(&sd->keeping, &served);
    *set = served;
    sd->token_writing = rc == 0 && sd->token != NULL;
    if (!sd->token_writing) return rc;
    fb_span token = sd->token->token;
    size_t bytes = fb_write_entry_bytes(sizeof token_key, token.len);
    fb_writer w = fb_writer_of(fb_room_take(&sd->room, served.len + bytes), served.len + bytes);
    fb_write_span(&w, served);
    fb_write_u8(&w, FB_WRITE_PUT);
    fb_write_u8(&w, 0);
    fb_write_u16(&w, sizeof token_key);
    fb_write_u32(&w, (uint32_t)token.len);
    fb_write_bytes(&w, token_key, sizeof token_key);
    fb_write_span(&w, token);
    while (w.at < w.cap) fb_write_u8(&w, 0);
    *set = fb_writer_span(&w);
    return 0;
}

bool fb_store_documents_wants_remaking(const fb_store_documents *sd)
{
    return fb_keeping_wants_remaking(&sd->keeping);
}

bool fb_store_documents_misses(const fb_store_documents *sd)
{
    return fb_keeping_misses(&sd->keeping);
}

void fb_store_documents_remake(fb_store_documents *sd, uint64_t incarnation, uint64_t applied,
                               fb_span *set)
{
    fb_keeping_remake(&sd->keeping, incarnation, applied, set);
    atomic_store(&sd->remade, sd->keeping.remade);
    atomic_store(&sd->not_equal, sd->keeping.not_equal);
}

static void missing(void *user, uint32_t area, fb_id id)
{
    fb_store_documents *sd = user;
    fb_keeping_missing(&sd->keeping, (fb_split_record){area, id});
}

void fb_store_documents_missing(fb_store_documents *sd, const fb_reading *reading)
{
    fb_reading_missing(reading, missing, sd);
}

int fb_store_documents_over(fb_store_documents *sd, bool committed, uint64_t incarnation,
                            uint64_t w)
{
    fb_job *job;
    int rc = fb_keeping_over(&sd->keeping, committed, incarnation, w, &job);
    if (job != NULL) fb_worker_job(sd->worker, job);
    if (committed && sd->token_writing) {
        fb_outer_free(sd->token);
        sd->token = NULL;
    }
    sd->token_writing = false;
    fb_room_free(&sd->room);
    return rc;
}

void fb_store_documents_served(fb_store_documents *sd, fb_job *job, uint64_t start)
{
    fb_keeping_served(&sd->keeping, job, start);
}

bool fb_store_documents_wants_cleaning(const fb_store_documents *sd, bool idle)
{
    return fb_keeping_wants_cleaning(&sd->keeping, idle);
}

uint64_t fb_store_documents_again_at(const fb_store_documents *sd)
{
    uint64_t at_ms = fb_keeping_again_at(&sd->keeping);
    if (sd->kept != NULL && sd->kept_until_ms < at_ms) at_ms = sd->kept_until_ms;
    uint64_t now_ns = fb_clock_mono_ns(), now_ms = fb_clock_awake_or_not_ms();
    for (const fb_reading *r = sd->parked; r != NULL; r = r->next) {
        uint64_t wait_ns = r->until_ns > now_ns ? r->until_ns - now_ns : 0;
        if (now_ms + wait_ns / 1000000 < at_ms) at_ms = now_ms + wait_ns / 1000000;
    }
    return at_ms;
}

int fb_store_documents_again(fb_store_documents *sd)
{
    fb_job *job = NULL;
    int rc = 0;
    do {
        rc = fb_keeping_again(&sd->keeping, fb_clock_awake_or_not_ms(), &job);
        if (job != NULL) fb_worker_job(sd->worker, job);
    } while (rc == 0 && job != NULL);
    return rc;
}

/* What other programs did */

/* The document of a record that is deleted: an earlier process of this node had it on its way when
 * that was decided, or another program put it back. Taken away, guarded as ever. */
static void take_away(fb_store_documents *sd, const fb_outer *outer, uint32_t area)
{
    fb_room room = {.source = sd->keeping.split.room.source};
    fb_job *job = fb_room_take_zeroed(&room, sizeof *job);
    job->room = room;
    job->records = fb_room_take(&job->room, sizeof *job->records);
    job->record_count = 1;
    fb_span name = fb_span_of(outer->collection, strlen(outer->collection) + 1);
    job->records[0] = (fb_job_record){.area = area, .id = outer->id};
    job->records[0].collection = (const char *)fb_room_copy(&job->room, name).p;
    fb_worker_job(sd->worker, job);
}

static bool is_in(const fb_job *jobs, fb_span key, const fb_redo *redo)
{
    for (const fb_job *job = jobs; job != NULL; job = job->next) {
        for (size_t i = 0; i < job->redo_count; i++) {
            const fb_job_redo *served = &job->redo[i];
            if (served->incarnation == redo->incarnation && served->w == redo->w &&
                fb_span_equal(served->key, key)) {
                return true;
            }
        }
    }
    return false;
}

/* What the local store has of a record: that it is deleted; that a write of it is on its way, other
 * than one that makes it again as it was. */
static int is_known(fb_store_documents *sd, uint32_t area, const fb_outer *outer, bool *dead,
                    bool *waits)
{
    fb_id id = outer->id;
    uint8_t key[FB_RECORD_KEY_BYTES], named[1 + FB_RECORD_KEY_BYTES];
    fb_span record = fb_key_record(key, area, id), waiting = fb_redo_key(record, named), stored;
    int rc = look(sd, record, &stored);
    *dead = rc == 0 && stored.len != 0;
    *waits = false;
    if (rc == 0) rc = look(sd, waiting, &stored);
    if (rc != 0 || stored.len == 0) return rc;
    fb_redo redo;
    *waits = fb_redo_read(stored, &redo) && !is_in(sd->keeping.served, waiting, &redo) &&
             !is_in(sd->keeping.doubtful, waiting, &redo) &&
             !(redo.kind == FB_WRITE_PUT && fb_outer_is_as_it_was(outer, redo.value));
    return 0;
}

/* The local store did not answer. Entries that do not follow their format or do not match their
 * checksum stay so, and whoever reads them tells it. */
static void outer_unread(fb_store_documents *sd, fb_outer *outer, int rc)
{
    if (rc == EINVAL || rc == FB_LMDB_BAD_SUM) {
        fb_store_documents_outer_done(sd, outer);
        return;
    }
    outer->next = NULL;
    /* Of all of them: what fails for one now fails for the others. */
    sd->kept_until_ms = fb_clock_awake_or_not_ms() + FB_STORE_OUTER_AGAIN_MS;
    *sd->kept_end = outer;
    sd->kept_end = &outer->next;
}

fb_outer *fb_store_documents_outer_due(fb_store_documents *sd, uint64_t now_ms)
{
    fb_outer *outer = sd->kept;
    if (outer == NULL || now_ms < sd->kept_until_ms) return NULL;
    sd->kept = outer->next;
    if (sd->kept == NULL) sd->kept_end = &sd->kept;
    outer->next = NULL;
    return outer;
}

int fb_store_documents_outer(fb_store_documents *sd, fb_outer *outer, bool *forward)
{
    *forward = false;
    if (outer->kind == FB_OUTER_TOKEN) {
        fb_outer_free(sd->token);
        sd->token = outer;
        return 0;
    }
    fb_split_named named;
    bool known, waits = false, dead = false;
    int rc = fb_split_find(&sd->keeping.split, outer->collection, &named, &known);
    bool all = outer->kind == FB_OUTER_DROPPED && outer->collection[0] == 0;
    if (rc == 0 && known) {
        rc = is_known(sd, named.area, outer, &dead, &waits);
        outer->space = named.space;
        outer->area = named.id;
    }
    if (rc != 0) {
        outer_unread(sd, outer, rc);
        return rc;
    }
    if (!known && !all) {
        fb_store_documents_outer_done(sd, outer);
        return 0;
    }
    switch (outer->kind) {
    case FB_OUTER_STALE:
        if (dead) take_away(sd, outer, named.area);
        if (dead) atomic_fetch_add(&sd->late, 1);
        break;
    case FB_OUTER_DELETE:
    case FB_OUTER_LOST:
        /* What is not of this store is nobody's to miss. */
        if (outer->version.start != 0 && outer->version.start < sd->keeping.first) break;
        /* What this node removed, it knows to be deleted. */
        if (!dead && !waits && outer->look) {
            fb_worker_outer(sd->worker, outer);
            return 0;
        }
        *forward = !dead && !waits;
        if (*forward && outer->kind == FB_OUTER_LOST) {
            fb_keeping_missing(&sd->keeping, (fb_split_record){named.area, outer->id});
        }
        break;
    case FB_OUTER_EDIT:
        if (outer->restore.len != 0) {
            fb_worker_outer(sd->worker, outer);
            return 0;
        }
        *forward = outer->field_count != 0 || !outer->has_base;
        if (!*forward && outer->overwrote) atomic_fetch_add(&sd->overwritten, 1);
        break;
    case FB_OUTER_DROPPED:
        rc = all ? fb_keeping_dropped_all(&sd->keeping)
                 : fb_keeping_dropped(&sd->keeping, named.area);
        atomic_store(&sd->drops, sd->keeping.drops);
        if (rc != 0) {
            outer_unread(sd, outer, rc);
            return rc;
        }
        *forward = true;
        break;
    case FB_OUTER_LEFT:
        *forward = true;
        break;
    case FB_OUTER_TOKEN:
        break;
    }
    if (!*forward) fb_store_documents_outer_done(sd, outer);
    return 0;
}

void fb_store_documents_outer_done(fb_store_documents *sd, fb_outer *outer)
{
    fb_outer_free(outer);
    fb_worker_outer_done(sd->worker);
}

void fb_store_documents_outer_again(fb_store_documents *sd, fb_outer *outer)
{
    fb_worker_outer(sd->worker, outer);
}

bool fb_store_documents_has_token(const fb_store_documents *sd)
{
    return sd->token != NULL;
}

void fb_store_documents_stats(fb_store_documents *sd, fb_worker_stats *out)
{
    fb_worker_stats_get(sd->worker, out);
    out->late = atomic_load(&sd->late);
    out->remade = atomic_load(&sd->remade);
    out->not_equal = atomic_load(&sd->not_equal);
    out->overwritten = atomic_load(&sd->overwritten);
}
