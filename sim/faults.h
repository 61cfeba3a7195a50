/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the faults of faults.def, and what the catalogue says of each. */
#ifndef FB_SIM_FAULTS_H
#define FB_SIM_FAULTS_H

#include <stdint.h>

typedef enum fb_sim_fault {
#define X(id, name, parameters, text, share) FB_SIM_FAULT_##id,
#include "sim/faults.def"
#undef X
    FB_SIM_FAULTS
} fb_sim_fault;

typedef struct fb_sim_fault_row {
    const char *name;
    const char *parameters;
    const char *text;
    uint8_t share_of_16;
} fb_sim_fault_row;

extern const fb_sim_fault_row fb_sim_fault_rows[FB_SIM_FAULTS];

#endif
