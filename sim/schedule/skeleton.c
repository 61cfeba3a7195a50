/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/hash.h"
#include "sim/schedule/schedule.h"

/* Nodes by the order in which they are first named: who they are does not matter. */
static uint32_t role_of(uint32_t roles[64], uint32_t *next, uint32_t node)
{
    uint32_t *role = &roles[node % 64];
    if (*role == 0) *role = ++*next;
    return *role;
}

uint64_t fb_sim_plan_skeleton(const fb_sim_plan *plan)
{
    uint32_t roles[64] = {0};
    uint32_t next = 0;
    uint64_t hash = fb_xxh64(plan->check, strlen(plan->check), plan->round_count);
    uint32_t last[6] = {UINT32_MAX, 0, 0, 0, 0, 0};
    for (uint32_t i = 0; i < plan->line_count; i++) {
        const fb_sim_line *line = &plan->lines[i];
        bool writes = line->op.operation == FB_SIM_OP_PUT || line->op.operation == FB_SIM_OP_CHANGE;
        uint32_t parts[6] = {(uint32_t)line->kind,
                             role_of(roles, &next, line->a),
                             role_of(roles, &next, line->b),
                             line->kind == FB_SIM_LINE_WINDOW ? line->fault
                             : line->kind == FB_SIM_LINE_OP   ? (writes ? 0 : line->op.operation)
                                                              : line->what,
                             line->act,
                             line->round};
        /* Once more of the same is nothing new. */
        if (memcmp(parts, last, sizeof parts) == 0) continue;
        memcpy(last, parts, sizeof parts);
        for (size_t k = 0; k < 6; k++) hash = (hash ^ parts[k]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}
