/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/daemon/service.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "runtime/text.h"

void fb_service_notify(const char *lines)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof to.sun_path) {
        return;
    }
    memcpy(to.sun_path, path, strlen(path));
    if (path[0] == '@') to.sun_path[0] = 0;
    /* Not blocking: a manager that does not read must not hold the node up. */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    (void)!sendto(fd, lines, strlen(lines), MSG_NOSIGNAL, (struct sockaddr *)&to, len);
    close(fd);
}

void fb_service_reloading(uint64_t mono_us)
{
    char lines[64];
    snprintf(lines, sizeof lines, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)mono_us);
    fb_service_notify(lines);
}

uint64_t fb_service_watchdog_ms(void)
{
    const char *within = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    unsigned long long us, number;
    if (within == NULL || !fb_text_number(within, UINT64_MAX, &us) || us == 0) return 0;
    if (pid != NULL &&
        (!fb_text_number(pid, UINT32_MAX, &number) || number != (unsigned)getpid())) {
        return 0;
    }
    return us < 2000 ? 1 : us / 2000;
}

bool fb_service_is_journal(int fd)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    char here[48];
    if (stream == NULL || fstat(fd, &st) != 0) return false;
    snprintf(here, sizeof here, "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    return strcmp(stream, here) == 0;
}
