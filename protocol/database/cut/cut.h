/* SPDX-License-Identifier: Apache-2.0 */
/* What is above a cut of a member's is taken back: cut.c says where it is, mend.c does it. */
#ifndef FB_DATABASE_CUT_CUT_H
#define FB_DATABASE_CUT_CUT_H

#include "protocol/core/internal.h"
#include "protocol/database/database.h"

void fb_cut_layout(fb_node *node, fb_arena *arena);
void fb_cut_reset(fb_node *node);
void fb_mend_layout(fb_node *node, fb_arena *arena);
void fb_mend_reset(fb_node *node);
void fb_mend_started(fb_node *node);
fb_status fb_mend_load(fb_node *node, uint32_t area, fb_id peer, uint64_t incarnation,
                       fb_span value);
void fb_mend_durable(fb_node *node);
/* The last batch of a life that anybody takes; UINT64_MAX: it goes on. */
uint64_t fb_mend_limit(const fb_node *node, uint32_t area, fb_id signer, uint64_t incarnation);
/* Nothing of a life is taken that follows this batch of it: it is cut there. */
bool fb_mend_ends(const fb_node *node, uint32_t area, fb_id signer, uint64_t incarnation,
                  uint64_t batch, uint64_t claim);

#endif
