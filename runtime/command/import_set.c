/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/import_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/command/http_client.h"

/* What a write set has room for, about; a set that is too large all the same is halved. */
#define SET_BYTES (FB_BATCH_BYTES_MAX / 2)

void fb_import_clear(fb_import_set *m)
{
    for (size_t i = 0; i < m->count; i++) fb_text_free(&m->changes[i]);
    m->count = 0;
    m->bytes = 0;
}

/* The API names the change; people look for the line. */
static void refused(const fb_import_set *m, size_t first, size_t count,
                    const fb_http_response *response)
{
    json_error_t error;
    json_t *problem = json_loadb(fb_text_string(&response->body), response->body.len, 0, &error);
    const char *title = json_string_value(json_object_get(problem, "title"));
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    char *end = NULL;
    unsigned long at = 0;
    if (detail != NULL && strncmp(detail, "changes[", 8) == 0) {
        at = strtoul(detail + 8, &end, 10);
        detail = end + (strncmp(end, "]: ", 3) == 0 ? 3 : 0);
    }
    bool same = detail == NULL || title == NULL || strncmp(detail, title, strlen(title)) == 0;
    if (end != NULL && first + at < m->count) {
        fb_cli_fail(FB_EXIT_FAILED, "%s:%llu: %s", m->name, m->lines[first + at], detail);
    } else {
        char lines[64];
        snprintf(lines, sizeof lines, "%llu to %llu", m->lines[first], m->lines[first + count - 1]);
        if (count == 1) snprintf(lines, sizeof lines, "%llu", m->lines[first]);
        fb_cli_fail(FB_EXIT_FAILED, "%s:%s: %s%s%s", m->name, lines,
                    title != NULL ? title : "refused", same ? "" : ": ", same ? "" : detail);
    }
    json_decref(problem);
}

/* Changes `first` to `end` were not stored, or nobody said whether they were. */
static void stopped(const fb_import_set *m, size_t first, size_t end, bool answered)
{
    char rest[160];
    snprintf(rest, sizeof rest, m->resume, m->lines[first]);
    fprintf(stderr, "%llu records are stored; the rest: %s\n", m->stored, rest);
    if (answered) return;
    fprintf(stderr, "lines %llu to %llu may be stored as well: then new records come twice\n",
            m->lines[first], m->lines[end - 1]);
}

/* Is it about what is in a change, and does that have to end all of it? */
static bool may_leave_out(const fb_import_set *m, unsigned status)
{
    return m->leaves_out && (status == 400 || status == 409 || status == 412 || status == 413);
}

static void leave_out(fb_import_set *m, size_t at, const fb_http_response *response)
{
    if (m->lines[at] == m->left_out_line) return; /* another element of the same record */
    refused(m, at, 1, response);
    m->left_out++;
    m->left_out_line = m->lines[at];
}

/* Writes the changes first..end of the set, in halves where it is too large for one write set, or
 * where one of them is to be left out. */
static fb_exit set_write(fb_import_set *m, size_t first, size_t end)
{
    fb_text body = {0};
    fb_json_open(&body, NULL, '{');
    fb_json_open(&body, "changes", '[');
    for (size_t i = first; i < end; i++) {
        fb_json_element(&body);
        fb_text_bytes(&body, m->changes[i].p, m->changes[i].len);
    }
    fb_json_close(&body, ']');
    fb_json_close(&body, '}');
    fb_http_response response;
    fb_exit exit = fb_http_call(m->cli, "POST", m->path.p, NULL, body.p, &response);
    fb_text_free(&body);
    if (exit != FB_EXIT_OK) {
        stopped(m, first, end, false);
        return exit;
    }
    exit = fb_exit_of_http(response.status);
    bool one_is_named = strstr(fb_text_string(&response.body), "changes[") != NULL;
    bool halves = (response.status == 413 && !one_is_named) || may_leave_out(m, response.status);
    if (halves && end - first > 1) {
        size_t half = first + (end - first) / 2;
        exit = set_write(m, first, half);
        if (exit == FB_EXIT_OK) exit = set_write(m, half, end);
    } else if (may_leave_out(m, response.status)) {
        leave_out(m, first, &response);
        exit = FB_EXIT_OK;
    } else if (exit != FB_EXIT_OK) {
        refused(m, first, end - first, &response);
        stopped(m, first, end, true);
    } else {
        m->stored += end - first;
        m->sets++;
    }
    fb_http_free(&response);
    return exit;
}

static bool set_has(const fb_import_set *m, const fb_id *id)
{
    for (size_t i = 0; i < m->count && !fb_id_is_zero(*id); i++) {
        if (fb_id_equal(m->ids[i], *id)) return true;
    }
    return false;
}

fb_exit fb_import_flush(fb_import_set *m)
{
    fb_exit exit = m->count > 0 ? set_write(m, 0, m->count) : FB_EXIT_OK;
    fb_import_clear(m);
    return exit;
}

fb_exit fb_import_add(fb_import_set *m, fb_text *change, const fb_id *id, unsigned long long line)
{
    fb_exit exit = FB_EXIT_OK;
    if (m->count == FB_BATCH_CHANGES_MAX || (m->count > 0 && m->bytes + change->len > SET_BYTES) ||
        set_has(m, id)) {
        exit = fb_import_flush(m);
    }
    m->changes[m->count] = *change;
    m->ids[m->count] = *id;
    m->lines[m->count++] = line;
    m->bytes += change->len;
    *change = (fb_text){0};
    return exit;
}

void fb_import_into(fb_import_set *m, const char *space, const char *collection)
{
    fb_text_clear(&m->path);
    fb_text_put(&m->path, "/v1/spaces");
    fb_path_put(&m->path, space);
    fb_text_put(&m->path, "/collections");
    fb_path_put(&m->path, collection);
    fb_text_put(&m->path, "/records:batch");
}
