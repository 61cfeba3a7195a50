/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the planted bugs, for protocol/base/mutant.h. 0 is none. */
#ifndef FB_SIM_MUTANT_IDS_H
#define FB_SIM_MUTANT_IDS_H

enum fb_mutant {
    FB_MUTANT_NONE = 0,
#define X(id, name, place, text, check) FB_MUTANT_##id,
#include "sim/mutants.def"
#undef X
    FB_MUTANTS
};

#endif
