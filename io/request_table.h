/* SPDX-License-Identifier: Apache-2.0 */
/* The local requests that a driver has open: who gets which answer. */
#ifndef FB_IO_REQUEST_TABLE_H
#define FB_IO_REQUEST_TABLE_H

#include "io/loop.h"

#define FB_REQUEST_BUCKETS 256u

typedef struct fb_open_request {
    struct fb_open_request *next;
    uint64_t number;
    fb_loop_reply reply;
    void *user;
    bool waits_long; /* a stop does not wait for it */
} fb_open_request;

/* Zeroed is empty. */
typedef struct fb_request_table {
    uint64_t numbers; /* given so far; never reused */
    uint32_t count;
    fb_open_request *buckets[FB_REQUEST_BUCKETS];
} fb_request_table;

/* A new entry's number, or 0 without memory. */
uint64_t fb_request_table_add(fb_request_table *table, fb_loop_reply reply, void *user,
                              bool waits_long);
bool fb_request_table_has(fb_request_table *table, uint64_t number);
/* False when there is none of this number. */
bool fb_request_table_remove(fb_request_table *table, uint64_t number);

/* Hands an answer to whoever asked; the last one removes the entry first. */
void fb_request_table_reply(fb_request_table *table, uint64_t number, fb_error error, bool more,
                            fb_span answer);
/* Every entry gets `error` as its last answer. */
void fb_request_table_end(fb_request_table *table, fb_error error);
/* Some entry is worth waiting for. */
bool fb_request_table_pending(const fb_request_table *table);

#endif
