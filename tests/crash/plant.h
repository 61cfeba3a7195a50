/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes planted between the store and its database, in this program alone. */
#ifndef FB_TESTS_CRASH_PLANT_H
#define FB_TESTS_CRASH_PLANT_H

typedef enum plant {
    PLANT_NONE,
    PLANT_ACK_EARLY, /* a commit is reported, and done when the next one begins */
    PLANT_NO_SYNC,   /* the database is opened with MDB_NOSYNC */
    PLANT_NO_META,   /* ... with MDB_NOMETASYNC */
    PLANT_SYNC_LIES, /* fdatasync does nothing, the meta page is forced */
    PLANT_WRITE_MAP, /* ... with MDB_WRITEMAP */
    PLANT_SPLIT,     /* a write set is committed in two parts */
    PLANT_NAME_LOST, /* the directory is not synced after the file was made in it */
    PLANTS
} plant;

extern plant plant_now;

#endif
