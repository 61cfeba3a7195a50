/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/daemon/document_store.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "io/document_store/load.h"

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

/* Options that say nothing secret; of all others the name alone is shown. */
static const char *const shown_options[] = {
    "appName",
    "authMechanism",
    "authSource",
    "compressors",
    "connectTimeoutMS",
    "directConnection",
    "heartbeatFrequencyMS",
    "journal",
    "loadBalanced",
    "maxPoolSize",
    "readConcernLevel",
    "readPreference",
    "replicaSet",
    "retryReads",
    "retryWrites",
    "serverSelectionTimeoutMS",
    "socketTimeoutMS",
    "ssl",
    "tls",
    "tlsCAFile",
    "tlsCertificateKeyFile",
    "w",
    "wtimeoutMS",
};

static bool is_shown(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof shown_options / sizeof shown_options[0]; i++) {
        if (strlen(shown_options[i]) == len && strncasecmp(shown_options[i], name, len) == 0) {
            return true;
        }
    }
    return false;
}

/* Every colon stands before a port: else it may be one before a password whose "@" is missing. */
static bool is_hosts(const char *hosts, size_t len)
{
    bool bracket = false, port = false;
    for (size_t i = 0; i < len; i++) {
        if (hosts[i] == '[' || hosts[i] == ']') bracket = hosts[i] == '[';
        if (hosts[i] == ',') port = false;
        if (port && (hosts[i] < '0' || hosts[i] > '9')) return false;
        if (hosts[i] == ':' && !bracket) port = true;
    }
    return true;
}

/* What is written fits or is cut; `at` never goes beyond the end. */
static size_t write_shown(char *out, size_t len, size_t at, const char *text, size_t text_len)
{
    if (text_len > len - 1 - at) text_len = len - 1 - at;
    memcpy(out + at, text, text_len);
    out[at + text_len] = 0;
    return at + text_len;
}

void fb_document_store_hide(const char *setting, char *out, size_t len)
{
    size_t at = write_shown(out, len, 0, "", 0);
    const char *hosts = strstr(setting, "//");
    if (hosts == NULL || !fb_document_store_is_mongodb(setting)) {
        write_shown(out, len, 0, setting, strlen(setting));
        return;
    }
    hosts += 2;
    at = write_shown(out, len, at, setting, (size_t)(hosts - setting));
    const char *last = strrchr(hosts, '@'), *options = strchr(hosts, '?');
    size_t authority = strcspn(last == NULL ? hosts : last + 1, "/?");
    /* Whether it is in an option's value or in a password that is not encoded is not known. */
    bool unclear = (last != NULL && options != NULL && options < last) ||
                   !is_hosts(last == NULL ? hosts : last + 1, authority);
    if (last != NULL || unclear) at = write_shown(out, len, at, "...", 3);
    if (unclear) return;
    const char *from = last == NULL ? hosts : last;
    size_t plain = options == NULL ? strlen(from) : (size_t)(options - from);
    at = write_shown(out, len, at, from, plain);
    for (const char *option = from + plain; *option != 0;) {
        size_t name = 1 + strcspn(option + 1, "=&;"), whole = 1 + strcspn(option + 1, "&;");
        bool all = name == whole || is_shown(option + 1, name - 1);
        at = write_shown(out, len, at, option, all ? whole : name + 1);
        if (!all) at = write_shown(out, len, at, "...", 3);
        option += whole;
    }
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
