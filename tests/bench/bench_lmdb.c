/* SPDX-License-Identifier: Apache-2.0 */
/* Durable record writes by many callers through a whole node, and then the very same puts, byte for
 * byte and in the same transactions, through LMDB alone. Prints the ratio of the two rates. */
#include <errno.h>
#include <lmdb.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "io/clock.h"
#include "io/entropy.h"
#include "io/keys/provider_sodium.h"
#include "io/store/lmdb.h"
#include "io/store/lmdb_env.h"
#include "protocol/base/assert.h"
#include "protocol/core/node.h"
#include "protocol/core/request.h"
#include "protocol/store/writeset.h"

#define CALLERS 200u /* fewer than the node has operations at once */

/* One write set as the node sealed it; `last` closes a transaction of the store. */
typedef struct kept_set {
    struct kept_set *next;
    uint64_t w;
    bool last;
    size_t len;
    uint8_t bytes[];
} kept_set;

typedef struct bench {
    char directory[64];
    sem_t ready;
    fb_node *node;
    fb_lmdb *store;
    fb_effects effects;
    kept_set *sets, **sets_end;
    uint64_t commits, entries, bytes;
    bool has_space;
    fb_id space;
    uint64_t asked, answered, failed;
} bench;

static void notify(void *user)
{
    sem_post(&((bench *)user)->ready);
}

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    return calloc(1, bytes);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static void keep(bench *b, uint64_t w, fb_span set)
{
    kept_set *kept = malloc(sizeof *kept + set.len);
    FB_ASSERT(kept != NULL);
    *kept = (kept_set){.w = w, .len = set.len};
    memcpy(kept->bytes, set.p, set.len);
    *b->sets_end = kept;
    b->sets_end = &kept->next;
}

static void step(bench *b, fb_event event)
{
    event.mono_ns = fb_clock_mono_ns();
    event.wall_us = fb_clock_wall_us();
    fb_status status = fb_node_step(b->node, &event, &b->effects);
    FB_ASSERT(status == FB_OK);
    for (const fb_effect *fx = fb_effects_next(&b->effects, NULL); fx != NULL;
         fx = fb_effects_next(&b->effects, fx)) {
        fb_span bytes = fb_span_of(fb_effect_bytes(fx), fx->len);
        if (fx->kind == FB_FX_READ) fb_lmdb_read(b->store, fx->a, bytes);
        if (fx->kind == FB_FX_WRITE) {
            keep(b, fx->b, bytes);
            fb_lmdb_write(b->store, fx->a, fx->b, bytes);
        }
        if (fx->kind == FB_FX_REPLY) {
            b->answered++;
            if (fx->b != FB_OK) b->failed++;
            if (!b->has_space && fx->len == 16) {
                memcpy(b->space.b, bytes.p, 16);
                b->has_space = true;
            }
        }
        FB_ASSERT(fx->kind != FB_FX_NEED_START);
    }
}

/* What the store finished; waits for something unless `busy`. */
static void turn(bench *b, bool busy)
{
    fb_lmdb_completion *c = fb_lmdb_take(b->store);
    if (c == NULL && !busy) {
        uint64_t deadline = fb_node_deadline(b->node);
        int64_t wall_ns = fb_clock_wall_us() * 1000;
        uint64_t now = fb_clock_mono_ns();
        uint64_t wait_ns = deadline > now ? fb_min_u64(deadline - now, 1000000000) : 0;
        wall_ns += (int64_t)wait_ns;
        struct timespec until = {wall_ns / 1000000000, wall_ns % 1000000000};
        int rc = sem_timedwait(&b->ready, &until);
        if (rc != 0 && fb_clock_mono_ns() >= fb_node_deadline(b->node)) {
            step(b, (fb_event){.kind = FB_EV_TICK});
        }
        c = fb_lmdb_take(b->store);
    }
    if (c == NULL) return;
    if (c->kind == FB_LMDB_BEGUN) {
        step(b, (fb_event){.kind = FB_EV_START, .a = c->incarnation, .b = 1, .c = 2});
    } else if (c->kind == FB_LMDB_READ) {
        step(b, (fb_event){.kind = FB_EV_READ_DONE,
                           .len = (uint32_t)c->len,
                           .a = c->operation,
                           .b = c->w,
                           .c = c->error,
                           .bytes = c->bytes});
    } else {
        for (kept_set *kept = b->sets; kept != NULL; kept = kept->next) {
            if (kept->w == c->w) kept->last = true;
        }
        step(b,
             (fb_event){.kind = FB_EV_WRITE_DONE, .a = c->incarnation, .b = c->w, .c = c->error});
    }
    fb_lmdb_completion_free(c);
}

static void ask(bench *b, fb_verb verb, fb_span arguments)
{
    step(b, (fb_event){.kind = FB_EV_REQUEST,
                       .len = (uint32_t)arguments.len,
                       .a = ++b->asked,
                       .b = (uint64_t)verb,
                       .bytes = arguments.p});
}

static void put_record(bench *b, uint64_t n)
{
    uint8_t room[512];
    char number[24], text[128];
    fb_id zero = {{0}};
    int digits = snprintf(number, sizeof number, "%llu", (unsigned long long)n);
    int len = snprintf(text, sizeof text, "\"%0100llu\"", (unsigned long long)n);
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, b->space);
    fb_write_u8(&w, 1);
    fb_write_span16(&w, fb_span_text("bench"));
    fb_write_id(&w, zero);
    fb_write_u8(&w, 2);
    fb_write_u8(&w, 0);
    fb_write_id(&w, zero);
    fb_write_u16(&w, 2);
    fb_write_span16(&w, fb_span_text("n"));
    fb_write_u8(&w, 1);
    fb_write_span32(&w, fb_span_of(number, (size_t)digits));
    fb_write_span16(&w, fb_span_text("text"));
    fb_write_u8(&w, 1);
    fb_write_span32(&w, fb_span_of(text, (size_t)len));
    ask(b, FB_VERB_RECORD_PUT, fb_writer_span(&w));
}

static void records(bench *b, uint64_t count)
{
    uint64_t before = b->answered, sent = 0;
    while (b->answered - before < count) {
        bool busy = sent < count && sent - (b->answered - before) < CALLERS;
        if (busy) put_record(b, sent++);
        turn(b, busy);
    }
}

static void open_node(bench *b, fb_sodium *sodium)
{
    char why[256];
    strcpy(b->directory, "/tmp/fb-bench-XXXXXX");
    FB_ASSERT(mkdtemp(b->directory) != NULL);
    sem_init(&b->ready, 0, 0);
    b->sets_end = &b->sets;
    fb_lmdb_options store = {.directory = b->directory, .notify = notify, .user = b};
    if (fb_lmdb_open(&store, &b->store, why, sizeof why) != FB_OK) {
        fprintf(stderr, "%s\n", why);
        exit(1);
    }
    fb_options options = fb_options_default();
    options.allocator = (fb_allocator){NULL, allocate, release};
    options.provider = fb_sodium_provider(sodium);
    fb_b32 identity = {{1}}, link = {{2}};
    fb_status made = fb_sodium_add_signing(sodium, &identity, &options.identity_key);
    if (made == FB_OK) made = fb_sodium_add_dh(sodium, &link, &options.link_key);
    if (made == FB_OK) made = fb_node_create(&options, &b->node);
    FB_ASSERT(made == FB_OK);
    b->effects.capacity = fb_effects_bytes_min(&options);
    b->effects.memory = calloc(1, b->effects.capacity);
    fb_lmdb_begin(b->store, fb_entropy_u64() | 1);
    while (!fb_node_is_running(b->node)) turn(b, false);
    uint8_t room[16];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_span16(&w, fb_span_text("bench"));
    ask(b, FB_VERB_SPACE_CREATE, fb_writer_span(&w));
    while (b->answered < 1) turn(b, false);
}

/* The same puts through LMDB alone. Values have eight bytes before them, as in the store. */

static MDB_env *raw_open(const char *directory, MDB_dbi *data)
{
    MDB_env *env;
    MDB_txn *txn;
    int rc = mdb_env_create(&env);
    if (rc == 0) rc = mdb_env_set_maxdbs(env, 2);
    if (rc == 0) rc = mdb_env_set_mapsize(env, (size_t)1 << 32);
    if (rc == 0) rc = mdb_env_open(env, directory, MDB_NOTLS | MDB_NORDAHEAD, 0600);
    if (rc == 0) rc = mdb_txn_begin(env, NULL, 0, &txn);
    if (rc == 0) rc = mdb_dbi_open(txn, "data", MDB_CREATE, data);
    if (rc == 0) rc = mdb_txn_commit(txn);
    FB_ASSERT(rc == 0);
    return env;
}

static void raw_set(MDB_txn *txn, MDB_dbi data, const kept_set *set)
{
    fb_reader r = fb_reader_of(fb_span_of(set->bytes, set->len));
    while (fb_reader_left(&r) > 0) {
        fb_write_entry e = fb_write_entry_next(&r);
        MDB_val key = {e.key.len, (void *)(uintptr_t)e.key.p};
        MDB_val value = {FB_LMDB_SUM_BYTES + e.value.len, NULL};
        int rc;
        if (e.kind == FB_WRITE_DELETE) {
            rc = mdb_del(txn, data, &key, NULL);
            if (rc == MDB_NOTFOUND) rc = 0;
        } else {
            rc = mdb_put(txn, data, &key, &value, MDB_RESERVE);
            if (rc == 0) {
                memset(value.mv_data, 0x5a, FB_LMDB_SUM_BYTES);
                memcpy((uint8_t *)value.mv_data + FB_LMDB_SUM_BYTES, e.value.p, e.value.len);
            }
        }
        FB_ASSERT(rc == 0);
    }
}

/* Seconds for the sets after `skip`, in their transactions; what comes before is not timed. */
static double raw_replay(bench *b, const kept_set *skip, const char *directory)
{
    MDB_dbi data;
    MDB_env *env = raw_open(directory, &data);
    uint64_t start = 0;
    MDB_txn *txn = NULL;
    bool timed = false;
    for (const kept_set *set = b->sets; set != NULL; set = set->next) {
        if (!timed && txn == NULL && set == skip) {
            timed = true;
            start = fb_clock_mono_ns();
        }
        int rc = txn == NULL ? mdb_txn_begin(env, NULL, 0, &txn) : 0;
        FB_ASSERT(rc == 0);
        raw_set(txn, data, set);
        if (timed) {
            fb_reader r = fb_reader_of(fb_span_of(set->bytes, set->len));
            while (fb_reader_left(&r) > 0) {
                fb_write_entry_next(&r);
                b->entries++;
            }
            b->bytes += set->len;
        }
        if (set->last || set->next == NULL) {
            rc = mdb_txn_commit(txn);
            FB_ASSERT(rc == 0);
            txn = NULL;
            if (timed) b->commits++;
        }
    }
    double seconds = (double)(fb_clock_mono_ns() - start) / 1e9;
    mdb_env_close(env);
    return seconds;
}

static void remove_directory(const char *directory)
{
    static const char *const names[] = {"data.mdb", "lock.mdb", "owner.lock"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        unlink(path);
    }
    rmdir(directory);
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
    static bench b;
    fb_sodium *sodium;
    if (fb_sodium_create(64, &sodium) != FB_OK) return 1;
    open_node(&b, sodium);
    records(&b, count / 10 + 1); /* the tree has some depth, the map its size */
    kept_set **first = b.sets_end;
    uint64_t start = fb_clock_mono_ns();
    records(&b, count);
    double through_node = (double)(fb_clock_mono_ns() - start) / 1e9;
    fb_lmdb_close(b.store);
    char raw_directory[] = "/tmp/fb-bench-raw-XXXXXX";
    if (mkdtemp(raw_directory) == NULL) return 1;
    double alone = raw_replay(&b, *first, raw_directory);

    double puts = (double)b.entries, commits = (double)b.commits;
    printf("durable record writes, %u callers, %llu records, %llu failed\n", CALLERS,
           (unsigned long long)count, (unsigned long long)b.failed);
    printf("  through the node  %8.0f records/s  %9.0f puts/s  %6.1f puts a commit\n",
           (double)count / through_node, puts / through_node, puts / commits);
    printf("  LMDB alone        %8.0f records/s  %9.0f puts/s  the same puts and commits\n",
           (double)count / alone, puts / alone);
    printf("  %.1f puts and %.0f bytes a record, %.0f commits\n", puts / (double)count,
           (double)b.bytes / (double)count, commits);
    printf("ratio %.2f (at least 0.80 is wanted)\n", alone / through_node);

    fb_node_destroy(b.node);
    fb_sodium_destroy(sodium);
    free(b.effects.memory);
    while (b.sets != NULL) {
        kept_set *next = b.sets->next;
        free(b.sets);
        b.sets = next;
    }
    sem_destroy(&b.ready);
    remove_directory(b.directory);
    remove_directory(raw_directory);
    return b.failed == 0 ? 0 : 1;
}
