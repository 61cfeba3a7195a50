/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/faults.h"

const fb_sim_fault_row fb_sim_fault_rows[FB_SIM_FAULTS] = {
#define X(id, name, parameters, text, share) {name, parameters, text, share},
#include "sim/faults.def"
#undef X
};
