/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/main_sim.h"
#include "sim/mutants.h"
#include "sim/schedule/parse.h"

enum {
    SEEN_SEED,
    SEEN_NODES,
    SEEN_BUG,
    SEEN_EXPECT,
    SEEN_HASH,
    SEEN_CALM,
    SEEN_SETUP,
    SEEN_SETTLE,
    SEEN_SECOND,
    SEEN_STEPS,
    SEEN_DOCUMENTS,
};

static void text_take(fb_parser *s, const char *what, char *out, size_t cap)
{
    const fb_word *w = fb_parse_take(s, what);
    if (s->failed) return;
    if (w->len >= cap) {
        fb_parse_refuse(s, w, "too long");
        return;
    }
    for (uint32_t i = 0; i < w->len; i++) {
        char c = w->p[i];
        if ((c < 'a' || c > 'z') && !fb_word_is_digit(c) && c != '-') {
            fb_parse_refuse(s, w, "not a name");
            return;
        }
    }
    memcpy(out, w->p, w->len);
    out[w->len] = 0;
}

static void seed_line(fb_parser *s)
{
    const fb_word *w = fb_parse_take(s, "a seed");
    fb_sim_config config = fb_sim_config_default();
    char text[sizeof s->out->seed_text];
    if (s->failed) return;
    if (w->len >= sizeof text || memchr(w->p, 0, w->len) != NULL) {
        fb_parse_refuse(s, w, "not a seed");
        return;
    }
    memcpy(text, w->p, w->len);
    text[w->len] = 0;
    if (!fb_sim_parse_seed(text, &config)) {
        fb_parse_refuse(s, w, "not a seed");
        return;
    }
    memcpy(s->out->seed_text, text, sizeof text);
}

static void expect_line(fb_parser *s)
{
    const fb_word *w = fb_parse_take(s, "pass or violates");
    if (fb_word_is(w, "pass")) {
        s->out->expect = FB_SIM_EXPECT_PASS;
    } else if (fb_word_is(w, "violates")) {
        s->out->expect = FB_SIM_EXPECT_VIOLATES;
        text_take(s, "a check", s->out->check, sizeof s->out->check);
    } else if (!s->failed) {
        fb_parse_refuse(s, w, "neither pass nor violates");
    }
}

static void hash_line(fb_parser *s)
{
    const fb_word *w = fb_parse_take(s, "a hash");
    if (s->failed) return;
    if (w->len != 32) {
        fb_parse_refuse(s, w, "not 32 hex digits");
        return;
    }
    uint64_t half[2] = {0, 0};
    for (uint32_t i = 0; i < 32; i++) {
        char c = w->p[i];
        uint64_t digit = fb_word_is_digit(c) ? (uint64_t)(c - '0') : (uint64_t)(c - 'a') + 10;
        if (!fb_word_is_digit(c) && (c < 'a' || c > 'f')) {
            fb_parse_refuse(s, w, "not 32 hex digits");
            return;
        }
        half[i / 16] = half[i / 16] << 4 | digit;
    }
    s->out->has_hash = true;
    s->out->hash = (fb_hash128){.lo = half[1], .hi = half[0]};
}

static void set_line(fb_parser *s)
{
    const fb_word *w = fb_parse_take(s, "a setting");
    for (uint32_t i = 0; i < fb_sim_setting_count && !s->failed; i++) {
        const fb_sim_setting_row *row = &fb_sim_setting_rows[i];
        if (!fb_word_is(w, row->name)) continue;
        for (uint32_t k = 0; k < s->out->setting_count; k++) {
            if (s->out->settings[k].row == i) fb_parse_refuse(s, w, "set twice");
        }
        const fb_word *v = fb_parse_take(s, "a value");
        uint64_t value = row->is_time ? fb_parse_time_in(s, v, v->p, v->p + v->len)
                                      : fb_parse_number(s, v, 0, UINT32_MAX, "not a number");
        if (!s->failed && (value < row->least || value > row->most)) {
            fb_parse_refuse(s, v, "beyond what this setting may be");
        }
        if (!s->failed) {
            s->out->settings[s->out->setting_count++] = (fb_sim_setting){i, value};
        }
        return;
    }
    if (!s->failed) fb_parse_refuse(s, w, "no setting of this name");
}

bool fb_parse_header(fb_parser *s, const fb_word *verb)
{
    static const char *const verbs[] = {"seed",  "nodes",  "bug",    "expect", "hash",     "calm",
                                        "setup", "settle", "second", "steps",  "documents"};
    if (fb_word_is(verb, "set")) {
        if (s->out->round_count != 0) fb_parse_refuse(s, verb, "this comes before the first round");
        set_line(s);
        return true;
    }
    uint32_t which = fb_word_name(verb, verbs, sizeof verbs / sizeof verbs[0]);
    if (which == sizeof verbs / sizeof verbs[0]) return false;
    if (s->out->round_count != 0) fb_parse_refuse(s, verb, "this comes before the first round");
    if ((s->seen >> which & 1) != 0) fb_parse_refuse(s, verb, "said twice");
    s->seen |= 1u << which;
    switch (which) {
    case SEEN_SEED:
        seed_line(s);
        break;
    case SEEN_NODES:
        s->out->nodes = (uint32_t)fb_parse_number(s, fb_parse_take(s, "a number"), 2,
                                                  FB_SIM_SCHEDULE_NODES_MAX, "not 2 to 64 nodes");
        break;
    case SEEN_BUG: {
        const fb_word *w = fb_parse_take(s, "a planted bug");
        s->at -= !s->failed;
        text_take(s, "a planted bug", s->out->bug, sizeof s->out->bug);
        if (!s->failed && fb_sim_mutant_of(s->out->bug) == 0) {
            fb_parse_refuse(s, w, "no planted bug of this name");
        }
        break;
    }
    case SEEN_EXPECT:
        expect_line(s);
        break;
    case SEEN_HASH:
        hash_line(s);
        break;
    case SEEN_CALM:
        s->out->calm = true;
        break;
    case SEEN_SETUP:
        s->out->setup_ns = fb_parse_time(s);
        break;
    case SEEN_STEPS:
        s->out->steps = fb_parse_number(s, fb_parse_take(s, "a number"), 1, UINT64_MAX / 2,
                                        "not a number of steps from 1");
        break;
    case SEEN_SECOND:
        s->out->second = fb_parse_nodes(s);
        break;
    case SEEN_DOCUMENTS:
        s->out->documents = fb_parse_nodes(s);
        break;
    default:
        s->out->settle_ns = fb_parse_time(s);
        break;
    }
    return true;
}
