/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/batch/batch.h"

#include "protocol/space/space.h"

static const char label[] = "faberio-batch-v1"; /* with the zero byte that ends it */

static bool epoch_is_sorted(fb_span epoch)
{
    for (size_t at = FB_EPOCH_ENTRY_BYTES; at < epoch.len; at += FB_EPOCH_ENTRY_BYTES) {
        /* Node and incarnation: an entry for each life at most. */
        if (memcmp(epoch.p + at - FB_EPOCH_ENTRY_BYTES, epoch.p + at, 24) >= 0) return false;
    }
    return true;
}

static fb_status decode_header(fb_span header, fb_batch *b)
{
    fb_reader r = fb_reader_of(header);
    b->space = fb_read_id(&r);
    b->area = fb_read_id(&r);
    b->author = fb_read_b32(&r);
    b->incarnation = fb_read_u64(&r);
    b->number = fb_read_u64(&r);
    b->first_seq = fb_read_u64(&r);
    uint8_t previous = fb_read_u8(&r);
    if (previous > 1) return FB_ERR_BATCH_MALFORMED;
    b->has_previous = previous == 1;
    if (b->has_previous) {
        b->previous_incarnation = fb_read_u64(&r);
        b->previous_number = fb_read_u64(&r);
        fb_read_into(&r, b->previous_hash, 32);
    }
    fb_read_into(&r, b->root, 32);
    b->count = fb_read_u16(&r);
    b->epoch_count = fb_read_u16(&r);
    fb_span epoch = fb_read_bytes(&r, (size_t)b->epoch_count * FB_EPOCH_ENTRY_BYTES);
    if (!fb_reader_done(&r)) return FB_ERR_BATCH_MALFORMED;
    if (b->incarnation == 0 || b->number == 0 || b->first_seq == 0 || b->count == 0) {
        return FB_ERR_BATCH_MALFORMED;
    }
    if (b->count > FB_BATCH_CHANGES_MAX || b->epoch_count > FB_EPOCH_ENTRIES_MAX) {
        return FB_ERR_LIMIT;
    }
    if (b->first_seq > UINT64_MAX - FB_BATCH_CHANGES_MAX) return FB_ERR_BATCH_MALFORMED;
    /* The first of a life begins with sequence 1 and names a header of another one, or none; a
     * later one names the one before it. */
    if (b->number == 1) {
        if (b->first_seq != 1) return FB_ERR_BATCH_MALFORMED;
        if (b->has_previous && (b->previous_incarnation == b->incarnation ||
                                b->previous_incarnation == 0 || b->previous_number == 0)) {
            return FB_ERR_BATCH_MALFORMED;
        }
    } else if (!b->has_previous || b->previous_incarnation != b->incarnation ||
               b->previous_number != b->number - 1 || b->first_seq == 1) {
        return FB_ERR_BATCH_MALFORMED;
    }
    if (!epoch_is_sorted(epoch)) return FB_ERR_BATCH_MALFORMED;
    b->epoch = epoch.p;
    b->header = header;
    return FB_OK;
}

fb_status fb_batch_decode(fb_span bytes, fb_batch *out, fb_change *changes)
{
    if (bytes.len > FB_BATCH_BYTES_MAX) return FB_ERR_LIMIT;
    fb_batch b = {.holes = false};
    fb_reader r = fb_reader_of(bytes);
    uint8_t version = fb_read_u8(&r);
    fb_span header = fb_read_span16(&r);
    b.signature = fb_read_bytes(&r, 64).p;
    if (r.failed) return FB_ERR_BATCH_MALFORMED;
    if (version != FB_BATCH_VERSION) return FB_ERR_UNSUPPORTED;
    fb_status status = decode_header(header, &b);
    if (status != FB_OK) return status;
    b.items = fb_span_of(bytes.p + r.at, bytes.len - r.at);
    fb_status later = FB_OK;
    for (uint32_t i = 0; i < b.count; i++) {
        fb_span item = fb_read_span32(&r);
        if (r.failed) return FB_ERR_BATCH_MALFORMED;
        status = fb_change_decode(item, &changes[i]);
        if (status == FB_ERR_BATCH_MALFORMED) return status;
        if (status != FB_OK) {
            later = status;
        } else if (changes[i].form == FB_CHANGE_LEAF || changes[i].holes) {
            b.holes = true;
        }
    }
    if (!fb_reader_done(&r)) return FB_ERR_BATCH_MALFORMED;
    if (later != FB_OK) return later;
    *out = b;
    return FB_OK;
}

fb_epoch_entry fb_batch_epoch_at(const fb_batch *batch, uint32_t at)
{
    fb_reader r = fb_reader_of(
        fb_span_of(batch->epoch + (size_t)at * FB_EPOCH_ENTRY_BYTES, FB_EPOCH_ENTRY_BYTES));
    fb_epoch_entry entry;
    entry.node = fb_read_id(&r);
    entry.incarnation = fb_read_u64(&r);
    entry.batch = fb_read_u64(&r);
    return entry;
}

uint64_t fb_batch_claim(const fb_batch *batch, fb_id signer)
{
    for (uint32_t i = 0; i < batch->epoch_count; i++) {
        fb_epoch_entry entry = fb_batch_epoch_at(batch, i);
        if (entry.incarnation == 0 && fb_id_equal(entry.node, signer)) return entry.batch;
    }
    return FB_CLAIM_FIRST;
}

void fb_batch_hash(fb_span header, uint8_t out[32])
{
    const fb_span parts[] = {fb_span_of(label, sizeof label), header};
    fb_blake3(parts, 2, out, 32);
}

void fb_batch_hash_with(fb_span header, const fb_change *change, fb_dot dot, uint8_t out[32],
                        uint8_t leaf[32])
{
    uint8_t dot_bytes[FB_DOT_BYTES];
    fb_span leaf_parts[FB_LEAF_PARTS];
    fb_change_leaf_parts(change, dot, dot_bytes, leaf_parts);
    const fb_span parts[] = {fb_span_of(label, sizeof label), header};
    fb_blake3_two(parts, 2, out, leaf_parts, FB_LEAF_PARTS, leaf);
}

void fb_batch_root(uint8_t *leaves, uint32_t count, uint8_t out[32])
{
    static const uint8_t tag = 1;
    while (count > 1) {
        uint32_t pairs = count / 2;
        for (uint32_t i = 0; i < pairs; i++) {
            const fb_span parts[] = {fb_span_of(&tag, 1), fb_span_of(leaves + (size_t)i * 64, 64)};
            fb_blake3(parts, 2, leaves + (size_t)i * 32, 32);
        }
        if (count % 2 != 0) {
            memmove(leaves + (size_t)pairs * 32, leaves + (size_t)(count - 1) * 32, 32);
        }
        count = pairs + count % 2;
    }
    memcpy(out, leaves, 32);
}

fb_status fb_batch_verify(const fb_batch *batch, const fb_change *changes, fb_id signer,
                          const fb_provider *provider)
{
    const fb_span parts[] = {fb_span_of(label, sizeof label), batch->header};
    fb_b64 signature;
    memcpy(signature.b, batch->signature, sizeof signature.b);
    if (!provider->verify(provider->user, &batch->author, parts, 2, &signature)) {
        return FB_ERR_BATCH_SIGNATURE;
    }
    uint8_t leaves[FB_BATCH_CHANGES_MAX * 32];
    for (uint32_t i = 0; i < batch->count; i++) {
        fb_dot dot = {signer, batch->incarnation, batch->first_seq + i};
        fb_change_leaf(&changes[i], dot, leaves + (size_t)i * 32);
    }
    uint8_t root[32];
    fb_batch_root(leaves, batch->count, root);
    return memcmp(root, batch->root, 32) == 0 ? FB_OK : FB_ERR_BATCH_ROOT;
}

fb_status fb_batch_seal(fb_writer *w, const fb_batch *batch, const fb_provider *provider,
                        fb_key_handle key, uint8_t hash[32])
{
    fb_write_u8(w, FB_BATCH_VERSION);
    size_t len = FB_BATCH_HEADER_BYTES - (batch->has_previous ? 0 : 48) +
                 (size_t)batch->epoch_count * FB_EPOCH_ENTRY_BYTES;
    fb_write_u16(w, (uint16_t)len);
    size_t header_at = w->at;
    fb_write_id(w, batch->space);
    fb_write_id(w, batch->area);
    fb_write_b32(w, batch->author);
    fb_write_u64(w, batch->incarnation);
    fb_write_u64(w, batch->number);
    fb_write_u64(w, batch->first_seq);
    fb_write_u8(w, batch->has_previous ? 1 : 0);
    if (batch->has_previous) {
        fb_write_u64(w, batch->previous_incarnation);
        fb_write_u64(w, batch->previous_number);
        fb_write_bytes(w, batch->previous_hash, 32);
    }
    fb_write_bytes(w, batch->root, 32);
    fb_write_u16(w, (uint16_t)batch->count);
    fb_write_u16(w, (uint16_t)batch->epoch_count);
    fb_write_bytes(w, batch->epoch, (size_t)batch->epoch_count * FB_EPOCH_ENTRY_BYTES);
    if (w->failed) return FB_ERR_NO_SPACE;
    fb_span header = fb_span_of(w->p + header_at, w->at - header_at);
    const fb_span parts[] = {fb_span_of(label, sizeof label), header};
    fb_b64 signature;
    FB_TRY(provider->sign(provider->user, key, parts, 2, &signature));
    fb_write_bytes(w, signature.b, sizeof signature.b);
    fb_batch_hash(header, hash);
    return w->failed ? FB_ERR_NO_SPACE : FB_OK;
}
