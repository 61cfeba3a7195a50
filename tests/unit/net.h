/* SPDX-License-Identifier: Apache-2.0 */
/* A few real nodes in one process for unit tests: memory stores, virtual time, links without
 * faults. Deterministic and simple; faults are the simulator's. */
#ifndef FB_TESTS_NET_H
#define FB_TESTS_NET_H

#include "protocol/core/node.h"
#include "protocol/core/request.h"

typedef struct test_net test_net;

typedef struct test_reply {
    bool done; /* the last reply arrived */
    fb_status status;
    uint32_t pieces; /* of a stream */
    size_t len;
    uint8_t bytes[65536];
} test_reply;

/* count nodes with sodium providers and keys made of equal bytes, all started. tweak may change
 * each node's options (NULL: fb_options_small). */
test_net *test_net_new(uint32_t count, void (*tweak)(fb_options *options));
void test_net_free(test_net *net);

fb_node *test_net_node(test_net *net, uint32_t i);

/* Delivers everything that is under way, without letting time pass, until nothing is. */
void test_net_settle(test_net *net);
/* Lets time pass, delivering and ticking in order. */
void test_net_run(test_net *net, uint64_t ns);

/* While paused, a node's store answers nothing. */
void test_net_pause_store(test_net *net, uint32_t i, bool paused);
/* The next write set fails. */
void test_net_fail_write(test_net *net, uint32_t i);
/* Loses everything volatile and starts again from the store; links are closed. */
void test_net_restart(test_net *net, uint32_t i);

/* Why the last incarnation ended, FB_OK before one did. After FB_ERR_VERSION_NEWER the node stays
 * without a start; after anything else it is started again at once. */
fb_error test_net_last_end(test_net *net, uint32_t i);

/* A byte stream address of node i, for invites and `peers add`: "test:I". */
const char *test_net_address(uint32_t i);
/* External carrier between two nodes for a space, both ends; or its end. */
void test_net_carrier(test_net *net, uint32_t i, uint32_t j, fb_id space);
/* Cuts every byte stream between two nodes and refuses new ones until healed. */
void test_net_cut(test_net *net, uint32_t i, uint32_t j, bool cut);

/* Asks and settles; a request that is still open then has done == false. */
uint64_t test_net_ask(test_net *net, uint32_t i, fb_verb verb, uint64_t principal,
                      fb_span arguments);
const test_reply *test_net_reply(test_net *net, uint64_t request);
void test_net_credit(test_net *net, uint32_t i, uint64_t request, uint64_t bytes);
void test_net_cancel(test_net *net, uint32_t i, uint64_t request);

/* Facts seen since the last call with clear, by kind. */
uint32_t test_net_facts(test_net *net, uint32_t i, fb_fact fact);
void test_net_clear_facts(test_net *net);

/* The store of a node: entries in key order; false past the end. */
bool test_net_stored(test_net *net, uint32_t i, size_t at, fb_span *key, fb_span *value);
/* Changes a stored value behind the node's back (damage, rollback). */
void test_net_store_put(test_net *net, uint32_t i, fb_span key, fb_span value);
void test_net_store_delete(test_net *net, uint32_t i, fb_span key);

/* Hands an event of the test's own to a node (time is filled in) and carries out its effects. */
fb_status test_net_event(test_net *net, uint32_t i, fb_event event);

#endif
