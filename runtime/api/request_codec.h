/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments and answers of local requests (protocol/core/request.h), to and from JSON. */
#ifndef FB_RUNTIME_API_REQUEST_CODEC_H
#define FB_RUNTIME_API_REQUEST_CODEC_H

#include "protocol/base/cursor.h"
#include "protocol/base/error.h"
#include "runtime/text.h"

/* Arguments are built here: room for the largest request. */
#define FB_ARGUMENT_BYTES_MAX (1u << 20)

/* One row of SPACE_LIST's answer. */
typedef struct fb_space_row {
    fb_id space;
    fb_span name;
    uint8_t status;
    uint8_t role;
    uint32_t members;
    uint32_t areas;
    uint32_t links;
    uint32_t doubts;  /* collections in doubt */
    uint32_t waiting; /* and those that wait for a link to a member who may write */
} fb_space_row;

fb_space_row fb_space_row_next(fb_reader *r);

/* One row of PEER_LIST's answer. */
typedef struct fb_peer_row {
    fb_id space;
    fb_id node; /* zeros: not known */
    fb_span address;
    uint8_t state;
    fb_error last;
    int64_t offset_us;
    uint64_t heard_ns;
    uint64_t link;
} fb_peer_row;

fb_peer_row fb_peer_row_next(fb_reader *r);

/* "approved", "pending", "revoked", else "none". */
const char *fb_status_name(uint8_t status);
/* "admin", "writer", "reader", else "none"; and back, 0 for another text. */
const char *fb_role_name(uint8_t role);
uint8_t fb_role_parse(const char *name);

/* A collection by name, or by its area's id when the text is a UUID of version 7. */
void fb_collection_write(fb_writer *w, const char *collection);

/* The error's name, or null. */
void fb_json_error(fb_text *out, const char *name, fb_error error);

/* Each appends one JSON object or array to out; false when the answer breaks its format. */
/* held: who holds the cut back in each of them is told as well; may be NULL. */
struct fb_held_back;
bool fb_json_spaces(fb_text *out, fb_reader *r, const struct fb_held_back *held);
bool fb_json_members(fb_text *out, fb_reader *r);
bool fb_json_peers(fb_text *out, fb_reader *r, uint64_t now_mono_ns);
bool fb_json_peer_messages(fb_text *out, fb_reader *r);
/* {"id","etag","fields":{...},"conflicts":{...}}; of one that is larger than an answer without its
 * fields, and "error":"limit". */
bool fb_json_record(fb_text *out, fb_reader *r);

/* A cursor of a change feed: its place in the changelog, which life of the node wrote it, and of
 * which space it is, by the end of its id: life and number may be the same in another one. As text
 * the number, 16 and 8 hex digits with dashes between; 0 alone is before everything. */
#define FB_CURSOR_TEXT_MAX 46u
typedef struct fb_feed_cursor {
    uint64_t sequence;
    uint64_t incarnation;
    uint32_t space;
} fb_feed_cursor;
uint32_t fb_feed_space(fb_id space);
fb_feed_cursor fb_feed_cursor_read(fb_reader *r, fb_id space);
bool fb_feed_cursor_parse(const char *text, fb_feed_cursor *out);
const char *fb_feed_cursor_format(fb_feed_cursor cursor, char out[FB_CURSOR_TEXT_MAX + 1]);

/* Invites as people see them: "fbinvite1." and base64url without padding. */
void fb_invite_text(fb_span invite, fb_text *out);
/* White space around it is ignored. False when it is no such text. */
bool fb_invite_bytes(fb_span text, uint8_t *out, size_t cap, size_t *len);

#endif
