/* SPDX-License-Identifier: Apache-2.0 */
/* The space plane among the others: its tables, their digests, when it is called. */
#include "protocol/core/plane.h"

#include "protocol/space/fold.h"
#include "protocol/space/introduce.h"
#include "protocol/space/requests.h"
#include "protocol/space/standing.h"
#include "protocol/space/store.h"

/* Digests. Secrets stay out: a digest may be printed. */

static uint32_t space_count(const fb_node *node)
{
    return node->options.sizes.spaces;
}

static fb_digest_cell *space_cell(fb_node *node, uint32_t index)
{
    return &fb_space_at(node, index)->cell;
}

static void space_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_space *space = fb_space_at(node, index);
    if (!space->used) return;
    fb_write_u32(w, space->local);
    fb_write_id(w, space->id);
    fb_write_b32(w, space->creator);
    fb_write_b32(w, space->recovery);
    fb_write_u8(w, space->rooted);
    fb_write_u8(w, space->taken);
    fb_write_u8(w, space->writing);
    fb_write_u8(w, space->address_said);
    fb_write_u32(w, space->own);
    fb_write_u64(w, space->waiting.number);
    fb_write_u8(w, space->joining.given);
    fb_write_u8(w, space->joining.dialled);
    fb_write_id(w, space->joining.id);
    fb_write_b32(w, space->joining.inviter);
    fb_write_span16(w, fb_span_of(space->joining.address, space->joining.address_len));
    fb_write_span16(w, fb_span_of(space->name, space->name_len));
    fb_write_span16(w, fb_span_of(space->address, space->address_len));
    fb_hash128 proof = fb_xxh128(space->proof, space->proof_len, 0);
    fb_write_u64(w, proof.lo);
    fb_write_u64(w, proof.hi);
    if (space->left) fb_write_u8(w, 1);
    if (space->name_at.incarnation != 0) fb_dot_stamp_write(w, &space->name_at);
}

static uint32_t member_count(const fb_node *node)
{
    return node->options.sizes.members;
}

static fb_digest_cell *member_cell(fb_node *node, uint32_t index)
{
    return &fb_member_at(node, index)->cell;
}

static void member_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_member *member = fb_member_at(node, index);
    if (!member->used) return;
    fb_write_u32(w, member->space);
    fb_write_b32(w, member->key);
    fb_write_u8(w, (uint8_t)member->status);
    fb_write_u8(w, (uint8_t)member->role);
    fb_write_u8(w, member->introduced);
    fb_write_u8(w, member->dialled);
    fb_write_id(w, member->invite);
    fb_write_u64(w, member->approved_w);
    fb_dot_stamp_write(w, &member->address_at);
    fb_write_span16(w, fb_span_of(member->address, member->address_len));
    fb_standing_digest(node, index, w);
}

static uint32_t invite_count(const fb_node *node)
{
    return node->options.sizes.invites;
}

static fb_digest_cell *invite_cell(fb_node *node, uint32_t index)
{
    return &node->spaces->invite[index].cell;
}

static void invite_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_given_invite *invite = &node->spaces->invite[index];
    if (!invite->used) return;
    fb_write_u32(w, invite->space);
    fb_write_id(w, invite->id);
    fb_write_u32(w, invite->uses);
    fb_write_u64(w, (uint64_t)invite->expires_us);
}

static uint32_t application_count(const fb_node *node)
{
    return node->options.sizes.applications;
}

static fb_digest_cell *application_cell(fb_node *node, uint32_t index)
{
    return &node->spaces->application[index].cell;
}

static void application_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_application *application = &node->spaces->application[index];
    if (!application->used) return;
    fb_write_u32(w, application->number);
    fb_write_u8(w, application->revoked);
    fb_write_u64(w, application->spaces);
    fb_write_span16(w, fb_span_of(application->name, application->name_len));
    fb_write_b32(w, application->token_hash);
}

static uint32_t shown_count(const fb_node *node)
{
    return node->options.sizes.links;
}

static fb_digest_cell *shown_cell(fb_node *node, uint32_t index)
{
    return &node->spaces->shown[index].cell;
}

static void shown_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const fb_shown *shown = &node->spaces->shown[index];
    uint8_t flags =
        (uint8_t)((shown->shown ? 1u : 0u) | (shown->owes_proof ? 2u : 0u) |
                  (shown->owes_answer ? 4u : 0u) | (shown->owes_standing ? 8u : 0u) |
                  (shown->said_statement ? 16u : 0u) | (shown->read_statement ? 32u : 0u));
    if (flags == 0) return;
    fb_write_u64(w, shown->number);
    fb_write_u8(w, flags);
    fb_write_id(w, shown->invite);
    fb_write_u64(w, shown->answer_w);
}

static const fb_digest_kind space_digest = {"space", space_count, space_cell, space_write};
static const fb_digest_kind member_digest = {"member", member_count, member_cell, member_write};
static const fb_digest_kind invite_digest = {"invite", invite_count, invite_cell, invite_write};
static const fb_digest_kind application_digest = {"application", application_count,
                                                  application_cell, application_write};
static const fb_digest_kind shown_digest = {"shown", shown_count, shown_cell, shown_write};

static void layout(fb_node *node, fb_arena *arena)
{
    const fb_sizes *sizes = &node->options.sizes;
    uint32_t buckets = 16;
    while (buckets < 2 * sizes->members) buckets *= 2;
    struct fb_spaces *spaces = fb_arena_take(arena, 1, sizeof *spaces);
    fb_space *space = fb_arena_take(arena, sizes->spaces, sizeof *space);
    fb_member *member = fb_arena_take(arena, sizes->members, sizeof *member);
    fb_given_invite *invite = fb_arena_take(arena, sizes->invites, sizeof *invite);
    fb_application *application = fb_arena_take(arena, sizes->applications, sizeof *application);
    fb_shown *shown = fb_arena_take(arena, sizes->links, sizeof *shown);
    uint64_t *stating = fb_arena_take(arena, sizes->requests, sizeof *stating);
    fb_listing *listing = fb_arena_take(arena, sizes->requests, sizeof *listing);
    uint8_t *listed = fb_arena_take(arena, 1, fb_space_list_bytes(sizes));
    uint32_t *heads = fb_arena_take(arena, buckets, sizeof *heads);
    fb_digest_register(node, FB_DIGEST_SPACE, &space_digest);
    fb_digest_register(node, FB_DIGEST_MEMBER, &member_digest);
    fb_digest_register(node, FB_DIGEST_INVITE, &invite_digest);
    fb_digest_register(node, FB_DIGEST_APPLICATION, &application_digest);
    fb_digest_register(node, FB_DIGEST_SHOWN, &shown_digest);
    fb_timer_register(node, FB_TIMER_SPACE, fb_space_duty_due, sizes->spaces);
    fb_space_verbs_register(node);
    fb_application_verbs_register(node);
    fb_control_register(node, FB_CONTROL_INVITE, &fb_space_invite_channel);
    fb_control_register(node, FB_CONTROL_MEMBERSHIP, &fb_space_membership_channel);
    node->spaces = spaces;
    fb_standings_layout(node, arena);
    if (spaces == NULL) return;
    spaces->space = space;
    spaces->member = member;
    spaces->invite = invite;
    spaces->application = application;
    spaces->shown = shown;
    spaces->stating = stating;
    spaces->listing = listing;
    spaces->listed = listed;
    spaces->buckets = heads;
    spaces->bucket_mask = buckets - 1;
}

static void reset(fb_node *node)
{
    struct fb_spaces *spaces = node->spaces;
    const fb_sizes *sizes = &node->options.sizes;
    for (uint32_t i = 0; i < sizes->spaces; i++) {
        if (spaces->space[i].used) fb_space_touch(node, i);
        spaces->space[i].used = false;
        fb_timer_init(&spaces->space[i].timer, FB_TIMER_SPACE, i);
    }
    memset(spaces->buckets, 0, (spaces->bucket_mask + (size_t)1) * sizeof *spaces->buckets);
    spaces->member_free = 0;
    for (uint32_t i = sizes->members; i-- > 0;) {
        if (spaces->member[i].used) fb_member_touch(node, i);
        spaces->member[i].used = false;
        spaces->member[i].next = spaces->member_free;
        spaces->member_free = i + 1;
    }
    for (uint32_t i = 0; i < sizes->invites; i++) {
        if (spaces->invite[i].used) fb_digest_touch(node, FB_DIGEST_INVITE, i);
        spaces->invite[i].used = false;
    }
    for (uint32_t i = 0; i < sizes->applications; i++) {
        if (spaces->application[i].used) fb_digest_touch(node, FB_DIGEST_APPLICATION, i);
        spaces->application[i].used = false;
    }
    for (uint32_t i = 0; i < sizes->links; i++) {
        fb_digest_cell cell = spaces->shown[i].cell;
        memset(&spaces->shown[i], 0, sizeof spaces->shown[i]);
        spaces->shown[i].cell = cell;
        fb_digest_touch(node, FB_DIGEST_SHOWN, i);
    }
    memset(spaces->stating, 0, sizes->requests * sizeof *spaces->stating);
    memset(spaces->listing, 0, sizes->requests * sizeof *spaces->listing);
    spaces->listings = 0;
    spaces->listed_len = 0;
    memset(spaces->retry, 0, sizeof spaces->retry);
    spaces->members = spaces->pending = 0;
    spaces->space_local = spaces->application_number = 0;
    spaces->awaiting = spaces->answering = 0;
    spaces->shutting_w = spaces->told_w = 0;
    spaces->taking_away.used = spaces->naming.used = false;
    fb_standings_reset(node);
}

static void started(fb_node *node)
{
    for (uint32_t i = 0; i < fb_space_capacity(node); i++) {
        if (fb_space_exists(node, i)) fb_space_started(node, i);
    }
}

static void durable(fb_node *node)
{
    fb_space_durable(node);
    fb_space_answer_durable(node);
    fb_space_requests_durable(node);
}

const fb_plane fb_space_plane = {
    .name = "space",
    .layout = layout,
    .reset = reset,
    .load = fb_space_load,
    .started = started,
    .durable = durable,
    .flush = fb_space_lists_flush,
};
