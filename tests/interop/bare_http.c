/* SPDX-License-Identifier: Apache-2.0 */
/* libmicrohttpd alone: answers a constant of so many bytes to whatever is asked on a Unix socket,
 * the way its own examples do. What tests/bench/bench_http.py compares the node's API with.
 *
 * usage: bare_http SOCKET BYTES      until its standard input ends */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/base/assert.h"

static char *constant;
static size_t constant_len;

static enum MHD_Result answer(void *user, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_len, void **state)
{
    (void)user, (void)url, (void)method, (void)version, (void)upload, (void)upload_len;
    if (*state == NULL) {
        *state = connection;
        return MHD_YES;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(constant_len, constant, MHD_RESPMEM_PERSISTENT);
    MHD_add_response_header(response, "Content-Type", "application/json");
    enum MHD_Result queued = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return queued;
}

int main(int argc, char **argv)
{
    FB_ASSERT(argc == 3);
    struct sockaddr_un here = {.sun_family = AF_UNIX};
    FB_ASSERT(strlen(argv[1]) < sizeof here.sun_path);
    memcpy(here.sun_path, argv[1], strlen(argv[1]));
    constant_len = strtoul(argv[2], NULL, 10);
    constant = calloc(1, constant_len + 1);
    FB_ASSERT(constant != NULL);
    memset(constant, 'x', constant_len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    FB_ASSERT(fd >= 0 && bind(fd, (struct sockaddr *)&here, sizeof here) == 0 &&
              listen(fd, 64) == 0);
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, NULL,
                         MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_END);
    FB_ASSERT(daemon != NULL);
    puts("ready");
    fflush(stdout);
    while (getchar() != EOF) {
    }
    MHD_stop_daemon(daemon);
    unlink(argv[1]);
    free(constant);
    return 0;
}
