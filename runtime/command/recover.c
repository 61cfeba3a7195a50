/* SPDX-License-Identifier: Apache-2.0 */
/* When nodes are lost: space recover, space replace. */
#include <errno.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"
#include "protocol/space/recovery.h"
#include "runtime/command/commands.h"
#include "runtime/command/http_client.h"

static fb_text path_of(const char *space, const char *leaf, const char *node)
{
    fb_text path = {0};
    fb_text_put(&path, "/v1/spaces");
    fb_path_put(&path, space);
    fb_text_put(&path, leaf);
    if (node != NULL) fb_path_put(&path, node);
    return path;
}

/* Asks and reads the answer; NULL when it failed, with *exit set. */
static json_t *ask(const fb_cli *cli, const char *method, fb_text *path, const char *body,
                   fb_exit *exit)
{
    fb_text answer;
    json_t *tree = NULL;
    *exit = fb_http_run(cli, method, path->p, NULL, body, &answer);
    if (*exit == FB_EXIT_OK) {
        json_error_t error;
        tree = json_loadb(answer.p, answer.len, 0, &error);
        if (tree == NULL) *exit = fb_cli_fail(FB_EXIT_FAILED, "the node's answer cannot be read");
    }
    fb_text_free(&answer);
    fb_text_free(path);
    return tree;
}

static const char *text_of(const json_t *tree, const char *name)
{
    const char *text = json_string_value(json_object_get(tree, name));
    return text == NULL ? "" : text;
}

/* The secret key, from the line that `init` showed. */
static fb_exit key_read(const fb_cli *cli, uint8_t seed[32])
{
    const char *path = fb_cli_option(cli, "recovery-file");
    if (path == NULL) return fb_cli_usage(cli, "--recovery-file FILE, or - for standard input");
    /* Not repeated: what is said here may be kept in a log. */
    if (fb_hex_parse(fb_span_text(path), seed, 32)) {
        sodium_memzero(seed, 32);
        return fb_cli_usage(cli, "--recovery-file takes the name of a file that has the key, not "
                                 "the key: others of this machine can see arguments");
    }
    FILE *in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (in == NULL) return fb_cli_fail(FB_EXIT_FAILED, "%s: %s", path, strerror(errno));
    char line[80] = "";
    bool got = fgets(line, sizeof line, in) != NULL;
    int wrong = ferror(in) ? errno : 0;
    if (in != stdin) fclose(in);
    if (wrong != 0) return fb_cli_fail(FB_EXIT_FAILED, "%s: %s", path, strerror(wrong));
    line[strcspn(line, "\r\n")] = 0;
    bool good = got && fb_hex_parse(fb_span_text(line), seed, 32);
    sodium_memzero(line, sizeof line);
    return good ? FB_EXIT_OK
                : fb_cli_fail(FB_EXIT_FAILED,
                              "%s: not a recovery key (64 lowercase hexadecimal digits)", path);
}

/* Signs that a member is an admin, as the node numbers it. */
static fb_exit sign(const json_t *told, const uint8_t seed[32], uint8_t signature[64])
{
    uint8_t public_key[32], secret_key[64], wanted[32], text[FB_RECOVERY_TEXT_BYTES];
    fb_statement statement = {
        .number = (uint8_t)json_integer_value(json_object_get(told, "number")),
        .turn = (uint32_t)json_integer_value(json_object_get(told, "turn")),
    };
    fb_id space;
    if (!fb_hex_parse(fb_span_text(text_of(told, "recovery_key")), wanted, sizeof wanted) ||
        !fb_hex_parse(fb_span_text(text_of(told, "public_key")), statement.key.b, 32) ||
        !fb_uuid_parse(fb_span_text(text_of(told, "space_id")), &space)) {
        return fb_cli_fail(FB_EXIT_FAILED, "the node's answer cannot be read");
    }
    fb_recovery_text(space, &statement, text);
    crypto_sign_seed_keypair(public_key, secret_key, seed);
    bool same = memcmp(public_key, wanted, sizeof wanted) == 0;
    if (same) crypto_sign_detached(signature, NULL, text, sizeof text, secret_key);
    sodium_memzero(secret_key, sizeof secret_key);
    return same ? FB_EXIT_OK
                : fb_cli_fail(FB_EXIT_NOT_AUTHORISED,
                              "this is not the recovery key of the space: that is the one of the "
                              "node which made it");
}

fb_exit fb_cmd_space_recover(fb_cli *cli)
{
    uint8_t seed[32], signature[64];
    if (sodium_init() < 0) return fb_cli_fail(FB_EXIT_FAILED, "libsodium does not start");
    fb_exit exit = key_read(cli, seed);
    if (exit != FB_EXIT_OK) return exit;
    fb_text path = path_of(cli->argv[0], "/recovery", cli->argv[1]);
    json_t *told = ask(cli, "GET", &path, NULL, &exit);
    if (told != NULL) exit = sign(told, seed, signature);
    sodium_memzero(seed, sizeof seed);
    if (exit == FB_EXIT_OK) {
        fb_text body = {0};
        fb_json_open(&body, NULL, '{');
        fb_json_number(&body, "number", json_integer_value(json_object_get(told, "number")));
        fb_json_number(&body, "turn", json_integer_value(json_object_get(told, "turn")));
        fb_json_hex(&body, "signature", signature, sizeof signature);
        fb_json_close(&body, '}');
        path = path_of(cli->argv[0], "/recovery", cli->argv[1]);
        exit = fb_http_print(cli, "POST", path.p, body.p);
        fb_text_free(&path);
        fb_text_free(&body);
    }
    json_decref(told);
    return exit;
}

/* The role of a member, of whatever standing; NULL: it is not there, or has none. */
static const char *role_of(const json_t *members, const char *node)
{
    size_t i;
    const json_t *member;
    json_array_foreach(json_object_get(members, "members"), i, member)
    {
        if (strcmp(text_of(member, "node_id"), node) != 0) continue;
        const char *role = text_of(member, "role");
        bool one = strcmp(role, "admin") == 0 || strcmp(role, "writer") == 0 ||
                   strcmp(role, "reader") == 0;
        return one && strcmp(text_of(member, "status"), "approved") == 0 ? role : "";
    }
    return NULL;
}

/* First the new one, so that the space is never without an admin. Either step is nothing when it
 * was done already. */
static fb_exit replace(const fb_cli *cli, const char *role)
{
    fb_exit exit;
    fb_text path = path_of(cli->argv[0], "/approvals", NULL), body = {0};
    fb_json_open(&body, NULL, '{');
    fb_json_member(&body, "node_id", cli->argv[2]);
    fb_json_member(&body, "role", role);
    fb_json_close(&body, '}');
    json_t *approved = ask(cli, "POST", &path, body.p, &exit);
    fb_text_free(&body);
    if (approved == NULL) return exit;
    json_decref(approved);
    path = path_of(cli->argv[0], "/members", cli->argv[1]);
    json_t *revoked = ask(cli, "DELETE", &path, NULL, &exit);
    if (revoked == NULL) return exit;
    fb_text out = {0};
    fb_json_open(&out, NULL, '{');
    fb_json_member(&out, "space_id", text_of(revoked, "space_id"));
    fb_json_member(&out, "node_id", cli->argv[2]);
    fb_json_member(&out, "role", role);
    fb_json_member(&out, "replaces", cli->argv[1]);
    const json_t *lost = json_object_get(revoked, "lost_batches");
    fb_json_number(&out, "lost_batches", json_integer_value(lost));
    fb_json_close(&out, '}');
    fb_print(cli, &out);
    fb_text_free(&out);
    json_decref(revoked);
    return FB_EXIT_OK;
}

fb_exit fb_cmd_space_replace(fb_cli *cli)
{
    const char *role = fb_cli_option(cli, "role");
    if (strcmp(cli->argv[1], cli->argv[2]) == 0) return fb_cli_usage(cli, "OLD and NEW are one");
    fb_exit exit;
    fb_text path = path_of(cli->argv[0], "/members", NULL);
    json_t *members = ask(cli, "GET", &path, NULL, &exit);
    if (members == NULL) return exit;
    const char *of_old = role_of(members, cli->argv[1]), *of_new = role_of(members, cli->argv[2]);
    bool other = role == NULL && of_old != NULL && of_old[0] != 0 && of_new != NULL &&
                 of_new[0] != 0 && strcmp(of_old, of_new) != 0;
    if (role == NULL) role = of_old;
    if (of_old == NULL) {
        exit = fb_cli_fail(FB_EXIT_FAILED, "%s is no member of the space", cli->argv[1]);
    } else if (role[0] == 0) {
        exit = fb_cli_usage(cli, "--role: %s is out already, and has no role to take over",
                            cli->argv[1]);
    } else if (other) {
        exit = fb_cli_usage(cli, "--role: %s is a member already, as %s, and %s is %s",
                            cli->argv[2], of_new, cli->argv[1], of_old);
    } else {
        exit = replace(cli, role);
    }
    json_decref(members);
    return exit;
}
