/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/workload/director.h"

#include <stdio.h>

#include "protocol/base/cursor.h"
#include "protocol/base/limits.h"
#include "protocol/database/state.h"
#include "sim/checkers/checks.h"
#include "sim/checkers/oracle.h"
#include "sim/documents/documents.h"
#include "sim/schedule/player.h"
#include "sim/schedule/recorder.h"
#include "sim/view/timeline.h"
#include "sim/weather/weather.h"
#include "sim/workload/let_in.h"
#include "sim/workload/routes.h"
#include "sim/workload/setup.h"
#include "sim/workload/workload.h"
#include "sim/world/world.h"

#define MS       UINT64_C(1000000)
#define SECOND   UINT64_C(1000000000)
#define POLL_NS  (250 * MS)
#define SETUP_NS (300 * SECOND)
/* Disk, network and the poll itself, each far below this in good weather. */
#define MARGIN_NS (1 * SECOND)
/* After a heal nothing may take longer, whatever a call, a stream or a carrier is said to wait for:
 * several deadlines of calls one after the other. */
#define HEAL_MAX_NS (300 * SECOND)
/* A schedule in which members report later than this is not about reports. */
#define REPORTS_OFF_NS UINT64_C(3600000000000)

void fb_sim_director_init(fb_sim_world *world, fb_arena *arena)
{
    fb_sim_director *director = fb_arena_take(arena, 1, sizeof *director);
    size_t each = (size_t)FB_SIM_SPACES * world->config.nodes;
    fb_sim_asked *asked = fb_arena_take(arena, each, sizeof *asked);
    size_t pairs = each * world->config.nodes;
    uint64_t *bound = fb_arena_take(arena, pairs, sizeof *bound);
    uint8_t *reached = fb_arena_take(arena, world->config.nodes, 1);
    if (arena->base == NULL) return;
    world->director = director;
    director->asked = asked;
    director->bound = bound;
    director->reached = reached;
}

void fb_sim_director_start(fb_sim_world *world)
{
    fb_sim_paths_renew(world);
    fb_sim_schedule_world(world, world->now_ns, FB_SIM_AT_SCRIPT, 0, 0);
}

static void phase_begin(fb_sim_world *world, fb_sim_phase phase, uint64_t length_ns)
{
    fb_sim_director *d = world->director;
    if (phase == FB_SIM_PHASE_HEAL) {
        d->healed_ns = world->now_ns;
        d->joins = false;
        for (uint32_t s = 0; s < FB_SIM_SPACES; s++) {
            d->spaces[s].rescue_len = d->spaces[s].rescuer = 0;
        }
        d->caught_ns = d->admitted_ns = 0;
    }
    d->phase = phase;
    d->phase_since_ns = world->now_ns;
    d->phase_until_ns = fb_add_sat_u64(world->now_ns, length_ns);
    d->polls = 0;
    if (world->timeline != NULL) fb_sim_timeline_phase(world);
}

/* A link that was being opened in the bad weather runs into its deadline, its address has its
 * longest pause, then there is a link. (One that only looks open is silent for a shorter time.) Who
 * was shut out (profile 5, profile 7) may knock once more just before that is over. */
uint64_t fb_sim_linked_by_ns(const fb_sim_world *world)
{
    const fb_sim_director *d = world->director;
    const fb_timing *t = &world->config.timing;
    uint64_t by = d->healed_ns + fb_max_u64(t->handshake_ns, t->silent_ns) + t->redial_max_ns;
    if (d->shut_ns != 0) by = fb_max_u64(by, d->shut_ns + 2 * t->redial_max_ns);
    if (d->stranger_ns != 0) {
        by = fb_max_u64(by, d->stranger_ns + 2 * t->pending_ns + t->redial_max_ns);
    }
    /* A pending link has to end first, and its address to be forgiven. */
    if (d->joins) by = fb_max_u64(by, d->healed_ns + 3 * t->pending_ns + t->redial_max_ns);
    if (world->config.documents != 0) by += FB_SIM_DOCUMENTS_HEAL_NS;
    return by + MARGIN_NS;
}

static bool is_in_core(const fb_sim_world *world, uint32_t space, uint32_t node)
{
    return !world->held_apart[node] && fb_sim_is_member(world, space, node);
}

/* True when links of the space lead from each of its members in the core to each. */
static bool core_is_linked(const fb_sim_world *world, uint32_t space)
{
    const fb_sim_director *d = world->director;
    uint32_t nodes = world->config.nodes, first = 0;
    const uint64_t *bound = &d->bound[(size_t)space * nodes * nodes];
    while (first < nodes && !is_in_core(world, space, first)) first++;
    memset(d->reached, 0, nodes);
    if (first < nodes) d->reached[first] = 1;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < nodes; i++) {
            if (d->reached[i] != 1) continue;
            d->reached[i] = 2; /* its neighbours were looked at */
            for (uint32_t j = 0; j < nodes; j++) {
                if (d->reached[j] != 0 || !is_in_core(world, space, j)) continue;
                if (bound[i * nodes + j] == 0 || bound[j * nodes + i] == 0) continue;
                d->reached[j] = 1;
                more = true;
            }
        }
    }
    for (uint32_t i = 0; i < nodes; i++) {
        if (d->reached[i] == 0 && is_in_core(world, space, i)) return false;
    }
    return true;
}

static bool all_are_linked(const fb_sim_world *world)
{
    for (uint32_t s = 0; s < fb_sim_space_count(world); s++) {
        if (!core_is_linked(world, s)) return false;
    }
    return true;
}

/* From the last change of a link or of a life: a heartbeat shows the difference to a neighbour, the
 * next one to the neighbour's, one more pause before it is told onward. A call whose frames a
 * carrier lost or mixed up runs into its deadline first (profile 7). */
uint64_t fb_sim_agreed_by_ns(const fb_sim_world *world)
{
    const fb_sim_director *d = world->director;
    const fb_timing *t = &world->config.timing;
    uint64_t since = fb_max_u64(d->healed_ns, d->stirred_ns);
    uint64_t linked_by = fb_sim_linked_by_ns(world);
    since = all_are_linked(world) ? fb_min_u64(since, linked_by) : linked_by;
    /* A stream that waits for bytes which never come shows it by its silence. */
    uint64_t hung = world->network.hung_ns;
    if (hung != 0) since = fb_max_u64(since, hung + t->silent_ns + t->heartbeat_ns);
    uint64_t lost = world->network.disturbed_ns;
    if (lost != 0) since = fb_max_u64(since, lost + t->call_ns);
    /* All that was ever written may be on its way to an empty disk: while it comes, it comes. */
    if (d->behind) since = fb_max_u64(since, d->caught_ns);
    /* What goes on disturbing is no excuse for ever. */
    since = fb_min_u64(since, d->healed_ns + HEAL_MAX_NS);
    /* What a server of documents was not told in time is told again after a pause. */
    if (world->config.documents != 0) since += FB_SIM_DOCUMENTS_HEAL_NS;
    uint64_t hops = world->config.degree == 0 ? 1 : 6;
    /* Then everybody says what it holds, hears what the others say, folds, and compares. */
    uint64_t reports = t->report_ns > REPORTS_OFF_NS
                           ? 0
                           : t->report_ns + t->report_ns / 4 + (hops + 6) * t->onward_ns;
    return since + hops * t->onward_ns + t->heartbeat_ns + reports + MARGIN_NS;
}

static uint64_t *bound_of(const fb_sim_world *world, uint32_t space, uint32_t from, uint32_t to)
{
    size_t nodes = world->config.nodes;
    return &world->director->bound[(space * nodes + from) * nodes + to];
}

void fb_sim_director_fact(fb_sim_world *world, uint32_t node, const fb_effect *fact)
{
    fb_sim_director *d = world->director;
    uint32_t nodes = world->config.nodes;
    if (fact->a == FB_FACT_BATCH) {
        if (!world->held_apart[node]) d->caught_ns = world->now_ns;
        return;
    }
    if (fact->a == FB_FACT_LINK_BOUND && fact->len >= 32) {
        fb_id peer, space;
        memcpy(space.b, fb_effect_bytes(fact), sizeof space.b);
        memcpy(peer.b, fb_effect_bytes(fact) + 16, sizeof peer.b);
        uint32_t to = fb_sim_node_of(world, peer);
        uint32_t s = fb_sim_space_of(world, space);
        if (to != UINT32_MAX && s < FB_SIM_SPACES) *bound_of(world, s, node, to) = fact->b;
    }
    if (fact->a == FB_FACT_LINK_ENDED) {
        for (uint32_t i = 0; i < FB_SIM_SPACES * nodes; i++) {
            uint64_t *bound = bound_of(world, i / nodes, node, i % nodes);
            if (*bound == fact->b) *bound = 0;
        }
        if (fact->c == FB_ERR_LINK_MISBEHAVED) d->shut_ns = world->now_ns;
        if (fact->c == FB_ERR_LINK_PENDING) d->stranger_ns = world->now_ns;
    }
    if (!world->held_apart[node]) d->stirred_ns = world->now_ns;
}

void fb_sim_director_restored(fb_sim_world *world)
{
    world->director->behind = true;
}

void fb_sim_director_over(fb_sim_world *world, uint32_t node)
{
    for (uint32_t s = 0; s < FB_SIM_SPACES; s++) {
        memset(bound_of(world, s, node, 0), 0, world->config.nodes * sizeof(uint64_t));
    }
}

/* Asking. */

fb_sim_asked *fb_sim_asked_of(const fb_sim_world *world, uint32_t space, uint32_t node)
{
    return &world->director->asked[(size_t)space * world->config.nodes + node];
}

void fb_sim_ask(fb_sim_world *world, uint32_t space, uint32_t node, fb_verb verb, fb_span arguments)
{
    fb_sim_asked *asked = fb_sim_asked_of(world, space, node);
    asked->answered = false;
    asked->request = world->requests + 1;
    fb_sim_request(world, node, verb, 0, arguments);
}

/* Order of areas and of vector entries is local: a sum over them is not. */
static uint64_t areas_sum(fb_span answer)
{
    fb_reader r = fb_reader_of(answer);
    uint64_t sum = 0;
    uint16_t count = fb_read_u16(&r);
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        size_t start = r.at;
        fb_read_bytes(&r, 16 + 1);
        fb_read_span16(&r);
        size_t end = r.at;
        fb_read_bytes(&r, 16);
        end = ORACLE(VECTORS_ALONE, r.at, end);
        uint64_t area = fb_xxh64(answer.p + start, r.failed ? 0 : end - start, 0);
        uint32_t entries = fb_read_u32(&r);
        if (entries == FB_AREA_TOO_LARGE) entries = 0;
        for (uint32_t k = 0; k < entries && !r.failed; k++) {
            fb_span entry = fb_read_bytes(&r, 16 + 8 + 8 + 8);
            if (!r.failed) area += fb_xxh64(entry.p, entry.len, 1);
        }
        sum += fb_xxh64(&area, 0, area);
    }
    return sum;
}

bool fb_sim_director_reply(fb_sim_world *world, uint32_t node, const fb_effect *reply)
{
    fb_sim_asked *asked = fb_sim_asked_of(world, 0, node);
    for (uint32_t s = 1; s < FB_SIM_SPACES && asked->request != reply->a; s++) {
        asked = fb_sim_asked_of(world, s, node);
    }
    if (asked->request == 0 || asked->request != reply->a) return false;
    asked->answered = reply->c == 0;
    asked->status = (uint32_t)reply->b;
    asked->len = reply->len < sizeof asked->bytes ? reply->len : (uint32_t)sizeof asked->bytes;
    memcpy(asked->bytes, fb_effect_bytes(reply), asked->len);
    if (world->director->phase == FB_SIM_PHASE_HEAL) {
        asked->areas_sum = areas_sum(fb_span_of(fb_effect_bytes(reply), reply->len));
    }
    return true;
}

static void setup(fb_sim_world *world)
{
    fb_sim_director *d = world->director;
    uint32_t nodes = world->config.nodes;
    if (d->polls == 1) {
        for (uint32_t i = 0; i < nodes; i++) fb_sim_boot(world, i);
        phase_begin(world, FB_SIM_PHASE_SETUP, SETUP_NS + nodes * 10 * SECOND);
        d->polls = 2;
    }
    for (uint32_t i = 0; i < nodes; i++) {
        if (!world->nodes[i].running) return;
    }
    while (d->setting_up < fb_sim_space_count(world)) {
        if (!fb_sim_setup_space(world, d->setting_up)) return;
        d->setting_up++;
    }
    fb_sim_routes_draw(world);
    phase_begin(world, FB_SIM_PHASE_HEAL, FB_NEVER);
}

/* Rounds. */

static void round_begin(fb_sim_world *world)
{
    fb_sim_director *d = world->director;
    d->round = world->player != NULL ? fb_sim_player_round(world) : d->round + 1;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        world->held_apart[i] = false;
        world->nodes[i].held_down = false;
    }
    uint64_t length =
        world->player != NULL
            ? fb_sim_player_length_ns(world)
            : fb_sim_between(world->seed, FB_SIM_STREAM_RUN, 1, d->round, 5, 40) * SECOND;
    phase_begin(world, FB_SIM_PHASE_CHAOS, length);
    if (world->recorder != NULL) fb_sim_recorder_round(world);
    world->traitor = UINT32_MAX;
    if (world->config.faults) {
        fb_sim_weather_draw(world, d->round, world->now_ns, world->now_ns + length);
    }
    fb_sim_paths_renew(world);
    fb_sim_workload_start(world, d->round);
    fb_sim_round_line(world);
}

/* All nodes three times in four; else a random core of two or more, and the rest out of reach. */
static void core_choose(fb_sim_world *world)
{
    const fb_sim_director *d = world->director;
    uint32_t nodes = world->config.nodes;
    if (world->player != NULL) {
        fb_sim_player_core(world);
        return;
    }
    bool all = !world->config.faults || world->config.degree != 0 || nodes < 3 ||
               fb_draw_below(world->seed, FB_SIM_STREAM_HEAL, 0, d->round, 4) != 0;
    for (uint32_t i = 0; i < nodes; i++) all = all || world->nodes[i].forgot;
    /* Who is out is let in by an admin, who may be anybody. */
    all = all || d->outs;
    /* Who is in doubt believes those who may write, and so is left with one of them. */
    all = all || fb_sim_has_reader(world);
    uint64_t mask = fb_draw(world->seed, FB_SIM_STREAM_HEAL, 1, d->round) |
                    UINT64_C(3) << (d->round % (nodes - 1 ? nodes - 1 : 1));
    for (uint32_t i = 0; i < nodes && !all; i++) world->held_apart[i] = (mask >> (i % 64) & 1) == 0;
}

/* One admin suffices. In the first space the weather changes roles, but not of two nodes in four;
 * in the second one every fourth node is none, unless it made the space. */
bool fb_sim_stays_admin(const fb_sim_world *world, uint32_t space, uint32_t node)
{
    if (space == 0) return node % 4 < 2;
    return fb_sim_is_member(world, space, node) &&
           (node % 4 != 3 || node == fb_sim_creator(world, space));
}

static bool forgot(const fb_sim_world *world, uint32_t space, uint32_t node)
{
    return (world->nodes[node].rejoins >> space & 1) != 0;
}

static bool nobody_knows(const fb_sim_world *world, uint32_t space)
{
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        if (fb_sim_stays_admin(world, space, i) && !forgot(world, space, i)) return false;
    }
    return true;
}

static void heal(fb_sim_world *world)
{
    uint32_t nodes = world->config.nodes;
    fb_sim_workload_stop(world);
    /* Who is to lose a disk loses it now: who joins again may need any member of the core. */
    fb_sim_weather_end(world, FB_SIM_FAULT_FORGET);
    core_choose(world);
    if (world->recorder != NULL) fb_sim_recorder_heal(world);
    fb_sim_weather_clear(world);
    for (uint32_t i = 0; i < nodes; i++) {
        if (world->nodes[i].core == NULL && !world->nodes[i].booting) fb_sim_boot(world, i);
    }
    phase_begin(world, FB_SIM_PHASE_HEAL, FB_NEVER);
    for (uint32_t i = 0; i < nodes; i++) {
        bool joins = world->nodes[i].forgot && !world->held_apart[i];
        world->director->joins = world->director->joins || joins;
    }
    for (uint32_t s = 0; s < fb_sim_space_count(world); s++) {
        if (!nobody_knows(world, s)) continue;
        /* What nobody has, nobody can give back. */
        world->stall = "nobody-knows-the-space";
        world->stop = true;
    }
}

/* The creator lost its store once: an admin who still knows the space invites whoever has to join.
 * True while that one is asked for nothing else. */
static bool rescue(fb_sim_world *world, uint32_t s, uint32_t node)
{
    const fb_sim_director *d = world->director;
    fb_sim_gate *gate = &world->director->spaces[s];
    const fb_sim_asked *asked = fb_sim_asked_of(world, s, node);
    if (gate->rescuer == node + 1) {
        if (asked->answered && asked->status == FB_OK) {
            memcpy(gate->rescue, asked->bytes, asked->len);
            gate->rescue_len = asked->len;
        }
        gate->rescuer = 0;
        return false;
    }
    if (!gate->invite_void || !d->joins || gate->rescue_len != 0 || gate->rescuer != 0 ||
        !fb_sim_stays_admin(world, s, node) || forgot(world, s, node) ||
        !world->nodes[node].running) {
        return false;
    }
    gate->rescuer = node + 1;
    fb_sim_ask_invite(world, s, node);
    return true;
}

static void ask_areas_of(fb_sim_world *world, uint32_t s, uint32_t i)
{
    const fb_sim_gate *gate = &world->director->spaces[s];
    fb_sim_asked *asked = fb_sim_asked_of(world, s, i);
    fb_sim_node *node = &world->nodes[i];
    if (forgot(world, s, i) && asked->request != 0 && node->incarnation == asked->incarnation) {
        if (!asked->answered) return; /* it joins */
        if (asked->joining && asked->status == FB_OK) node->rejoins &= (uint8_t) ~(1u << s);
        node->forgot = node->rejoins != 0;
    }
    if (rescue(world, s, i)) return;
    asked->request = 0;
    asked->answered = false;
    asked->joining = false;
    if (forgot(world, s, i) && gate->invite_void && gate->rescue_len == 0) return;
    if (world->held_apart[i] || !node->running) return;
    asked->incarnation = node->incarnation;
    if (forgot(world, s, i)) {
        asked->joining = true;
        fb_sim_ask_join(world, s, i);
        return;
    }
    uint8_t bytes[18];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    fb_write_id(&w, world->spaces[s]);
    fb_write_u16(&w, 64);
    fb_sim_ask(world, s, i, FB_VERB_AREAS, fb_writer_span(&w));
}

static void ask_areas(fb_sim_world *world)
{
    for (uint32_t s = 0; s < fb_sim_space_count(world); s++) {
        for (uint32_t i = 0; i < world->config.nodes && !world->stop; i++) {
            if (fb_sim_is_member(world, s, i)) ask_areas_of(world, s, i);
        }
    }
}

/* Of a core that has no member of a space nothing is asked. */
static bool same_areas(fb_sim_world *world)
{
    for (uint32_t s = 0; s < fb_sim_space_count(world); s++) {
        const fb_sim_asked *first = NULL;
        for (uint32_t i = 0; i < world->config.nodes; i++) {
            if (!is_in_core(world, s, i)) continue;
            const fb_sim_asked *asked = fb_sim_asked_of(world, s, i);
            if (asked->request == 0 || !asked->answered || asked->status != FB_OK) return false;
            if (forgot(world, s, i)) return false;
            if (first == NULL) first = asked;
            if (asked->areas_sum != first->areas_sum) return false;
        }
        if (s == 0 && first == NULL) return false;
    }
    return true;
}

/* What a node still has to do about reports and folding, NULL: nothing. */
static const char *unsettled(const fb_node *core)
{
    const struct fb_database *db = core->database;
    for (uint32_t i = 0; i < core->options.sizes.spaces; i++) {
        const fb_space_areas *s = &db->spaces[i];
        if (s->reporting || fb_timer_is_set(&s->report)) return "has a report to write";
        if (s->cutting || fb_timer_is_set(&s->cut)) return "works out the cut";
    }
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        const fb_area *a = &db->areas[i];
        if (!a->used) continue;
        if (fb_timer_is_set(&a->compare) || db->compare->used) return "is in doubt";
        if (a->folding || fb_timer_is_set(&a->fold)) return "folds";
    }
    return NULL;
}

/* What members report and fold after changes is done (DESIGN 3.1, Stable cut). */
static bool has_settled(const fb_sim_world *world)
{
    if (!world->config.reference || world->config.timing.report_ns > REPORTS_OFF_NS) return true;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        if (world->held_apart[i] || !world->nodes[i].running) continue;
        if (unsettled(world->nodes[i].core) != NULL) return false;
    }
    return true;
}

/* In the quiet, each node of the core is asked for every record once. */
static void ask_records(fb_sim_world *world)
{
    fb_sim_director *d = world->director;
    if (d->polls < 2 || d->polls - 2 >= FB_SIM_RECORDS || world->config.nodes > 16) return;
    if (!world->config.reference) return;
    d->record = d->polls - 2;
    uint8_t bytes[64];
    fb_writer w = fb_writer_of(bytes, sizeof bytes);
    uint32_t s = fb_sim_space_of_record(world, d->record);
    fb_write_id(&w, world->spaces[s]);
    fb_write_u8(&w, 1);
    fb_write_span16(&w, fb_span_text(fb_sim_collection));
    fb_write_id(&w, fb_sim_record_id(world, d->record));
    for (uint32_t i = 0; i < world->config.nodes && !world->stop; i++) {
        if (!is_in_core(world, s, i) || !world->nodes[i].running) continue;
        fb_sim_ask(world, s, i, FB_VERB_RECORD_GET, fb_writer_span(&w));
    }
}

bool fb_sim_director_asked_record(const fb_sim_world *world, uint32_t node, uint64_t request,
                                  uint32_t *record)
{
    const fb_sim_director *d = world->director;
    uint32_t s = fb_sim_space_of_record(world, d->record);
    if (d->phase != FB_SIM_PHASE_QUIET || fb_sim_asked_of(world, s, node)->request != request)
        return false;
    *record = d->record;
    return true;
}

static void stall_text(const fb_sim_world *world, char *out, size_t cap)
{
    size_t used = 0;
    uint32_t nodes = world->config.nodes;
    for (uint32_t k = 0; k < fb_sim_space_count(world) * nodes && used + 32 < cap; k++) {
        uint32_t s = k / nodes, i = k % nodes;
        if (!fb_sim_is_member(world, s, i)) continue;
        const fb_sim_asked *asked = fb_sim_asked_of(world, s, i);
        const char *what = world->held_apart[i]       ? "apart"
                           : !world->nodes[i].running ? "not running"
                           : !asked->answered         ? "does not answer"
                           : asked->status != FB_OK   ? fb_error_name((fb_error)asked->status)
                           : world->config.reference  ? unsettled(world->nodes[i].core)
                                                      : NULL;
        const char *space = s == 0 ? "" : "2:";
        int n = what != NULL
                    ? snprintf(out + used, cap - used, " %s%s %s", space, fb_sim_name(i), what)
                    : snprintf(out + used, cap - used, " %s%s %08x", space, fb_sim_name(i),
                               (unsigned)(asked->areas_sum & 0xffffffff));
        if (n > 0) used += (size_t)n;
    }
}

/* All that was on its way has come: nothing of what a liar said is left, nobody is behind. */
static void liars_forgiven(fb_sim_world *world)
{
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        if (world->held_apart[i]) return;
    }
    world->director->behind = world->director->outs = false;
    memset(world->liars, 0, world->config.nodes * sizeof *world->liars);
    for (uint32_t i = 0; i < world->config.nodes; i++) world->nodes[i].provider.took = false;
}

/* Links that open late give again what an earlier one left (profile 6); what was told onward waits
 * for a heartbeat and a pause. Then there are heartbeats alone, for the longest pause of anything
 * that repeats. */
static void quiet_begin(fb_sim_world *world)
{
    fb_sim_director *d = world->director;
    const fb_timing *t = &world->config.timing;
    uint64_t from = fb_max_u64(world->now_ns, fb_sim_linked_by_ns(world));
    d->quiet_ns = from + t->heartbeat_ns + t->onward_ns + MARGIN_NS;
    uint64_t length = d->quiet_ns + 2 * t->resend_max_ns - world->now_ns;
    /* A schedule may say how long it is. */
    if (world->player != NULL && fb_sim_player_quiet_ns(world) != FB_SIM_DIRECTOR_QUIET_NS) {
        length = fb_sim_player_quiet_ns(world);
    }
    phase_begin(world, FB_SIM_PHASE_QUIET, length);
}

static bool over(const fb_sim_world *world)
{
    if (world->player != NULL) return fb_sim_player_is_over(world);
    return world->now_ns >= world->config.duration_ns;
}

/* A run ends with its last step, wherever that falls. So that something is said of the whole
 * before, one round is healed early when seven of eight are used up. What a paused process has to
 * do stands in the queue behind its pause: nobody could be healed before that. */
static bool heals_early(const fb_sim_world *world)
{
    uint64_t events = world->config.events;
    bool late = world->steps >= events - events / 8 && !world->director->healed_early;
    if (world->player != NULL || (!late && !over(world))) return false;
    for (uint32_t i = 0; i < world->config.nodes; i++) {
        if (world->nodes[i].paused_until_ns > world->now_ns) return false;
    }
    world->director->healed_early = true;
    return true;
}

void fb_sim_at_script(fb_sim_world *world)
{
    fb_sim_director *d = world->director;
    char text[256] = "";
    d->polls++;
    if (d->phase != FB_SIM_PHASE_SETUP && d->phase != FB_SIM_PHASE_BENCH) fb_sim_routes_open(world);
    switch (d->phase) {
    case FB_SIM_PHASE_SETUP:
        setup(world);
        if (d->phase == FB_SIM_PHASE_SETUP && world->now_ns > d->phase_until_ns) {
            fb_sim_violated(world, FB_SIM_LIVENESS, "setup", "not done: %s", d->setup_stage);
        }
        break;
    case FB_SIM_PHASE_CHAOS:
        if (world->now_ns >= d->phase_until_ns || heals_early(world)) heal(world);
        break;
    case FB_SIM_PHASE_HEAL:
        if (d->polls > 1 && same_areas(world) && !fb_sim_documents_wait(world) &&
            has_settled(world)) {
            quiet_begin(world);
            break;
        }
        if (world->now_ns > fb_sim_agreed_by_ns(world)) {
            stall_text(world, text, sizeof text);
            fb_sim_violated(
                world, FB_SIM_LIVENESS, "converges", "no agreement %llu s after the heal:%s",
                (unsigned long long)((world->now_ns - d->phase_since_ns) / SECOND), text);
            break;
        }
        fb_sim_let_in(world);
        if (!world->stop) ask_areas(world);
        break;
    case FB_SIM_PHASE_QUIET:
        if (world->now_ns < d->phase_until_ns) {
            if (d->round != 0) ask_records(world);
            break;
        }
        fb_sim_checks_round(world);
        liars_forgiven(world);
        if (world->stop) break;
        if (d->bench) {
            phase_begin(world, FB_SIM_PHASE_BENCH, FB_NEVER - world->now_ns);
        } else if (over(world)) {
            d->phase = FB_SIM_PHASE_DONE;
            world->stop = true;
        } else {
            round_begin(world);
        }
        break;
    case FB_SIM_PHASE_BENCH:
    case FB_SIM_PHASE_DONE:
        return;
    }
    if (!world->stop) {
        fb_sim_schedule_world(world, world->now_ns + POLL_NS, FB_SIM_AT_SCRIPT, 0, 0);
    }
}
