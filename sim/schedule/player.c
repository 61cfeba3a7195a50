/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/schedule/player.h"

#include "sim/schedule/schedule.h"
#include "sim/workload/director.h"

#define NONE     UINT32_MAX
#define AGAIN_NS UINT64_C(50000000)

static void series_expand(const fb_sim_plan *schedule, fb_sim_line *alone, uint32_t *places)
{
    for (uint32_t i = 0; i < schedule->line_count; i++) {
        for (uint32_t k = 0; k <= schedule->lines[i].more; k++) {
            *places++ = i;
            *alone++ = fb_sim_line_nth(&schedule->lines[i], k);
        }
    }
}

void fb_sim_player_init(fb_sim_world *world, fb_arena *arena)
{
    const fb_sim_plan *schedule = world->config.schedule;
    if (schedule == NULL) return;
    fb_sim_player *player = fb_arena_take(arena, 1, sizeof *player);
    uint32_t count = (uint32_t)fb_sim_plan_lines_alone(schedule), lines = count + 1;
    bool series = count != schedule->line_count;
    fb_sim_line *alone = fb_arena_take(arena, series ? count : 0, sizeof *alone);
    uint32_t *places = fb_arena_take(arena, series ? count : 0, sizeof *places);
    uint32_t nodes = world->config.nodes;
    fb_sim_line_state *states = fb_arena_take(arena, lines, sizeof *states);
    uint32_t *order = fb_arena_take(arena, lines, sizeof *order);
    uint32_t *heads = fb_arena_take(arena, (size_t)nodes * FB_SIM_CLIENTS, sizeof *heads);
    uint64_t *lives = fb_arena_take(arena, nodes, sizeof *lives);
    if (arena->base == NULL) return;
    world->player = player;
    if (series) series_expand(schedule, alone, places);
    player->schedule = schedule;
    player->alone = series ? alone : schedule->lines;
    player->places = series ? places : NULL;
    player->count = count;
    player->lines = states;
    player->order = order;
    player->heads = heads;
    player->first_life = lives;
}

/* Rounds. */

uint64_t fb_sim_player_round(fb_sim_world *world)
{
    fb_sim_player *player = world->player;
    const fb_sim_plan *schedule = player->schedule;
    uint32_t place = player->round++;
    player->line = player->line_end;
    player->addressed = false;
    while (player->line_end < player->count && player->alone[player->line_end].round == place) {
        fb_sim_line_kind kind = player->alone[player->line_end].kind;
        player->addressed =
            player->addressed || kind == FB_SIM_LINE_MESSAGE || kind == FB_SIM_LINE_CRASH;
        player->line_end++;
    }
    player->start_ns = world->now_ns;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        player->first_life[i] = world->nodes[i].incarnations;
    }
    return schedule->rounds[place].number;
}

uint64_t fb_sim_player_length_ns(const fb_sim_world *world)
{
    return world->player->schedule->rounds[world->player->round - 1].length_ns;
}

void fb_sim_player_core(fb_sim_world *world)
{
    uint64_t core = world->player->schedule->rounds[world->player->round - 1].core;
    bool all = core == 0 || world->director->outs;
    for (uint32_t i = 0; i < world->config.nodes; i++) all = all || world->nodes[i].forgot;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        world->held_apart[i] = !all && (core >> (i % 64) & 1) == 0;
    }
    world->player->addressed = false;
}

uint64_t fb_sim_player_quiet_ns(const fb_sim_world *world)
{
    const fb_sim_plan *schedule = world->player->schedule;
    return world->player->round == 0 ? schedule->setup_ns : schedule->settle_ns;
}

bool fb_sim_player_is_over(const fb_sim_world *world)
{
    return world->player->round == world->player->schedule->round_count;
}

/* Windows that begin or end at one moment do so in the order in which the swarm draws them,
 * wherever they stand in the text. */
static bool window_before(const fb_sim_line *a, const fb_sim_line *b)
{
    return a->fault != b->fault ? a->fault < b->fault : a->key < b->key;
}

void fb_sim_player_weather(fb_sim_world *world, uint64_t start_ns)
{
    const fb_sim_player *player = world->player;
    const fb_sim_line *windows[FB_SIM_WINDOWS_MAX];
    uint32_t count = 0;
    /* The parser lets no round have more windows than the weather can hold. */
    for (uint32_t i = player->line; i < player->line_end && count < FB_SIM_WINDOWS_MAX; i++) {
        const fb_sim_line *line = &player->alone[i];
        if (line->kind != FB_SIM_LINE_WINDOW) continue;
        uint32_t at = count++;
        for (; at > 0 && window_before(line, windows[at - 1]); at--) windows[at] = windows[at - 1];
        windows[at] = line;
    }
    for (uint32_t i = 0; i < count; i++) {
        const fb_sim_line *line = windows[i];
        fb_sim_window window = {
            .fault = (uint8_t)line->fault,
            .a = line->a,
            .b = line->b,
            .key = line->key,
            .start_ns = start_ns + line->at_ns,
            /* One that is longer than its round ends when everything is healed, as it did when it
             * was drawn. */
            .end_ns = fb_add_sat_u64(start_ns, line->until_ns),
            .p = line->p,
            .q = line->q,
            .mask = line->mask,
        };
        fb_sim_weather_add(world, &window);
    }
}

/* Clients. */

static bool earlier(const fb_sim_line *lines, uint32_t left, uint32_t right)
{
    uint64_t a = lines[left].at_ns, b = lines[right].at_ns;
    return a != b ? a < b : left < right;
}

/* Operations of the round by time, those of one time in the order of the text: a heap, then its
 * sorted order from the back. */
static uint32_t operations_order(fb_sim_player *player)
{
    const fb_sim_line *lines = player->alone;
    uint32_t *heap = player->order;
    uint32_t count = 0;
    for (uint32_t i = player->line; i < player->line_end; i++) {
        if (lines[i].kind != FB_SIM_LINE_OP) continue;
        uint32_t at = count++;
        for (; at > 0 && earlier(lines, heap[(at - 1) / 2], i); at = (at - 1) / 2) {
            heap[at] = heap[(at - 1) / 2];
        }
        heap[at] = i;
    }
    for (uint32_t left = count; left > 1; left--) {
        uint32_t latest = heap[0], moved = heap[left - 1], at = 0;
        for (uint32_t child = 1; child < left - 1; child = 2 * at + 1) {
            if (child + 1 < left - 1 && earlier(lines, heap[child], heap[child + 1])) child++;
            if (!earlier(lines, moved, heap[child])) break;
            heap[at] = heap[child];
            at = child;
        }
        heap[at] = moved;
        heap[left - 1] = latest;
    }
    return count;
}

void fb_sim_player_work_start(fb_sim_world *world)
{
    fb_sim_player *player = world->player;
    uint32_t clients = world->config.nodes * FB_SIM_CLIENTS;
    for (uint32_t i = 0; i < clients; i++) player->heads[i] = NONE;
    for (uint32_t left = operations_order(player); left-- > 0;) {
        uint32_t place = player->order[left];
        const fb_sim_line *line = &player->alone[place];
        uint32_t *head = &player->heads[line->a * FB_SIM_CLIENTS + line->client];
        player->lines[place].next = *head;
        *head = place;
    }
    for (uint32_t node = 0; node < world->config.nodes; node++) {
        for (uint32_t i = 0; i < FB_SIM_CLIENTS; i++) {
            if (world->workload->clients[node * FB_SIM_CLIENTS + i].request == 0) {
                fb_sim_player_work_later(world, node, i);
            }
        }
    }
}

void fb_sim_player_work_later(fb_sim_world *world, uint32_t node, uint32_t client)
{
    const fb_sim_player *player = world->player;
    uint32_t place = player->heads[node * FB_SIM_CLIENTS + client];
    if (place == NONE) return;
    uint64_t at = player->start_ns + player->alone[place].at_ns;
    fb_sim_schedule(world, fb_max_u64(at, world->now_ns + 1000), node, FB_SIM_AT_WORK, client,
                    place);
}

void fb_sim_player_work(fb_sim_world *world, uint32_t index, uint32_t client, uint32_t stamp)
{
    fb_sim_player *player = world->player;
    uint32_t *head = &player->heads[index * FB_SIM_CLIENTS + client];
    const fb_sim_client *c = &world->workload->clients[index * FB_SIM_CLIENTS + client];
    if (!world->workload->active || *head != stamp || c->request != 0) return;
    const fb_sim_line *line = &player->alone[stamp];
    if (world->now_ns > player->start_ns + line->at_ns + line->within_ns) {
        player->lines[stamp].missed++;
        *head = player->lines[stamp].next;
        fb_sim_player_work_later(world, index, client);
        return;
    }
    if (!fb_sim_work_possible(world, index)) {
        fb_sim_schedule(world, world->now_ns + AGAIN_NS, index, FB_SIM_AT_WORK, client, stamp);
        return;
    }
    /* Of two at one moment the first one in the text goes first, once. */
    for (uint32_t other = 0; other < FB_SIM_CLIENTS; other++) {
        uint32_t place = player->heads[index * FB_SIM_CLIENTS + other];
        bool due = place < stamp && player->alone[place].at_ns == line->at_ns &&
                   world->workload->clients[index * FB_SIM_CLIENTS + other].request == 0;
        if (!due || player->lines[stamp].missed != 0) continue;
        player->lines[stamp].missed = 1;
        fb_sim_schedule(world, world->now_ns, index, FB_SIM_AT_WORK, client, stamp);
        return;
    }
    *head = player->lines[stamp].next;
    player->lines[stamp].missed = 0;
    player->lines[stamp].fired++;
    fb_sim_work_ask(world, index, client, &line->op);
}

/* Messages and effects. */

static uint32_t life_of(const fb_sim_world *world, uint32_t node)
{
    return (uint32_t)(world->nodes[node].incarnations - world->player->first_life[node]) + 1;
}

fb_sim_wanted fb_sim_player_wanted(fb_sim_world *world, uint32_t from, uint32_t to, bool carrier,
                                   fb_span bytes)
{
    fb_sim_player *player = world->player;
    fb_sim_wanted wanted = {0};
    if (!player->addressed) return wanted;
    uint32_t counts[FB_SIM_MESSAGE_KINDS] = {0};
    bool known = false;
    for (uint32_t i = player->line; i < player->line_end; i++) {
        const fb_sim_line *line = &player->alone[i];
        if (line->kind != FB_SIM_LINE_MESSAGE || line->a != from || line->b != to) continue;
        if (line->life != 0 && line->life != life_of(world, from)) continue;
        if (!known) {
            known = true;
            if (carrier) {
                counts[FB_SIM_MESSAGE_ANY] = 1;
                fb_sim_message_kind kind = fb_sim_message_in_frame(bytes);
                if (kind != FB_SIM_MESSAGE_ANY) counts[kind] = 1;
            } else if (!fb_sim_message_in_stream(bytes, counts)) {
                memset(counts, 0, sizeof counts);
                counts[FB_SIM_MESSAGE_ANY] = counts[FB_SIM_MESSAGE_HANDSHAKE] = 1;
            }
        }
        fb_sim_line_state *state = &player->lines[i];
        uint32_t before = state->seen;
        state->seen += counts[line->what];
        if (line->act == FB_SIM_MESSAGE_DUP && !carrier) continue; /* nothing repeats on a stream */
        if (wanted.acts == 0 && before < line->nth && line->nth <= state->seen) {
            state->fired++;
            wanted = (fb_sim_wanted){1u << line->act, line->span_ns};
        }
    }
    return wanted;
}

bool fb_sim_player_crashes(fb_sim_world *world, uint32_t node, uint32_t effect_kind,
                           uint64_t *restart_ns)
{
    fb_sim_player *player = world->player;
    if (!player->addressed) return false;
    bool crashes = false;
    for (uint32_t i = player->line; i < player->line_end; i++) {
        const fb_sim_line *line = &player->alone[i];
        if (line->kind != FB_SIM_LINE_CRASH || line->a != node) continue;
        if (line->what != 0 && line->what != effect_kind) continue;
        if (line->life != 0 && line->life != life_of(world, node)) continue;
        fb_sim_line_state *state = &player->lines[i];
        if (++state->seen != line->nth) continue;
        state->fired++;
        crashes = true;
        *restart_ns = line->span_ns;
    }
    return crashes;
}

uint32_t fb_sim_player_unreached(const fb_sim_world *world, uint32_t *first)
{
    const fb_sim_player *player = world->player;
    bool failed = world->result != FB_SIM_PASS;
    uint32_t count = 0;
    for (uint32_t i = 0; i < player->count; i++) {
        const fb_sim_line *line = &player->alone[i];
        bool addressed = line->kind == FB_SIM_LINE_MESSAGE || line->kind == FB_SIM_LINE_CRASH;
        bool reached = player->lines[i].fired != 0;
        if (line->kind == FB_SIM_LINE_WINDOW) {
            /* Every round that began saw its windows, up to the end of the run. */
            reached = line->round + 1 < player->round ||
                      (line->round + 1 == player->round &&
                       line->at_ns <= world->now_ns - player->start_ns);
        }
        /* A run that failed as it should owes nothing that has a time. */
        if (reached || (failed && !addressed)) continue;
        if (count++ == 0 && first != NULL) *first = player->places == NULL ? i : player->places[i];
    }
    return count;
}
