/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/step/session.h"

#include "sim/view/timeline.h"
#include "sim/world/world.h"

#define SNAPSHOTS_MAX  256u
#define SNAPSHOT_BYTES (UINT64_C(512) << 20)

bool fb_sim_session_init(fb_sim_session *session, fb_sim_world *world)
{
    *session = (fb_sim_session){.world = world};
    if (!fb_sim_shelf_init(&session->shelf, SNAPSHOTS_MAX, SNAPSHOT_BYTES)) return false;
    fb_sim_shelf_take(&session->shelf, world, 0);
    return true;
}

void fb_sim_session_free(fb_sim_session *session)
{
    fb_sim_shelf_free(&session->shelf);
}

static void decision_note(fb_sim_world *world, const fb_sim_decision *decision)
{
    fb_sim_record_note_add(world, (fb_sim_note){.step = world->steps,
                                                .time_ns = world->now_ns,
                                                .a = decision->kind,
                                                .record = UINT32_MAX,
                                                .node = FB_SIM_NOBODY,
                                                .peer = FB_SIM_NOBODY,
                                                .kind = FB_SIM_NOTE_DECISION});
}

bool fb_sim_session_turn(fb_sim_session *session)
{
    fb_sim_world *world = session->world;
    for (uint32_t i = 0; i < session->decision_count; i++) {
        if (session->decisions[i].turn != session->turn) continue;
        decision_note(world, &session->decisions[i]);
        (void)fb_sim_decide(world, &session->decisions[i]);
    }
    if (session->over || !fb_sim_world_next(world)) {
        fb_sim_record_verdict(world);
        session->over = true;
        if (world->steps > session->furthest) session->furthest = world->steps;
        return false;
    }
    session->turn++;
    if (world->steps > session->furthest) session->furthest = world->steps;
    return true;
}

static void restore(fb_sim_session *session, const fb_sim_snapshot *snapshot)
{
    fb_sim_shelf_restore(snapshot, session->world);
    session->turn = snapshot->turn;
    session->over = false;
}

/* A snapshot here, unless one lies within `apart` steps before. */
static void maybe_keep(fb_sim_session *session, uint64_t apart)
{
    const fb_sim_snapshot *before = fb_sim_shelf_before_turn(&session->shelf, session->turn);
    if (before == NULL || session->world->steps - before->step >= apart) {
        fb_sim_shelf_take(&session->shelf, session->world, session->turn);
    }
}

/* Farther apart where the way behind and the way ahead are long. */
static uint64_t apart_for(uint64_t done, uint64_t left)
{
    uint64_t apart = (done < left ? done : left) / 64;
    return apart < FB_SIM_DENSE_STEPS ? FB_SIM_DENSE_STEPS : apart;
}

static void run_to(fb_sim_session *session, uint64_t step)
{
    const fb_sim_world *world = session->world;
    while (world->steps < step && fb_sim_session_turn(session)) {
        if ((session->turn & 255) == 0)
            maybe_keep(session, apart_for(world->steps, step - world->steps));
    }
}

/* Whoever arrives may want to go back a little: the last stretch lies dense. */
static void settle(fb_sim_session *session)
{
    fb_sim_shelf *shelf = &session->shelf;
    uint64_t turn = session->turn;
    uint64_t reach = FB_SIM_DENSE_STEPS * FB_SIM_DENSE;
    uint64_t here = session->world->steps;
    bool over = session->over;
    const fb_sim_snapshot *last = fb_sim_shelf_before_turn(shelf, turn);
    if (last == NULL || here - last->step <= 2 * FB_SIM_DENSE_STEPS) return;
    const fb_sim_snapshot *from = fb_sim_shelf_before(shelf, here > reach ? here - reach : 0);
    if (from == NULL) return;
    restore(session, from);
    while (session->turn < turn && fb_sim_session_turn(session)) {
        if ((session->turn & 63) == 0) maybe_keep(session, FB_SIM_DENSE_STEPS);
    }
    /* The turn that ends the run does not count. */
    if (over) fb_sim_session_turn(session);
}

void fb_sim_session_forward(fb_sim_session *session, uint64_t step)
{
    run_to(session, step);
    settle(session);
}

void fb_sim_session_to_turn(fb_sim_session *session, uint64_t turn)
{
    if (turn < session->turn || session->over) {
        const fb_sim_snapshot *from = fb_sim_shelf_before_turn(&session->shelf, turn);
        restore(session, from);
    }
    while (session->turn < turn && fb_sim_session_turn(session)) {
        if ((session->turn & 63) == 0) maybe_keep(session, FB_SIM_DENSE_STEPS);
    }
}

void fb_sim_session_to(fb_sim_session *session, uint64_t step)
{
    const fb_sim_world *world = session->world;
    if (step == world->steps) return;
    if (step > world->steps) {
        run_to(session, step);
        settle(session);
        /* A turn may have led beyond it. */
        if (world->steps <= step) return;
    }
    /* The turn that leads beyond it is known, or has to be found. */
    const fb_sim_moment *beyond = fb_sim_record_moment(world->record, step + 1);
    if (beyond == NULL) {
        restore(session, fb_sim_shelf_before(&session->shelf, step));
        while (world->steps <= step && fb_sim_session_turn(session)) {
        }
        beyond = fb_sim_record_moment(world->record, step + 1);
        if (beyond == NULL) return;
    }
    uint64_t began = beyond->turn_began;
    restore(session, fb_sim_shelf_before(&session->shelf, began));
    while (world->steps < began && fb_sim_session_turn(session)) {
        if ((session->turn & 63) == 0) maybe_keep(session, FB_SIM_DENSE_STEPS);
    }
}

void fb_sim_session_to_time(fb_sim_session *session, uint64_t ns)
{
    const fb_sim_world *world = session->world;
    if (ns < world->now_ns) {
        const fb_sim_snapshot *from = &session->shelf.snapshots[0];
        for (uint32_t i = 0; i < session->shelf.count; i++) {
            if (session->shelf.snapshots[i].time_ns < ns) from = &session->shelf.snapshots[i];
        }
        restore(session, from);
    }
    while (world->now_ns < ns && fb_sim_session_turn(session)) {
        if ((session->turn & 255) == 0) maybe_keep(session, apart_for(world->steps, UINT64_MAX));
    }
    settle(session);
}

bool fb_sim_session_until(fb_sim_session *session, bool (*asked)(void *user, fb_sim_world *world),
                          void *user)
{
    const fb_sim_world *world = session->world;
    bool found = false;
    while (!found) {
        uint64_t before = world->steps;
        bool goes_on = fb_sim_session_turn(session);
        found = world->steps != before && asked(user, session->world);
        if (!goes_on) break;
        if ((session->turn & 255) == 0) maybe_keep(session, apart_for(world->steps, UINT64_MAX));
    }
    settle(session);
    return found;
}

const char *fb_sim_session_decide(fb_sim_session *session, fb_sim_decision decision)
{
    if (session->over) return "the run is over: go back first";
    if (session->decision_count == FB_SIM_DECISIONS_MAX) return "too many changes by hand";
    /* Tried here, then taken back: it happens with the next turn, and whenever that is played. */
    fb_sim_shelf_forget(&session->shelf, session->turn);
    fb_sim_shelf_take(&session->shelf, session->world, session->turn);
    const fb_sim_snapshot *here = fb_sim_shelf_before_turn(&session->shelf, session->turn);
    decision.turn = session->turn;
    const char *wrong = fb_sim_decide(session->world, &decision);
    restore(session, here);
    if (wrong != NULL) return wrong;
    uint32_t kept = 0;
    while (kept < session->decision_count && session->decisions[kept].turn <= session->turn) kept++;
    session->decisions[kept] = decision;
    session->decision_count = kept + 1;
    session->furthest = session->world->steps;
    return NULL;
}

bool fb_sim_session_undo(fb_sim_session *session)
{
    if (session->decision_count == 0) return false;
    uint64_t turn = session->decisions[session->decision_count - 1].turn;
    if (turn > session->turn) turn = session->turn;
    session->decision_count--;
    fb_sim_shelf_forget(&session->shelf, turn);
    fb_sim_session_to_turn(session, turn);
    return true;
}

/* What last changed something. */

typedef struct watch {
    uint64_t (*text)(void *user, fb_sim_world *world);
    void *user;
    uint32_t node;
    uint64_t last;
    uint64_t changed; /* step */
    bool known;
} watch;

static void look(void *user, fb_sim_world *world, uint32_t node)
{
    watch *w = user;
    if (node != w->node) return;
    uint64_t now = w->text(w->user, world);
    if (w->known && now != w->last) w->changed = world->steps;
    w->last = now;
    w->known = true;
}

uint64_t fb_sim_session_changed(fb_sim_session *session, uint32_t node,
                                uint64_t (*text)(void *user, fb_sim_world *world), void *user)
{
    fb_sim_world *world = session->world;
    uint64_t turn = session->turn, end = turn;
    bool over = session->over;
    watch w = {.text = text, .user = user, .node = node};
    while (end != 0 && w.changed == 0) {
        const fb_sim_snapshot *from = fb_sim_shelf_before_turn(&session->shelf, end - 1);
        uint64_t began = from->turn;
        restore(session, from);
        w.last = text(user, world);
        w.known = true;
        world->record->stepped = look;
        world->record->user = &w;
        while (session->turn < end && fb_sim_session_turn(session)) {
        }
        if (over && end == turn) fb_sim_session_turn(session);
        world->record->stepped = NULL;
        end = began;
    }
    fb_sim_session_to_turn(session, turn);
    if (over) fb_sim_session_turn(session);
    return w.changed;
}
