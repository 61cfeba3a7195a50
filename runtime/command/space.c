/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "runtime/api/api.h"
#include "runtime/command/commands.h"
#include "runtime/command/http_client.h"

/* /v1/spaces/SPACE/leaf */
static fb_text space_path(const fb_cli *cli, const char *leaf)
{
    fb_text path = {0};
    fb_text_put(&path, "/v1/spaces");
    fb_path_put(&path, cli->argv[0]);
    fb_text_put(&path, leaf);
    return path;
}

static fb_exit free_both(fb_exit exit, fb_text *path, fb_text *body)
{
    fb_text_free(path);
    fb_text_free(body);
    return exit;
}

fb_exit fb_cmd_space_create(fb_cli *cli)
{
    fb_text path = {0}, body = {0};
    fb_text_put(&path, "/v1/spaces");
    fb_json_open(&body, NULL, '{');
    fb_json_member(&body, "name", cli->argv[0]);
    fb_json_close(&body, '}');
    return free_both(fb_http_print(cli, "POST", path.p, body.p), &path, &body);
}

fb_exit fb_cmd_space_list(fb_cli *cli)
{
    fb_text answer;
    fb_exit exit = fb_http_run(cli, "GET", "/v1/spaces", NULL, NULL, &answer);
    if (exit == FB_EXIT_OK) fb_print_list(cli, &answer, "spaces");
    fb_text_free(&answer);
    return exit;
}

fb_exit fb_cmd_space_invite(fb_cli *cli)
{
    fb_text path = space_path(cli, "/invites"), body = {0};
    const char *uses = fb_cli_option(cli, "uses"), *valid = fb_cli_option(cli, "for");
    const char *address = fb_cli_option(cli, "address");
    unsigned long long number = 0;
    fb_exit exit = FB_EXIT_OK;
    fb_json_open(&body, NULL, '{');
    if (uses != NULL) {
        if (!fb_text_number(uses, UINT32_MAX, &number) || number == 0) {
            exit = fb_cli_usage(cli, "--uses: a number from 1 is expected, not %s", uses);
        }
        fb_json_number(&body, "uses", (int64_t)number);
    }
    if (valid != NULL && exit == FB_EXIT_OK) {
        if (!fb_cli_duration(valid, &number) || number == 0) {
            exit = fb_cli_usage(cli, "--for: a time like 90s, 15m, 2h or 7d is expected, not %s",
                                valid);
        }
        fb_json_number(&body, "valid_s", (int64_t)number);
    }
    if (address != NULL) fb_json_member(&body, "address", address);
    fb_json_close(&body, '}');
    if (exit != FB_EXIT_OK) return free_both(exit, &path, &body);
    fb_text answer;
    exit = fb_http_run(cli, "POST", path.p, NULL, body.p, &answer);
    if (exit == FB_EXIT_OK && !cli->json) {
        /* The invite alone, so that it can be piped. */
        json_error_t error;
        json_t *tree = json_loadb(answer.p, answer.len, 0, &error);
        const char *invite = json_string_value(json_object_get(tree, "invite"));
        puts(invite != NULL ? invite : "");
        json_decref(tree);
    } else if (exit == FB_EXIT_OK) {
        fb_print(cli, &answer);
    }
    fb_text_free(&answer);
    return free_both(exit, &path, &body);
}

fb_exit fb_cmd_space_join(fb_cli *cli)
{
    fb_text path = {0}, body = {0};
    char line[4096] = "";
    const char *invite = cli->argv[0], *timeout = fb_cli_option(cli, "timeout");
    unsigned long long seconds = 0;
    if (timeout != NULL && (!fb_cli_duration(timeout, &seconds) || seconds == 0)) {
        return fb_cli_usage(cli, "--timeout: a time like 90s, 15m, 2h or 7d is expected, not %s",
                            timeout);
    }
    if (strcmp(invite, "-") == 0) {
        if (fgets(line, sizeof line, stdin) == NULL) {
            return fb_cli_fail(FB_EXIT_FAILED, "standard input: no invite");
        }
        invite = line;
    }
    cli->wait_more_s = timeout != NULL ? seconds : FB_API_JOIN_S;
    fb_text_put(&path, "/v1/spaces/join");
    fb_json_open(&body, NULL, '{');
    fb_json_member(&body, "invite", invite);
    if (timeout != NULL) fb_json_number(&body, "timeout_s", (int64_t)seconds);
    fb_json_close(&body, '}');
    return free_both(fb_http_print(cli, "POST", path.p, body.p), &path, &body);
}

fb_exit fb_cmd_space_leave(fb_cli *cli)
{
    fb_text path = space_path(cli, "/leave"), body = {0};
    return free_both(fb_http_print(cli, "POST", path.p, NULL), &path, &body);
}

fb_exit fb_cmd_space_members(fb_cli *cli)
{
    fb_text path = space_path(cli, "/members"), answer;
    fb_exit exit = fb_http_run(cli, "GET", path.p, NULL, NULL, &answer);
    if (exit == FB_EXIT_OK && cli->json) fb_print(cli, &answer);
    if (exit == FB_EXIT_OK && !cli->json) fb_print_list(cli, &answer, "members");
    return free_both(exit, &path, &answer);
}

fb_exit fb_cmd_space_approve(fb_cli *cli)
{
    fb_text path = space_path(cli, "/approvals"), body = {0};
    const char *role = fb_cli_option(cli, "role");
    fb_json_open(&body, NULL, '{');
    fb_json_member(&body, "node_id", cli->argv[1]);
    if (role != NULL) fb_json_member(&body, "role", role);
    fb_json_close(&body, '}');
    return free_both(fb_http_print(cli, "POST", path.p, body.p), &path, &body);
}

fb_exit fb_cmd_space_role(fb_cli *cli)
{
    fb_text path = space_path(cli, "/members"), body = {0};
    fb_path_put(&path, cli->argv[1]);
    fb_json_open(&body, NULL, '{');
    fb_json_member(&body, "role", cli->argv[2]);
    fb_json_close(&body, '}');
    return free_both(fb_http_print(cli, "PUT", path.p, body.p), &path, &body);
}

fb_exit fb_cmd_space_rename(fb_cli *cli)
{
    fb_text path = space_path(cli, "/rename"), body = {0};
    fb_json_open(&body, NULL, '{');
    fb_json_member(&body, "name", cli->argv[1]);
    fb_json_close(&body, '}');
    return free_both(fb_http_print(cli, "POST", path.p, body.p), &path, &body);
}

fb_exit fb_cmd_space_revoke(fb_cli *cli)
{
    fb_text path = space_path(cli, "/members"), body = {0};
    fb_path_put(&path, cli->argv[1]);
    return free_both(fb_http_print(cli, "DELETE", path.p, NULL), &path, &body);
}
