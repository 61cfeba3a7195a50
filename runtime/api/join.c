/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers about invites: giving one, joining with one, giving a join up. */
#include <stdio.h>
#include <stdlib.h>

#include "io/net/address.h"
#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "protocol/space/invite.h"
#include "runtime/api/handlers.h"
#include "runtime/api/internal.h"
#include "runtime/api/request_codec.h"

/* Inviting. */

static void invited(fb_exchange *x, fb_error error, fb_span answer)
{
    if (fb_exchange_refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_text text = {0};
    fb_invite_text(fb_read_span16(&r), &text);
    fb_json_open(&x->out, NULL, '{');
    fb_json_member(&x->out, "invite", fb_text_string(&text));
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_text_free(&text);
    fb_exchange_finish(x, 201, fb_reader_done(&r));
}

static void invite_in_space(fb_exchange *x)
{
    fb_json_object_in body;
    if (!fb_exchange_body(x, &body, "uses valid_s address")) return;
    uint64_t uses = 0, valid_s = 0;
    const char *address = NULL;
    bool read = fb_exchange_body_option(x, &body, "address", &address);
    if (address == NULL) address = fb_api_options_of(x->api)->node->advertise;
    fb_address parsed;
    if (!read || !fb_exchange_body_number(x, &body, "uses", FB_INVITE_USES_MAX, &uses) ||
        !fb_exchange_body_number(x, &body, "valid_s", INT64_C(1) << 32, &valid_s)) {
        /* answered */
    } else if (fb_address_parse(fb_span_text(address), &parsed) != FB_OK || parsed.host[0] == 0) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT,
                         address[0] == 0
                             ? "address: where can this node be dialled? Name HOST:PORT, or set "
                               "`advertise`"
                             : "address: HOST:PORT is expected");
    } else {
        uint8_t room[16 + 4 + 8 + 2 + FB_ADDRESS_BYTES_MAX];
        fb_writer w = fb_writer_of(room, sizeof room);
        fb_write_id(&w, x->space);
        fb_write_u32(&w, (uint32_t)uses);
        fb_write_u64(&w, valid_s);
        fb_write_span16(&w, fb_span_text(address));
        fb_exchange_ask(x, FB_VERB_SPACE_INVITE, 0, fb_writer_span(&w), invited);
    }
    fb_json_object_free(&body);
}

void fb_post_invites(fb_exchange *x)
{
    fb_exchange_with_space(x, invite_in_space);
}

/* Joining. It may take as long as the other side is away, so it has a deadline: then the request is
 * given up, and nothing of the space stays here. The open JOIN is x->long_request. */

typedef struct waiting_join {
    uv_timer_t deadline;
    uint32_t seconds;
    bool overdue;
    fb_error last; /* of the dials of its address */
    char address[FB_ADDRESS_BYTES_MAX + 1];
} waiting_join;

static void join_answer(fb_exchange *x, uint8_t status)
{
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_json_member(&x->out, "status", fb_status_name(status));
    fb_exchange_finish(x, 200, true);
}

static void joined(void *user, fb_error error, bool more, fb_span answer)
{
    fb_exchange *x = user;
    FB_ASSERT(!more);
    x->long_request = 0;
    /* Given up by the deadline: the answer comes from there. */
    waiting_join *j = x->own;
    if (x->ready || (j->overdue && error == FB_ERR_CANCELLED)) return;
    uv_timer_stop(&j->deadline);
    if (fb_exchange_refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    x->space = fb_read_id(&r);
    uint8_t status = fb_read_u8(&r);
    if (fb_reader_done(&r)) {
        join_answer(x, status);
    } else {
        fb_exchange_finish(x, 200, false);
    }
}

static void given_up(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)answer;
    if (error == FB_ERR_CONFLICT || error == FB_ERR_UNSUPPORTED) {
        /* A member took the request at the last moment. */
        join_answer(x, error == FB_ERR_CONFLICT ? FB_MEMBER_PENDING : FB_MEMBER_APPROVED);
        return;
    }
    if (error != FB_OK && error != FB_ERR_NOT_FOUND) {
        fb_exchange_fail(x, error, "the request to join could not be given up");
        return;
    }
    char detail[384];
    const waiting_join *j = x->own;
    snprintf(detail, sizeof detail,
             "no member took the request within %lu s (%s: %s); nothing was kept",
             (unsigned long)j->seconds, j->address,
             j->last == FB_OK ? "no answer" : fb_error_text(j->last));
    fb_exchange_fail(x, FB_ERR_DEADLINE, detail);
}

/* The request alone: who was let in at the last moment stays. */
#define GIVE_UP_BYTES 17u
static fb_span give_up(fb_id space, uint8_t room[GIVE_UP_BYTES])
{
    fb_writer w = fb_writer_of(room, GIVE_UP_BYTES);
    fb_write_id(&w, space);
    fb_write_u8(&w, 1);
    return fb_writer_span(&w);
}

/* What the dials of the inviter's address came to, for the message; then the request is given up.
 */
static void join_peers_listed(fb_exchange *x, fb_error error, fb_span answer)
{
    waiting_join *j = x->own;
    fb_reader r = fb_reader_of(answer);
    uint16_t count = error == FB_OK ? fb_read_u16(&r) : 0;
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_peer_row row = fb_peer_row_next(&r);
        if (fb_id_equal(row.space, x->space) &&
            fb_span_equal(row.address, fb_span_text(j->address))) {
            j->last = row.last;
        }
    }
    uint8_t room[GIVE_UP_BYTES];
    fb_exchange_ask(x, FB_VERB_SPACE_LEAVE, 0, give_up(x->space, room), given_up);
}

static void join_overdue(uv_timer_t *timer)
{
    fb_exchange *x = timer->data;
    if (x->ready) return;
    ((waiting_join *)x->own)->overdue = true;
    fb_exchange_ask(x, FB_VERB_PEER_LIST, 0, (fb_span){NULL, 0}, join_peers_listed);
}

static void join_freed(uv_handle_t *handle)
{
    free((char *)handle - offsetof(waiting_join, deadline));
}

static void nobody_listens(void *user, fb_error error, bool more, fb_span answer)
{
    (void)user;
    (void)error;
    (void)more;
    (void)answer;
}

static void join_end(fb_exchange *x)
{
    waiting_join *j = x->own;
    if (x->gone && x->long_request != 0) {
        /* Who asked has gone: as at the deadline, nothing stays. */
        fb_loop *loop = x->api->options.loop;
        fb_loop_cancel(loop, x->long_request);
        x->long_request = 0;
        uint8_t room[GIVE_UP_BYTES];
        fb_loop_request(loop, FB_VERB_SPACE_LEAVE, 0, give_up(x->space, room), nobody_listens,
                        NULL);
    }
    uv_close((uv_handle_t *)&j->deadline, join_freed);
}

static void join(fb_exchange *x, const fb_invite *invite, fb_span bytes, uint64_t seconds)
{
    uint8_t room[2 + FB_INVITE_BYTES_MAX + 2 + FB_ADDRESS_BYTES_MAX];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_span16(&w, bytes);
    const char *own = fb_api_options_of(x->api)->node->advertise;
    if (own[0] != 0) fb_write_span16(&w, fb_span_text(own));
    x->space = invite->space;
    waiting_join *j = calloc(1, sizeof *j);
    FB_ASSERT(j != NULL && !w.failed);
    j->seconds = (uint32_t)seconds;
    memcpy(j->address, invite->address, invite->address_len);
    uv_timer_init(x->api->options.uv, &j->deadline);
    j->deadline.data = x;
    x->own = j;
    x->own_end = join_end;
    fb_exchange_watch_client(x);
    x->long_request =
        fb_loop_request(x->api->options.loop, FB_VERB_SPACE_JOIN, 0, fb_writer_span(&w), joined, x);
    if (x->long_request == 0) {
        fb_exchange_refuse(x, FB_VERB_SPACE_JOIN);
        return;
    }
    uv_timer_start(&j->deadline, join_overdue, seconds * 1000, 0);
}

void fb_post_join(fb_exchange *x)
{
    fb_json_object_in body;
    if (!fb_exchange_body(x, &body, "invite timeout_s")) return;
    uint64_t seconds = FB_API_JOIN_S;
    const char *text = fb_exchange_body_text(x, &body, "invite", 2048);
    if (text != NULL &&
        fb_exchange_body_number(x, &body, "timeout_s", FB_API_JOIN_S_MAX, &seconds)) {
        uint8_t bytes[FB_INVITE_BYTES_MAX];
        size_t len = 0;
        fb_invite invite;
        bool is_text = fb_invite_bytes(fb_span_text(text), bytes, sizeof bytes, &len);
        fb_status status =
            is_text ? fb_invite_read(fb_span_of(bytes, len), &invite) : FB_ERR_INVITE;
        if (status == FB_ERR_VERSION_NEWER) {
            fb_exchange_problem(x, 400, "version_newer", "the invite cannot be read",
                                "it was made by a newer version of faberio");
        } else if (status != FB_OK) {
            fb_exchange_problem(x, 400, "invite", "this is not a whole invite",
                                "a character is missing, added or changed: copy it again");
        } else {
            join(x, &invite, fb_span_of(bytes, len), seconds);
        }
    }
    fb_json_object_free(&body);
}

/* Leaving, as far as it needs no statement. */

static void left(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)answer;
    if (error == FB_ERR_CONFLICT) {
        fb_exchange_problem(x, 409, "conflict", "this node cannot leave now",
                            "a member has taken its request, or it is the last admin: make another "
                            "member one first");
        return;
    }
    if (fb_exchange_refused(x, error)) return;
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_json_member(&x->out, "status", "left");
    fb_exchange_finish(x, 200, true);
}

static void leave_space(fb_exchange *x)
{
    fb_exchange_ask(x, FB_VERB_SPACE_LEAVE, 0, fb_span_of(x->space.b, sizeof x->space.b), left);
}

void fb_post_leave(fb_exchange *x)
{
    fb_exchange_with_space(x, leave_space);
}
