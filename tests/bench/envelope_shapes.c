/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/envelope_shapes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "protocol/base/draw.h"
#include "protocol/base/limits.h"
#include "protocol/envelope/json_names.h"

/* A payload being written. */
struct maker {
    uint8_t *p;
    size_t at;
    fb_seed seed;
    uint64_t draws;
    unsigned names; /* given so far: names of one object must differ */
};

static unsigned draw(maker *m, unsigned bound)
{
    return (unsigned)fb_draw_below(m->seed, 1, 0, m->draws++, bound);
}

static void put(maker *m, const char *text)
{
    size_t len = strlen(text);
    memcpy(m->p + m->at, text, len);
    m->at += len;
}

__attribute__((format(printf, 2, 3))) static void putf(maker *m, const char *format, ...)
{
    char text[96];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    put(m, text);
}

static void letters(maker *m, unsigned count)
{
    static const char of[] = "abcdefghijklmnopqrstuvwxyz     ABCDEFGHIJ0123456789.,-";
    for (unsigned i = 0; i < count; i++) m->p[m->at++] = (uint8_t)of[draw(m, sizeof of - 1)];
}

static void word(maker *m, unsigned count)
{
    for (unsigned i = 0; i < count; i++) m->p[m->at++] = (uint8_t)('a' + draw(m, 26));
}

/* A name that no other member of the object has: a word of varied length, then a count. */
static void name(maker *m)
{
    put(m, "\"");
    word(m, 1 + draw(m, 9));
    putf(m, "%u\":", m->names++ % 256);
}

/* ---- Values ---- */

static void integer(maker *m)
{
    static const unsigned bounds[] = {10, 100, 1000, 100000, 1000000000};
    putf(m, "%s%u", draw(m, 8) == 0 ? "-" : "", draw(m, bounds[draw(m, 5)]));
}

static void decimal(maker *m)
{
    putf(m, "%u.%u", draw(m, 1000), draw(m, 100000));
    if (draw(m, 3) == 0) putf(m, "e%s%u", draw(m, 2) == 0 ? "-" : "", draw(m, 30));
}

static void literal(maker *m)
{
    static const char *const of[] = {"true", "false", "null"};
    put(m, of[draw(m, 3)]);
}

static void prose(maker *m)
{
    static const char *const more[] = {"\xc3\xa9", "\xe2\x82\xac", "\\n", "\\\"", "\\u00fc"};
    put(m, "\"");
    letters(m, 4 + draw(m, 28));
    if (draw(m, 4) == 0) {
        put(m, more[draw(m, 5)]);
        letters(m, draw(m, 12));
    }
    put(m, "\"");
}

static void scalar(maker *m)
{
    switch (draw(m, 8)) {
    case 0:
    case 1:
        integer(m);
        break;
    case 2:
        decimal(m);
        break;
    case 3:
        literal(m);
        break;
    default:
        prose(m);
        break;
    }
}

static void value(maker *m, unsigned depth)
{
    unsigned kind = depth == 0 ? 9 : draw(m, 10);
    if (kind == 0) {
        put(m, "{");
        for (unsigned i = draw(m, 5); i-- > 0;) {
            name(m);
            value(m, depth - 1);
            if (i != 0) put(m, ",");
        }
        put(m, "}");
    } else if (kind == 1) {
        put(m, "[");
        for (unsigned i = draw(m, 6); i-- > 0;) {
            value(m, depth - 1);
            if (i != 0) put(m, ",");
        }
        put(m, "]");
    } else {
        scalar(m);
    }
}

/* ---- Shapes: what stands between the object's identifier and its last brace ---- */

/* A string that takes what is left. */
static void rest(maker *m, size_t end)
{
    put(m, ",\"note\":\"");
    letters(m, (unsigned)(end - m->at - 1));
    put(m, "\"");
}

static void two_members(maker *m, size_t end)
{
    put(m, ",\"n\":");
    while (m->at < end) putf(m, "%u", 1 + draw(m, 9));
}

static void three_members(maker *m, size_t end)
{
    put(m, ",\"");
    word(m, 3 + draw(m, 6));
    put(m, "x\":");
    integer(m);
    rest(m, end);
}

static void five_members(maker *m, size_t end)
{
    put(m, ",\"done\":");
    literal(m);
    put(m, ",\"c\":");
    integer(m);
    put(m, ",\"at\":");
    decimal(m);
    rest(m, end);
}

/* Members of all kinds; the objects are those of a record and its lists. */
static void mixed(maker *m, size_t end)
{
    put(m, ",\"rows\":[{");
    name(m);
    scalar(m);
    while (m->at + 520 < end) {
        if (draw(m, 12) == 0) {
            put(m, "},{");
        } else {
            put(m, ",");
        }
        name(m);
        value(m, 2);
    }
    put(m, "}]");
    if (m->at + 16 < end) rest(m, end);
}

static void long_string(maker *m, size_t end)
{
    put(m, ",\"a\":\"");
    letters(m, (unsigned)(end - m->at - 1));
    put(m, "\"");
}

/* Pieces of a string, each as likely as the others. */
static void string_of(maker *m, size_t end, const char *const *pieces, unsigned count)
{
    put(m, ",\"a\":\"");
    while (m->at + 14 < end) put(m, pieces[draw(m, count)]);
    put(m, "\"");
}

static void two_byte_characters(maker *m, size_t end)
{
    static const char *const of[] = {"\xc3\xa9", "\xd0\xb6", "\xdf\xbf", "\xc2\x80"};
    string_of(m, end, of, 4);
}

static void three_byte_characters(maker *m, size_t end)
{
    static const char *const of[] = {"\xe4\xb8\xad", "\xe2\x82\xac", "\xed\x9f\xbf",
                                     "\xe0\xa0\x80"};
    string_of(m, end, of, 4);
}

static void all_characters(maker *m, size_t end)
{
    static const char *const of[] = {"a", " b", "\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x98\x80"};
    string_of(m, end, of, 5);
}

static void short_escapes(maker *m, size_t end)
{
    static const char *const of[] = {"\\n", "\\\"", "\\\\", "\\/", "\\t"};
    string_of(m, end, of, 5);
}

static void escapes_in_text(maker *m, size_t end)
{
    static const char *const of[] = {"a", "bc", " def", "\\n", "\\\"", "\\u00e9", "\\\\"};
    string_of(m, end, of, 7);
}

static void unicode_escapes(maker *m, size_t end)
{
    static const char *const of[] = {"\\u00e9", "\\u20AC", "\\u0041", "\\ud83d\\ude00"};
    string_of(m, end, of, 4);
}

static void white_space(maker *m, size_t end)
{
    put(m, ",\"a\":[0");
    while (m->at + 80 < end) {
        for (unsigned i = draw(m, 60); i-- > 0;) put(m, draw(m, 9) == 0 ? "\n" : " ");
        put(m, ",1");
    }
    put(m, "]");
}

static void array_of(maker *m, size_t end, void (*element)(maker *m))
{
    put(m, ",\"a\":[");
    element(m);
    while (m->at + 40 < end) {
        put(m, ",");
        element(m);
    }
    put(m, "]");
}

static void integers(maker *m, size_t end)
{
    array_of(m, end, integer);
}

static void decimals(maker *m, size_t end)
{
    array_of(m, end, decimal);
}

static void literals(maker *m, size_t end)
{
    array_of(m, end, literal);
}

static void empty(maker *m)
{
    put(m, draw(m, 2) == 0 ? "[]" : "{}");
}

static void empties(maker *m, size_t end)
{
    array_of(m, end, empty);
}

static void short_string(maker *m)
{
    put(m, "\"");
    word(m, draw(m, 12));
    put(m, "\"");
}

static void short_strings(maker *m, size_t end)
{
    array_of(m, end, short_string);
}

/* Down to some level and up again. `kind` tells whether a level is an object. */
static void nested(maker *m, unsigned depth, bool (*kind)(maker *m, unsigned level))
{
    bool object[FB_PAYLOAD_DEPTH_MAX];
    for (unsigned i = 0; i < depth; i++) {
        object[i] = kind(m, i);
        put(m, object[i] ? "{\"k\":" : "[");
    }
    put(m, "1");
    for (unsigned i = depth; i-- > 0;) put(m, object[i] ? "}" : "]");
}

static bool no_object(maker *m, unsigned level)
{
    (void)m;
    (void)level;
    return false;
}

static bool every_other(maker *m, unsigned level)
{
    (void)m;
    return level % 2 == 1;
}

static bool either(maker *m, unsigned level)
{
    (void)level;
    return draw(m, 2) == 0;
}

/* As deep as it may be, or nearly. */
static void deep_nesting(maker *m, size_t end)
{
    put(m, ",\"a\":[0");
    while (m->at + 100 < end) {
        put(m, ",");
        nested(m, FB_PAYLOAD_DEPTH_MAX - 2 - draw(m, 4), draw(m, 2) == 0 ? no_object : every_other);
    }
    put(m, "]");
}

/* Nothing of it can be foretold. */
static void random_nesting(maker *m, size_t end)
{
    put(m, ",\"a\":[0");
    while (m->at + 100 < end) {
        put(m, ",");
        nested(m, 1 + draw(m, FB_PAYLOAD_DEPTH_MAX - 2), either);
    }
    put(m, "]");
}

/* Objects of so many members, with names of so many letters and a count. */
static void objects_of(maker *m, size_t end, unsigned members, unsigned letters_max)
{
    put(m, ",\"a\":[0");
    while (m->at + 100 < end) {
        put(m, ",{");
        for (unsigned i = 0; i < members && m->at + 90 < end; i++) {
            put(m, i == 0 ? "\"" : ",\"");
            word(m, letters_max == 0 ? 0 : 1 + draw(m, letters_max));
            if (members > 1) putf(m, "%u", i);
            putf(m, "\":%u", draw(m, 10));
        }
        put(m, "}");
    }
    put(m, "]");
}

static void objects_1(maker *m, size_t end)
{
    objects_of(m, end, 1, 0);
}

static void objects_8(maker *m, size_t end)
{
    objects_of(m, end, 8, 3);
}

static void objects_9(maker *m, size_t end)
{
    objects_of(m, end, 9, 3);
}

static void objects_256(maker *m, size_t end)
{
    objects_of(m, end, 256, 3);
}

static void long_names(maker *m, size_t end)
{
    objects_of(m, end, 256, 60);
}

static void escaped_names(maker *m, size_t end)
{
    put(m, ",\"a\":[0");
    while (m->at + 100 < end) {
        put(m, ",{");
        for (unsigned i = 0; i < 200 && m->at + 90 < end; i++) {
            putf(m, "%s\"\\u00%02x%u\":0", i == 0 ? "" : ",", 0x61 + draw(m, 26), i);
        }
        put(m, "}");
    }
    put(m, "]");
}

/* Names that meet in one place of every index. */
static void crowded_names(maker *m, size_t end)
{
    static uint8_t names[250][16];
    static unsigned count;
    for (unsigned i = 0; count < 250; i++) {
        uint8_t text[17];
        snprintf((char *)text, sizeof text, "%08x", i * 2654435761u);
        memset(text + 8, 0, 8);
        if ((fb_json_name_hash_short(text, 8) & 511) == 7) memcpy(names[count++], text, 16);
    }
    put(m, ",\"a\":[0");
    while (m->at + 100 < end) {
        put(m, ",{");
        for (unsigned i = 0; i < count && m->at + 90 < end; i++) {
            putf(m, "%s\"%s\":%u", i == 0 ? "" : ",", (const char *)names[i], draw(m, 10));
        }
        put(m, "}");
    }
    put(m, "]");
}

#define KIB48 FB_PAYLOAD_BYTES_MAX

/* clang-format off */
const shape shapes[] = {
    {"two members",           60,    two_members,           SPELLED_SHORTEST},
    {"three members",         128,   three_members,         SPELLED_SHORTEST},
    {"five members",          128,   five_members,          SPELLED_SHORTEST},
    {"mixed",                 1024,  mixed,                 SPELLED_SHORTEST},
    {"mixed",                 KIB48, mixed,                 SPELLED_SHORTEST},
    {"one long string",       KIB48, long_string,           SPELLED_SHORTEST},
    {"two-byte characters",   KIB48, two_byte_characters,   SPELLED_SHORTEST},
    {"three-byte characters", KIB48, three_byte_characters, SPELLED_SHORTEST},
    {"all characters",        KIB48, all_characters,        SPELLED_SHORTEST},
    {"short escapes",         KIB48, short_escapes,         SPELLED_SHORTEST},
    {"escapes in text",       KIB48, escapes_in_text,       SPELLED_SHORTEST},
    {"unicode escapes",       KIB48, unicode_escapes,       SPELLED_SHORTEST},
    {"every byte escaped",    KIB48, long_string,           SPELLED_UNITS},
    {"some bytes escaped",    KIB48, long_string,           SPELLED_RANDOM},
    {"white space",           KIB48, white_space,           SPELLED_SHORTEST},
    {"integers",              KIB48, integers,              SPELLED_SHORTEST},
    {"decimals",              KIB48, decimals,              SPELLED_SHORTEST},
    {"literals",              KIB48, literals,              SPELLED_SHORTEST},
    {"empty values",          KIB48, empties,               SPELLED_SHORTEST},
    {"short strings",         KIB48, short_strings,         SPELLED_SHORTEST},
    {"deep nesting",          KIB48, deep_nesting,          SPELLED_SHORTEST},
    {"random nesting",        KIB48, random_nesting,        SPELLED_SHORTEST},
    {"objects of 1 member",   KIB48, objects_1,             SPELLED_SHORTEST},
    {"objects of 8 members",  KIB48, objects_8,             SPELLED_SHORTEST},
    {"objects of 9 members",  KIB48, objects_9,             SPELLED_SHORTEST},
    {"many small members",    KIB48, objects_256,           SPELLED_SHORTEST},
    {"long names",            KIB48, long_names,            SPELLED_SHORTEST},
    {"escaped names",         KIB48, escaped_names,         SPELLED_SHORTEST},
    {"crowded names",         KIB48, crowded_names,         SPELLED_SHORTEST},
};
/* clang-format on */
const size_t shape_count = sizeof shapes / sizeof shapes[0];

size_t shape_make(const shape *s, unsigned number, uint8_t *out)
{
    maker m = {.p = out, .seed = {(uint64_t)(s - shapes), number}};
    putf(&m, "{\"object_id\":\"0195a3f0-%04x-7%03x-a%03x-%06x%06x\"", draw(&m, 65536),
         draw(&m, 4096), draw(&m, 4096), draw(&m, 1 << 24), draw(&m, 1 << 24));
    s->fill(&m, s->bytes - 1);
    put(&m, "}");
    return m.at;
}

size_t shape_spell(const shape *s, unsigned number, const uint8_t *payload, size_t len,
                   uint8_t *out)
{
    maker m = {.p = out, .seed = {1, number}};
    for (size_t i = 0; i < len; i++) {
        uint8_t c = payload[i];
        bool unit = s->spelling == SPELLED_UNITS ||
                    (s->spelling == SPELLED_RANDOM && c < 0x80 && draw(&m, 2) == 0);
        if (unit) {
            putf(&m, "\\u%04x", c);
        } else {
            if (c == '"' || c == '\\') m.p[m.at++] = '\\';
            m.p[m.at++] = c;
        }
    }
    return m.at;
}
