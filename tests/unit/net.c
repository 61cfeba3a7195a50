/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/net.h"

#include <stdio.h>
#include <stdlib.h>

#include "io/keys/provider_sodium.h"
#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/store/readset.h"
#include "protocol/store/writeset.h"

#define NODES_MAX    8
#define REQUESTS_MAX 4096
#define CREDIT       (1u << 20)

typedef struct entry {
    uint8_t *key;
    size_t key_len;
    uint8_t *value;
    size_t value_len;
} entry;

typedef struct link {
    uint64_t number;
    uint32_t peer;
    uint64_t peer_link;
    bool open;
    bool external;
} link;

typedef struct queued {
    struct queued *next;
    uint32_t node;
    uint64_t life; /* of the node when it was queued; 0: any */
    fb_event event;
    uint8_t bytes[];
} queued;

typedef struct test_node {
    fb_node *node;
    fb_sodium *sodium;
    fb_key_handle identity;
    fb_b32 public_key;
    entry *entries;
    size_t entry_count, entry_cap;
    uint64_t applied_w;
    uint64_t incarnation;
    uint64_t life;
    bool paused, fail_next;
    fb_error last_end;
    uint32_t facts[256];
    link links[256];
    uint32_t link_count;
} test_node;

struct test_net {
    test_node nodes[NODES_MAX];
    uint32_t count;
    uint64_t mono_ns;
    uint64_t next_link, next_request;
    queued *head, **tail;
    uint64_t *arena;
    size_t arena_bytes;
    bool cut[NODES_MAX][NODES_MAX];
    test_reply *replies[REQUESTS_MAX];
};

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    void *p = calloc(1, bytes);
    return p;
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static void enqueue_life(test_net *net, uint32_t i, uint64_t life, fb_event event)
{
    queued *q = malloc(sizeof *q + event.len);
    FB_ASSERT(q != NULL);
    q->next = NULL;
    q->node = i;
    q->life = life;
    q->event = event;
    if (event.len != 0) memcpy(q->bytes, event.bytes, event.len);
    *net->tail = q;
    net->tail = &q->next;
}

static void enqueue(test_net *net, uint32_t i, fb_event event)
{
    enqueue_life(net, i, net->nodes[i].life, event);
}

/* The store: a sorted array. */
static size_t lower(const test_node *n, fb_span key)
{
    size_t low = 0, high = n->entry_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        fb_span k = {n->entries[middle].key, n->entries[middle].key_len};
        if (fb_span_compare(k, key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool holds(const test_node *n, size_t at, fb_span key)
{
    return at < n->entry_count &&
           fb_span_equal(fb_span_of(n->entries[at].key, n->entries[at].key_len), key);
}

static uint8_t *copy(fb_span s)
{
    uint8_t *p = malloc(s.len + 1);
    FB_ASSERT(p != NULL);
    if (s.len != 0) memcpy(p, s.p, s.len);
    return p;
}

static void store_put(test_node *n, fb_span key, fb_span value)
{
    size_t at = lower(n, key);
    if (holds(n, at, key)) {
        free(n->entries[at].value);
    } else {
        if (n->entry_count == n->entry_cap) {
            n->entry_cap = n->entry_cap * 2 + 64;
            n->entries = realloc(n->entries, n->entry_cap * sizeof *n->entries);
            FB_ASSERT(n->entries != NULL);
        }
        memmove(n->entries + at + 1, n->entries + at, (n->entry_count - at) * sizeof(entry));
        n->entry_count++;
        n->entries[at].key = copy(key);
        n->entries[at].key_len = key.len;
    }
    n->entries[at].value = copy(value);
    n->entries[at].value_len = value.len;
}

static void store_delete(test_node *n, fb_span key)
{
    size_t at = lower(n, key);
    if (!holds(n, at, key)) return;
    free(n->entries[at].key);
    free(n->entries[at].value);
    n->entry_count--;
    memmove(n->entries + at, n->entries + at + 1, (n->entry_count - at) * sizeof(entry));
}

static void write_stored(const test_node *n, size_t at, const fb_read_item *item, fb_writer *w)
{
    const entry *e = &n->entries[at];
    size_t shown = e->value_len < item->value_bytes ? e->value_len : item->value_bytes;
    fb_read_entry out = {{e->key, e->key_len}, (uint32_t)e->value_len, {e->value, shown}};
    fb_read_entry_write(w, &out);
}

static void answer_item(const test_node *n, const fb_read_item *item, fb_writer *w)
{
    if (item->kind == FB_READ_KEY) {
        size_t at = lower(n, item->low);
        fb_write_u8(w, 1);
        fb_write_u32(w, holds(n, at, item->low) ? 1 : 0);
        if (holds(n, at, item->low)) write_stored(n, at, item, w);
        return;
    }
    size_t from = lower(n, item->low);
    size_t to = item->high.len == 0 ? n->entry_count : lower(n, item->high);
    size_t head = w->at;
    fb_write_u8(w, 1);
    fb_write_u32(w, 0);
    size_t start = w->at;
    uint32_t count = 0;
    bool whole = true, descending = (item->flags & FB_READ_DESCENDING) != 0;
    for (size_t i = 0; i < to - from && from < to; i++) {
        if (count == item->items || (count > 0 && w->at - start >= item->bytes)) {
            whole = false;
            break;
        }
        write_stored(n, descending ? to - 1 - i : from + i, item, w);
        count++;
    }
    FB_ASSERT(!w->failed);
    w->p[head] = whole;
    fb_store_be(w->p + head + 1, count, 4);
}

static void do_read(test_net *net, uint32_t i, const fb_effect *fx)
{
    test_node *n = &net->nodes[i];
    static uint8_t bytes[1u << 22];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u64(&w, n->incarnation);
    fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(fx), fx->len));
    uint16_t count = fb_read_u16(&r);
    for (uint16_t k = 0; k < count; k++) {
        fb_read_item item = fb_read_item_next(&r);
        answer_item(n, &item, &w);
    }
    FB_ASSERT(fb_reader_done(&r) && !w.failed);
    enqueue(net, i,
            (fb_event){.kind = FB_EV_READ_DONE,
                       .len = (uint32_t)w.at,
                       .a = fx->a,
                       .b = n->applied_w,
                       .bytes = bytes});
}

static void do_write(test_net *net, uint32_t i, const fb_effect *fx)
{
    test_node *n = &net->nodes[i];
    bool fail = n->fail_next;
    n->fail_next = false;
    if (!fail) {
        fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(fx), fx->len));
        while (fb_reader_left(&r) > 0) {
            fb_write_entry e = fb_write_entry_next(&r);
            FB_ASSERT(!r.failed);
            if (e.kind == FB_WRITE_PUT) {
                store_put(n, e.key, e.value);
            } else {
                store_delete(n, e.key);
            }
        }
        FB_ASSERT(fx->b == n->applied_w + 1);
        n->applied_w = fx->b;
    }
    enqueue(net, i,
            (fb_event){.kind = FB_EV_WRITE_DONE,
                       .a = fx->a,
                       .b = fx->b,
                       .c = fail ? FB_ERR_STORE_FAILED : FB_OK});
}

static link *link_of(test_node *n, uint64_t number)
{
    for (uint32_t i = 0; i < n->link_count; i++) {
        if (n->links[i].number == number && n->links[i].open) return &n->links[i];
    }
    return NULL;
}

static uint64_t add_link(test_net *net, uint32_t i, uint32_t peer, bool external)
{
    test_node *n = &net->nodes[i];
    uint32_t at = 0;
    while (at < n->link_count && n->links[at].open) at++;
    FB_ASSERT(at < 256);
    if (at == n->link_count) n->link_count++;
    n->links[at] = (link){++net->next_link, peer, 0, true, external};
    return net->next_link;
}

static void pair(test_net *net, uint32_t i, uint64_t a, uint32_t j, uint64_t b)
{
    link_of(&net->nodes[i], a)->peer_link = b;
    link_of(&net->nodes[j], b)->peer_link = a;
}

static void grant(test_net *net, uint32_t i, uint64_t number, uint64_t bytes)
{
    enqueue(net, i, (fb_event){.kind = FB_EV_LINK_WRITABLE, .a = number, .b = bytes});
}

static void end_link(test_net *net, uint32_t i, link *l, fb_error why, bool tell_self)
{
    uint32_t j = l->peer;
    uint64_t number = l->number, peer_number = l->peer_link;
    l->open = false;
    if (tell_self) enqueue(net, i, (fb_event){.kind = FB_EV_LINK_CLOSED, .a = number, .b = why});
    link *other = link_of(&net->nodes[j], peer_number);
    if (other == NULL) return;
    other->open = false;
    enqueue(net, j, (fb_event){.kind = FB_EV_LINK_CLOSED, .a = peer_number, .b = FB_OK});
}

static void do_dial(test_net *net, uint32_t i, const fb_effect *fx)
{
    char text[64] = {0};
    unsigned j = NODES_MAX;
    if (fx->len < sizeof text) memcpy(text, fb_effect_bytes(fx), fx->len);
    if (sscanf(text, "test:%u", &j) != 1 || j >= net->count || net->cut[i][j]) {
        enqueue(net, i, (fb_event){.kind = FB_EV_DIAL_RESULT, .a = fx->a, .c = FB_ERR_UNREACHABLE});
        return;
    }
    uint64_t a = add_link(net, i, j, false);
    uint64_t b = add_link(net, j, i, false);
    pair(net, i, a, j, b);
    const char *from = test_net_address(i);
    enqueue(net, j,
            (fb_event){.kind = FB_EV_LINK_OPENED,
                       .len = (uint32_t)strlen(from),
                       .a = b,
                       .bytes = (const uint8_t *)from});
    enqueue(net, i, (fb_event){.kind = FB_EV_DIAL_RESULT, .a = fx->a, .b = a});
    grant(net, i, a, CREDIT);
    grant(net, j, b, CREDIT);
}

static void do_send(test_net *net, uint32_t i, const fb_effect *fx)
{
    link *l = link_of(&net->nodes[i], fx->a);
    if (l == NULL) return;
    fb_event_kind kind = fx->kind == FB_FX_FRAME ? FB_EV_CARRIER_FRAME : FB_EV_LINK_BYTES;
    enqueue(
        net, l->peer,
        (fb_event){.kind = kind, .len = fx->len, .a = l->peer_link, .bytes = fb_effect_bytes(fx)});
    grant(net, i, fx->a, fx->len);
}

static void do_reply(test_net *net, const fb_effect *fx)
{
    test_reply *reply = net->replies[fx->a % REQUESTS_MAX];
    FB_ASSERT(reply != NULL && !reply->done);
    reply->status = (fb_status)fx->b;
    if (fx->c != 0) {
        reply->pieces++;
        FB_ASSERT(reply->len + fx->len <= sizeof reply->bytes);
        memcpy(reply->bytes + reply->len, fb_effect_bytes(fx), fx->len);
        reply->len += fx->len;
        return;
    }
    reply->done = true;
    if (reply->pieces == 0) {
        memcpy(reply->bytes, fb_effect_bytes(fx), fx->len);
        reply->len = fx->len;
    }
}

static void start(test_net *net, uint32_t i)
{
    test_node *n = &net->nodes[i];
    n->life++;
    n->applied_w = 0;
    n->incarnation = 1000 * (i + UINT64_C(1)) + n->life;
    for (uint32_t k = 0; k < n->link_count; k++) {
        if (n->links[k].open) end_link(net, i, &n->links[k], FB_OK, false);
    }
    enqueue(net, i, (fb_event){.kind = FB_EV_START, .a = n->incarnation, .b = i, .c = 7});
}

static void carry_out(test_net *net, uint32_t i, const fb_effects *out)
{
    for (const fb_effect *fx = fb_effects_next(out, NULL); fx != NULL;
         fx = fb_effects_next(out, fx)) {
        switch (fx->kind) {
        case FB_FX_DIAL:
            do_dial(net, i, fx);
            break;
        case FB_FX_SEND:
        case FB_FX_FRAME:
            do_send(net, i, fx);
            break;
        case FB_FX_CLOSE: {
            link *l = link_of(&net->nodes[i], fx->a);
            if (l != NULL) end_link(net, i, l, FB_OK, true);
            break;
        }
        case FB_FX_READ:
            do_read(net, i, fx);
            break;
        case FB_FX_WRITE:
            do_write(net, i, fx);
            break;
        case FB_FX_REPLY:
            do_reply(net, fx);
            break;
        case FB_FX_NEED_START:
            net->nodes[i].last_end = (fb_error)fx->b;
            if (fx->b != FB_ERR_VERSION_NEWER) start(net, i);
            break;
        case FB_FX_OBSERVE:
            net->nodes[i].facts[fx->a & 255]++;
            break;
        default:
            break;
        }
    }
}

fb_status test_net_event(test_net *net, uint32_t i, fb_event event)
{
    event.mono_ns = net->mono_ns;
    event.wall_us = INT64_C(1718000000000000) + (int64_t)(net->mono_ns / 1000);
    fb_effects out = {.memory = (uint8_t *)net->arena, .capacity = net->arena_bytes};
    fb_status status = fb_node_step(net->nodes[i].node, &event, &out);
    if (status != FB_OK) return status;
    if (event.kind == FB_EV_LINK_BYTES && out.consumed < event.len &&
        link_of(&net->nodes[i], event.a) != NULL) {
        event.bytes += out.consumed;
        event.len -= (uint32_t)out.consumed;
        enqueue(net, i, event);
    }
    carry_out(net, i, &out);
    return FB_OK;
}

static bool is_store_event(uint32_t kind)
{
    return kind == FB_EV_READ_DONE || kind == FB_EV_WRITE_DONE;
}

static bool deliver_one(test_net *net)
{
    for (queued **at = &net->head; *at != NULL; at = &(*at)->next) {
        queued *q = *at;
        test_node *n = &net->nodes[q->node];
        if (n->paused && is_store_event(q->event.kind) && q->life == n->life) continue;
        *at = q->next;
        if (net->tail == &q->next) net->tail = at;
        if (q->life == n->life) {
            q->event.bytes = q->bytes;
            fb_status status = test_net_event(net, q->node, q->event);
            if (status != FB_OK) {
                fprintf(stderr, "event %u: %s\n", q->event.kind, fb_error_name(status));
            }
            FB_ASSERT(status == FB_OK);
        }
        free(q);
        return true;
    }
    return false;
}

void test_net_settle(test_net *net)
{
    for (uint32_t guard = 0; guard < 1000000; guard++) {
        if (deliver_one(net)) continue;
        bool ticked = false;
        for (uint32_t i = 0; i < net->count; i++) {
            if (fb_node_deadline(net->nodes[i].node) > net->mono_ns) continue;
            FB_ASSERT(test_net_event(net, i, (fb_event){.kind = FB_EV_TICK}) == FB_OK);
            ticked = true;
        }
        if (!ticked) return;
    }
    FB_ASSERT(!"the net never settles");
}

void test_net_run(test_net *net, uint64_t ns)
{
    uint64_t end = net->mono_ns + ns;
    test_net_settle(net);
    for (;;) {
        uint64_t next = FB_NEVER;
        for (uint32_t i = 0; i < net->count; i++) {
            next = fb_min_u64(next, fb_node_deadline(net->nodes[i].node));
        }
        if (next > end) break;
        net->mono_ns = next;
        test_net_settle(net);
    }
    net->mono_ns = end;
    test_net_settle(net);
}

test_net *test_net_new(uint32_t count, void (*tweak)(fb_options *options))
{
    FB_ASSERT(count <= NODES_MAX);
    test_net *net = calloc(1, sizeof *net);
    FB_ASSERT(net != NULL);
    net->count = count;
    net->tail = &net->head;
    net->mono_ns = 1;
    for (uint32_t i = 0; i < count; i++) {
        test_node *n = &net->nodes[i];
        fb_options options = fb_options_small();
        FB_ASSERT(fb_sodium_create(256, &n->sodium) == FB_OK);
        fb_b32 seed;
        memset(seed.b, (int)(0x0a + i), sizeof seed.b);
        FB_ASSERT(fb_sodium_add_signing(n->sodium, &seed, &options.identity_key) == FB_OK);
        memset(seed.b, (int)(0x4a + i), sizeof seed.b);
        FB_ASSERT(fb_sodium_add_dh(n->sodium, &seed, &options.link_key) == FB_OK);
        options.allocator = (fb_allocator){NULL, allocate, release};
        options.provider = fb_sodium_provider(n->sodium);
        options.observe = true;
        options.timing.report_ns = UINT64_C(1000000) * 1000000000; /* few tests are about reports */
        n->identity = options.identity_key;
        FB_ASSERT(options.provider->public_key(options.provider->user, n->identity,
                                               &n->public_key) == FB_OK);
        if (tweak != NULL) tweak(&options);
        size_t bytes = fb_effects_bytes_min(&options);
        if (bytes > net->arena_bytes) {
            free(net->arena);
            net->arena = malloc((bytes + 7) & ~(size_t)7);
            net->arena_bytes = bytes;
        }
        FB_ASSERT(net->arena != NULL);
        FB_ASSERT(fb_node_create(&options, &n->node) == FB_OK);
        start(net, i);
    }
    test_net_settle(net);
    return net;
}

void test_net_free(test_net *net)
{
    for (queued *q = net->head; q != NULL;) {
        queued *next = q->next;
        free(q);
        q = next;
    }
    for (uint32_t i = 0; i < net->count; i++) {
        test_node *n = &net->nodes[i];
        fb_node_destroy(n->node);
        fb_sodium_destroy(n->sodium);
        for (size_t k = 0; k < n->entry_count; k++) {
            free(n->entries[k].key);
            free(n->entries[k].value);
        }
        free(n->entries);
    }
    for (uint32_t i = 0; i < REQUESTS_MAX; i++) free(net->replies[i]);
    free(net->arena);
    free(net);
}

fb_node *test_net_node(test_net *net, uint32_t i)
{
    return net->nodes[i].node;
}

void test_net_pause_store(test_net *net, uint32_t i, bool paused)
{
    net->nodes[i].paused = paused;
}

void test_net_fail_write(test_net *net, uint32_t i)
{
    net->nodes[i].fail_next = true;
}

void test_net_restart(test_net *net, uint32_t i)
{
    start(net, i);
    test_net_settle(net);
}

const char *test_net_address(uint32_t i)
{
    static const char *const names[NODES_MAX] = {"test:0", "test:1", "test:2", "test:3",
                                                 "test:4", "test:5", "test:6", "test:7"};
    return names[i];
}

static void open_carrier(test_net *net, uint32_t i, uint64_t number, uint32_t peer, fb_id space)
{
    uint8_t bytes[48];
    memcpy(bytes, space.b, 16);
    memcpy(bytes + 16, net->nodes[peer].public_key.b, 32);
    enqueue(
        net, i,
        (fb_event){.kind = FB_EV_CARRIER_OPENED, .len = sizeof bytes, .a = number, .bytes = bytes});
    grant(net, i, number, CREDIT);
}

void test_net_carrier(test_net *net, uint32_t i, uint32_t j, fb_id space)
{
    uint64_t a = add_link(net, i, j, true);
    uint64_t b = add_link(net, j, i, true);
    pair(net, i, a, j, b);
    open_carrier(net, i, a, j, space);
    open_carrier(net, j, b, i, space);
    test_net_settle(net);
}

void test_net_cut(test_net *net, uint32_t i, uint32_t j, bool cut)
{
    net->cut[i][j] = net->cut[j][i] = cut;
    test_node *n = &net->nodes[i];
    for (uint32_t k = 0; cut && k < n->link_count; k++) {
        link *l = &n->links[k];
        if (l->open && l->peer == j) end_link(net, i, l, FB_ERR_LINK_CLOSED, true);
    }
    test_net_settle(net);
}

uint64_t test_net_ask(test_net *net, uint32_t i, fb_verb verb, uint64_t principal,
                      fb_span arguments)
{
    uint64_t number = ++net->next_request;
    test_reply **reply = &net->replies[number % REQUESTS_MAX];
    free(*reply);
    *reply = calloc(1, sizeof **reply);
    FB_ASSERT(*reply != NULL);
    enqueue(net, i,
            (fb_event){.kind = FB_EV_REQUEST,
                       .len = (uint32_t)arguments.len,
                       .a = number,
                       .b = verb,
                       .c = principal,
                       .bytes = arguments.p});
    test_net_settle(net);
    return number;
}

const test_reply *test_net_reply(test_net *net, uint64_t request)
{
    return net->replies[request % REQUESTS_MAX];
}

void test_net_credit(test_net *net, uint32_t i, uint64_t request, uint64_t bytes)
{
    enqueue(net, i, (fb_event){.kind = FB_EV_REQUEST_CREDIT, .a = request, .b = bytes});
    test_net_settle(net);
}

void test_net_cancel(test_net *net, uint32_t i, uint64_t request)
{
    enqueue(net, i, (fb_event){.kind = FB_EV_REQUEST_CANCEL, .a = request});
    test_net_settle(net);
}

uint32_t test_net_facts(test_net *net, uint32_t i, fb_fact fact)
{
    return net->nodes[i].facts[fact & 255];
}

void test_net_clear_facts(test_net *net)
{
    for (uint32_t i = 0; i < net->count; i++) {
        memset(net->nodes[i].facts, 0, sizeof net->nodes[i].facts);
    }
}

bool test_net_stored(test_net *net, uint32_t i, size_t at, fb_span *key, fb_span *value)
{
    const test_node *n = &net->nodes[i];
    if (at >= n->entry_count) return false;
    *key = fb_span_of(n->entries[at].key, n->entries[at].key_len);
    *value = fb_span_of(n->entries[at].value, n->entries[at].value_len);
    return true;
}

void test_net_store_put(test_net *net, uint32_t i, fb_span key, fb_span value)
{
    store_put(&net->nodes[i], key, value);
}

void test_net_store_delete(test_net *net, uint32_t i, fb_span key)
{
    store_delete(&net->nodes[i], key);
}

fb_error test_net_last_end(test_net *net, uint32_t i)
{
    return net->nodes[i].last_end;
}
