/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of members that are compared, one pair of member and collection after the other. The
 * node is what a test says it answers; what it is asked with is here in the place of exchange.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/base/cursor.h"
#include "protocol/database/database.h"
#include "runtime/api/handlers.h"

#define MEMBERS     2u
#define COLLECTIONS 2u

/* The answers about each pair, in the order in which they are asked for. */
typedef struct pair {
    fb_error error;
    uint8_t state;
} pair;

/* What a member says of its collections: those that are here are left out. */
typedef struct list {
    fb_error error;
    bool more;    /* it has "odds" as well */
    bool endless; /* and it has more for ever */
} list;

static const list *lists;
static const pair *answers;
static bool listed; /* the collections were told */

static fb_id id_of(uint8_t number)
{
    fb_id id = {{number}};
    return id;
}

static void members_write(fb_writer *w)
{
    fb_write_u16(w, MEMBERS + 1);
    for (uint8_t i = 0; i <= MEMBERS; i++) {
        fb_write_id(w, id_of(i));
        fb_write_b32(w, (fb_b32){{i}});
        fb_write_u8(w, 1); /* approved */
        fb_write_u8(w, 2);
    }
}

static void areas_write(fb_writer *w)
{
    fb_write_u16(w, listed ? 0 : COLLECTIONS);
    for (uint8_t i = 0; !listed && i < COLLECTIONS; i++) {
        fb_write_id(w, id_of((uint8_t)(100 + i)));
        fb_write_u8(w, FB_AREA_COLLECTION);
        fb_write_span16(w, fb_span_text(i == 0 ? "notes" : "tags"));
        fb_write_id(w, id_of(0));
        fb_write_u32(w, 0);
    }
    listed = true;
}

static fb_error list_write(fb_writer *w, fb_span arguments)
{
    fb_reader r = fb_reader_of(arguments);
    fb_read_id(&r);
    const list *says = &lists[fb_read_id(&r).b[0] - 1];
    fb_id after = fb_read_id(&r);
    bool first = fb_id_is_zero(after), names = says->more && (first || says->endless);
    fb_write_u16(w, names ? 1 : 0);
    if (!names) return first ? says->error : FB_OK;
    fb_id id = id_of(200);
    if (!first) fb_store_be(id.b + 8, fb_load_be64(after.b + 8) + 1, 8);
    fb_write_id(w, id);
    fb_write_u8(w, FB_AREA_COLLECTION);
    fb_write_span16(w, fb_span_text("odds"));
    return says->error;
}

bool fb_exchange_ask(fb_exchange *x, fb_verb verb, uint64_t principal, fb_span arguments,
                     fb_exchange_step step)
{
    (void)principal;
    uint8_t room[512];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_error error = FB_OK;
    if (verb == FB_VERB_SPACE_MEMBERS) members_write(&w);
    if (verb == FB_VERB_AREAS) areas_write(&w);
    if (verb == FB_VERB_PEER_AREAS) error = list_write(&w, arguments);
    if (verb == FB_VERB_RECORD_VERIFY) {
        error = answers->error;
        fb_write_u8(&w, answers->state);
        fb_write_id(&w, id_of(1));
        fb_write_id(&w, id_of(1));
        fb_write_u8(&w, 1);
        fb_write_u64(&w, 0);
        fb_write_u16(&w, 0);
        answers++;
    }
    step(x, error, error == FB_OK ? fb_writer_span(&w) : (fb_span){NULL, 0});
    return true;
}

void fb_exchange_with_space(fb_exchange *x, fb_exchange_handler then)
{
    then(x);
}

bool fb_exchange_refused(fb_exchange *x, fb_error error)
{
    (void)x;
    return error != FB_OK;
}

void fb_exchange_finish(fb_exchange *x, unsigned status, bool ok)
{
    fb_json_close(&x->out, '}');
    x->status = ok ? status : 500;
}

const fb_api_options *fb_api_options_of(const fb_api *api)
{
    (void)api;
    static const fb_home_keys keys;
    static fb_api_node node;
    static fb_api_options options;
    node.keys = &keys;
    options.node = &node;
    return &options;
}

/* The last status in the answer is that of all of them. */
static void expect_lists(const list *said, const pair *pairs, size_t count, const char *status)
{
    fb_exchange x = {.url = NULL};
    char end[64];
    answers = pairs;
    lists = said;
    listed = false;
    fb_get_verify(&x);
    assert_int_equal(x.status, 200);
    assert_ptr_equal(answers, pairs + count);
    int len = snprintf(end, sizeof end, "],\"status\":\"%s\"}", status);
    assert_true(x.out.len > (size_t)len);
    assert_memory_equal(x.out.p + x.out.len - (size_t)len, end, (size_t)len);
    bool more = said[0].more || said[1].more;
    assert_int_equal(strstr(x.out.p, "\"odds\",\"status\":\"behind\",\"missing\":\"here\"") != NULL,
                     more);
    x.own_end(&x);
    fb_text_free(&x.out);
}

static void expect(const pair *pairs, size_t count, const char *status)
{
    static const list all[MEMBERS];
    expect_lists(all, pairs, count, status);
}

#define SAYS(...) (const pair[]){__VA_ARGS__}, sizeof((const pair[]){__VA_ARGS__}) / sizeof(pair)
#define SAME                                                                                       \
    {                                                                                              \
        FB_OK, FB_VERIFY_SAME                                                                      \
    }
#define DIFFERS                                                                                    \
    {                                                                                              \
        FB_OK, FB_VERIFY_DIFFERS                                                                   \
    }
#define BEHIND                                                                                     \
    {                                                                                              \
        FB_ERR_AREA_UNKNOWN, 0                                                                     \
    }
#define GONE                                                                                       \
    {                                                                                              \
        FB_ERR_UNREACHABLE, 0                                                                      \
    }
#define BUSY                                                                                       \
    {                                                                                              \
        FB_ERR_AGAIN, 0                                                                            \
    }

static void the_worst_of_all_is_said(void **state)
{
    (void)state;
    expect(SAYS(SAME, SAME, SAME, SAME), "same");
    expect(SAYS(SAME, BEHIND, SAME, SAME), "behind");
    expect(SAYS(SAME, BUSY, SAME, SAME), "unsure");
    expect(SAYS(SAME, BUSY, DIFFERS, BEHIND), "differs");
}

/* Less than all is never told as all. */
static void members_without_a_link_leave_it_incomplete(void **state)
{
    (void)state;
    static const list first_gone[] = {{FB_ERR_UNREACHABLE, false, false}, {FB_OK, false, false}};
    static const list last_gone[] = {{FB_OK, false, false}, {FB_ERR_UNREACHABLE, false, false}};
    static const list gone[] = {{FB_ERR_UNREACHABLE, false, false},
                                {FB_ERR_NOT_FOUND, false, false}};
    expect_lists(first_gone, SAYS(SAME, SAME), "incomplete");
    expect_lists(last_gone, SAYS(SAME, SAME), "incomplete");
    expect_lists(last_gone, SAYS(SAME, BEHIND), "behind");
    expect_lists(first_gone, SAYS(SAME, BUSY), "unsure");
    expect_lists(first_gone, SAYS(DIFFERS, SAME), "differs");
    expect_lists(gone, NULL, 0, "unreachable");
}

/* A collection that only a member has. */
static void what_is_not_here_is_said(void **state)
{
    (void)state;
    static const list more[] = {{FB_OK, false, false}, {FB_OK, true, false}};
    expect_lists(more, SAYS(SAME, SAME, SAME, SAME), "behind");
    expect_lists(more, SAYS(SAME, DIFFERS, SAME, SAME), "differs");
    /* What else it has is not known. */
    static const list silent[] = {{FB_ERR_DEADLINE, false, false}, {FB_OK, false, false}};
    expect_lists(silent, SAYS(SAME, SAME, SAME, SAME), "unsure");
}

/* It comes to an end with one that does not. */
static void who_names_collections_for_ever_is_not_heard_out(void **state)
{
    (void)state;
    static const list endless[] = {{FB_OK, true, true}, {FB_OK, false, false}};
    expect_lists(endless, SAYS(SAME, SAME, SAME, SAME), "behind");
}

/* What was not compared may differ: a part is never told as the whole. */
static void a_member_that_goes_on_the_way_makes_it_unsure(void **state)
{
    (void)state;
    static const list first_gone[] = {{FB_ERR_UNREACHABLE, false, false}, {FB_OK, false, false}};
    expect(SAYS(SAME, GONE, SAME, SAME), "unsure");
    expect(SAYS(GONE, SAME, SAME), "unsure");
    expect_lists(first_gone, SAYS(SAME, GONE), "unsure");
    expect(SAYS(DIFFERS, GONE, GONE), "differs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_worst_of_all_is_said),
        cmocka_unit_test(members_without_a_link_leave_it_incomplete),
        cmocka_unit_test(what_is_not_here_is_said),
        cmocka_unit_test(who_names_collections_for_ever_is_not_heard_out),
        cmocka_unit_test(a_member_that_goes_on_the_way_makes_it_unsure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
