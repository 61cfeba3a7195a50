/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/line_in.h"

static bool put(char *room, size_t cap, size_t *n, char c)
{
    if (*n + 1 >= cap) return false;
    room[(*n)++] = c;
    return true;
}

fb_line fb_line_read(FILE *in, char *room, size_t cap, size_t *len)
{
    size_t n = 0;
    bool any = false, fits = true, turn = false; /* a CR that may belong to the line's end */
    for (;;) {
        int c = getc_unlocked(in);
        if (c == EOF && ferror(in)) return FB_LINE_FAILED;
        if (c == EOF && !any) return FB_LINE_END;
        if (c == EOF || c == '\n') break;
        any = true;
        if (turn) fits = put(room, cap, &n, '\r') && fits;
        turn = c == '\r';
        if (!turn) fits = put(room, cap, &n, (char)c) && fits;
    }
    room[n] = '\0';
    *len = n;
    return fits ? FB_LINE_READ : FB_LINE_TOO_LONG;
}
