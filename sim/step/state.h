/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a simulated node as names and values, for people: machine.now, link[3].peer,
 * area[1].vector[B/35a6fcab].batch, record[r03].title. */
#ifndef FB_SIM_STEP_STATE_H
#define FB_SIM_STEP_STATE_H

#include "protocol/base/types.h"
#include "protocol/core/node.h"

typedef struct fb_sim_world fb_sim_world;

#define FB_SIM_FIELD_NAME_MAX  160u
#define FB_SIM_FIELD_VALUE_MAX 400u

typedef struct fb_sim_fields {
    const char *wanted; /* names that begin so; "" is all */
    void (*at)(void *user, const char *name, const char *value);
    void *user;
    const fb_sim_world *world;
    uint32_t node;
    char group[FB_SIM_FIELD_NAME_MAX]; /* of the names that follow, "link[3]" */
} fb_sim_fields;

/* Everything about a node whose name begins with `wanted`. */
void fb_sim_state(fb_sim_fields *fields);

/* For those who fill it in. False: no name of this group is wanted. */
bool fb_sim_group(fb_sim_fields *fields, const char *format, ...);
void fb_sim_field(fb_sim_fields *fields, const char *name, const char *format, ...);
/* "B", or the first bytes of a stranger's id. One of a small ring of texts. */
const char *fb_sim_id_name(const fb_sim_fields *fields, fb_id id);

/* What the core knows: state_core.c of the real one, or what stands in for it in toys/. core is not
 * NULL. */
void fb_sim_state_core(fb_sim_fields *fields, const fb_node *core);

/* Its planes. */
void fb_sim_state_links(fb_sim_fields *fields, const fb_node *core);
void fb_sim_state_messaging(fb_sim_fields *fields, const fb_node *core);
void fb_sim_state_database(fb_sim_fields *fields, const fb_node *core);

#endif
