/* SPDX-License-Identifier: Apache-2.0 */
/* What members say to hold, as a member may say it: the report of node 1 that node 0 has stored is
 * another, and so are the marks of batches that are kept. Both nodes have reported before. The cut
 * that follows is never above what is durable here and never falls within a life; records stay
 * readable; asking for the promise behind a statement is answered; a second run is the same. */
#include "fuzz/step_alone.h"

#include "protocol/base/hex.h"
#include "protocol/database/batch/mark.h"
#include "protocol/space/cut.h"
#include "protocol/store/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SECOND    UINT64_C(1000000000)
#define VECTORS   24u
#define CONTENT   2048u
#define AREA_HEAD 18u /* id, u16 entries */
#define ENTRY     32u /* node, incarnation, batch */

/* What a FROM_PEER event says in a. */
enum { CUT = 1, PROMISE, REPORT };

static fb_status on_event(fb_node *node, const fb_event *event)
{
    uint32_t space = fb_space_find(node, now.space);
    if (space == FB_NONE) return FB_OK;
    if (event->a == CUT) fb_cut_due(node, space);
    if (event->a == PROMISE) fb_report_promise(node, space);
    uint32_t area = (uint32_t)event->b % node->options.sizes.areas;
    if (event->a == REPORT && fb_area_get(node, area)->used) fb_report_due(node, area);
    return FB_OK;
}

static void tell(world *w, uint64_t what, uint64_t b)
{
    step(w, 0, (fb_event){.kind = FROM_PEER, .a = what, .b = b});
}

/* The pool is where the store's values lie. */
static uint8_t *place_of(fb_span s)
{
    FB_ASSERT(s.p >= pool && s.p + s.len <= pool + pool_used);
    return pool + (s.p - pool);
}

/* The text of node 1's report in node 0's store, without its quotes. */
static fb_span report_of(const world *w)
{
    const machine *m = &w->machines[0];
    uint32_t reports = w->machines[0].node->database->spaces[0].reports;
    if (reports == 0) return (fb_span){NULL, 0};
    uint32_t local = fb_area_get(m->node, reports - 1)->local;
    uint8_t low[FB_RECORD_KEY_BYTES];
    static const fb_id first;
    fb_span prefix = fb_key_record(low, local, first);
    prefix.len = FB_AREA_KEY_BYTES;
    for (uint32_t i = find(m, prefix); i < m->stored; i++) {
        const stored *s = &m->store[i];
        if (s->key.len != FB_RECORD_KEY_BYTES || memcmp(s->key.p, prefix.p, prefix.len) != 0) break;
        fb_record record;
        fb_record_field field;
        if (fb_record_decode(s->value, &record) != FB_OK) continue;
        fb_record_walk walk = fb_record_walk_of(&record);
        if (!fb_record_next(&walk, &field) || field.count != 1) continue;
        fb_sibling sibling = fb_record_sibling(&field, 0);
        if (!fb_id_equal(sibling.dot.node, fb_node_self(w->machines[1].node))) continue;
        fb_span value = sibling.value;
        if (sibling.apart) {
            uint8_t key[FB_FIELD_KEY_BYTES_MAX];
            fb_id id;
            memcpy(id.b, s->key.p + FB_AREA_KEY_BYTES, sizeof id.b);
            value = stored_of(w, fb_key_field(key, local, id, field.name, field.siblings));
        }
        return value.len < 2 ? (fb_span){NULL, 0} : fb_span_of(value.p + 1, value.len - 2);
    }
    return (fb_span){NULL, 0};
}

/* ---- What node 1 says ---- */

static void say(const world *w, fb_span content, bool upper)
{
    fb_span text = report_of(w);
    static char hex[2 * CONTENT + 1];
    fb_hex_format(content.p, content.len, hex);
    size_t len = fb_min_u64(2 * content.len, text.len);
    if (len == 0) return;
    memcpy(place_of(text), hex, len);
    for (size_t i = 0; upper && i < len; i++) {
        uint8_t *c = place_of(text) + i;
        if (*c >= 'a' && *c <= 'f') *c = (uint8_t)(*c - 'a' + 'A');
    }
}

static fb_id area_choice(const world *w, uint8_t choice)
{
    switch (choice % 4) {
    case 0:
        return fb_area_id(w->space, FB_AREA_SPACE, (fb_span){NULL, 0});
    case 1:
        return fb_area_id(w->space, FB_AREA_COLLECTION, fb_span_text("notes"));
    case 2:
        return fb_area_id(w->space, FB_AREA_REPORTS, (fb_span){NULL, 0});
    default:
        return (fb_id){{choice}};
    }
}

/* Areas, each with entries, until the old text is full; the rest is as it was. */
static void say_built(const world *w, uint8_t areas, fb_reader *r)
{
    static uint8_t content[CONTENT];
    fb_writer out = fb_writer_of(content, report_of(w).len / 2);
    if (out.cap > sizeof content) out.cap = sizeof content;
    for (uint8_t a = 0; a < areas % 8; a++) {
        uint8_t which = fb_read_u8(r), count = fb_read_u8(r);
        size_t at = out.at;
        fb_write_id(&out, area_choice(w, which));
        fb_write_u16(&out, count % 8);
        for (uint8_t e = 0; e < count % 8; e++) {
            uint8_t who = fb_read_u8(r), batch = fb_read_u8(r);
            fb_id peer = {{who}};
            uint64_t life = 7;
            if (who % 4 < NODES) {
                peer = fb_node_self(w->machines[who % 4].node);
                life = w->machines[who % 4].incarnation + (who >> 2 & 1);
            }
            fb_write_id(&out, peer);
            fb_write_u64(&out, life);
            fb_write_u64(&out, batch == 255 ? UINT64_MAX : batch);
        }
        if ((count & 128) != 0 && !out.failed) content[at + 16] = count;
        if (out.failed) {
            out.failed = false;
            out.at = at;
            break;
        }
    }
    say(w, fb_writer_span(&out), (areas & 128) != 0);
}

static void damage(const world *w, uint8_t at, uint8_t by)
{
    fb_span text = report_of(w);
    if (text.len != 0) place_of(text)[text.len * at / 256] = by;
}

/* A mark of a batch is other bytes of the same length. */
static void mark(const world *w, uint8_t which, fb_span bytes)
{
    const machine *m = &w->machines[0];
    uint32_t seen = 0;
    for (uint32_t i = 0; i < m->stored; i++) {
        const stored *s = &m->store[i];
        if (s->key.len == 0 || s->key.p[0] != FB_TAG_MARK || seen++ != which % 4) continue;
        size_t len = fb_min_u64(bytes.len, s->value.len);
        if (len != 0) memcpy(place_of(s->value), bytes.p, len);
        return;
    }
}

/* ---- A run ---- */

typedef struct known_cut {
    fb_id area, node;
    uint64_t incarnation, cut;
} known_cut;

static known_cut known[VECTORS];
static uint32_t known_count;

/* Cuts within this life of node 0. */
static void require_cuts(const world *w)
{
    const fb_node *node = w->machines[0].node;
    for (uint32_t i = 0; i < node->options.sizes.vector_entries; i++) {
        const fb_vector *v = fb_vector_get(node, i);
        if (!v->used || v->closed) continue;
        FB_ASSERT(v->cut <= v->durable_batch);
        fb_id area = fb_area_get(node, v->area)->id;
        uint32_t k = 0;
        while (k < known_count &&
               !(fb_id_equal(known[k].area, area) && fb_id_equal(known[k].node, v->node) &&
                 known[k].incarnation == v->incarnation)) {
            k++;
        }
        if (k == VECTORS) continue;
        if (k == known_count) known[known_count++] = (known_cut){area, v->node, v->incarnation, 0};
        FB_ASSERT(v->cut >= known[k].cut);
        known[k].cut = v->cut;
    }
}

static void require_records(const world *w)
{
    const fb_area *area = area_of(w->machines[0].node, w->space);
    for (uint8_t n = 0; n < 16; n++) {
        uint8_t key[FB_RECORD_KEY_BYTES];
        fb_span value = stored_of(w, fb_key_record(key, area->local, record_of(n)));
        fb_record record;
        FB_ASSERT(value.len == 0 || fb_record_decode(value, &record) == FB_OK);
    }
}

/* Time passes for node 0, from deadline to deadline. */
static void let_pass(world *w, uint64_t ns)
{
    uint64_t end = w->mono_ns + ns;
    for (uint32_t i = 0; i < 24; i++) {
        go_on(w, 16);
        uint64_t next = fb_node_deadline(w->machines[0].node);
        if (next > end) break;
        if (next > w->mono_ns) {
            w->wall_us += (int64_t)((next - w->mono_ns) / 1000);
            w->mono_ns = next;
        }
        step(w, 0, (fb_event){.kind = FB_EV_TICK});
    }
    go_on(w, 16);
}

static void act(world *w, uint8_t what, uint8_t choice, fb_reader *r)
{
    switch (what % 8) {
    case 0:
        say(w, take(r, choice), false);
        break;
    case 1:
        say_built(w, choice, r);
        break;
    case 2:
        damage(w, choice, fb_read_u8(r));
        break;
    case 3:
        if ((choice & 8) != 0) tell(w, REPORT, choice >> 4);
        tell(w, CUT, 0);
        let_pass(w, (choice % 8) * SECOND);
        break;
    case 4:
        tell(w, PROMISE, 0);
        let_pass(w, (choice % 8) * SECOND);
        break;
    case 5:
        put(w, 0, choice & 15, (choice & 16) != 0 ? "a" : "b", "\"later\"");
        let_pass(w, (choice >> 5) * SECOND);
        break;
    case 6:
        mark(w, choice, take(r, fb_read_u8(r)));
        break;
    case 7:
        known_count = 0;
        start(w, 0);
        let_pass(w, (choice % 8) * SECOND);
        break;
    }
}

static void often(fb_options *options)
{
    options->timing.report_ns = 2 * SECOND;
}

static void begin(void)
{
    make(on_event, often);
    introduce(&now);
    for (uint8_t n = 1; n <= 4; n++) {
        put(&now, n & 1, n, "a", "\"one\"");
        pass(&now, SECOND);
        put(&now, 0, n, (n & 2) != 0 ? "a" : "b", "2");
        pass(&now, SECOND);
    }
    for (uint32_t i = 0; i < 20; i++) pass(&now, 2 * SECOND);
    put(&now, 0, 5, "a", "1");
    pass(&now, SECOND);
    FB_ASSERT(report_of(&now).len >= 2 * (size_t)(AREA_HEAD + ENTRY));
    now.steps = 0;
    now.bounded = false;
}

static uint64_t run(fb_span input)
{
    static moment met;
    restore_or_begin(&met, begin);
    known_count = 0;
    fb_reader r = fb_reader_of(input);
    (void)fb_read_u8(&r);
    while (fb_reader_left(&r) >= 2 && now.steps < STEPS_MAX) {
        uint8_t what = fb_read_u8(&r);
        act(&now, what, fb_read_u8(&r), &r);
        require_cuts(&now);
    }
    require_records(&now);
    return end_of_input(1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return run_input(run, data, size, 1, 1);
}
