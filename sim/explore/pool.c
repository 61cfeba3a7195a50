/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/explore/pool.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/base/word.h"
#include "sim/schedule/verbs.h"

static void path_of(const fb_sim_pool *pool, uint64_t id, char *out)
{
    snprintf(out, PATH_MAX, "%s/%llu.sched", pool->folder, (unsigned long long)id);
}

/* A trait is worth the less the more runs have it. */
#define WORTH 65536u

static uint64_t worth_of(const fb_sim_pool *pool, const uint64_t *traits)
{
    uint64_t worth = 0;
    for (uint32_t i = 0; i < FB_SIM_SEEN_TRAITS / 64; i++) {
        for (uint64_t word = traits[i]; word != 0; word &= word - 1) {
            uint32_t times = pool->shown[i * 64 + fb_word_lowest(word)];
            worth += WORTH / (times == 0 ? 1 : times);
        }
    }
    return worth;
}

/* Beside its steps every run costs its beginning. */
#define STEPS_BESIDE 500u
/* Of a member of an earlier hunt. */
#define STEPS_UNKNOWN 10000u

/* How much a step of a run of one of its mutations is worth. */
static uint64_t promise(const fb_sim_pool_member *m)
{
    return m->worth * WORTH / (m->steps + STEPS_BESIDE) * (m->paid + 2) / (m->tried + 2) + 1;
}

static void drop(fb_sim_pool *pool, uint32_t at)
{
    char path[PATH_MAX];
    if (pool->folder[0] != 0) {
        path_of(pool, pool->members[at].id, path);
        unlink(path);
    }
    fb_sim_plan_free(&pool->members[at].plan);
    pool->members[at] = pool->members[--pool->count];
}

/* What was rare when a member came may have become common. */
static void look_again(fb_sim_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        fb_sim_pool_member *m = &pool->members[i];
        if (m->known) m->worth = worth_of(pool, m->traits);
    }
}

static fb_sim_pool_member *join(fb_sim_pool *pool, fb_sim_plan *plan, uint64_t id)
{
    if (pool->count == FB_SIM_POOL_MAX) {
        look_again(pool);
        uint32_t least = 0;
        for (uint32_t i = 1; i < pool->count; i++) {
            if (promise(&pool->members[i]) < promise(&pool->members[least])) least = i;
        }
        drop(pool, least);
    }
    fb_sim_pool_member *m = &pool->members[pool->count++];
    *m = (fb_sim_pool_member){.plan = *plan, .id = id, .steps = STEPS_UNKNOWN, .worth = WORTH};
    return m;
}

uint32_t fb_sim_pool_saw(fb_sim_pool *pool, const fb_sim_seen *seen)
{
    uint32_t news = 0;
    for (uint32_t i = 0; i < FB_SIM_SEEN_TRAITS / 64; i++) {
        for (uint64_t word = seen->traits[i]; word != 0; word &= word - 1) {
            news += pool->shown[i * 64 + fb_word_lowest(word)]++ == 0;
        }
    }
    return news;
}

static void first_round_gone(fb_sim_plan *plan)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < plan->line_count; i++) {
        if (plan->lines[i].round == 0) continue;
        plan->lines[kept] = plan->lines[i];
        plan->lines[kept++].round--;
    }
    plan->line_count = kept;
    plan->round_count--;
    memmove(plan->rounds, plan->rounds + 1, plan->round_count * sizeof *plan->rounds);
}

void fb_sim_pool_add(fb_sim_pool *pool, fb_sim_plan *plan, uint64_t id, uint64_t steps,
                     const fb_sim_seen *seen)
{
    while (plan->round_count > 1 && plan->line_count > FB_SIM_POOL_LINES_MAX) {
        first_round_gone(plan);
    }
    if (plan->line_count > FB_SIM_POOL_LINES_MAX || plan->round_count == 0) {
        fb_sim_plan_free(plan);
        return;
    }
    if (pool->folder[0] != 0) {
        char path[PATH_MAX];
        path_of(pool, id, path);
        fb_sim_plan_save(path, plan);
    }
    fb_sim_pool_member *m = join(pool, plan, id);
    m->steps = steps;
    m->known = true;
    memcpy(m->traits, seen->traits, sizeof m->traits);
    m->worth = worth_of(pool, m->traits);
}

uint32_t fb_sim_pool_pick(fb_sim_pool *pool, fb_seed seed, uint64_t number)
{
    uint64_t all = 0;
    look_again(pool);
    for (uint32_t i = 0; i < pool->count; i++) all += promise(&pool->members[i]);
    if (all == 0) return UINT32_MAX;
    uint64_t pick = fb_draw_below(seed, FB_SIM_STREAM_EXPLORE, number, UINT64_MAX, all);
    for (uint32_t i = 0; i < pool->count; i++) {
        uint64_t of = promise(&pool->members[i]);
        if (pick < of) return i;
        pick -= of;
    }
    return pool->count - 1;
}

void fb_sim_pool_tried(fb_sim_pool *pool, uint64_t id, bool paid)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        if (pool->members[i].id != id) continue;
        pool->members[i].tried++;
        pool->members[i].paid += paid;
    }
}

/* Members of earlier hunts, in the order in which they came. */
static void read_folder(fb_sim_pool *pool)
{
    uint64_t ids[FB_SIM_POOL_MAX];
    uint32_t count = 0;
    DIR *folder = opendir(pool->folder);
    if (folder == NULL) return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL && count < FB_SIM_POOL_MAX;) {
        char *end = NULL;
        errno = 0;
        uint64_t id = strtoull(entry->d_name, &end, 10);
        if (end != entry->d_name && errno == 0 && strcmp(end, ".sched") == 0) {
            uint32_t at = count++;
            for (; at > 0 && ids[at - 1] > id; at--) ids[at] = ids[at - 1];
            ids[at] = id;
        }
    }
    closedir(folder);
    for (uint32_t i = 0; i < count; i++) {
        char path[PATH_MAX];
        fb_sim_plan plan;
        fb_sim_plan_error error;
        path_of(pool, ids[i], path);
        if (fb_sim_plan_read(path, &plan, &error)) {
            join(pool, &plan, ids[i]);
        } else {
            unlink(path); /* of another version: nobody would ever take it away */
        }
    }
}

bool fb_sim_pool_open(fb_sim_pool *pool, const char *folder)
{
    *pool = (fb_sim_pool){.count = 0};
    pool->members = calloc(FB_SIM_POOL_MAX, sizeof *pool->members);
    pool->shown = calloc(FB_SIM_SEEN_TRAITS, sizeof *pool->shown);
    if (pool->members == NULL || pool->shown == NULL) return false;
    if (folder == NULL) return true;
    snprintf(pool->folder, sizeof pool->folder, "%s", folder);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) return false;
    read_folder(pool);
    return true;
}

void fb_sim_pool_close(fb_sim_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) fb_sim_plan_free(&pool->members[i].plan);
    free(pool->members);
    free(pool->shown);
    *pool = (fb_sim_pool){.count = 0};
}
