/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/documents.h"

/* A document that was removed is not made again by what was put before that, and came late.
 * DESIGN 7. */

void fb_sim_documents_stay_removed(fb_sim_documents *d, const fb_sim_document *before,
                                   const fb_sim_document_change *change)
{
    bool gone = !before->there || before->mark;
    if (!gone || !change->puts || change->age >= before->age) return;
    if (fb_sim_documents_is_lost(d, change->version)) return; /* it is none of this node's */
    fb_sim_violated(d->world, FB_SIM_SAFETY, fb_sim_check_documents_stay_removed.id,
                    "%s: a document that write set " FB_SIM_DOCUMENTS_AGE
                    " removed is made again by " FB_SIM_DOCUMENTS_AGE,
                    fb_sim_name(d->node), FB_SIM_DOCUMENTS_AGE_OF(before->age),
                    FB_SIM_DOCUMENTS_AGE_OF(change->age));
}

const fb_sim_check fb_sim_check_documents_stay_removed = {
    .id = "documents-stay-removed",
    .musts = "DESIGN 7",
    .cost = "O(1) a change of a document",
    .text = "a removed document is not made again by a put from before",
};
