/* SPDX-License-Identifier: Apache-2.0 */
/* Which statements stand. DESIGN 3.1, Revocation: from the creator down, in the order of seniority.
 * docs/CONSISTENCY.md, "Who may do what", says why every order of arrival gives the same.
 *
 * An admin acts in a *term*: it, under the number by which it became one. First come the terms that
 * the recovery key gave, the last turn first (recovery.h), then the creator's first one. Then, as
 * long as there is one, the term is opened that the statement of the most senior author gives (of
 * several of one author, the one with the least stamp), and gets the next rank. A statement stands
 * when the term of its author is open and no taking of a more senior term, about that author and of
 * a greater number than the claim, cuts it. So whether it stands is known when its author's term
 * opens, from what the terms before stated, and nothing later changes it. */
#ifndef FB_SPACE_JUDGE_H
#define FB_SPACE_JUDGE_H

#include "protocol/space/standing.h"

/* Judges all statements of a space. Steps: open terms times statements kept. */
void fb_space_judge(fb_node *node, uint32_t space);

/* Does it count what an admin stated in this batch of the own area? */
bool fb_space_stands(const fb_node *node, uint32_t space, fb_id author, uint64_t claim,
                     uint64_t incarnation, uint64_t number);

#endif
