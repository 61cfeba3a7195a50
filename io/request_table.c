/* SPDX-License-Identifier: Apache-2.0 */
#include "io/request_table.h"

#include <stdlib.h>

static fb_open_request **find(fb_request_table *table, uint64_t number)
{
    fb_open_request **at = &table->buckets[number % FB_REQUEST_BUCKETS];
    while (*at != NULL && (*at)->number != number) at = &(*at)->next;
    return at;
}

static void take_out(fb_request_table *table, fb_open_request **at)
{
    fb_open_request *gone = *at;
    *at = gone->next;
    free(gone);
    table->count--;
}

uint64_t fb_request_table_add(fb_request_table *table, fb_loop_reply reply, void *user,
                              bool waits_long)
{
    fb_open_request *request = calloc(1, sizeof *request);
    if (request == NULL) return 0;
    request->number = ++table->numbers;
    request->reply = reply;
    request->user = user;
    request->waits_long = waits_long;
    fb_open_request **bucket = &table->buckets[request->number % FB_REQUEST_BUCKETS];
    request->next = *bucket;
    *bucket = request;
    table->count++;
    return request->number;
}

bool fb_request_table_has(fb_request_table *table, uint64_t number)
{
    return *find(table, number) != NULL;
}

bool fb_request_table_remove(fb_request_table *table, uint64_t number)
{
    fb_open_request **at = find(table, number);
    if (*at == NULL) return false;
    take_out(table, at);
    return true;
}

void fb_request_table_reply(fb_request_table *table, uint64_t number, fb_error error, bool more,
                            fb_span answer)
{
    fb_open_request **at = find(table, number);
    if (*at == NULL) return;
    fb_open_request request = **at;
    if (!more) take_out(table, at);
    request.reply(request.user, error, more, answer);
}

void fb_request_table_end(fb_request_table *table, fb_error error)
{
    for (uint32_t i = 0; i < FB_REQUEST_BUCKETS; i++) {
        while (table->buckets[i] != NULL) {
            fb_request_table_reply(table, table->buckets[i]->number, error, false,
                                   (fb_span){NULL, 0});
        }
    }
}

bool fb_request_table_pending(const fb_request_table *table)
{
    for (uint32_t i = 0; i < FB_REQUEST_BUCKETS && table->count > 0; i++) {
        for (const fb_open_request *r = table->buckets[i]; r != NULL; r = r->next) {
            if (!r->waits_long) return true;
        }
    }
    return false;
}
