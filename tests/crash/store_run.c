/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/crash/store_run.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/store/check.h"
#include "io/store/lmdb.h"
#include "protocol/base/assert.h"
#include "protocol/base/draw.h"
#include "protocol/base/hash.h"
#include "protocol/store/readset.h"
#include "protocol/store/writeset.h"
#include "tests/crash/record.h"

#define KEYS        48u
#define INCARNATION UINT64_C(0x1234)
#define MAP_MIN     ((size_t)160 << 10) /* so small that it has to grow */
#define VALUE_MAX   12000u
#define SET_BYTES   (8u * VALUE_MAX)

struct store_run {
    fb_lmdb *store;
    sem_t ready;
    bool notes; /* completions become notes of the recording */
    /* Written by the store's thread, each before it posts. */
    atomic_bool begun;
    atomic_uint_fast64_t acked;
    atomic_uint_fast64_t failures;
    _Atomic(fb_lmdb_completion *) read;
};

static const fb_seed seed = {UINT64_C(0x63726173682d6c6d), 0};

/* What is in the store after each write set: of each key the set that wrote it, 0: nothing. */
static uint16_t states[SETS_MAX + 2][KEYS];
static uint64_t hashes[SETS_MAX + 2];

static uint32_t value_len(uint64_t w, uint32_t key)
{
    /* Now and then one that needs pages of its own. */
    uint64_t most = fb_draw_below(seed, 3, w, key, 9) == 0 ? VALUE_MAX : 300;
    return (uint32_t)(8 + fb_draw_below(seed, 4, w, key, most - 8));
}

static void value_fill(uint64_t w, uint32_t key, uint32_t len, uint8_t *out)
{
    for (uint32_t i = 0; i < len; i++) out[i] = (uint8_t)(fb_xxh64(&i, sizeof i, w) + key);
}

/* Which keys a set writes (1), deletes (2) or leaves alone (0). Key 0 always tells its number. */
static int touch(uint64_t w, uint32_t key)
{
    if (key == 0) return 1;
    uint64_t draw = fb_draw_below(seed, 5, w, key, 16);
    return draw < 2 ? 1 : draw < 3 ? 2 : 0;
}

static uint64_t state_hash(const uint16_t state[KEYS])
{
    static uint8_t value[VALUE_MAX];
    uint64_t hash = 0;
    for (uint32_t key = 0; key < KEYS; key++) {
        if (state[key] == 0) continue;
        uint32_t len = value_len(state[key], key);
        value_fill(state[key], key, len, value);
        hash = fb_xxh64(value, len, fb_xxh64(&key, sizeof key, hash));
    }
    return hash;
}

static void states_make(uint64_t sets)
{
    FB_ASSERT(sets <= SETS_MAX);
    memset(states, 0, sizeof states);
    hashes[0] = state_hash(states[0]);
    for (uint64_t w = 1; w <= sets; w++) {
        memcpy(states[w], states[w - 1], sizeof states[w]);
        for (uint32_t key = 0; key < KEYS; key++) {
            if (touch(w, key) == 1) states[w][key] = (uint16_t)w;
            if (touch(w, key) == 2) states[w][key] = 0;
        }
        hashes[w] = state_hash(states[w]);
    }
}

static void key_name(uint32_t key, char out[8])
{
    snprintf(out, 8, "key-%02u", (unsigned)key % 100);
}

static void entry_put(fb_writer *w, uint8_t kind, uint32_t key, fb_span value)
{
    char name[8];
    size_t at = w->at;
    key_name(key, name);
    fb_write_u8(w, kind);
    fb_write_u8(w, 0);
    fb_write_u16(w, (uint16_t)strlen(name));
    fb_write_u32(w, (uint32_t)value.len);
    fb_write_bytes(w, name, strlen(name));
    fb_write_span(w, value);
    while ((w->at - at) % 8 != 0) fb_write_u8(w, 0);
}

static void set_give(store_run *run, uint64_t w)
{
    static uint8_t bytes[SET_BYTES], value[VALUE_MAX];
    fb_writer set = fb_writer_of(bytes, sizeof bytes);
    /* The number goes last, so that half a set would lack it. */
    for (uint32_t i = 0; i < KEYS; i++) {
        uint32_t key = KEYS - 1 - i;
        int what = touch(w, key);
        uint32_t len = what == 1 ? value_len(w, key) : 0;
        value_fill(w, key, len, value);
        if (what == 1) entry_put(&set, FB_WRITE_PUT, key, fb_span_of(value, len));
        if (what == 2) entry_put(&set, FB_WRITE_DELETE, key, (fb_span){NULL, 0});
    }
    FB_ASSERT(!set.failed);
    if (run->notes) record_note(EVENT_GIVEN, w);
    fb_lmdb_write(run->store, INCARNATION, w, fb_writer_span(&set));
}

/* By the store's thread, when a completion is there: taken here, its place in the order is exact.
 */
static void notify(void *user)
{
    store_run *run = user;
    fb_lmdb_completion *c;
    while ((c = fb_lmdb_take(run->store)) != NULL) {
        if (c->error != FB_OK) run->failures++;
        if (c->kind == FB_LMDB_WRITE && c->error == FB_OK) {
            run->acked = c->w;
            if (run->notes) record_note(EVENT_ACKED, c->w);
        }
        if (c->kind == FB_LMDB_BEGUN) run->begun = true;
        if (c->kind == FB_LMDB_READ) {
            run->read = c;
        } else {
            fb_lmdb_completion_free(c);
        }
        sem_post(&run->ready);
    }
}

static void await(store_run *run)
{
    while (sem_wait(&run->ready) != 0) {
    }
}

static fb_status open_store(store_run *run, const char *directory)
{
    char why[256];
    fb_lmdb_options options = {
        .directory = directory, .map_bytes_min = MAP_MIN, .notify = notify, .user = run};
    sem_init(&run->ready, 0, 0);
    fb_status status = fb_lmdb_open(&options, &run->store, why, sizeof why);
    if (status != FB_OK) fprintf(stderr, "%s\n", why);
    return status;
}

static void begin(store_run *run)
{
    fb_lmdb_begin(run->store, INCARNATION);
    while (!run->begun) await(run);
}

static void write_up_to(store_run *run, uint64_t w)
{
    while (run->acked < w && run->failures == 0) await(run);
}

store_run *store_run_script(const char *directory, uint64_t sets)
{
    states_make(sets + 1);
    store_run *run = calloc(1, sizeof *run);
    FB_ASSERT(run != NULL);
    run->notes = true;
    FB_ASSERT(open_store(run, directory) == FB_OK);
    record_note(EVENT_OPENED, 0);
    begin(run);
    for (uint64_t w = 1; w <= sets; w++) {
        set_give(run, w);
        /* Now and then several wait together and share a transaction. */
        if (w % 5 < 3 || w == sets) write_up_to(run, w);
    }
    FB_ASSERT(run->failures == 0);
    return run;
}

void store_run_close(store_run *run)
{
    fb_lmdb_close(run->store);
    sem_destroy(&run->ready);
    free(run);
}

/* Verifying. */

static const char *read_all(store_run *run, uint64_t *w, uint64_t *hash)
{
    uint8_t room[256];
    fb_writer set = fb_writer_of(room, sizeof room);
    fb_write_u16(&set, 1);
    fb_read_item item = {.kind = FB_READ_RANGE,
                         .value_bytes = VALUE_MAX,
                         .items = 2 * KEYS,
                         .bytes = UINT32_C(1) << 24};
    fb_read_item_write(&set, &item);
    fb_lmdb_read(run->store, 1, fb_writer_span(&set));
    while (run->read == NULL) await(run);
    fb_lmdb_completion *c = run->read;
    run->read = NULL;
    if (c->error != FB_OK) {
        fb_lmdb_completion_free(c);
        return "it cannot be read";
    }
    fb_reader r = fb_reader_of(fb_span_of(c->bytes, c->len));
    fb_read_u64(&r);
    fb_read_u8(&r);
    uint32_t entries = fb_read_u32(&r);
    *w = *hash = 0;
    for (uint32_t i = 0; i < entries; i++) {
        fb_read_entry e = fb_read_entry_next(&r);
        uint32_t key = 0;
        for (size_t k = 4; k < e.key.len; k++) key = 10 * key + (uint32_t)(e.key.p[k] - '0');
        *hash = fb_xxh64(e.value.p, e.value.len, fb_xxh64(&key, sizeof key, *hash));
        if (key != 0) continue;
        /* Whose value is it? */
        uint64_t sum = fb_xxh64(e.value.p, e.value.len, 0);
        static uint8_t value[VALUE_MAX];
        for (uint64_t n = SETS_MAX; n > 0 && *w == 0; n--) {
            if (states[n][0] != n || value_len(n, 0) != e.value.len) continue;
            value_fill(n, 0, (uint32_t)e.value.len, value);
            if (fb_xxh64(value, e.value.len, 0) == sum) *w = n;
        }
    }
    bool failed = r.failed;
    fb_lmdb_completion_free(c);
    return failed ? "its answer cannot be parsed" : NULL;
}

static const char *look(store_run *run, uint64_t acked, uint64_t given, uint64_t *w)
{
    uint64_t hash;
    const char *wrong = read_all(run, w, &hash);
    if (wrong != NULL) return wrong;
    if (*w < acked) return "an acknowledged write set is gone";
    if (*w > given) return "it holds a write set that nobody gave it";
    return hash == hashes[*w] ? NULL : "a write set is there in part";
}

/* Opening writes nothing, so a crash while it does finds what this one found. */
static uint64_t file_hash(const char *directory)
{
    char path[4200];
    uint8_t bytes[4096];
    uint64_t hash = 0;
    snprintf(path, sizeof path, "%s/data.mdb", directory);
    FILE *f = fopen(path, "rb");
    if (f == NULL) return 0;
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, f)) > 0;) hash = fb_xxh64(bytes, n, hash);
    fclose(f);
    return hash;
}

static const char *open_and_look(store_run *run, const char *directory, uint64_t acked,
                                 uint64_t given, bool opened)
{
    uint64_t before = file_hash(directory);
    if (open_store(run, directory) != FB_OK) return "it cannot be opened";
    if (opened && fb_lmdb_opening_of(run->store)->found != FB_LMDB_FOUND_SOUND) {
        return "it was there, and is not found or found damaged";
    }
    if (opened && file_hash(directory) != before) return "opening it wrote to it";
    begin(run);
    uint64_t w;
    const char *wrong = look(run, acked, given, &w);
    if (wrong != NULL) return wrong;
    /* The next write works. Its number is given by no crashed run. */
    set_give(run, w + 1);
    write_up_to(run, w + 1);
    if (run->failures != 0) return "the next write fails";
    return look(run, w + 1, w + 1, &w);
}

const char *store_run_verify(const char *directory, uint64_t acked, uint64_t given, bool opened)
{
    fb_store_report report;
    char why[256];
    if (opened) {
        if (fb_store_check(directory, true, &report, why, sizeof why) != FB_OK) {
            return "it cannot be checked";
        }
        if (!report.sound || report.damaged != 0) return "the store's check finds damage";
    }
    store_run run = {0};
    const char *wrong = open_and_look(&run, directory, acked, given, opened);
    if (run.store != NULL) fb_lmdb_close(run.store);
    sem_destroy(&run.ready);
    return wrong;
}
