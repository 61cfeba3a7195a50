/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/envelope/json_scan.h"

#include "protocol/envelope/json_names.h"

/* A tail begins less than FB_JSON_AHEAD bytes before the end, or at the start of the character that
 * is being read there. */
#define TAIL_BYTES (FB_JSON_AHEAD + 3)

_Static_assert(sizeof((fb_json_place *)0)->tail >= TAIL_BYTES + 2 * FB_JSON_AHEAD, "zeros follow");
_Static_assert(FB_JSON_BEHIND >= FB_JSON_AHEAD + FB_BLOCK_BYTES, "the last place may look ahead");

void fb_json_place_begin(fb_json_place *s, fb_span text, size_t from, size_t behind)
{
    s->text = text;
    s->behind = behind;
    s->copied = false;
    s->base = text.p + from;
    s->base_at = from;
    s->end = text.p + text.len;
    s->fault = FB_JSON_NONE;
    if (behind >= FB_JSON_BEHIND) {
        s->limit = s->end - 1;
    } else if (text.len - from >= FB_JSON_AHEAD) {
        s->limit = s->end - FB_JSON_AHEAD;
    } else {
        fb_json_place_tail(s, s->base);
    }
}

const uint8_t *fb_json_place_tail(fb_json_place *s, const uint8_t *p)
{
    size_t left = p < s->end ? (size_t)(s->end - p) : 0;
    if (left != 0) memcpy(s->tail, p, left);
    memset(s->tail + left, 0, 2 * FB_JSON_AHEAD);
    s->copied = true;
    s->base_at = s->text.len - left;
    s->base = s->tail;
    s->end = s->tail + left;
    s->limit = s->tail + sizeof s->tail;
    return s->tail;
}

/* For who must not see what is behind the text. */
static inline const uint8_t *place_alone(fb_json_place *s, const uint8_t *p)
{
    return s->copied || s->end - p >= (ptrdiff_t)FB_JSON_AHEAD ? p : fb_json_place_tail(s, p);
}

const uint8_t *fb_json_place_stop(fb_json_place *s, const uint8_t *p, fb_json_fault fault)
{
    bool ended = p >= s->end;
    s->stopped = ended ? s->text.len : fb_json_place_at(s, p);
    s->fault = ended ? FB_JSON_END : fault;
    return NULL;
}

const uint8_t *fb_json_place_space(fb_json_place *s, const uint8_t *p)
{
    for (;;) {
        p = fb_json_place_ready(s, p);
        unsigned run = fb_block_run(fb_block_space(p));
        p += run;
        if (run < FB_BLOCK_BYTES) return fb_json_place_ready(s, p);
    }
}

/* ---- Characters above U+007F, by RFC 3629: shortest form, no surrogate, at most U+10FFFF ---- */

static inline bool is_tail(uint8_t c)
{
    return (c & 0xc0) == 0x80;
}

/* The bytes of the character at p, which is not ASCII, or 0. Zeros follow the text. */
static unsigned character_bytes(const uint8_t *p)
{
    uint8_t c = p[0];
    if (c < 0xc2 || c > 0xf4 || !is_tail(p[1])) return 0;
    if (c < 0xe0) return 2;
    if (!is_tail(p[2])) return 0;
    if (c < 0xf0) return (c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) ? 0 : 3;
    if (!is_tail(p[3])) return 0;
    return (c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f) ? 0 : 4;
}

/* p is at such a character; the result is at the first that is none. */
static const uint8_t *scan_characters(fb_json_place *s, const uint8_t *p)
{
    do {
        p = place_alone(s, p);
        unsigned n = character_bytes(p);
        if (n == 0) return fb_json_place_stop(s, p, FB_JSON_UTF8);
        p += n;
    } while (*p >= 0x80);
    return p;
}

#if FB_BLOCK_SSE2

static inline __m128i at_least(__m128i v, uint8_t least)
{
    return _mm_cmpeq_epi8(_mm_max_epu8(v, _mm_set1_epi8((char)least)), v);
}

static inline __m128i is(__m128i v, uint8_t c)
{
    return _mm_cmpeq_epi8(v, _mm_set1_epi8((char)c));
}

/* Bytes that do not go on as those before them want, of a block and the three bytes before it. */
static inline uint32_t broken_bytes(__m128i v, __m128i one, __m128i two, __m128i three)
{
    __m128i tails = _mm_cmplt_epi8(v, _mm_set1_epi8((char)0xc0)); /* 0x80 to 0xbf, as signed */
    __m128i wanted =
        _mm_or_si128(_mm_or_si128(at_least(one, 0xc0), at_least(two, 0xe0)), at_least(three, 0xf0));
    __m128i broken = _mm_xor_si128(tails, wanted);
    /* Never a lead: 0xc0, 0xc1, from 0xf5. */
    broken = _mm_or_si128(broken, at_least(v, 0xf5));
    broken = _mm_or_si128(broken, is(_mm_and_si128(v, _mm_set1_epi8((char)0xfe)), 0xc0));
    /* What follows some leads is narrower. */
    __m128i a0 = at_least(v, 0xa0), r90 = at_least(v, 0x90);
    __m128i narrow = _mm_or_si128(
        _mm_or_si128(_mm_andnot_si128(a0, is(one, 0xe0)), _mm_and_si128(a0, is(one, 0xed))),
        _mm_or_si128(_mm_andnot_si128(r90, is(one, 0xf0)), _mm_and_si128(r90, is(one, 0xf4))));
    return fb_block_mask(_mm_or_si128(broken, narrow));
}

/* Back to the start of a character that is not whole at p. */
static const uint8_t *unfinished(const uint8_t *p)
{
    if (p[-1] >= 0xc0) return p - 1;
    if (p[-2] >= 0xe0) return p - 2;
    return p[-3] >= 0xf0 ? p - 3 : p;
}

/* p is at a character above U+007F; the result is at something that is no plain text, or behind a
 * block without such characters. */
static const uint8_t *scan_text(fb_json_place *s, const uint8_t *p)
{
    bool first = true; /* nothing before p belongs to its character */
    for (;;) {
        if (!s->copied && s->end - p < (ptrdiff_t)FB_JSON_AHEAD) {
            p = fb_json_place_tail(s, first ? p : unfinished(p));
            first = true;
        }
        __m128i v = fb_block_load(p), one, two, three;
        if (first) {
            one = _mm_slli_si128(v, 1);
            two = _mm_slli_si128(v, 2);
            three = _mm_slli_si128(v, 3);
        } else {
            one = fb_block_load(p - 1);
            two = fb_block_load(p - 2);
            three = fb_block_load(p - 3);
        }
        uint32_t broken = broken_bytes(v, one, two, three);
        uint32_t high = fb_block_mask(v);
        uint32_t stops = fb_block_specials(p) & ~high;
        unsigned run = fb_block_first(stops);
        /* The byte that stops it may break a character as well. */
        if ((broken & ((UINT32_C(2) << run) - 1)) != 0) {
            if (!first) p = unfinished(p);
            return *p >= 0x80 ? scan_characters(s, p) : p;
        }
        p += run;
        if (stops != 0 || high == 0) return p;
        first = false;
    }
}

#else

static const uint8_t *scan_text(fb_json_place *s, const uint8_t *p)
{
    return scan_characters(s, p);
}

#endif

/* ---- Strings ---- */

const uint8_t *fb_json_scan_plain(fb_json_place *s, const uint8_t *p)
{
    while (p != NULL) {
        p = fb_json_place_ready(s, p);
        uint32_t specials = fb_block_specials(p);
        /* Where the next block is depends on a guess alone, not on what is in this one. */
        if (specials == 0) {
            p += FB_BLOCK_BYTES;
            continue;
        }
        p += fb_block_first(specials);
        if (p > s->limit) continue;
        if (*p == '"' || *p == '\\') return p;
        if (*p < 0x20) return fb_json_place_stop(s, p, *p == 0 ? FB_JSON_NUL : FB_JSON_CONTROL);
        /* A first look finds most of what is none. */
        if (s->end - p >= 4 && character_bytes(p) == 0) {
            return fb_json_place_stop(s, p, FB_JSON_UTF8);
        }
        p = scan_text(s, p);
    }
    return NULL;
}

/* The letters that follow a backslash, but for u, and what they stand for. */
static const uint8_t letters[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

/* Hex digits of an escape may have either case. 16 or more: no digit. */
/* clang-format off */
#define R4(x) x, x, x, x
#define R16(x) R4(x), R4(x), R4(x), R4(x)
static const uint8_t digit_value[256] = {
    R16(16), R16(16), R16(16),
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 16, R4(16),
    16, 10, 11, 12, 13, 14, 15, 16, R4(16), R4(16), R16(16),
    16, 10, 11, 12, 13, 14, 15, 16, R4(16), R4(16), R16(16),
    R16(16), R16(16), R16(16), R16(16), R16(16), R16(16), R16(16), R16(16),
};
/* clang-format on */

/* The four digits after \u, or UINT32_MAX. */
static inline uint32_t unit_at(const uint8_t *p)
{
    uint32_t a = digit_value[p[0]], b = digit_value[p[1]];
    uint32_t c = digit_value[p[2]], d = digit_value[p[3]];
    if ((a | b | c | d) > 15) return UINT32_MAX;
    return a << 12 | b << 8 | c << 4 | d;
}

/* p is at the backslash of a \u. */
static const uint8_t *scan_unit(fb_json_place *s, const uint8_t *p)
{
    size_t left = (size_t)(s->end - p);
    if (left < 6) return fb_json_place_stop(s, s->end, FB_JSON_END);
    uint32_t unit = unit_at(p + 2);
    if (unit == UINT32_MAX) return fb_json_place_stop(s, p, FB_JSON_ESCAPE);
    if (unit == 0) return fb_json_place_stop(s, p, FB_JSON_NUL);
    if (unit < 0xd800 || unit > 0xdfff) return p + 6;
    if (unit > 0xdbff || left < 12 || p[6] != '\\' || p[7] != 'u') {
        return fb_json_place_stop(s, p, FB_JSON_SURROGATE);
    }
    uint32_t low = unit_at(p + 8);
    if (low < 0xdc00 || low > 0xdfff) return fb_json_place_stop(s, p, FB_JSON_SURROGATE);
    return p + 12;
}

static inline const uint8_t *scan_escape(fb_json_place *s, const uint8_t *p)
{
    if (letters[p[1]] != 0) return p + 2;
    if (p[1] == 'u') return scan_unit(s, p);
    if (p + 1 == s->end) return fb_json_place_stop(s, s->end, FB_JSON_END);
    return fb_json_place_stop(s, p, FB_JSON_ESCAPE);
}

const uint8_t *fb_json_scan_escapes(fb_json_place *s, const uint8_t *p)
{
    do {
        p = scan_escape(s, place_alone(s, p));
    } while (p != NULL && *p == '\\');
    return p;
}

/* A string that is being copied without its escapes. What is longer than the room is still read. */
typedef struct copy {
    uint8_t *out;
    uint8_t *room;
    size_t cap;
    bool too_long;
} copy;

/* So many bytes more are there: from the start again, for nobody to read, when they are too many.
 */
static inline void copy_on(copy *c, size_t len)
{
    c->out += len;
    if ((size_t)(c->out - c->room) > c->cap) {
        c->too_long = true;
        c->out = c->room;
    }
}

static void copy_span(copy *c, fb_span from)
{
    if (from.len > c->cap - (size_t)(c->out - c->room)) {
        c->too_long = true;
        return;
    }
    if (from.len != 0) memcpy(c->out, from.p, from.len);
    c->out += from.len;
}

/* Four times \u00 in a row, of ASCII but not of U+0000: their values. */
static inline bool four_units(const uint8_t *p, uint8_t out[4])
{
    uint64_t wrong = 0;
    for (size_t i = 0; i < 4; i++) {
        const uint8_t *unit = p + 6 * i;
        uint32_t high = digit_value[unit[4]], low = digit_value[unit[5]];
        uint32_t value = high << 4 | low;
        wrong |= (fb_word_load(unit) ^ UINT32_C(0x3030755c)) & UINT32_MAX; /* 00u\ */
        wrong |= (high | low) & 16;
        wrong |= value - 1 > 0x7e;
        out[i] = (uint8_t)value;
    }
    return wrong == 0;
}

/* Four \u in a row, perhaps. One look tells, as its branches could be guessed by nobody. */
static inline bool is_row(const uint8_t *p)
{
    return ((p[6] ^ '\\') | (p[12] ^ '\\') | (p[18] ^ '\\')) == 0;
}

/* p is at a backslash, and FB_JSON_AHEAD bytes may be read: copies what it stands for. */
static inline const uint8_t *copy_escape(fb_json_place *s, const uint8_t *p, copy *c)
{
    if (letters[p[1]] != 0) {
        *c->out = letters[p[1]];
        copy_on(c, 1);
        return p + 2;
    }
    bool row = false;
    while (is_row(p) && four_units(p, c->out)) {
        copy_on(c, 4);
        p = place_alone(s, p + 24);
        row = true;
    }
    if (row) return p;
    const uint8_t *escape = p;
    uint32_t unit = unit_at(p + 2);
    if (p[1] == 'u' && unit - 1 < 0x7f) {
        *c->out = (uint8_t)unit;
        copy_on(c, 1);
        return p + 6;
    }
    p = scan_escape(s, p);
    if (p != NULL) copy_on(c, fb_json_unescape(&escape, c->out));
    return p;
}

#define WINDOW_BYTES 64u

static inline uint64_t window_specials(const uint8_t *p)
{
    return (uint64_t)fb_block_specials(p) | (uint64_t)fb_block_specials(p + 16) << 16 |
           (uint64_t)fb_block_specials(p + 32) << 32 | (uint64_t)fb_block_specials(p + 48) << 48;
}

/* Copies plain bytes by whole blocks, of which what is too much is written over; and the escapes of
 * one letter between them, whose places are all in one mask. The result is at something else. */
static const uint8_t *copy_plain(fb_json_place *s, const uint8_t *p, copy *c)
{
    while (s->end - p >= (ptrdiff_t)(WINDOW_BYTES + FB_JSON_AHEAD)) {
        uint64_t specials = window_specials(p);
        size_t done = 0;
        bool stopped = false;
        while (specials != 0 && !stopped) {
            size_t at = fb_word_lowest(specials), width = 2;
            uint8_t c1 = p[at + 1];
            uint8_t letter = p[at] == '\\' ? letters[c1] : 0;
            if (letter == 0 && p[at] == '\\' && c1 == 'u' && !is_row(p + at)) {
                uint32_t unit = unit_at(p + at + 2);
                if (unit < 0x80) letter = (uint8_t)unit;
                width = 6;
            }
            for (size_t from = done; from < at; from += FB_BLOCK_BYTES) {
                fb_block_copy(c->out + (from - done), p + from);
            }
            c->out[at - done] = letter;
            stopped = letter == 0;
            copy_on(c, at - done + !stopped);
            done = stopped ? at : at + width;
            specials &= ~(UINT64_C(3) << at);
        }
        if (stopped) return p + done;
        for (size_t from = done; from < WINDOW_BYTES; from += FB_BLOCK_BYTES) {
            fb_block_copy(c->out + (from - done), p + from);
        }
        if (done < WINDOW_BYTES) {
            copy_on(c, WINDOW_BYTES - done);
            done = WINDOW_BYTES;
        }
        p += done;
    }
    uint32_t specials;
    do {
        p = place_alone(s, p);
        specials = fb_block_specials(p);
        unsigned run = fb_block_first(specials);
        fb_block_copy(c->out, p);
        copy_on(c, run);
        p += run;
    } while (specials == 0);
    return p;
}

const uint8_t *fb_json_scan_wanted(fb_json_place *s, const uint8_t *p, fb_json_wanted *wanted,
                                   bool *escaped)
{
    size_t at = fb_json_place_at(s, p);
    if (*p != '\\') p = fb_json_scan_plain(s, p);
    if (p == NULL) return NULL;
    fb_span plain = {s->text.p + at, fb_json_place_at(s, p) - at};
    if (*p == '"') {
        wanted->text = plain;
        wanted->fits = plain.len <= wanted->cap;
        return p + 1;
    }
    *escaped = true;
    copy c = {wanted->room, wanted->room, wanted->cap, false};
    copy_span(&c, plain);
    while (*p != '"') {
        if (*p == '\\') {
            p = copy_escape(s, place_alone(s, p), &c);
            if (p == NULL) return NULL;
        }
        p = copy_plain(s, p, &c);
        if (*p == '"' || *p == '\\') continue;
        at = fb_json_place_at(s, p);
        p = fb_json_scan_plain(s, p);
        if (p == NULL) return NULL;
        copy_span(&c, fb_span_of(s->text.p + at, fb_json_place_at(s, p) - at));
    }
    /* Whoever scans the bytes next may look at what is behind them. */
    memset(c.out, 0, FB_JSON_BEHIND);
    wanted->text = fb_span_of(c.room, (size_t)(c.out - c.room));
    wanted->fits = !c.too_long;
    return p + 1;
}

/* ---- Numbers and words ---- */

static const uint8_t *scan_digits(fb_json_place *s, const uint8_t *p)
{
    p = fb_json_place_ready(s, p);
    unsigned run = fb_block_run(fb_block_digits(p));
    if (run == 0) return fb_json_place_stop(s, p, FB_JSON_SYNTAX);
    for (p += run; run == FB_BLOCK_BYTES; p += run) {
        p = fb_json_place_ready(s, p);
        run = fb_block_run(fb_block_digits(p));
    }
    return p;
}

const uint8_t *fb_json_scan_any_number(fb_json_place *s, const uint8_t *p)
{
    if (*p == '-') p++;
    p = *p == '0' ? p + 1 : scan_digits(s, p);
    if (p != NULL && *p == '.') p = scan_digits(s, p + 1);
    if (p != NULL && (*p == 'e' || *p == 'E')) {
        p++;
        if (*p == '+' || *p == '-') p++;
        p = scan_digits(s, p);
    }
    return p;
}

const uint8_t *fb_json_scan_word(fb_json_place *s, const uint8_t *p)
{
    const char *word = *p == 't' ? "true" : *p == 'f' ? "false" : "null";
    for (; *word != '\0'; word++, p++) {
        if (*p != (uint8_t)*word) return fb_json_place_stop(s, p, FB_JSON_SYNTAX);
    }
    return p;
}
