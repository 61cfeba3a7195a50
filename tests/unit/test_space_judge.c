/* SPDX-License-Identifier: Apache-2.0 */
/* What stands, and so who may do what, is a function of the set of statements: the merge law of the
 * space plane. Random sets of what four admins state about each other, each in many orders of
 * arrival; and the same worked out in another way, from paths of grants instead of term by term. */
#include "protocol/base/hex.h"
#include "protocol/space/table.h"
#include "tests/unit/space_stand_in.h"

#define NODES  5u
#define MOST   8u
#define SETS   120u
#define ORDERS 10u

/* A stated thing, as drawn. Stamps are dots, sequences and batches as well: all of one life. */
typedef struct stated {
    uint32_t author, subject, claim, number, cut;
    int64_t stamp;
    fb_role role;
    bool renames;
    uint32_t turn; /* of the recovery key, whoever states it; 0: another statement */
} stated;

typedef struct outcome {
    fb_member_status status[NODES];
    fb_role role[NODES];
    char name[16];
    fb_status data[NODES][2][3];
} outcome;

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % below;
}

/* Admissions first (in most sets), by the creator or by who it admitted; then anything. */
static uint32_t draw_set(stated *set)
{
    uint32_t count = MOST - draw(3), known = 2 + draw(2);
    for (uint32_t i = 0; i < count; i++) {
        stated *s = &set[i];
        *s = (stated){.stamp = 10 + (int64_t)i * 10 + draw(9), .claim = 1};
        if (i < known) {
            *s = (stated){.author = draw(3) == 0 ? draw(i + 1) : 0,
                          .subject = i + 1,
                          .claim = 1,
                          .number = 1,
                          .stamp = s->stamp,
                          .role = FB_ROLE_ADMIN};
            continue;
        }
        s->author = draw(known + 1);
        s->subject = 1 + draw(known + (draw(4) == 0));
        s->claim = draw(6) == 0 ? 3 : 1;
        s->cut = draw(3) != 0 ? 0 : 10 + draw(80);
        s->renames = draw(6) == 0;
        if (draw(10) == 0) {
            s->renames = false;
            s->turn = 1 + draw(3);
            s->subject = draw(known + 1);
            s->number = 3;
            s->role = FB_ROLE_ADMIN;
            continue;
        }
        uint32_t kind = draw(5);
        if (kind < 3) {
            s->number = draw(4) == 0 ? 4 : 2;
            s->role =
                (fb_role)(const uint8_t[]){FB_ROLE_NONE, FB_ROLE_WRITER, FB_ROLE_READER}[kind];
            if (draw(8) == 0) s->subject = s->author == 0 ? 1 : s->author; /* leaves */
        } else {
            s->number = draw(2) == 0 ? 1 : 3;
            s->role = draw(2) == 0 ? FB_ROLE_ADMIN : FB_ROLE_WRITER;
        }
    }
    /* The order of stamps is none that anything arrives in. */
    for (uint32_t i = count; i-- > 1;) {
        uint32_t j = draw(i + 1);
        int64_t stamp = set[i].stamp;
        if (draw(3) == 0) {
            set[i].stamp = set[j].stamp;
            set[j].stamp = stamp;
        }
    }
    return count;
}

static fb_span encode(test_net *net, fb_id space, const stated *s, uint8_t *out)
{
    statement_claim = FB_CLAIM(s->claim, 0);
    char text[160];
    if (s->turn != 0) {
        snprintf(text, sizeof text, "%u%u", (unsigned)s->number, (unsigned)s->turn);
        return statement(net, space, s->author, FB_STATEMENT_RECOVERY, key_at(net, s->subject),
                         FB_ROLE_NONE, text, s->stamp, out);
    }
    if (s->renames) {
        snprintf(text, sizeof text, "name %u", (unsigned)s->stamp);
        return statement(net, space, s->author, FB_STATEMENT_NAME, key_at(net, 0), FB_ROLE_NONE,
                         text, s->stamp, out);
    }
    if (s->number == 1) {
        return statement(net, space, s->author, FB_STATEMENT_MEMBER, key_at(net, s->subject),
                         s->role, "", s->stamp, out);
    }
    int n = snprintf(text, sizeof text, "%u", (unsigned)s->number);
    if (s->number % 2 == 0 && s->cut != 0) {
        fb_id area = fb_area_id(space, FB_AREA_SPACE, (fb_span){NULL, 0});
        char hex[33];
        fb_hex_format(area.b, sizeof area.b, hex);
        snprintf(text + n, sizeof text - (size_t)n, "%.32s0001%016x%016x%032x", hex, 1u, s->cut, 0);
    }
    return statement(net, space, s->author, FB_STATEMENT_STANDING, key_at(net, s->subject), s->role,
                     text, s->stamp, out);
}

static void look(test_net *net, outcome *out)
{
    memset(out, 0, sizeof *out);
    const fb_node *node = test_net_node(net, 0);
    fb_span name = fb_space_name(node, 0);
    memcpy(out->name, name.p, name.len);
    for (uint32_t i = 0; i < NODES; i++) {
        out->status[i] = status_of(net, 0, i);
        out->role[i] = role_of(net, 0, i);
        for (uint32_t k = 0; k < 6; k++) {
            const fb_signed batch = {.author = key_at(net, i),
                                     .signer = id_at(net, i),
                                     .claim = FB_CLAIM(k < 3 ? 1 : 3, 0),
                                     .incarnation = 1,
                                     .number = 1 + k % 3 * 30};
            out->data[i][k / 3][k % 3] = fb_space_check_author(node, 0, &batch);
        }
    }
}

/* Delivers all that is ever taken: what is refused now may be taken when others came. */
static void deliver(test_net *net, fb_id space, const stated *set, uint32_t count,
                    const uint32_t *order, bool *taken)
{
    memset(taken, 0, MOST * sizeof *taken);
    for (bool any = true; any;) {
        any = false;
        for (uint32_t n = 0; n < count; n++) {
            if (taken[order[n]]) continue;
            uint8_t bytes[2048];
            taken[order[n]] = apply(net, 0, encode(net, space, &set[order[n]], bytes)) == FB_OK;
            any |= taken[order[n]];
        }
    }
    test_net_settle(net);
}

/* The other way: everything stands at first; with what stands, each term has its best path of
 * grants from the creator, or from the recovery key, whose first grant counts for none and comes
 * before the creator, the last turn first (the shorter path, then the one whose first other stamp
 * is less); with the paths, what stands is worked out anew, until nothing changes. */

typedef struct path {
    uint32_t len;            /* 0: none; else one more than the grants */
    int64_t stamp[MOST + 2]; /* where it begins: 0 the creator; then of each grant */
} path;

/* Nodes in the order of their ids. */
static uint32_t place_of[NODES];

static int compare_paths(const path *a, const path *b)
{
    if (a->len == 0 || b->len == 0) return a->len == b->len ? 0 : a->len == 0 ? 1 : -1;
    if (a->len != b->len) return a->len < b->len ? -1 : 1;
    for (uint32_t i = 0; i < a->len; i++) {
        if (a->stamp[i] != b->stamp[i]) return a->stamp[i] < b->stamp[i] ? -1 : 1;
    }
    return 0;
}

static void find_paths(const stated *set, const bool *stands, uint32_t count, path of[NODES][5])
{
    memset(of, 0, NODES * sizeof of[0]);
    of[0][1].len = 1;
    for (uint32_t i = 0; i < count; i++) {
        const stated *s = &set[i];
        if (!stands[i] || s->turn == 0) continue;
        path first = {.len = 1};
        first.stamp[0] = (int64_t)place_of[s->subject] - 100 * (int64_t)s->turn;
        path *now = &of[s->subject][s->number];
        if (now->len == 0 || compare_paths(&first, now) < 0) *now = first;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 0; i < count; i++) {
            const stated *s = &set[i];
            path longer = of[s->author][s->claim];
            if (!stands[i] || s->turn != 0 || s->renames || s->number % 2 == 0 ||
                s->role != FB_ROLE_ADMIN || longer.len == 0 || longer.len > MOST) {
                continue;
            }
            longer.stamp[longer.len++] = s->stamp;
            path *now = &of[s->subject][s->number];
            if (now->len != 0 && compare_paths(&longer, now) >= 0) continue;
            *now = longer;
            changed = true;
        }
    }
}

static bool counts_first(const stated *set, path of[NODES][5], uint32_t a, uint32_t b)
{
    int order = compare_paths(&of[set[a].author][set[a].claim], &of[set[b].author][set[b].claim]);
    return order != 0 ? order < 0 : set[a].stamp > set[b].stamp;
}

static bool is_taking_of(const stated *s, uint32_t subject, uint32_t number)
{
    return !s->renames && s->subject == subject && s->number == number;
}

static bool stands_with(const stated *set, const bool *stands, uint32_t count, path of[NODES][5],
                        uint32_t which)
{
    const stated *s = &set[which];
    if (s->turn != 0) return true;
    const path *own = &of[s->author][s->claim];
    bool leaves =
        !s->renames && s->author == s->subject && s->number % 2 == 0 && s->role == FB_ROLE_NONE;
    if (own->len == 0 && !leaves) return false;
    for (uint32_t number = 2; number <= 4; number += 2) {
        uint32_t best = MOST;
        for (uint32_t i = 0; i < count; i++) {
            if (!stands[i] || !is_taking_of(&set[i], s->author, number)) continue;
            if (best == MOST || counts_first(set, of, i, best)) best = i;
        }
        if (best == MOST || number < s->claim || set[best].author == s->author) continue;
        if (compare_paths(&of[set[best].author][set[best].claim], own) >= 0) continue;
        if (s->stamp > set[best].cut) return false;
    }
    return true;
}

/* How many do not stand. */
static uint32_t expect(const stated *set, const bool *taken, uint32_t count, const outcome *got)
{
    bool stands[MOST];
    uint32_t fallen = 0;
    path of[NODES][5];
    memcpy(stands, taken, sizeof stands);
    for (uint32_t round = 0; round < 2 * MOST; round++) {
        bool next[MOST] = {false};
        find_paths(set, stands, count, of);
        for (uint32_t i = 0; i < count; i++) {
            next[i] = taken[i] && stands_with(set, stands, count, of, i);
        }
        memcpy(stands, next, sizeof stands);
    }
    for (uint32_t m = 1; m < NODES; m++) {
        uint32_t best = MOST;
        for (uint32_t i = 0; i < count; i++) {
            if (!stands[i] || set[i].renames || set[i].subject != m) continue;
            if (best == MOST || set[i].number > set[best].number) {
                best = i;
            } else if (set[i].number == set[best].number) {
                bool first = set[i].number % 2 == 0 ? counts_first(set, of, i, best)
                                                    : set[i].role < set[best].role;
                if (first) best = i;
            }
        }
        assert_int_equal(got->role[m], best == MOST ? FB_ROLE_NONE : set[best].role);
    }
    int64_t named = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (stands[i] && set[i].renames && set[i].stamp > named) named = set[i].stamp;
    }
    char name[16] = "home";
    if (named != 0) snprintf(name, sizeof name, "name %u", (unsigned)named);
    assert_string_equal(got->name, name);
    for (uint32_t i = 0; i < count; i++) fallen += taken[i] && !stands[i];
    return fallen;
}

static void tell(const stated *set, uint32_t count, const bool *taken)
{
    for (uint32_t i = 0; i < count; i++) {
        const stated *s = &set[i];
        print_message("%s %u as %u at %u: %s %u number %u role %u cut %u\n",
                      taken[i] ? "      " : "refused", s->author, s->claim, (unsigned)s->stamp,
                      s->renames ? "name" : "about", s->subject, s->number, s->role, s->cut);
    }
}

static void every_order_comes_to_the_same(void **state)
{
    (void)state;
    uint32_t fallen = 0, all = 0, recoveries = 0;
    for (uint32_t n = 0; n < SETS; n++) {
        seed = UINT64_C(0x5eed) + n * UINT64_C(1000003);
        stated set[MOST];
        uint32_t count = draw_set(set);
        outcome first;
        bool taken_first[MOST];
        for (uint32_t k = 0; k < ORDERS; k++) {
            uint32_t order[MOST];
            for (uint32_t i = 0; i < count; i++) order[i] = k == 1 ? count - 1 - i : i;
            for (uint32_t i = count; k > 1 && i-- > 1;) {
                uint32_t j = draw(i + 1), t = order[i];
                order[i] = order[j];
                order[j] = t;
            }
            forget_all();
            test_net *net = test_net_new(NODES, NULL);
            fb_id space = create(net, 0, "home");
            uint8_t secret[64];
            fb_space_at(test_net_node(net, 0), 0)->recovery = recovery_key(secret);
            for (uint32_t i = 0; i < NODES; i++) {
                place_of[i] = 0;
                for (uint32_t j = 0; j < NODES; j++) {
                    place_of[i] += fb_id_compare(id_at(net, j), id_at(net, i)) < 0;
                }
            }
            bool taken[MOST];
            outcome got;
            deliver(net, space, set, count, order, taken);
            look(net, &got);
            if (k == 0) {
                first = got;
                memcpy(taken_first, taken, sizeof taken);
                fallen += expect(set, taken, count, &got);
                for (uint32_t i = 0; i < count; i++) {
                    all += taken[i];
                    recoveries += taken[i] && set[i].turn != 0;
                }
                test_net_restart(net, 0);
                test_net_settle(net);
                look(net, &got);
            }
            if (memcmp(&first, &got, sizeof got) != 0 ||
                memcmp(taken_first, taken, count * sizeof taken[0]) != 0) {
                tell(set, count, taken);
                fail_msg("set %u: order %u comes to another end", n, k);
            }
            test_net_free(net);
        }
    }
    /* Neither do all stand, nor few, nor are few taken. */
    assert_in_range(all, 4 * SETS, MOST * SETS);
    assert_in_range(fallen, all / 12, all / 2);
    assert_in_range(recoveries, SETS / 4, SETS);
    statement_claim = FB_CLAIM_FIRST;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_comes_to_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
