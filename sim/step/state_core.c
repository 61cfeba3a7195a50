/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "protocol/core/internal.h"
#include "protocol/store/store.h"
#include "sim/step/state.h"

static const char *timer_name(uint16_t kind)
{
    static const char *const names[FB_TIMER_KINDS] = {
        [FB_TIMER_LINK] = "link",         [FB_TIMER_HEARTBEAT] = "heartbeat",
        [FB_TIMER_RESEND] = "resend",     [FB_TIMER_DIAL] = "dial",
        [FB_TIMER_REPEAT] = "repeat",     [FB_TIMER_REDELIVER] = "redeliver",
        [FB_TIMER_CALL] = "call",         [FB_TIMER_ONWARD] = "onward",
        [FB_TIMER_REPORT] = "report",     [FB_TIMER_CUT] = "cut",
        [FB_TIMER_FOLD] = "fold",         [FB_TIMER_COMPARE] = "compare",
        [FB_TIMER_CONFLICT] = "conflict", [FB_TIMER_SPACE] = "space",
        [FB_TIMER_WANTED] = "wanted",     [FB_TIMER_MEND] = "mend",
    };
    return kind < FB_TIMER_KINDS && names[kind] != NULL ? names[kind] : "?";
}

static void store(fb_sim_fields *f, const fb_node *core)
{
    const struct fb_store *s = core->store;
    if (!fb_sim_group(f, "store")) return;
    fb_sim_field(f, "w_sealed", "%llu", (unsigned long long)s->w_sealed);
    fb_sim_field(f, "w_durable", "%llu", (unsigned long long)s->w_durable);
    fb_sim_field(f, "operations", "%u", (unsigned)s->ops_used);
    fb_sim_field(f, "waiting_to_begin", "%u", (unsigned)s->to_admit.count);
    fb_sim_field(f, "waiting_to_read", "%u", (unsigned)s->to_read.count);
}

void fb_sim_state_core(fb_sim_fields *f, const fb_node *core)
{
    static const char *const phases[] = {"waits for start", "loads", "runs"};
    if (fb_sim_group(f, "node")) {
        fb_sim_field(f, "phase", "%s", phases[core->phase]);
        fb_sim_field(f, "incarnation", "%016llx", (unsigned long long)core->incarnation);
        fb_sim_field(f, "id", "%s", fb_sim_id_name(f, core->self));
        fb_sim_field(f, "starved", "%s", core->starved ? "yes" : "no");
    }
    if (fb_sim_group(f, "counter")) {
        for (uint32_t i = 0; i < FB_COUNTERS; i++) {
            fb_sim_field(f, fb_counter_name((fb_counter)i), "%llu",
                         (unsigned long long)core->counters[i]);
        }
    }
    for (uint32_t i = 0; i < core->timers.count; i++) {
        const fb_timer *timer = core->timers.heap[i];
        if (!fb_sim_group(f, "timer[%s %u]", timer_name(timer->kind), (unsigned)timer->index)) {
            continue;
        }
        fb_sim_field(f, "at_mono_ns", "%llu", (unsigned long long)timer->at_ns);
    }
    store(f, core);
    fb_sim_state_links(f, core);
    fb_sim_state_messaging(f, core);
    fb_sim_state_database(f, core);
}
