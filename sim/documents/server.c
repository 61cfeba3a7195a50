/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/documents/server.h"

#include "protocol/base/assert.h"
#include "protocol/base/cursor.h"
#include "protocol/base/hash.h"
#include "sim/world/fail.h"

void fb_sim_documents_server_init(fb_sim_documents_server *server, fb_arena *arena,
                                  fb_sim_blobs *blobs)
{
    fb_sim_document *documents = fb_arena_take(arena, FB_SIM_DOCUMENTS_MAX, sizeof *documents);
    if (arena->base == NULL) return;
    *server = (fb_sim_documents_server){.blobs = blobs, .documents = documents};
}

static void drop(fb_sim_documents_server *server, fb_sim_document *document)
{
    fb_sim_blob_drop(server->blobs, document->bytes);
    fb_sim_blob_drop(server->blobs, document->was);
}

void fb_sim_documents_server_clear(fb_sim_documents_server *server)
{
    for (uint32_t i = 0; i < server->count; i++) drop(server, &server->documents[i]);
    server->count = 0;
}

uint64_t fb_sim_documents_collection(const char *name)
{
    return fb_xxh64(name, strlen(name), 0);
}

static int order(const fb_sim_document *document, uint64_t collection, fb_id id)
{
    if (document->collection != collection) return document->collection < collection ? -1 : 1;
    return fb_id_compare(document->id, id);
}

static uint32_t place_of(const fb_sim_documents_server *server, uint64_t collection, fb_id id)
{
    uint32_t low = 0, high = server->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (order(&server->documents[middle], collection, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

fb_sim_document *fb_sim_documents_find(fb_sim_documents_server *server, uint64_t collection,
                                       fb_id id)
{
    uint32_t at = place_of(server, collection, id);
    if (at == server->count || order(&server->documents[at], collection, id) != 0) return NULL;
    return &server->documents[at];
}

static fb_sim_document *find_or_make(fb_sim_documents_server *server, uint64_t collection, fb_id id)
{
    uint32_t at = place_of(server, collection, id);
    if (at < server->count && order(&server->documents[at], collection, id) == 0) {
        return &server->documents[at];
    }
    if (server->count == FB_SIM_DOCUMENTS_MAX) fb_sim_fail_resource("documents of a server");
    fb_sim_document *made = &server->documents[at];
    memmove(made + 1, made, (server->count - at) * sizeof *made);
    server->count++;
    *made = (fb_sim_document){.collection = collection, .id = id};
    return made;
}

/* One that is gone, or from before, does not know all starts there were: its clock is beyond them,
 * as there is less than one in each millisecond. */
uint64_t fb_sim_documents_fence(fb_sim_documents_server *server, uint64_t known, uint64_t now_ns)
{
    bool knows = server->fence != 0 && server->fence >= known;
    server->fence = fb_max_u64(server->fence, known) + 1;
    if (!knows) server->fence = fb_max_u64(server->fence, now_ns / 1000000);
    return server->fence;
}

fb_document_outcome fb_sim_document_apply(fb_sim_documents_server *server, uint64_t now_ns,
                                          const fb_sim_document_change *change,
                                          fb_sim_document_applied applied, void *user)
{
    fb_sim_document *document = find_or_make(server, change->collection, change->id);
    bool stays = change->puts || change->marks;
    if (change->puts && server->full) return FB_DOCUMENT_OPEN;
    if (document->there && !fb_document_is_older(document->version, change->version)) {
        /* A removal that finds nothing older has nothing to do. */
        if (!stays) return FB_DOCUMENT_KEPT;
        return document->version.start > change->version.start ? FB_DOCUMENT_NEWER
                                                               : FB_DOCUMENT_PRESENT;
    }
    if (applied != NULL) applied(user, document, change);
    if (change->bytes != 0) fb_sim_blob_hold(server->blobs, change->bytes);
    if (change->version.start > server->writer) server->writer = change->version.start;
    bool was_there = document->there && !document->mark;
    /* Several changes that nobody knows of yet: what was before the first of them. */
    if (document->confirmed || document->changed_ns == 0) {
        fb_sim_blob_drop(server->blobs, document->was);
        document->was = document->bytes;
        document->was_there = was_there;
        document->was_of = document->version.start;
    } else {
        fb_sim_blob_drop(server->blobs, document->bytes);
    }
    document->bytes = change->bytes;
    document->there = stays;
    document->mark = change->marks;
    document->version = change->version;
    if (change->age > document->age) document->age = change->age;
    document->changed_ns = now_ns;
    document->confirmed = false;
    return FB_DOCUMENT_KEPT;
}

/* u32, the record, u32 count of values: u16 and the column, the dot, u32 and the value. */
fb_sim_blob fb_sim_documents_encode(fb_sim_blobs *blobs, const fb_document *document)
{
    size_t bytes = 8 + document->record.len;
    for (size_t i = 0; i < document->value_count; i++) {
        bytes +=
            2 + document->values[i].column.len + FB_DOT_BYTES + 4 + document->values[i].value.len;
    }
    fb_sim_blob blob = fb_sim_blob_make(blobs, bytes);
    fb_writer w = fb_writer_of(fb_sim_blob_writable(blobs, blob), bytes);
    fb_write_span32(&w, document->record);
    fb_write_u32(&w, (uint32_t)document->value_count);
    for (size_t i = 0; i < document->value_count; i++) {
        fb_write_span16(&w, document->values[i].column);
        fb_write_bytes(&w, document->values[i].dot, FB_DOT_BYTES);
        fb_write_span32(&w, document->values[i].value);
    }
    FB_ASSERT(!w.failed && w.at == bytes);
    return blob;
}

fb_span fb_sim_documents_record(const fb_sim_blobs *blobs, fb_sim_blob bytes)
{
    fb_reader r = fb_reader_of(fb_sim_blob_bytes(blobs, bytes));
    return fb_read_span32(&r);
}

bool fb_sim_documents_seen(const fb_sim_documents_server *server, const fb_sim_document *document,
                           fb_room *room, fb_document *out)
{
    bool old = server->deposed && !document->confirmed;
    bool there = old ? document->was_there : document->there && !document->mark;
    if (!there) return false;
    fb_reader r =
        fb_reader_of(fb_sim_blob_bytes(server->blobs, old ? document->was : document->bytes));
    *out = (fb_document){.id = document->id,
                         .start = old ? document->was_of : document->version.start};
    out->record = fb_read_span32(&r);
    out->value_count = fb_read_u32(&r);
    fb_document_value *values = fb_room_take(room, out->value_count * sizeof *values);
    for (size_t i = 0; i < out->value_count; i++) {
        values[i].column = fb_read_span16(&r);
        memcpy(values[i].dot, fb_read_bytes(&r, FB_DOT_BYTES).p, FB_DOT_BYTES);
        values[i].value = fb_read_span32(&r);
    }
    FB_ASSERT(fb_reader_done(&r));
    out->values = values;
    return true;
}
