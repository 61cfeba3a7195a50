/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/record/redact.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define ROOM (2 * (size_t)FB_RECORDING_ITEM_BYTES_MAX)

static void flush(fb_sim_redaction *x)
{
    fb_span bytes = fb_writer_span(&x->items);
    if (x->items.failed || fwrite(bytes.p, 1, bytes.len, x->file) != bytes.len) x->failed = true;
    x->items = fb_writer_of(x->items.p, ROOM);
}

bool fb_sim_redact_begin(fb_sim_redaction *out, const char *path, const fb_sim_replay *replay,
                         fb_recording_hash hash, void *user)
{
    static const char magic[] = "faberio-record-1P";
    *out = (fb_sim_redaction){.hash = hash, .user = user};
    uint8_t *room = malloc(ROOM);
    int fd = room == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    out->file = fd < 0 ? NULL : fdopen(fd, "w");
    if (out->file == NULL) {
        int error = errno;
        if (fd >= 0) close(fd);
        free(room);
        errno = error;
        return false;
    }
    out->items = fb_writer_of(room, ROOM);
    fb_recording_header header = replay->header;
    header.redacted = true;
    fb_write_bytes(&out->items, magic, sizeof magic - 1);
    fb_recording_write_header(&out->items, &header);
    flush(out);
    return true;
}

void fb_sim_redact_step(fb_sim_redaction *redaction, const fb_sim_replay *replay)
{
    fb_sim_redaction *x = redaction;
    fb_recording_redact_event(&x->items, &replay->event, x->hash, x->user);
    fb_recording_redact_step(&x->items, FB_OK, &replay->effects, replay->digest, x->hash, x->user);
    for (const fb_effect *fx = fb_effects_next(&replay->effects, NULL); fx != NULL;
         fx = fb_effects_next(&replay->effects, fx)) {
        if (fx->kind == FB_FX_OBSERVE) fb_recording_write_fact(&x->items, fx);
    }
    flush(x);
}

bool fb_sim_redact_end(fb_sim_redaction *redaction, const fb_sim_replay *replay)
{
    fb_sim_redaction *x = redaction;
    if (replay->whole) fb_recording_write_end(&x->items);
    flush(x);
    bool ok = fclose(x->file) == 0 && !x->failed;
    free(x->items.p);
    x->file = NULL;
    x->items.p = NULL;
    return ok;
}
