/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/list.h"

typedef struct link_state {
    uint64_t link;
    uint64_t sent;
    uint64_t delivered;
    uint64_t acked;
} link_state;

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    link_state *links = own;
    link_state *l = &links[fb_sim_link_end(world, fx->b)];
    if (l->link != fx->b || fx->a == FB_FACT_LINK_BOUND) *l = (link_state){.link = fx->b};
    if (fx->a == FB_FACT_LINK_BOUND) return; /* on a carrier a new session counts anew */
    uint64_t *last = fx->a == FB_FACT_SENT || fx->a == FB_FACT_RESENT ? &l->sent
                     : fx->a == FB_FACT_DELIVERED                     ? &l->delivered
                                                                      : &l->acked;
    const char *what = fx->a == FB_FACT_DELIVERED ? "delivers"
                       : fx->a == FB_FACT_ACKED   ? "acknowledges"
                                                  : "sends";
    /* On a carrier what is unacknowledged is sent again under its number. */
    bool repeated = fx->a == FB_FACT_RESENT && fx->c <= *last;
    bool wrong = fx->a == FB_FACT_ACKED ? fx->c < *last : fx->c <= *last;
    if (ORACLE(NUMBER_AGAIN, false, fx->a == FB_FACT_SENT)) wrong = false;
    if (wrong && !repeated) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_delivered_in_order.id,
                        "%s %s number %llu of a link after number %llu", fb_sim_name(node), what,
                        (unsigned long long)fx->c, (unsigned long long)*last);
        return;
    }
    if (fx->c > *last) *last = fx->c;
}

const fb_sim_check fb_sim_check_delivered_in_order = {
    .id = "delivered-in-order",
    .musts = "FM-8.2-2, MP-6-1, MP-6-4, MP-7-27",
    .cost = "O(1) a message",
    .text = "on one connection messages are numbered, delivered and acknowledged in send order",
    .of_end_bytes = sizeof(link_state),
    .facts = FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_RESENT) |
             FB_SIM_FACT(FB_FACT_DELIVERED) | FB_SIM_FACT(FB_FACT_ACKED) |
             FB_SIM_FACT(FB_FACT_LINK_BOUND),
    .fact = fact,
    .histories = true,
};
