/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers about spaces, members and applications. */
#include <stdio.h>
#include <stdlib.h>

#include "io/address.h"
#include "protocol/base/cursor.h"
#include "protocol/base/hex.h"
#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"
#include "runtime/handlers.h"
#include "runtime/request_codec.h"

/* A member of the body that must be a string of at most `max` bytes; NULL after it answered. */
static const char *body_string(fb_exchange *x, const fb_json_object_in *body, const char *name,
                               size_t max)
{
    const json_t *value = json_object_get(body->tree, name);
    char detail[96];
    if (!json_is_string(value)) {
        snprintf(detail, sizeof detail, "%s: a string is expected", name);
    } else if (json_string_length(value) == 0 || json_string_length(value) > max) {
        snprintf(detail, sizeof detail, "%s: 1 to %zu bytes are expected", name, max);
    } else {
        return json_string_value(value);
    }
    fb_exchange_fail(x, FB_ERR_ARGUMENT, detail);
    return NULL;
}

/* A member that may be missing; false after it answered. */
static bool body_number(fb_exchange *x, const fb_json_object_in *body, const char *name,
                        int64_t max, uint64_t *out)
{
    const json_t *value = json_object_get(body->tree, name);
    if (value == NULL) return true;
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > max) {
        char detail[96];
        snprintf(detail, sizeof detail, "%s: an integer within 1..%lld is expected", name,
                 (long long)max);
        fb_exchange_fail(x, FB_ERR_ARGUMENT, detail);
        return false;
    }
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static void finish(fb_exchange *x, unsigned status, bool ok)
{
    if (!ok) {
        fb_text_clear(&x->out);
        fb_exchange_fail(x, FB_ERR_EVENT_MALFORMED, "the node's answer");
        return;
    }
    fb_json_close(&x->out, '}');
    fb_exchange_answer(x, status);
}

/* For steps that answer alike when the node refused. */
static bool refused(fb_exchange *x, fb_error error)
{
    if (error == FB_OK) return false;
    fb_exchange_fail(x, error, NULL);
    return true;
}

/* Spaces. */

static void spaces_listed(fb_exchange *x, fb_error error, fb_span answer)
{
    if (refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_json_open(&x->out, NULL, '{');
    fb_json_name(&x->out, "spaces");
    finish(x, 200, fb_json_spaces(&x->out, &r));
}

void fb_get_spaces(fb_exchange *x)
{
    fb_exchange_ask(x, FB_VERB_SPACE_LIST, 0, (fb_span){NULL, 0}, spaces_listed);
}

static void space_created(fb_exchange *x, fb_error error, fb_span answer)
{
    if (refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", fb_read_id(&r));
    fb_json_member(&x->out, "name", fb_text_string(&x->scratch));
    finish(x, 201, fb_reader_done(&r));
}

void fb_post_spaces(fb_exchange *x)
{
    fb_json_object_in body;
    if (!fb_exchange_body(x, &body)) return;
    const char *name = body_string(x, &body, "name", FB_SPACE_NAME_BYTES_MAX);
    if (name != NULL) {
        uint8_t room[2 + FB_SPACE_NAME_BYTES_MAX];
        fb_writer w = fb_writer_of(room, sizeof room);
        fb_write_span16(&w, fb_span_text(name));
        fb_text_put(&x->scratch, name);
        fb_exchange_ask(x, FB_VERB_SPACE_CREATE, 0, fb_writer_span(&w), space_created);
    }
    fb_json_object_free(&body);
}

/* Invites and joining. */

static void invited(fb_exchange *x, fb_error error, fb_span answer)
{
    if (refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_text text = {0};
    fb_invite_text(fb_read_span16(&r), &text);
    fb_json_open(&x->out, NULL, '{');
    fb_json_member(&x->out, "invite", fb_text_string(&text));
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_text_free(&text);
    finish(x, 201, fb_reader_done(&r));
}

static void invite_in_space(fb_exchange *x)
{
    fb_json_object_in body;
    if (x->body.len == 0) fb_text_put(&x->body, "{}");
    if (!fb_exchange_body(x, &body)) return;
    uint64_t uses = 0, valid_s = 0;
    const char *address = json_string_value(json_object_get(body.tree, "address"));
    if (address == NULL) address = fb_api_options_of(x->api)->node->advertise;
    fb_address parsed;
    if (!body_number(x, &body, "uses", UINT32_MAX, &uses) ||
        !body_number(x, &body, "valid_s", INT64_C(1) << 32, &valid_s)) {
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

static void joined(fb_exchange *x, fb_error error, fb_span answer)
{
    if (refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", fb_read_id(&r));
    fb_json_member(&x->out, "status", fb_status_name(fb_read_u8(&r)));
    finish(x, 200, fb_reader_done(&r));
}

void fb_post_join(fb_exchange *x)
{
    fb_json_object_in body;
    if (!fb_exchange_body(x, &body)) return;
    const char *invite = body_string(x, &body, "invite", 2048);
    if (invite != NULL) {
        uint8_t bytes[1024], room[2 + 1024 + 2 + FB_ADDRESS_BYTES_MAX];
        size_t len = 0;
        if (!fb_invite_bytes(fb_span_text(invite), bytes, sizeof bytes, &len)) {
            fb_exchange_fail(x, FB_ERR_INVITE, "invite: not an invite, or not the whole of one");
        } else {
            fb_writer w = fb_writer_of(room, sizeof room);
            fb_write_span16(&w, fb_span_of(bytes, len));
            const char *own = fb_api_options_of(x->api)->node->advertise;
            if (own[0] != 0) fb_write_span16(&w, fb_span_text(own));
            /* It may take as long as the other side is away. */
            fb_exchange_watch_client(x);
            fb_exchange_ask(x, FB_VERB_SPACE_JOIN, 0, fb_writer_span(&w), joined);
        }
    }
    fb_json_object_free(&body);
}

/* Members. */

static void members_listed(fb_exchange *x, fb_error error, fb_span answer)
{
    if (refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_json_name(&x->out, "members");
    finish(x, 200, fb_json_members(&x->out, &r));
}

static void members_in_space(fb_exchange *x)
{
    fb_exchange_ask(x, FB_VERB_SPACE_MEMBERS, 0, fb_span_of(x->space.b, 16), members_listed);
}

void fb_get_members(fb_exchange *x)
{
    fb_exchange_with_space(x, members_in_space);
}

static void approved(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)answer;
    if (error == FB_ERR_NOT_ASKED) {
        fb_exchange_fail(x, error, "this node has not asked to join the space yet");
        return;
    }
    if (refused(x, error)) return;
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_json_hex(&x->out, "node_id", x->record.b, sizeof x->record.b);
    fb_json_member(&x->out, "status", "approved");
    fb_json_member(&x->out, "role", fb_role_name((uint8_t)x->count));
    finish(x, 200, true);
}

static void approve_in_space(fb_exchange *x)
{
    fb_json_object_in body;
    if (!fb_exchange_body(x, &body)) return;
    const char *node = body_string(x, &body, "node_id", 32);
    const char *role = json_string_value(json_object_get(body.tree, "role"));
    x->count = role == NULL ? 2 : fb_role_parse(role);
    if (node == NULL) {
        /* answered */
    } else if (!fb_hex_parse(fb_span_text(node), x->record.b, sizeof x->record.b)) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT, "node_id: 32 lowercase hexadecimal digits");
    } else if (x->count == 0) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT, "role: admin, writer or reader");
    } else {
        uint8_t room[33];
        fb_writer w = fb_writer_of(room, sizeof room);
        fb_write_id(&w, x->space);
        fb_write_id(&w, x->record);
        fb_write_u8(&w, (uint8_t)x->count);
        fb_exchange_ask(x, FB_VERB_SPACE_APPROVE, 0, fb_writer_span(&w), approved);
    }
    fb_json_object_free(&body);
}

void fb_post_approvals(fb_exchange *x)
{
    fb_exchange_with_space(x, approve_in_space);
}

/* Applications. */

static void app_created(fb_exchange *x, fb_error error, fb_span answer)
{
    if (refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_read_u64(&r);
    fb_b32 token = fb_read_b32(&r);
    fb_json_open(&x->out, NULL, '{');
    fb_json_member(&x->out, "name", fb_text_string(&x->scratch));
    fb_json_hex(&x->out, "token", token.b, sizeof token.b);
    finish(x, 201, fb_reader_done(&r));
}

void fb_post_apps(fb_exchange *x)
{
    fb_json_object_in body;
    if (!fb_exchange_body(x, &body)) return;
    const char *name = body_string(x, &body, "name", FB_APPLICATION_NAME_BYTES_MAX);
    if (name != NULL) {
        uint8_t room[2 + FB_APPLICATION_NAME_BYTES_MAX];
        fb_writer w = fb_writer_of(room, sizeof room);
        fb_write_span16(&w, fb_span_text(name));
        fb_text_put(&x->scratch, name);
        fb_exchange_ask(x, FB_VERB_APP_CREATE, 0, fb_writer_span(&w), app_created);
    }
    fb_json_object_free(&body);
}

static void app_allowed(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)answer;
    if (refused(x, error)) return;
    fb_json_open(&x->out, NULL, '{');
    fb_json_member(&x->out, "name", fb_text_string(&x->scratch));
    fb_json_uuid(&x->out, "space_id", x->space);
    finish(x, 200, true);
}

static void app_in_space(fb_exchange *x)
{
    uint8_t room[2 + FB_APPLICATION_NAME_BYTES_MAX + 16];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_span16(&w, fb_span_of(x->scratch.p, x->scratch.len));
    fb_write_id(&w, x->space);
    if (w.failed) {
        fb_exchange_fail(x, FB_ERR_NOT_FOUND, NULL);
        return;
    }
    fb_exchange_ask(x, FB_VERB_APP_ALLOW, 0, fb_writer_span(&w), app_allowed);
}

void fb_post_app_spaces(fb_exchange *x)
{
    fb_json_object_in body;
    if (!fb_exchange_body(x, &body)) return;
    const char *space = body_string(x, &body, "space", FB_SPACE_NAME_BYTES_MAX);
    if (space != NULL) {
        fb_text_put(&x->scratch, x->args[0]);
        free(x->args[0]);
        x->args[0] = strdup(space);
        fb_exchange_with_space(x, app_in_space);
    }
    fb_json_object_free(&body);
}

static void app_revoked(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)answer;
    if (refused(x, error)) return;
    fb_json_open(&x->out, NULL, '{');
    fb_json_member(&x->out, "name", x->args[0]);
    finish(x, 200, true);
}

void fb_delete_app(fb_exchange *x)
{
    uint8_t room[2 + FB_APPLICATION_NAME_BYTES_MAX];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_span16(&w, fb_span_text(x->args[0]));
    if (w.failed) {
        fb_exchange_fail(x, FB_ERR_NOT_FOUND, NULL);
        return;
    }
    fb_exchange_ask(x, FB_VERB_APP_REVOKE, 0, fb_writer_span(&w), app_revoked);
}
