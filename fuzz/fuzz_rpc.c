/* SPDX-License-Identifier: Apache-2.0 */
/* The calls channel under a hostile peer: node 0 calls and serves node 1, whose frames are either
 * its own or the input's. Every call ends exactly once, tables are empty when the links are, and
 * the incremental digest is that of the state. */
#define STORE_MAX 16u
#define QUEUE_MAX 256u
#define ARENA_MAX (1u << 14)
#include "tests/unit/signal_fakes.h"

#include "protocol/rpc/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t begun, over, started, lasts, cancelled;
static uint32_t live[8];
static bool take_more;

static fb_status begin(fb_node *node, uint32_t call, uint32_t link, fb_span arguments, void *state)
{
    (void)node;
    (void)call;
    (void)link;
    if (arguments.len > 0 && arguments.p[0] == 'n') return FB_ERR_NOT_FOUND;
    begun++;
    *(uint64_t *)state = arguments.len > 1 ? arguments.p[1] % 8u : 2;
    return FB_OK;
}

static void more(fb_node *node, uint32_t call, void *state)
{
    uint64_t *left = state;
    if (*left == 0) {
        fb_call_finish(node, call, FB_OK);
        return;
    }
    static const uint8_t bytes[4096];
    uint64_t len = 1 + *left * 600;
    --*left;
    fb_call_answer(node, call, fb_span_of(bytes, len < 4000 ? len : 4000));
}

static void end(fb_node *node, uint32_t call, void *state)
{
    (void)node;
    (void)call;
    (void)state;
    over++;
}

static const fb_method_ops ops = {begin, more, end};

static bool piece(fb_node *node, uint32_t call, uint64_t user, fb_span bytes, bool last,
                  fb_status status)
{
    (void)node;
    (void)call;
    (void)bytes;
    (void)status;
    if (!last) return take_more;
    FB_ASSERT(live[user] != FB_NONE);
    live[user] = FB_NONE;
    lasts++;
    return true;
}

static void start(uint8_t choice, fb_span arguments)
{
    uint32_t slot = choice % 8;
    if (live[slot] != FB_NONE) {
        if ((choice & 64) != 0) {
            fb_call_resume(&fakes[0]->node, live[slot]);
            return;
        }
        fb_call_cancel(&fakes[0]->node, live[slot]);
        live[slot] = FB_NONE;
        cancelled++;
        return;
    }
    uint32_t call;
    uint64_t deadline = fakes[0]->node.mono_ns + (choice >> 3) * SECOND_NS;
    fb_method method = (choice & 128) != 0 ? (fb_method)(choice % 7) : FB_METHOD_FETCH;
    fb_status status =
        fb_call_start(&fakes[0]->node, 1, method, arguments, deadline, piece, slot, &call);
    if (status != FB_OK) return;
    live[slot] = call;
    started++;
}

static void move(uint8_t choice)
{
    for (uint32_t i = 0; i < 2; i++) {
        fakes[i]->out.used = 0;
        flush(i);
        fake_lose = fake_external && (choice >> i & 1) != 0;
        emit(i, 1 - i);
        fake_lose = false;
        /* What the peer's lies made impossible is refused at either end. */
        while (fakes[i]->queued[1 - i] > 0) {
            fake_frame frame = fakes[i]->queue[1 - i][0];
            (void)hand_over(i, 1 - i, frame.channel, fb_span_of(frame.bytes, frame.len));
            free(frame.bytes);
            fakes[i]->queued[1 - i]--;
            memmove(fakes[i]->queue[1 - i], fakes[i]->queue[1 - i] + 1,
                    fakes[i]->queued[1 - i] * sizeof frame);
        }
    }
}

static void run(fb_reader *r)
{
    while (fb_reader_left(r) >= 2) {
        uint8_t what = fb_read_u8(r);
        uint8_t choice = fb_read_u8(r);
        fakes[0]->out.used = fakes[1]->out.used = 0;
        switch (what % 6) {
        case 0:
            start(choice, fb_read_bytes(r, fb_reader_left(r) < 3 ? fb_reader_left(r) : 3));
            break;
        case 1: {
            size_t len = choice % 48;
            fb_span frame = fb_read_bytes(r, len < fb_reader_left(r) ? len : fb_reader_left(r));
            (void)hand_over(0, 1, FB_CHANNEL_CALLS, frame);
            break;
        }
        case 2:
        case 3:
            move(choice);
            break;
        case 4:
            advance_time(choice * (SECOND_NS / 5));
            break;
        case 5:
            take_more = (choice & 1) != 0;
            if ((choice & 0xf0) == 0xf0) {
                link_down(0, 1);
                link_up(0, 1);
            }
            break;
        }
    }
}

/* The nodes are made once; a run begins from a copy of their memory. */
static void begin_again(const fb_options *options)
{
    static uint8_t *kept[NODES], *layouts[NODES];
    if (kept[0] != NULL) {
        for (uint32_t i = 0; i < NODES; i++) {
            memcpy(fakes[i], kept[i], sizeof *fakes[i]);
            memcpy(fakes[i]->layout, layouts[i], fakes[i]->layout_bytes);
        }
        return;
    }
    fakes_new(options);
    for (uint32_t i = 0; i < NODES; i++) {
        if (i < 2) fb_method_register(&fakes[i]->node, FB_METHOD_FETCH, &ops);
        kept[i] = malloc(sizeof *fakes[i]);
        layouts[i] = malloc(fakes[i]->layout_bytes);
        FB_ASSERT(kept[i] != NULL && layouts[i] != NULL);
        memcpy(kept[i], fakes[i], sizeof *fakes[i]);
        memcpy(layouts[i], fakes[i]->layout, fakes[i]->layout_bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 512) return 0;
    fb_options options = fake_options();
    options.sizes.envelopes = NODES;
    options.sizes.seen_ids = 1;
    options.sizes.areas = 1;
    begin_again(&options);
    for (uint32_t i = 0; i < 8; i++) live[i] = FB_NONE;
    begun = over = started = lasts = cancelled = 0;
    take_more = true;
    fake_external = (data[0] & 1) != 0;
    link_up(0, 1);
    fb_reader r = fb_reader_of(fb_span_of(data + 1, size - 1));
    run(&r);
    check_digest(0);
    check_digest(1);
    link_down(0, 1);
    FB_ASSERT(started == lasts + cancelled);
    FB_ASSERT(begun == over);
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t c = 0; c < options.sizes.calls; c++) {
            FB_ASSERT(fakes[i]->node.rpc->call[c].role == FB_SIDE_FREE);
        }
        FB_ASSERT(fakes[i]->node.rpc->wanting == 0);
        check_digest(i);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        for (uint32_t j = 0; j < NODES; j++) {
            for (uint32_t k = 0; k < fakes[i]->queued[j]; k++) free(fakes[i]->queue[j][k].bytes);
        }
    }
    unused_fakes();
    return 0;
}
