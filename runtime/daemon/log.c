/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/daemon/log.h"

#include <stdio.h>
#include <unistd.h>

#include "io/clock.h"
#include "runtime/daemon/service.h"

void fb_daemon_log_init(fb_daemon_log *log, bool json)
{
    *log = (fb_daemon_log){.json = json, .systemd = fb_service_is_journal(STDOUT_FILENO)};
}

void fb_daemon_log_free(fb_daemon_log *log)
{
    fb_text_free(&log->line);
}

void fb_daemon_log_begin(fb_daemon_log *log, fb_log_level level, const char *event)
{
    static const char *const names[] = {"error", "error", "warning", "info"};
    static const int priorities[] = {3, 3, 4, 6}; /* of syslog */
    size_t at = level <= FB_LOG_INFO ? (size_t)level : FB_LOG_INFO;
    int64_t now = fb_clock_wall_us();
    fb_text_clear(&log->line);
    if (log->systemd) fb_text_format(&log->line, "<%d>", priorities[at]);
    if (log->json) {
        fb_text_put(&log->line, "{");
        if (!log->systemd) fb_json_time(&log->line, "time", now);
        fb_json_member(&log->line, "level", names[at]);
        fb_json_member(&log->line, "event", event);
        return;
    }
    char time[FB_TIME_TEXT_BYTES];
    fb_time_format(now, time);
    if (!log->systemd) fb_text_format(&log->line, "time=%s ", time);
    fb_text_format(&log->line, "level=%s event=%s", names[at], event);
}

void fb_daemon_log_text(fb_daemon_log *log, const char *key, fb_span value)
{
    if (log->json) {
        fb_json_span(&log->line, key, value);
        return;
    }
    fb_text_format(&log->line, " %s=", key);
    fb_log_value(&log->line, value);
}

void fb_daemon_log_number(fb_daemon_log *log, const char *key, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    if (log->json) {
        fb_json_raw(&log->line, key, fb_span_text(digits));
    } else {
        fb_text_format(&log->line, " %s=%s", key, digits);
    }
}

void fb_daemon_log_end(fb_daemon_log *log)
{
    fb_text_put(&log->line, log->json ? "}\n" : "\n");
    fputs(fb_text_string(&log->line), stdout);
    fflush(stdout);
}
