/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers about the node itself: health, status, peers. */
#include <stdio.h>
#include <unistd.h>

#include "io/clock.h"
#include "io/net/address.h"
#include "protocol/base/cursor.h"
#include "runtime/api/handlers.h"
#include "runtime/api/held_back.h"
#include "runtime/api/request_codec.h"

static const fb_api_node *node_of(fb_exchange *x)
{
    return fb_api_options_of(x->api)->node;
}

static fb_loop_stats stats_of(fb_exchange *x)
{
    fb_loop_stats stats;
    fb_loop_stats_get(fb_api_options_of(x->api)->loop, &stats);
    return stats;
}

void fb_get_livez(fb_exchange *x)
{
    fb_text_put(&x->out, "{\"status\":\"ok\"}");
    fb_exchange_answer(x, 200);
}

/* The last call to the document store failed, or another process has it. */
static bool documents_failed(const fb_lmdb_stats *store)
{
    const fb_worker_stats *documents = &store->documents;
    return store->has_documents && (documents->locked || documents->why[0] != 0);
}

void fb_get_readyz(fb_exchange *x)
{
    fb_loop_stats stats = stats_of(x);
    fb_text failed = {0};
    fb_text_put(&failed, "[");
    if (!stats.started) {
        fb_json_element(&failed);
        fb_text_put(&failed, "\"store\"");
    } else if (!stats.running) {
        fb_json_element(&failed);
        fb_text_put(&failed, "\"loading\"");
    }
    if (stats.read_only) {
        fb_json_element(&failed);
        fb_text_put(&failed, "\"store_writes\"");
    }
    bool documents_wait = documents_failed(&stats.store);
    if (documents_wait) {
        fb_json_element(&failed);
        fb_text_put(&failed, "\"document_store\"");
    }
    fb_text_put(&failed, "]");
    bool ready = stats.running && !stats.read_only && !documents_wait;
    fb_json_open(&x->out, NULL, '{');
    fb_json_member(&x->out, "status", ready ? "ok" : "failed");
    fb_json_raw(&x->out, "failed", fb_span_of(failed.p, failed.len));
    fb_json_close(&x->out, '}');
    fb_text_free(&failed);
    fb_exchange_answer(x, ready ? 200 : 503);
}

/* Status: what the process knows, then the spaces and the peers as the node tells them. */

static void aside_show(void *user, const char *name)
{
    fb_text *out = user;
    fb_json_element(out);
    fb_json_string(out, fb_span_text(name));
}

static void status_outer(fb_text *out, const fb_worker_stats *documents,
                         const fb_import_stats *import)
{
    static const char *const watches[] = {"none", "stream", "scan"};
    fb_json_member(out, "watch", watches[documents->watch]);
    fb_json_member(out, "watch_error", documents->watch_why);
    fb_json_number(out, "scans", (int64_t)documents->scans);
    fb_json_number(out, "noticed", (int64_t)documents->outers);
    fb_json_number(out, "under_way", (int64_t)documents->outers_open);
    fb_json_number(out, "imported", (int64_t)import->imported);
    fb_json_number(out, "overwritten", (int64_t)(import->overwritten + documents->overwritten));
    fb_json_number(out, "left_alone", (int64_t)import->left);
    fb_json_number(out, "lost", (int64_t)import->lost);
    fb_json_number(out, "late", (int64_t)documents->late);
    fb_json_number(out, "made_again", (int64_t)documents->remade);
    fb_json_number(out, "not_proven", (int64_t)documents->not_equal);
}

static void status_documents(fb_text *out, const fb_lmdb_stats *store,
                             const fb_import_stats *import)
{
    const fb_worker_stats *documents = &store->documents;
    if (!store->has_documents) return;
    fb_json_open(out, "documents", '{');
    fb_json_member(out, "kind", "mongodb");
    fb_json_member(out, "state",
                   documents->locked        ? "taken_over"
                   : documents->why[0] != 0 ? "unreachable"
                   : !documents->fenced     ? "not_used_yet"
                                            : "ok");
    fb_json_member(out, "error", documents->why);
    fb_json_number(out, "waiting", (int64_t)documents->waiting);
    fb_json_number(out, "kept", (int64_t)documents->documents);
    fb_json_number(out, "too_large", (int64_t)documents->too_large);
    fb_json_number(out, "refused", (int64_t)documents->refused);
    fb_json_number(out, "retries", (int64_t)documents->retries);
    status_outer(out, documents, import);
    fb_json_close(out, '}');
}

static void status_store(fb_exchange *x, const fb_lmdb_stats *store, const fb_import_stats *import)
{
    fb_text *out = &x->out;
    const fb_api_node *node = node_of(x);
    const fb_lmdb_opening *opening = &node->opening;
    fb_json_open(out, "store", '{');
    fb_json_member(out, "kind", "local");
    char path[FB_HOME_PATH_MAX];
    fb_home_file(node->home, "store", path);
    fb_json_member(out, "path", path);
    fb_json_member(out, "found",
                   node->store_lost                          ? "lost"
                   : opening->found == FB_LMDB_FOUND_DAMAGED ? "damaged"
                   : opening->found == FB_LMDB_FOUND_NOTHING ? "nothing"
                                                             : "sound");
    if (opening->found == FB_LMDB_FOUND_DAMAGED) {
        fb_json_member(out, "damage", opening->damage);
        fb_json_member(out, "moved_to", opening->aside);
    }
    fb_json_open(out, "aside", '[');
    fb_home_aside(node->home, aside_show, out);
    fb_json_close(out, ']');
    fb_json_number(out, "used_bytes", (int64_t)store->used_bytes);
    fb_json_number(out, "map_bytes", (int64_t)store->map_bytes);
    fb_json_number(out, "entries", (int64_t)store->entries);
    fb_json_number(out, "reads", (int64_t)store->reads);
    fb_json_number(out, "write_sets", (int64_t)store->write_sets);
    fb_json_number(out, "commits", (int64_t)store->commits);
    fb_json_number(out, "failures", (int64_t)store->failures);
    fb_json_number(out, "damaged", (int64_t)(store->damaged + opening->entries_damaged));
    status_documents(out, store, import);
    fb_json_close(out, '}');
}

static void status_head(fb_exchange *x)
{
    const fb_api_node *node = node_of(x);
    fb_loop_stats stats = stats_of(x);
    fb_text *out = &x->out;
    fb_json_open(out, NULL, '{');
    fb_json_hex(out, "node_id", node->keys->node_id.b, sizeof node->keys->node_id.b);
    fb_json_hex(out, "public_key", node->keys->public_key.b, sizeof node->keys->public_key.b);
    fb_json_member(out, "fingerprint", node->keys->fingerprint);
    fb_json_member(out, "version", node->version);
    fb_json_number(out, "uptime_ms",
                   (int64_t)((fb_clock_mono_ns() - node->started_mono_ns) / 1000000));
    fb_json_time(out, "started", node->started_wall_us);
    fb_json_number(out, "pid", getpid());
    fb_json_member(out, "home", node->home->path);
    fb_json_member(out, "listen", node->listen);
    fb_json_member(out, "state",
                   !stats.started    ? "restarting"
                   : !stats.running  ? "loading"
                   : stats.read_only ? "read_only"
                                     : "running");
    fb_json_hex_u64(out, "incarnation", stats.incarnation);
    fb_json_number(out, "starts", (int64_t)stats.starts);
    fb_json_error(out, "last_error", stats.last_end);
    fb_json_number(out, "memory_bytes", (int64_t)fb_process_resident_bytes());
    fb_json_number(out, "state_reserved_bytes", (int64_t)stats.node_bytes);
    fb_json_number(out, "links", stats.carrier.links);
    status_store(x, &stats.store, &stats.import);
    fb_json_open(out, "counters", '{');
    for (size_t i = 0; i < FB_COUNTERS; i++) {
        fb_json_number(out, fb_counter_name((fb_counter)i), (int64_t)stats.counters[i]);
    }
    fb_json_close(out, '}');
}

static void status_end(fb_exchange *x)
{
    fb_json_close(&x->out, '}');
    fb_exchange_answer(x, 200);
}

static void status_peers(fb_exchange *x, fb_error error, fb_span answer)
{
    fb_reader r = fb_reader_of(answer);
    fb_json_name(&x->out, "peers");
    if (error != FB_OK) fb_text_put(&x->out, "[]");
    if (error == FB_OK && !fb_json_peers(&x->out, &r, fb_clock_mono_ns())) {
        fb_exchange_fail(x, FB_ERR_EVENT_MALFORMED, NULL);
        return;
    }
    status_end(x);
}

static void status_spaces(fb_exchange *x)
{
    const fb_held_back *held = x->held_back;
    fb_reader r = fb_reader_of(fb_span_of(held->listed.p, held->listed.len));
    fb_json_name(&x->out, "spaces");
    if (held->listed.len == 0) fb_text_put(&x->out, "[]");
    if (held->listed.len != 0 && !fb_json_spaces(&x->out, &r, held)) {
        fb_exchange_fail(x, FB_ERR_EVENT_MALFORMED, NULL);
        return;
    }
    fb_exchange_ask(x, FB_VERB_PEER_LIST, 0, (fb_span){NULL, 0}, status_peers);
}

void fb_get_status(fb_exchange *x)
{
    status_head(x);
    if (stats_of(x).running) {
        fb_held_back_ask(x, status_spaces);
        return;
    }
    fb_json_raw(&x->out, "spaces", fb_span_text("[]"));
    fb_json_raw(&x->out, "peers", fb_span_text("[]"));
    status_end(x);
}

static void peers_messages(fb_exchange *x, fb_error error, fb_span answer)
{
    fb_reader r = fb_reader_of(answer);
    bool any = error == FB_OK && answer.len > 3;
    if (any) fb_json_name(&x->out, "messages");
    if (any && !fb_json_peer_messages(&x->out, &r)) {
        fb_exchange_fail(x, FB_ERR_EVENT_MALFORMED, NULL);
        return;
    }
    fb_json_close(&x->out, '}');
    fb_exchange_answer(x, 200);
}

static void peers_listed(fb_exchange *x, fb_error error, fb_span answer)
{
    fb_reader r = fb_reader_of(answer);
    fb_json_open(&x->out, NULL, '{');
    fb_json_name(&x->out, "peers");
    if (error != FB_OK) {
        fb_exchange_fail(x, error, NULL);
    } else if (!fb_json_peers(&x->out, &r, fb_clock_mono_ns())) {
        fb_exchange_fail(x, FB_ERR_EVENT_MALFORMED, NULL);
    } else {
        fb_exchange_ask(x, FB_VERB_PEER_MESSAGES, 0, (fb_span){NULL, 0}, peers_messages);
    }
}

void fb_get_peers(fb_exchange *x)
{
    fb_exchange_ask(x, FB_VERB_PEER_LIST, 0, (fb_span){NULL, 0}, peers_listed);
}

/* Adding or forgetting an address, in one space or in all: the rows of the list still to be done
 * are in x->scratch, the address is args[1]. */

static void peer_next(fb_exchange *x);

static void peer_done(fb_exchange *x, fb_error error, fb_span answer)
{
    (void)answer;
    if (error != FB_OK && error != FB_ERR_NOT_FOUND) {
        fb_exchange_fail(x, error, NULL);
        return;
    }
    x->done += error == FB_OK;
    x->count++;
    peer_next(x);
}

static void peer_next(fb_exchange *x)
{
    if (x->count * 16 >= x->scratch.len && x->done == 0) {
        fb_exchange_fail(x, FB_ERR_NOT_FOUND, "no space has this address");
        return;
    }
    if (x->count * 16 >= x->scratch.len) {
        fb_json_open(&x->out, NULL, '{');
        fb_json_member(&x->out, "address", x->args[1]);
        fb_json_number(&x->out, "spaces", x->done);
        fb_json_close(&x->out, '}');
        fb_exchange_answer(x, 200);
        return;
    }
    uint8_t room[16 + 2 + FB_ADDRESS_BYTES_MAX];
    fb_writer w = fb_writer_of(room, sizeof room);
    fb_write_bytes(&w, x->scratch.p + (size_t)x->count * 16, 16);
    fb_write_span16(&w, fb_span_text(x->args[1]));
    fb_exchange_ask(x, x->created ? FB_VERB_PEER_ADD : FB_VERB_PEER_FORGET, 0, fb_writer_span(&w),
                    peer_done);
}

static void peer_spaces(fb_exchange *x, fb_error error, fb_span answer)
{
    fb_reader r = fb_reader_of(answer);
    uint16_t count = fb_read_u16(&r);
    bool found = false;
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_space_row row = fb_space_row_next(&r);
        if (x->args[0] != NULL && !fb_id_equal(row.space, x->space)) continue;
        found = true;
        fb_text_bytes(&x->scratch, row.space.b, sizeof row.space.b);
    }
    if (error != FB_OK) {
        fb_exchange_fail(x, error, NULL);
    } else if (!found) {
        fb_exchange_fail(x, FB_ERR_NOT_FOUND, "this node is in no such space yet");
    } else {
        peer_next(x);
    }
}

static void peer_in_space(fb_exchange *x)
{
    fb_exchange_ask(x, FB_VERB_SPACE_LIST, 0, (fb_span){NULL, 0}, peer_spaces);
}

static void peer_change(fb_exchange *x, bool add)
{
    fb_json_object_in body;
    const char *address, *space;
    fb_address parsed;
    x->created = add;
    if (!fb_exchange_body(x, &body, "address space")) return;
    if (!fb_exchange_body_option(x, &body, "address", &address) ||
        !fb_exchange_body_option(x, &body, "space", &space)) {
        /* answered */
    } else if (address == NULL || fb_address_parse(fb_span_text(address), &parsed) != FB_OK ||
               parsed.host[0] == 0) {
        fb_exchange_fail(x, FB_ERR_ARGUMENT, "address: HOST:PORT is expected");
    } else {
        x->args[1] = strdup(address);
        if (space != NULL) x->args[0] = strdup(space);
        if (space != NULL) {
            fb_exchange_with_space(x, peer_in_space);
        } else {
            peer_in_space(x);
        }
    }
    fb_json_object_free(&body);
}

void fb_post_peers(fb_exchange *x)
{
    peer_change(x, true);
}

void fb_post_peers_forget(fb_exchange *x)
{
    peer_change(x, false);
}
