/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/daemon/document_store.h"

#include <stdio.h>
#include <string.h>

#include "io/documents_load.h"

static const char *const schemes[] = {"mongodb://", "mongodb+srv://"};

bool fb_document_store_is_mongodb(const char *setting)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (strncmp(setting, schemes[i], strlen(schemes[i])) == 0) return true;
    }
    return false;
}

bool fb_document_store_names_database(const char *setting)
{
    const char *hosts = strstr(setting, "//");
    const char *name = hosts == NULL ? NULL : strchr(hosts + 2, '/');
    return name != NULL && name[1] != 0 && name[1] != '?';
}

void fb_document_store_hide(const char *setting, char *out, size_t len)
{
    const char *from = strstr(setting, "//");
    const char *at = fb_document_store_is_mongodb(setting) ? strrchr(setting, '@') : NULL;
    if (from == NULL || at == NULL) {
        snprintf(out, len, "%s", setting);
        return;
    }
    snprintf(out, len, "%.*s//...%s", (int)(from - setting), setting, at);
}

bool fb_document_store_open(const char *setting, fb_id owner, fb_document_store *out, char *why,
                            size_t why_len)
{
    *out = (fb_document_store){NULL, NULL};
    if (!fb_document_store_is_mongodb(setting)) return true;
    const fb_documents_ops *ops;
    const fb_documents_options options = {setting, owner, FB_DOCUMENT_STORE_TIMEOUT_MS};
    if (fb_documents_load(FB_DOCUMENTS_MONGO, &ops, why, why_len) != FB_OK) return false;
    if (ops->open(&options, &out->documents, why, why_len) != FB_OK) return false;
    out->ops = ops;
    return true;
}

void fb_document_store_close(fb_document_store *store)
{
    if (store->ops != NULL) store->ops->close(store->documents);
    *store = (fb_document_store){NULL, NULL};
}
