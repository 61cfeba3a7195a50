/* SPDX-License-Identifier: Apache-2.0 */
/* Values of settings that cannot be meant, as far as can be told without asking the system. */
#include <stdio.h>
#include <string.h>

#include "io/net/address.h"
#include "io/recorder.h"
#include "protocol/base/hex.h"
#include "runtime/command/cli.h"
#include "runtime/daemon/document_store.h"
#include "runtime/settings.h"

/* What is expected instead, or NULL. */
static const char *address_wrong(fb_setting which, const char *text)
{
    fb_address address;
    if (text[0] == 0 || (which == FB_SET_LISTEN && strcmp(text, "none") == 0)) return NULL;
    bool valid = fb_address_parse(fb_span_text(text), &address) == FB_OK &&
                 (address.host[0] != 0 || which == FB_SET_LISTEN);
    return valid ? NULL : "HOST:PORT is expected";
}

static const char *value_wrong(fb_setting which, const char *text)
{
    unsigned long long seconds, bytes;
    uint8_t key[32];
    switch (which) {
    case FB_SET_LISTEN:
    case FB_SET_ADVERTISE:
    case FB_SET_API:
        return address_wrong(which, text);
    case FB_SET_STORE:
        return strcmp(text, "local") == 0 || (fb_document_store_is_mongodb(text) &&
                                              fb_document_store_names_database(text))
                   ? NULL
                   : "local or mongodb://HOST/DATABASE is expected";
    case FB_SET_LOG_FORMAT:
        return strcmp(text, "text") == 0 || strcmp(text, "json") == 0 ? NULL
                                                                      : "text or json is expected";
    case FB_SET_RECORD_KEY:
        return text[0] == 0 || fb_hex_parse(fb_span_text(text), key, sizeof key)
                   ? NULL
                   : "64 hexadecimal digits are expected";
    case FB_SET_RECORD_MAX:
        return fb_cli_bytes(text, &bytes) && bytes >= FB_RECORDER_BYTES_MIN
                   ? NULL
                   : "a size like 512m or 2g is expected, 8m at least";
    case FB_SET_COMMAND_TIMEOUT:
        return fb_cli_duration(text, &seconds) && seconds > 0
                   ? NULL
                   : "a time like 90s, 15m or 2h is expected";
    default:
        return NULL;
    }
}

bool fb_settings_check(const fb_settings *settings, fb_setting which, char *why, size_t why_len)
{
    const fb_setting_value *v = &settings->values[which];
    const char *wrong = value_wrong(which, v->text);
    if (wrong == NULL) return true;
    snprintf(why, why_len, "%s (%.600s): %s, not %.512s", fb_setting_name(which), v->origin, wrong,
             v->text);
    return false;
}

bool fb_settings_check_all(const fb_settings *settings, char *why, size_t why_len)
{
    for (int i = 0; i < FB_SETTINGS; i++) {
        if (!fb_settings_check(settings, (fb_setting)i, why, why_len)) return false;
    }
    return true;
}
