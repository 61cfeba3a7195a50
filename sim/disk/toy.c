/* SPDX-License-Identifier: Apache-2.0 */
/* What the toys share. */
#include "sim/disk/toy.h"

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"

const fb_disk_defect_row fb_disk_defect_rows[FB_DISK_DEFECTS] = {
    [FB_DISK_SOUND] = {"none", "", NULL, 0},
#define X(id, toy, name, text, by) {name, text, &fb_disk_toy_##toy, by},
#include "sim/disk/toy_defects.def"
#undef X
};

uint32_t fb_disk_content(uint64_t number, uint32_t low, uint32_t high, uint8_t *out)
{
    static const fb_seed seed = {UINT64_C(0x636f6e74656e7473), 0};
    uint32_t len = (uint32_t)fb_sim_between(seed, FB_SIM_STREAM_DISK_CONTENT, 0, number, low, high);
    FB_ASSERT(len <= FB_DISK_CONTENT_MAX - 8);
    for (uint32_t at = 0; at < len; at += 8) {
        uint64_t bits = fb_draw(seed, FB_SIM_STREAM_DISK_CONTENT, 1 + number, at);
        fb_store_be(out + at, bits, 8);
    }
    return len;
}

fb_disk_status fb_disk_read_all(fb_disk *disk, uint32_t handle, uint32_t at, void *out,
                                uint32_t len, uint32_t *done)
{
    *done = 0;
    for (;;) {
        uint32_t n = 0;
        fb_disk_status status =
            fb_disk_read(disk, handle, at + *done, (uint8_t *)out + *done, len - *done, &n);
        if (status != FB_DISK_OK) return status;
        *done += n;
        if (n == 0 || *done == len) return FB_DISK_OK;
    }
}

fb_disk_status fb_disk_write_all(fb_disk *disk, uint32_t handle, uint32_t at, const void *bytes,
                                 uint32_t len)
{
    for (uint32_t done = 0; done < len;) {
        uint32_t n = 0;
        fb_disk_status status =
            fb_disk_write(disk, handle, at + done, (const uint8_t *)bytes + done, len - done, &n);
        if (status != FB_DISK_OK) return status;
        done += n;
    }
    return FB_DISK_OK;
}

fb_disk_status fb_disk_open_new(fb_disk *disk, const char *name, uint32_t *handle)
{
    fb_disk_status status = fb_disk_remove(disk, name);
    if (status != FB_DISK_OK && status != FB_DISK_ENOENT) return status;
    return fb_disk_open(disk, name, FB_DISK_CREATE, handle);
}

bool fb_disk_history_add(fb_disk_history *history, uint64_t identity, uint64_t content)
{
    uint64_t size = sizeof history->identity / sizeof history->identity[0];
    if (identity == 0) identity = 1;
    for (uint64_t i = 0; i < size; i++) {
        uint64_t at = (identity + i) % size;
        if (history->identity[at] == 0) {
            history->identity[at] = identity;
            history->content[at] = content;
            return true;
        }
        if (history->identity[at] == identity) {
            history->clash = history->clash || history->content[at] != content;
            return !history->clash;
        }
    }
    FB_ASSERT(false);
    return false;
}
