/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/command/http_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/home.h"

/* A connection and what was read from it but not used. */
typedef struct channel {
    int fd;
    char buffer[16384];
    size_t at, len;
    bool chunked;
    bool sized;  /* Content-Length was given */
    size_t left; /* of the chunk, or of the sized body */
    bool over;   /* the body's end was read */
    bool broken;
    bool silent; /* nothing came for as long as this command waits */
} channel;

static bool fill(channel *c)
{
    ssize_t n;
    do {
        n = recv(c->fd, c->buffer, sizeof c->buffer, 0);
    } while (n < 0 && errno == EINTR);
    c->silent = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    c->at = 0;
    c->len = n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool read_line(channel *c, char *out, size_t cap)
{
    size_t len = 0;
    for (;;) {
        if (c->at == c->len && !fill(c)) return false;
        char byte = c->buffer[c->at++];
        if (byte == '\n') break;
        if (len + 1 == cap) return false;
        out[len++] = byte;
    }
    if (len > 0 && out[len - 1] == '\r') len--;
    out[len] = 0;
    return true;
}

static bool chunk_begin(channel *c)
{
    char line[64];
    char *end = NULL;
    if (!read_line(c, line, sizeof line)) return false;
    c->left = strtoull(line, &end, 16);
    if (end == line) return false;
    if (c->left == 0) {
        read_line(c, line, sizeof line); /* no trailers are sent */
        c->over = true;
    }
    return true;
}

/* The next part of the body, borrowed; empty at its end. */
static fb_span body_next(channel *c)
{
    char line[8];
    if (c->chunked && !c->over && c->left == 0 && !chunk_begin(c)) c->broken = c->over = true;
    if (c->sized && c->left == 0) c->over = true;
    if (c->over) return (fb_span){NULL, 0};
    if (c->at == c->len && !fill(c)) {
        /* Without a length the end of the connection is the end of the body. */
        c->broken = c->chunked || c->sized;
        c->over = true;
        return (fb_span){NULL, 0};
    }
    size_t n = c->len - c->at;
    if ((c->chunked || c->sized) && n > c->left) n = c->left;
    fb_span part = fb_span_of(c->buffer + c->at, n);
    c->at += n;
    c->left -= n;
    if (c->chunked && c->left == 0) {
        /* The line end behind a chunk may come with the next read, which moves the buffer: the part
         * is used before that only if it is all here. */
        if (c->len - c->at >= 2) {
            c->at += 2;
        } else {
            static char kept[sizeof c->buffer];
            memcpy(kept, part.p, part.len);
            part.p = (uint8_t *)kept;
            if (!read_line(c, line, sizeof line)) c->broken = true;
        }
    }
    return part;
}

void fb_path_put(fb_text *path, const char *segment)
{
    fb_text_put(path, "/");
    fb_path_escape(path, segment);
}

void fb_path_escape(fb_text *path, const char *value)
{
    for (const char *p = value; *p != 0; p++) {
        unsigned char c = (unsigned char)*p;
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '-' || c == '_' || c == '.' || c == '~';
        if (plain) {
            fb_text_bytes(path, p, 1);
        } else {
            fb_text_format(path, "%%%02X", c);
        }
    }
}

static unsigned long long patience(const fb_cli *cli)
{
    return cli->wait_s + cli->wait_more_s;
}

static fb_exit silent(const fb_cli *cli)
{
    return fb_cli_fail(FB_EXIT_UNREACHABLE,
                       "the node in %s said nothing for %llu s: it is stopped or very busy; what "
                       "was asked may still be done (command-timeout says how long to wait)",
                       fb_settings_get(&cli->settings, FB_SET_HOME), patience(cli));
}

static fb_exit unreachable(const fb_cli *cli, const fb_home *home)
{
    if (errno == EAGAIN) return silent(cli);
    if (errno == ENOENT || errno == ECONNREFUSED) {
        return fb_cli_fail(FB_EXIT_UNREACHABLE,
                           "no node runs in %s; start it with: faberio run --home %s", home->path,
                           home->path);
    }
    return fb_cli_fail(errno == EACCES || errno == EPERM ? FB_EXIT_NOT_AUTHORISED
                                                         : FB_EXIT_UNREACHABLE,
                       "%s/api.sock: %s", home->path, strerror(errno));
}

static bool send_all(channel *c, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(c->fd, bytes, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        c->silent = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (n <= 0) return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

bool fb_http_is_answered(const fb_cli *cli)
{
    char why[256];
    fb_home home;
    if (!fb_home_open(fb_settings_get(&cli->settings, FB_SET_HOME), &home, why, sizeof why)) {
        return false;
    }
    int fd = fb_home_connect(&home, "api.sock", patience(cli));
    if (fd >= 0) close(fd);
    return fd >= 0;
}

/* Sends the request and reads status and headers. */
static fb_exit begin(const fb_cli *cli, const char *method, const char *path, const char *headers,
                     const char *body, channel *c, fb_http_response *out)
{
    char why[256];
    fb_home home;
    memset(c, 0, sizeof *c);
    memset(out, 0, sizeof *out);
    if (!fb_home_open(fb_settings_get(&cli->settings, FB_SET_HOME), &home, why, sizeof why)) {
        return fb_cli_fail(FB_EXIT_USAGE, "%s", why);
    }
    const char *token = getenv("FABERIO_TOKEN");
    if (token != NULL && strspn(token, "0123456789abcdef") != strlen(token)) {
        return fb_cli_fail(FB_EXIT_NOT_AUTHORISED, "FABERIO_TOKEN: not a token");
    }
    c->fd = fb_home_connect(&home, "api.sock", patience(cli));
    if (c->fd < 0) return unreachable(cli, &home);
    fb_text request = {0};
    fb_text_format(&request, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s", method,
                   path, headers != NULL ? headers : "");
    if (token != NULL) fb_text_format(&request, "Authorization: Bearer %s\r\n", token);
    if (body != NULL) {
        fb_text_format(&request, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                       strlen(body));
    }
    fb_text_put(&request, "\r\n");
    if (body != NULL) fb_text_put(&request, body);
    bool sent = send_all(c, request.p, request.len);
    fb_text_free(&request);
    char line[2048];
    if (!sent || !read_line(c, line, sizeof line) || strncmp(line, "HTTP/1.1 ", 9) != 0) {
        close(c->fd);
        return c->silent ? silent(cli)
                         : fb_cli_fail(FB_EXIT_UNREACHABLE, "the node in %s went away", home.path);
    }
    out->status = (unsigned)strtoul(line + 9, NULL, 10);
    while (read_line(c, line, sizeof line) && line[0] != 0) {
        if (strncasecmp(line, "Transfer-Encoding: chunked", 26) == 0) c->chunked = true;
        if (strncasecmp(line, "Content-Length: ", 16) == 0) {
            c->sized = true;
            c->left = strtoull(line + 16, NULL, 10);
        }
        if (strncasecmp(line, "Content-Type: application/problem+json", 38) == 0) {
            out->problem = true;
        }
    }
    return FB_EXIT_OK;
}

fb_exit fb_http_call(const fb_cli *cli, const char *method, const char *path, const char *headers,
                     const char *body, fb_http_response *out)
{
    channel c;
    fb_exit exit = begin(cli, method, path, headers, body, &c, out);
    if (exit != FB_EXIT_OK) return exit;
    while (!c.over) {
        fb_span part = body_next(&c);
        fb_text_bytes(&out->body, part.p, part.len);
    }
    close(c.fd);
    if (!c.broken && !c.silent) return FB_EXIT_OK;
    fb_http_free(out);
    if (c.silent) return silent(cli);
    return fb_cli_fail(FB_EXIT_UNREACHABLE, "the node went away before its answer was complete");
}

void fb_http_free(fb_http_response *response)
{
    fb_text_free(&response->body);
}

/* Escaped as in a JSON string, but for its quotes: what is read is not parsed again. */
static void problem_text(fb_text *out, const char *text)
{
    fb_text escaped = {0};
    fb_json_string(&escaped, fb_span_text(text));
    for (size_t i = 1; i + 1 < escaped.len; i++) {
        bool quote = escaped.p[i] == '\\' && escaped.p[i + 1] == '"';
        bool pair = escaped.p[i] == '\\' && !quote;
        if (!quote) fb_text_bytes(out, &escaped.p[i], 1);
        if (pair) fb_text_bytes(out, &escaped.p[++i], 1);
    }
    fb_text_free(&escaped);
}

/* "TITLE: DETAIL" of a problem; what came from elsewhere is escaped. */
void fb_http_problem_print(const fb_text *body, unsigned status)
{
    json_error_t error;
    json_t *problem = json_loadb(fb_text_string(body), body->len, 0, &error);
    const char *title = json_string_value(json_object_get(problem, "title"));
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    /* Where the detail says it all over again, it is enough. */
    if (title != NULL && detail != NULL && strncmp(detail, title, strlen(title)) == 0) {
        title = detail;
    }
    fb_text line = {0};
    if (title == NULL) {
        fb_text_format(&line, "HTTP status %u", status);
    } else {
        problem_text(&line, title);
        if (detail != NULL && strcmp(title, detail) != 0) {
            fb_text_put(&line, ": ");
            problem_text(&line, detail);
        }
    }
    fb_cli_fail(FB_EXIT_FAILED, "%s", fb_text_string(&line));
    fb_text_free(&line);
    json_decref(problem);
}

fb_exit fb_http_run(const fb_cli *cli, const char *method, const char *path, const char *headers,
                    const char *body, fb_text *answer)
{
    fb_http_response response;
    *answer = (fb_text){0};
    fb_exit exit = fb_http_call(cli, method, path, headers, body, &response);
    if (exit != FB_EXIT_OK) return exit;
    exit = fb_exit_of_http(response.status);
    if (exit != FB_EXIT_OK) {
        fb_http_problem_print(&response.body, response.status);
        fb_http_free(&response);
        return exit;
    }
    *answer = response.body;
    return FB_EXIT_OK;
}

fb_exit fb_http_print(const fb_cli *cli, const char *method, const char *path, const char *body)
{
    fb_text answer;
    fb_exit exit = fb_http_run(cli, method, path, NULL, body, &answer);
    if (exit == FB_EXIT_OK) fb_print(cli, &answer);
    fb_text_free(&answer);
    return exit;
}

/* Events: lines "event: NAME", "data: TEXT", an empty line. */

typedef struct events {
    char name[32];
    fb_text data;
    fb_text line;
} events;

static fb_exit
events_line(events *e, fb_exit (*event)(void *user, const char *name, const char *data, bool *end),
            void *user, bool *end)
{
    const char *line = fb_text_string(&e->line);
    fb_exit exit = FB_EXIT_OK;
    if (line[0] == 0) {
        if (e->data.len > 0) exit = event(user, e->name, e->data.p, end);
        e->name[0] = 0;
        fb_text_clear(&e->data);
    } else if (strncmp(line, "event: ", 7) == 0) {
        snprintf(e->name, sizeof e->name, "%s", line + 7);
    } else if (strncmp(line, "data: ", 6) == 0) {
        fb_text_put(&e->data, line + 6);
    }
    fb_text_clear(&e->line);
    return exit;
}

fb_exit fb_http_events(const fb_cli *cli, const char *path, void (*ready)(void *user),
                       fb_exit (*event)(void *user, const char *name, const char *data, bool *end),
                       void *user)
{
    channel c;
    fb_http_response head;
    fb_exit exit = begin(cli, "GET", path, NULL, NULL, &c, &head);
    if (exit != FB_EXIT_OK) return exit;
    events e = {0};
    bool end = false;
    bool streams = head.status == 200;
    if (streams) ready(user);
    while (!c.over && !end) {
        fb_span part = body_next(&c);
        if (!streams) fb_text_bytes(&head.body, part.p, part.len);
        for (size_t i = 0; streams && i < part.len && !end; i++) {
            if (part.p[i] != '\n') {
                fb_text_bytes(&e.line, part.p + i, 1);
            } else {
                exit = events_line(&e, event, user, &end);
            }
        }
    }
    close(c.fd);
    if (!streams) {
        fb_http_problem_print(&head.body, head.status);
        exit = fb_exit_of_http(head.status);
    } else if (c.silent) {
        exit = silent(cli);
    } else if (!end) {
        exit = fb_cli_fail(FB_EXIT_UNREACHABLE, "the node ended the stream");
    }
    fb_http_free(&head);
    fb_text_free(&e.data);
    fb_text_free(&e.line);
    return exit;
}

/* Printing. */

static void scalar(fb_text *out, const json_t *value)
{
    if (json_is_string(value)) {
        fb_text quoted = {0};
        fb_json_string(&quoted, fb_span_text(json_string_value(value)));
        fb_text_bytes(out, quoted.p + 1, quoted.len - 2);
        fb_text_free(&quoted);
        return;
    }
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text != NULL) fb_json_visible(out, fb_span_text(text));
    free(text);
}

/* A member's value; an error that there is not has a word of its own, as null is a value too. */
static void value_show(fb_text *out, const char *name, const json_t *value)
{
    if (json_is_null(value) && strcmp(name, "last_error") == 0) {
        fb_text_put(out, "none");
    } else {
        scalar(out, value);
    }
}

/* name=value for each member. */
static void one_line(fb_text *out, const json_t *object)
{
    const char *before = "";
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)(uintptr_t)object, name, member)
    {
        fb_text_put(out, before);
        fb_log_value(out, fb_span_text(name));
        fb_text_put(out, "=");
        value_show(out, name, member);
        before = "  ";
    }
}

/* Of a time in milliseconds its text is there as well; names of fields are whoever's who wrote
 * them. */
static bool is_twin(const json_t *object, const char *name, bool fields)
{
    size_t len = strlen(name);
    char plain[64];
    if (fields || len <= 3 || strcmp(name + len - 3, "_ms") != 0) return false;
    snprintf(plain, sizeof plain, "%.*s", (int)(len - 3), name);
    return json_object_get(object, plain) != NULL;
}

/* For people: a line for each member, lists below it indented. Times have their twin left out. */
static void people(fb_text *out, const json_t *value, int depth, bool fields)
{
    if (json_is_object(value)) {
        const char *name;
        json_t *member;
        json_object_foreach((json_t *)(uintptr_t)value, name, member)
        {
            size_t len = strlen(name);
            if (is_twin(value, name, fields)) continue;
            bool nested = json_is_object(member) || json_is_array(member);
            int width = depth < 8 ? 20 - depth * 2 : 4;
            /* Names of fields are chosen by whoever writes the record. */
            fb_text shown = {0};
            fb_log_value(&shown, fb_span_text(name));
            fb_text_format(out, "%*s%-*s", depth * 2, "", nested ? 0 : width,
                           fb_text_string(&shown));
            fb_text_free(&shown);
            if (!nested) {
                fb_text_put(out, " ");
                value_show(out, name, member);
                fb_text_put(out, "\n");
            } else if (json_array_size(member) + json_object_size(member) == 0) {
                fb_text_format(out, "%*s -\n", (int)len < width ? width - (int)len : 0, "");
            } else {
                fb_text_put(out, "\n");
                people(out, member, depth + 1, fields || strcmp(name, "fields") == 0);
            }
        }
        return;
    }
    size_t index;
    json_t *element;
    json_array_foreach((json_t *)(uintptr_t)value, index, element)
    {
        fb_text_format(out, "%*s", depth * 2, "");
        if (json_is_object(element)) {
            one_line(out, element);
        } else {
            scalar(out, element);
        }
        fb_text_put(out, "\n");
    }
}

void fb_print_line(const char *object)
{
    json_error_t error;
    json_t *tree = json_loads(object, 0, &error);
    fb_text out = {0};
    if (tree != NULL) {
        one_line(&out, tree);
    } else {
        fb_text_put(&out, object);
    }
    puts(fb_text_string(&out));
    fb_text_free(&out);
    json_decref(tree);
}

void fb_print_text(const fb_text *text)
{
    json_error_t error;
    json_t *tree = json_loadb(fb_text_string(text), text->len, 0, &error);
    fb_text out = {0};
    if (tree == NULL) fb_text_bytes(&out, text->p, text->len);
    if (tree != NULL) people(&out, tree, 0, false);
    fputs(fb_text_string(&out), stdout);
    if (tree == NULL) puts("");
    fb_text_free(&out);
    json_decref(tree);
}

void fb_print(const fb_cli *cli, const fb_text *answer)
{
    if (cli->json) {
        puts(fb_text_string(answer));
    } else {
        fb_print_text(answer);
    }
}

bool fb_print_list(const fb_cli *cli, const fb_text *answer, const char *member)
{
    fb_json_object_in object;
    char why[160];
    if (!fb_json_object_read(fb_span_of(answer->p, answer->len), &object, why, sizeof why)) {
        return false;
    }
    const json_t *list = json_object_get(object.tree, member);
    bool found = json_is_array(list);
    fb_text out = {0};
    for (size_t i = 0; i < object.count && found; i++) {
        if (strcmp(fb_text_string(&object.members[i].name), member) != 0) continue;
        fb_span array = fb_span_of(object.members[i].value.p, object.members[i].value.len);
        fb_span element;
        size_t at = 0;
        while (fb_json_element_next(array, &at, &element)) {
            fb_text_bytes(&out, element.p, element.len);
            fb_text_put(&out, "\n");
        }
    }
    if (!cli->json) {
        fb_text_clear(&out);
        people(&out, list, 0, false);
    }
    fputs(fb_text_string(&out), stdout);
    fb_text_free(&out);
    fb_json_object_free(&object);
    return found;
}
