/* SPDX-License-Identifier: Apache-2.0 */
#include "io/document_store/load.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef FB_MODULE_DIRECTORY
#define FB_MODULE_DIRECTORY "/usr/lib/faberio"
#endif

/* Of the running program, with its last slash; empty when the system does not say. */
static void program_directory(char *out, size_t len)
{
    ssize_t got = readlink("/proc/self/exe", out, len - 1);
    out[got < 0 ? 0 : got] = 0;
    char *slash = strrchr(out, '/');
    if (slash != NULL) slash[1] = 0;
}

fb_status fb_documents_load(const char *file, const fb_documents_ops **out, char *why,
                            size_t why_len)
{
    char directory[PATH_MAX], path[PATH_MAX + 64];
    *out = NULL;
    program_directory(directory, sizeof directory);
    snprintf(path, sizeof path, "%s%s", directory, file);
    if (access(path, F_OK) != 0) snprintf(path, sizeof path, "%s/%s", FB_MODULE_DIRECTORY, file);
    if (access(path, F_OK) != 0) {
        snprintf(why, why_len, "this build has no %s: neither beside the program nor in %s", file,
                 FB_MODULE_DIRECTORY);
        return FB_ERR_UNSUPPORTED;
    }
    /* While it is loaded, libmongoc makes a file for its counters in the shared memory. A killed
     * process leaves it there for good, and the next one of its number stumbles over it and says so
     * on standard error. There are no threads yet that could look at the environment. */
    setenv("MONGOC_DISABLE_SHM", "1", 0);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = module == NULL ? NULL : dlsym(module, "fb_documents_module");
    if (symbol == NULL) {
        snprintf(why, why_len, "%s cannot be loaded: %s", path, dlerror());
        return FB_ERR_UNSUPPORTED;
    }
    fb_documents_module_of entry;
    memcpy(&entry, &symbol, sizeof entry); /* a function that POSIX gives as an object */
    *out = entry();
    if ((*out)->interface != FB_DOCUMENTS_INTERFACE) {
        snprintf(why, why_len, "%s belongs to another version of the program", path);
        *out = NULL;
        return FB_ERR_UNSUPPORTED;
    }
    return FB_OK;
}
