/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the JSON scanner: strings, numbers, words and white space.
 *
 * The text is read in blocks of 16 bytes without a look at where it ends. Two things make that
 * safe. If enough bytes may be read behind it, a place at its end or behind it is exchanged for one
 * where zeros are; if not, its last bytes are copied to where zeros follow. A zero byte is nowhere
 * right, so each scan stops at the end, if nowhere else.
 *
 * The functions take the place where something starts and return the place behind it, or NULL after
 * scan_stop. A function that is given a place at or before the limit may read FB_JSON_AHEAD bytes
 * from there; who goes further looks at the limit again. What is read behind the end of the text
 * is no fault before somebody looks at the limit, and is one then. */
#ifndef FB_ENVELOPE_JSON_SCAN_H
#define FB_ENVELOPE_JSON_SCAN_H

#include "protocol/base/block.h"
#include "protocol/base/rare.h"
#include "protocol/envelope/json.h"

#define FB_JSON_AHEAD 32u

/* So many bytes behind a text make a copy of its tail needless. */
#define FB_JSON_BEHIND 48u

typedef struct fb_json_place {
    const uint8_t *limit; /* what is behind it is read from the tail instead */
    const uint8_t *end;   /* of the text or of its copy */
    const uint8_t *base;  /* what offset `base_at` is at */
    size_t base_at;
    fb_span text;
    size_t behind;  /* bytes that may be read behind the text */
    bool copied;    /* the tail is being read */
    size_t stopped; /* where the fault is */
    fb_json_fault fault;
    uint8_t tail[4 * FB_JSON_AHEAD];
} fb_json_place;

/* Of `text`, from offset `from` on, which is where `base` is. */
void fb_json_place_begin(fb_json_place *s, fb_span text, size_t from, size_t behind);

/* p is behind the limit: the same place in the tail, or in zeros. */
FB_RARE const uint8_t *fb_json_place_tail(fb_json_place *s, const uint8_t *p);

static inline const uint8_t *fb_json_place_ready(fb_json_place *s, const uint8_t *p)
{
    return p <= s->limit ? p : fb_json_place_tail(s, p);
}

static inline size_t fb_json_place_at(const fb_json_place *s, const uint8_t *p)
{
    return s->base_at + (size_t)(p - s->base);
}

/* What is at p is wrong; at the end of the text it is its end that is. */
FB_RARE const uint8_t *fb_json_place_stop(fb_json_place *s, const uint8_t *p, fb_json_fault fault);

static inline const uint8_t *fb_json_place_stop_at(fb_json_place *s, size_t at, fb_json_fault fault)
{
    s->stopped = at;
    s->fault = fault;
    return NULL;
}

/* Behind white space, of which there may be none. */
FB_RARE const uint8_t *fb_json_place_space(fb_json_place *s, const uint8_t *p);

/* p is inside a string, at anything: at its quote, or at a backslash. */
const uint8_t *fb_json_scan_plain(fb_json_place *s, const uint8_t *p);

/* p is at a backslash: behind it and those that follow at once. */
const uint8_t *fb_json_scan_escapes(fb_json_place *s, const uint8_t *p);

/* p is behind a string's opening quote. *escaped becomes true if there are escapes. */
static inline const uint8_t *fb_json_scan_string(fb_json_place *s, const uint8_t *p, bool *escaped)
{
    p = fb_json_place_ready(s, p);
    uint32_t specials = fb_block_specials(p);
    unsigned run = fb_block_first(specials);
    if (p[run] == '"' && specials != 0 && p + run < s->end) return p + run + 1;
    p += run;
    for (;;) {
        p = fb_json_scan_plain(s, p);
        if (p == NULL || *p == '"') return p != NULL ? p + 1 : NULL;
        *escaped = true;
        p = fb_json_scan_escapes(s, p);
        if (p == NULL) return NULL;
    }
}

/* The same for a string that is wanted without its escapes: in the text if it has none, else in
 * its room. */
const uint8_t *fb_json_scan_wanted(fb_json_place *s, const uint8_t *p, fb_json_wanted *wanted,
                                   bool *escaped);

/* Any number; p is at its first byte, a digit or a minus. */
FB_RARE const uint8_t *fb_json_scan_any_number(fb_json_place *s, const uint8_t *p);

static inline const uint8_t *fb_json_scan_number(fb_json_place *s, const uint8_t *start)
{
    /* Most are within one block: each run of digits is looked for in one mask. Whether it is one
     * digit or more can be guessed by nobody, so the first look has one branch, at its end. */
    const uint8_t *p = start + (*start == '-');
    uint32_t digits = fb_block_digits(p);
    unsigned n = fb_block_run(digits);
    unsigned good = (n != 0) & ((n == 1) | (*p != '0'));
    if (good != 0 && p[n] == '.') {
        unsigned more = fb_block_run(digits >> (n + 1));
        good = more != 0;
        n += 1 + more;
    }
    if (good != 0 && n < FB_BLOCK_BYTES && (p[n] | 0x20) == 'e') {
        n += p[n + 1] == '+' || p[n + 1] == '-' ? 2 : 1;
        unsigned more = n < FB_BLOCK_BYTES ? fb_block_run(digits >> n) : 0;
        good = more != 0;
        n += more;
    }
    return (good & (n < FB_BLOCK_BYTES)) != 0 ? p + n : fb_json_scan_any_number(s, start);
}

/* true, false or null, by its first letter. */
FB_RARE const uint8_t *fb_json_scan_word(fb_json_place *s, const uint8_t *p);

#endif
