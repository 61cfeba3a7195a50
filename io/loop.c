/* SPDX-License-Identifier: Apache-2.0 */
#include "io/loop.h"

#include <stdio.h>
#include <stdlib.h>

#include "io/clock.h"
#include "io/entropy.h"
#include "io/request_table.h"
#include "protocol/base/assert.h"
#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"

#define NEARS_A_TURN 32u

/* What came up during a step, to be done after its effects. */
typedef struct deferred {
    struct deferred *next;
    bool resume; /* of link event.a; else the event is fed */
    fb_event event;
    uint8_t bytes[];
} deferred;

/* A dial's address, for the operator's eyes. */
typedef struct dialling {
    struct dialling *next;
    uint64_t dial;
    size_t len;
    char address[FB_ADDRESS_BYTES_MAX];
} dialling;

struct fb_loop {
    fb_loop_options options;
    uv_loop_t *uv;
    fb_node *node;
    fb_lmdb *store;
    fb_carrier *carrier;
    fb_effects effects;

    bool stepping; /* within fb_node_step or its effects */
    bool draining; /* within later_run */
    deferred *later, **later_end;
    uint32_t nears; /* reads answered at once since the outermost later_run began */

    bool started; /* between START and NEED_START */
    bool running; /* ... and loaded */
    bool running_told;
    bool read_only; /* since a write failed none has succeeded */
    bool read_only_told;
    uint64_t incarnation; /* of the last START */
    uint64_t beginning;   /* fb_lmdb_begin was called with it; 0: not under way */
    uint64_t starts;
    uint64_t restart_ms; /* next pause */
    fb_error last_end;
    bool unrecorded_told;
    uint64_t full_since_ns; /* the recording's file has its size; 0: it has not */
    bool instance_used;     /* by an incarnation: a recording's next file needs another one */
    uint64_t deadline_ns;   /* the timer is set for it */

    fb_request_table requests;
    dialling *dials;
    bool scrubbing; /* a part of the store is being looked at */
    fb_loop_scrubbed scrubbed;
    void *scrub_user; /* NULL: gone */

    fb_outer_import import;
    uv_timer_t deadline;
    uv_timer_t restart; /* pause before a START; when stopping, the drain's bound */
    uv_async_t wake;    /* completions of the store */
    uv_idle_t soon;     /* something is to be done later: cheaper than waking oneself */
    uint32_t handles;
    bool stopping;
    bool closing; /* the drain is over */
    void (*stopped)(void *user);
    void *stopped_user;
};

static void loop_feed(fb_loop *loop, const fb_event *event);
static size_t loop_step(fb_loop *loop, fb_event event);
static void loop_drained(fb_loop *loop);

static void tell(fb_loop *loop, fb_loop_event event, const char *detail, size_t len)
{
    event.detail = detail;
    event.detail_len = len;
    loop->options.happened(loop->options.user, &event);
}

/* Requests. */

static bool verb_writes(fb_verb verb)
{
    switch (verb) {
    case FB_VERB_STATUS:
    case FB_VERB_SPACE_LIST:
    case FB_VERB_SPACE_MEMBERS:
    case FB_VERB_SPACE_REPORTED:
    case FB_VERB_APP_AUTHENTICATE:
    case FB_VERB_PEER_LIST:
    case FB_VERB_PEER_MESSAGES:
    case FB_VERB_RECORD_GET:
    case FB_VERB_RECORD_LIST:
    case FB_VERB_RECORD_WATCH:
    case FB_VERB_AREAS:
    case FB_VERB_PUBLISH:
        return false;
    default:
        return true;
    }
}

const char *fb_loop_refusal(const fb_loop *loop, fb_verb verb)
{
    if (loop->stopping) return "the node stops";
    if (!loop->started) return "the node is starting";
    /* A caller whose write waits for the disk would wait for as long as that takes. */
    if (loop->read_only && verb_writes(verb)) {
        return "the store takes no writes; the log and /v1/doctor say why, reads go on";
    }
    if (verb_writes(verb)) {
        fb_lmdb_stats stats;
        fb_lmdb_stats_get(loop->store, &stats);
        const fb_worker_stats *documents = &stats.documents;
        if (documents->locked) return "another process of this node has the document store";
        if (stats.has_documents && documents->why[0] != 0 && documents->waiting > 0) {
            return "the document store cannot be reached; status says why";
        }
    }
    return NULL;
}

uint64_t fb_loop_request(fb_loop *loop, fb_verb verb, uint64_t principal, fb_span arguments,
                         fb_loop_reply reply, void *user)
{
    if (fb_loop_refusal(loop, verb) != NULL) return 0;
    bool waits_long = verb == FB_VERB_RECORD_WATCH || verb == FB_VERB_SPACE_JOIN;
    uint64_t number = fb_request_table_add(&loop->requests, reply, user, waits_long);
    if (number != 0) {
        loop_feed(loop, &(fb_event){.kind = FB_EV_REQUEST,
                                    .len = (uint32_t)arguments.len,
                                    .a = number,
                                    .b = (uint64_t)verb,
                                    .c = principal,
                                    .bytes = arguments.p});
    }
    return number;
}

void fb_loop_cancel(fb_loop *loop, uint64_t number)
{
    if (!fb_request_table_remove(&loop->requests, number)) return;
    loop_feed(loop, &(fb_event){.kind = FB_EV_REQUEST_CANCEL, .a = number});
    loop_drained(loop);
}

void fb_loop_credit(fb_loop *loop, uint64_t number, uint64_t bytes)
{
    if (!fb_request_table_has(&loop->requests, number)) return;
    loop_feed(loop, &(fb_event){.kind = FB_EV_REQUEST_CREDIT, .a = number, .b = bytes});
}

bool fb_loop_scrub(fb_loop *loop, fb_span after, fb_loop_scrubbed scrubbed, void *user)
{
    if (loop->scrubbing || loop->stopping || loop->store == NULL) return false;
    loop->scrubbing = true;
    loop->scrubbed = scrubbed;
    loop->scrub_user = user;
    fb_lmdb_scrub(loop->store, 0, after);
    return true;
}

void fb_loop_scrub_cancel(fb_loop *loop, const void *user)
{
    if (loop->scrub_user == user) loop->scrub_user = NULL;
}

static void scrub_answer(fb_loop *loop, fb_error error, uint64_t entries, uint64_t damaged,
                         fb_span last)
{
    void *user = loop->scrub_user;
    loop->scrubbing = false;
    loop->scrub_user = NULL;
    if (user != NULL) loop->scrubbed(user, error, entries, damaged, last);
}

/* Incarnations. */

static void incarnation_begin(fb_loop *loop)
{
    if (loop->stopping) return;
    do {
        loop->beginning = fb_entropy_u64();
    } while (loop->beginning == 0);
    fb_lmdb_begin(loop->store, loop->beginning);
}

static void restart_due(uv_timer_t *timer)
{
    incarnation_begin(timer->data);
}

/* The store that fails at once again is not asked again at once. */
static void incarnation_later(fb_loop *loop)
{
    if (loop->stopping) return;
    uv_timer_start(&loop->restart, restart_due, loop->restart_ms, 0);
    loop->restart_ms *= 2;
    if (loop->restart_ms > FB_LOOP_RESTART_MAX_MS) loop->restart_ms = FB_LOOP_RESTART_MAX_MS;
}

/* The node, new and empty; the recording's next file begins with it. */
static fb_status instance_make(fb_loop *loop)
{
    fb_options node = loop->options.node;
    if (loop->options.recorder != NULL) {
        fb_recorder_instance(loop->options.recorder, &node, loop->options.store.owner,
                             loop->effects.capacity);
    }
    loop->instance_used = false;
    loop->full_since_ns = 0;
    return fb_node_create(&node, &loop->node);
}

static void instance_renew(fb_loop *loop)
{
    fb_node_destroy(loop->node);
    loop->node = NULL;
    fb_status status = instance_make(loop);
    /* Its memory was there a moment ago, and its options were right. */
    FB_ASSERT(status == FB_OK);
}

static void incarnation_start(fb_loop *loop)
{
    if (loop->full_since_ns != 0 && loop->instance_used) instance_renew(loop);
    loop->instance_used = true;
    /* The core has answered whatever was open when its last incarnation ended; should it owe one,
     * the caller gets it here rather than never. */
    fb_request_table_end(&loop->requests, FB_ERR_AGAIN);
    loop->incarnation = loop->beginning;
    loop->beginning = 0;
    loop->started = true;
    loop->starts++;
    fb_event start = {.kind = FB_EV_START, .a = loop->incarnation};
    start.b = fb_entropy_u64();
    start.c = fb_entropy_u64();
    /* Before the step: the store may be read within it, and then it runs already. */
    tell(loop, (fb_loop_event){.what = FB_LOOP_STARTED, .incarnation = loop->incarnation}, "", 0);
    loop_step(loop, start);
    /* What peers send has to be written, and a read of it would wait for that. Within the step it
     * may also have ended. */
    if (loop->started && !loop->stopping && !loop->read_only) {
        fb_carrier_hold(loop->carrier, false);
    }
}

static void incarnation_ended(fb_loop *loop, fb_error why)
{
    loop->started = false;
    loop->running = loop->running_told = false;
    loop->last_end = why;
    fb_carrier_hold(loop->carrier, true);
    fb_carrier_drop_links(loop->carrier);
    const char *text = fb_error_text(why);
    tell(loop,
         (fb_loop_event){.what = FB_LOOP_ENDED, .error = why, .incarnation = loop->incarnation},
         text, strlen(text));
    /* What another program wrote stays so, however often it is read. */
    if (why == FB_ERR_VERSION_NEWER || why == FB_ERR_VERSION_OLDER) {
        tell(loop, (fb_loop_event){.what = FB_LOOP_FATAL, .error = why}, text, strlen(text));
    } else {
        incarnation_later(loop);
    }
}

/* A file of a recording has to begin with a fresh instance, so that it can be replayed alone. That
 * costs an incarnation: it waits for a moment when nobody waits for an answer. */
static void renew_when_full(fb_loop *loop)
{
    if (loop->options.recorder == NULL || !loop->running || loop->stopping) return;
    if (!fb_recorder_is_full(loop->options.recorder)) return;
    uint64_t now = fb_clock_mono_ns();
    if (loop->full_since_ns == 0) loop->full_since_ns = now;
    if (fb_request_table_pending(&loop->requests) &&
        now - loop->full_since_ns < FB_LOOP_RENEW_MS * UINT64_C(1000000)) {
        return;
    }
    loop->started = false;
    loop->running = loop->running_told = false;
    fb_carrier_hold(loop->carrier, true);
    fb_carrier_drop_links(loop->carrier);
    tell(loop, (fb_loop_event){.what = FB_LOOP_RENEWED, .incarnation = loop->incarnation}, "", 0);
    incarnation_begin(loop);
}

static void recorder_told(fb_loop *loop)
{
    fb_recorder_stats stats;
    fb_recorder_stats_get(loop->options.recorder, &stats);
    if (stats.failed[0] == 0 || loop->unrecorded_told) return;
    loop->unrecorded_told = true;
    tell(loop, (fb_loop_event){.what = FB_LOOP_UNRECORDED}, stats.failed, strlen(stats.failed));
}

/* Effects. */

static void effect_dial(fb_loop *loop, uint64_t dial, fb_span address)
{
    if (loop->read_only) {
        loop_feed(loop, &(fb_event){.kind = FB_EV_DIAL_RESULT, .a = dial, .c = FB_ERR_BUSY});
        return;
    }
    dialling *d = calloc(1, sizeof *d);
    if (d != NULL) {
        d->dial = dial;
        d->len = address.len < sizeof d->address ? address.len : sizeof d->address;
        memcpy(d->address, address.p, d->len);
        d->next = loop->dials;
        loop->dials = d;
    }
    fb_carrier_dial(loop->carrier, dial, address);
}

static void effect_read(fb_loop *loop, uint64_t operation, fb_span read_set)
{
    fb_lmdb_near near;
    /* An answer at once is worked off in the same turn and may lead to the next read: who goes
     * through very much comes back to the loop in between. */
    if (loop->nears == NEARS_A_TURN ||
        !fb_lmdb_read_near(loop->store, loop->incarnation, read_set, &near)) {
        fb_lmdb_read(loop->store, operation, read_set);
        return;
    }
    loop->nears++;
    loop_feed(loop, &(fb_event){.kind = FB_EV_READ_DONE,
                                .len = (uint32_t)near.bytes.len,
                                .a = operation,
                                .b = near.w,
                                .bytes = near.bytes.p});
}

static void effect_resume(fb_loop *loop, uint64_t link)
{
    deferred *d = calloc(1, sizeof *d);
    FB_ASSERT(d != NULL);
    d->resume = true;
    d->event.a = link;
    *loop->later_end = d;
    loop->later_end = &d->next;
}

static void effect_carry_out(fb_loop *loop, const fb_effect *effect)
{
    fb_span bytes = fb_span_of(fb_effect_bytes(effect), effect->len);
    switch ((fb_effect_kind)effect->kind) {
    case FB_FX_DIAL:
        effect_dial(loop, effect->a, bytes);
        break;
    case FB_FX_SEND:
        fb_carrier_send(loop->carrier, effect->a, bytes);
        break;
    case FB_FX_CLOSE:
        fb_carrier_close(loop->carrier, effect->a);
        break;
    case FB_FX_RESUME:
        effect_resume(loop, effect->a);
        break;
    case FB_FX_READ:
        effect_read(loop, effect->a, bytes);
        break;
    case FB_FX_WRITE:
        fb_lmdb_write(loop->store, effect->a, effect->b, bytes);
        break;
    case FB_FX_REPLY:
        fb_request_table_reply(&loop->requests, effect->a, (fb_error)effect->b, effect->c == 1,
                               bytes);
        break;
    case FB_FX_NEED_START:
        incarnation_ended(loop, (fb_error)effect->b);
        break;
    case FB_FX_LOG:
        tell(loop, (fb_loop_event){.what = FB_LOOP_LOG, .level = (fb_log_level)effect->a},
             (const char *)bytes.p, bytes.len);
        break;
    case FB_FX_OBSERVE:
        break;
    case FB_FX_FRAME: /* this driver opens no external carrier, so no link of one exists */
        FB_ASSERT(effect->kind != FB_FX_FRAME);
        break;
    }
}

/* Steps. */

static void deadline_due(uv_timer_t *timer);

static void deadline_set(fb_loop *loop)
{
    uint64_t deadline = loop->started && !loop->closing ? fb_node_deadline(loop->node) : FB_NEVER;
    if (deadline == loop->deadline_ns && uv_is_active((uv_handle_t *)&loop->deadline)) return;
    loop->deadline_ns = deadline;
    if (deadline == FB_NEVER) {
        uv_timer_stop(&loop->deadline);
        return;
    }
    uint64_t now = fb_clock_mono_ns();
    /* Rounded up, so that one wake-up is enough. */
    uint64_t ms = deadline > now ? (deadline - now + 999999) / 1000000 : 0;
    uv_update_time(loop->uv);
    uv_timer_start(&loop->deadline, deadline_due, ms, 0);
}

/* Who is told that the node runs may write, or was told that the disk takes nothing: after a write
 * that failed, only the next one shows which of them it is. */
static void running_tell(fb_loop *loop)
{
    if (!loop->running || loop->running_told || (loop->read_only && !loop->read_only_told)) return;
    loop->running_told = true;
    tell(loop, (fb_loop_event){.what = FB_LOOP_RUNNING, .incarnation = loop->incarnation}, "", 0);
}

/* One step and its effects; returns how many of the event's bytes were taken. */
static size_t step_one(fb_loop *loop, fb_event event)
{
    if (!loop->started) {
        /* Until START nothing else is looked at; whoever asks is told to try again. */
        if (event.kind == FB_EV_REQUEST) {
            fb_request_table_reply(&loop->requests, event.a, FB_ERR_AGAIN, false,
                                   (fb_span){NULL, 0});
        }
        return event.len;
    }
    FB_ASSERT(!loop->stepping);
    loop->stepping = true;
    event.mono_ns = fb_clock_mono_ns();
    event.wall_us = fb_clock_wall_us();
    fb_recorder *recorder = loop->options.recorder;
    if (recorder != NULL) fb_recorder_event(recorder, &event);
    fb_status status = fb_node_step(loop->node, &event, &loop->effects);
    if (recorder != NULL) {
        fb_recorder_step(recorder, status, &loop->effects, fb_node_digest(loop->node));
        recorder_told(loop);
    }
    if (status != FB_OK) {
        fprintf(stderr, "event %u: %s\n", event.kind, fb_error_text(status));
        FB_ASSERT(status == FB_OK);
    }
    size_t taken = event.kind == FB_EV_LINK_BYTES ? loop->effects.consumed : event.len;
    const fb_effect *effect = NULL;
    while ((effect = fb_effects_next(&loop->effects, effect)) != NULL) {
        effect_carry_out(loop, effect);
    }
    loop->stepping = false;
    if (loop->started && !loop->running && fb_node_is_running(loop->node)) {
        loop->running = true;
        if (recorder != NULL) fb_recorder_loaded(recorder);
    }
    running_tell(loop);
    return taken;
}

/* What came up meanwhile, in order. Only the outermost call works the list off. */
static void later_run(fb_loop *loop)
{
    if (loop->draining) return;
    loop->draining = true;
    while (loop->later != NULL) {
        deferred *d = loop->later;
        loop->later = d->next;
        if (loop->later == NULL) loop->later_end = &loop->later;
        if (d->resume) {
            fb_carrier_resume(loop->carrier, d->event.a);
        } else {
            step_one(loop, d->event);
        }
        free(d);
    }
    loop->draining = false;
    loop->nears = 0;
    renew_when_full(loop);
    deadline_set(loop);
    loop_drained(loop);
}

static size_t loop_step(fb_loop *loop, fb_event event)
{
    size_t taken = step_one(loop, event);
    later_run(loop);
    return taken;
}

static void soon_due(uv_idle_t *idle)
{
    uv_idle_stop(idle);
    later_run(idle->data);
}

/* For events that may come from within a step: they wait for their turn. */
static void loop_feed(fb_loop *loop, const fb_event *event)
{
    deferred *d = calloc(1, sizeof *d + event->len);
    FB_ASSERT(d != NULL);
    d->event = *event;
    d->event.bytes = d->bytes;
    if (event->len != 0) memcpy(d->bytes, event->bytes, event->len);
    *loop->later_end = d;
    loop->later_end = &d->next;
    if (!loop->stepping && !loop->draining) uv_idle_start(&loop->soon, soon_due);
}

void fb_loop_flush(fb_loop *loop)
{
    if (loop->stepping || loop->draining || loop->later == NULL) return;
    uv_idle_stop(&loop->soon);
    later_run(loop);
}

static void deadline_due(uv_timer_t *timer)
{
    loop_step(timer->data, (fb_event){.kind = FB_EV_TICK});
}

/* The store. */

static void store_notify(void *user)
{
    uv_async_send(&((fb_loop *)user)->wake);
}

static void tell_store(fb_loop *loop, fb_loop_happening what, const fb_lmdb_completion *c)
{
    tell(loop, (fb_loop_event){.what = what, .error = c->error}, c->detail, strlen(c->detail));
}

/* A failed write ends the incarnation; the ones after it read until one of them has written. */
static void write_judged(fb_loop *loop, const fb_lmdb_completion *c)
{
    if (c->error != FB_OK) {
        loop->read_only = true;
        return;
    }
    loop->restart_ms = FB_LOOP_RESTART_MIN_MS;
    if (!loop->read_only || !loop->started) return;
    loop->read_only = false;
    if (!loop->stopping) fb_carrier_hold(loop->carrier, false);
    if (loop->read_only_told) tell_store(loop, FB_LOOP_WRITABLE, c);
    loop->read_only_told = false;
}

static void store_completed(fb_loop *loop, const fb_lmdb_completion *c)
{
    if (c->error != FB_OK && c->kind != FB_LMDB_HELD) tell_store(loop, FB_LOOP_STORE, c);
    switch (c->kind) {
    case FB_LMDB_BEGUN:
        if (c->incarnation != loop->beginning) break;
        if (c->error != FB_OK) {
            loop->beginning = 0;
            incarnation_later(loop);
        } else {
            incarnation_start(loop);
        }
        break;
    case FB_LMDB_READ:
        loop_step(loop, (fb_event){.kind = FB_EV_READ_DONE,
                                   .len = (uint32_t)c->len,
                                   .a = c->operation,
                                   .b = c->w,
                                   .c = c->error,
                                   .bytes = c->bytes});
        break;
    case FB_LMDB_SCRUBBED:
        scrub_answer(loop, c->error, c->entries, c->damaged, fb_span_of(c->bytes, c->len));
        break;
    case FB_LMDB_OUTER:
        fb_outer_import_take(&loop->import, c->outer);
        break;
    case FB_LMDB_HELD:
        if (!loop->read_only_told) tell_store(loop, FB_LOOP_READ_ONLY, c);
        loop->read_only_told = true;
        running_tell(loop);
        break;
    case FB_LMDB_WRITE:
        write_judged(loop, c);
        loop_step(
            loop,
            (fb_event){.kind = FB_EV_WRITE_DONE, .a = c->incarnation, .b = c->w, .c = c->error});
        break;
    }
}

static void outer_told(void *user, const char *what, const fb_outer *outer)
{
    char text[FB_DOCUMENTS_COLLECTION_MAX + 256], id[FB_UUID_TEXT_LEN];
    fb_uuid_format(outer->id, id);
    int len = snprintf(text, sizeof text, "%s/%.*s%s%s", outer->collection, (int)sizeof id, id,
                       outer->why[0] != 0 ? ": " : "", outer->why);
    if (len >= (int)sizeof text) len = (int)sizeof text - 1;
    tell(user, (fb_loop_event){.what = FB_LOOP_OUTER, .name = what}, text, (size_t)len);
}

static void woken(uv_async_t *async)
{
    fb_loop *loop = async->data;
    fb_lmdb_completion *c;
    while (loop->store != NULL && (c = fb_lmdb_take(loop->store)) != NULL) {
        store_completed(loop, c);
        fb_lmdb_completion_free(c);
    }
    later_run(loop);
}

/* The carrier. */

static void on_dialled(void *user, uint64_t dial, uint64_t link, fb_error error)
{
    fb_loop *loop = user;
    dialling **at = &loop->dials;
    while (*at != NULL && (*at)->dial != dial) at = &(*at)->next;
    if (*at != NULL) {
        dialling *d = *at;
        *at = d->next;
        tell(loop, (fb_loop_event){.what = FB_LOOP_DIALLED, .link = link, .error = error},
             d->address, d->len);
        free(d);
    }
    loop_step(loop, (fb_event){.kind = FB_EV_DIAL_RESULT, .a = dial, .b = link, .c = error});
}

static void on_opened(void *user, uint64_t link, const char *host)
{
    fb_loop *loop = user;
    tell(loop, (fb_loop_event){.what = FB_LOOP_OPENED, .link = link}, host, strlen(host));
    loop_step(loop, (fb_event){.kind = FB_EV_LINK_OPENED,
                               .len = (uint32_t)strlen(host),
                               .a = link,
                               .bytes = (const uint8_t *)host});
}

static size_t on_bytes(void *user, uint64_t link, const uint8_t *bytes, size_t len)
{
    return loop_step(
        user,
        (fb_event){.kind = FB_EV_LINK_BYTES, .len = (uint32_t)len, .a = link, .bytes = bytes});
}

static void on_writable(void *user, uint64_t link, uint64_t bytes)
{
    loop_step(user, (fb_event){.kind = FB_EV_LINK_WRITABLE, .a = link, .b = bytes});
}

static void on_closed(void *user, uint64_t link, fb_error error)
{
    fb_loop *loop = user;
    tell(loop, (fb_loop_event){.what = FB_LOOP_CLOSED, .link = link, .error = error}, "", 0);
    loop_step(loop, (fb_event){.kind = FB_EV_LINK_CLOSED, .a = link, .b = error});
}

/* Opening. */

static void *node_allocate(void *user, size_t bytes)
{
    (void)user;
    /* Untouched pages of a large block cost no memory. */
    return calloc(1, bytes);
}

static void node_release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static void loop_free(fb_loop *loop)
{
    fb_node_destroy(loop->node);
    while (loop->later != NULL) {
        deferred *next = loop->later->next;
        free(loop->later);
        loop->later = next;
    }
    while (loop->dials != NULL) {
        dialling *next = loop->dials->next;
        free(loop->dials);
        loop->dials = next;
    }
    free(loop->effects.memory);
    free(loop);
}

static fb_status loop_parts(fb_loop *loop, char *why, size_t why_len)
{
    fb_options *node = &loop->options.node;
    node->allocator = (fb_allocator){NULL, node_allocate, node_release};
    fb_lmdb_options store = loop->options.store;
    store.notify = store_notify;
    store.user = loop;
    FB_TRY(fb_lmdb_open(&store, &loop->store, why, why_len));
    loop->import.store = loop->store;
    loop->effects.capacity = fb_effects_bytes_min(node);
    loop->effects.memory = calloc(1, loop->effects.capacity);
    fb_status status = loop->effects.memory == NULL ? FB_ERR_NO_MEMORY : instance_make(loop);
    if (status == FB_OK) {
        fb_carrier_handlers handlers = {loop,     on_dialled,  on_opened,
                                        on_bytes, on_writable, on_closed};
        status = fb_carrier_create(loop->uv, &handlers, node->sizes.links, &loop->carrier);
    }
    if (status != FB_OK) snprintf(why, why_len, "the node: %s", fb_error_text(status));
    return status;
}

fb_status fb_loop_open(const fb_loop_options *options, fb_loop **out, char *why, size_t why_len)
{
    *out = NULL;
    fb_loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL) {
        snprintf(why, why_len, "the node: %s", fb_error_text(FB_ERR_NO_MEMORY));
        return FB_ERR_NO_MEMORY;
    }
    loop->options = *options;
    loop->uv = options->uv;
    loop->later_end = &loop->later;
    loop->restart_ms = FB_LOOP_RESTART_MIN_MS;
    loop->deadline_ns = FB_NEVER;
    /* The store's thread may wake the loop as soon as it runs. */
    uv_async_init(loop->uv, &loop->wake, woken);
    uv_timer_init(loop->uv, &loop->deadline);
    uv_timer_init(loop->uv, &loop->restart);
    uv_idle_init(loop->uv, &loop->soon);
    loop->wake.data = loop->deadline.data = loop->restart.data = loop->soon.data = loop;
    fb_outer_import_init(&loop->import, loop->uv, loop, NULL);
    loop->import.told = outer_told;
    loop->import.user = loop;
    loop->handles = 5;
    fb_status status = loop_parts(loop, why, why_len);
    if (status != FB_OK) {
        fb_loop_stop(loop, NULL, NULL);
        return status;
    }
    fb_carrier_hold(loop->carrier, true);
    incarnation_begin(loop);
    *out = loop;
    return FB_OK;
}

fb_status fb_loop_listen(fb_loop *loop, const char *address, char *bound, size_t bound_len,
                         char *why, size_t why_len)
{
    return fb_carrier_listen(loop->carrier, address, bound, bound_len, why, why_len);
}

const fb_lmdb_opening *fb_loop_opening(const fb_loop *loop)
{
    return fb_lmdb_opening_of(loop->store);
}

/* Stopping: drain, then the carrier, then the handles, then the store and the node. */

static void handle_closed(uv_handle_t *handle)
{
    fb_loop *loop = handle->data;
    if (--loop->handles > 0) return;
    void (*stopped)(void *user) = loop->stopped;
    void *user = loop->stopped_user;
    loop_free(loop);
    if (stopped != NULL) stopped(user);
}

static void carrier_gone(void *user)
{
    fb_loop *loop = user;
    loop->carrier = NULL;
    fb_outer_import_stop(&loop->import);
    /* What was given to the store is applied; its thread wakes nobody any more. */
    fb_lmdb_close(loop->store);
    loop->store = NULL;
    uv_close((uv_handle_t *)&loop->wake, handle_closed);
    uv_close((uv_handle_t *)&loop->deadline, handle_closed);
    uv_close((uv_handle_t *)&loop->restart, handle_closed);
    uv_close((uv_handle_t *)&loop->soon, handle_closed);
    loop->import.retry.data = loop;
    uv_close((uv_handle_t *)&loop->import.retry, handle_closed);
}

static void loop_end(fb_loop *loop)
{
    if (loop->closing) return;
    loop->closing = true;
    loop->started = false;
    fb_request_table_end(&loop->requests, FB_ERR_AGAIN);
    scrub_answer(loop, FB_ERR_AGAIN, 0, 0, (fb_span){NULL, 0});
    uv_timer_stop(&loop->restart);
    uv_timer_stop(&loop->deadline);
    if (loop->carrier != NULL) {
        fb_carrier_stop(loop->carrier, carrier_gone, loop);
    } else {
        carrier_gone(loop);
    }
}

static void drain_over(uv_timer_t *timer)
{
    loop_end(timer->data);
}

static void loop_drained(fb_loop *loop)
{
    if (!loop->stopping || loop->closing || loop->stepping || loop->draining) return;
    if (loop->started && fb_request_table_pending(&loop->requests)) return;
    loop_end(loop);
}

void fb_loop_stop(fb_loop *loop, void (*stopped)(void *user), void *user)
{
    loop->stopping = true;
    loop->stopped = stopped;
    loop->stopped_user = user;
    if (loop->carrier != NULL) fb_carrier_hold(loop->carrier, true);
    uv_timer_start(&loop->restart, drain_over, FB_LOOP_DRAIN_MS, 0);
    loop_drained(loop);
}

void fb_loop_stats_get(fb_loop *loop, fb_loop_stats *out)
{
    *out = (fb_loop_stats){
        .started = loop->started,
        .running = loop->started && fb_node_is_running(loop->node),
        .read_only = loop->read_only,
        .incarnation = loop->incarnation,
        .starts = loop->starts,
        .requests = loop->requests.count,
        .node_bytes = fb_node_bytes(loop->node),
        .last_end = loop->last_end,
        .import = loop->import.stats,
    };
    for (size_t i = 0; i < FB_COUNTERS; i++) {
        out->counters[i] = fb_node_counter(loop->node, (fb_counter)i);
    }
    if (loop->store != NULL) fb_lmdb_stats_get(loop->store, &out->store);
    if (loop->carrier != NULL) fb_carrier_stats_get(loop->carrier, &out->carrier);
}
