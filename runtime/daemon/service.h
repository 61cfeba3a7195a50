/* SPDX-License-Identifier: Apache-2.0 */
/* The service manager that started this process, if one did: systemd's protocol of notifications,
 * which is one datagram each, and its journal. */
#ifndef FB_RUNTIME_DAEMON_SERVICE_H
#define FB_RUNTIME_DAEMON_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

/* Lines "NAME=VALUE", one or several; nothing happens without a manager. */
void fb_service_notify(const char *lines);

/* Says that settings are being read again; READY=1 ends it. */
void fb_service_reloading(uint64_t mono_us);

/* Within what time the manager wants to hear WATCHDOG=1, halved; 0: not at all. */
uint64_t fb_service_watchdog_ms(void);

/* Does what is written to this descriptor go to the journal? A variable alone does not say: it is
 * inherited by what runs elsewhere. */
bool fb_service_is_journal(int fd);

#endif
