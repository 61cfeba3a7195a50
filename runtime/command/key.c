/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/key.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "io/keys/file.h"
#include "io/keys/provider_sodium.h"
#include "protocol/base/hex.h"
#include "protocol/identity/identity.h"
#include "runtime/command/cli.h"
#include "runtime/command/key_backup.h"
#include "runtime/exit.h"

static void help(void)
{
    fputs(
        "usage: faberio key new --out FILE [--seed HEX]\n"
        "       faberio key show FILE\n"
        "       faberio key backup OUT [--home DIR] [--passphrase-file FILE|-]\n"
        "       faberio key restore FILE [--home DIR] --original-is-gone\n"
        "                   (--passphrase-file FILE|- | --recovery-file FILE|-)\n"
        "\n"
        "  new   draws an Ed25519 key and writes it to FILE (mode 0600); an existing file is\n"
        "        never overwritten\n"
        "    --seed HEX  the 32 secret bytes instead of drawn ones: for tests only, such a key\n"
        "                is no secret\n"
        "  show  node id, public key and fingerprint of the key in FILE\n"
        "\n"
        "  backup   all keys of the node's directory, for the recovery key, or for a passphrase\n"
        "           (the first line of a file; - is standard input)\n"
        "  restore  a new directory with the keys of a backup; never beside the one they are from\n"
        "\n"
        "Each prints one JSON object. Exit codes: 0 ok, 1 failed or refused, 2 usage, 4 the "
        "secret\n"
        "does not open it, 5 a node is there already, or may still run.\n",
        stdout);
}

static int usage(const char *what)
{
    fprintf(stderr, "faberio key: %s\nfaberio key --help says more.\n", what);
    return FB_EXIT_USAGE;
}

static int failed(const char *verb, const char *path, const char *why)
{
    fprintf(stderr, "faberio key %s: ", verb);
    fb_cli_put_visible(path);
    fprintf(stderr, ": %s\n", why);
    return FB_EXIT_FAILED;
}

static int print_key(const char *verb, const char *path, const fb_b32 *seed)
{
    fb_sodium *sodium;
    fb_key_handle key;
    fb_b32 public_key;
    if (fb_sodium_create(1, &sodium) != FB_OK) {
        return failed(verb, path, "libsodium does not start");
    }
    const fb_provider *provider = fb_sodium_provider(sodium);
    if (fb_sodium_add_signing(sodium, seed, &key) != FB_OK ||
        provider->public_key(provider->user, key, &public_key) != FB_OK) {
        fb_sodium_destroy(sodium);
        return failed(verb, path, "not a usable key");
    }
    char id_hex[33], key_hex[65], words[FB_FINGERPRINT_BYTES];
    fb_id id = fb_node_id_of(provider, &public_key);
    fb_hex_text(id.b, sizeof id.b, id_hex);
    fb_hex_text(public_key.b, sizeof public_key.b, key_hex);
    fb_fingerprint(provider, &public_key, words);
    fb_sodium_destroy(sodium);
    printf("{\"node_id\":\"%s\",\"public_key\":\"%s\",\"fingerprint\":\"%s\"}\n", id_hex, key_hex,
           words);
    return fflush(stdout) == 0 ? FB_EXIT_OK
                               : failed(verb, path, "standard output cannot be written");
}

static int key_new(const char *path, const char *seed_hex)
{
    fb_b32 seed;
    fb_key_file_error error;
    fb_status status;
    if (seed_hex != NULL) {
        if (!fb_hex_parse(fb_span_text(seed_hex), seed.b, sizeof seed.b)) {
            return usage("--seed is 64 lowercase hex digits");
        }
        fputs("faberio key new: --seed is for tests only: whoever saw this command line has the "
              "key\n",
              stderr);
        status = fb_key_file_write(path, FB_KEY_ED25519, &seed, &error);
    } else {
        status = fb_key_file_generate(path, FB_KEY_ED25519, &seed, &error);
    }
    int code = status == FB_OK ? print_key("new", path, &seed) : failed("new", path, error.text);
    /* Who could not be told which key it is has none. */
    if (status == FB_OK && code != FB_EXIT_OK) unlink(path);
    sodium_memzero(&seed, sizeof seed);
    return code;
}

static int key_show(const char *path)
{
    fb_b32 seed;
    fb_key_file_error error;
    if (fb_key_file_read(path, FB_KEY_ED25519, &seed, &error) != FB_OK) {
        return failed("show", path, error.text);
    }
    int code = print_key("show", path, &seed);
    sodium_memzero(&seed, sizeof seed);
    return code;
}

/* The value of "--name VALUE" or "--name=VALUE" at *at, or NULL. */
static const char *option(int argc, char **argv, int *at, const char *name)
{
    size_t len = strlen(name);
    if (strncmp(argv[*at], name, len) != 0) return NULL;
    if (argv[*at][len] == '=') return argv[*at] + len + 1;
    if (argv[*at][len] != '\0' || *at + 1 >= argc) return NULL;
    return argv[++*at];
}

int fb_cmd_key(int argc, char **argv)
{
    const char *out = NULL, *seed = NULL, *file = NULL, *value;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            help();
            return FB_EXIT_OK;
        }
    }
    if (argc < 2) return usage("no verb: new, show, backup or restore");
    if (strcmp(argv[1], "backup") == 0) return fb_cmd_key_backup(argc, argv);
    if (strcmp(argv[1], "restore") == 0) return fb_cmd_key_restore(argc, argv);
    bool is_new = strcmp(argv[1], "new") == 0;
    if (!is_new && strcmp(argv[1], "show") != 0)
        return usage("no such verb: new, show, backup or restore");
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) continue; /* it is JSON already */
        if (is_new && (value = option(argc, argv, &i, "--out")) != NULL) {
            out = value;
        } else if (is_new && (value = option(argc, argv, &i, "--seed")) != NULL) {
            seed = value;
        } else if (!is_new && argv[i][0] != '-' && file == NULL) {
            file = argv[i];
        } else {
            return usage(is_new ? "new takes --out FILE and --seed HEX" : "show takes one FILE");
        }
    }
    if (is_new) return out == NULL ? usage("--out FILE is missing") : key_new(out, seed);
    return file == NULL ? usage("no FILE") : key_show(file);
}
