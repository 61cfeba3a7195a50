/* SPDX-License-Identifier: Apache-2.0 */
/* A receiver's state as JSON: the context of the command contract, section 2. */
#ifndef FB_RUNTIME_CONFORMANCE_RECEIVER_JSON_H
#define FB_RUNTIME_CONFORMANCE_RECEIVER_JSON_H

#include <jansson.h>

#include "runtime/conformance/receiver.h"

/* What is wrong with a context. */
typedef struct fb_receiver_fault {
    char where[160]; /* the member, e.g. "members[1].status"; what it holds may be anything */
    const char *what;
} fb_receiver_fault;

/* Fills a new receiver. session: members of the conformance adapter are allowed as well: limits of
 * rate and ids, and the timestamps of those seen (docs/ADAPTER.md). False with *fault. */
bool fb_receiver_read(fb_receiver *receiver, json_t *context, bool session,
                      fb_receiver_fault *fault);

/* "approved", "pending" or "revoked"; FB_RECEIVER_UNKNOWN for anything else. */
fb_receiver_status fb_receiver_status_named(const json_t *value);

#endif
