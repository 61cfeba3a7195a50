/* SPDX-License-Identifier: Apache-2.0 */
/* What checks of documents are told of. */
#include "sim/checkers/documents.h"

void fb_sim_check_documents_applied(fb_sim_documents *d, const fb_sim_document *before,
                                    const fb_sim_document_change *change)
{
    if (!d->world->config.checks) return;
    fb_sim_check_saw(d->world, &fb_sim_check_documents_newest);
    fb_sim_documents_newest(d, before, change);
    fb_sim_check_saw(d->world, &fb_sim_check_documents_stay_removed);
    fb_sim_documents_stay_removed(d, before, change);
}

void fb_sim_check_documents_done(fb_sim_documents *d, const fb_job *job)
{
    if (!d->world->config.checks) return;
    fb_sim_check_saw(d->world, &fb_sim_check_documents_acknowledged);
    fb_sim_documents_acknowledged(d, job);
    fb_sim_check_saw(d->world, &fb_sim_check_documents_one_writer);
    fb_sim_documents_one_writer(d);
}

void fb_sim_check_documents_cleaned(fb_sim_documents *d, fb_span set)
{
    if (d->world->config.checks) fb_sim_documents_redo_removed(d, set);
}
