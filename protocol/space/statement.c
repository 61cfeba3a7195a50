/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/space/statement.h"

#include "protocol/base/hash.h"
#include "protocol/base/hex.h"
#include "protocol/base/utf8.h"

#define TEXT(literal)                                                                              \
    {                                                                                              \
        (const uint8_t *)(literal), sizeof(literal) - 1                                            \
    }

enum field {
    FIELD_STATEMENT,
    FIELD_KEY,
    FIELD_STATUS,
    FIELD_ROLE,
    FIELD_NAME,
    FIELD_ADDRESS,
    FIELD_NUMBER,
    FIELD_CUT,
    FIELD_TURN,
    FIELD_PROOF,
    FIELDS
};

static const fb_span field_names[FIELDS] = {
    [FIELD_STATEMENT] = TEXT("statement"), [FIELD_KEY] = TEXT("key"),
    [FIELD_STATUS] = TEXT("status"),       [FIELD_ROLE] = TEXT("role"),
    [FIELD_NAME] = TEXT("name"),           [FIELD_ADDRESS] = TEXT("address"),
    [FIELD_NUMBER] = TEXT("number"),       [FIELD_CUT] = TEXT("cut"),
    [FIELD_TURN] = TEXT("turn"),           [FIELD_PROOF] = TEXT("proof"),
};

/* What each kind is called, its record's label, and the fields it has besides `statement`. */
static const struct kind {
    fb_span value;
    const char *label;
    uint16_t fields;
} kinds[] = {
    [FB_STATEMENT_SPACE] = {TEXT("\"space\""), NULL, 1u << FIELD_KEY | 1u << FIELD_NAME},
    [FB_STATEMENT_MEMBER] = {TEXT("\"member\""), "faberio-member-v1",
                             1u << FIELD_KEY | 1u << FIELD_STATUS | 1u << FIELD_ROLE},
    [FB_STATEMENT_ADDRESS] = {TEXT("\"address\""), "faberio-address-v1",
                              1u << FIELD_KEY | 1u << FIELD_ADDRESS},
    [FB_STATEMENT_NAME] = {TEXT("\"name\""), "faberio-name-v1", 1u << FIELD_KEY | 1u << FIELD_NAME},
    [FB_STATEMENT_STANDING] = {TEXT("\"standing\""), "faberio-standing-v1",
                               1u << FIELD_KEY | 1u << FIELD_ROLE | 1u << FIELD_NUMBER |
                                   1u << FIELD_CUT},
    [FB_STATEMENT_RECOVERY] = {TEXT("\"recovery\""), "faberio-recovered-v1",
                               1u << FIELD_KEY | 1u << FIELD_NUMBER | 1u << FIELD_TURN |
                                   1u << FIELD_PROOF},
};

static const fb_span status_approved = TEXT("\"approved\"");

static const fb_span null_value = TEXT("null");

static const fb_span role_values[] = {
    [FB_ROLE_NONE] = TEXT("\"none\""),
    [FB_ROLE_ADMIN] = TEXT("\"admin\""),
    [FB_ROLE_WRITER] = TEXT("\"writer\""),
    [FB_ROLE_READER] = TEXT("\"reader\""),
};

#define KIND_COUNT (sizeof kinds / sizeof kinds[0])
#define ROLE_COUNT (sizeof role_values / sizeof role_values[0])

/* Quotes a text without control characters: only two characters need an escape. */
static fb_span quote(fb_span text, uint8_t *out)
{
    size_t n = 0;
    out[n++] = '"';
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\') out[n++] = '\\';
        out[n++] = text.p[i];
    }
    out[n++] = '"';
    return fb_span_of(out, n);
}

/* Control characters of ASCII and of Latin-1 (two bytes in UTF-8): a terminal may obey both. */
static bool has_control(fb_span text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.p[i];
        if (c < 0x20 || c == 0x7f) return true;
        if (c == 0xc2 && i + 1 < text.len && text.p[i + 1] < 0xa0) return true;
    }
    return false;
}

bool fb_name_is_valid(fb_span name)
{
    return name.len != 0 && name.len <= FB_SPACE_NAME_BYTES_MAX && !has_control(name) &&
           fb_utf8_is_name(name);
}

bool fb_address_is_valid(fb_span address)
{
    if (address.len == 0 || address.len > FB_ADDRESS_BYTES_MAX) return false;
    for (size_t i = 0; i < address.len; i++) {
        uint8_t c = address.p[i];
        if (c <= ' ' || c > '~' || c == '"' || c == '\\') return false;
    }
    return true;
}

fb_id fb_statement_record(fb_id space, fb_statement_kind kind, const fb_b32 *key)
{
    if (kind == FB_STATEMENT_SPACE) return space;
    const fb_span parts[] = {
        /* with the zero byte that ends a label */
        fb_span_of(kinds[kind].label, strlen(kinds[kind].label) + 1),
        fb_span_of(space.b, sizeof space.b),
        fb_span_of(key->b, sizeof key->b),
    };
    uint8_t hash[16];
    fb_blake3(parts, sizeof parts / sizeof parts[0], hash, sizeof hash);

    /* 12 bits to rand_a, the next 62 to rand_b (DESIGN 3.1, area ids). */
    uint64_t high = 0;
    uint64_t low = 0;
    for (size_t i = 0; i < 8; i++) {
        high = high << 8 | hash[i];
        low = low << 8 | hash[8 + i];
    }
    fb_id id = space;
    id.b[6] = (uint8_t)(0x70 | high >> 60);
    id.b[7] = (uint8_t)(high >> 52);
    uint64_t rand_b = (high << 12 | low >> 52) >> 2;
    fb_store_be(id.b + 8, UINT64_C(2) << 62 | rand_b, 8);
    return id;
}

static void add(fb_statement_fields *out, enum field field, fb_span value)
{
    out->field[out->count++] = (fb_field_write){field_names[field], FB_ACT_SET, value};
}

/* A number as JSON has it. */
static fb_span decimal(uint32_t value, uint8_t *out)
{
    uint8_t digits[10];
    size_t n = 0, len = 0;
    do {
        digits[n++] = (uint8_t)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    while (n > 0) out[len++] = digits[--n];
    return fb_span_of(out, len);
}

static void encode_recovery(const fb_statement *statement, fb_statement_fields *out)
{
    add(out, FIELD_NUMBER, decimal(statement->number, out->number));
    add(out, FIELD_TURN, decimal(statement->turn, out->turn));
    out->proof[0] = '"';
    fb_hex_format(statement->proof.b, sizeof statement->proof.b, (char *)out->proof + 1);
    out->proof[129] = '"';
    add(out, FIELD_PROOF, fb_span_of(out->proof, sizeof out->proof));
}

void fb_statement_encode(const fb_statement *statement, fb_statement_fields *out)
{
    out->count = 0;
    add(out, FIELD_STATEMENT, kinds[statement->kind].value);
    out->key[0] = '"';
    fb_hex_format(statement->key.b, sizeof statement->key.b, (char *)out->key + 1);
    out->key[65] = '"';
    add(out, FIELD_KEY, fb_span_of(out->key, sizeof out->key));
    if (statement->kind == FB_STATEMENT_MEMBER) {
        add(out, FIELD_STATUS, status_approved);
        add(out, FIELD_ROLE, role_values[statement->role]);
        return;
    }
    if (statement->kind == FB_STATEMENT_RECOVERY) {
        encode_recovery(statement, out);
        return;
    }
    if (statement->kind == FB_STATEMENT_STANDING) {
        add(out, FIELD_ROLE, role_values[statement->role]);
        add(out, FIELD_NUMBER, decimal(statement->number, out->number));
        add(out, FIELD_CUT,
            statement->number % 2 == 0 ? fb_span_of(statement->cut.p - 1, statement->cut.len + 2)
                                       : null_value);
        return;
    }
    fb_span text = quote(fb_span_of(statement->text, statement->text_len), out->text);
    add(out, statement->kind == FB_STATEMENT_ADDRESS ? FIELD_ADDRESS : FIELD_NAME, text);
}

static bool is_string(fb_span value)
{
    return value.len >= 2 && value.p[0] == '"' && value.p[value.len - 1] == '"';
}

/* The text of a string value in the one spelling that `quote` makes: what is signed has no second
 * spelling. */
static bool read_text(fb_span value, fb_statement *out)
{
    if (!is_string(value)) return false;
    size_t n = 0;
    for (size_t i = 1; i + 1 < value.len; i++) {
        uint8_t c = value.p[i];
        if (c == '"') return false;
        if (c == '\\') {
            c = value.p[++i];
            if (i + 1 == value.len || (c != '"' && c != '\\')) return false;
        }
        if (n == sizeof out->text) return false;
        out->text[n++] = c;
    }
    out->text_len = (uint8_t)n;
    return true;
}

static bool read_key(fb_span value, fb_b32 *out)
{
    return value.len == 66 && value.p[0] == '"' && value.p[65] == '"' &&
           fb_hex_parse(fb_span_of(value.p + 1, 64), out->b, sizeof out->b);
}

static fb_status read_member(const fb_span value[FIELDS], fb_statement *out)
{
    if (!is_string(value[FIELD_STATUS]) || !is_string(value[FIELD_ROLE])) {
        return FB_ERR_STATEMENT;
    }
    if (!fb_span_equal(value[FIELD_STATUS], status_approved)) return FB_ERR_UNSUPPORTED;
    out->status = FB_MEMBER_APPROVED;
    out->number = 1;
    for (uint32_t role = FB_ROLE_ADMIN; role < ROLE_COUNT; role++) {
        if (fb_span_equal(value[FIELD_ROLE], role_values[role])) {
            out->role = (fb_role)role;
            return FB_OK;
        }
    }
    return FB_ERR_UNSUPPORTED;
}

/* A number in its one spelling: no sign, no leading zero. */
static fb_status read_decimal(fb_span text, uint32_t most, uint32_t *out)
{
    uint64_t n = 0;
    if (text.len == 0 || text.len > 10 || text.p[0] == '0') return FB_ERR_STATEMENT;
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] < '0' || text.p[i] > '9') return FB_ERR_STATEMENT;
        n = n * 10 + (uint64_t)(text.p[i] - '0');
    }
    if (n > most) return FB_ERR_LIMIT;
    *out = (uint32_t)n;
    return FB_OK;
}

static fb_status read_recovery(const fb_span value[FIELDS], fb_statement *out)
{
    uint32_t number;
    FB_TRY(read_decimal(value[FIELD_NUMBER], FB_RECOVERIES_MAX, &number));
    FB_TRY(read_decimal(value[FIELD_TURN], UINT32_MAX, &out->turn));
    fb_span proof = value[FIELD_PROOF];
    if (number < 3 || number % 2 == 0 || proof.len != 130 || !is_string(proof) ||
        !fb_hex_parse(fb_span_of(proof.p + 1, 128), out->proof.b, sizeof out->proof.b)) {
        return FB_ERR_STATEMENT;
    }
    out->number = (uint8_t)number;
    out->status = FB_MEMBER_APPROVED;
    out->role = FB_ROLE_ADMIN;
    return FB_OK;
}

static fb_status read_standing(const fb_span value[FIELDS], fb_statement *out)
{
    fb_span cut = value[FIELD_CUT];
    uint32_t n;
    if (value[FIELD_NUMBER].len > 3) return FB_ERR_STATEMENT;
    FB_TRY(read_decimal(value[FIELD_NUMBER], FB_TAKINGS_MAX, &n));
    if (n % 2 != 0 && n > FB_STANDINGS_MAX) return FB_ERR_LIMIT;
    out->number = (uint8_t)n;
    uint32_t role = 0;
    while (role < ROLE_COUNT && !fb_span_equal(value[FIELD_ROLE], role_values[role])) role++;
    if (role == ROLE_COUNT)
        return is_string(value[FIELD_ROLE]) ? FB_ERR_UNSUPPORTED : FB_ERR_STATEMENT;
    out->role = (fb_role)role;
    if (n % 2 != 0) {
        return role != FB_ROLE_NONE && fb_span_equal(cut, null_value) ? FB_OK : FB_ERR_STATEMENT;
    }
    if (role == FB_ROLE_ADMIN || !is_string(cut)) return FB_ERR_STATEMENT;
    out->cut = fb_span_of(cut.p + 1, cut.len - 2);
    return fb_cut_count(out->cut) != FB_NONE ? FB_OK : FB_ERR_STATEMENT;
}

fb_status fb_statement_decode(const fb_field_write *fields, uint32_t count, fb_statement *out)
{
    fb_span value[FIELDS] = {{NULL, 0}};
    uint32_t seen = 0;
    bool unknown = false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t field = 0;
        while (field < FIELDS && !fb_span_equal(fields[i].name, field_names[field])) field++;
        if (field == FIELDS || fields[i].act != FB_ACT_SET) {
            unknown = true;
            continue;
        }
        if ((seen >> field & 1u) != 0) return FB_ERR_STATEMENT;
        seen |= 1u << field;
        value[field] = fields[i].value;
    }
    if (unknown) return FB_ERR_UNSUPPORTED;
    if (!is_string(value[FIELD_STATEMENT])) return FB_ERR_STATEMENT;

    uint32_t kind = FB_STATEMENT_SPACE;
    while (kind < KIND_COUNT && !fb_span_equal(value[FIELD_STATEMENT], kinds[kind].value)) kind++;
    if (kind == KIND_COUNT) return FB_ERR_UNSUPPORTED;
    if (seen != (kinds[kind].fields | 1u << FIELD_STATEMENT)) return FB_ERR_STATEMENT;

    fb_statement statement;
    memset(&statement, 0, sizeof statement);
    statement.kind = (fb_statement_kind)kind;
    if (!read_key(value[FIELD_KEY], &statement.key)) return FB_ERR_STATEMENT;
    if (kind == FB_STATEMENT_MEMBER) {
        FB_TRY(read_member(value, &statement));
    } else if (kind == FB_STATEMENT_STANDING) {
        FB_TRY(read_standing(value, &statement));
    } else if (kind == FB_STATEMENT_RECOVERY) {
        FB_TRY(read_recovery(value, &statement));
    } else {
        bool address = kind == FB_STATEMENT_ADDRESS;
        if (!read_text(value[address ? FIELD_ADDRESS : FIELD_NAME], &statement)) {
            return FB_ERR_STATEMENT;
        }
        fb_span text = fb_span_of(statement.text, statement.text_len);
        bool valid = address ? fb_address_is_valid(text) : fb_name_is_valid(text);
        if (!valid) return FB_ERR_STATEMENT;
    }
    *out = statement;
    return FB_OK;
}
