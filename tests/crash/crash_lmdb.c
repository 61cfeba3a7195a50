/* SPDX-License-Identifier: Apache-2.0 */
/* The real store, crashed: its system calls are recorded while it works, then every file that a
 * power failure could have left at any of them is made, opened by the store and looked at. What was
 * acknowledged is there whole, of the rest a set is there whole or not at all, the store's own
 * check finds nothing, and the next write works. Mistakes planted between store and database are
 * found.
 *
 *     crash_lmdb [--whole] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol/base/assert.h"
#include "tests/crash/images.h"
#include "tests/crash/plant.h"
#include "tests/crash/record.h"
#include "tests/crash/store_run.h"

static const struct {
    const char *name;
    plant plant;
} plants[] = {
    {"acknowledged before the commit", PLANT_ACK_EARLY},
    {"MDB_NOSYNC", PLANT_NO_SYNC},
    {"MDB_NOMETASYNC", PLANT_NO_META},
    {"a sync that does nothing", PLANT_SYNC_LIES},
    {"MDB_WRITEMAP", PLANT_WRITE_MAP},
    {"a write set in two transactions", PLANT_SPLIT},
    {"the directory is not synced", PLANT_NAME_LOST},
};

static char root[64];

static void clean(const char *directory)
{
    static const char *const leaves[] = {"data.mdb", "lock.mdb", "owner.lock", "suspect"};
    char path[256];
    for (size_t i = 0; i < sizeof leaves / sizeof leaves[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, leaves[i]);
        unlink(path);
    }
    rmdir(directory);
}

static images_report run(plant p, uint64_t sets, images_options options)
{
    char worked[128], tried[128];
    snprintf(worked, sizeof worked, "%s/worked", root);
    snprintf(tried, sizeof tried, "%s/tried", root);
    clean(worked);
    clean(tried);
    record_begin(worked, p == PLANT_SYNC_LIES, p == PLANT_NAME_LOST);
    plant_now = p;
    store_run *script = store_run_script(worked, sets);
    recording r = record_end();
    store_run_close(script);
    plant_now = PLANT_NONE;
    images_report report;
    options.directory = tried;
    images_try(&r, &options, &report);
    recording_free(&r);
    clean(worked);
    clean(tried);
    return report;
}

static void print_sound(const images_report *r)
{
    printf("recorded: %llu writes, of them %llu forced (%llu within one sector), %llu syncs, "
           "%llu bytes\n",
           (unsigned long long)r->writes, (unsigned long long)r->forced,
           (unsigned long long)r->forced_in_sector, (unsigned long long)r->syncs,
           (unsigned long long)r->bytes);
    printf("crash points: %llu, of %llu every set of sectors; images: %llu, different: %llu, "
           "wrong: %llu\n",
           (unsigned long long)r->points, (unsigned long long)r->points_all,
           (unsigned long long)r->images, (unsigned long long)r->distinct,
           (unsigned long long)r->wrong);
    printf("meta page torn inside its sector (promised by nobody): beginning new %llu, wrong %llu; "
           "end new %llu, wrong %llu\n",
           (unsigned long long)r->head_torn, (unsigned long long)r->head_wrong,
           (unsigned long long)r->tail_torn, (unsigned long long)r->tail_wrong);
}

int main(int argc, char **argv)
{
    bool whole = argc == 2 && strcmp(argv[1], "--whole") == 0;
    if (argc != 1 && !whole) {
        fprintf(stderr, "usage: crash_lmdb [--whole]\n");
        return 2;
    }
    /* In memory when that is possible: nothing here has to survive. */
    bool memory = access("/dev/shm", W_OK) == 0;
    snprintf(root, sizeof root, "%s/fb-crash-XXXXXX", memory ? "/dev/shm" : "/tmp");
    FB_ASSERT(mkdtemp(root) != NULL);
    const images_options thorough = {.bits = whole ? 7 : 5, .draws = whole ? 24 : 8};
    images_report sound = run(PLANT_NONE, whole ? 80 : 24, thorough);
    print_sound(&sound);
    unsigned failed = 0;
    if (sound.what != NULL) {
        printf("event %zu: %s\n", sound.what_event, sound.what);
        failed++;
    }
    for (size_t i = 0; i < sizeof plants / sizeof plants[0]; i++) {
        const images_options quick = {.bits = 5, .draws = 8, .stop_at_first = true};
        images_report r = run(plants[i].plant, 12, quick);
        printf("planted: %-32s %s\n", plants[i].name, r.what != NULL ? r.what : "not found");
        failed += r.what == NULL;
    }
    rmdir(root);
    return failed == 0 ? 0 : 1;
}
