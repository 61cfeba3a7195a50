/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "runtime/api/held_back.h"
#include "runtime/api/request_codec.h"

#define MEMBER_APPROVED 1u

void fb_held_back_free(fb_held_back *held)
{
    if (held == NULL) return;
    for (size_t i = 0; i < held->count; i++) free(held->spaces[i].members);
    free(held->spaces);
    fb_text_free(&held->listed);
    free(held);
}

const fb_held_space *fb_held_back_of(const fb_held_back *held, fb_id space)
{
    for (size_t i = 0; held != NULL && i < held->count; i++) {
        if (fb_id_equal(held->spaces[i].space, space)) return &held->spaces[i];
    }
    return NULL;
}

bool fb_held_back_by(const fb_held_member *member)
{
    return !member->told || member->state != FB_REPORT_KNOWN || member->batches != 0;
}

static int by_report(const void *a, const void *b)
{
    const fb_held_member *x = a, *y = b;
    if (x->reported_us != y->reported_us) return x->reported_us < y->reported_us ? -1 : 1;
    return fb_id_compare(x->node, y->node);
}

static const char *state_name(const fb_held_member *member)
{
    static const char *const names[] = {"none", "old", "known"};
    return member->told ? names[member->state] : "not_told";
}

void fb_held_back_json(fb_text *out, const fb_held_space *space)
{
    fb_json_open(out, "held_back", '{');
    fb_json_bool(out, "folds", space->folds);
    fb_json_number(out, "batches", (int64_t)space->batches);
    fb_json_open(out, "by", '[');
    for (size_t i = 0; i < space->count && space->folds; i++) {
        const fb_held_member *member = &space->members[i];
        if (!fb_held_back_by(member)) continue;
        fb_json_open(out, NULL, '{');
        fb_json_hex(out, "node_id", member->node.b, sizeof member->node.b);
        fb_json_member(out, "report", state_name(member));
        if (member->reported_us != 0) fb_json_time(out, "reported", member->reported_us);
        if (member->told) fb_json_number(out, "batches", (int64_t)member->batches);
        fb_json_close(out, '}');
    }
    fb_json_close(out, ']');
    fb_json_close(out, '}');
}

/* Asking. */

static void next_space(fb_exchange *x);
static void next_member(fb_exchange *x);

static void reported_told(fb_exchange *x, fb_error error, fb_span answer)
{
    fb_held_back *held = x->held_back;
    fb_held_space *space = &held->spaces[held->at];
    fb_held_member *member = &space->members[held->member_at];
    fb_reader r = fb_reader_of(answer);
    uint8_t state = fb_read_u8(&r);
    int64_t stamp = (int64_t)fb_read_u64(&r);
    uint64_t batches = fb_read_u64(&r), all = fb_read_u64(&r);
    if (error == FB_ERR_LIMIT) {
        space->folds = false;
        held->member_at = space->count;
        next_member(x);
        return;
    }
    if (error == FB_OK && fb_reader_done(&r) && state <= FB_REPORT_KNOWN) {
        *member = (fb_held_member){member->node, true, (fb_report_state)state, stamp, batches};
        space->batches = all;
    }
    held->member_at++;
    next_member(x);
}

static void next_member(fb_exchange *x)
{
    fb_held_back *held = x->held_back;
    fb_held_space *space = &held->spaces[held->at];
    if (held->member_at == space->count) {
        qsort(space->members, space->count, sizeof *space->members, by_report);
        held->at++;
        next_space(x);
        return;
    }
    uint8_t room[32];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_id(&w, space->space);
    fb_write_id(&w, space->members[held->member_at].node);
    fb_exchange_ask(x, FB_VERB_SPACE_REPORTED, 0, fb_writer_span(&w), reported_told);
}

static void members_told(fb_exchange *x, fb_error error, fb_span answer)
{
    fb_held_back *held = x->held_back;
    fb_held_space *space = &held->spaces[held->at];
    fb_reader r = fb_reader_of(answer);
    uint16_t count = error == FB_OK ? fb_read_u16(&r) : 0;
    space->members = calloc(count + (size_t)1, sizeof *space->members);
    FB_ASSERT(space->members != NULL);
    for (uint16_t i = 0; i < count; i++) {
        fb_id node = fb_read_id(&r);
        fb_read_b32(&r);
        uint8_t status = fb_read_u8(&r);
        fb_read_u8(&r); /* role */
        if (!r.failed && status == MEMBER_APPROVED) space->members[space->count++].node = node;
    }
    held->member_at = 0;
    next_member(x);
}

static void next_space(fb_exchange *x)
{
    fb_held_back *held = x->held_back;
    if (held->at == held->count) {
        held->then(x);
        return;
    }
    fb_id space = held->spaces[held->at].space;
    fb_exchange_ask(x, FB_VERB_SPACE_MEMBERS, 0, fb_span_of(space.b, sizeof space.b), members_told);
}

static void spaces_told(fb_exchange *x, fb_error error, fb_span answer)
{
    fb_held_back *held = x->held_back;
    fb_reader r = fb_reader_of(answer);
    uint16_t count = error == FB_OK ? fb_read_u16(&r) : 0;
    if (error == FB_OK) fb_text_bytes(&held->listed, answer.p, answer.len);
    held->spaces = calloc(count + (size_t)1, sizeof *held->spaces);
    FB_ASSERT(held->spaces != NULL);
    for (uint16_t i = 0; i < count; i++) {
        fb_space_row row = fb_space_row_next(&r);
        if (r.failed || row.status != MEMBER_APPROVED) continue;
        held->spaces[held->count++] = (fb_held_space){.space = row.space, .folds = true};
    }
    next_space(x);
}

void fb_held_back_ask(fb_exchange *x, fb_exchange_handler then)
{
    x->held_back = calloc(1, sizeof *x->held_back);
    FB_ASSERT(x->held_back != NULL);
    x->held_back->then = then;
    fb_exchange_ask(x, FB_VERB_SPACE_LIST, 0, (fb_span){NULL, 0}, spaces_told);
}
