/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/schedule/apart.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/mutants.h"

void fb_sim_report_of(const fb_sim_verdict *verdict, fb_sim_report *out)
{
    memset(out, 0, sizeof *out);
    out->result = verdict->result;
    if (verdict->check != NULL) snprintf(out->check, sizeof out->check, "%s", verdict->check);
    snprintf(out->detail, sizeof out->detail, "%.255s", verdict->detail);
    out->events = verdict->events;
    out->sim_ns = verdict->sim_ns;
    out->hash = verdict->hash;
    out->unreached = verdict->unreached;
    out->unreached_first = verdict->unreached_first;
    out->ended = !verdict->stopped;
}

void fb_sim_verdict_of(const fb_sim_report *report, fb_sim_verdict *out)
{
    *out = (fb_sim_verdict){.result = report->result};
    out->check = report->check[0] == 0 ? NULL : report->check;
    snprintf(out->detail, sizeof out->detail, "%s", report->detail);
    out->events = report->events;
    out->sim_ns = report->sim_ns;
    out->hash = report->hash;
    out->unreached = report->unreached;
    out->unreached_first = report->unreached_first;
    out->stopped = !report->ended;
}

_Noreturn void fb_sim_apart_tell(int to, const fb_sim_report *report)
{
    ssize_t n = write(to, report, sizeof *report);
    _exit(n == (ssize_t)sizeof *report ? 0 : FB_SIM_EXIT_RESOURCE);
}

/* Somebody listens to the end of this process, and then it ends as it would have. */
static void fell(int number)
{
    signal(number, SIG_DFL);
    fb_sim_fail_tell("signal");
    raise(number);
}

bool fb_sim_apart_fork(void (*work)(void *of, int to), void *of, fb_sim_apart *out)
{
    int ends[2];
    fflush(NULL);
    if (pipe(ends) != 0) return false;
    pid_t child = fork();
    if (child < 0) {
        close(ends[0]);
        close(ends[1]);
        return false;
    }
    if (child == 0) {
        close(ends[0]);
        /* Its words are nobody's: the verdict comes through the pipe. */
        int nowhere = open("/dev/null", O_RDWR);
        if (nowhere >= 0) {
            dup2(nowhere, STDOUT_FILENO);
            dup2(nowhere, STDERR_FILENO);
        }
        signal(SIGINT, SIG_DFL);
        signal(SIGTERM, SIG_DFL);
        signal(SIGSEGV, fell);
        signal(SIGBUS, fell);
        signal(SIGFPE, fell);
        work(of, ends[1]);
        _exit(FB_SIM_EXIT_RESOURCE);
    }
    close(ends[1]);
    *out = (fb_sim_apart){ends[0], (long)child};
    return true;
}

typedef struct part {
    const fb_sim_plan *plan;
    bool sound;
    uint64_t limit;
} part;

static void play(void *of, int to)
{
    const part *p = of;
#ifdef FB_PLANTED_BUGS
    fb_planted_bug = p->sound || p->plan->bug[0] == 0 ? 0 : fb_sim_mutant_of(p->plan->bug);
#endif
    fb_sim_config config;
    fb_sim_plan_config(p->plan, &config);
    config.quiet = true;
    config.stop_at_step = p->limit;
    fb_sim_verdict verdict;
    fb_sim_report report;
    if (!fb_sim_run(&config, &verdict)) fb_sim_fail_resource("memory of this machine");
    fb_sim_report_of(&verdict, &report);
    fb_sim_apart_tell(to, &report);
}

bool fb_sim_apart_begin(const fb_sim_plan *plan, bool sound, uint64_t limit, fb_sim_apart *out)
{
    part p = {plan, sound, limit};
    return fb_sim_apart_fork(play, &p, out);
}

void fb_sim_apart_end(fb_sim_apart *apart, fb_sim_report *out)
{
    uint8_t *to = (uint8_t *)out;
    size_t used = 0;
    memset(out, 0, sizeof *out);
    while (used < sizeof *out) {
        ssize_t n = read(apart->from, to + used, sizeof *out - used);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        used += (size_t)n;
    }
    close(apart->from);
    int status = 0;
    while (waitpid((pid_t)apart->child, &status, 0) < 0 && errno == EINTR) {
    }
    if (used == sizeof *out) return;
    memset(out, 0, sizeof *out);
    out->ended = true;
    bool resource = WIFEXITED(status) && WEXITSTATUS(status) == FB_SIM_EXIT_RESOURCE;
    out->result = resource ? FB_SIM_RESOURCE : FB_SIM_CRASHED;
    snprintf(out->check, sizeof out->check, "%s",
             resource              ? "simulator-pools"
             : WIFSIGNALED(status) ? "signal"
                                   : "assertion");
}

void fb_sim_apart_kill(fb_sim_apart *apart)
{
    fb_sim_report ignored;
    kill((pid_t)apart->child, SIGKILL);
    fb_sim_apart_end(apart, &ignored);
}

void fb_sim_apart_play(const fb_sim_plan *plan, bool sound, uint64_t limit, fb_sim_report *out)
{
    fb_sim_apart apart;
    if (!fb_sim_apart_begin(plan, sound, limit, &apart)) fb_sim_fail_resource("processes");
    fb_sim_apart_end(&apart, out);
}
