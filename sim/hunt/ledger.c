/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/hunt/ledger.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/flags.h"
#include "sim/schedule/verbs.h"

static bool path_of(const fb_sim_ledger *ledger, const char *name, char *out, size_t cap)
{
    int n = snprintf(out, cap, "%s/%s", ledger->folder, name);
    return n > 0 && (size_t)n < cap;
}

/* One line in one write: with O_APPEND it is there whole, or not. */
static void line_add(fb_sim_ledger *ledger, const char *text)
{
    char path[PATH_MAX];
    struct stat info;
    if (ledger->full || !path_of(ledger, "ledger.txt", path, sizeof path)) return;
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0) return;
    if (fstat(file, &info) == 0 && info.st_size > (off_t)FB_SIM_LEDGER_BYTES_MAX) {
        ledger->full = true;
        fb_sim_refuse("the ledger is full", path);
    } else {
        ssize_t written = write(file, text, strlen(text));
        if (written < 0 || fdatasync(file) != 0) fb_sim_refuse("cannot be written", path);
    }
    close(file);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_schedule(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return entry->d_name[0] != '.' && len > 6 && strcmp(entry->d_name + len - 6, ".sched") == 0;
}

void fb_sim_ledger_each(const fb_sim_ledger *ledger, void (*at)(void *user, const char *path),
                        void *user)
{
    struct dirent **entries;
    int count = scandir(ledger->folder, &entries, is_schedule, by_name);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        if (path_of(ledger, entries[i]->d_name, path, sizeof path)) at(user, path);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

static void count_file(void *user, const char *path)
{
    (void)path;
    ((fb_sim_ledger *)user)->files++;
}

bool fb_sim_ledger_open(fb_sim_ledger *ledger, const char *folder, const char *commit)
{
    *ledger = (fb_sim_ledger){.next_seed = 1};
    char path[PATH_MAX], line[1024];
    if (strlen(folder) >= sizeof ledger->folder || strlen(commit) >= sizeof ledger->commit) {
        fb_sim_refuse("too long", folder);
        return false;
    }
    snprintf(ledger->folder, sizeof ledger->folder, "%s", folder);
    snprintf(ledger->commit, sizeof ledger->commit, "%s", commit);
    if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
        fb_sim_refuse(strerror(errno), folder);
        return false;
    }
    fb_sim_ledger_each(ledger, count_file, ledger);
    if (!path_of(ledger, "ledger.txt", path, sizeof path)) return false;
    FILE *file = fopen(path, "r");
    if (file == NULL) return errno == ENOENT;
    while (fgets(line, sizeof line, file) != NULL) {
        /* A line that is no line of a ledger is somebody else's, and stays. */
        const char *dots = strncmp(line, "runs ", 5) == 0 ? strstr(line, "..") : NULL;
        uint64_t last = dots == NULL ? 0 : strtoull(dots + 2, NULL, 10);
        if (last != UINT64_MAX && last >= ledger->next_seed) ledger->next_seed = last + 1;
    }
    fclose(file);
    return true;
}

void fb_sim_ledger_runs(fb_sim_ledger *ledger, uint64_t first, uint64_t last, uint64_t events,
                        uint32_t states)
{
    char line[256];
    snprintf(line, sizeof line, "runs %s %llu..%llu %llu %u\n", ledger->commit,
             (unsigned long long)first, (unsigned long long)last, (unsigned long long)events,
             (unsigned)states);
    line_add(ledger, line);
}

bool fb_sim_ledger_failure(fb_sim_ledger *ledger, const fb_sim_plan *plan, const char *seed,
                           uint64_t events, char *path, size_t cap)
{
    char name[96], line[512];
    uint64_t skeleton = fb_sim_plan_skeleton(plan);
    uint32_t lines = fb_sim_plan_size(plan);
    snprintf(name, sizeof name, "%s-%08x.sched", plan->check, (unsigned)(skeleton >> 32));
    ledger->failures++;
    if (!path_of(ledger, name, path, cap)) return false;
    fb_sim_plan known;
    fb_sim_plan_error error;
    bool news = !fb_sim_plan_read(path, &known, &error);
    bool shorter = news || fb_sim_plan_size(&known) > lines;
    if (!news) fb_sim_plan_free(&known);
    if (news && ledger->files >= FB_SIM_LEDGER_FILES_MAX) {
        fb_sim_refuse("no more schedules are kept", ledger->folder);
    } else if (shorter) {
        if (!fb_sim_plan_save(path, plan)) fb_sim_refuse("cannot be written", path);
        ledger->files += news;
    }
    ledger->distinct += news;
    snprintf(line, sizeof line, "failure %s %s %s %llu %u %016llx %s\n", ledger->commit, seed,
             plan->check, (unsigned long long)events, (unsigned)lines, (unsigned long long)skeleton,
             name);
    line_add(ledger, line);
    return news;
}

void fb_sim_ledger_again(fb_sim_ledger *ledger, const char *path, bool fails)
{
    char line[PATH_MAX + 64];
    const char *name = strrchr(path, '/');
    snprintf(line, sizeof line, "again %s %s %s\n", ledger->commit, name == NULL ? path : name + 1,
             fails ? "fails" : "passes");
    line_add(ledger, line);
}
