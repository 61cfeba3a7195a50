/* SPDX-License-Identifier: Apache-2.0 */
/* The product's store under a script of write sets, and what must be true of it after a crash. */
#ifndef FB_TESTS_CRASH_STORE_RUN_H
#define FB_TESTS_CRASH_STORE_RUN_H

#include "protocol/base/types.h"

#define SETS_MAX 512u

/* Runs write sets 1 .. sets through the store in this directory, which is empty; what happens is
 * noted in the recording. The store is open when it returns. */
typedef struct store_run store_run;
store_run *store_run_script(const char *directory, uint64_t sets);
void store_run_close(store_run *run);

/* What is there after a crash. acked: write sets up to it were acknowledged; given: up to it they
 * were handed over; opened: the store had told that it is open. NULL, or what is wrong. */
const char *store_run_verify(const char *directory, uint64_t acked, uint64_t given, bool opened);

#endif
