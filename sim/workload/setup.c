/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/workload/setup.h"

#include <stdio.h>

#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "sim/workload/director.h"
#include "sim/workload/let_in.h"
#include "sim/world/world.h"

/* Setting up, one space after the other: its creator makes it; every other member is invited,
 * joins, is approved and dials its neighbours, all at once, each at its own pace. `progress` of a
 * node counts what is behind. */

enum {
    SETUP_BOOTED,
    SETUP_INVITED, /* the invite is in bytes */
    SETUP_JOINING,
    SETUP_LEAVING, /* the creator, whose places others need: a given topology alone */
    SETUP_APPROVED,
    SETUP_DIALLED,
};

/* Of a given topology: so many join at once, for the creator has few places for links. */
#define JOINING_MAX 4u

static void address_of(uint32_t node, char out[16])
{
    snprintf(out, 16, "sim:%u", (unsigned)node);
}

static bool wait_or_fail(fb_sim_world *world, uint32_t space, uint32_t node, const char *stage)
{
    fb_sim_asked *asked = fb_sim_asked_of(world, space, node);
    snprintf(world->director->setup_stage, sizeof world->director->setup_stage, "%s: %s",
             fb_sim_name(node), stage);
    if (asked->request == 0) return true;
    if (!asked->answered) return false;
    if (asked->status == FB_OK) return true;
    if (asked->status == FB_ERR_BUSY || asked->status == FB_ERR_AGAIN ||
        asked->status == FB_ERR_NOT_ASKED || asked->status == FB_ERR_UNREACHABLE ||
        asked->status == FB_ERR_DEADLINE) {
        asked->request = 0; /* again at the next turn */
        return false;
    }
    fb_sim_violated(world, FB_SIM_LIVENESS, "setup", "%s: %s: %s", fb_sim_name(node), stage,
                    fb_error_name((fb_error)asked->status));
    return false;
}

static bool setup_creator(fb_sim_world *world, uint32_t s)
{
    uint32_t creator = fb_sim_creator(world, s);
    fb_sim_asked *asked = fb_sim_asked_of(world, s, creator);
    if (!fb_id_is_zero(world->spaces[s])) return true;
    if (asked->request == 0) {
        uint8_t bytes[64];
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        fb_write_span16(&w, fb_span_text(s == 0 ? "simulated" : "second"));
        fb_write_b32(&w, fb_sim_recovery_key(world, s));
        fb_sim_ask(world, s, creator, FB_VERB_SPACE_CREATE, fb_writer_span(&w));
    }
    if (!wait_or_fail(world, s, creator, "space create")) return false;
    memcpy(world->spaces[s].b, asked->bytes, 16);
    asked->request = 0;
    return true;
}

void fb_sim_ask_invite(fb_sim_world *world, uint32_t s, uint32_t node)
{
    uint8_t bytes[64];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    char address[16];
    address_of(node, address);
    fb_write_id(&w, world->spaces[s]);
    fb_write_u32(&w, FB_INVITE_USES_MAX);
    fb_write_u64(&w, UINT64_C(100) * 365 * 86400);
    fb_write_span16(&w, fb_span_text(address));
    fb_sim_ask(world, s, node, FB_VERB_SPACE_INVITE, fb_writer_span(&w));
}

void fb_sim_ask_join(fb_sim_world *world, uint32_t s, uint32_t node)
{
    const fb_sim_gate *gate = &world->director->spaces[s];
    uint8_t bytes[640];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    char address[16];
    address_of(node, address);
    if (gate->invite_void) {
        fb_write_bytes(&w, gate->rescue, gate->rescue_len);
    } else {
        fb_write_bytes(&w, gate->invite, gate->invite_len);
    }
    /* With an address members dial each other by themselves; here the topology is given. */
    if (world->config.degree == 0) fb_write_span16(&w, fb_span_text(address));
    fb_sim_ask(world, s, node, FB_VERB_SPACE_JOIN, fb_writer_span(&w));
}

/* One node further, if it can be. */
static void setup_joiner(fb_sim_world *world, uint32_t s, uint32_t node)
{
    fb_sim_gate *gate = &world->director->spaces[s];
    uint32_t from = fb_sim_creator(world, s);
    fb_sim_asked *asked = fb_sim_asked_of(world, s, node);
    fb_sim_asked *creator = fb_sim_asked_of(world, s, from);
    uint8_t bytes[640];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    char address[16];
    if (asked->progress == SETUP_BOOTED) {
        if (gate->invite_len == 0) {
            if (creator->request == 0) fb_sim_ask_invite(world, s, from);
            if (!wait_or_fail(world, s, from, "space invite")) return;
            memcpy(gate->invite, creator->bytes, creator->len);
            gate->invite_len = creator->len;
            creator->request = 0;
        }
        asked->progress = SETUP_INVITED;
        asked->request = 0;
        return;
    }
    if (asked->progress == SETUP_INVITED) {
        fb_sim_ask_join(world, s, node);
        asked->progress = SETUP_JOINING;
        return;
    }
    if (asked->progress == SETUP_JOINING) {
        if (!asked->answered) return;
        if (asked->status != FB_OK) {
            /* The request itself is what may be repeated. */
            fb_sim_violated(world, FB_SIM_LIVENESS, "setup", "%s: space join: %s",
                            fb_sim_name(node), fb_error_name((fb_error)asked->status));
            return;
        }
        if (creator->request != 0 && gate->approving != node) return;
        if (creator->request == 0) {
            gate->approving = node;
            fb_write_id(&w, world->spaces[s]);
            fb_write_id(&w, world->nodes[node].id);
            fb_write_u8(&w, fb_sim_role_of(node));
            fb_sim_ask(world, s, from, FB_VERB_SPACE_APPROVE, fb_writer_span(&w));
        }
        if (!wait_or_fail(world, s, from, "space approve")) return;
        creator->request = 0;
        asked->progress = world->config.degree == 0 ? SETUP_APPROVED : SETUP_LEAVING;
        asked->request = 0;
        return;
    }
    if (asked->progress == SETUP_LEAVING) {
        if (asked->request == 0) {
            address_of(0, address);
            fb_write_id(&w, world->spaces[s]);
            fb_write_span16(&w, fb_span_text(address));
            fb_sim_ask(world, s, node, FB_VERB_PEER_FORGET, fb_writer_span(&w));
        }
        if (!wait_or_fail(world, s, node, "peer forget")) return;
        asked->progress = SETUP_APPROVED;
        asked->request = 0;
    }
}

/* Neighbours: node i dials the next ones of a ring, so that each has `degree` links. */
static bool setup_dial(fb_sim_world *world, uint32_t s, uint32_t node)
{
    fb_sim_asked *asked = fb_sim_asked_of(world, s, node);
    uint32_t nodes = world->config.nodes;
    uint32_t half = world->config.degree == 0 ? nodes - 1 : (world->config.degree + 1) / 2;
    if (half > nodes - 1) half = nodes - 1;
    uint32_t count = (uint32_t)(asked->progress - SETUP_APPROVED);
    while (count < half) {
        /* Near ones and far ones, so that the whole stays connected and shallow. */
        uint32_t step = count % 2 == 0 ? count / 2 + 1 : nodes / 2 - count / 2;
        uint32_t peer = world->config.degree == 0 ? (node + count + 1) % nodes
                                                  : (node + (step == 0 ? 1 : step)) % nodes;
        if (!fb_sim_is_member(world, s, peer) || (world->config.degree == 0 && peer < node)) {
            count++;
            asked->progress++;
            continue; /* that one dials this one, if anybody does */
        }
        if (asked->request == 0) {
            char address[16];
            uint8_t bytes[64];
            fb_writer w = fb_writer_of(bytes, sizeof bytes);
            address_of(peer, address);
            fb_write_id(&w, world->spaces[s]);
            fb_write_span16(&w, fb_span_text(address));
            fb_sim_ask(world, s, node, FB_VERB_PEER_ADD, fb_writer_span(&w));
        }
        if (!wait_or_fail(world, s, node, "peer add")) return false;
        asked->request = 0;
        asked->progress++;
        count++;
    }
    return true;
}

bool fb_sim_setup_space(fb_sim_world *world, uint32_t s)
{
    uint32_t nodes = world->config.nodes, creator = fb_sim_creator(world, s);
    if (!setup_creator(world, s)) return false;
    bool all = true;
    uint32_t joining = 0;
    for (uint32_t i = 0; i < nodes && !world->stop; i++) {
        if (i == creator || !fb_sim_is_member(world, s, i)) continue;
        if (world->config.degree != 0 && joining == JOINING_MAX) {
            all = false;
            break;
        }
        const fb_sim_asked *asked = fb_sim_asked_of(world, s, i);
        if (asked->progress < SETUP_APPROVED) {
            joining++;
            uint64_t before;
            do {
                before = asked->progress;
                setup_joiner(world, s, i);
            } while (asked->progress != before && asked->progress < SETUP_APPROVED);
            all = all && asked->progress >= SETUP_APPROVED;
        }
    }
    if (!all || world->stop) return false;
    fb_sim_asked *first = fb_sim_asked_of(world, s, creator);
    if (first->progress < SETUP_APPROVED) {
        first->progress = SETUP_APPROVED;
        first->request = 0;
    }
    for (uint32_t i = 0; i < nodes && !world->stop; i++) {
        if (fb_sim_is_member(world, s, i)) all = setup_dial(world, s, i) && all;
    }
    return all && !world->stop;
}
