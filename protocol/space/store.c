/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/space/store.h"

#include "protocol/identity/identity.h"
#include "protocol/space/judge.h"
#include "protocol/store/keys.h"

#define VALUE_VERSION 1u
#define KEY_BYTES     32u
#define LOAD_BYTES    3072u /* of one page: the smallest operation_bytes has room for it */

enum space_item { ITEM_SPACE = 0, ITEM_PROOF = 1 };

enum space_flag {
    FLAG_ROOTED = 1u,
    FLAG_TAKEN = 2u,
    FLAG_JOINING = 4u,
    FLAG_RENAMED = 16u,
    FLAG_LEFT = 8u, /* kept so that its number is not used again: areas may stand under it */
};

/* An entry to be put: its key begins with tag and number, its value with the version. */
typedef struct put_entry {
    uint8_t key[KEY_BYTES];
    uint8_t value[FB_APPLICATION_PUT_BYTES];
    fb_writer k, v;
} put_entry;

static void begin(put_entry *e, fb_tag tag, uint32_t number, size_t most)
{
    FB_ASSERT(most - KEY_BYTES <= sizeof e->value);
    e->k = fb_writer_of(e->key, sizeof e->key);
    fb_write_u8(&e->k, (uint8_t)tag);
    fb_write_u32(&e->k, number);
    e->v = fb_writer_of(e->value, most - KEY_BYTES);
    fb_write_u8(&e->v, VALUE_VERSION);
}

static void begin_space(const fb_node *node, put_entry *e, uint32_t space, enum space_item item)
{
    begin(e, FB_TAG_SPACE, fb_space_at(node, space)->local, FB_SPACE_PUT_BYTES);
    e->value[0] = FB_SPACE_STORED_VERSION;
    fb_write_u8(&e->k, (uint8_t)item);
}

/* Of what has an id within a space: members, who asked to join, invites. */
static void begin_of(const fb_node *node, put_entry *e, fb_tag tag, uint32_t space, fb_id id,
                     size_t most)
{
    begin(e, tag, fb_space_at(node, space)->local, most);
    fb_write_id(&e->k, id);
}

static void put(fb_node *node, const put_entry *e)
{
    FB_ASSERT(!e->v.failed);
    fb_space_tells_new(node);
    fb_put(node, fb_writer_span(&e->k), fb_writer_span(&e->v));
}

static void delete_entry(fb_node *node, const put_entry *e)
{
    fb_delete(node, fb_writer_span(&e->k));
}

static int64_t read_i64(fb_reader *r)
{
    uint64_t v = fb_read_u64(r);
    return v <= INT64_MAX ? (int64_t)v : -(int64_t)(UINT64_MAX - v) - 1;
}

static fb_dot_stamp read_dot_stamp(fb_reader *r)
{
    fb_dot_stamp at = {.stamp = read_i64(r)};
    at.node = fb_read_id(r);
    at.incarnation = fb_read_u64(r);
    at.seq = fb_read_u64(r);
    return at;
}

/* Copies a span16 into a buffer of a table; the reader fails when it does not fit. */
static uint8_t read_text(fb_reader *r, uint8_t *out, size_t cap)
{
    fb_span text = fb_read_span16(r);
    if (text.len > cap) r->failed = true;
    if (r->failed || text.len == 0) return 0;
    memcpy(out, text.p, text.len);
    return (uint8_t)text.len;
}

void fb_space_put(fb_node *node, uint32_t index)
{
    const fb_space *space = fb_space_at(node, index);
    unsigned flags = (space->rooted ? FLAG_ROOTED : 0u) | (space->taken ? FLAG_TAKEN : 0u) |
                     (space->joining.given ? FLAG_JOINING : 0u) | (space->left ? FLAG_LEFT : 0u) |
                     (space->name_at.incarnation != 0 ? FLAG_RENAMED : 0u);
    put_entry e;
    begin_space(node, &e, index, ITEM_SPACE);
    fb_write_id(&e.v, space->id);
    fb_write_b32(&e.v, space->creator);
    fb_write_b32(&e.v, space->recovery);
    fb_write_u8(&e.v, (uint8_t)flags);
    fb_write_span16(&e.v, fb_span_of(space->name, space->name_len));
    fb_write_span16(&e.v, fb_span_of(space->address, space->address_len));
    if (space->joining.given) {
        const fb_joining *joining = &space->joining;
        fb_write_id(&e.v, joining->id);
        fb_write_b32(&e.v, joining->secret);
        fb_write_b32(&e.v, joining->inviter);
        fb_write_span16(&e.v, fb_span_of(joining->address, joining->address_len));
    }
    if (space->name_at.incarnation != 0) {
        fb_dot_stamp_write(&e.v, &space->name_at);
        fb_write_span16(&e.v, fb_span_of(space->root_name, space->root_len));
    }
    put(node, &e);
}

void fb_space_put_proof(fb_node *node, uint32_t index)
{
    const fb_space *space = fb_space_at(node, index);
    put_entry e;
    begin_space(node, &e, index, ITEM_PROOF);
    fb_put(node, fb_writer_span(&e.k), fb_span_of(space->proof, space->proof_len));
}

void fb_member_put(fb_node *node, uint32_t index)
{
    const fb_member *member = fb_member_at(node, index);
    put_entry e;
    begin_of(node, &e, FB_TAG_MEMBER, member->space, member->id, FB_MEMBER_PUT_BYTES);
    fb_write_b32(&e.v, member->key);
    fb_write_u8(&e.v, (uint8_t)member->status);
    fb_write_u8(&e.v, (uint8_t)member->role);
    fb_write_span16(&e.v, fb_span_of(member->address, member->address_len));
    fb_dot_stamp_write(&e.v, &member->address_at);
    put(node, &e);
}

void fb_pending_put(fb_node *node, uint32_t index)
{
    const fb_member *member = fb_member_at(node, index);
    put_entry e;
    begin_of(node, &e, FB_TAG_PENDING, member->space, member->id, FB_PENDING_PUT_BYTES);
    fb_write_b32(&e.v, member->key);
    fb_write_id(&e.v, member->invite);
    put(node, &e);
}

void fb_pending_delete(fb_node *node, uint32_t index)
{
    const fb_member *member = fb_member_at(node, index);
    put_entry e;
    begin_of(node, &e, FB_TAG_PENDING, member->space, member->id, FB_PENDING_PUT_BYTES);
    delete_entry(node, &e);
}

void fb_invite_put(fb_node *node, uint32_t index)
{
    const fb_given_invite *invite = &node->spaces->invite[index];
    put_entry e;
    begin_of(node, &e, FB_TAG_INVITE, invite->space, invite->id, FB_INVITE_PUT_BYTES);
    fb_write_b32(&e.v, invite->secret);
    fb_write_u32(&e.v, invite->uses);
    fb_write_u64(&e.v, (uint64_t)invite->expires_us);
    put(node, &e);
}

void fb_invite_delete(fb_node *node, uint32_t index)
{
    const fb_given_invite *invite = &node->spaces->invite[index];
    put_entry e;
    begin_of(node, &e, FB_TAG_INVITE, invite->space, invite->id, FB_INVITE_PUT_BYTES);
    delete_entry(node, &e);
}

void fb_application_put(fb_node *node, uint32_t index)
{
    const fb_application *application = &node->spaces->application[index];
    put_entry e;
    begin(&e, FB_TAG_APPLICATION, application->number, FB_APPLICATION_PUT_BYTES);
    fb_write_u8(&e.v, application->revoked);
    fb_write_b32(&e.v, application->token_hash);
    fb_write_span16(&e.v, fb_span_of(application->name, application->name_len));
    for (uint32_t i = 0; i < node->options.sizes.spaces; i++) {
        if ((application->spaces >> i & 1u) != 0) fb_write_u32(&e.v, fb_space_at(node, i)->local);
    }
    put(node, &e);
}

void fb_application_delete(fb_node *node, uint32_t index)
{
    put_entry e;
    begin(&e, FB_TAG_APPLICATION, node->spaces->application[index].number,
          FB_APPLICATION_PUT_BYTES);
    delete_entry(node, &e);
}

/* Loading: one part after another, a page of each at a time. */

static uint32_t space_of_local(const fb_node *node, uint32_t local)
{
    for (uint32_t i = 0; i < node->options.sizes.spaces; i++) {
        if (fb_space_exists(node, i) && fb_space_at(node, i)->local == local) return i;
    }
    return FB_NONE;
}

static fb_status load_space_item(fb_node *node, uint32_t local, fb_reader *v)
{
    uint8_t version = fb_read_u8(v);
    if (version > FB_SPACE_STORED_VERSION || version == 0) return FB_ERR_VERSION_NEWER;
    fb_id id = fb_read_id(v);
    fb_b32 creator = fb_read_b32(v), recovery = {{0}};
    if (version == FB_SPACE_STORED_VERSION) recovery = fb_read_b32(v);
    uint8_t flags = fb_read_u8(v);
    uint8_t name[FB_SPACE_NAME_BYTES_MAX];
    uint8_t name_len = read_text(v, name, sizeof name);
    if (v->failed) return FB_ERR_STORE_DAMAGED;
    if ((flags & FLAG_LEFT) != 0) {
        if (local > node->spaces->space_local) node->spaces->space_local = local;
        fb_read_bytes(v, fb_reader_left(v));
        return FB_OK;
    }
    uint32_t index = fb_space_add(node, id, local, creator, fb_span_of(name, name_len));
    if (index == FB_NONE) return FB_ERR_LIMIT;
    fb_space *space = fb_space_at(node, index);
    space->recovery = recovery;
    space->rooted = (flags & FLAG_ROOTED) != 0;
    space->taken = (flags & FLAG_TAKEN) != 0;
    space->address_len = read_text(v, space->address, sizeof space->address);
    if ((flags & FLAG_JOINING) != 0) {
        fb_joining *joining = &space->joining;
        joining->given = true;
        joining->id = fb_read_id(v);
        joining->secret = fb_read_b32(v);
        joining->inviter = fb_read_b32(v);
        joining->address_len = read_text(v, joining->address, sizeof joining->address);
    }
    if ((flags & FLAG_RENAMED) != 0) {
        space->name_at = read_dot_stamp(v);
        space->root_len = read_text(v, space->root_name, sizeof space->root_name);
    }
    return FB_OK;
}

static fb_status check_version(fb_reader *v)
{
    return fb_read_u8(v) == VALUE_VERSION ? FB_OK : FB_ERR_VERSION_NEWER;
}

static fb_status load_space(fb_node *node, fb_reader *k, fb_reader *v)
{
    uint32_t local = fb_read_u32(k);
    uint8_t item = fb_read_u8(k);
    if (item == ITEM_SPACE) return load_space_item(node, local, v);
    uint32_t space = space_of_local(node, local);
    fb_span proof = fb_read_bytes(v, fb_reader_left(v));
    if (item != ITEM_PROOF || space == FB_NONE || proof.len > FB_STATEMENT_PROOF_BYTES_MAX) {
        return FB_ERR_STORE_DAMAGED;
    }
    memcpy(fb_space_at(node, space)->proof, proof.p, proof.len);
    fb_space_at(node, space)->proof_len = (uint16_t)proof.len;
    return FB_OK;
}

static fb_status load_member(fb_node *node, fb_reader *k, fb_reader *v)
{
    uint32_t space = space_of_local(node, fb_read_u32(k));
    fb_id id = fb_read_id(k);
    fb_b32 public_key = fb_read_b32(v);
    uint8_t status = fb_read_u8(v);
    uint8_t role = fb_read_u8(v);
    bool known = status == FB_MEMBER_APPROVED || status == FB_MEMBER_REVOKED;
    if (space == FB_NONE || v->failed || !known || role > FB_ROLE_READER) {
        return FB_ERR_STORE_DAMAGED;
    }
    uint32_t index = fb_member_find(node, space, id); /* the creator is there */
    if (index == FB_NONE) {
        index = fb_member_add(node, space, id, public_key, (fb_member_status)status, (fb_role)role);
    }
    if (index == FB_NONE) return FB_ERR_LIMIT;
    fb_member *member = fb_member_at(node, index);
    member->role = (fb_role)role;
    if (member->status != (fb_member_status)status) {
        fb_member_set_status(node, index, (fb_member_status)status);
    }
    member->address_len = read_text(v, member->address, sizeof member->address);
    member->address_at = read_dot_stamp(v);
    return FB_OK;
}

static fb_status load_standing(fb_node *node, fb_reader *k, fb_reader *v)
{
    uint32_t space = space_of_local(node, fb_read_u32(k));
    return space == FB_NONE ? FB_ERR_STORE_DAMAGED : fb_standing_load(node, space, k, v);
}

static fb_status load_cut(fb_node *node, fb_reader *k, fb_reader *v)
{
    uint32_t space = space_of_local(node, fb_read_u32(k));
    return space == FB_NONE ? FB_ERR_STORE_DAMAGED : fb_cut_load(node, space, k, v);
}

static fb_status load_pending(fb_node *node, fb_reader *k, fb_reader *v)
{
    uint32_t space = space_of_local(node, fb_read_u32(k));
    fb_id id = fb_read_id(k);
    fb_b32 public_key = fb_read_b32(v);
    fb_id invite = fb_read_id(v);
    if (space == FB_NONE || v->failed) return FB_ERR_STORE_DAMAGED;
    if (fb_member_find(node, space, id) != FB_NONE) return FB_OK; /* approved elsewhere meanwhile */
    uint32_t index = fb_member_add(node, space, id, public_key, FB_MEMBER_PENDING, FB_ROLE_NONE);
    /* Members have the places first; who asked may ask again. */
    if (index != FB_NONE) fb_member_at(node, index)->invite = invite;
    return FB_OK;
}

static fb_status load_invite(fb_node *node, fb_reader *k, fb_reader *v)
{
    uint32_t space = space_of_local(node, fb_read_u32(k));
    uint32_t index = 0;
    while (index < node->options.sizes.invites && node->spaces->invite[index].used) index++;
    if (index == node->options.sizes.invites) return FB_ERR_LIMIT;
    fb_given_invite *invite = &node->spaces->invite[index];
    invite->id = fb_read_id(k);
    invite->space = space;
    invite->secret = fb_read_b32(v);
    invite->uses = fb_read_u32(v);
    invite->expires_us = read_i64(v);
    if (space == FB_NONE) return FB_ERR_STORE_DAMAGED;
    invite->used = true;
    fb_digest_touch(node, FB_DIGEST_INVITE, index);
    return FB_OK;
}

static fb_status load_application(fb_node *node, fb_reader *k, fb_reader *v)
{
    uint32_t index = 0;
    while (index < node->options.sizes.applications && node->spaces->application[index].used) {
        index++;
    }
    if (index == node->options.sizes.applications) return FB_ERR_LIMIT;
    fb_application *application = &node->spaces->application[index];
    application->number = fb_read_u32(k);
    application->revoked = fb_read_u8(v) != 0;
    application->token_hash = fb_read_b32(v);
    application->name_len = read_text(v, application->name, sizeof application->name);
    application->spaces = 0;
    while (fb_reader_left(v) > 0) {
        uint32_t space = space_of_local(node, fb_read_u32(v));
        if (space != FB_NONE) application->spaces |= UINT64_C(1) << space;
    }
    application->used = true;
    if (application->number > node->spaces->application_number) {
        node->spaces->application_number = application->number;
    }
    fb_digest_touch(node, FB_DIGEST_APPLICATION, index);
    return FB_OK;
}

/* In this order: everything else names a space, and members have their places before who asks. */
static const struct part {
    fb_tag tag;
    uint32_t value_bytes;
    fb_status (*load)(fb_node *node, fb_reader *key, fb_reader *value);
} parts[] = {
    {FB_TAG_SPACE, FB_STATEMENT_PROOF_BYTES_MAX, load_space},
    {FB_TAG_MEMBER, FB_MEMBER_PUT_BYTES, load_member},
    {FB_TAG_STANDING, FB_STANDING_PUT_BYTES, load_standing},
    {FB_TAG_CUT, FB_CUT_PUT_BYTES, load_cut},
    {FB_TAG_INVITE, FB_INVITE_PUT_BYTES, load_invite},
    {FB_TAG_PENDING, FB_PENDING_PUT_BYTES, load_pending},
    {FB_TAG_APPLICATION, FB_APPLICATION_PUT_BYTES, load_application},
};

#define PARTS (sizeof parts / sizeof parts[0])

_Static_assert(FB_SPACE_PUT_BYTES <= FB_STATEMENT_PROOF_BYTES_MAX,
               "both items of a space are read whole");
_Static_assert(FB_STATEMENT_PROOF_BYTES_MAX + 128u <= LOAD_BYTES, "an entry fits a page");

static void load_page(fb_node *node, fb_op *op);

static void load_begin(fb_node *node)
{
    struct fb_spaces *spaces = node->spaces;
    uint8_t tag = (uint8_t)parts[spaces->load_part].tag;
    uint8_t high = (uint8_t)(tag + 1);
    uint8_t low[FB_KEY_BYTES_MAX] = {tag};
    size_t low_len = 1;
    if (spaces->load_key_len != 0) {
        /* The first key after the last one read. */
        memcpy(low, spaces->load_key, spaces->load_key_len);
        low[spaces->load_key_len] = 0;
        low_len = spaces->load_key_len + 1u;
    }
    fb_op *op = fb_op_begin(node, FB_OP_READER, load_page, 0, 0);
    FB_ASSERT(op != NULL); /* hardly another operation runs while a plane loads */
    bool named = fb_op_read_range(op, fb_span_of(low, low_len), fb_span_of(&high, 1),
                                  parts[spaces->load_part].value_bytes, 64, LOAD_BYTES, false);
    FB_ASSERT(named);
    fb_op_issue(node, op);
}

static fb_status load_entry(fb_node *node, fb_read_entry entry)
{
    struct fb_spaces *spaces = node->spaces;
    fb_reader k = fb_reader_of(entry.key);
    fb_reader v = fb_reader_of(entry.value);
    fb_read_u8(&k);
    if (entry.key.len >= sizeof spaces->load_key || entry.value.len != entry.value_len) {
        return FB_ERR_STORE_DAMAGED;
    }
    /* Of a space only one item has a version. */
    if (parts[spaces->load_part].tag != FB_TAG_SPACE) FB_TRY(check_version(&v));
    FB_TRY(parts[spaces->load_part].load(node, &k, &v));
    if (!fb_reader_done(&k) || !fb_reader_done(&v)) return FB_ERR_STORE_DAMAGED;
    memcpy(spaces->load_key, entry.key.p, entry.key.len);
    spaces->load_key_len = (uint16_t)entry.key.len;
    return FB_OK;
}

static void load_page(fb_node *node, fb_op *op)
{
    struct fb_spaces *spaces = node->spaces;
    fb_status status = fb_op_status(op);
    uint32_t count = status == FB_OK ? fb_op_range_count(node, op, 0) : 0;
    for (uint32_t i = 0; i < count && status == FB_OK; i++) {
        status = load_entry(node, fb_op_range_entry(node, op, 0, i));
    }
    if (status != FB_OK) {
        fb_incarnation_end(node, status);
        return;
    }
    if (fb_op_range_whole(node, op, 0)) {
        spaces->load_part++;
        spaces->load_key_len = 0;
    }
    if (spaces->load_part == PARTS) {
        for (uint32_t i = 0; i < fb_space_capacity(node); i++) {
            if (fb_space_exists(node, i)) fb_space_judge(node, i);
        }
        fb_plane_loaded(node);
    } else {
        load_begin(node); /* a page each, so that an operation keeps one page */
    }
}

void fb_space_load(fb_node *node)
{
    node->spaces->load_part = 0;
    node->spaces->load_key_len = 0;
    load_begin(node);
}
