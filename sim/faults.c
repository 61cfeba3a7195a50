/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/faults.h"

#include <string.h>

const fb_sim_fault_row fb_sim_fault_rows[FB_SIM_FAULTS] = {
#define X(id, name, family, parameters, text, share)                                               \
    {name, FB_SIM_FAMILY_##family, parameters, text, share},
#include "sim/faults.def"
#undef X
};

const char *const fb_sim_family_names[FB_SIM_FAMILIES] = {
    [FB_SIM_FAMILY_LINK] = "link",
    [FB_SIM_FAMILY_PARTITION] = "partition",
    [FB_SIM_FAMILY_PROCESS] = "process",
    [FB_SIM_FAMILY_STORE] = "store",
    [FB_SIM_FAMILY_CLOCK] = "clock",
    [FB_SIM_FAMILY_TIMERS] = "timers",
    [FB_SIM_FAMILY_BYZANTINE] = "byzantine",
    [FB_SIM_FAMILY_WORKLOAD] = "workload",
    [FB_SIM_FAMILY_MEMBERSHIP] = "membership",
    [FB_SIM_FAMILY_DOCUMENTS] = "documents",
};

uint32_t fb_sim_fault_of(const char *name)
{
    uint32_t fault = 0;
    while (fault < FB_SIM_FAULTS && strcmp(name, fb_sim_fault_rows[fault].name) != 0) fault++;
    return fault;
}
