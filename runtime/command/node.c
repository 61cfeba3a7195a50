/* SPDX-License-Identifier: Apache-2.0 */
/* Commands about the node: status, peers, applications, settings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/command/commands.h"
#include "runtime/command/http_client.h"
#include "runtime/settings_show.h"

fb_exit fb_cmd_status(fb_cli *cli)
{
    fb_text answer;
    fb_exit exit = fb_http_run(cli, "GET", "/v1/status", NULL, NULL, &answer);
    if (exit != FB_EXIT_OK) return exit;
    fb_print(cli, &answer);
    if (strstr(answer.p, "\"state\":\"running\"") == NULL) exit = FB_EXIT_DEGRADED;
    fb_text_free(&answer);
    return exit;
}

/* A member that is a text, as in a JSON string without its quotes; empty when there is none. */
static void text_show(const json_t *object, const char *name, fb_text *out)
{
    const char *text = json_string_value(json_object_get(object, name));
    fb_text quoted = {0};
    fb_json_string(&quoted, fb_span_text(text != NULL ? text : ""));
    fb_text_bytes(out, quoted.p + 1, quoted.len - 2);
    fb_text_free(&quoted);
}

/* A line for each check or peer, what helps below it. */
static void findings_print(const json_t *list, const char *name)
{
    size_t i;
    json_t *finding;
    json_array_foreach((json_t *)(uintptr_t)list, i, finding)
    {
        fb_text status = {0}, what = {0}, rest = {0};
        text_show(finding, "status", &status);
        text_show(finding, name, &what);
        text_show(finding, "detail", &rest);
        if (json_object_get(finding, "remedy") != NULL) {
            fb_text_put(&rest, "\n         -> ");
            text_show(finding, "remedy", &rest);
        }
        printf("%-8s %s: %s\n", fb_text_string(&status), fb_text_string(&what),
               fb_text_string(&rest));
        fb_text_free(&status);
        fb_text_free(&what);
        fb_text_free(&rest);
    }
}

static void doctor_print(const json_t *answer)
{
    findings_print(json_object_get(answer, "checks"), "check");
    json_t *item = json_object_get(answer, "item");
    if (item == NULL) return;
    printf("\n");
    findings_print(json_object_get(item, "peers"), "node_id");
    json_object_del(item, "peers");
    char *rest = json_dumps(item, 0);
    fb_text text = {0};
    if (rest != NULL) fb_text_put(&text, rest);
    free(rest);
    fb_print_text(&text);
    fb_text_free(&text);
}

fb_exit fb_cmd_doctor(fb_cli *cli)
{
    fb_text path = {0}, answer;
    fb_text_put(&path, "/v1/doctor");
    if (cli->argc > 0) {
        fb_text item = {0};
        fb_path_put(&item, cli->argv[0]);
        fb_text_format(&path, "?item=%s", item.p + 1);
        fb_text_free(&item);
    }
    fb_exit exit = fb_http_run(cli, "GET", path.p, NULL, NULL, &answer);
    fb_text_free(&path);
    if (exit != FB_EXIT_OK) return exit;
    json_error_t error;
    json_t *tree = json_loadb(fb_text_string(&answer), answer.len, 0, &error);
    const char *status = json_string_value(json_object_get(tree, "status"));
    if (status != NULL && strcmp(status, "failed") == 0) exit = FB_EXIT_DEGRADED;
    if (cli->json) {
        fb_print(cli, &answer);
    } else {
        doctor_print(tree);
    }
    json_decref(tree);
    fb_text_free(&answer);
    return exit;
}

fb_exit fb_cmd_scrub(fb_cli *cli)
{
    int64_t entries = 0, damaged = 0;
    fb_text body = {0};
    fb_exit exit = FB_EXIT_OK;
    bool more = true;
    fb_text_put(&body, "{}");
    while (more && exit == FB_EXIT_OK) {
        fb_text answer;
        exit = fb_http_run(cli, "POST", "/v1/scrub", NULL, body.p, &answer);
        if (exit != FB_EXIT_OK) break;
        json_error_t error;
        json_t *part = json_loadb(fb_text_string(&answer), answer.len, 0, &error);
        const char *next = json_string_value(json_object_get(part, "next"));
        entries += json_integer_value(json_object_get(part, "entries"));
        damaged += json_integer_value(json_object_get(part, "damaged"));
        more = next != NULL;
        fb_text_clear(&body);
        fb_json_open(&body, NULL, '{');
        if (more) fb_json_member(&body, "after", next);
        fb_json_close(&body, '}');
        json_decref(part);
        fb_text_free(&answer);
    }
    if (exit == FB_EXIT_OK) {
        fb_text_clear(&body);
        fb_json_open(&body, NULL, '{');
        fb_json_number(&body, "entries", entries);
        fb_json_number(&body, "damaged", damaged);
        fb_json_close(&body, '}');
        fb_print(cli, &body);
        if (damaged > 0) {
            exit = fb_cli_fail(FB_EXIT_FAILED, "values do not match their checksums: look at the "
                                               "disk; faberio doctor says what helps");
        }
    }
    fb_text_free(&body);
    return exit;
}

fb_exit fb_cmd_peers(fb_cli *cli)
{
    fb_text answer;
    fb_exit exit = fb_http_run(cli, "GET", "/v1/peers", NULL, NULL, &answer);
    if (exit == FB_EXIT_OK && cli->json) fb_print(cli, &answer);
    if (exit == FB_EXIT_OK && !cli->json) fb_print_list(cli, &answer, "peers");
    fb_text_free(&answer);
    return exit;
}

static fb_exit peers_change(fb_cli *cli, const char *path)
{
    fb_text body = {0};
    fb_json_open(&body, NULL, '{');
    fb_json_member(&body, "address", cli->argv[0]);
    const char *space = fb_cli_option(cli, "space");
    if (space != NULL) fb_json_member(&body, "space", space);
    fb_json_close(&body, '}');
    fb_exit exit = fb_http_print(cli, "POST", path, body.p);
    fb_text_free(&body);
    return exit;
}

fb_exit fb_cmd_peers_add(fb_cli *cli)
{
    return peers_change(cli, "/v1/peers");
}

fb_exit fb_cmd_peers_forget(fb_cli *cli)
{
    return peers_change(cli, "/v1/peers/forget");
}

fb_exit fb_cmd_app_create(fb_cli *cli)
{
    fb_text body = {0};
    fb_json_open(&body, NULL, '{');
    fb_json_member(&body, "name", cli->argv[0]);
    fb_json_close(&body, '}');
    fb_exit exit = fb_http_print(cli, "POST", "/v1/apps", body.p);
    fb_text_free(&body);
    return exit;
}

fb_exit fb_cmd_app_allow(fb_cli *cli)
{
    fb_text body = {0}, path = {0};
    fb_text_put(&path, "/v1/apps");
    fb_path_put(&path, cli->argv[0]);
    fb_text_put(&path, "/spaces");
    fb_json_open(&body, NULL, '{');
    fb_json_member(&body, "space", cli->argv[1]);
    fb_json_close(&body, '}');
    fb_exit exit = fb_http_print(cli, "POST", path.p, body.p);
    fb_text_free(&body);
    fb_text_free(&path);
    return exit;
}

fb_exit fb_cmd_app_revoke(fb_cli *cli)
{
    fb_text path = {0};
    fb_text_put(&path, "/v1/apps");
    fb_path_put(&path, cli->argv[0]);
    fb_exit exit = fb_http_print(cli, "DELETE", path.p, NULL);
    fb_text_free(&path);
    return exit;
}

/* Flags about settings ask what a start with them would have; without any, a node that runs in
 * this home says what it has. */
static bool asks_about_a_start(const fb_cli *cli)
{
    if (fb_cli_option(cli, "config") != NULL) return true;
    for (int i = 0; i < FB_SETTINGS; i++) {
        const char *name = fb_setting_name((fb_setting)i);
        if (i != FB_SET_HOME && fb_cli_option(cli, name) != NULL) return true;
    }
    return false;
}

static void setting_print(const char *name, const json_t *setting, bool origin)
{
    const char *value = json_string_value(json_object_get(setting, "value"));
    fb_text shown = {0}, from = {0};
    fb_json_visible(&shown, fb_span_text(value != NULL && value[0] != 0 ? value : "-"));
    const char *where = json_string_value(json_object_get(setting, "origin"));
    fb_json_visible(&from, fb_span_text(origin && where != NULL ? where : ""));
    printf("%-15s %-32s%s%s\n", name, fb_text_string(&shown), origin ? " " : "",
           fb_text_string(&from));
    fb_text_free(&shown);
    fb_text_free(&from);
}

fb_exit fb_cmd_config_show(fb_cli *cli)
{
    bool origin = fb_cli_option(cli, "origin") != NULL;
    fb_text all = {0};
    if (!asks_about_a_start(cli) && fb_http_is_answered(cli)) {
        fb_exit exit = fb_http_run(cli, "GET", "/v1/config", NULL, NULL, &all);
        if (exit != FB_EXIT_OK) return exit;
    } else {
        fb_settings_json(&all, &cli->settings);
    }
    json_t *tree = json_loadb(all.p, all.len, 0, NULL);
    const char *name;
    json_t *setting;
    fb_text out = {0};
    fb_json_open(&out, NULL, '{');
    json_object_foreach(tree, name, setting)
    {
        if (!cli->json) {
            setting_print(name, setting, origin);
        } else {
            fb_json_member(&out, name, json_string_value(json_object_get(setting, "value")));
        }
    }
    fb_json_close(&out, '}');
    if (cli->json) puts(fb_text_string(origin ? &all : &out));
    json_decref(tree);
    fb_text_free(&out);
    fb_text_free(&all);
    return FB_EXIT_OK;
}
