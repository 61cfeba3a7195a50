/* SPDX-License-Identifier: Apache-2.0 */
#include "io/documents/names.h"

#include <string.h>

#include "protocol/base/cursor.h"
#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"

#define TAIL_BYTES (2u + 32u) /* "%~" and an id */

static bool is_plain(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

void fb_documents_collection(fb_id space, fb_id area, fb_span name,
                             char out[FB_DOCUMENTS_COLLECTION_MAX])
{
    static const char digits[] = "0123456789ABCDEF";
    char uuid[FB_UUID_TEXT_LEN];
    fb_uuid_format(space, uuid);
    fb_writer w = fb_writer_of(out, FB_DOCUMENTS_COLLECTION_MAX - 1);
    fb_write_bytes(&w, uuid, sizeof uuid);
    fb_write_u8(&w, '.');
    /* Where the beginning of a name that is too long ends. */
    size_t cut = w.at;
    for (size_t i = 0; i < name.len && !w.failed; i++) {
        uint8_t c = name.p[i];
        if (is_plain(c)) {
            fb_write_u8(&w, c);
        } else {
            const uint8_t escape[] = {'%', (uint8_t)digits[c >> 4], (uint8_t)digits[c & 15]};
            fb_write_bytes(&w, escape, sizeof escape);
        }
        if (!w.failed && w.at + TAIL_BYTES < FB_DOCUMENTS_COLLECTION_MAX) cut = w.at;
    }
    if (w.failed) {
        memcpy(out + cut, "%~", 2);
        fb_hex_format(area.b, sizeof area.b, out + cut + 2);
        out[cut + TAIL_BYTES] = 0;
        return;
    }
    out[w.at] = 0;
}
