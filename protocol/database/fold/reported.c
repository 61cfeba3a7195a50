/* SPDX-License-Identifier: Apache-2.0 */
/* SPACE_REPORTED: what one member has said to hold, beside what is durable here. The stable cut is
 * the minimum over all members (report.c), so one that is gone holds it back for as long as it is a
 * member, and every batch since stays with everybody. Who that is, since when, and how much waits
 * for it, is what an operator has to see to put it out. DESIGN 3.1, Stable cut.
 *
 * It is read when somebody asks and kept nowhere: a space has few members, and who looks at them is
 * a person or asks every few seconds. */
#include "protocol/base/mutant.h"
#include "protocol/database/state.h"

typedef struct reported_context {
    uint64_t request;
    uint32_t index;
    uint32_t space;
    uint32_t reports; /* the area, pinned; FB_NONE: nobody has reported */
    fb_id member;
} reported_context;

_Static_assert(sizeof(reported_context) <= FB_OP_CONTEXT_BYTES, "the context fits an operation");

/* Of a life that is durable up to `durable`, how much above the cut is held. */
static uint64_t above(const fb_vector *v, uint64_t batch)
{
    uint64_t upto = fb_min_u64(batch, v->durable_batch);
    return upto > v->cut ? upto - v->cut : 0;
}

/* Batches of this node that are above the cut, in all collections. */
static uint64_t waiting(const fb_node *node, uint32_t space)
{
    uint64_t batches = 0;
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        const fb_area *area = fb_area_get(node, at - 1);
        at = area->next;
        if (!fb_report_is_about(area)) continue;
        for (uint32_t e = area->entries; e != 0;) {
            const fb_vector *v = fb_vector_get(node, e - 1);
            e = v->next;
            if (!v->closed) batches += above(v, UINT64_MAX);
        }
    }
    return batches;
}

/* user: what is left of those when the ones that a report names are taken away. */
static bool take_named(const fb_node *node, void *user, fb_id area, fb_id peer,
                       uint64_t incarnation, uint64_t batch)
{
    uint64_t *left = user;
    uint32_t index = fb_area_find(node, area);
    if (index == FB_NONE || !fb_report_is_about(fb_area_get(node, index))) return true;
    uint32_t entry = fb_vector_find(node, index, peer, incarnation);
    if (entry == FB_NONE) return true;
    uint64_t upto = MUTANT(REPORTED_BY_NAME, batch, UINT64_MAX);
    /* Who lies may name one twice. */
    *left -= fb_min_u64(*left, above(fb_vector_get(node, entry), upto));
    return true;
}

static void answer(fb_node *node, const reported_context *c, fb_status status, fb_span bytes)
{
    if (c->reports != FB_NONE) fb_area_unpin(node, c->reports);
    if (fb_request_at(node, c->index).number != c->request) return;
    fb_reply(node, c->index, status, bytes);
}

static void tell(fb_node *node, const reported_context *c, const fb_sibling *sibling)
{
    uint8_t bytes[1 + 8 + 8 + 8];
    uint64_t all = waiting(node, c->space), left = all;
    fb_report_state state = FB_REPORT_NONE;
    if (sibling != NULL) {
        fb_span hex = fb_report_hex(sibling->value);
        bool names = fb_report_names_statements(node, c->space, hex);
        state = names ? FB_REPORT_KNOWN : FB_REPORT_OLD;
        (void)fb_report_each(node, hex, take_named, &left);
    }
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_u8(&w, (uint8_t)state);
    fb_write_u64(&w, sibling != NULL ? (uint64_t)sibling->stamp : 0);
    fb_write_u64(&w, left);
    fb_write_u64(&w, all);
    answer(node, c, FB_OK, fb_writer_span(&w));
}

static void reported_run(fb_node *node, fb_op *op)
{
    const reported_context *c = fb_op_context(op);
    fb_status status = fb_op_status(op);
    fb_sibling sibling;
    if (status != FB_OK) {
        answer(node, c, status, (fb_span){NULL, 0});
        return;
    }
    if (!fb_report_sibling(node, op, 0, &sibling)) {
        tell(node, c, NULL);
        return;
    }
    fb_read_entry entry;
    if (sibling.apart && fb_op_round(op) == 1) {
        if (fb_report_read_apart(node, op, c->space, c->member, &sibling)) {
            fb_op_issue(node, op);
            return;
        }
        answer(node, c, FB_ERR_LIMIT, (fb_span){NULL, 0});
        return;
    }
    if (sibling.apart) {
        /* The next report may have come between the rounds. */
        if (!fb_op_value(node, op, 1, &entry) || entry.value.len != entry.value_len) {
            answer(node, c, FB_ERR_AGAIN, (fb_span){NULL, 0});
            return;
        }
        sibling.value = entry.value;
    }
    tell(node, c, &sibling);
}

static fb_status ask(fb_node *node, fb_request request, uint32_t space, fb_id peer)
{
    uint32_t member = fb_member_find(node, space, peer);
    if (member == FB_NONE || fb_member_status_of(node, member) != FB_MEMBER_APPROVED) {
        return FB_ERR_NOT_FOUND;
    }
    if (fb_report_members(node, space) > FB_CUT_MEMBERS_MAX) return FB_ERR_LIMIT;
    uint32_t reports = node->database->spaces[space].reports;
    reported_context known = {request.number, request.index, space, FB_NONE, peer};
    if (reports == 0) {
        tell(node, &known, NULL);
        return FB_OK;
    }
    known.reports = reports - 1;
    fb_op *op = fb_op_begin(node, FB_OP_READER, reported_run, 0, 0);
    if (op == NULL) return FB_ERR_BUSY;
    *(reported_context *)fb_op_context(op) = known;
    if (!fb_report_read(node, op, space, peer)) {
        fb_op_abandon(node, op);
        return FB_ERR_LIMIT;
    }
    fb_area_pin(node, known.reports);
    fb_op_issue(node, op);
    return FB_OK;
}

static void on_reported(fb_node *node, fb_request request, fb_span arguments)
{
    fb_reader r = fb_reader_of(arguments);
    uint32_t space;
    fb_status status =
        request.principal != 0 ? FB_ERR_NOT_AUTHORISED : fb_space_read(node, &r, 0, &space);
    fb_id peer = fb_read_id(&r);
    if (status == FB_OK && !fb_reader_done(&r)) status = FB_ERR_REQUEST_MALFORMED;
    if (status == FB_OK) status = ask(node, request, space, peer);
    if (status != FB_OK) fb_refuse(node, request, status);
}

void fb_reported_layout(fb_node *node)
{
    fb_verb_register(node, FB_VERB_SPACE_REPORTED, on_reported);
}
