/* SPDX-License-Identifier: Apache-2.0 */
/* What every command gets: its arguments and the settings that apply. */
#ifndef FB_RUNTIME_COMMAND_CLI_H
#define FB_RUNTIME_COMMAND_CLI_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/exit.h"
#include "runtime/settings.h"

#define FB_CLI_OPTIONS_MAX   16
#define FB_CLI_ARGUMENTS_MAX 512

typedef struct fb_cli fb_cli;

/* A command: one row of the table in main.c. */
typedef struct fb_command {
    const char *name;      /* one or two words, e.g. "space create" */
    const char *arguments; /* as in its usage line; "..." at the end: any number more */
    const char *summary;   /* one line */
    const char *options;   /* names after two hyphens, blank between; "=" behind those with value */
    const char *help;      /* further lines of `faberio help NAME`, or NULL */
    int arguments_min;
    int arguments_max; /* -1: any number */
    fb_exit (*run)(fb_cli *cli);
    /* Instead of run, for commands that read their whole command line themselves. */
    int (*raw)(int argc, char **argv);
} fb_command;

struct fb_cli {
    const fb_command *command;
    int argc;
    const char *argv[FB_CLI_ARGUMENTS_MAX]; /* positional ones */
    struct {
        const char *name;
        const char *value; /* NULL for an option without one */
    } options[FB_CLI_OPTIONS_MAX];
    size_t option_count;
    bool json;
    fb_settings settings;
    unsigned long long wait_s;      /* for a node that says nothing: command-timeout */
    unsigned long long wait_more_s; /* ... this command lets it be silent so much longer */
};

/* The value of an option that was given, "" for one without value, else NULL. */
const char *fb_cli_option(const fb_cli *cli, const char *name);

/* Prints `text` on standard error with its control characters spelt out: what was typed or found in
 * a file may hold codes that a terminal obeys. */
void fb_cli_put_visible(const char *text);

/* Prints "faberio COMMAND: MESSAGE" and how to get help; returns FB_EXIT_USAGE. */
fb_exit fb_cli_usage(const fb_cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints "faberio: MESSAGE" on standard error and returns `code`. */
fb_exit fb_cli_fail(fb_exit code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Seconds from "90", "90s", "15m", "2h" or "7d". */
bool fb_cli_duration(const char *text, unsigned long long *seconds);

/* Bytes from "65536", "64k", "512m" or "2g" (1,024 each). */
bool fb_cli_bytes(const char *text, unsigned long long *bytes);

/* Loads the settings again with the flags that were given: at start, and on SIGHUP. False with a
 * sentence in why; then *out is not to be used. */
bool fb_cli_settings(const fb_cli *cli, fb_settings *out, char *why, size_t why_len);

/* Parses what follows the command's name. False after it said why. */
bool fb_cli_parse(fb_cli *cli, const fb_command *command, int argc, char **argv);

#endif
