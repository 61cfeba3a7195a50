/* SPDX-License-Identifier: Apache-2.0 */
/* What each member holds durably (report.c), and the batches below that of which nothing lives
 * (fold.c). */
#ifndef FB_DATABASE_FOLD_FOLD_H
#define FB_DATABASE_FOLD_FOLD_H

#include "protocol/database/batch/batch.h"
#include "protocol/database/database.h"

/* report.c: what each member holds durably, and the stable cut that follows from it. */
void fb_reports_layout(fb_node *node);
void fb_reports_reset(fb_node *node);
void fb_reports_started(fb_node *node);
/* More is durable of an area than before. */
void fb_report_due(fb_node *node, uint32_t area);
/* A report came. */
void fb_cut_due(fb_node *node, uint32_t space);
/* May this node state cuts? Told by fb_cut_promised (cut.c): FB_ERR_BEHIND while it holds less than
 * it has reported, or has not reported yet. */
void fb_report_promise(fb_node *node, uint32_t space);
void fb_cut_promised(fb_node *node, uint32_t space, fb_status status);
/* The reports are not read yet: nobody knows what is folded here. */
bool fb_report_is_awaited(const fb_node *node, uint32_t space);
/* May this batch stand in the area of reports? */
fb_status fb_report_check(const fb_node *node, uint32_t space, const fb_batch *batch, fb_id signer,
                          const fb_change *changes);

/* Reads what the others have said to hold of the life that a fetch brings a gap of
 * (fb_fetch.folded); fb_fetch_judged follows. False: that is known already (folded.judged), or it
 * cannot be asked now. */
bool fb_report_judge(fb_node *node, uint32_t fetch);

/* fold.c: batches of which nothing lives, below the cut. */
void fb_fold_layout(fb_node *node);
void fb_fold_due(fb_node *node, uint32_t area);
/* Up to which batch every member holds a life; 0: not at all, or not known. */
uint64_t fb_fold_cut(const fb_node *node, uint32_t area, fb_id signer, uint64_t incarnation);
/* Something was taken back here, or can be unknown to the cut: what was seen dead may live again.
 */
void fb_fold_mended(fb_node *node, uint32_t area);

#endif
