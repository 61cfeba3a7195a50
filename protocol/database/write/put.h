/* SPDX-License-Identifier: Apache-2.0 */
/* Writes of applications: RECORD_PUT, RECORD_DELETE, RECORD_BATCH, fb_database_write. */
#ifndef FB_DATABASE_WRITE_PUT_H
#define FB_DATABASE_WRITE_PUT_H

#include "protocol/core/internal.h"

/* The answer to a RECORD_BATCH that waits for its write set. */
typedef struct fb_answer {
    bool used;
    bool ready;
    uint32_t index; /* of the request */
    uint64_t number;
    uint64_t w;
    uint32_t len;
    uint8_t bytes[FB_ANSWER_BYTES_MAX];
} fb_answer;

void fb_put_layout(fb_node *node, fb_arena *arena);
void fb_put_reset(fb_node *node);
void fb_put_flush(fb_node *node);

#endif
