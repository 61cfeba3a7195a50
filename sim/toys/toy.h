/* SPDX-License-Identifier: Apache-2.0 */
/* The defects that the toy node can be given: toys.def. */
#ifndef FB_SIM_TOYS_TOY_H
#define FB_SIM_TOYS_TOY_H

typedef enum fb_toy_defect {
    FB_TOY_SOUND,
#define X(id, name, faults, text, check) FB_TOY_##id,
#include "sim/toys/toys.def"
#undef X
    FB_TOY_DEFECTS
} fb_toy_defect;

extern fb_toy_defect fb_toy_defect_now;

#endif
