/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/conformance/line_in.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

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

const char *fb_input_name(const char *name)
{
    return strcmp(name, "-") == 0 ? "standard input" : name;
}

/* All of it in a file without a name; NULL with errno. */
static FILE *spooled(FILE *in)
{
    FILE *out = tmpfile();
    char part[16384];
    size_t n = 0;
    while (out != NULL && (n = fread(part, 1, sizeof part, in)) > 0) {
        if (fwrite(part, 1, n, out) != n) break;
    }
    if (out != NULL && (ferror(in) || n > 0 || fflush(out) != 0)) {
        int error = errno;
        fclose(out);
        out = NULL;
        errno = error;
    }
    return out;
}

FILE *fb_input_open(const char *name, char *why, size_t why_len)
{
    struct stat st;
    FILE *in = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
    if (in != NULL && fstat(fileno(in), &st) == 0 && !S_ISREG(st.st_mode)) {
        FILE *out = NULL;
        if (S_ISDIR(st.st_mode)) {
            errno = EISDIR;
        } else {
            out = spooled(in);
        }
        int error = errno;
        fclose(in);
        in = out;
        errno = error;
    }
    if (in == NULL) snprintf(why, why_len, "%s", strerror(errno));
    return in;
}
