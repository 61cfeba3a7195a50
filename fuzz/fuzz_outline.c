/* SPDX-License-Identifier: Apache-2.0 */
/* What recorded nodes lived through, in a form of its own: whatever it was, what is made of it is a
 * schedule.
 *
 * A step is u8 what, u8 node, u16 milliseconds since the step before; of a request u8 verb, u16
 * length and its arguments; of an answer u16 length and its bytes; of a link u8 its other end; of a
 * clock u16 seconds, with a sign. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/cursor.h"
#include "protocol/core/effect.h"
#include "sim/record/outline.h"
#include "sim/schedule/schedule.h"

#define NODES        5u
#define STEPS_MAX    2048u
#define ANSWER_BYTES 2048u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct lives {
    fb_sim_outline *outline;
    uint64_t now_ns;
    uint64_t request;
    int64_t clock_us[NODES];
    _Alignas(fb_effect) uint8_t answer[sizeof(fb_effect) + ANSWER_BYTES];
} lives;

static fb_span some(fb_reader *in)
{
    size_t len = fb_read_u16(in), left = fb_reader_left(in);
    return fb_read_bytes(in, len < left ? len : left);
}

static void event(lives *l, uint32_t node, uint32_t kind, uint64_t verb, fb_span bytes)
{
    fb_event e = {.kind = kind, .len = (uint32_t)bytes.len, .mono_ns = l->now_ns, .bytes = bytes.p};
    e.wall_us = l->clock_us[node] + (int64_t)(l->now_ns / 1000);
    e.a = l->request;
    e.b = verb;
    fb_sim_outline_event(l->outline, node, l->now_ns, &e);
}

static void step(lives *l, fb_reader *in)
{
    uint8_t what = fb_read_u8(in);
    uint32_t node = fb_read_u8(in) % NODES;
    l->now_ns += (uint64_t)fb_read_u16(in) * 1000000;
    fb_span nothing = {NULL, 0}, bytes;
    switch (what % 7) {
    case 0:
        event(l, node, FB_EV_START, 0, nothing);
        return;
    case 1:
        fb_sim_outline_down(l->outline, node, l->now_ns);
        return;
    case 2:
    case 3:
        fb_sim_outline_linked(l->outline, node, fb_read_u8(in) % NODES, l->now_ns, what % 7 == 2);
        return;
    case 4:
        l->clock_us[node] += (int16_t)fb_read_u16(in) * INT64_C(1000000);
        event(l, node, FB_EV_TICK, 0, nothing);
        return;
    case 5:
        bytes = some(in);
        if (bytes.len > ANSWER_BYTES) bytes.len = ANSWER_BYTES;
        fb_effect *fx = (fb_effect *)(void *)l->answer;
        *fx = (fb_effect){.kind = FB_FX_REPLY, .a = l->request, .len = (uint32_t)bytes.len};
        if (bytes.len != 0) memcpy(l->answer + sizeof *fx, bytes.p, bytes.len);
        fb_sim_outline_reply(l->outline, node, fx);
        return;
    default:
        l->request++;
        uint64_t verb = fb_read_u8(in);
        event(l, node, FB_EV_REQUEST, verb, some(in));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lives l;
    l = (lives){.outline = fb_sim_outline_create()};
    fb_reader in = fb_reader_of(fb_span_of(data, size));
    for (uint32_t i = 0; i < STEPS_MAX && fb_reader_left(&in) > 0; i++) step(&l, &in);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (l.outline == NULL || out == NULL || fb_sim_outline_write(l.outline, out) != NULL) abort();
    fclose(out);
    fb_sim_plan plan;
    fb_sim_plan_error error;
    if (!fb_sim_plan_parse(text, len, &plan, &error)) {
        fprintf(stderr, "line %u column %u: %s\n%s", (unsigned)error.line, (unsigned)error.column,
                error.text, text);
        abort();
    }
    fb_sim_plan_free(&plan);
    fb_sim_outline_free(l.outline);
    free(text);
    return 0;
}
