/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/json_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/base/assert.h"

static json_t *parse(fb_span text, size_t flags, char *why, size_t why_len)
{
    json_error_t error;
    /* Jansson passes over a zero byte behind a number. */
    if (text.len != 0 && memchr(text.p, 0, text.len) != NULL) {
        snprintf(why, why_len, "a zero byte is no JSON");
        return NULL;
    }
    json_t *tree =
        json_loadb((const char *)text.p, text.len, flags | JSON_REJECT_DUPLICATES, &error);
    if (tree == NULL) {
        /* What jansson quotes of the input may hold anything. */
        fb_text safe = {0};
        fb_json_string(&safe, fb_span_text(error.text));
        if (error.line > 0) {
            snprintf(why, why_len, "line %d, column %d: %.*s", error.line, error.column,
                     (int)(safe.len - 2), safe.p + 1);
        } else {
            snprintf(why, why_len, "%.*s", (int)(safe.len - 2), safe.p + 1);
        }
        fb_text_free(&safe);
    }
    return tree;
}

static bool is_white(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The rest walks text that was parsed before, so every bracket and quote has its partner. */

static size_t string_end(fb_span text, size_t at)
{
    for (at++; text.p[at] != '"'; at++) {
        if (text.p[at] == '\\') at++;
    }
    return at + 1;
}

static size_t value_end(fb_span text, size_t at)
{
    int depth = 0;
    while (at < text.len) {
        uint8_t c = text.p[at];
        if (c == '"') {
            at = string_end(text, at);
            if (depth == 0) return at;
            continue;
        }
        if (c == '{' || c == '[') depth++;
        if (c == '}' || c == ']') {
            if (depth == 0) return at;
            if (--depth == 0) return at + 1;
        }
        if (depth == 0 && (c == ',' || is_white(c))) return at;
        at++;
    }
    return at;
}

static void minify(fb_span text, fb_text *out)
{
    size_t at = 0;
    while (at < text.len) {
        if (is_white(text.p[at])) {
            at++;
        } else if (text.p[at] == '"') {
            size_t end = string_end(text, at);
            fb_text_bytes(out, text.p + at, end - at);
            at = end;
        } else {
            fb_text_bytes(out, text.p + at, 1);
            at++;
        }
    }
}

static void name_read(fb_span quoted, fb_text *out)
{
    json_error_t error;
    json_t *name =
        json_loadb((const char *)quoted.p, quoted.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    FB_ASSERT(name != NULL);
    fb_text_bytes(out, json_string_value(name), json_string_length(name));
    json_decref(name);
}

static size_t skip_white(fb_span text, size_t at)
{
    while (at < text.len && is_white(text.p[at])) at++;
    return at;
}

bool fb_json_object_read(fb_span text, fb_json_object_in *out, char *why, size_t why_len)
{
    *out = (fb_json_object_in){0};
    json_t *tree = parse(text, 0, why, why_len);
    if (tree == NULL) return false;
    if (!json_is_object(tree)) {
        snprintf(why, why_len, "line 1, column 1: an object is expected");
        json_decref(tree);
        return false;
    }
    size_t count = json_object_size(tree);
    out->tree = tree;
    out->members = calloc(count + 1, sizeof *out->members);
    FB_ASSERT(out->members != NULL);
    size_t at = skip_white(text, 0) + 1;
    for (; out->count < count; out->count++) {
        fb_json_member_in *m = &out->members[out->count];
        while (text.p[at] != '"') at++;
        size_t end = string_end(text, at);
        name_read(fb_span_of(text.p + at, end - at), &m->name);
        while (text.p[end] != ':') end++;
        at = skip_white(text, end + 1);
        end = value_end(text, at);
        minify(fb_span_of(text.p + at, end - at), &m->value);
        at = end;
    }
    return true;
}

void fb_json_object_free(fb_json_object_in *object)
{
    for (size_t i = 0; i < object->count; i++) {
        fb_text_free(&object->members[i].name);
        fb_text_free(&object->members[i].value);
    }
    free(object->members);
    json_decref(object->tree);
    *object = (fb_json_object_in){0};
}

bool fb_json_element_next(fb_span array, size_t *at, fb_span *element)
{
    if (*at + 1 >= array.len || array.p[*at] == ']' || array.p[*at + 1] == ']') return false;
    size_t begin = *at + 1; /* behind the bracket or a comma */
    size_t end = value_end(array, begin);
    *element = fb_span_of(array.p + begin, end - begin);
    *at = end;
    return true;
}

bool fb_json_value_read(fb_span text, fb_text *out, char *why, size_t why_len)
{
    json_t *tree = parse(text, JSON_DECODE_ANY, why, why_len);
    if (tree == NULL) return false;
    json_decref(tree);
    minify(text, out);
    return true;
}
