/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers about spaces and their members. */
#include "protocol/base/cursor.h"
#include "protocol/base/hex.h"
#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"
#include "runtime/api/handlers.h"
#include "runtime/api/internal.h"
#include "runtime/api/request_codec.h"

/* Spaces. */

static void spaces_listed(fb_exchange *x, fb_error error, fb_span answer)
{
    if (fb_exchange_refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_json_open(&x->out, NULL, '{');
    fb_json_name(&x->out, "spaces");
    fb_exchange_finish(x, 200, fb_json_spaces(&x->out, &r, NULL));
}

void fb_get_spaces(fb_exchange *x)
{
    fb_exchange_ask(x, FB_VERB_SPACE_LIST, 0, (fb_span){NULL, 0}, spaces_listed);
}

static void space_created(fb_exchange *x, fb_error error, fb_span answer)
{
    if (fb_exchange_refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", fb_read_id(&r));
    fb_json_member(&x->out, "name", fb_text_string(&x->scratch));
    fb_exchange_finish(x, 201, fb_reader_done(&r));
}

/* Is another request with this name between its question and its answer? */
static bool is_being_created(const fb_exchange *x)
{
    for (const fb_exchange *other = x->api->exchanges; other != NULL; other = other->next) {
        if (other == x || other->handler != fb_post_spaces || other->ready) continue;
        if (strcmp(fb_text_string(&other->scratch), fb_text_string(&x->scratch)) == 0) return true;
    }
    return false;
}

/* Who names a space by its name must mean one, and who names an id must not meet a name. False
 * after it answered: another space than x->space is called so, or is about to be. */
static bool name_is_free(fb_exchange *x, fb_error error, fb_span answer)
{
    if (fb_exchange_refused(x, error)) return false;
    fb_span name = fb_span_of(x->scratch.p, x->scratch.len);
    fb_reader r = fb_reader_of(answer);
    uint16_t count = fb_read_u16(&r);
    bool taken = is_being_created(x);
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_space_row row = fb_space_row_next(&r);
        if (fb_span_equal(row.name, name) && !fb_id_equal(row.space, x->space)) taken = true;
    }
    if (taken) fb_exchange_fail(x, FB_ERR_EXISTS, "name: a space is called so here");
    return !taken;
}

static void space_names_listed(fb_exchange *x, fb_error error, fb_span answer)
{
    if (!name_is_free(x, error, answer)) return;
    uint8_t room[2 + FB_SPACE_NAME_BYTES_MAX + 32];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_span16(&w, fb_span_of(x->scratch.p, x->scratch.len));
    fb_write_b32(&w, x->api->options.node->keys->recovery_pub);
    fb_exchange_ask(x, FB_VERB_SPACE_CREATE, 0, fb_writer_span(&w), space_created);
}

void fb_post_spaces(fb_exchange *x)
{
    fb_json_object_in body;
    fb_id id;
    if (!fb_exchange_body(x, &body, "name")) return;
    const char *name = fb_exchange_body_text(x, &body, "name", FB_SPACE_NAME_BYTES_MAX);
    if (name == NULL) {
        /* answered */
    } else if (fb_uuid_parse(fb_span_text(name), &id)) {
        fb_exchange_fail(x, FB_ERR_EXISTS, "name: written like the id of a space");
    } else {
        fb_text_put(&x->scratch, name);
        fb_exchange_ask(x, FB_VERB_SPACE_LIST, 0, (fb_span){NULL, 0}, space_names_listed);
    }
    fb_json_object_free(&body);
}

/* Members. */

static void members_listed(fb_exchange *x, fb_error error, fb_span answer)
{
    if (fb_exchange_refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_json_name(&x->out, "members");
    fb_exchange_finish(x, 200, fb_json_members(&x->out, &r));
}

static void members_in_space(fb_exchange *x)
{
    fb_exchange_ask(x, FB_VERB_SPACE_MEMBERS, 0, fb_span_of(x->space.b, 16), members_listed);
}

void fb_get_members(fb_exchange *x)
{
    fb_exchange_with_space(x, members_in_space);
}

/* What was taken away, and what it costs. */
static void show_cut(fb_exchange *x, fb_span answer)
{
    fb_reader r = fb_reader_of(answer);
    uint32_t areas = fb_read_u32(&r), lives = fb_read_u32(&r);
    uint64_t lacking = fb_read_u64(&r);
    if (!fb_reader_done(&r)) return;
    fb_json_number(&x->out, "cut_areas", areas);
    fb_json_number(&x->out, "cut_lives", lives);
    fb_json_number(&x->out, "lost_batches", (int64_t)lacking);
}

static void approved(fb_exchange *x, fb_error error, fb_span answer)
{
    if (error == FB_ERR_CONFLICT) {
        fb_exchange_fail(x, error, "the last admin: make another member one first");
        return;
    }
    if (error == FB_ERR_NOT_ASKED) {
        fb_exchange_fail(x, error, "it has to ask with an invite first");
        return;
    }
    if (fb_exchange_refused(x, error)) return;
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_json_hex(&x->out, "node_id", x->record.b, sizeof x->record.b);
    fb_json_member(&x->out, "status", "approved");
    fb_json_member(&x->out, "role", fb_role_name((uint8_t)x->count));
    if (answer.len != 0) show_cut(x, answer);
    fb_exchange_finish(x, 200, true);
}

static void ask_about_member(fb_exchange *x, fb_verb verb, const char *node, const char *role)
{
    x->count = role == NULL ? 2 : fb_role_parse(role);
    if (!fb_hex_parse(fb_span_text(node), x->record.b, sizeof x->record.b)) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT, "node_id: 32 lowercase hexadecimal digits");
    } else if (x->count == 0) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT, "role: admin, writer or reader");
    } else {
        uint8_t room[33];
        fb_writer w = fb_writer_of(room, sizeof room);
        fb_write_id(&w, x->space);
        fb_write_id(&w, x->record);
        fb_write_u8(&w, (uint8_t)x->count);
        fb_exchange_ask(x, verb, 0, fb_writer_span(&w), approved);
    }
}

static void approve_in_space(fb_exchange *x)
{
    fb_json_object_in body;
    const char *role = NULL;
    if (!fb_exchange_body(x, &body, "node_id role")) return;
    const char *node = fb_exchange_body_text(x, &body, "node_id", 32);
    if (node != NULL && fb_exchange_body_option(x, &body, "role", &role)) {
        ask_about_member(x, FB_VERB_SPACE_APPROVE, node, role);
    }
    fb_json_object_free(&body);
}

void fb_post_approvals(fb_exchange *x)
{
    fb_exchange_with_space(x, approve_in_space);
}

static void role_in_space(fb_exchange *x)
{
    fb_json_object_in body;
    if (!fb_exchange_body(x, &body, "role")) return;
    const char *role = fb_exchange_body_text(x, &body, "role", 16);
    if (role != NULL) ask_about_member(x, FB_VERB_SPACE_ROLE, x->args[1], role);
    fb_json_object_free(&body);
}

void fb_put_member(fb_exchange *x)
{
    fb_exchange_with_space(x, role_in_space);
}

/* Revoking. */

static void revoked(fb_exchange *x, fb_error error, fb_span answer)
{
    if (error == FB_ERR_CONFLICT) {
        fb_exchange_fail(x, error, "the last admin: make another member one first");
        return;
    }
    if (fb_exchange_refused(x, error)) return;
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_json_hex(&x->out, "node_id", x->record.b, sizeof x->record.b);
    fb_json_member(&x->out, "status", "revoked");
    show_cut(x, answer);
    fb_exchange_finish(x, 200, true);
}

static void revoke_in_space(fb_exchange *x)
{
    if (!fb_hex_parse(fb_span_text(x->args[1]), x->record.b, sizeof x->record.b)) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT, "node_id: 32 lowercase hexadecimal digits");
        return;
    }
    uint8_t room[32];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_write_id(&w, x->record);
    fb_exchange_ask(x, FB_VERB_SPACE_REVOKE, 0, fb_writer_span(&w), revoked);
}

void fb_delete_member(fb_exchange *x)
{
    fb_exchange_with_space(x, revoke_in_space);
}

/* Renaming. */

static void renamed(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)answer;
    if (fb_exchange_refused(x, error)) return;
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_json_member(&x->out, "name", fb_text_string(&x->scratch));
    fb_exchange_finish(x, 200, true);
}

static void other_names_listed(fb_exchange *x, fb_error error, fb_span answer)
{
    if (!name_is_free(x, error, answer)) return;
    uint8_t room[16 + 2 + FB_SPACE_NAME_BYTES_MAX];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_write_span16(&w, fb_span_of(x->scratch.p, x->scratch.len));
    fb_exchange_ask(x, FB_VERB_SPACE_RENAME, 0, fb_writer_span(&w), renamed);
}

static void rename_space(fb_exchange *x)
{
    fb_json_object_in body;
    fb_id id;
    if (!fb_exchange_body(x, &body, "name")) return;
    const char *name = fb_exchange_body_text(x, &body, "name", FB_SPACE_NAME_BYTES_MAX);
    if (name != NULL && fb_uuid_parse(fb_span_text(name), &id)) {
        fb_exchange_fail(x, FB_ERR_EXISTS, "name: written like the id of a space");
    } else if (name != NULL) {
        fb_text_put(&x->scratch, name);
        fb_exchange_ask(x, FB_VERB_SPACE_LIST, 0, (fb_span){NULL, 0}, other_names_listed);
    }
    fb_json_object_free(&body);
}

void fb_post_rename(fb_exchange *x)
{
    fb_exchange_with_space(x, rename_space);
}
