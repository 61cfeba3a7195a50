/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated machine: the process that runs one fb_node, its clocks, its disk, its keys. */
#ifndef FB_SIM_WORLD_PROCESS_H
#define FB_SIM_WORLD_PROCESS_H

#include "protocol/core/node.h"
#include "sim/world/clock.h"
#include "sim/world/provider_fast.h"
#include "sim/world/store.h"

typedef struct fb_sim_world fb_sim_world;

#define FB_SIM_WRITES_PENDING 8
#define FB_SIM_NO_CRASH       UINT64_MAX

/* A write set that the disk has not finished. */
typedef struct fb_sim_write {
    fb_sim_blob bytes;
    uint64_t incarnation;
    uint64_t w;
    bool applied; /* reads see it, and it outlives a crash */
    bool fails;
} fb_sim_write;

typedef struct fb_sim_read {
    fb_sim_blob bytes;
    uint64_t op;
    uint32_t next_free;
} fb_sim_read;

/* Chances of the disk's faults, set by the weather. "1 of n", 0 never. */
typedef struct fb_sim_disk {
    uint64_t read_mean_ns;
    uint64_t write_mean_ns;
    uint32_t read_fail_of;
    uint32_t write_fail_of;
    bool loses_unsynced;
    uint64_t reads; /* occurrences */
    uint64_t writes;
    uint64_t write_draws; /* fb_draw_base of its writes */
} fb_sim_disk;

/* What the weather does to ticks; all 0: they come when they are due. */
typedef struct fb_sim_ticks {
    uint32_t early_of_16; /* after so much of the wait */
    uint64_t late_mean_ns;
    uint32_t burst; /* so many more */
    uint64_t starved_until_ns;
    uint64_t grid_ns;
    uint64_t drawn; /* occurrences */
} fb_sim_ticks;

typedef struct fb_sim_node {
    fb_node *core;
    uint8_t *memory; /* of the instance */
    size_t memory_bytes;
    bool memory_taken;
    bool memory_used; /* by an earlier instance */
    bool booting;     /* a boot is in the queue */
    bool held_down;   /* stays down until the end of the round */
    bool running;     /* loading is complete: FACT_STARTED of this incarnation was seen */
    bool needs_start;
    bool forgot;       /* its disk was lost: it has to join again */
    uint8_t rejoins;   /* spaces that it has to join again then, as a bit set */
    uint32_t replaced; /* times its store became an old one, or empty */
    uint32_t boots;    /* stamp of what is in the queue for this process */
    uint64_t incarnation;
    uint64_t incarnations;
    uint64_t last_mono_ns;
    uint64_t deadline_ns; /* what tick_at_ns was computed from */
    uint64_t tick_at_ns;  /* when it wants its next tick; FB_NEVER: not at all */
    fb_sim_ticks ticks;
    uint64_t crash_in;      /* effects until the process ends; FB_SIM_NO_CRASH */
    uint8_t crash_fault;    /* of which fault that is */
    uint32_t crash_at_kind; /* enum fb_sim_crash_at; 0: none */
    uint64_t crash_at_nth;  /* since the boot */
    uint64_t crash_at_seen;
    bool cloned; /* it runs on a copy of the store and keys of clone_of */
    uint32_t clone_of;
    uint32_t identities;     /* how often it took one */
    bool power_fails;        /* with the next write set */
    bool killed_in_recovery; /* some starts do not come to their end */
    uint64_t slow_ns;        /* for so long each step keeps the process busy */
    uint32_t wall_back_of;   /* one reading of so many lies up to wall_back_ns before */
    uint64_t wall_back_ns;
    uint64_t boot_at_ns; /* when it boots, while `booting` */
    uint64_t paused_until_ns;
    uint64_t steps;
    uint64_t seen_before;   /* its state from far before its last step */
    uint64_t busy_since_ns; /* ticks in a row at one time */
    uint32_t busy;

    fb_id id;   /* under which it runs */
    fb_id home; /* its own: another one than `id` while it is a copy */
    fb_sim_provider provider;
    fb_sim_clock clock;

    fb_sim_store store;
    fb_sim_store backup; /* an old image of the disk; none when the profile has no rollback */
    bool has_backup;
    fb_sim_disk disk;
    fb_sim_write writes[FB_SIM_WRITES_PENDING];
    uint32_t write_first;
    uint32_t write_count;
    uint32_t writes_flushing;           /* of them, those that the running flush covers */
    uint64_t applied_w;                 /* of the current incarnation */
    struct fb_sim_documents *documents; /* NULL: its records are in its store */
} fb_sim_node;

/* Starts the process: a fresh instance over whatever the disk holds. */
void fb_sim_boot(fb_sim_world *world, uint32_t node);
/* Ends it at once; it boots again after restart_ns, or never with FB_NEVER. */
void fb_sim_crash(fb_sim_world *world, uint32_t node, uint64_t restart_ns);
/* Nothing happens on this node before then. */
void fb_sim_pause(fb_sim_world *world, uint32_t node, uint64_t until_ns);

void fb_sim_read_set(fb_sim_world *world, uint32_t node, uint64_t op, fb_span bytes);
void fb_sim_write_set(fb_sim_world *world, uint32_t node, uint64_t incarnation, uint64_t w,
                      fb_span bytes);
void fb_sim_need_start(fb_sim_world *world, uint32_t node);

/* A boot that is far away comes now: the weather is over. */
void fb_sim_boot_soon(fb_sim_world *world, uint32_t node);
void fb_sim_at_boot(fb_sim_world *world, uint32_t node, uint32_t stamp);
void fb_sim_at_start(fb_sim_world *world, uint32_t node);
void fb_sim_at_read(fb_sim_world *world, uint32_t node, uint32_t read, bool stale);
void fb_sim_at_flush(fb_sim_world *world, uint32_t node);

/* Machine `machine` begins, or ceases, to be a copy of another (process_clone.c). False: not now.
 */
bool fb_sim_clone_begin(fb_sim_world *world, uint32_t of, uint32_t machine);
void fb_sim_clone_end(fb_sim_world *world, uint32_t machine);

void fb_sim_backup(fb_sim_world *world, uint32_t node);

/* The table of keys of all disks. */
void fb_sim_stores_init(fb_sim_world *world, fb_arena *arena);
void fb_sim_process_init(fb_sim_world *world, uint32_t node, fb_arena *arena);

#endif
