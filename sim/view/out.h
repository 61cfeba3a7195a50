/* SPDX-License-Identifier: Apache-2.0 */
/* Text on its way to a file: buffered, numbers without printf, JSON strings escaped. */
#ifndef FB_SIM_VIEW_OUT_H
#define FB_SIM_VIEW_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct fb_sim_out {
    FILE *file;
    size_t used;
    uint64_t written;
    bool failed;
    char buffer[65536];
} fb_sim_out;

/* NULL when there is no memory, or the file cannot be made; "-" is standard output. */
fb_sim_out *fb_sim_out_open(const char *path);
/* False when not everything could be written. */
bool fb_sim_out_close(fb_sim_out *out);

/* Gives what is buffered to the system. */
void fb_sim_out_flush(fb_sim_out *out);

void fb_sim_out_bytes(fb_sim_out *out, const void *bytes, size_t len);
void fb_sim_out_text(fb_sim_out *out, const char *text);
void fb_sim_out_u64(fb_sim_out *out, uint64_t value);
void fb_sim_out_i64(fb_sim_out *out, int64_t value);
/* Nanoseconds as microseconds with three places. */
void fb_sim_out_us(fb_sim_out *out, uint64_t ns);
/* In quotes; `<` is escaped too, so that it can stand in a page. */
void fb_sim_out_string(fb_sim_out *out, const char *text);

#endif
