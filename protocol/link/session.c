/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a link between the proof of its peer's key and its end. profile 7.
 *
 * A link is up when both ends hold the peer for an approved member: the own judgement is
 * `local_ok`, the peer's comes with its heartbeats (`peer_ok`). Until then nothing of the space is
 * on it. */
#include "protocol/base/hex.h"
#include "protocol/base/mutant.h"
#include "protocol/core/node_id.h"
#include "protocol/link/state.h"

static bool is_live(const fb_link *link)
{
    return link->info.state != FB_LINK_FREE && link->info.state != FB_LINK_CLOSING;
}

static void set_life(fb_node *node, fb_link *link, uint64_t after_ns)
{
    fb_timer_set(node, &link->life, fb_add_sat_u64(node->mono_ns, after_ns));
}

/* Control frames that may pass before a link is up. */
static bool early_type(uint32_t type)
{
    return type == FB_CONTROL_INVITE || type == FB_CONTROL_MEMBERSHIP;
}

void fb_links_show(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    if (link->shown || !is_live(link)) return;
    link->shown = true;
    fb_links_touch(node, index);
    static const fb_control_type early[2] = {FB_CONTROL_INVITE, FB_CONTROL_MEMBERSHIP};
    for (int i = 0; i < 2; i++) {
        const fb_channel *ops = node->controls[early[i]];
        if (ops != NULL && ops->shown != NULL) ops->shown(node, index);
    }
}

/* Strangers' links at the acceptor: those without a proof, or those with one. */
static uint32_t count_strangers(const fb_node *node, bool kept)
{
    const fb_links *links = node->links;
    uint32_t count = 0;
    for (uint32_t i = 0; i < links->high; i++) {
        const fb_link *link = &links->table[i];
        if (is_live(link) && link->stranger && link->kept == kept) count++;
    }
    return count;
}

/* Of either kind a quarter of the table, or the profile's 64. */
static uint32_t strangers_max(const fb_node *node)
{
    uint32_t most = (node->links->capacity + 3) / 4;
    return most < FB_PENDING_LINKS_MAX ? most : FB_PENDING_LINKS_MAX;
}

/* The peer is proven and no approved member. */
/* MP-7-12, MP-7-17 */
static void become_pending(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    if (!link->info.external && !link->info.dialled) {
        if (fb_links_is_shut_out(node, link->host) ||
            count_strangers(node, false) >= strangers_max(node)) {
            fb_link_close(node, index, FB_ERR_LINK_PENDING);
            return;
        }
        link->stranger = true;
    }
    link->info.state = FB_LINK_PENDING;
    set_life(node, link,
             link->info.external ? node->options.timing.handshake_ns
                                 : node->options.timing.pending_ns);
    fb_links_touch(node, index);
}

/* One line for people: what happened, the peer's id, and why. */
static void log_peer(fb_node *node, const char *text, const fb_link *link, fb_error why)
{
    char line[2 * sizeof link->info.peer.b + 40];
    size_t len = 2 * sizeof link->info.peer.b;
    fb_hex_format(link->info.peer.b, sizeof link->info.peer.b, line);
    if (why != FB_OK) {
        const char *name = fb_error_name(why);
        size_t name_len = strlen(name);
        line[len++] = ' ';
        if (name_len > sizeof line - len) name_len = sizeof line - len;
        memcpy(line + len, name, name_len);
        len += name_len;
    }
    fb_log(node, FB_LOG_INFO, text, fb_span_of(line, len));
}

/* Who else proves this node's key: this node, when it dialled itself (both ends are in the table
 * and have one handshake hash), or a copy of it (profile 5 step 3: clone alarm). */
/* MP-5-4 */
static void own_key_proven(fb_node *node, uint32_t index)
{
    const fb_links *links = node->links;
    fb_link *link = fb_links_get(node, index);
    for (uint32_t i = 0; i < links->high; i++) {
        const fb_link *other = &links->table[i];
        if (i == index || other->info.state == FB_LINK_FREE || link->info.external) continue;
        if (memcmp(other->info.handshake_hash, link->info.handshake_hash,
                   sizeof link->info.handshake_hash) == 0) {
            fb_link_close(node, index, FB_ERR_LINK_PEER);
            return;
        }
    }
    fb_observe(node, FB_FACT_CLONE, link->info.number, link->info.peer_incarnation,
               fb_span_of(NULL, 0));
    fb_log(node, FB_LOG_ERROR,
           "another node proves this node's key: a copy of its store is running",
           fb_span_of(NULL, 0));
    fb_link_close(node, index, FB_ERR_LINK_CLONE);
}

void fb_links_bound(fb_node *node, uint32_t index, const fb_binding *binding)
{
    fb_link *link = fb_links_get(node, index);
    fb_id space = fb_space_id(node, link->info.space);
    link->info.peer_key = binding->public_key;
    link->info.peer = fb_node_id(node->options.provider, binding->public_key);
    link->info.peer_incarnation = binding->incarnation;
    link->bound_serial = ++node->links->bound_serial;
    link->step = FB_STEP_RECORDS;
    fb_timer_clear(node, &link->life);
    fb_links_fix(node, index);

    bool own_key = fb_b32_equal(binding->public_key, node->self_key);
    if (MUTANT(OWN_KEY_WELCOME, own_key, false)) {
        own_key_proven(node, index);
        return;
    }
    /* MP-7-10 */
    bool other = fb_dial_expects_other(node, link);
    if (MUTANT(OWN_KEY_WELCOME, other, other && !own_key)) {
        /* A stale address, not an attack (profile 7). */
        log_peer(node, "another node answered than the one that was dialled:", link, FB_OK);
        fb_link_close(node, index, FB_ERR_LINK_PEER);
        return;
    }
    if (fb_links_is_shut_out(node, fb_links_hash_peer(space, link->info.peer))) {
        fb_link_close(node, index, FB_ERR_LINK_MISBEHAVED);
        return;
    }
    uint32_t member = FB_NONE;
    /* MP-1-5, MP-7-11 */
    switch (fb_space_judge_peer(node, link->info.space, link->info.peer, link->info.peer_key,
                                &member)) {
    case FB_MEMBER_APPROVED:
        fb_dial_bound(node, index);
        if (fb_dial_is_needless(node, index)) {
            fb_link_close(node, index, FB_ERR_LINK_REPLACED);
            break;
        }
        fb_link_approved(node, index, member);
        break;
    case FB_MEMBER_PENDING:
        fb_dial_bound(node, index);
        become_pending(node, index);
        break;
    case FB_MEMBER_REVOKED:
        fb_link_close(node, index, FB_ERR_REVOKED);
        break;
    default:
        fb_link_close(node, index, FB_ERR_KEY);
        break;
    }
}

/* MP-7-16 */
void fb_link_approved(fb_node *node, uint32_t index, uint32_t member)
{
    fb_link *link = fb_links_get(node, index);
    if (!is_live(link) || link->step != FB_STEP_RECORDS || link->local_ok) return;
    link->local_ok = true;
    link->stranger = false;
    link->info.member = member;
    fb_links_fix(node, index);
    if (!link->shown && !link->info.external) fb_links_owe(node, index, FB_OWES_BINDING);
    fb_links_owe(node, index, FB_OWES_HEARTBEAT);
    if (link->info.state == FB_LINK_OPENING) {
        link->info.state = FB_LINK_PENDING; /* until the peer agrees */
        set_life(node, link, node->options.timing.pending_ns);
    }
    fb_links_try_up(node, index);
}

/* MP-7-15 */
fb_status fb_link_keep_pending(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    if (!is_live(link) || link->up) return FB_OK;
    if (!link->kept && link->stranger && count_strangers(node, true) >= strangers_max(node)) {
        return FB_ERR_LINK_TOO_MANY;
    }
    link->kept = true;
    link->pending_bytes = 0;
    link->pending_since_ns = node->mono_ns;
    fb_timer_clear(node, &link->life);
    fb_control_beat(node, index);
    if (!link->shown && !link->info.external) fb_links_owe(node, index, FB_OWES_BINDING);
    fb_links_owe(node, index, FB_OWES_HEARTBEAT);
    return FB_OK;
}

void fb_links_peer_ok(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    if (link->peer_ok) return;
    link->peer_ok = true;
    fb_links_touch(node, index);
    fb_links_try_up(node, index);
}

/* One link per (peer, space): the node with the smaller id decides and closes (profile 7). */
/* MP-7-22 */
static bool first_loses(const fb_node *node, const fb_link *first, const fb_link *second)
{
    const fb_link *later = first->bound_serial > second->bound_serial ? first : second;
    if (first->info.peer_incarnation != second->info.peer_incarnation ||
        first->info.dialled == second->info.dialled) {
        return later == second;
    }
    /* The one that the smaller id dialled stays, and that is this node, unless it was silent. */
    const fb_link *own = first->info.dialled ? first : second;
    const fb_link *other = own == first ? second : first;
    bool silent = node->mono_ns - own->info.heard_ns > 2 * node->options.timing.heartbeat_ns;
    return (silent ? other : own) == second;
}

static void settle_duplicates(fb_node *node, uint32_t index)
{
    fb_links *links = node->links;
    fb_link *link = &links->table[index];
    for (uint32_t i = 0; i < links->high && is_live(link); i++) {
        fb_link *other = &links->table[i];
        if (i == index || !is_live(other) || !other->up) continue;
        if (other->info.space != link->info.space || other->info.member != link->info.member) {
            continue;
        }
        bool peers = fb_id_compare(node->self, link->info.peer) > 0;
        if (MUTANT(BOTH_LINKS_STAY, peers, true)) continue; /* the peer decides */
        fb_link_close(node, first_loses(node, link, other) ? index : i, FB_ERR_LINK_REPLACED);
    }
}

/* The link to a member is the one bound last; another may live on until the peer closes it. */
static void choose_by_member(fb_node *node, uint32_t member)
{
    fb_links *links = node->links;
    if (member >= links->member_capacity) return;
    uint32_t best = 0;
    for (uint32_t i = 0; i < links->high; i++) {
        const fb_link *link = &links->table[i];
        if (!is_live(link) || !link->up || link->info.member != member) continue;
        if (best == 0 || link->bound_serial > links->table[best - 1].bound_serial) best = i + 1;
    }
    links->by_member[member] = best;
}

void fb_links_try_up(fb_node *node, uint32_t index)
{
    fb_links *links = node->links;
    fb_link *link = &links->table[index];
    if (link->up || !link->local_ok || !link->peer_ok || !is_live(link)) return;
    link->up = true;
    link->up_ns = node->mono_ns;
    link->info.state = FB_LINK_OPEN;
    fb_timer_clear(node, &link->life);
    fb_control_beat(node, index);
    fb_links_owe(node, index, FB_OWES_HEARTBEAT);
    fb_count(node, FB_COUNTER_LINKS_OPENED, 1);

    uint8_t ids[32];
    fb_id space = fb_space_id(node, link->info.space);
    memcpy(ids, space.b, 16);
    memcpy(ids + 16, link->info.peer.b, 16);
    fb_observe(node, FB_FACT_LINK_BOUND, link->info.number, link->info.peer_incarnation,
               fb_span_of(ids, sizeof ids));
    link->bound_fact = true;
    log_peer(node, "link open:", link, FB_OK);

    fb_dial_up(node, index);
    settle_duplicates(node, index);
    choose_by_member(node, link->info.member);
    if (!is_live(link)) {
        link->up = false; /* it lost, and nobody has to hear of it */
        return;
    }
    for (uint32_t c = 0; c < FB_CHANNELS; c++) {
        if (node->channels[c] != NULL && node->channels[c]->up != NULL) {
            node->channels[c]->up(node, index);
        }
    }
    for (uint32_t t = 0; t < FB_CONTROL_TYPES; t++) {
        if (node->controls[t] != NULL && node->controls[t]->up != NULL) {
            node->controls[t]->up(node, index);
        }
    }
}

/* Tells the planes that what they were told of is over. */
void fb_links_down(fb_node *node, uint32_t index, fb_error why)
{
    fb_links *links = node->links;
    fb_link *link = &links->table[index];
    bool was_up = link->up, was_shown = link->shown;
    if (link->bound_fact) {
        log_peer(node, "link ended:", link, why);
        fb_observe(node, FB_FACT_LINK_ENDED, link->info.number, why, fb_span_of(NULL, 0));
    }
    link->bound_fact = false;
    link->up = false;
    link->shown = false;
    if (link->info.state != FB_LINK_CLOSING) link->info.state = FB_LINK_OPENING;
    if (was_up) choose_by_member(node, link->info.member);
    for (uint32_t c = 0; c < FB_CHANNELS && was_up; c++) {
        const fb_channel *ops = node->channels[c];
        if (ops != NULL && ops->down != NULL) ops->down(node, index, why);
    }
    for (uint32_t t = 0; t < FB_CONTROL_TYPES; t++) {
        const fb_channel *ops = node->controls[t];
        if (ops == NULL || ops->down == NULL) continue;
        if (early_type(t) ? was_shown : was_up) ops->down(node, index, why);
    }
    link->local_ok = false;
    link->peer_ok = false;
    link->stranger = false;
    link->kept = false;
    link->wants = 0;
    link->control_wants = 0;
    link->piece_channel = FB_NO_CHANNEL;
    link->info.member = FB_NONE;
    link->info.offset_known = false;
    link->echo_mono_ns = 0;
    fb_links_fix(node, index);
}

void fb_link_close(fb_node *node, uint32_t index, fb_error why)
{
    fb_link *link = fb_links_get(node, index);
    if (!is_live(link)) return;
    fb_links *links = node->links;
    link->why = why;
    link->info.state = FB_LINK_CLOSING;
    link->owes = 0;
    fb_timer_clear(node, &link->life);
    fb_timer_clear(node, &link->resend);
    links->ended++;
    if (link->up) choose_by_member(node, link->info.member);
    fb_links_ready(node, index);
    fb_links_touch(node, index);
}

static void settle_one(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    uint32_t address = link->address, space = link->info.space;
    fb_id peer = link->info.peer;
    bool lasted = link->up && node->mono_ns - link->up_ns > node->options.timing.heartbeat_ns;
    bool was_up = link->up;
    fb_error why = link->peer_why != FB_OK ? link->peer_why : link->why;
    /* MP-7-13 */
    if (link->stranger && !link->kept) {
        /* profile 7: no other pending link from the same address for a minute. */
        fb_links_shut_out(node, link->host, 2 * node->options.timing.pending_ns);
    }
    link->ended = true;
    link->address = FB_NONE;
    fb_links_down(node, index, why);
    if (address != FB_NONE) fb_dial_ended(node, address, why, lasted);
    if (was_up) fb_dial_lost(node, space, peer);
}

void fb_links_settle(fb_node *node)
{
    fb_links *links = node->links;
    /* Telling one plane may end further links. */
    while (links->ended != 0) {
        for (uint32_t i = 0; i < links->high; i++) {
            fb_link *link = &links->table[i];
            if (link->info.state != FB_LINK_CLOSING || link->ended) continue;
            links->ended--;
            settle_one(node, i);
        }
    }
}

/* MP-5-21 */
void fb_link_misbehaved(fb_node *node, uint32_t index, uint32_t points)
{
    fb_link *link = fb_links_get(node, index);
    if (!is_live(link)) return;
    const fb_timing *timing = &node->options.timing;
    link->points += points;
    fb_links_touch(node, index);
    if (link->points < timing->misbehaviour_budget) return;
    uint64_t who = link->host; /* a peer without a name yet goes by its host */
    if (!fb_id_is_zero(link->info.peer)) {
        who = fb_links_hash_peer(fb_space_id(node, link->info.space), link->info.peer);
    }
    fb_links_shut_out(node, who, timing->redial_max_ns);
    fb_link_close(node, index, FB_ERR_LINK_MISBEHAVED);
}

/* The deadline of a handshake, of a pending link, of a hello. */
void fb_links_life(fb_node *node, uint32_t index)
{
    fb_link *link = fb_links_get(node, index);
    if (!is_live(link)) return;
    if (link->info.external) {
        /* What was shown may have been lost: both ends begin anew. */
        fb_external_restart(node, index, FB_ERR_LINK_PENDING);
        return;
    }
    bool pending = link->info.state == FB_LINK_PENDING || link->shown;
    fb_link_close(node, index, pending ? FB_ERR_LINK_PENDING : FB_ERR_DEADLINE);
}

/* A pending link carries at most FB_PENDING_BYTES_MAX, a proven one so much in each period. */
/* MP-7-12 */
static fb_status count_pending(fb_node *node, uint32_t index, size_t len)
{
    fb_link *link = fb_links_get(node, index);
    if (link->up || link->local_ok) return FB_OK;
    if (link->info.dialled && link->kept) return FB_OK;
    if (len > FB_PENDING_BYTES_MAX - link->pending_bytes) return FB_ERR_LINK_PENDING;
    link->pending_bytes += (uint32_t)len;
    fb_links_touch(node, index);
    return FB_OK;
}

static fb_status deliver(fb_node *node, uint32_t index, const fb_channel *ops, fb_span frame)
{
    if (ops == NULL || ops->frame == NULL) return FB_ERR_LINK_RECORD;
    fb_status status = ops->frame(node, index, frame);
    if (status == FB_ERR_BUSY) return status;
    if (status != FB_OK) fb_link_misbehaved(node, index, 1);
    return FB_OK;
}

fb_status fb_links_frame(fb_node *node, uint32_t index, fb_channel_id channel, fb_span frame,
                         uint64_t number)
{
    fb_links *links = node->links;
    fb_link *link = &links->table[index];
    link->info.heard_ns = node->mono_ns;
    const fb_channel *ops = node->channels[channel];
    if (!link->up) FB_TRY(count_pending(node, index, frame.len));
    if (channel == FB_CHANNEL_CONTROL) {
        if (frame.len == 0) return FB_ERR_LINK_RECORD;
        uint8_t type = frame.p[0];
        ops = type < FB_CONTROL_TYPES ? node->controls[type] : NULL;
        if (ops == NULL || ops->frame == NULL) return fb_control_frame(node, index, frame, number);
        if (!link->up && early_type(type)) {
            if (!link->shown && link->info.external) return FB_OK; /* will be said again */
            return deliver(node, index, ops, frame);
        }
    }
    if (!link->up) {
        /* Whoever sends frames of the space holds the link open; while it is not approved here,
         * nothing of them is looked at. */
        fb_links_peer_ok(node, index);
        if (!link->up) {
            if (!link->info.external) fb_link_misbehaved(node, index, 1);
            return FB_OK;
        }
    }
    return deliver(node, index, ops, frame);
}
