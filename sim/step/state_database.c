/* SPDX-License-Identifier: Apache-2.0 */
/* Areas with their vectors, and the records as the disk has them. */
#include <stdio.h>

#include "protocol/core/internal.h"
#include "protocol/database/state.h"
#include "sim/step/state.h"
#include "sim/workload/workload.h"
#include "sim/world/world.h"

static void hex(char *out, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = 0;
}

static void area_fields(fb_sim_fields *f, const struct fb_database *d, uint32_t i)
{
    const fb_area *a = &d->areas[i];
    if (fb_sim_group(f, "area[%u]", (unsigned)i)) {
        char root[33];
        hex(root, a->root, 16);
        fb_sim_field(f, "name", "%.*s", (int)a->name_len, (const char *)a->name);
        fb_sim_field(f, "id", "%s", fb_sim_id_name(f, a->id));
        fb_sim_field(f, "root", "%s", root);
        fb_sim_field(f, "own_seq", "%llu", (unsigned long long)a->own_seq);
        fb_sim_field(f, "entries", "%u", (unsigned)a->entry_count);
        fb_sim_field(f, "applied_w", "%llu", (unsigned long long)a->applied_w);
        fb_sim_field(f, "pins", "%u", (unsigned)a->pins);
    }
    for (uint32_t at = a->entries; at != 0; at = d->vectors[at - 1].next) {
        const fb_vector *v = &d->vectors[at - 1];
        if (!fb_sim_group(f, "area[%u].vector[%s/%08x]", (unsigned)i, fb_sim_id_name(f, v->node),
                          (unsigned)(v->incarnation >> 32))) {
            continue;
        }
        fb_sim_field(f, "batch", "%llu", (unsigned long long)v->batch);
        fb_sim_field(f, "last_seq", "%llu", (unsigned long long)v->last_seq);
        fb_sim_field(f, "durable_batch", "%llu", (unsigned long long)v->durable_batch);
        fb_sim_field(f, "closed", "%s", v->closed ? "yes" : "no");
    }
    for (uint32_t at = a->wants; at != 0; at = d->wanted[at - 1].next) {
        const fb_wanted *w = &d->wanted[at - 1];
        if (!fb_sim_group(f, "area[%u].wanted[%s/%08x]", (unsigned)i, fb_sim_id_name(f, w->node),
                          (unsigned)(w->incarnation >> 32))) {
            continue;
        }
        fb_sim_field(f, "batch", "%llu", (unsigned long long)w->batch);
        fb_sim_field(f, "parked", "%s", w->parked ? "yes" : "no");
        if (w->waits) {
            fb_sim_field(f, "waits_for", "%s/%08x %llu", fb_sim_id_name(f, w->waits_for.node),
                         (unsigned)(w->waits_for.incarnation >> 32),
                         (unsigned long long)w->waits_for.seq);
        }
        fb_sim_field(f, "asked", "%s", w->fetch != 0 ? "yes" : "no");
    }
}

static void value_text(fb_span value, char *out, size_t cap)
{
    size_t at = 0;
    for (size_t i = 0; i < value.len && at + 5 < cap; i++) {
        uint8_t c = value.p[i];
        at += (size_t)snprintf(out + at, cap - at, c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
        if (i == 60 && value.len > 64) {
            snprintf(out + at, cap - at, "... %zu bytes", value.len);
            return;
        }
    }
    out[at < cap ? at : cap - 1] = 0;
}

/* A record of the store. */
static void record_at(void *user, fb_span key, fb_span value)
{
    fb_sim_fields *f = user;
    if (key.len != FB_RECORD_KEY_BYTES || key.p[0] != FB_TAG_RECORD) return;
    fb_reader r = fb_reader_of(fb_span_of(key.p + 1, key.len - 1));
    uint32_t area = fb_read_u32(&r);
    uint32_t number = fb_sim_record_of(f->world, fb_read_id(&r));
    if (number == UINT32_MAX) return;
    if (!fb_sim_group(f, "record[r%02u]", (unsigned)number)) return;
    fb_record record;
    if (fb_record_decode(value, &record) != FB_OK) {
        fb_sim_field(f, "damaged", "yes");
        return;
    }
    char text[160], name[80];
    hex(text, record.fingerprint, 16);
    fb_sim_field(f, "fingerprint", "%s", text);
    fb_sim_field(f, "area", "%u", (unsigned)area);
    fb_sim_field(f, "existence_dots", "%u", (unsigned)record.existence_count);
    fb_record_walk walk = fb_record_walk_of(&record);
    fb_record_field field;
    while (fb_record_next(&walk, &field)) {
        for (uint32_t i = 0; i < field.count; i++) {
            fb_record_field copy = field;
            fb_sibling sibling = {0};
            for (uint32_t k = 0; k <= i; k++) sibling = fb_record_sibling(&copy, k);
            value_text(sibling.value, text, sizeof text);
            snprintf(name, sizeof name, "%.*s[%s %llu]", (int)field.name.len,
                     (const char *)field.name.p, fb_sim_id_name(f, sibling.dot.node),
                     (unsigned long long)sibling.dot.seq);
            fb_sim_field(f, name, "%s (stamp %lld)", sibling.apart ? "stored apart" : text,
                         (long long)sibling.stamp);
        }
    }
}

void fb_sim_state_database(fb_sim_fields *f, const fb_node *core)
{
    const struct fb_database *d = core->database;
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        if (d->areas[i].used) area_fields(f, d, i);
    }
    for (uint32_t i = 0; i < d->fetch_count; i++) {
        const fb_fetch *fetch = &d->fetches[i];
        if (!fetch->used || !fb_sim_group(f, "fetch[%u]", (unsigned)i)) continue;
        fb_sim_field(f, "area", "%u", (unsigned)fetch->area);
        fb_sim_field(f, "link", "%u", (unsigned)fetch->link);
        fb_sim_field(f, "piece_bytes", "%u", (unsigned)fetch->piece_len);
        fb_sim_field(f, "applies", "%s", fetch->busy ? "yes" : "no");
    }
    if (fb_sim_group(f, "record[")) {
        static const uint8_t records = FB_TAG_RECORD;
        fb_sim_store_walk(&f->world->nodes[f->node].store, fb_span_of(&records, 1), record_at, f);
    }
}
