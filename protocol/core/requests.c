/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/base/mutant.h"
#include "protocol/core/request.h"

#include "protocol/core/internal.h"
#include "protocol/core/requests.h"
#include "protocol/store/ops.h"

typedef enum open_state {
    OPEN_FREE,
    OPEN_WAITING, /* a plane has it */
    OPEN_HELD,    /* answered, until its write set is durable */
} open_state;

typedef struct open_request {
    open_state state;
    fb_request asked;
    fb_cancel_handler cancelled;
    uint64_t user;
    uint64_t credit;
    uint64_t held_w;
    fb_status held_status;
    uint32_t held_len;
    uint32_t next; /* free list, bucket chain is separate; plus one */
    uint32_t chain;
    fb_digest_cell cell;
    uint8_t held[FB_REPLY_HELD_BYTES];
} open_request;

struct fb_requests {
    open_request *open;
    uint32_t count;
    uint32_t free;     /* plus one */
    uint32_t *buckets; /* by number; plus one */
    uint32_t bucket_mask;
    uint32_t *held; /* ring of indices, in the order of fb_reply_held */
    uint32_t held_head;
    uint32_t held_count;
    fb_verb_handler handlers[FB_VERBS_MAX];
};

static uint32_t digest_count(const fb_node *node)
{
    return node->options.sizes.requests;
}

static fb_digest_cell *digest_cell(fb_node *node, uint32_t index)
{
    return &node->requests->open[index].cell;
}

static void digest_write(const fb_node *node, uint32_t index, fb_writer *w)
{
    const open_request *open = &node->requests->open[index];
    if (open->state == OPEN_FREE) return;
    fb_write_u64(w, open->asked.number);
    fb_write_u64(w, open->asked.principal);
    fb_write_u32(w, open->asked.verb);
    fb_write_u8(w, (uint8_t)open->state);
    fb_write_u64(w, open->user);
    fb_write_u64(w, open->credit);
    if (open->state == OPEN_HELD) {
        fb_write_u64(w, open->held_w);
        fb_write_u32(w, (uint32_t)open->held_status);
        fb_write_bytes(w, open->held, open->held_len);
    }
}

static const fb_digest_kind digest_kind = {"request", digest_count, digest_cell, digest_write};

static void touch(fb_node *node, uint32_t index)
{
    fb_digest_touch(node, FB_DIGEST_REQUEST, index);
}

void fb_requests_layout(fb_node *node, fb_arena *arena)
{
    uint32_t count = node->options.sizes.requests;
    uint32_t buckets = 16;
    while (buckets < 2 * count) buckets *= 2;
    struct fb_requests *requests = fb_arena_take(arena, 1, sizeof *requests);
    open_request *open = fb_arena_take(arena, count, sizeof *open);
    uint32_t *heads = fb_arena_take(arena, buckets, sizeof *heads);
    uint32_t *held = fb_arena_take(arena, count, sizeof *held);
    fb_digest_register(node, FB_DIGEST_REQUEST, &digest_kind);
    node->requests = requests;
    if (requests == NULL) return;
    requests->open = open;
    requests->count = count;
    requests->buckets = heads;
    requests->bucket_mask = buckets - 1;
    requests->held = held;
}

void fb_requests_reset(fb_node *node)
{
    struct fb_requests *requests = node->requests;
    requests->free = 0;
    requests->held_head = requests->held_count = 0;
    memset(requests->buckets, 0, (requests->bucket_mask + (size_t)1) * sizeof *requests->buckets);
    for (uint32_t i = requests->count; i-- > 0;) {
        open_request *open = &requests->open[i];
        if (open->state != OPEN_FREE) touch(node, i);
        open->state = OPEN_FREE;
        open->next = requests->free;
        requests->free = i + 1;
    }
}

void fb_verb_register(fb_node *node, fb_verb verb, fb_verb_handler handler)
{
    if (node->requests == NULL) return; /* measuring */
    FB_ASSERT((uint32_t)verb < FB_VERBS_MAX && node->requests->handlers[verb] == NULL);
    node->requests->handlers[verb] = handler;
}

static uint32_t *bucket_of(struct fb_requests *requests, uint64_t number)
{
    return &requests->buckets[fb_xxh64(&number, sizeof number, 0) & requests->bucket_mask];
}

static uint32_t find(struct fb_requests *requests, uint64_t number)
{
    uint32_t at = *bucket_of(requests, number);
    while (at != 0 && requests->open[at - 1].asked.number != number) {
        at = requests->open[at - 1].chain;
    }
    return at == 0 ? FB_NONE : at - 1;
}

static void release(fb_node *node, uint32_t index)
{
    struct fb_requests *requests = node->requests;
    open_request *open = &requests->open[index];
    uint32_t *at = bucket_of(requests, open->asked.number);
    while (*at != index + 1) at = &requests->open[*at - 1].chain;
    *at = open->chain;
    open->state = OPEN_FREE;
    open->next = requests->free;
    requests->free = index + 1;
    touch(node, index);
}

static void refuse(fb_node *node, uint64_t number, fb_status status)
{
    fb_count(node, FB_COUNTER_REQUESTS_REFUSED, 1);
    fb_effect_put(node, FB_FX_REPLY, number, (uint64_t)status, 0, (fb_span){NULL, 0});
}

fb_status fb_requests_take(fb_node *node, const fb_event *event)
{
    struct fb_requests *requests = node->requests;
    if (find(requests, event->a) != FB_NONE) return FB_ERR_EVENT_MALFORMED;
    if (node->phase != FB_PHASE_RUNNING) {
        refuse(node, event->a, FB_ERR_AGAIN);
        return FB_OK;
    }
    fb_verb_handler handler = event->b < FB_VERBS_MAX ? requests->handlers[event->b] : NULL;
    if (handler == NULL) {
        refuse(node, event->a, FB_ERR_UNSUPPORTED);
        return FB_OK;
    }
    if (requests->free == 0) {
        refuse(node, event->a, FB_ERR_BUSY);
        return FB_OK;
    }
    uint32_t index = requests->free - 1;
    open_request *open = &requests->open[index];
    requests->free = open->next;
    open->state = OPEN_WAITING;
    open->asked = (fb_request){event->a, event->c, (uint32_t)event->b, index};
    open->cancelled = NULL;
    open->user = 0;
    open->credit = 0;
    uint32_t *bucket = bucket_of(requests, event->a);
    open->chain = *bucket;
    *bucket = index + 1;
    touch(node, index);
    handler(node, open->asked, fb_span_of(event->bytes, event->len));
    return FB_OK;
}

fb_status fb_requests_cancel(fb_node *node, const fb_event *event)
{
    struct fb_requests *requests = node->requests;
    uint32_t index = find(requests, event->a);
    if (index == FB_NONE) return FB_OK; /* the reply crossed the cancellation */
    open_request *open = &requests->open[index];
    if (open->state == OPEN_HELD) {
        open->held_status = FB_ERR_CANCELLED; /* its place in the ring stays */
        touch(node, index);
        return FB_OK;
    }
    if (open->cancelled != NULL) open->cancelled(node, index, open->user);
    release(node, index);
    return FB_OK;
}

fb_status fb_requests_credit(fb_node *node, const fb_event *event)
{
    uint32_t index = find(node->requests, event->a);
    if (index == FB_NONE) return FB_OK;
    open_request *open = &node->requests->open[index];
    open->credit = fb_add_sat_u64(open->credit, event->b);
    touch(node, index);
    return FB_OK;
}

void fb_request_keep(fb_node *node, uint32_t index, fb_cancel_handler cancelled, uint64_t user)
{
    open_request *open = &node->requests->open[index];
    FB_ASSERT(open->state == OPEN_WAITING);
    open->cancelled = cancelled;
    open->user = user;
    touch(node, index);
}

void fb_reply(fb_node *node, uint32_t index, fb_status status, fb_span answer)
{
    open_request *open = &node->requests->open[index];
    FB_ASSERT(answer.len <= FB_REPLY_BYTES_MAX);
    if (open->state != OPEN_WAITING) return;
    fb_effect_put(node, FB_FX_REPLY, open->asked.number, (uint64_t)status, 0, answer);
    release(node, index);
}

void fb_reply_held(fb_node *node, uint32_t index, fb_status status, uint64_t w, fb_span answer)
{
    struct fb_requests *requests = node->requests;
    open_request *open = &requests->open[index];
    FB_ASSERT(answer.len <= FB_REPLY_HELD_BYTES);
    if (open->state != OPEN_WAITING) return;
    open->state = OPEN_HELD;
    open->held_w = w;
    open->held_status = status;
    open->held_len = (uint32_t)answer.len;
    if (answer.len != 0) memcpy(open->held, answer.p, answer.len);
    uint32_t at = (requests->held_head + requests->held_count) % requests->count;
    requests->held[at] = index;
    requests->held_count++;
    touch(node, index);
}

bool fb_reply_more(fb_node *node, uint32_t index, fb_span answer)
{
    open_request *open = &node->requests->open[index];
    FB_ASSERT(open->state == OPEN_WAITING);
    if (answer.len > open->credit || !fb_effect_fits(node, answer.len)) return false;
    open->credit -= answer.len;
    fb_effect_put(node, FB_FX_REPLY, open->asked.number, FB_OK, 1, answer);
    touch(node, index);
    return true;
}

fb_request fb_request_at(const fb_node *node, uint32_t index)
{
    const open_request *open = &node->requests->open[index];
    return open->state == OPEN_WAITING ? open->asked : (fb_request){0, 0, 0, index};
}

uint64_t fb_request_credit(const fb_node *node, uint32_t index)
{
    return node->requests->open[index].credit;
}

void fb_requests_flush(fb_node *node)
{
    struct fb_requests *requests = node->requests;
    while (requests->held_count > 0) {
        uint32_t index = requests->held[requests->held_head];
        open_request *open = &requests->open[index];
        if (open->held_w > fb_w_durable(node) + MUTANT(ANSWERED_ONE_SET_EARLY, 0u, 1u)) break;
        if (!fb_effect_fits(node, open->held_len)) {
            fb_starved(node);
            break;
        }
        if (open->held_status != MUTANT(NOT_FOUND_UNANSWERED, FB_ERR_CANCELLED, FB_ERR_NOT_FOUND)) {
            fb_effect_put(node, FB_FX_REPLY, open->asked.number, (uint64_t)open->held_status, 0,
                          fb_span_of(open->held, open->held_len));
        }
        requests->held_head = (requests->held_head + 1) % requests->count;
        requests->held_count--;
        release(node, index);
    }
}

size_t fb_requests_end_bytes(const fb_options *options)
{
    return (options->sizes.requests + (size_t)1) * sizeof(fb_effect);
}

void fb_requests_end(fb_node *node)
{
    struct fb_requests *requests = node->requests;
    for (uint32_t i = 0; i < requests->count; i++) {
        open_request *open = &requests->open[i];
        if (open->state == OPEN_FREE) continue;
        if (open->state == OPEN_HELD && open->held_status == FB_ERR_CANCELLED) continue;
        fb_effect_put(node, FB_FX_REPLY, open->asked.number, FB_ERR_AGAIN, 0, (fb_span){NULL, 0});
    }
}
