/* SPDX-License-Identifier: Apache-2.0 */
/* Files that `export` writes and `import` reads: lines, each a checksum and a JSON object (see
 * docs/WIRE-FORMATS.md, "Export"). A checksum covers its line and all before it, so a line that was
 * changed, lost, moved or doubled is found, and named. */
#ifndef FB_RUNTIME_COMMAND_EXPORT_FILE_H
#define FB_RUNTIME_COMMAND_EXPORT_FILE_H

#include <stdio.h>

#include "runtime/text.h"

#define FB_EXPORT_VERSION   1u
#define FB_EXPORT_SUM_BYTES 16u
/* More than any record can be; what is longer is no line of ours. */
#define FB_EXPORT_LINE_BYTES_MAX ((size_t)64 << 20)

typedef struct fb_export_sum {
    uint8_t bytes[FB_EXPORT_SUM_BYTES]; /* over everything so far */
} fb_export_sum;

void fb_export_begin(fb_export_sum *sum);

/* Appends one line. False when the file takes no more. */
bool fb_export_write(FILE *out, fb_export_sum *sum, const fb_text *json);

typedef enum fb_export_line {
    FB_EXPORT_LINE,
    FB_EXPORT_END,     /* nothing is left */
    FB_EXPORT_DAMAGED, /* the line is not what was written, or is no line */
    FB_EXPORT_FAILED,  /* the system did not give it: errno */
} fb_export_line;

/* The next line into json; its number is one above that of the line before. */
fb_export_line fb_export_read(FILE *in, fb_export_sum *sum, fb_text *json);

#endif
