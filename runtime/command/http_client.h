/* SPDX-License-Identifier: Apache-2.0 */
/* What commands say to the node that runs: HTTP/1.1 over <home>/api.sock. */
#ifndef FB_RUNTIME_COMMAND_HTTP_CLIENT_H
#define FB_RUNTIME_COMMAND_HTTP_CLIENT_H

#include "runtime/command/cli.h"
#include "runtime/json_in.h"
#include "runtime/text.h"

typedef struct fb_http_response {
    unsigned status;
    bool problem; /* the body is problem+json */
    fb_text body;
} fb_http_response;

/* One segment of a path, percent-encoded, with a slash before it. */
void fb_path_put(fb_text *path, const char *segment);
/* The same without the slash: the value of a query argument. */
void fb_path_escape(fb_text *path, const char *value);

/* headers: further header lines, each with its line end, or NULL. body: JSON or NULL.
 * FB_EXIT_OK: an answer of any status came. FB_EXIT_UNREACHABLE after it said why: nobody there, or
 * nothing came for as long as the command waits. */
fb_exit fb_http_call(const fb_cli *cli, const char *method, const char *path, const char *headers,
                     const char *body, fb_http_response *out);
/* Whether anybody answers in this home; says nothing. */
bool fb_http_is_answered(const fb_cli *cli);
void fb_http_free(fb_http_response *response);

/* Prints why a request was refused: the problem in the body. */
void fb_http_problem_print(const fb_text *body, unsigned status);

/* The same, and refusals are printed: returns the exit code that the status stands for. */
fb_exit fb_http_run(const fb_cli *cli, const char *method, const char *path, const char *headers,
                    const char *body, fb_text *answer);

/* The same, and the answer is printed. */
fb_exit fb_http_print(const fb_cli *cli, const char *method, const char *path, const char *body);

/* Server-sent events: `event` is called with the data of each, `ready` once the headers came. It
 * ends when the node ends it, or when `event` says so. */
fb_exit fb_http_events(const fb_cli *cli, const char *path, void (*ready)(void *user),
                       fb_exit (*event)(void *user, const char *name, const char *data, bool *end),
                       void *user);

/* Prints one answer: as it is with --json, else for people. */
void fb_print(const fb_cli *cli, const fb_text *answer);
/* Prints one JSON text for people. */
void fb_print_text(const fb_text *text);
/* Prints one JSON object for people, on one line. */
void fb_print_line(const char *object);
/* Prints the elements of one member, one a line with --json. False when there is no such array. */
bool fb_print_list(const fb_cli *cli, const fb_text *answer, const char *member);

#endif
