/* SPDX-License-Identifier: Apache-2.0 */
/* The messaging plane's tables. Only for files of this folder. */
#ifndef FB_MESSAGING_STATE_H
#define FB_MESSAGING_STATE_H

#include "protocol/base/hash.h"
#include "protocol/base/mutant.h"
#include "protocol/envelope/receive.h"
#include "protocol/link/link.h"
#include "protocol/messaging/messaging.h"
#include "protocol/space/space.h"

/* A remembered id in the store. */
#define FB_SLOT_VERSION     1u
#define FB_SLOT_VALUE_BYTES 41u

/* Frames of the channel. */
#define FB_FRAME_MESSAGE 1u
#define FB_FRAME_ACK     2u
#define FB_FRAME_HEAD    9u

/* Topics as bits of an interest mask (profile 6, a closed list). Files come with their plane. */
#define FB_TOPIC_BIT(topic) (1u << (topic))
#define FB_TOPICS_ALL                                                                              \
    (FB_TOPIC_BIT(FB_TOPIC_DATABASE) | FB_TOPIC_BIT(FB_TOPIC_FILE) | FB_TOPIC_BIT(FB_TOPIC_STATE))
/* FM-3.2-1, FM-7.2-1, FM-7.4-1 */
#define FB_TOPICS_SUBSCRIBED (FB_TOPIC_BIT(FB_TOPIC_DATABASE) | FB_TOPIC_BIT(FB_TOPIC_STATE))

/* pool.c: an envelope, built once for all links that carry it. */
typedef struct fb_signal {
    uint32_t refs; /* announcements, window entries and waiting entries that name it; 0: free */
    uint32_t next_free;
    uint32_t space;
    uint16_t len;
    uint8_t type;     /* fb_message_type */
    bool has_area;    /* area is what the payload names */
    fb_id id;         /* of the message */
    fb_id area;       /* whose authorisation decides who may get it */
    uint64_t time_ms; /* the envelope's timestamp */
    fb_digest_cell digest;
    uint8_t bytes[FB_SIGNAL_BYTES_MAX];
} fb_signal;

/* announce.c: what waits for a write set. */
typedef struct fb_stage {
    bool used;
    bool all;        /* every member of the space, `except` aside; else the links of the bitmap */
    uint32_t except; /* member, or FB_NONE */
    uint64_t w;
    uint64_t incarnation;
    uint64_t batch;
} fb_stage;

/* announce.c: one topic message to come, about one area, for the links whose pending bit is set. */
typedef struct fb_announcement {
    bool used;
    uint8_t type;  /* fb_message_type */
    uint8_t topic; /* fb_topic */
    bool waiting;  /* in the list of those with a used stage */
    uint32_t space;
    fb_id area;
    uint64_t incarnation;
    uint64_t batch;
    uint32_t pending;   /* links that are still to get it */
    uint32_t signal;    /* envelope built for the first of them, or FB_NONE */
    uint64_t built_ns;  /* when */
    fb_stage stages[2]; /* the older first; a newer write goes to the second, so the first is never
                           put off by a stream of writes */
    uint32_t next;      /* free list, or list of the waiting */
    uint32_t previous;  /* list of the waiting */
    uint32_t bucket_next;
    fb_digest_cell digest;
} fb_announcement;

/* A unicast message to come. */
typedef struct fb_unicast {
    uint8_t type; /* fb_message_type */
    bool scope_all;
    bool correlated;
    fb_id area;
    fb_id correlation;
    uint64_t w; /* held back until it is durable */
} fb_unicast;

/* window.c: a message given a number on a link. */
typedef struct fb_window_entry {
    uint32_t signal;
    bool given; /* to the carrier, at least once on this link */
    bool redelivered;
} fb_window_entry;

/* Acceptance that a write set must make durable first. */
typedef struct fb_hold {
    uint64_t w;
    uint64_t number; /* the first message that waits for it */
} fb_hold;

typedef enum fb_out_kind {
    FB_OUT_NONE,
    FB_OUT_MESSAGE,
    FB_OUT_ACK,
} fb_out_kind;

/* The messaging channel of one link. */
typedef struct fb_message_channel {
    bool up;
    bool external;
    bool floor_reset_used; /* profile 5: once a link */
    bool ack_again;        /* external carrier: a number came again */
    bool interest_due;
    uint8_t interest; /* topics the peer asked for; all until it says */
    uint8_t out;      /* fb_out_kind, what peek gave and `sent` has not taken */
    uint32_t space;
    uint32_t member;
    uint32_t up_place; /* in fb_messaging.up_links */
    fb_id peer;

    /* Sending: entries[(first + i) % 64] has number base + i. */
    uint64_t base;
    uint32_t first;
    uint32_t count;
    uint32_t given; /* entries that need nothing more for now */
    uint32_t bytes;
    uint64_t mix;        /* sum over the entries, for the digest */
    uint32_t redo_first; /* ring of messages unacknowledged on an earlier link */
    uint32_t redo_count;
    uint32_t pending; /* announcements whose bit is set for this link */
    uint32_t scan;    /* word of the bitmap to look at next */
    uint32_t unicasts;
    uint64_t backoff_ns; /* external carrier */
    fb_timer resend;

    /* Receiving. */
    uint64_t received; /* numbers up to here have their outcome */
    uint64_t ack_sent;
    uint64_t ack_peeked;
    fb_hold holds[FB_HOLDS_MAX];
    uint32_t hold_count;

    fb_unicast unicast[FB_UNICASTS_MAX];
    fb_window_entry entries[FB_SEND_WINDOW_MESSAGES];
    uint32_t redo[FB_SEND_WINDOW_MESSAGES];
    uint64_t redo_until_ns[FB_SEND_WINDOW_MESSAGES];
} fb_message_channel;

/* redeliver.c: what was unacknowledged when a link broke. */
typedef struct fb_orphans {
    uint32_t member; /* FB_NONE: free */
    uint32_t count;
    fb_timer timer; /* of the first */
    fb_digest_cell digest;
    uint32_t signals[FB_SEND_WINDOW_MESSAGES];
    uint64_t until_ns[FB_SEND_WINDOW_MESSAGES]; /* of each its own: ascending */
} fb_orphans;

/* seen.c: one remembered id. */
typedef struct fb_seen {
    fb_id id;
    int64_t time_ms;
    uint32_t newer, older; /* in the order of time_ms; newer also links the free places */
} fb_seen;

typedef enum fb_record_state {
    FB_RECORD_FREE,
    FB_RECORD_WANTED, /* its reading could not begin yet */
    FB_RECORD_LOADING,
    FB_RECORD_READY,
} fb_record_state;

/* seen.c: the dedup record of one (space, sender). There are as many in memory as links; one that
 * no link uses is given to another sender and read again from the store when needed. */
typedef struct fb_record {
    uint8_t state;
    bool busy; /* an operation reads it */
    uint32_t links;
    uint32_t member; /* FB_NONE: of nobody */
    uint32_t space;
    int64_t floor_ms;
    int64_t highest_ms;      /* greatest timestamp accepted */
    uint64_t sequence;       /* of the last slot written */
    uint64_t floor_sequence; /* loading: of the slot whose floor was taken */
    int64_t overflow_ms;     /* loading: greatest timestamp of slots that have no place here */
    uint64_t last_w;         /* write set of the last id */
    uint32_t cursor;         /* loading: next slot to read */
    uint32_t count;
    uint32_t newest, oldest;
    uint32_t hint;       /* last inserted: where the next one is likely to belong */
    uint32_t free;       /* first of the places below `touched` that hold no id */
    uint32_t touched;    /* places from here on were not written yet */
    uint32_t index_size; /* a power of two; it grows with the ids */
    uint64_t used_at;    /* order in which links let go of it */
    fb_hash128 sum;      /* over the ids, for the digest */
    fb_digest_cell digest;
} fb_record;

/* One member, as the sender of messages. */
typedef struct fb_sender {
    uint32_t record;   /* FB_NONE: not in memory */
    uint64_t rate_ns;  /* when the bucket will be full again */
    uint64_t refusals; /* mixed by reason, for the digest */
    fb_message_counts counts;
    fb_digest_cell digest;
} fb_sender;

struct fb_messaging {
    uint32_t links, members, announcements, signals, seen; /* capacities */
    uint32_t link_words, announcement_words, buckets, index_size;
    /* Places of the pool: each link may hold `share`, and what is beyond those guarantees goes to
     * whoever asks first. So peers that acknowledge nothing cannot silence the others. */
    uint32_t share, slack, slack_used;

    fb_signal *signal;
    uint32_t signal_free;

    fb_announcement *announcement;
    uint32_t announcement_free;
    uint32_t waiting_first; /* announcements with a used stage */
    uint32_t *bucket;       /* hash chains over announcements */
    uint64_t *pending;      /* a row of announcement_words for each link */
    uint64_t *targets;      /* for each announcement and stage a row of link_words */

    fb_message_channel *channel;
    uint32_t *up_links;
    uint32_t up_count;
    fb_orphans *orphans;
    uint32_t orphan_count;

    fb_sender *sender;
    fb_record *record;
    fb_seen *ids;       /* seen for each record */
    uint32_t *index;    /* room of index_size for each record: place + 1, open addressing */
    uint64_t let_go;    /* counts releases of records */
    bool hungry;        /* a link found no place in the pool */
    bool untimed;       /* a message waits for a clock that an envelope can carry */
    uint32_t wanted;    /* records in FB_RECORD_WANTED */
    fb_id *state_area;  /* of each space: the id of its own area */
    fb_id *state_space; /* for which space id that was derived */
};

/* pool.c */
uint32_t fb_signal_take(fb_node *node); /* one reference, or FB_NONE */
void fb_signal_hold(struct fb_messaging *m, uint32_t signal);
void fb_signal_release(fb_node *node, uint32_t signal);

/* compose.c: what an envelope is to say. */
typedef struct fb_compose {
    uint8_t type;
    fb_topic topic; /* FB_TOPIC_FOREIGN: unicast to target */
    uint32_t space;
    fb_id target;
    bool has_area; /* else scope "all" */
    fb_id area;
    uint64_t incarnation; /* with batch, or 0 and 0 */
    uint64_t batch;
    const fb_id *correlation; /* NULL: none */
} fb_compose;
/* Builds, signs and encodes it. FB_OK: *signal has one reference for the caller. FB_ERR_BUSY: no
 * place in the pool, FB_ERR_AGAIN: no id yet, or no time; ask again later. Else it can never be. */
fb_status fb_signal_compose(fb_node *node, const fb_compose *what, uint32_t *signal);
/* The wall clock is one that an envelope and its id can carry: after 1970, before an id's end. */
bool fb_message_time_is_writable(const fb_node *node);

/* announce.c */
/* fb_w_durable rose: what waited for it becomes pending. */
void fb_announce_durable(fb_node *node);
void fb_announce_link_down(fb_node *node, uint32_t link);
/* The next pending announcement of a link as an envelope with a reference for the caller. False:
 * none, or none can be built now. */
bool fb_announce_next(fb_node *node, uint32_t link, uint32_t *signal);
/* Gives up envelopes that are kept only to be shared. */
void fb_announce_unshare(fb_node *node);
/* FB_ERR_BUSY when the table is full: the notification is lost and counted. */
fb_status fb_announce_all(fb_node *node, uint32_t space, uint32_t except, fb_message_type type,
                          fb_id area, uint64_t incarnation, uint64_t batch, uint64_t after_w);

/* Something that is remembered or counted of a sender changed. */
static inline void fb_sender_touch(fb_node *node, uint32_t member)
{
    uint32_t record = node->messaging->sender[member].record;
    if (record == FB_NONE) {
        fb_digest_touch(node, FB_DIGEST_SENDER, member);
    } else {
        fb_digest_touch(node, FB_DIGEST_SEEN, record);
    }
}

/* authorise.c: draft 10, profile 6. May a message about an area go to the peer of a link now? */
bool fb_message_may_send(const fb_node *node, const fb_message_channel *channel, bool has_area,
                         fb_id area);
/* The id of the space's own area, whose topic is `state`. */
fb_id fb_message_state_area(fb_node *node, uint32_t space);

/* window.c */
/* May the link hold another envelope; and, that it holds one more or one less. */
bool fb_window_has_room(const struct fb_messaging *m, const fb_message_channel *channel);
void fb_window_held(struct fb_messaging *m, const fb_message_channel *channel);
void fb_window_let_go(struct fb_messaging *m, const fb_message_channel *channel);
bool fb_window_peek(fb_node *node, uint32_t link, fb_frame_out *out);
void fb_window_sent(fb_node *node, uint32_t link);
fb_status fb_window_ack(fb_node *node, uint32_t link, uint64_t number);
void fb_window_resend(fb_node *node, uint32_t link);
bool fb_unicast_add(fb_node *node, uint32_t link, const fb_unicast *unicast);
/* The number acknowledged by now: all up to it have a final and durable outcome. */
uint64_t fb_ack_value(const fb_node *node, const fb_message_channel *channel);
/* Message `number` waits for a write set. */
void fb_ack_hold(fb_message_channel *channel, uint64_t number, uint64_t w);
void fb_ack_wake(fb_node *node, uint32_t link);

/* redeliver.c */
void fb_redeliver_down(fb_node *node, uint32_t link);
void fb_redeliver_up(fb_node *node, uint32_t link);
void fb_redeliver_expired(fb_node *node, uint32_t index);
/* Frees places of the pool by dropping what has waited longest for a link; false: nothing did. */
bool fb_redeliver_evict(fb_node *node);
/* Counts a message that will never be delivered; signal FB_NONE: it was never built. */
void fb_message_dropped(fb_node *node, uint32_t member, fb_error why, uint32_t signal);

/* receive.c */
fb_status fb_receive_message(fb_node *node, uint32_t link, uint64_t number, fb_span bytes);

/* rate.c */
bool fb_rate_take(fb_node *node, fb_sender *sender);

/* seen.c */
void fb_record_attach(fb_node *node, uint32_t space, uint32_t member);
void fb_record_detach(fb_node *node, uint32_t member);
bool fb_seen_find(const fb_node *node, const fb_record *record, fb_id id);
/* Remembers an accepted id and puts it into the set being built, with the floor as it is then. */
void fb_seen_add(fb_node *node, fb_record *record, fb_id id, int64_t time_ms);
/* Without writing: while loading. slot is the place it stands in. */
void fb_seen_place(fb_node *node, fb_record *record, uint32_t slot, fb_id id, int64_t time_ms);
/* Loading is over: the free places are listed, the floor applied. */
void fb_seen_finish(fb_node *node, fb_record *record);
void fb_seen_raise_floor(fb_node *node, fb_record *record, int64_t floor_ms);
static inline uint32_t fb_record_index(const struct fb_messaging *m, const fb_record *record)
{
    return (uint32_t)(record - m->record);
}

void fb_observe_floor(fb_node *node, const fb_record *record, uint64_t reset_by);
/* The window as it is now, and the floor of a sender. */
static inline fb_receive_window fb_message_window(const fb_node *node, const fb_record *record)
{
    const fb_timing *timing = &node->options.timing;
    return (fb_receive_window){fb_receive_now_ms(node->wall_us),
                               timing->window_past_us / MUTANT(WINDOW_UNITS, 1000, 1),
                               timing->window_future_us / 1000, record->floor_ms};
}

/* seen_load.c */
void fb_seen_load(fb_node *node, fb_record *record);

/* interest.c */
void fb_interest_layout(fb_node *node);

/* counts.c */
void fb_counts_request(fb_node *node, fb_request request, fb_span arguments);

/* publish.c */
void fb_publish(fb_node *node, fb_request request, fb_span arguments);

#endif
