/* SPDX-License-Identifier: Apache-2.0 */
/* Members that were put out, or left, and how they come back (weather: revoke, leave). */
#ifndef FB_SIM_WORKLOAD_LET_IN_H
#define FB_SIM_WORKLOAD_LET_IN_H

#include "sim/world/world.h"

/* What a node is admitted as. */
uint8_t fb_sim_role_of(uint32_t node);

/* May a member write in the first space, in the eyes of a node? */
bool fb_sim_is_reader(const fb_sim_world *world, uint32_t node);
bool fb_sim_may_write(const fb_sim_world *world, uint32_t node, fb_id member);
/* Is anybody a reader of the first space, in anybody's eyes? */
bool fb_sim_has_reader(const fb_sim_world *world);

/* An admin keeps to its part of the table of statements, which are kept for good: is half of it
 * left to this one? */
bool fb_sim_may_let_in(const fb_sim_world *world, uint32_t node);

/* The public recovery key of a space. */
fb_b32 fb_sim_recovery_key(const fb_sim_world *world, uint32_t space);

/* A turn that no recovery key ever reached. */
#define FB_SIM_TURN_FORGED 1000000u

/* Whoever has the recovery key of the first space makes a node an admin, at another one; or,
 * forged, somebody who has not. False: that one cannot be asked, or its tables are half full. */
bool fb_sim_recover(fb_sim_world *world, uint32_t at, uint32_t node, bool forged);

/* While a core heals: has one more let in again that is out, if there is one. */
void fb_sim_let_in(fb_sim_world *world);

#endif
