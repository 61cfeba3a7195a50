/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/scrub {"after":KEY}: looks at a part of the store, and says where to go on. A part at a
 * time keeps every answer short, however large the store is. */
#include "protocol/base/hex.h"
#include "protocol/base/limits.h"
#include "runtime/api/handlers.h"

/* The client went while it was under way. */
static void scrub_end(fb_exchange *x)
{
    fb_loop_scrub_cancel(fb_api_options_of(x->api)->loop, x);
}

static void scrubbed(void *user, fb_error error, uint64_t entries, uint64_t damaged, fb_span last)
{
    fb_exchange *x = user;
    x->own_end = NULL;
    if (fb_exchange_refused(x, error)) return;
    fb_json_open(&x->out, NULL, '{');
    fb_json_number(&x->out, "entries", (int64_t)entries);
    fb_json_number(&x->out, "damaged", (int64_t)damaged);
    if (last.len == 0) {
        fb_json_raw(&x->out, "next", fb_span_text("null"));
    } else {
        fb_json_hex(&x->out, "next", last.p, last.len);
    }
    fb_exchange_finish(x, 200, true);
}

void fb_post_scrub(fb_exchange *x)
{
    fb_json_object_in body;
    const char *after;
    uint8_t key[FB_KEY_BYTES_MAX];
    if (!fb_exchange_body(x, &body, "after")) return;
    if (fb_exchange_body_option(x, &body, "after", &after)) {
        size_t len = after != NULL ? strlen(after) / 2 : 0;
        if (len > sizeof key || (after != NULL && !fb_hex_parse(fb_span_text(after), key, len))) {
            fb_exchange_fail(x, FB_ERR_ARGUMENT,
                             "after: the next of an earlier answer is expected");
        } else if (!fb_loop_scrub(fb_api_options_of(x->api)->loop, fb_span_of(key, len), scrubbed,
                                  x)) {
            fb_exchange_fail(x, FB_ERR_BUSY, "another scrub is under way, or the node stops");
        } else {
            x->own_end = scrub_end;
        }
    }
    fb_json_object_free(&body);
}
