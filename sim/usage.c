/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/usage.h"

#include <string.h>

#include "sim/flags.h"
#include "sim/program.h"

typedef struct verb_text {
    const char *name;
    const char *arguments; /* one form a line */
    const char *summary;
    const char *more; /* flags and what is to be known of them, or NULL */
} verb_text;

#define RUN "(FILE | --seed S [flags of run])"

static const verb_text verbs[] = {
    {"run", "[--seed S] [FLAGS]", "one run; ends with its verdict and its hash",
     "  --seed S             an integer or 40 hex digits; 1 unless told\n"
     "  --nodes N            2 to 64; 5 unless told\n"
     "  --events N           so many steps: 200k, 10m\n"
     "  --duration T         ... or so much virtual time: 90s, 15m\n"
     "  --profile P          default; calm: no faults; dense: half of the links lose, repeat and\n"
     "                       reorder whole frames; plain: every fault and operation in every "
     "round\n"
     "  --only FAULT         no other fault; may be given again\n"
     "  --documents A        the records of node A are documents; none: of no node\n"
     "  --mutant M           with this bug planted (see `mutants`)\n"
     "  --poison BYTE        what fresh memory is filled with: the hash has to stay the same\n"
     "  --fast               the same steps with nobody watching: checks only now and then\n"
     "  --timeline           what happens, a line each\n"
     "  --verbose            the weather of each round\n"
     "  --schedule OUT       the run as a schedule; --force writes over a file\n"},
    {"replay", "FILE [--timeline] [--sound]", "plays a schedule",
     "  --timeline           what happens, a line each\n"
     "  --sound              without its planted bug\n"},
    {"test", "[--sound] DIR|FILE...", "plays a corpus: each has to come to what it expects",
     "  --sound              without the planted bugs: every one has to pass\n"
     "One that does not reach its target any more is named as stale and fails.\n"},
    {"hunt", "[--for T | --seeds A..B] [--jobs J] [--out DIR] [FLAGS]",
     "many runs; failures become schedules in DIR, and lines of its ledger",
     "  --for T              so long: 10m, 8h\n"
     "  --seeds A..B         ... or these seeds\n"
     "  --jobs J             processes; as many as there are processors unless told\n"
     "  --out DIR            ledger, pool and schedules; build/hunt unless told\n"
     "  --explore HOW        random, swarm, priority or pool; swarm for seeds, else pool\n"
     "  --shrink-for T       for each failure at most; 10m unless told, 0s: not at all\n"
     "  --commit ID          what the ledger calls the code\n"
     "  --first              ends with the first failure\n"
     "The flags of run hold for each of them.\n"},
    {"shrink", "FILE -o OUT [--for T]", "a schedule that fails, as small as it gets",
     "  --for T              10m unless told; the best so far is in OUT when it ends\n"},
    {"view", RUN " (--text | --html OUT | --perfetto OUT)", "pictures of a run",
     "  --from STEP, --to STEP, --last N   which part; the run ends at --to\n"
     "  --node A, --kind NAME, --steps     of the text: some nodes, one kind of line, every step\n"
     "  --beside (FILE | SEED)             of the page: a second run next to the first\n"
     "OUT may be -. The last line on standard output is the run's verdict, unless OUT is -.\n"},
    {"diff", "A B [flags of run]", "where two runs part",
     "A, B: a seed, a schedule's FILE, a program of another build, or 'flags of run' in one word,\n"
     "which may begin with a program.\n"
     "The flags behind them hold for both. Exit 13 when the runs part.\n"},
    {"step", RUN " [--json]", "walks through a run, forwards and back",
     "Commands come from standard input, one a line; `help` lists them.\n"},
    {"export", RUN " --vectors OUT [--node A]...", "conformance vectors of a run",
     "What came in with times, and what has to come of it: a line of JSON each (docs/VECTORS.md).\n"
     "  --node A             of these nodes only\n"
     "OUT may be -.\n"},
    {"record",
     "FILE... [--redact OUT] [--text | --html OUT | --perfetto OUT | --schedule OUT | --judge]",
     "what real nodes recorded, replayed",
     "Replays what `faberio run --record PATH` wrote: FILE, or all files of PATH. Each step has "
     "to\n"
     "come to the same effects and the same state; the first that does not is shown.\n"
     "  --key FILE           a key that opens some of them (record.key of the node's directory)\n"
     "  --home DIR           ... of this directory\n"
     "  --times N            replays each so often; the hash has to be the same\n"
     "  --text, --html OUT, --perfetto OUT\n"
     "                       pictures of all of them together, those of several nodes as one run\n"
     "  --schedule OUT       what happened to all of them, for the simulator to play: requests,\n"
     "                       restarts, cut links, clocks that were set; --force writes over a "
     "file\n"
     "  --judge              ... and nothing but what the simulator's checks say of that run\n"
     "  --from STEP, --to STEP, --last N, --node A, --kind NAME, --steps\n"
     "                       which part, as of `view`\n"
     "  --redact OUT         writes the recording (of one file) without what was said: hashes in\n"
     "                       the place of bytes, with the facts and states of each step, under no "
     "key\n"
     "Exit: 0 the same, 10 a check failed, 13 it differs, 12 the core failed, 14 no memory, 2 "
     "usage\n"
     "or no recording.\n"},
    {"bench", "[messages|records|all] [--nodes N] [--degree D] [--events N] [FLAGS]",
     "speed without faults, beside that of a bare event loop",
     "  --degree D           links of each node\n"
     "  --window N           seen ids that a node keeps\n"
     "  --fast               with nobody watching\n"
     "  --stored             messages with records in the simulated stores\n"
     "  --records N          so many; 1,000 unless told\n"},
    {"disk",
     "[--toy log|blob] [--fault F] [--operations N] [--seed S]\n"
     "--calls N [--toy T] [--defect D] [--seed S]\n"
     "--defects | --defect D [--fault F]",
     "a log and a blob store on a disk that fails, crashed at every call", NULL},
    {"checks", "[--seeds A..B [--events N]] [--json]",
     "what is checked at every step; with seeds, how often each looked", NULL},
    {"faults", "[--seeds A..B [--events N] [--matter]]",
     "what can go wrong; with seeds, how often it did",
     "  --matter             and in how many runs it mattered: without it they would be others\n"},
    {"mutants", "", "the planted bugs, and the check that finds each", NULL},
    {"limits", "", "what is not modelled", NULL},
};

#define VERBS (sizeof verbs / sizeof verbs[0])

/* Each of its forms in a line. */
static void forms(FILE *out, const verb_text *verb, const char *before, const char *further)
{
    const char *form = verb->arguments;
    for (bool first = true; first || *form != 0; first = false) {
        size_t len = strcspn(form, "\n");
        fprintf(out, "%s%s%s%.*s\n", first ? before : further, verb->name, len > 0 ? " " : "",
                (int)len, form);
        form += len + (form[len] == '\n');
    }
}

void fb_sim_usage_all(FILE *out)
{
    fputs("usage: faberio sim VERB ...\n\n", out);
    for (size_t i = 0; i < VERBS; i++) {
        forms(out, &verbs[i], "  ", "  ");
        fprintf(out, "      %s\n", verbs[i].summary);
    }
    fputs("\n`faberio sim VERB --help` says more. The last line is one JSON object. Exit: 0 pass,\n"
          "10 safety, 11 liveness, 12 crash, 13 nondeterminism, 14 resource, 15 oracle doubt, 2 "
          "usage.\n",
          out);
}

bool fb_sim_usage(FILE *out, const char *name)
{
    for (size_t i = 0; i < VERBS; i++) {
        if (strcmp(verbs[i].name, name) != 0) continue;
        forms(out, &verbs[i], "usage: faberio sim ", "       faberio sim ");
        fprintf(out, "\n%s.\n", verbs[i].summary);
        if (verbs[i].more != NULL) fputs(verbs[i].more, out);
        return true;
    }
    return false;
}

int fb_sim_misused(const char *verb, const char *what, const char *which)
{
    fb_sim_refuse(what, which);
    for (size_t i = 0; i < VERBS; i++) {
        if (strcmp(verbs[i].name, verb) == 0) {
            forms(stderr, &verbs[i], "usage: faberio sim ", "       faberio sim ");
        }
    }
    fprintf(stderr, "       faberio sim %s --help\n", verb);
    return FB_SIM_EXIT_USAGE;
}
