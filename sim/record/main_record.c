/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/record/main_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/hex.h"
#include "sim/fail.h"
#include "sim/flags.h"
#include "sim/main_sim.h"
#include "sim/record/files.h"
#include "sim/record/redact.h"
#include "sim/record/replay.h"
#include "sim/run.h"
#include "sim/trace.h"

static const char usage[] =
    "usage: faberio sim record FILE... [--redact OUT]\n"
    "  replays what `faberio run --record PATH` wrote: FILE, or all files of PATH. Each step has "
    "to\n"
    "  come to the same effects and the same state; the first that does not is shown.\n"
    "  --key FILE     the key that opens them (record.key of the node's directory)\n"
    "  --home DIR     ... of this directory\n"
    "  --times N      replays each so often; the hash has to be the same\n"
    "  --redact OUT   writes the recording (of one file) without what was said: hashes in the "
    "place\n"
    "                 of bytes, with the facts and states of each step, under no key\n"
    "Exit: 0 the same, 13 it differs, 12 the core failed, 14 no memory, 2 usage or no recording.\n";

typedef struct record_options {
    const fb_sim_record_io *io;
    fb_sim_record_files files;
    const char *redact;
    uint64_t times;
} record_options;

static int refuse(const char *what, const char *which)
{
    fb_sim_refuse(what, which);
    fputs(usage, stderr);
    return FB_SIM_EXIT_USAGE;
}

/* An exit code, or -1. */
static int options_read(record_options *o, int argc, char **argv)
{
    char why[512];
    for (int i = 2; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--redact") == 0 || strcmp(argv[i], "--times") == 0) {
            if (value == NULL) return refuse("a flag without its value", argv[i]);
            if (strcmp(argv[i], "--redact") == 0) o->redact = value;
            if (strcmp(argv[i], "--times") == 0 &&
                (!fb_sim_parse_number(value, &o->times) || o->times == 0)) {
                return refuse("not a number of times", value);
            }
            i++;
        } else if (argv[i][0] == '-') {
            return refuse("no flag of this name", argv[i]);
        } else if (!fb_sim_record_files_add(&o->files, argv[i], why, sizeof why)) {
            return refuse(why, NULL);
        }
    }
    if (o->files.count == 0) return refuse("which FILE?", NULL);
    if (o->redact != NULL && (o->files.count != 1 || o->io->hash == NULL)) {
        return refuse(o->io->hash == NULL ? "only `faberio sim record` redacts"
                                          : "--redact takes one file",
                      NULL);
    }
    return -1;
}

static void line(const char *path, const fb_sim_replay *r, bool whole)
{
    char id[33] = "";
    fb_hex_format(r->header.node.b, sizeof r->header.node.b, id);
    printf("%s: node %s, %s%s: %" PRIu64 " steps, %" PRIu64 " starts, %" PRIu64
           " outputs; %s%s%s\n",
           path, id, r->header.program, r->header.redacted ? ", redacted" : "", r->steps, r->starts,
           r->outputs, r->over == FB_SIM_REPLAY_DIFFERS ? "DIFFERS: " : "", r->why,
           whole ? "" : "; not ended by the node");
}

typedef struct outcome {
    fb_sim_replayed worst;
    uint64_t steps;
    fb_hash128 hash; /* of the files' hashes, in their order */
} outcome;

static bool hashes_equal(fb_hash128 a, fb_hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

/* Replays one file as often as was asked. False: it is none. */
static bool one_file(record_options *o, const char *path, outcome *out)
{
    fb_sim_recorded content = {0};
    char why[640];
    if (!o->io->read(o->io->user, path, &content, why, sizeof why)) {
        fprintf(stderr, "faberio sim record: %s\n", why);
        return false;
    }
    bool sound = true;
    fb_hash128 first = {0, 0};
    for (uint64_t n = 0; n < o->times && sound; n++) {
        static fb_sim_replay r;
        fb_sim_redaction redaction = {0};
        bool opened = fb_sim_replay_open(&r, fb_span_of(content.bytes, content.len));
        if (opened && o->redact != NULL && n == 0 &&
            !fb_sim_redact_begin(&redaction, o->redact, &r, o->io->hash, o->io->user)) {
            fprintf(stderr, "faberio sim record: %s: %s\n", o->redact, strerror(errno));
            sound = false;
        }
        while (sound && fb_sim_replay_next(&r) == FB_SIM_REPLAY_STEP) {
            if (redaction.file != NULL) fb_sim_redact_step(&redaction, &r);
        }
        if (redaction.file != NULL && !fb_sim_redact_end(&redaction, &r)) {
            fprintf(stderr, "faberio sim record: %s: %s\n", o->redact, strerror(errno));
            sound = false;
        }
        if (n > 0 && !hashes_equal(first, r.hash) && r.over == FB_SIM_REPLAY_END) {
            snprintf(r.why, sizeof r.why, "replay %" PRIu64 " has another hash", n + 1);
            r.over = FB_SIM_REPLAY_DIFFERS;
        }
        if (n == 0) first = r.hash;
        if (r.over == FB_SIM_REPLAY_MALFORMED) {
            fprintf(stderr, "faberio sim record: %s: %s\n", path, r.why);
            sound = false;
        } else if (sound && (n == 0 || r.over == FB_SIM_REPLAY_DIFFERS)) {
            line(path, &r, content.whole);
            out->steps += r.steps;
            if (r.over > out->worst) out->worst = r.over;
        }
        fb_sim_replay_close(&r);
    }
    uint8_t both[32];
    fb_writer w = fb_writer_of(both, sizeof both);
    fb_write_words(&w, (const uint64_t[]){out->hash.lo, out->hash.hi, first.lo, first.hi}, 4);
    out->hash = fb_xxh128(both, sizeof both, 0);
    free(content.bytes);
    return sound;
}

int fb_sim_record_main(int argc, char **argv, const fb_sim_record_io *io)
{
    static record_options o;
    memset(&o, 0, sizeof o);
    o.io = io;
    o.times = 1;
    int code = options_read(&o, argc, argv);
    outcome out = {.worst = FB_SIM_REPLAY_END};
    uint64_t before = fb_sim_processor_ns();
    if (code < 0) {
        code = FB_SIM_EXIT_PASS;
        for (uint32_t i = 0; i < o.files.count && code == FB_SIM_EXIT_PASS; i++) {
            if (!one_file(&o, o.files.paths[i], &out)) code = FB_SIM_EXIT_USAGE;
        }
        if (code == FB_SIM_EXIT_PASS) {
            uint64_t ns = fb_sim_processor_ns() - before;
            char hash[33];
            fb_sim_result result = out.worst == FB_SIM_REPLAY_DIFFERS    ? FB_SIM_NONDETERMINISM
                                   : out.worst == FB_SIM_REPLAY_RESOURCE ? FB_SIM_RESOURCE
                                                                         : FB_SIM_PASS;
            fb_sim_trace_text(out.hash, hash);
            printf("{\"result\":\"%s\",\"seed\":null,\"events\":%" PRIu64
                   ",\"hash\":\"%s\",\"check\":%s,\"stall\":null,\"schedule\":null,"
                   "\"events_per_s\":%" PRIu64 "}\n",
                   fb_sim_result_name(result), out.steps, hash,
                   result == FB_SIM_NONDETERMINISM ? "\"replay\"" : "null",
                   out.steps * o.times * UINT64_C(1000000) / (ns / 1000 + 1));
            code = fb_sim_result_exit(result);
        }
    }
    fb_sim_record_files_free(&o.files);
    return code;
}

/* Files that are not sealed. */

static bool read_plain(void *user, const char *path, fb_sim_recorded *out, char *why,
                       size_t why_len)
{
    (void)user;
    static const char magic[] = "faberio-record-1P";
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    uint8_t *bytes = ok ? malloc((size_t)st.st_size + 1) : NULL;
    ssize_t n = bytes != NULL ? read(fd, bytes, (size_t)st.st_size) : -1;
    if (fd >= 0) close(fd);
    if (n < 0 || (size_t)n < sizeof magic - 1 || memcmp(bytes, magic, sizeof magic - 2) != 0) {
        snprintf(why, why_len, "%s: %s", path, n < 0 ? strerror(errno) : "not a recording");
        free(bytes);
        return false;
    }
    if (bytes[sizeof magic - 2] != 'P') {
        snprintf(why, why_len, "%s: it is sealed; `faberio sim record` opens it with its key",
                 path);
        free(bytes);
        return false;
    }
    out->len = (size_t)n - (sizeof magic - 1);
    memmove(bytes, bytes + sizeof magic - 1, out->len);
    out->bytes = bytes;
    out->whole = true;
    return true;
}

int fb_sim_record_plain_main(int argc, char **argv)
{
    fb_sim_record_io io = {.read = read_plain};
    return fb_sim_record_main(argc, argv, &io);
}
