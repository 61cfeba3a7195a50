/* SPDX-License-Identifier: Apache-2.0 */
/* What came with an HTTP request: headers, path, query, body. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "protocol/base/assert.h"
#include "runtime/api/exchange.h"

/* Is the word one of those in a list with blanks between? */
static bool listed(const char *list, const char *word, size_t len)
{
    while (list != NULL && *list != 0) {
        size_t n = strcspn(list, " ");
        if (n == len && memcmp(list, word, len) == 0) return true;
        list += n + (list[n] == ' ');
    }
    return false;
}

static bool malformed(fb_exchange *x, const char *title, const char *detail)
{
    fb_exchange_problem(x, 400, "request_malformed", title, detail);
    return false;
}

/* Headers. */

/* Of these a second one would let two readers of one request see two different requests. */
static const char *const single[] = {
    "Host",   "Content-Length", "Transfer-Encoding", "Content-Type",  "Authorization",
    "Origin", "If-Match",       "If-None-Match",     "Last-Event-ID",
};
#define SINGLES (sizeof single / sizeof single[0])

typedef struct headers {
    unsigned seen[SINGLES];
} headers;

static enum MHD_Result header_seen(void *user, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    (void)kind;
    (void)value;
    headers *h = user;
    for (size_t i = 0; i < SINGLES; i++) {
        /* Their first letters tell most of them apart; a letter's cases differ in one bit. */
        if (((name[0] ^ single[i][0]) & 0x5f) != 0) continue;
        h->seen[i] += strcasecmp(name, single[i]) == 0;
    }
    return MHD_YES;
}

const char *fb_exchange_header(fb_exchange *x, const char *name)
{
    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

static bool host_is_local(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t len = strlen(names[i]);
        if (strncasecmp(host, names[i], len) != 0) continue;
        if (host[len] == 0) return true;
        if (host[len] == ':' && strspn(host + len + 1, "0123456789") == strlen(host + len + 1)) {
            return true;
        }
    }
    return false;
}

/* A page of another site must reach neither listener: Host stops a name that was pointed at
 * loopback, Origin a request that a browser sends for a page. */
static bool from_here(fb_exchange *x)
{
    const char *host = fb_exchange_header(x, "Host");
    const char *origin = fb_exchange_header(x, "Origin");
    if (x->on_port && (host == NULL || !host_is_local(host))) return false;
    if (origin == NULL) return true;
    return x->on_port && strncmp(origin, "http://", 7) == 0 && strcmp(origin + 7, host) == 0;
}

bool fb_exchange_headers_check(fb_exchange *x, const char *version)
{
    headers h = {{0}};
    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, header_seen, &h);
    for (size_t i = 0; i < SINGLES; i++) {
        if (h.seen[i] > 1) return malformed(x, "a header is there twice", single[i]);
    }
    const char *length = fb_exchange_header(x, "Content-Length");
    const char *coding = fb_exchange_header(x, "Transfer-Encoding");
    if (h.seen[0] == 0 && strcmp(version, MHD_HTTP_VERSION_1_1) == 0) {
        return malformed(x, "a header is missing", "Host");
    }
    if (coding != NULL && (length != NULL || strcasecmp(coding, "chunked") != 0)) {
        return malformed(x, "the length of the body is not clear",
                         "either Content-Length or Transfer-Encoding: chunked");
    }
    if (length != NULL && (length[0] == 0 || strspn(length, "0123456789") != strlen(length))) {
        return malformed(x, "the length of the body is not clear", "Content-Length: a number");
    }
    if (from_here(x)) return true;
    fb_exchange_problem(x, 403, "not_authorised", "not asked from here",
                        "Host and Origin must be this machine's");
    return false;
}

/* Path and query. */

bool fb_exchange_decode(char *text)
{
    char *out = text;
    for (const char *in = text; *in != 0; in++) {
        if (*in != '%') {
            *out++ = *in;
            continue;
        }
        int value = 0;
        for (int i = 1; i <= 2; i++) {
            char c = in[i];
            int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
            if (digit < 0) return false;
            value = value * 16 + digit;
        }
        if (value == 0) return false;
        *out++ = (char)value;
        in += 2;
    }
    *out = 0;
    return fb_text_is_utf8(fb_span_text(text));
}

typedef struct reading {
    fb_exchange *x;
    const char *allowed;
    const char *wrong; /* what is, or NULL */
    const char *name;
} reading;

static enum MHD_Result argument_seen(void *user, enum MHD_ValueKind kind, const char *name,
                                     const char *value)
{
    (void)kind;
    reading *r = user;
    r->name = name;
    if (!listed(r->allowed, name, strlen(name))) {
        r->wrong = "an argument is not known";
        return MHD_NO;
    }
    int at = 0;
    while (at < FB_EXCHANGE_QUERY && r->x->query[at].name != NULL) {
        if (strcmp(r->x->query[at].name, name) == 0) r->wrong = "an argument is there twice";
        at++;
    }
    if (r->wrong != NULL) return MHD_NO;
    FB_ASSERT(at < FB_EXCHANGE_QUERY); /* no route has more */
    r->x->query[at].name = name;
    r->x->query[at].value = strdup(value != NULL ? value : "");
    FB_ASSERT(r->x->query[at].value != NULL);
    if (!fb_exchange_decode(r->x->query[at].value)) r->wrong = "an argument cannot be read";
    return r->wrong == NULL ? MHD_YES : MHD_NO;
}

bool fb_exchange_query_read(fb_exchange *x, const char *allowed)
{
    reading r = {.x = x, .allowed = allowed};
    MHD_get_connection_values(x->connection, MHD_GET_ARGUMENT_KIND, argument_seen, &r);
    return r.wrong == NULL || malformed(x, r.wrong, r.name);
}

const char *fb_exchange_query(const fb_exchange *x, const char *name)
{
    for (int i = 0; i < FB_EXCHANGE_QUERY; i++) {
        if (x->query[i].name != NULL && strcmp(x->query[i].name, name) == 0) {
            return x->query[i].value;
        }
    }
    return NULL;
}

/* Bodies. */

bool fb_exchange_body(fb_exchange *x, fb_json_object_in *out, const char *members)
{
    char why[200];
    fb_span body = x->body.len > 0 ? fb_span_of(x->body.p, x->body.len) : fb_span_text("{}");
    if (!fb_json_object_read(body, out, why, sizeof why)) {
        return malformed(x, "the body is not a JSON object as expected", why);
    }
    for (size_t i = 0; i < out->count && members != NULL; i++) {
        const fb_text *name = &out->members[i].name;
        if (listed(members, fb_text_string(name), name->len)) continue;
        snprintf(why, sizeof why, "%.64s: no such member; there are: %s", fb_text_string(name),
                 members);
        fb_json_object_free(out);
        fb_exchange_fail(x, FB_ERR_ARGUMENT, why);
        return false;
    }
    return true;
}

const char *fb_exchange_body_text(fb_exchange *x, const fb_json_object_in *body, const char *name,
                                  size_t max)
{
    const json_t *value = json_object_get(body->tree, name);
    char detail[96];
    if (!json_is_string(value)) {
        snprintf(detail, sizeof detail, "%s: a string is expected", name);
    } else if (json_string_length(value) == 0 || json_string_length(value) > max) {
        snprintf(detail, sizeof detail, "%s: 1 to %zu bytes are expected", name, max);
    } else {
        return json_string_value(value);
    }
    fb_exchange_fail(x, FB_ERR_ARGUMENT, detail);
    return NULL;
}

bool fb_exchange_body_option(fb_exchange *x, const fb_json_object_in *body, const char *name,
                             const char **out)
{
    const json_t *value = json_object_get(body->tree, name);
    *out = json_string_value(value);
    if (value == NULL || *out != NULL) return true;
    char detail[96];
    snprintf(detail, sizeof detail, "%s: a string is expected", name);
    fb_exchange_fail(x, FB_ERR_ARGUMENT, detail);
    return false;
}

bool fb_exchange_body_number(fb_exchange *x, const fb_json_object_in *body, const char *name,
                             int64_t max, uint64_t *out)
{
    const json_t *value = json_object_get(body->tree, name);
    if (value == NULL) return true;
    if (json_is_integer(value) && json_integer_value(value) >= 1 &&
        json_integer_value(value) <= max) {
        *out = (uint64_t)json_integer_value(value);
        return true;
    }
    char detail[96];
    snprintf(detail, sizeof detail, "%s: an integer within 1..%lld is expected", name,
             (long long)max);
    fb_exchange_fail(x, FB_ERR_ARGUMENT, detail);
    return false;
}

/* Answers. */

bool fb_exchange_refused(fb_exchange *x, fb_error error)
{
    if (error == FB_OK) return false;
    fb_exchange_fail(x, error, NULL);
    return true;
}

void fb_exchange_finish(fb_exchange *x, unsigned status, bool ok)
{
    if (!ok) {
        fb_exchange_fail(x, FB_ERR_EVENT_MALFORMED, "the node's answer");
        return;
    }
    fb_json_close(&x->out, '}');
    fb_exchange_answer(x, status);
}
