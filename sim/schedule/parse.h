/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the text of a schedule: words of a line, and what stands in them. Inside of parse.c,
 * parse_header.c and parse_words.c.
 *
 * The first error stays and says its place; everything after it gives zeros, empty words and no
 * nodes, and the caller looks at `failed` once at the end. */
#ifndef FB_SIM_SCHEDULE_PARSE_H
#define FB_SIM_SCHEDULE_PARSE_H

#include "sim/schedule/schedule.h"

typedef struct fb_word {
    const char *p;
    uint32_t len;
    uint32_t line, column;
} fb_word;

typedef struct fb_parser {
    const char *p, *end;
    uint32_t line;
    const char *line_start;
    fb_sim_plan *out;
    fb_sim_plan_error *error;
    bool failed;
    fb_word words[FB_SIM_SCHEDULE_WORDS_MAX];
    uint32_t count;   /* of words on this line */
    uint32_t at;      /* the next one */
    uint32_t windows; /* of this round */
    uint64_t alone;   /* lines so far, when every operation is one */
    uint32_t seen;    /* header lines, as a bit set */
} fb_parser;

void fb_parse_refuse_at(fb_parser *s, uint32_t line, uint32_t column, const char *format, ...);
/* The word as it may be shown: bytes of the file must not reach a terminal. */
void fb_parse_refuse(fb_parser *s, const fb_word *w, const char *what);
bool fb_word_is_digit(char c);
/* Splits the next line, continuations included. False at the end of the text. */
bool fb_parse_words(fb_parser *s);
bool fb_word_is(const fb_word *w, const char *text);
/* The next word; an error and an empty one when the line is over. */
const fb_word *fb_parse_take(fb_parser *s, const char *what);
/* Takes the next word when it is this one. */
bool fb_parse_take_if(fb_parser *s, const char *text);
void fb_parse_take_word(fb_parser *s, const char *text);
void fb_parse_line_end(fb_parser *s);
uint64_t fb_parse_number(fb_parser *s, const fb_word *w, uint64_t low, uint64_t high,
                         const char *what);
/* Digits from *p on, before end; *p is behind them then. False: none, or too many. */
bool fb_parse_digits(const char **p, const char *end, uint64_t *out);
/* From p to end, within the word w. */
uint64_t fb_parse_number_in(fb_parser *s, const fb_word *w, const char *p, const char *end,
                            uint64_t low, uint64_t high, const char *what);
uint64_t fb_parse_time_in(fb_parser *s, const fb_word *w, const char *p, const char *end);
uint64_t fb_parse_time(fb_parser *s);
uint32_t fb_parse_node_in(fb_parser *s, const fb_word *w, const char *p, const char *end);
uint32_t fb_parse_node(fb_parser *s);
/* A-B or A->B. */
void fb_parse_pair(fb_parser *s, const char *between, bool alone_too, fb_sim_line *line);
uint32_t fb_word_name(const fb_word *w, const char *const *names, uint32_t count);
/* The rest of the line, as a bit set. */
uint64_t fb_parse_nodes(fb_parser *s);

/* parse_header.c. False: the line does not begin with a word of the header. */
bool fb_parse_header(fb_parser *s, const fb_word *verb);

#endif
