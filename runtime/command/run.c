/* SPDX-License-Identifier: Apache-2.0 */
/* faberio run: the node in the foreground. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "io/clock.h"
#include "io/loop.h"
#include "io/net/address.h"
#include "protocol/base/hex.h"
#include "runtime/api/api.h"
#include "runtime/api/request_codec.h"
#include "runtime/command/commands.h"
#include "runtime/daemon/dial_log.h"
#include "runtime/daemon/document_store.h"
#include "runtime/daemon/log.h"
#include "runtime/daemon/service.h"

#ifndef FB_VERSION
#define FB_VERSION "unknown"
#endif

#define FILES_WANTED 4096u

typedef struct running_node {
    fb_cli *cli;
    uv_loop_t uv;
    fb_loop *loop;
    fb_recorder *recorder; /* or NULL */
    int claim;             /* on the key, -1: none */
    uv_poll_t claimed;     /* others ask who has it */
    fb_api *api;
    fb_daemon_log log;
    fb_dial_log dials;
    fb_home home;
    fb_home_keys keys;
    fb_document_store documents;
    fb_api_node node;
    char api_port[64];
    uv_signal_t signals[3];
    uv_timer_t watchdog;
    uv_timer_t ending; /* nothing can be done here any more */
    char fatal[FB_HOME_PATH_MAX + 256];
    bool bannered;
    bool stopping;
    int last_signal;
} running_node;

static const int watched[] = {SIGTERM, SIGINT, SIGHUP};

/* The manager hears of this process for as long as its loop goes round. */

static void watchdog_due(uv_timer_t *timer)
{
    (void)timer;
    fb_service_notify("WATCHDOG=1");
}

static void watchdog_begin(running_node *d)
{
    uint64_t ms = fb_service_watchdog_ms();
    if (ms != 0) uv_timer_start(&d->watchdog, watchdog_due, ms, ms);
}

/* Five lines, printed when the node answers: who waits for them may begin. */
static void banner(running_node *d, fb_span answer)
{
    fb_reader r = fb_reader_of(answer);
    uint16_t count = fb_read_u16(&r);
    fb_text spaces = {0};
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_space_row row = fb_space_row_next(&r);
        fb_text_put(&spaces, i > 0 ? ", " : "");
        fb_log_value(&spaces, row.name);
    }
    char id[33], socket[FB_HOME_PATH_MAX];
    fb_hex_text(d->keys.node_id.b, sizeof d->keys.node_id.b, id);
    fb_home_file(&d->home, "api.sock", socket);
    printf("faberio %s\n", FB_VERSION);
    printf("node    %s %s\n", id, d->keys.fingerprint);
    printf("spaces  %s\n", count > 0 ? fb_text_string(&spaces) : "none");
    printf("listen  %s\n", d->node.listen[0] != 0 ? d->node.listen : "none");
    printf("api     %s%s%s\n", socket, d->api_port[0] != 0 ? " http://" : "", d->api_port);
    fflush(stdout);
    fb_text_free(&spaces);
    d->bannered = true;
    fb_service_notify("READY=1\nSTATUS=running");
    watchdog_begin(d);
}

static void spaces_listed(void *user, fb_error error, bool more, fb_span answer)
{
    (void)more;
    running_node *d = user;
    if (!d->bannered && !d->stopping) {
        banner(d, error == FB_OK ? answer : (fb_span){NULL, 0});
    }
}

static void dialled(running_node *d, const fb_loop_event *event)
{
    fb_daemon_log *log = &d->log;
    fb_span address = fb_span_of(event->detail, event->detail_len);
    uint64_t failures;
    if (!fb_dial_log_tells(&d->dials, fb_clock_mono_ns(), address, event->error, &failures)) return;
    fb_daemon_log_begin(log, FB_LOG_INFO, event->error == FB_OK ? "link_dialled" : "dial_failed");
    if (event->error == FB_OK) fb_daemon_log_number(log, "link", event->link);
    if (event->error != FB_OK) {
        fb_daemon_log_text(log, "error", fb_span_text(fb_error_name(event->error)));
    }
    if (failures > 1) fb_daemon_log_number(log, "times", failures);
    fb_daemon_log_text(log, "address", address);
    fb_daemon_log_end(log);
}

static void ending_due(uv_timer_t *timer);

/* Events of the loop, as lines. */
static void happened(void *user, const fb_loop_event *event)
{
    running_node *d = user;
    fb_daemon_log *log = &d->log;
    fb_span detail = fb_span_of(event->detail, event->detail_len);
    fb_span error = fb_span_text(fb_error_name(event->error));
    char incarnation[17];
    switch (event->what) {
    case FB_LOOP_STARTED:
        fb_daemon_log_begin(log, FB_LOG_INFO, "start");
        snprintf(incarnation, sizeof incarnation, "%016llx",
                 (unsigned long long)event->incarnation);
        fb_daemon_log_text(log, "incarnation", fb_span_text(incarnation));
        break;
    case FB_LOOP_RUNNING:
        /* What is printed before the banner would not be one line per event after it. */
        if (!d->bannered) {
            fb_loop_request(d->loop, FB_VERB_SPACE_LIST, 0, (fb_span){NULL, 0}, spaces_listed, d);
        }
        fb_daemon_log_begin(log, FB_LOG_INFO, "running");
        break;
    case FB_LOOP_ENDED:
        fb_daemon_log_begin(log, FB_LOG_ERROR, "incarnation_ended");
        fb_daemon_log_text(log, "error", error);
        fb_daemon_log_text(log, "detail", detail);
        break;
    case FB_LOOP_FATAL:
        snprintf(d->fatal, sizeof d->fatal,
                 "%s: %.*s; run the version that wrote it, or restore a "
                 "backup",
                 d->home.path, (int)event->detail_len, event->detail);
        /* From the loop: this may come from within a step. */
        uv_timer_start(&d->ending, ending_due, 0, 0);
        return;
    case FB_LOOP_LOG:
        fb_daemon_log_begin(log, event->level, "node");
        fb_daemon_log_text(log, "text", detail);
        break;
    case FB_LOOP_OPENED:
        fb_daemon_log_begin(log, FB_LOG_INFO, "link_opened");
        fb_daemon_log_number(log, "link", event->link);
        fb_daemon_log_text(log, "host", detail);
        break;
    case FB_LOOP_DIALLED:
        dialled(d, event);
        return;
    case FB_LOOP_CLOSED:
        fb_daemon_log_begin(log, FB_LOG_INFO, "link_closed");
        fb_daemon_log_number(log, "link", event->link);
        fb_daemon_log_text(log, "error", error);
        break;
    case FB_LOOP_RENEWED:
        fb_daemon_log_begin(log, FB_LOG_INFO, "recording_goes_on");
        break;
    case FB_LOOP_UNRECORDED:
        fb_daemon_log_begin(log, FB_LOG_ERROR, "recording_failed");
        fb_daemon_log_text(log, "detail", detail);
        break;
    case FB_LOOP_READ_ONLY:
        fb_service_notify("STATUS=the store takes no writes; reads go on");
        fb_daemon_log_begin(log, FB_LOG_ERROR, "store_read_only");
        fb_daemon_log_text(log, "error", error);
        fb_daemon_log_text(log, "detail", detail);
        break;
    case FB_LOOP_WRITABLE:
        fb_service_notify("STATUS=running");
        fb_daemon_log_begin(log, FB_LOG_INFO, "store_writable");
        break;
    case FB_LOOP_OUTER:
        fb_daemon_log_begin(log, FB_LOG_WARNING, event->name);
        fb_daemon_log_text(log, "detail", detail);
        break;
    case FB_LOOP_STORE:
        fb_daemon_log_begin(log, FB_LOG_ERROR, "store_failed");
        fb_daemon_log_text(log, "error", error);
        fb_daemon_log_text(log, "detail", detail);
        break;
    }
    fb_daemon_log_end(log);
}

/* Stopping: no new requests, those under way end, then the API, then the process. */

static void api_closed(void *user)
{
    running_node *d = user;
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) {
        uv_close((uv_handle_t *)&d->signals[i], NULL);
    }
    uv_close((uv_handle_t *)&d->watchdog, NULL);
    uv_close((uv_handle_t *)&d->ending, NULL);
}

static void claim_asked(uv_poll_t *poll, int status, int events)
{
    const running_node *d = poll->data;
    (void)status;
    (void)events;
    fb_home_claim_asked(d->claim);
}

static void claim_watch(running_node *d)
{
    if (d->claim < 0 || uv_poll_init(&d->uv, &d->claimed, d->claim) != 0) return;
    d->claimed.data = d;
    uv_poll_start(&d->claimed, UV_READABLE, claim_asked);
}

static void claim_end(running_node *d)
{
    if (d->claim < 0) return;
    if (d->claimed.data != NULL) uv_close((uv_handle_t *)&d->claimed, NULL);
    close(d->claim);
    d->claim = -1;
}

static void loop_stopped(void *user)
{
    running_node *d = user;
    d->loop = NULL;
    claim_end(d);
    fb_api_close(d->api, api_closed, d);
}

static void stop(running_node *d)
{
    d->stopping = true;
    fb_service_notify("STOPPING=1\nSTATUS=stopping");
    fb_daemon_log_begin(&d->log, FB_LOG_INFO, "stopping");
    fb_daemon_log_end(&d->log);
    fb_api_quiesce(d->api);
    fb_loop_stop(d->loop, loop_stopped, d);
}

static void ending_due(uv_timer_t *timer)
{
    running_node *d = timer->data;
    if (!d->stopping) stop(d);
}

/* Where others may dial this node unless the setting says so: the listener's address, if that is
 * one. */
static void advertise(running_node *d)
{
    const char *set = fb_settings_get(&d->cli->settings, FB_SET_ADVERTISE);
    fb_address address;
    fb_sockaddr at;
    snprintf(d->node.advertise, sizeof d->node.advertise, "%s", set);
    if (set[0] != 0 || fb_address_parse(fb_span_text(d->node.listen), &address) != FB_OK ||
        !fb_address_numeric(&address, &at)) {
        return;
    }
    static const struct in6_addr any = IN6ADDR_ANY_INIT;
    bool wild = at.any.sa_family == AF_INET ? at.v4.sin_addr.s_addr == INADDR_ANY
                                            : memcmp(&at.v6.sin6_addr, &any, sizeof any) == 0;
    if (!wild) snprintf(d->node.advertise, sizeof d->node.advertise, "%s", d->node.listen);
}

/* What can change while the node runs: the log's format, and what invites name. All else stays what
 * it is, and is named. */
static void settings_take(running_node *d, const fb_settings *fresh)
{
    fb_settings *now = &d->cli->settings;
    for (int i = 0; i < FB_SETTINGS; i++) {
        fb_setting which = (fb_setting)i;
        bool applies = which == FB_SET_LOG_FORMAT || which == FB_SET_ADVERTISE;
        if (applies) {
            now->values[i] = fresh->values[i];
        } else if (strcmp(now->values[i].text, fresh->values[i].text) != 0) {
            fb_daemon_log_begin(&d->log, FB_LOG_WARNING, "reload_waits");
            fb_daemon_log_text(&d->log, "setting", fb_span_text(fb_setting_name(which)));
            fb_daemon_log_text(&d->log, "detail", fb_span_text("applies at the next start"));
            fb_daemon_log_end(&d->log);
        }
    }
}

static void reload(running_node *d)
{
    char why[FB_SETTINGS_WHY];
    static fb_settings fresh;
    fb_service_reloading(fb_clock_mono_ns() / 1000);
    bool loaded = fb_cli_settings(d->cli, &fresh, why, sizeof why);
    if (loaded) loaded = fb_settings_check_all(&fresh, why, sizeof why);
    if (!loaded) {
        fb_daemon_log_begin(&d->log, FB_LOG_ERROR, "reload_failed");
        fb_daemon_log_text(&d->log, "detail", fb_span_text(why));
    } else {
        settings_take(d, &fresh);
        d->log.json = strcmp(fb_settings_get(&fresh, FB_SET_LOG_FORMAT), "json") == 0;
        advertise(d);
        fb_daemon_log_begin(&d->log, FB_LOG_INFO, "reload");
    }
    fb_daemon_log_end(&d->log);
    /* What was in force before a file with a mistake is in force still. */
    fb_service_notify("READY=1");
}

static void signalled(uv_signal_t *handle, int number)
{
    running_node *d = handle->data;
    if (number == SIGHUP) {
        reload(d);
        return;
    }
    /* A second one does not wait. Everything acknowledged is on disk at any moment. */
    if (d->stopping) _exit(128 + number);
    d->last_signal = number;
    stop(d);
}

/* What the start found in the store's place. The node goes on with an empty store: each start has a
 * fresh incarnation, so no number of the lost one is used again, and what peers have comes back
 * from them once the node is invited again (DESIGN 7). */
static bool store_found(running_node *d, char *why, size_t why_len)
{
    const fb_lmdb_opening *opening = &d->node.opening;
    d->node.opening = *fb_loop_opening(d->loop);
    bool had = fb_home_had_store(&d->home);
    d->node.store_lost = had && opening->found == FB_LMDB_FOUND_NOTHING;
    if (opening->found == FB_LMDB_FOUND_DAMAGED) {
        fb_daemon_log_begin(&d->log, FB_LOG_ERROR, "store_moved_aside");
        fb_daemon_log_text(&d->log, "detail", fb_span_text(opening->damage));
        fb_daemon_log_text(&d->log, "moved_to", fb_span_text(opening->aside));
        fb_daemon_log_end(&d->log);
    }
    if (d->node.store_lost) {
        fb_daemon_log_begin(&d->log, FB_LOG_ERROR, "store_lost");
        fb_daemon_log_text(&d->log, "detail",
                           fb_span_text("there was a store and it is gone; this one is empty"));
        fb_daemon_log_end(&d->log);
    }
    if (opening->entries_damaged > 0) {
        fb_daemon_log_begin(&d->log, FB_LOG_ERROR, "store_damaged");
        fb_daemon_log_text(&d->log, "detail", fb_span_text("values do not match their checksums"));
        fb_daemon_log_number(&d->log, "entries", opening->entries_damaged);
        fb_daemon_log_number(&d->log, "of", opening->entries_checked);
        fb_daemon_log_end(&d->log);
    }
    return had || fb_home_mark_store(&d->home, why, why_len) == FB_OK;
}

/* The flight recorder, when one is asked for. */
static bool open_recorder(running_node *d, char *why, size_t why_len)
{
    const fb_settings *settings = &d->cli->settings;
    unsigned long long bytes = 0;
    fb_recorder_options options = {
        .path = fb_settings_get(settings, FB_SET_RECORD),
        .program = "faberio " FB_VERSION,
    };
    if (options.path[0] == 0) return true;
    const char *key = fb_settings_get(settings, FB_SET_RECORD_KEY);
    if (key[0] != 0) {
        fb_hex_parse(fb_span_text(key), options.reader_key.b, sizeof options.reader_key.b);
    } else if (fb_home_record_key(&d->home, &options.reader_key, why, why_len) != FB_OK) {
        return false;
    }
    fb_cli_bytes(fb_settings_get(settings, FB_SET_RECORD_MAX), &bytes);
    options.bytes_max = bytes;
    return fb_recorder_open(&options, &d->recorder, why, why_len) == FB_OK;
}

/* What does not work now is the operator's mistake; what stops working later is a disk's. */
static bool records(const running_node *d, char *why, size_t why_len)
{
    if (d->recorder == NULL) return true;
    fb_recorder_stats stats;
    fb_recorder_stats_get(d->recorder, &stats);
    if (stats.failed[0] == 0) return true;
    snprintf(why, why_len, "%s: %s", fb_settings_get(&d->cli->settings, FB_SET_RECORD),
             stats.failed);
    return false;
}

static bool open_loop(running_node *d, char *why, size_t why_len)
{
    char store[FB_HOME_PATH_MAX];
    fb_home_file(&d->home, "store", store);
    fb_loop_options options = {
        .uv = &d->uv,
        .node = fb_options_default(),
        .store = {.directory = store, .owner = d->keys.node_id},
        .recorder = d->recorder,
        .happened = happened,
        .user = d,
    };
    options.node.provider = fb_sodium_provider(d->keys.sodium);
    options.node.identity_key = d->keys.identity_key;
    options.node.link_key = d->keys.link_key;
    const char *kept = fb_settings_get(&d->cli->settings, FB_SET_STORE);
    if (!fb_document_store_open(kept, d->keys.node_id, &d->documents, why, why_len)) return false;
    options.store.documents_ops = d->documents.ops;
    options.store.documents = d->documents.documents;
    if (fb_loop_open(&options, &d->loop, why, why_len) != FB_OK) return false;
    if (!store_found(d, why, why_len)) return false;
    const char *listen = fb_settings_get(&d->cli->settings, FB_SET_LISTEN);
    if (strcmp(listen, "none") == 0) return true;
    return fb_loop_listen(d->loop, listen, d->node.listen, sizeof d->node.listen, why, why_len) ==
           FB_OK;
}

static void nothing(void *user)
{
    (void)user;
}

static bool open_all(running_node *d, char *why, size_t why_len)
{
    if (!open_recorder(d, why, why_len)) return false;
    /* The store says first who has this directory; nothing is sent before the loop runs. */
    if (!open_loop(d, why, why_len) || !records(d, why, why_len) ||
        !fb_home_claim(&d->keys, &d->claim, why, why_len)) {
        if (d->loop != NULL) fb_loop_stop(d->loop, nothing, d);
        return false;
    }
    advertise(d);
    fb_api_options options = {
        .uv = &d->uv,
        .loop = d->loop,
        .node = &d->node,
        .settings = &d->cli->settings,
        .port = fb_settings_get(&d->cli->settings, FB_SET_API),
    };
    if (!fb_api_open(&options, &d->api, d->api_port, sizeof d->api_port, why, why_len)) {
        if (d->api != NULL) fb_api_close(d->api, nothing, d);
        fb_loop_stop(d->loop, nothing, d);
        return false;
    }
    claim_watch(d);
    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++) {
        uv_signal_init(&d->uv, &d->signals[i]);
        d->signals[i].data = d;
        uv_signal_start(&d->signals[i], signalled, watched[i]);
    }
    uv_timer_init(&d->uv, &d->watchdog);
    uv_timer_init(&d->uv, &d->ending);
    d->ending.data = d;
    return true;
}

/* The API's connections and the links have places of their own, and all of them need one. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= FILES_WANTED) return;
    limit.rlim_cur = limit.rlim_max < FILES_WANTED ? limit.rlim_max : FILES_WANTED;
    setrlimit(RLIMIT_NOFILE, &limit);
}

fb_exit fb_cmd_run(fb_cli *cli)
{
    char why[FB_HOME_PATH_MAX + 256] = "";
    static running_node d;
    d.cli = cli;
    char wrong[FB_SETTINGS_WHY];
    if (!fb_settings_check_all(&cli->settings, wrong, sizeof wrong)) {
        return fb_cli_usage(cli, "%s", wrong);
    }
    if (!fb_home_open(fb_settings_get(&cli->settings, FB_SET_HOME), &d.home, why, sizeof why)) {
        return fb_cli_fail(FB_EXIT_USAGE, "%s", why);
    }
    if (fb_home_load(&d.home, &d.keys, why, sizeof why) != FB_OK) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s", why);
    }
    const char *format = fb_settings_get(&cli->settings, FB_SET_LOG_FORMAT);
    fb_daemon_log_init(&d.log, strcmp(format, "json") == 0);
    d.claim = -1;
    d.node.home = &d.home;
    d.node.keys = &d.keys;
    d.node.version = FB_VERSION;
    d.node.started_mono_ns = fb_clock_mono_ns();
    d.node.started_wall_us = fb_clock_wall_us();
    raise_file_limit();
    uv_loop_init(&d.uv);
    bool opened = open_all(&d, why, sizeof why);
    uv_run(&d.uv, UV_RUN_DEFAULT);
    uv_loop_close(&d.uv);
    fb_recorder_close(d.recorder);
    fb_document_store_close(&d.documents);
    fb_home_unload(&d.keys);
    if (opened) {
        fb_daemon_log_begin(&d.log, FB_LOG_INFO, "stopped");
        fb_daemon_log_end(&d.log);
    }
    fb_daemon_log_free(&d.log);
    if (opened && d.fatal[0] != 0) return fb_cli_fail(FB_EXIT_FAILED, "%s", d.fatal);
    return opened ? FB_EXIT_OK : fb_cli_fail(FB_EXIT_FAILED, "%s", why);
}
