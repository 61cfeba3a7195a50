/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/core/internal.h"
#include "protocol/link/state.h"
#include "protocol/rpc/state.h"
#include "protocol/store/store.h"
#include "sim/explore/abstract.h"
#include "sim/explore/seen.h"

static void links(fb_sim_digits *d, const fb_node *core)
{
    const struct fb_links *all = core->links;
    uint32_t in[FB_LINK_CLOSING + 1] = {0};
    for (uint32_t i = 0; i < all->high; i++) in[all->table[i].info.state]++;
    for (uint32_t state = FB_LINK_FREE + 1; state <= FB_LINK_CLOSING; state++) {
        fb_sim_digit(d, fb_sim_class_of(in[state]));
    }
    uint32_t failing = 0, attempt = 0;
    for (uint32_t i = 0; i < all->book_capacity; i++) {
        failing += all->book[i].used && all->book[i].tries > 1;
        if (all->book[i].used && all->book[i].attempt > attempt) attempt = all->book[i].attempt;
    }
    fb_sim_digit(d, fb_sim_class_of(failing));
    /* How long it has been tried in vain. */
    fb_sim_digit(d, attempt < 3 ? 0 : attempt < 5 ? 1 : attempt < 8 ? 2 : 3);
}

static void calls(fb_sim_digits *d, const fb_node *core)
{
    const struct fb_rpc *rpc = core->rpc;
    uint32_t asks = 0, answers = 0;
    for (uint32_t i = 0; i < rpc->calls; i++) {
        asks += rpc->call[i].role == FB_SIDE_CALLER;
        answers += rpc->call[i].role == FB_SIDE_SERVER;
    }
    fb_sim_digit(d, fb_sim_class_of(asks));
    fb_sim_digit(d, fb_sim_class_of(answers));
}

static void store(fb_sim_digits *d, const fb_node *core)
{
    const struct fb_store *s = core->store;
    fb_sim_digit(d, s->w_sealed - s->w_durable);
    fb_sim_digit(d, fb_sim_class_of(s->to_admit.count));
    fb_sim_digit(d, fb_sim_class_of(s->to_read.count));
    const fb_set *set = &s->ring[(s->w_sealed + 1) % FB_WRITE_SETS_KEPT];
    fb_sim_digit(d, fb_sim_class_full(set->used + s->admitted_bytes + s->seal_bytes, set->cap));
    fb_sim_digit(d, fb_sim_class_full(s->ops_used, s->op_count));
}

uint64_t fb_sim_abstract(const fb_node *core)
{
    fb_sim_digits d = {0};
    fb_sim_digit(&d, (uint64_t)core->phase);
    fb_sim_digit(&d, core->starved);
    if (core->links != NULL) links(&d, core);
    if (core->messaging != NULL) fb_sim_abstract_messaging(&d, core);
    if (core->database != NULL) fb_sim_abstract_database(&d, core);
    if (core->rpc != NULL) calls(&d, core);
    store(&d, core);
    return d.value;
}
