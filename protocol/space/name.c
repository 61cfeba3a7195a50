/* SPDX-License-Identifier: Apache-2.0 */
/* What a space is called: by the last renaming that stands. Which of them stand may change with
 * everything that is stated about an admin; then they are read again, as they are rarely many and
 * nothing but a label depends on them. */
#include "protocol/base/mutant.h"
#include "protocol/identity/identity.h"
#include "protocol/space/fold.h"
#include "protocol/space/judge.h"
#include "protocol/space/store.h"

#define RETRY_NS UINT64_C(50000000)

static fb_dot_stamp stamp_of(const fb_own_change *change)
{
    return (fb_dot_stamp){change->stamp, change->dot_node, change->dot_incarnation,
                          change->dot_seq};
}

static bool stands(const fb_node *node, uint32_t space, const fb_own_change *change)
{
    fb_id author = fb_node_id_of(node->options.provider, &change->author);
    return MUTANT(ANYBODY_RENAMES,
                  fb_space_stands(node, space, author, change->claim, change->dot_incarnation,
                                  change->number),
                  true);
}

static void set_name(fb_node *node, uint32_t index, const uint8_t *text, size_t len,
                     const fb_dot_stamp *at)
{
    fb_space *space = fb_space_at(node, index);
    if (space->name_at.incarnation == 0 && at->incarnation != 0) {
        space->root_len = space->name_len;
        memcpy(space->root_name, space->name, space->name_len);
    }
    space->name_at = *at;
    space->name_len = (uint8_t)len;
    memcpy(space->name, text, len);
    fb_space_touch(node, index);
    fb_space_put(node, index);
    fb_space_observe_name(node, index);
}

/* A label: nothing is found by it but at this node. */
void fb_space_fold_name(fb_node *node, uint32_t index, const fb_statement *statement,
                        const fb_own_change *change)
{
    fb_space *space = fb_space_at(node, index);
    const fb_naming *n = &node->spaces->naming;
    space->renamed = true;
    if (n->used && n->space == index) space->name_due = true; /* it may be behind the page */
    if (!stands(node, index, change)) return;
    fb_dot_stamp at = stamp_of(change);
    bool later = space->name_at.incarnation == 0 || fb_dot_stamp_compare(&at, &space->name_at) > 0;
    if (!MUTANT(NAME_THAT_COMES_LAST, later, true)) return;
    set_name(node, index, statement->text, statement->text_len, &at);
}

void fb_space_name_is_due(fb_node *node, uint32_t index)
{
    fb_space *space = fb_space_at(node, index);
    if (!space->renamed || !MUTANT(NAME_STAYS_AS_IT_IS, true, false)) return;
    space->name_due = true;
    fb_timer_set(node, &space->timer, node->mono_ns);
}

static void take(fb_node *node, void *user, const fb_own_change *change)
{
    fb_naming *n = user;
    fb_statement statement;
    if (fb_statement_decode(change->fields, change->count, &statement) != FB_OK ||
        statement.kind != FB_STATEMENT_NAME || !stands(node, n->space, change)) {
        return;
    }
    fb_dot_stamp at = stamp_of(change);
    if (n->at.incarnation != 0 && fb_dot_stamp_compare(&at, &n->at) <= 0) return;
    n->at = at;
    n->len = statement.text_len;
    memcpy(n->text, statement.text, statement.text_len);
}

static void done(fb_node *node, void *user, fb_status status)
{
    fb_naming *n = user;
    fb_space *space = fb_space_at(node, n->space);
    n->used = false;
    bool again = status != FB_OK || space->name_due;
    if (!again && space->used) {
        bool root = n->at.incarnation == 0;
        if (fb_dot_stamp_compare(&n->at, &space->name_at) != 0) {
            set_name(node, n->space, root ? space->root_name : n->text,
                     root ? space->root_len : n->len, &n->at);
        }
    }
    space->name_due = again;
    /* Another space may have waited for its turn. */
    for (uint32_t i = 0; i < fb_space_capacity(node); i++) {
        if (!fb_space_exists(node, i) || !fb_space_at(node, i)->name_due) continue;
        uint64_t pause = status == FB_OK ? 0 : RETRY_NS;
        fb_timer_set(node, &fb_space_at(node, i)->timer, fb_add_sat_u64(node->mono_ns, pause));
    }
}

void fb_space_name_again(fb_node *node, uint32_t index)
{
    fb_space *space = fb_space_at(node, index);
    fb_naming *n = &node->spaces->naming;
    if (!space->name_due || n->used) return;
    *n = (fb_naming){.used = true, .space = index};
    space->name_due = false;
    fb_id record = fb_statement_record(space->id, FB_STATEMENT_NAME, &space->creator);
    fb_status status = fb_database_each_own(node, index, record, FB_SPACE_PUT_BYTES, take, done, n);
    if (status == FB_OK) return;
    n->used = false;
    space->name_due = true;
    fb_timer_set(node, &space->timer, fb_add_sat_u64(node->mono_ns, RETRY_NS));
}
