/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step/diff.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/core/effect.h"
#include "sim/flags.h"
#include "sim/main_sim.h"
#include "sim/schedule/schedule.h"
#include "sim/usage.h"
#include "sim/view/note.h"

#define WORDS_MAX     64
#define DIFF_LINE_MAX 256

/* One of the two: a program with words, and what it writes. */
typedef struct side {
    const char *name; /* as given */
    const char *program;
    char self[PATH_MAX];
    char *own; /* a copy of its word, cut into words */
    char *words[WORDS_MAX];
    int count;
    pid_t process;
    FILE *from;
    char line[DIFF_LINE_MAX];
    uint64_t step; /* of the last line */
    uint64_t word[FB_SIM_DIFF_WORDS];
    uint8_t *bytes;
    size_t room;
} side;

static bool word_add(side *s, char *word)
{
    if (s->count == WORDS_MAX - 8) return false;
    s->words[s->count++] = word;
    return true;
}

static bool is_program(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

static bool side_read(side *s, const char *word, int argc, char **argv)
{
    static char seed_flag[] = "--seed";
    *s = (side){.name = word, .process = -1};
    ssize_t len = readlink("/proc/self/exe", s->self, sizeof s->self - 1);
    if (len <= 0) return false;
    s->program = s->self;
    s->own = strdup(word);
    if (s->own == NULL) fb_sim_fail_resource("memory of this machine");
    fb_sim_config config;
    bool whole = true;
    if (strchr(word, ' ') != NULL || word[0] == '-') {
        char *rest = NULL;
        char *w = strtok_r(s->own, " ", &rest);
        if (w != NULL && is_program(w) && strchr(w, '/') != NULL) {
            s->program = w;
            w = strtok_r(NULL, " ", &rest);
        }
        for (; w != NULL; w = strtok_r(NULL, " ", &rest)) {
            whole = word_add(s, w) && whole;
        }
    } else if (fb_sim_parse_seed(word, &config)) {
        whole = word_add(s, seed_flag) && word_add(s, s->own);
    } else if (is_program(word)) {
        s->program = s->own;
    } else {
        whole = word_add(s, s->own);
    }
    for (int i = 0; i < argc; i++) whole = word_add(s, argv[i]) && whole;
    return whole;
}

static void side_start(side *s, const char *what, uint64_t from, uint64_t to)
{
    char program[] = "faberio", sim[] = "sim", verb[] = "diff", mode[32], first[24], last[24];
    snprintf(mode, sizeof mode, "%s", what);
    snprintf(first, sizeof first, "%llu", (unsigned long long)from);
    snprintf(last, sizeof last, "%llu", (unsigned long long)to);
    /* The program of nodes has the simulator's verbs behind a word. */
    const char *slash = strrchr(s->program, '/');
    bool of_nodes = strcmp(slash == NULL ? s->program : slash + 1, program) == 0;
    char *arguments[WORDS_MAX + 8] = {program};
    int count = 1;
    if (of_nodes) arguments[count++] = sim;
    arguments[count++] = verb;
    arguments[count++] = mode;
    arguments[count++] = first;
    arguments[count++] = last;
    memcpy(arguments + count, s->words, (size_t)s->count * sizeof s->words[0]);
    int ends[2];
    if (pipe(ends) != 0) fb_sim_fail_resource("pipes");
    fflush(NULL);
    s->process = fork();
    if (s->process < 0) fb_sim_fail_resource("processes");
    if (s->process == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv(s->program, arguments);
        fprintf(stderr, "faberio sim: cannot run %s: %s\n", s->program, strerror(errno));
        _exit(FB_SIM_EXIT_USAGE);
    }
    close(ends[1]);
    s->from = fdopen(ends[0], "rb");
    if (s->from == NULL) fb_sim_fail_resource("pipes");
}

static void side_stop(side *s)
{
    if (s->from != NULL) fclose(s->from);
    s->from = NULL;
    if (s->process > 0) {
        kill(s->process, SIGKILL);
        waitpid(s->process, NULL, 0);
    }
    s->process = -1;
}

/* It has ended by itself: whether it did what was asked. */
static bool side_ended_well(side *s)
{
    int status = 0;
    fclose(s->from);
    s->from = NULL;
    bool waited = waitpid(s->process, &status, 0) == s->process;
    s->process = -1;
    return waited && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void side_free(side *s)
{
    side_stop(s);
    free(s->own);
    free(s->bytes);
}

/* A checkpoint. False: the side has failed, and said why. */
static bool line_read(side *s)
{
    char kind;
    unsigned long long step;
    if (fgets(s->line, sizeof s->line, s->from) == NULL) return false;
    if (sscanf(s->line, "%c %llu", &kind, &step) != 2) return false;
    s->step = step;
    return true;
}

static bool step_read(side *s)
{
    if (fread(s->word, sizeof s->word[0], FB_SIM_DIFF_WORDS, s->from) != FB_SIM_DIFF_WORDS) {
        return false;
    }
    size_t need = (size_t)(s->word[FB_SIM_DIFF_EVENT_BYTES] + s->word[FB_SIM_DIFF_EFFECT_BYTES]);
    if (need > s->room) {
        free(s->bytes);
        s->room = need * 2;
        s->bytes = malloc(s->room);
        if (s->bytes == NULL) fb_sim_fail_resource("memory of this machine");
    }
    return need == 0 || fread(s->bytes, 1, need, s->from) == need;
}

/* What differs, in words; of bytes the two values. */
typedef struct difference {
    char what[160];
    unsigned a, b;
    bool is_byte;
} difference;

static bool bytes_differ(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len, size_t *at)
{
    size_t len = a_len < b_len ? a_len : b_len;
    *at = 0;
    while (*at < len && a[*at] == b[*at]) (*at)++;
    return *at < len || a_len != b_len;
}

static void byte_named(difference *d, const char *of, size_t at, const uint8_t *a, size_t a_len,
                       const uint8_t *b, size_t b_len)
{
    if (at == a_len || at == b_len) {
        snprintf(d->what, sizeof d->what, "%s: %zu bytes and %zu", of, a_len, b_len);
        return;
    }
    d->is_byte = true;
    d->a = a[at];
    d->b = b[at];
    snprintf(d->what, sizeof d->what, "%s, byte %zu", of, at);
}

static const char *effect_name(uint32_t kind)
{
    const char *name = kind == 0 ? NULL : fb_sim_effect_name(kind);
    if (name != NULL) return name;
    return kind == FB_FX_OBSERVE ? "observe" : kind == FB_FX_LOG ? "log" : "?";
}

/* The first effect that is another one. */
static bool effects_differ(const side *a, const side *b, difference *d)
{
    const uint8_t *x = a->bytes + a->word[FB_SIM_DIFF_EVENT_BYTES];
    const uint8_t *y = b->bytes + b->word[FB_SIM_DIFF_EVENT_BYTES];
    size_t x_left = (size_t)a->word[FB_SIM_DIFF_EFFECT_BYTES];
    size_t y_left = (size_t)b->word[FB_SIM_DIFF_EFFECT_BYTES];
    for (unsigned number = 0; x_left != 0 || y_left != 0; number++) {
        fb_effect fx, fy;
        char of[80];
        if (x_left == 0 || y_left == 0) {
            snprintf(d->what, sizeof d->what, "effect %u is there once only", number);
            return true;
        }
        memcpy(&fx, x, sizeof fx);
        memcpy(&fy, y, sizeof fy);
        snprintf(of, sizeof of, "effect %u (%s)", number, effect_name(fx.kind));
        if (fx.kind != fy.kind || fx.a != fy.a || fx.b != fy.b || fx.c != fy.c) {
            snprintf(d->what, sizeof d->what, "%s and %s: its kind or numbers", of,
                     effect_name(fy.kind));
            return true;
        }
        size_t at;
        if (bytes_differ(x + sizeof fx, fx.len, y + sizeof fy, fy.len, &at)) {
            byte_named(d, of, at, x + sizeof fx, fx.len, y + sizeof fy, fy.len);
            return true;
        }
        x += sizeof fx + fx.len;
        y += sizeof fy + fy.len;
        x_left -= sizeof fx + fx.len;
        y_left -= sizeof fy + fy.len;
    }
    return false;
}

static bool steps_differ(const side *a, const side *b, difference *d)
{
    static const struct {
        int word;
        const char *name;
    } heads[] = {
        {FB_SIM_DIFF_STEP, "number of the step"},
        {FB_SIM_DIFF_NODE, "node"},
        {FB_SIM_DIFF_KIND, "kind of event"},
        {FB_SIM_DIFF_MONO, "monotonic time of the event"},
        {FB_SIM_DIFF_WALL, "wall clock of the event"},
        {FB_SIM_DIFF_A, "number a of the event"},
        {FB_SIM_DIFF_B, "number b of the event"},
        {FB_SIM_DIFF_C, "number c of the event"},
    };
    *d = (difference){.is_byte = false};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        uint64_t x = a->word[heads[i].word], y = b->word[heads[i].word];
        if (x == y) continue;
        snprintf(d->what, sizeof d->what, "%s: %llu and %llu", heads[i].name, (unsigned long long)x,
                 (unsigned long long)y);
        return true;
    }
    size_t at;
    size_t x_len = (size_t)a->word[FB_SIM_DIFF_EVENT_BYTES];
    size_t y_len = (size_t)b->word[FB_SIM_DIFF_EVENT_BYTES];
    if (bytes_differ(a->bytes, x_len, b->bytes, y_len, &at)) {
        byte_named(d, "event", at, a->bytes, x_len, b->bytes, y_len);
        return true;
    }
    if (effects_differ(a, b, d)) return true;
    if (a->word[FB_SIM_DIFF_DIGEST_LO] == b->word[FB_SIM_DIFF_DIGEST_LO] &&
        a->word[FB_SIM_DIFF_DIGEST_HI] == b->word[FB_SIM_DIFF_DIGEST_HI]) {
        return false;
    }
    snprintf(d->what, sizeof d->what, "digest of the node's state; all it did is equal");
    return true;
}

static void closing(bool equal, uint64_t base, const side *a, const difference *d, bool found)
{
    printf("{\"result\":\"%s\",\"seed\":null,\"events\":%llu,\"hash\":null,\"check\":%s,"
           "\"stall\":null,\"schedule\":null,\"events_per_s\":0,\"equal_to\":%llu",
           equal ? "pass" : "nondeterminism", (unsigned long long)base,
           equal ? "null" : "\"same-hash\"", (unsigned long long)base);
    if (found) {
        printf(",\"step\":%llu,\"node\":\"%s\",\"event\":\"%s\",\"what\":\"%s\"",
               (unsigned long long)a->word[FB_SIM_DIFF_STEP],
               fb_sim_name((uint32_t)a->word[FB_SIM_DIFF_NODE]),
               fb_sim_event_name((uint8_t)a->word[FB_SIM_DIFF_KIND]), d->what);
        if (d->is_byte) printf(",\"a\":\"%02x\",\"b\":\"%02x\"", d->a, d->b);
    }
    printf("}\n");
}

/* The stretch in which they part. Returns the exit code. */
static int look_closer(side *a, side *b, uint64_t base, uint64_t to)
{
    side_start(a, "--side-steps", base + 1, to);
    side_start(b, "--side-steps", base + 1, to);
    difference d;
    uint64_t last = base;
    bool x, y;
    for (;;) {
        x = step_read(a);
        y = step_read(b);
        if (!x || !y) break;
        if (steps_differ(a, b, &d)) {
            printf("step %llu of %s, %s: %s", (unsigned long long)a->word[FB_SIM_DIFF_STEP],
                   fb_sim_name((uint32_t)a->word[FB_SIM_DIFF_NODE]),
                   fb_sim_event_name((uint8_t)a->word[FB_SIM_DIFF_KIND]), d.what);
            if (d.is_byte) printf(": %02x and %02x", d.a, d.b);
            printf("\n");
            closing(false, last, a, &d, true);
            return FB_SIM_EXIT_NONDETERMINISM;
        }
        last = a->word[FB_SIM_DIFF_STEP];
    }
    /* The one that goes on may stand in the middle of a write. */
    if ((!x && !side_ended_well(a)) || (!y && !side_ended_well(b))) {
        return fb_sim_refuse("one of the two could not run", a->name);
    }
    printf("%s\n", x == y ? "the steps are equal; the runs end differently"
                   : x    ? "the second run ends; the first goes on"
                          : "the first run ends; the second goes on");
    closing(false, last, a, &d, false);
    return FB_SIM_EXIT_NONDETERMINISM;
}

static int compare(side *a, side *b)
{
    uint64_t base = 0;
    side_start(a, "--side-checkpoints", 0, 0);
    side_start(b, "--side-checkpoints", 0, 0);
    for (;;) {
        if (!line_read(a) || !line_read(b)) {
            return fb_sim_refuse("one of the two could not run", a->name);
        }
        if (strcmp(a->line, b->line) != 0) break;
        base = a->step;
        if (a->line[0] == 'e') {
            printf("equal: %llu steps, both end with %s", (unsigned long long)base,
                   strchr(strchr(a->line + 2, ' ') + 1, ' ') + 1);
            closing(true, base, a, NULL, false);
            return 0;
        }
    }
    uint64_t to = a->step > b->step ? a->step : b->step;
    side_stop(a);
    side_stop(b);
    printf("equal up to step %llu; they part before %llu\n", (unsigned long long)base,
           (unsigned long long)to);
    return look_closer(a, b, base, to);
}

int fb_sim_diff_main(int argc, char **argv)
{
    if (argc >= 5 && strncmp(argv[2], "--side-", 7) == 0) {
        uint64_t from = 0, to = 0;
        if (!fb_sim_parse_number(argv[3], &from) || !fb_sim_parse_number(argv[4], &to)) {
            return fb_sim_misused("diff", "not a number", argv[3]);
        }
        bool checkpoints = strcmp(argv[2], "--side-checkpoints") == 0;
        return fb_sim_diff_side(argc, argv, 5, checkpoints, from, to);
    }
    if (argc < 4) return fb_sim_misused("diff", "two runs are missing", NULL);
    side a, b;
    bool whole = side_read(&a, argv[2], argc - 4, argv + 4);
    whole = side_read(&b, argv[3], argc - 4, argv + 4) && whole;
    int code = whole ? compare(&a, &b) : fb_sim_misused("diff", "too many words", NULL);
    side_free(&a);
    side_free(&b);
    return code;
}
