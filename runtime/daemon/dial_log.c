/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/daemon/dial_log.h"

#include <string.h>

/* The address's row, or that of the one that was not dialled for longest, emptied. */
static fb_dial_log_row *row_of(fb_dial_log *log, fb_span address)
{
    fb_dial_log_row *place = &log->rows[0];
    for (size_t i = 0; i < FB_DIAL_LOG_ADDRESSES; i++) {
        fb_dial_log_row *row = &log->rows[i];
        if (row->len != 0 && fb_span_equal(fb_span_of(row->address, row->len), address)) return row;
        if (row->used < place->used) place = row;
    }
    memset(place, 0, sizeof *place);
    place->len = address.len < sizeof place->address ? address.len : sizeof place->address;
    memcpy(place->address, address.p, place->len);
    return place;
}

bool fb_dial_log_tells(fb_dial_log *log, uint64_t now_ns, fb_span address, fb_error error,
                       uint64_t *failures)
{
    *failures = 0;
    if (address.len == 0) return true;
    fb_dial_log_row *row = row_of(log, address);
    row->used = ++log->used;
    if (error == FB_OK) {
        row->error = FB_OK;
        return true;
    }
    if (row->error != error) {
        row->error = error;
        row->failures = 0;
        row->pause_ns = FB_DIAL_LOG_PAUSE_NS;
        row->next_ns = now_ns;
    }
    row->failures++;
    if (now_ns < row->next_ns) return false;
    *failures = row->failures;
    row->failures = 0;
    row->next_ns = now_ns + row->pause_ns;
    row->pause_ns *= 2;
    if (row->pause_ns > FB_DIAL_LOG_PAUSE_MAX_NS) row->pause_ns = FB_DIAL_LOG_PAUSE_MAX_NS;
    return true;
}
