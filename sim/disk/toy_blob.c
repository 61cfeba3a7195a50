/* SPDX-License-Identifier: Apache-2.0 */
/* The toy blob store: a file for each blob, named after the hash of its content. Written to `temp`,
 * synced, renamed, the directory synced. What an interrupted write left is emptied by the next. */
#include "protocol/base/assert.h"
#include "protocol/base/hash.h"
#include "protocol/base/hex.h"
#include "sim/disk/toy.h"

#define BLOBS_MAX  12u
#define BLOB_MIN   40u
#define BLOB_MAX   500u
#define PIECE      192u /* of a write */
#define NAME_HEX   16u
#define MODEL_RING 16u

typedef struct blob {
    char name[FB_DISK_NAME_BYTES]; /* empty: none */
    uint64_t content;              /* hash of what is there */
    bool damaged;                  /* it does not match its name, and that is told */
} blob;

typedef struct toy_blob {
    fb_disk *disk;
    fb_disk_defect defect;
    blob blobs[BLOBS_MAX];
} toy_blob;

/* Blobs low .. next-1 were acknowledged, those below low removed. Without padding, as it is hashed
 * by bytes. */
typedef struct blob_model {
    uint64_t low, next;
    uint64_t ids;               /* of contents used: one whose putting failed is not put again */
    uint64_t id[MODEL_RING];    /* content of each blob, by number */
    uint64_t putting, removing; /* 0 or 1 */
} blob_model;

static uint32_t content_of(uint64_t number, uint8_t *bytes)
{
    return fb_disk_content(number, BLOB_MIN, BLOB_MAX, bytes);
}

static void name_of(const uint8_t *bytes, uint32_t len, char out[FB_DISK_NAME_BYTES])
{
    uint8_t hash[NAME_HEX / 2];
    fb_span content = fb_span_of(bytes, len);
    fb_blake3(&content, 1, hash, sizeof hash);
    memset(out, 0, FB_DISK_NAME_BYTES);
    fb_hex_format(hash, sizeof hash, out);
}

static blob *blob_at(toy_blob *t, const char *name)
{
    for (uint32_t i = 0; i < BLOBS_MAX; i++) {
        if (strncmp(t->blobs[i].name, name, FB_DISK_NAME_BYTES) == 0) return &t->blobs[i];
    }
    return NULL;
}

/* Opening. */

static fb_disk_status blob_load(toy_blob *t, const char *name)
{
    uint8_t bytes[FB_DISK_CONTENT_MAX];
    char right[FB_DISK_NAME_BYTES];
    uint32_t handle, done;
    fb_disk_status status = fb_disk_open(t->disk, name, 0, &handle);
    if (status != FB_DISK_OK) return status;
    status = fb_disk_read_all(t->disk, handle, 0, bytes, sizeof bytes, &done);
    fb_disk_close(t->disk, handle);
    if (status != FB_DISK_OK) return status;
    blob *b = blob_at(t, "");
    FB_ASSERT(b != NULL);
    memcpy(b->name, name, sizeof b->name);
    b->content = fb_xxh64(bytes, done, 0);
    name_of(bytes, done, right);
    b->damaged =
        strncmp(name, right, FB_DISK_NAME_BYTES) != 0 && t->defect != FB_DISK_DEFECT_HASH_UNREAD;
    return FB_DISK_OK;
}

static fb_disk_result blob_open(void *toy, fb_disk *disk, uint64_t incarnation,
                                fb_disk_defect defect)
{
    toy_blob *t = toy;
    (void)incarnation;
    memset(t, 0, sizeof *t);
    t->disk = disk;
    t->defect = defect;
    /* A name that is seen may be one that nobody synced. */
    if (defect != FB_DISK_DEFECT_NAME_BELIEVED && fb_disk_sync_directory(disk) != FB_DISK_OK) {
        return FB_DISK_FAILED;
    }
    for (uint32_t i = 0;; i++) {
        const char *name = fb_disk_name(disk, i);
        if (name == NULL) return FB_DISK_DONE;
        if (strcmp(name, "temp") == 0) continue;
        if (blob_load(t, name) != FB_DISK_OK) return FB_DISK_FAILED;
    }
}

/* Putting and removing. */

static fb_disk_status put_bytes(toy_blob *t, uint32_t handle, const uint8_t *bytes, uint32_t len)
{
    for (uint32_t at = 0; at < len; at += PIECE) {
        uint32_t part = len - at < PIECE ? len - at : PIECE;
        fb_disk_status status = fb_disk_write_all(t->disk, handle, at, bytes + at, part);
        if (status != FB_DISK_OK) return status;
    }
    return FB_DISK_OK;
}

static fb_disk_status put(toy_blob *t, uint64_t number)
{
    uint8_t bytes[FB_DISK_CONTENT_MAX];
    char name[FB_DISK_NAME_BYTES];
    uint32_t handle, len = content_of(number, bytes);
    fb_disk *disk = t->disk;
    name_of(bytes, len, name);
    const blob *there = blob_at(t, name);
    if (there != NULL && !there->damaged) return FB_DISK_OK;
    bool final = t->defect == FB_DISK_DEFECT_FINAL_NAME;
    bool first = t->defect == FB_DISK_DEFECT_RENAME_FIRST;
    bool kept = t->defect == FB_DISK_DEFECT_TEMP_KEPT;
    fb_disk_status status = kept ? fb_disk_open(disk, "temp", FB_DISK_CREATE, &handle)
                                 : fb_disk_open_new(disk, final ? name : "temp", &handle);
    if (status != FB_DISK_OK) return status;
    status = put_bytes(t, handle, bytes, len);
    if (status == FB_DISK_OK && first) status = fb_disk_rename(disk, "temp", name);
    if (status == FB_DISK_OK) status = fb_disk_sync(disk, handle, 0);
    fb_disk_close(disk, handle);
    if (status == FB_DISK_OK && !first && !final) status = fb_disk_rename(disk, "temp", name);
    if (status == FB_DISK_OK && t->defect != FB_DISK_DEFECT_DIRECTORY_UNSYNCED) {
        status = fb_disk_sync_directory(disk);
    }
    if (status != FB_DISK_OK) return status;
    blob *b = blob_at(t, "");
    FB_ASSERT(b != NULL);
    memcpy(b->name, name, sizeof b->name);
    b->content = fb_xxh64(bytes, len, 0);
    return FB_DISK_OK;
}

static fb_disk_status take_away(toy_blob *t, uint64_t number)
{
    uint8_t bytes[FB_DISK_CONTENT_MAX];
    char name[FB_DISK_NAME_BYTES];
    name_of(bytes, content_of(number, bytes), name);
    blob *b = blob_at(t, name);
    if (b == NULL) return FB_DISK_OK;
    fb_disk_status status = fb_disk_remove(t->disk, name);
    if (status == FB_DISK_OK) status = fb_disk_sync_directory(t->disk);
    if (status == FB_DISK_OK) memset(b, 0, sizeof *b);
    return status;
}

static fb_disk_result blob_step(void *toy, void *model, uint32_t n, fb_disk_history *history)
{
    toy_blob *t = toy;
    blob_model *m = model;
    (void)history;
    bool removing = n % FB_DISK_OPS == 8 || n % FB_DISK_OPS == 13 || m->next - m->low > 4;
    if (removing && m->low < m->next) {
        m->removing = 1;
        if (take_away(t, m->id[m->low % MODEL_RING]) != FB_DISK_OK) return FB_DISK_FAILED;
        m->removing = 0;
        m->low++;
        return FB_DISK_DONE;
    }
    m->putting = 1;
    m->id[m->next % MODEL_RING] = m->ids++;
    if (put(t, m->id[m->next % MODEL_RING]) != FB_DISK_OK) return FB_DISK_FAILED;
    m->putting = 0;
    m->next++;
    return FB_DISK_DONE;
}

/* Judging. */

static const char *judge_one(const toy_blob *t, uint64_t number, bool may_be, bool must_be,
                             bool damage, bool *is)
{
    uint8_t bytes[FB_DISK_CONTENT_MAX];
    char name[FB_DISK_NAME_BYTES];
    uint32_t len = content_of(number, bytes);
    name_of(bytes, len, name);
    const blob *b = blob_at((toy_blob *)(uintptr_t)t, name);
    *is = b != NULL;
    if (b == NULL) return must_be ? "an acknowledged blob is gone" : NULL;
    if (!may_be) return "a blob is there again that was removed";
    if (b->damaged) return damage ? NULL : "a blob is damaged, and only a crash was";
    return b->content == fb_xxh64(bytes, len, 0) ? NULL : "a blob has another content";
}

static const char *blob_judge(const void *toy, void *model, bool damage)
{
    const toy_blob *t = toy;
    blob_model *m = model;
    bool is, low_is = true, next_is = false;
    uint64_t known = 0;
    for (uint64_t n = m->low > 6 ? m->low - 6 : 0; n < m->next + m->putting; n++) {
        bool acked = n >= m->low && n < m->next;
        bool must = acked && !(m->removing && n == m->low);
        bool may = acked || (m->putting && n == m->next);
        const char *wrong = judge_one(t, m->id[n % MODEL_RING], may, must, damage, &is);
        if (wrong != NULL) return wrong;
        known += is;
        if (n == m->low) low_is = is;
        if (n == m->next) next_is = is;
    }
    for (uint32_t i = 0; i < BLOBS_MAX; i++) known -= t->blobs[i].name[0] != 0;
    if (known != 0) return "a blob is there that nobody put";
    if (m->removing && !low_is) m->low++;
    if (m->putting && next_is) m->next++;
    m->removing = m->putting = 0;
    return NULL;
}

static uint64_t blob_digest(const void *toy)
{
    const toy_blob *t = toy;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < BLOBS_MAX; i++) {
        const blob *b = &t->blobs[i];
        if (b->name[0] != 0) sum += fb_xxh64(b->name, sizeof b->name, b->content + b->damaged);
    }
    return sum;
}

/* A blob's name is its content: there is no identity that could be given twice. */
static void blob_diverge(void *model)
{
    (void)model;
}

const fb_disk_toy fb_disk_toy_blob = {
    "blob",    sizeof(toy_blob), sizeof(blob_model), blob_open,
    blob_step, blob_judge,       blob_digest,        blob_diverge,
};
