/* SPDX-License-Identifier: Apache-2.0 */
/* Applications: who besides the operator may ask this node, and in which spaces (draft 10).
 *
 * An application proves itself with a token of 32 secret bytes. Only its hash is kept, so neither
 * the store nor a backup of it gives a token away. */
#include "protocol/link/binding.h"
#include "protocol/space/requests.h"
#include "protocol/space/store.h"

#define TOKEN_BYTES 32u

typedef enum change {
    CHANGE_CREATE,
    CHANGE_ALLOW,
    CHANGE_REVOKE,
} change;

typedef struct context {
    fb_waiting by;
    change what;
    uint32_t space;
    fb_span name;
} context;

static fb_b32 token_hash(const fb_node *node, fb_span token)
{
    static const char label[] = "faberio-token-v1"; /* with the zero byte that ends it */
    const fb_provider *provider = node->options.provider;
    const fb_span parts[2] = {fb_span_of(label, sizeof label), token};
    fb_b32 hash;
    provider->blake2b(provider->user, FB_NO_BYTES, parts, 2, hash.b, sizeof hash.b);
    return hash;
}

/* The living application of that name. */
static uint32_t find(const fb_node *node, fb_span name)
{
    for (uint32_t i = 0; i < node->options.sizes.applications; i++) {
        const fb_application *a = &node->spaces->application[i];
        if (a->used && !a->revoked && fb_span_equal(fb_span_of(a->name, a->name_len), name)) {
            return i;
        }
    }
    return FB_NONE;
}

/* A free place, else that of a revoked one: numbers are never reused, so its record may go. */
static uint32_t place(fb_node *node)
{
    uint32_t revoked = FB_NONE;
    for (uint32_t i = 0; i < node->options.sizes.applications; i++) {
        const fb_application *a = &node->spaces->application[i];
        if (!a->used) return i;
        if (a->revoked && revoked == FB_NONE) revoked = i;
    }
    return revoked;
}

static fb_status create(fb_node *node, fb_span name, uint32_t *index, uint8_t token[TOKEN_BYTES])
{
    if (find(node, name) != FB_NONE) return FB_ERR_EXISTS;
    *index = place(node);
    if (*index == FB_NONE) return FB_ERR_LIMIT;
    const fb_provider *provider = node->options.provider;
    FB_TRY(provider->secret(provider->user, token, TOKEN_BYTES));
    fb_application *a = &node->spaces->application[*index];
    /* The number of one that is replaced goes to waste with its record. */
    if (a->used) fb_application_delete(node, *index);
    fb_digest_cell cell = a->cell;
    memset(a, 0, sizeof *a);
    a->cell = cell;
    a->used = true;
    a->number = ++node->spaces->application_number;
    a->name_len = (uint8_t)name.len;
    memcpy(a->name, name.p, name.len);
    a->token_hash = token_hash(node, fb_span_of(token, TOKEN_BYTES));
    return FB_OK;
}

static void run(fb_node *node, fb_op *op)
{
    const context *c = fb_op_context(op);
    if (fb_request_at(node, c->by.index).number != c->by.number) return; /* nobody waits */
    uint8_t answer[8 + TOKEN_BYTES];
    size_t answer_len = 0;
    uint32_t index = FB_NONE;
    fb_status status = fb_op_status(op);
    if (status == FB_OK && c->what == CHANGE_CREATE) {
        status = create(node, c->name, &index, answer + 8);
        if (status == FB_OK) {
            fb_store_be(answer, node->spaces->application[index].number, 8);
            answer_len = sizeof answer;
        }
    } else if (status == FB_OK) {
        index = find(node, c->name);
        if (index == FB_NONE) status = FB_ERR_NOT_FOUND;
    }
    if (status != FB_OK) {
        fb_reply(node, c->by.index, status, FB_NO_BYTES);
        return;
    }
    fb_application *a = &node->spaces->application[index];
    if (c->what == CHANGE_ALLOW) a->spaces |= UINT64_C(1) << c->space;
    if (c->what == CHANGE_REVOKE) {
        a->revoked = true;
        a->spaces = 0;
    }
    fb_digest_touch(node, FB_DIGEST_APPLICATION, index);
    fb_application_put(node, index);
    fb_reply_held(node, c->by.index, FB_OK, fb_w_building(node), fb_span_of(answer, answer_len));
}

static void begin(fb_node *node, fb_request request, change what, fb_span name, uint32_t space)
{
    fb_status status = FB_ERR_BUSY;
    fb_op *op = fb_op_begin(node, FB_OP_WRITER, run, FB_APPLICATION_PUT_BYTES + 64, 2);
    if (op != NULL) {
        context *c = fb_op_context(op);
        *c = (context){{request.index, request.number}, what, space, fb_op_keep(op, name)};
        if (c->name.len == name.len) {
            fb_op_issue(node, op);
            return;
        }
        fb_op_abandon(node, op);
        status = FB_ERR_LIMIT;
    }
    fb_reply(node, request.index, status, FB_NO_BYTES);
}

static void on_named(fb_node *node, fb_request request, fb_span arguments)
{
    if (!fb_request_by_operator(node, request)) return;
    fb_reader r = fb_reader_of(arguments);
    fb_span name = fb_read_span16(&r);
    bool allow = request.verb == FB_VERB_APP_ALLOW;
    fb_id id = {{0}};
    if (allow) id = fb_read_id(&r);
    if (!fb_reader_done(&r) || !fb_name_is_valid(name)) {
        fb_reply(node, request.index, FB_ERR_REQUEST_MALFORMED, FB_NO_BYTES);
        return;
    }
    uint32_t space = allow ? fb_space_find(node, id) : FB_NONE;
    if (allow && space == FB_NONE) {
        fb_reply(node, request.index, FB_ERR_NOT_FOUND, FB_NO_BYTES);
        return;
    }
    change what = allow                                ? CHANGE_ALLOW
                  : request.verb == FB_VERB_APP_CREATE ? CHANGE_CREATE
                                                       : CHANGE_REVOKE;
    begin(node, request, what, name, space);
}

static void on_authenticate(fb_node *node, fb_request request, fb_span arguments)
{
    uint8_t answer[8];
    uint64_t principal = 0;
    if (arguments.len == TOKEN_BYTES) {
        fb_b32 hash = token_hash(node, arguments);
        for (uint32_t i = 0; i < node->options.sizes.applications; i++) {
            const fb_application *a = &node->spaces->application[i];
            bool same = fb_proof_equal(&a->token_hash, &hash);
            if (same && a->used && !a->revoked) principal = a->number;
        }
    }
    if (principal == 0) {
        fb_reply(node, request.index, FB_ERR_NOT_AUTHORISED, FB_NO_BYTES);
        return;
    }
    fb_store_be(answer, principal, sizeof answer);
    fb_reply(node, request.index, FB_OK, fb_span_of(answer, sizeof answer));
}

/* FM-10-1, FM-11-5 */
bool fb_space_allows(const fb_node *node, uint32_t space, uint64_t principal)
{
    if (principal == 0) return true;
    for (uint32_t i = 0; i < node->options.sizes.applications; i++) {
        const fb_application *a = &node->spaces->application[i];
        if (a->used && !a->revoked && a->number == principal) {
            return (a->spaces >> space & 1u) != 0;
        }
    }
    return MUTANT(STRANGER_IS_SERVED, false, true);
}

void fb_application_verbs_register(fb_node *node)
{
    fb_verb_register(node, FB_VERB_APP_CREATE, on_named);
    fb_verb_register(node, FB_VERB_APP_ALLOW, on_named);
    fb_verb_register(node, FB_VERB_APP_REVOKE, on_named);
    fb_verb_register(node, FB_VERB_APP_AUTHENTICATE, on_authenticate);
}
