/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <jansson.h>

#include "runtime/command/commands.h"
#include "runtime/command/http_client.h"

static fb_text conflicts_path(const fb_cli *cli)
{
    fb_text path = {0};
    fb_text_put(&path, "/v1/spaces");
    fb_path_put(&path, cli->argv[0]);
    fb_text_put(&path, "/conflicts");
    return path;
}

/* Where the list goes on; false at its end. */
static bool page_next(const fb_text *answer, fb_text *query)
{
    json_error_t error;
    json_t *tree = json_loadb(answer->p, answer->len, 0, &error);
    const json_t *next = json_object_get(tree, "next");
    const char *collection = json_string_value(json_object_get(next, "collection"));
    const char *after = json_string_value(json_object_get(next, "after"));
    fb_text_free(query);
    if (collection != NULL) {
        fb_text encoded = {0};
        fb_path_put(&encoded, collection); /* after its slash */
        fb_text_format(query, "?collection=%s", encoded.p + 1);
        fb_text_free(&encoded);
        if (after != NULL) fb_text_format(query, "&after=%s", after);
    }
    json_decref(tree);
    return collection != NULL;
}

fb_exit fb_cmd_conflicts_list(fb_cli *cli)
{
    fb_text query = {0};
    fb_exit exit = FB_EXIT_OK;
    for (bool more = true; more && exit == FB_EXIT_OK;) {
        fb_text path = conflicts_path(cli), answer = {0};
        if (query.len != 0) fb_text_bytes(&path, query.p, query.len);
        exit = fb_http_run(cli, "GET", path.p, NULL, NULL, &answer);
        if (exit == FB_EXIT_OK) {
            more = page_next(&answer, &query);
            fb_print_list(cli, &answer, "conflicts");
        }
        fb_text_free(&answer);
        fb_text_free(&path);
    }
    fb_text_free(&query);
    return exit;
}

fb_exit fb_cmd_conflicts_resolve(fb_cli *cli)
{
    const char *kept = fb_cli_option(cli, "keep");
    if (kept == NULL) return fb_cli_usage(cli, "--keep mine|theirs|both|VALUE is expected");
    fb_text path = conflicts_path(cli), body = {0}, value = {0};
    fb_path_put(&path, cli->argv[1]);
    fb_exit exit = FB_EXIT_OK;
    char why[200];
    fb_json_open(&body, NULL, '{');
    if (strcmp(kept, "mine") == 0 || strcmp(kept, "theirs") == 0 || strcmp(kept, "both") == 0) {
        fb_json_member(&body, "keep", kept);
    } else if (fb_json_value_read(fb_span_text(kept), &value, why, sizeof why)) {
        fb_json_raw(&body, "value", fb_span_of(value.p, value.len));
    } else {
        exit = fb_cli_usage(cli, "--keep: mine, theirs, both or JSON is expected (%s)", why);
    }
    fb_json_close(&body, '}');
    if (exit == FB_EXIT_OK) exit = fb_http_print(cli, "POST", path.p, body.p);
    fb_text_free(&value);
    fb_text_free(&body);
    fb_text_free(&path);
    return exit;
}
