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
#include "sim/flags.h"
#include "sim/main_sim.h"
#include "sim/record/files.h"
#include "sim/record/merge.h"
#include "sim/record/redact.h"
#include "sim/record/replay.h"
#include "sim/run.h"
#include "sim/usage.h"
#include "sim/view/view.h"
#include "sim/world/fail.h"
#include "sim/world/trace.h"

/* What pictures can go back to, and what a page has of a longer run. */
#define STEPS_SHOWN (UINT64_C(1) << 20)
#define PAGE_STEPS  2500u

typedef struct record_options {
    const fb_sim_record_io *io;
    fb_sim_record_files files;
    const char *redact;
    uint64_t times;
    const char *form; /* "--text", "--html", "--perfetto", "--schedule"; NULL: no picture */
    const char *out;
    bool force; /* --schedule writes over what is there, which may be a recording */
    uint64_t from, to, last;
    fb_sim_span span;
} record_options;

/* Words about pictures. 1: taken, 0: not one of them, -1: wrong. */
static int picture_read(record_options *o, const char *word, const char *value)
{
    uint64_t *number = strcmp(word, "--from") == 0   ? &o->from
                       : strcmp(word, "--to") == 0   ? &o->to
                       : strcmp(word, "--last") == 0 ? &o->last
                                                     : NULL;
    if (strcmp(word, "--text") == 0 || strcmp(word, "--judge") == 0) {
        o->form = word;
        o->out = strcmp(word, "--text") == 0 ? "-" : "/dev/null";
        return 1;
    }
    if (strcmp(word, "--steps") == 0) {
        o->span.steps = true;
        return 1;
    }
    if (strcmp(word, "--force") == 0) {
        o->force = true;
        return 1;
    }
    if (number != NULL) return value != NULL && fb_sim_parse_number(value, number) ? 2 : -1;
    if (strcmp(word, "--node") == 0) {
        return value != NULL && fb_sim_parse_node(value, &o->span.nodes) ? 2 : -1;
    }
    if (strcmp(word, "--kind") == 0) {
        o->span.kind = value;
        return value != NULL ? 2 : -1;
    }
    if (strcmp(word, "--html") != 0 && strcmp(word, "--perfetto") != 0 &&
        strcmp(word, "--schedule") != 0) {
        return 0;
    }
    o->form = word;
    o->out = value;
    return value != NULL ? 2 : -1;
}

/* An exit code, or -1. */
static int options_read(record_options *o, int argc, char **argv)
{
    char why[512];
    for (int i = 2; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--help") == 0) {
            fb_sim_usage(stdout, "record");
            return 0;
        }
        if (strcmp(argv[i], "--redact") == 0 || strcmp(argv[i], "--times") == 0) {
            if (value == NULL) return fb_sim_misused("record", "a flag without its value", argv[i]);
            if (strcmp(argv[i], "--redact") == 0) o->redact = value;
            if (strcmp(argv[i], "--times") == 0 &&
                (!fb_sim_parse_number(value, &o->times) || o->times == 0)) {
                return fb_sim_misused("record", "not a number of times", value);
            }
            i++;
        } else if (argv[i][0] == '-') {
            int taken = picture_read(o, argv[i], value);
            if (taken == 0) return fb_sim_misused("record", "no flag of this name", argv[i]);
            if (taken < 0)
                return fb_sim_misused("record", "a flag without its value, or one that is none",
                                      argv[i]);
            i += taken - 1;
        } else if (!fb_sim_record_files_add(&o->files, argv[i], why, sizeof why)) {
            return fb_sim_misused("record", why, NULL);
        }
    }
    if (o->files.count == 0) return fb_sim_misused("record", "which FILE?", NULL);
    if (o->form != NULL && strcmp(o->form, "--schedule") == 0 && !o->force &&
        access(o->out, F_OK) == 0) {
        return fb_sim_misused("record", "there is a file already (--force writes over it)", o->out);
    }
    if (o->redact != NULL && o->form != NULL)
        return fb_sim_misused("record", "--redact or a picture", NULL);
    if (o->redact != NULL && (o->files.count != 1 || o->io->hash == NULL)) {
        return fb_sim_misused("record",
                              o->io->hash == NULL ? "only `faberio sim record` redacts"
                                                  : "--redact takes one file",
                              NULL);
    }
    return -1;
}

static void line(const char *path, const fb_sim_replay *r, bool whole)
{
    char id[33];
    fb_hex_text(r->header.node.b, sizeof r->header.node.b, id);
    printf("%s: node %s, %s%s: %" PRIu64 " steps, %" PRIu64 " starts, %" PRIu64
           " outputs; %s%s%s\n",
           path, id, r->header.program, r->header.redacted ? ", redacted" : "", r->steps, r->starts,
           r->outputs, r->over == FB_SIM_REPLAY_DIFFERS ? "DIFFERS: " : "", r->why,
           whole ? "" : "; not ended by the node");
}

typedef struct outcome {
    fb_sim_replayed worst;
    uint64_t steps;
    const char *check; /* that a history of several nodes violates; NULL: none */
    fb_hash128 hash;   /* of the files' hashes, in their order */
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

/* Pictures. */

static bool show(record_options *o, const fb_sim_world *world)
{
    fb_sim_span span = o->span;
    span.to = o->to != 0 && o->to < world->steps ? o->to : world->steps;
    span.from = fb_max_u64(fb_sim_record_from(world->record, world->steps), o->from);
    uint64_t last = o->last;
    if (last == 0 && o->from == 0 && strcmp(o->form, "--html") == 0) last = PAGE_STEPS;
    if (last != 0 && last < span.to) span.from = fb_max_u64(span.from, span.to - last + 1);
    if (span.to + 1 < span.from) span.from = span.to + 1;
    if (span.nodes == 0) span.nodes = UINT64_MAX;
    span.memory = calloc((size_t)(span.to - span.from) + 2, sizeof *span.memory);
    fb_sim_out *out = span.memory != NULL ? fb_sim_out_open(o->out) : NULL;
    bool whole = out != NULL;
    if (whole) {
        if (strcmp(o->form, "--text") == 0) fb_sim_view_text(world, &span, out);
        if (strcmp(o->form, "--perfetto") == 0) fb_sim_view_perfetto(world, &span, out);
        if (strcmp(o->form, "--html") == 0) fb_sim_view_html(world, &span, NULL, NULL, out);
        whole = fb_sim_out_close(out);
    }
    free(span.memory);
    return whole;
}

/* NULL, or why there is none. */
static const char *schedule_write(const char *path, fb_sim_outline *outline)
{
    if (strcmp(path, "-") == 0) return fb_sim_outline_write(outline, stdout);
    FILE *out = fopen(path, "w");
    if (out == NULL) return strerror(errno);
    const char *wrong = fb_sim_outline_write(outline, out);
    return fclose(out) != 0 && wrong == NULL ? strerror(errno) : wrong;
}

static int picture(record_options *o, outcome *out)
{
    static fb_sim_recorded contents[FB_SIM_RECORDINGS_MAX];
    static fb_span spans[FB_SIM_RECORDINGS_MAX];
    char why[700] = "";
    uint32_t which = 0;
    int code = FB_SIM_EXIT_PASS;
    for (uint32_t i = 0; i < o->files.count && code == FB_SIM_EXIT_PASS; i++) {
        if (!o->io->read(o->io->user, o->files.paths[i], &contents[i], why, sizeof why)) {
            fprintf(stderr, "faberio sim record: %s\n", why);
            code = FB_SIM_EXIT_USAGE;
        }
        spans[i] = fb_span_of(contents[i].bytes, contents[i].len);
    }
    fb_sim_outline *outline = NULL;
    if (code == FB_SIM_EXIT_PASS) {
        bool schedule = strcmp(o->form, "--schedule") == 0;
        if (schedule) outline = fb_sim_outline_create();
        if (schedule && outline == NULL) fb_sim_fail_resource("memory of this machine");
        fb_sim_world *world = fb_sim_merge(spans, o->files.count, STEPS_SHOWN, outline, &out->worst,
                                           &which, why, sizeof why);
        if (world == NULL) {
            fprintf(stderr, "faberio sim record: %s: %s\n", o->files.paths[which], why);
            if (out->worst != FB_SIM_REPLAY_DIFFERS) code = FB_SIM_EXIT_USAGE;
        } else {
            out->steps = world->steps;
            out->check = world->check;
            if (world->result != FB_SIM_PASS)
                fprintf(stderr, "%s: %s\n", world->check, world->detail);
            out->hash = fb_sim_trace_hash(&world->trace);
            const char *wrong = schedule         ? schedule_write(o->out, outline)
                                : show(o, world) ? NULL
                                                 : "it cannot be written";
            if (wrong != NULL) {
                fprintf(stderr, "faberio sim record: %s: %s\n", o->out, wrong);
                code = FB_SIM_EXIT_USAGE;
            }
            fb_sim_merge_close(world);
        }
    }
    fb_sim_outline_free(outline);
    for (uint32_t i = 0; i < o->files.count; i++) free(contents[i].bytes);
    return code;
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
        if (o.form != NULL) code = picture(&o, &out);
        for (uint32_t i = 0; o.form == NULL && i < o.files.count && code == FB_SIM_EXIT_PASS; i++) {
            if (!one_file(&o, o.files.paths[i], &out)) code = FB_SIM_EXIT_USAGE;
        }
        if (code == FB_SIM_EXIT_PASS &&
            (o.out == NULL || strcmp(o.out, "-") != 0 || strcmp(o.form, "--text") == 0)) {
            uint64_t ns = fb_sim_processor_ns() - before;
            char hash[33];
            fb_sim_result result = out.worst == FB_SIM_REPLAY_DIFFERS    ? FB_SIM_NONDETERMINISM
                                   : out.worst == FB_SIM_REPLAY_RESOURCE ? FB_SIM_RESOURCE
                                   : out.check != NULL                   ? FB_SIM_SAFETY
                                                                         : FB_SIM_PASS;
            const char *check = result == FB_SIM_NONDETERMINISM ? "replay" : out.check;
            fb_sim_trace_text(out.hash, hash);
            printf("{\"result\":\"%s\",\"seed\":null,\"events\":%" PRIu64
                   ",\"hash\":\"%s\",\"check\":%s%s%s,\"stall\":null,\"schedule\":null,"
                   "\"events_per_s\":%" PRIu64 "}\n",
                   fb_sim_result_name(result), out.steps, hash, check != NULL ? "\"" : "",
                   check != NULL ? check : "null", check != NULL ? "\"" : "",
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
