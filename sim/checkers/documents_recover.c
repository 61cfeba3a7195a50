/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/documents.h"

/* A server that serves again is asked again soon, and what waited for it is handed on by itself.
 * DESIGN 7. */

void fb_sim_check_documents_pauses(fb_sim_documents *d, uint64_t pause_ms)
{
    if (!d->world->config.checks) return;
    fb_sim_check_saw(d->world, &fb_sim_check_documents_recover);
    if (pause_ms <= FB_HANDING_RETRY_MAX_MS) return;
    fb_sim_violated(d->world, FB_SIM_LIVENESS, fb_sim_check_documents_recover.id,
                    "%s: its server is not asked for %llu ms", fb_sim_name(d->node),
                    (unsigned long long)pause_ms);
}

void fb_sim_check_documents_locked(fb_sim_documents *d)
{
    if (!d->world->config.checks || d->overtaken) return;
    fb_sim_violated(d->world, FB_SIM_LIVENESS, fb_sim_check_documents_recover.id,
                    "%s: it gives way to another process, and there is none", fb_sim_name(d->node));
}

bool fb_sim_documents_recovered(fb_sim_documents *d)
{
    if (d->handing.job == NULL && d->handing.jobs == NULL && !d->handing.locked) return true;
    fb_sim_violated(d->world, FB_SIM_LIVENESS, fb_sim_check_documents_recover.id,
                    "%s: write sets wait for documents although nothing is in their way",
                    fb_sim_name(d->node));
    return false;
}

const fb_sim_check fb_sim_check_documents_recover = {
    .id = "documents-recover",
    .musts = "DESIGN 7",
    .cost = "O(1) a pause",
    .text = "once its server serves again, what waited is handed on soon and by itself",
};
