/* SPDX-License-Identifier: Apache-2.0 */
/* A space that goes from a store, ended before each of its writes: what is left is a store that a
 * node can start from, and the next call brings it to its end. fb_lmdb_env_write is this test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/store/forget.h"
#include "io/store/lmdb_env.h"
#include "protocol/base/cursor.h"
#include "protocol/space/space.h"
#include "protocol/space/stored.h"
#include "protocol/store/keys.h"
#include "protocol/store/writeset.h"

#define RECORDS 5000u /* more than one page of what goes */

int __real_fb_lmdb_env_write(fb_lmdb_env *e, const fb_span *sets, size_t count);
int __wrap_fb_lmdb_env_write(fb_lmdb_env *e, const fb_span *sets, size_t count);

static uint32_t writes_left = UINT32_MAX;

int __wrap_fb_lmdb_env_write(fb_lmdb_env *e, const fb_span *sets, size_t count)
{
    if (writes_left == 0) return EIO;
    writes_left--;
    return __real_fb_lmdb_env_write(e, sets, count);
}

typedef struct fixture {
    char directory[64];
    fb_lmdb_env env;
    uint8_t *set;
    size_t len;
} fixture;

static const fb_id self = {{1}}, other = {{2}};
static const fb_b32 self_key = {{11}}, other_key = {{12}};

static fb_id space_id(uint32_t number)
{
    fb_id id = {{0, 0, 0, 0, 0, 0, 0x70, 0, 0x80}};
    id.b[15] = (uint8_t)number;
    return id;
}

static void add(fixture *f, const void *key, size_t key_len, fb_span value)
{
    size_t bytes = fb_write_entry_bytes(key_len, value.len);
    f->set = realloc(f->set, f->len + bytes);
    assert_non_null(f->set);
    fb_writer w = fb_writer_of(f->set + f->len, bytes);
    fb_write_u8(&w, FB_WRITE_PUT);
    fb_write_u8(&w, 0);
    fb_write_u16(&w, (uint16_t)key_len);
    fb_write_u32(&w, (uint32_t)value.len);
    fb_write_bytes(&w, key, key_len);
    fb_write_span(&w, value);
    while (w.at < bytes) fb_write_u8(&w, 0);
    f->len += bytes;
}

/* Something under a tag and a number, with so much behind it. */
static void add_under(fixture *f, fb_tag tag, uint32_t number, const void *rest, size_t len)
{
    uint8_t key[64];
    fb_writer w = fb_writer_of(key, sizeof key);
    fb_write_u8(&w, (uint8_t)tag);
    if (tag == FB_TAG_VECTOR) fb_write_u8(&w, number & 1);
    fb_write_u32(&w, number);
    fb_write_bytes(&w, rest, len);
    add(f, key, w.at, fb_span_text("something"));
}

static void add_member(fixture *f, uint32_t number, fb_id id, fb_b32 member, uint8_t status)
{
    uint8_t key[21] = {FB_TAG_MEMBER}, value[64];
    fb_store_be(key + 1, number, 4);
    memcpy(key + 5, id.b, 16);
    fb_writer w = fb_writer_of(value, sizeof value);
    fb_write_u8(&w, 1);
    fb_write_b32(&w, member);
    fb_write_u8(&w, status);
    fb_write_u8(&w, 1);
    add(f, key, sizeof key, fb_writer_span(&w));
}

static void add_space(fixture *f, uint32_t number, const char *name, fb_b32 creator)
{
    static const uint8_t proof[] = {1};
    uint8_t key[6] = {FB_TAG_SPACE}, value[256];
    fb_store_be(key + 1, number, 4);
    fb_writer w = fb_writer_of(value, sizeof value);
    fb_write_u8(&w, FB_SPACE_STORED_VERSION);
    fb_write_id(&w, space_id(number));
    fb_write_b32(&w, creator);
    fb_write_b32(&w, creator);
    fb_write_u8(&w, 1);
    fb_write_span16(&w, fb_span_text(name));
    fb_write_span16(&w, fb_span_text("address:1"));
    add(f, key, sizeof key, fb_writer_span(&w));
    add_under(f, FB_TAG_SPACE, number, proof, 1);
    static const fb_tag tags[] = {FB_TAG_STANDING, FB_TAG_CUT,       FB_TAG_INVITE, FB_TAG_PENDING,
                                  FB_TAG_ADDRESS,  FB_TAG_CHANGELOG, FB_TAG_SEEN};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) add_under(f, tags[i], number, "x", 1);
}

static void add_area(fixture *f, uint32_t number, uint32_t space, uint32_t records)
{
    uint8_t key[5] = {FB_TAG_AREA}, value[64], more[4];
    fb_store_be(key + 1, number, 4);
    fb_writer w = fb_writer_of(value, sizeof value);
    fb_write_u8(&w, 1);
    fb_write_u32(&w, space);
    fb_write_u8(&w, 1);
    fb_write_span16(&w, fb_span_text("notes"));
    add(f, key, sizeof key, fb_writer_span(&w));
    static const fb_tag tags[] = {FB_TAG_VECTOR, FB_TAG_BATCH, FB_TAG_FIELD, FB_TAG_TREE,
                                  FB_TAG_WANTED, FB_TAG_MARK,  FB_TAG_DOUBT};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        add_under(f, tags[i], number, "x", tags[i] != FB_TAG_DOUBT);
    }
    for (uint32_t i = 0; i < records; i++) {
        fb_store_be(more, i, 4);
        add_under(f, FB_TAG_RECORD, number, more, 4);
    }
}

static void open_env(fixture *f)
{
    char why[256];
    fb_error error = FB_OK;
    f->env = (fb_lmdb_env){
        .directory = f->directory, .owner = self, .map_bytes = 1u << 26, .map_bytes_max = 1u << 28};
    assert_int_equal(fb_lmdb_env_open(&f->env, why, sizeof why, &error), 0);
}

/* Two spaces with the same in them: 3, of which the first member left, and 256, which is 0 in the
 * last byte of its number; the areas of one stand between those of the other. */
static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    strcpy(f->directory, "/tmp/fb-forget-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    open_env(f);
    add_space(f, 3, "gone", other_key);
    add_space(f, 256, "stays", self_key);
    add_member(f, 3, self, self_key, FB_MEMBER_REVOKED);
    add_member(f, 3, other, other_key, FB_MEMBER_APPROVED);
    add_area(f, 255, 3, RECORDS);
    add_area(f, 256, 256, 3);
    add_area(f, 257, 3, 3);
    const fb_span set = fb_span_of(f->set, f->len);
    writes_left = UINT32_MAX;
    assert_int_equal(__real_fb_lmdb_env_write(&f->env, &set, 1), 0);
    fb_lmdb_env_free(&f->env);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    static const char *const files[] = {"data.mdb", "lock.mdb", "owner.lock"};
    char path[96];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", f->directory, files[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(f->directory), 0);
    free(f->set);
    free(f);
    return 0;
}

/* What there is, by whose it is. */
typedef struct counted {
    uint32_t gone, stays; /* entries of the two, the entry of the space apart */
    uint32_t named;       /* of them, those that may not stand without their space */
    bool left, blank;
} counted;

static void count_at(void *user, fb_span key, fb_span value)
{
    counted *c = user;
    fb_reader k = fb_reader_of(key);
    uint8_t tag = fb_read_u8(&k);
    if (tag == FB_TAG_VECTOR) fb_read_u8(&k);
    uint32_t number = fb_read_u32(&k);
    bool of_area = strchr("AVBRFTWGK", tag) != NULL;
    bool gone = of_area ? number != 256 : number == 3;
    fb_space_stored space;
    if (tag == FB_TAG_SPACE && gone && fb_read_u8(&k) == 0) {
        assert_int_equal(fb_space_stored_decode(value, &space), FB_OK);
        c->left = space.left;
        c->blank = fb_id_is_zero(space.id) && space.name.len == 0;
        return;
    }
    c->gone += gone;
    c->stays += !gone;
    c->named += gone && strchr("SNLXIPD", tag) != NULL;
}

static counted count(fixture *f)
{
    counted c = {.gone = 0};
    uint8_t low[1] = {0}, high[1] = {0xff};
    open_env(f);
    assert_int_equal(
        fb_lmdb_env_scan(&f->env, fb_span_of(low, 1), fb_span_of(high, 1), count_at, &c), 0);
    fb_lmdb_env_free(&f->env);
    return c;
}

static fb_status forget(fixture *f, const char *name, fb_forget_stats *stats)
{
    char why[512] = "";
    const fb_forget_options options = {
        .directory = f->directory, .owner = self, .public_key = self_key, .name = name};
    return fb_store_forget(&options, stats, why, sizeof why);
}

static void each_interruption_is_gone_on_from(void **state)
{
    fixture *f = *state;
    fb_forget_stats stats;
    counted before = count(f);
    assert_true(before.gone > RECORDS + 20 && before.stays > 15 && before.named == 8);
    uint32_t interrupted = 0;
    fb_status status = FB_ERR_STORE_FAILED;
    for (uint32_t gone = before.gone; status != FB_OK; interrupted++) {
        writes_left = interrupted == 0 ? 0 : 1;
        status = forget(f, "gone", &stats);
        writes_left = UINT32_MAX;
        counted now = count(f);
        assert_int_equal(now.stays, before.stays);
        /* Never one without the other. */
        assert_true(now.left ? now.named == 0 : now.named == before.named);
        assert_true(now.gone <= gone);
        assert_true(now.blank == (status == FB_OK));
        gone = now.gone;
        assert_true(interrupted < 100);
    }
    assert_true(interrupted > 10);
    assert_int_equal(count(f).gone, 0);
    assert_int_equal(forget(f, "gone", &stats), FB_ERR_NOT_FOUND);
    /* Nor is what is kept of it a space, whatever it is asked for by. */
    assert_int_equal(forget(f, "", &stats), FB_ERR_NOT_FOUND);
    assert_int_equal(forget(f, NULL, &stats), FB_ERR_NOT_FOUND);
}

static void a_member_beside_others_leaves_first(void **state)
{
    fixture *f = *state;
    fb_forget_stats stats;
    counted before = count(f);
    /* Of its own space it is the only member, until there is another one. */
    open_env(f);
    f->len = 0;
    add_member(f, 256, other, other_key, FB_MEMBER_APPROVED);
    const fb_span set = fb_span_of(f->set, f->len);
    assert_int_equal(__real_fb_lmdb_env_write(&f->env, &set, 1), 0);
    fb_lmdb_env_free(&f->env);
    assert_int_equal(forget(f, "stays", &stats), FB_ERR_CONFLICT);
    assert_int_equal(count(f).stays, before.stays + 1);
    open_env(f);
    f->len = 0;
    add_member(f, 256, other, other_key, FB_MEMBER_REVOKED);
    const fb_span again = fb_span_of(f->set, f->len);
    assert_int_equal(__real_fb_lmdb_env_write(&f->env, &again, 1), 0);
    fb_lmdb_env_free(&f->env);
    assert_int_equal(forget(f, "stays", &stats), FB_OK);
    assert_int_equal(count(f).gone, before.gone);
    assert_int_equal(count(f).stays, 1); /* what is kept of the space */
}

static void documents_are_not_touched(void **state)
{
    fixture *f = *state;
    fb_forget_stats stats;
    open_env(f);
    f->len = 0;
    add(f, "o", 1, fb_span_text("0123456789abcdef"));
    const fb_span set = fb_span_of(f->set, f->len);
    assert_int_equal(__real_fb_lmdb_env_write(&f->env, &set, 1), 0);
    fb_lmdb_env_free(&f->env);
    assert_int_equal(forget(f, "gone", &stats), FB_ERR_UNSUPPORTED);
    assert_int_equal(forget(f, "none", &stats), FB_ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_interruption_is_gone_on_from, setup, teardown),
        cmocka_unit_test_setup_teardown(a_member_beside_others_leaves_first, setup, teardown),
        cmocka_unit_test_setup_teardown(documents_are_not_touched, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
