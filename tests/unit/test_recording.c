/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings: the plain format, the files they are sealed in, and the replay of a small node. Real
 * ones are in tests/e2e/test_recorder.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/files/sealed_file.h"
#include "io/recorder.h"
#include "protocol/core/recording.h"
#include "sim/record/merge.h"
#include "sim/record/redact.h"
#include "sim/record/replay.h"
#include "sim/world/provider_fast.h"

#define ROOM (1u << 22)

static uint8_t room[ROOM];

/* A recording of a small node: it starts, finds an empty store, is asked something, ticks. */

typedef struct recorded {
    fb_options options;
    fb_node *node;
    fb_effects effects;
    fb_writer out;
    fb_sim_provider provider;
    fb_provider table;
    uint64_t now;
} recorded;

static uint8_t scratch[FB_SIM_PROVIDER_TEXT_MAX];
static recorded *current;

static void note(fb_recording_call call, uint32_t result, const void *bytes, size_t len)
{
    fb_recording_write_output(&current->out, call, result, fb_span_of(bytes, len));
}

static fb_status public_key(void *user, fb_key_handle key, fb_b32 *out)
{
    fb_status status = current->provider.table.public_key(user, key, out);
    note(FB_CALL_PUBLIC_KEY, status, out->b, 32);
    return status;
}

static void sha256(void *user, const fb_span *parts, size_t count, fb_b32 *out)
{
    current->provider.table.sha256(user, parts, count, out);
    note(FB_CALL_SHA256, FB_OK, out->b, 32);
}

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    return calloc(1, bytes);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

static void step(recorded *r, fb_event event)
{
    event.mono_ns = r->now += 1000000;
    event.wall_us = INT64_C(1790000000000000) + (int64_t)(r->now / 1000);
    fb_recording_write_event(&r->out, &event);
    fb_status status = fb_node_step(r->node, &event, &r->effects);
    fb_recording_write_step(&r->out, status, &r->effects, fb_node_digest(r->node));
}

static size_t record(void)
{
    static recorded r;
    memset(&r, 0, sizeof r);
    current = &r;
    fb_sim_provider_init(&r.provider, (fb_seed){1, 2}, (fb_seed){3, 4}, scratch);
    r.table = r.provider.table;
    r.table.public_key = public_key;
    r.table.sha256 = sha256;
    r.options = fb_options_small();
    r.options.allocator = (fb_allocator){NULL, allocate, release};
    r.options.provider = &r.table;
    r.options.identity_key = FB_SIM_KEY_IDENTITY;
    r.options.link_key = FB_SIM_KEY_LINK;
    r.options.observe = true;
    r.effects.capacity = fb_effects_bytes_min(&r.options);
    r.effects.memory = calloc(1, r.effects.capacity);
    assert_non_null(r.effects.memory);
    r.out = fb_writer_of(room, sizeof room);
    /* Whose it is shows when it is made: the header is written behind that, and moved. */
    assert_int_equal(fb_node_create(&r.options, &r.node), FB_OK);
    fb_span outputs = fb_writer_span(&r.out);
    uint8_t kept[512];
    assert_true(outputs.len < sizeof kept);
    memcpy(kept, outputs.p, outputs.len);
    r.out = fb_writer_of(room, sizeof room);
    fb_recording_header header = {.program = "test",
                                  .node = fb_node_self(r.node),
                                  .effects_capacity = r.effects.capacity,
                                  .options = r.options};
    fb_recording_write_header(&r.out, &header);
    fb_write_bytes(&r.out, kept, outputs.len);
    step(&r, (fb_event){.kind = FB_EV_START, .a = 7, .b = 8, .c = 9});
    step(&r, (fb_event){.kind = FB_EV_REQUEST, .a = 1, .b = 1});
    for (int i = 0; i < 3; i++) step(&r, (fb_event){.kind = FB_EV_TICK});
    fb_recording_write_end(&r.out);
    assert_false(r.out.failed);
    fb_node_destroy(r.node);
    free(r.effects.memory);
    return r.out.at;
}

static fb_sim_replayed replay(fb_span bytes, fb_sim_replay *r)
{
    if (fb_sim_replay_open(r, bytes)) {
        while (fb_sim_replay_next(r) == FB_SIM_REPLAY_STEP) {
        }
    }
    fb_sim_replay_close(r);
    return r->over;
}

static void the_same_steps_are_made_again(void **state)
{
    (void)state;
    static fb_sim_replay r;
    size_t len = record();
    assert_int_equal(replay(fb_span_of(room, len), &r), FB_SIM_REPLAY_END);
    assert_int_equal(r.steps, 5);
    assert_int_equal(r.starts, 1);
    assert_true(r.whole);
    fb_hash128 hash = r.hash;
    assert_int_equal(replay(fb_span_of(room, len), &r), FB_SIM_REPLAY_END);
    assert_memory_equal(&hash, &r.hash, sizeof hash);
}

static void every_cut_is_replayed_as_far_as_it_goes(void **state)
{
    (void)state;
    static fb_sim_replay r;
    size_t len = record();
    uint8_t *copy = malloc(len);
    assert_non_null(copy);
    memcpy(copy, room, len);
    uint64_t steps = 0;
    for (size_t cut = 0; cut < len; cut++) {
        assert_int_equal(replay(fb_span_of(copy, cut), &r), FB_SIM_REPLAY_END);
        assert_true(r.steps >= steps && r.why[0] != 0 && !r.whole);
        steps = r.steps;
    }
    free(copy);
}

/* Whatever came of a step, and whatever the provider said, shows when it is another. */
static void every_change_shows(void **state)
{
    (void)state;
    static fb_sim_replay r;
    size_t len = record();
    fb_reader in = fb_reader_of(fb_span_of(room, len));
    fb_recording_item item;
    bool cut;
    uint32_t shown[128] = {0};
    while (fb_recording_read(&in, false, &item, &cut) == FB_OK) {
        if (item.kind == FB_RECORDING_END) break;
        /* Of a hash the first byte: a node's id is half of one. */
        size_t at = item.kind == FB_RECORDING_OUTPUT ? in.at - item.len : in.at - 1;
        room[at] ^= 1;
        fb_sim_replayed how = replay(fb_span_of(room, len), &r);
        room[at] ^= 1;
        /* Sizes of a header and numbers of an event need not come to anything at once. */
        if (item.kind == FB_RECORDING_HEADER || item.kind == FB_RECORDING_EVENT) continue;
        /* Nothing was signed or verified with the key itself. */
        if (item.kind == FB_RECORDING_OUTPUT && item.call == FB_CALL_PUBLIC_KEY) continue;
        assert_int_equal(how, FB_SIM_REPLAY_DIFFERS);
        shown[item.kind]++;
    }
    assert_true(shown[FB_RECORDING_STEP] == 5 && shown[FB_RECORDING_OUTPUT] > 0);
}

static void what_is_no_recording_is_named(void **state)
{
    (void)state;
    static fb_sim_replay r;
    size_t len = record();
    assert_int_equal(replay(fb_span_text("X\0\0\0\0"), &r), FB_SIM_REPLAY_END);
    room[5] = 0x7f; /* the version */
    assert_int_equal(replay(fb_span_of(room, len), &r), FB_SIM_REPLAY_MALFORMED);
    assert_non_null(strstr(r.why, "another version"));
    len = record();
    room[0] = 'E';
    assert_int_equal(replay(fb_span_of(room, len), &r), FB_SIM_REPLAY_MALFORMED);
    len = record();
    fb_reader in = fb_reader_of(fb_span_of(room, len));
    fb_recording_item item;
    bool cut;
    assert_int_equal(fb_recording_read(&in, false, &item, &cut), FB_OK);
    room[in.at] = 'Z';
    assert_int_equal(replay(fb_span_of(room, len), &r), FB_SIM_REPLAY_MALFORMED);
    assert_non_null(strstr(r.why, "byte"));
    record();
    memset(room + in.at + 1, 0xff, 4);
    assert_int_equal(fb_recording_read(&in, false, &item, &cut), FB_ERR_MALFORMED);
}

/* Histories of several nodes, redacted ones written by hand: facts alone are judged. */

typedef struct history {
    uint8_t bytes[8192];
    fb_writer w;
    uint8_t arena[2048];
    fb_effects effects;
    uint64_t now;
} history;

static fb_hash128 hash_none(void *user, fb_span bytes)
{
    (void)user;
    return (fb_hash128){bytes.len, 0};
}

static void history_begin(history *h, uint8_t node)
{
    memset(h, 0, sizeof *h);
    h->w = fb_writer_of(h->bytes, sizeof h->bytes);
    h->effects = (fb_effects){.memory = h->arena, .capacity = sizeof h->arena};
    fb_recording_header header = {
        .program = "test", .node = {{node}}, .effects_capacity = 65536, .redacted = true};
    header.options = fb_options_small();
    fb_recording_write_header(&h->w, &header);
}

/* One step with one fact. */
static void history_step(history *h, fb_event event, fb_fact fact, uint64_t b, fb_span bytes)
{
    fb_effect head = {FB_FX_OBSERVE, (uint32_t)bytes.len, (uint64_t)fact, b, 0};
    memset(h->arena, 0, sizeof h->arena);
    memcpy(h->arena, &head, sizeof head);
    if (bytes.len != 0) memcpy(h->arena + sizeof head, bytes.p, bytes.len);
    h->effects.used = sizeof head + ((bytes.len + 7) & ~(size_t)7);
    event.mono_ns = h->now += 1000000;
    event.wall_us = INT64_C(1790000000000000) + (int64_t)(h->now / 1000);
    fb_recording_redact_event(&h->w, &event, hash_none, NULL);
    fb_recording_redact_step(&h->w, FB_OK, &h->effects, (fb_hash128){0, 0}, hash_none, NULL);
    fb_recording_write_fact(&h->w, fb_effects_next(&h->effects, NULL));
}

/* area, record, dot (node, incarnation, seq), stamp, author */
static fb_span change(uint8_t out[80], uint8_t node, uint64_t incarnation, uint64_t seq)
{
    fb_writer w = fb_writer_of(out, 80);
    fb_write_id(&w, (fb_id){{9}});
    fb_write_id(&w, (fb_id){{8}});
    fb_write_id(&w, (fb_id){{node}});
    fb_write_u64(&w, incarnation);
    fb_write_u64(&w, seq);
    fb_write_u64(&w, 77);
    fb_write_u64(&w, 0);
    return fb_writer_span(&w);
}

static const char *judged(const history *histories, uint32_t count)
{
    static char check[64];
    fb_span spans[4];
    fb_sim_replayed worst;
    uint32_t which;
    char why[700];
    for (uint32_t i = 0; i < count; i++) spans[i] = fb_writer_span(&histories[i].w);
    fb_sim_world *world = fb_sim_merge(spans, count, 64, NULL, &worst, &which, why, sizeof why);
    assert_non_null(world);
    snprintf(check, sizeof check, "%s", world->check != NULL ? world->check : "");
    fb_sim_merge_close(world);
    return check;
}

static void a_history_that_breaks_a_rule_is_found(void **state)
{
    (void)state;
    static history h[2];
    uint8_t bytes[80];
    fb_event start = {.kind = FB_EV_START, .a = 5}, tick = {.kind = FB_EV_TICK};
    for (uint64_t second = 1; second <= 3; second++) {
        history_begin(&h[0], 1);
        history_begin(&h[1], 2);
        start.a = 5;
        history_step(&h[0], start, FB_FACT_STARTED, 5, (fb_span){NULL, 0});
        start.a = 6;
        history_step(&h[1], start, FB_FACT_STARTED, 6, (fb_span){NULL, 0});
        history_step(&h[0], tick, FB_FACT_WRITTEN, 1, change(bytes, 1, 5, 1));
        history_step(&h[1], tick, FB_FACT_APPLIED, 1, change(bytes, 1, 5, 1));
        /* Number 1 again, the next one, one left out. */
        history_step(&h[0], tick, FB_FACT_WRITTEN, 2, change(bytes, 1, 5, second));
        assert_string_equal(judged(h, 2), second == 2 ? "" : "dots-unique");
    }
    history_step(&h[1], tick, FB_FACT_APPLIED, 2, change(bytes, 1, 5, 9));
    /* Of a life that nobody recorded nothing can be said. */
    history_begin(&h[0], 1);
    history_begin(&h[1], 2);
    history_step(&h[1], start, FB_FACT_STARTED, 6, (fb_span){NULL, 0});
    history_step(&h[1], tick, FB_FACT_APPLIED, 1, change(bytes, 3, 4, 1));
    assert_string_equal(judged(h, 2), "");
    start.a = 5;
    history_step(&h[0], start, FB_FACT_STARTED, 5, (fb_span){NULL, 0});
    for (int i = 0; i < 6; i++) history_step(&h[1], tick, FB_FACT_STARTED, 6, (fb_span){NULL, 0});
    history_step(&h[1], tick, FB_FACT_APPLIED, 1, change(bytes, 1, 5, 1));
    assert_string_equal(judged(h, 2), "applied-was-written");
    /* Identifiers that go back. */
    history_begin(&h[0], 1);
    history_step(&h[0], start, FB_FACT_STARTED, 5, (fb_span){NULL, 0});
    fb_id id = {{1, [6] = 0x70, [8] = 0x80}};
    history_step(&h[0], tick, FB_FACT_UUID, 0, fb_span_of(id.b, 16));
    assert_string_equal(judged(h, 1), "");
    history_step(&h[0], tick, FB_FACT_UUID, 0, fb_span_of(id.b, 16));
    assert_string_equal(judged(h, 1), "ids-ascend");
}

/* Sealed files. */

typedef struct sealed {
    char directory[64];
    char path[512];
    fb_b32 secret, reader_key;
} sealed;

static int sealed_begin(void **state)
{
    static sealed s;
    snprintf(s.directory, sizeof s.directory, "/tmp/fb-recording-XXXXXX");
    if (mkdtemp(s.directory) == NULL || sodium_init() < 0) return -1;
    snprintf(s.path, sizeof s.path, "%s/file", s.directory);
    memset(s.secret.b, 0x42, sizeof s.secret.b);
    crypto_scalarmult_base(s.reader_key.b, s.secret.b);
    *state = &s;
    return 0;
}

static int sealed_end(void **state)
{
    sealed *s = *state;
    unlink(s->path);
    return rmdir(s->directory);
}

static size_t file_get(const sealed *s, uint8_t *out, size_t max)
{
    FILE *file = fopen(s->path, "rb");
    assert_non_null(file);
    size_t len = fread(out, 1, max, file);
    fclose(file);
    return len;
}

static void file_put(const sealed *s, const uint8_t *bytes, size_t len)
{
    FILE *file = fopen(s->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    fclose(file);
}

static void a_sealed_file_is_read_as_far_as_it_is_whole(void **state)
{
    sealed *s = *state;
    fb_sealed_writer w;
    fb_sealed_content content;
    char why[512];
    assert_true(fb_sealed_create(&w, s->path, &s->reader_key));
    fb_sealed_writer second;
    assert_false(fb_sealed_create(&second, s->path, &s->reader_key));
    assert_true(fb_sealed_write(&w, fb_span_text("first "), false));
    assert_true(fb_sealed_write(&w, fb_span_of(room, 100000), false));
    uint64_t before = w.bytes;
    assert_true(fb_sealed_write(&w, fb_span_text("last"), true));
    fb_sealed_close(&w);
    static uint8_t file[200000];
    size_t len = file_get(s, file, sizeof file);
    assert_int_equal(len, w.bytes);

    assert_int_equal(fb_sealed_read(s->path, &s->secret, &content, why, sizeof why), FB_OK);
    assert_true(content.whole && content.sealed);
    assert_int_equal(content.len, 6 + 100000 + 4);
    assert_memory_equal(content.bytes, "first ", 6);
    assert_memory_equal(content.bytes + 6, room, 100000);
    free(content.bytes);

    fb_b32 other = {{1}};
    assert_int_equal(fb_sealed_read(s->path, &other, &content, why, sizeof why), FB_ERR_KEY);
    assert_int_equal(fb_sealed_read(s->path, NULL, &content, why, sizeof why), FB_ERR_KEY);

    for (size_t cut = (size_t)before; cut < len; cut++) {
        file_put(s, file, cut);
        assert_int_equal(fb_sealed_read(s->path, &s->secret, &content, why, sizeof why), FB_OK);
        assert_true(!content.whole && content.len == 6 + 100000);
        free(content.bytes);
    }
    for (size_t cut = 0; cut < 153; cut++) {
        file_put(s, file, cut);
        assert_int_equal(fb_sealed_read(s->path, &s->secret, &content, why, sizeof why),
                         FB_ERR_MALFORMED);
    }
    for (size_t at = 0; at < len; at += at < 400 ? 1 : 997) {
        file[at] ^= 0x10;
        file_put(s, file, len);
        fb_status status = fb_sealed_read(s->path, &s->secret, &content, why, sizeof why);
        /* A length that is larger looks like a file that ends; nothing changed is ever read. */
        if (status == FB_OK) assert_true(!content.whole && content.len < 6 + 100000 + 4);
        if (status == FB_OK) free(content.bytes);
        file[at] ^= 0x10;
    }
    file_put(s, file, len);
    FILE *longer = fopen(s->path, "ab");
    assert_non_null(longer);
    fputs("more", longer);
    fclose(longer);
    assert_int_equal(fb_sealed_read(s->path, &s->secret, &content, why, sizeof why),
                     FB_ERR_MALFORMED);
    assert_non_null(strstr(why, "after its end"));
}

/* A disk that takes no more ends the recording, and nothing else. */
static void a_recorder_gives_up_quietly(void **state)
{
    sealed *s = *state;
    fb_recorder *recorder;
    char why[512], file[128];
    fb_recorder_options options = {
        .path = s->path,
        .reader_key = s->reader_key,
        .bytes_max = FB_RECORDER_BYTES_MIN,
        .program = "test",
    };
    assert_int_equal(fb_recorder_open(&options, &recorder, why, sizeof why), FB_OK);
    fb_options node = fb_options_small();
    fb_recorder_instance(recorder, &node, (fb_id){{1}}, 1024);
    assert_true(node.observe && node.digest_every_step && node.provider != NULL);
    fb_event event = {.kind = FB_EV_TICK};
    fb_recorder_event(recorder, &event);
    fb_recorder_stats stats;
    fb_recorder_stats_get(recorder, &stats);
    assert_string_equal(stats.failed, "");
    assert_int_equal(stats.files, 1);
    snprintf(file, sizeof file, "%s", stats.file);
    static uint8_t large[FB_SEALED_FRAME_MAX];
    event.len = sizeof large;
    event.bytes = large;
    fb_recorder_event(recorder, &event);
    fb_recorder_stats_get(recorder, &stats);
    assert_string_not_equal(stats.failed, "");
    assert_false(fb_recorder_is_full(recorder));
    event.len = 0;
    fb_recorder_event(recorder, &event);
    fb_recorder_close(recorder);
    unlink(file);
    file_put(s, large, 0);
}

/* The corpus of fuzz/fuzz_recording.c has recordings without what was said. Another layout of a
 * node's options makes of them recordings of another version, at which every reader stops: then
 * `test_recording --corpus` writes them anew. */
#define CORPUS FB_SOURCE_DIR "/fuzz/corpus/recording/"

#define MAGIC "faberio-record-1P" /* of a file; the target takes what follows */

static size_t redacted(const sealed *s, uint8_t *out, size_t max)
{
    static fb_sim_replay r;
    fb_sim_redaction redaction;
    size_t len = record();
    assert_true(fb_sim_replay_open(&r, fb_span_of(room, len)));
    assert_true(fb_sim_redact_begin(&redaction, s->path, &r, hash_none, NULL));
    while (fb_sim_replay_next(&r) == FB_SIM_REPLAY_STEP) fb_sim_redact_step(&redaction, &r);
    assert_true(fb_sim_redact_end(&redaction, &r));
    fb_sim_replay_close(&r);
    len = file_get(s, out, max);
    assert_true(len > sizeof MAGIC && len < max);
    return len;
}

static void corpus_write(const sealed *s)
{
    static uint8_t bytes[ROOM];
    sealed file = *s;
    size_t len = redacted(s, bytes, sizeof bytes);
    static const struct {
        const char *name;
        size_t less;
    } inputs[] = {{"redacted", 0}, {"redacted-cut-within-a-step", 60}};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        snprintf(file.path, sizeof file.path, CORPUS "%s", inputs[i].name);
        file_put(&file, bytes + sizeof MAGIC - 1, len - (sizeof MAGIC - 1) - inputs[i].less);
    }
}

static void the_corpus_is_of_this_version(void **state)
{
    static uint8_t bytes[ROOM], mine[ROOM];
    static fb_sim_replay r;
    sealed file = *(sealed *)*state;
    size_t len = redacted(*state, mine, sizeof mine) - (sizeof MAGIC - 1);
    assert_int_equal(replay(fb_span_of(mine + sizeof MAGIC - 1, len), &r), FB_SIM_REPLAY_END);
    assert_true(r.whole && r.header.redacted && r.header.effects_capacity <= 1u << 20);
    uint64_t steps = r.steps;
    assert_int_equal(steps, 5);
    snprintf(file.path, sizeof file.path, CORPUS "redacted");
    len = file_get(&file, bytes, sizeof bytes);
    assert_int_equal(replay(fb_span_of(bytes, len), &r), FB_SIM_REPLAY_END);
    assert_true(r.whole && r.steps == steps);
    snprintf(file.path, sizeof file.path, CORPUS "redacted-cut-within-a-step");
    len = file_get(&file, bytes, sizeof bytes);
    assert_int_equal(replay(fb_span_of(bytes, len), &r), FB_SIM_REPLAY_END);
    assert_true(!r.whole && r.steps > 0 && r.steps < steps);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--corpus") == 0) {
        void *state;
        if (sealed_begin(&state) != 0) return 1;
        corpus_write(state);
        return sealed_end(&state);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_corpus_is_of_this_version, sealed_begin, sealed_end),
        cmocka_unit_test(the_same_steps_are_made_again),
        cmocka_unit_test(every_cut_is_replayed_as_far_as_it_goes),
        cmocka_unit_test(every_change_shows),
        cmocka_unit_test(what_is_no_recording_is_named),
        cmocka_unit_test(a_history_that_breaks_a_rule_is_found),
        cmocka_unit_test_setup_teardown(a_sealed_file_is_read_as_far_as_it_is_whole, sealed_begin,
                                        sealed_end),
        cmocka_unit_test_setup_teardown(a_recorder_gives_up_quietly, sealed_begin, sealed_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
