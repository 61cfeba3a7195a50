/* SPDX-License-Identifier: Apache-2.0 */
/* Internal to the JSON scanner: the names of the objects that are open, to find two equal ones.
 *
 * Open objects nest, so one stack holds all their names: those of the innermost object are on top
 * and go when it closes, which is when they are compared. Each object has a filter of 256 bits, one
 * set by the hash of each name; only one that meets a set bit has its names compared at all. */
#ifndef FB_ENVELOPE_JSON_NAMES_H
#define FB_ENVELOPE_JSON_NAMES_H

#include "protocol/base/block.h"
#include "protocol/base/limits.h"
#include "protocol/base/rare.h"
#include "protocol/envelope/json.h"

#define FB_JSON_NAMES_INDEXED 256u /* a larger object is sorted instead */

typedef struct fb_json_name {
    uint32_t hash; /* of the unescaped name */
    uint32_t at;   /* offset of its first byte after the quote */
} fb_json_name;

/* The names of one open object. */
typedef struct fb_json_object {
    uint32_t first; /* on the stack */
    uint32_t most; /* names on the stack when it has as many as it may have, or the stack is full */
    uint64_t maybe; /* not 0: two of them may be equal */
    uint64_t filter[4];
} fb_json_object;

typedef struct fb_json_names {
    uint32_t count;
    fb_span text;
    bool has_key;
    uint64_t key; /* of the whole text, for names that were made to collide */
    fb_json_name stack[FB_JSON_NAMES_MAX];
    uint16_t index[2 * FB_JSON_NAMES_INDEXED];
} fb_json_names;

static inline void fb_json_names_open(const fb_json_names *names, fb_json_object *object,
                                      uint32_t members_max)
{
    uint32_t left = FB_JSON_NAMES_MAX - names->count;
    object->first = names->count;
    object->most = names->count + (members_max < left ? members_max : left);
    object->maybe = 0;
    memset(object->filter, 0, sizeof object->filter);
}

/* The hash of an unescaped name of at most 16 bytes, filled up with zeros. */
static inline uint32_t fb_json_name_hash(uint64_t head, uint64_t rest)
{
    uint64_t h = (head ^ rest * UINT64_C(0x9fb21c651e98df25)) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)((h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93) >> 32);
}

/* The same of a name of any length, and of one as it is spelled, up to its quote. */
uint32_t fb_json_name_hash_plain(fb_span name);
uint32_t fb_json_name_hash_escaped(fb_span spelled);

/* Of a plain name of `len` bytes, less than 16, at p, of which 16 bytes may be read. */
static inline uint32_t fb_json_name_hash_short(const uint8_t *p, unsigned len)
{
    uint64_t words[2];
    fb_block_words(p, len, words);
    return fb_json_name_hash(words[0], words[1]);
}

/* `at` is where the name begins in the text, after its quote. There is room for it: count < most.
 */
static inline void fb_json_names_add(fb_json_names *names, fb_json_object *object, uint32_t hash,
                                     size_t at)
{
    names->stack[names->count++] = (fb_json_name){hash, (uint32_t)at};
    uint64_t *word = &object->filter[hash >> 30], bit = UINT64_C(1) << (hash >> 24 & 63);
    object->maybe |= *word & bit;
    *word |= bit;
}

/* The offset of a name of this object that was there before, or FB_NONE. */
FB_RARE uint32_t fb_json_names_compare(fb_json_names *names, const fb_json_object *object);

/* The object closes: the same, and its names are forgotten. */
static inline uint32_t fb_json_names_close(fb_json_names *names, const fb_json_object *object)
{
    uint32_t twice = object->maybe != 0 ? fb_json_names_compare(names, object) : FB_NONE;
    names->count = object->first;
    return twice;
}

/* A spelling with escapes against plain ASCII. */
bool fb_json_name_is(fb_span spelled, fb_span plain);

/* The next bytes of a string that a scan accepted, unescaped, one at a time. */
typedef struct fb_json_bytes {
    const uint8_t *p; /* ends at the closing quote */
    uint8_t held[4];
    uint8_t held_count;
    uint8_t held_at;
} fb_json_bytes;

static inline fb_json_bytes fb_json_bytes_at(const uint8_t *p)
{
    return (fb_json_bytes){p, {0}, 0, 0};
}

/* The next byte, or -1 at the end. */
int fb_json_bytes_next(fb_json_bytes *bytes);

/* One escape sequence that a scan accepted, at *p (the backslash): moves *p behind it and writes
 * its 1 to 4 bytes of UTF-8. */
size_t fb_json_unescape(const uint8_t **p, uint8_t out[4]);

#endif
