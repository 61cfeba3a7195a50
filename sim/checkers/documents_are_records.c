/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/keys.h"
#include "protocol/database/record/record.h"
#include "protocol/store/keys.h"
#include "sim/checkers/documents.h"

/* A core that is quiet: its documents are its living records, byte by byte, and there are no
 * others; everything was
 * handed on; and each redo entry is one that somebody still owes. DESIGN 7.
 */

typedef struct walking {
    fb_sim_documents *d;
    uint32_t expected, redo;
} walking;

static void record_at(void *user, fb_span key, fb_span value)
{
    walking *walk = user;
    fb_sim_documents *d = walk->d;
    fb_reader k = fb_reader_of(key);
    fb_read_u8(&k);
    uint32_t area = fb_read_u32(&k);
    fb_id id = fb_read_id(&k);
    bool documents;
    const char *collection;
    fb_record record;
    int64_t stamp;
    if (fb_split_is_document(&d->keeping.split, area, &documents) != 0 || !documents) return;
    if (fb_record_decode(value, &record) != FB_OK ||
        !fb_record_visible(&record, INT64_MAX, &stamp)) {
        return;
    }
    if (fb_split_collection(&d->keeping.split, area, &collection) != 0) return;
    walk->expected++;
    const fb_sim_document *document =
        fb_sim_documents_find(&d->server, fb_sim_documents_collection(collection), id);
    bool same = document != NULL && document->there && !document->mark &&
                !fb_sim_documents_is_lost(d, document->version) &&
                fb_span_equal(fb_sim_documents_record(d->server.blobs, document->bytes), value);
    /* One that was made again and could not be proven is told, and may have too much. */
    if (same || (document != NULL && d->keeping.not_equal != 0)) return;
    fb_sim_violated(d->world, FB_SIM_SAFETY, fb_sim_check_documents_are_records.id,
                    "%s: a record is no document, or another one", fb_sim_name(d->node));
}

static void redo_at(void *user, fb_span key, fb_span value)
{
    (void)value;
    if (key.len > 1) ((walking *)user)->redo++;
}

static uint32_t owed_by(const fb_job *job)
{
    uint32_t count = 0;
    for (; job != NULL; job = job->next) count += (uint32_t)job->redo_count;
    return count;
}

static void judge(fb_sim_world *world, fb_sim_documents *d)
{
    if (!fb_sim_documents_recovered(d)) return;
    walking walk = {.d = d};
    static const uint8_t records = FB_TAG_RECORD, redo = FB_TAG_REDO;
    fb_sim_store_walk(&world->nodes[d->node].store, fb_span_of(&records, 1), record_at, &walk);
    uint32_t there = 0;
    for (uint32_t i = 0; i < d->server.count; i++) {
        const fb_sim_document *document = &d->server.documents[i];
        there +=
            document->there && !document->mark && !fb_sim_documents_is_lost(d, document->version);
    }
    if (there != walk.expected) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_documents_are_records.id,
                        "%s: %u documents of %u records", fb_sim_name(d->node), (unsigned)there,
                        (unsigned)walk.expected);
    }
    fb_sim_store_walk(&d->local, fb_span_of(&redo, 1), redo_at, &walk);
    uint32_t owed = owed_by(d->keeping.served) + owed_by(d->keeping.doubtful);
    if (walk.redo > owed) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_documents_redo_bounded.id,
                        "%s: %u redo entries, of which nobody owes more than %u",
                        fb_sim_name(d->node), (unsigned)walk.redo, (unsigned)owed);
    }
}

static void round_end(fb_sim_world *world, void *own)
{
    (void)own;
    for (uint32_t i = 0; i < world->config.nodes && !world->stop; i++) {
        const fb_sim_node *node = &world->nodes[i];
        bool quiet = node->documents != NULL && node->documents->up && node->running &&
                     !node->needs_start && node->write_count == 0 && !world->held_apart[i];
        if (quiet) judge(world, node->documents);
    }
}

const fb_sim_check fb_sim_check_documents_are_records = {
    .id = "documents-are-records",
    .musts = "DESIGN 7",
    .cost = "round",
    .text = "the documents of a quiet node are its living records, and there are no others",
    .round = round_end,
};
const fb_sim_check fb_sim_check_documents_redo_bounded = {
    .id = "documents-redo-bounded",
    .musts = "DESIGN 7",
    .cost = "round",
    .text = "no redo entry stays for which nothing is going to be done",
};
