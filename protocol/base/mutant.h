/* SPDX-License-Identifier: Apache-2.0 */
/* Planted bugs. In shipped objects MUTANT(id, good, bad) is `good` and nothing of the bug remains,
 * neither code nor symbol. The simulator's second binary is compiled with FB_PLANTED_BUGS and
 * chooses at run time. `id` is an enumerator of sim/mutants.def. */
#ifndef FB_BASE_MUTANT_H
#define FB_BASE_MUTANT_H

#ifdef FB_PLANTED_BUGS
#include "sim/mutant_ids.h"
extern int fb_planted_bug;
#define MUTANT(id, good, bad) (fb_planted_bug == FB_MUTANT_##id ? (bad) : (good))
#else
#define MUTANT(id, good, bad) (good)
#endif

#endif
