/* SPDX-License-Identifier: Apache-2.0 */
/* Checked cursors: the one way bytes are parsed and built.
 *
 * Both fail stickily: after the first read past the end, or write past the capacity, every further
 * call does nothing (reads give zeros and empty spans), and the caller looks at `failed` once at
 * the end. Integers are big-endian. */
#ifndef FB_BASE_CURSOR_H
#define FB_BASE_CURSOR_H

#include "protocol/base/types.h"
#include "protocol/base/word.h"

typedef struct fb_reader {
    const uint8_t *p;
    size_t len;
    size_t at;
    bool failed;
} fb_reader;

static inline fb_reader fb_reader_of(fb_span bytes)
{
    return (fb_reader){bytes.p, bytes.len, 0, false};
}

static inline size_t fb_reader_left(const fb_reader *r)
{
    return r->failed ? 0 : r->len - r->at;
}

/* True when nothing failed and every byte was read: the end of a strict decoder. */
static inline bool fb_reader_done(const fb_reader *r)
{
    return !r->failed && r->at == r->len;
}

/* len bytes, borrowed from the input. */
static inline fb_span fb_read_bytes(fb_reader *r, size_t len)
{
    if (r->failed || len > r->len - r->at) {
        r->failed = true;
        return (fb_span){NULL, 0};
    }
    fb_span s = {r->p + r->at, len};
    r->at += len;
    return s;
}

static inline uint64_t fb_read_be(fb_reader *r, size_t width)
{
    fb_span s = fb_read_bytes(r, width);
    if (s.p == NULL) return 0;
    uint64_t v = 0;
    if (width == 8) return fb_load_be64(s.p);
    if (width == 4) return fb_load_be32(s.p);
    if (width == 2) return fb_load_be16(s.p);
    for (size_t i = 0; i < width; i++) v = v << 8 | s.p[i];
    return v;
}

static inline uint8_t fb_read_u8(fb_reader *r)
{
    return (uint8_t)fb_read_be(r, 1);
}

static inline uint16_t fb_read_u16(fb_reader *r)
{
    return (uint16_t)fb_read_be(r, 2);
}

static inline uint32_t fb_read_u32(fb_reader *r)
{
    return (uint32_t)fb_read_be(r, 4);
}

static inline uint64_t fb_read_u64(fb_reader *r)
{
    return fb_read_be(r, 8);
}

static inline void fb_read_into(fb_reader *r, void *out, size_t len)
{
    fb_span s = fb_read_bytes(r, len);
    if (len == 0) return;
    if (s.len == len) {
        memcpy(out, s.p, len);
    } else {
        memset(out, 0, len);
    }
}

static inline fb_id fb_read_id(fb_reader *r)
{
    fb_id id;
    fb_read_into(r, id.b, sizeof id.b);
    return id;
}

static inline fb_b32 fb_read_b32(fb_reader *r)
{
    fb_b32 v;
    fb_read_into(r, v.b, sizeof v.b);
    return v;
}

/* u16 length, then the bytes. */
static inline fb_span fb_read_span16(fb_reader *r)
{
    return fb_read_bytes(r, fb_read_u16(r));
}

/* u32 length, then the bytes. */
static inline fb_span fb_read_span32(fb_reader *r)
{
    return fb_read_bytes(r, fb_read_u32(r));
}

typedef struct fb_writer {
    uint8_t *p;
    size_t cap;
    size_t at;
    bool failed;
} fb_writer;

static inline fb_writer fb_writer_of(void *p, size_t cap)
{
    return (fb_writer){(uint8_t *)p, cap, 0, false};
}

/* What was written so far; empty after a failure. */
static inline fb_span fb_writer_span(const fb_writer *w)
{
    return w->failed ? (fb_span){NULL, 0} : (fb_span){w->p, w->at};
}

/* Room for len bytes that the caller fills in, or NULL. */
static inline uint8_t *fb_write_room(fb_writer *w, size_t len)
{
    if (w->failed || len > w->cap - w->at) {
        w->failed = true;
        return NULL;
    }
    uint8_t *room = w->p + w->at;
    w->at += len;
    return room;
}

static inline void fb_write_bytes(fb_writer *w, const void *bytes, size_t len)
{
    uint8_t *room = fb_write_room(w, len);
    if (room != NULL && len != 0) memcpy(room, bytes, len);
}

static inline void fb_write_span(fb_writer *w, fb_span s)
{
    fb_write_bytes(w, s.p, s.len);
}

static inline void fb_store_be(uint8_t *out, uint64_t v, size_t width)
{
    /* As one store where the width is known when it is compiled, as it nearly always is. */
    if (width == 8) {
        fb_store_be64(out, v);
        return;
    }
    if (width == 4) {
        fb_store_be32(out, (uint32_t)v);
        return;
    }
    if (width == 2) {
        fb_store_be16(out, (uint16_t)v);
        return;
    }
    for (size_t i = width; i-- > 0; v >>= 8) out[i] = (uint8_t)v;
}

static inline void fb_write_be(fb_writer *w, uint64_t v, size_t width)
{
    uint8_t *room = fb_write_room(w, width);
    if (room != NULL) fb_store_be(room, v, width);
}

static inline void fb_write_u8(fb_writer *w, uint8_t v)
{
    fb_write_be(w, v, 1);
}

static inline void fb_write_u16(fb_writer *w, uint16_t v)
{
    fb_write_be(w, v, 2);
}

static inline void fb_write_u32(fb_writer *w, uint32_t v)
{
    fb_write_be(w, v, 4);
}

static inline void fb_write_u64(fb_writer *w, uint64_t v)
{
    fb_write_be(w, v, 8);
}

/* `count` words of 8 bytes each, the lowest byte first: for what is only hashed. */
static inline void fb_write_words(fb_writer *w, const uint64_t *words, size_t count)
{
    uint8_t *room = fb_write_room(w, 8 * count);
    for (size_t i = 0; room != NULL && i < count; i++) fb_word_store(room + 8 * i, words[i]);
}

static inline void fb_write_id(fb_writer *w, fb_id id)
{
    fb_write_bytes(w, id.b, sizeof id.b);
}

static inline void fb_write_b32(fb_writer *w, fb_b32 v)
{
    fb_write_bytes(w, v.b, sizeof v.b);
}

/* u16 length, then the bytes; a longer span fails the writer. */
static inline void fb_write_span16(fb_writer *w, fb_span s)
{
    if (s.len > UINT16_MAX) {
        w->failed = true;
        return;
    }
    fb_write_u16(w, (uint16_t)s.len);
    fb_write_span(w, s);
}

/* u32 length, then the bytes. */
static inline void fb_write_span32(fb_writer *w, fb_span s)
{
    if (s.len > UINT32_MAX) {
        w->failed = true;
        return;
    }
    fb_write_u32(w, (uint32_t)s.len);
    fb_write_span(w, s);
}

#endif
