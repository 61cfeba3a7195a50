/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/checks.h"

#include "protocol/base/assert.h"
#include "protocol/base/word.h"
#include "sim/checkers/list.h"
#include "sim/workload/director.h"

#define DIRECTOR_FACTS                                                                             \
    (FB_SIM_FACT(FB_FACT_STARTED) | FB_SIM_FACT(FB_FACT_LINK_BOUND) |                              \
     FB_SIM_FACT(FB_FACT_LINK_ENDED) | FB_SIM_FACT(FB_FACT_MEMBER) | FB_SIM_FACT(FB_FACT_BATCH))

/* Facts about one message. */
#define MESSAGE_FACTS                                                                              \
    (FB_SIM_FACT(FB_FACT_SENT) | FB_SIM_FACT(FB_FACT_RESENT) | FB_SIM_FACT(FB_FACT_DELIVERED) |    \
     FB_SIM_FACT(FB_FACT_REFUSED) | FB_SIM_FACT(FB_FACT_DROPPED))

/* Messages that are remembered, at most: several windows of every link. */
#define MESSAGES (1u << 13)

void fb_sim_checks_init(fb_sim_world *world, fb_arena *arena)
{
    struct fb_sim_checks *checks = fb_arena_take(arena, 1, sizeof *checks);
    uint32_t count = 0;
    while (fb_sim_check_list[count] != NULL) count++;
    FB_ASSERT(count < 64);
    void **states = fb_arena_take(arena, count, sizeof *states);
    uint64_t *seen = fb_arena_take(arena, count, sizeof *seen);
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < count; i++) {
        wanted += (uint32_t)__builtin_popcountll(fb_sim_check_list[i]->facts);
    }
    fb_sim_watch *watches = fb_arena_take(arena, wanted, sizeof *watches);
    fb_sim_told *told = fb_arena_take(arena, 1, sizeof *told);
    fb_sim_memo messages = {0};
    fb_sim_memo_init(&messages, arena, MESSAGES, FB_SIM_KNOWN_VALUES);
    bool real = arena->base != NULL;
    if (real) {
        world->checks = checks;
        checks->watches = watches;
        checks->told = told;
        checks->messages = messages;
        checks->states = states;
        checks->seen = seen;
        checks->count = count;
    }
    for (uint32_t i = 0; i < count; i++) {
        const fb_sim_check *check = fb_sim_check_list[i];
        void *state = fb_arena_take(arena, 1, check->state_bytes);
        if (check->layout != NULL) check->layout(world, state, arena);
        if (!real) continue;
        states[i] = state;
        uint64_t bit = UINT64_C(1) << i;
        checks->with_reply |= check->reply != NULL ? bit : 0;
        checks->with_wrote |= check->wrote != NULL ? bit : 0;
        checks->with_over |= check->over != NULL ? bit : 0;
        checks->with_backup |= check->backup != NULL ? bit : 0;
        checks->with_restored |= check->restored != NULL ? bit : 0;
        for (uint32_t k = 0; k < 64; k++) {
            if ((check->events >> k & 1) != 0) checks->by_event[k] |= bit;
        }
    }
    uint16_t at = 0;
    for (uint32_t k = 0; real && k < 64; k++) {
        checks->fact_first[k] = at;
        for (uint32_t i = 0; i < count; i++) {
            const fb_sim_check *check = fb_sim_check_list[i];
            if ((check->facts >> k & 1) == 0) continue;
            watches[at++] = (fb_sim_watch){check->fact, states[i], &seen[i]};
        }
        checks->fact_first[k + 1] = at;
    }
}

/* A fast run does not watch: what checks would remember of one moment is of no use at the next. */
static bool watching(const fb_sim_world *world)
{
    return world->config.checks && !world->config.fast;
}

void fb_sim_checks_event(fb_sim_world *world, uint32_t node, const fb_event *event)
{
    if (!watching(world) || event->kind >= 64) return;
    for (uint64_t bits = world->checks->by_event[event->kind]; bits != 0; bits &= bits - 1) {
        uint32_t i = fb_word_lowest(bits);
        world->checks->seen[i]++;
        fb_sim_check_list[i]->event(world, world->checks->states[i], node, event);
    }
}

/* Takes a fact apart. */
static void tell(fb_sim_world *world, uint32_t node, const fb_effect *fact)
{
    fb_sim_told *told = world->checks->told;
    told->message = fb_sim_message_of(fact);
    const fb_sim_message *m = &told->message;
    told->end = fb_sim_link_end(world, fact->b);
    told->peer = fb_sim_node_of(world, m->peer);
    told->known = NULL;
    told->sent_ms = 0;
    if ((MESSAGE_FACTS >> fact->a & 1) == 0) return;
    fb_id self = world->nodes[node].id;
    bool comes = fact->a == FB_FACT_DELIVERED || fact->a == FB_FACT_REFUSED;
    told->key = fb_sim_message_key(m->id, comes ? m->peer : self, comes ? self : m->peer);
    if (fact->a == FB_FACT_REFUSED || fact->a == FB_FACT_DROPPED) return;
    told->known = fb_sim_memo_at(&world->checks->messages, told->key);
    if (fact->a == FB_FACT_DELIVERED) told->sent_ms = fb_sim_sent_ms(world, fact, told);
}

void fb_sim_checks_fact(fb_sim_world *world, uint32_t node, const fb_effect *fact)
{
    if (fact->a == FB_FACT_STARTED) world->nodes[node].running = true;
    if ((DIRECTOR_FACTS >> (fact->a & 63) & 1) != 0) fb_sim_director_fact(world, node, fact);
    if (!watching(world) || fact->a >= 64) return;
    struct fb_sim_checks *checks = world->checks;
    const fb_sim_watch *watch = &checks->watches[checks->fact_first[fact->a]];
    const fb_sim_watch *end = &checks->watches[checks->fact_first[fact->a + 1]];
    if (watch == end) return;
    if ((fb_sim_told_facts >> fact->a & 1) != 0) tell(world, node, fact);
    for (; watch < end; watch++) {
        ++*watch->seen;
        watch->fact(world, watch->state, node, fact);
        if (world->stop) return;
    }
}

#define EACH(member, ...)                                                                          \
    do {                                                                                           \
        if (!watching(world)) return;                                                              \
        for (uint64_t bits = world->checks->with_##member; bits != 0; bits &= bits - 1) {          \
            uint32_t i = fb_word_lowest(bits);                                                     \
            world->checks->seen[i]++;                                                              \
            fb_sim_check_list[i]->member(world, world->checks->states[i], __VA_ARGS__);            \
        }                                                                                          \
    } while (0)

void fb_sim_checks_history(fb_sim_world *world, uint32_t node, const fb_effect *fact)
{
    if (fact->a >= 64) return;
    if ((fb_sim_told_facts >> fact->a & 1) != 0) tell(world, node, fact);
    for (uint32_t i = 0; i < world->checks->count; i++) {
        const fb_sim_check *check = fb_sim_check_list[i];
        if (!check->histories || (check->facts >> fact->a & 1) == 0) continue;
        world->checks->seen[i]++;
        check->fact(world, world->checks->states[i], node, fact);
    }
}

void fb_sim_checks_reply(fb_sim_world *world, uint32_t node, const fb_effect *reply)
{
    EACH(reply, node, reply);
}

void fb_sim_wrote(fb_sim_world *world, uint32_t node, uint64_t incarnation, uint64_t w)
{
    EACH(wrote, node, incarnation, w);
}

void fb_sim_incarnation_over(fb_sim_world *world, uint32_t node)
{
    fb_sim_director_over(world, node);
    EACH(over, node);
}

void fb_sim_backed_up(fb_sim_world *world, uint32_t node)
{
    EACH(backup, node);
}

void fb_sim_rolled_back(fb_sim_world *world, uint32_t node)
{
    world->nodes[node].replaced++;
    fb_sim_director_restored(world);
    EACH(restored, node, false);
}

void fb_sim_forgot(fb_sim_world *world, uint32_t node)
{
    world->nodes[node].replaced++;
    fb_sim_director_restored(world);
    EACH(restored, node, true);
}

void fb_sim_cloned(fb_sim_world *world, uint32_t node, uint32_t of)
{
    for (uint32_t i = 0; watching(world) && i < world->checks->count; i++) {
        const fb_sim_check *check = fb_sim_check_list[i];
        void *state = world->checks->states[i];
        if (check->cloned != NULL) {
            check->cloned(world, state, node, of);
        } else if (check->restored != NULL) {
            check->restored(world, state, node, true);
        }
    }
}

void fb_sim_checks_round(fb_sim_world *world)
{
    if (!world->config.checks) return;
    for (uint32_t i = 0; i < world->checks->count; i++) {
        const fb_sim_check *check = fb_sim_check_list[i];
        if (check->round == NULL || (world->config.fast && !check->stands_alone)) continue;
        if (!world->stop) {
            world->checks->seen[i]++;
            check->round(world, world->checks->states[i]);
        }
    }
}

void fb_sim_checks_seen(const fb_sim_world *world, uint64_t seen[64])
{
    const struct fb_sim_checks *checks = world->checks;
    for (uint32_t i = 0; i < checks->count; i++) {
        const fb_sim_check *check = fb_sim_check_list[i];
        /* Those without code are the driver's and the director's own. */
        bool own = check->fact == NULL && check->event == NULL && check->reply == NULL &&
                   check->round == NULL;
        bool told = strncmp(check->id, "documents-", 10) == 0;
        if (!own || (told && strcmp(check->cost, "round") != 0)) {
            seen[i] = checks->seen[i];
        } else if (strcmp(check->cost, "once") == 0) {
            seen[i] = 1;
        } else {
            seen[i] = strcmp(check->cost, "round") == 0 ? world->director->round + 1 : world->steps;
        }
    }
}

void fb_sim_check_saw(fb_sim_world *world, const fb_sim_check *check)
{
    for (uint32_t i = 0; i < world->checks->count; i++) {
        if (fb_sim_check_list[i] == check) world->checks->seen[i]++;
    }
}

void *fb_sim_check_state(fb_sim_world *world, const fb_sim_check *check)
{
    for (uint32_t i = 0; i < world->checks->count; i++) {
        if (fb_sim_check_list[i] == check) return world->checks->states[i];
    }
    return NULL;
}
