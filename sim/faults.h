/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the faults of faults.def, and what the catalogue says of each. */
#ifndef FB_SIM_FAULTS_H
#define FB_SIM_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum fb_sim_fault {
#define X(id, name, family, parameters, text, share) FB_SIM_FAULT_##id,
#include "sim/faults.def"
#undef X
    FB_SIM_FAULTS
} fb_sim_fault;

typedef enum fb_sim_family {
    FB_SIM_FAMILY_LINK,
    FB_SIM_FAMILY_PARTITION,
    FB_SIM_FAMILY_PROCESS,
    FB_SIM_FAMILY_STORE,
    FB_SIM_FAMILY_CLOCK,
    FB_SIM_FAMILY_TIMERS,
    FB_SIM_FAMILY_BYZANTINE,
    FB_SIM_FAMILY_WORKLOAD,
    FB_SIM_FAMILY_MEMBERSHIP,
    FB_SIM_FAMILY_DOCUMENTS,
    FB_SIM_FAMILIES
} fb_sim_family;

typedef struct fb_sim_fault_row {
    const char *name;
    fb_sim_family family;
    const char *parameters;
    const char *text;
    uint8_t share_of_16;
} fb_sim_fault_row;

extern const fb_sim_fault_row fb_sim_fault_rows[FB_SIM_FAULTS];
extern const char *const fb_sim_family_names[FB_SIM_FAMILIES];

/* By name; FB_SIM_FAULTS when there is none. */
uint32_t fb_sim_fault_of(const char *name);

/* Some of the faults. */
#define FB_SIM_FAULT_WORDS ((FB_SIM_FAULTS + 63u) / 64u)

typedef struct fb_sim_fault_set {
    uint64_t bits[FB_SIM_FAULT_WORDS];
} fb_sim_fault_set;

static inline bool fb_sim_faults_have(const fb_sim_fault_set *set, uint32_t fault)
{
    return (set->bits[fault / 64] >> (fault % 64) & 1) != 0;
}

static inline void fb_sim_faults_add(fb_sim_fault_set *set, uint32_t fault)
{
    set->bits[fault / 64] |= UINT64_C(1) << (fault % 64);
}

static inline bool fb_sim_faults_none(const fb_sim_fault_set *set)
{
    uint64_t any = 0;
    for (uint32_t i = 0; i < FB_SIM_FAULT_WORDS; i++) any |= set->bits[i];
    return any == 0;
}

#endif
