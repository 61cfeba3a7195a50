/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/envelope.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/keys/file.h"
#include "io/keys/provider_sodium.h"
#include "protocol/base/hex.h"
#include "protocol/identity/identity.h"
#include "runtime/command/envelope_context.h"
#include "runtime/command/envelope_input.h"
#include "runtime/command/envelope_print.h"
#include "runtime/exit.h"

/* All that one call works with. */
typedef struct session {
    const fb_envelope_args *args;
    fb_sodium *sodium;
    const fb_provider *provider;
    fb_key_handle key; /* sign */
    fb_b32 public_key; /* sign, verify --public-key */
    fb_id key_id;
    fb_receiver *context;
    int64_t now_ms;
    uint64_t inputs;
    bool refused;
    fb_envelope_scratch scratch;
    uint8_t out[FB_ENVELOPE_JSON_BYTES_MAX];
    /* The only output of convert to raw protobuf, held until it is sure to be the only one. */
    size_t held;
} session;

static int64_t wall_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool decode(session *s, const fb_envelope_input *in, fb_envelope *e,
                   fb_envelope_fault *fault)
{
    bool draft = s->args->verb == FB_VERB_SIGN;
    if (s->args->from_protobuf) {
        (draft ? fb_envelope_draft_protobuf : fb_envelope_decode_protobuf)(in->bytes, e, fault);
    } else if (draft) {
        fb_envelope_draft_json(in->bytes, &s->scratch, e, fault);
    } else {
        fb_envelope_decode_json(in->bytes, &s->scratch, e, fault);
    }
    if (in->cut) {
        *fault = (fb_envelope_fault){FB_ERR_MALFORMED, FB_ENVELOPE_NONE,
                                     "the input ends within a frame", 0};
    }
    return fault->reason == FB_OK;
}

static void put_out(const uint8_t *bytes, size_t len)
{
    fwrite(bytes, 1, len, stdout);
}

static void print_json(session *s, const fb_envelope *e)
{
    fb_writer w = fb_writer_of(s->out, sizeof s->out);
    if (fb_envelope_encode_json(e, &w) != FB_OK) return; /* every valid envelope fits */
    put_out(s->out, w.at);
    putchar('\n');
}

static void print_protobuf(session *s, const fb_envelope *e)
{
    fb_writer w = fb_writer_of(s->out, sizeof s->out);
    if (fb_envelope_encode_protobuf(e, &w) != FB_OK) return;
    if (s->args->hex) {
        for (size_t i = 0; i < w.at; i++) printf("%02x", s->out[i]);
        putchar('\n');
    } else if (s->args->frames) {
        uint8_t prefix[4];
        fb_store_be(prefix, w.at, sizeof prefix);
        put_out(prefix, sizeof prefix);
        put_out(s->out, w.at);
    } else {
        s->held = w.at;
    }
}

static bool sign(session *s, fb_envelope *e, fb_envelope_fault *fault)
{
    if (!fb_envelope_has(e, FB_ENVELOPE_SOURCE)) e->source = s->key_id;
    if (!fb_id_equal(e->source, s->key_id)) {
        *fault = (fb_envelope_fault){FB_ERR_UNKNOWN_SENDER, FB_ENVELOPE_SOURCE,
                                     "another node id than the key's", 0};
        return false;
    }
    fb_status status = fb_envelope_sign(e, s->provider, s->key);
    *fault = (fb_envelope_fault){status, FB_ENVELOPE_SIGNATURE, fb_error_text(status), 0};
    return status == FB_OK;
}

static void verify(session *s, const fb_envelope *e, fb_envelope_fault *fault)
{
    if (s->context != NULL) {
        fb_receiver_judge(s->context, e, fault, NULL);
    } else if (s->args->has_public_key && !fb_id_equal(e->source, s->key_id)) {
        *fault = (fb_envelope_fault){FB_ERR_UNKNOWN_SENDER, FB_ENVELOPE_SOURCE,
                                     "another node id than the public key's", 0};
    } else if (s->args->has_public_key &&
               fb_envelope_verify(e, s->provider, &s->public_key) != FB_OK) {
        *fault = (fb_envelope_fault){FB_ERR_BAD_SIGNATURE, FB_ENVELOPE_SIGNATURE,
                                     fb_error_text(FB_ERR_BAD_SIGNATURE), 0};
    }
}

static void handle(session *s, const fb_envelope_input *in)
{
    fb_envelope e;
    fb_envelope_fault fault;
    bool good = decode(s, in, &e, &fault);
    switch (s->args->verb) {
    case FB_VERB_INSPECT:
        fb_print_inspection(in, s->args->from_protobuf, &e, &fault, s->now_ms);
        break;
    case FB_VERB_VERIFY:
        if (good) verify(s, &e, &fault);
        fb_print_verdict(in, &e, &fault);
        break;
    case FB_VERB_SIGN:
        if (good && sign(s, &e, &fault)) {
            print_json(s, &e);
        } else {
            fb_print_verdict(in, &e, &fault);
        }
        break;
    case FB_VERB_CANONICAL:
        if (good) {
            fb_print_preimage(&e);
        } else {
            fb_print_verdict(in, &e, &fault);
        }
        break;
    case FB_VERB_CONVERT:
        if (good && s->args->to_protobuf) {
            print_protobuf(s, &e);
        } else if (good) {
            print_json(s, &e);
        } else if (s->args->to_protobuf) {
            fb_print_refusal(in, &fault); /* a verdict would be no protobuf */
        } else {
            fb_print_verdict(in, &e, &fault);
        }
        break;
    }
    if (fault.reason != FB_OK) s->refused = true;
}

/* Raw protobuf has no bounds of its own: one input only. */
static bool one_output(const session *s)
{
    const fb_envelope_args *a = s->args;
    return a->verb == FB_VERB_CONVERT && a->to_protobuf && !a->hex && !a->frames;
}

static int run(session *s)
{
    fb_envelope_inputs *inputs = fb_envelope_inputs_open(s->args);
    if (inputs == NULL) return FB_EXIT_FAILED;
    fb_envelope_input in;
    int more;
    while ((more = fb_envelope_inputs_next(inputs, &in)) == 1) {
        if (++s->inputs > 1 && one_output(s)) {
            fputs("faberio envelope convert: more than one input needs --frames or --hex\n",
                  stderr);
            fb_envelope_inputs_close(inputs);
            return FB_EXIT_USAGE;
        }
        handle(s, &in);
    }
    fb_envelope_inputs_close(inputs);
    if (more == 0 && s->held != 0) put_out(s->out, s->held);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("faberio envelope: standard output cannot be written\n", stderr);
        return FB_EXIT_FAILED;
    }
    return more != 0 || s->refused ? FB_EXIT_FAILED : FB_EXIT_OK;
}

static bool load_key(session *s)
{
    fb_b32 seed;
    fb_key_file_error error;
    if (fb_key_file_read(s->args->key, FB_KEY_ED25519, &seed, &error) != FB_OK) {
        fprintf(stderr, "faberio envelope sign: key %s: %s\n", s->args->key, error.text);
        return false;
    }
    bool good = fb_sodium_add_signing(s->sodium, &seed, &s->key) == FB_OK &&
                s->provider->public_key(s->provider->user, s->key, &s->public_key) == FB_OK;
    sodium_memzero(&seed, sizeof seed);
    return good;
}

int fb_cmd_envelope(int argc, char **argv)
{
    fb_envelope_args args;
    if (!fb_envelope_args_parse(argc, argv, &args)) return FB_EXIT_USAGE;
    if (args.help) {
        fb_envelope_help();
        return FB_EXIT_OK;
    }
    session *s = calloc(1, sizeof *s);
    if (s == NULL || fb_sodium_create(1, &s->sodium) != FB_OK) {
        fputs("faberio envelope: libsodium does not start, or memory is short\n", stderr);
        free(s);
        return FB_EXIT_FAILED;
    }
    s->args = &args;
    s->provider = fb_sodium_provider(s->sodium);
    s->now_ms = wall_ms();
    int code = FB_EXIT_OK;
    if (args.key != NULL && !load_key(s)) code = FB_EXIT_FAILED;
    if (args.has_public_key) s->public_key = args.public_key;
    if (args.key != NULL || args.has_public_key) {
        s->key_id = fb_node_id_of(s->provider, &s->public_key);
    }
    if (args.context != NULL) {
        s->context = fb_context_read(args.context, s->provider);
        if (s->context == NULL) code = FB_EXIT_USAGE;
    }
    if (code == FB_EXIT_OK) code = run(s);
    fb_receiver_free(s->context);
    fb_sodium_destroy(s->sodium);
    free(s);
    return code;
}
