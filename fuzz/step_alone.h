/* SPDX-License-Identifier: Apache-2.0 */
/* Of the two nodes of step_world.h only node 0 goes on: what is for node 1 is lost, and of what it
 * had sent nothing arrives. Its part is the input's. Included by one source file of a program. */
#ifndef FB_FUZZ_STEP_ALONE_H
#define FB_FUZZ_STEP_ALONE_H

#include "fuzz/step_world.h"

#include "protocol/database/keys.h"
#include "protocol/database/record/record.h"

/* ---- Records of the collection "notes" ---- */

static fb_id record_of(uint8_t n)
{
    return (fb_id){{1, 0x90, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, n}};
}

static void put(world *w, uint32_t i, uint8_t n, const char *field, const char *value)
{
    uint8_t bytes[256];
    fb_writer out = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&out, w->space);
    fb_write_u8(&out, FB_AREA_COLLECTION);
    fb_write_span16(&out, fb_span_text("notes"));
    fb_write_id(&out, record_of(n));
    fb_write_u8(&out, 2);
    fb_write_u8(&out, 0);
    fb_write_id(&out, (fb_id){{0}});
    fb_write_u16(&out, 1);
    fb_write_span16(&out, fb_span_text(field));
    fb_write_u8(&out, 1);
    fb_write_span32(&out, fb_span_text(value));
    ask(w, i, FB_VERB_RECORD_PUT, fb_writer_span(&out));
}

static fb_area *area_of(const fb_node *node, fb_id space)
{
    uint32_t index =
        fb_area_find(node, fb_area_id(space, FB_AREA_COLLECTION, fb_span_text("notes")));
    FB_ASSERT(index != FB_NONE);
    return fb_area_get(node, index);
}

/* ---- Node 0 alone ---- */

/* Node 1 does not run, and nothing of it arrives. */
static void mute(world *w)
{
    for (uint32_t k = 0; k < w->queued;) {
        const pending *p = &w->queue[k];
        if (p->node != 0 || p->event.kind == FB_EV_LINK_BYTES) {
            free(dequeue(w, k).bytes);
        } else {
            k++;
        }
    }
}

static void go_on(world *w, uint32_t most)
{
    mute(w);
    for (; most > 0 && w->queued > 0; most--) {
        deliver(w, 0);
        mute(w);
    }
}

/* ---- Its store ---- */

/* A value of node 0's store; empty: it is not there. */
static fb_span stored_of(const world *w, fb_span key)
{
    const machine *m = &w->machines[0];
    uint32_t at = find(m, key);
    bool there = at < m->stored && fb_span_equal(m->store[at].key, key);
    return there ? m->store[at].value : (fb_span){NULL, 0};
}

#endif
