/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions that stay on in every build type.
 *
 * They state what the program itself guarantees. No byte that came from a peer, a store or a user
 * may decide one: such bytes end in an error of error.h. The condition has no side effect. */
#ifndef FB_BASE_ASSERT_H
#define FB_BASE_ASSERT_H

/* Ends the process. The core itself imports nothing that prints: the driver that links it defines
 * this function (io/ and sim/ print the place; a fuzz target aborts). */
_Noreturn void fb_assert_failed(const char *file, int line, const char *condition);

#define FB_ASSERT(condition)                                                                       \
    ((condition) ? (void)0 : fb_assert_failed(__FILE__, __LINE__, #condition))

#endif
