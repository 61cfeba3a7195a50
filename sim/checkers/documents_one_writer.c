/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/documents.h"

/* Two processes of one node, on two machines: nothing is acknowledged of what the earlier one put
 * after the later one had begun to; and no two of them have one number, by which neither would
 * notice the other one and each take the other's documents for its own. DESIGN 7. */

void fb_sim_documents_one_writer(fb_sim_documents *d)
{
    bool same = d->rival != 0 && d->rival == d->handing.start;
    if (!d->job_overtaken && !same) return;
    fb_sim_violated(d->world, FB_SIM_SAFETY, fb_sim_check_documents_one_writer.id,
                    "%s: start %llu goes on writing beside start %llu", fb_sim_name(d->node),
                    (unsigned long long)d->handing.start,
                    (unsigned long long)(same ? d->rival : d->server.writer));
}

const fb_sim_check fb_sim_check_documents_one_writer = {
    .id = "documents-one-writer",
    .musts = "DESIGN 7",
    .cost = "O(1) a job",
    .text = "of two processes of a node one has what it writes acknowledged",
};
