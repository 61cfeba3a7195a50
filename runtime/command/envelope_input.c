/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/envelope_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "protocol/base/limits.h"
#include "runtime/command/cli.h"

/* The longest input that is looked at, and one byte to tell a longer one. */
#define INPUT_BYTES_MAX (FB_ENVELOPE_JSON_BYTES_MAX + 1)

struct fb_envelope_inputs {
    const fb_envelope_args *args;
    int next_file;
    FILE *file;
    const char *name;
    uint64_t number;
    uint8_t bytes[INPUT_BYTES_MAX];
};

static bool say(const char *name, int number)
{
    fputs("faberio envelope: ", stderr);
    fb_cli_put_visible(name);
    fprintf(stderr, ": %s\n", strerror(number));
    return false;
}

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* A directory can be opened for reading, but not read. */
static FILE *open_file(const char *path)
{
    FILE *file = fopen(path, "rbe");
    struct stat st;
    if (file != NULL && fstat(fileno(file), &st) == 0 && S_ISDIR(st.st_mode)) {
        fclose(file);
        errno = EISDIR;
        return NULL;
    }
    return file;
}

static bool can_open_all(const fb_envelope_args *args)
{
    bool good = true;
    for (int i = 0; i < args->file_count; i++) {
        struct stat st;
        if (is_standard(args->files[i])) continue;
        /* Opening and closing a pipe would disturb its writer. */
        if (stat(args->files[i], &st) == 0 && S_ISFIFO(st.st_mode)) continue;
        FILE *file = open_file(args->files[i]);
        if (file == NULL) {
            good = say(args->files[i], errno);
        } else {
            fclose(file);
        }
    }
    return good;
}

fb_envelope_inputs *fb_envelope_inputs_open(const fb_envelope_args *args)
{
    if (!can_open_all(args)) return NULL;
    fb_envelope_inputs *inputs = calloc(1, sizeof *inputs);
    if (inputs == NULL) {
        say("inputs", ENOMEM);
        return NULL;
    }
    inputs->args = args;
    return inputs;
}

static void close_file(fb_envelope_inputs *inputs)
{
    if (inputs->file != NULL && inputs->file != stdin) fclose(inputs->file);
    inputs->file = NULL;
}

void fb_envelope_inputs_close(fb_envelope_inputs *inputs)
{
    if (inputs == NULL) return;
    close_file(inputs);
    free(inputs);
}

static int read_whole(fb_envelope_inputs *in, fb_envelope_input *out)
{
    if (in->number != 0) return 0; /* it was read */
    in->number = 1;
    size_t len = fread(in->bytes, 1, sizeof in->bytes, in->file);
    out->number = 0;
    out->bytes = fb_span_of(in->bytes, len);
    return 1;
}

static int read_line(fb_envelope_inputs *in, fb_envelope_input *out)
{
    size_t len = 0;
    int c = getc_unlocked(in->file);
    if (c == EOF) return 0;
    for (; c != EOF && c != '\n'; c = getc_unlocked(in->file)) {
        if (len < sizeof in->bytes) in->bytes[len++] = (uint8_t)c;
    }
    out->number = ++in->number;
    out->bytes = fb_span_of(in->bytes, len);
    return 1;
}

static int read_frame(fb_envelope_inputs *in, fb_envelope_input *out)
{
    uint8_t prefix[4];
    size_t got = fread(prefix, 1, sizeof prefix, in->file);
    if (got == 0) return 0;
    out->number = ++in->number;
    out->bytes = fb_span_of(in->bytes, 0);
    out->cut = got < sizeof prefix;
    if (out->cut) return 1;
    uint32_t left = (uint32_t)prefix[0] << 24 | (uint32_t)prefix[1] << 16 |
                    (uint32_t)prefix[2] << 8 | prefix[3];
    size_t keep = left < sizeof in->bytes ? left : sizeof in->bytes;
    got = fread(in->bytes, 1, keep, in->file);
    out->bytes = fb_span_of(in->bytes, got);
    out->cut = got < keep;
    /* The rest of a frame that is too large anyway, so that the next one is found. */
    for (left -= (uint32_t)got; left > 0 && !out->cut; left--) {
        if (getc_unlocked(in->file) == EOF) out->cut = true;
    }
    return 1;
}

static int read_next(fb_envelope_inputs *in, fb_envelope_input *out)
{
    *out = (fb_envelope_input){.file = in->name};
    if (in->args->lines) return read_line(in, out);
    if (in->args->frames && in->args->from_protobuf) return read_frame(in, out);
    return read_whole(in, out);
}

int fb_envelope_inputs_next(fb_envelope_inputs *in, fb_envelope_input *out)
{
    for (;;) {
        if (in->file == NULL) {
            if (in->next_file == in->args->file_count) return 0;
            const char *path = in->args->files[in->next_file++];
            in->name = is_standard(path) ? "standard input" : path;
            in->number = 0;
            in->file = is_standard(path) ? stdin : open_file(path);
            if (in->file == NULL) {
                say(in->name, errno);
                return -1;
            }
        }
        errno = 0;
        int result = read_next(in, out);
        if (ferror(in->file)) {
            say(in->name, errno != 0 ? errno : EIO);
            return -1;
        }
        if (result != 0) return result;
        close_file(in);
    }
}
