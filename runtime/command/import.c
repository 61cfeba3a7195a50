/* SPDX-License-Identifier: Apache-2.0 */
/* faberio record import: a file of JSON lines, many records a write set. The file is read twice: to
 * refuse it while nothing is written, then to write it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/limits.h"
#include "protocol/base/uuid.h"
#include "runtime/command/commands.h"
#include "runtime/command/http_client.h"
#include "runtime/command/import_set.h"
#include "runtime/conformance/line_in.h"

#define LINE_BYTES_MAX (1u << 20) /* of the API's body as well */

typedef struct import {
    const fb_cli *cli;
    const char *name; /* of the file, for people */
    FILE *file;
    char line[LINE_BYTES_MAX + 1];
    unsigned long long number; /* of the line read last; from 1 */
    unsigned long long from;   /* the first one that counts */
    fb_import_set set;
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
        fb_line line = fb_line_read(m->file, m->line, LINE_BYTES_MAX + 1, len);
        if (line == FB_LINE_END) return false;
        if (line == FB_LINE_FAILED) {
            *exit = fb_cli_fail(FB_EXIT_FAILED, "%s: %s", m->name, strerror(errno));
            return false;
        }
        m->number++;
        if (m->number < m->from || strspn(m->line, " \t\r\n") >= *len) continue;
        if (line == FB_LINE_TOO_LONG) {
            *exit = wrong(m, m->number, "longer than a record may be");
            return false;
        }
        return true;
    }
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
        exit = fb_import_add(&m->set, &change, &id, m->number);
    }
    if (exit == FB_EXIT_OK && writes) exit = fb_import_flush(&m->set);
    fb_import_clear(&m->set);
    return exit;
}

fb_exit fb_cmd_record_import(fb_cli *cli)
{
    static import m;
    const char *from = fb_cli_option(cli, "from");
    m.from = 0;
    memset(&m.set, 0, sizeof m.set);
    m.cli = m.set.cli = cli;
    m.set.resume = "faberio record import --from %llu";
    if (from != NULL && (!fb_text_number(from, UINT64_MAX, &m.from) || m.from == 0)) {
        return fb_cli_usage(cli, "--from: the number of a line is expected, not %s", from);
    }
    fb_import_into(&m.set, cli->argv[0], cli->argv[1]);
    char why[FB_INPUT_WHY];
    m.name = m.set.name = fb_input_name(cli->argv[2]);
    m.file = fb_input_open(cli->argv[2], why, sizeof why);
    if (m.file == NULL) return fb_cli_fail(FB_EXIT_FAILED, "%s: %s", m.name, why);
    fb_exit exit = pass(&m, false);
    if (exit == FB_EXIT_OK) exit = pass(&m, true);
    if (exit == FB_EXIT_OK) {
        fb_text out = {0};
        fb_json_open(&out, NULL, '{');
        fb_json_number(&out, "imported", (int64_t)m.set.stored);
        fb_json_number(&out, "write_sets", (int64_t)m.set.sets);
        fb_json_close(&out, '}');
        fb_print(cli, &out);
        fb_text_free(&out);
    }
    fclose(m.file);
    fb_text_free(&m.set.path);
    return exit;
}
