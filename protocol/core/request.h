/* SPDX-License-Identifier: Apache-2.0 */
/* Local requests: what an application, an operator's command or the simulator's workload asks of
 * its own node (FB_EV_REQUEST), and what it gets (FB_FX_REPLY).
 *
 * Arguments and answers are bytes in the layouts below, big-endian; span16 and span32 are a length
 * and bytes; an id is 16 bytes. Trailing bytes are FB_ERR_REQUEST_MALFORMED. A request has exactly
 * one last reply (c = 0); only streams have earlier ones (c = 1), against REQUEST_CREDIT.
 * Principal 0 is the operator; an application may use only what is marked [app], in spaces where it
 * is allowed (else FB_ERR_NOT_AUTHORISED, and no message ever exists).
 *
 * collection: u8 1 and span16 name, or u8 2 and the area's id.
 * dot: node id, u64 incarnation, u64 sequence. etag: 16 bytes, the record's fingerprint.
 * A field's value is one JSON text without insignificant white space. */
#ifndef FB_CORE_REQUEST_H
#define FB_CORE_REQUEST_H

#include "protocol/base/error.h"
#include "protocol/base/types.h"

typedef struct fb_node fb_node;

typedef enum fb_verb {
    /* () -> node id, public key (32), u64 incarnation, u32 spaces, u32 links, u64 w durable,
     * u8 running, u64 state bytes, then u16 count and for each counter: u16 metric, u64 total */
    FB_VERB_STATUS = 1,

    /* span16 name, then nothing or the public recovery key (32) -> space id [idempotence: none] */
    FB_VERB_SPACE_CREATE = 10,
    /* () -> u16 count, each: space id, span16 name, u8 own status, u8 own role, u32 members,
     * u32 areas, u32 links, u32 areas in doubt, u32 of these that wait for a link to a member who
     * may write (database.h) */
    FB_VERB_SPACE_LIST = 11,
    /* space id, u32 uses (0: one), u64 seconds valid (0: a day), span16 address where this node can
     * be dialled -> span16 invite (bytes with the secret; people see them as text) */
    FB_VERB_SPACE_INVITE = 12,
    /* span16 invite, then nothing or span16 address where this node can be dialled -> space id, u8
     * status (1 approved, 2 pending): once an approved member has taken the request. FB_ERR_INVITE:
     * expired by this node's clock, or no invite. Asked again it goes on with what there is. */
    FB_VERB_SPACE_JOIN = 13,
    /* space id -> u16 count, each: node id, public key, u8 status (1 approved, 2 pending,
     * 3 revoked), u8 role (1 admin, 2 writer, 3 reader) */
    FB_VERB_SPACE_MEMBERS = 14,
    /* space id, node id, u8 role -> nothing; FB_ERR_NOT_ASKED for a node that has not asked */
    FB_VERB_SPACE_APPROVE = 15,
    /* space id, node id, u8 role -> nothing, or, for a lesser role than it has, as REVOKE.
     * FB_ERR_CONFLICT: it is the last admin. FB_ERR_REVOKED: approve it again instead */
    FB_VERB_SPACE_ROLE = 16,
    /* space id, then nothing or u8 1 (a request alone: FB_ERR_UNSUPPORTED for a member) -> nothing:
     * an unanswered request to join is given up, and the space is not known
     * any more. A member states that it leaves; what it has stays here. FB_ERR_CONFLICT: an
     * approved member has taken the request, or this node is the last admin. */
    FB_VERB_SPACE_LEAVE = 17,

    /* space id, node id -> u32 areas, u32 lives that the cut names, u64 batches that this node
     * knows of and has not: they are lost. FB_ERR_CONFLICT: the last admin. FB_ERR_NOT_MEMBER: it
     * only asked to join */
    FB_VERB_SPACE_REVOKE = 19,
    /* space id, span16 name -> nothing: every member calls it so, from when it hears of it */
    FB_VERB_SPACE_RENAME = 18,

    /* space id, node id -> recovery key of the space (32), key of the member (32), u8 number, u32
     * turn: of these that key makes the signature by which the member is an admin (recovery.h).
     * FB_ERR_UNSUPPORTED: the space has none */
    FB_VERB_SPACE_RECOVERY = 26,
    /* space id, node id, u8 number, u32 turn, signature (64) -> nothing. FB_ERR_NOT_AUTHORISED: it
     * is not the recovery key's */
    FB_VERB_SPACE_RECOVER = 27,

    /* space id, node id of an approved member -> u8 fb_report_state, i64 stamp of its report (0
     * without), u64 batches here that it has not said to hold and that wait for it, u64 batches
     * that wait for anybody. FB_ERR_LIMIT: too many members, nothing is folded there */
    FB_VERB_SPACE_REPORTED = 28,

    /* span16 name -> u64 principal, 32 bytes of token; FB_ERR_EXISTS */
    FB_VERB_APP_CREATE = 20,
    /* span16 name, space id -> nothing */
    FB_VERB_APP_ALLOW = 21,
    /* span16 name -> nothing: its token ends */
    FB_VERB_APP_REVOKE = 22,
    /* 32 bytes of token -> u64 principal; FB_ERR_NOT_AUTHORISED */
    FB_VERB_APP_AUTHENTICATE = 23,

    /* space id, span16 address -> nothing: this address is dialled from now on */
    FB_VERB_PEER_ADD = 30,
    /* space id, span16 address -> nothing; the link that was made through it is closed.
     * FB_ERR_NOT_FOUND when it is not dialled */
    FB_VERB_PEER_FORGET = 31,
    /* () -> u16 count, each: space id, node id (zeros while unknown), span16 address (empty for one
     * that dialled us), u8 state (0 idle, 1 dialling, 2 handshake, 3 pending, 4 open), u32 last
     * fb_error, i64 clock offset in us, u64 last heard (mono_ns), u64 link */
    FB_VERB_PEER_LIST = 32,
    /* () -> u8 whole (0: there are more), u16 count, each member with whom messages were exchanged
     * since START: space id, node id, u8 offset known, i64 clock offset in us (0 without a link),
     * u64 delivered, u64 conflicts among them, u64 floor resets, u64 dropped on the way to it,
     * u8 reasons, each: u16 fb_error, u64 messages of it refused (profile 5) */
    FB_VERB_PEER_MESSAGES = 33,

    /* [app] space id, collection, record id (zeros: a new one), u8 mode (1 replace: fields not
     * named are removed; 2 change), u8 condition (0 none, 1 etag must match, 2 must be absent),
     * etag (16, zeros without), u16 count, each: span16 field name, u8 (1 set, 2 unset, 3 add an
     * integer, 4 insert an element, 5 remove one), span32 value (empty for unset) -> record id, u8
     * created, etag. FB_ERR_CONFLICT, FB_ERR_FIELD_KIND, FB_ERR_VALUE_MALFORMED. Durable when
     * answered. */
    FB_VERB_RECORD_PUT = 40,
    /* [app] space id, collection, record id -> record: id, etag, u16 fields, each: span16 name, u16
     * siblings, each: dot, i64 stamp, span32 value; the displayed one first. A counter is its sum,
     * a set an array, each with the newest dot and stamp of its parts. FB_ERR_NOT_FOUND. */
    FB_VERB_RECORD_GET = 41,
    /* [app] space id, collection, record id, u8 condition, etag -> nothing; FB_ERR_NOT_FOUND */
    FB_VERB_RECORD_DELETE = 42,
    /* [app] space id, collection, record id after (zeros: from the start), u32 limit -> u8 whole,
     * u16 count, each a record as in GET, or with 65,535 for the number of its fields and none of
     * them: larger than an answer, GET gives FB_ERR_LIMIT */
    FB_VERB_RECORD_LIST = 43,
    /* [app] space id, cursor after which it begins (zeros: with what is kept from the first change
     * on; sequence UINT64_MAX: only what is new) -> stream, each reply: u16 count, each: cursor,
     * area id, record id, u8 (1 changed, 2 deleted), span16 collection name; and behind them the
     * cursor that the caller is at then. The first reply has no changes: it says where the watch
     * begins. cursor: u64 sequence in the changelog, u64 incarnation that wrote it.
     * FB_ERR_CURSOR_OLD (also later: the caller was too slow), FB_ERR_CURSOR_UNKNOWN. */
    FB_VERB_RECORD_WATCH = 44,
    /* [app] u16 count, then each as RECORD_PUT or RECORD_DELETE with its verb (u8) before; one
     * write set, all or none -> u16 count, each: record id, u8 created, etag. Refused for what the
     * record of one of them is: u16, which one */
    FB_VERB_RECORD_BATCH = 45,
    /* space id, u16 count at most, then nothing or the area id after which it goes on; ask on until
     * none come -> u16 count, each: area id, u8 kind, span16 name, 16 bytes of
     * root fingerprint, u32 vector entries, each: node id, u64 incarnation, u64 batch, u64 last
     * seq; FB_AREA_TOO_LARGE in their place: no answer has room for all of them */
    FB_VERB_AREAS = 46,
    /* space id, collection, node id of a member -> u8 fb_verify_state, 16 bytes of fingerprint
     * here and 16 there, u8 all that differs was found, u64 records that differ, u16 count, each
     * the id of one that is here. FB_ERR_UNREACHABLE: no link to that member; FB_ERR_BUSY */
    FB_VERB_RECORD_VERIFY = 47,

    /* space id, node id of a member, area id after which it goes on (zeros: from the first) -> the
     * collections that it says to have: u16 count, each: area id, u8 kind, span16 name; ask on
     * until none come. FB_ERR_UNREACHABLE: no link to that member; FB_ERR_BUSY */
    FB_VERB_PEER_AREAS = 48,

    /* space id, u16 count, each an area id -> nothing: announces `changed` of these areas, held
     * here or not. The replication engine's own entrance, for the bench and the conformance
     * adapter. */
    FB_VERB_PUBLISH = 50,
} fb_verb;

#define FB_VERBS_MAX 64u

#define FB_AREA_TOO_LARGE UINT32_MAX

/* Who asked, as planes see it. */
typedef struct fb_request {
    uint64_t number;
    uint64_t principal;
    uint32_t verb;
    uint32_t index; /* in the table of open requests */
} fb_request;

/* A plane's entrance for one verb: called within the step of the request. Exactly one of:
 * fb_reply, fb_reply_held, or keeping request.index for later and then one of the two. */
typedef void (*fb_verb_handler)(fb_node *node, fb_request request, fb_span arguments);

/* From a plane's layout. */
void fb_verb_register(fb_node *node, fb_verb verb, fb_verb_handler handler);

/* Called for an open request whose caller is gone, before its place is freed. */
typedef void (*fb_cancel_handler)(fb_node *node, uint32_t index, uint64_t user);

/* What the plane wants to find again when credit arrives or the caller leaves; also marks the
 * request as a stream. */
void fb_request_keep(fb_node *node, uint32_t index, fb_cancel_handler cancelled, uint64_t user);

/* The last answer, now: only for what depends on nothing unfinished. At most FB_REPLY_BYTES_MAX;
 * only from a verb handler or the run of an operation, where the arena has room by contract. A
 * request that is gone is ignored, as in the two below. */
void fb_reply(fb_node *node, uint32_t index, fb_status status, fb_span answer);

/* The last answer, when write set w is durable; at most FB_REPLY_HELD_BYTES. When the incarnation
 * ends before, the caller gets FB_ERR_AGAIN. Answers go out in the order of these calls. */
void fb_reply_held(fb_node *node, uint32_t index, fb_status status, uint64_t w, fb_span answer);

/* One more answer of a stream: false when the caller's credit or the arena has no room for it (then
 * nothing happened, and the plane's flush tries again). */
bool fb_reply_more(fb_node *node, uint32_t index, fb_span answer);

/* The request as it was asked, while it is open; number 0 when it is gone. */
fb_request fb_request_at(const fb_node *node, uint32_t index);
/* Bytes of answers that the caller of a stream still takes. */
uint64_t fb_request_credit(const fb_node *node, uint32_t index);

#endif
