/* SPDX-License-Identifier: Apache-2.0 */
/* A Byzantine member: an approved node whose machine lies.
 *
 * Inside runs an honest core; what it seals is changed on its way into the provider, so forged
 * envelopes travel over properly authenticated links. Bytes of any kind are put into its streams
 * and carriers besides. It signs with its own key and no other: nothing here reaches the handle of
 * another node. */
#ifndef FB_SIM_WEATHER_BYZANTINE_H
#define FB_SIM_WEATHER_BYZANTINE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fb_sim_world fb_sim_world;
typedef struct fb_sim_window fb_sim_window;

/* Honest nodes are a majority and the profile allows it. */
bool fb_sim_byzantine_possible(const fb_sim_world *world);
/* The member of the window begins or ceases to lie. */
void fb_sim_byzantine_set(fb_sim_world *world, const fb_sim_window *window, bool begins);
/* It does one thing now. */
void fb_sim_byzantine_act(fb_sim_world *world, const fb_sim_window *window);

#endif
