/* SPDX-License-Identifier: Apache-2.0 */
/* A batch: the changes of one area that one write set sealed, under one signed header. DESIGN 3.1,
 * Authorship; docs/WIRE-FORMATS.md, "Batches".
 *
 *     u8     version: 1
 *     span16 header:
 *         id   space, id area
 *         32   the signer's full Ed25519 key
 *         u64  incarnation, u64 number (from 1), u64 first sequence
 *         u8   1 when a header came before, else 0; then, if 1:
 *              u64 its incarnation, u64 its number, 32 its hash
 *         32   Merkle root over the leaves of the changes
 *         u16  changes, 1 to FB_BATCH_CHANGES_MAX
 *         u16  entries of the epoch, then each, ascending: id node, u64 incarnation, u64 batch; one
 *              with incarnation 0 is the signer's claim (space.h)
 *     64     signature over "faberio-batch-v1" 0x00 ‖ header
 *     items, one for each change, in the order of their sequences: u32 length and a change
 *
 * The hash of a header is BLAKE3(the same label ‖ header). The epoch is the version vector of the
 * space's own area that the signer had applied. Root: a leaf's node is BLAKE3(0x00 ‖ leaf), a
 * pair's BLAKE3(0x01 ‖ left ‖ right); a node without a partner moves up as it is. */
#ifndef FB_DATABASE_BATCH_BATCH_H
#define FB_DATABASE_BATCH_BATCH_H

#include "protocol/core/provider.h"
#include "protocol/database/record/change.h"

#define FB_BATCH_VERSION      1u
#define FB_EPOCH_ENTRY_BYTES  32u
#define FB_BATCH_HEADER_BYTES (16u + 16 + 32 + 24 + 1 + 48 + 32 + 2 + 2)
/* Everything but items and epoch. */
#define FB_BATCH_FRAME_BYTES (1u + 2 + FB_BATCH_HEADER_BYTES + 64)

_Static_assert(FB_BATCH_FRAME_BYTES + FB_EPOCH_ENTRIES_MAX * FB_EPOCH_ENTRY_BYTES +
                       FB_FIELD_VALUE_BYTES_MAX + 1024 <=
                   FB_BATCH_BYTES_MAX,
               "a batch with the longest epoch holds a change with the longest value");

typedef struct fb_batch {
    fb_id space;
    fb_id area;
    fb_b32 author;
    uint64_t incarnation;
    uint64_t number;
    uint64_t first_seq;
    bool has_previous;
    uint64_t previous_incarnation;
    uint64_t previous_number;
    uint8_t previous_hash[32];
    uint8_t root[32];
    uint32_t count;
    uint32_t epoch_count;
    const uint8_t *epoch;
    fb_span header;
    const uint8_t *signature;
    fb_span items;
    bool holes; /* some value or change is gone */
} fb_batch;

typedef struct fb_epoch_entry {
    fb_id node;
    uint64_t incarnation;
    uint64_t batch;
} fb_epoch_entry;

/* Reads a whole batch; nothing is verified. FB_ERR_BATCH_MALFORMED, FB_ERR_UNSUPPORTED,
 * FB_ERR_LIMIT. changes has room for FB_BATCH_CHANGES_MAX. *out and the changes borrow from bytes;
 * *out is set only on FB_OK. */
fb_status fb_batch_decode(fb_span bytes, fb_batch *out, fb_change *changes);

static inline uint64_t fb_batch_last_seq(const fb_batch *batch)
{
    return batch->first_seq + batch->count - 1;
}

fb_epoch_entry fb_batch_epoch_at(const fb_batch *batch, uint32_t at);

/* Under which statement about itself the signer acted (space.h, FB_CLAIM). */
uint64_t fb_batch_claim(const fb_batch *batch, fb_id signer);

void fb_batch_hash(fb_span header, uint8_t out[32]);
/* The same, and the leaf of a change of it whose hashes are known: side by side. */
void fb_batch_hash_with(fb_span header, const fb_change *change, fb_dot dot, uint8_t out[32],
                        uint8_t leaf[32]);

/* Merkle root over count leaves of 32 bytes; the leaves are overwritten. */
void fb_batch_root(uint8_t *leaves, uint32_t count, uint8_t out[32]);

/* Signature, then root. changes: those of the batch; signer: the node id of `author`, which the
 * dots of the leaves carry. FB_ERR_BATCH_SIGNATURE, FB_ERR_BATCH_ROOT. */
fb_status fb_batch_verify(const fb_batch *batch, const fb_change *changes, fb_id signer,
                          const fb_provider *provider);

/* Writes header (all members but `header`, `signature`, `items`, `holes` are read) and signature;
 * the caller appends the items. hash: of the header. FB_ERR_NO_SPACE, or what signing gives. */
fb_status fb_batch_seal(fb_writer *w, const fb_batch *batch, const fb_provider *provider,
                        fb_key_handle key, uint8_t hash[32]);

#endif
