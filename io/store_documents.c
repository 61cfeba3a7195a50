/* SPDX-License-Identifier: Apache-2.0 */
#include "io/store_documents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"
#include "protocol/store/keys.h"
#include "protocol/store/writeset.h"

struct fb_store_documents {
    fb_lmdb_env *env;
    fb_split split;
    fb_worker *worker;
    uint64_t start, start_stored; /* the number of this start, and what the store has of it */
    fb_room room;                 /* of the group that is being committed */
    fb_split_record *touched;     /* by it */
    size_t touched_count, touched_cap;
    fb_job *served, **served_end;
    size_t served_count, cleaning; /* of the served: those that the group takes out */
};

/* The number of the last start: no entry has this key, as none has an empty one. */
static const uint8_t start_key[] = {FB_TAG_REDO};

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

static int load_start(fb_store_documents *sd)
{
    fb_span stored;
    int rc = look(sd, fb_span_of(start_key, sizeof start_key), &stored);
    if (rc != 0) return rc;
    fb_reader r = fb_reader_of(stored);
    sd->start_stored = fb_read_u64(&r);
    sd->start = sd->start_stored;
    return 0;
}

int fb_store_documents_open(fb_lmdb_env *env, const fb_documents_ops *ops, fb_documents *documents,
                            const fb_worker_ops *callbacks, fb_store_documents **out)
{
    fb_store_documents *sd = calloc(1, sizeof *sd);
    FB_ASSERT(sd != NULL);
    sd->env = env;
    sd->split.store = (fb_split_store){look, scan, sd};
    sd->served_end = &sd->served;
    int rc = load_start(sd);
    if (rc == 0) {
        sd->worker = fb_worker_new(ops, documents, sd->start, callbacks);
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
    int rc = fb_job_found(&sd->split, &found);
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
    while (sd->served != NULL) {
        fb_job *next = sd->served->next;
        fb_job_free(sd->served);
        sd->served = next;
    }
    fb_room_free(&sd->room);
    free(sd->touched);
    fb_split_free(&sd->split);
    free(sd);
}

int fb_store_documents_read(fb_store_documents *sd, uint64_t operation, uint64_t incarnation,
                            uint64_t w, fb_span read_set, fb_span local, bool *taken)
{
    fb_reading *reading;
    int rc = fb_reading_needed(&sd->split, read_set, taken);
    if (rc != 0 || !*taken) return rc;
    rc = fb_reading_begin(&sd->split, read_set, local, &reading);
    *taken = rc == 0;
    if (rc != 0) return rc;
    reading->operation = operation;
    reading->incarnation = incarnation;
    reading->w = w;
    fb_worker_read(sd->worker, reading);
    return 0;
}

int fb_store_documents_split(fb_store_documents *sd, uint64_t incarnation, uint64_t w, fb_span set,
                             fb_span *local)
{
    fb_split_record *records;
    size_t count;
    int rc = fb_split_write(&sd->split, incarnation, w, set, &sd->room, local, &records, &count);
    if (rc != 0 || count == 0) return rc;
    if (sd->touched_count + count > sd->touched_cap) {
        sd->touched_cap = 2 * (sd->touched_count + count);
        sd->touched = realloc(sd->touched, sd->touched_cap * sizeof *sd->touched);
        FB_ASSERT(sd->touched != NULL);
    }
    memcpy(sd->touched + sd->touched_count, records, count * sizeof *records);
    sd->touched_count += count;
    return 0;
}

static fb_span start_entry(fb_store_documents *sd)
{
    size_t bytes = fb_write_entry_bytes(sizeof start_key, 8);
    fb_writer w = fb_writer_of(fb_room_take(&sd->room, bytes), bytes);
    fb_write_u8(&w, FB_WRITE_PUT);
    fb_write_u8(&w, 0);
    fb_write_u16(&w, sizeof start_key);
    fb_write_u32(&w, 8);
    fb_write_bytes(&w, start_key, sizeof start_key);
    fb_write_u64(&w, sd->start);
    while (w.at < bytes) fb_write_u8(&w, 0);
    return fb_writer_span(&w);
}

int fb_store_documents_clean(fb_store_documents *sd, fb_span *set)
{
    size_t bytes = 0, parts = 0;
    fb_span *part = fb_room_take(&sd->room, (sd->served_count + 1) * sizeof *part);
    *set = (fb_span){NULL, 0};
    sd->cleaning = 0;
    if (sd->start != sd->start_stored) part[parts++] = start_entry(sd);
    for (const fb_job *job = sd->served; job != NULL; job = job->next) {
        int rc = fb_job_served(&sd->split, job, &sd->room, &part[parts++]);
        if (rc != 0) return rc;
        sd->cleaning++;
    }
    for (size_t i = 0; i < parts; i++) bytes += part[i].len;
    if (bytes == 0) return 0;
    fb_writer w = fb_writer_of(fb_room_take(&sd->room, bytes), bytes);
    for (size_t i = 0; i < parts; i++) fb_write_span(&w, part[i]);
    *set = fb_writer_span(&w);
    return 0;
}

static void forget_cleaned(fb_store_documents *sd)
{
    sd->start_stored = sd->start;
    for (; sd->cleaning > 0; sd->cleaning--, sd->served_count--) {
        fb_job *next = sd->served->next;
        fb_job_free(sd->served);
        sd->served = next;
    }
    if (sd->served == NULL) sd->served_end = &sd->served;
}

int fb_store_documents_over(fb_store_documents *sd, bool committed, uint64_t incarnation,
                            uint64_t w)
{
    int rc = 0;
    if (committed) {
        forget_cleaned(sd);
        fb_job *job;
        if (w != 0) {
            rc = fb_job_make(&sd->split, incarnation, w, sd->touched, sd->touched_count, &job);
            if (rc == 0) fb_worker_job(sd->worker, job);
        }
    }
    sd->cleaning = 0;
    sd->touched_count = 0;
    fb_room_free(&sd->room);
    return rc;
}

void fb_store_documents_served(fb_store_documents *sd, fb_job *job, uint64_t start)
{
    job->next = NULL;
    sd->start = start;
    *sd->served_end = job;
    sd->served_end = &job->next;
    sd->served_count++;
}

bool fb_store_documents_wants_cleaning(const fb_store_documents *sd, bool closing)
{
    return sd->served_count >= FB_STORE_SERVED_MAX || (closing && sd->served_count != 0);
}

void fb_store_documents_stats(fb_store_documents *sd, fb_worker_stats *out)
{
    fb_worker_stats_get(sd->worker, out);
}
