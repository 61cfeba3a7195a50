/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a stream that somebody else writes: of bounded length, whatever comes. */
#ifndef FB_RUNTIME_CONFORMANCE_LINE_IN_H
#define FB_RUNTIME_CONFORMANCE_LINE_IN_H

#include <stdio.h>

#include "protocol/base/types.h"

typedef enum fb_line {
    FB_LINE_READ,
    FB_LINE_TOO_LONG, /* its end was read; only its beginning is there */
    FB_LINE_END,      /* of the input; no line */
    FB_LINE_FAILED,   /* errno says how; no line */
} fb_line;

/* The next line without its end, which may be LF or CR LF, or is missing at the end of the input.
 * It has at most cap - 1 bytes, and a zero byte behind them. */
fb_line fb_line_read(FILE *in, char *room, size_t cap, size_t *len);

/* A file, or standard input for "-", that can be rewound and is the caller's to close: what comes
 * through a pipe is kept in a file without a name first. NULL: `why` says what is wrong. */
#define FB_INPUT_WHY 128
FILE *fb_input_open(const char *name, char *why, size_t why_len);
const char *fb_input_name(const char *name); /* for people */

#endif
