/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/space_view.h"

#include <string.h>

#include "protocol/base/cursor.h"
#include "protocol/base/uuid.h"
#include "protocol/database/database.h"
#include "protocol/space/stored.h"
#include "protocol/store/keys.h"
#include "runtime/home.h"

/* Calls `at` for each entry of a tag. */
static fb_status each(fb_space_view *v, uint8_t tag,
                      fb_status (*at)(fb_space_view *v, fb_span key, fb_span value, void *user),
                      void *user)
{
    fb_span key, value;
    fb_status status = fb_store_snapshot_first(v->store, fb_span_of(&tag, 1), &key, &value);
    while (status == FB_OK) {
        status = at(v, key, value, user);
        if (status == FB_OK) status = fb_store_snapshot_next(v->store, &key, &value);
    }
    return status == FB_ERR_NOT_FOUND ? FB_OK : status;
}

typedef struct wanted {
    const char *name;
    fb_id id;
    bool by_id, found;
} wanted;

static fb_status space_at(fb_space_view *v, fb_span key, fb_span value, void *user)
{
    wanted *w = user;
    fb_reader k = fb_reader_of(key);
    fb_read_u8(&k);
    uint32_t local = fb_read_u32(&k);
    if (fb_read_u8(&k) != 0) return FB_OK;
    fb_space_stored space;
    fb_status status = fb_space_stored_decode(value, &space);
    if (status != FB_OK) return status;
    bool same =
        w->by_id ? fb_id_equal(space.id, w->id) : fb_span_equal(space.name, fb_span_text(w->name));
    if (!same || space.left || w->found) return FB_OK;
    w->found = true;
    v->local = local;
    v->id = space.id;
    fb_text_bytes(&v->name, space.name.p, space.name.len);
    return FB_OK;
}

static fb_status area_at(fb_space_view *v, fb_span key, fb_span value, void *user)
{
    (void)user;
    fb_reader k = fb_reader_of(key), r = fb_reader_of(value);
    fb_read_u8(&k);
    fb_view_area area = {.local = fb_read_u32(&k)};
    if (fb_read_u8(&r) != FB_STORE_VERSION) return FB_ERR_VERSION_NEWER;
    bool own = fb_read_u32(&r) == v->local;
    bool collection = fb_read_u8(&r) == FB_AREA_COLLECTION;
    area.name = fb_read_span16(&r);
    if (!fb_reader_done(&r)) return FB_ERR_STORE_DAMAGED;
    if (own && collection && v->area_count < FB_AREAS_MAX) v->areas[v->area_count++] = area;
    return FB_OK;
}

/* Has this store handed records to documents? What is here is not all of them then. */
static bool has_documents(fb_space_view *v)
{
    static const uint8_t tag = FB_TAG_REDO;
    fb_span key, value;
    fb_store_snapshot_first(v->store, fb_span_of(&tag, 1), &key, &value);
    return key.len > 0;
}

fb_exit fb_space_view_open(const fb_cli *cli, const char *space, fb_space_view *out)
{
    fb_home home;
    char directory[FB_HOME_PATH_MAX], why[FB_HOME_PATH_MAX + 160];
    wanted w = {.name = space};
    w.by_id = fb_uuid_parse(fb_span_text(space), &w.id);
    if (!fb_home_open(fb_settings_get(&cli->settings, FB_SET_HOME), &home, why, sizeof why)) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s", why);
    }
    fb_home_file(&home, "store", directory);
    fb_status status = fb_store_snapshot_open(directory, &out->store, why, sizeof why);
    if (status != FB_OK) return fb_cli_fail(FB_EXIT_FAILED, "%s", why);
    if (has_documents(out)) {
        return fb_cli_fail(FB_EXIT_FAILED,
                           "the records of this node are kept in a document store, which this "
                           "command does not read yet");
    }
    status = each(out, FB_TAG_SPACE, space_at, &w);
    if (status == FB_OK && !w.found) {
        return fb_cli_fail(FB_EXIT_FAILED, "no space %s in this node", space);
    }
    if (status == FB_OK) status = each(out, FB_TAG_AREA, area_at, NULL);
    if (status == FB_OK) return FB_EXIT_OK;
    return fb_cli_fail(FB_EXIT_FAILED, "%s: %s", directory, fb_error_text(status));
}

void fb_space_view_close(fb_space_view *view)
{
    fb_store_snapshot_close(view->store);
    view->store = NULL;
    fb_text_free(&view->name);
}

fb_writer fb_view_key(uint8_t *room, size_t cap, uint8_t tag, uint32_t area)
{
    fb_writer w = fb_writer_of(room, cap);
    fb_write_u8(&w, tag);
    fb_write_u32(&w, area);
    return w;
}
