/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics: what the node, its store, its links, its API and its process count, in Prometheus'
 * text format. Names are part of the documentation (docs/OPERATIONS.md). */
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/clock.h"
#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"
#include "runtime/api/handlers.h"
#include "runtime/api/held_back.h"

static void metric(fb_text *out, const char *name, const char *kind, const char *help,
                   uint64_t value)
{
    fb_text_format(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, kind, name,
                   (unsigned long long)value);
}

static void node_metrics(fb_text *out, const fb_loop_stats *stats)
{
    for (size_t i = 0; i < FB_COUNTERS; i++) {
        char name[64];
        snprintf(name, sizeof name, "faberio_%s_total", fb_counter_name((fb_counter)i));
        metric(out, name, "counter", "Of the core, since its last start.", stats->counters[i]);
    }
    metric(out, "faberio_starts_total", "counter", "Incarnations begun by this process.",
           stats->starts);
    metric(out, "faberio_ready", "gauge", "1 when /readyz says ok.",
           stats->running && !stats->read_only);
    metric(out, "faberio_requests", "gauge", "Requests open at the node.", stats->requests);
    metric(out, "faberio_node_bytes", "gauge", "Memory set aside for the core's state.",
           stats->node_bytes);
}

static void store_metrics(fb_text *out, const fb_loop_stats *stats)
{
    const fb_lmdb_stats *store = &stats->store;
    metric(out, "faberio_store_writable", "gauge", "0 while the disk takes no writes.",
           !stats->read_only);
    metric(out, "faberio_store_reads_total", "counter", "Read sets answered.", store->reads);
    metric(out, "faberio_store_write_sets_total", "counter", "Write sets applied.",
           store->write_sets);
    metric(out, "faberio_store_commits_total", "counter", "Transactions, each with one fsync.",
           store->commits);
    metric(out, "faberio_store_failures_total", "counter", "Reads and writes that failed.",
           store->failures);
    metric(out, "faberio_store_damaged_total", "counter",
           "Values that did not match their checksum.", store->damaged);
    metric(out, "faberio_store_used_bytes", "gauge", "Bytes of the file in use.",
           store->used_bytes);
    metric(out, "faberio_store_entries", "gauge", "Keys present.", store->entries);
}

static void link_metrics(fb_text *out, const fb_carrier_stats *links)
{
    metric(out, "faberio_links", "gauge", "Connections with peers, dials under way among them.",
           links->links);
    metric(out, "faberio_links_accepted_total", "counter", "Connections that others opened.",
           links->accepted);
    metric(out, "faberio_links_full_total", "counter", "... closed at once: no place.",
           links->full);
    metric(out, "faberio_dials_total", "counter", "Addresses dialled.", links->dials);
    metric(out, "faberio_dials_failed_total", "counter", "... in vain.", links->dials_failed);
    metric(out, "faberio_links_pauses_total", "counter",
           "Pauses of accepting peers for want of descriptors.", links->pauses);
    metric(out, "faberio_links_received_bytes_total", "counter", "Bytes received from peers.",
           links->bytes_in);
    metric(out, "faberio_links_sent_bytes_total", "counter", "Bytes sent to peers.",
           links->bytes_out);
}

static void api_metrics(fb_text *out, const fb_api_stats *api)
{
    metric(out, "faberio_api_connections", "gauge", "Connections to the API.", api->connections);
    metric(out, "faberio_api_requests", "gauge", "Requests under way, this one among them.",
           api->requests);
    metric(out, "faberio_api_feeds", "gauge", "Feeds open.", api->feeds);
    metric(out, "faberio_api_pauses_total", "counter",
           "Pauses of accepting clients for want of descriptors.", api->pauses);
    fb_text_put(out, "# HELP faberio_api_responses_total Answers by their status; none: the client "
                     "was gone.\n# TYPE faberio_api_responses_total counter\n");
    for (unsigned i = 0; i < 6; i++) {
        static const char *const classes[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
        fb_text_format(out, "faberio_api_responses_total{class=\"%s\"} %llu\n", classes[i],
                       (unsigned long long)api->answers[i]);
    }
}

static uint64_t open_files(void)
{
    uint64_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (directory != NULL && readdir(directory) != NULL) count++;
    if (directory != NULL) closedir(directory);
    return count > 3 ? count - 3 : 0; /* two that are no files, and the directory itself */
}

uint64_t fb_process_resident_bytes(void)
{
    unsigned long long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) return 0;
    if (fscanf(file, "%llu %llu", &size, &resident) != 2) resident = 0;
    fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void process_metrics(fb_text *out, const fb_api_node *node)
{
    struct rusage used = {0};
    struct rlimit files = {0};
    getrusage(RUSAGE_SELF, &used);
    getrlimit(RLIMIT_NOFILE, &files);
    int64_t us = (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
                 used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    fb_text_format(out,
                   "# HELP process_cpu_seconds_total Processor time used.\n"
                   "# TYPE process_cpu_seconds_total counter\n"
                   "process_cpu_seconds_total %lld.%06lld\n",
                   (long long)(us / 1000000), (long long)(us % 1000000));
    metric(out, "process_resident_memory_bytes", "gauge", "Memory in use.",
           fb_process_resident_bytes());
    metric(out, "process_open_fds", "gauge", "Descriptors in use.", open_files());
    metric(out, "process_max_fds", "gauge", "Descriptors that may be.", files.rlim_cur);
    metric(out, "process_start_time_seconds", "gauge", "When it started, in Unix time.",
           (uint64_t)(node->started_wall_us / 1000000));
}

/* One line for each member of each space; of one that never reported, the last one says nothing. */
typedef enum held_metric { HELD_BATCHES, HELD_MISSING, HELD_AGE, HELD_METRICS } held_metric;

static void held_line(fb_text *out, const char *name, held_metric what, const fb_held_space *space,
                      const fb_held_member *member, int64_t now_us)
{
    char id[FB_UUID_TEXT_LEN + 1] = "", node[33] = "";
    fb_uuid_format(space->space, id);
    fb_hex_format(member->node.b, sizeof member->node.b, node);
    uint64_t value = what == HELD_BATCHES ? member->batches : member->state == FB_REPORT_NONE;
    if (what == HELD_AGE) {
        if (member->reported_us == 0) return;
        /* By the member's clock, which may be ahead of this one, or anything. */
        int64_t at = member->reported_us > 0 ? member->reported_us : 0;
        int64_t age = now_us > at ? now_us - at : 0;
        value = (uint64_t)age / 1000000;
    }
    fb_text_format(out, "%s{space=\"%s\",node=\"%s\"} %llu\n", name, id, node,
                   (unsigned long long)value);
}

static void held_back_metrics(fb_text *out, const fb_held_back *held)
{
    static const struct {
        const char *name, *help;
    } metrics[HELD_METRICS] = {
        [HELD_BATCHES] = {"faberio_member_waiting_batches",
                          "Batches kept because this member has not reported to hold them."},
        [HELD_MISSING] = {"faberio_member_report_missing",
                          "1 of a member that has never reported what it holds."},
        [HELD_AGE] = {"faberio_member_report_age_seconds", "Since its last report, by its clock."},
    };
    fb_text_put(out, "# HELP faberio_space_waiting_batches Batches kept for members that have not "
                     "reported them.\n# TYPE faberio_space_waiting_batches gauge\n");
    for (size_t i = 0; i < held->count; i++) {
        char id[FB_UUID_TEXT_LEN + 1] = "";
        fb_uuid_format(held->spaces[i].space, id);
        fb_text_format(out, "faberio_space_waiting_batches{space=\"%s\"} %llu\n", id,
                       (unsigned long long)held->spaces[i].batches);
    }
    int64_t now_us = fb_clock_wall_us();
    for (int m = 0; m < HELD_METRICS; m++) {
        fb_text_format(out, "# HELP %s %s\n# TYPE %s gauge\n", metrics[m].name, metrics[m].help,
                       metrics[m].name);
        for (size_t i = 0; i < held->count; i++) {
            const fb_held_space *space = &held->spaces[i];
            for (size_t k = 0; k < space->count && space->folds; k++) {
                if (!space->members[k].told) continue;
                held_line(out, metrics[m].name, (held_metric)m, space, &space->members[k], now_us);
            }
        }
    }
}

static void metrics_answer(fb_exchange *x)
{
    const fb_api_options *options = fb_api_options_of(x->api);
    fb_loop_stats stats;
    fb_api_stats api;
    fb_loop_stats_get(options->loop, &stats);
    fb_api_stats_get(x->api, &api);
    node_metrics(&x->out, &stats);
    store_metrics(&x->out, &stats);
    link_metrics(&x->out, &stats.carrier);
    api_metrics(&x->out, &api);
    process_metrics(&x->out, options->node);
    if (x->held_back != NULL) held_back_metrics(&x->out, x->held_back);
    x->content_type = "text/plain; version=0.0.4";
    fb_exchange_answer(x, 200);
}

void fb_get_metrics(fb_exchange *x)
{
    fb_loop_stats stats;
    fb_loop_stats_get(fb_api_options_of(x->api)->loop, &stats);
    if (stats.running) {
        fb_held_back_ask(x, metrics_answer);
    } else {
        metrics_answer(x); /* what asks nobody can be told all the same */
    }
}
