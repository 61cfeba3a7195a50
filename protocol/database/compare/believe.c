/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/database/compare/believe.h"
#include "protocol/base/hex.h"
#include "protocol/base/mutant.h"
#include "protocol/database/compare/compare.h"
#include "protocol/database/state.h"

/* MP-6-14 */
bool fb_believes(const fb_node *node, uint32_t index, uint32_t member)
{
    if (member == FB_NONE || fb_member_status_of(node, member) != FB_MEMBER_APPROVED) return false;
    (void)index; /* rights are of a whole space */
    fb_role role = fb_member_role(node, member);
    return MUTANT(READER_BELIEVED, role == FB_ROLE_ADMIN || role == FB_ROLE_WRITER, true);
}

static bool waits(const fb_area *area)
{
    return area->used && (area->doubt || (area->hidden && area->wants != 0));
}

void fb_believe_again(fb_node *node, uint32_t space)
{
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        uint32_t index = at - 1;
        fb_area *area = fb_area_get(node, index);
        at = area->next;
        if (area->doubt) fb_doubt(node, index, false);
        if (!area->hidden) continue;
        area->hidden = false;
        fb_wanted_hurry(node, index);
        if (area->wants != 0) fb_timer_set(node, &area->wanted, node->mono_ns);
    }
}

static bool is_linked(const fb_node *node, uint32_t index)
{
    uint32_t space = fb_area_get(node, index)->space;
    for (uint32_t i = 0; i < fb_link_capacity(node); i++) {
        const fb_link_info *info = fb_link_at(node, i);
        if (info->state == FB_LINK_OPEN && info->space == space &&
            fb_believes(node, index, info->member)) {
            return true;
        }
    }
    return false;
}

void fb_database_doubts(const fb_node *node, uint32_t space, uint32_t *doubts, uint32_t *waiting)
{
    *doubts = *waiting = 0;
    for (uint32_t at = node->database->spaces[space].first; at != 0;) {
        const fb_area *area = fb_area_get(node, at - 1);
        uint32_t index = at - 1;
        at = area->next;
        if (area->kind == FB_AREA_REPORTS || !waits(area)) continue;
        ++*doubts;
        *waiting += is_linked(node, index) ? 0 : 1;
    }
}

/* Who they are, in one number; the place of one of them, FB_NONE: it is not among them. */
static uint64_t believed(const fb_node *node, uint32_t index, uint32_t member, uint32_t *place,
                         uint32_t *count)
{
    uint64_t who = 1;
    *place = FB_NONE;
    *count = 0;
    uint32_t space = fb_area_get(node, index)->space;
    for (uint32_t m = fb_member_first(node, space); m != FB_NONE; m = fb_member_next(node, m)) {
        if (!fb_believes(node, index, m) || fb_id_equal(fb_member_id(node, m), node->self)) {
            continue;
        }
        if (m == member) *place = *count;
        who = (who ^ (m + UINT64_C(1))) * UINT64_C(0x100000001b3);
        ++*count;
    }
    return who;
}

bool fb_is_consulted(const fb_node *node, const fb_area *area, uint32_t member)
{
    uint32_t place, count, index = (uint32_t)(area - node->database->areas);
    uint64_t who = believed(node, index, member, &place, &count);
    return place < 64 && who == area->consulted_of && (area->consulted >> place & 1u) != 0;
}

bool fb_consulted(fb_node *node, uint32_t index, uint32_t member)
{
    fb_area *area = fb_area_get(node, index);
    uint32_t place, count;
    uint64_t who = believed(node, index, member, &place, &count);
    if (who != area->consulted_of) area->consulted = 0;
    area->consulted_of = who;
    if (place >= 64) return false;
    area->consulted |= UINT64_C(1) << place;
    return count <= 64 && area->consulted == UINT64_MAX >> (64 - count);
}

void fb_believe_log(fb_node *node, const char *text, fb_id member, fb_id area, uint64_t count)
{
    static const char at[] = " of ", times[] = ": ";
    char line[2 * sizeof member.b + sizeof at + 2 * sizeof area.b + sizeof times + 20];
    fb_writer w = fb_writer_of((uint8_t *)line, sizeof line);
    fb_hex_format(member.b, sizeof member.b, line);
    w.at = 2 * sizeof member.b;
    fb_write_bytes(&w, at, sizeof at - 1);
    fb_hex_format(area.b, sizeof area.b, line + w.at);
    w.at += 2 * sizeof area.b;
    fb_write_bytes(&w, times, sizeof times - 1);
    char digits[20];
    size_t len = 0;
    do {
        digits[len++] = (char)('0' + count % 10);
        count /= 10;
    } while (count != 0);
    while (len > 0) fb_write_u8(&w, (uint8_t)digits[--len]);
    fb_log(node, FB_LOG_INFO, text, fb_writer_span(&w));
}
