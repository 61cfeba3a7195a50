/* SPDX-License-Identifier: Apache-2.0 */
/* With arguments: `faberio sim` with the toy in the place of the core, and its defects as planted
 * bugs (docs/VIEWS.md has the tutorial).
 *
 * Without: tests the adversary: for each defect of the toy node there is a fault without which it
 * passes and with which it is found. Without a defect it passes under all of these faults. */
#include <stdio.h>
#include <stdlib.h>

#include "sim/flags.h"
#include "sim/main_sim.h"
#include "sim/run.h"
#include "sim/toys/toy.h"

#define SEEDS  2u
#define EVENTS 16000u

typedef struct toy_case {
    const char *name;
    fb_toy_defect defect;
    uint32_t faults[2]; /* under which it is found, counted from 1; ALWAYS: whatever the weather */
} toy_case;

#define FAULT(id) (FB_SIM_FAULT_##id + 1)
#define ALWAYS    UINT32_MAX

enum {
    FB_SIM_FAULT_ANY = -2, /* ALWAYS, less one */
    FB_SIM_FAULT_NONE = -1
};

#define ONE(a)                                                                                     \
    {                                                                                              \
        (uint32_t) FAULT(a)                                                                        \
    }
#define TWO(a, b)                                                                                  \
    {                                                                                              \
        (uint32_t) FAULT(a), (uint32_t)FAULT(b)                                                    \
    }
#define PICK(a, b, which, ...)        which
#define FAULTS(...)                   PICK(__VA_ARGS__, TWO, ONE, none)(__VA_ARGS__)
#define X(id, name, set, text, check) {name, FB_TOY_##id, set},

static const toy_case cases[] = {
#include "sim/toys/toys.def"
#define DEFECTS (sizeof cases / sizeof cases[0] - 3) /* without these */
    /* Faults that share a defect with another one. */
    {"no-redial", FB_TOY_NO_REDIAL, {FAULT(CUT)}},
    {"no-redial", FB_TOY_NO_REDIAL, {FAULT(CRASH)}},
    {"ticks-are-time", FB_TOY_TICKS_ARE_TIME, {FAULT(TIMER_BURST)}},
};
#undef X

static const uint32_t faults[][2] = {
    {FAULT(DELAY)},
    {FAULT(RATE)},
    {FAULT(SEGMENT)},
    {FAULT(CORRUPT)},
    {FAULT(TRUNCATE)},
    {FAULT(CUT)},
    {FAULT(SPLIT)},
    {FAULT(ISOLATE)},
    {FAULT(ONEWAY)},
    {FAULT(FLAP)},
    {FAULT(CRASH)},
    {FAULT(PAUSE)},
    {FAULT(ROLLBACK)},
    {FAULT(WRITE_FAIL)},
    {FAULT(READ_LATE)},
    {FAULT(DRIFT)},
    {FAULT(CLOCK_STEP)},
    {FAULT(SUSPEND)},
    {FAULT(CRASH), FAULT(LOSE_UNSYNCED)},
    {FAULT(HALF_OPEN), FAULT(CRASH)},
    {FAULT(RING)},
    {FAULT(BRIDGE)},
    {FAULT(NONTRANSITIVE)},
    {FAULT(TIMER_EARLY)},
    {FAULT(TIMER_LATE)},
    {FAULT(TIMER_BURST)},
    {FAULT(TIMER_STARVE)},
    {FAULT(TIMER_COALESCE)},
    {FAULT(REPLAY)},
    {FAULT(DUP)},
    {FAULT(STALE_SESSION)},
    {FAULT(LOSS)},
    {FAULT(REORDER)},
    {FAULT(KILL_RECOVERY), FAULT(CRASH)},
    {FAULT(HOT_KEY)},
    {FAULT(SAME_ID)},
    {FAULT(GIANT_VALUES)},
    {FAULT(RETRY_STORM)},
    {FAULT(CLIENT_VANISH)},
    {FAULT(CLIENT_CUT)},
    {FAULT(STALE_CLIENT)},
};

/* Those that are about frames of a carrier. */
static bool frames(fb_toy_defect defect)
{
    return defect == FB_TOY_ONCE_ONLY || defect == FB_TOY_ANY_SESSION;
}

/* How many of the first seeds fail; with `enough`, no more are tried after so many failures. */
static unsigned failures(fb_toy_defect defect, const uint32_t only[2], uint64_t seeds,
                         unsigned enough)
{
    unsigned failed = 0;
    const char *loud = getenv("FB_TOYS_LOUD");
    fb_toy_defect_now = defect;
    for (uint64_t seed = 1; seed <= seeds && failed < enough; seed++) {
        fb_sim_config config = fb_sim_config_default();
        config.seed = (fb_seed){seed, 0};
        config.events = EVENTS;
        /* With a third node what a dead link does not carry finds another way. */
        if (defect == FB_TOY_NO_PATIENCE) config.nodes = 2;
        config.faults = only[0] != 0;
        for (uint32_t i = 0; i < 2; i++) {
            if (only[i] != 0) fb_sim_faults_add(&config.only, only[i] - 1);
        }
        config.quiet = loud == NULL;
        config.carriers_of_16 = frames(defect) ? 16 : 0;
        config.reference = false;
        fb_sim_verdict verdict;
        if (!fb_sim_run(&config, &verdict)) fb_sim_fail_resource("memory of this machine");
        failed += verdict.result != FB_SIM_PASS;
    }
    return failed;
}

/* Faults that bring about what a defect takes for granted as well, by their side effects. */
static const struct {
    fb_toy_defect defect;
    uint32_t fault;
} also[] = {
    {FB_TOY_NO_CHECKSUM, FAULT(TRUNCATE)}, /* what follows stands where the tail was */
    {FB_TOY_NO_REDIAL, FAULT(SPLIT)},      /* who is unheard is left */
    {FB_TOY_COUNTS_TICKS, FAULT(SPLIT)},   /* nobody is heard for long */
    {FB_TOY_COUNTS_TICKS, FAULT(ISOLATE)},
    {FB_TOY_TICKS_ARE_TIME, FAULT(SPLIT)},
    {FB_TOY_TICKS_ARE_TIME, FAULT(TIMER_BURST)},
    {FB_TOY_FORGETS_COUNTER, ALWAYS}, /* the clocks are set right whenever a round is healed */
};

static bool is_declared(const toy_case *c, const uint32_t set[2])
{
    for (size_t i = 0; i < sizeof also / sizeof also[0]; i++) {
        if (also[i].defect != c->defect) continue;
        if (also[i].fault == ALWAYS || also[i].fault == set[0]) return true;
    }
    return false;
}

/* True when a set has a fault under which the defect is said to be found. */
static bool is_own(const toy_case *c, const uint32_t set[2])
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].defect != c->defect) continue;
        for (uint32_t k = 0; k < 2; k++) {
            if (set[k] != 0 && set[k] == cases[i].faults[0]) return true;
        }
    }
    return false;
}

/* Which of the other faults find a defect: none, but for those that are declared. A defect that any
 * weather shows says nothing of the fault that it is there for. */
static int matrix(void)
{
    unsigned wrong = 0;
    for (size_t i = 0; i < DEFECTS; i++) {
        const toy_case *c = &cases[i];
        if (c->faults[0] == 0 || c->faults[0] == ALWAYS) continue;
        printf("%-22s", c->name);
        for (size_t k = 0; k < sizeof faults / sizeof faults[0]; k++) {
            if (is_own(c, faults[k]) || failures(c->defect, faults[k], 1, 1) == 0) continue;
            bool right = is_declared(c, faults[k]);
            wrong += !right;
            printf(" %s", fb_sim_fault_rows[faults[k][0] - 1].name);
            if (faults[k][1] != 0) printf("+%s", fb_sim_fault_rows[faults[k][1] - 1].name);
            if (!right) printf(" <- not declared");
        }
        printf("\n");
        fflush(stdout);
    }
    return wrong == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "matrix") == 0) return matrix();
    if (argc > 1 && strcmp(argv[1], "export") == 0) {
        return fb_sim_refuse("a toy has no messages", argv[1]);
    }
    if (argc > 1) return fb_sim_main(argc, argv);
    static const uint32_t none[2] = {0, 0};
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        unsigned failed = failures(FB_TOY_SOUND, faults[i], SEEDS, SEEDS);
        if (failed == 0) continue;
        wrong++;
        printf("sound toy: %u of %u seeds fail under fault set %zu\n", failed, SEEDS, i);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const toy_case *c = &cases[i];
        if (c->faults[0] == 0) continue; /* nothing in a run shows it */
        bool any = c->faults[0] == ALWAYS;
        unsigned without = failures(c->defect, none, SEEDS, SEEDS);
        unsigned with =
            any ? without
                : failures(c->defect, c->faults, (c->faults[1] != 0 ? 32 : 16) * SEEDS, 1);
        /* Of two faults the second alone does not show it. */
        static uint32_t second[2];
        second[0] = c->faults[1];
        bool alone = c->faults[1] != 0 && failures(c->defect, second, SEEDS, 1) != 0;
        bool right = with != 0 && (any || without == 0) && !alone;
        printf("%-22s in good weather %u of %u seeds fail, under its fault it is %sfound%s\n",
               c->name, without, SEEDS, with != 0 ? "" : "not ", right ? "" : "   <- wrong");
        wrong += !right;
    }
    return wrong == 0 ? 0 : 1;
}
