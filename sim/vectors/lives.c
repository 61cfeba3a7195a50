/* SPDX-License-Identifier: Apache-2.0 */
/* What the disk and the applications of a node did, and its starts, in the vectors of all its
 * peers. */
#include <stdlib.h>

#include "protocol/database/state.h"
#include "protocol/space/table.h"
#include "sim/vectors/vectors.h"

/* A vector is of one space: areas of another one are not announced on its links. */
static bool is_of(const fb_sim_export *x, const fb_sim_vector *v, fb_id id)
{
    const fb_node *core = x->world->nodes[x->stepping].core;
    for (uint32_t i = 0; i < core->options.sizes.areas; i++) {
        const fb_area *area = &core->database->areas[i];
        if (!area->used || !fb_id_equal(area->id, id)) continue;
        return fb_id_equal(core->spaces->space[area->space].id, v->space);
    }
    return true;
}

void fb_sim_vectors_published(fb_sim_export *x, fb_id area)
{
    for (uint32_t i = 0; i < x->vector_count; i++) {
        fb_sim_vector *v = &x->vectors[i];
        if (v->self != x->stepping || v->over || !is_of(x, v, area)) continue;
        fb_sim_line_do(x, v, "publish");
        fb_sim_text_format(&v->text, ",\"object_id\":\"");
        fb_sim_text_uuid(&v->text, area);
        fb_sim_text_format(&v->text, "\"}\n");
    }
}

void fb_sim_vectors_sealed(fb_sim_export *x, uint64_t w)
{
    for (uint32_t i = 0; i < x->vector_count; i++) {
        fb_sim_vector *v = &x->vectors[i];
        if (v->self != x->stepping || v->over) continue;
        uint64_t told = v->sealed_count == 0 ? v->durable : v->sealed[v->sealed_count - 1].accepted;
        if (v->accepted_count == told) continue;
        v->sealed = fb_sim_grow(v->sealed, v->sealed_count, &v->sealed_cap, sizeof v->sealed_cap,
                                sizeof *v->sealed);
        v->sealed[v->sealed_count++] = (fb_sim_sealed){w, v->accepted_count};
    }
}

void fb_sim_vectors_durable(fb_sim_export *x, uint64_t w)
{
    fb_sim_vector_node *own = &x->node[x->stepping];
    for (uint32_t i = 0; i < x->vector_count; i++) {
        fb_sim_vector *v = &x->vectors[i];
        if (v->self != x->stepping || v->over) continue;
        uint64_t done = 0;
        while (done < v->sealed_count && v->sealed[done].w <= w) done++;
        if (done != 0) {
            v->durable = v->sealed[done - 1].accepted;
            v->sealed_count -= done;
            memmove(v->sealed, v->sealed + done, (size_t)v->sealed_count * sizeof *v->sealed);
            fb_sim_line_do(x, v, "durable");
            fb_sim_text_format(&v->text, ",\"accepted\":%llu", (unsigned long long)v->durable);
            fb_sim_text_add(&v->text, "}\n", 2);
        }
        for (uint32_t k = 0; k < own->batch_count; k++) {
            if (own->batches[k].w > w || !is_of(x, v, own->batches[k].area)) continue;
            fb_sim_line_do(x, v, "durable");
            fb_sim_text_format(&v->text, ",\"object_id\":\"");
            fb_sim_text_uuid(&v->text, own->batches[k].area);
            fb_sim_text_format(&v->text, "\",\"batch\":%llu",
                               (unsigned long long)own->batches[k].number);
            fb_sim_text_add(&v->text, "}\n", 2);
        }
    }
    uint32_t kept = 0;
    for (uint32_t k = 0; k < own->batch_count; k++) {
        if (own->batches[k].w > w) own->batches[kept++] = own->batches[k];
    }
    own->batch_count = kept;
}

void fb_sim_vectors_batch(fb_sim_export *x, const fb_effect *fact)
{
    fb_sim_vector_node *own = &x->node[x->stepping];
    fb_id area, node;
    memcpy(area.b, fb_effect_bytes(fact), 16);
    memcpy(node.b, fb_effect_bytes(fact) + 16, 16);
    if (!fb_id_equal(node, x->world->nodes[x->stepping].id)) return;
    own->batches = fb_sim_grow(own->batches, own->batch_count, &own->batch_cap,
                               sizeof own->batch_cap, sizeof *own->batches);
    own->batches[own->batch_count++] = (fb_sim_vector_batch){fact->b, fact->c, area};
}

/* ---- Starts ---- */

typedef struct kept {
    fb_sim_vector *vector;
    bool *found; /* of those accepted and not known to be durable */
} kept;

static void in_store(void *user, fb_id id, uint64_t timestamp)
{
    const kept *k = user;
    const fb_sim_vector *v = k->vector;
    (void)timestamp;
    for (uint64_t i = v->durable; i < v->accepted_count; i++) {
        if (fb_id_equal(v->accepted[i].id, id)) k->found[i - v->durable] = true;
    }
}

static void started_vector(fb_sim_export *x, fb_sim_vector *v, uint64_t incarnation)
{
    const fb_sim_node *node = &x->world->nodes[v->self];
    uint64_t waiting = v->accepted_count - v->durable;
    kept k = {v, calloc((size_t)waiting + 1, sizeof *k.found)};
    if (k.found == NULL) fb_sim_fail_resource("memory of this machine");
    (void)fb_sim_seen_in_store(&node->store, v->local, x->world->nodes[v->peer].id, &k, in_store);
    fb_sim_line_do(x, v, "start");
    fb_sim_text_format(&v->text, ",\"incarnation\":\"%016llx\",\"lost\":[",
                       (unsigned long long)incarnation);
    uint64_t left = v->durable;
    const char *comma = "";
    for (uint64_t i = 0; i < waiting; i++) {
        fb_sim_accepted a = v->accepted[v->durable + i];
        if (k.found[i]) {
            v->accepted[left++] = a;
            continue;
        }
        fb_sim_text_format(&v->text, "%s\"", comma);
        fb_sim_text_uuid(&v->text, a.id);
        fb_sim_text_format(&v->text, "\"");
        comma = ",";
    }
    fb_sim_text_format(&v->text, "]}\n");
    free(k.found);
    v->accepted_count = v->durable = left;
    v->sealed_count = 0;
}

void fb_sim_vectors_started(fb_sim_export *x, uint64_t incarnation)
{
    fb_sim_node *node = &x->world->nodes[x->stepping];
    fb_sim_vector_node *own = &x->node[x->stepping];
    own->batch_count = 0;
    own->facts_dropped = 0;
    for (uint32_t i = 0; i < own->link_count; i++) own->links[i].up = false;
    bool replaced = own->blind || own->replaced != node->replaced;
    own->replaced = node->replaced;
    own->blind = false;
    for (uint32_t i = 0; i < x->vector_count; i++) {
        fb_sim_vector *v = &x->vectors[i];
        if (v->self != x->stepping || v->over) continue;
        if (replaced) {
            v->over = true; /* the next one begins with what the store holds */
        } else {
            started_vector(x, v, incarnation);
        }
    }
}
