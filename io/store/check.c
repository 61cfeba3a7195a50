/* SPDX-License-Identifier: Apache-2.0 */
#include "io/store/check.h"

#include <errno.h>
#include <lmdb.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/store/lmdb_env.h"
#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"

#define RUN_ENTRIES 32u    /* read in a row from each place of a sample */
#define PROBES      16u    /* places between the first and the last key of a tag */
#define FREE_TABLE  0      /* LMDB's own list of free pages */
#define META_PAGES  2      /* of LMDB: one is the newest, the other the one before */
#define MISSING_MAX 65536u /* pages behind the end of the file that may be free ones */

/* The child. It reports and ends; whatever LMDB does with a damaged file ends it as well. */

typedef struct check {
    int report_fd;
    bool whole;
    bool refused; /* by the system: nothing is known */
    fb_store_report report;
    MDB_env *env;
    MDB_txn *txn;
    uint64_t page_bytes;
    uint64_t last_page;
    uint64_t value_bytes; /* read so far */
} check;

typedef struct verdict {
    bool refused;
    fb_store_report report;
} verdict;

static void end(check *c) __attribute__((noreturn));

static void end(check *c)
{
    verdict v;
    memset(&v, 0, sizeof v);
    v.refused = c->refused;
    v.report = c->report;
    ssize_t n = write(c->report_fd, &v, sizeof v);
    _exit(n == (ssize_t)sizeof v ? 0 : 1);
}

static void unsound(check *c, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

static void unsound(check *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(c->report.what, sizeof c->report.what, format, args);
    va_end(args);
    c->report.sound = false;
    end(c);
}

/* Ends the check unless the call went well. What the system refuses says nothing about the file,
 * and a file of another version of LMDB is not damaged: its opening says so. */
static void expect(check *c, int rc)
{
    if (rc == 0) return;
    if (rc == MDB_VERSION_MISMATCH) end(c);
    if (rc > 0 && rc != EINVAL && rc != ENOENT) {
        c->refused = true;
        unsound(c, "%s", strerror(rc));
    }
    unsound(c, "%s", mdb_strerror(rc));
}

static void look_at(check *c, const MDB_val *key, const MDB_val *value)
{
    if (key->mv_size == 0 || key->mv_size > FB_KEY_BYTES_MAX ||
        value->mv_size > FB_LMDB_SUM_BYTES + FB_VALUE_BYTES_MAX) {
        unsound(c, "an entry has a size that no entry has");
    }
    c->report.entries++;
    c->value_bytes += value->mv_size;
    if (!fb_lmdb_value_is_whole(key, value)) c->report.damaged++;
}

static bool sample_is_full(const check *c)
{
    return c->report.entries >= FB_STORE_SAMPLE_ENTRIES || c->value_bytes >= FB_STORE_SAMPLE_BYTES;
}

static int compare(const MDB_val *a, const MDB_val *b)
{
    return fb_span_compare(fb_span_of(a->mv_data, a->mv_size), fb_span_of(b->mv_data, b->mv_size));
}

static void walk(check *c, MDB_cursor *cursor, uint64_t entries)
{
    MDB_val key, value, before = {0, NULL};
    uint64_t count = 0;
    int rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (; rc == 0; rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        if (++count > entries) unsound(c, "it holds more entries than it counts");
        if (before.mv_data != NULL && compare(&before, &key) >= 0) {
            unsound(c, "its keys are out of order");
        }
        before = key;
        look_at(c, &key, &value);
    }
    if (rc != MDB_NOTFOUND) expect(c, rc);
    if (count != entries) unsound(c, "it counts more entries than it holds");
}

/* Entries in a row from the one at or behind `from`. */
static void run_from(check *c, MDB_cursor *cursor, fb_span from)
{
    MDB_val key = {from.len, (void *)(uintptr_t)from.p}, value;
    int rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    for (unsigned i = 0; rc == 0 && i < RUN_ENTRIES; i++) {
        look_at(c, &key, &value);
        rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    if (rc != MDB_NOTFOUND) expect(c, rc);
}

/* The eight bytes behind a prefix as a number; keys that end earlier as if zeros followed. */
static uint64_t number_at(const MDB_val *key, size_t at)
{
    uint64_t n = 0;
    for (size_t i = at; i < at + 8; i++) {
        n = n << 8 | (i < key->mv_size ? ((const uint8_t *)key->mv_data)[i] : 0u);
    }
    return n;
}

/* Evenly between two keys: keys are numbers and ids behind few tags. */
static void probe_between(check *c, MDB_cursor *cursor, const MDB_val *first, const MDB_val *last)
{
    uint8_t place[FB_KEY_BYTES_MAX];
    const uint8_t *a = first->mv_data, *b = last->mv_data;
    size_t common = 0;
    while (common < first->mv_size && common < last->mv_size && a[common] == b[common]) common++;
    if (common + 8 > sizeof place) return;
    memcpy(place, a, common);
    uint64_t low = number_at(first, common), high = number_at(last, common);
    for (uint64_t i = 1; i <= PROBES && !sample_is_full(c); i++) {
        fb_store_be(place + common, low + (high - low) / (PROBES + 1) * i, 8);
        run_from(c, cursor, fb_span_of(place, common + 8));
    }
}

/* For each first byte that keys have: its first entries, its last ones, and some between. */
static void sample(check *c, MDB_cursor *cursor)
{
    for (unsigned tag = 0; tag < 256 && !sample_is_full(c); tag++) {
        uint8_t byte = (uint8_t)tag;
        MDB_val first = {1, &byte}, last, value;
        int rc = mdb_cursor_get(cursor, &first, &value, MDB_SET_RANGE);
        if (rc == MDB_NOTFOUND) return;
        expect(c, rc);
        if (first.mv_size == 0) unsound(c, "an entry has a size that no entry has");
        tag = *(const uint8_t *)first.mv_data;
        run_from(c, cursor, fb_span_of(first.mv_data, first.mv_size));
        byte = (uint8_t)(tag + 1);
        last = (MDB_val){1, &byte};
        rc = tag == 255 ? MDB_NOTFOUND : mdb_cursor_get(cursor, &last, &value, MDB_SET_RANGE);
        rc = mdb_cursor_get(cursor, &last, &value, rc == MDB_NOTFOUND ? MDB_LAST : MDB_PREV);
        expect(c, rc);
        MDB_val end_of_tag = last;
        for (unsigned i = 0; rc == 0 && i < RUN_ENTRIES && compare(&last, &first) > 0; i++) {
            look_at(c, &last, &value);
            rc = mdb_cursor_get(cursor, &last, &value, MDB_PREV);
        }
        expect(c, rc);
        if (compare(&end_of_tag, &first) > 0) probe_between(c, cursor, &first, &end_of_tag);
    }
}

static void check_table(check *c, const char *name)
{
    MDB_dbi table;
    MDB_cursor *cursor;
    MDB_stat stat;
    expect(c, mdb_dbi_open(c->txn, name, 0, &table));
    expect(c, mdb_stat(c->txn, table, &stat));
    expect(c, mdb_cursor_open(c->txn, table, &cursor));
    if (c->whole) {
        walk(c, cursor, stat.ms_entries);
    } else {
        sample(c, cursor);
    }
    mdb_cursor_close(cursor);
}

/* The table that tells the format has no checksums. */
static void check_meta(check *c)
{
    MDB_dbi table;
    MDB_val key = {6, (void *)(uintptr_t) "format"}, value;
    expect(c, mdb_dbi_open(c->txn, "meta", 0, &table));
    expect(c, mdb_get(c->txn, table, &key, &value));
    if (value.mv_size != 4) unsound(c, "its format is no number");
}

/* LMDB's list of free pages: what it names is written over next. `behind`, when it is not NULL,
 * gets true for each page of it from number `from` on. */
static void check_free_list(check *c, bool *behind, uint64_t from)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    expect(c, mdb_cursor_open(c->txn, FREE_TABLE, &cursor));
    int rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (; rc == 0; rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
        /* A count, then so many page numbers. */
        for (size_t at = sizeof(size_t); at + sizeof(size_t) <= value.mv_size;
             at += sizeof(size_t)) {
            size_t page;
            memcpy(&page, (const uint8_t *)value.mv_data + at, sizeof page);
            if (page < META_PAGES || page > c->last_page) {
                unsound(c, "its list of free pages names one that cannot be");
            }
            if (behind != NULL && page >= from) behind[page - from] = true;
        }
    }
    if (rc != MDB_NOTFOUND) expect(c, rc);
    mdb_cursor_close(cursor);
}

/* A page at the end that was taken and given back before it was written is on the list of free
 * ones; any other page that is behind the end of the file is lost. */
static void check_length(check *c, uint64_t file_bytes)
{
    uint64_t pages = file_bytes / c->page_bytes;
    uint64_t missing = pages > c->last_page ? 0 : c->last_page + 1 - pages;
    bool *behind = missing <= MISSING_MAX ? calloc(missing + 1, sizeof *behind) : NULL;
    if (behind != NULL && (c->whole || missing > 0)) check_free_list(c, behind, pages);
    uint64_t needed = (c->last_page + 1) * c->page_bytes;
    for (uint64_t i = 0; i < missing; i++) {
        if (behind != NULL && behind[i]) continue;
        unsound(c, "it has %llu bytes, its pages need %llu", (unsigned long long)file_bytes,
                (unsigned long long)needed);
    }
    free(behind);
}

static void child(check *c, const char *directory)
{
    static const int deadly[] = {SIGBUS, SIGSEGV, SIGABRT, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++) signal(deadly[i], SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/data.mdb", directory);
    if (stat(path, &st) != 0) expect(c, errno);
    expect(c, mdb_env_create(&c->env));
    expect(c, mdb_env_set_maxdbs(c->env, 2));
    /* Otherwise the file would say how much is mapped. */
    expect(c, mdb_env_set_mapsize(c->env, (size_t)st.st_size + 1));
    expect(c, mdb_env_open(c->env, directory, MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS | MDB_NORDAHEAD,
                           0600));
    expect(c, mdb_txn_begin(c->env, NULL, MDB_RDONLY, &c->txn));
    MDB_envinfo info;
    MDB_stat stat;
    expect(c, mdb_env_info(c->env, &info));
    expect(c, mdb_env_stat(c->env, &stat));
    c->page_bytes = stat.ms_psize;
    c->last_page = info.me_last_pgno;
    if (c->page_bytes < 256 || c->last_page > (UINT64_C(1) << 62) / c->page_bytes) {
        unsound(c, "its meta pages say what cannot be");
    }
    check_length(c, (uint64_t)st.st_size);
    if (stat.ms_entries == 0) end(c); /* no table yet: opening makes them all at once */
    check_meta(c);
    check_table(c, "data");
    end(c);
}

/* The parent. */

static fb_status refused(char *why, size_t why_len, const char *directory, const char *what)
{
    snprintf(why, why_len, "%s cannot be checked: %s", directory, what);
    return FB_ERR_STORE_FAILED;
}

static bool read_verdict(int fd, verdict *v)
{
    size_t len = 0;
    while (len < sizeof *v) {
        ssize_t n = read(fd, (char *)v + len, sizeof *v - len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        len += (size_t)n;
    }
    return true;
}

fb_status fb_store_check(const char *directory, bool whole, fb_store_report *out, char *why,
                         size_t why_len)
{
    int ends[2];
    memset(out, 0, sizeof *out);
    if (pipe(ends) != 0) return refused(why, why_len, directory, strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        check c = {.report_fd = ends[1], .whole = whole, .report = {.sound = true}};
        child(&c, directory);
    }
    int error = errno;
    close(ends[1]);
    verdict v;
    bool told = pid > 0 && read_verdict(ends[0], &v);
    close(ends[0]);
    if (pid < 0) return refused(why, why_len, directory, strerror(error));
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) return refused(why, why_len, directory, strerror(errno));
    }
    if (told && v.refused) return refused(why, why_len, directory, v.report.what);
    if (told) {
        *out = v.report;
        return FB_OK;
    }
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (number == SIGBUS || number == SIGSEGV || number == SIGABRT || number == SIGFPE ||
        number == SIGILL) {
        snprintf(out->what, sizeof out->what, "its pages cannot be followed (%s)",
                 number == SIGBUS    ? "SIGBUS"
                 : number == SIGSEGV ? "SIGSEGV"
                                     : "the database's code gave up");
        return FB_OK;
    }
    return refused(why, why_len, directory, "the process that does it ended early");
}
