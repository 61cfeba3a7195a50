/* SPDX-License-Identifier: Apache-2.0 */
/* The flight recorder: what one node lives through, written down so that it can be made again step
 * by step (protocol/core/recording.h), in files that only the operator's key opens.
 *
 * Files are PATH.000001, PATH.000002 and so on, the oldest removed so that all of them stay within
 * a bound. Each begins with a fresh instance of the node, so each can be replayed alone: when one
 * is full, the driver begins a new incarnation in a new instance (fb_recorder_is_full). What an
 * event is stands in the file before the node sees it, what came of it before the effects are
 * carried out: a process that ends at any point leaves a file that says so.
 *
 * A recorder that cannot write gives up, says so once, and never holds up the node. */
#ifndef FB_IO_RECORDER_H
#define FB_IO_RECORDER_H

#include "protocol/core/node.h"

#define FB_RECORDER_BYTES_MIN     (UINT64_C(8) << 20)
#define FB_RECORDER_BYTES_DEFAULT (UINT64_C(1) << 30)
#define FB_RECORDER_FILES         8u /* that the bound is divided by */
#define FB_RECORDER_PATH_MAX      4096

typedef struct fb_recorder fb_recorder;

typedef struct fb_recorder_options {
    const char *path;
    fb_b32 reader_key;  /* X25519: whose secret half opens the files */
    uint64_t bytes_max; /* of all files of this path together */
    const char *program;
} fb_recorder_options;

/* Touches no file: another node may be recorded there, whose files would have to make room. The
 * first instance begins one; fb_recorder_stats says when none can be made there.
 * FB_ERR_ARGUMENT, FB_ERR_NO_MEMORY; `why` gets a sentence. */
fb_status fb_recorder_open(const fb_recorder_options *options, fb_recorder **out, char *why,
                           size_t why_len);
/* NULL does nothing. The last file gets its end. */
void fb_recorder_close(fb_recorder *recorder);

/* A new file, for the instance that is created next. `options` get what a recorded instance needs:
 * the provider that listens, facts, and a digest with each step. */
void fb_recorder_instance(fb_recorder *recorder, fb_options *options, fb_id node,
                          size_t effects_capacity);

/* Before and after each fb_node_step. */
void fb_recorder_event(fb_recorder *recorder, const fb_event *event);
void fb_recorder_step(fb_recorder *recorder, fb_status status, const fb_effects *effects,
                      fb_hash128 digest);

/* The node has read its store: what a file has before that does not count, as the next one would
 * have it too. */
void fb_recorder_loaded(fb_recorder *recorder);

/* The file has its size: a new instance should begin soon. */
bool fb_recorder_is_full(const fb_recorder *recorder);

typedef struct fb_recorder_stats {
    const char *file;   /* that is written, "" when it gave up */
    const char *failed; /* why it gave up, or "" */
    uint64_t bytes;     /* written since it was opened */
    uint64_t files;     /* begun since then */
} fb_recorder_stats;

void fb_recorder_stats_get(const fb_recorder *recorder, fb_recorder_stats *out);

#endif
