/* SPDX-License-Identifier: Apache-2.0 */
/* Files that somebody hands over to be written into a space: what `export` wrote (`import`), and
 * JSON lines (`record import`). The commands are run whole, in front of a node that is made up
 * here.
 *
 * Input: a byte of the bits below, then the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/envelope_same.h"
#include "protocol/envelope/json.h"
#include "runtime/command/commands.h"
#include "runtime/command/export_file.h"
#include "runtime/command/http_client.h"

#define SPACE "0195a3f0-9200-7899-8def-000000000012"

enum {
    EXPORTED = 1,  /* `import` */
    SUMMED = 2,    /* its lines come without their sums and are given the right ones */
    INTO = 4,      /* --space */
    DISPLAYED = 8, /* --displayed */
    THERE = 16,    /* the node has each record already, with one element in each set */
    REFUSES = 32,  /* the node refuses write sets of more than one change, and the change after */
    SILENT = 64,   /* nobody answers the third request */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- The node: what it is asked is JSON in the form of its API ---- */

static unsigned bits, requests, written;

void fb_path_put(fb_text *path, const char *segment)
{
    fb_text_put(path, "/");
    fb_path_escape(path, segment);
}

void fb_path_escape(fb_text *path, const char *value)
{
    for (; *value != 0; value++) fb_text_format(path, "%%%02x", (unsigned char)*value);
}

static unsigned changes_of(const char *body)
{
    json_t *tree = json_loads(body, 0, NULL);
    const json_t *changes = json_object_get(tree, "changes");
    fb_fuzz_require(json_is_array(changes));
    size_t count = json_array_size(changes);
    fb_fuzz_require(count > 0 && count <= FB_BATCH_CHANGES_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *change = json_array_get(changes, i);
        fb_fuzz_require(json_is_string(json_object_get(change, "id")));
        fb_fuzz_require(json_is_object(json_object_get(change, "fields")) !=
                        json_is_true(json_object_get(change, "delete")));
    }
    json_decref(tree);
    return (unsigned)count;
}

static unsigned answer_to(const char *method, const char *path, const char *body, fb_text *out)
{
    if (strcmp(method, "GET") == 0) {
        if ((bits & THERE) == 0) return 404;
        fb_text_put(out, "{\"fields\":{\"tags\":[\"a\"]}}");
        return 200;
    }
    fb_status status = fb_json_value_check(fb_span_text(body));
    fb_fuzz_require(status == FB_OK || status == FB_ERR_LIMIT);
    if (strcmp(path, "/v1/spaces") == 0) {
        fb_text_put(out, "{\"space_id\":\"" SPACE "\"}");
        return 201;
    }
    unsigned changes = changes_of(body);
    if ((bits & REFUSES) != 0 && changes > 1) return 413;
    if ((bits & REFUSES) != 0 && requests % 2 == 0) {
        fb_text_put(out, "{\"title\":\"refused\",\"detail\":\"changes[0]: refused\"}");
        return 400;
    }
    written += changes;
    return 200;
}

fb_exit fb_http_call(const fb_cli *cli, const char *method, const char *path, const char *headers,
                     const char *body, fb_http_response *out)
{
    (void)cli;
    (void)headers;
    *out = (fb_http_response){0};
    fb_fuzz_require(strncmp(path, "/v1/spaces", 10) == 0);
    if (++requests == 3 && (bits & SILENT) != 0) return FB_EXIT_UNREACHABLE;
    out->status = answer_to(method, path, body, &out->body);
    return FB_EXIT_OK;
}

void fb_http_free(fb_http_response *response)
{
    fb_text_free(&response->body);
}

void fb_http_problem_print(const fb_text *body, unsigned status)
{
    (void)body;
    (void)status;
}

fb_exit fb_http_run(const fb_cli *cli, const char *method, const char *path, const char *headers,
                    const char *body, fb_text *answer)
{
    fb_http_response response;
    fb_exit exit = fb_http_call(cli, method, path, headers, body, &response);
    *answer = response.body;
    return exit;
}

void fb_print(const fb_cli *cli, const fb_text *answer)
{
    (void)cli;
    fb_fuzz_require(fb_json_value_check(fb_span_of(answer->p, answer->len)) == FB_OK);
}

/* ---- The file ---- */

/* Each line with the sum that it would have: what comes behind the sums is reached. */
static void lines_summed(FILE *out, fb_span in)
{
    fb_export_sum sum;
    fb_text line = {0};
    fb_export_begin(&sum);
    for (size_t at = 0; at < in.len;) {
        const uint8_t *end = memchr(in.p + at, '\n', in.len - at);
        size_t len = (end != NULL ? (size_t)(end - in.p) : in.len) - at;
        fb_text_clear(&line);
        fb_text_bytes(&line, (const char *)in.p + at, len);
        at += len + 1;
        /* The writer's lines are texts. */
        if (memchr(fb_text_string(&line), 0, len) != NULL) continue;
        fb_fuzz_require(fb_export_write(out, &sum, &line));
    }
    fb_text_free(&line);
}

/* What was written is read as it was, line for line, up to where it was cut. */
static void expect_lines_back(FILE *file)
{
    fb_export_sum sum, again;
    fb_text line = {0};
    char *text = NULL;
    size_t text_len = 0;
    fb_export_begin(&sum);
    fb_export_begin(&again);
    FILE *copy = open_memstream(&text, &text_len);
    fb_fuzz_require(copy != NULL);
    rewind(file);
    long at = 0;
    while (fb_export_read(file, &sum, &line) == FB_EXPORT_LINE) {
        if (memchr(fb_text_string(&line), 0, line.len) != NULL) break;
        fb_fuzz_require(fb_export_write(copy, &again, &line));
        at = ftell(file);
    }
    fclose(copy);
    fb_fuzz_require(memcmp(sum.bytes, again.bytes, sizeof sum.bytes) == 0 ||
                    (size_t)at == text_len);
    rewind(file);
    for (size_t i = 0; i < text_len; i++) fb_fuzz_require(getc(file) == (uint8_t)text[i]);
    free(text);
    fb_text_free(&line);
}

static FILE *file_of(int fd, fb_span in)
{
    fb_fuzz_require(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    FILE *file = fdopen(dup(fd), "w+");
    fb_fuzz_require(file != NULL);
    if ((bits & (EXPORTED | SUMMED)) == (EXPORTED | SUMMED)) {
        lines_summed(file, in);
    } else if (in.len != 0) {
        fb_fuzz_require(fwrite(in.p, 1, in.len, file) == in.len);
    }
    fb_fuzz_require(fflush(file) == 0);
    return file;
}

/* Lines with anything on them. */
static unsigned records_in(fb_span lines)
{
    unsigned count = 0;
    bool blank = true;
    for (size_t i = 0; i < lines.len; i++) {
        if (lines.p[i] == '\n') {
            blank = true;
        } else if (blank && strchr(" \t\r", lines.p[i]) == NULL) {
            blank = false;
            count++;
        }
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("import", 0);
        fb_fuzz_require(fd >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        /* What is said to people about a file is of no use here. */
        stderr = fopen("/dev/null", "w");
        fb_fuzz_require(stderr != NULL);
    }
    if (size == 0) return 0;
    bits = data[0];
    requests = written = 0;
    FILE *file = file_of(fd, fb_span_of(data + 1, size - 1));
    if ((bits & EXPORTED) != 0) expect_lines_back(file);
    fclose(file);

    static fb_cli cli;
    memset(&cli, 0, sizeof cli);
    if ((bits & EXPORTED) != 0) {
        cli.argc = 1;
        cli.argv[0] = path;
        if ((bits & INTO) != 0) {
            cli.options[cli.option_count].name = "space";
            cli.options[cli.option_count++].value = SPACE;
        }
        if ((bits & DISPLAYED) != 0) cli.options[cli.option_count++].name = "displayed";
        fb_cmd_import(&cli);
    } else {
        cli.argc = 3;
        cli.argv[0] = SPACE;
        cli.argv[1] = "notes";
        cli.argv[2] = path;
        fb_exit exit = fb_cmd_record_import(&cli);
        bool obeys = (bits & (REFUSES | SILENT)) == 0;
        /* What is wrong with the file is found before anything is written. */
        fb_fuzz_require(!obeys || exit == FB_EXIT_OK || requests == 0);
        fb_fuzz_require(!obeys || exit != FB_EXIT_OK ||
                        written == records_in(fb_span_of(data + 1, size - 1)));
    }
    return 0;
}
