/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON scanner as it is compiled here and as it is compiled for machines without SSE2: one
 * verdict at one place, and the same values. What lies behind a text says nothing, a string that is
 * unescaped on the way is what unescaping it afterwards gives, and both agree on what is valid.
 *
 * Input: a byte (which rules, how much room), then the text. */
#include <stdlib.h>

#include "fuzz/envelope_same.h"
#include "protocol/envelope/json.h"
#include "tests/unit/portable_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef fb_json_fault scanner(fb_span text, const fb_json_hint *hint, const fb_json_rules *rules,
                              fb_json_watch *watch, size_t watched, size_t *at);

#define WATCHED  3u
#define ROOM_MAX 4096u

typedef struct result {
    fb_json_fault fault;
    size_t at;
    fb_json_watch watch[WATCHED];
    fb_json_wanted wanted;
    uint8_t room[ROOM_MAX + FB_JSON_ROOM_MORE];
} result;

static void run(scanner *scan, result *r, fb_span text, size_t behind, uint8_t how)
{
    static const fb_json_rules rules[4] = {{16, 256, true, false, 0},
                                           {FB_JSON_DEPTH_MAX, FB_JSON_NAMES_MAX, false, false, 0},
                                           {3, 4, true, true, 0},
                                           {FB_JSON_DEPTH_MAX, FB_JSON_NAMES_MAX, true, true, 0}};
    static const char *const names[WATCHED] = {"a", "payload", "object_id"};
    for (size_t i = 0; i < WATCHED; i++)
        r->watch[i] = (fb_json_watch){.name = fb_span_text(names[i])};
    r->wanted = (fb_json_wanted){
        .member = &r->watch[how >> 2 & 1], .room = r->room, .cap = (how & 8) != 0 ? ROOM_MAX : 20};
    fb_json_hint hint = {behind, 0, &r->wanted};
    r->fault = scan(text, &hint, &rules[how & 3], r->watch, WATCHED, &r->at);
}

static void same(const result *a, const result *b)
{
    fb_fuzz_require(a->fault == b->fault && a->at == b->at);
    for (size_t i = 0; i < WATCHED; i++) {
        fb_span x = a->watch[i].value, y = b->watch[i].value;
        fb_fuzz_require(x.len == y.len);
        if (x.len != 0)
            fb_fuzz_require(fb_span_equal(x, y) && a->watch[i].escaped == b->watch[i].escaped);
    }
    if (!fb_json_is_string(a->wanted.member->value)) return;
    fb_fuzz_require(a->wanted.fits == b->wanted.fits);
    if (a->wanted.fits) fb_fuzz_require(fb_span_equal(a->wanted.text, b->wanted.text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static result here, portable, more;
    if (size == 0) return 0;
    fb_span text = {data + 1, size - 1};
    run(fb_json_scan_hinted, &here, text, 0, data[0]);
    run(portable_fb_json_scan_hinted, &portable, text, 0, data[0]);
    fb_fuzz_require(here.at <= text.len);
    same(&here, &portable);

    /* The same text with its own beginning behind it, which may well be what would follow. */
    uint8_t *longer = malloc(text.len + FB_JSON_BEHIND);
    fb_fuzz_require(longer != NULL);
    if (text.len != 0) memcpy(longer, text.p, text.len);
    for (size_t i = 0; i < FB_JSON_BEHIND; i++) longer[text.len + i] = data[i % size];
    run(fb_json_scan_hinted, &more, fb_span_of(longer, text.len), FB_JSON_BEHIND, data[0]);
    same(&here, &more);
    free(longer);

    const fb_json_watch *member = here.wanted.member;
    if (fb_json_is_string(member->value)) {
        static uint8_t room[ROOM_MAX];
        fb_span later;
        bool fits = fb_json_unquote(member, room, here.wanted.cap, &later);
        fb_fuzz_require(fits == here.wanted.fits);
        if (fits) fb_fuzz_require(fb_span_equal(later, here.wanted.text));
    }
    return 0;
}
