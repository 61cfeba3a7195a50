/* SPDX-License-Identifier: Apache-2.0 */
/* Step 1 of receiving (decode, every rule, pre-image) against one Ed25519 verification of the same
 * envelope, measured side by side. Prints one JSON object a line; ratio is decode / verify. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "io/provider_sodium.h"
#include "protocol/envelope/envelope.h"
#include "protocol/identity/identity.h"

#define ROUNDS   200
#define ROUND_NS 300000

static fb_sodium *sodium;
static const fb_provider *provider;
static fb_key_handle key;
static fb_b32 public_key;
static fb_envelope_scratch scratch;
static uint8_t payload[FB_PAYLOAD_BYTES_MAX];
static uint8_t json[FB_ENVELOPE_JSON_BYTES_MAX];
static uint8_t protobuf[FB_ENVELOPE_BYTES_MAX];

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void must(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "bench_envelope: %s\n", what);
    exit(1);
}

/* Picoseconds a call, the best of many short rounds: what the machine does beside this falls into
 * some of them only. */
static uint64_t measure(void (*run)(const void *), const void *input)
{
    uint64_t best = UINT64_MAX, once = now_ns();
    run(input);
    once = now_ns() - once + 1;
    unsigned repeat = once > ROUND_NS ? 1 : (unsigned)(ROUND_NS / once);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = now_ns();
        for (unsigned i = 0; i < repeat; i++) run(input);
        uint64_t spent = (now_ns() - start) * 1000 / repeat;
        if (spent < best) best = spent;
    }
    return best;
}

static void run_json(const void *input)
{
    fb_envelope e;
    fb_preimage preimage;
    must(fb_envelope_decode_json(*(const fb_span *)input, &scratch, &e, NULL) == FB_OK, "json");
    fb_envelope_preimage(&e, &preimage);
}

static void run_protobuf(const void *input)
{
    fb_envelope e;
    fb_preimage preimage;
    must(fb_envelope_decode_protobuf(*(const fb_span *)input, &e, NULL) == FB_OK, "protobuf");
    fb_envelope_preimage(&e, &preimage);
}

static void run_verify(const void *input)
{
    must(fb_envelope_verify(input, provider, &public_key) == FB_OK, "verify");
}

static fb_envelope envelope_of(fb_span body)
{
    fb_envelope e = {.mode = FB_DELIVERY_TOPIC,
                     .topic = fb_span_text("platform.replication.database"),
                     .type = FB_TYPE_CHANGED,
                     .payload = body,
                     .timestamp = 1718000000000};
    e.id.b[6] = e.space.b[6] = 0x70;
    e.id.b[8] = e.space.b[8] = 0x80;
    e.source = fb_node_id_of(provider, &public_key);
    fb_envelope_fault fault;
    if (fb_envelope_check(&e, &fault) != FB_OK) must(false, fault.detail);
    must(fb_envelope_sign(&e, provider, key) == FB_OK, "sign");
    return e;
}

/* `spelled`: the JSON text of the payload string to use instead of the encoder's. */
static void bench(const char *shape, fb_span body, bool escape_all)
{
    fb_envelope e = envelope_of(body);
    fb_writer pb = fb_writer_of(protobuf, sizeof protobuf);
    must(fb_envelope_encode_protobuf(&e, &pb) == FB_OK, "encode");
    fb_writer js = fb_writer_of(json, sizeof json);
    must(fb_envelope_encode_json(&e, &js) == FB_OK, "encode");
    if (escape_all) {
        /* The same envelope with each byte of the payload as a six-character escape. */
        static uint8_t longer[FB_ENVELOPE_JSON_BYTES_MAX];
        static const char name[] = "\"payload\":\"";
        size_t at = 0;
        while (memcmp(json + at, name, sizeof name - 1) != 0) at++;
        at += sizeof name - 1;
        size_t end = at;
        while (json[end] != '"') end += json[end] == '\\' ? 2 : 1;
        size_t n = at;
        memcpy(longer, json, at);
        for (size_t i = 0; i < body.len; i++) {
            n += (size_t)snprintf((char *)longer + n, 7, "\\u%04x", body.p[i]);
        }
        memcpy(longer + n, json + end, js.at - end);
        js.at = n + js.at - end;
        memcpy(json, longer, js.at);
    }
    fb_span json_text = {json, js.at}, protobuf_bytes = {protobuf, pb.at};
    uint64_t verify = measure(run_verify, &e);
    uint64_t in_json = measure(run_json, &json_text);
    uint64_t in_protobuf = measure(run_protobuf, &protobuf_bytes);
    printf("{\"shape\":\"%s\",\"payload_bytes\":%zu,\"json_bytes\":%zu,\"verify_ns\":%llu,"
           "\"json_ns\":%llu,\"protobuf_ns\":%llu,\"json_per_mille\":%llu,"
           "\"protobuf_per_mille\":%llu}\n",
           shape, body.len, json_text.len, (unsigned long long)verify / 1000,
           (unsigned long long)in_json / 1000, (unsigned long long)in_protobuf / 1000,
           (unsigned long long)(in_json * 1000 / verify),
           (unsigned long long)(in_protobuf * 1000 / verify));
}

#define OBJECT "{\"object_id\":\"0195a3f0-9150-7898-abcd-000000000013\""

/* The object, then units (as printf makes them from a counter, or a plain text) as often as fit. */
static fb_span fill(size_t len, const char *open, const char *unit, size_t group,
                    const char *between, const char *close)
{
    size_t n = (size_t)snprintf((char *)payload, sizeof payload, OBJECT "%s", open);
    size_t tail = strlen(close) + strlen(between);
    for (unsigned i = 0;; i++) {
        char text[128];
        int w = snprintf(text, sizeof text, unit, i);
        if (w == 0 || n + (size_t)w + tail + 8 > len) break;
        memcpy(payload + n, text, (size_t)w);
        n += (size_t)w;
        if (group != 0 && i % group == group - 1) {
            memcpy(payload + n, between, strlen(between));
            n += strlen(between);
        }
    }
    memcpy(payload + n, close, strlen(close));
    n += strlen(close);
    return fb_span_of(payload, n);
}

int main(void)
{
    fb_b32 seed = {{1}};
    must(fb_sodium_create(4, &sodium) == FB_OK, "libsodium");
    provider = fb_sodium_provider(sodium);
    must(fb_sodium_add_signing(sodium, &seed, &key) == FB_OK, "key");
    must(provider->public_key(provider->user, key, &public_key) == FB_OK, "key");

    const size_t most = FB_PAYLOAD_BYTES_MAX;
    bench("changed with batch",
          fill(128, ",\"incarnation\":\"0123456789abcdef\",\"batch\":12", "", 0, "", "}"), false);
    bench("object and a note", fill(128, ",\"note\":\"", "x", 0, "", "\"}"), false);
    bench("one long string", fill(most, ",\"a\":\"", "x", 0, "", "\"}"), false);
    bench("two-byte characters", fill(most, ",\"a\":\"", "\xc3\xa9", 0, "", "\"}"), false);
    bench("escapes in a string", fill(most, ",\"a\":\"", "\\n", 0, "", "\"}"), false);
    bench("unicode escapes", fill(most, ",\"a\":\"", "\\u00e9", 0, "", "\"}"), false);
    bench("every byte escaped", fill(most, ",\"a\":\"", "\\n", 0, "", "\"}"), true);
    bench("white space", fill(most, ",\"a\":1", " ", 0, "", "}"), false);
    bench("numbers", fill(most, ",\"a\":[0", ",%u", 0, "", "]}"), false);
    bench("empty arrays", fill(most, ",\"a\":[0", ",[]", 0, "", "]}"), false);
    bench("objects of one member", fill(most, ",\"a\":[0", ",{\"\":0}", 0, "", "]}"), false);
    bench("objects of 8 members",
          fill(most, ",\"a\":[{\"x\":0", ",\"%x\":0", 7, "},{\"x\":0", "}]}"), false);
    bench("objects of 9 members",
          fill(most, ",\"a\":[{\"x\":0", ",\"%x\":0", 8, "},{\"x\":0", "}]}"), false);
    bench("objects of 256 members",
          fill(most, ",\"a\":[{\"x\":0", ",\"%x\":0", 255, "},{\"x\":0", "}]}"), false);
    bench("names of 40 bytes",
          fill(most, ",\"a\":[{\"x\":0", ",\"%040x\":0", 255, "},{\"x\":0", "}]}"), false);
    bench("escaped names",
          fill(most, ",\"a\":[{\"x\":0", ",\"\\u0061%x\":0", 255, "},{\"x\":0", "}]}"), false);
    fb_sodium_destroy(sodium);
    return 0;
}
