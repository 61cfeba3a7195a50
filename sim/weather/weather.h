/* SPDX-License-Identifier: Apache-2.0 */
/* Weather first: the faults of a round are drawn before it begins, as windows with a start and an
 * end, so that one can be taken away without moving another. The swarm switches a random part of
 * the catalogue off in each round. */
#ifndef FB_SIM_WEATHER_WEATHER_H
#define FB_SIM_WEATHER_WEATHER_H

#include "protocol/base/alloc.h"
#include "sim/faults.h"

typedef struct fb_sim_world fb_sim_world;

#define FB_SIM_WINDOWS_MAX 240u

/* What the k-th of ends a process: p of a window of `crash-at`. */
enum fb_sim_crash_at {
    FB_SIM_CRASH_AT_IO = 1, /* a read or a write of the store */
    FB_SIM_CRASH_AT_SEND,
    FB_SIM_CRASH_AT_TIMER,
    FB_SIM_CRASH_AT_KINDS = FB_SIM_CRASH_AT_TIMER
};

typedef struct fb_sim_window {
    uint8_t fault; /* fb_sim_fault */
    bool active;
    uint32_t a, b; /* nodes: whom it is about */
    uint32_t key;  /* among the windows of its fault and round: its draws hang on it */
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t p, q; /* parameters by fault */
    uint64_t mask; /* a sign; high bits of groups */
    uint64_t acts; /* occurrences */
} fb_sim_window;

typedef struct fb_sim_weather {
    fb_sim_window windows[FB_SIM_WINDOWS_MAX];
    uint32_t count;
    uint32_t generation; /* of windows: entries of the queue for older ones are void */
    uint64_t round;
    bool on[FB_SIM_FAULTS];
} fb_sim_weather;

void fb_sim_weather_init(fb_sim_world *world, fb_arena *arena);

/* Draws the windows of a round, or takes them from the schedule that is played, and puts their
 * starts and ends into the queue. */
void fb_sim_weather_draw(fb_sim_world *world, uint64_t round, uint64_t start_ns, uint64_t end_ns);
/* A round without windows begins; then one more window of it, with absolute times. False when there
 * are FB_SIM_WINDOWS_MAX. */
void fb_sim_weather_begin(fb_sim_world *world, uint64_t round);
bool fb_sim_weather_add(fb_sim_world *world, const fb_sim_window *window);
/* Ends the windows of one fault now. */
void fb_sim_weather_end(fb_sim_world *world, fb_sim_fault fault);
/* Ends every window now; clocks are set right, processes that are down boot. */
void fb_sim_weather_clear(fb_sim_world *world);
/* The profile that the swarm drew, in one line of at most `cap` bytes. */
void fb_sim_weather_text(const fb_sim_world *world, char *out, size_t cap);

/* A node's process ends here by the will of the weather, in the middle of a step: of this fault. */
void fb_sim_weather_crash(fb_sim_world *world, uint32_t node, fb_sim_fault fault);
/* True when the fault can be seen from this node now: Byzantine ones are about one member. */
bool fb_sim_weather_is_byzantine(const fb_sim_world *world, uint32_t node);

void fb_sim_at_weather(fb_sim_world *world, uint32_t ref, bool begins);
void fb_sim_at_act(fb_sim_world *world, uint32_t ref, uint32_t stamp);

/* What a window of the fault is about. */
static inline bool fb_sim_fault_is_of_paths(uint32_t fault)
{
    return fb_sim_fault_rows[fault].family == FB_SIM_FAMILY_LINK && fault != FB_SIM_FAULT_REPLAY;
}

static inline bool fb_sim_fault_is_byzantine(uint32_t fault)
{
    return fb_sim_fault_rows[fault].family == FB_SIM_FAMILY_BYZANTINE;
}

static inline bool fb_sim_fault_is_of_documents(uint32_t fault)
{
    return fb_sim_fault_rows[fault].family == FB_SIM_FAMILY_DOCUMENTS;
}

/* A window of this fault that is open about this node, or NULL. */
const fb_sim_window *fb_sim_weather_over(const fb_sim_world *world, uint32_t fault, uint32_t node);

/* The group of a node in a split or on both sides of a bridge: 0 to 3. */
static inline uint32_t fb_sim_window_group(const fb_sim_window *window, uint32_t node)
{
    return (uint32_t)(window->q >> (node % 64) & 1) | (uint32_t)(window->mask >> (node % 64) & 1)
                                                          << 1;
}

/* One window as a sentence, for the timeline. */
void fb_sim_window_text(const fb_sim_world *world, const fb_sim_window *window, char *out,
                        size_t cap);

#endif
