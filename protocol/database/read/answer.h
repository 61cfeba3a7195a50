/* SPDX-License-Identifier: Apache-2.0 */
/* Records in answers: values that are stored apart are asked for by fb_show_read in one round and
 * taken in the same order by fb_show_write in the next. */
#ifndef FB_DATABASE_READ_ANSWER_H
#define FB_DATABASE_READ_ANSWER_H

#include "protocol/database/record/show.h"
#include "protocol/store/ops.h"

/* The most that an answer holds, and what stands in it before the records of a list. */
#define FB_SHOW_HEAD_BYTES 3u
size_t fb_show_max(const fb_node *node);
/* Bytes of the answer; 0 when the record is not visible. *apart is raised by the values to read. */
size_t fb_show_size(const fb_record *record, int64_t horizon, uint32_t *apart);
/* In a list, a record that is larger than any answer. */
#define FB_SHOW_TOO_LARGE_BYTES (16u + 16 + 2)
void fb_show_too_large(fb_writer *w, fb_id id, const fb_record *record);
bool fb_show_read(fb_op *op, fb_show *show, fb_id id, const fb_record *record);
/* FB_ERR_AGAIN: the record changed between the rounds. */
fb_status fb_show_write(const fb_node *node, const fb_op *op, fb_show *show, fb_writer *w, fb_id id,
                        const fb_record *record);

#endif
