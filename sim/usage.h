/* SPDX-License-Identifier: Apache-2.0 */
/* What `faberio sim` can do, verb by verb: the one text behind its help and behind its refusals. */
#ifndef FB_SIM_USAGE_H
#define FB_SIM_USAGE_H

#include <stdbool.h>
#include <stdio.h>

/* All verbs, two lines each. */
void fb_sim_usage_all(FILE *out);

/* One verb with its flags. False: there is none of this name. */
bool fb_sim_usage(FILE *out, const char *verb);

/* Says on standard error what is wrong, with the word it is about (NULL: none), and how the verb is
 * used. Returns FB_SIM_EXIT_USAGE. */
int fb_sim_misused(const char *verb, const char *what, const char *which);

#endif
