/* SPDX-License-Identifier: Apache-2.0 */
/* Handing documents on: what is asked of the server next, and what its answers mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "io/documents/handing.h"
#include "protocol/base/cursor.h"
#include "protocol/database/record/record.h"

static fb_id id_of(uint8_t n)
{
    fb_id id = {{n}};
    return id;
}

/* A job of so many records of one collection; those with a bit in `removed` are removed. */
static fb_job *job_of(uint64_t w, uint8_t first, size_t count, unsigned removed)
{
    static const uint8_t record[] = {1, 2, 3};
    fb_room room = {.used = 0};
    fb_job *job = fb_room_take_zeroed(&room, sizeof *job);
    job->w = w;
    job->records = fb_room_take_zeroed(&room, count * sizeof *job->records);
    job->record_count = count;
    for (size_t i = 0; i < count; i++) {
        job->records[i].collection = "notes";
        job->records[i].area = 1;
        job->records[i].id = id_of((uint8_t)(first + i));
        if ((removed >> i & 1) == 0) job->records[i].record = fb_span_of(record, sizeof record);
    }
    job->room = room;
    return job;
}

static fb_handing_call next(fb_handing *h, uint64_t now_ms)
{
    fb_handing_call call;
    fb_handing_next(h, now_ms, 0, &call);
    return call;
}

static void expect(fb_handing *h, uint64_t now_ms, fb_handing_kind kind)
{
    assert_int_equal(next(h, now_ms).kind, kind);
}

/* Fenced as start 7, and beyond the lease of whoever was before. */
static uint64_t begin(fb_handing *h)
{
    fb_handing_init(h, 3, 2, NULL, NULL);
    assert_false(fb_handing_may_read(h));
    fb_handing_call call = next(h, 1000);
    assert_int_equal(call.kind, FB_HANDING_FENCE);
    assert_int_equal(call.number, 3);
    fb_handing_fenced(h, 1010, FB_OK, 7);
    assert_true(fb_handing_may_read(h));
    return 1010 + FB_HANDING_LEASE_OVER_MS;
}

static void put(fb_handing *h, uint64_t now_ms, fb_status status, bool durable,
                fb_document_outcome outcome)
{
    fb_document_outcome outcomes[8];
    for (size_t i = 0; i < 8; i++) outcomes[i] = outcome;
    fb_handing_was_put(h, now_ms, status, durable, outcomes);
}

static void done(fb_handing *h, uint64_t now_ms, uint64_t w)
{
    fb_handing_call call = next(h, now_ms);
    if (call.kind == FB_HANDING_CONFIRM) {
        fb_handing_confirmed(h, now_ms, FB_OK, h->start);
        call = next(h, now_ms);
    }
    assert_int_equal(call.kind, FB_HANDING_DONE);
    assert_int_equal(call.job->w, w);
    fb_job_free(call.job);
}

static void a_start_waits_until_no_other_can_believe_it_is_the_last(void **state)
{
    (void)state;
    fb_handing h;
    uint64_t now = begin(&h);
    expect(&h, 1010, FB_HANDING_IDLE);
    fb_handing_job(&h, job_of(1, 1, 2, 0));
    fb_handing_call call = next(&h, 1010);
    assert_int_equal(call.kind, FB_HANDING_PAUSE);
    assert_int_equal(call.at_ms, now);
    call = next(&h, now);
    assert_int_equal(call.kind, FB_HANDING_PUT);
    assert_int_equal(call.count, 2);
    assert_int_equal(call.changes[0].version.start, 7);
    assert_true(call.changes[0].version.number < call.changes[1].version.number);
    put(&h, now + 5, FB_OK, true, FB_DOCUMENT_KEPT);
    /* The lease of the fence is over: whether this is the last start is asked before it counts. */
    expect(&h, now + 5, FB_HANDING_CONFIRM);
    fb_handing_confirmed(&h, now + 9, FB_OK, 7);
    done(&h, now + 9, 1);
    fb_handing_job(&h, job_of(2, 1, 1, 0));
    expect(&h, now + 10, FB_HANDING_PUT);
    put(&h, now + 12, FB_OK, true, FB_DOCUMENT_KEPT);
    done(&h, now + 12, 2);
    fb_handing_free(&h);
}

static void who_was_overtaken_writes_nothing_more(void **state)
{
    (void)state;
    fb_handing h;
    uint64_t now = begin(&h);
    fb_handing_job(&h, job_of(1, 1, 1, 0));
    fb_handing_job(&h, job_of(2, 2, 1, 0));
    expect(&h, now, FB_HANDING_PUT);
    put(&h, now, FB_OK, true, FB_DOCUMENT_KEPT);
    expect(&h, now, FB_HANDING_CONFIRM);
    fb_handing_confirmed(&h, now, FB_OK, 8);
    expect(&h, now, FB_HANDING_LOCKED);
    expect(&h, now + 100000, FB_HANDING_LOCKED);
    fb_handing_free(&h);

    now = begin(&h);
    fb_handing_job(&h, job_of(1, 1, 1, 0));
    expect(&h, now, FB_HANDING_PUT);
    put(&h, now, FB_OK, true, FB_DOCUMENT_NEWER);
    expect(&h, now, FB_HANDING_LOCKED);
    fb_handing_free(&h);
}

/* The database was dropped: what was put is put again behind the fence that is raised then. */
static void a_fence_that_is_gone_is_raised_anew(void **state)
{
    (void)state;
    fb_handing h;
    uint64_t now = begin(&h);
    fb_handing_job(&h, job_of(1, 1, 1, 0));
    expect(&h, now, FB_HANDING_PUT);
    put(&h, now, FB_OK, true, FB_DOCUMENT_KEPT);
    expect(&h, now, FB_HANDING_CONFIRM);
    fb_handing_confirmed(&h, now, FB_OK, 0);
    assert_false(fb_handing_may_read(&h));
    fb_handing_call call = next(&h, now);
    assert_int_equal(call.kind, FB_HANDING_FENCE);
    assert_int_equal(call.number, 7);
    fb_handing_fenced(&h, now, FB_OK, 8);
    assert_true(fb_handing_may_read(&h));
    expect(&h, now, FB_HANDING_PAUSE);
    now += FB_HANDING_LEASE_OVER_MS;
    call = next(&h, now);
    assert_int_equal(call.kind, FB_HANDING_PUT);
    assert_int_equal(call.changes[0].version.start, 8);
    put(&h, now, FB_OK, true, FB_DOCUMENT_KEPT);
    /* Another process found that it was gone as well, and came after this one. */
    expect(&h, now, FB_HANDING_CONFIRM);
    fb_handing_confirmed(&h, now, FB_OK, 9);
    expect(&h, now, FB_HANDING_LOCKED);
    fb_handing_free(&h);
}

static void what_is_not_certain_is_put_again_with_a_greater_number(void **state)
{
    (void)state;
    fb_handing h;
    uint64_t now = begin(&h), number = 0, pause = FB_HANDING_RETRY_MIN_MS;
    fb_handing_job(&h, job_of(1, 1, 1, 0));
    for (unsigned i = 0; i < 12; i++) {
        fb_handing_call call = next(&h, now);
        assert_int_equal(call.kind, FB_HANDING_PUT);
        assert_true(call.changes[0].version.number > number);
        number = call.changes[0].version.number;
        if (i % 3 == 0) put(&h, now, FB_ERR_UNREACHABLE, false, FB_DOCUMENT_OPEN);
        if (i % 3 == 1) put(&h, now, FB_OK, false, FB_DOCUMENT_KEPT);
        if (i % 3 == 2) put(&h, now, FB_OK, true, FB_DOCUMENT_OPEN);
        call = next(&h, now);
        assert_int_equal(call.kind, FB_HANDING_PAUSE);
        assert_int_equal(call.at_ms, now + pause);
        now = call.at_ms;
        pause = 2 * pause < FB_HANDING_RETRY_MAX_MS ? 2 * pause : FB_HANDING_RETRY_MAX_MS;
    }
    expect(&h, now, FB_HANDING_PUT);
    put(&h, now, FB_OK, true, FB_DOCUMENT_PRESENT); /* an earlier try came through after all */
    done(&h, now, 1);
    fb_handing_free(&h);
}

static void of_a_bulk_done_in_part_the_rest_is_put(void **state)
{
    (void)state;
    static const fb_document_outcome outcomes[] = {FB_DOCUMENT_KEPT, FB_DOCUMENT_OPEN,
                                                   FB_DOCUMENT_REFUSED, FB_DOCUMENT_OPEN};
    fb_handing h;
    uint64_t now = begin(&h);
    fb_handing_job(&h, job_of(1, 1, 4, 0));
    expect(&h, now, FB_HANDING_PUT);
    fb_handing_was_put(&h, now, FB_OK, true, outcomes);
    now = next(&h, now).at_ms;
    fb_handing_call call = next(&h, now);
    assert_int_equal(call.kind, FB_HANDING_PUT);
    assert_int_equal(call.count, 2);
    assert_true(fb_id_equal(call.changes[0].document.id, id_of(2)));
    assert_true(fb_id_equal(call.changes[1].document.id, id_of(4)));
    put(&h, now, FB_OK, true, FB_DOCUMENT_KEPT);
    expect(&h, now, FB_HANDING_CONFIRM);
    fb_handing_confirmed(&h, now, FB_OK, 7);
    call = next(&h, now);
    assert_int_equal(call.kind, FB_HANDING_DONE);
    assert_int_equal(call.job->records[2].outcome, FB_DOCUMENT_REFUSED);
    assert_int_equal(call.job->records[3].outcome, FB_DOCUMENT_KEPT);
    fb_job_free(call.job);
    fb_handing_free(&h);
}

/* The first put has no answer and is made again; what is removed then leaves a mark, as the first
 * one may still come; and when it cannot any more, nothing. */
static void where_a_put_may_still_come_a_mark_is_left(void **state)
{
    (void)state;
    fb_handing h;
    uint64_t now = begin(&h), doubt = now + FB_HANDING_DOUBT_MS;
    fb_handing_job(&h, job_of(1, 1, 1, 0));
    expect(&h, now, FB_HANDING_PUT);
    put(&h, now, FB_ERR_UNREACHABLE, false, FB_DOCUMENT_OPEN);
    now = next(&h, now).at_ms;
    expect(&h, now, FB_HANDING_PUT);
    put(&h, now, FB_OK, true, FB_DOCUMENT_KEPT);
    expect(&h, now, FB_HANDING_CONFIRM);
    fb_handing_confirmed(&h, now, FB_OK, 7);
    fb_handing_call call = next(&h, now);
    assert_int_equal(call.kind, FB_HANDING_DONE);
    assert_int_equal(call.job->records[0].doubt_until_ms, doubt);
    fb_job_free(call.job);

    fb_handing_job(&h, job_of(2, 1, 2, 3));
    call = next(&h, now);
    assert_int_equal(call.kind, FB_HANDING_PUT);
    assert_true(call.changes[0].marks);
    assert_false(call.changes[1].marks);
    put(&h, now, FB_OK, true, FB_DOCUMENT_KEPT);
    done(&h, now, 2);

    fb_handing_job(&h, job_of(3, 1, 1, 1));
    call = next(&h, doubt);
    assert_int_equal(call.kind, FB_HANDING_PUT);
    assert_false(call.changes[0].marks);
    put(&h, doubt, FB_OK, true, FB_DOCUMENT_KEPT);
    done(&h, doubt, 3);
    fb_handing_free(&h);
}

static void what_a_start_finds_is_in_doubt(void **state)
{
    (void)state;
    fb_handing h;
    uint64_t now = begin(&h);
    fb_job *job = job_of(0, 1, 1, 1);
    job->found = true;
    fb_handing_job(&h, job);
    fb_handing_call call = next(&h, now);
    assert_int_equal(call.kind, FB_HANDING_PUT);
    assert_true(call.changes[0].marks);
    put(&h, now, FB_OK, true, FB_DOCUMENT_KEPT);
    done(&h, now, 0);
    fb_handing_free(&h);
}

static void jobs_keep_their_order_and_empty_ones_wait_for_nothing(void **state)
{
    (void)state;
    fb_handing h;
    uint64_t now = begin(&h);
    fb_handing_job(&h, job_of(1, 1, 0, 0));
    done(&h, 1011, 1);
    for (uint64_t w = 2; w < 6; w++) fb_handing_job(&h, job_of(w, 1, 1, 0));
    for (uint64_t w = 2; w < 6; w++) {
        expect(&h, now, FB_HANDING_PUT);
        put(&h, now, FB_OK, true, FB_DOCUMENT_KEPT);
        done(&h, now, w);
    }
    expect(&h, now, FB_HANDING_IDLE);
    fb_handing_free(&h);
}

/* A living record of which one value is stored apart. */
static fb_span record_apart(uint8_t out[256])
{
    static const uint8_t zeros[FB_DOT_BYTES + 24];
    uint8_t state[160];
    fb_writer s = fb_writer_of(state, sizeof state), w = fb_writer_of(out, 256);
    fb_write_u16(&s, 1);
    fb_write_bytes(&s, zeros, FB_EXISTENCE_BYTES);
    fb_write_u16(&s, 0);
    fb_write_u16(&s, 0);
    fb_write_u16(&s, 1);
    fb_write_span16(&s, fb_span_text("long"));
    fb_write_u16(&s, 1);
    fb_write_bytes(&s, zeros, FB_SIBLING_BYTES);
    fb_write_u16(&s, 0);
    fb_write_u8(&w, FB_RECORD_VERSION);
    fb_write_bytes(&w, zeros, 16);
    fb_write_u16(&w, 1);
    fb_write_span32(&w, fb_writer_span(&s));
    fb_write_u8(&w, 2);
    fb_write_u32(&w, 5000);
    assert_false(s.failed || w.failed);
    return fb_writer_span(&w);
}

static void what_cannot_be_read_is_not_put_over(void **state)
{
    (void)state;
    static const fb_status unread[] = {FB_ERR_STORE_DAMAGED, FB_ERR_UNREACHABLE, FB_OK};
    for (size_t i = 0; i < 3; i++) {
        fb_handing h;
        uint8_t bytes[256];
        uint64_t now = begin(&h);
        fb_job *job = job_of(1, 1, 2, 0);
        job->records[1].record = record_apart(bytes);
        fb_handing_job(&h, job);
        /* The value is only in the document. */
        fb_handing_call call = next(&h, now);
        assert_int_equal(call.kind, FB_HANDING_GET);
        assert_int_equal(call.count, 1);
        assert_true(fb_id_equal(call.ids[0], id_of(2)));
        fb_handing_got(&h, now, unread[i]);
        call = next(&h, now);
        if (unread[i] == FB_ERR_UNREACHABLE) {
            assert_int_equal(call.kind, FB_HANDING_PAUSE);
        } else {
            assert_int_equal(call.kind, FB_HANDING_PUT);
            /* It is not there: nothing is put over. */
            assert_int_equal(call.count, unread[i] == FB_OK ? 2 : 1);
            put(&h, now, FB_OK, true, FB_DOCUMENT_KEPT);
            call = next(&h, now);
            assert_int_equal(call.kind, FB_HANDING_CONFIRM);
            fb_handing_confirmed(&h, now, FB_OK, h.start);
            call = next(&h, now);
            assert_int_equal(call.kind, FB_HANDING_DONE);
            fb_document_outcome outcome = call.job->records[1].outcome;
            assert_int_equal(outcome, unread[i] == FB_OK ? FB_DOCUMENT_KEPT : FB_DOCUMENT_REFUSED);
            fb_job_free(call.job);
        }
        fb_handing_free(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_waits_until_no_other_can_believe_it_is_the_last),
        cmocka_unit_test(who_was_overtaken_writes_nothing_more),
        cmocka_unit_test(a_fence_that_is_gone_is_raised_anew),
        cmocka_unit_test(what_is_not_certain_is_put_again_with_a_greater_number),
        cmocka_unit_test(of_a_bulk_done_in_part_the_rest_is_put),
        cmocka_unit_test(what_cannot_be_read_is_not_put_over),
        cmocka_unit_test(where_a_put_may_still_come_a_mark_is_left),
        cmocka_unit_test(what_a_start_finds_is_in_doubt),
        cmocka_unit_test(jobs_keep_their_order_and_empty_ones_wait_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
