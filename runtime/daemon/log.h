/* SPDX-License-Identifier: Apache-2.0 */
/* What `faberio run` prints: one line per event, key=value or JSON. Never payloads or keys. */
#ifndef FB_RUNTIME_DAEMON_LOG_H
#define FB_RUNTIME_DAEMON_LOG_H

#include "protocol/core/effect.h"
#include "runtime/text.h"

typedef struct fb_daemon_log {
    bool json;
    bool systemd; /* no time, and <n> in front: the journal has both */
    fb_text line;
} fb_daemon_log;

/* Looks whether standard output is systemd's journal. */
void fb_daemon_log_init(fb_daemon_log *log, bool json);
void fb_daemon_log_free(fb_daemon_log *log);

/* A line is begun, gets its members, and ends. Values are escaped: peer text is safe. */
void fb_daemon_log_begin(fb_daemon_log *log, fb_log_level level, const char *event);
void fb_daemon_log_text(fb_daemon_log *log, const char *key, fb_span value);
void fb_daemon_log_number(fb_daemon_log *log, const char *key, uint64_t value);
void fb_daemon_log_end(fb_daemon_log *log);

#endif
