/* SPDX-License-Identifier: Apache-2.0 */
/* Listens to the steps of a run and writes the vectors' lines. */
#include <stdio.h>
#include <stdlib.h>

#include "protocol/base/cursor.h"
#include "protocol/core/internal.h"
#include "protocol/link/link.h"
#include "protocol/messaging/state.h"
#include "sim/vectors/vectors.h"
#include "sim/view/record.h"

#define NONE UINT32_MAX

static void close_line(fb_sim_vector *v)
{
    fb_sim_text_add(&v->text, "}\n", 2);
}

/* ---- Vectors and links ---- */

static fb_sim_vector *vector_of(fb_sim_export *x, uint32_t self, uint32_t peer, fb_id space,
                                uint32_t local)
{
    uint32_t serial = 0;
    for (uint32_t i = 0; i < x->vector_count; i++) {
        fb_sim_vector *v = &x->vectors[i];
        if (v->self != self || v->peer != peer || !fb_id_equal(v->space, space)) continue;
        if (!v->over) return v;
        serial = v->serial + 1;
    }
    x->vectors = fb_sim_grow(x->vectors, x->vector_count, &x->vector_cap, sizeof x->vector_cap,
                             sizeof *x->vectors);
    fb_sim_vector *v = &x->vectors[x->vector_count++];
    *v = (fb_sim_vector){
        .self = self, .peer = peer, .space = space, .local = local, .serial = serial};
    /* A second one goes on from what the store holds at its beginning. */
    fb_sim_line_header(x, v, serial == 0 ? NULL : &x->world->nodes[self].store);
    fb_sim_line_do(x, v, "start");
    fb_sim_text_format(&v->text, ",\"incarnation\":\"%016llx\",\"lost\":[]}\n",
                       (unsigned long long)x->world->nodes[self].core->incarnation);
    return v;
}

static fb_sim_vector_link *link_find(fb_sim_vector_node *own, uint64_t number)
{
    for (uint32_t i = 0; i < own->link_count; i++) {
        if (own->links[i].number == number && own->links[i].up) return &own->links[i];
    }
    return NULL;
}

static void link_down(fb_sim_export *x, fb_sim_vector_link *link)
{
    fb_sim_vector *v = &x->vectors[link->vector];
    link->up = false;
    if (v->over) return;
    fb_sim_line_do(x, v, "link_down");
    fb_sim_text_format(&v->text, ",\"link\":%u", (unsigned)link->ordinal);
    close_line(v);
}

/* Something was not seen: nothing more can be said of this node before it starts anew. */
static void blind(fb_sim_export *x)
{
    x->node[x->stepping].blind = true;
    for (uint32_t i = 0; i < x->vector_count; i++) {
        if (x->vectors[i].self == x->stepping) x->vectors[i].over = true;
    }
}

/* The session that is up on this link now; NULL when there is none, or not to another node. */
static fb_sim_vector_link *link_up(fb_sim_export *x, uint64_t number)
{
    fb_sim_vector_node *own = &x->node[x->stepping];
    fb_sim_vector_link *known = link_find(own, number);
    if (known != NULL) return known;
    if (own->blind) return NULL;
    fb_node *core = x->world->nodes[x->stepping].core;
    uint32_t index = fb_sim_link_index(core, number);
    if (index == FB_NONE || !core->messaging->channel[index].up) return NULL;
    fb_id space;
    uint32_t local;
    const fb_link_info *info = fb_sim_link_info(core, index, &space, &local);
    uint32_t peer = fb_sim_node_of(x->world, info->peer);
    if (peer == NONE || peer == x->stepping) return NULL;
    fb_sim_vector *v = vector_of(x, x->stepping, peer, space, local);
    uint32_t at = 0;
    while (at < own->link_count && own->links[at].up) at++;
    if (at == own->link_count) {
        own->links = fb_sim_grow(own->links, own->link_count, &own->link_cap, sizeof own->link_cap,
                                 sizeof *own->links);
        own->link_count++;
    }
    fb_sim_vector_link *link = &own->links[at];
    *link = (fb_sim_vector_link){.number = number,
                                 .session = info->session,
                                 .vector = (uint32_t)(v - x->vectors),
                                 .ordinal = ++v->links,
                                 .external = info->external,
                                 .up = true,
                                 .offset_known = info->offset_known,
                                 .offset_us = info->clock_offset_us};
    fb_sim_line_do(x, v, "link_up");
    fb_sim_text_format(&v->text, ",\"link\":%u,\"carrier\":\"%s\"", (unsigned)link->ordinal,
                       link->external ? "external" : "stream");
    close_line(v);
    return link;
}

/* ---- What came in ---- */

typedef struct turn {
    fb_sim_export *x;
    fb_sim_vector_node *own;
    uint64_t link; /* of the event; 0: none */
    uint32_t next; /* frame to look at */
    bool reset;    /* the floor was set back for the next message */
} turn;

static void say_offset(fb_sim_export *x, fb_sim_vector *v, fb_sim_vector_link *link)
{
    if (link->offset_known == link->offset_said && link->offset_us == link->offset_said_us) return;
    if (!link->offset_known) return;
    link->offset_said = true;
    link->offset_said_us = link->offset_us;
    fb_sim_line_do(x, v, "clock_offset");
    fb_sim_text_format(&v->text, ",\"link\":%u,\"offset_us\":\"%lld\"", (unsigned)link->ordinal,
                       (long long)link->offset_us);
    close_line(v);
}

/* The clock offset as a heartbeat of this step left it. */
static void heard_beat(fb_sim_export *x, fb_sim_vector_link *link)
{
    const fb_node *core = x->world->nodes[x->stepping].core;
    uint32_t index = fb_sim_link_index(core, link->number);
    if (index == FB_NONE) return;
    fb_id space;
    uint32_t local;
    const fb_link_info *info = fb_sim_link_info(core, index, &space, &local);
    link->offset_known = info->offset_known;
    link->offset_us = info->clock_offset_us;
}

static void message_line(turn *t, fb_sim_vector_link *link, uint64_t number, fb_span envelope)
{
    fb_sim_vector *v = &t->x->vectors[link->vector];
    say_offset(t->x, v, link);
    fb_sim_line_do(t->x, v, "deliver");
    fb_sim_text_format(&v->text, ",\"link\":%u,\"number\":%llu,\"envelope\":\"",
                       (unsigned)link->ordinal, (unsigned long long)number);
    fb_sim_text_hex(&v->text, envelope);
    fb_sim_text_format(&v->text, "\",\"verdict\":");
}

/* Takes the frames that came on this link until one is the next message in turn, and true. What
 * has no outcome of its own is written on the way. */
static bool next_message(turn *t, fb_sim_vector_link *link, fb_span *envelope)
{
    fb_sim_export *x = t->x;
    fb_sim_vector *v = &x->vectors[link->vector];
    for (; t->next < x->frame_count; t->next++) {
        const fb_sim_vector_frame *frame = &x->frames[t->next];
        if (!frame->opened) continue;
        if (frame->external && frame->peer_session != link->session) continue;
        if (frame->heartbeat) {
            heard_beat(x, link);
            continue;
        }
        fb_reader r = fb_reader_of(fb_sim_frame_bytes(x, frame));
        uint8_t type = fb_read_u8(&r);
        uint64_t number = fb_read_u64(&r);
        if (r.failed) continue;
        if (type == FB_FRAME_ACK) {
            if (!fb_reader_done(&r) || v->over) continue;
            fb_sim_line_do(x, v, "ack");
            fb_sim_text_format(&v->text, ",\"link\":%u,\"number\":%llu", (unsigned)link->ordinal,
                               (unsigned long long)number);
            close_line(v);
            continue;
        }
        if (type != FB_FRAME_MESSAGE) continue;
        *envelope = fb_read_bytes(&r, fb_reader_left(&r));
        if (number == link->received + 1) return true;
        if (!link->external || v->over || number == 0) continue;
        message_line(t, link, number, *envelope);
        fb_sim_text_format(&v->text, "\"none\"");
        close_line(v);
    }
    return false;
}

static void remember(fb_sim_vector *v, fb_id id, uint64_t timestamp)
{
    v->accepted = fb_sim_grow(v->accepted, v->accepted_count, &v->accepted_cap,
                              sizeof v->accepted_cap, sizeof *v->accepted);
    v->accepted[v->accepted_count++] = (fb_sim_accepted){id, timestamp};
}

static void verdict(turn *t, const fb_effect *fact)
{
    fb_sim_vector_link *link = link_up(t->x, fact->b);
    if (link == NULL || fact->b != t->link) return;
    fb_sim_vector *v = &t->x->vectors[link->vector];
    fb_span envelope;
    uint64_t number = link->received + 1;
    if (fact->a == FB_FACT_DELIVERED && fact->c != number) {
        /* Frames out of their turn are skipped by a sound core; a planted bug may take one. The
         * export says what happened, and whoever checks the vector will see it. */
        link->received = fact->c - 1;
        number = fact->c;
    }
    if (!next_message(t, link, &envelope)) {
        blind(t->x);
        return;
    }
    t->next++;
    link->received = number;
    if (v->over) return;
    message_line(t, link, number, envelope);
    v->delivered++;
    if (fact->a == FB_FACT_DELIVERED) {
        fb_sim_text_format(&v->text, "\"accept\"");
        fb_id id;
        memcpy(id.b, fb_effect_bytes(fact) + 32, 16);
        remember(v, id, fb_load_be64(fb_effect_bytes(fact) + 48));
    } else {
        fb_sim_text_format(&v->text, "\"refuse\",\"reason\":\"%s\"",
                           fb_error_name((fb_status)fact->c));
    }
    if (t->reset) fb_sim_text_format(&v->text, ",\"floor_reset\":true");
    t->reset = false;
    close_line(v);
}

/* Frames behind the last that was judged: acknowledgements as a rule. Those that are next in turn
 * were not taken, and come again. */
static void rest_of_frames(turn *t)
{
    fb_sim_vector_link *link = t->link == 0 ? NULL : link_up(t->x, t->link);
    fb_span envelope;
    if (link == NULL) return;
    while (next_message(t, link, &envelope)) t->next++;
}

/* ---- What goes out ---- */

static void sent(fb_sim_export *x, const fb_effect *fact)
{
    fb_sim_vector_link *link = link_up(x, fact->b);
    if (link == NULL) return;
    fb_sim_vector *v = &x->vectors[link->vector];
    bool ack = fact->a == FB_FACT_ACKED;
    for (uint32_t i = 0; i < x->frame_count; i++) {
        fb_sim_vector_frame *frame = &x->frames[i];
        if (frame->opened || frame->used || frame->external != link->external) continue;
        if (frame->external && frame->session != link->session) continue;
        fb_reader r = fb_reader_of(fb_sim_frame_bytes(x, frame));
        uint8_t type = fb_read_u8(&r);
        uint64_t number = fb_read_u64(&r);
        if (r.failed || type != (ack ? FB_FRAME_ACK : FB_FRAME_MESSAGE)) continue;
        if (number != fact->c) continue;
        frame->used = true;
        if (v->over) return;
        fb_sim_line_out(x, v, ack ? "ack" : "send", link);
        fb_sim_text_format(&v->text, ",\"number\":%llu", (unsigned long long)number);
        if (!ack) {
            v->sent++;
            fb_sim_text_format(&v->text, ",\"envelope\":\"");
            fb_sim_text_hex(&v->text, fb_read_bytes(&r, fb_reader_left(&r)));
            fb_sim_text_format(&v->text, "\"");
        }
        close_line(v);
        return;
    }
}

/* A message that will never be delivered. */
static void dropped(fb_sim_export *x, const fb_effect *fact)
{
    fb_id space, peer, id;
    memcpy(space.b, fb_effect_bytes(fact), 16);
    memcpy(peer.b, fb_effect_bytes(fact) + 16, 16);
    memcpy(id.b, fb_effect_bytes(fact) + 32, 16);
    uint32_t node = fb_sim_node_of(x->world, peer);
    for (uint32_t i = 0; i < x->vector_count; i++) {
        fb_sim_vector *v = &x->vectors[i];
        if (v->over || v->self != x->stepping || v->peer != node) continue;
        if (!fb_id_equal(v->space, space)) continue;
        fb_sim_line_out(x, v, "drop", NULL);
        fb_sim_text_format(&v->text, ",\"id\":\"");
        fb_sim_text_uuid(&v->text, id);
        fb_sim_text_format(&v->text, "\",\"reason\":\"%s\"", fb_error_name((fb_status)fact->b));
        close_line(v);
    }
}

/* ---- One step ---- */

static void facts(turn *t, const fb_effects *effects)
{
    fb_sim_export *x = t->x;
    bool rest = false;
    for (const fb_effect *fx = fb_effects_next(effects, NULL); fx != NULL;
         fx = fb_effects_next(effects, fx)) {
        if (fx->kind != FB_FX_OBSERVE) continue;
        switch ((fb_fact)fx->a) {
        case FB_FACT_LINK_ENDED: {
            fb_sim_vector_link *link = link_find(t->own, fx->b);
            if (link == NULL) break;
            /* What was opened came before the end. */
            if (fx->b == t->link) rest_of_frames(t);
            link_down(x, link);
            break;
        }
        case FB_FACT_FLOOR:
            t->reset = t->reset || fx->c != 0;
            break;
        case FB_FACT_DELIVERED:
        case FB_FACT_REFUSED:
            verdict(t, fx);
            break;
        case FB_FACT_SEALED:
            fb_sim_vectors_sealed(x, fx->b);
            break;
        case FB_FACT_BATCH:
            fb_sim_vectors_batch(x, fx);
            break;
        case FB_FACT_WRITTEN: {
            fb_id area;
            memcpy(area.b, fb_effect_bytes(fx), 16);
            fb_sim_vectors_published(x, area);
            break;
        }
        case FB_FACT_DROPPED:
            dropped(x, fx);
            break;
        case FB_FACT_SENT:
        case FB_FACT_RESENT:
        case FB_FACT_ACKED:
            if (!rest) rest_of_frames(t);
            rest = true;
            sent(x, fx);
            break;
        default:
            break;
        }
    }
    if (!rest) rest_of_frames(t);
}

static void links_now(fb_sim_export *x)
{
    fb_sim_vector_node *own = &x->node[x->stepping];
    fb_node *core = x->world->nodes[x->stepping].core;
    for (uint32_t i = 0; i < own->link_count; i++) {
        fb_sim_vector_link *link = &own->links[i];
        if (!link->up) continue;
        uint32_t index = fb_sim_link_index(core, link->number);
        fb_id space;
        uint32_t local;
        bool same = index != FB_NONE && core->messaging->channel[index].up &&
                    fb_sim_link_info(core, index, &space, &local)->session == link->session;
        if (!same) {
            link_down(x, link);
        } else {
            heard_beat(x, link);
        }
    }
    for (uint32_t i = 0; i < core->messaging->up_count; i++) {
        fb_id space;
        uint32_t local;
        uint32_t index = core->messaging->up_links[i];
        (void)link_up(x, fb_sim_link_info(core, index, &space, &local)->number);
    }
}

static void heard(void *user, const fb_sim_world *world, uint32_t node, const fb_event *event,
                  const fb_effects *effects, fb_hash128 digest)
{
    fb_sim_export *x = user;
    (void)digest;
    if ((x->nodes >> node & 1) == 0) return;
    x->stepping = node;
    fb_sim_vector_node *own = &x->node[node];
    turn t = {.x = x, .own = own};
    if (world->liars[node] && !own->lies) {
        /* What leaves it is no longer what its core said. */
        blind(x);
        own->lies = true;
    }
    if (own->lies) {
        x->frame_count = 0;
        x->bytes.len = 0;
        return;
    }
    if (event->kind == FB_EV_START) fb_sim_vectors_started(x, event->a);
    if (event->kind == FB_EV_WRITE_DONE && event->c == FB_OK &&
        event->a == world->nodes[node].incarnation) {
        fb_sim_vectors_durable(x, event->b);
    }
    if (event->kind == FB_EV_LINK_BYTES || event->kind == FB_EV_CARRIER_FRAME) t.link = event->a;
    if (event->kind == FB_EV_CARRIER_FRAME) {
        fb_sim_frame_external(x, true, fb_span_of(event->bytes, event->len));
    }
    for (const fb_effect *fx = fb_effects_next(effects, NULL); fx != NULL;
         fx = fb_effects_next(effects, fx)) {
        if (fx->kind != FB_FX_FRAME) continue;
        fb_sim_frame_external(x, false, fb_span_of(fb_effect_bytes(fx), fx->len));
    }
    facts(&t, effects);
    links_now(x);
    uint64_t dropped = world->nodes[node].core->counters[FB_COUNTER_FACTS_DROPPED];
    if (dropped != own->facts_dropped) blind(x);
    own->facts_dropped = dropped;
    x->frame_count = 0;
    x->bytes.len = 0;
}

fb_sim_export *fb_sim_export_create(fb_sim_world *world, const char *source, uint64_t nodes)
{
    fb_sim_export *x = calloc(1, sizeof *x);
    fb_sim_vector_node *node = calloc(world->config.nodes, sizeof *node);
    if (x == NULL || node == NULL) fb_sim_fail_resource("memory of this machine");
    *x = (fb_sim_export){.world = world, .source = source, .nodes = nodes, .node = node};
    for (uint32_t i = 0; i < world->config.nodes && i < 64; i++) {
        if ((nodes >> i & 1) == 0) continue;
        world->nodes[i].provider.read = fb_sim_frame_record;
        world->nodes[i].provider.reader = x;
    }
    world->record->heard = heard;
    world->record->user = x;
    return x;
}

void fb_sim_export_end(fb_sim_export *x)
{
    for (uint32_t i = 0; i < x->vector_count; i++) {
        fb_sim_vector *v = &x->vectors[i];
        const fb_sim_node *node = &x->world->nodes[v->self];
        if (v->over || node->core == NULL || node->needs_start) continue;
        fb_sim_line_do(x, v, "tick");
        close_line(v);
    }
}

void fb_sim_export_destroy(fb_sim_export *x)
{
    for (uint32_t i = 0; i < x->world->config.nodes; i++) {
        free(x->node[i].links);
        free(x->node[i].batches);
        free(x->node[i].parts.bytes);
    }
    for (uint32_t i = 0; i < x->vector_count; i++) {
        free(x->vectors[i].text.bytes);
        free(x->vectors[i].accepted);
        free(x->vectors[i].sealed);
    }
    free(x->vectors);
    free(x->node);
    free(x->frames);
    free(x->bytes.bytes);
    free(x);
}
