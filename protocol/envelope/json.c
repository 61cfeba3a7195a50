/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/envelope/json.h"

#include "protocol/base/limits.h"
#include "protocol/envelope/json_names.h"
#include "protocol/envelope/json_scan.h"

/* A scan of one text. The functions take the place where something starts and return the place
 * behind it, or NULL after a fault. */
typedef struct walk {
    fb_json_place s;
    const fb_json_rules *rules;
    fb_json_watch *watch;
    size_t watched;
    fb_json_wanted *wanted;
    size_t next_watched;
    uint64_t lengths;      /* of the rules, or all */
    uint32_t closed_depth; /* 1 in an object that is closed, else no depth at all */
    fb_json_watch *member; /* the watched member of the outermost object that is being read */
    uint32_t member_depth; /* 1 while there is one, else no depth at all */
    fb_json_object object[FB_JSON_DEPTH_MAX + 1];
    fb_json_names names;
} walk;

static inline const uint8_t *walk_stop(walk *w, const uint8_t *p, fb_json_fault fault)
{
    return fb_json_place_stop(&w->s, p, fault);
}

/* Skips white space, mostly none. */
static inline const uint8_t *walk_next(walk *w, const uint8_t *p)
{
    return *p > ' ' ? p : fb_json_place_space(&w->s, p);
}

/* Names are short: compared without a call. */
static inline bool same_name(fb_span a, fb_span b)
{
    if (a.len != b.len) return false;
    if (a.len < 8) {
        for (size_t i = 0; i < a.len; i++) {
            if (a.p[i] != b.p[i]) return false;
        }
        return true;
    }
    /* The last word overlaps the one before. */
    for (size_t i = 0; i + 8 < a.len; i += 8) {
        if (fb_word_load(a.p + i) != fb_word_load(b.p + i)) return false;
    }
    return fb_word_load(a.p + a.len - 8) == fb_word_load(b.p + b.len - 8);
}

/* False: no watched member has that name, by its length. Watched names have less than 64 bytes. */
static inline bool may_be_watched(const walk *w, fb_span name, bool escaped)
{
    return escaped || (name.len < 64 && (w->lengths >> name.len & 1) != 0);
}

/* The watched member of that name, or NULL. */
static fb_json_watch *watched_by(const walk *w, fb_span name, bool escaped)
{
    if (!may_be_watched(w, name, escaped)) return NULL;
    for (size_t i = 0; i < w->watched; i++) {
        fb_span wanted = w->watch[i].name;
        if (escaped ? fb_json_name_is(name, wanted) : same_name(name, wanted)) return &w->watch[i];
    }
    return NULL;
}

/* Members mostly come in the order of the list: the one behind the last, spelled plainly, is known
 * without a scan. NULL if it is another. At the name's quote 32 bytes may be read. */
static inline fb_json_watch *watched_next(const walk *w, const uint8_t *start)
{
    if (w->next_watched >= w->watched) return NULL;
    fb_json_watch *next = &w->watch[w->next_watched];
    size_t len = next->name.len;
    if (len + 2 > FB_JSON_AHEAD || start[len + 1] != '"') return NULL;
    return same_name(fb_span_of(start + 1, len), next->name) ? next : NULL;
}

/* The name of a member of the outermost object, which begins at `at`. */
static bool walk_watched(walk *w, size_t at, fb_span name, bool escaped, fb_json_watch *member)
{
    if (member == NULL) member = watched_by(w, name, escaped);
    if (member != NULL) {
        if (member->value.len != 0) {
            return fb_json_place_stop_at(&w->s, at, FB_JSON_DUPLICATE) != NULL;
        }
        w->next_watched = (size_t)(member - w->watch) + 1;
        w->member = member;
        w->member_depth = 1;
        w->object[1].most--;
    } else if (w->closed_depth == 1) {
        return fb_json_place_stop_at(&w->s, at, FB_JSON_UNKNOWN) != NULL;
    }
    return true;
}

#define NAME_ROOM 64u

/* What is known of a name once it was read. */
typedef struct walk_read {
    const uint8_t *p; /* behind its quote; NULL after a fault */
    fb_span name;     /* as spelled */
    uint32_t hash;
    bool escaped;
} walk_read;

/* A name with escapes or of more than 15 bytes; p is behind its quote. By value: what is handed
 * over by its address lies in memory for the short names as well. */
static FB_RARE walk_read walk_long_name(walk *w, const uint8_t *p)
{
    uint8_t room[NAME_ROOM + FB_JSON_ROOM_MORE];
    fb_json_wanted wanted = {.room = room, .cap = NAME_ROOM};
    walk_read read = {0};
    size_t at = fb_json_place_at(&w->s, p);
    read.p = p = fb_json_scan_wanted(&w->s, p, &wanted, &read.escaped);
    if (p == NULL) return read;
    /* Of the text itself, as a part of it may have been left for the tail. */
    read.name = fb_span_of(w->s.text.p + at, fb_json_place_at(&w->s, p) - at - 1);
    if (!read.escaped) {
        read.hash = fb_json_name_hash_plain(read.name);
    } else if (wanted.fits && wanted.text.len < FB_BLOCK_BYTES) {
        read.hash = fb_json_name_hash_short(room, (unsigned)wanted.text.len);
    } else {
        read.hash = wanted.fits ? fb_json_name_hash_plain(wanted.text)
                                : fb_json_name_hash_escaped(read.name);
    }
    return read;
}

/* The name of the next member and its colon; the result is behind it. */
static inline const uint8_t *walk_name(walk *w, const uint8_t *p, uint32_t depth)
{
    fb_json_place *s = &w->s;
    fb_json_object *object = &w->object[depth];
    p = fb_json_place_ready(s, p);
    if (*p != '"') return walk_stop(w, p, FB_JSON_SYNTAX);
    size_t at = fb_json_place_at(s, p);
    if (w->names.count >= object->most) return fb_json_place_stop_at(s, at, FB_JSON_MEMBERS);

    fb_json_watch *known = depth == w->closed_depth ? watched_next(w, p) : NULL;
    walk_read read = {.name = {p + 1, 0}};
    if (known != NULL) {
        p += known->name.len + 2;
    } else {
        unsigned len = fb_block_first(fb_block_specials(p + 1));
        if (len < FB_BLOCK_BYTES && p[1 + len] == '"' && p + 1 + len < s->end) {
            read.name.len = len;
            read.hash = fb_json_name_hash_short(p + 1, len);
            p += len + 2;
        } else {
            read = walk_long_name(w, p + 1);
            p = read.p;
            if (p == NULL) return NULL;
        }
    }
    if (depth == 1 && (w->closed_depth == 1 || may_be_watched(w, read.name, read.escaped)) &&
        !walk_watched(w, at, read.name, read.escaped, known)) {
        return NULL;
    }
    /* A watched name is found again by the list itself. */
    if (depth != w->member_depth) fb_json_names_add(&w->names, object, read.hash, at + 1);
    p = walk_next(w, p);
    return *p == ':' ? p + 1 : walk_stop(w, p, FB_JSON_SYNTAX);
}

static inline uint32_t four_bytes(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Which of the three it is can be guessed by nobody: one branch for all. */
static inline const uint8_t *walk_word(walk *w, const uint8_t *p)
{
    bool is_false = *p == 'f';
    uint32_t word = four_bytes(p + is_false);
    unsigned is_true = word == four_bytes((const uint8_t *)"true");
    unsigned is_null = word == four_bytes((const uint8_t *)"null");
    unsigned good = is_false ? word == four_bytes((const uint8_t *)"alse") : is_true | is_null;
    return good != 0 ? p + 4 + is_false : fb_json_scan_word(&w->s, p);
}

/* A value that is neither array nor object. */
static inline const uint8_t *walk_scalar(walk *w, const uint8_t *p, fb_json_watch *member)
{
    bool escaped = false;
    switch (*p) {
    case '"':
        if (member != NULL && w->wanted != NULL && w->wanted->member == member) {
            p = fb_json_scan_wanted(&w->s, p + 1, w->wanted, &escaped);
        } else {
            p = fb_json_scan_string(&w->s, p + 1, &escaped);
        }
        if (member != NULL) member->escaped = escaped;
        return p;
    case '-':
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
    case '8':
    case '9':
        return fb_json_scan_number(&w->s, p);
    case 't':
    case 'f':
    case 'n':
        return walk_word(w, p);
    default:
        return walk_stop(w, p, FB_JSON_SYNTAX);
    }
}

_Static_assert('{' + 2 == '}' && '[' + 2 == ']', "the bracket that closes");

/* A value that is watched begins at p, or ends before it. */
static inline void watched_begins(walk *w, const uint8_t *p)
{
    w->member->value = fb_span_of(w->s.text.p + fb_json_place_at(&w->s, p), 0);
}

static inline void watched_ends(walk *w, const uint8_t *p)
{
    fb_span *value = &w->member->value;
    value->len = fb_json_place_at(&w->s, p) - (size_t)(value->p - w->s.text.p);
    w->member = NULL;
    w->member_depth = FB_NONE;
}

/* The outermost value, from p; or, with `inside`, from behind the first member of the object that
 * it is. A bit of `objects` tells for each open value whether it is an object, the innermost
 * lowest. */
static const uint8_t *walk_value(walk *w, const uint8_t *p, bool inside)
{
    fb_json_place *s = &w->s;
    uint32_t depth = inside ? 1 : 0;
    uint64_t objects = depth;
    uint32_t members_max = w->rules->members_max;
    bool named = false; /* a member follows */
    if (inside) {
        fb_json_names_open(&w->names, &w->object[depth], members_max);
        w->object[1].most--;
        goto after;
    }
    for (;;) {
        if (named) {
            p = walk_name(w, p, depth);
            if (p == NULL) return NULL;
        }
        p = fb_json_place_ready(s, walk_next(w, p));
        if (depth == w->member_depth) watched_begins(w, p);
        if (*p == '{' || *p == '[') {
            if (depth == w->rules->depth_max) return walk_stop(w, p, FB_JSON_DEPTH);
            uint8_t open = *p;
            p = fb_json_place_ready(s, walk_next(w, p + 1));
            if (*p != open + 2) {
                named = open == '{';
                depth++;
                objects = objects << 1 | named;
                fb_json_names_open(&w->names, &w->object[depth], members_max);
                continue;
            }
            p++; /* it is empty */
        } else {
            p = walk_scalar(w, p, depth == w->member_depth ? w->member : NULL);
            if (p == NULL) return NULL;
        }
        if (depth == 0) return p;
    after:
        /* What the value belongs to goes on, or ends, and so on outwards. */
        for (;;) {
            p = fb_json_place_ready(s, p);
            /* One that ends where the text does was not finished: what is behind it says nothing.
             */
            if (depth == w->member_depth && p < s->end) watched_ends(w, p);
            p = walk_next(w, p);
            named = (objects & 1) != 0;
            if (*p == ',') break;
            if (*p != (named ? '}' : ']')) return walk_stop(w, p, FB_JSON_SYNTAX);
            uint32_t twice = fb_json_names_close(&w->names, &w->object[depth]);
            if (twice != FB_NONE) return fb_json_place_stop_at(s, twice, FB_JSON_DUPLICATE);
            p++;
            if (--depth == 0) return p;
            objects >>= 1;
        }
        p = walk_next(w, p + 1);
    }
}

static inline void walk_text(walk *w, size_t known)
{
    static const uint8_t bom[3] = {0xef, 0xbb, 0xbf};
    fb_json_place *s = &w->s;
    const uint8_t *p = s->base;
    if (known != 0) {
        w->next_watched = 1;
        p = walk_value(w, p, true);
    } else {
        if (s->text.len >= 3 && memcmp(p, bom, 3) == 0) {
            walk_stop(w, p, FB_JSON_BOM);
            return;
        }
        p = fb_json_place_space(s, p);
        if (p == s->end) {
            walk_stop(w, p, FB_JSON_NONE);
            s->fault = FB_JSON_EMPTY;
            return;
        }
        if (w->rules->object && *p != '{') {
            walk_stop(w, p, FB_JSON_NOT_OBJECT);
            return;
        }
        p = walk_value(w, p, false);
    }
    if (p == NULL) return;
    if (p != s->end) p = fb_json_place_space(s, p);
    if (p == s->end) {
        s->stopped = s->text.len;
    } else {
        walk_stop(w, p, FB_JSON_TRAILING);
    }
}

fb_json_fault fb_json_scan_hinted(fb_span text, const fb_json_hint *hint,
                                  const fb_json_rules *rules, fb_json_watch *watch, size_t watched,
                                  size_t *at)
{
    static const uint8_t nothing[1] = {0};
    if (text.len == 0) text.p = nothing;
    walk w; /* the table of names is not cleared: only what was added is read */
    for (size_t i = 0; i < watched; i++) {
        if (i != 0 || hint->known == 0) watch[i].value = (fb_span){NULL, 0};
        watch[i].escaped = false;
    }
    w.lengths = rules->lengths != 0 ? rules->lengths : UINT64_MAX;
    w.closed_depth = rules->closed ? 1 : FB_NONE;
    w.rules = rules;
    w.watch = watch;
    w.watched = watched;
    w.wanted = hint->wanted;
    w.next_watched = 0;
    w.member = NULL;
    w.member_depth = FB_NONE;
    w.names.count = 0;
    w.names.text = text;
    w.names.has_key = false;
    /* A value that no bracket ends may seem to go on in what is behind the text. */
    fb_json_place_begin(&w.s, text, hint->known, rules->object && text.len != 0 ? hint->behind : 0);
    walk_text(&w, hint->known);
    /* A watched member whose value was not finished does not count as read. */
    if (w.member != NULL) w.member->value = (fb_span){NULL, 0};
    if (at != NULL) *at = w.s.stopped;
    return w.s.fault;
}

fb_json_fault fb_json_scan(fb_span text, const fb_json_rules *rules, fb_json_watch *watch,
                           size_t watched, size_t *at)
{
    static const fb_json_hint none = {0, 0, NULL};
    return fb_json_scan_hinted(text, &none, rules, watch, watched, at);
}

fb_status fb_json_value_check(fb_span text)
{
    static const fb_json_rules rules = {FB_JSON_DEPTH_MAX, FB_JSON_NAMES_MAX, false, false, 0};
    switch (fb_json_scan(text, &rules, NULL, 0, NULL)) {
    case FB_JSON_NONE:
        return FB_OK;
    case FB_JSON_DEPTH:
    case FB_JSON_MEMBERS:
        return FB_ERR_LIMIT;
    default:
        return FB_ERR_VALUE_MALFORMED;
    }
}

const char *fb_json_fault_text(fb_json_fault fault)
{
    switch (fault) {
#define ROW(name, text)                                                                            \
    case FB_JSON_##name:                                                                           \
        return text;
        FB_JSON_FAULT_TABLE(ROW)
#undef ROW
    }
    return "unknown";
}
