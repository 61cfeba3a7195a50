/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over files, with any compiler: each argument is a file or a folder of files.
 * Fails when there is nothing to run, so that a lost corpus is not a passed test. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Nothing is made up here; mutators are linked and never called. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)data;
    (void)max_size;
    return size;
}

static unsigned long ran;

static void fail(const char *path)
{
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    exit(1);
}

static void run_file(const char *path, size_t size)
{
    /* Exactly as large as the input, so that a sanitizer sees the first byte beyond it. */
    uint8_t *data = malloc(size == 0 ? 1 : size);
    FILE *file = fopen(path, "rb");
    if (data == NULL || file == NULL || fread(data, 1, size, file) != size) fail(path);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    ran++;
}

static void run(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) fail(path);
    if (!S_ISDIR(info.st_mode)) {
        run_file(path, (size_t)info.st_size);
        return;
    }
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) fail(path);
    for (int i = 0; i < count; i++) {
        char inner[4096];
        if (entries[i]->d_name[0] != '.') {
            snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
            run(inner);
        }
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) run(argv[i]);
    printf("%lu inputs\n", ran);
    return ran == 0;
}
