/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to `faberio conformance adapter`: a node of the core in virtual time, whose peers are
 * played by the suite (docs/ADAPTER.md, "Node"). */
#ifndef FB_RUNTIME_CONFORMANCE_NODE_H
#define FB_RUNTIME_CONFORMANCE_NODE_H

#include <jansson.h>

typedef struct fb_adapter_node fb_adapter_node;

/* Carries out one request of op "node". *node is what `open` made, NULL before. NULL with *why for
 * a request that is not understood. */
json_t *fb_adapter_node_answer(fb_adapter_node **node, const json_t *request, const char **why);

void fb_adapter_node_free(fb_adapter_node *node); /* NULL is allowed */

#endif
