/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/spaces/{space}/verify: does every member hold the same of each collection? Each is asked
 * first which collections it has, as there may be some that are not here. Then the node is asked
 * about one pair of member and collection after the other, so that a large space costs it no more
 * at once than a small one. */
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"
#include "protocol/database/database.h"
#include "runtime/api/handlers.h"
#include "runtime/api/request_codec.h"

#define MEMBER_APPROVED 1u

/* From best to worst. INCOMPLETE: all that could be asked is the same, and not all could be. */
typedef enum outcome { SAME, INCOMPLETE, UNSURE, BEHIND, DIFFERS, OUTCOMES } outcome;

static const char *const outcome_names[OUTCOMES] = {"same", "incomplete", "unsure", "behind",
                                                    "differs"};

typedef struct collection {
    fb_id id;
    fb_text name;
} collection;

typedef struct verify {
    fb_id *members;
    size_t member_count, member_at;
    collection *collections;
    size_t collection_count, collection_at;
    size_t reached; /* members that answered */
    outcome worst, peer;
    fb_id listed; /* the last collection that the member at hand has named */
    size_t named; /* how many it has */
} verify;

static void verify_end(fb_exchange *x)
{
    verify *v = x->own;
    for (size_t i = 0; i < v->collection_count; i++) fb_text_free(&v->collections[i].name);
    free(v->collections);
    free(v->members);
    free(v);
}

static void *grown(void *array, size_t count, size_t each)
{
    /* Doubled whenever it is full: at powers of two. */
    if ((count & (count - 1)) != 0) return array;
    void *room = realloc(array, (count == 0 ? 1 : 2 * count) * each);
    FB_ASSERT(room != NULL);
    return room;
}

static void next(fb_exchange *x);
static void member_next(fb_exchange *x);
static void list_ask(fb_exchange *x);

static void peer_close(fb_exchange *x, const char *status)
{
    verify *v = x->own;
    fb_json_close(&x->out, ']');
    fb_json_member(&x->out, "status", status);
    fb_json_close(&x->out, '}');
    v->member_at++;
    v->collection_at = 0;
    v->peer = SAME;
}

static void judged(fb_exchange *x, outcome what)
{
    verify *v = x->own;
    if (what > v->peer) v->peer = what;
    if (what > v->worst) v->worst = what;
    fb_json_member(&x->out, "status", outcome_names[what]);
}

static bool answer_show(fb_exchange *x, fb_span answer)
{
    static const outcome outcomes[] = {
        [FB_VERIFY_SAME] = SAME,
        [FB_VERIFY_DIFFERS] = DIFFERS,
        [FB_VERIFY_BEHIND] = BEHIND,
        [FB_VERIFY_UNSURE] = UNSURE,
    };
    fb_text *out = &x->out;
    fb_reader r = fb_reader_of(answer);
    uint8_t state = fb_read_u8(&r);
    fb_id here = fb_read_id(&r), there = fb_read_id(&r);
    bool whole = fb_read_u8(&r) != 0;
    uint64_t differ = fb_read_u64(&r);
    uint16_t count = fb_read_u16(&r);
    if (r.failed || state >= sizeof outcomes / sizeof outcomes[0]) return false;
    judged(x, outcomes[state]);
    fb_json_hex(out, "fingerprint", here.b, sizeof here.b);
    fb_json_hex(out, "fingerprint_there", there.b, sizeof there.b);
    if (outcomes[state] != DIFFERS) return fb_reader_done(&r);
    fb_json_bool(out, "all_found", whole);
    fb_json_number(out, "records_differ", (int64_t)differ);
    fb_json_open(out, "records", '[');
    for (uint16_t i = 0; i < count; i++) {
        char id[FB_UUID_TEXT_LEN];
        fb_uuid_format(fb_read_id(&r), id);
        fb_json_element(out);
        fb_json_string(out, fb_span_of(id, sizeof id));
    }
    fb_json_close(out, ']');
    return fb_reader_done(&r);
}

static void pair_told(fb_exchange *x, fb_error error, fb_span answer)
{
    verify *v = x->own;
    if (error == FB_ERR_UNREACHABLE || error == FB_ERR_NOT_FOUND) {
        /* What was not compared of one that went on the way may differ. */
        if (v->worst < UNSURE) v->worst = UNSURE;
        peer_close(x, "unreachable");
        member_next(x);
        return;
    }
    fb_text *out = &x->out;
    const collection *c = &v->collections[v->collection_at];
    fb_json_open(out, NULL, '{');
    fb_json_span(out, "collection", fb_span_of(c->name.p, c->name.len));
    if (error == FB_ERR_AREA_UNKNOWN) {
        judged(x, BEHIND); /* nothing of it has come there */
        fb_json_member(out, "missing", "there");
    } else if (error != FB_OK) {
        judged(x, UNSURE);
        fb_json_error(out, "error", error);
    } else if (!answer_show(x, answer)) {
        fb_exchange_finish(x, 200, false);
        return;
    }
    fb_json_close(out, '}');
    v->collection_at++;
    next(x);
}

static void finish(fb_exchange *x)
{
    const verify *v = x->own;
    bool alone = v->reached == 0 && v->member_count > 0;
    fb_json_close(&x->out, ']');
    fb_json_member(&x->out, "status", alone ? "unreachable" : outcome_names[v->worst]);
    fb_exchange_finish(x, 200, true);
}

static bool is_here(const verify *v, fb_id id)
{
    for (size_t i = 0; i < v->collection_count; i++) {
        if (fb_id_equal(v->collections[i].id, id)) return true;
    }
    return false;
}

/* A page of what the member has. */
static void list_told(fb_exchange *x, fb_error error, fb_span answer)
{
    verify *v = x->own;
    bool first = fb_id_is_zero(v->listed);
    if (error == FB_ERR_UNREACHABLE || error == FB_ERR_NOT_FOUND) {
        outcome least = first ? INCOMPLETE : UNSURE;
        if (v->worst < least) v->worst = least;
        peer_close(x, "unreachable");
        member_next(x);
        return;
    }
    if (first) v->reached++;
    /* Nobody has so many: one that lies would name them for ever. */
    if (error == FB_OK && v->named > FB_AREAS_MAX) error = FB_ERR_LIMIT;
    if (error != FB_OK) {
        /* What it has beside what is here is not known. */
        fb_json_open(&x->out, NULL, '{');
        judged(x, UNSURE);
        fb_json_error(&x->out, "error", error);
        fb_json_close(&x->out, '}');
        next(x);
        return;
    }
    fb_reader r = fb_reader_of(answer);
    uint16_t count = fb_read_u16(&r);
    for (uint16_t i = 0; i < count; i++) {
        v->listed = fb_read_id(&r);
        uint8_t kind = fb_read_u8(&r);
        fb_span name = fb_read_span16(&r);
        v->named++;
        if (r.failed || kind != FB_AREA_COLLECTION || is_here(v, v->listed)) continue;
        fb_json_open(&x->out, NULL, '{');
        fb_json_span(&x->out, "collection", name);
        judged(x, BEHIND);
        fb_json_member(&x->out, "missing", "here");
        fb_json_close(&x->out, '}');
    }
    if (!fb_reader_done(&r)) {
        fb_exchange_finish(x, 200, false);
    } else if (count != 0) {
        list_ask(x);
    } else {
        next(x);
    }
}

static void list_ask(fb_exchange *x)
{
    const verify *v = x->own;
    uint8_t room[48];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_write_id(&w, v->members[v->member_at]);
    fb_write_id(&w, v->listed);
    fb_exchange_ask(x, FB_VERB_PEER_AREAS, 0, fb_writer_span(&w), list_told);
}

static void member_next(fb_exchange *x)
{
    verify *v = x->own;
    if (v->member_at == v->member_count) {
        finish(x);
        return;
    }
    fb_id member = v->members[v->member_at];
    fb_json_open(&x->out, NULL, '{');
    fb_json_hex(&x->out, "node_id", member.b, sizeof member.b);
    fb_json_open(&x->out, "collections", '[');
    v->listed = (fb_id){{0}};
    v->named = 0;
    list_ask(x);
}

/* The next pair of this member and a collection. */
static void next(fb_exchange *x)
{
    verify *v = x->own;
    if (v->collection_at == v->collection_count) {
        peer_close(x, outcome_names[v->peer]);
        member_next(x);
        return;
    }
    fb_id member = v->members[v->member_at];
    uint8_t room[16 + 1 + 16 + 16];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, x->space);
    fb_write_u8(&w, 2); /* a collection by its id */
    fb_write_id(&w, v->collections[v->collection_at].id);
    fb_write_id(&w, member);
    fb_exchange_ask(x, FB_VERB_RECORD_VERIFY, 0, fb_writer_span(&w), pair_told);
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

static void areas_told(fb_exchange *x, fb_error error, fb_span answer)
{
    verify *v = x->own;
    if (fb_exchange_refused(x, error)) return;
    fb_reader r = fb_reader_of(answer);
    uint16_t count = fb_read_u16(&r);
    fb_id last = {{0}};
    for (uint16_t i = 0; i < count; i++) {
        last = fb_read_id(&r);
        uint8_t kind = fb_read_u8(&r);
        fb_span name = fb_read_span16(&r);
        fb_read_bytes(&r, 16);
        uint32_t entries = fb_read_u32(&r);
        if (entries != FB_AREA_TOO_LARGE) fb_read_bytes(&r, (size_t)entries * 40);
        if (r.failed) break;
        if (kind != FB_AREA_COLLECTION) continue;
        v->collections = grown(v->collections, v->collection_count, sizeof *v->collections);
        collection *c = &v->collections[v->collection_count++];
        *c = (collection){.id = last};
        fb_text_bytes(&c->name, name.p, name.len);
    }
    if (r.failed) {
        fb_exchange_finish(x, 200, false);
    } else if (count != 0) {
        areas_ask(x, last);
    } else {
        member_next(x);
    }
}

static void members_told(fb_exchange *x, fb_error error, fb_span answer)
{
    verify *v = x->own;
    if (fb_exchange_refused(x, error)) return;
    fb_id self = fb_api_options_of(x->api)->node->keys->node_id;
    fb_reader r = fb_reader_of(answer);
    uint16_t count = fb_read_u16(&r);
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_id node = fb_read_id(&r);
        fb_read_b32(&r);
        uint8_t status = fb_read_u8(&r);
        fb_read_u8(&r); /* role */
        if (r.failed || status != MEMBER_APPROVED || fb_id_equal(node, self)) continue;
        v->members = grown(v->members, v->member_count, sizeof *v->members);
        v->members[v->member_count++] = node;
    }
    fb_json_open(&x->out, NULL, '{');
    fb_json_uuid(&x->out, "space_id", x->space);
    fb_json_open(&x->out, "peers", '[');
    areas_ask(x, (fb_id){{0}});
}

static void about_space(fb_exchange *x)
{
    fb_exchange_ask(x, FB_VERB_SPACE_MEMBERS, 0, fb_span_of(x->space.b, sizeof x->space.b),
                    members_told);
}

void fb_get_verify(fb_exchange *x)
{
    x->own = calloc(1, sizeof(verify));
    FB_ASSERT(x->own != NULL);
    x->own_end = verify_end;
    fb_exchange_with_space(x, about_space);
}
