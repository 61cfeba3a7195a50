/* SPDX-License-Identifier: Apache-2.0 */
/* Which dials are worth a line of the log. An address that does not answer is dialled for as long
 * as it is known: it is told at once, then after a minute, then after pauses that double up to a
 * day, and at once again when something changed. */
#ifndef FB_RUNTIME_DAEMON_DIAL_LOG_H
#define FB_RUNTIME_DAEMON_DIAL_LOG_H

#include "protocol/base/error.h"
#include "protocol/base/limits.h"
#include "protocol/base/types.h"

#define FB_DIAL_LOG_ADDRESSES    128u /* more share their lines: the oldest is forgotten */
#define FB_DIAL_LOG_PAUSE_NS     (UINT64_C(60) * 1000000000u)
#define FB_DIAL_LOG_PAUSE_MAX_NS (UINT64_C(86400) * 1000000000u)

typedef struct fb_dial_log_row {
    size_t len; /* 0: free */
    char address[FB_ADDRESS_BYTES_MAX];
    fb_error error;
    uint64_t failures; /* in a row with this error, not told yet */
    uint64_t pause_ns;
    uint64_t next_ns; /* the next line is due then */
    uint64_t used;    /* when it was looked at last, counted */
} fb_dial_log_row;

typedef struct fb_dial_log {
    fb_dial_log_row rows[FB_DIAL_LOG_ADDRESSES];
    uint64_t used;
} fb_dial_log;

/* A dial ended so. Is it to be told? *failures: how many in a row this line stands for. */
bool fb_dial_log_tells(fb_dial_log *log, uint64_t now_ns, fb_span address, fb_error error,
                       uint64_t *failures);

#endif
