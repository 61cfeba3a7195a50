/* SPDX-License-Identifier: Apache-2.0 */
#include "io/document_store/import.h"

#include <stdio.h>
#include <string.h>

#include "io/loop.h"
#include "protocol/base/hash.h"

static void next(fb_outer_import *import);

static void retry_due(uv_timer_t *timer)
{
    next(timer->data);
}

void fb_outer_import_init(fb_outer_import *import, uv_loop_t *uv, fb_loop *loop, fb_lmdb *store)
{
    import->loop = loop;
    import->store = store;
    import->queue_end = &import->queue;
    uv_timer_init(uv, &import->retry);
    import->retry.data = import;
}

static fb_outer *unqueue(fb_outer_import *import)
{
    fb_outer *outer = import->queue;
    import->queue = outer->next;
    if (import->queue == NULL) import->queue_end = &import->queue;
    return outer;
}

static void done(fb_outer_import *import)
{
    fb_lmdb_outer_done(import->store, unqueue(import));
}

/* True once for each document as it is: it comes with every read. */
static bool left_first(fb_outer_import *import, const fb_outer *outer)
{
    uint64_t sum = fb_xxh64(outer->id.b, sizeof outer->id.b,
                            fb_xxh64(outer->collection, strlen(outer->collection), 1));
    for (size_t i = 0; i < outer->field_count; i++) {
        sum = fb_xxh64(outer->fields[i].is.p, outer->fields[i].is.len, sum);
    }
    for (size_t i = 0; i < FB_IMPORT_LEFT_MAX; i++) {
        if (import->left[i] == sum) return false;
    }
    import->left[import->left_at++ % FB_IMPORT_LEFT_MAX] = sum;
    return true;
}

static void leave(fb_outer_import *import, const fb_outer *outer)
{
    if (!left_first(import, outer)) return;
    import->stats.left++;
    import->told(import->user, "document_left_alone", outer);
}

static void replied(void *user, fb_error error, bool more, fb_span answer)
{
    (void)more;
    (void)answer;
    fb_outer_import *import = user;
    import->asked = 0;
    if (import->stopped) return;
    fb_outer *outer = import->queue;
    switch (fb_error_class_of(error)) {
    case FB_CLASS_OK:
        import->stats.imported++;
        if (outer->overwrote) import->stats.overwritten++;
        done(import);
        break;
    case FB_CLASS_STATE:
        if (outer->kind == FB_OUTER_EDIT && ++outer->tries < FB_IMPORT_TRIES_MAX) {
            outer->look = true;
            unqueue(import);
            fb_lmdb_outer_again(import->store, outer);
        } else if (outer->kind == FB_OUTER_DELETE) {
            /* What was put back for it goes again, if it is not to be there. */
            import->stats.overwritten += error == FB_ERR_CONFLICT ? 1 : 0;
            outer->kind = FB_OUTER_STALE;
            unqueue(import);
            fb_lmdb_outer_again(import->store, outer);
        } else {
            import->stats.overwritten++;
            done(import);
        }
        break;
    case FB_CLASS_AGAIN:
    case FB_CLASS_STORE:
        uv_timer_start(&import->retry, retry_due, FB_IMPORT_RETRY_MS, 0);
        return;
    default:
        snprintf(outer->why, sizeof outer->why, "%s", fb_error_text(error));
        leave(import, outer);
        done(import);
        break;
    }
    next(import);
}

static void next(fb_outer_import *import)
{
    while (!import->stopped && import->queue != NULL && import->asked == 0) {
        fb_outer *outer = import->queue;
        uint32_t verb;
        switch (outer->kind) {
        case FB_OUTER_LEFT:
            leave(import, outer);
            done(import);
            continue;
        case FB_OUTER_LOST:
            import->stats.lost++;
            import->told(import->user, "document_lost", outer);
            done(import);
            continue;
        case FB_OUTER_DROPPED:
            import->told(import->user, "documents_dropped", outer);
            done(import);
            continue;
        default:
            break;
        }
        fb_span arguments = fb_outer_request(outer, &verb);
        import->asked = fb_loop_request(import->loop, (fb_verb)verb, 0, arguments, replied, import);
        if (import->asked == 0) {
            uv_timer_start(&import->retry, retry_due, FB_IMPORT_RETRY_MS, 0);
            return;
        }
    }
}

void fb_outer_import_take(fb_outer_import *import, fb_outer *outer)
{
    outer->next = NULL;
    *import->queue_end = outer;
    import->queue_end = &outer->next;
    /* From the loop, not from here: this may be within a step. */
    if (import->asked == 0 && !uv_is_active((uv_handle_t *)&import->retry)) {
        uv_timer_start(&import->retry, retry_due, 0, 0);
    }
}

void fb_outer_import_stop(fb_outer_import *import)
{
    import->stopped = true;
    uv_timer_stop(&import->retry);
    while (import->queue != NULL) done(import);
}
