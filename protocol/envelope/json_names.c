/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/envelope/json_names.h"

#include "protocol/base/hash.h"
#include "protocol/base/limits.h"

/* Objects up to this size are compared pair by pair. */
#define FEW_NAMES 8u

/* Names are hashed in blocks of this many unescaped bytes, each block seeded by those before, so
 * that the result does not depend on the spelling. */
#define BLOCK_BYTES 64u

static uint64_t hash_plain(fb_span name)
{
    uint64_t h = 0;
    while (name.len > BLOCK_BYTES) {
        h = fb_xxh64(name.p, BLOCK_BYTES, h);
        name = fb_span_of(name.p + BLOCK_BYTES, name.len - BLOCK_BYTES);
    }
    return fb_xxh64(name.p, name.len, h);
}

static uint64_t hash_escaped(const uint8_t *p)
{
    uint64_t h = 0;
    uint8_t block[BLOCK_BYTES];
    size_t len = 0;
    fb_json_bytes bytes = fb_json_bytes_at(p);
    for (int c = fb_json_bytes_next(&bytes); c >= 0; c = fb_json_bytes_next(&bytes)) {
        if (len == BLOCK_BYTES) {
            h = fb_xxh64(block, len, h);
            len = 0;
        }
        block[len++] = (uint8_t)c;
    }
    return fb_xxh64(block, len, h);
}

bool fb_json_names_add(fb_json_names *names, const uint8_t *text, fb_span name, bool escaped)
{
    if (names->count == FB_JSON_NAMES_MAX) return false;
    uint64_t h = escaped ? hash_escaped(name.p) : hash_plain(name);
    names->text = text;
    names->stack[names->count++] = (fb_json_name){(uint32_t)h, (uint32_t)(name.p - text)};
    return true;
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
    return compare_names(names->text + a.at, names->text + b.at);
}

static uint32_t later(fb_json_name a, fb_json_name b)
{
    return a.at > b.at ? a.at : b.at;
}

static uint32_t close_few(const fb_json_names *names, const fb_json_name *list, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (list[i].hash == list[j].hash && compare(names, list[i], list[j]) == 0) {
                return list[i].at;
            }
        }
    }
    return FB_NONE;
}

/* Open addressing over the hashes. False when the names were made to collide: the search for a free
 * place may cost 16 steps a name on average, and a comparison of different names counts as many as
 * there are names. */
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
                if (compare(names, other, list[i]) == 0) {
                    *twice = list[i].at;
                    return true;
                }
                steps += count;
            }
            if (++steps > 16 * count) return false;
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

uint32_t fb_json_names_close(fb_json_names *names, uint32_t first)
{
    fb_json_name *list = names->stack + first;
    uint32_t count = names->count - first;
    names->count = first;
    if (count <= FEW_NAMES) return close_few(names, list, count);
    uint32_t twice;
    if (count <= FB_JSON_NAMES_INDEXED && close_indexed(names, list, count, &twice)) return twice;
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
