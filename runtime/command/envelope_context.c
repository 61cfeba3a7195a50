/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/envelope_context.h"

#include <stdio.h>

#include "runtime/command/cli.h"
#include "runtime/conformance/receiver_json.h"

static void say(const char *path, const char *where, const char *what)
{
    fputs("faberio envelope verify: context ", stderr);
    fb_cli_put_visible(path);
    fputs(": ", stderr);
    fb_cli_put_visible(where);
    fputs(": ", stderr);
    fb_cli_put_visible(what);
    fputc('\n', stderr);
}

fb_receiver *fb_context_read(const char *path, const fb_provider *provider)
{
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        char where[80] = "the file";
        if (error.line > 0) {
            snprintf(where, sizeof where, "line %d, column %d", error.line, error.column);
        }
        say(path, where, error.text);
        return NULL;
    }
    fb_receiver *receiver = fb_receiver_new(provider);
    fb_receiver_fault fault;
    bool good = fb_receiver_read(receiver, root, false, &fault);
    json_decref(root);
    if (good) return receiver;
    say(path, fault.where, fault.what);
    fb_receiver_free(receiver);
    return NULL;
}
