/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/store/keys.h"
#include "sim/checkers/documents.h"

/* What the core is told to be kept is in the documents, or a later state is; and no redo entry is
 * taken out before that. DESIGN 7. */

static void expect(fb_sim_documents *d, const char *collection, fb_id id, uint64_t age,
                   const char *when)
{
    const fb_sim_document *document =
        fb_sim_documents_find(&d->server, fb_sim_documents_collection(collection), id);
    if (document != NULL && document->age >= age) return;
    if (fb_sim_documents_lately_dropped(d)) return; /* it was */
    fb_sim_violated(d->world, FB_SIM_SAFETY, fb_sim_check_documents_acknowledged.id,
                    "%s: %s, and a document is not that of write set " FB_SIM_DOCUMENTS_AGE,
                    fb_sim_name(d->node), when, FB_SIM_DOCUMENTS_AGE_OF(age));
}

void fb_sim_documents_acknowledged(fb_sim_documents *d, const fb_job *job)
{
    for (size_t i = 0; i < job->record_count; i++) {
        const fb_job_record *record = &job->records[i];
        if (record->outcome != FB_DOCUMENT_KEPT) continue;
        expect(d, record->collection, record->id,
               fb_sim_documents_age(d, record->incarnation, record->w), "a job is done");
    }
}

void fb_sim_documents_redo_removed(fb_sim_documents *d, fb_span set)
{
    fb_reader r = fb_reader_of(set);
    while (fb_reader_left(&r) > 0) {
        fb_write_entry entry = fb_write_entry_next(&r);
        fb_reader key = fb_reader_of(entry.key);
        if (entry.kind != FB_WRITE_DELETE || fb_read_u8(&key) != FB_TAG_REDO ||
            fb_read_u8(&key) != FB_TAG_RECORD) {
            continue;
        }
        uint32_t area = fb_read_u32(&key);
        fb_id id = fb_read_id(&key);
        fb_span stored;
        fb_redo redo;
        const char *collection;
        if (!fb_sim_store_get(&d->local, entry.key, &stored) || !fb_redo_read(stored, &redo) ||
            fb_split_collection(&d->keeping.split, area, &collection) != 0) {
            continue;
        }
        expect(d, collection, id, fb_sim_documents_age(d, redo.incarnation, redo.w),
               "a redo entry is taken out");
    }
}

const fb_sim_check fb_sim_check_documents_acknowledged = {
    .id = "documents-acknowledged",
    .musts = "DESIGN 7",
    .cost = "O(1) a document",
    .text = "what is acknowledged, or has no redo entry any more, is in the documents",
};
