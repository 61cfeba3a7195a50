/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/space/requests.h"

void fb_request_refuse(fb_node *node, fb_request request, fb_status status)
{
    fb_reply(node, request.index, status, FB_NO_BYTES);
}

bool fb_request_by_operator(fb_node *node, fb_request request)
{
    if (request.principal == 0) return true;
    fb_request_refuse(node, request, FB_ERR_NOT_AUTHORISED);
    return false;
}

/* The request of an operation, or of a statement's `done`, if its caller is still there. */
bool fb_request_is_open(const fb_node *node, const fb_waiting *by)
{
    return fb_request_at(node, by->index).number == by->number;
}

void fb_request_answer(fb_node *node, const fb_waiting *by, fb_status status, fb_span answer)
{
    if (fb_request_is_open(node, by))
        fb_reply_held(node, by->index, status, fb_w_building(node), answer);
}

/* A refusal from within an operation: nothing was put, nothing is waited for. */
void fb_request_answer_refusal(fb_node *node, const fb_waiting *by, fb_status status)
{
    if (fb_request_is_open(node, by)) fb_reply(node, by->index, status, FB_NO_BYTES);
}

fb_op *fb_request_begin(fb_node *node, fb_request request, fb_op_run run, uint32_t bytes,
                        uint32_t entries)
{
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, run, bytes, entries);
    if (op == NULL) {
        fb_request_refuse(node, request, FB_ERR_BUSY);
        return NULL;
    }
    fb_asked *asked = fb_op_context(op);
    asked->by = (fb_waiting){request.index, request.number};
    return op;
}

/* A new id, or, when the clock has passed the mark of ids that is stored, FB_ERR_AGAIN: then the
 * request is kept, if there is a place, and asked again when the new mark is durable. */
fb_status fb_request_new_id(fb_node *node, const fb_waiting *by, fb_span arguments, fb_id *id)
{
    fb_status status = fb_new_uuid(node, id);
    if (status != FB_ERR_AGAIN) return status;
    for (uint32_t i = 0; i < FB_RETRIES_MAX; i++) {
        fb_retry *retry = &node->spaces->retry[i];
        if (retry->by.number != 0) continue;
        retry->by = *by;
        retry->len = (uint16_t)arguments.len;
        memcpy(retry->arguments, arguments.p, arguments.len);
        return FB_ERR_AGAIN;
    }
    fb_request_answer_refusal(node, by, FB_ERR_AGAIN);
    return FB_ERR_AGAIN;
}

/* Only an admin may approve, so only an admin takes requests: who asked is known where it asked. */
fb_status fb_space_may_admit(const fb_node *node, uint32_t space)
{
    if (space == FB_NONE) return FB_ERR_NOT_FOUND;
    if (fb_space_own_status(node, space) != FB_MEMBER_APPROVED) return FB_ERR_NOT_MEMBER;
    return fb_space_own_role(node, space) == FB_ROLE_ADMIN ? FB_OK : FB_ERR_NOT_AUTHORISED;
}

void fb_space_requests_durable(fb_node *node)
{
    for (uint32_t i = 0; i < FB_RETRIES_MAX; i++) {
        fb_retry *retry = &node->spaces->retry[i];
        if (retry->by.number == 0) continue;
        fb_retry again = *retry;
        retry->by.number = 0;
        if (!fb_request_is_open(node, &again.by)) continue;
        fb_request request = fb_request_at(node, again.by.index);
        fb_span arguments = fb_span_of(again.arguments, again.len);
        if (request.verb == FB_VERB_SPACE_CREATE) {
            fb_space_on_create(node, request, arguments);
        } else {
            fb_space_on_invite(node, request, arguments);
        }
    }
}
