/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/text.h"

static const char *const common[] = {"home=", "config=", "command-timeout=", "json"};

const char *fb_cli_option(const fb_cli *cli, const char *name)
{
    for (size_t i = 0; i < cli->option_count; i++) {
        if (strcmp(cli->options[i].name, name) == 0) {
            return cli->options[i].value != NULL ? cli->options[i].value : "";
        }
    }
    return NULL;
}

void fb_cli_put_visible(const char *text)
{
    for (; *text != 0; text++) {
        unsigned char byte = (unsigned char)*text, next = (unsigned char)text[1];
        if (byte < 0x20 || byte == 0x7f) {
            fprintf(stderr, "\\x%02x", byte);
        } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
            /* The control characters of Latin-1: some terminals obey them as well. */
            fprintf(stderr, "\\u%04x", next);
            text++;
        } else {
            fputc(byte, stderr);
        }
    }
}

/* A message repeats what was typed or found in a file: made visible, and not the whole of a long
 * one. */
static void say(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

static void say(const char *format, va_list args)
{
    char message[2048];
    int len = vsnprintf(message, sizeof message, format, args);
    fb_cli_put_visible(message);
    if (len < 0 || (size_t)len >= sizeof message) fputs("...", stderr);
}

fb_exit fb_cli_usage(const fb_cli *cli, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "faberio %s: ", cli->command->name);
    say(format, args);
    fprintf(stderr, "\nusage: faberio %s%s%s\n       faberio help %s\n", cli->command->name,
            cli->command->arguments[0] != 0 ? " " : "", cli->command->arguments,
            cli->command->name);
    va_end(args);
    return FB_EXIT_USAGE;
}

fb_exit fb_cli_fail(fb_exit code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("faberio: ", stderr);
    say(format, args);
    fputc('\n', stderr);
    va_end(args);
    return code;
}

bool fb_cli_duration(const char *text, unsigned long long *seconds)
{
    static const struct {
        char unit;
        unsigned long long seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    size_t len = strlen(text);
    char digits[24];
    if (len == 0 || len >= sizeof digits) return false;
    memcpy(digits, text, len + 1);
    unsigned long long factor = 1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (digits[len - 1] == units[i].unit) {
            factor = units[i].seconds;
            digits[len - 1] = 0;
            break;
        }
    }
    if (!fb_text_number(digits, 1000000000, seconds)) return false;
    *seconds *= factor;
    return true;
}

bool fb_cli_bytes(const char *text, unsigned long long *bytes)
{
    static const char units[] = "kmgt";
    size_t len = strlen(text);
    char digits[24];
    if (len == 0 || len >= sizeof digits) return false;
    memcpy(digits, text, len + 1);
    const char *unit = strchr(units, digits[len - 1]);
    if (unit != NULL) digits[len - 1] = 0;
    if (!fb_text_number(digits, 1ull << 20, bytes) &&
        (unit != NULL || !fb_text_number(digits, 1ull << 50, bytes)))
        return false;
    if (unit != NULL) *bytes <<= 10 * (unit - units + 1);
    return true;
}

static const char *flag(const void *user, const char *name)
{
    return fb_cli_option(user, name);
}

bool fb_cli_settings(const fb_cli *cli, fb_settings *out, char *why, size_t why_len)
{
    return fb_settings_load(out, flag, cli, why, why_len);
}

/* Does the blank-separated list hold the option; with "=" behind it? */
static bool listed(const char *list, const char *name, size_t len, bool *has_value)
{
    for (const char *at = list; at != NULL && *at != 0;) {
        const char *end = strchr(at, ' ');
        size_t word = end != NULL ? (size_t)(end - at) : strlen(at);
        *has_value = word > 0 && at[word - 1] == '=';
        size_t bare = *has_value ? word - 1 : word;
        if (bare == len && memcmp(at, name, len) == 0) return true;
        at = end != NULL ? end + 1 : NULL;
    }
    return false;
}

static bool known(const fb_command *command, const char *name, size_t len, bool *has_value)
{
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
        if (listed(common[i], name, len, has_value)) return true;
    }
    return listed(command->options, name, len, has_value);
}

/* One word that begins with two hyphens; *used says whether the next word was its value. */
static bool parse_option(fb_cli *cli, const char *word, const char *next, bool *used)
{
    const char *name = word + 2;
    const char *equals = strchr(name, '=');
    size_t len = equals != NULL ? (size_t)(equals - name) : strlen(name);
    bool has_value = false;
    *used = false;
    if (!known(cli->command, name, len, &has_value)) {
        fb_cli_usage(cli, "no option %.*s", (int)(len + 2), word);
        return false;
    }
    if (!has_value && equals != NULL) {
        fb_cli_usage(cli, "--%.*s takes no value", (int)len, name);
        return false;
    }
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (has_value && value == NULL) {
        value = next;
        *used = true;
        if (value == NULL) {
            fb_cli_usage(cli, "--%.*s needs a value", (int)len, name);
            return false;
        }
    }
    if (cli->option_count == FB_CLI_OPTIONS_MAX) {
        fb_cli_usage(cli, "too many options");
        return false;
    }
    /* Option names of the table end where theirs do, so the copy in argv is cut there. */
    static char names[FB_CLI_OPTIONS_MAX][32];
    if (len >= sizeof names[0]) return false;
    memcpy(names[cli->option_count], name, len);
    names[cli->option_count][len] = 0;
    cli->options[cli->option_count].name = names[cli->option_count];
    cli->options[cli->option_count].value = value;
    cli->option_count++;
    return true;
}

/* Names and values go to the node as JSON, which is UTF-8; changing them on the way would write
 * something else than was typed. Paths may be any bytes. */
static bool texts_are_valid(const fb_cli *cli)
{
    for (int i = 0; i < cli->argc; i++) {
        /* Nothing has an empty name, and a script's variable may be empty where it should not be.
         */
        if (cli->argv[i][0] == 0) {
            fb_cli_usage(cli, "argument %d is empty", i + 1);
            return false;
        }
        if (fb_text_is_utf8(fb_span_text(cli->argv[i]))) continue;
        fb_cli_usage(cli, "argument %d is not UTF-8", i + 1);
        return false;
    }
    for (size_t i = 0; i < cli->option_count; i++) {
        const char *name = cli->options[i].name, *value = cli->options[i].value;
        if (value == NULL || strcmp(name, "home") == 0 || strcmp(name, "config") == 0) continue;
        if (fb_text_is_utf8(fb_span_text(value))) continue;
        fb_cli_usage(cli, "the value of --%s is not UTF-8", name);
        return false;
    }
    return true;
}

bool fb_cli_parse(fb_cli *cli, const fb_command *command, int argc, char **argv)
{
    cli->command = command;
    bool options_over = false;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (!options_over && strcmp(word, "--") == 0) {
            options_over = true;
        } else if (!options_over && word[0] == '-' && word[1] == '-') {
            bool used;
            if (!parse_option(cli, word, i + 1 < argc ? argv[i + 1] : NULL, &used)) return false;
            if (used) i++;
        } else if (!options_over && word[0] == '-' && word[1] != 0) {
            fb_cli_usage(cli, "no option %s", word);
            return false;
        } else if (cli->argc == FB_CLI_ARGUMENTS_MAX) {
            fb_cli_usage(cli, "more than %d arguments", FB_CLI_ARGUMENTS_MAX);
            return false;
        } else {
            cli->argv[cli->argc++] = word;
        }
    }
    if (cli->argc < command->arguments_min) {
        fb_cli_usage(cli, "an argument is missing");
        return false;
    }
    if (command->arguments_max >= 0 && cli->argc > command->arguments_max) {
        fb_cli_usage(cli, "%s is one argument too many", cli->argv[command->arguments_max]);
        return false;
    }
    cli->json = fb_cli_option(cli, "json") != NULL;
    return texts_are_valid(cli);
}
