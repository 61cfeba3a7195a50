/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/space/table.h"

#include "protocol/identity/identity.h"
#include "protocol/link/preamble.h"
#include "protocol/space/standing.h"
#include "protocol/store/ops.h"

int fb_dot_stamp_compare(const fb_dot_stamp *a, const fb_dot_stamp *b)
{
    if (a->stamp != b->stamp) return a->stamp < b->stamp ? -1 : 1;
    int order = fb_id_compare(a->node, b->node);
    if (order != 0) return order;
    if (a->incarnation != b->incarnation) return a->incarnation < b->incarnation ? -1 : 1;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

void fb_space_tells_new(fb_node *node)
{
    node->spaces->told_w = fb_w_building(node);
}

void fb_space_touch(fb_node *node, uint32_t space)
{
    fb_digest_touch(node, FB_DIGEST_SPACE, space);
}

void fb_member_touch(fb_node *node, uint32_t member)
{
    fb_digest_touch(node, FB_DIGEST_MEMBER, member);
}

/* Members by (space, id). */

static uint32_t *bucket_of(const fb_node *node, uint32_t space, const fb_id *id)
{
    struct fb_spaces *spaces = node->spaces;
    return &spaces->buckets[fb_xxh64(id->b, sizeof id->b, space) & spaces->bucket_mask];
}

uint32_t fb_member_find(const fb_node *node, uint32_t space, fb_id peer)
{
    uint32_t at = *bucket_of(node, space, &peer);
    while (at != 0) {
        const fb_member *member = fb_member_at(node, at - 1);
        if (member->space == space && fb_id_equal(member->id, peer)) return at - 1;
        at = member->chain;
    }
    return FB_NONE;
}

static void list_insert(fb_node *node, uint32_t index)
{
    fb_member *member = fb_member_at(node, index);
    uint32_t *at = &fb_space_at(node, member->space)->first;
    while (*at != 0 && fb_id_compare(fb_member_at(node, *at - 1)->id, member->id) < 0) {
        at = &fb_member_at(node, *at - 1)->next;
    }
    member->next = *at;
    *at = index + 1;
    uint32_t *bucket = bucket_of(node, member->space, &member->id);
    member->chain = *bucket;
    *bucket = index + 1;
}

static void list_remove(fb_node *node, uint32_t index)
{
    fb_member *member = fb_member_at(node, index);
    uint32_t *at = &fb_space_at(node, member->space)->first;
    while (*at != index + 1) at = &fb_member_at(node, *at - 1)->next;
    *at = member->next;
    at = bucket_of(node, member->space, &member->id);
    while (*at != index + 1) at = &fb_member_at(node, *at - 1)->chain;
    *at = member->chain;
}

static void count(fb_node *node, const fb_member *member, uint32_t by)
{
    if (member->status == FB_MEMBER_APPROVED) fb_space_at(node, member->space)->approved += by;
    if (member->status == FB_MEMBER_PENDING) node->spaces->pending += by;
}

bool fb_member_fits(const fb_node *node)
{
    return node->spaces->member_free != 0 || node->spaces->pending != 0;
}

/* The pending member in the highest place: any would do, this one is the same in every run. */
static void evict_pending(fb_node *node)
{
    for (uint32_t i = node->options.sizes.members; i-- > 0;) {
        if (fb_member_at(node, i)->used && fb_member_at(node, i)->status == FB_MEMBER_PENDING) {
            fb_member_drop(node, i);
            return;
        }
    }
}

uint32_t fb_member_add(fb_node *node, uint32_t space, fb_id id, fb_b32 key, fb_member_status status,
                       fb_role role)
{
    struct fb_spaces *spaces = node->spaces;
    if (spaces->member_free == 0 && status != FB_MEMBER_PENDING) evict_pending(node);
    if (spaces->member_free == 0) return FB_NONE;
    uint32_t index = spaces->member_free - 1;
    fb_member *member = fb_member_at(node, index);
    spaces->member_free = member->next;
    spaces->members++;
    fb_digest_cell cell = member->cell;
    memset(member, 0, sizeof *member);
    member->cell = cell;
    member->used = true;
    member->space = space;
    member->status = status;
    member->role = role;
    member->id = id;
    member->key = key;
    list_insert(node, index);
    count(node, member, 1);
    if (fb_b32_equal(key, node->self_key) && status == FB_MEMBER_APPROVED) {
        fb_space_at(node, space)->own = index;
        fb_space_touch(node, space);
    }
    fb_member_touch(node, index);
    return index;
}

void fb_member_drop(fb_node *node, uint32_t index)
{
    struct fb_spaces *spaces = node->spaces;
    fb_member *member = fb_member_at(node, index);
    list_remove(node, index);
    count(node, member, UINT32_MAX); /* minus one */
    if (member->approved_w != 0) spaces->awaiting--;
    fb_standing_drop(node, index);
    member->used = false;
    member->next = spaces->member_free;
    spaces->member_free = index + 1;
    spaces->members--;
    fb_member_touch(node, index);
}

void fb_member_set_status(fb_node *node, uint32_t index, fb_member_status status)
{
    fb_member *member = fb_member_at(node, index);
    count(node, member, UINT32_MAX);
    member->status = status;
    count(node, member, 1);
    if (fb_b32_equal(member->key, node->self_key)) {
        fb_space_at(node, member->space)->own = status == FB_MEMBER_APPROVED ? index : FB_NONE;
        fb_space_touch(node, member->space);
    }
    fb_member_touch(node, index);
}

void fb_member_observe(fb_node *node, uint32_t index)
{
    const fb_member *member = fb_member_at(node, index);
    uint8_t bytes[32];
    memcpy(bytes, fb_space_at(node, member->space)->id.b, 16);
    memcpy(bytes + 16, member->id.b, 16);
    fb_observe(node, FB_FACT_MEMBER, (uint64_t)member->status, (uint64_t)member->role,
               fb_span_of(bytes, sizeof bytes));
}

void fb_space_observe_name(fb_node *node, uint32_t index)
{
    const fb_space *space = fb_space_at(node, index);
    uint8_t bytes[16 + FB_SPACE_NAME_BYTES_MAX];
    memcpy(bytes, space->id.b, 16);
    memcpy(bytes + 16, space->name, space->name_len);
    fb_observe(node, FB_FACT_NAMED, 0, 0, fb_span_of(bytes, 16u + space->name_len));
}

/* Spaces. */

uint32_t fb_space_add(fb_node *node, fb_id id, uint32_t local, fb_b32 creator, fb_span name)
{
    struct fb_spaces *spaces = node->spaces;
    const fb_provider *provider = node->options.provider;
    uint32_t index = 0;
    while (index < node->options.sizes.spaces && spaces->space[index].used) index++;
    if (index == node->options.sizes.spaces) return FB_NONE;
    fb_space *space = &spaces->space[index];
    fb_digest_cell cell = space->cell;
    memset(space, 0, sizeof *space);
    space->cell = cell;
    space->used = true;
    space->local = local;
    space->id = id;
    space->creator = creator;
    space->own = FB_NONE;
    space->name_len = (uint8_t)name.len;
    memcpy(space->name, name.p, name.len);
    fb_timer_init(&space->timer, FB_TIMER_SPACE, index);

    fb_space_tag(provider, id, &space->tag);

    /* The creator's key is the root of trust: an admin before any statement is read. */
    if (fb_member_add(node, index, fb_node_id_of(provider, &creator), creator, FB_MEMBER_APPROVED,
                      FB_ROLE_ADMIN) == FB_NONE) {
        space->used = false;
        return FB_NONE;
    }
    /* Not while loading: then it is what it was. */
    if (node->phase == FB_PHASE_RUNNING) {
        fb_member_observe(node, fb_member_find(node, index, fb_node_id_of(provider, &creator)));
    }
    if (local > spaces->space_local) spaces->space_local = local;
    fb_space_touch(node, index);
    return index;
}

void fb_space_drop(fb_node *node, uint32_t index)
{
    fb_space *space = fb_space_at(node, index);
    while (space->first != 0) fb_member_drop(node, space->first - 1);
    fb_timer_clear(node, &space->timer);
    space->used = false;
    fb_space_touch(node, index);
}

/* What others ask. */

uint32_t fb_space_find(const fb_node *node, fb_id space)
{
    for (uint32_t i = 0; i < node->options.sizes.spaces; i++) {
        if (fb_space_exists(node, i) && fb_id_equal(fb_space_at(node, i)->id, space)) return i;
    }
    return FB_NONE;
}

uint32_t fb_space_find_tag(const fb_node *node, const uint8_t tag[16])
{
    for (uint32_t i = 0; i < node->options.sizes.spaces; i++) {
        if (fb_space_exists(node, i) && memcmp(fb_space_at(node, i)->tag.b, tag, 16) == 0) return i;
    }
    return FB_NONE;
}

uint32_t fb_space_capacity(const fb_node *node)
{
    return node->options.sizes.spaces;
}

bool fb_space_exists(const fb_node *node, uint32_t space)
{
    return fb_space_at(node, space)->used && !fb_space_at(node, space)->left;
}

fb_id fb_space_id(const fb_node *node, uint32_t space)
{
    return fb_space_at(node, space)->id;
}

fb_span fb_space_name(const fb_node *node, uint32_t space)
{
    return fb_span_of(fb_space_at(node, space)->name, fb_space_at(node, space)->name_len);
}

uint32_t fb_space_local(const fb_node *node, uint32_t space)
{
    return fb_space_at(node, space)->local;
}

uint32_t fb_member_first(const fb_node *node, uint32_t space)
{
    uint32_t first = fb_space_at(node, space)->first;
    return first == 0 ? FB_NONE : first - 1;
}

uint32_t fb_member_next(const fb_node *node, uint32_t member)
{
    uint32_t next = fb_member_at(node, member)->next;
    return next == 0 ? FB_NONE : next - 1;
}

fb_id fb_member_id(const fb_node *node, uint32_t member)
{
    return fb_member_at(node, member)->id;
}

fb_b32 fb_member_key(const fb_node *node, uint32_t member)
{
    return fb_member_at(node, member)->key;
}

fb_member_status fb_member_status_of(const fb_node *node, uint32_t member)
{
    return fb_member_at(node, member)->status;
}

fb_role fb_member_role(const fb_node *node, uint32_t member)
{
    return fb_member_at(node, member)->role;
}

uint32_t fb_member_standing(const fb_node *node, uint32_t member)
{
    return FB_CLAIM_NUMBER(fb_standing_claim(node, member));
}

fb_member_status fb_space_own_status(const fb_node *node, uint32_t space)
{
    if (fb_space_at(node, space)->own != FB_NONE) return FB_MEMBER_APPROVED;
    uint32_t self = fb_member_find(node, space, node->self);
    bool revoked = self != FB_NONE && fb_member_at(node, self)->status == FB_MEMBER_REVOKED;
    return revoked ? FB_MEMBER_REVOKED : FB_MEMBER_PENDING;
}

fb_role fb_space_own_role(const fb_node *node, uint32_t space)
{
    uint32_t own = fb_space_at(node, space)->own;
    return own == FB_NONE ? FB_ROLE_NONE : fb_member_at(node, own)->role;
}

bool fb_space_is_creator(const fb_node *node, uint32_t space)
{
    return fb_b32_equal(fb_space_at(node, space)->creator, node->self_key);
}

bool fb_space_may_write(const fb_node *node, uint32_t space)
{
    fb_role role = fb_space_own_role(node, space);
    return MUTANT(READERS_WRITE, role == FB_ROLE_ADMIN || role == FB_ROLE_WRITER,
                  role != FB_ROLE_NONE);
}

/* MP-1-4, MP-1-5, FI-2-4 */
fb_member_status fb_space_judge_peer(const fb_node *node, uint32_t space, fb_id peer, fb_b32 key,
                                     uint32_t *member)
{
    *member = FB_NONE;
    uint32_t known = fb_member_find(node, space, peer);
    if (known == FB_NONE) return FB_MEMBER_PENDING;
    const fb_member *m = fb_member_at(node, known);
    if (!fb_b32_equal(m->key, key)) return FB_MEMBER_NONE;
    if (m->status == FB_MEMBER_REVOKED) return FB_MEMBER_REVOKED;
    fb_member_status own = fb_space_own_status(node, space);
    /* Who left opens links as long as others do not know it. */
    if (own == FB_MEMBER_REVOKED &&
        fb_standing_left(node, fb_member_find(node, space, node->self))) {
        own = FB_MEMBER_APPROVED;
    }
    if (m->status != FB_MEMBER_APPROVED || own != FB_MEMBER_APPROVED) return FB_MEMBER_PENDING;
    /* A link depends on the statement that opens it: held back like everything sent. */
    if (m->approved_w > fb_w_durable(node)) return FB_MEMBER_PENDING;
    *member = known;
    return FB_MEMBER_APPROVED;
}

bool fb_space_may_hold(const fb_node *node, uint32_t space, uint32_t member, fb_id area)
{
    (void)area;
    const fb_member *m = fb_member_at(node, member);
    return m->used && m->space == space && m->status == FB_MEMBER_APPROVED;
}
