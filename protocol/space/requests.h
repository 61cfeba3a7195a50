/* SPDX-License-Identifier: Apache-2.0 */
/* Verbs of spaces and of applications (core/request.h). For the files of this folder only. */
#ifndef FB_SPACE_REQUESTS_H
#define FB_SPACE_REQUESTS_H

#include "protocol/core/request.h"
#include "protocol/space/statement.h"
#include "protocol/space/table.h"
#include "protocol/store/ops.h"

#define FB_NO_BYTES ((fb_span){NULL, 0})

/* What the context of every operation for a request begins with. */
typedef struct fb_asked {
    fb_waiting by;
    uint32_t space;
} fb_asked;

/* From the plane's layout. */
void fb_space_verbs_register(fb_node *node);
void fb_application_verbs_register(fb_node *node);
void fb_recovery_verbs_register(fb_node *node);

void fb_space_on_create(fb_node *node, fb_request request, fb_span arguments);
void fb_space_on_invite(fb_node *node, fb_request request, fb_span arguments);
void fb_space_on_join(fb_node *node, fb_request request, fb_span arguments);
void fb_space_on_leave(fb_node *node, fb_request request, fb_span arguments);
void fb_space_on_revoke(fb_node *node, fb_request request, fb_span arguments);
/* Writes one statement; FB_ERR_BUSY, FB_ERR_LIMIT, or done follows. */
fb_status fb_space_state(fb_node *node, uint32_t space, const fb_statement *statement,
                         fb_write_done done, uint64_t user);
/* The same for a request, which is answered when it is durable. */
void fb_space_state_for(fb_node *node, fb_request request, uint32_t space,
                        const fb_statement *statement);
/* A lesser role, or none, for an approved member: answers the request. */
void fb_space_take_away(fb_node *node, fb_request request, uint32_t space, uint32_t member,
                        fb_role role);
/* The place of a space that was left in this incarnation, or FB_NONE. */
uint32_t fb_space_find_left(const fb_node *node, fb_id space);

/* From the handler of a verb: an answer without bytes. */
void fb_request_refuse(fb_node *node, fb_request request, fb_status status);
/* An operator's request: refuses every other principal and answers. */
bool fb_request_by_operator(fb_node *node, fb_request request);
/* A writer whose context begins with fb_asked; NULL, and answered, when all are taken. */
fb_op *fb_request_begin(fb_node *node, fb_request request, fb_op_run run, uint32_t bytes,
                        uint32_t entries);

/* The request of an operation, or of a statement's `done`, if its caller is still there. */
bool fb_request_is_open(const fb_node *node, const fb_waiting *by);
/* When the set being built is durable. */
void fb_request_answer(fb_node *node, const fb_waiting *by, fb_status status, fb_span answer);
/* A refusal from within an operation: nothing was put, nothing is waited for. */
void fb_request_answer_refusal(fb_node *node, const fb_waiting *by, fb_status status);

/* A new id, or, when the clock has passed the mark of ids that is stored, FB_ERR_AGAIN: then the
 * request is kept, if there is a place, and asked again when the new mark is durable. */
fb_status fb_request_new_id(fb_node *node, const fb_waiting *by, fb_span arguments, fb_id *id);
/* Something is durable: those requests go on. */
void fb_space_requests_durable(fb_node *node);

/* Lists that wait are answered. */
void fb_space_lists_flush(fb_node *node);
/* The longest list of spaces or members, with sizes like these. */
size_t fb_space_list_bytes(const fb_sizes *sizes);

/* Only an admin may approve, so only an admin takes requests: who asked is known where it asked. */
fb_status fb_space_may_admit(const fb_node *node, uint32_t space);

#endif
