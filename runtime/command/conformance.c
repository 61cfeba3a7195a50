/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/conformance.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/keys/provider_sodium.h"
#include "protocol/identity/identity.h"
#include "runtime/conformance/json.h"
#include "runtime/conformance/line_in.h"
#include "runtime/conformance/node.h"
#include "runtime/conformance/receiver_json.h"
#include "runtime/exit.h"

#define PROTOCOL "faberio-adapter 1"

typedef struct adapter {
    fb_sodium *sodium;
    const fb_provider *provider;
    fb_receiver *session;
    fb_adapter_node *node;
    fb_envelope_scratch scratch;
    uint8_t encoded[FB_ENVELOPE_JSON_BYTES_MAX];
    uint8_t *input; /* of this request */
    const char *why;
} adapter;

static json_t *misunderstood(adapter *a, const char *why)
{
    a->why = why;
    return NULL;
}

/* ---- Envelopes ---- */

static bool names_json(const json_t *request, const char *member, bool *json)
{
    const char *name = json_string_value(json_object_get(request, member));
    *json = name != NULL && strcmp(name, "json") == 0;
    return *json || (name != NULL && strcmp(name, "protobuf") == 0);
}

/* The envelope of a request; false when the request itself is wrong. */
static bool decode(adapter *a, const json_t *request, bool draft, fb_envelope *e,
                   fb_envelope_fault *fault)
{
    bool json;
    size_t len;
    if (!names_json(request, "encoding", &json) ||
        !fb_adapter_bytes(request, "input", &a->input, &len)) {
        return false;
    }
    fb_span bytes = fb_span_of(a->input, len);
    if (json) {
        (draft ? fb_envelope_draft_json : fb_envelope_decode_json)(bytes, &a->scratch, e, fault);
    } else {
        (draft ? fb_envelope_draft_protobuf : fb_envelope_decode_protobuf)(bytes, e, fault);
    }
    return true;
}

static json_t *verdict(const fb_envelope *e, const fb_envelope_fault *fault)
{
    json_t *made = json_object();
    bool good = fault->reason == FB_OK;
    json_object_set_new(made, "verdict", json_string(good ? "accept" : "refuse"));
    if (!good) {
        json_object_set_new(made, "reason", json_string(fb_error_name(fault->reason)));
        json_object_set_new(made, "detail", json_string(fault->detail));
    }
    if (!good && fault->field != FB_ENVELOPE_NONE) {
        json_object_set_new(made, "field", json_string(fb_envelope_field_name(fault->field)));
    }
    if (fb_envelope_has(e, FB_ENVELOPE_ID)) {
        json_object_set_new(made, "id", fb_adapter_uuid(e->id));
    }
    return made;
}

static void refuse(fb_envelope_fault *fault, fb_status reason, fb_envelope_field field)
{
    *fault = (fb_envelope_fault){reason, field, fb_error_text(reason), 0};
}

static json_t *op_verify(adapter *a, const json_t *request)
{
    fb_envelope e;
    fb_envelope_fault fault;
    if (!decode(a, request, false, &e, &fault)) return misunderstood(a, "encoding or input");
    json_t *context = json_object_get(request, "context");
    if (fault.reason == FB_OK && context != NULL) {
        fb_receiver *receiver = fb_receiver_new(a->provider);
        fb_receiver_fault wrong;
        bool good = fb_receiver_read(receiver, context, true, &wrong);
        if (good) fb_receiver_judge(receiver, &e, &fault, NULL);
        fb_receiver_free(receiver);
        if (!good) return misunderstood(a, wrong.what);
    } else if (fault.reason == FB_OK && json_object_get(request, "public_key") != NULL) {
        fb_b32 key;
        if (!fb_adapter_bytes32(request, "public_key", &key)) return misunderstood(a, "public_key");
        if (!fb_id_equal(fb_node_id_of(a->provider, &key), e.source)) {
            refuse(&fault, FB_ERR_UNKNOWN_SENDER, FB_ENVELOPE_SOURCE);
        } else if (fb_envelope_verify(&e, a->provider, &key) != FB_OK) {
            refuse(&fault, FB_ERR_BAD_SIGNATURE, FB_ENVELOPE_SIGNATURE);
        }
    }
    return verdict(&e, &fault);
}

static json_t *op_canonical(adapter *a, const json_t *request)
{
    fb_envelope e;
    fb_envelope_fault fault;
    if (!decode(a, request, false, &e, &fault)) return misunderstood(a, "encoding or input");
    if (fault.reason != FB_OK) return verdict(&e, &fault);
    fb_preimage preimage;
    fb_envelope_preimage(&e, &preimage);
    fb_writer w = fb_writer_of(a->encoded, sizeof a->encoded);
    for (size_t i = 0; i < 3; i++) fb_write_span(&w, preimage.parts[i]);
    json_t *made = json_object();
    json_object_set_new(made, "preimage", fb_adapter_hex(fb_writer_span(&w)));
    return made;
}

static json_t *encode(adapter *a, const json_t *request, const fb_envelope *e)
{
    bool json;
    if (!names_json(request, "to", &json)) return misunderstood(a, "to");
    fb_writer w = fb_writer_of(a->encoded, sizeof a->encoded);
    fb_status status = json ? fb_envelope_encode_json(e, &w) : fb_envelope_encode_protobuf(e, &w);
    if (status != FB_OK) return misunderstood(a, fb_error_text(status));
    json_t *made = json_object();
    json_object_set_new(made, "output", fb_adapter_hex(fb_writer_span(&w)));
    return made;
}

static json_t *op_convert(adapter *a, const json_t *request)
{
    fb_envelope e;
    fb_envelope_fault fault;
    if (!decode(a, request, false, &e, &fault)) return misunderstood(a, "encoding or input");
    return fault.reason == FB_OK ? encode(a, request, &e) : verdict(&e, &fault);
}

static json_t *op_sign(adapter *a, const json_t *request)
{
    fb_envelope e;
    fb_envelope_fault fault;
    fb_b32 seed, public_key;
    fb_key_handle key;
    if (!decode(a, request, true, &e, &fault) || !fb_adapter_bytes32(request, "seed", &seed)) {
        return misunderstood(a, "encoding, input or seed");
    }
    if (fault.reason != FB_OK) return verdict(&e, &fault);
    if (fb_sodium_add_signing(a->sodium, &seed, &key) != FB_OK ||
        a->provider->public_key(a->provider->user, key, &public_key) != FB_OK) {
        return misunderstood(a, "not a usable seed");
    }
    fb_id own = fb_node_id_of(a->provider, &public_key);
    if (!fb_envelope_has(&e, FB_ENVELOPE_SOURCE)) e.source = own;
    fb_status status = FB_ERR_UNKNOWN_SENDER;
    if (fb_id_equal(e.source, own)) status = fb_envelope_sign(&e, a->provider, key);
    fb_sodium_remove(a->sodium, key);
    if (status == FB_OK) return encode(a, request, &e);
    refuse(&fault, status, FB_ENVELOPE_SOURCE);
    return verdict(&e, &fault);
}

/* ---- A receiver ---- */

static json_t *session_open(adapter *a, const json_t *request)
{
    fb_receiver_fault wrong;
    fb_receiver_free(a->session);
    a->session = fb_receiver_new(a->provider);
    if (fb_receiver_read(a->session, json_object_get(request, "context"), true, &wrong)) {
        return json_object();
    }
    fb_receiver_free(a->session);
    a->session = NULL;
    return misunderstood(a, wrong.what);
}

static json_t *session_deliver(adapter *a, const json_t *request)
{
    fb_envelope e;
    fb_envelope_fault fault;
    bool reset = false;
    if (!decode(a, request, false, &e, &fault)) return misunderstood(a, "encoding or input");
    if (fault.reason == FB_OK) fb_receiver_judge(a->session, &e, &fault, &reset);
    json_t *made = verdict(&e, &fault);
    if (reset) json_object_set_new(made, "floor_reset", json_true());
    return made;
}

static json_t *session_change(adapter *a, const char *what, const json_t *request)
{
    fb_receiver_state *state = fb_receiver_state_of(a->session);
    if (strcmp(what, "clock") == 0) {
        int64_t mono_ms;
        (void)fb_adapter_integer(request, "now_ms", &state->now_ms);
        if (fb_adapter_integer(request, "mono_ms", &mono_ms)) state->mono_ms = (uint64_t)mono_ms;
        return json_object();
    }
    if (strcmp(what, "link") == 0) {
        state->has_peer = fb_adapter_id(request, "peer", &state->peer);
        state->offset_known = fb_adapter_integer(request, "offset_ms", &state->offset_ms);
        fb_receiver_link(a->session);
        return json_object();
    }
    if (strcmp(what, "member") == 0) {
        fb_b32 key;
        fb_receiver_status status = fb_receiver_status_named(json_object_get(request, "status"));
        if (!fb_adapter_bytes32(request, "public_key", &key) || status == FB_RECEIVER_UNKNOWN ||
            fb_receiver_member(a->session, &key, status) != FB_OK) {
            return misunderstood(a, "not a member");
        }
        return json_object();
    }
    bool begins = strcmp(what, "subscribe") == 0;
    const char *topic = json_string_value(json_object_get(request, "topic"));
    if ((!begins && strcmp(what, "unsubscribe") != 0) || topic == NULL ||
        !fb_topic_is_well_formed(fb_span_text(topic))) {
        return misunderstood(a, "not a step of a session");
    }
    fb_receiver_subscribe(a->session, fb_span_text(topic), begins);
    return json_object();
}

static json_t *op_session(adapter *a, const json_t *request)
{
    const char *what = json_string_value(json_object_get(request, "do"));
    if (what == NULL) return misunderstood(a, "do");
    if (strcmp(what, "open") == 0) return session_open(a, request);
    if (a->session == NULL) return misunderstood(a, "no session is open");
    if (strcmp(what, "deliver") == 0) return session_deliver(a, request);
    return session_change(a, what, request);
}

/* ---- Requests ---- */

static json_t *op_node(adapter *a, const json_t *request)
{
    return fb_adapter_node_answer(&a->node, request, &a->why);
}

static json_t *op_hello(adapter *a, const json_t *request);

static const struct {
    const char *name;
    json_t *(*run)(adapter *a, const json_t *request);
} ops[] = {
    {"verify", op_verify}, {"canonical", op_canonical}, {"convert", op_convert},
    {"sign", op_sign},     {"session", op_session},     {"node", op_node},
    {"hello", op_hello},
};

#define OPS (sizeof ops / sizeof ops[0])

static json_t *op_hello(adapter *a, const json_t *request)
{
    (void)a;
    (void)request;
    json_t *names = json_array();
    for (size_t i = 0; i + 1 < OPS; i++) json_array_append_new(names, json_string(ops[i].name));
    return json_pack("{s:s, s:s, s:o}", "protocol", PROTOCOL, "runtime", "faberio " FB_VERSION,
                     "ops", names);
}

static json_t *answer(adapter *a, const json_t *request)
{
    const char *op = json_string_value(json_object_get(request, "op"));
    a->why = "no such op";
    for (size_t i = 0; op != NULL && i < OPS; i++) {
        if (strcmp(ops[i].name, op) == 0) return ops[i].run(a, request);
    }
    return NULL;
}

/* docs/ADAPTER.md */
#define LINE_BYTES_MAX 700000u

static void serve_line(adapter *a, const char *line, size_t len, bool whole)
{
    json_error_t error = {.text = "a zero byte is no JSON"}; /* jansson passes over some */
    json_t *request = NULL;
    if (!whole) {
        snprintf(error.text, sizeof error.text, "longer than %u bytes", LINE_BYTES_MAX);
    } else if (memchr(line, 0, len) == NULL) {
        request = json_loadb(line, len, JSON_REJECT_DUPLICATES, &error);
    }
    a->why = error.text;
    json_t *made = request == NULL ? NULL : answer(a, request);
    if (made == NULL) made = json_pack("{s:s}", "error", a->why);
    /* What jansson quotes of the line may be no text. */
    if (made == NULL) made = json_pack("{s:s}", "error", "not one JSON object");
    json_dumpf(made, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(made);
    json_decref(request);
    free(a->input);
    a->input = NULL;
}

static int serve(void)
{
    adapter *a = calloc(1, sizeof *a);
    char *line = malloc(LINE_BYTES_MAX + 1);
    if (a == NULL || line == NULL || fb_sodium_create(2, &a->sodium) != FB_OK) {
        fputs("faberio conformance: libsodium does not start, or memory is short\n", stderr);
        free(line);
        free(a);
        return FB_EXIT_FAILED;
    }
    a->provider = fb_sodium_provider(a->sodium);
    for (size_t len; ferror(stdout) == 0;) {
        fb_line got = fb_line_read(stdin, line, LINE_BYTES_MAX + 1, &len);
        if (got != FB_LINE_READ && got != FB_LINE_TOO_LONG) break;
        serve_line(a, line, len, got == FB_LINE_READ);
    }
    bool good = ferror(stdin) == 0 && ferror(stdout) == 0;
    free(line);
    fb_receiver_free(a->session);
    fb_adapter_node_free(a->node);
    fb_sodium_destroy(a->sodium);
    free(a);
    return good ? FB_EXIT_OK : FB_EXIT_FAILED;
}

int fb_cmd_conformance(int argc, char **argv)
{
    static const char help[] =
        "usage: faberio conformance adapter\n"
        "\n"
        "Answers the conformance suite: one JSON object a line on standard input, one for each on\n"
        "standard output, until the input ends. The suite is specs-conformance/ in the sources:\n"
        "\n"
        "  pytest specs-conformance --adapter \"faberio conformance adapter\"\n";
    if (argc == 2 && strcmp(argv[1], "adapter") == 0) return serve();
    if (argc >= 2 && strcmp(argv[argc - 1], "--help") == 0) {
        fputs(help, stdout);
        return FB_EXIT_OK;
    }
    fputs(help, stderr);
    return FB_EXIT_USAGE;
}
