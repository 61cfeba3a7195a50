/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/keys.h"
#include "protocol/database/record/record.h"
#include "protocol/store/keys.h"
#include "sim/checkers/documents.h"

/* A read over documents is answered as the node's store without documents would answer it. A range
 * may end earlier, but not before its first. Where a record was deleted an empty one may stand
 * (split.h), which is the same to who reads. DESIGN 7. */

/* The next entry that is not such a record; false: there is none. */
static bool next_entry(fb_reader *r, uint32_t *left, fb_read_entry *out)
{
    while (*left > 0) {
        --*left;
        *out = fb_read_entry_next(r);
        bool record = out->key.len == FB_RECORD_KEY_BYTES && out->key.p[0] == FB_TAG_RECORD;
        if (!record || out->value_len != FB_RECORD_EMPTY_BYTES) return true;
    }
    return false;
}

static bool is_same(fb_span read_set, fb_span wanted, fb_span got, bool unheard)
{
    fb_reader asked = fb_reader_of(read_set), a = fb_reader_of(wanted), b = fb_reader_of(got);
    unsigned items = fb_read_u16(&asked);
    fb_read_u64(&b);
    for (unsigned i = 0; i < items; i++) {
        fb_read_item item = fb_read_item_next(&asked);
        bool whole = fb_read_u8(&a) == 1, whole_got = fb_read_u8(&b) == 1;
        uint32_t count = fb_read_u32(&a), count_got = fb_read_u32(&b);
        /* Whoever does not know that documents are gone misses nothing in a list of them. */
        if (unheard && item.kind != FB_READ_KEY) {
            while (count-- > 0) fb_read_entry_next(&a);
            while (count_got-- > 0) fb_read_entry_next(&b);
            continue;
        }
        if (count_got == 0 && count != 0) return false;
        bool all = item.kind == FB_READ_KEY || whole_got;
        fb_read_entry e, f = {0};
        bool any = next_entry(&b, &count_got, &f);
        for (uint32_t k = 0; k < count; k++) {
            e = fb_read_entry_next(&a);
            if (!any && all) return false;
            if (!any) continue;
            if (!fb_span_equal(e.key, f.key) || e.value_len != f.value_len ||
                !fb_span_equal(e.value, f.value)) {
                return false;
            }
            any = next_entry(&b, &count_got, &f);
        }
        if (any || (all && whole_got && !whole)) return false;
    }
    return fb_reader_done(&a) && fb_reader_done(&b);
}

void fb_sim_check_documents_answer(fb_sim_documents *d, fb_span read_set, fb_span answer,
                                   bool unheard)
{
    fb_sim_world *world = d->world;
    fb_writer w = fb_writer_of(world->scratch, world->scratch_bytes);
    if (!world->config.checks) return;
    fb_sim_check_saw(world, &fb_sim_check_documents_read);
    if (!fb_sim_store_read(&world->nodes[d->node].store, read_set, &w)) return;
    if (is_same(read_set, fb_writer_span(&w), answer, unheard)) return;
    fb_sim_violated(world, FB_SIM_SAFETY, fb_sim_check_documents_read.id,
                    "%s: documents answer a read other than its write sets say",
                    fb_sim_name(d->node));
}

const fb_sim_check fb_sim_check_documents_read = {
    .id = "documents-read",
    .musts = "DESIGN 7",
    .cost = "O(n) a read",
    .text = "a read over documents is answered as a store without documents would",
};
