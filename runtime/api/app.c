/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers about applications. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "runtime/api/handlers.h"

/* The node's refusal with the application it is about. */
static bool refused(fb_exchange *x, fb_error error, const char *name)
{
    char detail[FB_APPLICATION_NAME_BYTES_MAX + 48];
    if (error != FB_ERR_EXISTS && error != FB_ERR_NOT_FOUND) return fb_exchange_refused(x, error);
    snprintf(detail, sizeof detail,
             error == FB_ERR_EXISTS ? "an application is called %s" : "no application is called %s",
             name);
    fb_exchange_fail(x, error, detail);
    return true;
}

static void app_created(fb_exchange *x, fb_error error, fb_span answer)
{
    if (refused(x, error, fb_text_string(&x->scratch))) return;
    fb_reader r = fb_reader_of(answer);
    fb_read_u64(&r);
    fb_b32 token = fb_read_b32(&r);
    fb_json_open(&x->out, NULL, '{');
    fb_json_member(&x->out, "name", fb_text_string(&x->scratch));
    fb_json_hex(&x->out, "token", token.b, sizeof token.b);
    fb_exchange_finish(x, 201, fb_reader_done(&r));
}

void fb_post_apps(fb_exchange *x)
{
    fb_json_object_in body;
    if (!fb_exchange_body(x, &body, "name")) return;
    const char *name = fb_exchange_body_text(x, &body, "name", FB_APPLICATION_NAME_BYTES_MAX);
    if (name != NULL) {
        uint8_t room[2 + FB_APPLICATION_NAME_BYTES_MAX];
        fb_writer w = fb_writer_of(room, sizeof room);
        fb_write_span16(&w, fb_span_text(name));
        fb_text_put(&x->scratch, name);
        fb_exchange_ask(x, FB_VERB_APP_CREATE, 0, fb_writer_span(&w), app_created);
    }
    fb_json_object_free(&body);
}

/* The name as the node wants it in front; false after it answered. */
static bool name_write(fb_exchange *x, fb_writer *w, fb_span name)
{
    fb_write_span16(w, name);
    if (name.len <= FB_APPLICATION_NAME_BYTES_MAX) return true;
    fb_exchange_fail(x, FB_ERR_NOT_FOUND, "no application has so long a name");
    return false;
}

static void app_allowed(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)answer;
    if (refused(x, error, fb_text_string(&x->scratch))) return;
    fb_json_open(&x->out, NULL, '{');
    fb_json_member(&x->out, "name", fb_text_string(&x->scratch));
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_exchange_finish(x, 200, true);
}

static void app_in_space(fb_exchange *x)
{
    uint8_t room[2 + FB_APPLICATION_NAME_BYTES_MAX + 16];
    fb_writer w = fb_writer_of(room, sizeof room);
    if (!name_write(x, &w, fb_span_of(x->scratch.p, x->scratch.len))) return;
    fb_write_id(&w, x->space);
    fb_exchange_ask(x, FB_VERB_APP_ALLOW, 0, fb_writer_span(&w), app_allowed);
}

void fb_post_app_spaces(fb_exchange *x)
{
    fb_json_object_in body;
    if (!fb_exchange_body(x, &body, "space")) return;
    const char *space = fb_exchange_body_text(x, &body, "space", FB_SPACE_NAME_BYTES_MAX);
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
    if (refused(x, error, x->args[0])) return;
    fb_json_open(&x->out, NULL, '{');
    fb_json_member(&x->out, "name", x->args[0]);
    fb_exchange_finish(x, 200, true);
}

void fb_delete_app(fb_exchange *x)
{
    uint8_t room[2 + FB_APPLICATION_NAME_BYTES_MAX];
    fb_writer w = fb_writer_of(room, sizeof room);
    if (!name_write(x, &w, fb_span_text(x->args[0]))) return;
    fb_exchange_ask(x, FB_VERB_APP_REVOKE, 0, fb_writer_span(&w), app_revoked);
}
