/* SPDX-License-Identifier: Apache-2.0 */
/* The model of records that this check keeps, for those that compare answers with it. */
#ifndef FB_SIM_CHECKERS_ACKNOWLEDGED_SURVIVES_H
#define FB_SIM_CHECKERS_ACKNOWLEDGED_SURVIVES_H

#include "sim/checkers/list.h"
#include "sim/checkers/model.h"

fb_sim_model *fb_sim_model_of(fb_sim_world *world);

#endif
