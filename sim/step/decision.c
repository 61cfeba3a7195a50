/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step/decision.h"

const char *fb_sim_decision_name(uint8_t kind)
{
    static const char *const names[FB_SIM_DECISIONS] = {"drop", "delay", "duplicate", "crash",
                                                        "pause"};
    return kind < FB_SIM_DECISIONS ? names[kind] : "?";
}
