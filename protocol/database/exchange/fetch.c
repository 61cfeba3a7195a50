/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching: the calls that ask for what is wanted. DESIGN 3.1, Vectors and fetch.
 *
 * A call names claims of one area to one peer, each with the heads that we have of that node, and
 * gets the batches between in the order of the chain. Of one node only one peer is asked, until it
 * was silent for a while: then another claimer is asked as well. A claimer that answers and has
 * nothing of what it claimed loses the claim; any other failure is a pause that doubles.
 *
 * A batch that comes early (stage.c), or before a statement that its signer knew, ends its call:
 * what else was asked for goes on in another one at once, and this claim when what it waits for is
 * there. */
#include "protocol/base/mutant.h"
#include "protocol/database/compare/believe.h"
#include "protocol/database/state.h"

#define BACK_OFF_MAX_NS (UINT64_C(300) * 1000000000)
/* Points for what no honest member relays, and for a claim with nothing behind it. */
#define POINTS_FORGED 20u
#define POINTS_EMPTY  1u

/* Profile 5 step 9: the entry is durable together with the message that named it. */
/* FM-4.1-2, FM-4.1-9 */
void fb_database_changed(fb_node *node, uint32_t link, uint32_t member, fb_id id,
                         uint64_t incarnation, uint64_t batch)
{
    const fb_link_info *info = fb_link_at(node, link);
    uint32_t area = fb_area_find(node, id);
    if (area != FB_NONE && fb_area_get(node, area)->space != info->space) return;
    if (area == FB_NONE || incarnation == 0 || batch == 0) {
        /* It does not say what is new; an area not known here is asked for when a batch of it is
         * named. The comparison of digests finds the rest. */
        if (area != FB_NONE || incarnation != 0) fb_vector_ask(node, link, area, id);
        return;
    }
    fb_id peer = fb_member_id(node, member);
    if (!fb_want(node, area, peer, incarnation, batch, link)) return;
    fb_wanted_store(node, area, peer, incarnation, link);
    fb_fetch_go(node, area);
}

/* Calls */

static bool link_serves(const fb_node *node, uint32_t link, const fb_area *area)
{
    if (link == FB_NONE) return false;
    const fb_link_info *info = fb_link_at(node, link);
    return info->state == FB_LINK_OPEN && info->space == area->space && info->member != FB_NONE &&
           node->database->links[link].up &&
           fb_space_may_hold(node, area->space, info->member, area->id);
}

/* Whom to ask: who claims it; what nobody linked claims, whoever comes after the one asked last. */
static uint32_t choose_link(const fb_node *node, const fb_area *area, const fb_wanted *wanted)
{
    if (wanted->link != FB_NONE) {
        return link_serves(node, wanted->link, area) ? wanted->link : FB_NONE;
    }
    uint32_t count = fb_link_capacity(node);
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t link = (area->last_link + i) % count;
        if (link != wanted->avoid && link_serves(node, link, area)) return link;
    }
    return link_serves(node, wanted->avoid, area) ? wanted->avoid : FB_NONE;
}

/* Until when a call that asks for this node is waited for; 0: there is none. */
static uint64_t asked_until(const fb_node *node, uint32_t area, fb_id peer)
{
    const struct fb_database *db = node->database;
    uint64_t until = 0;
    for (uint32_t i = 0; i < db->fetch_count; i++) {
        const fb_fetch *fetch = &db->fetches[i];
        if (!fetch->used || fetch->area != area) continue;
        for (uint32_t k = 0; k < fetch->node_count; k++) {
            if (!fb_id_equal(fetch->nodes[k], peer)) continue;
            uint64_t heard_ns = fetch->busy ? node->mono_ns : fetch->heard_ns;
            uint64_t stalls = fb_add_sat_u64(heard_ns, 2 * node->options.timing.heartbeat_ns);
            until = fb_max_u64(until, stalls);
        }
    }
    return until;
}

/* When this claim may be asked for: now, later, or (FB_NEVER) when something happens. */
static uint64_t may_ask_ns(const fb_node *node, uint32_t area, const fb_wanted *wanted)
{
    if (wanted->fetch != 0 || wanted->parked) return FB_NEVER;
    return fb_max_u64(wanted->again_ns, asked_until(node, area, wanted->node));
}

/* The heads that are here of the node: first of the life that is asked for. */
static void write_range(const fb_node *node, uint32_t area, const fb_wanted *wanted, fb_writer *w)
{
    fb_write_id(w, wanted->node);
    fb_write_u64(w, wanted->incarnation);
    fb_write_u64(w, wanted->batch);
    size_t count_at = w->at;
    uint32_t count = 0;
    fb_write_u8(w, 0);
    uint32_t same = fb_vector_find(node, area, wanted->node, wanted->incarnation);
    if (MUTANT(FETCH_FROM_THE_START, false, true)) return;
    if (wanted->known_incarnation != 0 && same == FB_NONE) {
        fb_write_u64(w, wanted->known_incarnation);
        fb_write_u64(w, wanted->known_batch);
        fb_store_be(w->p + count_at, ++count, 1);
    }
    if (wanted->whole) return;
    if (same != FB_NONE) {
        fb_write_u64(w, wanted->incarnation);
        fb_write_u64(w, fb_vector_get(node, same)->batch);
        count++;
    }
    for (uint32_t at = fb_area_get(node, area)->entries; at != 0 && count < FB_FETCH_HAVES_MAX;) {
        const fb_vector *v = fb_vector_get(node, at - 1);
        uint32_t entry = at - 1;
        at = v->next;
        if (v->closed || v->batch == 0 || !fb_id_equal(v->node, wanted->node) || entry == same ||
            v->incarnation == wanted->known_incarnation) {
            continue;
        }
        fb_write_u64(w, v->incarnation);
        fb_write_u64(w, v->batch);
        count++;
    }
    fb_store_be(w->p + count_at, count, 1);
}

static bool on_piece(fb_node *node, uint32_t call, uint64_t user, fb_span piece, bool last,
                     fb_status status);

/* A place for a call to this link: no link has them all. */
static uint32_t fetch_slot(const fb_node *node, uint32_t link)
{
    const struct fb_database *db = node->database;
    uint32_t slot = FB_NONE, to_link = 0;
    for (uint32_t i = db->fetch_count; i-- > 0;) {
        if (!db->fetches[i].used) {
            slot = i;
        } else if (db->fetches[i].link == link) {
            to_link++;
        }
    }
    return to_link + 1 < db->fetch_count ? slot : FB_NONE;
}

static bool is_among(const fb_id *nodes, uint32_t count, fb_id peer)
{
    for (uint32_t i = 0; i < count; i++) {
        if (fb_id_equal(nodes[i], peer)) return true;
    }
    return false;
}

/* One call for what this link is to be asked of an area. False: no call can be begun now. */
static bool begin_call(fb_node *node, uint32_t index, uint32_t link)
{
    struct fb_database *db = node->database;
    fb_area *area = fb_area_get(node, index);
    uint32_t slot = fetch_slot(node, link);
    if (slot == FB_NONE) return false;
    uint8_t arguments[17 + FB_FETCH_RANGES_MAX * (33 + 16 * FB_FETCH_HAVES_MAX)];
    fb_writer w = fb_writer_of(arguments, sizeof arguments);
    fb_write_id(&w, area->id);
    fb_write_u8(&w, 0);
    uint32_t chosen[FB_FETCH_RANGES_MAX], count = 0;
    fb_id nodes[FB_FETCH_RANGES_MAX];
    for (uint32_t at = area->wants; at != 0 && count < FB_FETCH_RANGES_MAX;) {
        const fb_wanted *wanted = fb_wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        if (may_ask_ns(node, index, wanted) > node->mono_ns ||
            is_among(nodes, count, wanted->node) || choose_link(node, area, wanted) != link) {
            continue;
        }
        write_range(node, index, wanted, &w);
        nodes[count] = wanted->node;
        chosen[count++] = place;
    }
    if (count == 0) return true;
    fb_store_be(arguments + 16, count, 1);
    fb_fetch *fetch = &db->fetches[slot];
    uint8_t *piece = fetch->piece;
    *fetch = (fb_fetch){.used = true,
                        .area = index,
                        .link = link,
                        .member = fb_link_at(node, link)->member,
                        .serial = ++db->serial,
                        .link_number = fb_link_at(node, link)->number,
                        .heard_ns = node->mono_ns,
                        .node_count = count,
                        .piece = piece};
    memcpy(fetch->nodes, nodes, count * sizeof nodes[0]);
    uint64_t deadline = fb_add_sat_u64(node->mono_ns, node->options.timing.call_ns);
    fb_status status = fb_call_start(node, link, FB_METHOD_FETCH, fb_writer_span(&w), deadline,
                                     on_piece, slot, &fetch->call);
    if (status != FB_OK) {
        fetch->used = false;
        return false;
    }
    fb_area_pin(node, index);
    area->last_link = link;
    for (uint32_t i = 0; i < count; i++) {
        fb_wanted_get(node, chosen[i])->fetch = slot + 1;
        fb_wanted_touch(node, chosen[i]);
    }
    return true;
}

void fb_fetch_go(fb_node *node, uint32_t index)
{
    fb_area *area = fb_area_get(node, index);
    uint64_t next = FB_NEVER;
    for (uint32_t at = area->wants; at != 0;) {
        const fb_wanted *wanted = fb_wanted_get(node, at - 1);
        at = wanted->next;
        uint64_t from = may_ask_ns(node, index, wanted);
        /* Without a link it waits for one: they compare vectors when they open. */
        uint32_t link = from <= node->mono_ns ? choose_link(node, area, wanted) : FB_NONE;
        if (link != FB_NONE && !begin_call(node, index, link)) {
            node->database->fetch_hungry = true;
            from = fb_add_sat_u64(node->mono_ns, node->options.timing.onward_ns);
        }
        if (from > node->mono_ns) next = fb_min_u64(next, from);
    }
    if (next == FB_NEVER) {
        fb_timer_clear(node, &area->wanted);
    } else {
        fb_timer_set(node, &area->wanted, next);
    }
}

void fb_fetch_go_all(fb_node *node, uint32_t space)
{
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        uint32_t area = at - 1;
        at = fb_area_get(node, area)->next;
        if (fb_area_get(node, area)->wants != 0) fb_fetch_go(node, area);
    }
}

void fb_fetch_unpark(fb_node *node, uint32_t space)
{
    if (node->database->spaces[space].strangers) {
        node->database->spaces[space].strangers = false;
        fb_vector_compare_all(node, space);
    }
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        uint32_t area = at - 1;
        at = fb_area_get(node, area)->next;
        bool any = false;
        for (uint32_t w = fb_area_get(node, area)->wants; w != 0;) {
            fb_wanted *wanted = fb_wanted_get(node, w - 1);
            uint32_t place = w - 1;
            w = wanted->next;
            if (!wanted->parked) continue;
            any = true;
            wanted->parked = false;
            wanted->back_off_ns = wanted->again_ns = 0;
            fb_wanted_touch(node, place);
        }
        if (any) fb_timer_set(node, &fb_area_get(node, area)->wanted, node->mono_ns);
    }
}

/* What is behind it is waited for in vain. */
static bool stands_at_cut(const fb_node *node, uint32_t area, fb_dot last)
{
    uint32_t entry = fb_vector_find(node, area, last.node, last.incarnation);
    if (entry == FB_NONE) return false;
    const fb_vector *v = fb_vector_get(node, entry);
    return fb_mend_ends(node, area, v->node, v->incarnation, v->batch, v->claim);
}

void fb_fetch_woken(fb_node *node, uint32_t area, fb_dot last)
{
    bool any = false;
    for (uint32_t at = fb_area_get(node, area)->wants; at != 0;) {
        fb_wanted *wanted = fb_wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        if (!wanted->waits || !fb_dot_same_life(wanted->waits_for, last)) continue;
        if (wanted->waits_for.seq > last.seq && !stands_at_cut(node, area, last)) continue;
        any = true;
        wanted->waits = false;
        wanted->back_off_ns = wanted->again_ns = 0;
        fb_wanted_touch(node, place);
    }
    if (any) fb_timer_set(node, &fb_area_get(node, area)->wanted, node->mono_ns);
}

static void on_timer(fb_node *node, uint32_t area)
{
    if (!fb_area_get(node, area)->used) return;
    fb_fetch_go(node, area);
}

static void pause(const fb_node *node, fb_wanted *wanted)
{
    uint64_t first = node->options.timing.onward_ns;
    wanted->back_off_ns =
        wanted->back_off_ns == 0 ? first : fb_min_u64(2 * wanted->back_off_ns, BACK_OFF_MAX_NS);
    wanted->again_ns = fb_add_sat_u64(node->mono_ns, wanted->back_off_ns);
}

/* What becomes of a claim that a call asked for and did not satisfy. */
static void judge_claim(fb_node *node, const fb_fetch *fetch, uint32_t index)
{
    fb_wanted *wanted = fb_wanted_get(node, index);
    wanted->fetch = 0;
    fb_wanted_touch(node, index);
    if (wanted->again_ns > node->mono_ns) return; /* a batch of this node was refused */
    if (fetch->progress && !fetch->refused) {
        wanted->back_off_ns = wanted->again_ns = 0;
        return;
    }
    if (fetch->status == FB_OK && !fetch->heard && wanted->link == fetch->link) {
        /* It answered, and had nothing that is not here: of a closed life, which is no head, what
         * is here comes once more, also after its end was taken back. Were the claim true, the next
         * comparison says it again. */
        fb_wanted_drop(node, index);
        if (fb_link_at(node, fetch->link)->number == fetch->link_number) {
            fb_link_misbehaved(node, fetch->link, POINTS_EMPTY);
        }
        return;
    }
    pause(node, wanted);
    if (wanted->link == FB_NONE) wanted->avoid = fetch->link;
    /* What nobody stands for, and an area of which nobody gave anything, is not wanted for ever. */
    bool stands = wanted->link != FB_NONE && fb_area_get(node, fetch->area)->stored;
    if (!stands && !wanted->parked && wanted->back_off_ns > 8 * node->options.timing.onward_ns) {
        fb_wanted_drop(node, index);
    }
}

/* The call is over and nothing of it is in work. */
static void finish(fb_node *node, uint32_t slot)
{
    struct fb_database *db = node->database;
    fb_fetch *fetch = &db->fetches[slot];
    uint32_t index = fetch->area, space = fb_area_get(node, index)->space;
    for (uint32_t at = fb_area_get(node, index)->wants; at != 0;) {
        const fb_wanted *wanted = fb_wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        if (wanted->fetch == slot + 1) judge_claim(node, fetch, place);
    }
    /* FM-8.3-4, FM-12.5-1, MP-6-10 */
    if (fetch->status == FB_ERR_CALL_FOLDED) {
        /* Profile 6: absent for so long that a full copy is needed. */
        const fb_link_info *info = fb_link_at(node, fetch->link);
        if (info->number == fetch->link_number && info->state == FB_LINK_OPEN) {
            fb_message_sync(node, info->space, info->member, fb_area_get(node, index)->id, false);
        }
    }
    fetch->used = false;
    if (fetch->skips != 0) {
        fb_believe_log(node, "batches were taken for folded, as this member has it",
                       fb_member_id(node, fetch->member), fb_area_get(node, index)->id,
                       fetch->skips);
    }
    if (fb_area_get(node, index)->doubt) fb_doubt(node, index, false);
    fb_fetch_go(node, index);
    if (db->fetch_hungry) {
        db->fetch_hungry = false;
        fb_fetch_go_all(node, space);
    }
    fb_area_unpin(node, index);
}

void fb_fetch_has(fb_node *node, uint32_t slot, fb_id peer)
{
    fb_fetch *fetch = &node->database->fetches[slot];
    for (uint32_t i = 0; i < fetch->node_count; i++) {
        if (!fb_id_equal(fetch->nodes[i], peer)) continue;
        fetch->nodes[i] = fetch->nodes[--fetch->node_count];
        return;
    }
}

fb_span fb_fetch_batch(const fb_node *node, uint32_t slot)
{
    const fb_fetch *fetch = &node->database->fetches[slot];
    fb_reader r = fb_reader_of(
        fb_span_of(fetch->piece + fetch->piece_at, fetch->piece_len - fetch->piece_at));
    return fb_read_span32(&r);
}

/* The life of the signer that a call asks for; 0: it does not. */
static uint64_t asked_life(const fb_node *node, uint32_t slot)
{
    uint32_t wanted = fb_wanted_asked(node, slot, node->database->fetches[slot].signer);
    return wanted == FB_NONE ? 0 : fb_wanted_get(node, wanted)->incarnation;
}

static void park(fb_node *node, uint32_t slot)
{
    const fb_fetch *fetch = &node->database->fetches[slot];
    uint64_t life = asked_life(node, slot);
    fb_count(node, FB_COUNTER_BATCHES_PARKED, 1);
    for (uint32_t at = fb_area_get(node, fetch->area)->wants; at != 0;) {
        fb_wanted *wanted = fb_wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        if (!fb_id_equal(wanted->node, fetch->signer)) continue;
        /* Another life of it, which no chain joins to this one, may be what this one waits for. */
        bool same = wanted->incarnation == life || wanted->incarnation == fetch->incarnation;
        if (!MUTANT(OTHER_LIFE_PARKED, same, true)) continue;
        wanted->parked = true;
        fb_wanted_touch(node, place);
    }
    uint32_t own = fb_area_own(node, fb_area_get(node, fetch->area)->space);
    if (own != FB_NONE) {
        fb_vector_ask(node, fetch->link, own, fb_area_get(node, own)->id);
    }
}

/* A batch came before what it replaces, and its record is large already: all claims about this life
 * wait, and none about another one of the node, whose chain may be what is waited for. */
static void defer(fb_node *node, uint32_t slot)
{
    const fb_fetch *fetch = &node->database->fetches[slot];
    fb_count(node, FB_COUNTER_BATCHES_EARLY, 1);
    uint64_t life = asked_life(node, slot);
    for (uint32_t at = fb_area_get(node, fetch->area)->wants; at != 0;) {
        fb_wanted *wanted = fb_wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        if (wanted->incarnation != life || !fb_id_equal(wanted->node, fetch->signer)) continue;
        wanted->waits = true;
        wanted->waits_for = fetch->waits_for;
        pause(node, wanted); /* if it never comes */
        fb_wanted_touch(node, place);
    }
}

/* A batch was refused that its signer did sign: what is wanted of that node pauses, nothing else.
 */
static void pause_signer(fb_node *node, uint32_t slot)
{
    const fb_fetch *fetch = &node->database->fetches[slot];
    for (uint32_t at = fb_area_get(node, fetch->area)->wants; at != 0;) {
        fb_wanted *wanted = fb_wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        if (wanted->fetch != slot + 1 || !fb_id_equal(wanted->node, fetch->signer)) continue;
        if (wanted->again_ns <= node->mono_ns) pause(node, wanted);
        fb_wanted_touch(node, place);
    }
}

/* The first batch of the life that was asked for follows one that is not here: it came alone, since
 * no head of ours is before it. Without heads all that is before it comes. */
static bool ask_for_whole(fb_node *node, const fb_fetch *fetch, uint32_t slot, bool first)
{
    bool begins = fetch->number == 1 || fetch->folded.used;
    if (!first || !begins || fetch->incarnation != asked_life(node, slot)) return false;
    bool news = false;
    for (uint32_t at = fb_area_get(node, fetch->area)->wants; at != 0;) {
        fb_wanted *wanted = fb_wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        if (wanted->incarnation != fetch->incarnation || wanted->whole ||
            !fb_id_equal(wanted->node, fetch->signer)) {
            continue;
        }
        news = true;
        wanted->whole = MUTANT(FORK_NEVER_WHOLE, true, false);
        fb_wanted_touch(node, place);
    }
    return news;
}

/* A batch is here already. A life that later ones took up is no head, so no call names it, and when
 * more of it was signed (a memory image or a copy of it went on) all of it comes. Its first batch
 * tells how far it is here: when much would come in vain the call ends, and the next one says so.
 * Once for each claim, until something of it came: a peer that gives old batches whatever it is
 * asked gains nothing. False: the call is given up. */
static bool judge_duplicate(fb_node *node, uint32_t slot)
{
    fb_fetch *fetch = &node->database->fetches[slot];
    bool asked = is_among(fetch->nodes, fetch->node_count, fetch->signer);
    uint64_t here =
        MUTANT(CLOSED_LIFE_AGAIN, fb_max_u64(fetch->here, fetch->number), fetch->number);
    fb_wanted_satisfy(node, fetch->area, fetch->signer, fetch->incarnation, here, false);
    if (!asked || here - fetch->number < FB_FETCH_IN_VAIN_MAX) return true;
    for (uint32_t at = fb_area_get(node, fetch->area)->wants; at != 0;) {
        fb_wanted *wanted = fb_wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        if (wanted->fetch != slot + 1 || !fb_id_equal(wanted->node, fetch->signer)) continue;
        if (wanted->known_incarnation != 0) return true;
        wanted->known_incarnation = fetch->incarnation;
        wanted->known_batch = here;
        fb_wanted_touch(node, place);
    }
    fetch->progress = true;
    return false;
}

/* Something of it came: from now on heads here are before the rest. */
static void heads_are_here(fb_node *node, const fb_fetch *fetch)
{
    for (uint32_t at = fb_area_get(node, fetch->area)->wants; at != 0;) {
        fb_wanted *wanted = fb_wanted_get(node, at - 1);
        uint32_t place = at - 1;
        at = wanted->next;
        bool knew = wanted->whole || wanted->known_incarnation != 0;
        if (!knew || !fb_id_equal(wanted->node, fetch->signer)) continue;
        wanted->whole = false;
        wanted->known_incarnation = wanted->known_batch = 0;
        fb_wanted_touch(node, place);
    }
}

/* A batch's outcome. False: the call is given up. */
static bool judge_outcome(fb_node *node, uint32_t slot, fb_status status)
{
    fb_fetch *fetch = &node->database->fetches[slot];
    bool old = MUTANT(OLD_IS_HEARD, status == FB_ERR_DUPLICATE, false);
    fetch->heard = fetch->heard || !old;
    fetch->heard_ns = node->mono_ns;
    bool first = !fb_id_equal(fetch->heard_of, fetch->signer);
    fetch->heard_of = fetch->signer;
    switch (status) {
    case FB_OK:
        fetch->progress = true;
        heads_are_here(node, fetch);
        return true;
    case FB_ERR_DUPLICATE:
        return judge_duplicate(node, slot);
    case FB_ERR_BATCH_EPOCH:
        park(node, slot);
        if (!is_among(fetch->nodes, fetch->node_count, fetch->signer)) return true;
        /* The rest of its life would come in vain, and again for each statement that comes. */
        fetch->progress = true; /* what else was asked for does not wait */
        return MUTANT(PARKED_LIFE_COMES_ON, false, true);
    case FB_ERR_BATCH_CHAIN:
        if (ask_for_whole(node, fetch, slot, first)) {
            fetch->progress = true;
            return false;
        }
        /* What follows a parked or refused one. */
        return true;
    case FB_ERR_BATCH_EARLY:
        defer(node, slot);
        fetch->progress = true; /* nobody is to blame, and nothing else has to wait */
        return false;
    case FB_ERR_BUSY:
        return false;
    case FB_ERR_BATCH_CUT:
        /* No peer will give more of this life that is taken; nobody is to blame. */
        fb_wanted_satisfy(node, fetch->area, fetch->signer, fetch->incarnation, UINT64_MAX, false);
        fb_wanted_satisfy(node, fetch->area, fetch->signer, asked_life(node, slot), UINT64_MAX,
                          false);
        fb_count(node, FB_COUNTER_BATCHES_REFUSED, 1);
        return true;
    default:
        break;
    }
    fb_count(node, FB_COUNTER_BATCHES_REFUSED, 1);
    if (status == FB_ERR_LIMIT) fb_count(node, FB_COUNTER_RECORDS_FULL, 1);
    if (status == FB_ERR_BATCH_LIVES) fb_count(node, FB_COUNTER_LIVES_REFUSED, 1);
    bool forged = status == FB_ERR_BATCH_MALFORMED || status == FB_ERR_BATCH_SIGNATURE ||
                  status == FB_ERR_BATCH_ROOT;
    if (forged) {
        fetch->refused = true; /* whoever it names, this peer is to blame */
    } else {
        pause_signer(node, slot);
    }
    const fb_link_info *info = fb_link_at(node, fetch->link);
    if (forged && info->number == fetch->link_number && info->state == FB_LINK_OPEN) {
        fb_link_misbehaved(node, fetch->link, POINTS_FORGED);
        return false;
    }
    return !forged;
}

static void give_up(fb_node *node, uint32_t slot)
{
    fb_fetch *fetch = &node->database->fetches[slot];
    if (!fetch->ended) {
        fetch->ended = true;
        fb_call_cancel(node, fetch->call);
    }
    fetch->piece_at = fetch->piece_len;
}

/* An item that is no batch: of the next batch's life those before it are folded. */
static bool read_folded(fb_span item, fb_folded *out)
{
    if (item.len != FB_FOLDED_BYTES || item.p[0] != 0) return false;
    fb_reader r = fb_reader_of(item);
    fb_read_u8(&r);
    out->used = true;
    out->judged = false;
    out->node = fb_read_id(&r);
    out->incarnation = fb_read_u64(&r);
    out->after = fb_read_u64(&r);
    out->previous_incarnation = fb_read_u64(&r);
    out->previous_number = fb_read_u64(&r);
    return true;
}

/* Goes through the batches of a piece, until one needs an operation. */
static void go_through(fb_node *node, uint32_t slot)
{
    fb_fetch *fetch = &node->database->fetches[slot];
    while (!fetch->busy && fetch->piece_at < fetch->piece_len) {
        fb_span batch = fb_fetch_batch(node, slot);
        fb_status status = FB_ERR_BATCH_MALFORMED;
        fetch->tries = 0;
        if (read_folded(batch, &fetch->folded)) {
            fetch->piece_at += 4 + (uint32_t)batch.len;
            continue;
        }
        if (batch.p != NULL) {
            fetch->busy = true;
            bool unjudged = fetch->folded.used && !fetch->folded.judged;
            if (unjudged && fb_report_judge(node, slot)) return;
            bool waits = fetch->folded.used && !fetch->folded.judged;
            status = FB_ERR_BUSY;
            if (!waits && fb_apply_begin(node, slot, &status)) return;
            fetch->busy = false;
        }
        if (!judge_outcome(node, slot, status)) {
            give_up(node, slot);
            return;
        }
        fetch->folded.used = false;
        fetch->piece_at += 4 + (uint32_t)batch.len;
    }
}

static void go_on(fb_node *node, uint32_t slot)
{
    fb_fetch *fetch = &node->database->fetches[slot];
    go_through(node, slot);
    if (fetch->busy) return;
    if (fetch->ended) {
        finish(node, slot);
    } else if (!fetch->inside) {
        fb_call_resume(node, fetch->call);
    }
}

void fb_fetch_applied(fb_node *node, uint32_t slot, fb_status status)
{
    fb_fetch *fetch = &node->database->fetches[slot];
    fb_span batch = fb_fetch_batch(node, slot);
    fetch->busy = false;
    if (judge_outcome(node, slot, status)) {
        fetch->folded.used = false;
        fetch->piece_at += 4 + (uint32_t)batch.len;
    } else {
        give_up(node, slot);
    }
    go_on(node, slot);
}

void fb_fetch_judged(fb_node *node, uint32_t slot, fb_status status)
{
    node->database->fetches[slot].busy = false;
    if (status != FB_OK) give_up(node, slot);
    go_on(node, slot);
}

static bool on_piece(fb_node *node, uint32_t call, uint64_t user, fb_span piece, bool last,
                     fb_status status)
{
    (void)call;
    fb_fetch *fetch = &node->database->fetches[user];
    if (last) {
        fetch->ended = true;
        fetch->status = status;
        if (!fetch->busy) finish(node, (uint32_t)user);
        return true;
    }
    FB_ASSERT(!fetch->busy && piece.len <= node->options.sizes.call_bytes);
    fetch->piece_len = (uint32_t)piece.len;
    fetch->piece_at = 0;
    if (piece.len != 0) memcpy(fetch->piece, piece.p, piece.len);
    fetch->inside = true;
    /* All that it asks for came by another call: of a long chain much may be left that is here. */
    if (fetch->node_count == 0) give_up(node, (uint32_t)user);
    go_through(node, (uint32_t)user);
    fetch->inside = false;
    if (fetch->ended) {
        finish(node, (uint32_t)user);
        return false;
    }
    return !fetch->busy;
}

void fb_fetch_layout(fb_node *node, fb_arena *arena)
{
    struct fb_database *db = node->database;
    const fb_sizes *sizes = &node->options.sizes;
    uint32_t fetches = sizes->calls / 4;
    if (fetches < 2) fetches = 2;
    if (fetches > FB_FETCHES_MAX) fetches = FB_FETCHES_MAX;
    fb_fetch *slots = fb_arena_take(arena, fetches, sizeof *slots);
    uint8_t *pieces = fb_arena_take(arena, fetches, sizes->call_bytes);
    fb_timer_register(node, FB_TIMER_WANTED, on_timer, sizes->areas);
    if (db == NULL) return;
    db->fetches = slots;
    db->fetch_count = fetches;
    for (uint32_t i = 0; i < fetches; i++) slots[i].piece = pieces + (size_t)i * sizes->call_bytes;
}

void fb_fetch_reset(fb_node *node)
{
    struct fb_database *db = node->database;
    db->fetch_hungry = false;
    for (uint32_t i = 0; i < db->fetch_count; i++) db->fetches[i].used = false;
}
