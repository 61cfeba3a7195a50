/* SPDX-License-Identifier: Apache-2.0 */
/* What is seldom done, kept out of the way of what is: such a function is never inlined, so that
 * its variables take no registers from its callers, and a branch that leads to it is laid out
 * aside. */
#ifndef FB_BASE_RARE_H
#define FB_BASE_RARE_H

#define FB_RARE __attribute__((noinline, cold))

#endif
