/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the server, and what the weather makes of them. */
#ifndef FB_SIM_DOCUMENTS_CALLS_H
#define FB_SIM_DOCUMENTS_CALLS_H

#include "sim/documents/documents.h"

/* What an entry of the queue is about: else it is the answer to the call of this place. */
#define FB_SIM_DOCUMENTS_WAKE       0x80000000u
#define FB_SIM_DOCUMENTS_READ       0x40000000u
#define FB_SIM_DOCUMENTS_TAKEN_OVER 0x20000000u
#define FB_SIM_DOCUMENTS_DROPPED    0x10000000u

/* Where another process has taken a node over and is gone, its operator starts the node again. */
void fb_sim_documents_taken_over(fb_sim_documents *d);

/* documents.c */
void fb_sim_documents_pump(fb_sim_documents *d);

void fb_sim_documents_send(fb_sim_documents *d, const fb_handing_call *call);
/* The answer to the process's call is here, or its patience is over. */
void fb_sim_documents_answered(fb_sim_documents *d, uint32_t place);
/* Nobody waits for the running call any more. */
void fb_sim_documents_call_left(fb_sim_documents *d);

bool fb_sim_documents_away(fb_sim_documents *d);
uint64_t fb_sim_documents_mean_ns(const fb_sim_documents *d);

#endif
