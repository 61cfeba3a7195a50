/* SPDX-License-Identifier: Apache-2.0 */
/* A recording that somebody hands over: its items, and one without what was said told again. Each
 * reader stops at the item that is none, and every whole item is behind the one before. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sim/record/replay.h"

#define EFFECTS_HERE (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_items(fb_span bytes, bool redacted)
{
    fb_reader in = fb_reader_of(bytes);
    fb_recording_item item;
    fb_status status;
    bool cut;
    size_t before = 0;
    while ((status = fb_recording_read(&in, redacted, &item, &cut)) == FB_OK) {
        if (in.at <= before || in.at > bytes.len) abort();
        before = in.at;
        for (uint32_t i = 0; i < item.effects; i++) fb_recording_effect_at(&item, i);
    }
    if (in.at != before) abort();
    if (status == FB_ERR_NOT_FOUND && !cut && in.at != bytes.len) abort();
}

static void try_redacted(fb_span bytes)
{
    static fb_sim_replay replay;
    fb_reader in = fb_reader_of(bytes);
    fb_recording_item item;
    bool cut;
    /* Others need a whole node, whatever their size: tests/unit/test_recording.c. */
    if (fb_recording_read(&in, false, &item, &cut) != FB_OK || item.kind != FB_RECORDING_HEADER ||
        !item.header.redacted || item.header.effects_capacity > EFFECTS_HERE) {
        return;
    }
    uint64_t steps = 0;
    if (fb_sim_replay_open(&replay, bytes)) {
        while (fb_sim_replay_next(&replay) == FB_SIM_REPLAY_STEP) steps++;
    }
    if (replay.over == FB_SIM_REPLAY_STEP || replay.why[0] == 0 || replay.steps < steps) abort();
    fb_sim_replay_close(&replay);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_items(fb_span_of(data, size), false);
    try_items(fb_span_of(data, size), true);
    try_redacted(fb_span_of(data, size));
    return 0;
}
