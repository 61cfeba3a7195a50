/* SPDX-License-Identifier: Apache-2.0 */
/* The signed envelope of a message (the draft 5; profile 2, 3 and 4).
 *
 * One struct of values for both encodings: strict JSON for files and tools, canonical protobuf
 * between nodes. What is signed is neither: it is the pre-image of profile 2. */
#ifndef FB_ENVELOPE_ENVELOPE_H
#define FB_ENVELOPE_ENVELOPE_H

#include "protocol/base/cursor.h"
#include "protocol/base/error.h"
#include "protocol/base/limits.h"
#include "protocol/base/types.h"
#include "protocol/core/provider.h"
#include "protocol/envelope/payload.h"

typedef enum fb_delivery_mode {
    FB_DELIVERY_UNICAST = 1,
    FB_DELIVERY_TOPIC = 2,
} fb_delivery_mode;

/* The draft's fields in its order: protobuf field numbers, and the order of the rules. */
typedef enum fb_envelope_field {
    FB_ENVELOPE_NONE = 0,
    FB_ENVELOPE_ID = 1,
    FB_ENVELOPE_SPACE = 2,
    FB_ENVELOPE_SOURCE = 3,
    FB_ENVELOPE_MODE = 4,
    FB_ENVELOPE_TARGET = 5,
    FB_ENVELOPE_TYPE = 6,
    FB_ENVELOPE_PAYLOAD = 7,
    FB_ENVELOPE_TIMESTAMP = 8,
    FB_ENVELOPE_CORRELATION = 9,
    FB_ENVELOPE_SIGNATURE = 10,
} fb_envelope_field;

#define FB_ENVELOPE_FIELDS 10u

/* The member's name in JSON, e.g. "information_space_id"; "" for none. Never NULL. */
const char *fb_envelope_field_name(fb_envelope_field field);

/* The draft's name of a message type; "" for a number that is none. */
const char *fb_message_type_name(fb_message_type type);
/* The type of that name, or 0. */
fb_message_type fb_message_type_of(fb_span name);

/* The platform's topics are a closed list (profile 6). */
typedef enum fb_topic {
    FB_TOPIC_FOREIGN = 0, /* well-formed, but none of ours */
    FB_TOPIC_DATABASE = 1,
    FB_TOPIC_FILE = 2,
    FB_TOPIC_STATE = 3, /* the space's own area */
} fb_topic;

const char *fb_topic_name(fb_topic topic); /* "" for FB_TOPIC_FOREIGN */
fb_topic fb_topic_of(fb_span name);
/* "platform.replication." then [a-z][a-z0-9_]*, at most FB_TOPIC_BYTES_MAX bytes (profile 4). */
bool fb_topic_is_well_formed(fb_span name);

/* The values of an envelope. Spans borrow from the input, or from the caller's scratch. */
typedef struct fb_envelope {
    fb_id id;
    fb_id space;
    fb_id source;
    fb_delivery_mode mode;
    fb_id target_node; /* unicast */
    fb_span topic;     /* topic */
    fb_message_type type;
    fb_span payload;
    fb_payload_facts facts; /* what a checked payload says */
    uint64_t timestamp;     /* milliseconds since 1970 */
    bool has_correlation;
    fb_id correlation;
    fb_b64 signature;
    uint32_t readable; /* bit 1 << field: that field was there and follows its rule */
} fb_envelope;

static inline bool fb_envelope_has(const fb_envelope *e, fb_envelope_field field)
{
    return (e->readable >> field & 1) != 0;
}

/* Why an envelope is refused: the first broken rule in the order of profile 4. */
typedef struct fb_envelope_fault {
    fb_status reason;
    fb_envelope_field field; /* FB_ENVELOPE_NONE: the whole */
    const char *detail;      /* a sentence for people */
    size_t offset;           /* bytes into the input where the form broke; else 0 */
} fb_envelope_fault;

/* ---- Decoding: profile 5 step 1 ---- */

/* Room for the payload of a JSON envelope whose string has escapes. */
typedef struct fb_envelope_scratch {
    uint8_t payload[FB_PAYLOAD_BYTES_MAX + 64]; /* the scan looks a little ahead */
    uint8_t topic[FB_TOPIC_BYTES_MAX];
} fb_envelope_scratch;

/* Strict decoders. FB_OK, or the reason of profile 4: FB_ERR_TOO_LARGE, FB_ERR_MALFORMED,
 * FB_ERR_BAD_UUID … FB_ERR_BAD_TIMESTAMP. In both cases *out holds every field that could be read
 * (see `readable`), which is only for showing after a refusal. fault may be NULL.
 *
 * Needs about 40 KiB of stack. Spans in *out live as long as the input and the scratch. */
fb_status fb_envelope_decode_json(fb_span text, fb_envelope_scratch *scratch, fb_envelope *out,
                                  fb_envelope_fault *fault);
/* The payload is not copied. */
fb_status fb_envelope_decode_protobuf(fb_span bytes, fb_envelope *out, fb_envelope_fault *fault);

/* Drafts, for signing: `source_node_id` and `signature` may be absent and are then not readable;
 * all other rules hold. */
fb_status fb_envelope_draft_json(fb_span text, fb_envelope_scratch *scratch, fb_envelope *out,
                                 fb_envelope_fault *fault);
fb_status fb_envelope_draft_protobuf(fb_span bytes, fb_envelope *out, fb_envelope_fault *fault);

/* ---- Encoding ---- */

/* The rules of profile 4 for an envelope that was put together from values; fills in facts and
 * readable. The signature is not looked at. */
fb_status fb_envelope_check(fb_envelope *e, fb_envelope_fault *fault);

/* Append the encoding to the writer, which fails when it is full: FB_ERR_NO_SPACE. The envelope
 * must have been decoded or checked. JSON comes as one line without white space, members in the
 * draft's order. */
fb_status fb_envelope_encode_json(const fb_envelope *e, fb_writer *out);
fb_status fb_envelope_encode_protobuf(const fb_envelope *e, fb_writer *out);

/* ---- The signed bytes, profile 2 ---- */

#define FB_ENVELOPE_LABEL     "faberio-envelope-v1" /* signed with its terminating zero byte */
#define FB_PREIMAGE_HEAD_MAX  (20 + 48 + 1 + 2 + FB_TOPIC_BYTES_MAX + 2 + 64 + 4)
#define FB_PREIMAGE_TAIL_MAX  (8 + 1 + 16)
#define FB_PREIMAGE_BYTES_MAX (FB_PREIMAGE_HEAD_MAX + FB_PAYLOAD_BYTES_MAX + FB_PREIMAGE_TAIL_MAX)

/* The pre-image in three parts, around a payload that stays where it is. */
typedef struct fb_preimage {
    fb_span parts[3];
    uint8_t head[FB_PREIMAGE_HEAD_MAX];
    uint8_t tail[FB_PREIMAGE_TAIL_MAX];
} fb_preimage;

/* Builds the parts of a decoded or checked envelope; *out must stay where it is while they are
 * used. */
void fb_envelope_preimage(const fb_envelope *e, fb_preimage *out);

/* Signs a checked envelope: fills in e->signature. The caller has set e->source to the id of that
 * key. Errors are the provider's. */
fb_status fb_envelope_sign(fb_envelope *e, const fb_provider *provider, fb_key_handle key);

/* Profile 5 step 5, with the key that membership gives for e->source: FB_OK or
 * FB_ERR_BAD_SIGNATURE. */
fb_status fb_envelope_verify(const fb_envelope *e, const fb_provider *provider,
                             const fb_b32 *public_key);

#endif
