/* SPDX-License-Identifier: Apache-2.0 */
/* faberio record import: a file of JSON lines, many records a write set. The file is read twice: to
 * refuse it while nothing is written, then to write it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"
#include "runtime/commands.h"
#include "runtime/http_client.h"

#define LINE_BYTES_MAX (1u << 20) /* of the API's body as well */

/* What a write set has room for, about; a set that is too large all the same is halved. */
#define SET_BYTES (FB_BATCH_BYTES_MAX / 2)

typedef struct import {
    const fb_cli *cli;
    const char *name; /* of the file, for people */
    FILE *file;
    char *line;
    size_t line_cap;
    unsigned long long number; /* of the line read last; from 1 */
    unsigned long long from;   /* the first one that counts */
    fb_text path;
    /* The set being gathered. */
    fb_text changes[FB_BATCH_CHANGES_MAX];
    fb_id ids[FB_BATCH_CHANGES_MAX]; /* zeros: a new one */
    unsigned long long lines[FB_BATCH_CHANGES_MAX];
    size_t count;
    size_t bytes;
    /* Done. */
    unsigned long long stored, sets;
} import;

static fb_exit wrong(const import *m, unsigned long long line, const char *what)
{
    return fb_cli_fail(FB_EXIT_USAGE, "%s:%llu: %s", m->name, line, what);
}

/* One line as a change of the API; *id is zeros for a new record. NULL, or what is wrong. */
static const char *change_of(const char *text, size_t len, fb_text *out, fb_id *id, char *why,
                             size_t why_len)
{
    fb_json_object_in in;
    if (!fb_json_object_read(fb_span_of(text, len), &in, why, why_len)) return why;
    const char *error = NULL;
    const json_t *conflicts = json_object_get(in.tree, "conflicts");
    const json_t *id_in = json_object_get(in.tree, "id");
    bool deletes = json_is_true(json_object_get(in.tree, "delete"));
    bool is_new = id_in == NULL ||
                  strcmp(json_string_value(id_in) ? json_string_value(id_in) : "", "new") == 0;
    memset(id, 0, sizeof *id);
    fb_json_open(out, NULL, '{');
    for (size_t i = 0; i < in.count && error == NULL; i++) {
        const char *name = fb_text_string(&in.members[i].name);
        fb_span value = fb_span_of(in.members[i].value.p, in.members[i].value.len);
        if (strcmp(name, "fields") == 0 || strcmp(name, "delete") == 0) {
            fb_json_raw(out, name, value);
        } else if (strcmp(name, "id") != 0 && strcmp(name, "etag") != 0 &&
                   strcmp(name, "conflicts") != 0) {
            snprintf(why, why_len, "%.60s: no such member; there are: id fields delete", name);
            error = why;
        }
    }
    if (error != NULL) {
        /* told */
    } else if (!is_new && (json_string_value(id_in) == NULL ||
                           !fb_uuid_parse_v7(fb_span_text(json_string_value(id_in)), id))) {
        error = "id: a UUID of version 7 in lowercase, or new, is expected";
    } else if (deletes == json_is_object(json_object_get(in.tree, "fields")) ||
               (json_object_get(in.tree, "delete") != NULL && !deletes)) {
        error = "either fields, an object, or \"delete\":true is expected";
    } else if (deletes && is_new) {
        error = "id: which record is deleted?";
    } else if (json_object_size(conflicts) > 0 ||
               (conflicts != NULL && !json_is_object(conflicts))) {
        error = "conflicts: what is imported has none; settle them first, or remove the member";
    }
    fb_json_member(out, "id", is_new || error != NULL ? "new" : json_string_value(id_in));
    fb_json_close(out, '}');
    fb_json_object_free(&in);
    return error;
}

/* The next line that is not blank, without its end. False at the end of the file or after *exit was
 * set. */
static bool line_next(import *m, size_t *len, fb_exit *exit)
{
    for (;;) {
        errno = 0;
        ssize_t n = getline(&m->line, &m->line_cap, m->file);
        if (n < 0) {
            if (ferror(m->file)) {
                *exit = fb_cli_fail(FB_EXIT_FAILED, "%s: %s", m->name, strerror(errno));
            }
            return false;
        }
        m->number++;
        while (n > 0 && (m->line[n - 1] == '\n' || m->line[n - 1] == '\r')) n--;
        *len = (size_t)n;
        if (m->number < m->from || strspn(m->line, " \t\r\n") >= *len) continue;
        if (*len > LINE_BYTES_MAX) {
            *exit = wrong(m, m->number, "longer than a record may be");
            return false;
        }
        return true;
    }
}

static void set_clear(import *m)
{
    for (size_t i = 0; i < m->count; i++) fb_text_free(&m->changes[i]);
    m->count = 0;
    m->bytes = 0;
}

/* The API names the change; people look for the line. */
static void refused(const import *m, size_t first, const fb_http_response *response)
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
        fb_cli_fail(FB_EXIT_FAILED, "%s:%llu to %llu: %s%s%s", m->name, m->lines[first],
                    m->lines[m->count - 1], title != NULL ? title : "refused", same ? "" : ": ",
                    same ? "" : detail);
    }
    json_decref(problem);
}

/* Changes `first` to `end` were not stored, or nobody said whether they were. */
static void stopped(const import *m, size_t first, size_t end, bool answered)
{
    fprintf(stderr, "%llu records are stored; the rest: faberio record import --from %llu\n",
            m->stored, m->lines[first]);
    if (answered) return;
    fprintf(stderr, "lines %llu to %llu may be stored as well: then new records come twice\n",
            m->lines[first], m->lines[end - 1]);
}

/* Writes the changes first..end of the set, in halves where it is too large for one write set. */
static fb_exit set_write(import *m, size_t first, size_t end)
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
    if (response.status == 413 && end - first > 1 && !one_is_named) {
        size_t half = first + (end - first) / 2;
        exit = set_write(m, first, half);
        if (exit == FB_EXIT_OK) exit = set_write(m, half, end);
    } else if (exit != FB_EXIT_OK) {
        refused(m, first, &response);
        stopped(m, first, end, true);
    } else {
        m->stored += end - first;
        m->sets++;
    }
    fb_http_free(&response);
    return exit;
}

static bool set_has(const import *m, const fb_id *id)
{
    for (size_t i = 0; i < m->count && !fb_id_is_zero(*id); i++) {
        if (fb_id_equal(m->ids[i], *id)) return true;
    }
    return false;
}

static fb_exit set_flush(import *m)
{
    fb_exit exit = m->count > 0 ? set_write(m, 0, m->count) : FB_EXIT_OK;
    set_clear(m);
    return exit;
}

/* Reads the whole file; what is wrong with a line is said once. */
static fb_exit pass(import *m, bool writes)
{
    fb_exit exit = FB_EXIT_OK;
    size_t len;
    char why[200];
    rewind(m->file);
    m->number = 0;
    while (exit == FB_EXIT_OK && line_next(m, &len, &exit)) {
        fb_text change = {0};
        fb_id id;
        const char *error = change_of(m->line, len, &change, &id, why, sizeof why);
        if (error != NULL) exit = wrong(m, m->number, error);
        if (error != NULL || !writes) {
            fb_text_free(&change);
            continue;
        }
        if (m->count == FB_BATCH_CHANGES_MAX ||
            (m->count > 0 && m->bytes + change.len > SET_BYTES) || set_has(m, &id)) {
            exit = set_flush(m);
        }
        m->changes[m->count] = change;
        m->ids[m->count] = id;
        m->lines[m->count++] = m->number;
        m->bytes += change.len;
    }
    if (exit == FB_EXIT_OK && writes) exit = set_flush(m);
    set_clear(m);
    return exit;
}

/* A pipe can be read only once: what comes is kept in a file without a name. */
static FILE *spooled(FILE *in)
{
    FILE *out = tmpfile();
    char part[16384];
    size_t n = 0;
    while (out != NULL && (n = fread(part, 1, sizeof part, in)) > 0) {
        if (fwrite(part, 1, n, out) != n) break;
    }
    if (out != NULL && (ferror(in) || n > 0 || fflush(out) != 0)) {
        int error = errno;
        fclose(out);
        out = NULL;
        errno = error;
    }
    return out;
}

static fb_exit file_open(import *m, const char *name)
{
    bool is_input = strcmp(name, "-") == 0;
    struct stat st = {0};
    m->name = is_input ? "standard input" : name;
    FILE *in = is_input ? stdin : fopen(name, "re");
    if (in == NULL) return fb_cli_fail(FB_EXIT_FAILED, "%s: %s", name, strerror(errno));
    m->file = in;
    if (fstat(fileno(in), &st) == 0 && S_ISDIR(st.st_mode)) {
        return fb_cli_fail(FB_EXIT_FAILED, "%s: %s", m->name, strerror(EISDIR));
    }
    if (!S_ISREG(st.st_mode)) {
        m->file = spooled(in);
        if (m->file == NULL) {
            int error = errno;
            if (!is_input) fclose(in);
            return fb_cli_fail(FB_EXIT_FAILED, "%s: %s", m->name, strerror(error));
        }
        if (!is_input) fclose(in);
    }
    return FB_EXIT_OK;
}

fb_exit fb_cmd_record_import(fb_cli *cli)
{
    static import m;
    const char *from = fb_cli_option(cli, "from");
    m.cli = cli;
    if (from != NULL && (!fb_text_number(from, UINT64_MAX, &m.from) || m.from == 0)) {
        return fb_cli_usage(cli, "--from: the number of a line is expected, not %s", from);
    }
    fb_text_put(&m.path, "/v1/spaces");
    fb_path_put(&m.path, cli->argv[0]);
    fb_text_put(&m.path, "/collections");
    fb_path_put(&m.path, cli->argv[1]);
    fb_text_put(&m.path, "/records:batch");
    fb_exit exit = file_open(&m, cli->argv[2]);
    if (exit == FB_EXIT_OK) exit = pass(&m, false);
    if (exit == FB_EXIT_OK) exit = pass(&m, true);
    if (exit == FB_EXIT_OK) {
        fb_text out = {0};
        fb_json_open(&out, NULL, '{');
        fb_json_number(&out, "imported", (int64_t)m.stored);
        fb_json_number(&out, "write_sets", (int64_t)m.sets);
        fb_json_close(&out, '}');
        fb_print(cli, &out);
        fb_text_free(&out);
    }
    if (m.file != NULL && m.file != stdin) fclose(m.file);
    free(m.line);
    fb_text_free(&m.path);
    return exit;
}
