/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of RECORD_PUT and its relatives, built from JSON. */
#ifndef FB_RUNTIME_COMMAND_RECORD_ARGUMENTS_H
#define FB_RUNTIME_COMMAND_RECORD_ARGUMENTS_H

#include "protocol/base/cursor.h"
#include "runtime/api/exchange.h"

/* As in request.h. */
enum { FB_CONDITION_NONE = 0, FB_CONDITION_MATCH = 1, FB_CONDITION_ABSENT = 2 };
enum { FB_MODE_REPLACE = 1, FB_MODE_CHANGE = 2 };

/* Room for arguments that may be large, in x->scratch; given back when the node has answered. */
fb_writer fb_arguments_take(fb_exchange *x);
void fb_arguments_give(fb_exchange *x);

/* Is args[1] the name of a collection that can be? False after it answered. */
bool fb_collection_check(fb_exchange *x);

/* The count and the fields of one record: field -> value, or {"$unset":true}. False after it
 * answered, naming the field; `where` stands before that. */
bool fb_fields_write(fb_exchange *x, fb_writer *w, const fb_json_object_in *fields,
                     const char *where);

#endif
