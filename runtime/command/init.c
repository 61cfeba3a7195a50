/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/hex.h"
#include "runtime/command/commands.h"
#include "runtime/home.h"
#include "runtime/text.h"

/* The recovery key on the operator's screen: with --json it is a member of the one object, so it is
 * kept until that is printed. */
typedef struct showing {
    bool json;
    char recovery[65];
} showing;

static bool show_recovery(void *user, const char *recovery)
{
    showing *s = user;
    if (s->json) {
        snprintf(s->recovery, sizeof s->recovery, "%s", recovery);
        /* Nothing else is printed before the end, and a first part of an object helps nobody. */
        return printf("{\"recovery_key\":\"%s\",", recovery) > 0 && fflush(stdout) == 0;
    }
    return printf("recovery key   %s\n"
                  "               Write it down and keep it away from this machine. It is shown "
                  "only now and\n"
                  "               stored nowhere; it outranks every key of this node.\n",
                  recovery) > 0 &&
           fflush(stdout) == 0;
}

fb_exit fb_cmd_init(fb_cli *cli)
{
    char why[FB_HOME_PATH_MAX + 256] = "";
    fb_home home;
    fb_home_keys keys;
    showing s = {cli->json, ""};
    if (!fb_home_open(fb_settings_get(&cli->settings, FB_SET_HOME), &home, why, sizeof why)) {
        return fb_cli_fail(FB_EXIT_USAGE, "%s", why);
    }
    if (fb_home_init(&home, show_recovery, &s, why, sizeof why) != FB_OK ||
        fb_home_load(&home, &keys, why, sizeof why) != FB_OK) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s", why);
    }
    if (cli->json) {
        fb_text text = {0};
        fb_text_put(&text, s.recovery[0] != 0 ? "" : "{");
        fb_json_hex(&text, "node_id", keys.node_id.b, sizeof keys.node_id.b);
        fb_json_hex(&text, "public_key", keys.public_key.b, sizeof keys.public_key.b);
        fb_json_member(&text, "fingerprint", keys.fingerprint);
        fb_json_member(&text, "home", home.path);
        fb_json_close(&text, '}');
        puts(fb_text_string(&text));
        fb_text_free(&text);
    } else {
        char id[33];
        fb_hex_text(keys.node_id.b, sizeof keys.node_id.b, id);
        printf("node id        %s\nfingerprint    %s\nhome           %s\n", id, keys.fingerprint,
               home.path);
    }
    sodium_memzero(&s, sizeof s);
    fb_home_unload(&keys);
    if (fflush(stdout) == 0) return FB_EXIT_OK;
    return fb_cli_fail(FB_EXIT_FAILED, "standard output cannot be written");
}
