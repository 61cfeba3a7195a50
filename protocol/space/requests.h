/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of spaces and of applications (core/request.h). For the files of this folder only. */
#ifndef FB_SPACE_REQUESTS_H
#define FB_SPACE_REQUESTS_H

#include "protocol/space/table.h"

/* From the plane's layout. */
void fb_space_verbs_register(fb_node *node);
void fb_application_verbs_register(fb_node *node);

/* An operator's request: refuses every other principal and answers. */
bool fb_request_by_operator(fb_node *node, fb_request request);

/* Something is durable: requests that wait for a mark of ids go on. */
void fb_space_requests_durable(fb_node *node);

/* The most that fb_database_open_space puts. */
#define FB_OPEN_SPACE_BYTES   1024u
#define FB_OPEN_SPACE_ENTRIES 8u

#endif
