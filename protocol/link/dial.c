/* SPDX-License-Identifier: Apache-2.0 */
/* The address book: who is dialled, when, and when no more. profile 7.
 *
 * An entry is dialled until it is forgotten. It rests while its peer has an open link to this node,
 * whoever dialled that, as long as it is sure whose address it is; when the link is gone it is
 * dialled again after a pause that doubles up to a cap, each time jittered by half. */
#include "protocol/base/mutant.h"
#include "protocol/link/state.h"
#include "protocol/store/keys.h"
#include "protocol/store/ops.h"

#define ATTEMPTS_MAX 32u /* the pause has long reached its cap */

static void touch(fb_node *node, uint32_t index)
{
    fb_digest_touch(node, FB_DIGEST_ADDRESS, index);
}

static fb_span text_of(const fb_address *address)
{
    return fb_span_of(address->text, address->len);
}

void fb_dial_layout(fb_node *node, fb_arena *arena)
{
    uint32_t capacity = node->options.sizes.addresses;
    fb_address *book = fb_arena_take(arena, capacity, sizeof *book);
    if (node->links == NULL) return;
    node->links->book = book;
    node->links->book_capacity = capacity;
}

static void clear(fb_node *node, uint32_t index)
{
    fb_address *address = &node->links->book[index];
    fb_digest_cell cell = address->cell;
    memset(address, 0, sizeof *address);
    address->cell = cell;
    address->link = FB_NONE;
    fb_timer_init(&address->timer, FB_TIMER_DIAL, index);
    touch(node, index);
}

void fb_dial_reset(fb_node *node)
{
    for (uint32_t i = 0; i < node->links->book_capacity; i++) clear(node, i);
}

static uint32_t find(const fb_node *node, uint32_t space, fb_span text)
{
    const fb_links *links = node->links;
    for (uint32_t i = 0; i < links->book_capacity; i++) {
        const fb_address *a = &links->book[i];
        if (a->used && a->space == space && fb_span_equal(text_of(a), text)) return i;
    }
    return FB_NONE;
}

static fb_id owner_of(const fb_address *address)
{
    return fb_id_is_zero(address->expected) ? address->known : address->expected;
}

/* An address that nobody vouches for, and another one, lead to the same member: then the first may
 * be somebody else's, who is not there, or whose machine a copy of that member runs on. */
static bool is_doubtful(const fb_node *node, const fb_address *address)
{
    const fb_links *links = node->links;
    if (!fb_id_is_zero(address->expected) || fb_id_is_zero(address->known)) return false;
    for (uint32_t i = 0; i < links->book_capacity; i++) {
        const fb_address *other = &links->book[i];
        if (!other->used || other == address || other->space != address->space) continue;
        if (fb_id_equal(owner_of(other), address->known)) return true;
    }
    return false;
}

/* The link was made through an address at which others answered before. */
static bool is_by_moved(const fb_node *node, const fb_link *link)
{
    if (link->address == FB_NONE) return false;
    const fb_address *address = &node->links->book[link->address];
    return address->moved && fb_id_is_zero(address->expected);
}

/* An address needs no dial while whoever it belongs to has an open link, if that is sure to be who
 * is to be found there: a doubtful one is dialled again, and so is one at which another life of the
 * member answered last. */
/* FI-2-6, MP-7-23 */
static bool rests(const fb_node *node, const fb_address *address)
{
    const fb_links *links = node->links;
    fb_id peer = owner_of(address);
    bool vouched = !fb_id_is_zero(address->expected);
    if (address->renews || fb_id_is_zero(peer)) return false;
    if (MUTANT(ADDRESS_NEVER_DOUBTED, is_doubtful(node, address), false)) return false;
    for (uint32_t i = 0; i < links->high; i++) {
        const fb_link *link = &links->table[i];
        if (link->info.state != FB_LINK_OPEN || link->info.space != address->space ||
            !fb_id_equal(link->info.peer, peer)) {
            continue;
        }
        bool other = vouched ? is_by_moved(node, link)
                             : link->info.peer_incarnation != address->known_incarnation;
        if (MUTANT(ADDRESS_NEVER_DOUBTED, !other, true)) return true;
    }
    return false;
}

static void want_dial(fb_node *node, uint32_t index)
{
    fb_links *links = node->links;
    fb_address *address = &links->book[index];
    if (address->wanted || address->dial != 0 || address->link != FB_NONE) return;
    fb_timer_clear(node, &address->timer);
    address->wanted = true;
    links->dials_wanted++;
    touch(node, index);
}

static void pause_then_dial(fb_node *node, uint32_t index)
{
    fb_address *address = &node->links->book[index];
    if (MUTANT(DIALLING_GIVES_UP, false, address->attempt > 2)) return;
    const fb_timing *timing = &node->options.timing;
    uint64_t pause = MUTANT(DIALS_WITHOUT_PAUSE, timing->redial_min_ns, 0u);
    uint64_t cap = MUTANT(BACKOFF_WITHOUT_CAP, timing->redial_max_ns, FB_NEVER / 4);
    cap *= MUTANT(CAP_TRIPLED, 1u, 3u);
    for (uint32_t i = 0; i < address->attempt && pause < cap; i++) pause *= 2;
    pause = fb_min_u64(pause, cap);
    uint64_t jitter =
        fb_draw_below(node->seed, FB_STREAM_REDIAL, index, address->tries++, pause / 2 + 1);
    fb_timer_set(node, &address->timer, fb_add_sat_u64(node->mono_ns, pause - pause / 2 + jitter));
    if (address->attempt < ATTEMPTS_MAX) address->attempt++;
    touch(node, index);
}

void fb_dial_due(fb_node *node, uint32_t index)
{
    fb_address *address = &node->links->book[index];
    if (!address->used) return;
    if (rests(node, address)) return; /* until fb_dial_lost */
    want_dial(node, index);
}

void fb_dial_flush(fb_node *node)
{
    fb_links *links = node->links;
    for (uint32_t i = 0; i < links->book_capacity && links->dials_wanted != 0; i++) {
        fb_address *address = &links->book[i];
        if (!address->wanted) continue;
        if (!fb_effect_fits(node, address->len)) {
            fb_starved(node);
            return;
        }
        address->wanted = false;
        links->dials_wanted--;
        address->dial = ++links->dials;
        fb_effect_put(node, FB_FX_DIAL, address->dial, 0, 0, text_of(address));
        touch(node, i);
    }
}

static void close_unknown(fb_node *node, uint64_t number, fb_error why)
{
    if (number != 0) fb_effect_put(node, FB_FX_CLOSE, number, (uint64_t)why, 0, (fb_span){NULL, 0});
}

void fb_dial_result(fb_node *node, const fb_event *event)
{
    fb_links *links = node->links;
    uint32_t at = 0;
    while (at < links->book_capacity &&
           !(links->book[at].used && links->book[at].dial == event->a)) {
        at++;
    }
    if (at == links->book_capacity || event->a == 0) { /* forgotten meanwhile, or of old */
        fb_count(node, FB_COUNTER_LATE_COMPLETIONS, 1);
        close_unknown(node, event->b, FB_ERR_CANCELLED);
        return;
    }
    fb_address *address = &links->book[at];
    address->dial = 0;
    touch(node, at);
    if (event->b == 0 || event->c != 0) {
        address->last = event->c != 0 ? (fb_error)event->c : FB_ERR_UNREACHABLE;
        close_unknown(node, event->b, FB_ERR_CANCELLED);
        pause_then_dial(node, at);
        return;
    }
    bool unneeded = rests(node, address);
    uint32_t index =
        unneeded || links->table[0].in == NULL ? FB_NONE : fb_links_add(node, event->b);
    if (index == FB_NONE) {
        address->last = unneeded ? FB_ERR_LINK_REPLACED : FB_ERR_LINK_TOO_MANY;
        close_unknown(node, event->b, address->last);
        if (!unneeded) pause_then_dial(node, at);
        return;
    }
    fb_link *link = fb_links_get(node, index);
    address->link = index;
    link->address = at;
    link->info.space = address->space;
    fb_stream_begin(node, index, true);
}

bool fb_dial_expects_other(const fb_node *node, const fb_link *link)
{
    if (link->address == FB_NONE) return false;
    const fb_address *address = &node->links->book[link->address];
    return !fb_id_is_zero(address->expected) && !fb_id_equal(address->expected, link->info.peer);
}

void fb_dial_bound(fb_node *node, uint32_t index)
{
    const fb_link *link = fb_links_get(node, index);
    if (link->address == FB_NONE) return;
    fb_address *address = &node->links->book[link->address];
    bool other = !fb_id_is_zero(address->known) && !fb_id_equal(address->known, link->info.peer);
    address->moved = address->moved || other;
    address->known = link->info.peer;
    address->known_incarnation = link->info.peer_incarnation;
    address->last = FB_OK;
    touch(node, link->address);
}

bool fb_dial_is_needless(const fb_node *node, uint32_t index)
{
    const fb_links *links = node->links;
    const fb_link *link = &links->table[index];
    if (link->address == FB_NONE) return false;
    const fb_address *address = &links->book[link->address];
    if (address->renews || !is_doubtful(node, address)) return false;
    for (uint32_t i = 0; i < links->high; i++) {
        const fb_link *other = &links->table[i];
        if (i == index || other->info.state != FB_LINK_OPEN ||
            other->info.space != link->info.space ||
            !fb_id_equal(other->info.peer, link->info.peer)) {
            continue;
        }
        if (address->moved || !is_by_moved(node, other)) return true;
    }
    return false;
}

/* Reasons after which an early new attempt would only be a nuisance. */
static bool is_lasting(fb_error why)
{
    switch (why) {
    case FB_ERR_REVOKED:
    case FB_ERR_LINK_MISBEHAVED:
    case FB_ERR_LINK_PEER:
    case FB_ERR_LINK_CLONE:
    case FB_ERR_LINK_VERSION:
    case FB_ERR_LINK_TAG:
    case FB_ERR_LINK_MAGIC:
    case FB_ERR_KEY:
        return true;
    default:
        return false;
    }
}

void fb_dial_ended(fb_node *node, uint32_t index, fb_error why, bool lasted)
{
    fb_address *address = &node->links->book[index];
    address->link = FB_NONE;
    address->last = why;
    touch(node, index);
    if (lasted) address->attempt = 0;
    if (is_lasting(why)) address->attempt = ATTEMPTS_MAX;
    if (rests(node, address)) return;
    pause_then_dial(node, index);
}

void fb_dial_lost(fb_node *node, uint32_t space, fb_id peer)
{
    fb_links *links = node->links;
    for (uint32_t i = 0; i < links->book_capacity; i++) {
        fb_address *a = &links->book[i];
        if (!a->used || a->space != space || a->wanted || a->dial != 0 || a->link != FB_NONE)
            continue;
        if (!fb_id_equal(owner_of(a), peer)) continue;
        if (fb_timer_is_set(&a->timer) || rests(node, a)) continue;
        pause_then_dial(node, i);
    }
}

/* The link this address led to is old: another is dialled while it still serves. */
void fb_dial_renew(fb_node *node, uint32_t index)
{
    fb_address *address = &node->links->book[index];
    fb_link *link = fb_links_get(node, address->link);
    link->address = FB_NONE;
    address->link = FB_NONE;
    address->renews = true;
    want_dial(node, index);
}

void fb_dial_up(fb_node *node, uint32_t index)
{
    const fb_link *link = fb_links_get(node, index);
    if (link->address == FB_NONE) return;
    node->links->book[link->address].renews = false;
    touch(node, link->address);
}

static fb_status add(fb_node *node, uint32_t space, fb_span text, fb_id expected, uint32_t *out)
{
    fb_links *links = node->links;
    if (text.len == 0 || text.len > FB_ADDRESS_BYTES_MAX) return FB_ERR_LIMIT;
    uint32_t i = find(node, space, text);
    if (i == FB_NONE) {
        i = 0;
        while (i < links->book_capacity && links->book[i].used) i++;
        if (i == links->book_capacity) return FB_ERR_LIMIT;
        clear(node, i);
        fb_address *address = &links->book[i];
        address->used = true;
        address->space = space;
        address->len = (uint8_t)text.len;
        memcpy(address->text, text.p, text.len);
    }
    if (!fb_id_is_zero(expected)) links->book[i].expected = expected;
    touch(node, i);
    *out = i;
    return FB_OK;
}

fb_status fb_link_dial(fb_node *node, uint32_t space, fb_span text, fb_id expected)
{
    uint32_t index;
    FB_TRY(add(node, space, text, expected, &index));
    fb_address *address = &node->links->book[index];
    if (node->phase == FB_PHASE_RUNNING && !fb_timer_is_set(&address->timer)) {
        fb_dial_due(node, index);
    }
    return FB_OK;
}

void fb_dial_mark_stored(fb_node *node, uint32_t space, fb_span text)
{
    uint32_t i = find(node, space, text);
    if (i == FB_NONE) return;
    node->links->book[i].stored = true;
    touch(node, i);
}

/* The link that was made through it, or FB_NONE. */
static uint32_t remove_at(fb_node *node, uint32_t i)
{
    fb_links *links = node->links;
    fb_address *address = &links->book[i];
    if (address->wanted) links->dials_wanted--;
    fb_timer_clear(node, &address->timer);
    uint32_t link = address->link;
    if (link != FB_NONE) fb_links_get(node, link)->address = FB_NONE;
    clear(node, i);
    return link;
}

void fb_link_forget(fb_node *node, uint32_t space, fb_span text)
{
    uint32_t i = find(node, space, text);
    if (i != FB_NONE && !node->links->book[i].stored) (void)remove_at(node, i);
}

bool fb_dial_remove(fb_node *node, uint32_t space, fb_span text, uint32_t *link)
{
    uint32_t i = find(node, space, text);
    *link = i == FB_NONE ? FB_NONE : remove_at(node, i);
    return i != FB_NONE;
}

void fb_link_forget_space(fb_node *node, uint32_t space)
{
    for (uint32_t i = 0; i < node->links->book_capacity; i++) {
        const fb_address *address = &node->links->book[i];
        if (address->used && address->space == space) (void)remove_at(node, i);
    }
}

void fb_dial_started(fb_node *node)
{
    for (uint32_t i = 0; i < node->links->book_capacity; i++) {
        if (node->links->book[i].used) fb_dial_due(node, i);
    }
}
