/* SPDX-License-Identifier: Apache-2.0 */
/* faberio space delete: what this node has of a space goes from its store. Of the node alone: what
 * others have is theirs. It does not run meanwhile, as nothing else may look at what goes. */
#include <stdio.h>
#include <string.h>

#include "io/store/forget.h"
#include "protocol/base/uuid.h"
#include "runtime/command/commands.h"
#include "runtime/command/http_client.h"
#include "runtime/home.h"

static fb_exit exit_of(fb_status status)
{
    switch (status) {
    case FB_ERR_STORE_LOCKED:
        return FB_EXIT_AGAIN;
    case FB_ERR_CONFLICT:
        return FB_EXIT_CONFLICT;
    default:
        return FB_EXIT_FAILED;
    }
}

static fb_exit refuse(const fb_cli *cli, fb_status status, const char *why)
{
    if (status == FB_ERR_NOT_FOUND) {
        return fb_cli_fail(FB_EXIT_FAILED, "no space %s in this node", cli->argv[0]);
    }
    if (status == FB_ERR_UNSUPPORTED) {
        return fb_cli_fail(FB_EXIT_FAILED,
                           "the records of this node are kept in a document store: move them back "
                           "first (store migrate --from STORE --to local)");
    }
    return fb_cli_fail(exit_of(status), "%s", why[0] != 0 ? why : fb_error_text(status));
}

fb_exit fb_cmd_space_delete(fb_cli *cli)
{
    char why[FB_HOME_PATH_MAX + 256] = "", directory[FB_HOME_PATH_MAX];
    if (fb_cli_option(cli, "yes") == NULL) {
        return fb_cli_usage(cli, "--yes is expected: all that this node has of the space goes, and "
                                 "what no other member has is lost");
    }
    fb_home home;
    fb_home_keys keys;
    if (!fb_home_open(fb_settings_get(&cli->settings, FB_SET_HOME), &home, why, sizeof why)) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s", why);
    }
    if (fb_home_load(&home, &keys, why, sizeof why) != FB_OK) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s", why);
    }
    fb_home_file(&home, "store", directory);
    fb_forget_options options = {
        .directory = directory, .owner = keys.node_id, .public_key = keys.public_key};
    fb_home_unload(&keys);
    bool by_id = fb_uuid_parse(fb_span_text(cli->argv[0]), &options.id);
    if (!by_id) options.name = cli->argv[0];
    fb_forget_stats stats;
    fb_status status = fb_store_forget(&options, &stats, why, sizeof why);
    if (status != FB_OK) return refuse(cli, status, why);
    fb_text out = {0};
    fb_json_open(&out, NULL, '{');
    fb_json_uuid(&out, "space_id", stats.space);
    fb_json_number(&out, "entries", (int64_t)stats.entries);
    fb_json_close(&out, '}');
    fb_print(cli, &out);
    fb_text_free(&out);
    return FB_EXIT_OK;
}
