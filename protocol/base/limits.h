/* SPDX-License-Identifier: Apache-2.0 */
/* Every bound of the core by name. Sizes of fb_options may be smaller, never larger. */
#ifndef FB_BASE_LIMITS_H
#define FB_BASE_LIMITS_H

#include <stdint.h>

/* Envelopes, profile 3 and 4. */
#define FB_PAYLOAD_BYTES_MAX       49152u
#define FB_ENVELOPE_BYTES_MAX      50176u
#define FB_ENVELOPE_JSON_BYTES_MAX 327680u
#define FB_PAYLOAD_DEPTH_MAX       16u
#define FB_PAYLOAD_MEMBERS_MAX     256u
#define FB_TOPIC_BYTES_MAX         128u
#define FB_TIMESTAMP_MS_MAX        ((INT64_C(1) << 53) - 1)

/* Messaging, profile 6. */
#define FB_SEND_WINDOW_MESSAGES 64u
#define FB_SEND_WINDOW_BYTES    262144u
#define FB_SIGNAL_BYTES_MAX     512u /* an envelope of this node's own: a payload of at most 110 */
#define FB_UNICASTS_MAX         8u   /* of them that wait for one link's window */
#define FB_HOLDS_MAX            FB_WRITE_SETS_KEPT /* write sets that acceptances wait for */
/* An envelope is shared by links that take it within so long; later ones get a new one, so that no
 * message starts out stale. */
#define FB_SIGNAL_SHARE_NS UINT64_C(1000000000)
/* What one received message may put: the remembered id, and what the engine wants. */
#define FB_RECEIVE_WRITE_BYTES   512u
#define FB_RECEIVE_WRITE_ENTRIES 4u

/* Calls. */
#define FB_CALL_ARGUMENTS_MAX 4096u
#define FB_CALL_STATE_BYTES   256u    /* of the method that serves it */
#define FB_CALL_MS_MAX        600000u /* longer deadlines of a peer count as this */
#define FB_CALL_NOTES_MAX                                                                          \
    16u /* frames about no call in the table that wait on a link; of more the                      \
         oldest goes */

/* Links, profile 7. */
#define FB_RECORD_BYTES_MAX  16384u /* plaintext of one transport message */
#define FB_RECORD_OVERHEAD   18u    /* length and tag around it */
#define FB_FRAME_BYTES_MAX   65536u /* a frame of a channel, reassembled */
#define FB_PENDING_LINKS_MAX 64u
#define FB_PENDING_BYTES_MAX 16384u
#define FB_REKEY_EVERY       65536u
#define FB_ADDRESS_BYTES_MAX 128u
#define FB_BEAT_PHASES_MAX   8u  /* instants within a heartbeat's period at which links beat: */
#define FB_BEAT_LINKS        16u /* one for so many links of the table */

/* Spaces. */
#define FB_PENDING_MEMBERS_MAX 64u    /* who asked to join and waits, in all spaces */
#define FB_INVITE_USES_MAX     1000u  /* of one invite */
#define FB_CUT_TEXT_BYTES_MAX  40960u /* of a statement that takes something away */
#define FB_STANDINGS_MAX       250u   /* numbers of statements about one member */
#define FB_RECOVERIES_MAX      255u /* the same of the recovery key: nobody else can use them up */
#define FB_TAKINGS_MAX         254u /* what it gave is taken away under the next number */

/* Store. */
#define FB_KEY_BYTES_MAX            511u /* LMDB's */
#define FB_VALUE_BYTES_MAX          65536u
#define FB_READ_ITEMS_MAX           768u
#define FB_READ_ROUNDS_MAX          4u
#define FB_WRITE_SETS_IN_FLIGHT_MAX 2u
#define FB_WRITE_SETS_KEPT          4u /* building, two in flight, one more */
#define FB_OP_CONTEXT_BYTES         512u

/* Records. */
#define FB_FIELD_NAME_BYTES_MAX       200u
#define FB_COLUMN_NAME_BYTES_MAX      218u
#define FB_FIELD_VALUE_BYTES_MAX      49152u
#define FB_RECORD_FIELDS_MAX          256u
#define FB_COLLECTION_NAME_BYTES_MAX  200u
#define FB_BATCH_CHANGES_MAX          64u
#define FB_BATCH_BYTES_MAX            61440u
#define FB_EPOCH_ENTRIES_MAX          128u
#define FB_LIVES_IN_AREA_MAX          32u  /* heads of one node in one area */
#define FB_BATCH_LIVES_MAX            192u /* lives that the changes of one batch name */
#define FB_LIVES_MAX                  323u /* closed lives that one batch may make us look up */
#define FB_FETCHES_MAX                8u   /* calls of our own at once */
#define FB_FETCH_RANGES_MAX           8u   /* lagging entries that one call asks for */
#define FB_FETCH_HAVES_MAX            16u  /* heads of one node named in a range */
#define FB_FETCH_IN_VAIN_MAX          32u  /* batches that are here and are not worth a new call */
#define FB_SERVES_MAX                 16u  /* calls of others at once */
#define FB_SERVE_PATH_MAX             16u  /* lives on a walk back that are remembered */
#define FB_BUILDERS_MAX               8u   /* batches being filled at once */
#define FB_STRANGERS_MAX              4u   /* areas not known here that a link is asked about */
#define FB_WRITE_ITEMS_MAX            64u  /* changes of one request */
#define FB_WRITE_AREAS_MAX            15u  /* areas of one request */
#define FB_ANSWERS_MAX                8u   /* answers too long for a reply that the core holds */
#define FB_ANSWER_BYTES_MAX           (2u + FB_WRITE_ITEMS_MAX * 33u)
#define FB_REPORT_BYTES_MAX           6000u         /* of what a member says to hold, before hex */
#define FB_REPORTS_BYTES_MAX          (104u * 1024) /* of all members of a space together */
#define FB_REPORT_LIVES_MAX           64u           /* closed ones of a report that are looked up */
#define FB_GAP_HEARTBEATS             4u   /* a gap that no report covers is not believed so long */
#define FB_REPORTS_SOON               100u /* a first report waits so much less than others */
#define FB_CUT_MEMBERS_MAX            64u  /* of a larger space nothing is folded */
#define FB_FOLD_BATCHES_MAX           16u  /* looked at in one step of a pass */
#define FB_COMPARE_PATHS_MAX          64u  /* nodes, or records, that one call asks about */
#define FB_COMPARE_FRONT_MAX          512u /* nodes still to be asked about */
#define FB_COMPARE_FOUND_MAX          256u /* differing records of one comparison */
#define FB_COMPARE_DOTS_MAX           96u  /* of a record that is asked about */
#define FB_COMPARE_WAITS_MAX          16u  /* pauses of one comparison for what has not come yet */
#define FB_COMPARES_SERVED            4u   /* comparisons of others at once */
#define FB_VERIFIES_MAX               4u   /* questions whether a peer holds the same, at once */
#define FB_PEER_AREAS_MAX             4u   /* questions which collections a peer has, at once */
#define FB_VERIFY_NAMED_MAX           16u  /* records that differ, of those that are named */
#define FB_FOLD_FRESH_MIN             16u  /* batches that come before another pass begins */
#define FB_SPACE_NAME_BYTES_MAX       200u
#define FB_APPLICATION_NAME_BYTES_MAX 200u

/* Local requests. */
#define FB_REPLY_BYTES_MAX  65536u
#define FB_REPLY_HELD_BYTES 512u /* a reply that waits for a write set */
#define FB_LIST_ITEMS_MAX   256u

/* Log lines: so much of a peer's text is shown. */
#define FB_LOG_DETAIL_BYTES_MAX 64u

/* Tables, upper bounds of fb_sizes. */
#define FB_SPACES_MAX     64u
#define FB_MEMBERS_MAX    4096u
#define FB_AREAS_MAX      4096u
#define FB_LINKS_MAX      4096u
#define FB_OPERATIONS_MAX 4096u
#define FB_REQUESTS_MAX   4096u

/* No index. */
#define FB_NONE UINT32_MAX

_Static_assert(FB_PAYLOAD_BYTES_MAX + 1024 == FB_ENVELOPE_BYTES_MAX,
               "an envelope is its payload and at most 1,024 bytes around it");
/* MP-3-9 */
_Static_assert(FB_ENVELOPE_JSON_BYTES_MAX >= 6 * FB_PAYLOAD_BYTES_MAX + 2048,
               "every payload fits as JSON with each byte as a six-character escape");
_Static_assert(FB_ENVELOPE_BYTES_MAX + 64 <= FB_FRAME_BYTES_MAX, "an envelope fits a frame");
_Static_assert(FB_BATCH_BYTES_MAX + 1024 <= FB_FRAME_BYTES_MAX, "a batch fits a frame");
_Static_assert(FB_BATCH_BYTES_MAX + 1024 <= FB_VALUE_BYTES_MAX, "a batch fits a value");
_Static_assert(FB_FIELD_VALUE_BYTES_MAX + 4096 <= FB_BATCH_BYTES_MAX,
               "a change with one value of the largest size fits a batch");
_Static_assert(FB_COLUMN_NAME_BYTES_MAX + 64 <= FB_KEY_BYTES_MAX, "a column fits a key");
_Static_assert(FB_REPLY_HELD_BYTES >= 160 + FB_ADDRESS_BYTES_MAX + FB_SPACE_NAME_BYTES_MAX,
               "an invite fits a reply that waits");
_Static_assert(FB_SEND_WINDOW_BYTES >= FB_FRAME_BYTES_MAX, "the window holds one message");
_Static_assert(FB_SIGNAL_BYTES_MAX <= FB_SEND_WINDOW_BYTES / FB_SEND_WINDOW_MESSAGES,
               "of one's own messages, their number is what fills the window");
_Static_assert(FB_RECEIVE_WRITE_BYTES * 2 <= 8192, "a message fits the smallest write set");
_Static_assert(33 * FB_FETCH_RANGES_MAX + 16 * FB_FETCH_HAVES_MAX * FB_FETCH_RANGES_MAX + 17 <=
                   FB_CALL_ARGUMENTS_MAX,
               "the longest fetch fits the arguments of a call");
_Static_assert(FB_WRITE_ITEMS_MAX <= FB_BATCH_CHANGES_MAX, "a request fits the stage, and a batch");
_Static_assert(FB_WRITE_AREAS_MAX >= FB_BUILDERS_MAX, "the stage holds what is filled at once");
_Static_assert(FB_ANSWER_BYTES_MAX <= FB_REPLY_BYTES_MAX, "a held answer fits a reply");
_Static_assert(FB_LIVES_MAX >= FB_EPOCH_ENTRIES_MAX + 3 + FB_BATCH_LIVES_MAX,
               "all that an epoch and the changes name may be closed, and the three of the chain");
_Static_assert(FB_BATCH_CHANGES_MAX * 2 + FB_LIVES_MAX <= FB_READ_ITEMS_MAX,
               "a batch's records, a node of each path, and the lives are read in one round");
_Static_assert(FB_WRITE_SETS_KEPT >= FB_WRITE_SETS_IN_FLIGHT_MAX + 2,
               "one building and one kept besides those in flight");

#endif
