/* SPDX-License-Identifier: Apache-2.0 */
/* Spaces and records on the nodes of a test_net, through the requests that a person would make. */
#ifndef FB_TESTS_NET_SPACE_H
#define FB_TESTS_NET_SPACE_H

#include "protocol/base/cursor.h"
#include "protocol/space/space.h"
#include "tests/unit/net.h"

/* The answer, which must be the last one. */
const test_reply *test_net_answer(test_net *net, uint32_t i, fb_verb verb, const fb_writer *w);

fb_id test_net_create_space(test_net *net, uint32_t i);

/* Invites, joins, approves, and gives 5 s to settle. */
void test_net_join(test_net *net, uint32_t i, uint32_t inviter, fb_id space, fb_role role);

fb_id test_net_record_id(uint32_t n);

/* One field of a record in a collection. */
fb_status test_net_put(test_net *net, uint32_t i, fb_id space, const char *collection,
                       uint32_t record, const char *value);
/* Is the record visible there? */
bool test_net_has(test_net *net, uint32_t i, fb_id space, const char *collection, uint32_t record);

/* Index of the open link from node i to node j, FB_NONE. */
uint32_t test_net_link(test_net *net, uint32_t i, uint32_t j);

#endif
