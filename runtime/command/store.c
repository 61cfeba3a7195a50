/* SPDX-License-Identifier: Apache-2.0 */
/* faberio store migrate: the records of a node that does not run, into a document store or back. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/document_store/migrate.h"
#include "runtime/command/commands.h"
#include "runtime/daemon/document_store.h"
#include "runtime/home.h"
#include "runtime/text.h"

static void progress(void *user, uint64_t records)
{
    (void)user;
    fprintf(stderr, "\r%llu records", (unsigned long long)records);
}

static fb_exit exit_of(fb_status status)
{
    switch (status) {
    case FB_ERR_UNREACHABLE:
    case FB_ERR_STORE_LOCKED:
        return FB_EXIT_AGAIN;
    case FB_ERR_CONFLICT:
        return FB_EXIT_CONFLICT;
    default:
        return FB_EXIT_FAILED;
    }
}

static void report(const fb_cli *cli, const char *from, const char *to,
                   const fb_migrate_stats *stats)
{
    fb_text out = {0};
    if (cli->json) {
        fb_json_open(&out, NULL, '{');
        fb_json_member(&out, "from", from);
        fb_json_member(&out, "to", to);
        fb_json_number(&out, "records", (int64_t)stats->records);
        fb_json_number(&out, "values", (int64_t)stats->values);
        fb_json_number(&out, "stayed", (int64_t)stats->stayed);
        fb_json_raw(&out, "verified", fb_span_text("true"));
        fb_json_close(&out, '}');
        printf("%s\n", fb_text_string(&out));
    } else {
        printf("%llu records moved from %s to %s, and compared\n",
               (unsigned long long)stats->records, from, to);
        if (stats->stayed != 0) {
            printf("%llu records stay in the node's directory: no document can hold them\n",
                   (unsigned long long)stats->stayed);
        }
    }
    fb_text_free(&out);
}

fb_exit fb_cmd_store_migrate(fb_cli *cli)
{
    const char *from = fb_cli_option(cli, "from"), *to = fb_cli_option(cli, "to");
    char why[512] = "", directory[FB_HOME_PATH_MAX], shown_from[512], shown_to[512];
    if (from == NULL || to == NULL || (strcmp(from, "local") == 0) == (strcmp(to, "local") == 0)) {
        return fb_cli_usage(cli, "--from and --to are expected, one of them `local`");
    }
    bool to_local = strcmp(to, "local") == 0;
    const char *address = to_local ? from : to;
    if (!fb_document_store_is_mongodb(address) || !fb_document_store_names_database(address)) {
        return fb_cli_usage(cli, "local or mongodb://HOST/DATABASE is expected");
    }
    fb_home home;
    fb_home_keys keys;
    fb_document_store store;
    if (!fb_home_open(fb_settings_get(&cli->settings, FB_SET_HOME), &home, why, sizeof why)) {
        return fb_cli_fail(FB_EXIT_USAGE, "%s", why);
    }
    if (fb_home_load(&home, &keys, why, sizeof why) != FB_OK) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s", why);
    }
    fb_home_file(&home, "store", directory);
    bool opened = fb_document_store_open(address, keys.node_id, &store, why, sizeof why);
    fb_id owner = keys.node_id;
    fb_home_unload(&keys);
    if (!opened) return fb_cli_fail(FB_EXIT_FAILED, "%s", why);
    fb_document_store_hide(from, shown_from, sizeof shown_from);
    fb_document_store_hide(to, shown_to, sizeof shown_to);
    bool terminal = !cli->json && isatty(STDERR_FILENO);
    const fb_migrate_options options = {.directory = directory,
                                        .owner = owner,
                                        .ops = store.ops,
                                        .documents = store.documents,
                                        .to_local = to_local,
                                        .progress = terminal ? progress : NULL};
    fb_migrate_stats stats;
    fb_status status = fb_store_migrate(&options, &stats, why, sizeof why);
    fb_document_store_close(&store);
    if (terminal) fprintf(stderr, "\n");
    if (status != FB_OK) {
        return fb_cli_fail(exit_of(status), "%s", why[0] != 0 ? why : fb_error_text(status));
    }
    report(cli, shown_from, shown_to, &stats);
    return FB_EXIT_OK;
}
