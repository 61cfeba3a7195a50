/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/envelope/payload.h"

#include "protocol/base/cursor.h"
#include "protocol/base/hex.h"
#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"
#include "protocol/envelope/json.h"

enum { OBJECT, SCOPE, INCARNATION, BATCH, WATCHED };

/* The values are empty: a payload that is known is not scanned. */
static const fb_json_watch members[WATCHED] = {
    [OBJECT] = {.name = {(const uint8_t *)"object_id", 9}},
    [SCOPE] = {.name = {(const uint8_t *)"scope", 5}},
    [INCARNATION] = {.name = {(const uint8_t *)"incarnation", 11}},
    [BATCH] = {.name = {(const uint8_t *)"batch", 5}},
};
#define MEMBER_LENGTHS (UINT64_C(1) << 9 | UINT64_C(1) << 5 | UINT64_C(1) << 11)

static const char *const scope_names[] = {"", "database", "file", "all"};

const char *fb_scope_name(fb_scope scope)
{
    return (unsigned)scope <= FB_SCOPE_ALL ? scope_names[scope] : "";
}

static fb_status refuse(const char **detail, const char *why)
{
    if (detail != NULL) *detail = why;
    return FB_ERR_BAD_PAYLOAD;
}

static bool string_of(const fb_json_watch *member, uint8_t *room, size_t cap, fb_span *out)
{
    return fb_json_is_string(member->value) && fb_json_unquote(member, room, cap, out);
}

static fb_scope read_scope(const fb_json_watch *member)
{
    uint8_t room[16];
    fb_span text;
    if (!string_of(member, room, sizeof room, &text)) return FB_SCOPE_NONE;
    for (int i = FB_SCOPE_DATABASE; i <= FB_SCOPE_ALL; i++) {
        if (fb_span_equal(text, fb_span_text(scope_names[i]))) return (fb_scope)i;
    }
    return FB_SCOPE_NONE;
}

/* A plain integer from 1 to 2^64-1. */
static bool read_integer(fb_span value, uint64_t *out)
{
    if (value.len == 0 || value.p[0] < '1' || value.p[0] > '9') return false;
    uint64_t v = 0;
    for (size_t i = 0; i < value.len; i++) {
        uint8_t c = value.p[i];
        if (c < '0' || c > '9') return false;
        uint64_t digit = (uint64_t)(c - '0');
        if (v > (UINT64_MAX - digit) / 10) return false;
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

/* MP-4-20 */
static void read_batch(const fb_json_watch *watch, fb_payload_facts *facts)
{
    uint8_t room[16], bytes[8];
    fb_span text;
    uint64_t batch;
    if (!string_of(&watch[INCARNATION], room, sizeof room, &text)) return;
    if (!fb_hex_parse(text, bytes, sizeof bytes)) return;
    if (!read_integer(watch[BATCH].value, &batch)) return;
    fb_reader r = fb_reader_of(fb_span_of(bytes, sizeof bytes));
    facts->incarnation = fb_read_u64(&r);
    facts->batch = batch;
    facts->has_batch = true;
}

#define PLAIN_HEAD "{\"object_id\":\""
/* The head, an identifier and the quote behind it. */
#define PLAIN_MEMBER (sizeof PLAIN_HEAD - 1 + FB_UUID_TEXT_LEN + 1)

/* Most payloads begin so, byte for byte: the member needs no scan. */
static bool begins_with_object(fb_span payload, fb_id *object)
{
    const size_t head = sizeof PLAIN_HEAD - 1;
    return payload.len > PLAIN_MEMBER && memcmp(payload.p, PLAIN_HEAD, head) == 0 &&
           payload.p[PLAIN_MEMBER - 1] == '"' &&
           fb_uuid_parse_v7(fb_span_of(payload.p + head, FB_UUID_TEXT_LEN), object);
}

/* MP-4-17 */
static bool read_object(const fb_json_watch *member, fb_id *object)
{
    uint8_t room[FB_UUID_TEXT_LEN];
    fb_span text;
    return string_of(member, room, sizeof room, &text) && fb_uuid_parse_v7(text, object);
}

fb_status fb_payload_check(fb_span payload, fb_message_type type, fb_payload_facts *facts,
                           const char **detail)
{
    return fb_payload_check_within(payload, 0, type, facts, detail);
}

fb_status fb_payload_check_within(fb_span payload, size_t behind, fb_message_type type,
                                  fb_payload_facts *facts, const char **detail)
{
    /* MP-4-12, MP-4-13, MP-4-14, MP-4-15, MP-4-16 */
    static const fb_json_rules rules = {FB_PAYLOAD_DEPTH_MAX, FB_PAYLOAD_MEMBERS_MAX, true, false,
                                        MEMBER_LENGTHS};
    *facts = (fb_payload_facts){0};
    /* MP-4-11 */
    if (payload.len > FB_PAYLOAD_BYTES_MAX) return refuse(detail, "longer than 49,152 bytes");

    fb_json_watch watch[WATCHED];
    memcpy(watch, members, sizeof watch);
    fb_id object;
    bool has_object = begins_with_object(payload, &object);
    bool known = has_object;
    if (known) {
        watch[OBJECT].value = fb_span_of(payload.p + sizeof PLAIN_HEAD - 2, FB_UUID_TEXT_LEN + 2);
    }
    /* What fb_payload_object writes without a batch is all known, and right for every type. */
    if (!known || payload.len != PLAIN_MEMBER + 1 || payload.p[PLAIN_MEMBER] != '}') {
        /* MP-4-4 */
        fb_json_hint hint = {behind, known ? PLAIN_MEMBER : 0, NULL};
        fb_json_fault fault = fb_json_scan_hinted(payload, &hint, &rules, watch, WATCHED, NULL);
        if (fault != FB_JSON_NONE) return refuse(detail, fb_json_fault_text(fault));
    }

    /* FM-5.3-2, MP-4-17 */
    if (!known && watch[OBJECT].value.len != 0) {
        has_object = read_object(&watch[OBJECT], &object);
        if (!has_object) {
            return refuse(detail, "object_id is not a UUID of version 7 in lowercase");
        }
    }
    facts->has_object = has_object;
    if (has_object) facts->object = object;
    if (watch[BATCH].value.len != 0) read_batch(watch, facts);

    switch (type) {
    /* FM-5.2-2, MP-4-18 */
    case FB_TYPE_SYNC: {
        bool has_scope = watch[SCOPE].value.len != 0;
        if (has_object == has_scope) {
            return refuse(detail, "sync carries exactly one of object_id and scope");
        }
        if (!has_scope) break;
        facts->scope = read_scope(&watch[SCOPE]);
        if (facts->scope == FB_SCOPE_NONE) {
            return refuse(detail, "scope is not one of database, file, all");
        }
        break;
    }
    case FB_TYPE_CHANGED:
    case FB_TYPE_CONFLICT:
        /* MP-4-19 */
        if (!has_object) return refuse(detail, "changed and conflict carry object_id");
        break;
    default:
        break;
    }
    return FB_OK;
}

static void put(fb_writer *w, const char *text)
{
    fb_write_bytes(w, text, strlen(text));
}

static void put_decimal(fb_writer *w, uint64_t v)
{
    uint8_t digits[20];
    size_t n = sizeof digits;
    do {
        digits[--n] = (uint8_t)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    fb_write_bytes(w, digits + n, sizeof digits - n);
}

/* FM-5.3-1 */
size_t fb_payload_object(fb_id object, uint64_t incarnation, uint64_t batch,
                         uint8_t out[FB_PAYLOAD_BUILT_MAX])
{
    fb_writer w = fb_writer_of(out, FB_PAYLOAD_BUILT_MAX);
    char uuid[FB_UUID_TEXT_LEN];
    fb_uuid_format(object, uuid);
    put(&w, PLAIN_HEAD);
    fb_write_bytes(&w, uuid, sizeof uuid);
    put(&w, "\"");
    if (batch != 0) {
        uint8_t bytes[8];
        char hex[16];
        fb_store_be(bytes, incarnation, sizeof bytes);
        fb_hex_format(bytes, sizeof bytes, hex);
        put(&w, ",\"incarnation\":\"");
        fb_write_bytes(&w, hex, sizeof hex);
        put(&w, "\",\"batch\":");
        put_decimal(&w, batch);
    }
    put(&w, "}");
    return fb_writer_span(&w).len;
}

size_t fb_payload_scope(fb_scope scope, uint8_t out[FB_PAYLOAD_BUILT_MAX])
{
    fb_writer w = fb_writer_of(out, FB_PAYLOAD_BUILT_MAX);
    put(&w, "{\"scope\":\"");
    put(&w, fb_scope_name(scope));
    put(&w, "\"}");
    return fb_writer_span(&w).len;
}
