/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of nodes whose records are documents. */
#ifndef FB_SIM_CHECKERS_DOCUMENTS_H
#define FB_SIM_CHECKERS_DOCUMENTS_H

#include "sim/checkers/list.h"
#include "sim/documents/documents.h"

void fb_sim_documents_newest(fb_sim_documents *d, const fb_sim_document *before,
                             const fb_sim_document_change *change);
void fb_sim_documents_stay_removed(fb_sim_documents *d, const fb_sim_document *before,
                                   const fb_sim_document_change *change);
void fb_sim_documents_acknowledged(fb_sim_documents *d, const fb_job *job);
void fb_sim_documents_redo_removed(fb_sim_documents *d, fb_span set);
void fb_sim_documents_one_writer(fb_sim_documents *d);
/* False: it was violated. */
bool fb_sim_documents_recovered(fb_sim_documents *d);

#endif
