/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "protocol/base/hex.h"
#include "runtime/api/api.h"
#include "runtime/api/request_codec.h"
#include "runtime/command/commands.h"
#include "runtime/command/http_client.h"

static fb_text record_path(const fb_cli *cli, const char *id)
{
    fb_text path = {0};
    fb_text_put(&path, "/v1/spaces");
    fb_path_put(&path, cli->argv[0]);
    fb_text_put(&path, "/collections");
    fb_path_put(&path, cli->argv[1]);
    fb_text_put(&path, "/records");
    if (id != NULL) fb_path_put(&path, id);
    return path;
}

/* Of the field that FIELD=JSON and its relatives name. */
static size_t name_length(const char *argument)
{
    size_t len = strcspn(argument, "=");
    if (len > 2 &&
        (memcmp(argument + len - 2, ":+", 2) == 0 || memcmp(argument + len - 2, ":-", 2) == 0)) {
        return len - 2;
    }
    return len > 1 && argument[len - 1] == '+' ? len - 1 : len;
}

/* FIELD=JSON, FIELD+=N, FIELD:+=JSON, FIELD:-=JSON; one member of the body for each. */
static fb_exit field_put(const fb_cli *cli, fb_text *body, int at)
{
    const char *argument = cli->argv[at];
    const char *equals = strchr(argument, '=');
    if (equals == NULL || equals == argument) {
        return fb_cli_usage(cli, "%s: FIELD=JSON is expected", argument);
    }
    const char *end = equals;
    const char *wrap = NULL;
    if (end - argument > 2 && memcmp(end - 2, ":+", 2) == 0) {
        wrap = "$insert";
        end -= 2;
    } else if (end - argument > 2 && memcmp(end - 2, ":-", 2) == 0) {
        wrap = "$remove";
        end -= 2;
    } else if (end - argument > 1 && end[-1] == '+') {
        wrap = "$add";
        end -= 1;
    }
    char why[200];
    fb_text value = {0};
    fb_span name = fb_span_of(argument, (size_t)(end - argument));
    for (int i = 3; i < at; i++) {
        const char *other = cli->argv[i];
        if (fb_span_equal(fb_span_of(other, name_length(other)), name)) {
            return fb_cli_usage(cli, "field %.*s is named twice", (int)name.len, argument);
        }
    }
    if (!fb_json_value_read(fb_span_text(equals + 1), &value, why, sizeof why)) {
        fb_exit exit = fb_cli_usage(
            cli, "field %.*s: %s is not JSON (%s); a text needs its quotes: '%.*s=\"...\"'",
            (int)name.len, argument, equals + 1, why, (int)name.len, argument);
        fb_text_free(&value);
        return exit;
    }
    fb_json_element(body);
    fb_json_string(body, name);
    fb_text_put(body, ":");
    if (wrap != NULL) {
        fb_json_open(body, NULL, '{');
        fb_json_raw(body, wrap, fb_span_of(value.p, value.len));
        fb_json_close(body, '}');
    } else {
        fb_text_bytes(body, value.p, value.len);
    }
    fb_text_free(&value);
    return FB_EXIT_OK;
}

/* --if-match ETAG, or --if-absent, as header lines. */
static void condition(const fb_cli *cli, fb_text *headers)
{
    const char *etag = fb_cli_option(cli, "if-match");
    if (etag != NULL) fb_text_format(headers, "If-Match: \"%.64s\"\r\n", etag);
    if (fb_cli_option(cli, "if-absent") != NULL) fb_text_put(headers, "If-None-Match: *\r\n");
}

/* Absent, or as records show it. */
static bool etag_valid(const char *text)
{
    uint8_t bytes[16];
    return text == NULL || fb_hex_parse(fb_span_text(text), bytes, sizeof bytes);
}

fb_exit fb_cmd_record_put(fb_cli *cli)
{
    fb_text body = {0}, headers = {0}, answer = {0};
    fb_exit exit = FB_EXIT_OK;
    if (!etag_valid(fb_cli_option(cli, "if-match"))) {
        return fb_cli_usage(cli, "--if-match: the etag of a record is expected, 32 hex digits");
    }
    fb_json_open(&body, NULL, '{');
    for (int i = 3; i < cli->argc && exit == FB_EXIT_OK; i++) {
        exit = field_put(cli, &body, i);
    }
    fb_json_close(&body, '}');
    condition(cli, &headers);
    if (exit == FB_EXIT_OK) {
        fb_text path = record_path(cli, cli->argv[2]);
        const char *method = fb_cli_option(cli, "replace") != NULL ? "PUT" : "PATCH";
        exit = fb_http_run(cli, method, path.p, headers.p, body.p, &answer);
        fb_text_free(&path);
    }
    if (exit == FB_EXIT_OK) fb_print(cli, &answer);
    fb_text_free(&body);
    fb_text_free(&headers);
    fb_text_free(&answer);
    return exit;
}

fb_exit fb_cmd_record_get(fb_cli *cli)
{
    fb_text path = record_path(cli, cli->argv[2]), answer;
    fb_exit exit = fb_http_run(cli, "GET", path.p, NULL, NULL, &answer);
    if (exit == FB_EXIT_OK) fb_print(cli, &answer);
    fb_text_free(&path);
    fb_text_free(&answer);
    return exit;
}

fb_exit fb_cmd_record_delete(fb_cli *cli)
{
    fb_text path = record_path(cli, cli->argv[2]), headers = {0}, answer;
    if (!etag_valid(fb_cli_option(cli, "if-match"))) {
        return fb_cli_usage(cli, "--if-match: the etag of a record is expected, 32 hex digits");
    }
    condition(cli, &headers);
    fb_exit exit = fb_http_run(cli, "DELETE", path.p, headers.p, NULL, &answer);
    if (exit == FB_EXIT_OK) fb_print(cli, &answer);
    fb_text_free(&path);
    fb_text_free(&headers);
    fb_text_free(&answer);
    return exit;
}

/* Where the next page begins, or false when this was the last; *count gets its records. */
static bool page_next(const fb_text *answer, char next[64], unsigned long long *count)
{
    json_error_t error;
    json_t *tree = json_loadb(fb_text_string(answer), answer->len, 0, &error);
    const char *id = json_string_value(json_object_get(tree, "next"));
    *count = json_array_size(json_object_get(tree, "records"));
    if (id != NULL) snprintf(next, 64, "%s", id);
    json_decref(tree);
    return id != NULL;
}

fb_exit fb_cmd_record_list(fb_cli *cli)
{
    const char *limit_text = fb_cli_option(cli, "limit"), *after = fb_cli_option(cli, "after");
    unsigned long long limit = UINT64_MAX;
    if (limit_text != NULL && (!fb_text_number(limit_text, UINT32_MAX, &limit) || limit == 0)) {
        return fb_cli_usage(cli, "--limit: a number from 1 is expected, not %s", limit_text);
    }
    char next[64] = "";
    bool more = true;
    while (more && limit > 0) {
        fb_text path = record_path(cli, NULL), answer;
        if (limit < 256) {
            fb_text_format(&path, "?limit=%llu", limit);
        } else {
            fb_text_put(&path, "?limit=256");
        }
        if (next[0] != 0 || after != NULL) {
            fb_text encoded = {0};
            fb_path_put(&encoded, next[0] != 0 ? next : after);
            fb_text_format(&path, "&after=%s", encoded.p + 1);
            fb_text_free(&encoded);
        }
        fb_exit exit = fb_http_run(cli, "GET", path.p, NULL, NULL, &answer);
        fb_text_free(&path);
        if (exit != FB_EXIT_OK) return exit;
        unsigned long long count = 0;
        more = page_next(&answer, next, &count);
        fb_print_list(cli, &answer, "records");
        fb_text_free(&answer);
        if (limit != UINT64_MAX) limit -= count < limit ? count : limit;
    }
    return FB_EXIT_OK;
}

static void watch_ready(void *user)
{
    (void)user;
    fputs("watching\n", stderr);
}

static fb_exit watch_event(void *user, const char *name, const char *data, bool *end)
{
    const fb_cli *cli = user;
    if (strcmp(name, "error") == 0) {
        *end = true;
        json_error_t error;
        json_t *tree = json_loads(data, 0, &error);
        unsigned status = (unsigned)json_integer_value(json_object_get(tree, "status"));
        const char *title = json_string_value(json_object_get(tree, "title"));
        fb_cli_fail(FB_EXIT_FAILED, "%s", title != NULL ? title : "the stream failed");
        json_decref(tree);
        fb_exit exit = fb_exit_of_http(status);
        return exit == FB_EXIT_OK ? FB_EXIT_FAILED : exit;
    }
    if (cli->json) {
        puts(data);
    } else {
        fb_print_line(data);
    }
    /* Whoever reads this waits for it. */
    *end = fflush(stdout) != 0;
    return FB_EXIT_OK;
}

fb_exit fb_cmd_record_watch(fb_cli *cli)
{
    const char *since = fb_cli_option(cli, "since");
    fb_feed_cursor cursor;
    if (since != NULL && !fb_feed_cursor_parse(since, &cursor)) {
        return fb_cli_usage(cli, "--since: a cursor of an earlier event is expected, not %s",
                            since);
    }
    fb_text path = {0};
    fb_text_put(&path, "/v1/spaces");
    fb_path_put(&path, cli->argv[0]);
    fb_text_put(&path, "/changes");
    /* Digits and dashes alone, as it is a cursor. */
    if (since != NULL) fb_text_format(&path, "?since=%s", since);
    if (cli->argc > 1) {
        fb_text_put(&path, since != NULL ? "&collection=" : "?collection=");
        fb_path_escape(&path, cli->argv[1]);
    }
    cli->wait_more_s = FB_API_BEAT_MS / 1000;
    fb_exit exit = fb_http_events(cli, path.p, watch_ready, watch_event, cli);
    fb_text_free(&path);
    return exit;
}
