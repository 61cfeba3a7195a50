/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule: one run of the simulator, written out by meaning (docs/SCHEDULES.md).
 *
 * What the swarm would draw stands here as lines: rounds, windows of faults, operations of clients,
 * faults of single messages, crashes at an effect. The seed is left for what nobody addresses:
 * delays, identities, the moments within a window. Every draw hangs on the name of its line, so
 * that a line taken away moves no other. */
#ifndef FB_SIM_SCHEDULE_H
#define FB_SIM_SCHEDULE_H

#include <stdio.h>

#include "sim/schedule/message.h"
#include "sim/weather/weather.h"
#include "sim/workload/workload.h"
#include "sim/world/world.h"

#define FB_SIM_SCHEDULE_VERSION    1u
#define FB_SIM_SCHEDULE_COLUMNS    80u
#define FB_SIM_SCHEDULE_BYTES_MAX  (UINT32_C(32) << 20)
#define FB_SIM_SCHEDULE_LINES_MAX  (UINT32_C(1) << 19)
#define FB_SIM_SCHEDULE_ROUNDS_MAX 4096u
#define FB_SIM_SCHEDULE_WORDS_MAX  256u /* of one line, its continuations included */
#define FB_SIM_SCHEDULE_NODES_MAX  64u
/* A round, a window or a delay is no longer; sums of a few of them stay far from the end of 64
 * bits. */
#define FB_SIM_SCHEDULE_TIME_MAX UINT64_C(1000000000000000) /* 11 days and a half */
/* Copies, effects, requests of a burst: no window counts further (faults.def, retry-storm). */
#define FB_SIM_SCHEDULE_COUNT_MAX 80u
/* Operations of one line. */
#define FB_SIM_SCHEDULE_TIMES_MAX 4096u
/* How late an operation may be before it counts as missed, unless its line says so. */
#define FB_SIM_SCHEDULE_WITHIN_NS UINT64_C(5000000000)

typedef enum fb_sim_line_kind {
    FB_SIM_LINE_OP,
    FB_SIM_LINE_WINDOW,
    FB_SIM_LINE_MESSAGE,
    FB_SIM_LINE_CRASH,
} fb_sim_line_kind;

typedef struct fb_sim_line {
    fb_sim_line_kind kind;
    uint32_t round;    /* place in rounds */
    uint32_t source;   /* line of the text, from 1; 0: recorded */
    uint32_t a;        /* node: whose operation, window or crash; sender of a message */
    uint32_t b;        /* node: other end of a path; receiver */
    uint64_t at_ns;    /* operations, windows: since the beginning of the round */
    uint64_t until_ns; /* windows */
    /* Operations. */
    uint64_t within_ns;
    uint32_t client;
    fb_sim_op op;
    /* A series: so many more of them, each so long after the one before; values are numbered on.
     * With `over` the k-th is about the record that is k mod `over` behind the first one's. */
    uint32_t more;
    uint32_t over;
    uint64_t every_ns;
    /* Windows: members of fb_sim_window. */
    uint32_t fault;
    uint32_t key;
    uint64_t p, q, mask;
    /* Messages and crashes: the nth of a kind in life `life` of node a, counted from the round's
     * beginning; life 0: of all lives together. */
    uint32_t what; /* fb_sim_message_kind, or an effect's kind */
    uint32_t nth;
    uint32_t life;
    uint32_t act;     /* fb_sim_message_act */
    uint64_t span_ns; /* delay; how long a crashed node stays down */
} fb_sim_line;

typedef struct fb_sim_plan_round {
    uint64_t number; /* its background draws hang on it */
    uint64_t length_ns;
    uint64_t core; /* nodes that are healed, as a bit set; 0: all */
    uint32_t source;
} fb_sim_plan_round;

typedef enum fb_sim_expect {
    FB_SIM_EXPECT_NOTHING,
    FB_SIM_EXPECT_PASS,
    FB_SIM_EXPECT_VIOLATES,
} fb_sim_expect;

typedef struct fb_sim_setting {
    uint32_t row; /* of fb_sim_setting_rows */
    uint64_t value;
} fb_sim_setting;

#define FB_SIM_SETTINGS_MAX 64u

typedef struct fb_sim_plan {
    char seed_text[44];
    uint32_t nodes;
    uint64_t second;      /* members of a second space, as a bit set; 0: there is one space */
    uint64_t documents;   /* nodes whose records are documents, as a bit set */
    uint64_t steps;       /* that the run ends with; 0: after its rounds */
    char bug[40];         /* planted; empty: none */
    fb_sim_expect expect; /* what the run has to come to */
    char check[40];
    bool has_hash;
    fb_hash128 hash;
    bool calm;          /* without weather, clocks are never set */
    uint64_t setup_ns;  /* quiet before the first round */
    uint64_t settle_ns; /* quiet after each round */
    fb_sim_setting settings[FB_SIM_SETTINGS_MAX];
    uint32_t setting_count;
    fb_sim_plan_round *rounds;
    uint32_t round_count, round_cap;
    fb_sim_line *lines; /* of one round together, in the order of rounds */
    uint32_t line_count, line_cap;
} fb_sim_plan;

typedef struct fb_sim_plan_error {
    uint32_t line, column; /* from 1 */
    char text[160];        /* bytes of the file are escaped in it */
} fb_sim_plan_error;

/* The k-th operation of its line, from 0, as a line by itself. */
fb_sim_line fb_sim_line_nth(const fb_sim_line *line, uint32_t k);
/* Lines when every operation is one. */
uint64_t fb_sim_plan_lines_alone(const fb_sim_plan *plan);
/* It is about one record, and a series of it may be about several. */
bool fb_sim_op_has_record(const fb_sim_op *op);
/* What an operation of its kind does not look at is set to zero. */
void fb_sim_op_normalise(fb_sim_op *op);
/* The same of a window and its fault. */
void fb_sim_window_normalise(const fb_sim_plan *plan, fb_sim_line *line);
/* Lines of each round in the order of time, what has none at the end; equals stay in theirs. What
 * the run does stays the same. */
void fb_sim_plan_sort(fb_sim_plan *plan);
/* Wherever they stand in their texts. */
bool fb_sim_line_equal(const fb_sim_line *a, const fb_sim_line *b);

void fb_sim_plan_init(fb_sim_plan *schedule);
void fb_sim_plan_free(fb_sim_plan *schedule);
/* False when there is no memory for it. The copy is freed by itself. */
bool fb_sim_plan_copy(fb_sim_plan *to, const fb_sim_plan *from);
/* NULL when there are too many, or no memory. The new one is zeros. */
fb_sim_line *fb_sim_plan_line_add(fb_sim_plan *schedule);
fb_sim_plan_round *fb_sim_plan_round_add(fb_sim_plan *schedule);

/* Reads a whole text. False: *error says where and why, and the schedule is empty. */
bool fb_sim_plan_parse(const char *text, size_t len, fb_sim_plan *out, fb_sim_plan_error *error);
/* Reads a file; an error of the file itself has line 0. */
bool fb_sim_plan_read(const char *path, fb_sim_plan *out, fb_sim_plan_error *error);
/* Prints the canonical text: parsing it gives the same schedule. */
void fb_sim_plan_print(const fb_sim_plan *schedule, FILE *out);
/* Only the line, without a line end: for messages. */
void fb_sim_plan_line_text(const fb_sim_plan *schedule, const fb_sim_line *line, char *out,
                           size_t cap);
/* What the run is made of without times, values and names: failures whose minimal schedules have
 * one skeleton and fail by one check have one cause, as a rule. */
uint64_t fb_sim_plan_skeleton(const fb_sim_plan *schedule);
/* Lines of its canonical text. */
uint32_t fb_sim_plan_size(const fb_sim_plan *schedule);

/* The configuration of a run that plays it. The schedule has to outlive the run. */
void fb_sim_plan_config(const fb_sim_plan *schedule, fb_sim_config *out);
/* Its header from a configuration that is going to be recorded. */
void fb_sim_plan_from_config(fb_sim_plan *schedule, const fb_sim_config *config, const char *bug);

/* Settings: members of fb_sim_config that a line `set NAME VALUE` may change. */
typedef struct fb_sim_setting_row {
    const char *name;
    uint32_t offset;
    uint8_t width; /* 4 or 8 bytes */
    bool is_time;
    uint64_t least, most;
} fb_sim_setting_row;

extern const fb_sim_setting_row fb_sim_setting_rows[];
extern const uint32_t fb_sim_setting_count;

/* What a window of a fault looks like in text. */
typedef enum fb_sim_shape_who {
    FB_SIM_WHO_ANY, /* no shape of its own: A B p N q N mask N */
    FB_SIM_WHO_NONE,
    FB_SIM_WHO_NODE,
    FB_SIM_WHO_PATHS,  /* A: all of its paths; A-B */
    FB_SIM_WHO_PAIR,   /* A-B */
    FB_SIM_WHO_ARROW,  /* A->B */
    FB_SIM_WHO_GROUPS, /* A B | C D */
    FB_SIM_WHO_BRIDGE, /* C of A | B D */
} fb_sim_shape_who;

typedef enum fb_sim_shape_type {
    FB_SIM_SHAPE_NONE,
    FB_SIM_SHAPE_TIME,
    FB_SIM_SHAPE_RATIO, /* 1/N */
    FB_SIM_SHAPE_OF_16, /* N/16 */
    FB_SIM_SHAPE_NUMBER,
    FB_SIM_SHAPE_SECONDS,    /* whole seconds, as a time */
    FB_SIM_SHAPE_BY_SECONDS, /* the same with a sign, which is mask */
    FB_SIM_SHAPE_BY_NUMBER,
    FB_SIM_SHAPE_CRASH_AT, /* io, send, timer */
} fb_sim_shape_type;

typedef struct fb_sim_shape {
    fb_sim_shape_who who;
    const char *p_word; /* NULL: the value stands alone */
    fb_sim_shape_type p_type;
    const char *q_word;
    fb_sim_shape_type q_type;
    uint64_t p_most;    /* p and q are at least 1 */
    uint64_t q_default; /* what q is when it is not said; 0: it has to be said */
} fb_sim_shape;

/* Groups of a split as numbers in the order of their first nodes: only who is with whom counts. */
void fb_sim_groups_normalise(uint32_t nodes, uint64_t *low, uint64_t *high);

/* "write" of FB_FX_WRITE and so on; 0 is "effect", any of them. NULL: no such kind. */
const char *fb_sim_effect_name(uint32_t kind);

extern const char *const fb_sim_crash_at_names[FB_SIM_CRASH_AT_KINDS + 1];

/* Never NULL. */
const fb_sim_shape *fb_sim_shape_of(uint32_t fault);

#endif
