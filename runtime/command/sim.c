/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator opens nothing that is sealed, so that it builds without any cryptography:
 * recordings are opened here and handed over as what they say. */
#include "runtime/command/sim.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/entropy.h"
#include "io/files/sealed_file.h"
#include "io/keys/file.h"
#include "protocol/base/hash.h"
#include "runtime/command/cli.h"
#include "runtime/home.h"
#include "sim/main_sim.h"
#include "sim/record/main_record.h"

#define WORDS_MAX 300

#define KEYS_MAX 64

typedef struct opener {
    char key_paths[KEYS_MAX][FB_HOME_PATH_MAX]; /* one of them opens a file */
    int keys;
    uint8_t salt[32]; /* of the hashes of one redaction; forgotten with this process */
} opener;

static bool open_sealed(void *user, const char *path, fb_sim_recorded *out, char *why,
                        size_t why_len)
{
    const opener *o = user;
    fb_sealed_content content;
    fb_status status = FB_ERR_KEY;
    for (int i = 0; i < o->keys && status == FB_ERR_KEY; i++) {
        fb_b32 secret;
        fb_key_file_error error = {""};
        bool has_key = fb_key_file_read(o->key_paths[i], FB_KEY_X25519, &secret, &error) == FB_OK;
        status = fb_sealed_read(path, has_key ? &secret : NULL, &content, why, why_len);
        sodium_memzero(&secret, sizeof secret);
        if (status == FB_ERR_KEY && !has_key) {
            snprintf(why, why_len,
                     "%s: it is sealed, and its key (--key FILE) cannot be read: %s: %s", path,
                     o->key_paths[i], error.text);
        } else if (status == FB_ERR_KEY) {
            size_t len = strlen(why);
            snprintf(why + len, why_len - len, " than %s (--key FILE)", o->key_paths[i]);
        }
    }
    if (status != FB_OK) return false;
    *out = (fb_sim_recorded){content.bytes, content.len, content.whole};
    return true;
}

static fb_hash128 salted(void *user, fb_span bytes)
{
    const opener *o = user;
    uint8_t out[16];
    const fb_span parts[2] = {fb_span_of(o->salt, sizeof o->salt), bytes};
    fb_blake3(parts, bytes.len != 0 ? 2 : 1, out, sizeof out);
    fb_hash128 hash;
    memcpy(&hash, out, sizeof hash);
    return hash;
}

/* Takes --key and --home out of the words; they are not the simulator's. */
static bool words_read(opener *o, int argc, char **argv, char **words, int *count)
{
    const char *home = NULL;
    for (int i = 0; i < argc; i++) {
        bool is_key = strcmp(argv[i], "--key") == 0, is_home = strcmp(argv[i], "--home") == 0;
        if (!is_key && !is_home) {
            if (*count == WORDS_MAX) return false;
            words[(*count)++] = argv[i];
        } else if (i + 1 == argc || o->keys == KEYS_MAX) {
            return false;
        } else if (is_home) {
            home = argv[++i];
        } else {
            snprintf(o->key_paths[o->keys++], FB_HOME_PATH_MAX, "%s", argv[++i]);
        }
    }
    words[*count] = NULL;
    if (o->keys > 0) return true;
    static fb_cli cli;
    char why[FB_SETTINGS_WHY];
    fb_home at;
    if (home == NULL && fb_cli_settings(&cli, &cli.settings, why, sizeof why)) {
        home = fb_settings_get(&cli.settings, FB_SET_HOME);
    }
    if (home == NULL || !fb_home_open(home, &at, why, sizeof why)) return false;
    fb_home_file(&at, "record.key", o->key_paths[o->keys++]);
    return true;
}

/* Is it a recording, or the name of one? */
static bool is_recording(const char *path)
{
    char name[FB_HOME_PATH_MAX], magic[sizeof FB_SEALED_MAGIC] = "";
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, i == 0 ? "%s" : "%s.000001", path);
        FILE *file = fopen(name, "rb");
        if (file == NULL) continue;
        bool is = fread(magic, 1, sizeof magic - 1, file) == sizeof magic - 1 &&
                  strcmp(magic, FB_SEALED_MAGIC) == 0;
        fclose(file);
        if (is) return true;
    }
    return false;
}

int fb_cmd_sim(int argc, char **argv)
{
    /* `view` shows both: runs of the simulator and those of real nodes. */
    bool record = argc > 1 && strcmp(argv[1], "record") == 0;
    bool view = argc > 2 && strcmp(argv[1], "view") == 0;
    for (int i = 2; view && i < argc; i++) record = record || is_recording(argv[i]);
    if (!record) return fb_sim_main(argc, argv);
    static opener o;
    static char *words[WORDS_MAX + 1];
    int count = 0;
    if (sodium_init() < 0) return fb_cli_fail(FB_EXIT_FAILED, "libsodium does not start");
    if (!words_read(&o, argc, argv, words, &count)) {
        return fb_cli_fail(FB_EXIT_USAGE,
                           "sim record: too many words, a flag without its value, or no home");
    }
    fb_entropy(o.salt, sizeof o.salt);
    fb_sim_record_io io = {.user = &o, .read = open_sealed, .hash = salted};
    return fb_sim_record_main(count, words, &io);
}
