/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of errors. Zero means success and nothing else does; every other code is positive.
 *
 * A row: code, name (stable, part of the command contract), text for people, class.
 * Classes: OK; ARGUMENT (the caller's mistake, nothing happened); REFUSED (a peer's or a user's
 * input was wrong, state unchanged, counted); STATE (right input, wrong moment); AGAIN (try again);
 * STORE (the store failed or is damaged); FATAL (the instance must be destroyed). */
#ifndef FB_BASE_ERROR_H
#define FB_BASE_ERROR_H

#define FB_ERROR_TABLE(X)                                                                          \
    X(0, OK, "ok", "success", OK)                                                                  \
    /* Arguments and drivers */                                                                    \
    X(1, ARGUMENT, "argument", "an argument is out of its range", ARGUMENT)                        \
    X(2, NO_MEMORY, "no_memory", "the instance's allocator has no more memory", FATAL)             \
    X(3, NO_SPACE, "no_space", "the caller's buffer is smaller than the published minimum",        \
      ARGUMENT)                                                                                    \
    X(4, TIME_BACKWARDS, "time_backwards", "mono_ns is smaller than in an earlier event",          \
      ARGUMENT)                                                                                    \
    X(5, EVENT_UNKNOWN, "event_unknown", "no such kind of event in this version", ARGUMENT)        \
    X(6, EVENT_MALFORMED, "event_malformed", "the bytes of the event do not follow its format",    \
      ARGUMENT)                                                                                    \
    X(7, VERSION_OLDER, "version_older", "the store was written by an older program", STORE)       \
    X(8, REENTERED, "reentered", "step was called from within step", FATAL)                        \
    X(9, VERSION_NEWER, "version_newer", "the store was written by a newer program", STORE)        \
    X(10, STORE_DAMAGED, "store_damaged", "a value of the store does not follow its format",       \
      STORE)                                                                                       \
    X(11, STORE_FAILED, "store_failed", "a read or write of the store failed", STORE)              \
    X(12, BUSY, "busy", "a bounded table is full; try again", AGAIN)                               \
    X(13, AGAIN, "try_again", "the outcome is unknown or was dropped; try again", AGAIN)           \
    X(14, LIMIT, "limit", "a named limit would be passed", REFUSED)                                \
    X(15, NOT_FOUND, "not_found", "absent or deleted", STATE)                                      \
    X(16, CONFLICT, "conflict", "a precondition does not hold", STATE)                             \
    X(17, NOT_AUTHORISED, "not_authorised", "the caller may not do this", REFUSED)                 \
    X(18, UNSUPPORTED, "unsupported", "not built in this version, refused rather than guessed",    \
      REFUSED)                                                                                     \
    X(19, CANCELLED, "cancelled", "the caller gave up", STATE)                                     \
    X(20, DEADLINE, "deadline", "the deadline passed", AGAIN)                                      \
    X(21, UNREACHABLE, "unreachable", "no link to the peer", AGAIN)                                \
    X(22, REQUEST_MALFORMED, "request_malformed", "the request does not follow its format",        \
      ARGUMENT)                                                                                    \
    X(23, CLOCK, "clock", "the wall clock is outside what an identifier can carry", STATE)         \
    X(24, EXISTS, "exists", "it is there already", STATE)                                          \
    X(25, KEY, "key", "a key is missing, not a valid point, or not what was expected", REFUSED)    \
    X(26, CRYPTO, "crypto", "the cryptographic library failed its self-test", FATAL)               \
    X(27, STORE_LOCKED, "store_locked", "another process has the store open", STORE)               \
    /* Envelopes, messaging-profile 4 and 5: the names are the profile's reason names */           \
    X(40, TOO_LARGE, "too_large", "longer than the encoding allows", REFUSED)                      \
    X(41, MALFORMED, "malformed", "not in the form of the encoding", REFUSED)                      \
    X(42, BAD_UUID, "bad_uuid", "not a UUID of version 7, variant 10", REFUSED)                    \
    X(43, BAD_NODE_ID, "bad_node_id", "not a node id", REFUSED)                                    \
    X(44, BAD_MODE, "bad_mode", "neither unicast nor topic", REFUSED)                              \
    X(45, BAD_TARGET, "bad_target", "neither a node id nor a topic name", REFUSED)                 \
    X(46, BAD_TYPE, "bad_type", "not a message type of the platform", REFUSED)                     \
    X(47, BAD_PAYLOAD, "bad_payload", "the payload breaks a rule", REFUSED)                        \
    X(48, BAD_TIMESTAMP, "bad_timestamp", "not within 1..2^53-1", REFUSED)                         \
    X(49, WRONG_SPACE, "wrong_space", "another space than the connection's", REFUSED)              \
    X(50, NOT_ORIGIN, "not_origin", "the sender is not the peer of the connection", REFUSED)       \
    X(51, UNKNOWN_SENDER, "unknown_sender", "the sender is no approved member", REFUSED)           \
    X(52, REVOKED, "revoked", "the sender's membership was revoked", REFUSED)                      \
    X(53, RATE_LIMITED, "rate_limited", "the sender is over its rate", REFUSED)                    \
    X(54, BAD_SIGNATURE, "bad_signature", "the signature does not verify", REFUSED)                \
    X(55, STALE, "stale", "older than the window or at the sender's floor", REFUSED)               \
    X(56, FROM_FUTURE, "from_future", "further in the future than the window", REFUSED)            \
    X(57, WRONG_TARGET, "wrong_target", "addressed to another node", REFUSED)                      \
    X(58, NOT_SUBSCRIBED, "not_subscribed", "no local subscription to the topic", REFUSED)         \
    X(59, DUPLICATE, "duplicate", "the id was seen from this sender", REFUSED)                     \
    /* Links, messaging-profile 7 */                                                               \
    X(70, LINK_MAGIC, "link_magic", "the preamble is not this protocol's", REFUSED)                \
    X(71, LINK_VERSION, "link_version", "no common link version", REFUSED)                         \
    X(72, LINK_TAG, "link_tag", "the space tag is unknown here", REFUSED)                          \
    X(73, LINK_TOO_MANY, "link_too_many", "the acceptor has no place for another link", AGAIN)     \
    X(74, LINK_HANDSHAKE, "link_handshake", "a handshake message does not authenticate", REFUSED)  \
    X(75, LINK_BINDING, "link_binding", "the binding's signature does not verify", REFUSED)        \
    X(76, LINK_PEER, "link_peer", "another node answered than was dialled: a stale address",       \
      REFUSED)                                                                                     \
    X(77, LINK_RECORD, "link_record", "a record breaks the framing or does not authenticate",      \
      REFUSED)                                                                                     \
    X(78, LINK_REPLACED, "link_replaced", "another link to the same peer and space stays", STATE)  \
    X(79, LINK_SILENT, "link_silent", "nothing was heard within the liveness bound", STATE)        \
    X(80, LINK_MISBEHAVED, "link_misbehaved", "the peer used up its budget of misbehaviour",       \
      REFUSED)                                                                                     \
    X(81, LINK_PENDING, "link_pending", "a pending link ran out of time, bytes or places",         \
      REFUSED)                                                                                     \
    X(82, LINK_CLONE, "link_clone", "the peer proved this node's own key", REFUSED)                \
    X(83, LINK_CLOSED, "link_closed", "the carrier closed", STATE)                                 \
    X(84, LINK_SESSION, "link_session", "a frame of another session", REFUSED)                     \
    /* Calls */                                                                                    \
    X(90, CALL_MALFORMED, "call_malformed", "a frame of the calls channel breaks its format",      \
      REFUSED)                                                                                     \
    X(91, CALL_METHOD, "call_method", "no such method", REFUSED)                                   \
    X(92, CALL_CREDIT, "call_credit", "more was sent than the credit allows", REFUSED)             \
    X(93, CALL_FOLDED, "call_folded", "the batches asked for are folded: a snapshot is needed",    \
      STATE)                                                                                       \
    /* Records and statements */                                                                   \
    X(100, BATCH_MALFORMED, "batch_malformed", "a batch breaks its format", REFUSED)               \
    X(101, BATCH_SIGNATURE, "batch_signature", "a batch header's signature does not verify",       \
      REFUSED)                                                                                     \
    X(102, BATCH_CHAIN, "batch_chain", "a batch does not follow the header before it", REFUSED)    \
    X(103, BATCH_ROOT, "batch_root", "the changes do not match the header's root", REFUSED)        \
    X(104, BATCH_FORK, "batch_fork", "two headers with one number", REFUSED)                       \
    X(105, BATCH_POLICY, "batch_policy", "the signer had no right to this change", REFUSED)        \
    X(106, BATCH_EPOCH, "batch_epoch", "the batch names statements not known here yet", STATE)     \
    X(107, AREA_UNKNOWN, "area_unknown", "no such area here", REFUSED)                             \
    X(108, VALUE_MALFORMED, "value_malformed", "a field's value is not one JSON text", REFUSED)    \
    X(109, STATEMENT, "statement", "a statement breaks its format or the rules of the space",      \
      REFUSED)                                                                                     \
    X(110, INVITE, "invite", "the invite is unknown, used up or expired", REFUSED)                 \
    X(111, NOT_MEMBER, "not_member", "the node is no approved member of the space", REFUSED)       \
    X(112, NOT_ASKED, "not_asked", "the node has not asked to join", STATE)                        \
    X(113, BATCH_LIVES, "batch_lives",                                                             \
      "the signer has begun more lives than are kept of one node", REFUSED)                        \
    X(114, BATCH_EARLY, "batch_early",                                                             \
      "a batch replaces what has not come, in a record that is large already", STATE)              \
    X(130, BATCH_CUT, "batch_cut", "a batch is above what its signer was cut at", REFUSED)         \
    X(115, FIELD_KIND, "field_kind", "the field is of another kind: a value, a counter, a set",    \
      STATE)                                                                                       \
    X(116, CURSOR_OLD, "cursor_old",                                                               \
      "the changes after this cursor are not kept any more: list the records, then watch anew",    \
      STATE)                                                                                       \
    X(117, CURSOR_UNKNOWN, "cursor_unknown",                                                       \
      "this store never gave this cursor, or was set back: list the records, then watch anew",     \
      STATE)                                                                                       \
    X(118, BEHIND, "behind",                                                                       \
      "this node holds less than it or others have reported: try again when it has caught up",     \
      AGAIN)

typedef enum fb_error {
#define FB_ERROR_ROW(code, name, label, text, class) FB_ERR_##name = code,
    FB_ERROR_TABLE(FB_ERROR_ROW)
#undef FB_ERROR_ROW
} fb_error;

/* What most functions return: FB_ERR_OK or the reason. */
typedef fb_error fb_status;
#define FB_OK FB_ERR_OK

typedef enum fb_error_class {
    FB_CLASS_OK,
    FB_CLASS_ARGUMENT,
    FB_CLASS_REFUSED,
    FB_CLASS_STATE,
    FB_CLASS_AGAIN,
    FB_CLASS_STORE,
    FB_CLASS_FATAL,
} fb_error_class;

/* The stable name, e.g. "bad_uuid"; "unknown" for a number that is no code. Never NULL. */
const char *fb_error_name(fb_error error);

/* One sentence for people. Never NULL. */
const char *fb_error_text(fb_error error);

fb_error_class fb_error_class_of(fb_error error);

/* Early return: evaluates an expression of type fb_status once. */
#define FB_TRY(expression)                                                                         \
    do {                                                                                           \
        fb_status fb_try_status_ = (expression);                                                   \
        if (fb_try_status_ != FB_OK) return fb_try_status_;                                        \
    } while (0)

#endif
