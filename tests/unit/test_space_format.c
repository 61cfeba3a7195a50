/* SPDX-License-Identifier: Apache-2.0 */
/* Formats of the space plane: statements, invites, frames of pending links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "protocol/base/hash.h"
#include "protocol/base/uuid.h"
#include "protocol/link/link.h"
#include "protocol/space/invite.h"

static fb_b32 key_of(uint8_t fill)
{
    fb_b32 key;
    memset(key.b, fill, sizeof key.b);
    return key;
}

static fb_id space_id(void)
{
    fb_id id;
    assert_true(fb_uuid_parse(fb_span_text("0195a3f0-8000-7890-abcd-000000000001"), &id));
    return id;
}

static fb_statement statement_of(fb_statement_kind kind, const char *text)
{
    fb_statement s;
    memset(&s, 0, sizeof s);
    s.kind = kind;
    s.key = key_of(0xab);
    if (kind == FB_STATEMENT_MEMBER) {
        s.status = FB_MEMBER_APPROVED;
        s.role = FB_ROLE_WRITER;
    }
    s.text_len = (uint8_t)strlen(text);
    memcpy(s.text, text, s.text_len);
    return s;
}

static void check_same(const fb_statement *a, const fb_statement *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_true(fb_b32_equal(a->key, b->key));
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->role, b->role);
    assert_int_equal(a->text_len, b->text_len);
    assert_memory_equal(a->text, b->text, sizeof a->text);
}

static void statements_round_trip(void **state)
{
    (void)state;
    const fb_statement all[] = {
        statement_of(FB_STATEMENT_SPACE, "Gr\xc3\xbc\xc3\x9f\x65 \"quoted\" \\ \xf0\x9f\x98\x80"),
        statement_of(FB_STATEMENT_MEMBER, ""),
        statement_of(FB_STATEMENT_ADDRESS, "[2001:db8::1]:4711"),
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        fb_statement_fields fields;
        fb_statement_encode(&all[i], &fields);
        assert_in_range(fields.count, 3, FB_STATEMENT_FIELDS_MAX);
        fb_statement back;
        assert_int_equal(fb_statement_decode(fields.field, fields.count, &back), FB_OK);
        check_same(&all[i], &back);

        /* In any order, and not with one field less or twice. */
        fb_field_write turned[FB_STATEMENT_FIELDS_MAX + 1];
        for (uint32_t f = 0; f < fields.count; f++) {
            turned[f] = fields.field[fields.count - 1 - f];
        }
        assert_int_equal(fb_statement_decode(turned, fields.count, &back), FB_OK);
        check_same(&all[i], &back);
        for (uint32_t f = 0; f < fields.count; f++) {
            memcpy(turned, fields.field, sizeof fields.field);
            turned[f] = turned[fields.count - 1];
            assert_int_equal(fb_statement_decode(turned, fields.count - 1, &back),
                             FB_ERR_STATEMENT);
            turned[fields.count] = fields.field[f];
            assert_int_equal(fb_statement_decode(turned, fields.count + 1, &back),
                             FB_ERR_STATEMENT);
        }
    }
    assert_int_equal(fb_statement_decode(NULL, 0, &(fb_statement){0}), FB_ERR_STATEMENT);
}

/* Replaces one value of a member statement, and decodes. */
static fb_status with_value(const char *name, const char *value)
{
    fb_statement s = statement_of(FB_STATEMENT_MEMBER, "");
    fb_statement_fields fields;
    fb_statement_encode(&s, &fields);
    for (uint32_t i = 0; i < fields.count; i++) {
        if (fb_span_equal(fields.field[i].name, fb_span_text(name))) {
            fields.field[i].value = fb_span_text(value);
        }
    }
    fb_statement back;
    return fb_statement_decode(fields.field, fields.count, &back);
}

static void later_kinds_are_refused_not_guessed(void **state)
{
    (void)state;
    assert_int_equal(with_value("role", "\"reader\""), FB_OK);
    assert_int_equal(with_value("role", "\"owner\""), FB_ERR_UNSUPPORTED);
    assert_int_equal(with_value("role", "1"), FB_ERR_STATEMENT);
    assert_int_equal(with_value("status", "\"revoked\""), FB_ERR_UNSUPPORTED);
    assert_int_equal(with_value("status", ""), FB_ERR_STATEMENT);
    assert_int_equal(with_value("statement", "\"revocation\""), FB_ERR_UNSUPPORTED);
    assert_int_equal(with_value("statement", "null"), FB_ERR_STATEMENT);
    assert_int_equal(with_value("statement", "\"address\""), FB_ERR_STATEMENT);
    assert_int_equal(with_value("key", "\"ab\""), FB_ERR_STATEMENT);

    fb_statement s = statement_of(FB_STATEMENT_MEMBER, "");
    fb_statement_fields fields;
    fb_statement back;
    fb_statement_encode(&s, &fields);
    fields.field[1].act = FB_ACT_UNSET;
    assert_int_equal(fb_statement_decode(fields.field, fields.count, &back), FB_ERR_UNSUPPORTED);
    fb_statement_encode(&s, &fields);
    fields.field[3].name = fb_span_text("until");
    assert_int_equal(fb_statement_decode(fields.field, fields.count, &back), FB_ERR_UNSUPPORTED);
    /* Upper-case digits are a second spelling of one key. */
    fb_statement_encode(&s, &fields);
    fields.key[5] = 'A';
    assert_int_equal(fb_statement_decode(fields.field, fields.count, &back), FB_ERR_STATEMENT);
}

/* Replaces one value of a recovery, and decodes. */
static fb_status recovery_with(const char *name, const char *value, fb_statement *back)
{
    fb_statement s = statement_of(FB_STATEMENT_RECOVERY, "");
    s.number = 251;
    s.turn = 4294967295u;
    memset(s.proof.b, 0x5a, sizeof s.proof.b);
    fb_statement_fields fields;
    fb_statement_encode(&s, &fields);
    assert_int_equal(fields.count, FB_STATEMENT_FIELDS_MAX);
    for (uint32_t i = 0; i < fields.count; i++) {
        if (fb_span_equal(fields.field[i].name, fb_span_text(name))) {
            fields.field[i].value = fb_span_text(value);
        }
    }
    return fb_statement_decode(fields.field, fields.count, back);
}

/* What the recovery key gave under one of its own numbers can be taken away. */
static void numbers_of_the_recovery_key_are_taken_back(void **state)
{
    (void)state;
    static const char quotes[] = "\"\""; /* around a cut that names nothing */
    for (uint32_t number = 250; number <= 254; number += 2) {
        fb_statement s = statement_of(FB_STATEMENT_STANDING, ""), back;
        s.number = (uint8_t)number;
        s.role = FB_ROLE_NONE;
        s.cut = fb_span_of(quotes + 1, 0);
        fb_statement_fields fields;
        fb_statement_encode(&s, &fields);
        assert_int_equal(fb_statement_decode(fields.field, fields.count, &back), FB_OK);
        assert_int_equal(back.number, number);
        s.number = (uint8_t)(number + 1);
        s.role = FB_ROLE_WRITER;
        fb_statement_encode(&s, &fields);
        assert_int_equal(fb_statement_decode(fields.field, fields.count, &back), FB_ERR_LIMIT);
    }
}

static void recoveries_have_one_spelling(void **state)
{
    (void)state;
    fb_statement back;
    assert_int_equal(recovery_with("", "", &back), FB_OK);
    assert_int_equal(back.number, 251);
    assert_int_equal(back.turn, 4294967295u);
    assert_int_equal(back.role, FB_ROLE_ADMIN);
    assert_int_equal(back.proof.b[63], 0x5a);
    static const struct {
        const char *name, *value;
        fb_status status;
    } wrong[] = {
        /* The first number is that of an admission, and even ones take. */
        {"number", "1", FB_ERR_STATEMENT},         {"number", "4", FB_ERR_STATEMENT},
        {"number", "257", FB_ERR_LIMIT},           {"number", "03", FB_ERR_STATEMENT},
        {"number", "-3", FB_ERR_STATEMENT},        {"number", "3.0", FB_ERR_STATEMENT},
        {"number", "\"3\"", FB_ERR_STATEMENT},     {"number", "", FB_ERR_STATEMENT},
        {"turn", "0", FB_ERR_STATEMENT},           {"turn", "4294967296", FB_ERR_LIMIT},
        {"turn", "99999999999", FB_ERR_STATEMENT}, {"proof", "\"5a\"", FB_ERR_STATEMENT},
        {"proof", "null", FB_ERR_STATEMENT},       {"key", "\"ab\"", FB_ERR_STATEMENT},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(recovery_with(wrong[i].name, wrong[i].value, &back), wrong[i].status);
    }
    char upper[131];
    snprintf(upper, sizeof upper, "\"%0128d\"", 0);
    assert_int_equal(recovery_with("proof", upper, &back), FB_OK);
    upper[5] = 'A';
    assert_int_equal(recovery_with("proof", upper, &back), FB_ERR_STATEMENT);
}

static fb_status with_text(fb_statement_kind kind, const char *value)
{
    fb_statement s = statement_of(kind, "x");
    fb_statement_fields fields;
    fb_statement_encode(&s, &fields);
    fields.field[2].value = fb_span_text(value);
    fb_statement back;
    return fb_statement_decode(fields.field, fields.count, &back);
}

static void texts_have_one_spelling(void **state)
{
    (void)state;
    assert_int_equal(with_text(FB_STATEMENT_SPACE, "\"a\""), FB_OK);
    assert_int_equal(with_text(FB_STATEMENT_SPACE, "\"\\\"\""), FB_OK);
    static const char *const wrong[] = {
        "",
        "\"",
        "\"\"",
        "a",
        "\"a",
        "\"\\\"",
        "\"\\u0041\"",
        "\"\\n\"",
        "\"a\"b\"",
        "\"\x1b[2J\"",
        "\"\xc2\x9b\"",
        "\"\xff\"",
        "\"\xc0\xaf\"",
        "\"\xed\xa0\x80\"",
        "\"\xe2\x82\"",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(with_text(FB_STATEMENT_SPACE, wrong[i]), FB_ERR_STATEMENT);
    }
    assert_int_equal(with_text(FB_STATEMENT_ADDRESS, "\"host:1\""), FB_OK);
    assert_int_equal(with_text(FB_STATEMENT_ADDRESS, "\"ho st:1\""), FB_ERR_STATEMENT);
    assert_int_equal(with_text(FB_STATEMENT_ADDRESS, "\"h\xc3\xb6:1\""), FB_ERR_STATEMENT);

    char longest[FB_SPACE_NAME_BYTES_MAX + 1];
    memset(longest, 'n', sizeof longest);
    assert_true(fb_name_is_valid(fb_span_of(longest, FB_SPACE_NAME_BYTES_MAX)));
    assert_false(fb_name_is_valid(fb_span_of(longest, FB_SPACE_NAME_BYTES_MAX + 1)));
    assert_true(fb_address_is_valid(fb_span_of(longest, FB_ADDRESS_BYTES_MAX)));
    assert_false(fb_address_is_valid(fb_span_of(longest, FB_ADDRESS_BYTES_MAX + 1)));
    assert_false(fb_name_is_valid(fb_span_of("a\0b", 3)));

    /* The longest name, every byte of it escaped. */
    fb_statement s = statement_of(FB_STATEMENT_SPACE, "");
    memset(s.text, '"', sizeof s.text);
    s.text_len = FB_SPACE_NAME_BYTES_MAX;
    fb_statement_fields fields;
    fb_statement_encode(&s, &fields);
    fb_statement back;
    assert_int_equal(fb_statement_decode(fields.field, fields.count, &back), FB_OK);
    check_same(&s, &back);
}

static void records_follow_from_what_they_are_about(void **state)
{
    (void)state;
    fb_id space = space_id();
    fb_b32 a = key_of(1);
    fb_b32 b = key_of(2);
    fb_id of_a = fb_statement_record(space, FB_STATEMENT_MEMBER, &a);
    fb_id of_b = fb_statement_record(space, FB_STATEMENT_MEMBER, &b);
    fb_id at_a = fb_statement_record(space, FB_STATEMENT_ADDRESS, &a);
    assert_true(fb_id_equal(fb_statement_record(space, FB_STATEMENT_SPACE, &a), space));
    assert_false(fb_id_equal(of_a, of_b));
    assert_false(fb_id_equal(of_a, at_a));
    fb_id other = space;
    other.b[15] ^= 1;
    assert_false(fb_id_equal(of_a, fb_statement_record(other, FB_STATEMENT_MEMBER, &a)));
    assert_true(fb_uuid_is_v7(of_a));
    assert_int_equal(fb_uuid_ms(of_a), fb_uuid_ms(space));

    /* Bit by bit against the hash. */
    const fb_span parts[] = {fb_span_of("faberio-member-v1", 18), fb_span_of(space.b, 16),
                             fb_span_of(a.b, 32)};
    uint8_t hash[16];
    fb_blake3(parts, 3, hash, sizeof hash);
    for (unsigned bit = 0; bit < 74; bit++) {
        unsigned at = bit < 12 ? 52 + bit : 66 + (bit - 12);
        unsigned want = (unsigned)hash[bit / 8] >> (7 - bit % 8) & 1u;
        assert_int_equal((unsigned)of_a.b[at / 8] >> (7 - at % 8) & 1u, want);
    }
}

static fb_invite some_invite(void)
{
    fb_invite invite;
    memset(&invite, 0, sizeof invite);
    invite.space = space_id();
    invite.id = fb_statement_record(invite.space, FB_STATEMENT_MEMBER, &(fb_b32){{9}});
    invite.secret = key_of(3);
    invite.inviter = key_of(4);
    invite.creator = key_of(5);
    invite.expires_us = -5;
    invite.address_len = 11;
    memcpy(invite.address, "127.0.0.1:1", 11);
    invite.name_len = 4;
    memcpy(invite.name, "home", 4);
    return invite;
}

/* The checksum at the end made right for what stands before it. */
static void seal_invite(uint8_t *bytes, size_t len)
{
    static const uint8_t label[] = "faberio-invite-v1";
    size_t before = len - FB_INVITE_SUM_BYTES;
    fb_span parts[2] = {fb_span_of(label, sizeof label), fb_span_of(bytes, before)};
    fb_blake3(parts, 2, bytes + before, FB_INVITE_SUM_BYTES);
}

static void invites_are_strict(void **state)
{
    (void)state;
    fb_invite invite = some_invite();
    uint8_t bytes[FB_INVITE_BYTES_MAX + 1];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_invite_write(&invite, &w);
    size_t len = fb_writer_span(&w).len;
    fb_invite back;
    assert_int_equal(fb_invite_read(fb_span_of(bytes, len), &back), FB_OK);
    assert_memory_equal(&back.secret, &invite.secret, 32);
    assert_memory_equal(&back.inviter, &invite.inviter, 32);
    assert_memory_equal(&back.creator, &invite.creator, 32);
    assert_true(fb_id_equal(back.space, invite.space));
    assert_true(fb_id_equal(back.id, invite.id));
    assert_true(back.expires_us == -5);
    assert_true(fb_span_equal(fb_invite_address(&back), fb_invite_address(&invite)));
    assert_true(fb_span_equal(fb_invite_name(&back), fb_invite_name(&invite)));

    for (size_t n = 0; n < len; n++) {
        assert_int_equal(fb_invite_read(fb_span_of(bytes, n), &back), FB_ERR_INVITE);
    }
    bytes[len] = 0;
    assert_int_equal(fb_invite_read(fb_span_of(bytes, len + 1), &back), FB_ERR_INVITE);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(fb_invite_read(fb_span_of(bytes, len), &back), FB_ERR_INVITE);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    bytes[0] = FB_INVITE_VERSION + 1;
    seal_invite(bytes, len);
    assert_int_equal(fb_invite_read(fb_span_of(bytes, len), &back), FB_ERR_VERSION_NEWER);
    bytes[0] = 0;
    seal_invite(bytes, len);
    assert_int_equal(fb_invite_read(fb_span_of(bytes, len), &back), FB_ERR_INVITE);
    bytes[0] = FB_INVITE_VERSION;
    bytes[1 + 6] = 0x40; /* the space's id becomes one of version 4 */
    seal_invite(bytes, len);
    assert_int_equal(fb_invite_read(fb_span_of(bytes, len), &back), FB_ERR_INVITE);
}

static void frames_are_strict(void **state)
{
    (void)state;
    uint8_t bytes[FB_STATEMENT_PROOF_BYTES_MAX + 8];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_invite_frame shown = {FB_LINK_DIALER, space_id(), key_of(7), FB_MEMBER_NONE};
    fb_invite_frame_write(&shown, &w);
    fb_span frame = fb_writer_span(&w);
    fb_invite_frame back;
    assert_int_equal(frame.len, FB_INVITE_FRAME_BYTES_MAX - 1);
    assert_int_equal(fb_invite_frame_read(frame, &back), FB_OK);
    assert_int_equal(back.role, FB_LINK_DIALER);
    assert_int_equal(fb_invite_frame_read(fb_span_of(bytes, frame.len - 1), &back),
                     FB_ERR_MALFORMED);

    w = fb_writer_of(bytes, sizeof bytes);
    shown.role = FB_LINK_ACCEPTOR;
    shown.status = FB_MEMBER_PENDING;
    fb_invite_frame_write(&shown, &w);
    frame = fb_writer_span(&w);
    assert_int_equal(frame.len, FB_INVITE_FRAME_BYTES_MAX);
    assert_int_equal(fb_invite_frame_read(frame, &back), FB_OK);
    assert_int_equal(back.status, FB_MEMBER_PENDING);
    bytes[frame.len - 1] = FB_MEMBER_REVOKED;
    assert_int_equal(fb_invite_frame_read(frame, &back), FB_ERR_MALFORMED);
    bytes[1] = 3;
    assert_int_equal(fb_invite_frame_read(frame, &back), FB_ERR_MALFORMED);

    static const uint8_t batch[FB_STATEMENT_PROOF_BYTES_MAX + 1] = {1};
    fb_membership_frame member = {FB_MEMBER_APPROVED, fb_span_of(batch, sizeof batch - 1)};
    w = fb_writer_of(bytes, sizeof bytes);
    fb_membership_frame_write(&member, &w);
    fb_membership_frame again;
    assert_int_equal(fb_membership_frame_read(fb_writer_span(&w), &again), FB_OK);
    assert_int_equal(again.you, FB_MEMBER_APPROVED);
    assert_true(fb_span_equal(again.statement, member.statement));
    bytes[1] = FB_MEMBER_REVOKED;
    assert_int_equal(fb_membership_frame_read(fb_writer_span(&w), &again), FB_ERR_MALFORMED);
    member.statement.len++;
    w = fb_writer_of(bytes, sizeof bytes);
    fb_membership_frame_write(&member, &w);
    assert_int_equal(fb_membership_frame_read(fb_writer_span(&w), &again), FB_ERR_MALFORMED);
    assert_int_equal(fb_membership_frame_read(fb_span_of(NULL, 0), &again), FB_ERR_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_round_trip),
        cmocka_unit_test(later_kinds_are_refused_not_guessed),
        cmocka_unit_test(numbers_of_the_recovery_key_are_taken_back),
        cmocka_unit_test(recoveries_have_one_spelling),
        cmocka_unit_test(texts_have_one_spelling),
        cmocka_unit_test(records_follow_from_what_they_are_about),
        cmocka_unit_test(invites_are_strict),
        cmocka_unit_test(frames_are_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
