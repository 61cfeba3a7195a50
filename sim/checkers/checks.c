/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/checkers/checks.h"

#include "protocol/base/assert.h"
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

/* Is it called for this event or moment? */
static bool wants(const fb_sim_check *check, uint32_t moment)
{
    switch (moment) {
    case FB_SIM_MOMENT_REPLY:
        return check->reply != NULL;
    case FB_SIM_MOMENT_WROTE:
        return check->wrote != NULL;
    case FB_SIM_MOMENT_OVER:
        return check->over != NULL;
    case FB_SIM_MOMENT_BACKUP:
        return check->backup != NULL;
    case FB_SIM_MOMENT_RESTORED:
        return check->restored != NULL;
    default:
        return (check->events >> moment & 1) != 0;
    }
}

static void *state_take(fb_sim_world *world, const fb_sim_check *check, fb_arena *arena)
{
    if (check->of_node_bytes != 0) {
        return fb_arena_take(arena, world->config.nodes, check->of_node_bytes);
    }
    if (check->of_end_bytes != 0) {
        size_t ends = (size_t)world->network.connection_count * 2;
        return fb_arena_take(arena, ends, check->of_end_bytes);
    }
    return fb_arena_take(arena, 1, check->state_bytes);
}

void fb_sim_checks_init(fb_sim_world *world, fb_arena *arena)
{
    struct fb_sim_checks *checks = fb_arena_take(arena, 1, sizeof *checks);
    uint32_t count = 0;
    while (fb_sim_check_list[count] != NULL) count++;
    FB_ASSERT(count <= FB_SIM_CHECKS_MAX);
    void **states = fb_arena_take(arena, count, sizeof *states);
    uint64_t *seen = fb_arena_take(arena, count, sizeof *seen);
    uint32_t wanted = 0, moments = 0;
    for (uint32_t i = 0; i < count; i++) {
        wanted += (uint32_t)__builtin_popcountll(fb_sim_check_list[i]->facts);
        for (uint32_t k = 0; k < FB_SIM_MOMENTS; k++) moments += wants(fb_sim_check_list[i], k);
    }
    uint8_t *places = fb_arena_take(arena, moments, sizeof *places);
    fb_sim_watch *watches = fb_arena_take(arena, wanted, sizeof *watches);
    fb_sim_told *told = fb_arena_take(arena, 1, sizeof *told);
    fb_sim_memo messages = {0};
    fb_sim_memo_init(&messages, arena, MESSAGES, FB_SIM_KNOWN_VALUES);
    bool real = arena->base != NULL;
    if (real) {
        world->checks = checks;
        checks->watches = watches;
        checks->places = places;
        checks->told = told;
        checks->messages = messages;
        checks->states = states;
        checks->seen = seen;
        checks->count = count;
    }
    for (uint32_t i = 0; i < count; i++) {
        const fb_sim_check *check = fb_sim_check_list[i];
        void *state = state_take(world, check, arena);
        if (check->layout != NULL) check->layout(world, state, arena);
        if (real) states[i] = state;
    }
    uint16_t place = 0;
    for (uint32_t k = 0; real && k < FB_SIM_MOMENTS; k++) {
        checks->moment_first[k] = place;
        for (uint32_t i = 0; i < count; i++) {
            if (wants(fb_sim_check_list[i], k)) places[place++] = (uint8_t)i;
        }
        checks->moment_first[k + 1] = place;
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

/* Each check that is called for it, in the order of the list. */
#define EACH(moment, member, ...)                                                                  \
    do {                                                                                           \
        const struct fb_sim_checks *checks = world->checks;                                        \
        if (!watching(world)) return;                                                              \
        for (uint16_t at = checks->moment_first[moment]; at < checks->moment_first[(moment) + 1];  \
             at++) {                                                                               \
            uint32_t i = checks->places[at];                                                       \
            checks->seen[i]++;                                                                     \
            fb_sim_check_list[i]->member(world, checks->states[i], __VA_ARGS__);                   \
        }                                                                                          \
    } while (0)

void fb_sim_checks_event(fb_sim_world *world, uint32_t node, const fb_event *event)
{
    if (event->kind >= FB_SIM_MOMENT_REPLY) return;
    EACH(event->kind, event, node, event);
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
    EACH(FB_SIM_MOMENT_REPLY, reply, node, reply);
}

void fb_sim_wrote(fb_sim_world *world, uint32_t node, uint64_t incarnation, uint64_t w)
{
    EACH(FB_SIM_MOMENT_WROTE, wrote, node, incarnation, w);
}

void fb_sim_incarnation_over(fb_sim_world *world, uint32_t node)
{
    fb_sim_director_over(world, node);
    EACH(FB_SIM_MOMENT_OVER, over, node);
}

void fb_sim_backed_up(fb_sim_world *world, uint32_t node)
{
    EACH(FB_SIM_MOMENT_BACKUP, backup, node);
}

void fb_sim_rolled_back(fb_sim_world *world, uint32_t node)
{
    world->nodes[node].replaced++;
    fb_sim_director_restored(world);
    EACH(FB_SIM_MOMENT_RESTORED, restored, node, false);
}

void fb_sim_forgot(fb_sim_world *world, uint32_t node)
{
    world->nodes[node].replaced++;
    fb_sim_director_restored(world);
    EACH(FB_SIM_MOMENT_RESTORED, restored, node, true);
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

void fb_sim_checks_seen(const fb_sim_world *world, uint64_t seen[FB_SIM_CHECKS_MAX])
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
