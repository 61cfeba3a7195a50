/* SPDX-License-Identifier: Apache-2.0 */
#include "io/document_store/call.h"

#include <stdio.h>
#include <stdlib.h>

#include "io/clock.h"
#include "protocol/base/assert.h"

static bool found(void *user, const fb_document *document)
{
    fb_handing_found(user, document);
    return true;
}

static fb_status put(const fb_documents_ops *ops, fb_documents *documents, fb_handing *h,
                     const fb_handing_call *c, char *why, size_t why_len)
{
    fb_document_outcome *outcomes = calloc(c->count, sizeof *outcomes);
    bool durable = false;
    FB_ASSERT(outcomes != NULL);
    fb_status status = ops->put(documents, c->changes, c->count, outcomes, &durable, why, why_len);
    size_t count = c->count;
    fb_handing_was_put(h, fb_clock_awake_or_not_ms(), status, durable, outcomes);
    for (size_t i = 0; status == FB_OK && i < count; i++) {
        if (outcomes[i] == FB_DOCUMENT_OPEN) status = FB_ERR_UNREACHABLE;
    }
    free(outcomes);
    return status == FB_OK && !durable ? FB_ERR_UNREACHABLE : status;
}

fb_status fb_documents_call(const fb_documents_ops *ops, fb_documents *documents, fb_handing *h,
                            const fb_handing_call *c, char *why, size_t why_len)
{
    uint64_t number = c->number;
    fb_status status = FB_OK;
    if (c->kind == FB_HANDING_FENCE) {
        bool older = false;
        status = ops->fence(documents, &number, &older, why, why_len);
        h->older = h->older || (status == FB_OK && older);
        fb_handing_fenced(h, fb_clock_awake_or_not_ms(), status, number);
    } else if (c->kind == FB_HANDING_CONFIRM) {
        status = ops->confirm(documents, &number, why, why_len);
        fb_handing_confirmed(h, fb_clock_awake_or_not_ms(), status, number);
    } else if (c->kind == FB_HANDING_GET) {
        status = ops->get(documents, c->collection, c->ids, c->count, found, h, why, why_len);
        fb_handing_got(h, fb_clock_awake_or_not_ms(), status);
    } else {
        status = put(ops, documents, h, c, why, why_len);
    }
    if (!h->locked) return status;
    snprintf(why, why_len,
             "documents of a later start are there: another process of this node writes to this "
             "database");
    return FB_ERR_STORE_LOCKED;
}
