/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/doctor: what is wrong here and what helps, and per peer why an item may not be there. */
#ifndef FB_RUNTIME_API_DOCTOR_H
#define FB_RUNTIME_API_DOCTOR_H

#include "runtime/api/exchange.h"

typedef enum fb_verdict {
    FB_VERDICT_OK,
    FB_VERDICT_WARNING,
    FB_VERDICT_FAILED,
} fb_verdict;

const char *fb_verdict_name(fb_verdict verdict);

/* Appends {"check","status","detail"} and, unless it is ok, "remedy"; keeps the worst verdict. */
void fb_doctor_check(fb_text *out, fb_verdict *worst, const char *check, fb_verdict verdict,
                     const char *detail, const char *remedy);

/* The checks that ask nobody: store, disk, descriptors, listener. Elements of an open array. */
void fb_doctor_node(fb_exchange *x, fb_verdict *worst);

/* The checks of what the node answered to SPACE_LIST and PEER_LIST. */
void fb_doctor_spaces(fb_text *out, fb_verdict *worst, fb_span spaces, fb_span peers);

/* For each space whether some member that is gone keeps batches from being folded. */
struct fb_held_back;
void fb_doctor_held_back(fb_text *out, fb_verdict *worst, const struct fb_held_back *held,
                         fb_span peers, fb_id self);

#endif
