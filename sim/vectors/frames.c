/* SPDX-License-Identifier: Apache-2.0 */
/* What crosses the links of a node that steps: plain records of streams, frames of carriers. */
#include "protocol/core/internal.h"
#include "protocol/link/external.h"
#include "protocol/link/record.h"
#include "protocol/link/state.h"
#include "protocol/space/table.h"
#include "sim/vectors/vectors.h"

/* Tables are looked at, no function of the core is called: a toy has none. */
uint32_t fb_sim_link_index(const fb_node *core, uint64_t number)
{
    for (uint32_t i = 0; i < core->links->high; i++) {
        const fb_link_info *info = &core->links->table[i].info;
        if (info->state != FB_LINK_FREE && info->number == number) return i;
    }
    return FB_NONE;
}

const fb_link_info *fb_sim_link_info(const fb_node *core, uint32_t index, fb_id *space,
                                     uint32_t *local)
{
    const fb_link_info *info = &core->links->table[index].info;
    *space = core->spaces->space[info->space].id;
    *local = core->spaces->space[info->space].local;
    return info;
}

static fb_sim_vector_frame *frame_add(fb_sim_export *x, bool opened, fb_span bytes)
{
    x->frames = fb_sim_grow(x->frames, x->frame_count, &x->frame_cap, sizeof x->frame_cap,
                            sizeof *x->frames);
    fb_sim_vector_frame *frame = &x->frames[x->frame_count++];
    *frame = (fb_sim_vector_frame){.opened = opened, .at = x->bytes.len, .len = bytes.len};
    fb_sim_text_add(&x->bytes, bytes.p, bytes.len);
    return frame;
}

fb_span fb_sim_frame_bytes(const fb_sim_export *x, const fb_sim_vector_frame *frame)
{
    return fb_span_of((const uint8_t *)x->bytes.bytes + frame->at, frame->len);
}

/* One record, as it is sealed or opened. A record that the step gives back is opened again later;
 * only what has a fact becomes a line. */
void fb_sim_frame_record(void *user, bool opened, fb_span plain)
{
    fb_sim_export *x = user;
    fb_record record;
    if (fb_record_parse(plain, &record) != FB_OK || record.bytes.len == 0) return;
    if (record.channel == FB_CHANNEL_CONTROL) {
        if (opened && record.bytes.p[0] == FB_CONTROL_HEARTBEAT) {
            frame_add(x, true, record.bytes)->heartbeat = true;
        }
        return;
    }
    if (record.channel != FB_CHANNEL_MESSAGING) return;
    if (record.flags == FB_RECORD_WHOLE) {
        (void)frame_add(x, opened, record.bytes);
        return;
    }
    if (!opened) return; /* no message of ours is so long */
    fb_sim_text *parts = &x->node[x->stepping].parts;
    if ((record.flags & FB_RECORD_FIRST) != 0) parts->len = 0;
    size_t before = parts->len;
    fb_sim_text_add(parts, record.bytes.p, record.bytes.len);
    if ((record.flags & FB_RECORD_LAST) != 0) {
        (void)frame_add(x, true, fb_span_of(parts->bytes, parts->len));
        parts->len = before; /* it may be opened again */
    }
}

void fb_sim_frame_external(fb_sim_export *x, bool opened, fb_span bytes)
{
    fb_external_frame external;
    if (fb_external_read(bytes, &external) != FB_OK || external.bytes.len == 0) return;
    bool heartbeat =
        external.channel == FB_CHANNEL_CONTROL && external.bytes.p[0] == FB_CONTROL_HEARTBEAT;
    if (external.channel != FB_CHANNEL_MESSAGING && !(opened && heartbeat)) return;
    fb_sim_vector_frame *frame = frame_add(x, opened, external.bytes);
    frame->external = true;
    frame->heartbeat = heartbeat;
    frame->session = external.sender_session;
    frame->peer_session = external.peer_session;
}
