/* SPDX-License-Identifier: Apache-2.0 */
/* The envelope against what it is compared with, in one run and turn by turn:
 *
 *   accept    decode, every rule, pre-image, membership's key, verify; against libsodium's verify
 *             alone on the same pre-images
 *   decode    canonical protobuf with every rule against protobuf-c's unpack and free, JSON with
 *             every rule against Jansson's parse and free
 *   refuse    the same envelopes with one defect against the valid ones, without the signature
 *   by verify what decoding costs when no signature follows
 *
 * Each function sweeps over many different envelopes of a shape, each in a heap block of its exact
 * size. A round times every function once; a ratio is that of two times of one round, and what is
 * printed is the median of the rounds with the first and the third quartile. One JSON object a
 * line.
 *
 *     bench_envelope [ROUNDS [SHAPE]]
 */
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "envelope.pb-c.h"
#include "io/keys/provider_sodium.h"
#include "protocol/base/draw.h"
#include "protocol/envelope/envelope.h"
#include "protocol/identity/identity.h"
#include "tests/bench/envelope_shapes.h"

#define SWEEP_SMALL 256
#define SWEEP_LARGE 24
#define SWEEP_MAX   SWEEP_SMALL
#define ROUNDS_MAX  101
#define SPAN_NS     400000 /* a timing lasts at least so long */

static fb_sodium *sodium;
static const fb_provider *provider;
static fb_key_handle key;
static fb_b32 public_key;
static fb_envelope_scratch scratch;

/* What is swept. */
static size_t sweep;
static fb_span protobuf[SWEEP_MAX], json[SWEEP_MAX], preimage[SWEEP_MAX];
static fb_span bad_protobuf[SWEEP_MAX], bad_json[SWEEP_MAX];
static fb_b64 signature[SWEEP_MAX];

static void must(bool good, const char *what)
{
    if (good) return;
    fprintf(stderr, "bench_envelope: %s\n", what);
    exit(1);
}

/* A heap block of exactly these bytes. */
static fb_span block_of(const void *bytes, size_t len)
{
    uint8_t *p = malloc(len != 0 ? len : 1);
    must(p != NULL, "memory");
    memcpy(p, bytes, len);
    return fb_span_of(p, len);
}

static void release(fb_span *list)
{
    for (size_t i = 0; i < sweep; i++) free((void *)(uintptr_t)list[i].p);
}

/* ---- What is timed: each is one sweep ---- */

static void run_decode_protobuf(void)
{
    fb_envelope e;
    for (size_t i = 0; i < sweep; i++) {
        must(fb_envelope_decode_protobuf(protobuf[i], &e, NULL) == FB_OK, "decode protobuf");
    }
}

static void run_decode_json(void)
{
    fb_envelope e;
    for (size_t i = 0; i < sweep; i++) {
        must(fb_envelope_decode_json(json[i], &scratch, &e, NULL) == FB_OK, "decode json");
    }
}

static void run_accept_protobuf(void)
{
    fb_envelope e;
    for (size_t i = 0; i < sweep; i++) {
        must(fb_envelope_decode_protobuf(protobuf[i], &e, NULL) == FB_OK, "decode");
        must(fb_envelope_verify(&e, provider, &public_key) == FB_OK, "verify");
    }
}

static void run_accept_json(void)
{
    fb_envelope e;
    for (size_t i = 0; i < sweep; i++) {
        must(fb_envelope_decode_json(json[i], &scratch, &e, NULL) == FB_OK, "decode");
        must(fb_envelope_verify(&e, provider, &public_key) == FB_OK, "verify");
    }
}

static void run_verify(void)
{
    for (size_t i = 0; i < sweep; i++) {
        must(crypto_sign_verify_detached(signature[i].b, preimage[i].p, preimage[i].len,
                                         public_key.b) == 0,
             "libsodium");
    }
}

static void run_protobuf_c(void)
{
    for (size_t i = 0; i < sweep; i++) {
        Fuzz__Envelope *e = fuzz__envelope__unpack(NULL, protobuf[i].len, protobuf[i].p);
        must(e != NULL, "protobuf-c");
        fuzz__envelope__free_unpacked(e, NULL);
    }
}

/* The cheapest allocator that there can be: a pointer goes up, and back at once. */
static uint8_t arena[FB_ENVELOPE_BYTES_MAX + 4096];
static size_t arena_at;

static void *arena_take(void *user, size_t size)
{
    (void)user;
    size_t at = (arena_at + 15) & ~(size_t)15;
    if (size > sizeof arena - at) return NULL;
    arena_at = at + size;
    return arena + at;
}

static void arena_give(void *user, void *p)
{
    (void)user;
    (void)p;
}

static void run_protobuf_c_arena(void)
{
    ProtobufCAllocator allocator = {arena_take, arena_give, NULL};
    for (size_t i = 0; i < sweep; i++) {
        arena_at = 0;
        Fuzz__Envelope *e = fuzz__envelope__unpack(&allocator, protobuf[i].len, protobuf[i].p);
        must(e != NULL, "protobuf-c");
        fuzz__envelope__free_unpacked(e, &allocator);
    }
}

static void run_jansson(void)
{
    for (size_t i = 0; i < sweep; i++) {
        json_t *e = json_loadb((const char *)json[i].p, json[i].len, JSON_REJECT_DUPLICATES, NULL);
        must(e != NULL, "jansson");
        json_decref(e);
    }
}

static void run_refuse_protobuf(void)
{
    fb_envelope e;
    for (size_t i = 0; i < sweep; i++) {
        must(fb_envelope_decode_protobuf(bad_protobuf[i], &e, NULL) != FB_OK, "refuse protobuf");
    }
}

static void run_refuse_json(void)
{
    fb_envelope e;
    for (size_t i = 0; i < sweep; i++) {
        must(fb_envelope_decode_json(bad_json[i], &scratch, &e, NULL) != FB_OK, "refuse json");
    }
}

typedef enum timed {
    DECODE_PROTOBUF,
    PROTOBUF_C,
    PROTOBUF_C_ARENA,
    DECODE_JSON,
    JANSSON,
    VERIFY,
    ACCEPT_PROTOBUF,
    ACCEPT_JSON,
    REFUSE_PROTOBUF,
    REFUSE_JSON,
    TIMED,
} timed;

static void (*const functions[TIMED])(void) = {
    run_decode_protobuf, run_protobuf_c,  run_protobuf_c_arena, run_decode_json,
    run_jansson,         run_verify,      run_accept_protobuf,  run_accept_json,
    run_refuse_protobuf, run_refuse_json,
};

static unsigned repeats[TIMED];
static double spent[TIMED][ROUNDS_MAX]; /* nanoseconds for one envelope */
static unsigned rounds = 15;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void measure(void)
{
    for (size_t f = 0; f < TIMED; f++) {
        functions[f]();
        uint64_t start = now_ns();
        functions[f]();
        uint64_t once = now_ns() - start + 1;
        repeats[f] = once > SPAN_NS ? 1 : (unsigned)(SPAN_NS / once) + 1;
    }
    for (unsigned r = 0; r < rounds; r++) {
        for (size_t f = 0; f < TIMED; f++) {
            uint64_t start = now_ns();
            for (unsigned i = 0; i < repeats[f]; i++) functions[f]();
            spent[f][r] = (double)(now_ns() - start) / repeats[f] / (double)sweep;
        }
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* {"median":…} of times or of ratios of times. */
static void print_spread(const char *name, double *list)
{
    qsort(list, rounds, sizeof *list, ascending);
    printf(",\"%s\":[%.4g,%.4g,%.4g]", name, list[rounds / 4], list[rounds / 2],
           list[rounds - 1 - rounds / 4]);
}

static void print_time(const char *name, timed f)
{
    double list[ROUNDS_MAX];
    memcpy(list, spent[f], sizeof list);
    print_spread(name, list);
}

static void print_ratio(const char *name, timed over, timed under)
{
    double list[ROUNDS_MAX];
    for (unsigned r = 0; r < rounds; r++) list[r] = spent[over][r] / spent[under][r];
    print_spread(name, list);
}

/* ---- What is swept ---- */

static fb_envelope envelope_of(fb_span payload, unsigned number)
{
    fb_seed seed = {number, 7};
    fb_envelope e = {.mode = FB_DELIVERY_TOPIC,
                     .topic = fb_span_text("platform.replication.database"),
                     .type = FB_TYPE_CHANGED,
                     .payload = payload,
                     .timestamp = 1718000000000 + fb_draw_below(seed, 1, 0, 0, 100000000)};
    if (fb_draw_chance(seed, 1, 0, 1, 1, 2)) {
        e.mode = FB_DELIVERY_UNICAST;
        e.topic = (fb_span){NULL, 0};
        fb_store_be(e.target_node.b, fb_draw(seed, 1, 0, 2), 8);
    }
    e.has_correlation = fb_draw_chance(seed, 1, 0, 3, 1, 2);
    fb_id *ids[] = {&e.id, &e.space, &e.correlation};
    for (size_t i = 0; i < 3; i++) {
        fb_store_be(ids[i]->b, fb_draw(seed, 2, i, 0), 8);
        fb_store_be(ids[i]->b + 8, fb_draw(seed, 2, i, 1), 8);
        ids[i]->b[6] = (uint8_t)(0x70 | (ids[i]->b[6] & 15));
        ids[i]->b[8] = (uint8_t)(0x80 | (ids[i]->b[8] & 63));
    }
    e.source = fb_node_id_of(provider, &public_key);
    fb_envelope_fault fault;
    if (fb_envelope_check(&e, &fault) != FB_OK) must(false, fault.detail);
    must(fb_envelope_sign(&e, provider, key) == FB_OK, "sign");
    return e;
}

static size_t find(fb_span in, const char *what)
{
    size_t len = strlen(what), at = 0;
    while (memcmp(in.p + at, what, len) != 0) at++;
    return at + len;
}

/* The JSON text with the payload's string spelled as the shape wants it. */
static fb_span spelled_of(const shape *s, unsigned number, fb_span text, fb_span payload)
{
    static uint8_t longer[FB_ENVELOPE_JSON_BYTES_MAX];
    size_t at = find(text, "\"payload\":\"");
    size_t end = at;
    while (text.p[end] != '"') end += text.p[end] == '\\' ? 2 : 1;
    memcpy(longer, text.p, at);
    size_t n = at + shape_spell(s, number, payload.p, payload.len, longer + at);
    memcpy(longer + n, text.p + end, text.len - end);
    return fb_span_of(longer, n + text.len - end);
}

/* The same bytes with one of them wrong: an invalid UTF-8 lead where the payload's middle half is,
 * or its last brace, which ends it too early. */
static fb_span spoiled(fb_span good, fb_span payload, const char *after, unsigned number)
{
    fb_span bad = block_of(good.p, good.len);
    uint8_t *p = (uint8_t *)(uintptr_t)bad.p;
    fb_seed seed = {number, 9};
    if (after != NULL) {
        /* In JSON the last byte of the payload's string, wherever it is. */
        size_t at = find(good, after), end = at;
        while (good.p[end] != '"') end += good.p[end] == '\\' ? 2 : 1;
        size_t last = end - 1;
        if (number % 2 == 0)
            last = at + (end - at) / 4 + fb_draw_below(seed, 1, 0, 0, (end - at) / 2);
        p[last] = 0xff;
        return bad;
    }
    size_t at = 0;
    while (memcmp(p + at, payload.p, payload.len) != 0) at++;
    size_t quarter = payload.len / 4;
    p[at + (number % 2 == 0 ? quarter + fb_draw_below(seed, 1, 0, 0, 2 * quarter)
                            : payload.len - 1)] = 0xff;
    return bad;
}

static void prepare(const shape *s)
{
    static uint8_t payload[FB_PAYLOAD_BYTES_MAX], bytes[FB_ENVELOPE_JSON_BYTES_MAX];
    static uint8_t signed_bytes[FB_PREIMAGE_BYTES_MAX];
    sweep = s->bytes > 4096 ? SWEEP_LARGE : SWEEP_SMALL;
    for (unsigned i = 0; i < sweep; i++) {
        fb_span body = {payload, shape_make(s, i, payload)};
        fb_envelope e = envelope_of(body, i);
        signature[i] = e.signature;
        fb_writer w = fb_writer_of(bytes, sizeof bytes);
        must(fb_envelope_encode_protobuf(&e, &w) == FB_OK, "encode");
        protobuf[i] = block_of(bytes, w.at);
        bad_protobuf[i] = spoiled(protobuf[i], body, NULL, i);
        w = fb_writer_of(bytes, sizeof bytes);
        must(fb_envelope_encode_json(&e, &w) == FB_OK, "encode");
        fb_span text = {bytes, w.at};
        if (s->spelling != SPELLED_SHORTEST) text = spelled_of(s, i, text, body);
        json[i] = block_of(text.p, text.len);
        bad_json[i] = spoiled(json[i], body, "\"payload\":\"", i);
        fb_preimage parts;
        fb_envelope_preimage(&e, &parts);
        size_t n = 0;
        for (size_t k = 0; k < 3; k++) {
            memcpy(signed_bytes + n, parts.parts[k].p, parts.parts[k].len);
            n += parts.parts[k].len;
        }
        preimage[i] = block_of(signed_bytes, n);
    }
}

static void bench(const shape *s)
{
    prepare(s);
    measure();
    size_t text = 0;
    for (size_t i = 0; i < sweep; i++) text += json[i].len;
    printf("{\"shape\":\"%s\",\"payload_bytes\":%zu,\"envelopes\":%zu,\"json_bytes\":%zu", s->name,
           s->bytes, sweep, text / sweep);
    print_time("verify_ns", VERIFY);
    print_time("protobuf_ns", DECODE_PROTOBUF);
    print_time("json_ns", DECODE_JSON);
    print_ratio("accept_protobuf", ACCEPT_PROTOBUF, VERIFY);
    print_ratio("accept_json", ACCEPT_JSON, VERIFY);
    print_ratio("protobuf_c", PROTOBUF_C, DECODE_PROTOBUF);
    print_ratio("protobuf_c_arena", PROTOBUF_C_ARENA, DECODE_PROTOBUF);
    print_ratio("jansson", JANSSON, DECODE_JSON);
    print_ratio("refuse_protobuf", REFUSE_PROTOBUF, DECODE_PROTOBUF);
    print_ratio("refuse_json", REFUSE_JSON, DECODE_JSON);
    print_ratio("protobuf_by_verify", DECODE_PROTOBUF, VERIFY);
    print_ratio("json_by_verify", DECODE_JSON, VERIFY);
    printf("}\n");
    fflush(stdout);
    release(protobuf);
    release(json);
    release(preimage);
    release(bad_protobuf);
    release(bad_json);
}

int main(int argc, char **argv)
{
    if (argc > 1) rounds = (unsigned)strtoul(argv[1], NULL, 10);
    must(rounds > 0 && rounds <= ROUNDS_MAX, "rounds: 1 to 101");
    fb_b32 seed = {{1}};
    must(fb_sodium_create(4, &sodium) == FB_OK, "libsodium");
    provider = fb_sodium_provider(sodium);
    must(fb_sodium_add_signing(sodium, &seed, &key) == FB_OK, "key");
    must(provider->public_key(provider->user, key, &public_key) == FB_OK, "key");
    for (size_t i = 0; i < shape_count; i++) {
        if (argc > 2 && strcmp(argv[2], shapes[i].name) != 0) continue;
        bench(&shapes[i]);
    }
    fb_sodium_destroy(sodium);
    return 0;
}
