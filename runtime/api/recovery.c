/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers about the recovery key of a space. What it signs is asked for first; the key itself
 * never comes here. */
#include "protocol/base/cursor.h"
#include "protocol/base/hex.h"
#include "protocol/base/limits.h"
#include "runtime/api/handlers.h"
#include "runtime/api/internal.h"

static bool node_of(fb_exchange *x)
{
    if (fb_hex_parse(fb_span_text(x->args[1]), x->record.b, sizeof x->record.b)) return true;
    fb_exchange_fail(x, FB_ERR_ARGUMENT, "node_id: 32 lowercase hexadecimal digits");
    return false;
}

static bool refused(fb_exchange *x, fb_error error)
{
    if (error == FB_ERR_UNSUPPORTED) {
        fb_exchange_fail(x, error, "this space has no recovery key");
        return true;
    }
    if (error == FB_ERR_NOT_FOUND) {
        fb_exchange_fail(x, error,
                         "no member of this space has this id (space members), or no "
                         "such space is here");
        return true;
    }
    if (error == FB_ERR_NOT_AUTHORISED) {
        fb_exchange_fail(x, error, "not signed by the recovery key of this space");
        return true;
    }
    return fb_exchange_refused(x, error);
}

static void told(fb_exchange *x, fb_error error, fb_span answer)
{
    if (refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    fb_b32 key = fb_read_b32(&r);
    fb_b32 member = fb_read_b32(&r);
    uint8_t number = fb_read_u8(&r);
    uint32_t turn = fb_read_u32(&r);
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_json_hex(&x->out, "node_id", x->record.b, sizeof x->record.b);
    fb_json_hex(&x->out, "public_key", member.b, sizeof member.b);
    fb_json_hex(&x->out, "recovery_key", key.b, sizeof key.b);
    fb_json_number(&x->out, "number", number);
    fb_json_number(&x->out, "turn", turn);
    fb_exchange_finish(x, 200, fb_reader_done(&r));
}

static void tell(fb_exchange *x)
{
    if (!node_of(x)) return;
    uint8_t room[32];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_write_id(&w, x->record);
    fb_exchange_ask(x, FB_VERB_SPACE_RECOVERY, 0, fb_writer_span(&w), told);
}

void fb_get_recovery(fb_exchange *x)
{
    fb_exchange_with_space(x, tell);
}

static void recovered(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)answer;
    if (refused(x, error)) return;
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_json_hex(&x->out, "node_id", x->record.b, sizeof x->record.b);
    fb_json_member(&x->out, "status", "approved");
    fb_json_member(&x->out, "role", "admin");
    fb_exchange_finish(x, 200, true);
}

static void recover(fb_exchange *x)
{
    fb_json_object_in body;
    if (!node_of(x) || !fb_exchange_body(x, &body, "number turn signature")) return;
    uint64_t number = 0, turn = 0;
    uint8_t room[32 + 1 + 4 + 64];
    fb_b64 signature;
    const char *text = fb_exchange_body_text(x, &body, "signature", 128);
    if (text == NULL || !fb_exchange_body_number(x, &body, "number", FB_RECOVERIES_MAX, &number) ||
        !fb_exchange_body_number(x, &body, "turn", UINT32_MAX, &turn)) {
        /* answered */
    } else if (!fb_hex_parse(fb_span_text(text), signature.b, sizeof signature.b)) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT, "signature: 128 lowercase hexadecimal digits");
    } else {
        fb_writer w = fb_writer_of(room, sizeof room);
        fb_write_id(&w, x->space);
        fb_write_id(&w, x->record);
        fb_write_u8(&w, (uint8_t)number);
        fb_write_u32(&w, (uint32_t)turn);
        fb_write_bytes(&w, signature.b, sizeof signature.b);
        fb_exchange_ask(x, FB_VERB_SPACE_RECOVER, 0, fb_writer_span(&w), recovered);
    }
    fb_json_object_free(&body);
}

void fb_post_recovery(fb_exchange *x)
{
    fb_exchange_with_space(x, recover);
}
