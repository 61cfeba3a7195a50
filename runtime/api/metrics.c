/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics: what the node, its store, its links, its API and its process count, in Prometheus'
 * text format. Names are part of the documentation (docs/OPERATIONS.md). */
#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/api/handlers.h"

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

void fb_get_metrics(fb_exchange *x)
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
    x->content_type = "text/plain; version=0.0.4";
    fb_exchange_answer(x, 200);
}
