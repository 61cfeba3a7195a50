/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes of the command contract, section 1, and how errors map to them. */
#ifndef FB_RUNTIME_EXIT_H
#define FB_RUNTIME_EXIT_H

#include "protocol/base/error.h"

typedef enum fb_exit {
    FB_EXIT_OK = 0,
    FB_EXIT_FAILED = 1,
    FB_EXIT_USAGE = 2,
    FB_EXIT_UNREACHABLE = 3,
    FB_EXIT_NOT_AUTHORISED = 4,
    FB_EXIT_CONFLICT = 5,
    FB_EXIT_DEGRADED = 6,
    FB_EXIT_AGAIN = 75,
} fb_exit;

/* The HTTP status that an answer with this error has. */
unsigned fb_http_of_error(fb_error error);

/* The exit code of a command whose request was answered with this HTTP status. */
fb_exit fb_exit_of_http(unsigned status);

#endif
