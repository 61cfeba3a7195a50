/* SPDX-License-Identifier: Apache-2.0 */
/* Is the store's file a database that can be worked with? Looked at in a child process before
 * anything of this one depends on it, as a damaged file may end whoever follows its pages
 * (DESIGN 7): meta pages, the file's length against them, both tables' roots, and either every
 * entry or a bounded sample. */
#ifndef FB_IO_STORE_CHECK_H
#define FB_IO_STORE_CHECK_H

#include "protocol/base/error.h"
#include "protocol/base/types.h"

/* A sample ends after so many entries or bytes of values. */
#define FB_STORE_SAMPLE_ENTRIES 8192u
#define FB_STORE_SAMPLE_BYTES   ((size_t)4 << 20)

typedef struct fb_store_report {
    bool sound;       /* it can be opened and walked */
    uint64_t entries; /* looked at */
    uint64_t damaged; /* of those, with a value that does not match its checksum */
    char what[160];   /* when it is not sound: what was found */
} fb_store_report;

/* `directory` has a data.mdb that nobody writes meanwhile. whole: every entry.
 * FB_ERR_STORE_FAILED: nothing was found out, as the system refused; `why` gets a sentence. To be
 * called while the process has one thread, or at least none that writes the store. */
fb_status fb_store_check(const char *directory, bool whole, fb_store_report *out, char *why,
                         size_t why_len);

#endif
