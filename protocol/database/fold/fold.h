/* SPDX-License-Identifier: Apache-2.0 */
/* What each member holds durably (report.c), and the batches below that of which nothing lives
 * (fold.c). */
#ifndef FB_DATABASE_FOLD_FOLD_H
#define FB_DATABASE_FOLD_FOLD_H

#include "protocol/database/area/area.h"
#include "protocol/database/batch/batch.h"
#include "protocol/database/database.h"
#include "protocol/database/record/record.h"
#include "protocol/store/ops.h"

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

/* What a report is made of (report.c), for who reads one. */

/* Collections: of these the cut is worked out. */
bool fb_report_is_about(const fb_area *area);
/* Approved members: of more than FB_CUT_MEMBERS_MAX nobody reports. */
uint32_t fb_report_members(const fb_node *node, uint32_t space);
/* Asks for the report of a member, in the next round; somebody has reported. Its item then gives
 * the one value there is, or false: no report, or several (a copied node wrote one of them). One
 * that is stored apart is asked for in another round. False of the two that read: a limit. */
bool fb_report_read(fb_node *node, fb_op *op, uint32_t space, fb_id member);
bool fb_report_sibling(const fb_node *node, const fb_op *op, uint32_t item, fb_sibling *out);
bool fb_report_read_apart(fb_node *node, fb_op *op, uint32_t space, fb_id member,
                          const fb_sibling *sibling);
/* The digits of such a value. */
fb_span fb_report_hex(fb_span value);
/* Goes through the entries: area, node, incarnation, batch. False: they do not follow the format,
 * or `each` says so. */
typedef bool (*fb_report_entry)(const fb_node *node, void *user, fb_id area, fb_id peer,
                                uint64_t incarnation, uint64_t batch);
bool fb_report_each(const fb_node *node, fb_span hex, fb_report_entry each, void *user);
/* All statements that are here are named. */
bool fb_report_names_statements(const fb_node *node, uint32_t space, fb_span hex);

/* reported.c: SPACE_REPORTED. */
void fb_reported_layout(fb_node *node);

/* fold.c: batches of which nothing lives, below the cut. */
void fb_fold_layout(fb_node *node);
void fb_fold_due(fb_node *node, uint32_t area);
/* Up to which batch every member holds a life; 0: not at all, or not known. */
uint64_t fb_fold_cut(const fb_node *node, uint32_t area, fb_id signer, uint64_t incarnation);
/* Something was taken back here, or can be unknown to the cut: what was seen dead may live again.
 */
void fb_fold_mended(fb_node *node, uint32_t area);

#endif
