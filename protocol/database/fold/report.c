/* SPDX-License-Identifier: Apache-2.0 */
/* What each member holds durably, and the stable cut. DESIGN 3.1, Stable cut; docs/WIRE-FORMATS.md,
 * "Reports".
 *
 * A member's report is one record of an area of its own kind (FB_AREA_REPORTS, empty name): for
 * each collection the heads of its durable vector. It is a change like any other, so it is signed,
 * its header names the epoch, and it reaches everybody over any member; each report replaces the
 * one before, so there is one a member. Nobody reports about reports.
 *
 * The cut of an area is the pointwise minimum over the reports of the approved members. It follows
 * from what is stored, so it is worked out again at each start.
 *
 * A report is a promise as well: its author states no cut (DESIGN 3.1, Revocation) below what it
 * has reported, and none before it has reported. So no statement that counts reaches below the
 * stable cut, if everybody who may state one is among those whose minimum it is. That is: a report
 * names the author's statements too, and nothing is folded before all reports name all statements
 * that are known here; and who was admitted meanwhile reports first when it holds what somebody
 * reported who knew of the admission, which is no less than anybody has folded until then. */
#include "protocol/base/hex.h"
#include "protocol/base/mutant.h"
#include "protocol/core/node_id.h"
#include "protocol/database/state.h"
#include "protocol/link/link.h"
#include "protocol/store/readset.h"

#define ENTRY_BYTES 32u /* id node, u64 incarnation, u64 batch */
#define AREA_BYTES  18u /* id area, u16 entries */
#define LIFE_BYTES  40u /* id area, id node, u64 incarnation: of a closed one that is read */
/* Leading bytes of a stored report record: one field with one value, and what it replaced. */
#define RECORD_BYTES 1024u

static const char field_name[] = "held";

static fb_id record_of(fb_id space, fb_id member)
{
    static const char label[] = "faberio-report-v1"; /* hashed with its zero byte */
    const fb_span parts[] = {fb_span_of(label, sizeof label), fb_span_of(space.b, sizeof space.b),
                             fb_span_of(member.b, sizeof member.b)};
    fb_id id;
    fb_blake3(parts, 3, id.b, sizeof id.b);
    memcpy(id.b, space.b, 6); /* a UUIDv7 with the space id's time */
    id.b[6] = (uint8_t)(0x70 | (id.b[6] & 15u));
    id.b[8] = (uint8_t)(0x80 | (id.b[8] & 63u));
    return id;
}

static void life_write(uint8_t *out, fb_id area, fb_id peer, uint64_t incarnation)
{
    memcpy(out, area.b, sizeof area.b);
    memcpy(out + 16, peer.b, sizeof peer.b);
    fb_store_be(out + 32, incarnation, 8);
}

static fb_space_areas *areas_of(const fb_node *node, uint32_t space)
{
    return &node->database->spaces[space];
}

bool fb_report_is_about(const fb_area *area)
{
    return area->used && area->stored &&
           (area->kind == FB_AREA_COLLECTION || area->kind == FB_AREA_FILES);
}

static bool is_reported(const fb_area *area)
{
    return fb_report_is_about(area) || (area->used && area->stored && area->kind == FB_AREA_SPACE);
}

/* Writing. */

/* What is durable here of each area, as far as there is room: what is left out is held back. There
 * is always room for the statements: without them the report tells nobody anything. */
static void write_content(const fb_node *node, uint32_t space, fb_writer *w)
{
    uint32_t own = fb_area_own(node, space);
    size_t kept = 0; /* for the space's own area, while it is not written */
    if (own != FB_NONE && is_reported(fb_area_get(node, own))) {
        kept = AREA_BYTES + (size_t)ENTRY_BYTES * fb_area_get(node, own)->entry_count;
    }
    for (uint32_t at = areas_of(node, space)->first; at != 0;) {
        const fb_area *area = fb_area_get(node, at - 1);
        if (at - 1 == own) kept = 0;
        at = area->next;
        if (!is_reported(area) || w->cap - w->at < AREA_BYTES + ENTRY_BYTES + kept) continue;
        fb_write_id(w, area->id);
        size_t count_at = w->at;
        uint32_t count = 0;
        fb_write_u16(w, 0);
        for (uint32_t e = area->entries; e != 0 && w->cap - w->at >= ENTRY_BYTES + kept;) {
            const fb_vector *v = fb_vector_get(node, e - 1);
            e = v->next;
            if (v->durable_batch == 0) continue;
            fb_write_id(w, v->node);
            fb_write_u64(w, v->incarnation);
            fb_write_u64(w, v->durable_batch);
            count++;
        }
        fb_store_be(w->p + count_at, count, 2);
    }
}

/* So much of a report, of a node with sizes like these: all members' reports are read at once, so
 * the more there are the less each of them says. */
static size_t content_max(const fb_node *node, uint32_t space)
{
    uint64_t cap = (node->database->batch_max / 2 - FB_BATCH_FRAME_BYTES) / 2;
    uint32_t members = fb_report_members(node, space);
    cap = fb_min_u64(cap, FB_REPORTS_BYTES_MAX / (members == 0 ? 1 : members));
    return (size_t)fb_min_u64(cap, FB_REPORT_BYTES_MAX);
}

static void content_hash(fb_span content, uint8_t out[16])
{
    fb_blake3(&content, 1, out, 16);
}

static void report_later(fb_node *node, uint32_t space, uint64_t ns)
{
    fb_space_areas *areas = areas_of(node, space);
    if (fb_timer_is_set(&areas->report)) return;
    fb_timer_set(node, &areas->report, fb_add_sat_u64(node->mono_ns, ns));
}

static void written(fb_node *node, uint64_t space, fb_status status, uint64_t w)
{
    (void)w;
    fb_space_areas *areas = areas_of(node, (uint32_t)space);
    areas->reporting = false;
    if (status == FB_OK) {
        memcpy(areas->reported, areas->next_report, sizeof areas->reported);
        areas->has_reported = true;
    } else if (status == FB_ERR_BUSY || status == FB_ERR_AGAIN) {
        report_later(node, (uint32_t)space, node->options.timing.onward_ns);
    }
}

uint32_t fb_report_members(const fb_node *node, uint32_t space)
{
    uint32_t members = 0;
    for (uint32_t m = fb_member_first(node, space); m != FB_NONE; m = fb_member_next(node, m)) {
        members += fb_member_status_of(node, m) == FB_MEMBER_APPROVED;
    }
    return members;
}

/* Something that others have is not here yet, or nobody is there who could tell. */
static bool catches_up(const fb_node *node, uint32_t space)
{
    bool linked = false;
    for (uint32_t i = 0; i < fb_link_capacity(node) && !linked; i++) {
        const fb_link_info *info = fb_link_at(node, i);
        linked = info->state == FB_LINK_OPEN && info->space == space;
    }
    bool waits = !linked;
    for (uint32_t at = areas_of(node, space)->first; at != 0 && !waits;) {
        const fb_area *area = fb_area_get(node, at - 1);
        at = area->next;
        waits = area->wants != 0;
    }
    return waits;
}

static void on_report(fb_node *node, uint32_t space)
{
    fb_space_areas *areas = areas_of(node, space);
    if (!fb_space_exists(node, space) || areas->reporting) return;
    if (fb_space_own_status(node, space) != FB_MEMBER_APPROVED) return;
    if (fb_report_members(node, space) > FB_CUT_MEMBERS_MAX) return; /* nothing is folded there */
    bool first = !areas->has_reported && !areas->may_report && areas->reports != 0;
    if (first || (areas->behind && catches_up(node, space))) {
        /* The others' reports are read first. And nobody says less than before while more comes:
         * who judges a gap goes by the reports. */
        areas->report_asked = true;
        fb_cut_due(node, space);
        return;
    }
    uint8_t content[FB_REPORT_BYTES_MAX];
    fb_writer w = fb_writer_of(content, content_max(node, space));
    write_content(node, space, &w);
    content_hash(fb_writer_span(&w), areas->next_report);
    if (w.at == 0 || memcmp(areas->next_report, areas->reported, 16) == 0) return;
    char text[2 + 2 * FB_REPORT_BYTES_MAX];
    text[0] = text[1 + 2 * w.at] = '"';
    fb_hex_format(content, w.at, text + 1);
    const fb_field_write field = {fb_span_text(field_name), FB_ACT_SET,
                                  fb_span_of(text, 2 + 2 * w.at)};
    fb_status status = fb_database_write(node, space, FB_AREA_REPORTS, (fb_span){NULL, 0},
                                         record_of(fb_space_id(node, space), node->self), &field, 1,
                                         written, space);
    areas->reporting = status == FB_OK;
    if (status == FB_ERR_BUSY) report_later(node, space, node->options.timing.onward_ns);
}

void fb_report_due(fb_node *node, uint32_t index)
{
    fb_area *area = fb_area_get(node, index);
    fb_space_areas *areas = areas_of(node, area->space);
    area->fresh++;
    if (area->kind == FB_AREA_REPORTS) {
        fb_cut_due(node, area->space);
        return;
    }
    /* Until all have said that they know a statement nothing is folded, and who is new here may not
     * take rights away: that is said soon. */
    bool soon = area->kind == FB_AREA_SPACE || !areas->has_reported;
    if (area->kind == FB_AREA_SPACE) areas->settled = false;
    uint64_t pause = node->options.timing.report_ns / (soon ? FB_REPORTS_SOON : 1);
    uint64_t jitter = fb_draw_below(node->seed, FB_STREAM_ONWARD, UINT64_MAX - area->local,
                                    area->fresh, pause / 4 + 1);
    pause = fb_add_sat_u64(pause, jitter);
    /* Sooner than was meant; not later, or who writes all the time never says anything. */
    if (soon && areas->report.at_ns > fb_add_sat_u64(node->mono_ns, pause)) {
        fb_timer_clear(node, &areas->report);
    }
    report_later(node, area->space, pause);
}

fb_status fb_report_check(const fb_node *node, uint32_t space, const fb_batch *batch, fb_id signer,
                          const fb_change *changes)
{
    /* Also of who is none any more, as others have it already: it counts no longer. */
    uint32_t member = fb_member_find(node, space, signer);
    if (member == FB_NONE || fb_member_status_of(node, member) == FB_MEMBER_PENDING) {
        return FB_ERR_BATCH_POLICY;
    }
    fb_b32 key = fb_member_key(node, member);
    if (memcmp(key.b, batch->author.b, sizeof key.b) != 0) return FB_ERR_BATCH_POLICY;
    fb_id record = record_of(fb_space_id(node, space), signer);
    for (uint32_t i = 0; i < batch->count; i++) {
        if (!fb_id_equal(changes[i].record, record)) return FB_ERR_BATCH_POLICY;
    }
    return FB_OK;
}

/* The cut. */

typedef struct cut_context {
    uint32_t space;
    uint32_t count;
    uint32_t own;                        /* the place of this node's own report, plus one */
    uint32_t member[FB_CUT_MEMBERS_MAX]; /* whose they are */
    uint8_t
        apart[FB_CUT_MEMBERS_MAX]; /* item of the value in the second round, less count, plus 1 */
    bool lives_asked;
    uint32_t first_life;
    fb_span lives; /* closed ones of this node's own report */
    /* Where a gap is judged. */
    uint32_t fetch;
    uint64_t serial;
} cut_context;

_Static_assert(sizeof(cut_context) <= FB_OP_CONTEXT_BYTES, "the context fits an operation");

void fb_cut_due(fb_node *node, uint32_t space)
{
    fb_space_areas *areas = areas_of(node, space);
    if (fb_timer_is_set(&areas->cut)) return;
    fb_timer_set(node, &areas->cut, fb_add_sat_u64(node->mono_ns, node->options.timing.onward_ns));
}

/* The one value of a stored report. False: there is none, or several (a copied node wrote one of
 * them): its next report replaces them all. */
bool fb_report_sibling(const fb_node *node, const fb_op *op, uint32_t item, fb_sibling *out)
{
    fb_read_entry entry;
    fb_record record;
    fb_record_field field;
    if (!fb_op_value(node, op, item, &entry) || entry.value.len != entry.value_len ||
        fb_record_decode(entry.value, &record) != FB_OK) {
        return false;
    }
    fb_record_walk walk = fb_record_walk_of(&record);
    if (!fb_record_next(&walk, &field) || field.count != 1 ||
        !fb_span_equal(field.name, fb_span_text(field_name))) {
        return false;
    }
    *out = fb_record_sibling(&field, 0);
    return true;
}

fb_span fb_report_hex(fb_span value)
{
    return value.len < 2 ? (fb_span){NULL, 0} : fb_span_of(value.p + 1, value.len - 2);
}

/* Up to which batch a report holds a life of an area; the report is hex. *other: it names another
 * life of the node there. */
static uint64_t held(fb_span hex, fb_id area, fb_id peer, uint64_t incarnation, bool *other)
{
    uint8_t bytes[ENTRY_BYTES];
    size_t at = 0;
    while (hex.len - at >= 2 * (size_t)AREA_BYTES) {
        if (!fb_hex_parse(fb_span_of(hex.p + at, 2 * (size_t)AREA_BYTES), bytes, AREA_BYTES)) {
            return 0;
        }
        at += 2 * (size_t)AREA_BYTES;
        size_t count = (size_t)bytes[16] << 8 | bytes[17];
        if (hex.len - at < 2 * ENTRY_BYTES * count) return 0;
        bool here = memcmp(bytes, area.b, 16) == 0;
        for (size_t i = 0; i < count && here; i++) {
            fb_span entry = fb_span_of(hex.p + at + 2 * ENTRY_BYTES * i, 2 * (size_t)ENTRY_BYTES);
            if (!fb_hex_parse(entry, bytes, ENTRY_BYTES)) return 0;
            if (memcmp(bytes, peer.b, 16) != 0) continue;
            if (fb_load_be64(bytes + 16) == incarnation) return fb_load_be64(bytes + 24);
            if (other != NULL) *other = true;
        }
        if (here) return 0;
        at += 2 * ENTRY_BYTES * count;
    }
    return 0;
}

static void cut_run(fb_node *node, fb_op *op);

bool fb_report_read(fb_node *node, fb_op *op, uint32_t space, fb_id member)
{
    uint32_t local = fb_area_get(node, areas_of(node, space)->reports - 1)->local;
    uint8_t key[FB_RECORD_KEY_BYTES];
    return fb_op_read_key(
        op, fb_key_record(key, local, record_of(fb_space_id(node, space), member)), RECORD_BYTES);
}

bool fb_report_read_apart(fb_node *node, fb_op *op, uint32_t space, fb_id member,
                          const fb_sibling *sibling)
{
    uint32_t local = fb_area_get(node, areas_of(node, space)->reports - 1)->local;
    uint8_t key[FB_FIELD_KEY_BYTES_MAX], dot[FB_DOT_BYTES];
    fb_writer w = fb_writer_of(dot, sizeof dot);
    fb_write_dot(&w, sibling->dot);
    fb_id record = record_of(fb_space_id(node, space), member);
    return fb_op_read_key(op, fb_key_field(key, local, record, fb_span_text(field_name), dot),
                          sibling->len);
}

/* Asks for the reports of all approved members. False: there are more than 64, or none. */
static bool ask_reports(fb_node *node, fb_op *op, uint32_t space)
{
    cut_context *c = fb_op_context(op);
    c->space = space;
    bool fits = true;
    for (uint32_t m = fb_member_first(node, space); m != FB_NONE && fits;
         m = fb_member_next(node, m)) {
        if (fb_member_status_of(node, m) != FB_MEMBER_APPROVED) continue;
        fits =
            c->count < FB_CUT_MEMBERS_MAX && fb_report_read(node, op, space, fb_member_id(node, m));
        if (fits) c->member[c->count] = m;
        c->count++;
        if (fb_id_equal(fb_member_id(node, m), node->self)) c->own = c->count;
    }
    return fits && c->count != 0;
}

static void cut_begin(fb_node *node, uint32_t space)
{
    fb_space_areas *areas = areas_of(node, space);
    if (!fb_space_exists(node, space) || areas->cutting || areas->reports == 0) return;
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, cut_run, 0, 0);
    if (op == NULL) {
        fb_cut_due(node, space);
        return;
    }
    if (!ask_reports(node, op, space)) {
        /* More than 64 members, or none: nothing is folded, and no promise stands. */
        fb_op_abandon(node, op);
        areas->settled = false;
        areas->cut_known = areas->may_report = true;
        return;
    }
    areas->cutting = true;
    fb_area_pin(node, areas->reports - 1);
    fb_op_issue(node, op);
}

static void on_cut(fb_node *node, uint32_t space)
{
    if (areas_of(node, space)->promise_asked) {
        fb_report_promise(node, space); /* there may be nothing to read by now */
    } else {
        cut_begin(node, space);
    }
}

/* What this node said last, also in an earlier life. */
static void recall(fb_space_areas *areas, fb_span hex)
{
    uint8_t content[FB_REPORT_BYTES_MAX];
    if (hex.len > 2 * sizeof content || !fb_hex_parse(hex, content, hex.len / 2)) return;
    content_hash(fb_span_of(content, hex.len / 2), areas->reported);
}

bool fb_report_each(const fb_node *node, fb_span hex, fb_report_entry each, void *user)
{
    uint8_t bytes[ENTRY_BYTES];
    size_t at = 0;
    while (at < hex.len) {
        if (hex.len - at < 2 * (size_t)AREA_BYTES ||
            !fb_hex_parse(fb_span_of(hex.p + at, 2 * (size_t)AREA_BYTES), bytes, AREA_BYTES)) {
            return false;
        }
        at += 2 * (size_t)AREA_BYTES;
        fb_id area;
        memcpy(area.b, bytes, 16);
        size_t count = (size_t)bytes[16] << 8 | bytes[17];
        if (hex.len - at < 2 * ENTRY_BYTES * count) return false;
        for (size_t i = 0; i < count; i++, at += 2 * (size_t)ENTRY_BYTES) {
            fb_id peer;
            if (!fb_hex_parse(fb_span_of(hex.p + at, 2 * (size_t)ENTRY_BYTES), bytes,
                              ENTRY_BYTES)) {
                return false;
            }
            memcpy(peer.b, bytes, 16);
            if (!each(node, user, area, peer, fb_load_be64(bytes + 16), fb_load_be64(bytes + 24))) {
                return false;
            }
        }
    }
    return true;
}

/* Closed lives of this node's own report, as they were asked for. */
typedef struct closed_lives {
    const fb_op *op;
    fb_span lives; /* id area, id node, u64 incarnation each */
    uint32_t first;
} closed_lives;

/* Is it durable here? user: closed lives that are known, NULL: none is, and what memory does not
 * tell counts as not here. Incarnations have no order: another life of the node says nothing. */
static bool is_here(const fb_node *node, void *user, fb_id area, fb_id peer, uint64_t incarnation,
                    uint64_t batch)
{
    const closed_lives *closed = user;
    uint32_t index = fb_area_find(node, area);
    if (index == FB_NONE) return false;
    for (uint32_t at = fb_area_get(node, index)->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (v->closed || v->incarnation != incarnation || !fb_id_equal(v->node, peer)) continue;
        return v->durable_batch >= batch;
    }
    uint8_t want[LIFE_BYTES];
    life_write(want, area, peer, incarnation);
    for (size_t at = 0; closed != NULL && at < closed->lives.len; at += LIFE_BYTES) {
        if (memcmp(closed->lives.p + at, want, LIFE_BYTES) != 0) continue;
        fb_read_entry entry;
        fb_life life;
        return fb_op_value(node, closed->op, closed->first + (uint32_t)(at / LIFE_BYTES), &entry) &&
               fb_life_decode(entry.value, &life) == FB_OK && life.batch >= batch;
    }
    return false;
}

/* Those that memory does not tell of, as far as there is room. */
static bool collect_life(const fb_node *node, void *user, fb_id area, fb_id peer,
                         uint64_t incarnation, uint64_t batch)
{
    fb_writer *w = user;
    (void)batch;
    uint32_t index = fb_area_find(node, area);
    if (index == FB_NONE || fb_vector_find(node, index, peer, incarnation) != FB_NONE) return true;
    if (w->cap - w->at < LIFE_BYTES) return true;
    life_write(w->p + w->at, area, peer, incarnation);
    w->at += LIFE_BYTES;
    return true;
}

/* The lives of this node's own report that another one took up are read as well, as it counts for
 * promises whether all of the report is here. False: there are none. */
static bool ask_lives(fb_node *node, fb_op *op, cut_context *c, fb_span own)
{
    uint8_t lives[FB_REPORT_LIVES_MAX * LIFE_BYTES];
    fb_writer w = fb_writer_of(lives, sizeof lives);
    (void)fb_report_each(node, own, collect_life, &w);
    c->lives_asked = true;
    if (w.at == 0) return false;
    c->first_life = fb_op_items(node, op);
    c->lives = fb_op_keep(op, fb_writer_span(&w));
    size_t answers = 0;
    for (size_t at = 0; at < c->lives.len; at += LIFE_BYTES) {
        fb_reader r = fb_reader_of(fb_span_of(c->lives.p + at, LIFE_BYTES));
        uint32_t local = fb_area_get(node, fb_area_find(node, fb_read_id(&r)))->local;
        fb_id peer = fb_read_id(&r);
        uint8_t key[FB_VECTOR_KEY_BYTES];
        answers += FB_VECTOR_VALUE_BYTES + FB_READ_ITEM_HEAD;
        if (!fb_op_read_fits(op, 1, sizeof key + answers)) {
            c->lives.len = at; /* of the others nothing is known */
            break;
        }
        fb_op_read_key(op, fb_key_vector(key, true, local, peer, fb_read_u64(&r)),
                       FB_VECTOR_VALUE_BYTES);
    }
    return c->lives.len != 0;
}

/* All statements that are here are named in the report. */
bool fb_report_names_statements(const fb_node *node, uint32_t space, fb_span hex)
{
    const fb_area *own = fb_area_get(node, areas_of(node, space)->own - 1);
    for (uint32_t at = own->entries; at != 0;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        at = v->next;
        if (v->closed || v->batch == 0) continue;
        if (held(hex, own->id, v->node, v->incarnation, NULL) < v->batch) return false;
    }
    return true;
}

/* Claims to reports of this node that are not here: it said more than it knows of. */
static bool lacks_own(const fb_node *node, uint32_t reports)
{
    for (uint32_t at = fb_area_get(node, reports)->wants; at != 0;) {
        const fb_wanted *wanted = fb_wanted_get(node, at - 1);
        at = wanted->next;
        if (fb_id_equal(wanted->node, node->self)) return true;
    }
    return false;
}

/* May this node state cuts? own: it has a report. */
static fb_status promise(const fb_node *node, uint32_t space, bool own)
{
    const fb_space_areas *areas = areas_of(node, space);
    if (areas->reports == 0) return FB_OK; /* nobody has reported, so nothing is folded */
    if (lacks_own(node, areas->reports - 1)) return FB_ERR_BEHIND;
    if (!own) return fb_space_is_creator(node, space) ? FB_OK : FB_ERR_BEHIND;
    return areas->behind ? FB_ERR_BEHIND : FB_OK;
}

static void take_cut(fb_node *node, const fb_span *reports, uint32_t count, uint32_t own,
                     uint32_t index)
{
    const fb_area *area = fb_area_get(node, index);
    bool rose = false;
    (void)own; /* of a planted bug */
    for (uint32_t e = area->entries; e != 0;) {
        fb_vector *v = fb_vector_get(node, e - 1);
        e = v->next;
        uint64_t cut = v->durable_batch;
        for (uint32_t i = 0; i < count && cut > 0; i++) {
            if (MUTANT(CUT_OF_ONE, false, i + 1 != own)) continue;
            cut = fb_min_u64(cut, held(reports[i], area->id, v->node, v->incarnation, NULL));
        }
        if (cut <= v->cut) continue;
        rose = true;
        v->cut = cut;
    }
    if (rose) fb_fold_due(node, index);
}

/* What was asked while the reports were read, one of each member. */
static void answer(fb_node *node, const fb_op *op, const cut_context *c, const fb_span *reports,
                   const bool *known)
{
    uint32_t space = c->space, count = c->count, own = c->own;
    closed_lives closed = {op, c->lives, c->first_life};
    fb_space_areas *areas = areas_of(node, space);
    bool has_own = own != 0 && known[own - 1];
    areas->has_reported = areas->has_reported || has_own;
    bool may = fb_space_is_creator(node, space) || has_own;
    for (uint32_t i = 0; i < count && !may; i++) {
        may = known[i] && i + 1 != own && fb_report_names_statements(node, space, reports[i]) &&
              fb_report_each(node, reports[i], is_here, NULL);
    }
    areas->may_report = may;
    areas->behind = has_own && !fb_report_each(node, reports[own - 1], is_here, &closed);
    if (areas->report_asked) {
        areas->report_asked = false;
        bool now = may && !(areas->behind && catches_up(node, space));
        report_later(node, space, now ? 0 : node->options.timing.report_ns);
    }
    if (!areas->promise_asked) return;
    areas->promise_asked = false;
    fb_cut_promised(node, space, promise(node, space, has_own));
}

void fb_report_promise(fb_node *node, uint32_t space)
{
    fb_space_areas *areas = areas_of(node, space);
    if (areas->reports == 0 || fb_report_members(node, space) > FB_CUT_MEMBERS_MAX) {
        areas->promise_asked = false;
        fb_cut_promised(node, space, FB_OK); /* nothing is folded */
        return;
    }
    areas->promise_asked = true;
    if (!areas->cutting) cut_begin(node, space);
}

bool fb_report_is_awaited(const fb_node *node, uint32_t space)
{
    const fb_space_areas *areas = areas_of(node, space);
    return areas->reports != 0 && !areas->cut_known;
}

/* All that are counted have a report that can be read: the second round asks for those that are
 * stored apart. False: nothing is to be asked. */
static bool ask_values(fb_node *node, fb_op *op, cut_context *c, bool *whole)
{
    uint32_t apart = 0;
    *whole = fb_report_members(node, c->space) == c->count;
    for (uint32_t i = 0; i < c->count && *whole; i++) {
        fb_sibling sibling;
        /* Somebody else is approved than was when the records were asked for. */
        *whole = fb_member_status_of(node, c->member[i]) == FB_MEMBER_APPROVED;
        if (!*whole || !fb_report_sibling(node, op, i, &sibling) || !sibling.apart) continue;
        *whole =
            fb_report_read_apart(node, op, c->space, fb_member_id(node, c->member[i]), &sibling);
        c->apart[i] = (uint8_t)++apart;
    }
    return apart > 0;
}

/* The report of one member, when both rounds are there. False: it is not known. */
static bool report_of(const fb_node *node, const fb_op *op, const cut_context *c, uint32_t member,
                      fb_span *out)
{
    fb_sibling sibling;
    fb_read_entry entry;
    if (!fb_report_sibling(node, op, member, &sibling)) return false;
    if (c->apart[member] != 0) {
        /* It may have been replaced between the rounds. */
        if (!fb_op_value(node, op, c->count + c->apart[member] - 1, &entry) ||
            entry.value.len != entry.value_len) {
            return false;
        }
        sibling.value = entry.value;
    }
    *out = fb_report_hex(sibling.value);
    return true;
}

static void cut_run(fb_node *node, fb_op *op)
{
    cut_context *c = fb_op_context(op);
    fb_space_areas *areas = areas_of(node, c->space);
    bool whole = fb_op_status(op) == FB_OK;
    if (whole && fb_op_round(op) == 1 && ask_values(node, op, c, &whole) && whole) {
        fb_op_issue(node, op);
        return;
    }
    fb_span reports[FB_CUT_MEMBERS_MAX] = {{NULL, 0}};
    bool known[FB_CUT_MEMBERS_MAX] = {false};
    if (whole && !c->lives_asked && c->own != 0 &&
        report_of(node, op, c, c->own - 1, &reports[0]) && ask_lives(node, op, c, reports[0])) {
        fb_op_issue(node, op);
        return;
    }
    bool all = whole, settled = true;
    for (uint32_t i = 0; i < c->count && whole; i++) {
        known[i] = report_of(node, op, c, i, &reports[i]);
        if (known[i] && i + 1 == c->own && !areas->reporting) recall(areas, reports[i]);
        bool names = known[i] && fb_report_names_statements(node, c->space, reports[i]);
        if (MUTANT(CUT_OF_ONE, false, i + 1 != c->own)) continue;
        all = all && known[i];
        settled = settled && names;
    }
    areas->settled = all && settled;
    for (uint32_t at = areas->first; at != 0 && areas->settled;) {
        uint32_t index = at - 1;
        at = fb_area_get(node, index)->next;
        if (fb_report_is_about(fb_area_get(node, index)))
            take_cut(node, reports, c->count, c->own, index);
    }
    areas->cutting = false;
    areas->cut_known = areas->cut_known || whole;
    if (whole) answer(node, op, c, reports, known);
    if (!whole && (areas->promise_asked || areas->report_asked || !areas->cut_known)) {
        fb_cut_due(node, c->space);
    }
    uint32_t index = areas->reports - 1;
    fb_fold_due(node, index);
    fb_area_unpin(node, index);
}

/* Gaps. */

/* Up to which batch a member has said to hold a life. One that another life of its node took up is
 * not named, and what a full report leaves out is not known: that is believed. */
static uint64_t said_to_hold(const fb_node *node, uint32_t space, fb_span hex, fb_id area,
                             const fb_folded *gap)
{
    if (hex.len / 2 + AREA_BYTES + ENTRY_BYTES > content_max(node, space)) return UINT64_MAX;
    bool other = false;
    uint64_t batch = held(hex, area, gap->node, gap->incarnation, &other);
    return batch == 0 && other ? UINT64_MAX : batch;
}

/* Of those whose report is known here, but for this node's own: it may be of a store that is no
 * more. A new member has said nothing yet, and what was folded before it came stays folded. */
static void gap_run(fb_node *node, fb_op *op)
{
    cut_context *c = fb_op_context(op);
    fb_fetch *fetch = &node->database->fetches[c->fetch];
    FB_ASSERT(fetch->used && fetch->serial == c->serial);
    bool whole = fb_op_status(op) == FB_OK, any = false;
    if (whole && fb_op_round(op) == 1 && ask_values(node, op, c, &whole) && whole) {
        fb_op_issue(node, op);
        return;
    }
    fb_folded *gap = &fetch->folded;
    fb_id area = fb_area_get(node, fetch->area)->id;
    gap->upto = UINT64_MAX;
    for (uint32_t i = 0; i < c->count && whole; i++) {
        fb_span report;
        if (i + 1 == c->own || !report_of(node, op, c, i, &report)) continue;
        any = true;
        gap->upto = fb_min_u64(gap->upto, said_to_hold(node, c->space, report, area, gap));
    }
    gap->judged = any;
    uint32_t slot = c->fetch;
    fb_area_unpin(node, areas_of(node, c->space)->reports - 1);
    /* Nobody's report is here yet: they come first. */
    fb_fetch_judged(node, slot, any ? FB_OK : FB_ERR_BUSY);
}

bool fb_report_judge(fb_node *node, uint32_t slot)
{
    fb_fetch *fetch = &node->database->fetches[slot];
    const fb_area *area = fb_area_get(node, fetch->area);
    const fb_space_areas *areas = areas_of(node, area->space);
    /* Of reports the last one is all there is. Of more than 64 members nothing is known. */
    if (area->kind == FB_AREA_REPORTS ||
        fb_report_members(node, area->space) > FB_CUT_MEMBERS_MAX) {
        fetch->folded.judged = true;
        fetch->folded.upto = UINT64_MAX;
        return false;
    }
    if (areas->reports == 0) return false;
    fb_op *op = fb_op_begin(node, FB_OP_READER, gap_run, 0, 0);
    if (op == NULL) return false;
    if (!ask_reports(node, op, area->space)) {
        fb_op_abandon(node, op);
        return false;
    }
    cut_context *c = fb_op_context(op);
    c->fetch = slot;
    c->serial = fetch->serial;
    fb_area_pin(node, areas->reports - 1);
    fb_op_issue(node, op);
    return true;
}

void fb_reports_started(fb_node *node)
{
    for (uint32_t i = 0; i < fb_space_capacity(node); i++) {
        if (!fb_space_exists(node, i)) continue;
        if (areas_of(node, i)->reports != 0) fb_cut_due(node, i);
    }
    for (uint32_t i = 0; i < node->options.sizes.areas; i++) {
        /* What this life has not said yet: the same report again changes nothing for the others. */
        const fb_area *area = fb_area_get(node, i);
        if (is_reported(area) && area->entries != 0) fb_report_due(node, i);
    }
}

void fb_reports_reset(fb_node *node)
{
    for (uint32_t i = 0; i < node->options.sizes.spaces; i++) {
        fb_timer_init(&areas_of(node, i)->report, FB_TIMER_REPORT, i);
        fb_timer_init(&areas_of(node, i)->cut, FB_TIMER_CUT, i);
    }
}

void fb_reports_layout(fb_node *node)
{
    fb_timer_register(node, FB_TIMER_REPORT, on_report, node->options.sizes.spaces);
    fb_timer_register(node, FB_TIMER_CUT, on_cut, node->options.sizes.spaces);
}
