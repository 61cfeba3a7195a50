/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/record/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DIGITS 6

static bool add(fb_sim_record_files *files, const char *path)
{
    if (files->count == FB_SIM_RECORDINGS_MAX) return false;
    files->paths[files->count] = strdup(path);
    if (files->paths[files->count] == NULL) return false;
    files->count++;
    return true;
}

static bool belongs(const char *name, const char *leaf)
{
    size_t len = strlen(leaf);
    return strncmp(name, leaf, len) == 0 && name[len] == '.' &&
           strspn(name + len + 1, "0123456789") == DIGITS && name[len + 1 + DIGITS] == 0;
}

bool fb_sim_record_files_add(fb_sim_record_files *files, const char *path, char *why,
                             size_t why_len)
{
    struct stat st;
    snprintf(why, why_len, "more than %u files", FB_SIM_RECORDINGS_MAX);
    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) return add(files, path);
    const char *slash = strrchr(path, '/');
    const char *leaf = slash != NULL ? slash + 1 : path;
    char directory[4096];
    int len = slash == NULL ? 1 : slash == path ? 1 : (int)(slash - path);
    snprintf(directory, sizeof directory, "%.*s", len, slash == NULL ? "." : path);
    struct dirent **found = NULL;
    /* Numbers have one width: the order of names is theirs. */
    int count = leaf[0] == 0 ? 0 : scandir(directory, &found, NULL, alphasort);
    bool some = false, room = true;
    for (int i = 0; i < count; i++) {
        char file[sizeof directory + 512];
        snprintf(file, sizeof file, "%.*s%s", slash == NULL ? 0 : (int)(leaf - path), path,
                 found[i]->d_name);
        if (belongs(found[i]->d_name, leaf)) {
            some = true;
            room = room && add(files, file);
        }
        free(found[i]);
    }
    if (count >= 0) free(found);
    if (!some) snprintf(why, why_len, "%s: no such recording", path);
    return some && room;
}

void fb_sim_record_files_free(fb_sim_record_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) free(files->paths[i]);
    files->count = 0;
}
