/* SPDX-License-Identifier: Apache-2.0 */
/* Does a change that came leave a value of this node's own beside another one? What applications
 * are shown as conflicts: several plain values of a field, and what it is of several kinds. */
#include "protocol/database/state.h"

/* One field of a record, all of its columns. */
typedef struct shared {
    bool kinds[FB_FIELD_ELEMENT + 1]; /* something of that kind lives */
    bool integer;                     /* the plain value is one: a counter counts on from it */
    bool several;                     /* plain values, one of them this node's */
    bool own;                         /* something of it is this node's */
} shared;

static void column_add(const fb_node *node, shared *s, const fb_record_field *column,
                       fb_field_kind kind)
{
    bool own = false;
    for (uint32_t i = 0; i < column->count; i++) {
        const uint8_t *entry = column->siblings + (size_t)i * FB_SIBLING_BYTES;
        own = own || memcmp(entry, node->self.b, 16) == 0;
    }
    s->kinds[kind] = s->kinds[kind] || column->count != 0;
    s->own = s->own || own;
    if (kind != FB_FIELD_REGISTER || column->count == 0) return;
    s->integer = fb_record_is_integer(column, fb_record_displayed(column, INT64_MAX));
    s->several = own && column->count > 1;
}

/* Shares of a counter and elements of a set stand beside each other in peace. */
static bool conflicts(const shared *s)
{
    bool plain = s->kinds[FB_FIELD_REGISTER] && !(s->integer && s->kinds[FB_FIELD_COUNTER]);
    uint32_t kinds =
        (plain ? 1u : 0) + s->kinds[FB_FIELD_COUNTER] + (s->kinds[FB_FIELD_ELEMENT] ? 1u : 0);
    return s->several || (s->own && kinds > 1);
}

/* MP-6-18 */
bool fb_conflict_with_own(const fb_node *node, const fb_record *record, const fb_change *change)
{
    fb_record_walk walk = fb_record_walk_of(record);
    fb_change_walk changed = fb_change_walk_of(change);
    fb_record_field column;
    fb_change_field set;
    bool has = fb_change_next(&changed, &set), more = fb_record_next(&walk, &column);
    while (more && has) {
        fb_span field = fb_column_of(column.name).field;
        shared s = {.own = false};
        for (; more && fb_span_equal(fb_column_of(column.name).field, field);
             more = fb_record_next(&walk, &column)) {
            column_add(node, &s, &column, fb_column_of(column.name).kind);
        }
        while (has && fb_span_compare(fb_column_of(set.name).field, field) < 0) {
            has = fb_change_next(&changed, &set);
        }
        if (has && fb_span_equal(fb_column_of(set.name).field, field) && conflicts(&s)) return true;
    }
    return false;
}
