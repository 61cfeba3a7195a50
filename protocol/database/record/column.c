/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/record/column.h"

#include "protocol/base/assert.h"
#include "protocol/base/hash.h"
#include "protocol/base/utf8.h"

static const char element_label[] = "faberio-element-v1"; /* hashed with its zero byte */

#define ELEMENT_HASH_BYTES 16u

_Static_assert(FB_COLUMN_NAME_BYTES_MAX == FB_FIELD_NAME_BYTES_MAX + 2 + ELEMENT_HASH_BYTES,
               "the longest column is an element's");

static size_t field_len(fb_span name)
{
    size_t len = 0;
    while (len < name.len && name.p[len] != 0) len++;
    return len;
}

fb_column fb_column_of(fb_span name)
{
    size_t len = field_len(name);
    if (len == name.len) return (fb_column){name, FB_FIELD_REGISTER};
    return (fb_column){fb_span_of(name.p, len), (fb_field_kind)name.p[len + 1]};
}

bool fb_column_valid(fb_span name, uint8_t kind)
{
    size_t len = field_len(name), rest = name.len - len;
    if (len == 0 || !fb_utf8_is_name(fb_span_of(name.p, len))) return false;
    if (kind == FB_FIELD_REGISTER) return rest == 0;
    if (kind == FB_FIELD_COUNTER) return rest == 2 && name.p[len + 1] == kind;
    return kind == FB_FIELD_ELEMENT && rest == 2 + ELEMENT_HASH_BYTES && name.p[len + 1] == kind;
}

bool fb_column_is(fb_span name)
{
    size_t len = field_len(name);
    uint8_t kind = FB_FIELD_REGISTER;
    if (name.len - len >= 2) kind = name.p[len + 1];
    return fb_column_valid(name, kind);
}

fb_status fb_field_name_check(fb_span name)
{
    if (name.len > FB_FIELD_NAME_BYTES_MAX) return FB_ERR_LIMIT;
    return fb_column_valid(name, FB_FIELD_REGISTER) ? FB_OK : FB_ERR_REQUEST_MALFORMED;
}

static fb_writer begin(uint8_t *out, fb_span field, fb_field_kind kind)
{
    fb_writer w = fb_writer_of(out, FB_COLUMN_NAME_BYTES_MAX);
    fb_write_bytes(&w, field.p, field.len);
    fb_write_u8(&w, 0);
    fb_write_u8(&w, (uint8_t)kind);
    return w;
}

fb_span fb_column_counter(uint8_t *out, fb_span field)
{
    fb_writer w = begin(out, field, FB_FIELD_COUNTER);
    FB_ASSERT(!w.failed);
    return fb_writer_span(&w);
}

static void element_hash(fb_span value, uint8_t out[ELEMENT_HASH_BYTES])
{
    const fb_span parts[] = {fb_span_of(element_label, sizeof element_label), value};
    fb_blake3(parts, 2, out, ELEMENT_HASH_BYTES);
}

fb_span fb_column_element(uint8_t *out, fb_span field, fb_span value)
{
    uint8_t hash[ELEMENT_HASH_BYTES];
    element_hash(value, hash);
    fb_writer w = begin(out, field, FB_FIELD_ELEMENT);
    fb_write_bytes(&w, hash, sizeof hash);
    FB_ASSERT(!w.failed);
    return fb_writer_span(&w);
}

/* Of a text that is one JSON value: white space that nobody needs. */
static bool has_blanks(fb_span text)
{
    bool in_text = false;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.p[i];
        if (in_text && c == '\\') {
            i++; /* whatever is escaped */
        } else if (c == '"') {
            in_text = !in_text;
        } else if (!in_text && (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
            return true;
        }
    }
    return false;
}

fb_status fb_column_value_check(fb_span name, fb_span value)
{
    fb_field_kind kind = fb_column_of(name).kind;
    bool right = true;
    int64_t number;
    if (kind == FB_FIELD_COUNTER) right = fb_integer_parse(value, &number);
    if (kind == FB_FIELD_ELEMENT) {
        uint8_t hash[ELEMENT_HASH_BYTES];
        element_hash(value, hash);
        right = memcmp(name.p + name.len - sizeof hash, hash, sizeof hash) == 0;
        /* One element has one text: who removes it names it so. */
        right = right && !has_blanks(value);
    }
    return right ? FB_OK : FB_ERR_VALUE_MALFORMED;
}

bool fb_integer_parse(fb_span text, int64_t *out)
{
    bool negative = text.len > 0 && text.p[0] == '-';
    size_t at = negative ? 1 : 0;
    if (at == text.len || text.len - at > 19) return false;
    if (text.p[at] == '0' && (negative || text.len != 1)) return false;
    uint64_t value = 0; /* 19 digits fit */
    for (; at < text.len; at++) {
        if (text.p[at] < '0' || text.p[at] > '9') return false;
        value = value * 10 + (uint64_t)(text.p[at] - '0');
    }
    uint64_t most = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    if (value > most) return false;
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

size_t fb_integer_format(int64_t value, uint8_t out[FB_INTEGER_TEXT_MAX])
{
    uint8_t digits[FB_INTEGER_TEXT_MAX];
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    size_t count = 0, len = 0;
    do {
        digits[count++] = (uint8_t)('0' + left % 10);
        left /= 10;
    } while (left != 0);
    if (value < 0) out[len++] = '-';
    while (count > 0) out[len++] = digits[--count];
    return len;
}

/* value == high * 2^32 + low for each part of the sum. */
void fb_sum_add(fb_sum *sum, int64_t value)
{
    int64_t low = (int64_t)((uint64_t)value & UINT32_MAX);
    sum->low += low;
    sum->high += (value - low) / (INT64_C(1) << 32);
}

int64_t fb_sum_value(const fb_sum *sum)
{
    int64_t low = sum->low % (INT64_C(1) << 32);
    int64_t high = sum->high + sum->low / (INT64_C(1) << 32);
    if (high > INT32_MAX) return INT64_MAX;
    if (high < INT32_MIN) return INT64_MIN;
    return high * (INT64_C(1) << 32) + low;
}
