/* SPDX-License-Identifier: Apache-2.0 */
/* The store's file is mapped: a page that cannot be read, as the file was cut or its disk fails,
 * arrives as a signal in whoever reads it. Nothing that the node holds can be trusted to undo what
 * LMDB was doing, so the process says why and ends with 1. What was acknowledged is on disk; the
 * file SUSPECT that it leaves in the store's directory makes the next start look at all of it. */
#ifndef FB_IO_STORE_FAULT_H
#define FB_IO_STORE_FAULT_H

#define FB_STORE_SUSPECT "suspect"

/* Until _leave, signals of this thread mean the store in `directory`, which must stay where it is.
 * Signals that come from anywhere else are treated as before. */
void fb_store_fault_enter(const char *directory);
void fb_store_fault_leave(void);

/* The same for a thread that did this before and does it often. */
void fb_store_fault_enter_again(const char *directory);

/* The database cannot follow its pages, but says so: the next start is to look at all of it. */
void fb_store_fault_mark(void);

/* The database's own code found that it cannot go on. Ends the process as above. */
void fb_store_fault_now(const char *what) __attribute__((noreturn));

#endif
