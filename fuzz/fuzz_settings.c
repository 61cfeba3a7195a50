/* SPDX-License-Identifier: Apache-2.0 */
/* The file of settings: read, or refused with a sentence that names the file and the line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/envelope_same.h"
#include "runtime/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64];

static const char *flag(const void *user, const char *name)
{
    (void)user;
    return strcmp(name, "config") == 0 ? path : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int file = -1;
    static fb_settings settings;
    if (file < 0) {
        file = memfd_create("settings", 0);
        fb_fuzz_require(file >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    }
    fb_fuzz_require(ftruncate(file, 0) == 0);
    fb_fuzz_require(pwrite(file, data, size, 0) == (ssize_t)size);
    char why[700] = "";
    if (!fb_settings_load(&settings, flag, NULL, why, sizeof why)) {
        fb_fuzz_require(why[0] != 0);
        return 0;
    }
    for (int i = 0; i < FB_SETTINGS; i++) {
        const fb_setting_value *value = &settings.values[i];
        fb_fuzz_require(memchr(value->text, 0, sizeof value->text) != NULL &&
                        value->origin[0] != 0);
    }
    return 0;
}
