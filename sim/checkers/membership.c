/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/assert.h"
#include "protocol/store/keys.h"
#include "sim/checkers/list.h"
#include "sim/checkers/standing.h"
#include "sim/workload/let_in.h"

/* What a node makes of the statements that it holds is a function of their set, whatever the order
 * they came in. So once all of a core hold the same, their stores call the space the same and hold
 * the same nodes for members, with the same rights; and the rights are those that follow from the
 * statements by another way (standing.c). And nobody takes a name of the space from who never was
 * an admin. */

#define ADMIN       1u
#define NAME_MAX    256u
#define MEMBERS_MAX 4096u

typedef struct state {
    fb_sim_memo admins; /* (node, space, member): held for an admin once */
    uint8_t *rows[2];   /* of a store: what counts of each member */
    fb_sim_standing *standing;
} state;

#define ROW_BYTES (16u + 32 + 2)

static void layout(fb_sim_world *world, void *own, fb_arena *arena)
{
    state local;
    state *s = own != NULL ? own : &local;
    fb_sim_memo_init(&s->admins, arena, fb_sim_pair_places(world), 1);
    for (int i = 0; i < 2; i++) s->rows[i] = fb_arena_take(arena, MEMBERS_MAX, ROW_BYTES);
    s->standing = fb_arena_take(arena, 1, fb_sim_standing_bytes());
}

static void fact(fb_sim_world *world, void *own, uint32_t node, const fb_effect *fx)
{
    state *s = own;
    if (fx->a == FB_FACT_MEMBER) {
        fb_sim_message m = fb_sim_message_of(fx);
        if (fx->c == ADMIN) {
            fb_sim_memo_put(&s->admins, fb_sim_pair_key(m.space, m.peer, node + 1), 1);
        }
        return;
    }
    /* The workload names it after who renames: "by 3 #17". */
    fb_span bytes = fb_sim_fact_bytes(fx);
    if (bytes.len < 19 || memcmp(bytes.p + 16, "by ", 3) != 0) return;
    uint32_t by = 0;
    for (size_t i = 19; i < bytes.len && bytes.p[i] >= '0' && bytes.p[i] <= '9'; i++) {
        by = by * 10 + (uint32_t)(bytes.p[i] - '0');
    }
    if (by >= world->config.nodes) return;
    uint64_t key = fb_sim_pair_key(world->spaces[0], world->nodes[by].home, node + 1);
    if (fb_sim_memo_find(&s->admins, key) != NULL) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_membership.id,
                    "%s calls the space as %s wants it, which is no admin", fb_sim_name(node),
                    fb_sim_name(by));
}

/* What one store says. */
typedef struct reading {
    const fb_sim_world *world;
    uint32_t local; /* number of the space in keys; 0: not there */
    uint8_t name[NAME_MAX];
    size_t name_len;
    uint8_t *rows;
    uint32_t count;
} reading;

static void take_space(void *user, fb_span key, fb_span value)
{
    reading *r = user;
    fb_reader k = fb_reader_of(key), v = fb_reader_of(value);
    fb_read_u8(&k);
    uint32_t local = fb_read_u32(&k);
    if (fb_read_u8(&k) != 0 || !fb_reader_done(&k)) return;
    fb_read_u8(&v);
    fb_id id = fb_read_id(&v);
    fb_read_b32(&v); /* creator */
    fb_read_b32(&v); /* recovery key */
    fb_read_u8(&v);
    fb_span name = fb_read_span16(&v);
    FB_ASSERT(!v.failed); /* or all of this says nothing */
    if (name.len > NAME_MAX || !fb_id_equal(id, r->world->spaces[0])) return;
    r->local = local;
    r->name_len = name.len;
    memcpy(r->name, name.p, name.len);
}

static void take_member(void *user, fb_span key, fb_span value)
{
    reading *r = user;
    fb_reader k = fb_reader_of(key), v = fb_reader_of(value);
    fb_read_u8(&k);
    if (fb_read_u32(&k) != r->local || r->count == MEMBERS_MAX) return;
    fb_id id = fb_read_id(&k);
    fb_read_u8(&v);
    uint8_t *row = r->rows + (size_t)r->count++ * ROW_BYTES;
    memcpy(row, id.b, 16);
    fb_read_into(&v, row + 16, 34); /* key, status, role */
}

static void read_store(const fb_sim_world *world, uint32_t node, uint8_t *rows, reading *r)
{
    static const uint8_t spaces = FB_TAG_SPACE, members = FB_TAG_MEMBER;
    *r = (reading){.world = world, .rows = rows};
    const fb_sim_store *store = &world->nodes[node].store;
    fb_sim_store_walk(store, fb_span_of(&spaces, 1), take_space, r);
    if (r->local != 0) fb_sim_store_walk(store, fb_span_of(&members, 1), take_member, r);
}

static void compare(fb_sim_world *world, const reading *a, const reading *b, uint32_t first,
                    uint32_t node)
{
    const char *what = NULL;
    if (a->name_len != b->name_len || memcmp(a->name, b->name, a->name_len) != 0) {
        what = "call the space otherwise";
    } else if (a->count != b->count ||
               memcmp(a->rows, b->rows, (size_t)a->count * ROW_BYTES) != 0) {
        what = "hold other nodes for members, or with other rights";
    }
    if (what == NULL) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_membership.id,
                    "%s and %s have the same statements and %s", fb_sim_name(first),
                    fb_sim_name(node), what);
}

/* The rows of a store follow from its statements. */
static void judge(fb_sim_world *world, state *s, const reading *r, uint32_t node)
{
    fb_id creator = world->nodes[fb_sim_creator(world, 0)].home;
    if (!fb_sim_standing_read(s->standing, &world->nodes[node].store, r->local, world->spaces[0],
                              creator)) {
        return;
    }
    if (fb_sim_standing_turn(s->standing) >= FB_SIM_TURN_FORGED) {
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_membership.id,
                        "%s takes for the recovery key's what it never signed", fb_sim_name(node));
        return;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        const uint8_t *row = r->rows + (size_t)i * ROW_BYTES;
        fb_id member;
        memcpy(member.b, row, 16);
        bool known;
        uint8_t role = fb_sim_standing_role(s->standing, member, &known);
        if ((!known && !fb_id_equal(member, creator)) || row[16 + 32 + 1] == role) continue;
        uint32_t of = fb_sim_node_of(world, member);
        fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_membership.id,
                        "%s holds %s for a member with role %u, its statements come to %u",
                        fb_sim_name(node), of == UINT32_MAX ? "somebody" : fb_sim_name(of),
                        row[16 + 32 + 1], role);
        return;
    }
}

static void round_end(fb_sim_world *world, void *own)
{
    state *s = own;
    reading first, other;
    uint32_t at = UINT32_MAX;
    for (uint32_t i = 0; i < world->config.nodes && !world->stop; i++) {
        if (world->held_apart[i]) continue;
        if (at == UINT32_MAX) {
            read_store(world, i, s->rows[0], &first);
            if (first.local == 0) continue;
            at = i;
            judge(world, s, &first, i);
            continue;
        }
        read_store(world, i, s->rows[1], &other);
        if (other.local == 0) continue;
        judge(world, s, &other, i);
        if (!world->stop) compare(world, &first, &other, at, i);
    }
}

const fb_sim_check fb_sim_check_membership = {
    .id = "membership",
    .musts = "DESIGN 3.1, DESIGN 3.2",
    .cost = "round",
    .text = "who holds the same statements calls the space the same, and the same nodes members",
    .state_bytes = sizeof(state),
    .layout = layout,
    .facts = FB_SIM_FACT(FB_FACT_MEMBER) | FB_SIM_FACT(FB_FACT_NAMED),
    .fact = fact,
    .round = round_end,
};
