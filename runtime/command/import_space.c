/* SPDX-License-Identifier: Apache-2.0 */
/* faberio import: what `export` wrote, into a new space of this node or into one that it has. The
 * records are written anew under this node's key, so nothing is forked: neither the space that they
 * come from nor whoever wrote them. The file is read twice: to refuse it while nothing is written,
 * then to write it. A record that is there stays as it is, so an import that stopped may be begun
 * again. A record that the node refuses is named and left out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/command/commands.h"
#include "runtime/command/export_file.h"
#include "runtime/command/http_client.h"
#include "runtime/command/import_set.h"
#include "runtime/conformance/line_in.h"

typedef struct import {
    const fb_cli *cli;
    FILE *file;
    fb_import_set set;
    fb_export_sum sum;
    fb_text json;
    unsigned long long line;
    unsigned long long records, skipped, dropped;
    fb_text name;  /* of the space in the file */
    fb_text space; /* that is written to */
    fb_text collection;
    bool begun, ended; /* the first line was read, the last one */
    bool displayed;    /* conflicts may go */
    bool fresh;        /* the space was made for this */
    char resume[160];
} import;

static fb_exit wrong(const import *m, const char *what)
{
    return fb_cli_fail(FB_EXIT_FAILED, "%s:%llu: %s", m->set.name, m->line, what);
}

static const fb_text *member(const fb_json_object_in *in, const char *name)
{
    for (size_t i = 0; i < in->count; i++) {
        if (strcmp(fb_text_string(&in->members[i].name), name) == 0) return &in->members[i].value;
    }
    return NULL;
}

/* A plain value that the API would take for something that is done to a field. */
static bool is_act(const json_t *value)
{
    const char *name = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)value));
    return name != NULL && name[0] == '$';
}

/* What is wrong with a record's line, or NULL. */
static const char *record_wrong(const import *m, const fb_json_object_in *in, fb_id *id)
{
    const char *collection = json_string_value(json_object_get(in->tree, "collection"));
    const char *text = json_string_value(json_object_get(in->tree, "id"));
    if (collection == NULL || text == NULL || !fb_uuid_parse_v7(fb_span_text(text), id)) {
        return "a collection and the id of a record are expected";
    }
    static const char *const parts[] = {"fields", "counters", "sets", "conflicts"};
    size_t known = 2;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const json_t *part = json_object_get(in->tree, parts[i]);
        if (part == NULL) continue;
        known++;
        if (!json_is_object(part)) return "fields, counters, sets and conflicts are objects";
        const char *name;
        const json_t *value;
        json_object_foreach((json_t *)(uintptr_t)part, name, value)
        {
            if (i == 0 && is_act(value)) return "a value that this program cannot write";
            if (i == 1 && !json_is_integer(value)) return "a counter is an integer";
            if (i > 1 && json_array_size(value) == 0) return "sets and conflicts are arrays";
            for (size_t k = 0; k < i && i < 3; k++) {
                if (json_object_get(json_object_get(in->tree, parts[k]), name) != NULL) {
                    return "a field stands in one of fields, counters and sets";
                }
            }
        }
    }
    if (known != in->count) return "a member that this program does not know";
    if (json_object_get(in->tree, "conflicts") != NULL && !m->displayed) {
        return "a field has several values: settle it and export again, or import with "
               "--displayed, which takes the displayed one alone";
    }
    return NULL;
}

static const char *head_wrong(import *m, const fb_json_object_in *in)
{
    const json_t *version = json_object_get(in->tree, "faberio_export");
    const char *name = json_string_value(json_object_get(in->tree, "name"));
    if (!json_is_integer(version)) return "not an export of a space";
    if (json_integer_value(version) > FB_EXPORT_VERSION) return "written by a newer program";
    if (name == NULL) return "a name of the space is expected";
    fb_text_clear(&m->name);
    fb_text_put(&m->name, name);
    m->begun = true;
    return NULL;
}

/* Writing. */

static void act_put(fb_text *out, const char *act, fb_span value)
{
    fb_text_format(out, "{\"%s\":", act);
    fb_text_bytes(out, value.p, value.len);
    fb_text_put(out, "}");
}

static void change_begin(fb_text *out, const char *id)
{
    fb_json_open(out, NULL, '{');
    fb_json_member(out, "id", id);
    fb_json_open(out, "fields", '{');
}

static void name_put(fb_text *out, const fb_text *name)
{
    fb_json_element(out);
    fb_json_string(out, fb_span_of(name->p, name->len));
    fb_text_put(out, ":");
}

/* Everything but the later elements of sets: one change, so it is there whole or not at all. */
static bool first_change(const fb_json_object_in *in, const char *id, fb_text *out)
{
    static const char *const parts[] = {"fields", "counters", "sets"};
    change_begin(out, id);
    for (size_t part = 0; part < 3; part++) {
        const fb_text *text = member(in, parts[part]);
        fb_json_object_in members;
        char why[160];
        if (text == NULL) continue;
        if (!fb_json_object_read(fb_span_of(text->p, text->len), &members, why, sizeof why)) {
            return false;
        }
        for (size_t i = 0; i < members.count; i++) {
            fb_span value = fb_span_of(members.members[i].value.p, members.members[i].value.len);
            size_t at = 0;
            name_put(out, &members.members[i].name);
            if (part == 0) fb_text_bytes(out, value.p, value.len);
            if (part == 1) act_put(out, "$add", value);
            if (part == 2 && fb_json_element_next(value, &at, &value)) {
                act_put(out, "$insert", value);
            }
        }
        fb_json_object_free(&members);
    }
    fb_json_close(out, '}');
    fb_json_close(out, '}');
    return true;
}

/* Elements of sets from the second on, a change each: an element that is there stays one. */
static fb_exit later_elements(import *m, const fb_json_object_in *in, const char *id, fb_id record)
{
    const fb_text *text = member(in, "sets");
    fb_json_object_in members;
    char why[160];
    fb_exit exit = FB_EXIT_OK;
    if (text == NULL ||
        !fb_json_object_read(fb_span_of(text->p, text->len), &members, why, sizeof why)) {
        return exit;
    }
    for (size_t i = 0; i < members.count; i++) {
        fb_span value = fb_span_of(members.members[i].value.p, members.members[i].value.len);
        fb_span element;
        size_t at = 0;
        fb_json_element_next(value, &at, &element);
        while (exit == FB_EXIT_OK && fb_json_element_next(value, &at, &element)) {
            fb_text change = {0};
            change_begin(&change, id);
            name_put(&change, &members.members[i].name);
            act_put(&change, "$insert", element);
            fb_json_close(&change, '}');
            fb_json_close(&change, '}');
            exit = fb_import_add(&m->set, &change, &record, m->line);
        }
    }
    fb_json_object_free(&members);
    return exit;
}

/* The record is in the space already, with as many elements in its sets. */
typedef enum there { ABSENT, PARTLY, WHOLE } there;

static there find(const import *m, const fb_json_object_in *in, const char *id, fb_exit *exit)
{
    fb_text path = {0};
    fb_http_response response;
    there is = ABSENT;
    fb_text_put(&path, "/v1/spaces");
    fb_path_put(&path, m->space.p);
    fb_text_put(&path, "/collections");
    fb_path_put(&path, m->collection.p);
    fb_text_put(&path, "/records");
    fb_path_put(&path, id);
    *exit = fb_http_call(m->cli, "GET", path.p, NULL, NULL, &response);
    fb_text_free(&path);
    if (*exit != FB_EXIT_OK) return ABSENT;
    if (response.status == 413) { /* larger than an answer: what is missing cannot be seen */
        is = json_object_get(in->tree, "sets") != NULL ? PARTLY : WHOLE;
    } else if (response.status == 200) {
        json_error_t error;
        json_t *tree = json_loadb(response.body.p, response.body.len, 0, &error);
        const json_t *fields = json_object_get(tree, "fields");
        const char *name;
        const json_t *elements;
        is = WHOLE;
        json_object_foreach(json_object_get(in->tree, "sets"), name, elements)
        {
            size_t has = json_array_size(json_object_get(fields, name));
            if (has > 0 && has < json_array_size(elements)) is = PARTLY;
        }
        json_decref(tree);
    } else if (response.status != 404) {
        fb_http_problem_print(&response.body, response.status);
        *exit = fb_exit_of_http(response.status);
    }
    fb_http_free(&response);
    return is;
}

static fb_exit record_write(import *m, const fb_json_object_in *in, fb_id record)
{
    const char *collection = json_string_value(json_object_get(in->tree, "collection"));
    const char *id = json_string_value(json_object_get(in->tree, "id"));
    fb_exit exit = FB_EXIT_OK;
    if (strcmp(fb_text_string(&m->collection), collection) != 0) {
        exit = fb_import_flush(&m->set);
        fb_text_clear(&m->collection);
        fb_text_put(&m->collection, collection);
        fb_import_into(&m->set, m->space.p, collection);
    }
    there is = m->fresh || exit != FB_EXIT_OK ? ABSENT : find(m, in, id, &exit);
    m->dropped += json_object_get(in->tree, "conflicts") != NULL;
    if (is == WHOLE) m->skipped++;
    if (exit != FB_EXIT_OK || is == WHOLE) return exit;
    fb_text change = {0};
    if (is == ABSENT && first_change(in, id, &change)) {
        exit = fb_import_add(&m->set, &change, &record, m->line);
    }
    fb_text_free(&change);
    return exit == FB_EXIT_OK ? later_elements(m, in, id, record) : exit;
}

static fb_exit line_take(import *m, bool writes)
{
    fb_json_object_in in;
    char why[200];
    fb_id id;
    fb_exit exit = FB_EXIT_OK;
    if (!fb_json_object_read(fb_span_of(m->json.p, m->json.len), &in, why, sizeof why)) {
        return wrong(m, why);
    }
    const char *error = NULL;
    bool is_end = json_is_true(json_object_get(in.tree, "end"));
    if (m->ended) {
        error = "something stands behind the end";
    } else if (m->line == 1) {
        error = head_wrong(m, &in);
    } else if (is_end) {
        json_int_t told = json_integer_value(json_object_get(in.tree, "records"));
        m->ended = true;
        if ((unsigned long long)told != m->records) error = "other records than it says";
    } else {
        m->records++;
        error = record_wrong(m, &in, &id);
        if (error == NULL && writes) exit = record_write(m, &in, id);
    }
    if (error != NULL) exit = wrong(m, error);
    fb_json_object_free(&in);
    return exit;
}

static fb_exit pass(import *m, bool writes)
{
    fb_exit exit = FB_EXIT_OK;
    rewind(m->file);
    fb_export_begin(&m->sum);
    m->line = m->records = 0;
    m->begun = m->ended = false;
    while (exit == FB_EXIT_OK) {
        fb_export_line got = fb_export_read(m->file, &m->sum, &m->json);
        if (got == FB_EXPORT_END) break;
        m->line++;
        if (got == FB_EXPORT_FAILED) {
            exit = wrong(m, strerror(errno));
        } else if (got == FB_EXPORT_DAMAGED) {
            exit = wrong(m, m->begun ? "damaged: it is not what was written there"
                                     : "not an export of a space, or damaged");
        } else {
            exit = line_take(m, writes);
        }
    }
    if (exit == FB_EXIT_OK && !m->ended) {
        m->line++;
        exit = wrong(m, "damaged: the file ends too early");
    }
    if (exit == FB_EXIT_OK && writes) exit = fb_import_flush(&m->set);
    fb_import_clear(&m->set);
    return exit;
}

/* The space that is written to: a new one with the name of the old one, unless one is named. */
static fb_exit space_find(import *m)
{
    const char *named = fb_cli_option(m->cli, "space");
    if (named != NULL) {
        fb_text_put(&m->space, named);
        return FB_EXIT_OK;
    }
    fb_text body = {0}, answer = {0};
    fb_json_open(&body, NULL, '{');
    fb_json_span(&body, "name", fb_span_of(m->name.p, m->name.len));
    fb_json_close(&body, '}');
    fb_exit exit = fb_http_run(m->cli, "POST", "/v1/spaces", NULL, body.p, &answer);
    fb_text_free(&body);
    if (exit == FB_EXIT_CONFLICT) {
        fputs("--space SPACE imports into a space that is here\n", stderr);
    }
    if (exit == FB_EXIT_OK) {
        json_error_t error;
        json_t *tree = json_loadb(answer.p, answer.len, 0, &error);
        const char *id = json_string_value(json_object_get(tree, "space_id"));
        fb_text_put(&m->space, id != NULL ? id : "");
        m->fresh = true;
        /* Its id has digits and dashes alone. */
        snprintf(m->resume, sizeof m->resume,
                 "once more with --space %s; line %%llu was the first one that is missing",
                 fb_text_string(&m->space));
        m->set.resume = m->resume;
        json_decref(tree);
    }
    fb_text_free(&answer);
    return exit;
}

fb_exit fb_cmd_import(fb_cli *cli)
{
    static import m;
    memset(&m, 0, sizeof m);
    m.cli = m.set.cli = cli;
    char why[FB_INPUT_WHY];
    m.set.name = fb_input_name(cli->argv[0]);
    m.set.resume = "once more with --space; line %llu was the first one that is missing";
    /* Whoever has the file alone cannot mend what is in it. */
    m.set.leaves_out = true;
    m.displayed = fb_cli_option(cli, "displayed") != NULL;
    m.file = fb_input_open(cli->argv[0], why, sizeof why);
    if (m.file == NULL) return fb_cli_fail(FB_EXIT_FAILED, "%s: %s", m.set.name, why);
    fb_exit exit = pass(&m, false);
    if (exit == FB_EXIT_OK) exit = space_find(&m);
    if (exit == FB_EXIT_OK) exit = pass(&m, true);
    if (exit == FB_EXIT_OK) {
        fb_text out = {0};
        fb_json_open(&out, NULL, '{');
        fb_json_member(&out, "space", m.space.p);
        fb_json_number(&out, "records", (int64_t)m.records);
        fb_json_number(&out, "skipped", (int64_t)m.skipped);
        fb_json_number(&out, "left_out", (int64_t)m.set.left_out);
        fb_json_number(&out, "conflicts_dropped", (int64_t)m.dropped);
        fb_json_close(&out, '}');
        fb_print(cli, &out);
        fb_text_free(&out);
        if (m.set.left_out != 0) exit = FB_EXIT_FAILED;
    }
    fclose(m.file);
    fb_text_free(&m.json);
    fb_text_free(&m.name);
    fb_text_free(&m.space);
    fb_text_free(&m.collection);
    fb_text_free(&m.set.path);
    return exit;
}
