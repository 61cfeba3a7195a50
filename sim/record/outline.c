/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/record/outline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/cursor.h"
#include "protocol/base/hash.h"
#include "protocol/base/limits.h"
#include "protocol/core/request.h"
#include "sim/schedule/schedule.h"
#include "sim/workload/feeds.h"

#define NS_PER_US   UINT64_C(1000)
#define US_PER_S    INT64_C(1000000)
#define NS_PER_S    UINT64_C(1000000000)
#define NAMES_MAX   4096u
#define NEVER       UINT64_MAX
#define SHORT_VALUE 32u /* what the simulator makes of a value without padding is about so long */
#define LIST_MOST   255u
#define ASKED_MAX   64u

/* What a node is as far as it was seen. */
typedef struct seen_node {
    uint32_t operations;
    uint64_t down_ns; /* since when; NEVER: it is up */
    bool clock_known;
    int64_t clock_us;   /* wall clock where the monotonic one of this life was zero */
    int64_t clock_by_s; /* set by so much, in all */
    uint64_t clock_ns;  /* since when */
} seen_node;

typedef struct seen_pair {
    uint32_t links;
    bool met;
    uint64_t apart_ns; /* since when no connection is there */
} seen_pair;

/* Numbers for what has names: the first eight bytes of a hash of the name. */
typedef struct names {
    uint64_t of[NAMES_MAX];
    uint32_t count;
} names;

typedef enum left_out {
    LEFT_ELSEWHERE, /* requests about spaces, members, applications, addresses */
    LEFT_HASHED,    /* of redacted recordings */
    LEFT_BROKEN,    /* requests that are not in their layout: they were refused */
    LEFT_CONDITION,
    LEFT_TOGETHER, /* changes that were one write set */
    LEFT_LINES,
    LEFT_KINDS,
} left_out;

static const char *const left_texts[LEFT_KINDS] = {
    [LEFT_ELSEWHERE] = "left out, requests about spaces, members, applications and peers",
    [LEFT_HASHED] = "left out, requests of redacted recordings",
    [LEFT_BROKEN] = "left out, malformed requests",
    [LEFT_CONDITION] = "without their conditions, writes",
    [LEFT_TOGETHER] = "on their own, changes of batches",
    [LEFT_LINES] = "left out, lines that a schedule has no room for",
};

/* A write of new records: which numbers they were given. Their ids are in the answer. */
typedef struct asked_new {
    uint32_t node;
    uint64_t request; /* 0: none */
    bool batch;
    uint16_t count;
    uint32_t places[FB_WRITE_ITEMS_MAX]; /* in records.of; FB_NONE: not a new one */
} asked_new;

struct fb_sim_outline {
    fb_sim_plan plan;
    uint32_t nodes;
    uint64_t now_ns;
    seen_node node[FB_SIM_SCHEDULE_NODES_MAX];
    seen_pair pair[FB_SIM_SCHEDULE_NODES_MAX][FB_SIM_SCHEDULE_NODES_MAX];
    names records, fields, elements;
    asked_new asked[ASKED_MAX]; /* one after the other, in a circle */
    uint32_t asked_count;
    uint64_t left[LEFT_KINDS];
    uint32_t windows;
    bool failed;
};

fb_sim_outline *fb_sim_outline_create(void)
{
    fb_sim_outline *o = calloc(1, sizeof *o);
    if (o == NULL) return NULL;
    fb_sim_plan_init(&o->plan);
    o->nodes = o->plan.nodes = 2;
    snprintf(o->plan.seed_text, sizeof o->plan.seed_text, "1");
    fb_sim_plan_round *round = fb_sim_plan_round_add(&o->plan);
    o->failed = round == NULL;
    if (round != NULL) round->number = 1;
    for (uint32_t i = 0; i < FB_SIM_SCHEDULE_NODES_MAX; i++) {
        o->node[i].down_ns = NEVER;
    }
    return o;
}

void fb_sim_outline_free(fb_sim_outline *o)
{
    if (o != NULL) fb_sim_plan_free(&o->plan);
    free(o);
}

static fb_sim_line *line_add(fb_sim_outline *o, uint32_t node, uint64_t at_ns)
{
    fb_sim_line *line = fb_sim_plan_line_add(&o->plan);
    if (line == NULL) {
        o->left[LEFT_LINES]++;
        return NULL;
    }
    line->a = node;
    line->at_ns = at_ns;
    return line;
}

static fb_sim_line *window_add(fb_sim_outline *o, fb_sim_fault fault, uint32_t node,
                               uint64_t from_ns, uint64_t until_ns)
{
    if (o->windows == FB_SIM_WINDOWS_MAX) {
        o->left[LEFT_LINES]++;
        return NULL;
    }
    fb_sim_line *line = line_add(o, node, from_ns);
    if (line == NULL) return NULL;
    o->windows++;
    line->kind = FB_SIM_LINE_WINDOW;
    line->fault = fault;
    line->until_ns = until_ns;
    line->key = 1;
    return line;
}

/* Operations. */

static uint64_t hash_of(fb_span name)
{
    return fb_xxh128(name.p, name.len, 0).lo;
}

static uint32_t number_of(names *n, fb_span name, uint32_t most)
{
    uint64_t hash = hash_of(name);
    uint32_t i = 0;
    while (i < n->count && n->of[i] != hash) i++;
    if (i == n->count && n->count < NAMES_MAX) n->of[n->count++] = hash;
    return i % most;
}

static fb_sim_op *operation_add(fb_sim_outline *o, uint32_t node, uint64_t now_ns,
                                fb_sim_operation operation)
{
    fb_sim_line *line = line_add(o, node, now_ns);
    if (line == NULL) return NULL;
    seen_node *n = &o->node[node];
    line->kind = FB_SIM_LINE_OP;
    line->within_ns = FB_SIM_SCHEDULE_WITHIN_NS;
    line->client = n->operations++ % FB_SIM_CLIENTS;
    line->op.operation = (uint8_t)operation;
    line->op.number = n->operations;
    return &line->op;
}

static void collection_pass(fb_reader *r)
{
    if (fb_read_u8(r) == 1) {
        fb_read_span16(r);
    } else {
        fb_read_id(r);
    }
}

static uint8_t record_read(fb_sim_outline *o, fb_reader *r)
{
    fb_id id = fb_read_id(r);
    return (uint8_t)number_of(&o->records, fb_span_of(id.b, sizeof id.b), FB_SIM_RECORDS);
}

/* A new record has no id yet: the next number is its own. */
static uint8_t record_new(fb_sim_outline *o, asked_new *asked)
{
    names *n = &o->records;
    uint32_t place = n->count < NAMES_MAX ? n->count++ : FB_NONE;
    if (place != FB_NONE) n->of[place] = 0;
    asked->places[asked->count] = place;
    return (uint8_t)(place == FB_NONE ? 0 : place % FB_SIM_RECORDS);
}

static uint8_t amount_of(fb_span value)
{
    char text[16] = "";
    memcpy(text, value.p, value.len < sizeof text - 1 ? value.len : sizeof text - 1);
    unsigned long long amount = strtoull(text + (text[0] == '-'), NULL, 10);
    return (uint8_t)(amount == 0 ? 1 : amount > UINT8_MAX ? UINT8_MAX : amount);
}

static void field_read(fb_sim_outline *o, uint32_t node, uint64_t now_ns, uint8_t record,
                       fb_reader *r, fb_sim_op *plain)
{
    fb_span name = fb_read_span16(r);
    uint8_t how = fb_read_u8(r);
    fb_span value = fb_read_span32(r);
    if (r->failed) return;
    if (how >= 3) {
        fb_sim_op *op = operation_add(o, node, now_ns,
                                      how == 3   ? FB_SIM_OP_ADD
                                      : how == 4 ? FB_SIM_OP_INSERT
                                                 : FB_SIM_OP_REMOVE);
        if (op == NULL) return;
        op->record = record;
        op->items =
            how == 3 ? amount_of(value) : (uint8_t)number_of(&o->elements, value, FB_SIM_ELEMENTS);
        return;
    }
    uint32_t f = number_of(&o->fields, name, FB_SIM_FIELDS);
    plain->fields |= (uint8_t)(1u << f);
    if (how == 2) plain->unset |= (uint8_t)(1u << f);
    if (how == 1 && value.len == 2) plain->empty |= (uint8_t)(1u << f); /* "" */
    if (how == 1 && value.len > SHORT_VALUE) {
        size_t pad = value.len - SHORT_VALUE;
        plain->pad[f] = (uint16_t)(pad > FB_SIM_PAD_MAX ? FB_SIM_PAD_MAX : pad);
    }
}

static void put_read(fb_sim_outline *o, uint32_t node, uint64_t now_ns, fb_reader *r,
                     asked_new *asked)
{
    static const fb_id zero = {{0}};
    collection_pass(r);
    fb_reader ahead = *r;
    bool is_new = fb_id_equal(fb_read_id(&ahead), zero) && !ahead.failed;
    uint8_t record = is_new ? record_new(o, asked) : record_read(o, r);
    if (is_new) *r = ahead;
    bool replaces = fb_read_u8(r) == 1;
    if (fb_read_u8(r) != 0) o->left[LEFT_CONDITION]++;
    fb_read_id(r);
    uint16_t count = fb_read_u16(r);
    fb_sim_op plain = {.operation = FB_SIM_OP_CHANGE};
    for (uint16_t i = 0; i < count && !r->failed; i++) {
        field_read(o, node, now_ns, record, r, &plain);
    }
    plain.unset &= (uint8_t)~plain.empty;
    if (r->failed || (plain.fields == 0 && !replaces)) return;
    fb_sim_op *op = operation_add(o, node, now_ns, replaces ? FB_SIM_OP_PUT : FB_SIM_OP_CHANGE);
    if (op == NULL) return;
    plain.operation = op->operation;
    plain.number = op->number;
    plain.record = record;
    /* A replacement with nothing in it is not in the simulator's language. */
    if (plain.fields == 0) plain.fields = plain.empty = 1;
    if (replaces) plain.unset = 0;
    *op = plain;
}

static void delete_read(fb_sim_outline *o, uint32_t node, uint64_t now_ns, fb_reader *r)
{
    collection_pass(r);
    uint8_t record = record_read(o, r);
    if (fb_read_u8(r) != 0) o->left[LEFT_CONDITION]++;
    fb_read_id(r);
    fb_sim_op *op = r->failed ? NULL : operation_add(o, node, now_ns, FB_SIM_OP_DELETE);
    if (op != NULL) op->record = record;
}

static void batch_read(fb_sim_outline *o, uint32_t node, uint64_t now_ns, fb_reader *r,
                       asked_new *asked)
{
    uint16_t count = fb_read_u16(r);
    for (; asked->count < count && asked->count < FB_WRITE_ITEMS_MAX && !r->failed;
         asked->count++) {
        uint8_t verb = fb_read_u8(r);
        fb_read_id(r); /* the space */
        if (verb == FB_VERB_RECORD_PUT) {
            put_read(o, node, now_ns, r, asked);
        } else {
            delete_read(o, node, now_ns, r);
        }
    }
    o->left[LEFT_TOGETHER] += asked->count;
}

static asked_new *asked_begin(fb_sim_outline *o, uint32_t node, const fb_event *event)
{
    asked_new *asked = &o->asked[o->asked_count++ % ASKED_MAX];
    *asked =
        (asked_new){.node = node, .request = event->a, .batch = event->b == FB_VERB_RECORD_BATCH};
    for (uint32_t i = 0; i < FB_WRITE_ITEMS_MAX; i++) asked->places[i] = FB_NONE;
    return asked;
}

static void request_read(fb_sim_outline *o, uint32_t node, uint64_t now_ns, const fb_event *event)
{
    if (event->b < FB_VERB_RECORD_PUT || event->b > FB_VERB_RECORD_BATCH) {
        o->left[LEFT_ELSEWHERE] += event->b != FB_VERB_STATUS && event->b < FB_VERB_RECORD_PUT &&
                                   event->b != FB_VERB_PEER_LIST &&
                                   event->b != FB_VERB_SPACE_LIST &&
                                   event->b != FB_VERB_PEER_MESSAGES;
        return;
    }
    if (event->bytes == NULL) {
        o->left[LEFT_HASHED]++;
        return;
    }
    fb_reader r = fb_reader_of(fb_span_of(event->bytes, event->len));
    fb_sim_op *op;
    if (event->b == FB_VERB_RECORD_BATCH) {
        batch_read(o, node, now_ns, &r, asked_begin(o, node, event));
        o->left[LEFT_BROKEN] += r.failed;
        return;
    }
    fb_read_id(&r); /* the space */
    switch ((fb_verb)event->b) {
    case FB_VERB_RECORD_PUT:
        put_read(o, node, now_ns, &r, asked_begin(o, node, event));
        break;
    case FB_VERB_RECORD_DELETE:
        delete_read(o, node, now_ns, &r);
        break;
    case FB_VERB_RECORD_WATCH:
        op = operation_add(o, node, now_ns, FB_SIM_OP_WATCH);
        if (op != NULL) op->items = FB_SIM_FEED_NEW;
        break;
    case FB_VERB_RECORD_LIST:
        collection_pass(&r);
        fb_read_id(&r);
        uint32_t limit = fb_read_u32(&r);
        op = r.failed ? NULL : operation_add(o, node, now_ns, FB_SIM_OP_LIST);
        if (op != NULL) op->items = (uint8_t)(limit == 0 || limit > LIST_MOST ? LIST_MOST : limit);
        break;
    default:
        collection_pass(&r);
        uint8_t record = record_read(o, &r);
        op = r.failed ? NULL : operation_add(o, node, now_ns, FB_SIM_OP_GET);
        if (op != NULL) op->record = record;
    }
    o->left[LEFT_BROKEN] += r.failed;
}

void fb_sim_outline_reply(fb_sim_outline *o, uint32_t node, const fb_effect *reply)
{
    fb_reader r = fb_reader_of(fb_span_of(fb_effect_bytes(reply), reply->len));
    for (uint32_t i = 0; i < ASKED_MAX; i++) {
        asked_new *asked = &o->asked[i];
        if (asked->request != reply->a || asked->node != node) continue;
        uint32_t count = asked->batch ? fb_read_u16(&r) : 1;
        for (uint32_t item = 0; reply->b == FB_OK && item < count; item++) {
            fb_id id = fb_read_id(&r);
            fb_read_u8(&r); /* created */
            fb_read_id(&r); /* etag */
            if (r.failed || item >= FB_WRITE_ITEMS_MAX) break;
            if (asked->places[item] == FB_NONE) continue;
            o->records.of[asked->places[item]] = hash_of(fb_span_of(id.b, sizeof id.b));
        }
        asked->request = 0;
    }
}

/* Processes, clocks, links. */

static void down_end(fb_sim_outline *o, uint32_t node, uint64_t now_ns)
{
    seen_node *n = &o->node[node];
    uint64_t since = n->down_ns;
    n->down_ns = NEVER;
    if (since == NEVER) return;
    uint64_t until = since == now_ns ? now_ns + NS_PER_US : now_ns;
    fb_sim_line *crash = window_add(o, FB_SIM_FAULT_CRASH_AT, node, since, until);
    if (crash != NULL) {
        crash->p = FB_SIM_CRASH_AT_SEND;
        crash->q = 1;
    }
    fb_sim_line *late = window_add(o, FB_SIM_FAULT_RESTART_LATE, node, since, until);
    if (late != NULL) late->p = until - since;
}

static void clock_end(fb_sim_outline *o, uint32_t node, uint64_t now_ns)
{
    seen_node *n = &o->node[node];
    if (n->clock_by_s != 0 && n->clock_ns < now_ns) {
        fb_sim_line *set = window_add(o, FB_SIM_FAULT_CLOCK_STEP, node, n->clock_ns, now_ns);
        if (set != NULL) {
            set->p = (uint64_t)(n->clock_by_s < 0 ? -n->clock_by_s : n->clock_by_s);
            set->mask = n->clock_by_s < 0;
        }
    }
    n->clock_ns = now_ns;
}

static void clock_look(fb_sim_outline *o, uint32_t node, uint64_t now_ns, const fb_event *event)
{
    seen_node *n = &o->node[node];
    int64_t zero_us = event->wall_us - (int64_t)(event->mono_ns / NS_PER_US);
    int64_t by_s = (zero_us - n->clock_us) / US_PER_S;
    if (n->clock_known && by_s != 0) {
        clock_end(o, node, now_ns);
        n->clock_by_s += by_s;
    }
    if (!n->clock_known || by_s != 0) n->clock_us = zero_us;
    n->clock_known = true;
}

static void apart_end(fb_sim_outline *o, uint32_t a, uint32_t b, uint64_t now_ns)
{
    seen_pair *pair = &o->pair[a][b];
    /* While one of them was down nobody could reach it. */
    if (!pair->met || pair->links != 0 || pair->apart_ns == NEVER) return;
    if (now_ns - pair->apart_ns >= FB_SIM_OUTLINE_APART_NS) {
        fb_sim_line *line = window_add(o, FB_SIM_FAULT_NONTRANSITIVE, a, pair->apart_ns, now_ns);
        if (line != NULL) line->b = b;
    }
    pair->apart_ns = NEVER;
}

/* A schedule has as many nodes as were heard of. */
static void heard_of(fb_sim_outline *o, uint32_t node, uint64_t now_ns)
{
    o->now_ns = now_ns;
    if (node >= o->nodes) o->nodes = o->plan.nodes = node + 1;
}

void fb_sim_outline_linked(fb_sim_outline *o, uint32_t x, uint32_t y, uint64_t now_ns, bool there)
{
    uint32_t a = x < y ? x : y, b = x < y ? y : x;
    seen_pair *pair = &o->pair[a][b];
    if (x == y) return;
    heard_of(o, b, now_ns);
    if (there) {
        apart_end(o, a, b, now_ns);
        pair->met = true;
        pair->links++;
    } else if (pair->links > 0 && --pair->links == 0) {
        pair->apart_ns = now_ns;
    }
}

void fb_sim_outline_down(fb_sim_outline *o, uint32_t node, uint64_t now_ns)
{
    heard_of(o, node, now_ns);
    clock_end(o, node, now_ns);
    o->node[node].clock_known = false;
    o->node[node].clock_by_s = 0;
    o->node[node].down_ns = now_ns;
    for (uint32_t i = 0; i < o->nodes; i++) {
        uint32_t a = i < node ? i : node, b = i < node ? node : i;
        if (a == b) continue;
        apart_end(o, a, b, now_ns);
        o->pair[a][b].links = 0;
        o->pair[a][b].apart_ns = NEVER;
    }
}

void fb_sim_outline_event(fb_sim_outline *o, uint32_t node, uint64_t now_ns, const fb_event *event)
{
    heard_of(o, node, now_ns);
    if (event->kind == FB_EV_START) {
        down_end(o, node, now_ns);
        for (uint32_t i = 0; i < o->nodes; i++) {
            seen_pair *pair = i < node ? &o->pair[i][node] : &o->pair[node][i];
            if (i != node && pair->links == 0 && o->node[i].down_ns == NEVER) {
                pair->apart_ns = now_ns;
            }
        }
    }
    clock_look(o, node, now_ns, event);
    if (event->kind == FB_EV_REQUEST) request_read(o, node, now_ns, event);
}

const char *fb_sim_outline_write(fb_sim_outline *o, FILE *out)
{
    if (o->failed) return "no memory";
    for (uint32_t i = 0; i < o->nodes; i++) {
        /* A recording that ends first is not a node that was down. */
        o->node[i].down_ns = NEVER;
        clock_end(o, i, o->now_ns);
        for (uint32_t j = i + 1; j < o->nodes; j++) apart_end(o, i, j, o->now_ns);
    }
    fb_sim_plan_round *round = &o->plan.rounds[0];
    round->length_ns = o->now_ns < NS_PER_S ? NS_PER_S : o->now_ns;
    if (round->length_ns > FB_SIM_SCHEDULE_TIME_MAX) {
        return "a schedule lasts 1000000 seconds at most: give fewer files";
    }
    for (uint32_t i = 0; i < o->plan.line_count; i++) {
        fb_sim_line *line = &o->plan.lines[i];
        if (line->kind == FB_SIM_LINE_OP) fb_sim_op_normalise(&line->op);
        if (line->kind == FB_SIM_LINE_WINDOW) fb_sim_window_normalise(&o->plan, line);
    }
    fb_sim_plan_sort(&o->plan);
    fb_sim_plan_print(&o->plan, out);
    if (o->records.count > FB_SIM_RECORDS) {
        fprintf(out, "# %u records share %u numbers\n", (unsigned)o->records.count,
                (unsigned)FB_SIM_RECORDS);
    }
    for (uint32_t i = 0; i < LEFT_KINDS; i++) {
        if (o->left[i] != 0) {
            fprintf(out, "# %s: %llu\n", left_texts[i], (unsigned long long)o->left[i]);
        }
    }
    return fflush(out) == 0 && !ferror(out) ? NULL : strerror(errno);
}
