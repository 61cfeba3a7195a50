/* SPDX-License-Identifier: Apache-2.0 */
#include "io/keys/backup.h"

#include <sodium.h>

#include "protocol/base/cursor.h"

#define MAGIC       "faberio-backup-1"
#define VERSION     1u
#define PLAIN_BYTES (1 + 32 + 32 + 32 + 1 + 32 + 8)

static void plain_write(const fb_backup *backup, uint8_t out[PLAIN_BYTES])
{
    fb_writer w = fb_writer_of(out, PLAIN_BYTES);
    fb_b32 none = {{0}};
    fb_write_u8(&w, VERSION);
    fb_write_b32(&w, backup->node_key);
    fb_write_b32(&w, backup->link_key);
    fb_write_b32(&w, backup->recovery_pub);
    fb_write_u8(&w, backup->has_record_key ? 1 : 0);
    fb_write_b32(&w, backup->has_record_key ? backup->record_key : none);
    fb_write_u64(&w, (uint64_t)backup->made_us);
}

static fb_status plain_read(const uint8_t plain[PLAIN_BYTES], fb_backup *out)
{
    fb_reader r = fb_reader_of(fb_span_of(plain, PLAIN_BYTES));
    if (fb_read_u8(&r) != VERSION) return FB_ERR_VERSION_NEWER;
    out->node_key = fb_read_b32(&r);
    out->link_key = fb_read_b32(&r);
    out->recovery_pub = fb_read_b32(&r);
    out->has_record_key = fb_read_u8(&r) == 1;
    out->record_key = fb_read_b32(&r);
    out->made_us = (int64_t)fb_read_u64(&r);
    return fb_reader_done(&r) ? FB_OK : FB_ERR_MALFORMED;
}

static fb_status stretch(fb_span passphrase, fb_span salt, uint64_t operations, uint64_t memory,
                         uint8_t key[crypto_secretbox_KEYBYTES])
{
    if (passphrase.len < FB_BACKUP_PASSPHRASE_MIN || passphrase.len > FB_BACKUP_PASSPHRASE_MAX) {
        return FB_ERR_ARGUMENT;
    }
    int rc =
        crypto_pwhash(key, crypto_secretbox_KEYBYTES, (const char *)passphrase.p, passphrase.len,
                      salt.p, operations, (size_t)memory, crypto_pwhash_ALG_ARGON2ID13);
    return rc == 0 ? FB_OK : FB_ERR_NO_MEMORY;
}

fb_status fb_backup_seal(const fb_backup *backup, fb_span passphrase, uint8_t *out, size_t *len)
{
    uint8_t plain[PLAIN_BYTES], key[crypto_secretbox_KEYBYTES];
    uint8_t salt[crypto_pwhash_SALTBYTES], nonce[crypto_secretbox_NONCEBYTES];
    fb_status status = FB_OK;
    if (sodium_init() < 0) return FB_ERR_CRYPTO;
    fb_writer w = fb_writer_of(out, FB_BACKUP_BYTES_MAX);
    fb_write_bytes(&w, MAGIC, sizeof MAGIC - 1);
    fb_write_u8(&w, passphrase.p != NULL ? 'P' : 'R');
    plain_write(backup, plain);
    if (passphrase.p != NULL) {
        randombytes_buf(salt, sizeof salt);
        randombytes_buf(nonce, sizeof nonce);
        fb_write_u64(&w, crypto_pwhash_OPSLIMIT_MODERATE);
        fb_write_u64(&w, crypto_pwhash_MEMLIMIT_MODERATE);
        fb_write_bytes(&w, salt, sizeof salt);
        fb_write_bytes(&w, nonce, sizeof nonce);
        uint8_t *box = fb_write_room(&w, sizeof plain + crypto_secretbox_MACBYTES);
        status = stretch(passphrase, fb_span_of(salt, sizeof salt), crypto_pwhash_OPSLIMIT_MODERATE,
                         crypto_pwhash_MEMLIMIT_MODERATE, key);
        if (status == FB_OK) crypto_secretbox_easy(box, plain, sizeof plain, nonce, key);
    } else {
        uint8_t reader[crypto_box_PUBLICKEYBYTES];
        uint8_t *box = fb_write_room(&w, sizeof plain + crypto_box_SEALBYTES);
        if (crypto_sign_ed25519_pk_to_curve25519(reader, backup->recovery_pub.b) != 0 ||
            crypto_box_seal(box, plain, sizeof plain, reader) != 0) {
            status = FB_ERR_KEY;
        }
    }
    *len = w.at;
    sodium_memzero(plain, sizeof plain);
    sodium_memzero(key, sizeof key);
    return status;
}

bool fb_backup_wants_passphrase(fb_span sealed)
{
    return sealed.len > sizeof MAGIC - 1 && memcmp(sealed.p, MAGIC, sizeof MAGIC - 1) == 0 &&
           sealed.p[sizeof MAGIC - 1] == 'P';
}

static fb_status open_passphrase(fb_reader *r, fb_span passphrase, uint8_t plain[PLAIN_BYTES])
{
    uint8_t key[crypto_secretbox_KEYBYTES];
    uint64_t operations = fb_read_u64(r), memory = fb_read_u64(r);
    fb_span salt = fb_read_bytes(r, crypto_pwhash_SALTBYTES);
    fb_span nonce = fb_read_bytes(r, crypto_secretbox_NONCEBYTES);
    fb_span box = fb_read_bytes(r, PLAIN_BYTES + crypto_secretbox_MACBYTES);
    if (!fb_reader_done(r) || operations < crypto_pwhash_OPSLIMIT_MIN ||
        operations > FB_BACKUP_OPERATIONS_MAX || memory < crypto_pwhash_MEMLIMIT_MIN ||
        memory > FB_BACKUP_MEMORY_MAX) {
        return FB_ERR_MALFORMED;
    }
    FB_TRY(stretch(passphrase, salt, operations, memory, key));
    int rc = crypto_secretbox_open_easy(plain, box.p, box.len, nonce.p, key);
    sodium_memzero(key, sizeof key);
    return rc == 0 ? FB_OK : FB_ERR_KEY;
}

static fb_status open_recovery(fb_reader *r, const fb_b32 *recovery, uint8_t plain[PLAIN_BYTES])
{
    uint8_t public_key[32], signing[64], mine[32], reader[32];
    fb_span box = fb_read_bytes(r, PLAIN_BYTES + crypto_box_SEALBYTES);
    if (!fb_reader_done(r)) return FB_ERR_MALFORMED;
    crypto_sign_seed_keypair(public_key, signing, recovery->b);
    int rc = crypto_sign_ed25519_sk_to_curve25519(mine, signing);
    if (rc == 0) rc = crypto_scalarmult_base(reader, mine);
    if (rc == 0) rc = crypto_box_seal_open(plain, box.p, box.len, reader, mine);
    sodium_memzero(signing, sizeof signing);
    sodium_memzero(mine, sizeof mine);
    return rc == 0 ? FB_OK : FB_ERR_KEY;
}

fb_status fb_backup_open(fb_span sealed, fb_span passphrase, const fb_b32 *recovery, fb_backup *out)
{
    uint8_t plain[PLAIN_BYTES];
    memset(out, 0, sizeof *out);
    if (sodium_init() < 0) return FB_ERR_CRYPTO;
    fb_reader r = fb_reader_of(sealed);
    fb_span magic = fb_read_bytes(&r, sizeof MAGIC - 1);
    uint8_t how = fb_read_u8(&r);
    if (r.failed || memcmp(magic.p, MAGIC, sizeof MAGIC - 1) != 0 || (how != 'P' && how != 'R')) {
        return FB_ERR_MALFORMED;
    }
    if (how == 'P' ? passphrase.p == NULL : recovery == NULL) return FB_ERR_ARGUMENT;
    fb_status status =
        how == 'P' ? open_passphrase(&r, passphrase, plain) : open_recovery(&r, recovery, plain);
    if (status == FB_OK) status = plain_read(plain, out);
    sodium_memzero(plain, sizeof plain);
    return status;
}
