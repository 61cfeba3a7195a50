/* SPDX-License-Identifier: Apache-2.0 */
/* A space as the store of this node has it at one moment, for commands that read the store
 * themselves, whether the node runs or not. */
#ifndef FB_RUNTIME_COMMAND_SPACE_VIEW_H
#define FB_RUNTIME_COMMAND_SPACE_VIEW_H

#include "io/store/snapshot.h"
#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "runtime/command/cli.h"
#include "runtime/text.h"

typedef struct fb_view_area {
    uint32_t local;
    fb_span name; /* borrowed from the snapshot */
} fb_view_area;

typedef struct fb_space_view {
    fb_store_snapshot *store;
    uint32_t local;
    fb_id id;
    fb_text name;
    fb_view_area areas[FB_AREAS_MAX]; /* its collections */
    uint32_t area_count;
} fb_space_view;

/* Of the node in --home, by the space's name or id. FB_EXIT_FAILED after it said why. */
fb_exit fb_space_view_open(const fb_cli *cli, const char *space, fb_space_view *out);
void fb_space_view_close(fb_space_view *view);

/* The key of an entry that stands under an area: tag and number, then what is written to w. */
fb_writer fb_view_key(uint8_t *room, size_t cap, uint8_t tag, uint32_t area);

#endif
