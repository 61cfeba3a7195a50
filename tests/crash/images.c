/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crash/images.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/base/assert.h"
#include "protocol/base/draw.h"
#include "protocol/base/hash.h"
#include "tests/crash/store_run.h"

#define SECTOR    512u
#define PAGE      4096u
#define FILE_MAX  ((size_t)16 << 20)
#define PARTS_MAX 4096u
#define SEEN      (1u << 18)

/* A part of a write that is not durable: within one sector. */
typedef struct part {
    size_t event;
    uint64_t at;
    size_t len;
    const uint8_t *bytes;
    uint64_t page; /* numbers the page among those that wait */
    bool kept;
} part;

typedef struct images {
    const images_options *o;
    images_report *report;
    uint8_t *base; /* what is durable */
    size_t base_len;
    uint8_t *image;
    part parts[PARTS_MAX];
    size_t part_count;
    uint64_t page_count;
    size_t waiting_len; /* of the file, with everything that waits */
    uint64_t acked, given;
    bool opened;
    bool named[2]; /* in its directory, and that one in the one above */
    size_t event;
    uint64_t seen[SEEN];
    uint64_t seen_count;
} images;

static const fb_seed seed = {UINT64_C(0x696d61676573), 0};

static bool seen_before(images *x, uint64_t key)
{
    FB_ASSERT(x->seen_count < SEEN / 2);
    for (uint64_t i = key | 1;; i++) {
        uint64_t *slot = &x->seen[i % SEEN];
        if (*slot == (key | 1)) return true;
        if (*slot != 0) continue;
        *slot = key | 1;
        x->seen_count++;
        return false;
    }
}

/* The directory as a crash leaves it: the file, or nothing. */
static void directory_make(const images *x, size_t len, bool present)
{
    char path[4200];
    static const char *const leaves[] = {"data.mdb", "lock.mdb", "suspect"};
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", x->o->directory, leaves[i]);
        unlink(path);
    }
    if (!present) return;
    snprintf(path, sizeof path, "%s/data.mdb", x->o->directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    FB_ASSERT(fd >= 0 && write(fd, x->image, len) == (ssize_t)len);
    close(fd);
}

/* What a damaged file was moved to. */
static void asides_remove(const images *x)
{
    char path[4200], leaf[4300];
    for (unsigned n = 1; n < 10; n++) {
        snprintf(path, sizeof path, "%s.damaged-%u", x->o->directory, n);
        snprintf(leaf, sizeof leaf, "%s/data.mdb", path);
        unlink(leaf);
        if (rmdir(path) != 0) return;
    }
}

static bool image_verify(images *x, size_t len, bool present)
{
    directory_make(x, len, present);
    const char *wrong = store_run_verify(x->o->directory, x->acked, x->given, x->opened);
    asides_remove(x);
    if (wrong != NULL && x->report->what == NULL) {
        x->report->what = wrong;
        x->report->what_event = x->event;
    }
    return wrong == NULL;
}

static void image_try(images *x, size_t len, bool present)
{
    x->report->images++;
    uint64_t key = fb_xxh64(x->image, present ? len : 0, x->acked * 1000003 + x->given);
    if (seen_before(x, key + present + 2u * x->opened)) return;
    x->report->distinct++;
    if (!image_verify(x, len, present)) x->report->wrong++;
}

static bool is_over(const images *x)
{
    return x->o->stop_at_first && x->report->what != NULL;
}

/* The file of the parts that are kept; with the length of all of them, or of those kept. */
static void kept_try(images *x)
{
    memset(x->image, 0, x->waiting_len);
    memcpy(x->image, x->base, x->base_len);
    size_t len = x->base_len;
    for (size_t i = 0; i < x->part_count; i++) {
        const part *p = &x->parts[i];
        if (!p->kept) continue;
        memcpy(x->image + p->at, p->bytes, p->len);
        if (p->at + p->len > len) len = (size_t)p->at + p->len;
    }
    image_try(x, len, true);
    if (len != x->waiting_len && !is_over(x)) image_try(x, x->waiting_len, true);
}

static void keep_set(images *x, uint64_t set, bool pages)
{
    for (size_t i = 0; i < x->part_count; i++) {
        x->parts[i].kept = set >> (pages ? x->parts[i].page : i) & 1;
    }
    kept_try(x);
}

static void keep_drawn(images *x, unsigned occurrence, bool pages)
{
    /* Half of them, few, or most. */
    static const uint64_t shares[] = {8, 1, 15};
    for (size_t i = 0; i < x->part_count; i++) {
        uint64_t who = pages ? x->parts[i].page : i;
        x->parts[i].kept = fb_draw_below(seed, pages ? 1 : 2, x->event << 16 | who, occurrence,
                                         16) < shares[occurrence % 3];
    }
    kept_try(x);
}

/* Every beginning of the order of calls; all but one page, one page alone. */
static void keep_shaped(images *x)
{
    for (size_t n = 0; n <= x->part_count && !is_over(x); n++) {
        bool edge = n == 0 || n == x->part_count || x->parts[n].event != x->parts[n - 1].event;
        for (size_t i = 0; edge && i < x->part_count; i++) x->parts[i].kept = i < n;
        if (edge) kept_try(x);
    }
    for (uint64_t page = 0; page < 2 * x->page_count && !is_over(x); page++) {
        for (size_t i = 0; i < x->part_count; i++) {
            x->parts[i].kept = (x->parts[i].page == page / 2) == (page % 2 != 0);
        }
        kept_try(x);
    }
}

static void members_try(images *x, uint64_t members, bool pages)
{
    bool all = members <= x->o->bits;
    uint64_t sets = all ? UINT64_C(1) << members : x->o->draws;
    for (uint64_t i = 0; i < sets && !is_over(x); i++) {
        if (all) {
            keep_set(x, i, pages);
        } else {
            keep_drawn(x, (unsigned)i, pages);
        }
    }
}

static void point_try(images *x)
{
    x->report->points++;
    bool all = x->part_count <= x->o->bits;
    x->report->points_all += all;
    if (!x->named[0] || !x->named[1]) image_try(x, 0, false);
    if (!all) {
        keep_shaped(x);
        members_try(x, x->page_count, true);
    }
    members_try(x, x->part_count, false);
}

/* In a process of its own, which such a file may well end. */
static bool image_survives(images *x, size_t len)
{
    pid_t pid = fork();
    FB_ASSERT(pid >= 0);
    if (pid == 0) {
        FB_ASSERT(freopen("/dev/null", "w", stderr) != NULL);
        _exit(image_verify(x, len, true) ? 0 : 1);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The forced write torn inside its sector. */
static void tears_measure(images *x, const event *e)
{
    images_report keep = *x->report;
    for (size_t cut = 8; cut < e->len && x->part_count == 0; cut += 8) {
        for (int head = 0; head < 2; head++) {
            size_t len = x->base_len > e->at + e->len ? x->base_len : (size_t)e->at + e->len;
            memcpy(x->image, x->base, x->base_len);
            size_t from = head ? 0 : cut, behind = head ? cut : e->len;
            memcpy(x->image + e->at + from, e->bytes + from, behind - from);
            bool right = image_survives(x, len);
            keep.head_torn += head;
            keep.tail_torn += !head;
            keep.head_wrong += head && !right;
            keep.tail_wrong += !head && !right;
        }
    }
    *x->report = keep;
}

/* Bookkeeping. */

static void parts_add(images *x, size_t event_number, const event *e)
{
    for (size_t done = 0; done < e->len;) {
        FB_ASSERT(x->part_count < PARTS_MAX);
        uint64_t at = e->at + done;
        size_t len = SECTOR - at % SECTOR;
        if (len > e->len - done) len = e->len - done;
        part *p = &x->parts[x->part_count];
        bool same =
            x->part_count > 0 && p[-1].event == event_number && p[-1].at / PAGE == at / PAGE;
        if (!same) x->page_count++;
        *p = (part){event_number, at, len, e->bytes + done, x->page_count - 1, false};
        x->part_count++;
        done += len;
    }
    if (e->at + e->len > x->waiting_len) x->waiting_len = (size_t)e->at + e->len;
    FB_ASSERT(x->waiting_len <= FILE_MAX);
}

static void part_settle(images *x, const part *p)
{
    if (p->at + p->len > x->base_len) {
        memset(x->base + x->base_len, 0, (size_t)(p->at + p->len) - x->base_len);
        x->base_len = (size_t)p->at + p->len;
    }
    memcpy(x->base + p->at, p->bytes, p->len);
}

/* All of what waits is durable, or the parts of this call alone. */
static void settle(images *x, bool all, size_t event_number)
{
    size_t left = 0;
    for (size_t i = 0; i < x->part_count; i++) {
        if (all || x->parts[i].event == event_number) {
            part_settle(x, &x->parts[i]);
        } else {
            x->parts[left++] = x->parts[i];
        }
    }
    x->part_count = left;
    if (left == 0) x->page_count = 0;
    if (x->waiting_len < x->base_len) x->waiting_len = x->base_len;
}

static void event_take(images *x, size_t number, const event *e)
{
    images_report *report = x->report;
    switch (e->kind) {
    case EVENT_WRITE:
        report->writes++;
        report->bytes += e->len;
        if (e->forced) {
            report->forced++;
            report->forced_in_sector += e->at / SECTOR == (e->at + e->len - 1) / SECTOR;
            if (x->opened && report->forced % 8 == 0 && !x->o->stop_at_first) tears_measure(x, e);
        }
        parts_add(x, number, e);
        point_try(x);
        if (e->forced) settle(x, false, number);
        return;
    case EVENT_SYNC:
        report->syncs++;
        settle(x, true, 0);
        point_try(x);
        return;
    case EVENT_TRUNCATE:
        /* Not asked for by the store's database; a durable one is all that this models. */
        x->base_len = x->waiting_len = (size_t)e->at;
        return;
    case EVENT_NAME_SYNC:
        x->named[e->at != 0] = true;
        return;
    case EVENT_OPENED:
        x->opened = true;
        point_try(x);
        return;
    case EVENT_GIVEN:
        x->given = e->at;
        return;
    case EVENT_ACKED:
        x->acked = e->at;
        point_try(x);
        return;
    }
}

void images_try(const recording *r, const images_options *o, images_report *out)
{
    images *x = calloc(1, sizeof *x);
    FB_ASSERT(x != NULL);
    memset(out, 0, sizeof *out);
    x->o = o;
    x->report = out;
    x->base = calloc(1, FILE_MAX);
    x->image = calloc(1, FILE_MAX);
    FB_ASSERT(x->base != NULL && x->image != NULL);
    if (r->mapped_writable) {
        out->wrong++;
        out->what = "the file is mapped for writing: a crash could leave anything";
    }
    for (size_t i = 0; i < r->count && !is_over(x); i++) {
        x->event = i;
        event_take(x, i, &r->events[i]);
    }
    free(x->base);
    free(x->image);
    free(x);
}
