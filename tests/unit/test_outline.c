/* SPDX-License-Identifier: Apache-2.0 */
/* What recorded nodes lived through, as a schedule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/base/cursor.h"
#include "protocol/core/request.h"
#include "sim/record/outline.h"
#include "sim/schedule/schedule.h"

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

typedef struct incident {
    fb_sim_outline *outline;
    uint64_t request;
    int64_t clock_us[3];
    uint8_t bytes[4096];
    fb_writer w;
    uint8_t effect[256];
} incident;

static void event(incident *i, uint32_t node, uint64_t at_ns, uint32_t kind, uint64_t b)
{
    fb_event e = {.kind = kind, .mono_ns = at_ns, .a = ++i->request, .b = b};
    e.wall_us = i->clock_us[node] + (int64_t)(at_ns / 1000);
    if (kind == FB_EV_REQUEST) {
        e.bytes = i->bytes;
        e.len = (uint32_t)fb_writer_span(&i->w).len;
    }
    fb_sim_outline_event(i->outline, node, at_ns, &e);
}

static void begin(incident *i)
{
    i->w = fb_writer_of(i->bytes, sizeof i->bytes);
    fb_write_id(&i->w, (fb_id){{1}});
    fb_write_u8(&i->w, 1);
    fb_write_span16(&i->w, fb_span_text("notes"));
}

static void put(incident *i, uint8_t record, uint8_t mode, uint16_t fields)
{
    begin(i);
    fb_write_id(&i->w, (fb_id){{record}});
    fb_write_u8(&i->w, mode);
    fb_write_u8(&i->w, 0);
    fb_write_id(&i->w, (fb_id){{0}});
    fb_write_u16(&i->w, fields);
}

static void field(incident *i, const char *name, uint8_t how, const char *value)
{
    fb_write_span16(&i->w, fb_span_text(name));
    fb_write_u8(&i->w, how);
    fb_write_span32(&i->w, fb_span_text(value));
}

static void answered(incident *i, uint32_t node, uint8_t record)
{
    fb_effect *fx = (fb_effect *)(void *)i->effect;
    uint8_t answer[33] = {record};
    *fx = (fb_effect){.kind = FB_FX_REPLY, .a = i->request, .b = FB_OK, .len = sizeof answer};
    memcpy(i->effect + sizeof *fx, answer, sizeof answer);
    fb_sim_outline_reply(i->outline, node, fx);
}

/* The text, which has to be a schedule. */
static char *written(incident *i)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    assert_null(fb_sim_outline_write(i->outline, out));
    fclose(out);
    fb_sim_plan plan;
    fb_sim_plan_error error;
    bool is_one = fb_sim_plan_parse(text, len, &plan, &error);
    if (!is_one) fail_msg("line %u: %s\n%s", (unsigned)error.line, error.text, text);
    fb_sim_plan_free(&plan);
    fb_sim_outline_free(i->outline);
    return text;
}

static void an_incident_becomes_a_schedule(void **state)
{
    (void)state;
    static incident i;
    i = (incident){.outline = fb_sim_outline_create()};
    for (uint32_t node = 0; node < 3; node++) event(&i, node, 0, FB_EV_START, 0);
    fb_sim_outline_linked(i.outline, 0, 1, 10 * MS, true);
    fb_sim_outline_linked(i.outline, 2, 0, 10 * MS, true);

    put(&i, 0, 1, 2); /* a new record */
    field(&i, "name", 1, "\"fig\"");
    field(&i, "text", 1, "\"0123456789012345678901234567890123456789\"");
    event(&i, 0, 100 * MS, FB_EV_REQUEST, FB_VERB_RECORD_PUT);
    answered(&i, 0, 77);
    put(&i, 77, 2, 3);
    field(&i, "text", 2, "");
    field(&i, "count", 3, "5");
    field(&i, "tags", 4, "\"red\"");
    event(&i, 1, 200 * MS, FB_EV_REQUEST, FB_VERB_RECORD_PUT);
    begin(&i);
    fb_write_id(&i.w, (fb_id){{77}});
    event(&i, 2, 300 * MS, FB_EV_REQUEST, FB_VERB_RECORD_GET);
    fb_write_u8(&i.w, 0);
    fb_write_id(&i.w, (fb_id){{0}});
    event(&i, 2, 400 * MS, FB_EV_REQUEST, FB_VERB_RECORD_DELETE);
    begin(&i);
    event(&i, 2, 450 * MS, FB_EV_REQUEST, FB_VERB_RECORD_PUT); /* not in its layout */

    /* A and C lose each other for two seconds, A and B for a moment. */
    fb_sim_outline_linked(i.outline, 0, 2, 1 * S, false);
    fb_sim_outline_linked(i.outline, 0, 1, 1 * S, false);
    fb_sim_outline_linked(i.outline, 1, 0, 1 * S + 200 * MS, true);
    fb_sim_outline_linked(i.outline, 2, 0, 3 * S, true);
    /* B dies and is back after four seconds. */
    fb_sim_outline_linked(i.outline, 1, 0, 4 * S, false);
    fb_sim_outline_down(i.outline, 1, 4 * S);
    event(&i, 1, 8 * S, FB_EV_START, 0);
    fb_sim_outline_linked(i.outline, 1, 0, 8 * S + 10 * MS, true);
    /* C's clock is put back by a minute, and again by as much. */
    i.clock_us[2] -= 60 * INT64_C(1000000);
    event(&i, 2, 9 * S, FB_EV_TICK, 0);
    i.clock_us[2] -= 60 * INT64_C(1000000);
    event(&i, 2, 10 * S, FB_EV_TICK, 0);
    event(&i, 0, 11 * S, FB_EV_REQUEST, FB_VERB_SPACE_INVITE);
    event(&i, 0, 12 * S, FB_EV_TICK, 0);

    char *text = written(&i);
    assert_string_equal(text, "schedule 1\n"
                              "seed 1\n"
                              "nodes 3\n"
                              "round 1 for 12s\n"
                              "  100ms A put r0 f0 f1+10 #1\n"
                              "  200ms B add r0 5\n"
                              "  200ms B/2 insert r0 0\n"
                              "  200ms B change r0 -f1 #3\n"
                              "  300ms C get r0\n"
                              "  400ms C/2 delete r0\n"
                              "  1s..3s nontransitive A-C\n"
                              "  4s..8s crash-at B send nth 1\n"
                              "  4s..8s restart-late B down 4s\n"
                              "  9s..10s clock-step C by -60s\n"
                              "  10s..12s clock-step C by -120s\n"
                              "# left out, requests about spaces, members, applications and "
                              "peers: 1\n"
                              "# left out, malformed requests: 1\n");
    free(text);
}

static void redacted_ones_and_empty_ones_are_schedules(void **state)
{
    (void)state;
    static incident i;
    i = (incident){.outline = fb_sim_outline_create()};
    fb_event e = {.kind = FB_EV_REQUEST, .len = 30, .a = 1, .b = FB_VERB_RECORD_PUT};
    fb_sim_outline_event(i.outline, 0, 0, &e);
    char *text = written(&i);
    assert_string_equal(text, "schedule 1\nseed 1\nnodes 2\nround 1 for 1s\n"
                              "# left out, requests of redacted recordings: 1\n");
    free(text);
}

static void one_that_is_too_long_is_none(void **state)
{
    (void)state;
    static incident i;
    i = (incident){.outline = fb_sim_outline_create()};
    event(&i, 0, FB_SIM_SCHEDULE_TIME_MAX + 1, FB_EV_TICK, 0);
    FILE *out = tmpfile();
    assert_non_null(out);
    assert_non_null(strstr(fb_sim_outline_write(i.outline, out), "at most"));
    assert_int_equal(ftell(out), 0);
    fclose(out);
    fb_sim_outline_free(i.outline);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_incident_becomes_a_schedule),
        cmocka_unit_test(redacted_ones_and_empty_ones_are_schedules),
        cmocka_unit_test(one_that_is_too_long_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
