/* SPDX-License-Identifier: Apache-2.0 */
/* What a store says of the members of a space, against what follows from the statements in it. */
#ifndef FB_SIM_CHECKERS_STANDING_H
#define FB_SIM_CHECKERS_STANDING_H

#include "sim/checkers/checks.h"
#include "sim/world/world.h"

typedef struct fb_sim_standing fb_sim_standing;

/* size_t bytes of it; it is all one piece. */
size_t fb_sim_standing_bytes(void);

/* Reads what one store states in the space with this number. False: more than there is room for. */
bool fb_sim_standing_read(fb_sim_standing *s, const fb_sim_store *store, uint32_t local,
                          fb_id space, fb_id creator);
/* The greatest turn of the recovery key in it. */
uint32_t fb_sim_standing_turn(const fb_sim_standing *s);
/* The number of a space in the keys of a store; 0: it is not there. */
uint32_t fb_sim_standing_local(const fb_sim_store *store, fb_id space);
/* Does the statement about a member with this dot stand? */
bool fb_sim_standing_stands(const fb_sim_standing *s, fb_id member, const uint8_t dot[32]);
/* What counts of a member: 0 nothing, else its role; *known: anything was stated about it. */
uint8_t fb_sim_standing_role(const fb_sim_standing *s, fb_id member, bool *known);

#endif
