/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/conformance/queue.h"

#include <stdlib.h>
#include <string.h>

static bool insert(fb_waiting **at, uint32_t node, uint64_t life, fb_event event)
{
    fb_waiting *q = malloc(sizeof *q + event.len);
    if (q == NULL) return false;
    *q = (fb_waiting){.next = *at, .node = node, .life = life, .event = event};
    if (event.len != 0) memcpy(q->bytes, event.bytes, event.len);
    *at = q;
    return true;
}

static fb_waiting *take(fb_waiting **at)
{
    fb_waiting *q = *at;
    *at = q->next;
    q->event.bytes = q->bytes;
    return q;
}

/* What comes over a link in its order: bytes, and its end behind them. */
static bool is_of_link(const fb_waiting *q, uint32_t node, uint64_t link)
{
    return q->node == node && q->event.a == link &&
           (q->event.kind == FB_EV_LINK_BYTES || q->event.kind == FB_EV_LINK_CLOSED);
}

static fb_paused *paused_of(fb_queue *queue, uint32_t node, uint64_t link)
{
    for (uint32_t i = 0; i < FB_QUEUE_PAUSED_MAX; i++) {
        fb_paused *one = &queue->paused[i];
        if (one->used && one->node == node && one->link == link) return one;
    }
    return NULL;
}

static bool pause_link(fb_queue *queue, uint32_t node, uint64_t link)
{
    if (paused_of(queue, node, link) != NULL) return true;
    uint32_t i = 0;
    while (i < FB_QUEUE_PAUSED_MAX && queue->paused[i].used) i++;
    if (i == FB_QUEUE_PAUSED_MAX) return false;
    queue->paused[i] = (fb_paused){true, node, link};
    return true;
}

bool fb_queue_add(fb_queue *queue, uint32_t node, uint64_t life, fb_event event)
{
    fb_waiting **at = &queue->head;
    while (*at != NULL) at = &(*at)->next;
    return insert(at, node, life, event);
}

bool fb_queue_put_back(fb_queue *queue, uint32_t node, uint64_t life, fb_event event, size_t taken)
{
    fb_waiting **at = &queue->head;
    while (*at != NULL && !is_of_link(*at, node, event.a)) at = &(*at)->next;
    event.bytes += taken;
    event.len -= (uint32_t)taken;
    return insert(at, node, life, event) && pause_link(queue, node, event.a);
}

fb_waiting *fb_queue_next(fb_queue *queue)
{
    for (fb_waiting **at = &queue->head; *at != NULL; at = &(*at)->next) {
        uint64_t link = (*at)->event.a;
        bool waits =
            is_of_link(*at, (*at)->node, link) && paused_of(queue, (*at)->node, link) != NULL;
        if (!waits) return take(at);
    }
    return NULL;
}

void fb_queue_resume(fb_queue *queue, uint32_t node, uint64_t link)
{
    fb_paused *one = paused_of(queue, node, link);
    if (one != NULL) one->used = false;
}

void fb_queue_drop(fb_queue *queue, uint32_t node, uint64_t link)
{
    fb_queue_resume(queue, node, link);
    for (fb_waiting **at = &queue->head; *at != NULL;) {
        if (is_of_link(*at, node, link) && (*at)->event.kind == FB_EV_LINK_BYTES) {
            free(take(at));
        } else {
            at = &(*at)->next;
        }
    }
}

void fb_queue_resume_all(fb_queue *queue, uint32_t node)
{
    for (uint32_t i = 0; i < FB_QUEUE_PAUSED_MAX; i++) {
        if (queue->paused[i].node == node) queue->paused[i].used = false;
    }
}

void fb_queue_free(fb_queue *queue)
{
    while (queue->head != NULL) free(take(&queue->head));
}
