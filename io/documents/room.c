/* SPDX-License-Identifier: Apache-2.0 */
#include "io/documents/room.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"

struct fb_room_block {
    struct fb_room_block *before;
    size_t len;
    _Alignas(16) uint8_t bytes[];
};

void *fb_room_take(fb_room *room, size_t len)
{
    len = (len + 15) & ~(size_t)15;
    if (room->last == NULL || len > room->last->len - room->used) {
        size_t bytes = len > FB_ROOM_BLOCK ? len : FB_ROOM_BLOCK;
        struct fb_room_block *block =
            room->source == NULL ? malloc(sizeof *block + bytes)
                                 : room->source->take(room->source->user, sizeof *block + bytes);
        FB_ASSERT(block != NULL);
        block->before = room->last;
        block->len = bytes;
        room->last = block;
        room->used = 0;
    }
    void *at = room->last->bytes + room->used;
    room->used += len;
    return at;
}

void *fb_room_take_zeroed(fb_room *room, size_t len)
{
    void *at = fb_room_take(room, len);
    if (len != 0) memset(at, 0, len);
    return at;
}

fb_span fb_room_copy(fb_room *room, fb_span bytes)
{
    if (bytes.len == 0) return (fb_span){NULL, 0};
    uint8_t *copy = fb_room_take(room, bytes.len);
    memcpy(copy, bytes.p, bytes.len);
    return fb_span_of(copy, bytes.len);
}

void fb_room_free(fb_room *room)
{
    while (room->last != NULL) {
        struct fb_room_block *before = room->last->before;
        if (room->source == NULL) {
            free(room->last);
        } else {
            room->source->give(room->source->user, room->last);
        }
        room->last = before;
    }
    room->used = 0;
}
