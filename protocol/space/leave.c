/* SPDX-License-Identifier: Apache-2.0 */
/* Verb: leave. A member states it (revoke.c). Of a space that has not taken this node yet, nothing
 * is here but its name, the invite and an empty area, and no member knows of this node for certain.
 *
 * Its place in the table stays until the next START, as links that are closing still name it, and
 * its number in store keys for ever. */
#include "protocol/link/link.h"
#include "protocol/space/requests.h"
#include "protocol/space/store.h"

uint32_t fb_space_find_left(const fb_node *node, fb_id space)
{
    for (uint32_t i = 0; i < node->options.sizes.spaces; i++) {
        const fb_space *s = fb_space_at(node, i);
        if (s->used && s->left && fb_id_equal(s->id, space)) return i;
    }
    return FB_NONE;
}

/* May the space be forgotten just so? */
static fb_status may_leave(const fb_node *node, uint32_t index)
{
    if (index == FB_NONE) return FB_ERR_NOT_FOUND;
    const fb_space *space = fb_space_at(node, index);
    if (space->own != FB_NONE || !space->joining.given) return FB_ERR_UNSUPPORTED;
    return space->taken || space->rooted ? FB_ERR_CONFLICT : FB_OK;
}

static void leave_run(fb_node *node, fb_op *op)
{
    const fb_asked *asked = fb_op_context(op);
    fb_status status = fb_op_status(op);
    if (status == FB_OK) status = may_leave(node, asked->space);
    if (status != FB_OK) {
        fb_request_answer_refusal(node, &asked->by, status);
        return;
    }
    fb_space *space = fb_space_at(node, asked->space);
    fb_link_forget_space(node, asked->space);
    for (uint32_t i = 0; i < fb_link_capacity(node); i++) {
        const fb_link_info *link = fb_link_at(node, i);
        if (link->space != asked->space || link->state == FB_LINK_FREE ||
            link->state == FB_LINK_CLOSING) {
            continue;
        }
        fb_link_close(node, i, FB_ERR_CANCELLED);
    }
    if (space->waiting.number != 0) {
        fb_request_answer_refusal(node, &space->waiting, FB_ERR_CANCELLED);
    }
    for (uint32_t i = 0; i < node->options.sizes.applications; i++) {
        fb_application *application = &node->spaces->application[i];
        if (!application->used || (application->spaces >> asked->space & 1u) == 0) continue;
        /* In the store it names the space by its number, which stands for none from now on. */
        application->spaces &= ~(UINT64_C(1) << asked->space);
        fb_digest_touch(node, FB_DIGEST_APPLICATION, i);
    }
    fb_timer_clear(node, &space->timer);
    space->waiting.number = 0;
    space->joining.dialled = false;
    space->left = true;
    fb_space_touch(node, asked->space);
    fb_space_put(node, asked->space);
    fb_request_answer(node, &asked->by, FB_OK, FB_NO_BYTES);
}

void fb_space_on_leave(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    uint32_t space = fb_space_find(node, fb_read_id(&r));
    bool request_alone = fb_reader_left(&r) != 0 && fb_read_u8(&r) == 1;
    if (fb_reader_done(&r) && space != FB_NONE && !request_alone &&
        fb_space_own_status(node, space) == FB_MEMBER_APPROVED) {
        fb_space_take_away(node, request, space, fb_space_at(node, space)->own, FB_ROLE_NONE);
        return;
    }
    fb_status status = fb_reader_done(&r) ? may_leave(node, space) : FB_ERR_REQUEST_MALFORMED;
    if (status != FB_OK) {
        fb_request_refuse(node, request, status);
        return;
    }
    fb_op *op = fb_request_begin(node, request, leave_run, FB_SPACE_PUT_BYTES, 1);
    if (op == NULL) return;
    fb_asked *asked = fb_op_context(op);
    asked->space = space;
    fb_op_issue(node, op);
}
