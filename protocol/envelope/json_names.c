/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/envelope/json_names.h"

#include "protocol/base/hash.h"
#include "protocol/base/limits.h"

/* Objects up to this size are compared pair by pair. */
#define FEW_NAMES 8u

/* Longer names are hashed in blocks of this many unescaped bytes, each block seeded by those
 * before, so that the result does not depend on the spelling. */
#define BLOCK_BYTES 64u
#define SHORT_BYTES 16u

static uint64_t hash_plain(fb_span name, uint64_t h)
{
    while (name.len > BLOCK_BYTES) {
        h = fb_xxh64(name.p, BLOCK_BYTES, h);
        name = fb_span_of(name.p + BLOCK_BYTES, name.len - BLOCK_BYTES);
    }
    return fb_xxh64(name.p, name.len, h);
}

/* The first block of a spelling that ends at its quote, unescaped; *bytes is behind it. */
static size_t first_block(fb_json_bytes *bytes, uint8_t block[BLOCK_BYTES])
{
    size_t len = 0;
    while (len < BLOCK_BYTES) {
        int c = fb_json_bytes_next(bytes);
        if (c < 0) break;
        block[len++] = (uint8_t)c;
    }
    return len;
}

static uint64_t hash_escaped(fb_json_bytes bytes, uint8_t block[BLOCK_BYTES], size_t len,
                             uint64_t h)
{
    for (int c = fb_json_bytes_next(&bytes); c >= 0; c = fb_json_bytes_next(&bytes)) {
        if (len == BLOCK_BYTES) {
            h = fb_xxh64(block, len, h);
            len = 0;
        }
        block[len++] = (uint8_t)c;
    }
    return fb_xxh64(block, len, h);
}

static uint32_t hash_short(const uint8_t *p, size_t len)
{
    uint8_t padded[SHORT_BYTES] = {0};
    for (size_t i = 0; i < len; i++) padded[i] = p[i];
    return fb_json_name_hash(fb_word_load(padded), fb_word_load(padded + 8));
}

uint32_t fb_json_name_hash_plain(fb_span name)
{
    return name.len < SHORT_BYTES ? hash_short(name.p, name.len) : (uint32_t)hash_plain(name, 0);
}

uint32_t fb_json_name_hash_escaped(fb_span spelled)
{
    uint8_t block[BLOCK_BYTES];
    fb_json_bytes bytes = fb_json_bytes_at(spelled.p);
    size_t len = first_block(&bytes, block);
    return len < SHORT_BYTES ? hash_short(block, len)
                             : (uint32_t)hash_escaped(bytes, block, len, 0);
}

/* Order by unescaped bytes. */
static int compare_names(const uint8_t *a, const uint8_t *b)
{
    while (*a == *b && *a != '"' && *a != '\\') {
        a++;
        b++;
    }
    fb_json_bytes left = fb_json_bytes_at(a), right = fb_json_bytes_at(b);
    for (;;) {
        int x = fb_json_bytes_next(&left), y = fb_json_bytes_next(&right);
        if (x != y) return x < y ? -1 : 1;
        if (x < 0) return 0;
    }
}

static int compare(const fb_json_names *names, fb_json_name a, fb_json_name b)
{
    if (a.hash != b.hash) return a.hash < b.hash ? -1 : 1;
    return compare_names(names->text.p + a.at, names->text.p + b.at);
}

static uint32_t later(fb_json_name a, fb_json_name b)
{
    return a.at > b.at ? a.at : b.at;
}

/* False: two names have one hash and are different, which happens by chance once in years. */
static bool close_few(const fb_json_names *names, const fb_json_name *list, uint32_t count,
                      uint32_t *twice)
{
    *twice = FB_NONE;
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (list[i].hash != list[j].hash) continue;
            if (compare(names, list[i], list[j]) != 0) return false;
            *twice = list[i].at;
            return true;
        }
    }
    return true;
}

/* Open addressing over the hashes. False when the names were made to collide: the search for a free
 * place may cost 3 steps a name on average, and two different names of one hash are too many. */
static bool close_indexed(fb_json_names *names, const fb_json_name *list, uint32_t count,
                          uint32_t *twice)
{
    uint32_t size = 16;
    while (size < 2 * count) size *= 2;
    memset(names->index, 0, size * sizeof names->index[0]);
    uint32_t steps = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = list[i].hash & (size - 1);
        for (; names->index[slot] != 0; slot = (slot + 1) & (size - 1)) {
            fb_json_name other = list[names->index[slot] - 1];
            if (other.hash == list[i].hash) {
                if (compare(names, other, list[i]) != 0) return false;
                *twice = list[i].at;
                return true;
            }
            if (++steps > 3 * count) return false;
        }
        names->index[slot] = (uint16_t)(i + 1);
    }
    *twice = FB_NONE;
    return true;
}

static void sift(const fb_json_names *names, fb_json_name *list, uint32_t root, uint32_t count)
{
    for (;;) {
        uint32_t child = 2 * root + 1;
        if (child >= count) return;
        if (child + 1 < count && compare(names, list[child], list[child + 1]) < 0) child++;
        if (compare(names, list[root], list[child]) >= 0) return;
        fb_json_name moved = list[root];
        list[root] = list[child];
        list[child] = moved;
        root = child;
    }
}

/* Heap sort, then neighbours: no input makes it quadratic. */
static uint32_t close_sorted(const fb_json_names *names, fb_json_name *list, uint32_t count)
{
    for (uint32_t i = count / 2; i-- > 0;) sift(names, list, i, count);
    for (uint32_t last = count - 1; last > 0; last--) {
        fb_json_name greatest = list[0];
        list[0] = list[last];
        list[last] = greatest;
        sift(names, list, 0, last);
    }
    for (uint32_t i = 1; i < count; i++) {
        if (compare(names, list[i - 1], list[i]) == 0) return later(list[i - 1], list[i]);
    }
    return FB_NONE;
}

/* Hashes that nobody can have chosen the names for, as they depend on all of the text. */
static void hash_again(fb_json_names *names, fb_json_name *list, uint32_t count)
{
    if (!names->has_key) names->key = fb_xxh64(names->text.p, names->text.len, 1);
    names->has_key = true;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *p = names->text.p + list[i].at;
        size_t plain = 0;
        while (p[plain] != '"' && p[plain] != '\\') plain++;
        if (p[plain] == '"') {
            list[i].hash = (uint32_t)hash_plain(fb_span_of(p, plain), names->key);
            continue;
        }
        uint8_t block[BLOCK_BYTES];
        fb_json_bytes bytes = fb_json_bytes_at(p);
        size_t len = first_block(&bytes, block);
        list[i].hash = (uint32_t)hash_escaped(bytes, block, len, names->key);
    }
}

uint32_t fb_json_names_compare(fb_json_names *names, const fb_json_object *object)
{
    fb_json_name *list = names->stack + object->first;
    uint32_t count = names->count - object->first;
    uint32_t twice;
    if (count <= FEW_NAMES && close_few(names, list, count, &twice)) return twice;
    if (count <= FB_JSON_NAMES_INDEXED) {
        if (close_indexed(names, list, count, &twice)) return twice;
        hash_again(names, list, count);
        if (close_indexed(names, list, count, &twice)) return twice;
    }
    return close_sorted(names, list, count);
}

bool fb_json_name_is(fb_span spelled, fb_span plain)
{
    fb_json_bytes bytes = fb_json_bytes_at(spelled.p);
    for (size_t i = 0; i < plain.len; i++) {
        if (fb_json_bytes_next(&bytes) != plain.p[i]) return false;
    }
    return fb_json_bytes_next(&bytes) < 0;
}
