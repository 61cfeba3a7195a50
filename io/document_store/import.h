/* SPDX-License-Identifier: Apache-2.0 */
/* What other programs did to documents (io/documents/outer.h) becomes changes of this node: signed
 * by it, as the operator's, one after another and each only once it is durable. What the core does
 * not take is left alone and told. */
#ifndef FB_IO_DOCUMENT_STORE_IMPORT_H
#define FB_IO_DOCUMENT_STORE_IMPORT_H

#include <uv.h>

#include "io/store/lmdb.h"
#include "protocol/core/request.h"

#define FB_IMPORT_RETRY_MS  100u /* before what could not be asked now is asked again */
#define FB_IMPORT_TRIES_MAX 50u  /* of one change, when the record is another one each time */
/* What was left alone lately: it is told once, not each time that it is read. */
#define FB_IMPORT_LEFT_MAX 256u

typedef struct fb_loop fb_loop;

typedef struct fb_import_stats {
    uint64_t imported;    /* changes of other programs that this node made its own */
    uint64_t overwritten; /* fields or removals that lost against a later write of this node */
    uint64_t left;        /* documents that no record can be like: left alone */
    uint64_t lost;        /* records whose document was removed without a trace */
} fb_import_stats;

typedef struct fb_outer_import {
    fb_loop *loop;
    fb_lmdb *store;
    void (*told)(void *user, const char *what, const fb_outer *outer); /* for the log */
    void *user;
    uv_timer_t retry;
    fb_outer *queue, **queue_end; /* the first one is asked for, if `asked` */
    uint64_t asked;               /* number of the request; 0: none */
    bool stopped;
    uint64_t left[FB_IMPORT_LEFT_MAX];
    size_t left_at;
    fb_import_stats stats;
} fb_outer_import;

/* The timer's handle is the caller's to close, after fb_outer_import_stop. */
void fb_outer_import_init(fb_outer_import *import, uv_loop_t *uv, fb_loop *loop, fb_lmdb *store);
void fb_outer_import_take(fb_outer_import *import, fb_outer *outer);
/* Asks for nothing more. */
void fb_outer_import_stop(fb_outer_import *import);

#endif
