/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/documents.h"

/* Whatever comes late, twice or from a process that is gone: no document has an older state of its
 * record after a newer one. DESIGN 7. */

void fb_sim_documents_newest(fb_sim_documents *d, const fb_sim_document *before,
                             const fb_sim_document_change *change)
{
    if (!before->there || before->mark || change->age >= before->age) return;
    fb_sim_violated(d->world, FB_SIM_SAFETY, fb_sim_check_documents_newest.id,
                    "%s: a document's state of write set " FB_SIM_DOCUMENTS_AGE
                    " is replaced by that of " FB_SIM_DOCUMENTS_AGE,
                    fb_sim_name(d->node), FB_SIM_DOCUMENTS_AGE_OF(before->age),
                    FB_SIM_DOCUMENTS_AGE_OF(change->age));
}

const fb_sim_check fb_sim_check_documents_newest = {
    .id = "documents-newest",
    .musts = "DESIGN 7",
    .cost = "O(1) a change of a document",
    .text = "no older state of a record takes the place of a newer one in documents",
};
