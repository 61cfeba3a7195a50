/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "io/clock.h"
#include "protocol/base/hex.h"
#include "protocol/base/uuid.h"
#include "runtime/api/doctor.h"
#include "runtime/api/held_back.h"
#include "runtime/api/request_codec.h"

#define ROOM_LITTLE  ((uint64_t)64 << 20) /* bytes of disk: a warning below */
#define FILES_LITTLE 512u
/* Microseconds: worth a look; the window of profile 5 into the future. */
#define OFFSET_LARGE  (INT64_C(10) * 1000000)
#define OFFSET_BEYOND (INT64_C(5) * 60 * 1000000)
/* A member whose last report is so old, while others wait for it, may not come back. */
#define REPORT_OLD_US (INT64_C(24) * 3600 * 1000000)

const char *fb_verdict_name(fb_verdict verdict)
{
    static const char *const names[] = {"ok", "warning", "failed"};
    return names[verdict];
}

void fb_doctor_check(fb_text *out, fb_verdict *worst, const char *check, fb_verdict verdict,
                     const char *detail, const char *remedy)
{
    if (verdict > *worst) *worst = verdict;
    fb_json_open(out, NULL, '{');
    fb_json_member(out, "check", check);
    fb_json_member(out, "status", fb_verdict_name(verdict));
    fb_json_member(out, "detail", detail);
    if (verdict != FB_VERDICT_OK) fb_json_member(out, "remedy", remedy);
    fb_json_close(out, '}');
}

static void store_checks(fb_text *out, fb_verdict *worst, const fb_loop_stats *stats,
                         const fb_api_node *node)
{
    char detail[512];
    if (!stats->started || !stats->running) {
        snprintf(detail, sizeof detail,
                 "the store is being opened or read; the last incarnation ended with: %s",
                 fb_error_text(stats->last_end));
        fb_doctor_check(out, worst, "store", FB_VERDICT_FAILED, detail,
                        "wait; when it stays so, the log says why (store_failed)");
    } else if (stats->read_only) {
        fb_doctor_check(out, worst, "store", FB_VERDICT_FAILED,
                        "the disk takes no writes: reads go on, writes are refused, links wait",
                        "make room on the disk, or look whether it fails (store_read_only in the "
                        "log); the node goes on by itself");
    } else {
        fb_doctor_check(out, worst, "store", FB_VERDICT_OK, "reads and writes", NULL);
    }
    uint64_t damaged = stats->store.damaged + node->opening.entries_damaged;
    if (damaged > 0) {
        snprintf(detail, sizeof detail, "%llu values did not match their checksums",
                 (unsigned long long)damaged);
        fb_doctor_check(out, worst, "store_damage", FB_VERDICT_WARNING, detail,
                        "look at the disk; stop, move store/ aside, start, and join again");
    }
    if (node->opening.found == FB_LMDB_FOUND_DAMAGED) {
        snprintf(detail, sizeof detail, "the store was damaged (%s) and moved to %.300s",
                 node->opening.damage, node->opening.aside);
        fb_doctor_check(out, worst, "store_found", FB_VERDICT_WARNING, detail,
                        "have the node invited again; keep the directory for what no peer had");
    } else if (node->store_lost) {
        fb_doctor_check(out, worst, "store_found", FB_VERDICT_WARNING,
                        "there had been a store, and this start found none",
                        "put it back with the node stopped, or have the node invited again");
    }
}

static void disk_check(fb_text *out, fb_verdict *worst, const fb_home *home)
{
    struct statvfs disk;
    char detail[160];
    if (statvfs(home->path, &disk) != 0) return;
    uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
    snprintf(detail, sizeof detail, "%llu MiB are free on the disk of the node's directory",
             (unsigned long long)(room >> 20));
    fb_doctor_check(out, worst, "disk",
                    disk.f_blocks == 0 || room >= ROOM_LITTLE ? FB_VERDICT_OK : FB_VERDICT_WARNING,
                    detail, "make room: without any, writes are refused");
}

static void files_check(fb_exchange *x, fb_text *out, fb_verdict *worst,
                        const fb_carrier_stats *links)
{
    struct rlimit files;
    fb_api_stats api;
    char detail[160];
    fb_api_stats_get(x->api, &api);
    if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
    uint64_t pauses = links->pauses + api.pauses;
    snprintf(detail, sizeof detail, "%llu descriptors may be open; accepting paused %llu times",
             (unsigned long long)files.rlim_cur, (unsigned long long)pauses);
    fb_doctor_check(out, worst, "descriptors",
                    files.rlim_cur >= FILES_LITTLE && pauses == 0 ? FB_VERDICT_OK
                                                                  : FB_VERDICT_WARNING,
                    detail, "raise the limit of open files (LimitNOFILE of a service, ulimit -n)");
}

static void listener_check(fb_text *out, fb_verdict *worst, const fb_api_node *node)
{
    char detail[320];
    if (node->listen[0] == 0) {
        fb_doctor_check(out, worst, "listener", FB_VERDICT_OK,
                        "nobody can dial this node: it dials others", NULL);
    } else if (node->advertise[0] == 0) {
        snprintf(detail, sizeof detail,
                 "it listens on %s and does not know under which address others reach it",
                 node->listen);
        fb_doctor_check(out, worst, "listener", FB_VERDICT_WARNING, detail,
                        "set advertise = HOST:PORT, or name --address with each invite");
    } else {
        snprintf(detail, sizeof detail, "it listens on %s, others dial %s", node->listen,
                 node->advertise);
        fb_doctor_check(out, worst, "listener", FB_VERDICT_OK, detail, NULL);
    }
}

void fb_doctor_node(fb_exchange *x, fb_verdict *worst)
{
    const fb_api_options *options = fb_api_options_of(x->api);
    fb_loop_stats stats;
    fb_loop_stats_get(options->loop, &stats);
    store_checks(&x->out, worst, &stats, options->node);
    disk_check(&x->out, worst, options->node->home);
    files_check(x, &x->out, worst, &stats.carrier);
    listener_check(&x->out, worst, options->node);
}

/* Spaces and their links. */

static void space_check(fb_text *out, fb_verdict *worst, const fb_space_row *row)
{
    char name[80], detail[256];
    snprintf(name, sizeof name, "%.*s", (int)(row->name.len < 64 ? row->name.len : 64),
             (const char *)row->name.p);
    if (row->status == 2) {
        snprintf(detail, sizeof detail, "space %s: this node asked to join and waits", name);
        fb_doctor_check(out, worst, "space", FB_VERDICT_WARNING, detail,
                        "an admin there approves it: space approve SPACE NODE");
    } else if (row->status == 1 && row->members > 1 && row->links == 0) {
        snprintf(detail, sizeof detail, "space %s: %u members and no link to any of them", name,
                 row->members);
        fb_doctor_check(out, worst, "space", FB_VERDICT_WARNING, detail,
                        "doctor SPACE says why for each; peers add HOST:PORT");
    } else {
        snprintf(detail, sizeof detail, "space %s: %s, %u members, %u links", name,
                 fb_status_name(row->status), row->members, row->links);
        fb_doctor_check(out, worst, "space", FB_VERDICT_OK, detail, NULL);
    }
}

static void clock_check(fb_text *out, fb_verdict *worst, fb_span peers)
{
    fb_reader r = fb_reader_of(peers);
    uint16_t count = fb_read_u16(&r);
    int64_t largest = 0;
    unsigned open = 0;
    char detail[160];
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_peer_row row = fb_peer_row_next(&r);
        if (row.link == 0) continue;
        /* As the peer would have it: any number. */
        int64_t ahead = row.offset_us < -INT64_MAX ? INT64_MAX : row.offset_us;
        if (ahead < 0) ahead = -ahead;
        if (ahead > largest) largest = ahead;
        open++;
    }
    snprintf(detail, sizeof detail, "%u links; the largest offset of a clock is %lld ms", open,
             (long long)(largest / 1000));
    fb_doctor_check(out, worst, "clocks",
                    largest > OFFSET_BEYOND  ? FB_VERDICT_FAILED
                    : largest > OFFSET_LARGE ? FB_VERDICT_WARNING
                                             : FB_VERDICT_OK,
                    detail, "set the clock that is wrong: peers shows whose differs");
}

void fb_doctor_spaces(fb_text *out, fb_verdict *worst, fb_span spaces, fb_span peers)
{
    fb_reader r = fb_reader_of(spaces);
    uint16_t count = fb_read_u16(&r);
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_space_row row = fb_space_row_next(&r);
        if (!r.failed) space_check(out, worst, &row);
    }
    clock_check(out, worst, peers);
}

static void held_check(fb_text *out, fb_verdict *worst, const fb_held_space *space,
                       const fb_held_member *member)
{
    char id[FB_UUID_TEXT_LEN + 1] = "", node[33] = "", since[FB_TIME_TEXT_BYTES], detail[320];
    fb_uuid_format(space->space, id);
    fb_hex_format(member->node.b, sizeof member->node.b, node);
    fb_time_format(member->reported_us, since);
    snprintf(detail, sizeof detail, "space %s: %llu batches are kept for member %s, which %s%s", id,
             (unsigned long long)member->batches, node,
             member->state == FB_REPORT_NONE ? "never said what it holds"
                                             : "said last what it holds at ",
             member->state == FB_REPORT_NONE ? "" : since);
    fb_doctor_check(out, worst, "held_back", FB_VERDICT_WARNING, detail,
                    "start that node; if it is gone for good: space revoke SPACE NODE, or space "
                    "replace SPACE NODE NEW");
}

static bool is_linked(fb_span peers, fb_id space, fb_id node)
{
    fb_reader r = fb_reader_of(peers);
    uint16_t count = fb_read_u16(&r);
    for (uint16_t i = 0; i < count && !r.failed; i++) {
        fb_peer_row row = fb_peer_row_next(&r);
        bool open = row.link != 0 && row.state == 4;
        if (open && fb_id_equal(row.space, space) && fb_id_equal(row.node, node)) return true;
    }
    return false;
}

void fb_doctor_held_back(fb_text *out, fb_verdict *worst, const fb_held_back *held, fb_span peers,
                         fb_id self)
{
    int64_t now_us = fb_clock_wall_us();
    for (size_t i = 0; i < held->count; i++) {
        const fb_held_space *space = &held->spaces[i];
        for (size_t k = 0; k < space->count && space->folds; k++) {
            const fb_held_member *member = &space->members[k];
            bool gone = member->told && now_us - REPORT_OLD_US > member->reported_us;
            gone = gone && member->batches > 0 && !fb_id_equal(member->node, self) &&
                   !is_linked(peers, space->space, member->node);
            if (gone) held_check(out, worst, space, member);
        }
    }
}
