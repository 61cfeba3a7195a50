/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/doctor and its item: SPACE, SPACE/COLLECTION or SPACE/COLLECTION/ID. The node is asked
 * one thing after the other; what it answers is kept until all of it is there. */
#include <stdio.h>
#include <stdlib.h>

#include "io/clock.h"
#include "protocol/base/assert.h"
#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"
#include "runtime/api/doctor.h"
#include "runtime/api/handlers.h"
#include "runtime/api/held_back.h"
#include "runtime/api/request_codec.h"
#include "runtime/command/record_arguments.h"

typedef struct doctor {
    fb_text peers, members, messages, areas, record;
    fb_error record_error;
} doctor;

static void doctor_end(fb_exchange *x)
{
    doctor *d = x->own;
    fb_text *texts[] = {&d->peers, &d->members, &d->messages, &d->areas, &d->record};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) fb_text_free(texts[i]);
    free(d);
}

static fb_span kept(const fb_text *text)
{
    return fb_span_of(text->p, text->len);
}

/* Peers of the space: what is known of one, and the sentence that it comes to. */

/* The row of PEER_LIST of this member in this space: one with a link before one without, and an
 * address at which nobody has answered yet, as it may be this member's, only when it has none. */
static bool peer_of(fb_span peers, fb_id space, fb_id node, fb_peer_row *out)
{
    fb_reader r = fb_reader_of(peers);
    uint16_t count = fb_read_u16(&r);
    bool found = false, own = false;
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_peer_row row = fb_peer_row_next(&r);
        bool is_own = fb_id_equal(row.node, node), unknown = fb_id_is_zero(row.node);
        if (r.failed || !fb_id_equal(row.space, space) || !(is_own || unknown)) continue;
        if (!found || (is_own && (!own || row.link != 0))) *out = row;
        own = own || is_own;
        found = true;
    }
    return found;
}

typedef struct messages {
    uint64_t delivered, dropped, refused;
    fb_error reason; /* the one that most were refused for */
} messages;

static messages messages_of(fb_span answer, fb_id space, fb_id node)
{
    messages m = {0};
    fb_reader r = fb_reader_of(answer);
    fb_read_u8(&r);
    uint16_t count = fb_read_u16(&r);
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        bool this_one = fb_id_equal(fb_read_id(&r), space);
        this_one = fb_id_equal(fb_read_id(&r), node) && this_one;
        fb_read_bytes(&r, 1 + 8);
        uint64_t delivered = fb_read_u64(&r);
        fb_read_bytes(&r, 16);
        uint64_t dropped = fb_read_u64(&r), most = 0;
        if (this_one) m.delivered = delivered, m.dropped = dropped;
        uint8_t reasons = fb_read_u8(&r);
        for (uint8_t k = 0; k < reasons && !r.failed; k++) {
            uint16_t reason = fb_read_u16(&r);
            uint64_t times = fb_read_u64(&r);
            if (!this_one) continue;
            m.refused += times;
            if (times > most) m.reason = (fb_error)reason;
            if (times > most) most = times;
        }
    }
    return m;
}

static void verdict(fb_text *out, uint8_t status, const fb_peer_row *row, const messages *m)
{
    char detail[320];
    fb_verdict judged = FB_VERDICT_OK;
    const char *remedy = NULL;
    if (status == 2) {
        judged = FB_VERDICT_WARNING;
        snprintf(detail, sizeof detail, "it asked to join, and nobody has approved it");
        remedy = "space approve SPACE NODE";
    } else if (status == 3) {
        snprintf(detail, sizeof detail, "it was revoked: nothing goes to it or comes from it");
    } else if (row == NULL) {
        judged = FB_VERDICT_FAILED;
        snprintf(detail, sizeof detail, "no link, and no address to dial it at");
        remedy = "peers add HOST:PORT, or start it so that it dials";
    } else if (row->state != 4) {
        judged = FB_VERDICT_FAILED;
        snprintf(detail, sizeof detail, "no link; %s%.*s, the last try: %s",
                 fb_id_is_zero(row->node) ? "it may be the one at " : "it is dialled at ",
                 (int)row->address.len, (const char *)row->address.p,
                 row->last == FB_OK ? "under way" : fb_error_text(row->last));
        remedy = row->last == FB_ERR_UNREACHABLE
                     ? "start it, or give its address of now: peers add; it is dialled by itself"
                     : "it is dialled again by itself; the log of the other side says more";
    } else if (m->refused > 0) {
        judged = FB_VERDICT_WARNING;
        snprintf(detail, sizeof detail,
                 "linked; %llu of its messages were refused, most of them: %s (%s)",
                 (unsigned long long)m->refused, fb_error_name(m->reason),
                 fb_error_text(m->reason));
        remedy = "what it announced is found again by comparing; look at its clock and its version";
    } else {
        snprintf(detail, sizeof detail, "linked; what is written here goes to it as it comes");
    }
    fb_json_member(out, "status", fb_verdict_name(judged));
    fb_json_member(out, "detail", detail);
    if (remedy != NULL) fb_json_member(out, "remedy", remedy);
}

static void peers_show(fb_exchange *x)
{
    doctor *d = x->own;
    fb_text *out = &x->out;
    fb_id self = fb_api_options_of(x->api)->node->keys->node_id;
    fb_reader r = fb_reader_of(kept(&d->members));
    uint16_t count = fb_read_u16(&r);
    uint64_t now = fb_clock_mono_ns();
    fb_json_open(out, "peers", '[');
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_id node = fb_read_id(&r);
        fb_read_b32(&r);
        uint8_t status = fb_read_u8(&r), role = fb_read_u8(&r);
        fb_peer_row row = {0};
        if (r.failed || fb_id_equal(node, self)) continue;
        bool known = peer_of(kept(&d->peers), x->space, node, &row);
        messages m = messages_of(kept(&d->messages), x->space, node);
        fb_json_open(out, NULL, '{');
        fb_json_hex(out, "node_id", node.b, sizeof node.b);
        verdict(out, status, known ? &row : NULL, &m);
        fb_json_member(out, "membership", fb_status_name(status));
        fb_json_member(out, "role", fb_role_name(role));
        if (known) {
            fb_json_span(out, "address", row.address);
            fb_json_bool(out, "linked", row.state == 4);
            fb_json_error(out, "last_error", row.last);
            fb_json_number(out, "clock_offset_ms", row.offset_us / 1000);
            bool heard = row.heard_ns != 0 && row.heard_ns <= now;
            fb_json_number(out, "heard_ms_ago",
                           heard ? (int64_t)((now - row.heard_ns) / 1000000) : -1);
        }
        fb_json_number(out, "messages_delivered", (int64_t)m.delivered);
        fb_json_number(out, "messages_refused", (int64_t)m.refused);
        fb_json_number(out, "messages_dropped", (int64_t)m.dropped);
        fb_json_close(out, '}');
    }
    fb_json_close(out, ']');
}

/* The item here. */

/* What this node has of each writer in the collection: on a node that has the same, the root is the
 * same. */
static void area_show(fb_exchange *x)
{
    const doctor *d = x->own;
    fb_text *out = &x->out;
    fb_id wanted;
    bool by_id = fb_uuid_parse_v7(fb_span_text(x->args[1]), &wanted), found = false;
    fb_reader r = fb_reader_of(kept(&d->areas));
    while (fb_reader_left(&r) != 0 && !r.failed) {
        fb_id area = fb_read_id(&r);
        uint8_t kind = fb_read_u8(&r);
        fb_span name = fb_read_span16(&r);
        fb_id root = fb_read_id(&r);
        uint32_t entries = fb_read_u32(&r);
        bool this_one = kind == 1 && (by_id ? fb_id_equal(area, wanted)
                                            : fb_span_equal(name, fb_span_text(x->args[1])));
        if (this_one) {
            found = true;
            fb_json_uuid(out, "area_id", area);
            fb_json_hex(out, "root", root.b, sizeof root.b);
            fb_json_open(out, "has", '[');
        }
        bool too_large = entries == FB_AREA_TOO_LARGE;
        if (this_one && too_large) {
            fb_json_close(out, ']');
            fb_json_member(out, "detail", "more writers than an answer holds");
            continue;
        }
        for (uint32_t k = 0; k < entries && !too_large && !r.failed; k++) {
            fb_id node = fb_read_id(&r);
            uint64_t incarnation = fb_read_u64(&r), batch = fb_read_u64(&r);
            fb_read_u64(&r);
            if (!this_one) continue;
            fb_json_open(out, NULL, '{');
            fb_json_hex(out, "node_id", node.b, sizeof node.b);
            fb_json_hex_u64(out, "incarnation", incarnation);
            fb_json_number(out, "batch", (int64_t)batch);
            fb_json_close(out, '}');
        }
        if (this_one) fb_json_close(out, ']');
    }
    if (!found) {
        fb_json_member(out, "detail", "nothing of this collection has come here yet");
    }
}

/* Who wrote the values that are shown. */
static void record_show(fb_exchange *x)
{
    const doctor *d = x->own;
    fb_text *out = &x->out;
    bool here = d->record_error == FB_OK;
    fb_json_bool(out, "here", here);
    if (!here) {
        fb_json_member(out, "detail", fb_error_text(d->record_error));
        return;
    }
    fb_reader r = fb_reader_of(kept(&d->record));
    fb_read_id(&r);
    fb_id etag = fb_read_id(&r);
    fb_json_hex(out, "etag", etag.b, sizeof etag.b);
    uint16_t fields = fb_read_u16(&r);
    fb_json_open(out, "written_by", '{');
    for (uint16_t i = 0; i < fields && !r.failed; i++) {
        fb_span name = fb_read_span16(&r);
        uint16_t siblings = fb_read_u16(&r);
        fb_json_element(out);
        fb_json_string(out, name);
        fb_text_put(out, ":[");
        for (uint16_t k = 0; k < siblings && !r.failed; k++) {
            fb_id node = fb_read_id(&r);
            uint64_t incarnation = fb_read_u64(&r), sequence = fb_read_u64(&r);
            int64_t stamp = (int64_t)fb_read_u64(&r);
            fb_read_span32(&r);
            fb_json_open(out, NULL, '{');
            fb_json_hex(out, "node_id", node.b, sizeof node.b);
            fb_json_hex_u64(out, "incarnation", incarnation);
            fb_json_u64_string(out, "sequence", sequence);
            fb_json_time(out, "stamp", stamp);
            fb_json_close(out, '}');
        }
        fb_text_put(out, "]");
    }
    fb_json_close(out, '}');
}

static void item_show(fb_exchange *x)
{
    fb_json_open(&x->out, "item", '{');
    fb_json_uuid(&x->out, "space_id", x->space);
    if (x->args[1] != NULL) {
        fb_json_member(&x->out, "collection", x->args[1]);
        area_show(x);
    }
    if (x->args[2] != NULL) {
        fb_json_open(&x->out, "record", '{');
        fb_json_member(&x->out, "id", x->args[2]);
        record_show(x);
        fb_json_close(&x->out, '}');
    }
    peers_show(x);
    fb_json_close(&x->out, '}');
}

/* Asking. */

static void finish(fb_exchange *x)
{
    doctor *d = x->own;
    fb_verdict worst = FB_VERDICT_OK;
    fb_json_open(&x->out, NULL, '{');
    fb_json_open(&x->out, "checks", '[');
    fb_doctor_node(x, &worst);
    if (x->held_back != NULL) {
        fb_doctor_spaces(&x->out, &worst, kept(&x->held_back->listed), kept(&d->peers));
        fb_doctor_held_back(&x->out, &worst, x->held_back, kept(&d->peers),
                            fb_api_options_of(x->api)->node->keys->node_id);
    }
    fb_json_close(&x->out, ']');
    if (x->args[0] != NULL) item_show(x);
    fb_json_member(&x->out, "status", fb_verdict_name(worst));
    fb_json_close(&x->out, '}');
    fb_exchange_answer(x, 200);
}

static void keep(fb_text *text, fb_span answer)
{
    fb_text_bytes(text, answer.p, answer.len);
}

static void record_told(fb_exchange *x, fb_error error, fb_span answer)
{
    doctor *d = x->own;
    if (error == FB_OK) keep(&d->record, answer);
    d->record_error = error;
    finish(x);
}

static void areas_told(fb_exchange *x, fb_error error, fb_span answer);

static void areas_ask(fb_exchange *x, fb_id after)
{
    uint8_t room[34];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_write_u16(&w, UINT16_MAX);
    fb_write_id(&w, after);
    fb_exchange_ask(x, FB_VERB_AREAS, 0, fb_writer_span(&w), areas_told);
}

/* The last area of a page; false when there is none on it. */
static bool areas_last(fb_span answer, fb_id *last)
{
    fb_reader r = fb_reader_of(answer);
    uint16_t count = fb_read_u16(&r);
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        *last = fb_read_id(&r);
        fb_read_u8(&r);
        fb_read_span16(&r);
        fb_read_bytes(&r, 16);
        uint32_t entries = fb_read_u32(&r);
        if (entries != FB_AREA_TOO_LARGE) fb_read_bytes(&r, (size_t)entries * 40);
    }
    return count != 0 && !r.failed;
}

static void areas_told(fb_exchange *x, fb_error error, fb_span answer)
{
    doctor *d = x->own;
    if (fb_exchange_refused(x, error)) return;
    fb_id last;
    if (areas_last(answer, &last)) {
        keep(&d->areas, fb_span_of(answer.p + 2, answer.len - 2));
        areas_ask(x, last);
        return;
    }
    if (x->args[2] == NULL) {
        finish(x);
        return;
    }
    uint8_t room[16 + 3 + FB_COLLECTION_NAME_BYTES_MAX + 16];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_collection_write(&w, x->args[1]);
    fb_write_id(&w, x->record);
    fb_exchange_ask(x, FB_VERB_RECORD_GET, 0, fb_writer_span(&w), record_told);
}

static void messages_told(fb_exchange *x, fb_error error, fb_span answer)
{
    doctor *d = x->own;
    if (fb_exchange_refused(x, error)) return;
    keep(&d->messages, answer);
    if (x->args[1] == NULL) {
        finish(x);
        return;
    }
    areas_ask(x, (fb_id){{0}});
}

static void members_told(fb_exchange *x, fb_error error, fb_span answer)
{
    doctor *d = x->own;
    if (fb_exchange_refused(x, error)) return;
    keep(&d->members, answer);
    fb_exchange_ask(x, FB_VERB_PEER_MESSAGES, 0, (fb_span){NULL, 0}, messages_told);
}

static void about_space(fb_exchange *x)
{
    fb_exchange_ask(x, FB_VERB_SPACE_MEMBERS, 0, fb_span_of(x->space.b, sizeof x->space.b),
                    members_told);
}

static void peers_told(fb_exchange *x, fb_error error, fb_span answer)
{
    doctor *d = x->own;
    if (fb_exchange_refused(x, error)) return;
    keep(&d->peers, answer);
    if (x->args[0] == NULL) {
        finish(x);
    } else {
        fb_exchange_with_space(x, about_space);
    }
}

static void spaces_told(fb_exchange *x)
{
    fb_exchange_ask(x, FB_VERB_PEER_LIST, 0, (fb_span){NULL, 0}, peers_told);
}

/* SPACE, SPACE/COLLECTION or SPACE/COLLECTION/ID into args; false after it answered. A name with a
 * slash in it is said by its id. */
static bool item_read(fb_exchange *x, const char *item)
{
    const char *wrong = NULL;
    for (int i = 0; i < FB_EXCHANGE_ARGS && item != NULL; i++) {
        size_t len = i + 1 < FB_EXCHANGE_ARGS ? strcspn(item, "/") : strlen(item);
        if (len == 0) wrong = "SPACE, SPACE/COLLECTION or SPACE/COLLECTION/ID is expected";
        x->args[i] = strndup(item, len);
        FB_ASSERT(x->args[i] != NULL);
        item = item[len] == '/' ? item + len + 1 : NULL;
    }
    if (wrong == NULL && x->args[2] != NULL &&
        !fb_uuid_parse_v7(fb_span_text(x->args[2]), &x->record)) {
        wrong = "the id of a record is a UUID of version 7 in lowercase";
    }
    char detail[128];
    snprintf(detail, sizeof detail, "item: %s", wrong != NULL ? wrong : "");
    if (wrong != NULL) fb_exchange_fail(x, FB_ERR_ARGUMENT, detail);
    return wrong == NULL && (x->args[1] == NULL || fb_collection_check(x));
}

void fb_get_doctor(fb_exchange *x)
{
    const char *item = fb_exchange_query(x, "item");
    if (item != NULL && !item_read(x, item)) return;
    x->own = calloc(1, sizeof(doctor));
    FB_ASSERT(x->own != NULL);
    x->own_end = doctor_end;
    fb_loop_stats stats;
    fb_loop_stats_get(fb_api_options_of(x->api)->loop, &stats);
    if (stats.running) {
        fb_held_back_ask(x, spaces_told);
    } else if (item == NULL) {
        finish(x); /* what asks nobody can be told all the same */
    } else {
        fb_exchange_fail(x, FB_ERR_AGAIN, "the node is starting; without an item doctor says why");
    }
}
