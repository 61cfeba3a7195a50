/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/envelope_make.h"

#include <stdio.h>
#include <stdlib.h>

#include "protocol/envelope/json.h"

#define PAYLOAD "{\"object_id\":\"0195a3f0-9150-7898-abcd-000000000013\"}"

static uint8_t room[2 * FB_ENVELOPE_JSON_BYTES_MAX];

json_make json_make_default(void)
{
    return (json_make){
        .value =
            {
                [FB_ENVELOPE_ID] = "\"0195a3f0-9200-7899-8def-000000000012\"",
                [FB_ENVELOPE_SPACE] = "\"0195a3f0-8000-7890-abcd-000000000001\"",
                [FB_ENVELOPE_SOURCE] = "\"2fa5bd0b6d0b9e23d8713a87a52ddcff\"",
                [FB_ENVELOPE_MODE] = "\"topic\"",
                [FB_ENVELOPE_TARGET] = "\"platform.replication.database\"",
                [FB_ENVELOPE_TYPE] = "\"platform.replication.changed\"",
                [FB_ENVELOPE_PAYLOAD] =
                    "\"{\\\"object_id\\\":\\\"0195a3f0-9150-7898-abcd-000000000013\\\"}\"",
                [FB_ENVELOPE_TIMESTAMP] = "1718000001000",
                [FB_ENVELOPE_CORRELATION] = NULL,
                [FB_ENVELOPE_SIGNATURE] = "\"0000000000000000000000000000000000000000000000000000"
                                          "000000000000000000000000000000000000000000000000000000"
                                          "0000000000000000000000\"",
            },
        .before = "",
        .inside = "",
        .after = "",
    };
}

static void put(fb_writer *w, const char *text)
{
    fb_write_bytes(w, text, strlen(text));
}

static fb_span done(const fb_writer *w)
{
    if (w->failed) {
        fputs("envelope_make: too long\n", stderr);
        abort();
    }
    return fb_writer_span(w);
}

fb_span json_make_text(const json_make *m)
{
    fb_writer w = fb_writer_of(room, sizeof room);
    put(&w, m->before);
    put(&w, "{");
    bool first = true;
    for (unsigned i = 1; i <= FB_ENVELOPE_FIELDS; i++) {
        if (m->value[i] == NULL) continue;
        put(&w, first ? "\"" : ",\"");
        put(&w, fb_envelope_field_name((fb_envelope_field)i));
        put(&w, "\":");
        put(&w, m->value[i]);
        first = false;
    }
    put(&w, m->inside);
    put(&w, "}");
    put(&w, m->after);
    return done(&w);
}

static const uint8_t id[16] = {0x01, 0x95, 0xa3, 0xf0, 0x92, 0, 0x78, 0x99,
                               0x8d, 0xef, 0,    0,    0,    0, 0,    0x12};
static const uint8_t space[16] = {0x01, 0x95, 0xa3, 0xf0, 0x80, 0, 0x78, 0x90,
                                  0xab, 0xcd, 0,    0,    0,    0, 0,    1};
static const uint8_t source[16] = {0x2f, 0xa5, 0xbd, 0x0b, 0x6d, 0x0b, 0x9e, 0x23,
                                   0xd8, 0x71, 0x3a, 0x87, 0xa5, 0x2d, 0xdc, 0xff};
static const uint8_t signature[64] = {0};

protobuf_make protobuf_make_default(void)
{
    protobuf_make m = {0};
    const struct {
        fb_envelope_field field;
        fb_span bytes;
    } bytes[] = {
        {FB_ENVELOPE_ID, {id, sizeof id}},
        {FB_ENVELOPE_SPACE, {space, sizeof space}},
        {FB_ENVELOPE_SOURCE, {source, sizeof source}},
        {FB_ENVELOPE_TARGET, fb_span_text("platform.replication.database")},
        {FB_ENVELOPE_TYPE, fb_span_text("platform.replication.changed")},
        {FB_ENVELOPE_PAYLOAD, fb_span_text(PAYLOAD)},
        {FB_ENVELOPE_SIGNATURE, {signature, sizeof signature}},
    };
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        m.field[bytes[i].field].present = true;
        m.field[bytes[i].field].bytes = bytes[i].bytes;
    }
    m.field[FB_ENVELOPE_MODE].present = m.field[FB_ENVELOPE_MODE].number = true;
    m.field[FB_ENVELOPE_MODE].value = FB_DELIVERY_TOPIC;
    m.field[FB_ENVELOPE_TIMESTAMP].present = m.field[FB_ENVELOPE_TIMESTAMP].number = true;
    m.field[FB_ENVELOPE_TIMESTAMP].value = 1718000001000;
    return m;
}

void protobuf_make_text(protobuf_make *m, fb_envelope_field field, const char *text)
{
    m->field[field].present = true;
    m->field[field].bytes = fb_span_text(text);
}

static void put_varint(fb_writer *w, uint64_t v)
{
    for (; v >= 0x80; v >>= 7) fb_write_u8(w, (uint8_t)(v | 0x80));
    fb_write_u8(w, (uint8_t)v);
}

fb_span protobuf_make_bytes(const protobuf_make *m)
{
    fb_writer w = fb_writer_of(room, sizeof room);
    for (unsigned i = 1; i <= FB_ENVELOPE_FIELDS; i++) {
        if (!m->field[i].present) continue;
        put_varint(&w, i << 3 | (m->field[i].number ? 0u : 2u));
        if (m->field[i].number) {
            put_varint(&w, m->field[i].value);
        } else {
            put_varint(&w, m->field[i].bytes.len);
            fb_write_span(&w, m->field[i].bytes);
        }
    }
    fb_write_span(&w, m->after);
    return done(&w);
}

const char *json_quoted(fb_span payload)
{
    static char quoted[FB_JSON_QUOTED_MAX(2 * FB_PAYLOAD_BYTES_MAX) + 1];
    size_t len;
    if (!fb_json_quote(payload, (uint8_t *)quoted, sizeof quoted - 1, &len)) abort();
    quoted[len] = '\0';
    return quoted;
}
