/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/request_codec.h"
#include "runtime/api/held_back.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"

#define INVITE_PREFIX "fbinvite1."

fb_space_row fb_space_row_next(fb_reader *r)
{
    fb_space_row row;
    row.space = fb_read_id(r);
    row.name = fb_read_span16(r);
    row.status = fb_read_u8(r);
    row.role = fb_read_u8(r);
    row.members = fb_read_u32(r);
    row.areas = fb_read_u32(r);
    row.links = fb_read_u32(r);
    row.doubts = fb_read_u32(r);
    row.waiting = fb_read_u32(r);
    return row;
}

fb_peer_row fb_peer_row_next(fb_reader *r)
{
    fb_peer_row row;
    row.space = fb_read_id(r);
    row.node = fb_read_id(r);
    row.address = fb_read_span16(r);
    row.state = fb_read_u8(r);
    row.last = (fb_error)fb_read_u32(r);
    row.offset_us = (int64_t)fb_read_u64(r);
    row.heard_ns = fb_read_u64(r);
    row.link = fb_read_u64(r);
    return row;
}

const char *fb_status_name(uint8_t status)
{
    static const char *const names[] = {"none", "approved", "pending", "revoked"};
    return status < sizeof names / sizeof names[0] ? names[status] : "none";
}

static const char *const role_names[] = {"none", "admin", "writer", "reader"};

const char *fb_role_name(uint8_t role)
{
    return role < sizeof role_names / sizeof role_names[0] ? role_names[role] : "none";
}

uint8_t fb_role_parse(const char *name)
{
    for (size_t i = 1; i < sizeof role_names / sizeof role_names[0]; i++) {
        if (strcmp(name, role_names[i]) == 0) return (uint8_t)i;
    }
    return 0;
}

void fb_collection_write(fb_writer *w, const char *collection)
{
    fb_id area;
    if (fb_uuid_parse_v7(fb_span_text(collection), &area)) {
        fb_write_u8(w, 2);
        fb_write_id(w, area);
    } else {
        fb_write_u8(w, 1);
        fb_write_span16(w, fb_span_text(collection));
    }
}

void fb_json_error(fb_text *out, const char *name, fb_error error)
{
    if (error == FB_OK) {
        fb_json_raw(out, name, fb_span_text("null"));
    } else {
        fb_json_member(out, name, fb_error_name(error));
    }
}

bool fb_json_spaces(fb_text *out, fb_reader *r, const struct fb_held_back *held)
{
    uint16_t count = fb_read_u16(r);
    fb_text_put(out, "[");
    for (uint16_t i = 0; i < count && !r->failed; i++) {
        fb_space_row row = fb_space_row_next(r);
        fb_json_open(out, NULL, '{');
        fb_json_uuid(out, "space_id", row.space);
        fb_json_span(out, "name", row.name);
        fb_json_member(out, "status", fb_status_name(row.status));
        fb_json_member(out, "role", fb_role_name(row.role));
        fb_json_number(out, "members", row.members);
        fb_json_number(out, "areas", row.areas);
        fb_json_number(out, "links", row.links);
        const fb_held_space *space = fb_held_back_of(held, row.space);
        if (space != NULL) fb_held_back_json(out, space);
        fb_json_number(out, "in_doubt", row.doubts);
        if (row.waiting != 0) {
            fb_json_number(out, "waiting", row.waiting);
            fb_json_member(out, "waits_for",
                           "a link to a member that may write: readers are not believed when they "
                           "say that something was replaced or folded");
        }
        fb_json_close(out, '}');
    }
    fb_text_put(out, "]");
    return fb_reader_done(r);
}

bool fb_json_members(fb_text *out, fb_reader *r)
{
    uint16_t count = fb_read_u16(r);
    fb_text_put(out, "[");
    for (uint16_t i = 0; i < count && !r->failed; i++) {
        fb_id node = fb_read_id(r);
        fb_b32 key = fb_read_b32(r);
        uint8_t status = fb_read_u8(r), role = fb_read_u8(r);
        fb_json_open(out, NULL, '{');
        fb_json_hex(out, "node_id", node.b, sizeof node.b);
        fb_json_hex(out, "public_key", key.b, sizeof key.b);
        fb_json_member(out, "status", fb_status_name(status));
        fb_json_member(out, "role", fb_role_name(role));
        fb_json_close(out, '}');
    }
    fb_text_put(out, "]");
    return fb_reader_done(r);
}

bool fb_json_peers(fb_text *out, fb_reader *r, uint64_t now_mono_ns)
{
    static const char *const states[] = {"idle", "dialling", "handshake", "pending", "open"};
    uint16_t count = fb_read_u16(r);
    fb_text_put(out, "[");
    for (uint16_t i = 0; i < count && !r->failed; i++) {
        fb_peer_row row = fb_peer_row_next(r);
        fb_json_open(out, NULL, '{');
        fb_json_uuid(out, "space_id", row.space);
        if (fb_id_is_zero(row.node)) {
            fb_json_raw(out, "node_id", fb_span_text("null"));
        } else {
            fb_json_hex(out, "node_id", row.node.b, sizeof row.node.b);
        }
        fb_json_span(out, "address", row.address);
        fb_json_member(out, "state",
                       row.state < sizeof states / sizeof states[0] ? states[row.state]
                                                                    : "unknown");
        fb_json_error(out, "last_error", row.last);
        fb_json_number(out, "clock_offset_ms", row.offset_us / 1000);
        bool heard = row.heard_ns != 0 && row.heard_ns <= now_mono_ns;
        fb_json_number(out, "heard_ms_ago",
                       heard ? (int64_t)((now_mono_ns - row.heard_ns) / 1000000) : -1);
        fb_json_u64_string(out, "link", row.link);
        fb_json_close(out, '}');
    }
    fb_text_put(out, "]");
    return fb_reader_done(r);
}

bool fb_json_peer_messages(fb_text *out, fb_reader *r)
{
    (void)fb_read_u8(r);
    uint16_t count = fb_read_u16(r);
    fb_text_put(out, "[");
    for (uint16_t i = 0; i < count && !r->failed; i++) {
        fb_id space = fb_read_id(r), node = fb_read_id(r);
        bool known = fb_read_u8(r) != 0;
        int64_t offset_us = (int64_t)fb_read_u64(r);
        fb_json_open(out, NULL, '{');
        fb_json_uuid(out, "space_id", space);
        fb_json_hex(out, "node_id", node.b, sizeof node.b);
        if (known) fb_json_number(out, "clock_offset_ms", offset_us / 1000);
        static const char *const names[] = {"delivered", "conflicts", "floor_resets", "dropped"};
        for (size_t k = 0; k < 4; k++) fb_json_number(out, names[k], (int64_t)fb_read_u64(r));
        fb_json_open(out, "refused", '{');
        uint8_t reasons = fb_read_u8(r);
        for (uint8_t k = 0; k < reasons && !r->failed; k++) {
            uint16_t reason = fb_read_u16(r);
            fb_json_number(out, fb_error_name((fb_error)reason), (int64_t)fb_read_u64(r));
        }
        fb_json_close(out, '}');
        fb_json_close(out, '}');
    }
    fb_text_put(out, "]");
    return fb_reader_done(r);
}

bool fb_json_record(fb_text *out, fb_reader *r)
{
    fb_id id = fb_read_id(r), etag = fb_read_id(r);
    uint16_t fields = fb_read_u16(r);
    bool too_large = fields == UINT16_MAX;
    if (too_large) fields = 0;
    fb_text conflicts = {0};
    fb_json_open(out, NULL, '{');
    fb_json_uuid(out, "id", id);
    fb_json_hex(out, "etag", etag.b, sizeof etag.b);
    fb_json_open(out, "fields", '{');
    fb_text_put(&conflicts, "{");
    for (uint16_t i = 0; i < fields && !r->failed; i++) {
        fb_span name = fb_read_span16(r);
        uint16_t siblings = fb_read_u16(r);
        for (uint16_t k = 0; k < siblings && !r->failed; k++) {
            fb_id node = fb_read_id(r);
            fb_read_bytes(r, 16); /* incarnation, sequence */
            int64_t stamp = (int64_t)fb_read_u64(r);
            fb_span value = fb_read_span32(r);
            if (k == 0) {
                fb_json_element(out);
                fb_json_string(out, name);
                fb_text_put(out, ":");
                fb_text_bytes(out, value.p, value.len);
                continue;
            }
            if (k == 1) {
                fb_json_element(&conflicts);
                fb_json_string(&conflicts, name);
                fb_text_put(&conflicts, ":[");
            }
            fb_json_open(&conflicts, NULL, '{');
            fb_json_raw(&conflicts, "value", value);
            fb_json_hex(&conflicts, "node_id", node.b, sizeof node.b);
            fb_json_time(&conflicts, "stamp", stamp);
            fb_json_close(&conflicts, '}');
        }
        if (siblings > 1) fb_text_put(&conflicts, "]");
    }
    fb_json_close(out, '}');
    fb_text_put(&conflicts, "}");
    fb_json_raw(out, "conflicts", fb_span_of(conflicts.p, conflicts.len));
    fb_text_free(&conflicts);
    if (too_large) fb_json_error(out, "error", FB_ERR_LIMIT);
    fb_json_close(out, '}');
    return !r->failed;
}

void fb_invite_text(fb_span invite, fb_text *out)
{
    char text[2048];
    fb_text_put(out, INVITE_PREFIX);
    if (sodium_base64_encoded_len(invite.len, sodium_base64_VARIANT_URLSAFE_NO_PADDING) >
        sizeof text) {
        return;
    }
    sodium_bin2base64(text, sizeof text, invite.p, invite.len,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    fb_text_put(out, text);
}

bool fb_invite_bytes(fb_span text, uint8_t *out, size_t cap, size_t *len)
{
    while (text.len > 0 && text.p[0] <= ' ') text = fb_span_of(text.p + 1, text.len - 1);
    while (text.len > 0 && text.p[text.len - 1] <= ' ') text.len--;
    size_t prefix = strlen(INVITE_PREFIX);
    if (text.len <= prefix || memcmp(text.p, INVITE_PREFIX, prefix) != 0) return false;
    const char *end = NULL;
    const char *begin = (const char *)text.p + prefix;
    return sodium_base642bin(out, cap, begin, text.len - prefix, NULL, len, &end,
                             sodium_base64_VARIANT_URLSAFE_NO_PADDING) == 0 &&
           end == begin + text.len - prefix;
}

uint32_t fb_feed_space(fb_id space)
{
    fb_reader r = fb_reader_of(fb_span_of(space.b + sizeof space.b - 4, 4));
    return fb_read_u32(&r);
}

fb_feed_cursor fb_feed_cursor_read(fb_reader *r, fb_id space)
{
    fb_feed_cursor cursor = {.sequence = fb_read_u64(r), .space = fb_feed_space(space)};
    cursor.incarnation = fb_read_u64(r);
    return cursor;
}

bool fb_feed_cursor_parse(const char *text, fb_feed_cursor *out)
{
    char number[24];
    uint8_t life[8], space[4];
    unsigned long long sequence;
    *out = (fb_feed_cursor){0, 0, 0};
    if (strcmp(text, "0") == 0) return true;
    if (text[0] == '0') return false; /* one text a cursor */
    size_t len = strcspn(text, "-");
    if (len >= sizeof number || strlen(text + len) != 1 + 16 + 1 + 8 || text[len + 17] != '-') {
        return false;
    }
    memcpy(number, text, len);
    number[len] = 0;
    if (!fb_text_number(number, UINT64_MAX - 1, &sequence)) return false;
    if (!fb_hex_parse(fb_span_of(text + len + 1, 16), life, sizeof life) ||
        !fb_hex_parse(fb_span_of(text + len + 18, 8), space, sizeof space)) {
        return false;
    }
    fb_reader r = fb_reader_of(fb_span_of(life, sizeof life));
    fb_reader s = fb_reader_of(fb_span_of(space, sizeof space));
    *out = (fb_feed_cursor){sequence, fb_read_u64(&r), fb_read_u32(&s)};
    return true;
}

const char *fb_feed_cursor_format(fb_feed_cursor cursor, char out[FB_CURSOR_TEXT_MAX + 1])
{
    if (cursor.sequence == 0) return strcpy(out, "0");
    snprintf(out, FB_CURSOR_TEXT_MAX + 1, "%llu-%016llx-%08x", (unsigned long long)cursor.sequence,
             (unsigned long long)cursor.incarnation, (unsigned)cursor.space);
    return out;
}
