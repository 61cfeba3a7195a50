/* SPDX-License-Identifier: Apache-2.0 */
/* Plays a schedule: where the swarm would draw, the director, the weather, the clients, the network
 * and the processes ask here. */
#ifndef FB_SIM_SCHEDULE_PLAYER_H
#define FB_SIM_SCHEDULE_PLAYER_H

#include "protocol/base/alloc.h"
#include "protocol/core/effect.h"
#include "sim/schedule/message.h"

typedef struct fb_sim_world fb_sim_world;
struct fb_sim_plan;
struct fb_sim_line;

/* Of one line: how often it happened. */
typedef struct fb_sim_line_state {
    uint32_t fired;
    uint32_t missed; /* an operation that could not be asked in time */
    uint32_t next;   /* of the same client and round; UINT32_MAX at the end */
    uint32_t seen;   /* occurrences counted so far, of a message or an effect */
} fb_sim_line_state;

typedef struct fb_sim_player {
    const struct fb_sim_plan *schedule;
    const struct fb_sim_line *alone; /* its lines, each operation of a series by itself */
    const uint32_t *places;          /* of these in the schedule; NULL: it has no series */
    uint32_t count;                  /* of these */
    fb_sim_line_state *lines;
    uint32_t *heads;      /* by client: its next operation */
    uint64_t *first_life; /* by node: incarnations at the beginning of the round */
    uint32_t *order;      /* scratch: operations of a round in time */
    uint32_t round;       /* place of the next round in the schedule */
    uint32_t line;        /* of its first line */
    uint32_t line_end;    /* of the running round, behind its last line */
    uint64_t start_ns;    /* of the running round */
    bool addressed;       /* the running round has lines about messages or effects */
} fb_sim_player;

void fb_sim_player_init(fb_sim_world *world, fb_arena *arena);

/* The director: a round begins; its number, its length, who is healed at its end. */
uint64_t fb_sim_player_round(fb_sim_world *world);
uint64_t fb_sim_player_length_ns(const fb_sim_world *world);
void fb_sim_player_core(fb_sim_world *world);
uint64_t fb_sim_player_quiet_ns(const fb_sim_world *world);
/* No round is left. */
bool fb_sim_player_is_over(const fb_sim_world *world);

/* The weather: windows of the round. */
void fb_sim_player_weather(fb_sim_world *world, uint64_t start_ns);

/* Clients: a client is free, or its operation is due. */
void fb_sim_player_work_start(fb_sim_world *world);
void fb_sim_player_work_later(fb_sim_world *world, uint32_t node, uint32_t client);
void fb_sim_player_work(fb_sim_world *world, uint32_t node, uint32_t client, uint32_t stamp);

/* What is to happen to a send on a stream or a frame of a carrier. At most one line acts on it. */
typedef struct fb_sim_wanted {
    uint32_t acts; /* bit set of fb_sim_message_act */
    uint64_t delay_ns;
} fb_sim_wanted;

fb_sim_wanted fb_sim_player_wanted(fb_sim_world *world, uint32_t from, uint32_t to, bool carrier,
                                   fb_span bytes);

static inline bool fb_sim_wants(const fb_sim_wanted *what, fb_sim_message_act act)
{
    return (what->acts >> act & 1) != 0;
}
/* True when the node's process ends at this effect, which is then not carried out; restart_ns is
 * set. */
bool fb_sim_player_crashes(fb_sim_world *world, uint32_t node, uint32_t effect_kind,
                           uint64_t *restart_ns);

/* Lines of this schedule that did not do what they say, in a run that is over. Windows that begin
 * after its end count too. */
uint32_t fb_sim_player_unreached(const fb_sim_world *world, uint32_t *first);

#endif
